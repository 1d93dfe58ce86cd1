// SPDX-License-Identifier: MIT
/*
 * session_team.c - several threads move the chunks of pools to the log: each lane in order, nothing
 * lost, and damage stays where it is
 *
 * The pools are made here by hand, as other processes would. Not here: what becomes of each kind of
 * damage (session_drain.c).
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "ring_fixture.h"
#include "session_fixture.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FREE "APP::Libc::Free"
#define CHUNKS 128u
#define RECORDS 120u /* in a chunk */
#define POOLS 3u

static struct pem_session *session;
static struct pem_log *trace_log;
static uint32_t free_id;
static uint64_t next_value[POOLS][LANES];
static struct pool pools[POOLS];

static uint32_t pool_flags; /* of pools that are made */

static void open_session(uint32_t threads)
{
	const struct pem_session_options options = {.size = sizeof(options),
						    .chunk_bytes = CHUNK,
						    .chunk_count = CHUNKS,
						    .overwrite = pool_flags & PEM_POOL_OVERWRITE,
						    .drain_threads = threads};

	session = session_open(&options);
	session->geometry.lane_count = LANES;
	trace_log = log_to_trace(session, "APP", NULL);
	free_id = pem_model__by_name(session->model, FREE)->id;
	memset(next_value, 0, sizeof(next_value));
}

static int tear_down(void **state)
{
	unsigned i;

	pool_flags = 0;
	for (i = 0; i < POOLS; i++) {
		if (pools[i].header)
			pool_free(&pools[i]);
		pools[i].header = NULL;
	}
	pem_session__close(session);
	session = NULL;
	return folder_remove(state);
}

/* A pool in the session's folder; the producer is this process. */
static void make_pool_at(struct pool *pool, unsigned number)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "pool-%u-0", number + 1);
	pool->bytes = pool_format(NULL, pool_flags, CHUNKS);
	fd = openat(session->directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)pool->bytes), 0);
	pool->header = mmap(NULL, pool->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(pool->header, MAP_FAILED);
	close(fd);
	pool_format(pool->header, pool_flags, CHUNKS);
	pool->header->pid = (uint32_t)getpid();
	pool->header->start_clock = 1;
	strcpy(pool->header->comm, "by hand");
	assert_int_equal(pem_pool__open_ring(pool->header, pool->bytes, &pool->ring), 0);
	pem_pool__event_ids(&pool->ring)[0] = free_id;
}

static void make_pool(unsigned number)
{
	make_pool_at(&pools[number], number);
}

/* Full chunks of a lane. The value of each record says which pool, lane and turn it is of. */
static void fill(unsigned number, uint32_t lane, unsigned chunks)
{
	struct pem_writer w = writer_make(&pools[number].ring, lane);
	uint64_t value;
	unsigned i;

	while (chunks--) {
		assert_true(writer_claim(&pools[number].ring, &w, pem_clock()) >= 0);
		for (i = 0; i < RECORDS; i++) {
			value = (uint64_t)number << 40 | (uint64_t)lane << 32 |
				next_value[number][lane]++;
			assert_true(writer_put(&w, pem_clock(), free_id, 0, &value, 16));
		}
		pem_ring_retire(&pools[number].ring, &w);
	}
}

static void fill_all(unsigned chunks)
{
	uint32_t lane;
	unsigned i;

	for (i = 0; i < POOLS; i++) {
		for (lane = 1; lane < LANES; lane++)
			fill(i, lane, chunks);
	}
}

static void drain(void)
{
	pem_session__scan_producers(session);
	pem_session__drain_producers(session);
}

static unsigned busy_chunks(unsigned number)
{
	unsigned i, busy = 0;

	for (i = 0; i < CHUNKS; i++)
		busy += PEM_CHUNK_STATE(pools[number].ring.chunk_state[i]) != PEM_CHUNK_FREE;
	return busy;
}

/* Returns how many records the trace has. In each lane they must come in turn; gaps: some may miss.
 */
static uint64_t check_order(bool gaps)
{
	uint64_t expected[POOLS][LANES] = {{0}}, count = 0, value, *next;
	struct pem_record record = {.size = sizeof(record)};
	struct pem_error error = {""};
	struct pem_trace *trace;

	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	trace = pem_trace__open(trace_path, &error);
	assert_non_null(trace);
	while (pem_trace__next(trace, &record, &error) == 1) {
		value = pem_record__u64(&record, 0);
		assert_true(value >> 40 < POOLS && (value >> 32 & 0xff) < LANES);
		next = &expected[value >> 40][value >> 32 & 0xff];
		if (gaps)
			assert_true((uint32_t)value >= *next);
		else
			assert_int_equal((uint32_t)value, *next);
		*next = (uint32_t)value + 1;
		count++;
	}
	pem_trace__close(trace);
	return count;
}

