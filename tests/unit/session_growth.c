// SPDX-License-Identifier: MIT
/*
 * session_growth.c - a pool of the default size grows while the session can't keep up, and no other
 * pool does
 *
 * The pools are made here by hand, as another process would. What the machine has free, and in
 * which control groups this process is, decides as it does anywhere: where that allows no growth,
 * there is nothing to test.
 */
#include "chunks/chunks.h"
#include "chunks/free_memory.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "ring_fixture.h"
#include "session_fixture.h"

#include <pem/clock.h>

#include <fcntl.h>
#include <sys/wait.h>

#define FREE "APP::Libc::Free"
#define FIRST 64u
#define MOST 256u

static struct pem_session *session;
static struct pem_log *trace_log;
static struct pool pool;
static uint32_t free_id;

/* A session whose pools are small; limit 0: they do not grow. */
static void open_session(uint32_t limit)
{
	const struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = CHUNK, .chunk_count = MOST};

	session = session_open(&options);
	session->geometry.lane_count = LANES;
	session->geometry.chunk_limit = limit;
	trace_log = log_to_trace(session, "APP", NULL);
	free_id = pem_model__by_name(session->model, FREE)->id;
}

static int tear_down(void **state)
{
	if (pool.header)
		pool_free(&pool);
	pool.header = NULL;
	pem_session__close(session);
	return folder_remove(state);
}

