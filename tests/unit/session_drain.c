// SPDX-License-Identifier: MIT
/*
 * session_drain.c - the recorder reads pools that other programs write: honest ones to the last
 * record, damaged ones without harm, and never anything that was not raised
 *
 * The pools are made here by hand, as another process would, and damaged member by member, then at
 * random. What is delivered is read back with pem's reader, which must find each record sound.
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "util.h"
#include "ring_fixture.h"
#include "session_fixture.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define FREE "APP::Libc::Free"
#define BEGIN "APP::Phase::Begin"
#define CHUNKS 8u
#define ROUNDS 300u

static struct pem_session *session;
static struct pem_log *trace_log;
static uint32_t free_id, begin_id;
static char said[4096]; /* the session's messages */

static void note_message(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	strncat(said, text, sizeof(said) - strlen(said) - 1);
}

static int set_up(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options),
						    .chunk_bytes = CHUNK,
						    .chunk_count = CHUNKS,
						    .log = note_message};

	if (folder_make(state))
		return -1;
	said[0] = 0;
	session = session_open(&options);
	session->geometry.lane_count = LANES;
	trace_log = log_to_trace(session, "APP", NULL);
	free_id = pem_model__by_name(session->model, FREE)->id;
	begin_id = pem_model__by_name(session->model, BEGIN)->id;
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

/* Slot 0 is Free, slot 1 Begin; the producer is this process, which lives. */
static struct pool pool_in_session(const char *name, uint32_t flags)
{
	struct pool pool = {.bytes = pool_format(NULL, flags, CHUNKS)};
	uint32_t *ids;
	int fd;

	fd = openat(session->directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)pool.bytes), 0);
	pool.header = mmap(NULL, pool.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(pool.header, MAP_FAILED);
	close(fd);
	pool_format(pool.header, flags, CHUNKS);
	pool.header->pid = (uint32_t)getpid();
	pool.header->start_clock = pem_clock();
	strcpy(pool.header->comm, "by hand");
	assert_int_equal(pem_pool__open_ring(pool.header, pool.bytes, &pool.ring), 0);
	ids = pem_pool__event_ids(&pool.ring);
	ids[0] = free_id;
	ids[1] = begin_id;
	return pool;
}

static void put_free(struct pem_writer *w, unsigned count)
{
	static const uint64_t address = 0x1000;

	while (count--)
		assert_true(writer_put(w, pem_clock(), free_id, 0, &address, 16));
}

/* A lane that has one full chunk of count records. */
static struct pem_writer full_chunk(struct pool *pool, uint32_t lane, unsigned count)
{
	struct pem_writer w = writer_make(&pool->ring, lane);

	assert_true(writer_claim(&pool->ring, &w, pem_clock()) >= 0);
	put_free(&w, count);
	pem_ring_retire(&pool->ring, &w);
	return w;
}

/* Finish the log; records in the trace. */
static uint64_t finish(struct pem_balance *balance)
{
	uint64_t frees, count;
	struct pem_error error = {""};

	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	count = read_trace(FREE, &frees, balance);
	assert_int_equal(balance->delivered, count);
	return count;
}

static void check(uint64_t delivered, uint64_t discarded)
{
	struct pem_balance b;

	assert_int_equal(finish(&b), delivered);
	assert_int_equal(b.discarded, discarded);
	assert_int_equal(b.produced, delivered + discarded);
	assert_int_equal(b.overwritten, 0);
}

static void drain(void)
{
	struct pem_producer *p;

	pem_session__scan_producers(session);
	for (p = session->processes->producers; p; p = p->next)
		pem_session__drain_producer(session, p, false);
}

static void full_and_owned_chunks_are_delivered(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);
	struct pem_writer w = full_chunk(&pool, 1, 10);

	(void)state;
	drain();
	assert_int_equal(pool.ring.chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0));
	assert_int_equal(pool.header->freed, 1);
	writer_claim(&pool.ring, &w, pem_clock());
	put_free(&w, 5);
	drain(); /* one that is owned waits for the end */
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_OWNED);
	check(15, 0);
	pool_free(&pool);
}

