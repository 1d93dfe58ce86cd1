/* SPDX-License-Identifier: MIT */
/*
 * module_fixture.h - one CPU's pool as the module fills it, in memory of the test's own, and a
 * source over it
 *
 * The module's half, TAKE and FREE, is played by the fixture: drain.c and pools.c run as they are.
 */
#include "core/demand.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libpem/sources/module/module.h"

#define CHUNK_BYTES 8192u
#define CHUNKS 8u
#define CAPACITY 64u

static const struct pem_field string_field = {
	.name = "text", .type = PEM_TYPE_STRING, .max_count = 64};
static const struct pem_event event_call = {.name = "OS::Test::Call",
					    .id = 0x1001,
					    .fixed_bytes = 16,
					    .max_bytes = 16,
					    .source_kind = PEM_SOURCE_TRACEPOINT};
static const struct pem_event event_text = {.name = "OS::Test::Text",
					    .id = 0x1002,
					    .fields = &string_field,
					    .field_count = 1,
					    .fixed_bytes = 8,
					    .max_bytes = 72,
					    .source_kind = PEM_SOURCE_TRACEPOINT};
static const struct pem_event event_switch = {.name = "OS::Test::Switch",
					      .id = 0x1003,
					      .fixed_bytes = 24,
					      .max_bytes = 24,
					      .meaning = PEM_MEANS_SETS_THREAD,
					      .source_kind = PEM_SOURCE_TRACEPOINT};

static unsigned complaints;

static void complain(enum pem_log_level level, const char *text, void *arg)
{
	(void)level, (void)text, (void)arg;
	complaints++;
}

/* What the module would have of CPU 0, beside the source that reads it. */
struct bench {
	struct pem_source source;
	struct pem_module_cpu cpu;
	struct pem_source_demand demands[2];
	struct pem_pool_header *pool;
	struct pem_ring ring; /* the module's */
	struct pem_writer writers[PEM_KMOD_LANES];
	uint64_t clock;
};
static struct bench *benched; /* that of pem_module__take */

int pem_module__take(const struct pem_source *source, uint32_t cpu, uint32_t *chunks,
		     uint32_t count)
{
	const struct pem_packet *packet, *oldest;
	uint32_t n, i, found;

	(void)source;
	(void)cpu;
	for (n = 0; n < count; n++) {
		oldest = NULL;
		found = CHUNKS;
		for (i = 0; i < CHUNKS; i++) {
			packet =
				(const struct pem_packet *)(benched->ring.chunks + i * CHUNK_BYTES);
			if (PEM_CHUNK_STATE(benched->ring.chunk_state[i]) == PEM_CHUNK_FULL &&
			    (!oldest || packet->timestamp_begin < oldest->timestamp_begin)) {
				oldest = packet;
				found = i;
			}
		}
		if (found == CHUNKS)
			break;
		benched->ring.chunk_state[found] |= PEM_CHUNK_READING;
		chunks[n] = found;
	}
	return (int)n;
}

int pem_module__free(const struct pem_source *source, uint32_t cpu, uint32_t chunk)
{
	(void)source;
	(void)cpu;
	benched->ring.chunk_state[chunk] = PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0);
	return 0;
}

static inline void layout(struct pem_pool_header *header)
{
	memset(header, 0, sizeof(*header));
	header->magic = PEM_POOL_MAGIC;
	header->abi_version = PEM_ABI_VERSION;
	header->chunk_bytes = CHUNK_BYTES;
	header->chunk_count = CHUNKS;
	header->lane_count = PEM_KMOD_LANES;
	header->event_capacity = CAPACITY;
	pem_pool__layout(header);
}

/* NULL: no memory. */
static inline struct bench *new_bench(void)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct pem_pool_header header;
	uint32_t i;

	layout(&header);
	if (!b)
		return NULL;
	b->pool = aligned_alloc(4096, header.total_bytes);
	b->source.packet = calloc(1, CHUNK_BYTES);
	if (!b->pool || !b->source.packet)
		return NULL;
	memset(b->pool, 0, header.total_bytes);
	*b->pool = header;
	pem_pool__point(b->pool, &header, &b->ring);
	for (i = 1; i < PEM_KMOD_LANES; i++)
		b->writers[i].lane_index = i;
	b->demands[0].event = &event_call;
	b->demands[1].event = &event_text;
	b->source.common.demands = b->demands;
	b->source.common.demand_count = 2;
	b->source.common.log = complain;
	b->source.sets_thread = &event_switch;
	b->source.cpus = &b->cpu;
	b->source.common.cpu_count = 1;
	b->source.chunk_bytes = CHUNK_BYTES;
	b->source.next_map_ns = UINT64_MAX; /* the device is not asked for more */
	b->clock = 0x1fffffff0ull;
	benched = b;
	complaints = 0;
	return b;
}

static inline void free_bench(struct bench *b)
{
	free(b->pool);
	free(b->source.packet);
	free(b->source.by_id);
	free(b);
}
