/* SPDX-License-Identifier: MIT */
/*
 * kernel_ring.c - any bytes as a kernel ring: draining touches nothing outside it and hands on
 * whole packets
 *
 * Input: 8 bytes of tail, 8 of head beyond it, 1 of whether a clock is known, the rest the ring's
 * data.
 */
#include <stdlib.h>
#include <string.h>

#include "libpem/sources/kernel/kernel.h"

#define RING_BYTES 8192u
#define STRIDE (PEM_KRING_DATA_OFFSET + RING_BYTES + PEM_KRING_SLACK_BYTES)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t clock_at(void *arg, uint64_t ns)
{
	(void)arg;
	return ns * 3;
}

static int write_packet(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	(void)arg;
	(void)name;
	if (bytes > PEM_KERNEL_PACKET_BYTES || packet->content_size != bytes * 8 ||
	    packet->timestamp_begin > packet->timestamp_end || !packet->record_count)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct pem_source_sink sink = {.write = write_packet, .clock_at = clock_at};
	struct pem_kernel_cpu cpu = {0};
	struct pem_source source = {.common = {.cpu_count = 1},
				    .ring_stride = STRIDE,
				    .ring_mask = RING_BYTES - 1,
				    .cpus = &cpu};
	struct pem_kring *ring;

	if (bytes < 17 || bytes - 17 > RING_BYTES + PEM_KRING_SLACK_BYTES)
		return 0;
	source.packet = malloc(PEM_KERNEL_PACKET_BYTES);
	source.rings = calloc(1, STRIDE);
	if (source.packet && source.rings) {
		ring = pem_source__ring(&source, 0);
		memcpy(&ring->tail, data, 8);
		memcpy(&ring->head, data + 8, 8);
		ring->head += ring->tail;
		cpu.clock_known = data[16] & 1;
		memcpy((uint8_t *)ring + PEM_KRING_DATA_OFFSET, data + 17, bytes - 17);
		pem_source__drain_rings(&source, &sink);
	}
	free(source.packet);
	free(source.rings);
	return 0;
}