static void packets_of_a_lane_come_in_turn(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);
	struct pem_writer w = writer_make(&pool.ring, 1);

	(void)state;
	/* The second chunk in time lies before the first. */
	pool.ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 2);
	writer_claim(&pool.ring, &w, pem_clock());
	put_free(&w, 3);
	pool.ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0);
	pool.header->chunk_hint = 0;
	/* The scan sees the later one full, and the earlier not yet. */
	{
		struct pem_writer later = w;

		later.packet = NULL;
		assert_int_equal(writer_claim(&pool.ring, &later, pem_clock()), 0);
		put_free(&later, 4);
		pem_ring_retire(&pool.ring, &later);
		drain();
		assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FULL);
		pem_ring_retire(&pool.ring, &w);
		drain();
		assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FREE);
		assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[1]), PEM_CHUNK_FREE);
	}
	check(7, 0);
	pool_free(&pool);
}

static void a_claimed_chunk_is_not_read_twice(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);

	(void)state;
	full_chunk(&pool, 1, 10);
	drain();
	/* A thread of another lane found the chunk, and was killed before it began it. */
	writer_make(&pool.ring, 2);
	assert_int_equal(pem_ring_find(&pool.ring), 0);
	check(10, 0);
	pool_free(&pool);
}

static void unknown_event_cuts_the_packet(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);
	struct pem_writer w = writer_make(&pool.ring, 1);
	uint64_t address = 1;

	(void)state;
	writer_claim(&pool.ring, &w, pem_clock());
	put_free(&w, 2);
	writer_put(&w, pem_clock(), 0xbad, 0, &address, 16);
	put_free(&w, 2);
	pem_ring_retire(&pool.ring, &w);
	check(2, 3);
	pool_free(&pool);
}

static void unended_string_cuts_the_packet(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);
	struct pem_writer w = writer_make(&pool.ring, 1);

	(void)state;
	writer_claim(&pool.ring, &w, pem_clock());
	put_free(&w, 2);
	writer_put(&w, pem_clock(), begin_id, 1, "abcdefgh", 16);
	pem_ring_retire(&pool.ring, &w);
	memset(w.cells + 2, 'x', 64);
	check(2, 1);
	pool_free(&pool);
}

static void wrong_content_size_yields_nothing(void **state)
{
	static const uint64_t bits[] = {0,
					7,
					PEM_PACKET_HEADER_BYTES * 8 - 8,
					(PEM_PACKET_HEADER_BYTES + 16) * 8 + 1,
					(CHUNK + 1) * 8,
					1ull << 40,
					~0ull,
					~7ull};
	struct pool pool = pool_in_session("pool-1-0", 0);
	size_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		full_chunk(&pool, (uint32_t)i + 1, 3);
		chunk_at(&pool.ring, (uint32_t)i)->content_size = bits[i];
	}
	drain();
	full_chunk(&pool, 9, 3);
	drain();
	assert_int_equal(finish(&(struct pem_balance){0}), 3);
	pool_free(&pool);
}

static void content_beyond_the_records_is_cut(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);

	(void)state;
	full_chunk(&pool, 1, 3);
	chunk_at(&pool.ring, 0)->content_size = CHUNK * 8;
	check(3, 0);
	pool_free(&pool);
}

static void chunk_states_out_of_range(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);

	(void)state;
	full_chunk(&pool, 1, 3);
	pool.ring.chunk_state[1] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, LANES);
	pool.ring.chunk_state[2] = 0xffffffffu;
	pool.ring.chunk_state[3] = PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 0x3fffffffu);
	pool.ring.chunk_state[4] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, 0);
	drain();
	check(3, 0);
	pool_free(&pool);
}

static void packet_numbers_out_of_turn(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);
	struct pem_writer w = full_chunk(&pool, 1, 3);

	(void)state;
	chunk_at(&pool.ring, 0)->packet_seq_num = ~0ull;
	full_chunk(&pool, 2, 3);
	drain();
	writer_claim(&pool.ring, &w, pem_clock());
	put_free(&w, 2);
	pem_ring_retire(&pool.ring, &w);
	drain();
	assert_true(finish(&(struct pem_balance){0}) >= 3);
	pool_free(&pool);
}

