// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ring.c - parses the records of a perf ring
 *
 * Not here: mapping the ring and publishing the tail (sampler.c).
 *
 * The ring is shared memory, so no length in it is trusted. A record must lie before head. It is
 * copied, also across the ring's end, and its fields are read from the copy, each after a check
 * that it fits.
 */
#include "counters.h"

#include <errno.h>
#include <string.h>

/* More than the largest sample that this source asks for: 8 + 8 + 8 + 8 + 24 + 8 * 8 bytes. */
#define RECORD_BYTES_MAX 256u

static void copy_out(const struct ring *ring, uint64_t position, void *to, uint64_t bytes)
{
	uint64_t at = position & (ring->data_bytes - 1);
	uint64_t first = ring->data_bytes - at < bytes ? ring->data_bytes - at : bytes;

	memcpy(to, ring->data + at, first);
	memcpy((uint8_t *)to + first, ring->data, bytes - first);
}

/*
 * Take bytes from the front of a copied record. Returns 0, or -EINVAL if the record is too short.
 */
static int take(const uint8_t **from, const uint8_t *end, void *to, size_t bytes)
{
	if ((size_t)(end - *from) < bytes)
		return -EINVAL;
	memcpy(to, *from, bytes);
	*from += bytes;
	return 0;
}

static int parse_sample(const struct ring *ring, const uint8_t *from, const uint8_t *end,
			struct ring_sample *sample)
{
	uint64_t group[3]; /* holds number of values, time enabled, time running */
	uint32_t i;

	memset(sample, 0, sizeof(*sample));
	if (take(&from, end, &sample->ip, 8) || take(&from, end, &sample->pid, 4) ||
	    take(&from, end, &sample->tid, 4) || take(&from, end, &sample->time_ns, 8))
		return -EINVAL;
	if (!ring->has_read)
		return 0;
	if (take(&from, end, group, sizeof(group)) || group[0] > RING_VALUES_MAX)
		return -EINVAL;
	for (i = 0; i < group[0]; i++) {
		if (take(&from, end, &sample->values[i], 8))
			return -EINVAL;
		sample->values[i] = counter__scale(sample->values[i], group[1], group[2]);
	}
	sample->value_count = (uint32_t)group[0];
	return 0;
}

static int damaged(struct ring *ring, uint64_t head)
{
	ring->tail = head;
	ring->lost++;
	return -EINVAL;
}

int ring__next(struct ring *ring, uint64_t head, struct ring_sample *sample)
{
	struct perf_event_header header;
	uint8_t record[RECORD_BYTES_MAX];
	uint64_t lost[2]; /* holds id, number */
	const uint8_t *from, *end;

	while (ring->tail != head) {
		if (head - ring->tail > ring->data_bytes || head - ring->tail < sizeof(header))
			return damaged(ring, head);
		copy_out(ring, ring->tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 ||
		    header.size > head - ring->tail)
			return damaged(ring, head);
		if (header.type != PERF_RECORD_SAMPLE && header.type != PERF_RECORD_LOST) {
			ring->tail += header.size;
			continue;
		}
		if (header.size > sizeof(record))
			return damaged(ring, head);
		copy_out(ring, ring->tail, record, header.size);
		from = record + sizeof(header);
		end = record + header.size;
		ring->tail += header.size;
		if (header.type == PERF_RECORD_SAMPLE)
			return parse_sample(ring, from, end, sample) ? damaged(ring, head) : 1;
		if (take(&from, end, lost, sizeof(lost)))
			return damaged(ring, head);
		ring->lost += lost[1];
	}
	return 0;
}
