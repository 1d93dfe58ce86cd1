/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stream_files.c - packets on their way to the stream files of a trace
 *
 * Several threads may write at once, each to streams of its own (pem_trace_writer__packets). The
 * writer's lock is held while a stream is found and opened, and when its write has ended. It is
 * held during writes of single packets, which are few: those of sources, and empty ones.
 *
 * Not here: where packets come from (chunks/, source_host/).
 */
#include "model_hash.h"
#include "packed.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define STREAMS_OPEN_MAX 128

static struct pem_stream **bucket_of(struct pem_trace_writer *w, const char *name)
{
	return &w->by_name[pem_model__hash(name, strlen(name)) % PEM_STREAM_BUCKETS];
}

/* Find a stream by its name; NULL: there is none. The caller holds the lock. */
static struct pem_stream *find_stream(struct pem_trace_writer *w, const char *name)
{
	struct pem_stream *s = *bucket_of(w, name);

	while (s && strcmp(s->name, name) != 0)
		s = s->next_by_name;
	return s;
}

static bool has_room_for_stream(struct pem_trace_writer *w)
{
	size_t capacity = w->stream_capacity * 2 + 16;
	struct pem_stream **grown;

	if (w->stream_count < w->stream_capacity)
		return true;
	grown = realloc(w->streams, capacity * sizeof(*grown));
	if (!grown)
		return false;
	w->streams = grown;
	w->stream_capacity = capacity;
	return true;
}

struct pem_stream *pem_trace_writer__stream(struct pem_trace_writer *w, const char *name)
{
	const struct pem_earlier_stream *earlier;
	struct pem_stream *s = find_stream(w, name), **bucket = bucket_of(w, name);

	if (s || !pem_is_stream_name(name) || !has_room_for_stream(w))
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	strcpy(s->name, name);
	s->fd = -1;
	earlier = pem_trace_writer__earlier(w, name);
	if (earlier) {
		s->last_clock = earlier->last_clock;
		s->discarded_before = earlier->discarded;
		s->overwritten_before = earlier->overwritten;
	}
	s->instance = w->next_instance++;
	s->next_by_name = *bucket;
	*bucket = s;
	w->streams[w->stream_count++] = s;
	return s;
}

/* Return the stream that was used least recently, of those that are open and not being written to.
 */
static struct pem_stream *oldest_stream(struct pem_trace_writer *w)
{
	struct pem_stream *oldest = NULL, *s;
	size_t i;

	for (i = 0; i < w->stream_count; i++) {
		s = w->streams[i];
		if (s->fd >= 0 && !s->writing && (!oldest || s->used < oldest->used))
			oldest = s;
	}
	return oldest;
}

/* Is the file that has the stream's name the one that was made for it? Note a file just made. */
static int check_file(struct pem_stream *s)
{
	struct stat st;

	if (fstat(s->fd, &st))
		return -errno;
	if (!s->packets) {
		s->device = st.st_dev;
		s->inode = st.st_ino;
	}
	/* An inode's number may have been used again. */
	return s->device == st.st_dev && s->inode == st.st_ino && st.st_uid == geteuid() ? 0
											 : -ESTALE;
}

static int open_stream(struct pem_trace_writer *w, struct pem_stream *s)
{
	struct pem_stream *oldest;
	int result;

	s->used = ++w->ticks;
	if (s->fd >= 0)
		return 0;
	oldest = w->open_count >= STREAMS_OPEN_MAX ? oldest_stream(w) : NULL;
	if (oldest) {
		close(oldest->fd);
		oldest->fd = -1;
		w->open_count--;
	}
	s->fd = openat(w->directory_fd, s->name,
		       O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
			       (s->packets ? 0 : O_CREAT | O_EXCL),
		       0600);
	if (s->fd < 0)
		return -errno;
	result = check_file(s);
	if (result) {
		close(s->fd);
		s->fd = -1;
		return result;
	}
	w->open_count++;
	return 0;
}