/* Records of a time that has not come, or that lie hours apart, were never raised. */
static void clocks_of_the_future_are_not_believed(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0);
	struct pem_writer w = writer_make(&pool.ring, 1);
	uint64_t now = pem_clock();

	(void)state;
	full_chunk(&pool, 2, 3);
	chunk_at(&pool.ring, 0)->timestamp_begin = now + (1ull << 50);
	writer_claim(&pool.ring, &w, now);
	put_free(&w, 2);
	/* The second before the first: read as 2^32 later. */
	((struct pem_record_header *)(w.cursor - 16))->clock_low -= 1u << 31;
	pem_ring_retire(&pool.ring, &w);
	check(1, 4);
	pool_free(&pool);
}

static void one_pool_does_not_harm_another(void **state)
{
	struct pool good = pool_in_session("pool-1-0", 0), bad = pool_in_session("pool-2-0", 0);

	(void)state;
	bad.header->pid = 2;
	full_chunk(&good, 1, 10);
	full_chunk(&bad, 1, 10);
	chunk_at(&bad.ring, 0)->content_size = ~0ull;
	drain();
	full_chunk(&good, 2, 10);
	assert_int_equal(finish(&(struct pem_balance){0}), 20);
	pool_free(&good);
	pool_free(&bad);
}

static void files_that_are_no_pools(void **state)
{
	static const char long_name[] =
		"pool-0123456789012345678901234567890123456789012345678901234567890123456789";
	struct pool pool = pool_in_session("pool-1-0", 0), wrong[5];
	char link[PATH_MAX];
	int fd, i;

	(void)state;
	full_chunk(&pool, 1, 1);
	mkdirat(session->directory_fd, "pool-3-0", 0700);
	snprintf(link, sizeof(link), "%s/pool-1-0", session->directory);
	assert_int_equal(symlinkat(link, session->directory_fd, "pool-4-0"), 0);
	assert_int_equal(mkfifoat(session->directory_fd, "pool-5-0", 0600), 0);
	fd = openat(session->directory_fd, "pool-6-0", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "PEMP", 4), 4);
	close(fd);
	wrong[0] = pool_in_session("pool-7-0", 0);
	wrong[0].header->session_index = PEM_SESSIONS_MAX;
	/* Refused: their records must not arrive. */
	wrong[1] = pool_in_session("pool-8-0", 0);
	full_chunk(&wrong[1], 1, 1);
	wrong[1].header->chunk_bytes = 8192;
	wrong[2] = pool_in_session("pool-9-0", 0);
	memset(wrong[2].header->control_name, '/', sizeof(wrong[2].header->control_name));
	memset(wrong[2].header->comm, 'c', sizeof(wrong[2].header->comm));
	wrong[3] = pool_in_session("pool-10-0", 0);
	strcpy(wrong[3].header->control_name, "control-/../../../etc/passwd");
	wrong[3].header->pid = 0xffffffffu;
	wrong[4] = pool_in_session(long_name, 0);
	full_chunk(&wrong[4], 1, 1);
	drain();
	drain();
	check(1, 0);
	for (i = 0; i < 5; i++)
		pool_free(&wrong[i]);
	pool_free(&pool);
	unlinkat(session->directory_fd, "pool-3-0", AT_REMOVEDIR);
}

static uint64_t told; /* the addresses of gates that were told, one bit each */

static void note_found(struct pem_session *s, uint32_t pid, uint64_t address)
{
	(void)s;
	assert_int_equal(pid, getpid());
	told |= address;
}

static int note_set(struct pem_source *source, pid_t pid, uint64_t address)
{
	(void)source;
	assert_int_equal(pid, getpid());
	told |= address;
	return 0;
}

/* Its number may be that of another process here, whose gates are elsewhere. */
static void gates_of_a_process_without_a_pid_here_are_not_told(void **state)
{
	const struct pem_source_ops ops = {.set_gates = note_set};
	const struct pem_instance instance = {.ops = &ops};
	static struct pem_session_hooks hooks;
	struct pool here = pool_in_session("pool-1-0", 0),
		    elsewhere = pool_in_session("pool-2-0", 0);

	(void)state;
	if (!pem_pid_namespace())
		skip();
	hooks = *session->hooks;
	hooks.gates_found = note_found;
	session->hooks = &hooks;
	here.header->gates = 0x1000;
	elsewhere.header->gates = 0x2000;
	here.header->pid_namespace = pem_pid_namespace();
	elsewhere.header->pid_namespace = pem_pid_namespace() + 1;
	told = 0;
	drain();
	assert_int_equal(told, 0x1000);
	told = 0;
	pem_session__tell_gates(session, &instance);
	assert_int_equal(told, 0x1000);
	pem_session__close(session);
	session = NULL;
	pool_free(&here);
	pool_free(&elsewhere);
}

