// SPDX-License-Identifier: MIT
/*
 * session_limits.c - what a runtime folder's owner can make a recorder do: read, open, map and wait
 *
 * Not here: damage within a pool of the right form (session_drain.c).
 */
#include "chunks/chunks.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "dirs_fixture.h"

static void models_of_a_dir_are_limited(void **state)
{
	struct pool pool = make_pool(dir[1], 1, &usual);
	char name[32], specifier[16], *text;
	uint32_t i, hash;

	(void)state;
	for (i = 0; i < 400; i++) {
		snprintf(specifier, sizeof(specifier), "E%u", i);
		text = model_text(specifier, "value", "uint32");
		hash = pem_model__hash(text, strlen(text));
		snprintf(name, sizeof(name), "model-%08x", hash);
		write_file(dir[1], name, text);
		pem_pool__event_models(&pool.ring)[i] = hash;
		pem_pool__event_ids(&pool.ring)[i] = id_of(text);
		free(text);
	}
	scan();
	assert_int_equal(dir[1]->usage.used[PEM_RESOURCE_MODELS], 256);
	assert_int_equal(dir[1]->usage.used[PEM_RESOURCE_EVENTS], 256);
	assert_int_equal(dir[1]->usage.excess[PEM_EXCESS_MODELS], 400 - 256);
	assert_true(has_gap("144 events of programs of user"));
	pool_free(&pool);
}

/* Texts that are large, and can't be parsed. */
static void bytes_of_models_are_limited(void **state)
{
	struct pool pool = make_pool(dir[1], 1, &usual);
	static char text[900000];
	char name[32];
	uint32_t i, hash;

	(void)state;
	assert_true(pem_dir__take(session, dir[1], PEM_RESOURCE_MODEL_BYTES, 7u << 20));
	for (i = 0; i < 4; i++) {
		memset(text, '#', sizeof(text) - 1);
		text[i] = '!';
		/* fits, where the others don't */
		if (i == 3)
			text[850000] = 0;
		hash = pem_model__hash(text, strlen(text));
		snprintf(name, sizeof(name), "model-%08x", hash);
		write_file(dir[1], name, text);
		pem_pool__event_models(&pool.ring)[i] = hash;
		pem_pool__event_ids(&pool.ring)[i] = 1000 + i;
	}
	scan();
	/* One at a time there is room for them; then they are not kept. */
	assert_int_equal(dir[1]->usage.used[PEM_RESOURCE_MODEL_BYTES], 7u << 20);
	assert_int_equal(dir[1]->usage.excess[PEM_EXCESS_FALSE_MODELS], 4);
	pool_free(&pool);
}

static void one_dir_leaves_room_for_the_next(void **state)
{
	unsigned i;

	(void)state;
	/* All but 100 are taken by directories that came before. */
	session->dirs->used_by_others[PEM_RESOURCE_EVENTS] = 2048 - 100;
	for (i = 0; pem_dir__take(session, dir[1], PEM_RESOURCE_EVENTS, 1); i++)
		;
	assert_int_equal(i, 50);
	for (i = 0; pem_dir__take(session, dir[2], PEM_RESOURCE_EVENTS, 1); i++)
		;
	assert_int_equal(i, 25);
	for (i = 0; i < 5000; i++)
		assert_true(pem_dir__take(session, dir[0], PEM_RESOURCE_EVENTS, 1));
	session->dirs->used_by_others[PEM_RESOURCE_EVENTS] = 75;
}

static void pools_of_another_geometry_are_refused(void **state)
{
	const struct pem_pool_geometry others[] = {
		{PEM_POOL_OVERWRITE | PEM_POOL_FURTHER, CHUNK, CHUNKS, LANES, EVENTS, 0},
		{0, CHUNK, CHUNKS, LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, 2 * CHUNK, CHUNKS, LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, CHUNK, CHUNKS / 2, LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, CHUNK, 2 * CHUNKS, LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, CHUNK, CHUNKS, 2 * LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, CHUNK, CHUNKS, LANES, EVENTS / 2, 0},
	};
	struct pool pool[7];
	unsigned i;

	(void)state;
	for (i = 0; i < 7; i++)
		pool[i] = make_pool(dir[0], i, &others[i]);
	scan();
	assert_int_equal(producers_of(dir[0]), 0);
	assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_GEOMETRY], 7);
	assert_non_null(strstr(said, "are no pools of this recording"));
	scan();
	scan();
	assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_GEOMETRY], 7);
	assert_true(has_gap("7 files of user"));
	for (i = 0; i < 7; i++)
		pool_free(&pool[i]);
}