static struct pem_balance balance(void)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(trace_path, &error);
	struct pem_balance b;

	assert_non_null(trace);
	b = pem_trace__total_balance(trace);
	pem_trace__close(trace);
	return b;
}

static void make_pools(void)
{
	unsigned i;

	for (i = 0; i < POOLS; i++)
		make_pool(i);
}

static void lanes_stay_in_order(void **state)
{
	struct pem_balance b;
	unsigned turn, i;

	(void)state;
	open_session(4);
	make_pools();
	for (turn = 0; turn < 20; turn++) {
		fill_all(turn == 1 ? 1 : 8);
		drain();
		for (i = 0; i < POOLS; i++)
			assert_int_equal(busy_chunks(i), 0);
	}
	assert_non_null(session->chunks->team);
	assert_int_equal(check_order(false), POOLS * (LANES - 1) * (19 * 8 + 1) * RECORDS);
	b = balance();
	assert_int_equal(b.produced, b.delivered);
	assert_int_equal(b.delivered, POOLS * (LANES - 1) * (19 * 8 + 1) * RECORDS);
}

static void one_lane_is_never_two_threads(void **state)
{
	(void)state;
	open_session(4);
	make_pool(0);
	fill(0, 1, 60);
	fill(0, 2, 60);
	fill(0, 3, 1);
	drain();
	assert_non_null(session->chunks->team);
	assert_int_equal(busy_chunks(0), 0);
	assert_int_equal(check_order(false), 121 * RECORDS);
}

static void few_chunks_start_no_thread(void **state)
{
	(void)state;
	open_session(4);
	make_pool(0);
	fill(0, 1, 30);
	fill(0, 2, 30);
	drain();
	assert_null(session->chunks->team);
	assert_int_equal(check_order(false), 60 * RECORDS);
}

static void one_thread_is_alone(void **state)
{
	(void)state;
	open_session(1);
	make_pool(0);
	fill(0, 1, 60);
	fill(0, 2, 60);
	drain();
	assert_null(session->chunks->team);
	assert_int_equal(check_order(false), 120 * RECORDS);
}

/* A chunk of each lane has a record of an event that nobody described; what follows it there is
 * lost. */
static void damage_stays_in_its_chunk(void **state)
{
	struct pem_record_header *header;
	struct pem_balance b;
	uint32_t i, word;
	unsigned damaged = 0;

	(void)state;
	open_session(4);
	make_pools();
	fill_all(8);
	for (i = 0; i < CHUNKS; i += 8) {
		word = pools[1].ring.chunk_state[i];
		if (PEM_CHUNK_STATE(word) != PEM_CHUNK_FULL)
			continue;
		header = (struct pem_record_header *)(chunk_at(&pools[1].ring, i) + 1) + 2 * 5;
		assert_int_equal(header->event_id, free_id);
		header->event_id = 0xdead;
		damaged++;
	}
	assert_true(damaged > 10);
	drain();
	assert_non_null(session->chunks->team);
	assert_int_equal(check_order(true),
			 POOLS * (LANES - 1) * 8 * RECORDS - damaged * (RECORDS - 5));
	b = balance();
	assert_int_equal(b.discarded, damaged * (RECORDS - 5));
	assert_int_equal(b.produced, b.delivered + b.discarded);
}

/* Disk errors in several threads at once: what was not written counts as lost, and all of it. */
static void full_disk_loses_and_counts(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct pem_trace_writer *w;
	struct pem_error error = {""};
	struct pem_balance b;
	size_t i;

	(void)state;
	if (full < 0)
		skip();
	open_session(4);
	make_pools();
	fill_all(8);
	drain();
	w = trace_log->writer;
	for (i = 0; i < w->stream_count; i++)
		assert_true(dup2(full, w->streams[i]->fd) >= 0);
	close(full);
	fill_all(8);
	drain();
	pem_log__finish(trace_log, &error);
	b = balance();
	assert_int_equal(b.produced, 2 * POOLS * (LANES - 1) * 8 * RECORDS);
	assert_int_equal(b.delivered, POOLS * (LANES - 1) * 8 * RECORDS);
	assert_int_equal(b.discarded, b.delivered);
}

