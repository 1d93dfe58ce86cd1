/* SPDX-License-Identifier: MIT */
/* queues.c - calls on pipes and FIFOs: which queues there are, and intervals of service */
#include "observe/observation.h"

#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum pem_call_kind rate_call__of(struct rate_observation *o, const struct pem_interval *call)
{
	int field = pem_event__field_by_role(call->begin.event, PEM_ROLE_SYSTEM_CALL);
	int64_t number = field < 0 ? -1 : pem_record__i64(&call->begin, (unsigned)field);

	if (number < 0 || number >= RATE_CALLS_MAX)
		return PEM_CALL_OTHER;
	if (!o->calls[number])
		o->calls[number] = (uint8_t)(1 + pem_call__kind(pem_interval__title(call)));
	return (enum pem_call_kind)(o->calls[number] - 1);
}

/* --- queues --- */

static struct rate_pipe no_queue; /* marks files that are none */

/* A pipe or a FIFO, or a pair of sockets. */
static bool is_queue(const struct pem_pass_file *file)
{
	return file->kind == S_IFIFO >> 12 || !strncmp(file->path, "pipe:[", 6) ||
	       !strncmp(file->path, "socketpair:[", 12);
}

struct rate_pipe *rate_pipe__of(struct rate_observation *o, const struct pem_pass_file *file)
{
	struct rate_pipe *queue;

	if (pem_grow_zeros(&o->files, sizeof(*o->files), file->number + 1ul, &o->file_count,
			   &o->file_capacity))
		return NULL;
	queue = o->files[file->number];
	if (!queue && !is_queue(file) && file->kind)
		queue = &no_queue;
	if (!queue && !is_queue(file))
		return NULL; /* its kind may be told later */
	if (!queue)
		queue = calloc(1, sizeof(*queue));
	o->files[file->number] = queue;
	if (!queue || queue == &no_queue)
		return NULL;
	queue->file = file;
	return queue;
}

uint64_t rate_pipe__inode(const struct rate_pipe *pipe)
{
	return strncmp(pipe->file->path, "pipe:[", 6) ? 0
						      : strtoull(pipe->file->path + 6, NULL, 10);
}

void rate_pipe__free(struct rate_pipe *queue)
{
	if (!queue || queue == &no_queue)
		return;
	free(queue->writers.list);
	free(queue->readers.list);
	free(queue);
}

struct rate_end *rate_ends__find(const struct rate_ends *ends, const struct rate_process *stage)
{
	size_t i;

	for (i = 0; i < ends->count; i++)
		if (ends->list[i].stage == stage)
			return &ends->list[i];
	return NULL;
}

bool rate_pipe__is_stream(const struct rate_pipe *queue)
{
	size_t i;

	if (!queue->readers.count || !queue->writers.count)
		return false;
	for (i = 0; i < queue->writers.count; i++)
		if (rate_ends__find(&queue->readers, queue->writers.list[i].stage))
			return false;
	return true;
}

/* Note that the stage uses an end of the queue. */
static int join(struct rate_observation *o, struct rate_pipe *queue, struct rate_process *stage,
		bool reads)
{
	struct rate_ends *ends = reads ? &queue->readers : &queue->writers;

	if (rate_ends__find(ends, stage) || ends->count >= RATE_ENDS_MAX)
		return 0;
	if (pem_grow(&ends->list, sizeof(*ends->list), ends->count + 1, &ends->capacity))
		return -ENOMEM;
	ends->list[ends->count++] = (struct rate_end){.stage = stage};
	stage->inputs += reads;
	o->is_changed = true;
	return 0;
}

/* --- intervals of service --- */

/* The service since the last operation was for so many bytes. */
static int serve(struct rate_observation *o, struct rate_process *stage, uint64_t bytes)
{
	uint64_t service_ns = rate_process__service_ns(stage);
	int rc = 0;

	if (stage->is_serving && (bytes || service_ns > stage->served_ns)) {
		rc = o->served(o->arg, stage, bytes, service_ns - stage->served_ns,
			       stage->has_lost);
		stage->has_lost = false;
	}
	stage->served_ns = service_ns;
	stage->is_serving = true;
	return rc;
}

/* A read or write shows what the stage polled for before it. */
static void settle_polls(struct rate_process *stage, bool reads)
{
	uint64_t ns = stage->ns[RATE_POLLS] - stage->polled_seen_ns;

	if (reads)
		stage->polled_in_ns += ns;
	else
		stage->polled_out_ns += ns;
	stage->polled_seen_ns = stage->ns[RATE_POLLS];
}

/* Messages on standard error are not output, until a stage reads them. */
static bool is_message(const struct rate_pipe *queue, const struct pem_interval *call)
{
	int field = pem_event__field_by_role(call->begin.event, PEM_ROLE_DESCRIPTOR);

	return !queue->readers.count && field >= 0 &&
	       pem_record__i64(&call->begin, (unsigned)field) == STDERR_FILENO;
}

static void keep_message(struct rate_end *end, uint64_t bytes)
{
	if (!end)
		return;
	end->message_bytes += bytes;
	end->messages += bytes > 0;
}

/* The queue has a reader: messages were output. The service for them is not known. */
static void take_messages(struct rate_pipe *queue)
{
	size_t i;

	for (i = 0; i < queue->writers.count; i++) {
		struct rate_end *end = &queue->writers.list[i];

		queue->bytes_written += end->message_bytes;
		end->stage->bytes_out += end->message_bytes;
		end->stage->writes += end->messages;
		end->message_bytes = end->messages = 0;
	}
}

int rate_pipe__returned(struct rate_observation *o, struct rate_process *stage,
			const struct pem_interval *call, int64_t result)
{
	enum pem_call_kind kind = rate_call__of(o, call);
	bool reads = kind == PEM_CALL_READS || kind == PEM_CALL_SPLICES;
	struct rate_pipe *queue;
	bool is_first_reader;
	uint64_t bytes = result > 0 ? (uint64_t)result : 0;
	int rc = 0;

	if (!call->file || result < 0 || (!reads && kind != PEM_CALL_WRITES))
		return 0;
	queue = rate_pipe__of(o, call->file);
	if (!queue)
		return 0;
	is_first_reader = reads && !queue->readers.count;
	if (join(o, queue, stage, reads))
		return -ENOMEM;
	if (!reads && is_message(queue, call)) {
		keep_message(rate_ends__find(&queue->writers, stage), bytes);
		return 0;
	}
	if (is_first_reader)
		take_messages(queue);
	rate_process__turn(o, stage, o->now_ns);
	/* A splice may have waited for either end. */
	if (kind != PEM_CALL_SPLICES)
		settle_polls(stage, reads);
	else
		stage->polled_seen_ns = stage->ns[RATE_POLLS];
	if (reads) {
		queue->bytes_read += bytes;
		stage->bytes_in += bytes;
		stage->reads += bytes > 0;
		rc = serve(o, stage, stage->last_items);
		stage->last_items = bytes;
	} else {
		queue->bytes_written += bytes;
		stage->bytes_out += bytes;
		stage->writes += bytes > 0;
		/* A stage that takes from no queue makes what it gives. */
		if (!stage->inputs)
			rc = serve(o, stage, bytes);
	}
	return rc;
}

int rate_process__finish(struct rate_observation *o, struct rate_process *stage)
{
	uint64_t bytes = stage->last_items;

	stage->last_items = 0;
	return stage->is_serving ? serve(o, stage, bytes) : 0;
}
