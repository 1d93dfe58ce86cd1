// SPDX-License-Identifier: MIT
/*
 * shared_memory.c - fuzz target: what a consumer reads of programs' pools and control files
 *
 * A pool and a control file as honest programs make them, with a few records; the input is edits of
 * both, eight bytes each: where (1), offset (3, within that part), value (4, stored at an address
 * of that many bytes' alignment). Then all that a session does with them: map, drain, copy, account
 * for, sum up statistics, wide ones too, take an entry of the table, write enable bits and action
 * words. Now and then the trace is finished, and pem's own reader must find every record in it
 * sound and the books balanced.
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "util.h"

#include <pem/clock.h>
#include <pem/trace.h>
#include <pem/distribution.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define CHUNK 4096u
#define CHUNKS 8u
#define LANES 8u
#define EVENTS 512u
#define CONTROL_BYTES (4096u + 5 * PEM_PAGE_ALIGN)
#define ROUNDS 500u /* of one trace */

static struct pem_session *session;
static struct pem_log *trace_log;
static struct pem_statistics *statistics, *counts;
static char folder[64], trace_path[96];
static uint32_t free_id, begin_id;
static unsigned rounds;

static void check(int condition)
{
	if (!condition)
		abort();
}

static void begin(void)
{
	static const char *const pattern = "APP", *const free_event = "APP::Libc::Free",
				 *const begin_event = "APP::Phase::Begin";
	const struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = CHUNK, .chunk_count = CHUNKS};
	const struct pem_context any = {0};
	struct pem_event_set *set, *of_free, *of_begin;
	struct pem_error error = {""};

	session = pem_session__open(&options, &error);
	check(session != NULL);
	set = pem_event_set__new(session, &pattern, 1, &error);
	of_free = pem_event_set__new(session, &free_event, 1, &error);
	of_begin = pem_event_set__new(session, &begin_event, 1, &error);
	check(set && of_free && of_begin);
	trace_log = pem_session__register_log(session, set, NULL, trace_path, &error);
	statistics = pem_session__register_statistics(session, of_free, NULL, "address", &error);
	counts = pem_session__register_statistics(session, of_begin, NULL, NULL, &error);
	check(trace_log && statistics && counts);
	check(!pem_statistics__keep(statistics, PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM |
							PEM_STATISTIC_TOP));
	check(!pem_log__enable(trace_log) && !pem_statistics__enable(statistics) &&
	      !pem_statistics__enable(counts));
	pem_event_set__free(set);
	pem_event_set__free(of_free);
	pem_event_set__free(of_begin);
	free_id = pem_model__by_name(session->model, "APP::Libc::Free")->id;
	begin_id = pem_model__by_name(session->model, "APP::Phase::Begin")->id;
	check(pem_session__context(session, &any, 0, PEM_CONTEXT_TARGET) > 0);
	session->processes->target_count = 1;
}

static void end(void)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace;
	char command[160];
	uint64_t count = 0;
	int result;

	check(!pem_log__finish(trace_log, &error));
	trace = pem_trace__open(trace_path, &error);
	check(trace != NULL);
	while ((result = pem_trace__next(trace, &record, &error)) == 1)
		count++;
	check(!result);
	balance = pem_trace__total_balance(trace);
	check(balance.delivered == count);
	pem_trace__close(trace);
	pem_session__close(session);
	session = NULL;
	snprintf(command, sizeof(command), "rm -rf %s", trace_path);
	check(!system(command));
}