static void make_pool(const char *name, uint32_t chunks, uint32_t limit)
{
	int fd = openat(session->directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	pool.bytes = pool_format(NULL, 0, chunks);
	assert_int_equal(ftruncate(fd, (off_t)pool.bytes), 0);
	pool.header = mmap(NULL, pool.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(pool.header, MAP_FAILED);
	close(fd);
	pool_format(pool.header, 0, chunks);
	pool.header->pid = (uint32_t)getpid();
	pool.header->start_clock = pem_clock();
	pool.header->chunk_limit = limit;
	strcpy(pool.header->comm, "by hand");
	assert_int_equal(pem_pool__open_ring(pool.header, pool.bytes, &pool.ring), 0);
	pem_pool__event_ids(&pool.ring)[0] = free_id;
}

/* Full chunks of a lane, as many as there is room for, up to count. Returns how many. */
static unsigned fill(unsigned count)
{
	struct pem_writer w = writer_make(&pool.ring, 1);
	const uint64_t address = 0x1000;
	unsigned i;

	for (i = 0; i < count; i++) {
		if (writer_claim(&pool.ring, &w, pem_clock()) < 0)
			break;
		assert_true(writer_put(&w, pem_clock(), free_id, 0, &address, 16));
		pem_ring_retire(&pool.ring, &w);
	}
	return i;
}

static void drain(void)
{
	pem_session__scan_producers(session);
	pem_session__drain_producers(session);
}

static void check_complete(unsigned records)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t frees;

	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	assert_int_equal(read_trace(FREE, &frees, &balance), records);
	assert_int_equal(balance.produced, records);
	assert_int_equal(balance.delivered, records);
}

static void chunks_beyond_the_limit_are_not_used(void **state)
{
	(void)state;
	open_session(FIRST);
	make_pool("pool-1-0", MOST, FIRST);
	assert_int_equal(fill(MOST), FIRST);
	assert_int_equal(pem_ring_find(&pool.ring), -1);
	drain();
	check_complete(FIRST);
}

/* No pool grows if memory is short, or if the groups that limit it can't be read. */
static void skip_without_memory(void)
{
	if (pool.header->chunk_limit != FIRST)
		return;
	if (session->chunks->next_growth_ns)
		print_message("too little memory is free\n");
	else if (!pem_process_groups__allow((uint32_t)getpid(), 1))
		print_message("the control groups of this process are not mounted\n");
	else
		return;
	skip();
}

static void a_pool_that_is_a_quarter_full_grows(void **state)
{
	uint32_t freed;

	(void)state;
	open_session(FIRST);
	make_pool("pool-1-0", MOST, FIRST);
	fill(FIRST / 4 - 1);
	drain();
	assert_int_equal(pool.header->chunk_limit, FIRST);
	fill(FIRST);
	freed = pool.header->freed;
	drain();
	skip_without_memory();
	assert_int_equal(pool.header->chunk_limit, 2 * FIRST);
	assert_int_equal(pool.header->freed, freed + 2); /* it grew, and chunks were freed */
	assert_int_equal(fill(MOST), 2 * FIRST);
	drain();
	assert_int_equal(pool.header->chunk_limit, MOST);
	assert_int_equal(fill(2 * MOST), MOST);
	drain();
	assert_int_equal(pool.header->chunk_limit, MOST);
	check_complete(FIRST / 4 - 1 + FIRST + 2 * FIRST + MOST);
}

/* What one process may not have is no reason for others. */
static void a_process_that_is_gone_keeps_none_from_growing(void **state)
{
	struct pool gone;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	open_session(FIRST);
	make_pool("pool-2-0", MOST, FIRST);
	pem_session__scan_producers(session); /* the one found last is looked at first */
	gone = pool;
	make_pool("pool-1-0", MOST, FIRST);
	gone.header->pid = (uint32_t)child;
	fill(FIRST);
	drain();
	skip_without_memory();
	assert_int_equal(pool.header->chunk_limit, 2 * FIRST);
	pool_free(&gone);
}

/* A refusal for the machine's memory holds for a second, for all pools. */
static void no_pool_grows_before_its_time(void **state)
{
	(void)state;
	open_session(FIRST);
	make_pool("pool-1-0", MOST, FIRST);
	session->chunks->next_growth_ns = UINT64_MAX;
	fill(FIRST);
	drain();
	assert_int_equal(pool.header->chunk_limit, FIRST);
	session->chunks->next_growth_ns = 0;
	session->processes->producers->next_growth_ns = UINT64_MAX;
	fill(FIRST);
	drain();
	assert_int_equal(pool.header->chunk_limit, FIRST);
	check_complete(2 * FIRST);
}

/* What all pools may take counts, whether they have taken it or not. */
static void pools_share_what_is_free(void **state)
{
	struct pool other;
	struct pem_producer *p;

	(void)state;
	open_session(FIRST);
	make_pool("pool-2-0", MOST, FIRST);
	pem_session__scan_producers(session);
	other = pool;
	make_pool("pool-1-0", MOST, FIRST);
	pem_session__scan_producers(session);
	for (p = session->processes->producers; strcmp(p->name, "2-0") != 0; p = p->next)
		;
	p->chunk_limit = ~0u; /* 16 TiB */
	p->turn = session->dirs->turn + 1; /* it was drained in the next turn already */
	fill(FIRST);
	drain();
	assert_int_equal(pool.header->chunk_limit, FIRST);
	assert_true(session->chunks->next_growth_ns != 0);
	p->chunk_limit = FIRST;
	pool_free(&other);
}

static void a_pool_of_a_size_asked_for_stays(void **state)
{
	(void)state;
	open_session(0);
	make_pool("pool-1-0", MOST, 0);
	assert_int_equal(fill(2 * MOST), MOST);
	drain();
	assert_int_equal(pool.header->chunk_limit, 0);
	check_complete(MOST);
}

/* A process with limited address space makes a pool that can't grow. */
static void a_small_pool_is_taken_and_stays(void **state)
{
	(void)state;
	open_session(FIRST);
	make_pool("pool-1-0", FIRST, FIRST);
	assert_int_equal(fill(MOST), FIRST);
	drain();
	assert_int_equal(session->processes->producers->ring.chunk_count, FIRST);
	assert_int_equal(fill(MOST), FIRST);
	drain();
	check_complete(2 * FIRST);
}

/* What a pool says of itself may be anything. */
static void wrong_limits_do_no_harm(void **state)
{
	static const uint32_t limits[] = {1, MOST + 1, ~0u};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		open_session(FIRST);
		make_pool("pool-1-0", MOST, limits[i]);
		fill(2 * MOST);
		drain();
		assert_non_null(session->processes->producers);
		assert_true(session->processes->producers->chunk_limit <= MOST);
		tear_down(state);
		assert_int_equal(folder_make(state), 0);
	}
	open_session(FIRST);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(chunks_beyond_the_limit_are_not_used),
		TEST(a_pool_that_is_a_quarter_full_grows),
		TEST(a_process_that_is_gone_keeps_none_from_growing),
		TEST(no_pool_grows_before_its_time),
		TEST(pools_share_what_is_free),
		TEST(a_pool_of_a_size_asked_for_stays),
		TEST(a_small_pool_is_taken_and_stays),
		TEST(wrong_limits_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
