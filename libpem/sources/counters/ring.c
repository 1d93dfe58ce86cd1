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
#include <stddef.h>
#include <string.h>

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

/*
 * Take a PERF_SAMPLE_CALLCHAIN: addresses in the kernel, and in the program, each behind a mark.
 * The first one is the sampled instruction itself.
 */
static int take_callers(const uint8_t **from, const uint8_t *end, struct ring_sample *sample)
{
	uint64_t count, address, is_first = 1, is_entry = 0;

	if (take(from, end, &count, 8) || count > (size_t)(end - *from) / 8)
		return -EINVAL;
	while (count--) {
		memcpy(&address, *from, 8);
		*from += 8;
		if (address >= PERF_CONTEXT_MAX) {
			is_entry = !is_first && address == PERF_CONTEXT_USER;
			continue;
		}
		if (!is_first && sample->caller_count < RING_CALLERS_MAX)
			sample->callers[sample->caller_count++] = address + is_entry;
		is_first = is_entry = 0;
	}
	return 0;
}

/* Take what PERF_SAMPLE_READ has of a group. */
static int take_values(const uint8_t **from, const uint8_t *end, struct ring_sample *sample)
{
	uint64_t group[3]; /* holds number of values, time enabled, time running */
	uint32_t i;

	if (take(from, end, group, sizeof(group)) || group[0] > RING_VALUES_MAX)
		return -EINVAL;
	for (i = 0; i < group[0]; i++) {
		if (take(from, end, &sample->values[i], 8))
			return -EINVAL;
		sample->values[i] = counter__scale(sample->values[i], group[1], group[2]);
	}
	sample->value_count = (uint32_t)group[0];
	return 0;
}

/* Pass over bytes, which are then at *at. Returns 0, or -EINVAL if the record is too short. */
static int pass(const uint8_t **from, const uint8_t *end, uint64_t bytes, const void **at)
{
	if ((uint64_t)(end - *from) < bytes)
		return -EINVAL;
	*at = *from;
	*from += bytes;
	return 0;
}

/* Take PERF_SAMPLE_REGS_USER. */
static int take_registers(const struct ring *ring, const uint8_t **from, const uint8_t *end,
			  struct ring_sample *sample)
{
	uint64_t abi;
	const void *at;

	if (take(from, end, &abi, 8))
		return -EINVAL;
	sample->abi = (uint32_t)abi;
	if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
		if (pass(from, end, ring->register_count * 8ull, &at))
			return -EINVAL;
		sample->registers = at;
	}
	return 0;
}

/* Take PERF_SAMPLE_STACK_USER. */
static int take_stack(const uint8_t **from, const uint8_t *end, struct ring_sample *sample)
{
	uint64_t bytes, used = 0;
	const void *at;

	if (take(from, end, &bytes, 8) || bytes % 8 || pass(from, end, bytes, &at))
		return -EINVAL;
	sample->stack = at;
	if (bytes && (take(from, end, &used, 8) || used > bytes))
		return -EINVAL;
	sample->stack_bytes = (uint32_t)used;
	sample->stack_is_partial = bytes && used == bytes;
	return 0;
}

/* Take PERF_SAMPLE_WEIGHT and PERF_SAMPLE_DATA_SRC. */
static int take_access(const uint8_t **from, const uint8_t *end, struct ring_sample *sample)
{
	uint64_t weight;

	if (take(from, end, &weight, 8) || take(from, end, &sample->data_source, 8))
		return -EINVAL;
	sample->data.latency = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
	return 0;
}

static int parse_sample(const struct ring *ring, const uint8_t *from, const uint8_t *end,
			struct ring_sample *sample)
{
	memset(sample, 0, offsetof(struct ring_sample, record));
	if (take(&from, end, &sample->ip, 8) || take(&from, end, &sample->pid, 4) ||
	    take(&from, end, &sample->tid, 4) || take(&from, end, &sample->time_ns, 8))
		return -EINVAL;
	if (ring->has_data && take(&from, end, &sample->data.address, 8))
		return -EINVAL;
	if (ring->has_read && take_values(&from, end, sample))
		return -EINVAL;
	if (ring->has_callers && take_callers(&from, end, sample))
		return -EINVAL;
	if (ring->register_count && take_registers(ring, &from, end, sample))
		return -EINVAL;
	if (ring->has_stack && take_stack(&from, end, sample))
		return -EINVAL;
	if (ring->has_data && take_access(&from, end, sample))
		return -EINVAL;
	return from == end ? 0 : -EINVAL;
}

/* What a PERF_RECORD_MMAP2 has before the file's name (perf_event_open(2)). */
struct map_head {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, offset;
	uint8_t build_id_bytes, reserved[3];
	uint8_t build_id[20]; /* without one: device and inode */
	uint32_t protection, flags;
};
PEM_STATIC_ASSERT(sizeof(struct map_head) == 72, "the kernel's layout");

