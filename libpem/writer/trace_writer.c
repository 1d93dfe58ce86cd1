/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_writer.c - stream files and the closing files of a trace
 *
 * Not here: the text of metadata (metadata.c) and of .pem/run (run.c), the sources of packets
 * (drain.c, sources).
 */
#include "core/core.h"
#include "writer/metadata.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define STREAMS_OPEN_MAX 128
#define RESERVE_BYTES (256u << 10)

/* --- beginning --- */

bool pem_folder_is_empty(int fd)
{
	DIR *directory = pem_list_folder(fd);
	struct dirent *entry;
	bool empty = true;

	if (!directory)
		return false;
	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			empty = false;
	}
	closedir(directory);
	return empty;
}

static int open_directories(struct pem_trace_writer *w, const char *directory,
			    struct pem_error *error)
{
	if (mkdir(directory, 0700) && errno != EEXIST)
		return pem_error__set(
			error, -errno,
			"cannot make trace directory '%s': %s; choose another with -o", directory,
			strerror(errno));
	w->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->directory_fd < 0)
		return pem_error__set(error, -errno, "cannot open trace directory '%s': %s",
				      directory, strerror(errno));
	if (!pem_folder_is_empty(w->directory_fd))
		return pem_error__set(
			error, -EEXIST,
			"trace directory '%s' is not empty; choose another or remove what is in it",
			directory);
	if (mkdirat(w->directory_fd, ".pem", 0700))
		return pem_error__set(error, -errno, "cannot write in trace directory '%s': %s",
				      directory, strerror(errno));
	w->private_fd =
		openat(w->directory_fd, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (w->private_fd < 0)
		return pem_error__set(error, -errno, "cannot open '%s/.pem': %s", directory,
				      strerror(errno));
	return 0;
}

