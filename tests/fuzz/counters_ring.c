// SPDX-License-Identifier: MIT
/*
 * counters_ring.c - fuzz the parsing of perf's ring: the first word directories head and tail, the
 * rest is the ring
 */
#include "sources/counters/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_BYTES 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Are bytes told that are not in the copied record? */
static int is_outside(const struct ring_sample *sample, const void *at, size_t bytes)
{
	const uint8_t *from = (const uint8_t *)sample->record;

	return bytes && ((const uint8_t *)at < from ||
			 (const uint8_t *)at + bytes > from + sizeof(sample->record));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t *memory = calloc(1, RING_BYTES);
	struct ring ring = {.data = memory, .data_bytes = RING_BYTES};
	struct ring_sample sample;
	uint32_t word = 0;
	uint64_t head;
	int rc;

	if (memory && bytes >= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		bytes -= sizeof(word);
		memcpy(memory, data + sizeof(word), bytes < RING_BYTES ? bytes : RING_BYTES);
		ring.has_read = word & 1;
		ring.tells_maps = word >> 15 & 1;
		ring.has_callers = word >> 14 & 1;
		ring.register_count = word & 1 ? 0 : bytes % 20;
		ring.has_stack = word >> 16 & 1;
		ring.tells_all_maps = word >> 17 & 1;
		ring.has_data = word >> 18 & 1;
		ring.skips_kernel = word >> 19 & 1;
		ring.tail = UINT64_MAX - (word >> 16) + 1; /* so that positions wrap, too */
		head = ring.tail + (word >> 1 & 0x1fff);
		while ((rc = ring__next(&ring, head, &sample)) > 0)
			if (rc == RING_SAMPLE
				    ? sample.value_count > RING_VALUES_MAX ||
					      sample.caller_count > RING_CALLERS_MAX ||
					      is_outside(&sample, sample.stack,
							 sample.stack_bytes) ||
					      (sample.registers &&
					       is_outside(&sample, sample.registers,
							  ring.register_count * 8))
				    : !memchr(ring.map.path, 0, sizeof(ring.map.path)) ||
					      ring.map.build_id_bytes > sizeof(ring.map.build_id))
				abort();
		if (ring.tail != head || (rc < 0 && rc != -EINVAL))
			abort();
	}
	free(memory);
	return 0;
}