static const struct pem_pool_geometry wrong = {PEM_POOL_FURTHER, CHUNK, CHUNKS, LANES,
					       EVENTS / 2,       0};

/* One file: of several, two may share an entry of the table, and are opened again. */
static void a_refused_file_is_opened_once(void **state)
{
	struct pool pool = make_pool(dir[0], 1, &wrong);
	struct stat before, st;
	mode_t mode = 0600;

	(void)state;
	assert_int_equal(fstatat(dir[0]->directory_fd, "pool-1-1", &before, 0), 0);
	scan();
	assert_int_equal(dir[0]->usage.files_opened, 1);
	scan();
	scan();
	assert_int_equal(dir[0]->usage.files_opened, 1);
	assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_GEOMETRY], 1);
	/* The file changes. The clock of its ctime goes on only some hundred times a second. */
	do {
		mode ^= 0100;
		assert_int_equal(fchmodat(dir[0]->directory_fd, "pool-1-1", mode, 0), 0);
		assert_int_equal(fstatat(dir[0]->directory_fd, "pool-1-1", &st, 0), 0);
	} while (!memcmp(&st.st_ctim, &before.st_ctim, sizeof(st.st_ctim)));
	scan();
	assert_int_equal(dir[0]->usage.files_opened, 2);
	assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_GEOMETRY], 1);
	pool_free(&pool);
}

/* More files than the table has entries: those that share one are opened again, and count once. */
static void refused_files_may_share_an_entry(void **state)
{
	enum { FILES = PEM_REFUSED_FILES + 1 };
	struct pool pool;
	unsigned i;

	(void)state;
	for (i = 0; i < FILES; i++) {
		pool = make_pool(dir[0], i, &wrong);
		pool_free(&pool);
	}
	scan();
	assert_int_equal(dir[0]->usage.files_opened, FILES);
	scan();
	scan();
	assert_true(dir[0]->usage.files_opened > FILES);
	assert_true(dir[0]->usage.files_opened < 3 * FILES);
	assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_GEOMETRY], FILES);
}

/* An entry is of one file: a pool is taken though a file of its ctime was refused. */
static void another_files_entry_refuses_nothing(void **state)
{
	struct pool pool = make_pool(dir[0], 1, &wrong), sound;
	struct pem_refused_file *table, refused = {0};
	struct stat st;
	unsigned i;

	(void)state;
	scan();
	table = dir[0]->usage.refused;
	assert_non_null(table);
	for (i = 0; i < PEM_REFUSED_FILES; i++) {
		if (table[i].inode)
			refused = table[i];
	}
	assert_true(refused.inode != 0);
	sound = make_pool(dir[0], 2, &usual);
	assert_int_equal(fstatat(dir[0]->directory_fd, "pool-1-2", &st, 0), 0);
	refused.ctime_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
	for (i = 0; i < PEM_REFUSED_FILES; i++)
		table[i] = refused;
	scan();
	assert_int_equal(producers_of(dir[0]), 1);
	assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_GEOMETRY], 1);
	pool_free(&pool);
	pool_free(&sound);
}

/* Its size is right, and its head is not: each describes a pool that the file has room for. */
static void a_head_of_another_geometry_is_refused(void **state)
{
	const struct pem_pool_geometry right = {PEM_POOL_FURTHER, 2 * CHUNK, CHUNKS, LANES,
						EVENTS,           0};
	const struct pem_pool_geometry heads[] = {
		{PEM_POOL_FURTHER | PEM_POOL_OVERWRITE, 2 * CHUNK, CHUNKS, LANES, EVENTS, 0},
		{0, 2 * CHUNK, CHUNKS, LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, CHUNK, CHUNKS, LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, 2 * CHUNK, CHUNKS - 1, LANES, EVENTS, 0},
		{PEM_POOL_FURTHER, 2 * CHUNK, CHUNKS, LANES - 1, EVENTS, 0},
		{PEM_POOL_FURTHER, 2 * CHUNK, CHUNKS, LANES, EVENTS - 64, 0},
	};
	struct pem_ring ring;
	struct pool pool;
	unsigned i;

	(void)state;
	session->geometry = right;
	for (i = 0; i < PEM_ARRAY_SIZE(heads); i++) {
		pool = make_pool(dir[0], i, &right);
		pool.header->flags = heads[i].flags;
		pool.header->chunk_bytes = heads[i].chunk_bytes;
		pool.header->chunk_count = heads[i].chunk_count;
		pool.header->lane_count = heads[i].lane_count;
		pool.header->event_capacity = heads[i].event_capacity;
		assert_int_equal(pem_pool__open_ring(pool.header, pool.bytes, &ring), 0);
		scan();
		assert_int_equal(producers_of(dir[0]), 0);
		assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_GEOMETRY], i + 1);
		pool_free(&pool);
	}
	pool = make_pool(dir[0], i, &right);
	scan();
	assert_int_equal(producers_of(dir[0]), 1);
	pool_free(&pool);
}

