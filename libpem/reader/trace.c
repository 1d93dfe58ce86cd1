/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace.c - opens a trace directory, merges its streams by time, hands out records with their
 * context
 *
 * Not here: packets (stream.c), context (context.c), names (told.c), losses (losses.c), run and
 * balance (about.c), merging in a thread of its own (ahead.c).
 *
 * Streams wait in a heap, ordered by the clocks of their heads. The stream that is being read is
 * not in the heap. It goes on being read while its head comes before the head of the heap's first
 * stream. This costs one comparison for each record.
 */
#include "model_internal.h"
#include "packed.h"
#include "reader.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* buffers of all streams together, if blocks can be so small */
#define BUFFERS_BYTES ((size_t)64 << 20)
/* Blocks of compressed streams that are kept for the next read, of all streams together. */
#define PACKED_BYTES ((size_t)256 << 20)
/* 256 MiB for the greatest number of streams */
#define BLOCK_BYTES_MIN ((size_t)PEM_RECORD_BYTES_MAX)
#define BLOCK_BYTES_MAX ((size_t)256 << 10)
#define NS_PER_S 1000000000u

/* --- opening --- */

static int open_model(struct pem_trace *trace, const char *directory, struct pem_error *error)
{
	char origin[160], *text;
	size_t bytes;
	int rc;

	snprintf(origin, sizeof(origin), "%.140s/.pem/model", directory);
	trace->model = pem_model__new();
	if (!trace->model)
		return -ENOMEM;
	text = pem_read_file(trace->about_fd, "model", PEM_ABOUT_BYTES_MAX, &bytes);
	if (!text)
		return pem_error__set(
			error, -EINVAL,
			"%s can't be read (%s): without it no record can be understood", origin,
			strerror(errno));
	rc = pem_model__add_text(trace->model, text, bytes, origin, error);
	free(text);
	return rc < 0 ? rc : 0;
}

/*
 * Find out whether a stream is compressed. A file that can't be opened or read is told as this
 * stream's damage: the others are read.
 */
static int open_packed(int directory_fd, struct pem_stream *s)
{
	int fd = openat(directory_fd, s->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return 0;
	rc = pem_packed__open(fd, s->file_bytes, &s->packed);
	close(fd);
	if (!rc && s->packed)
		s->file_bytes = pem_packed__raw_bytes(s->packed);
	if (rc == -ENOPKG || rc == -ENOMEM)
		return rc;
	s->open_error = rc;
	return 0;
}

static int add_stream(struct pem_trace *trace, const char *name, size_t *capacity)
{
	struct pem_stream *s, *larger;
	struct stat st;

	if (fstatat(trace->directory_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	if (trace->stream_count == PEM_STREAMS_MAX)
		return -EMFILE;
	if (trace->stream_count == *capacity) {
		*capacity = *capacity ? *capacity * 2 : 16;
		larger = realloc(trace->streams, *capacity * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		trace->streams = larger;
	}
	s = &trace->streams[trace->stream_count];
	memset(s, 0, sizeof(*s));
	s->file_bytes = (uint64_t)st.st_size;
	s->name = strdup(name);
	if (!s->name)
		return -ENOMEM;
	trace->stream_count++;
	return open_packed(trace->directory_fd, s);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct pem_stream *)a)->name, ((const struct pem_stream *)b)->name);
}

/* Find the stream files, and number them in the order of their names. */
static int open_streams(struct pem_trace *trace)
{
	DIR *dir = pem_list_folder(trace->directory_fd);
	size_t capacity = 0, block, i;
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir))) {
		if (pem_is_stream_name(entry->d_name))
			rc = add_stream(trace, entry->d_name, &capacity);
	}
	closedir(dir);
	if (rc)
		return rc;
	if (trace->stream_count)
		qsort(trace->streams, trace->stream_count, sizeof(*trace->streams), compare_names);
	block = trace->stream_count ? BUFFERS_BYTES / trace->stream_count : 0;
	block = block < BLOCK_BYTES_MIN ? BLOCK_BYTES_MIN : block;
	block = block > BLOCK_BYTES_MAX ? BLOCK_BYTES_MAX : block;
	trace->heap = calloc(trace->stream_count + 1, sizeof(struct pem_stream *));
	if (!trace->heap)
		return -ENOMEM;
	for (i = 0; i < trace->stream_count; i++) {
		trace->streams[i].number = (uint32_t)i;
		trace->streams[i].directory_fd = trace->directory_fd;
		trace->streams[i].block_bytes = block & ~(size_t)4095;
		trace->streams[i].events = &trace->events;
		trace->streams[i].uuid = trace->uuid;
		trace->streams[i].has_uuid = &trace->has_uuid;
		if (trace->streams[i].packed)
			pem_packed__keep(trace->streams[i].packed,
					 PACKED_BYTES / trace->stream_count);
	}
	return 0;
}

