/* SPDX-License-Identifier: MIT */
/*
 * module_pool.c - any bytes as a pool of the module: opening and draining it touches nothing
 * outside, and hands on whole packets
 *
 * Input: steps of eight bytes over a sound pool with some records: 1 of where (the header, states
 * of chunks, event ids, lanes, a chunk; bit 7: drain first), 1 of nothing, 2 of an offset there in
 * bytes, 4 of a value.
 */
#include "tests/unit/module_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int write_packet(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	(void)arg;
	if (!strchr(name, '_') || bytes > CHUNK_BYTES || packet->content_size != bytes * 8 ||
	    packet->timestamp_begin > packet->timestamp_end)
		abort();
	return 0;
}

static void fill(struct bench *b)
{
	struct pem_writer *w = &b->writers[1];
	uint32_t i, chunk;

	for (chunk = 0; chunk < 3; chunk++) {
		pem_ring_start(&b->ring, w, (uint32_t)pem_ring_find(&b->ring), b->clock, 0, 0);
		for (i = 0; i < 5; i++) {
			memset(w->cursor, 0, 16);
			pem_ring_commit(w, b->ring.cells, b->clock++, event_call.id, 16);
		}
		memcpy(w->cursor + 8, "text", 5);
		pem_ring_commit(w, b->ring.cells, b->clock++, event_text.id, 13);
		if (chunk < 2)
			pem_ring_retire(&b->ring, w);
	}
}

static uint8_t *dir_of(struct bench *b, unsigned where)
{
	switch (where % 5) {
	case 0:
		return (uint8_t *)b->pool;
	case 1:
		return (uint8_t *)b->ring.chunk_state;
	case 2:
		return (uint8_t *)pem_pool__event_ids(&b->ring);
	case 3:
		return (uint8_t *)b->ring.lanes;
	default:
		return b->ring.chunks + where / 5 % 3 * CHUNK_BYTES;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct pem_source_sink sink = {.write = write_packet};
	struct bench *b = new_bench();
	struct pem_balance balance;
	uint64_t total;
	uint16_t offset;
	size_t i;

	if (!b || pem_module__index_events(&b->source))
		return 0;
	total = b->pool->total_bytes;
	b->source.fd = -1;
	fill(b);
	for (i = 0; i + 8 <= bytes; i += 8) {
		if (data[i] & 0x80) {
			if (!b->cpu.mapping)
				pem_module__use_pool(&b->cpu, b->pool, total, CHUNK_BYTES);
			pem_module__drain(&b->source, &sink, data[i] & 0x40);
		}
		memcpy(&offset, data + i + 2, sizeof(offset));
		memcpy(dir_of(b, data[i] & 0x3f) + offset % (CHUNK_BYTES / 4 - 1) * 4, data + i + 4,
		       4);
	}
	if (!b->cpu.mapping)
		pem_module__use_pool(&b->cpu, b->pool, total, CHUNK_BYTES);
	pem_module__drain(&b->source, &sink, false);
	pem_module__drain(&b->source, &sink, true);
	pem_module__count(&b->source, pem_module__index_of(&b->source, event_call.id), &balance);
	free_bench(b);
	return 0;
}