/* Write content bytes of a packet and zeros up to size. There are at most 7 zeros. */
static int write_plain(int fd, const struct pem_packet *packet, size_t content, size_t size)
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
 * Append whole packets to a stream's file. next: the stream behind them; its count of bytes is made
 * that of the file. Returns 0, or -errno: a part may have been written.
 */
static int write_packed(struct pem_trace_writer *w, const struct pem_stream *s, const void *packets,
			size_t bytes, struct pem_stream *next)
{
	ssize_t written = pem_packer__write(w->packer, s->fd, packets, bytes);

	if (written < 0)
		return (int)written;
	next->bytes = s->bytes + (uint64_t)written;
	return 0;
}

/* Append a packet of content bytes, and zeros up to size. As write_packed, but for any writer. */
static int write_packet(struct pem_trace_writer *w, const struct pem_stream *s,
			const struct pem_packet *packet, size_t content, size_t size,
			struct pem_stream *next)
{
	uint8_t *whole;
	int result;

	if (!w->packer)
		return write_plain(s->fd, packet, content, size);
	whole = malloc(size);
	if (!whole)
		return -ENOMEM;
	memcpy(whole, packet, content);
	memset(whole + content, 0, size - content);
	result = write_packed(w, s, whole, size, next);
	free(whole);
	return result;
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
static void finish_header(const struct pem_trace_writer *w, struct pem_stream *next,
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
	next->bytes += size;
	next->last_clock = packet->timestamp_end;
	next->stated = packet->events_discarded;
	next->overwritten = packet->events_overwritten;
}

/* The trace's records begin no later than those of this packet. */
static void note_span(struct pem_trace_writer *w, const struct pem_packet *packet)
{
	if (packet->record_count && (!w->span_clock || packet->timestamp_begin < w->span_clock))
		w->span_clock = packet->timestamp_begin;
}

/*
 * End a write. If it failed, cut the file to its former end, and count the records as lost. tried:
 * the result is that of a write, of which a part may be in the file.
 */
static int finish_write(struct pem_trace_writer *w, struct pem_stream *s,
			const struct pem_stream *next, uint64_t records, bool tried, int result)
{
	int cut;

	if (result) {
		/* If the file can't be cut either, the write's failure stays the one to tell. */
		cut = tried ? ftruncate(s->fd, (off_t)s->bytes) : 0;
		(void)cut;
		if (!w->failed)
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
 * Write one packet, which is whole. The caller holds the lock. For packets that are few: those of
 * sources and empty ones.
 */
static int write_one(struct pem_trace_writer *w, struct pem_stream *s, struct pem_packet *packet)
{
	size_t content = (packet->content_size + 7) / 8, size = (content + 7) & ~(size_t)7;
	struct pem_stream next = *s;
	bool tried;
	int result;

	finish_header(w, &next, packet, size);
	note_span(w, packet);
	result = w->failed ? w->failed : open_stream(w, s);
	tried = !result;
	if (tried)
		result = write_packet(w, s, packet, content, size, &next);
	return finish_write(w, s, &next, packet->record_count, tried, result);
}

/*
 * Write an empty packet that states no losses before a first packet that states some: readers learn
 * the loss from the difference. If this write fails, the next one fails, too, and its records count
 * as lost.
 */
static void begin_with_none_lost(struct pem_trace_writer *w, struct pem_stream *s,
				 const struct pem_packet *packet)
{
	struct pem_packet empty = *packet;

	if (s->packets || w->failed || packet->events_discarded <= s->discarded_before)
		return;
	empty.timestamp_end = empty.timestamp_begin;
	empty.content_size = PEM_PACKET_HEADER_BYTES * 8;
	empty.events_discarded = empty.events_overwritten = empty.record_count = 0;
	write_one(w, s, &empty);
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
	size_t content = (packet->content_size + 7) / 8;
	struct pem_stream *s;
	int result;

	if (w->store)
		return w->store->packet(w->store->arg, name, packet, bytes);
	pthread_mutex_lock(&w->lock);
	s = stream_to_write(w, name, &result);
	if (s && (content > bytes || content < PEM_PACKET_HEADER_BYTES ||
		  (w->packer && content > PEM_PACKED_RAW_MAX))) {
		s->lost += packet->record_count;
		result = -EINVAL;
	} else if (s) {
		begin_with_none_lost(w, s, packet);
		result = write_one(w, s, packet);
	}
	pthread_mutex_unlock(&w->lock);
	return result;
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

/*
 * Begin to write packets to a stream: nobody else writes to it until the end. NULL with *result:
 * its packets can't be written.
 */
static struct pem_stream *begin_write(struct pem_trace_writer *w, const char *name,
				      const struct pem_packet *first, uint64_t records, int wrong,
				      int *result)
{
	struct pem_stream *s;

	pthread_mutex_lock(&w->lock);
	s = stream_to_write(w, name, result);
	if (s && wrong) {
		s->lost += records;
		*result = wrong;
		s = NULL;
	}
	if (s) {
		begin_with_none_lost(w, s, first);
		*result = w->failed ? w->failed : open_stream(w, s);
		s->writing = true;
	}
	pthread_mutex_unlock(&w->lock);
	return s;
}

int pem_trace_writer__packets(struct pem_trace_writer *w, const char *name, void *packets,
			      size_t bytes)
{
	struct pem_packet *packet = packets, *first = NULL;
	struct pem_stream *s, next;
	size_t at, content, size;
	uint64_t records;
	bool tried;
	int result, wrong = check_packets(packets, bytes, &records);

	if (w->packer && bytes > PEM_PACKED_RAW_MAX)
		wrong = -EINVAL;
	if (w->store)
		return wrong ? wrong : keep_packets(w->store, name, packets, bytes);
	if (!bytes)
		return pem_is_stream_name(name) ? 0 : -EINVAL;
	s = begin_write(w, name, packet, records, wrong, &result);
	if (!s)
		return result;
	next = *s;
	for (at = 0; at < bytes; at += size) {
		packet = (struct pem_packet *)((uint8_t *)packets + at);
		content = packet->content_size / 8;
		size = padded_bytes(packet);
		memset((uint8_t *)packet + content, 0, size - content);
		finish_header(w, &next, packet, size);
		if (!first && packet->record_count)
			first = packet;
	}
	tried = !result;
	if (tried)
		result = w->packer ? write_packed(w, s, packets, bytes, &next)
				   : pem_write_all(s->fd, packets, bytes);
	pthread_mutex_lock(&w->lock);
	if (first)
		note_span(w, first);
	s->writing = false;
	result = finish_write(w, s, &next, records, tried, result);
	pthread_mutex_unlock(&w->lock);
	return result;
}

void pem_trace_writer__discarded(struct pem_trace_writer *w, const char *name,
				 uint64_t events_discarded, uint64_t clock)
{
	struct pem_packet packet = {0};
	struct pem_stream *s;

	/*
	 * A process that ended while a flight goes on has no stream. Its account states the loss.
	 */
	if (w->store)
		return;
	pthread_mutex_lock(&w->lock);
	s = pem_trace_writer__stream(w, name);
	if (s && since(events_discarded + s->lost, s->discarded_before) > s->stated) {
		packet.timestamp_begin = packet.timestamp_end =
			clock < s->last_clock ? s->last_clock : clock;
		packet.content_size = PEM_PACKET_HEADER_BYTES * 8;
		packet.events_discarded = events_discarded;
		packet.cpu = PEM_NO_CPU;
		begin_with_none_lost(w, s, &packet);
		write_one(w, s, &packet);
	}
	pthread_mutex_unlock(&w->lock);
}

uint64_t pem_trace_writer__stream_clock(struct pem_trace_writer *w, const char *name)
{
	const struct pem_earlier_stream *earlier;
	const struct pem_stream *s;
	uint64_t clock;

	if (w->store)
		return w->store->stream_clock(w->store->arg, name);
	pthread_mutex_lock(&w->lock);
	s = find_stream(w, name);
	clock = s ? s->last_clock : 0;
	pthread_mutex_unlock(&w->lock);
	if (s)
		return clock;
	earlier = pem_trace_writer__earlier(w, name);
	return earlier ? earlier->last_clock : 0;
}