static int cannot_open(const char *directory, struct pem_error *error)
{
	return pem_error__set(error, errno == ENOTDIR ? -EINVAL : -errno,
			      "'%.200s' can't be opened as a trace: %s", directory,
			      strerror(errno));
}

int pem_trace__is_none(const char *directory, struct pem_error *error)
{
	return pem_error__set(error, -EINVAL,
			      "'%.200s' is no pem trace: a folder with 'metadata' and '.pem/run' "
			      "in it is (pem record -o makes one)",
			      directory);
}

static int open_directory(struct pem_trace *trace, int fd, const char *directory,
			  struct pem_error *error)
{
	trace->directory_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (trace->directory_fd < 0)
		return cannot_open(directory, error);
	/* A link could lead into another trace, in which a recovery and kept names are written. */
	trace->about_fd = openat(trace->directory_fd, ".pem",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (trace->about_fd < 0 && errno == EACCES)
		return pem_error__set(
			error, -EACCES,
			"'%.200s' is another user's trace: %s; ask for its .pem folder", directory,
			strerror(EACCES));
	if (trace->about_fd < 0 || faccessat(trace->about_fd, "run", F_OK, 0) ||
	    faccessat(trace->directory_fd, "metadata", F_OK, 0))
		return pem_trace__is_none(directory, error);
	return 0;
}

static int open_parts(struct pem_trace *trace, int fd, const char *directory,
		      struct pem_error *error)
{
	int rc = open_directory(trace, fd, directory, error);

	if (!rc)
		rc = pem_about__read_run(trace->about_fd, &trace->info, error);
	if (!rc)
		rc = open_model(trace, directory, error);
	if (!rc)
		rc = pem_about__read_balance(trace->about_fd, trace->model, &trace->balances,
					     error);
	if (!rc)
		rc = pem_about__read_names(trace->about_fd, &trace->names, error);
	if (rc)
		return rc;
	trace->info.complete = trace->info.complete && trace->balances.complete;
	trace->ns_per_tick = NS_PER_S / trace->info.clock_hz;
	trace->ns_fraction =
		(uint64_t)(((unsigned __int128)(NS_PER_S % trace->info.clock_hz) << 64) /
			   trace->info.clock_hz) +
		1;
	trace->told.context = pem_context_table__new();
	trace->images = pem_told__sort_images(&trace->balances);
	if (!trace->told.context || !trace->images ||
	    pem_event_table__build(&trace->events, trace->model))
		return -ENOMEM;
	rc = open_streams(trace);
	if (rc == -ENOPKG)
		pem_error__set(
			error, rc,
			"'%.200s' is compressed, and libzstd.so.1 is missing; install package "
			"libzstd1",
			directory);
	else if (rc && rc != -ENOMEM)
		pem_error__set(error, rc, "the streams of '%.200s' can't be found: %s", directory,
			       strerror(-rc));
	return rc ? rc : pem_trace__rewind(trace);
}

struct pem_trace *pem_trace__open_folder(int directory_fd, const char *directory,
					 struct pem_error *error)
{
	struct pem_trace *trace = calloc(1, sizeof(*trace));
	int rc = -ENOMEM;

	if (trace) {
		trace->directory_fd = trace->about_fd = -1;
		rc = open_parts(trace, directory_fd, directory, error);
	}
	if (!rc)
		return trace;
	if (rc == -ENOMEM)
		pem_error__set(error, rc, "no memory to open '%.200s'", directory);
	pem_trace__close(trace);
	errno = -rc;
	return NULL;
}

struct pem_trace *pem_trace__open(const char *directory, struct pem_error *error)
{
	struct pem_trace *trace;
	int fd;

	if (!directory || !*directory) {
		errno = -pem_error__lacks(error, "directory of a trace");
		return NULL;
	}
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		errno = -cannot_open(directory, error);
		return NULL;
	}
	trace = pem_trace__open_folder(fd, directory, error);
	close(fd); /* errno stays: close() succeeds */
	return trace;
}

void pem_trace__close(struct pem_trace *trace)
{
	size_t i;

	if (!trace)
		return;
	pem_ahead__free(trace->ahead);
	for (i = 0; i < trace->stream_count; i++) {
		pem_stream__release(&trace->streams[i]);
		pem_packed__free(trace->streams[i].packed);
		free(trace->streams[i].name);
	}
	free(trace->streams);
	free(trace->heap);
	pem_losses__free(&trace->losses);
	free(trace->images);
	pem_context_table__free(trace->told.context);
	pem_event_table__free(&trace->events);
	pem_balances__free(&trace->balances);
	free(trace->names.names);
	pem_model__free(trace->model);
	if (trace->about_fd >= 0)
		close(trace->about_fd);
	if (trace->directory_fd >= 0)
		close(trace->directory_fd);
	free(trace);
}

