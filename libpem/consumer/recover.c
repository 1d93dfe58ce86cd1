/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recover.c - finish a trace whose recorder was killed
 *
 * What programs had logged and nobody had written lies in their pools still, in the session's folder; the programs may even
 * be running and logging on. So: open the trace's streams where they end, drain the pools into them, account. What the
 * recorder had taken from a pool and not written yet is counted as discarded. What the kernel's rings held died with
 * the recorder, uncounted: the trace says so.
 */
#include "consumer/session.h"
#include "runtime_dir.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* .pem/session: "PID DIRECTORY\n", written when the session's log is made, removed when it is finished. */
static int read_session_file(int trace_fd, pid_t *recorder, char *directory, size_t bytes)
{
	char *text, *space, *end;
	size_t length;
	long pid;

	text = pem_read_file(trace_fd, ".pem/session", PATH_MAX + 32, &length);
	if (!text)
		return -errno;
	pid = strtol(text, &space, 10);
	end = strchr(text, '\n');
	if (pid <= 0 || pid > INT_MAX || *space != ' ' || space[1] != '/' || !end ||
	    (size_t)(end - space) > bytes) {
		free(text);
		return -EINVAL;
	}
	*end = 0;
	strcpy(directory, space + 1);
	*recorder = (pid_t)pid;
	free(text);
	return 0;
}