/* A producer killed between taking a full chunk and counting as overwritten what it held. */
static void half_reclaimed_chunk_is_accounted_for(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", PEM_POOL_OVERWRITE);
	struct pem_balance b;

	(void)state;
	session->geometry.flags |= PEM_POOL_OVERWRITE;
	full_chunk(&pool, 1, 10);
	full_chunk(&pool, 2, 5);
	pool.ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 0);
	assert_int_equal(finish(&b), 5);
	assert_int_equal(b.produced, 15);
	assert_int_equal(b.overwritten, 10);
	assert_int_equal(b.discarded, 0);
	pool_free(&pool);
}

static void noise(struct pool *pool, unsigned *seed)
{
	uint32_t *words[] = {pool->ring.chunk_state,        pem_pool__event_ids(&pool->ring),
			     (uint32_t *)pool->ring.lanes,  (uint32_t *)pool->ring.cells,
			     (uint32_t *)pool->ring.chunks, (uint32_t *)pool->header + 64};
	static const unsigned counts[] = {CHUNKS, 8, LANES * 16, 64, CHUNKS * CHUNK / 4, 16};
	unsigned i, part;

	for (i = 0; i < 20; i++) {
		part = (unsigned)rand_r(seed) % 6;
		words[part][(unsigned)rand_r(seed) % counts[part]] =
			(uint32_t)rand_r(seed) >> (rand_r(seed) % 31);
	}
}

/* Records of Free in the trace with the address that put_free gives them. */
static uint64_t honest_records(void)
{
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace = pem_trace__open(trace_path, &error);
	uint64_t count = 0;

	assert_non_null(trace);
	while (pem_trace__next(trace, &record, &error) == 1)
		count += !strcmp(record.event->name, FREE) && pem_record__u64(&record, 0) == 0x1000;
	pem_trace__close(trace);
	return count;
}

/*
 * However a pool is damaged, what it brings is sound (finish() reads it), the damage is told of,
 * and another pool loses nothing. The counts of the damaged one are not checked: a session believes
 * those of its own user.
 */
static void random_damage(void **state)
{
	struct pool pool = pool_in_session("pool-1-0", 0), good = pool_in_session("pool-2-0", 0);
	unsigned seed = 20261121, round;
	struct pem_balance b;
	uint32_t i;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < CHUNKS; i++) {
			struct pem_writer w = writer_make(&pool.ring, i + 1);
			uint64_t address = round;

			pool.ring.chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_OWNED, i + 1);
			pem_ring_start(&pool.ring, &w, i, pem_clock(), 1, 1);
			while (writer_put(&w, pem_clock(), free_id, 0, &address, 16) &&
			       w.record_count < 100)
				;
			pem_ring_retire(&pool.ring, &w);
		}
		noise(&pool, &seed);
		full_chunk(&good, 1, 10);
		drain();
	}
	assert_true(finish(&b) > ROUNDS * 10);
	assert_int_equal(honest_records(), ROUNDS * 10);
	assert_non_null(strstr(said, "held records that do not match its event descriptions"));
	pool_free(&pool);
	pool_free(&good);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(full_and_owned_chunks_are_delivered),
		TEST(packets_of_a_lane_come_in_turn),
		TEST(a_claimed_chunk_is_not_read_twice),
		TEST(unknown_event_cuts_the_packet),
		TEST(unended_string_cuts_the_packet),
		TEST(wrong_content_size_yields_nothing),
		TEST(content_beyond_the_records_is_cut),
		TEST(chunk_states_out_of_range),
		TEST(packet_numbers_out_of_turn),
		TEST(clocks_of_the_future_are_not_believed),
		TEST(one_pool_does_not_harm_another),
		TEST(files_that_are_no_pools),
		TEST(gates_of_a_process_without_a_pid_here_are_not_told),
		TEST(half_reclaimed_chunk_is_accounted_for),
		TEST(random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