/* --- order --- */

static inline bool before(const struct pem_stream *a, const struct pem_stream *b)
{
	return a->clock < b->clock || (a->clock == b->clock && a->number < b->number);
}

static void sift_down(struct pem_trace *trace, size_t i)
{
	struct pem_stream **heap = trace->heap, *s = heap[i];
	size_t child;

	while ((child = 2 * i + 1) < trace->heap_count) {
		if (child + 1 < trace->heap_count && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], s))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = s;
}

/* Take the first stream off the heap; NULL: the heap is empty. */
static struct pem_stream *pop(struct pem_trace *trace)
{
	struct pem_stream *first;

	if (!trace->heap_count)
		return NULL;
	first = trace->heap[0];
	trace->heap[0] = trace->heap[--trace->heap_count];
	if (trace->heap_count)
		sift_down(trace, 0);
	return first;
}

/* Load every stream's head and order them. */
static void start(struct pem_trace *trace)
{
	struct pem_stream *s;
	size_t i;

	for (i = 0; i < trace->stream_count; i++) {
		s = &trace->streams[i];
		pem_losses__advance(&trace->losses, s);
		if (s->head != PEM_HEAD_END)
			trace->heap[trace->heap_count++] = s;
	}
	for (i = trace->heap_count / 2; i-- > 0;)
		sift_down(trace, i);
	trace->current = pop(trace);
	trace->started = true;
}

/* Move the current stream on, and make the stream with the earliest head the current one. */
static inline void step(struct pem_trace *trace)
{
	struct pem_stream *s = trace->current;

	pem_losses__advance(&trace->losses, s);
	if (PEM_UNLIKELY(s->head == PEM_HEAD_END)) {
		trace->current = pop(trace);
	} else if (trace->heap_count && before(trace->heap[0], s)) {
		trace->current = trace->heap[0];
		trace->heap[0] = s;
		sift_down(trace, 0);
	}
}

/*
 * Return the nanoseconds since the start, rounded down; 0 before the start. The result is exact.
 * Within a second there are fewer ticks than the clock's rate. The error of the rounded-up fraction
 * is below ticks / 2^64, so it is less than 1 / rate.
 */
static inline uint64_t time_ns(struct pem_trace *trace, uint64_t clock)
{
	uint64_t ticks = clock - trace->second_clock, hz = trace->info.clock_hz;

	if (PEM_UNLIKELY(ticks >= hz)) {
		if (clock < trace->info.start_clock)
			return 0;
		ticks = clock - trace->info.start_clock;
		trace->second_clock = clock - ticks % hz;
		trace->second_ns = ticks / hz * NS_PER_S;
		ticks %= hz;
	}
	if (PEM_UNLIKELY(hz >> 32))
		return trace->second_ns + (uint64_t)((unsigned __int128)ticks * NS_PER_S / hz);
	return trace->second_ns + ticks * trace->ns_per_tick +
	       (uint64_t)(((unsigned __int128)ticks * trace->ns_fraction) >> 64);
}

static inline int merge(struct pem_trace *trace, struct pem_record *record, struct pem_error *error)
{
	struct pem_stream *s;

	if (PEM_LIKELY(trace->current != NULL))
		step(trace);
	else if (!trace->started)
		start(trace);
	s = trace->current;
	if (PEM_UNLIKELY(!s))
		return 0;
	if (PEM_UNLIKELY(s->head == PEM_HEAD_DAMAGE)) {
		if (error)
			*error = s->damage;
		return -EINVAL;
	}
	if (PEM_UNLIKELY(s->clock >= trace->told.next_image_clock) &&
	    pem_told__images(&trace->told, trace, s->clock))
		return pem_error__set(error, -ENOMEM, "no memory to follow processes");
	if (PEM_UNLIKELY(trace->losses.failed))
		return pem_error__set(error, -ENOMEM, "no memory to keep where records were lost");
	record->clock = s->clock;
	record->time_ns = time_ns(trace, s->clock);
	record->event = s->info->event;
	record->data = s->record;
	record->bytes = s->record_bytes;
	record->cpu = s->cpu;
	record->stream = s->number;
	record->source = s->source;
	record->pid = s->pid;
	record->tid = s->tid;
	if (s->source == PEM_PACKET_KERNEL) {
		if (PEM_UNLIKELY(s->starts_loss))
			pem_context_table__lose(trace->told.context, s->cpu);
		pem_context_table__get(trace->told.context, s->cpu, &record->pid, &record->tid);
	}
	if (s->info->sets_context &&
	    PEM_UNLIKELY(pem_context_table__learn(trace->told.context, s->info, record)))
		return pem_error__set(error, -ENOMEM, "no memory to follow processes");
	/* Callers see one kernel source, whatever source delivered the record. */
	if (s->source == PEM_PACKET_KERNEL_THREAD)
		record->source = PEM_PACKET_KERNEL;
	return 1;
}