/* And behind it: sample_id of PERF_SAMPLE_TID and PERF_SAMPLE_TIME. */
struct map_tail {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/* Returns RING_MAP; 0: it is no file's, and only these are told; -EINVAL. */
static int parse_map(struct ring *ring, const struct perf_event_header *header)
{
	struct ring_map *map = &ring->map;
	struct map_head head;
	struct map_tail tail;
	uint64_t bytes;

	if (header->size < sizeof(head) + sizeof(tail))
		return -EINVAL;
	copy_out(ring, ring->tail, &head, sizeof(head));
	copy_out(ring, ring->tail + header->size - sizeof(tail), &tail, sizeof(tail));
	memset(map, 0, sizeof(*map));
	map->pid = head.pid;
	map->tid = head.tid;
	map->time_ns = tail.time_ns;
	map->address = head.address;
	map->length = head.length;
	map->offset = head.offset;
	if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
	    head.build_id_bytes <= sizeof(map->build_id)) {
		map->build_id_bytes = head.build_id_bytes;
		memcpy(map->build_id, head.build_id, sizeof(map->build_id));
	}
	bytes = header->size - sizeof(head) - sizeof(tail);
	if (bytes > sizeof(map->path) - 1)
		bytes = sizeof(map->path) - 1;
	copy_out(ring, ring->tail + sizeof(head), map->path, bytes);
	/* Other memory is called "//anon", "[vdso]" and so on. */
	map->is_file = map->path[0] == '/' && map->path[1] != '/';
	return map->is_file || ring->tells_all_maps ? RING_MAP : 0;
}

/* A PERF_RECORD_FORK (perf_event_open(2)). */
struct fork_record {
	struct perf_event_header header;
	uint32_t pid, parent, tid, parent_tid;
	uint64_t time_ns;
};

/* Returns RING_TASK; 0: a thread was started, or named; -EINVAL. */
static int parse_task(struct ring *ring, const struct perf_event_header *header)
{
	struct fork_record record = {.pid = 0};
	uint64_t time_ns;

	if (header->type == PERF_RECORD_FORK) {
		if (header->size < sizeof(record))
			return -EINVAL;
		copy_out(ring, ring->tail, &record, sizeof(record));
		ring->task = (struct ring_task){record.pid, record.parent, record.time_ns};
		return record.pid != record.parent ? RING_TASK : 0;
	}
	/* PERF_RECORD_COMM: header, pid, tid, the name; and sample_id, which ends in the time. */
	if (header->size < sizeof(*header) + 8 + sizeof(time_ns))
		return -EINVAL;
	copy_out(ring, ring->tail, &record, sizeof(*header) + 4);
	copy_out(ring, ring->tail + header->size - sizeof(time_ns), &time_ns, sizeof(time_ns));
	ring->task = (struct ring_task){record.pid, 0, time_ns};
	return header->misc & PERF_RECORD_MISC_COMM_EXEC ? RING_TASK : 0;
}

static int is_task(uint32_t type)
{
	return type == PERF_RECORD_FORK || type == PERF_RECORD_COMM;
}

/* Behind each record but a sample: sample_id, which ends in the time. */
uint64_t ring__time_ns(const struct ring *ring, uint64_t head)
{
	/* Behind a sample's header, ip and ids. */
	uint64_t at = 8 + 8 + 8, time_ns;
	struct perf_event_header header;

	if (head - ring->tail > ring->data_bytes || head - ring->tail < sizeof(header))
		return 0;
	copy_out(ring, ring->tail, &header, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE)
		at = header.size - sizeof(time_ns);
	if (header.size > head - ring->tail || header.size < 16 ||
	    header.size < at + sizeof(time_ns))
		return 0;
	copy_out(ring, ring->tail + at, &time_ns, sizeof(time_ns));
	return time_ns;
}

static int damaged(struct ring *ring, uint64_t head)
{
	ring->tail = head;
	ring->lost++;
	return -EINVAL;
}

static int is_loss(uint32_t type)
{
	return type == PERF_RECORD_LOST || type == PERF_RECORD_LOST_SAMPLES;
}

/*
 * PERF_RECORD_LOST has an id before the number. PERF_RECORD_LOST_SAMPLES is of samples that the
 * processor took and the kernel could not tell apart: of loads and of stores at the same time.
 */
static int take_lost(struct ring *ring, uint32_t type, const uint8_t *from, const uint8_t *end)
{
	uint64_t number;

	if (type == PERF_RECORD_LOST && take(&from, end, &number, sizeof(number)))
		return -EINVAL;
	if (take(&from, end, &number, sizeof(number)))
		return -EINVAL;
	ring->lost += number;
	return 0;
}

static int is_passed(const struct ring *ring, const struct perf_event_header *header)
{
	return ring->skips_kernel && header->type == PERF_RECORD_SAMPLE &&
	       (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER;
}

int ring__next(struct ring *ring, uint64_t head, struct ring_sample *sample)
{
	struct perf_event_header header;
	const uint8_t *from, *end;
	int rc;

	while (ring->tail != head) {
		if (head - ring->tail > ring->data_bytes || head - ring->tail < sizeof(header))
			return damaged(ring, head);
		copy_out(ring, ring->tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 ||
		    header.size > head - ring->tail)
			return damaged(ring, head);
		if (ring->tells_maps &&
		    (header.type == PERF_RECORD_MMAP2 || is_task(header.type))) {
			rc = header.type == PERF_RECORD_MMAP2 ? parse_map(ring, &header)
							      : parse_task(ring, &header);
			if (rc < 0)
				return damaged(ring, head);
			ring->tail += header.size;
			if (rc)
				return rc;
			continue;
		}
		if ((header.type != PERF_RECORD_SAMPLE && !is_loss(header.type)) ||
		    is_passed(ring, &header)) {
			ring->tail += header.size;
			continue;
		}
		copy_out(ring, ring->tail, sample->record, header.size);
		from = (const uint8_t *)sample->record + sizeof(header);
		end = (const uint8_t *)sample->record + header.size;
		ring->tail += header.size;
		if (header.type == PERF_RECORD_SAMPLE)
			return parse_sample(ring, from, end, sample) ? damaged(ring, head)
								     : RING_SAMPLE;
		if (take_lost(ring, header.type, from, end))
			return damaged(ring, head);
	}
	return 0;
}