/* Only what a session of this user made, in this user's runtime folder, is touched. */
static int open_session_directory(struct pem_session *s, pid_t recorder)
{
	struct stat st;
	char *slash;
	void *page;
	int fd;

	slash = strrchr(s->directory, '/');
	if (pem_runtime_dir(s->runtime, sizeof(s->runtime)) ||
	    strlen(s->runtime) != (size_t)(slash - s->directory) ||
	    memcmp(s->directory, s->runtime, (size_t)(slash - s->directory)) ||
	    strncmp(slash, "/session-", 9))
		return -EPERM;
	s->directory_fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->directory_fd < 0)
		return -errno;
	fd = openat(s->directory_fd, "config", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	page = MAP_FAILED;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (uint64_t)st.st_size >= sizeof(*s->page))
		page = mmap(NULL, sizeof(*s->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return -EINVAL;
	s->page = page;
	if (pem_fault__watch(s->page, sizeof(*s->page), &s->page_cut))
		return -ENOSPC;
	s->geometry.chunk_bytes = __atomic_load_n(&s->page->chunk_bytes, __ATOMIC_RELAXED);
	if (s->page->magic != PEM_SESSION_MAGIC || s->page->abi_version != PEM_ABI_VERSION ||
	    s->page->consumer_pid != (uint32_t)recorder || s->geometry.chunk_bytes < 4096 ||
	    s->geometry.chunk_bytes > 16u << 20)
		return -EINVAL;
	/* By it the processes that still run know the session: it is switched off in them before they are read. */
	s->id = __atomic_load_n(&s->page->id, __ATOMIC_RELAXED);
	return 0;
}

/* What callbacks alone wanted is neither for the trace nor missing in it. */
static void set_aside(struct pem_session *s)
{
	uint32_t count = __atomic_load_n(&s->page->rule_count, __ATOMIC_ACQUIRE), i;
	const struct pem_event *event;
	struct pem_wish *wish;

	for (i = 0; i < count && i < PEM_RULES_MAX; i++) {
		if (!(s->page->rules[i].flags & PEM_RULE_ASIDE))
			continue;
		event = pem_model__by_id(s->model, s->page->rules[i].event_id);
		wish = event ? pem_session__wish(s, event) : NULL;
		if (wish)
			wish->async_ever = true;
	}
}

/* Every event of the trace is wanted by its log, so that records of sources are counted too. */
static int make_log(struct pem_session *s, const char *trace, const struct pem_trace_info *info,
		    struct pem_error *error)
{
	size_t i;

	s->log = calloc(1, sizeof(*s->log));
	if (!s->log)
		return -ENOMEM;
	s->log->session = s;
	s->log->info = *info;
	s->log->model = pem_model__new();
	if (!s->log->model)
		return -ENOMEM;
	pem_log__model_grew(s->log); /* the session's model is the trace's */
	s->log->writer = pem_trace_writer__resume(trace, s->log->model, info, error);
	if (!s->log->writer)
		return -errno;
	for (i = 0; i < pem_model__count(s->model); i++) {
		if (!pem_session__wish(s, pem_model__event(s->model, i)))
			return -ENOMEM;
	}
	return 0;
}

/* Add a packet's records to the wishes of their events. */
static void count_events(struct pem_session *s, const struct pem_packet *packet, size_t content)
{
	const struct pem_record_header *header;
	const uint8_t *base = (const uint8_t *)packet;
	size_t at = PEM_PACKET_HEADER_BYTES;
	const struct pem_event *event;
	int bytes;

	while (at + sizeof(*header) <= content) {
		header = (const struct pem_record_header *)(base + at);
		event = pem_model__by_id(s->model, header->event_id);
		bytes = event ? pem_event__record_bytes(event, base + at, content - at) : -EINVAL;
		if (bytes < 0)
			return;
		pem_session__wish(s, event)->delivered++;
		at += ((size_t)bytes + 7) & ~(size_t)7;
	}
}

/* Records of earlier packets: of one producer's streams, or (NULL) of sources'. */
struct written {
	struct pem_session *session;
	const struct pem_producer *producer;
};

static void count_written(void *arg, const char *stream, const struct pem_packet *packet,
			  size_t content)
{
	const struct written *w = arg;

	if (w->producer ? pem_producer__owns_stream(w->producer, stream) : stream[0] != 'u')
		count_events(w->session, packet, content);
}

/* Count anew what is written of a producer or of sources, into the wishes. */
static void count_stream(struct pem_session *s, const struct pem_producer *p)
{
	struct written written = {s, p};
	size_t i;

	for (i = 0; i < s->wish_count; i++)
		s->wishes[i].delivered = 0;
	pem_trace_writer__walk(s->log->writer, count_written, &written);
}

static void take_over_counts(struct pem_session *s, struct pem_producer *p)
{
	const struct pem_event_entry *entry;
	size_t i;

	count_stream(s, p);
	for (i = 0; i < s->wish_count; i++) {
		entry = pem_producer__event(p, s->wishes[i].event->id);
		if (entry)
			p->delivered[entry->slot] = s->wishes[i].delivered;
	}
}

/* A chunk begun before its stream's last record, or with it, was written already: the lane goes on behind it. */
static void skip_written(struct pem_session *s, struct pem_producer *p)
{
	const struct pem_packet *packet;
	uint32_t i, word, lane;
	uint64_t seq;

	for (i = 0; i < p->ring.chunk_count; i++) {
		word = __atomic_load_n(&p->ring.chunk_state[i], __ATOMIC_ACQUIRE);
		lane = PEM_CHUNK_LANE(word);
		if (PEM_CHUNK_STATE(word) == PEM_CHUNK_FREE || !lane || lane >= p->ring.lane_count)
			continue;
		packet = (const struct pem_packet *)(p->ring.chunks +
						     (uint64_t)i * p->ring.chunk_bytes);
		seq = __atomic_load_n(&packet->packet_seq_num, __ATOMIC_RELAXED);
		if (packet->timestamp_begin <= pem_session__stream_clock(s, p, lane) &&
		    seq >= p->next_seq[lane])
			p->next_seq[lane] = seq + 1;
	}
}

static void drain_producers(struct pem_session *s)
{
	const struct timespec pause = {0, 2000000};
	struct pem_producer *p;

	pem_session__scan_producers(s); /* and read their models */
	set_aside(s);
	for (p = s->producers; p; p = p->next) {
		if (p->member)
			pem_session__apply_to(s, p->member);
		take_over_counts(s, p);
	}
	nanosleep(&pause, NULL); /* events under way come to their end */
	for (p = s->producers; p; p = p->next) {
		p->recovering = true;
		skip_written(s, p);
		pem_session__drain_producer(s, p, true);
		pem_session__account(s, p);
	}
}

/* A process that ended before the recorder did, as its streams tell: its pool is gone, and its account with the recorder. */
struct gone {
	char prefix[48]; /* "u_<pid>_<k>_" */
	uint32_t pid;
	struct pem_balance_entry *entries; /* by wish, and one more */
	struct gone *next;
};

struct gone_search {
	struct pem_session *session;
	struct gone *found;
	char stream[64]; /* of the packet before */
	uint64_t discarded; /* as that packet has it */
};

static struct gone *find_gone(struct gone_search *search, const char *stream)
{
	const char *end = strrchr(stream, '_');
	struct gone *gone;
	size_t length;

	if (!end || stream[0] != 'u' ||
	    (length = (size_t)(end - stream) + 1) >= sizeof(gone->prefix))
		return NULL;
	for (gone = search->found; gone; gone = gone->next) {
		if (!strncmp(gone->prefix, stream, length) && !gone->prefix[length])
			return gone;
	}
	gone = calloc(1, sizeof(*gone));
	if (!gone)
		return NULL;
	gone->entries = calloc(search->session->wish_count + 1, sizeof(*gone->entries));
	memcpy(gone->prefix, stream, length);
	gone->pid = (uint32_t)strtoul(stream + 2, NULL, 10);
	gone->next = search->found;
	search->found = gone;
	return gone;
}

static void count_gone(void *arg, const char *stream, const struct pem_packet *packet,
		       size_t content)
{
	struct gone_search *search = arg;
	struct pem_session *s = search->session;
	const struct pem_producer *p;
	struct gone *gone;
	size_t i;

	for (p = s->producers; p; p = p->next) {
		if (pem_producer__owns_stream(p, stream))
			return;
	}
	gone = find_gone(search, stream);
	if (!gone || !gone->entries)
		return;
	for (i = 0; i < s->wish_count; i++)
		s->wishes[i].delivered = 0;
	count_events(s, packet, content);
	for (i = 0; i < s->wish_count; i++)
		gone->entries[i].balance.delivered += s->wishes[i].delivered;
	/* Which events were discarded is not known any more: they are counted under id 0, behind the others. */
	if (strcmp(search->stream, stream)) {
		pem_copy_text(search->stream, sizeof(search->stream), stream);
		search->discarded = 0;
	}
	gone->entries[s->wish_count].balance.discarded +=
		packet->events_discarded - search->discarded;
	search->discarded = packet->events_discarded;
}

static void account_gone(struct pem_session *s)
{
	struct gone_search search = {.session = s};
	struct pem_balance *b;
	struct gone *gone;
	size_t i;

	pem_trace_writer__walk(s->log->writer, count_gone, &search);
	while ((gone = search.found)) {
		for (i = 0; gone->entries && i <= s->wish_count; i++) {
			gone->entries[i].event_id = i < s->wish_count ? s->wishes[i].event->id : 0;
			b = &gone->entries[i].balance;
			b->produced = b->delivered + b->discarded;
		}
		if (gone->entries)
			pem_trace_writer__balance(s->log->writer, gone->pid, "", 0, gone->entries,
						  s->wish_count + 1);
		search.found = gone->next;
		free(gone->entries);
		free(gone);
	}
}

/* What sources wrote is all that is known of them. */
static void account_sources(struct pem_session *s)
{
	struct pem_balance_entry *entries = calloc(s->wish_count + 1, sizeof(*entries));
	size_t i;

	if (!entries)
		return;
	count_stream(s, NULL);
	for (i = 0; i < s->wish_count; i++) {
		entries[i].event_id = s->wishes[i].event->id;
		entries[i].balance.produced = entries[i].balance.delivered = s->wishes[i].delivered;
	}
	pem_trace_writer__balance(s->log->writer, 0, "sources", 0, entries, s->wish_count);
	free(entries);
}

static void finish_info(struct pem_session *s, struct pem_trace_info *info)
{
	uint64_t last = pem_trace_writer__last_clock(s->log->writer);
	struct pem_trace_gap *gap;

	if (last > info->start_clock && info->clock_hz)
		info->duration_ns = (uint64_t)((unsigned __int128)(last - info->start_clock) *
					       1000000000u / info->clock_hz);
	info->complete = 1;
	if (info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "recorder");
		pem_copy_text(gap->reason, sizeof(gap->reason),
			      "it was killed: what the kernel's rings held then is lost, "
			      "uncounted; events of programs "
			      "were recovered from shared memory");
	}
}