int pem_trace__merge(struct pem_trace *trace, struct pem_record *record, struct pem_error *error)
{
	return merge(trace, record, error);
}

int pem_trace__next(struct pem_trace *trace, struct pem_record *record, struct pem_error *error)
{
	if (PEM_UNLIKELY(!trace || !record || record->size != sizeof(*record)))
		return pem_trace__next_resized(trace, record, error);
	if (trace->ahead)
		return pem_ahead__next(trace->ahead, record, error);
	return merge(trace, record, error);
}

int pem_trace__rewind(struct pem_trace *trace)
{
	size_t i;
	int rc;

	if (!trace)
		return -EINVAL;
	rc = trace->ahead ? pem_ahead__rewind(trace->ahead) : 0;
	for (i = 0; i < trace->stream_count; i++)
		pem_stream__rewind(&trace->streams[i]);
	trace->current = NULL;
	trace->heap_count = 0;
	trace->started = false;
	pem_losses__reset(&trace->losses);
	trace->second_clock = trace->info.start_clock;
	trace->second_ns = 0;
	return rc ? rc : pem_told__begin(&trace->told, trace);
}

static const struct pem_losses *losses_of(const struct pem_trace *trace)
{
	return trace->ahead ? pem_ahead__losses(trace->ahead) : &trace->losses;
}

size_t pem_trace__losses(const struct pem_trace *trace, const struct pem_loss **losses)
{
	const struct pem_losses *known = losses_of(trace);

	if (losses)
		*losses = known->windows;
	return known->count;
}

const size_t *pem_trace__known_losses(struct pem_trace *trace)
{
	trace->is_followed = true;
	return &losses_of(trace)->count;
}

const struct pem_event_table *pem_trace__events(const struct pem_trace *trace)
{
	return &trace->events;
}

size_t pem_trace__event_entry(const struct pem_trace *trace)
{
	if (trace->ahead)
		return pem_ahead__event_entry(trace->ahead);
	return (size_t)(trace->current->info - trace->events.entries);
}

size_t pem_trace__stream_count(const struct pem_trace *trace)
{
	return trace->stream_count;
}

const struct pem_model *pem_trace__model(const struct pem_trace *trace)
{
	return trace ? trace->model : NULL;
}

const struct pem_trace_info *pem_trace__info(const struct pem_trace *trace)
{
	return trace ? &trace->info : NULL;
}

uint64_t pem_trace__count_torn(const struct pem_trace *trace)
{
	uint64_t torn = 0;
	size_t i;

	for (i = 0; i < trace->stream_count; i++)
		torn += trace->streams[i].torn;
	return torn;
}

uint64_t pem_trace__torn_packets(const struct pem_trace *trace)
{
	if (!trace)
		return 0;
	return trace->ahead ? pem_ahead__torn(trace->ahead) : pem_trace__count_torn(trace);
}

static const struct pem_context_table *names_of(const struct pem_trace *trace)
{
	return trace->ahead ? pem_ahead__told(trace->ahead)->context : trace->told.context;
}

const char *pem_trace__process_name(const struct pem_trace *trace, uint32_t pid)
{
	return trace ? pem_context_table__name(names_of(trace), pid) : "";
}

const char *pem_trace__thread_name(const struct pem_trace *trace, uint32_t tid)
{
	return trace ? pem_context_table__thread_name(names_of(trace), tid) : "";
}

size_t pem_trace__producer_count(const struct pem_trace *trace)
{
	return trace ? trace->balances.producer_count : 0;
}

const struct pem_trace_producer *pem_trace__producer(const struct pem_trace *trace, size_t i)
{
	return i < pem_trace__producer_count(trace) ? &trace->balances.producers[i] : NULL;
}

struct pem_balance pem_trace__event_balance(const struct pem_trace *trace,
					    const struct pem_event *event)
{
	struct pem_balance zero = {0};
	ssize_t i = trace && event ? pem_model__index(trace->model, event->id) : -1;

	return i >= 0 && trace->balances.events ? trace->balances.events[i] : zero;
}

struct pem_balance pem_trace__total_balance(const struct pem_trace *trace)
{
	return trace ? trace->balances.total : (struct pem_balance){0};
}