/* Reserve blocks for the closing files. They are given back just before those files are written. */
static int reserve_space(struct pem_trace_writer *w)
{
	int fd = openat(w->private_fd, "reserve", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
	    result;

	if (fd < 0)
		return -errno;
	result = -posix_fallocate(fd, 0, RESERVE_BYTES);
	close(fd);
	return result;
}

int pem_trace_writer__model_changed(struct pem_trace_writer *w)
{
	char *text = pem_model__to_text(w->model);
	int result;

	if (!text)
		return -errno;
	result = pem_replace_file(w->private_fd, "model", text, strlen(text));
	free(text);
	if (result)
		return result;
	text = pem_metadata__text(w->model, &w->info, w->uuid);
	if (!text)
		return -errno;
	result = pem_replace_file(w->directory_fd, "metadata", text, strlen(text));
	free(text);
	return result;
}

int pem_trace_writer__set_info(struct pem_trace_writer *w, const struct pem_trace_info *info)
{
	int result;

	w->info = *info;
	result = pem_trace_writer__write_run(w, info);
	return result ? result : pem_trace_writer__model_changed(w);
}

struct pem_trace_writer *pem_trace_writer__new(const char *directory, const struct pem_model *model,
					       const struct pem_trace_info *info,
					       struct pem_error *error)
{
	struct pem_trace_writer *w = calloc(1, sizeof(*w));
	int result = -ENOMEM;

	if (!w) {
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	w->directory_fd = w->private_fd = w->earlier_fd = -1;
	w->model = model;
	w->info = *info;
	if (getrandom(w->uuid, sizeof(w->uuid), 0) != sizeof(w->uuid)) {
		result =
			pem_error__set(error, -EIO, "cannot get random bytes for the trace's UUID");
		goto fail;
	}
	w->uuid[6] = (w->uuid[6] & 0x0f) | 0x40; /* RFC 4122, version 4 */
	w->uuid[8] = (w->uuid[8] & 0x3f) | 0x80;
	w->balance = open_memstream(&w->balance_text, &w->balance_bytes);
	if (!w->balance) {
		pem_error__set(error, 0, "out of memory");
		goto fail;
	}
	result = open_directories(w, directory, error);
	if (result)
		goto fail;
	result = reserve_space(w);
	if (!result)
		result = pem_trace_writer__model_changed(w);
	if (!result)
		result = pem_trace_writer__write_run(w, info);
	if (!result)
		return w;
	pem_error__set(error, 0, "cannot write in trace directory '%s': %s%s", directory,
		       strerror(-result),
		       result == -ENOSPC ? "; free some space or choose another with -o" : "");
fail:
	pem_trace_writer__free(w);
	errno = -result;
	return NULL;
}

/* --- packets --- */

struct pem_stream *pem_trace_writer__stream(struct pem_trace_writer *w, const char *name)
{
	const struct pem_earlier_stream *earlier;
	struct pem_stream *grown, *s;
	size_t i;

	if (w->last_stream < w->stream_count && !strcmp(w->streams[w->last_stream].name, name))
		return &w->streams[w->last_stream];
	for (i = w->stream_count; i-- > 0;) {
		if (!strcmp(w->streams[i].name, name)) {
			w->last_stream = i;
			return &w->streams[i];
		}
	}
	if (!pem_is_stream_name(name))
		return NULL;
	if (w->stream_count == w->stream_capacity) {
		grown = realloc(w->streams, (w->stream_capacity * 2 + 16) * sizeof(*grown));
		if (!grown)
			return NULL;
		w->streams = grown;
		w->stream_capacity = w->stream_capacity * 2 + 16;
	}
	s = &w->streams[w->stream_count];
	memset(s, 0, sizeof(*s));
	strcpy(s->name, name);
	s->fd = -1;
	earlier = pem_trace_writer__earlier(w, name);
	if (earlier) {
		s->last_clock = earlier->last_clock;
		s->discarded_before = earlier->discarded;
		s->overwritten_before = earlier->overwritten;
	}
	s->instance = w->next_instance++;
	w->last_stream = w->stream_count++;
	return s;
}

static int open_stream(struct pem_trace_writer *w, struct pem_stream *s)
{
	struct pem_stream *oldest = NULL;
	size_t i;

	s->used = ++w->ticks;
	if (s->fd >= 0)
		return 0;
	if (w->open_count >= STREAMS_OPEN_MAX) {
		for (i = 0; i < w->stream_count; i++) {
			if (w->streams[i].fd >= 0 && (!oldest || w->streams[i].used < oldest->used))
				oldest = &w->streams[i];
		}
		close(oldest->fd);
		oldest->fd = -1;
		w->open_count--;
	}
	s->fd = openat(w->directory_fd, s->name,
		       O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
			       (s->packets ? 0 : O_CREAT | O_EXCL),
		       0600);
	if (s->fd < 0)
		return -errno;
	w->open_count++;
	return 0;
}

/* Write content bytes of a packet and zeros up to size. There are at most 7 zeros. */
static int write_packet(int fd, const struct pem_packet *packet, size_t content, size_t size)
{
	static const uint8_t zeros[8];
	struct iovec parts[] = {{(void *)(uintptr_t)packet, content},
				{(void *)(uintptr_t)zeros, size - content}};
	ssize_t done = writev(fd, parts, 2);

	if (done == (ssize_t)size)
		return 0;
	if (done < 0)
		done = errno == EINTR ? 0 : -errno;
	if (done < 0)
		return (int)done;
	if ((size_t)done < content) {
		int result =
			pem_write_all(fd, (const uint8_t *)packet + done, content - (size_t)done);

		if (result)
			return result;
		done = (ssize_t)content;
	}
	return pem_write_all(fd, zeros, size - (size_t)done);
}

/*
 * Write an empty packet that states no losses before a first packet that states some: readers learn
 * the loss from the difference. If this write fails, the next one fails, too, and its records count
 * as lost.
 */
static void begin_with_none_lost(struct pem_trace_writer *w, const char *name,
				 const struct pem_packet *packet)
{
	struct pem_packet empty = *packet;

	empty.timestamp_end = empty.timestamp_begin;
	empty.content_size = PEM_PACKET_HEADER_BYTES * 8;
	empty.events_discarded = empty.events_overwritten = empty.record_count = 0;
	pem_trace_writer__packet(w, name, &empty, sizeof(empty));
}

/* A count without what an earlier stream of the lane states: a stream's counts begin at 0. */
static uint64_t since(uint64_t count, uint64_t before)
{
	return count > before ? count - before : 0;
}

/*
 * Fill in a packet's header as its stream has it. next is the stream as it will be behind the
 * packet.
 */
static void finish_header(struct pem_trace_writer *w, struct pem_stream *next,
			  struct pem_packet *packet, size_t size)
{
	packet->magic = PEM_CTF_MAGIC;
	memcpy(packet->uuid, w->uuid, sizeof(packet->uuid));
	packet->stream_id = 0;
	packet->stream_instance_id = next->instance;
	packet->packet_size = (uint64_t)size * 8;
	packet->packet_seq_num = next->packets++;
	packet->events_discarded =
		since(packet->events_discarded + next->lost, next->discarded_before);
	packet->events_overwritten = since(packet->events_overwritten, next->overwritten_before);
	/* Counts only grow and time only passes, whatever shared memory says. */
	if (packet->events_discarded < next->stated)
		packet->events_discarded = next->stated;
	if (packet->events_overwritten < next->overwritten)
		packet->events_overwritten = next->overwritten;
	if (packet->timestamp_begin < next->last_clock)
		packet->timestamp_begin = next->last_clock;
	if (packet->record_count && (!w->span_clock || packet->timestamp_begin < w->span_clock))
		w->span_clock = packet->timestamp_begin;
	next->bytes += size;
	next->last_clock = packet->timestamp_end;
	next->stated = packet->events_discarded;
	next->overwritten = packet->events_overwritten;
}

/* End a write. If it failed, cut the file to its former end, and count the records as lost. */
static int finish_write(struct pem_trace_writer *w, struct pem_stream *s,
			const struct pem_stream *next, uint64_t records, int result)
{
	int cut;

	if (result) {
		/* If the file can't be cut either, the write's failure stays the one to tell. */
		cut = s->fd >= 0 && !w->failed ? ftruncate(s->fd, (off_t)s->bytes) : 0;
		(void)cut;
		w->failed = result;
		s->lost += records;
		return result;
	}
	s->bytes = next->bytes;
	s->packets = next->packets;
	s->last_clock = next->last_clock;
	s->stated = next->stated;
	s->overwritten = next->overwritten;
	return 0;
}

/*
 * The stream to write packets to, or NULL with *result. What is lost without a stream is in the
 * caller's account alone.
 */
static struct pem_stream *stream_to_write(struct pem_trace_writer *w, const char *name, int *result)
{
	struct pem_stream *s = pem_trace_writer__stream(w, name);

	*result = s ? 0 : pem_is_stream_name(name) ? -ENOMEM : -EINVAL;
	return s;
}

int pem_trace_writer__packet(struct pem_trace_writer *w, const char *name,
			     struct pem_packet *packet, size_t bytes)
{
	size_t content = (packet->content_size + 7) / 8, size = (content + 7) & ~(size_t)7;
	struct pem_stream *s, next;
	int result;

	if (w->store)
		return w->store->packet(w->store->arg, name, packet, bytes);
	s = stream_to_write(w, name, &result);
	if (!s)
		return result;
	if (content > bytes || content < PEM_PACKET_HEADER_BYTES) {
		s->lost += packet->record_count;
		return -EINVAL;
	}
	if (!s->packets && !w->failed && packet->events_discarded > s->discarded_before)
		begin_with_none_lost(w, name, packet);
	next = *s;
	finish_header(w, &next, packet, size);
	result = w->failed ? w->failed : open_stream(w, s);
	if (!result)
		result = write_packet(s->fd, packet, content, size);
	return finish_write(w, s, &next, packet->record_count, result);
}

static size_t padded_bytes(const struct pem_packet *packet)
{
	return (packet->content_size / 8 + 7) & ~(size_t)7;
}

/*
 * Are these whole packets, one after the other? 0 or -EINVAL. *records: of all of them, or of those
 * up to the first wrong one.
 */
static int check_packets(const uint8_t *packets, size_t bytes, uint64_t *records)
{
	const struct pem_packet *packet;
	size_t at, size;

	*records = 0;
	for (at = 0; at < bytes; at += size) {
		if (bytes - at < PEM_PACKET_HEADER_BYTES)
			return -EINVAL;
		packet = (const struct pem_packet *)(packets + at);
		*records += packet->record_count;
		size = padded_bytes(packet);
		if (packet->content_size / 8 < PEM_PACKET_HEADER_BYTES || size > bytes - at)
			return -EINVAL;
	}
	return 0;
}

/* Keep packets one by one, so that they can be pushed out so. Each fits where the first one did. */
static int keep_packets(const struct pem_packet_store *store, const char *name,
			const uint8_t *packets, size_t bytes)
{
	const struct pem_packet *packet;
	size_t at;
	int result;

	for (at = 0; at < bytes; at += padded_bytes(packet)) {
		packet = (const struct pem_packet *)(packets + at);
		result = store->packet(store->arg, name, packet, bytes - at);
		if (result)
			return result;
	}
	return 0;
}

int pem_trace_writer__packets(struct pem_trace_writer *w, const char *name, void *packets,
			      size_t bytes)
{
	struct pem_packet *packet = packets;
	struct pem_stream *s, next;
	size_t at, content, size;
	uint64_t records;
	int result, wrong = check_packets(packets, bytes, &records);

	if (w->store)
		return wrong ? wrong : keep_packets(w->store, name, packets, bytes);
	s = stream_to_write(w, name, &result);
	if (!s)
		return result;
	if (wrong) {
		s->lost += records;
		return wrong;
	}
	if (!bytes)
		return 0;
	if (!s->packets && !w->failed && packet->events_discarded > s->discarded_before)
		begin_with_none_lost(w, name, packet);
	next = *s;
	for (at = 0; at < bytes; at += size) {
		packet = (struct pem_packet *)((uint8_t *)packets + at);
		content = packet->content_size / 8;
		size = padded_bytes(packet);
		memset((uint8_t *)packet + content, 0, size - content);
		finish_header(w, &next, packet, size);
	}
	result = w->failed ? w->failed : open_stream(w, s);
	if (!result)
		result = pem_write_all(s->fd, packets, bytes);
	return finish_write(w, s, &next, records, result);
}

void pem_trace_writer__discarded(struct pem_trace_writer *w, const char *name,
				 uint64_t events_discarded, uint64_t clock)
{
	struct pem_packet packet = {0};
	struct pem_stream *s = w->store ? NULL : pem_trace_writer__stream(w, name);

	/*
	 * A process that ended while a flight goes on has no stream. Its account states the loss.
	 */
	if (!s || since(events_discarded + s->lost, s->discarded_before) <= s->stated)
		return;
	if (clock < s->last_clock)
		clock = s->last_clock;
	packet.timestamp_begin = packet.timestamp_end = clock;
	packet.content_size = PEM_PACKET_HEADER_BYTES * 8;
	packet.events_discarded = events_discarded;
	packet.cpu = PEM_NO_CPU;
	pem_trace_writer__packet(w, name, &packet, sizeof(packet));
}

int pem_trace_writer__failed(const struct pem_trace_writer *w)
{
	return w->failed;
}

uint64_t pem_trace_writer__stream_clock(const struct pem_trace_writer *w, const char *name)
{
	const struct pem_earlier_stream *earlier;
	size_t i;

	if (w->store)
		return w->store->stream_clock(w->store->arg, name);
	for (i = 0; i < w->stream_count; i++) {
		if (!strcmp(w->streams[i].name, name))
			return w->streams[i].last_clock;
	}
	earlier = pem_trace_writer__earlier(w, name);
	return earlier ? earlier->last_clock : 0;
}

void pem_trace_writer__keep_in(struct pem_trace_writer *w, const struct pem_packet_store *store)
{
	w->store = store;
}

void pem_trace_writer__begin_span(struct pem_trace_writer *w)
{
	w->span_clock = 0;
}

uint64_t pem_trace_writer__span_clock(const struct pem_trace_writer *w)
{
	return w->span_clock;
}

uint64_t pem_trace_writer__last_clock(const struct pem_trace_writer *w)
{
	uint64_t last = 0;
	size_t i;

	for (i = 0; i < w->stream_count; i++) {
		if (w->streams[i].last_clock > last)
			last = w->streams[i].last_clock;
	}
	for (i = 0; i < w->earlier_count; i++) {
		if (w->earlier[i].last_clock > last)
			last = w->earlier[i].last_clock;
	}
	return last;
}

int pem_trace_writer__note_session(struct pem_trace_writer *w, const char *session_directory)
{
	char text[PATH_MAX + 32];
	int n;

	if (!session_directory)
		return unlinkat(w->private_fd, "session", 0) ? -errno : 0;
	n = snprintf(text, sizeof(text), "%d %s\n", (int)getpid(), session_directory);
	return pem_replace_file(w->private_fd, "session", text, (size_t)n);
}

/* --- the end --- */

int pem_trace_writer__balance(struct pem_trace_writer *w, uint32_t pid, const char *name,
			      uint64_t start_clock, const struct pem_balance_entry *entries,
			      size_t count)
{
	const struct pem_balance *b;
	char shown[PEM_NAME_BYTES];
	size_t i;

	if (w->store)
		return w->store->balance(w->store->arg, pid, name, start_clock, entries, count);
	pem_copy_text(shown, sizeof(shown), name);
	fprintf(w->balance, "producer\t%u\t%s\t%llu\n", pid, pem_printable(shown),
		(unsigned long long)start_clock);
	for (i = 0; i < count; i++) {
		b = &entries[i].balance;
		if (!b->produced && !b->delivered && !b->discarded && !b->overwritten)
			continue;
		fprintf(w->balance, "event\t%08x\t%llu\t%llu\t%llu\t%llu\n", entries[i].event_id,
			(unsigned long long)b->produced, (unsigned long long)b->delivered,
			(unsigned long long)b->discarded, (unsigned long long)b->overwritten);
	}
	return ferror(w->balance) ? -ENOMEM : 0;
}

int pem_trace_writer__finish(struct pem_trace_writer *w, const struct pem_trace_info *info)
{
	int result;

	fprintf(w->balance, "end\n");
	if (fflush(w->balance))
		return -ENOMEM;
	unlinkat(w->private_fd, "reserve", 0);
	result = pem_trace_writer__write_names(w);
	if (!result)
		result = pem_trace_writer__write_run(w, info);
	/* balance is last: it makes the trace complete, and a complete trace is not recovered. */
	return result ? result
		      : pem_replace_file(w->private_fd, "balance", w->balance_text,
					 w->balance_bytes);
}

void pem_trace_writer__free(struct pem_trace_writer *w)
{
	size_t i;

	if (!w)
		return;
	for (i = 0; i < w->stream_count; i++) {
		if (w->streams[i].fd >= 0)
			close(w->streams[i].fd);
	}
	if (w->earlier_fd >= 0)
		close(w->earlier_fd);
	if (w->private_fd >= 0)
		close(w->private_fd);
	if (w->directory_fd >= 0)
		close(w->directory_fd);
	if (w->balance)
		fclose(w->balance);
	if (w->names)
		fclose(w->names);
	free(w->balance_text);
	free(w->names_text);
	free(w->streams);
	free(w->earlier);
	free(w);
}