/* Give back what the session left in the runtime folder, once it is in the trace. */
static void remove_session(struct pem_session *s, int trace_fd)
{
	unlinkat(trace_fd, ".pem/session", 0);
	pem_session__close(s); /* removes the folder, and with it the pools */
}

/* A recorder that was just killed may still be on its way out. */
#define DYING_MS 500

static bool is_running(pid_t pid)
{
	struct pollfd pollfd = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool gone;

	if (pollfd.fd < 0)
		return errno != ESRCH;
	gone = poll(&pollfd, 1, DYING_MS) == 1;
	close(pollfd.fd);
	return !gone;
}

int pem_trace__recover(const char *directory, struct pem_error *error)
{
	struct pem_trace *trace = NULL;
	struct pem_session *s = NULL;
	pid_t recorder = 0;
	int fd, result;

	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return pem_error__set(error, -errno, "cannot open trace '%s': %s", directory,
				      strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		result = pem_error__set(error, -EBUSY,
					"trace '%s' is being recovered by another process",
					directory);
		goto out;
	}
	s = pem_session__new_empty();
	result = s ? read_session_file(fd, &recorder, s->directory, sizeof(s->directory)) : -ENOMEM;
	if (!result && is_running(recorder))
		result = -EBUSY;
	if (result) {
		pem_error__set(error, 0,
			       result == -EBUSY ? "trace '%s' is still being recorded by process %d"
						: "trace '%s' has nothing to recover (recorder %d)",
			       directory, (int)recorder);
		goto out;
	}
	trace = pem_trace__open(directory, error);
	result = trace ? open_session_directory(s, recorder) : -EINVAL;
	if (trace && result)
		pem_error__set(error, 0, "what trace '%s' left in shared memory is gone: %s",
			       directory, strerror(-result));
	if (!result)
		result = pem_session__load_trace_model(s, pem_trace__model(trace), error);
	if (!result)
		result = make_log(s, directory, pem_trace__info(trace), error);
	if (result)
		goto out;
	__atomic_store_n(&s->page->closed, 1, __ATOMIC_RELEASE);
	s->log->finished = true;
	drain_producers(s);
	account_gone(s);
	account_sources(s);
	finish_info(s, &s->log->info);
	result = pem_trace_writer__finish(s->log->writer, &s->log->info);
	if (result)
		pem_error__set(error, 0, "cannot finish trace '%s': %s", directory,
			       strerror(-result));
	else
		remove_session(s, fd);
	s = result ? s : NULL;
out:
	pem_trace__close(trace);
	if (s && s->directory_fd >= 0) {
		close(s->directory_fd); /* keep what was not recovered */
		s->directory_fd = -1;
	}
	pem_session__close(s);
	close(fd);
	return result;
}
