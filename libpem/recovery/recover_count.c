/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recover_count.c - count what the streams of a trace contain whose recorder was killed, since its
 * account is lost
 *
 * Records that the recorder had not written are in recover.c.
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "processes/processes.h"
#include "recovery/recover_count.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pem_recovery__demand_for_all(struct pem_session *s)
{
	size_t i;

	for (i = 0; i < pem_model__count(s->model); i++) {
		if (!pem_session__demand(s, pem_model__event(s->model, i)))
			return -ENOMEM;
	}
	return 0;
}

/* Records of earlier packets: of one producer's streams, or, if producer is NULL, of sources'. */
struct written {
	struct pem_session *session;
	const struct pem_producer *producer;
};

static bool is_written_by(const void *arg, const char *stream)
{
	const struct written *w = arg;

	return w->producer ? pem_producer__owns_stream(w->producer, stream) : stream[0] != 'u';
}

static void count_written(void *arg, const char *stream, const struct pem_packet *packet,
			  size_t content)
{
	const struct written *w = arg;

	(void)stream;
	pem_session__count_records(w->session, packet, content, 1, 0);
}

/* Count the written records of a producer or of the sources again, into the demands. */
static void count_stream(struct pem_session *s, const struct pem_producer *p)
{
	struct written written = {s, p};
	size_t i;

	for (i = 0; i < s->demand_count; i++)
		s->demands[i].delivered = 0;
	pem_trace_writer__walk(s->log->writer, is_written_by, count_written, &written);
}

void pem_recovery__take_over_counts(struct pem_session *s, struct pem_producer *p)
{
	const struct pem_event_entry *entry;
	size_t i;

	count_stream(s, p);
	for (i = 0; i < s->demand_count; i++) {
		entry = pem_producer__entry_of(p, s->demands[i].event);
		if (entry)
			p->delivered[entry->event_index] = s->demands[i].delivered;
	}
}

/*
 * A search in the streams for processes that ended before the recorder did. Their pools are gone,
 * and their accounts went with the recorder.
 */
struct gone_search {
	struct pem_session *session;
	struct pem_balance_entry *entries; /* of the present process, by demand, and one more */
	char prefix[PEM_STREAM_FILE_BYTES]; /* of its streams: "u_<pid>_<k>_"; "": none yet */
	char stream[PEM_STREAM_FILE_BYTES]; /* stream of the packet before */
	uint64_t discarded; /* events discarded, in that packet */
};

/* Account for a process after all of its packets. */
static void account_process(struct gone_search *search)
{
	struct pem_session *s = search->session;
	uint32_t pid = (uint32_t)strtoul(search->prefix + 2, NULL, 10);
	struct pem_balance *b;
	size_t i;

	for (i = 0; i <= s->demand_count; i++) {
		search->entries[i].event_id = i < s->demand_count ? s->demands[i].event->id : 0;
		b = &search->entries[i].balance;
		b->produced = b->delivered + b->discarded;
	}
	pem_trace_writer__balance(s->log->writer, pid, "", 0, search->entries, s->demand_count + 1);
	memset(search->entries, 0, (s->demand_count + 1) * sizeof(*search->entries));
}

/*
 * Begin with the next process where a stream belongs to another one. Streams come in the order of
 * their names.
 */
static void enter_stream(struct gone_search *search, const char *stream)
{
	size_t length = (size_t)(strrchr(stream, '_') - stream) + 1;

	if (strncmp(search->prefix, stream, length) || search->prefix[length]) {
		if (search->prefix[0])
			account_process(search);
		memcpy(search->prefix, stream, length);
		search->prefix[length] = 0;
	}
	pem_copy_text(search->stream, sizeof(search->stream), stream);
	search->discarded = 0;
}

static bool is_gone(const void *arg, const char *stream)
{
	const struct gone_search *search = arg;
	const struct pem_producer *p;

	for (p = search->session->processes->producers; p; p = p->next) {
		if (pem_producer__owns_stream(p, stream))
			return false;
	}
	return stream[0] == 'u';
}

static void count_gone(void *arg, const char *stream, const struct pem_packet *packet,
		       size_t content)
{
	struct gone_search *search = arg;
	struct pem_session *s = search->session;
	size_t i;

	if (strcmp(search->stream, stream))
		enter_stream(search, stream);
	for (i = 0; i < s->demand_count; i++)
		s->demands[i].delivered = 0;
	pem_session__count_records(s, packet, content, 1, 0);
	for (i = 0; i < s->demand_count; i++)
		search->entries[i].balance.delivered += s->demands[i].delivered;
	/*
	 * It is not known which events were discarded. They are counted under id 0, behind the
	 * others.
	 */
	if (packet->events_discarded > search->discarded)
		search->entries[s->demand_count].balance.discarded +=
			packet->events_discarded - search->discarded;
	search->discarded = packet->events_discarded;
}

int pem_recovery__account_gone(struct pem_session *s)
{
	struct gone_search search = {.session = s};
	/*
	 * Program events get demands too: no demand may be added while entries are counted by
	 * demand.
	 */
	int result = pem_recovery__demand_for_all(s);

	if (result)
		return result;
	search.entries = calloc(s->demand_count + 1, sizeof(*search.entries));
	if (!search.entries)
		return -ENOMEM;
	pem_trace_writer__walk(s->log->writer, is_gone, count_gone, &search);
	if (search.prefix[0])
		account_process(&search);
	free(search.entries);
	return 0;
}

/* The written records are all that is known of the sources. */
int pem_recovery__account_sources(struct pem_session *s)
{
	struct pem_balance_entry *entries = calloc(s->demand_count + 1, sizeof(*entries));
	size_t i;

	if (!entries)
		return -ENOMEM;
	count_stream(s, NULL);
	for (i = 0; i < s->demand_count; i++) {
		entries[i].event_id = s->demands[i].event->id;
		entries[i].balance.produced = entries[i].balance.delivered =
			s->demands[i].delivered;
	}
	pem_trace_writer__balance(s->log->writer, 0, "sources", 0, entries, s->demand_count);
	free(entries);
	return 0;
}
