/* SPDX-License-Identifier: MIT */
/* queues.c - calls on pipes and FIFOs: which queues there are, and intervals of service */
#include "observe/observation.h"

#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- system calls --- */

static enum rate_call kind_of(const char *name)
{
	static const struct {
		enum rate_call kind;
		const char *name;
	} calls[] = {
		{RATE_CALL_READS, "read"},         {RATE_CALL_READS, "readv"},
		{RATE_CALL_READS, "pread64"},      {RATE_CALL_READS, "preadv"},
		{RATE_CALL_READS, "preadv2"},      {RATE_CALL_READS, "recvfrom"},
		{RATE_CALL_READS, "recvmsg"},      {RATE_CALL_READS, "recvmmsg"},
		{RATE_CALL_SPLICES, "splice"},     {RATE_CALL_READS, "copy_file_range"},
		{RATE_CALL_WRITES, "write"},       {RATE_CALL_WRITES, "writev"},
		{RATE_CALL_WRITES, "pwrite64"},    {RATE_CALL_WRITES, "pwritev"},
		{RATE_CALL_WRITES, "pwritev2"},    {RATE_CALL_WRITES, "sendto"},
		{RATE_CALL_WRITES, "sendmsg"},     {RATE_CALL_WRITES, "sendmmsg"},
		{RATE_CALL_WRITES, "vmsplice"},    {RATE_CALL_WRITES, "sendfile"},
		{RATE_CALL_POLLS, "poll"},         {RATE_CALL_POLLS, "ppoll"},
		{RATE_CALL_POLLS, "select"},       {RATE_CALL_POLLS, "pselect6"},
		{RATE_CALL_POLLS, "epoll_wait"},   {RATE_CALL_POLLS, "epoll_pwait"},
		{RATE_CALL_POLLS, "epoll_pwait2"},
	};
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!strcmp(name, calls[i].name))
			return calls[i].kind;
	return RATE_CALL_OTHER;
}

bool rate_call__is_needed(const char *name)
{
	return kind_of(name) != RATE_CALL_OTHER;
}

enum rate_call rate_call__of(struct rate_observation *o, const struct pem_interval *call)
{
	int field = pem_event__field_by_role(call->begin.event, PEM_ROLE_SYSTEM_CALL);
	int64_t number = field < 0 ? -1 : pem_record__i64(&call->begin, (unsigned)field);

	if (number < 0 || number >= RATE_CALLS_MAX)
		return RATE_CALL_OTHER;
	if (o->calls[number] == RATE_CALL_NEW)
		o->calls[number] = (uint8_t)kind_of(pem_interval__title(call));
	return (enum rate_call)o->calls[number];
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
	size_t count = file->number + 1ul;

	if (count > o->file_count) {
		if (pem_grow(&o->files, sizeof(*o->files), count, &o->file_capacity))
			return NULL;
		memset(o->files + o->file_count, 0, (count - o->file_count) * sizeof(*o->files));
		o->file_count = count;
	}
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
	free(queue->writers);
	free(queue->readers);
	free(queue->messages);
	free(queue);
}

static bool has(struct rate_process *const *stages, size_t count, const struct rate_process *stage)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (stages[i] == stage)
			return true;
	return false;
}

bool rate_pipe__is_read_by(const struct rate_pipe *queue, const struct rate_process *stage)
{
	return has(queue->readers, queue->reader_count, stage);
}

bool rate_pipe__is_written_by(const struct rate_pipe *queue, const struct rate_process *stage)
{
	return has(queue->writers, queue->writer_count, stage);
}

bool rate_pipe__is_stream(const struct rate_pipe *queue)
{
	size_t i;

	if (!queue->reader_count || !queue->writer_count)
		return false;
	for (i = 0; i < queue->writer_count; i++)
		if (has(queue->readers, queue->reader_count, queue->writers[i]))
			return false;
	return true;
}

/* Note that the stage uses an end of the queue. */
static int join(struct rate_observation *o, struct rate_pipe *queue, struct rate_process *stage,
		bool reads)
{
	struct rate_process ***stages = reads ? &queue->readers : &queue->writers;
	size_t *count = reads ? &queue->reader_count : &queue->writer_count;
	size_t *capacity = reads ? &queue->reader_capacity : &queue->writer_capacity;

	if (has(*stages, *count, stage) || *count >= RATE_ENDS_MAX)
		return 0;
	if (pem_grow(stages, sizeof(**stages), *count + 1, capacity))
		return -ENOMEM;
	(*stages)[(*count)++] = stage;
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

	if (stage->is_serving && (bytes || service_ns > stage->served_ns))
		rc = o->served(o->arg, stage, bytes, service_ns - stage->served_ns);
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

	return !queue->reader_count && field >= 0 &&
	       pem_record__i64(&call->begin, (unsigned)field) == STDERR_FILENO;
}

static int keep_message(struct rate_pipe *queue, struct rate_process *stage, uint64_t bytes)
{
	size_t i;

	for (i = 0; i < queue->message_count && queue->messages[i].stage != stage; i++)
		;
	if (i == RATE_ENDS_MAX)
		return 0;
	if (i == queue->message_count) {
		if (pem_grow(&queue->messages, sizeof(*queue->messages), i + 1,
			     &queue->message_capacity))
			return -ENOMEM;
		queue->messages[queue->message_count++] = (struct rate_messages){.stage = stage};
	}
	queue->messages[i].bytes += bytes;
	queue->messages[i].writes += bytes > 0;
	return 0;
}

/* The queue has a reader: messages were output. The service for them is not known. */
static int take_messages(struct rate_observation *o, struct rate_pipe *queue)
{
	size_t i;

	for (i = 0; i < queue->message_count; i++) {
		const struct rate_messages *m = &queue->messages[i];

		if (join(o, queue, m->stage, false))
			return -ENOMEM;
		queue->bytes_written += m->bytes;
		m->stage->bytes_out += m->bytes;
		m->stage->writes += m->writes;
	}
	queue->message_count = 0;
	return 0;
}

int rate_pipe__returned(struct rate_observation *o, struct rate_process *stage,
			const struct pem_interval *call, int64_t result)
{
	enum rate_call kind = rate_call__of(o, call);
	bool reads = kind == RATE_CALL_READS || kind == RATE_CALL_SPLICES;
	struct rate_pipe *queue;
	uint64_t bytes = result > 0 ? (uint64_t)result : 0;
	int rc = 0;

	if (!call->file || result < 0 || (!reads && kind != RATE_CALL_WRITES))
		return 0;
	queue = rate_pipe__of(o, call->file);
	if (!queue)
		return 0;
	if (!reads && is_message(queue, call))
		return keep_message(queue, stage, bytes);
	if (join(o, queue, stage, reads) || (reads && take_messages(o, queue)))
		return -ENOMEM;
	rate_process__turn(o, stage, o->now_ns);
	/* A splice may have waited for either end. */
	if (kind != RATE_CALL_SPLICES)
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
