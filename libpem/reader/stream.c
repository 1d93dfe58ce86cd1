/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stream.c - one stream file: its packets and records in their order, each field checked before use
 *
 * Not here: order among streams, process and thread of kernel records (trace.c, context.c).
 *
 * The file is read in blocks, not mapped: if another program truncates a mapped file, SIGBUS kills
 * the reader. The file is opened for each block, so that the number of descriptors does not limit
 * the number of streams. A record lies in the buffer as a whole, at a multiple of 8, as in the ring
 * that it came from. If a packet is longer than a block, the buffer holds a part of it. So a packet
 * that claims to be long takes no memory, even in a sparse file.
 */
#include "files.h"
#include "packed.h"
#include "reader.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM_GOES_ON 1 /* s->record is the next record to decode */
#define STREAM_TORN 2 /* the file has become shorter: the stream ends */
#define ALIGN_UP(n) (((n) + (PEM_RECORD_ALIGN - 1)) & ~(size_t)(PEM_RECORD_ALIGN - 1))

static __attribute__((format(printf, 2, 3))) int damaged(struct pem_stream *s, const char *format,
							 ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return pem_error__set(
		&s->damage, -EINVAL,
		"stream '%.80s', packet at byte %" PRIu64 "%s"
		": %s; the file was damaged after it was recorded, or pem did not make it",
		s->name, s->packet_offset, s->packed ? " of what is decompressed" : "", what);
}