static void clean(void)
{
	char command[96];

	if (session)
		end();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	check(!system(command));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(folder, sizeof(folder), "%s/pem-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	check(mkdtemp(folder) != NULL);
	snprintf(trace_path, sizeof(trace_path), "%s/trace", folder);
	setenv("PEM_RUNTIME_DIR", folder, 1);
	atexit(clean);
	return 0;
}

static void *make_file(int directory_fd, const char *name, uint64_t bytes)
{
	int fd = openat(directory_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *memory;

	check(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(memory != MAP_FAILED);
	close(fd);
	return memory;
}

/* A lane with a full chunk, and one with an open one. */
static void fill(const struct pem_ring *ring)
{
	uint64_t tag = PEM_ACTION_TAG(PEM_ACTION(0, 0, 0, 0, 1)),
		 distribution_tag = 1ull << 32 | tag;
	struct pem_writer w;
	struct pem_distribution *distribution;
	uint32_t lane, n;
	uint8_t *record;
	int64_t index;

	for (lane = 1; lane < 4; lane++) {
		w = (struct pem_writer){.cells = &ring->cells[(uint64_t)lane * EVENTS],
					.lane_index = lane};
		ring->lanes[lane].tid = 1000 + lane;
		ring->lanes[lane].state = PEM_LANE_OWNED;
		index = pem_ring_find(ring);
		pem_ring_start(ring, &w, (uint32_t)index, pem_clock(), 77, 1000 + lane);
		for (n = 0; n < 4; n++) {
			record = pem_ring_reserve(&w, pem_clock(), 32);
			memset(record, 0, 32);
			memcpy(record + 8, "text", 5);
			pem_ring_commit(&w, &w.cells[n % 2], pem_clock(),
					n % 2 ? begin_id : free_id, n % 2 ? 13 : 16);
			pem_cell_add(&w.cells[n % 2], tag, n, n);
		}
		distribution = pem_pool__distribution(ring, 0, lane);
		pem_distribution_reset(distribution, distribution_tag);
		pem_distribution_add_square(distribution, lane, 0);
		pem_distribution_add_bucket(distribution, lane);
		pem_distribution_add_top(distribution, lane);
		ring->lanes[lane].distributions = 1;
		if (lane < 3)
			pem_ring_retire(ring, &w);
	}
}

static void edit(struct pem_pool_header *h, const struct pem_pool_header *layout, uint8_t *control,
		 const uint8_t *data, size_t bytes)
{
	uint8_t *base = (uint8_t *)h;
	const struct {
		uint8_t *at;
		uint64_t bytes;
	} part[] = {{base, sizeof(*h)},
		    {base + layout->chunk_state_offset, CHUNKS * 4},
		    {base + layout->event_id_offset, 64},
		    {base + layout->lanes_offset, LANES * sizeof(struct pem_lane)},
		    {base + layout->cells_offset, EVENTS * 4 * sizeof(struct pem_cell)},
		    {base + layout->chunks_offset, CHUNKS * CHUNK},
		    {base + layout->chunks_offset, PEM_PACKET_HEADER_BYTES + 64},
		    {base + layout->chunks_offset + 2 * CHUNK, PEM_PACKET_HEADER_BYTES + 64},
		    {control, sizeof(struct pem_control_file)},
		    {control + PEM_PAGE_ALIGN, PEM_PAGE_ALIGN},
		    {base + layout->distributions_offset, 4 * sizeof(struct pem_distribution)}};
	uint32_t offset, value;
	size_t which, width;

	for (; bytes >= 8; data += 8, bytes -= 8) {
		which = data[0] % PEM_ARRAY_SIZE(part);
		width = (size_t)1 << (data[0] >> 4) % 3;
		offset = (data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16) %
			 (uint32_t)(part[which].bytes / width);
		memcpy(&value, data + 4, sizeof(value));
		memcpy(part[which].at + offset * width, &value, width);
	}
}

static void make_control(struct pem_control_file *control, const char *name)
{
	struct pem_control_header *page =
		(struct pem_control_header *)((uint8_t *)control + PEM_PAGE_ALIGN);

	*control = (struct pem_control_file){.magic = PEM_CONTROL_MAGIC,
					     .abi_version = PEM_ABI_VERSION,
					     .pid = 1,
					     .pid_namespace = 0,
					     .provider_count = 1};
	control->provider[0].offset = PEM_PAGE_ALIGN;
	control->provider[0].bytes = PEM_PAGE_ALIGN * 2;
	*page = (struct pem_control_header){
		.abi_version = PEM_ABI_VERSION, .event_count = 2, .event_capacity = 64};
	strcpy(page->provider, name);
}

static void ignore(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
		   void *arg)
{
	(void)part;
	(void)owner;
	(void)arg;
}

static void read_statistics(void)
{
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_top top[32] = {{.size = sizeof(top[0])}};

	pem_statistics__read(statistics, &value, 1);
	pem_statistics__read(counts, &value, 1);
	pem_statistics__histogram(statistics, 0, &histogram);
	pem_statistics__top(statistics, 0, top, PEM_ARRAY_SIZE(top));
	pem_statistics__each(statistics, 0, ignore, NULL);
}

/* All that a session does with what it found. */
static void consume(void)
{
	struct pem_statistic_owner owners[4] = {{.size = sizeof(owners[0])}};
	struct pem_producer *p, *copy;

	pem_session__scan_members(session);
	pem_session__scan_producers(session);
	pem_session__publish(session);
	for (p = session->processes->producers; p; p = p->next) {
		pem_session__drain_producer(session, p, false);
		copy = pem_producer__copy(p);
		pem_producer__free(copy);
	}
	read_statistics();
	pem_session__processes(session, owners, PEM_ARRAY_SIZE(owners));
	for (p = session->processes->producers; p; p = p->next)
		p->dead = true;
	pem_session__release_gone(session);
	pem_session__leave_members(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pem_pool_header layout = {.abi_version = PEM_ABI_VERSION,
					 .chunk_bytes = CHUNK,
					 .chunk_count = CHUNKS,
					 .lane_count = LANES,
					 .event_capacity = EVENTS,
					 .pid = 0x3fffffff,
					 .start_clock = 1,
					 .control_name = "control-1-0"};
	struct pem_pool_header *pool;
	struct pem_ring ring;
	void *control;
	int runtime;

	if (!session)
		begin();
	layout.flags = PEM_POOL_FURTHER | (bytes && data[0] & 1 ? PEM_POOL_OVERWRITE : 0);
	pem_pool__layout(&layout);
	pool = make_file(session->directory_fd, "pool-1-1", layout.total_bytes);
	*pool = layout;
	pem_pool__point(pool, &layout, &ring);
	pem_pool__event_ids(&ring)[0] = free_id;
	pem_pool__event_ids(&ring)[1] = begin_id;
	fill(&ring);
	pool->magic = PEM_POOL_MAGIC;
	runtime = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	control = make_file(runtime, "control-1-0", CONTROL_BYTES);
	make_control(control, "fuzz");
	if (bytes)
		edit(pool, &layout, control, data + 1, bytes - 1);
	consume();
	munmap(pool, layout.total_bytes);
	munmap(control, CONTROL_BYTES);
	unlinkat(session->directory_fd, "pool-1-1", 0);
	unlinkat(runtime, "control-1-0", 0);
	close(runtime);
	if (++rounds % ROUNDS == 0)
		end();
	return 0;
}