/* A process may cut its pool off while the threads copy from it. */
static void a_pool_that_is_cut_harms_no_other(void **state)
{
	char path[sizeof(session->directory) + 16];

	(void)state;
	open_session(4);
	make_pools();
	fill_all(8);
	pem_session__scan_producers(session);
	snprintf(path, sizeof(path), "%s/pool-2-0", session->directory);
	assert_int_equal(truncate(path, 4096), 0);
	pem_session__drain_producers(session);
	assert_int_equal(busy_chunks(0), 0);
	assert_int_equal(busy_chunks(2), 0);
	munmap(pools[1].header, pools[1].bytes);
	pools[1].header = NULL;
	assert_int_equal(check_order(true), 2 * (LANES - 1) * 8 * RECORDS);
}

/* Files may grow no further in the middle of a batch, whichever thread finds out first. */
static void no_stream_is_torn_by_a_full_disk(void **state)
{
	struct rlimit was, few = {20000, RLIM_INFINITY};
	struct pem_error error = {""};
	struct pem_trace *trace;

	(void)state;
	open_session(4);
	make_pools();
	fill_all(8);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	few.rlim_max = was.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	drain();
	fill_all(8);
	drain();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(pem_trace_writer__failed(trace_log->writer), -EFBIG);
	pem_log__finish(trace_log, &error);
	trace = pem_trace__open(trace_path, &error);
	assert_non_null(trace);
	while (pem_trace__next(trace, &(struct pem_record){.size = sizeof(struct pem_record)},
			       &error) == 1)
		;
	assert_int_equal(pem_trace__torn_packets(trace), 0);
	pem_trace__close(trace);
}

/* A process that lives may bring new events while its last records are moved. */
static void the_end_of_a_living_process_has_one_thread(void **state)
{
	struct pem_producer *p;

	(void)state;
	open_session(4);
	make_pools();
	fill_all(8);
	pem_session__scan_producers(session);
	for (p = session->processes->producers; p; p = p->next)
		pem_session__drain_producer(session, p, true);
	assert_null(session->chunks->team);
	for (p = session->processes->producers; p; p = p->next)
		p->dead = true;
	fill_all(8);
	for (p = session->processes->producers; p; p = p->next)
		pem_session__drain_producer(session, p, true);
	assert_non_null(session->chunks->team);
	assert_int_equal(check_order(false), 2 * POOLS * (LANES - 1) * 8 * RECORDS);
}

/* More processes than are drained together, each with a few chunks. */
static void many_processes_are_drained(void **state)
{
	static struct pool many[150];
	struct pem_balance b;
	unsigned i;

	(void)state;
	open_session(4);
	for (i = 0; i < 150; i++) {
		make_pool_at(&many[i], i);
		pools[0] = many[i];
		next_value[0][1] = next_value[0][2] = 0;
		fill(0, 1, 1);
		fill(0, 2, 1);
	}
	drain();
	for (i = 0; i < 150; i++) {
		pools[0] = many[i];
		assert_int_equal(busy_chunks(0), 0);
		pool_free(&many[i]);
	}
	pools[0].header = NULL;
	assert_non_null(session->chunks->team);
	pem_log__finish(trace_log, NULL);
	b = balance();
	assert_int_equal(b.delivered, 150 * 2 * RECORDS);
	assert_int_equal(b.produced, b.delivered);
}

/* What flight recorders keep goes to one memory, which is one thread's. */
static void flight_recorders_have_one_thread(void **state)
{
	struct pem_producer *p;

	(void)state;
	pool_flags = PEM_POOL_OVERWRITE;
	open_session(4);
	make_pools();
	fill_all(8);
	pem_session__scan_producers(session);
	for (p = session->processes->producers; p; p = p->next) {
		p->dead = true;
		pem_session__drain_producer(session, p, true);
	}
	assert_null(session->chunks->team);
}

/* A consumer's child has its session, and none of its threads. */
static void a_child_can_close_the_session(void **state)
{
	int status;
	pid_t child;

	(void)state;
	open_session(4);
	make_pools();
	fill_all(8);
	drain();
	assert_non_null(session->chunks->team);
	fill_all(8);
	child = fork();
	if (!child) {
		alarm(600);
		pem_session__drain_producers(session);
		pem_session__close(session);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, tear_down)
	/* The one that is cut is first: cmocka takes SIGBUS for itself when a later test begins. */
	const struct CMUnitTest tests[] = {
		TEST(a_pool_that_is_cut_harms_no_other),
		TEST(lanes_stay_in_order),
		TEST(one_lane_is_never_two_threads),
		TEST(few_chunks_start_no_thread),
		TEST(one_thread_is_alone),
		TEST(damage_stays_in_its_chunk),
		TEST(full_disk_loses_and_counts),
		TEST(no_stream_is_torn_by_a_full_disk),
		TEST(the_end_of_a_living_process_has_one_thread),
		TEST(many_processes_are_drained),
		TEST(flight_recorders_have_one_thread),
		TEST(a_child_can_close_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