static void a_pool_that_is_not_ready_is_looked_at_again(void **state)
{
	struct pool pool = make_pool(dir[0], 1, &usual);

	(void)state;
	pool.header->magic = 0;
	scan();
	assert_int_equal(producers_of(dir[0]), 0);
	__atomic_store_n(&pool.header->magic, PEM_POOL_MAGIC, __ATOMIC_RELEASE);
	scan();
	assert_int_equal(producers_of(dir[0]), 1);
	assert_string_equal(said, "");
	pool_free(&pool);
}

static void links_are_refused(void **state)
{
	struct pool pool = make_pool(dir[0], 1, &usual);
	char *text = model_text("One", "value", "uint32");
	struct pool linked =
		describe(dir[2], 1, text, id_of(text), pem_model__hash(text, strlen(text)));
	struct pem_balance b;
	char name[32];

	(void)state;
	link_pool(dir[0], 1, 99);
	snprintf(name, sizeof(name), "model-%08x", pem_model__hash(text, strlen(text)));
	assert_int_equal(linkat(dir[2]->directory_fd, name, dir[2]->directory_fd, "again", 0), 0);
	put(&linked, 5, 77, 4);
	scan();
	assert_int_equal(producers_of(dir[0]), 0);
	assert_int_equal(dir[0]->usage.files_opened, 0);
	assert_int_equal(dir[0]->usage.excess[PEM_EXCESS_LINKS], 100);
	assert_int_equal(dir[2]->usage.excess[PEM_EXCESS_LINKS], 1);
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 0);
	assert_int_equal(b.discarded, 5);
	assert_true(has_gap("100 files of user"));
	free(text);
	pool_free(&pool);
	pool_free(&linked);
}

/* Sparse ones, each of its own; of the own directory there may be more. */
/* A pool that a user makes for a process of somebody else's, whose events it would change. */
static void pools_of_anothers_process_are_refused(void **state)
{
	struct pool pool[2];
	unsigned i;

	(void)state;
	if (geteuid())
		skip();
	dir[1]->owner = 65534;
	for (i = 0; i < 2; i++) {
		pool[i] = make_pool(dir[1], i, &usual); /* it names this process, which is root's */
		assert_int_equal(fchownat(dir[1]->directory_fd, i ? "pool-1-1" : "pool-1-0", 65534,
					  65534, 0),
				 0);
		if (i) /* one that is gone may have been anybody's */
			pool[i].header->pid = 0x3fffffff;
		scan_producers();
		assert_int_equal(producers_of(dir[1]), i);
	}
	assert_non_null(strstr(said, "a process that is another user's"));
	dir[1]->owner = geteuid();
	for (i = 0; i < 2; i++)
		pool_free(&pool[i]);
}

static void pools_of_a_dir_are_limited(void **state)
{
	struct pool pool;
	unsigned i;

	(void)state;
	for (i = 0; i < 1100; i++) {
		pool = make_pool(dir[1], i, &usual);
		pool_free(&pool);
		pool = make_pool(dir[0], i, &usual);
		pool_free(&pool);
	}
	scan();
	assert_int_equal(producers_of(dir[0]), 1100);
	assert_int_equal(producers_of(dir[1]), 1024);
	assert_int_equal(dir[1]->usage.excess[PEM_EXCESS_POOLS], 1100 - 1024);
	assert_non_null(strstr(said, "1 processes of user"));
	assert_true(has_gap("76 processes of user"));
}

/*
 * One directory takes all of its turn: the others' pools are drained all the same, and its own go
 * on with the next.
 */