static int read_at(struct pem_stream *s, uint8_t *to, size_t bytes, uint64_t offset)
{
	int fd = openat(s->directory_fd, s->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = s->packed ? pem_packed__read(s->packed, fd, to, bytes, offset)
		      : pem_read_at(fd, to, bytes, offset);
	close(fd);
	return (int)n;
}

/*
 * Read so many bytes of the file, from offset on, into the buffer. They begin at a multiple of 8
 * there. The caller has checked that the file had them when it was opened. Returns them. NULL:
 * either damage is set, or the file has become shorter, and torn is set.
 */
static const uint8_t *bytes_at(struct pem_stream *s, uint64_t offset, size_t bytes)
{
	size_t skip = s->filled, capacity, want;
	uint8_t *larger;
	int n;

	if (offset - s->buffer_offset < s->filled)
		skip = (size_t)(offset - s->buffer_offset);
	if (skip + bytes <= s->filled && skip % PEM_RECORD_ALIGN == 0)
		return s->buffer + skip;
	if (bytes > s->capacity) {
		capacity = bytes > s->block_bytes ? bytes : s->block_bytes;
		larger = malloc(capacity);
		if (!larger) {
			damaged(s, "no memory for %zu bytes", capacity);
			return NULL;
		}
		if (s->buffer)
			memcpy(larger, s->buffer + skip, s->filled - skip);
		free(s->buffer);
		s->buffer = larger;
		s->capacity = capacity;
	} else {
		memmove(s->buffer, s->buffer + skip, s->filled - skip);
	}
	s->filled -= skip;
	s->buffer_offset = offset;
	want = s->capacity - s->filled;
	if (want > s->file_bytes - s->buffer_offset - s->filled)
		want = (size_t)(s->file_bytes - s->buffer_offset - s->filled);
	n = read_at(s, s->buffer + s->filled, want, s->buffer_offset + s->filled);
	if (n < 0) {
		damaged(s, "can't be read (%s)",
			n == -EBADMSG ? "it can't be decompressed" : strerror(-n));
		return NULL;
	}
	s->filled += (size_t)n;
	if (s->filled < bytes) {
		s->torn = true;
		return NULL;
	}
	return s->buffer;
}

static int check_sizes(struct pem_stream *s, const struct pem_packet *p)
{
	if (p->magic != PEM_CTF_MAGIC)
		return damaged(s, "magic number %08" PRIx32 " instead of %08x", p->magic,
			       PEM_CTF_MAGIC);
	if (p->stream_id != 0)
		return damaged(s, "stream class %" PRIu32 " instead of 0", p->stream_id);
	if (p->packet_size % 8 || p->packet_size / 8 > PEM_PACKET_BYTES_MAX)
		return damaged(s, "packet size of %" PRIu64 " bits", p->packet_size);
	if (p->content_size % 8 || p->content_size > p->packet_size ||
	    p->content_size / 8 < PEM_PACKET_HEADER_BYTES)
		return damaged(s, "content of %" PRIu64 " bits in a packet of %" PRIu64,
			       p->content_size, p->packet_size);
	return 0;
}

static int check_context(struct pem_stream *s, const struct pem_packet *p)
{
	if (*s->has_uuid && memcmp(s->uuid, p->uuid, sizeof(p->uuid)) != 0)
		return damaged(s, "it belongs to another trace (its uuid differs)");
	if (p->timestamp_end < p->timestamp_begin)
		return damaged(s, "it ends at %" PRIu64 ", before its beginning at %" PRIu64,
			       p->timestamp_end, p->timestamp_begin);
	if (p->source > PEM_PACKET_KERNEL_THREAD)
		return damaged(s, "unknown source %" PRIu32, p->source);
	if (p->cpu != PEM_NO_CPU && p->cpu >= PEM_CPUS_MAX)
		return damaged(s, "CPU %" PRIu32 ", but %u are the most", p->cpu, PEM_CPUS_MAX);
	if ((p->source == PEM_PACKET_KERNEL || p->source == PEM_PACKET_KERNEL_THREAD) &&
	    p->cpu == PEM_NO_CPU)
		return damaged(s, "kernel events without a CPU");
	if (!s->any_packet)
		return 0;
	if (p->stream_instance_id != s->instance_id)
		return damaged(s, "stream number %" PRIu64 " in the file of number %" PRIu64,
			       p->stream_instance_id, s->instance_id);
	if (p->timestamp_begin < s->timestamp_end)
		return damaged(s, "it begins at %" PRIu64 ", before the packet before it ends",
			       p->timestamp_begin);
	if (p->packet_seq_num <= s->seq_num)
		return damaged(s, "sequence number %" PRIu64 " after %" PRIu64, p->packet_seq_num,
			       s->seq_num);
	if (p->events_discarded < s->discarded || p->events_overwritten < s->overwritten)
		return damaged(s, "it counts fewer lost events than the packet before it");
	return 0;
}

/* Begin a packet whose header is checked. bytes of its content are at data. */
static void begin_packet(struct pem_stream *s, const struct pem_packet *p, const uint8_t *data,
			 size_t bytes)
{
	bool lost = s->any_packet
			    ? p->events_discarded != s->discarded ||
				      p->events_overwritten != s->overwritten ||
				      p->packet_seq_num != s->seq_num + 1
			    : p->events_discarded || p->events_overwritten || p->packet_seq_num;

	/*
	 * A producer may count a loss before a packet's first record or after its last one. So what
	 * was known is doubtful at the beginning of this packet, and of the next one.
	 */
	/* a packet without records passes the mark to the next packet */
	s->starts_loss |= lost || s->lost_in_packet;
	s->lost_in_packet = lost;
	s->discarded = p->events_discarded;
	s->overwritten = p->events_overwritten;
	s->seq_num = p->packet_seq_num;
	s->instance_id = p->stream_instance_id;
	s->any_packet = true;
	if (!*s->has_uuid) {
		memcpy(s->uuid, p->uuid, sizeof(p->uuid));
		*s->has_uuid = true;
	}
	s->clock = p->timestamp_begin;
	s->timestamp_end = p->timestamp_end;
	s->pid = p->pid;
	s->tid = p->tid;
	s->cpu = p->cpu;
	s->source = p->source;
	s->record = data + PEM_PACKET_HEADER_BYTES;
	s->record_bytes = 0;
	s->end = data + bytes;
	s->beyond = p->content_size / 8 - bytes;
}

/*
 * Return how much of the rest of a packet to have in the buffer: all of it, or a block, but at
 * least at_least bytes.
 */
static size_t part_of(const struct pem_stream *s, uint64_t left, size_t at_least)
{
	size_t part = s->block_bytes > at_least ? s->block_bytes : ALIGN_UP(at_least);

	return left > part ? part : (size_t)left;
}

static int end_torn(struct pem_stream *s, bool torn)
{
	s->torn |= torn;
	return 0;
}

/* A compressed stream ends: tell what is behind its last whole block, once. */
static int end_packed(struct pem_stream *s)
{
	bool told = s->end_told;

	s->end_told = true;
	if (pem_packed__is_damaged(s->packed) && !told)
		return damaged(s, "what follows is no compressed block");
	return end_torn(s, pem_packed__is_torn(s->packed));
}

/*
 * Enter the next packet. Returns STREAM_GOES_ON. 0: the stream ends here. -EINVAL: it is damaged.
 */
static int next_packet(struct pem_stream *s)
{
	struct pem_packet packet;
	const uint8_t *data;
	uint64_t left;
	size_t bytes;
	int rc;

	s->packet_offset = s->next_offset;
	left = s->file_bytes - s->packet_offset;
	s->next_offset = s->file_bytes; /* stays so if the packet is damaged */
	s->end = s->record = NULL;
	s->beyond = 0;
	s->record_bytes = 0;
	if (s->open_error && left)
		return damaged(s, "can't be read (%s)", strerror(-s->open_error));
	if (left < PEM_PACKET_HEADER_BYTES) {
		return left || !s->packed ? end_torn(s, left > 0) : end_packed(s);
	}
	data = bytes_at(s, s->packet_offset, PEM_PACKET_HEADER_BYTES);
	if (!data)
		return s->torn ? 0 : -EINVAL;
	memcpy(&packet, data, sizeof(packet));
	rc = check_sizes(s, &packet);
	if (rc)
		return rc;
	if (packet.packet_size / 8 > left) {
		s->torn = true;
		return 0;
	}
	s->next_offset = s->packet_offset + packet.packet_size / 8;
	rc = check_context(s, &packet);
	if (rc)
		return rc;
	bytes = part_of(s, packet.content_size / 8, PEM_PACKET_HEADER_BYTES);
	data = bytes_at(s, s->packet_offset, bytes);
	if (!data)
		return s->torn ? 0 : -EINVAL;
	begin_packet(s, &packet, data, bytes);
	return STREAM_GOES_ON;
}

/*
 * Read more of the packet into the buffer, from the record at s->record on: at least bytes, or all
 * that is left. Returns STREAM_GOES_ON, STREAM_TORN, or -EINVAL.
 */
static __attribute__((noinline)) int read_on(struct pem_stream *s, size_t bytes)
{
	uint64_t left = (uint64_t)(s->end - s->record) + s->beyond;
	uint64_t offset = s->buffer_offset + (uint64_t)(s->record - s->buffer);
	const uint8_t *data;

	bytes = part_of(s, left, bytes);
	data = bytes_at(s, offset, bytes);
	if (!data)
		return s->torn ? STREAM_TORN : -EINVAL;
	s->record = data;
	s->end = data + bytes;
	s->beyond = left - bytes;
	return STREAM_GOES_ON;
}

/*
 * Decode the record at s->record: find its event, its length and its clock. Returns 0, -EINVAL, or
 * what read_on returns.
 */
static int decode(struct pem_stream *s)
{
	size_t left = (size_t)(s->end - s->record), most = sizeof(struct pem_record_header);
	const struct pem_event_info *info;
	struct pem_record_header header;
	uint64_t clock;
	int bytes;

	if (PEM_UNLIKELY(left < sizeof(header)))
		return s->beyond ? read_on(s, most)
				 : damaged(s, "%zu bytes after its last record", left);
	memcpy(&header, s->record, sizeof(header));
	info = pem_event_table__find(s->events, header.event_id);
	if (PEM_UNLIKELY(!info))
		return damaged(s, "unknown event %08" PRIx32, header.event_id);
	bytes = (int)info->fixed_bytes;
	if (info->has_tail)
		bytes = pem_event__record_bytes(info->event, s->record, left);
	if (PEM_UNLIKELY(bytes < 0 || (size_t)bytes > left)) {
		most = info->has_tail ? info->event->max_bytes : info->fixed_bytes;
		if (s->beyond && left < most)
			return read_on(s, most);
		return damaged(s, "a record of %.100s does not fit into what is left of it",
			       info->event->name);
	}
	/*
	 * A reader may reserve memory for a record by its event's max_bytes, so a longer record is
	 * damage.
	 */
	if (PEM_UNLIKELY(info->has_tail && bytes > info->event->max_bytes))
		return damaged(s, "a record of %.100s of %d bytes, but %u are the most",
			       info->event->name, bytes, info->event->max_bytes);
	clock = s->clock + (uint32_t)(header.clock_low - (uint32_t)s->clock);
	if (PEM_UNLIKELY(clock > s->timestamp_end))
		return damaged(s, "a record of %.100s at %" PRIu64 ", after its end at %" PRIu64,
			       info->event->name, clock, s->timestamp_end);
	s->clock = clock;
	s->info = info;
	s->record_bytes = (uint32_t)bytes;
	return 0;
}

void pem_stream__release(struct pem_stream *s)
{
	pem_packed__drop(s->packed);
	free(s->buffer);
	s->buffer = NULL;
	s->capacity = s->filled = 0;
}

/* Go on behind the last record of the buffer: to the packet's next part, or to another packet. */
static __attribute__((noinline)) int leave_part(struct pem_stream *s)
{
	size_t left = (size_t)(s->end - s->record);
	int rc;

	if (s->beyond && s->record_bytes) {
		s->starts_loss = false;
		s->record = s->end;
		return read_on(s, sizeof(struct pem_record_header));
	}
	if (left != s->record_bytes)
		return damaged(s, "%zu bytes after its last record", left - s->record_bytes);
	s->starts_loss = false;
	do {
		rc = next_packet(s);
	} while (rc == STREAM_GOES_ON && s->record == s->end && !s->beyond);
	return rc;
}

void pem_stream__advance(struct pem_stream *s)
{
	size_t left = (size_t)(s->end - s->record), step = ALIGN_UP(s->record_bytes);
	int rc = STREAM_GOES_ON;

	if (PEM_LIKELY(left > step && s->record_bytes)) {
		s->starts_loss = false;
		s->record += step;
	} else {
		rc = leave_part(s);
	}
	while (PEM_LIKELY(rc == STREAM_GOES_ON)) {
		/*
		 * decode() runs again if the buffer had only a part of the record. read_on() has
		 * then read the rest, as far as there is any.
		 */
		rc = decode(s);
		if (PEM_LIKELY(rc == 0)) {
			s->head = PEM_HEAD_RECORD;
			return;
		}
	}
	s->head = rc < 0 ? PEM_HEAD_DAMAGE : PEM_HEAD_END;
	s->record = s->end = NULL;
	s->beyond = 0;
	s->record_bytes = 0;
	s->lost_in_packet = true;
	pem_stream__release(s); /* the buffer is not needed until the stream goes on */
}

void pem_stream__rewind(struct pem_stream *s)
{
	s->clock = 0;
	s->head = PEM_HEAD_NONE;
	s->record = s->end = NULL;
	s->beyond = 0;
	s->record_bytes = 0;
	s->timestamp_end = 0;
	s->packet_offset = s->next_offset = 0;
	s->any_packet = s->lost_in_packet = s->starts_loss = s->end_told = false;
}
