/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * snapshot.c - write out what a flight recorder holds now, and record on
 *
 * The recorder's own memory is written as it is (flight.c). Pools of processes that live are
 * copied. The copies are drained and accounted for like pools at their end. Meanwhile the log's
 * writer is the snapshot's writer.
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/limits.h"
#include "flight/flight.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DRAIN_TRIES 50 /* of 1 ms, until records that are counted are committed, too */

/* Drain the sources until all that they had counted is read. */
static void drain_counted(struct pem_session *s, const struct pem_balance *counted)
{
	const struct timespec pause = {0, 1000000};
	const struct pem_demand *demand, *of_log;
	unsigned tries;
	size_t i;

	for (tries = 0; tries < DRAIN_TRIES; tries++) {
		pem_session__drain_sources(s, false);
		for (i = 0; i < s->demand_count; i++) {
			demand = &s->demands[i];
			of_log = pem_demand__of_log(&s->demands[i]);
			if (of_log &&
			    counted[i].produced > counted[i].discarded + demand->delivered +
							  demand->lost + demand->overwritten +
							  of_log->callback_only)
				break;
		}
		if (i == s->demand_count)
			return;
		nanosleep(&pause, NULL);
	}
}

static int write_pools(struct pem_session *s)
{
	struct pem_producer *p, *copy;

	pem_session__begin_end(s);
	for (p = s->processes->producers; p; p = p->next) {
		copy = pem_producer__copy(p);
		if (!copy)
			return -ENOMEM;
		copy->unread = !pem_session__drain_producer(s, copy, true);
		pem_session__account(s, copy);
		pem_producer__free(copy);
	}
	return 0;
}

/* Write everything into the log's writer, which is the snapshot's now. */
static int write_all(struct pem_session *s, struct pem_trace_info *info,
		     const struct pem_balance *counted)
{
	struct pem_trace_writer *writer = s->log->writer;
	int result;

	pem_flight__write(s->flight->store, writer);
	pem_session__account_sources(s, counted);
	result = write_pools(s);
	pem_log__close_account(s, info);
	if (!pem_trace_writer__failed(writer))
		pem_trace_writer__set_info(writer, info);
	if (!result)
		result = pem_trace_writer__finish(writer, info);
	return result ? result : pem_trace_writer__failed(writer);
}

static int write_snapshot(struct pem_session *s, const char *directory, const char *cause,
			  struct pem_balance *counted, struct pem_error *error)
{
	struct pem_log *log = s->log;
	struct pem_trace_writer *recording = log->writer;
	struct pem_trace_info *info = malloc(sizeof(*info)); /* too large for a small stack */
	uint64_t delivered, produced, overwritten, readings, of_libc;
	int result;

	if (!info)
		return pem_error__set(error, -ENOMEM, "out of memory");
	*info = log->info;
	pem_session__scan_producers(s);
	pem_session__release_gone(s);
	pem_session__count_sources(s, counted);
	drain_counted(s, counted);
	delivered = log->delivered;
	produced = log->produced;
	overwritten = log->overwritten;
	readings = log->readings;
	of_libc = log->of_libc;
	pem_copy_text(info->snapshot, sizeof(info->snapshot), cause ? cause : "asked for");
	log->writer = pem_trace_writer__new(directory, log->model, info, error);
	if (!log->writer) {
		result = -errno;
		log->writer = recording;
		free(info);
		return result;
	}
	pem_trace_writer__compress(log->writer, s->packer);
	pem_trace_writer__copy_names(log->writer, recording);
	result = write_all(s, info, counted);
	if (result)
		pem_error__set(error, result, "the snapshot '%s' is not whole: %s", directory,
			       strerror(-result));
	pem_trace_writer__free(log->writer);
	log->writer = recording;
	log->delivered = delivered;
	log->produced = produced;
	log->overwritten = overwritten;
	log->readings = readings;
	log->of_libc = of_libc;
	free(info);
	/* Draining the copies may have described new events to the snapshot only. */
	pem_trace_writer__model_changed(recording);
	return result;
}

int pem_session__snapshot(struct pem_session *session, const char *directory, const char *cause,
			  struct pem_error *error)
{
	struct pem_balance *counted;
	int result;

	if (!session || !directory || !*directory)
		return pem_error__lacks(error, session ? "directory for the snapshot" : "session");
	pem_session__lock(session);
	/* There is room for every demand, because draining may add demands. */
	counted = calloc(PEM_DEMANDS_MAX, sizeof(*counted));
	if (!session->flight->store || !session->log || session->log->finished)
		result = pem_error__set(
			error, -EINVAL,
			session->options.overwrite
				? "this flight recorder has no log, or it is finished"
				: "this session is no flight recorder: open it with "
				  "the option overwrite");
	else if (!counted)
		result = pem_error__set(error, -ENOMEM, "out of memory");
	else
		result = write_snapshot(session, directory, cause, counted, error);
	free(counted);
	pem_session__unlock(session);
	return result;
}