static void a_turn_is_shared(void **state)
{
	struct pool busy = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));
	struct pool pool = describe_truly(dir[2], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;
	struct pem_producer *p;

	(void)state;
	put(&busy, 3, 77, 4);
	put(&pool, 5, 77, 4);
	scan_producers();
	dir[1]->usage.user->turn_ns = 1000000000u;
	for (p = session->processes->producers; p; p = p->next)
		assert_int_equal(pem_session__drain_producer(session, p, false), p->dir != dir[1]);
	assert_int_equal(PEM_CHUNK_STATE(busy.ring.chunk_state[0]), PEM_CHUNK_FULL);
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FREE);
	scan();
	assert_int_equal(PEM_CHUNK_STATE(busy.ring.chunk_state[0]), PEM_CHUNK_FREE);
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 8);
	pool_free(&busy);
	pool_free(&pool);
}

/* However many folders a user has, they get no more than one. */
static void folders_of_a_user_share(void **state)
{
	struct pem_dir *another;
	unsigned i;

	(void)state;
	another = make_dir(OTHERS + 1);
	another->usage.user = dir[1]->usage.user;
	for (i = 0; pem_dir__take(session, dir[1], PEM_RESOURCE_POOLS, 1); i++)
		;
	assert_int_equal(i, 1024);
	assert_false(pem_dir__take(session, another, PEM_RESOURCE_POOLS, 1));
	assert_true(pem_dir__take(session, dir[2], PEM_RESOURCE_POOLS, 1));
	pem_dir__give_back(session, dir[1], PEM_RESOURCE_POOLS, 1);
	assert_true(pem_dir__take(session, another, PEM_RESOURCE_POOLS, 1));
	pem_dir__charge(session, dir[1], 0); /* since the machine started */
	assert_true(pem_dir__had_turn(another));
	assert_false(pem_dir__had_turn(dir[2]));
	pem_session__begin_end(session);
	pem_dir__charge_end(session, dir[1], pem_monotonic_ns() - 2000000000u);
	assert_true(pem_dir__had_end(session, another));
	assert_false(pem_dir__had_end(session, dir[2]));
}

static void two_folders_of_one_user_have_one_account(void **state)
{
	struct pem_dir one = {.number = 8, .owner = 5}, two = {.number = 9, .owner = 5},
		       other = {.number = 10, .owner = 6},
		       shared = {.number = 11, .owner = 5, .is_public = true};

	(void)state;
	assert_non_null(pem_dir__user(session, &one));
	assert_ptr_equal(pem_dir__user(session, &one), pem_dir__user(session, &two));
	assert_ptr_not_equal(pem_dir__user(session, &one), pem_dir__user(session, &other));
	assert_ptr_not_equal(pem_dir__user(session, &one), pem_dir__user(session, &shared));
	assert_null(pem_dir__user(session, dir[0]));
}

/*
 * Counts that its records do not bear out, however large: the trace is whole, and says whose they
 * are.
 */
static void false_counts_of_another_user_balance(void **state)
{
	const uint64_t counts[][2] = {{0, 1000}, {1000, 0}, {UINT64_MAX, 7}, {3, UINT64_MAX}};
	struct pool pool, false_one;
	struct pem_balance b;
	unsigned i;

	(void)state;
	pool = describe_truly(dir[0], 1, model_text("One", "value", "uint32"));
	put(&pool, 5, 77, 4);
	for (i = 0; i < PEM_ARRAY_SIZE(counts); i++) {
		false_one = describe_truly(dir[1], i, model_text("One", "value", "uint32"));
		put(&false_one, 2, 77, 4);
		false_one.ring.cells[EVENTS].produced = counts[i][0];
		false_one.ring.cells[EVENTS].discarded = counts[i][1];
		pool_free(&false_one);
	}
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5 + 2 * PEM_ARRAY_SIZE(counts));
	assert_int_equal(b.produced, b.delivered + b.discarded + b.overwritten);
	assert_true(b.produced < UINT64_MAX / 2);
	assert_true(has_gap("4 processes of user"));
	pool_free(&pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(models_of_a_dir_are_limited),
		TEST(bytes_of_models_are_limited),
		TEST(one_dir_leaves_room_for_the_next),
		TEST(pools_of_another_geometry_are_refused),
		TEST(a_refused_file_is_opened_once),
		TEST(refused_files_may_share_an_entry),
		TEST(another_files_entry_refuses_nothing),
		TEST(a_head_of_another_geometry_is_refused),
		TEST(a_pool_that_is_not_ready_is_looked_at_again),
		TEST(links_are_refused),
		TEST(pools_of_anothers_process_are_refused),
		TEST(pools_of_a_dir_are_limited),
		TEST(a_turn_is_shared),
		TEST(folders_of_a_user_share),
		TEST(two_folders_of_one_user_have_one_account),
		TEST(false_counts_of_another_user_balance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
