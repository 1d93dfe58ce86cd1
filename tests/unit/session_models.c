// SPDX-License-Identifier: MIT
/*
 * session_models.c - whose description of an event is believed, and for whose events
 *
 * Not here: other users for real (e2e/attach_other_users.py).
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "dirs_fixture.h"

static void a_true_text_is_believed(void **state)
{
	struct pool pool = describe_truly(dir[0], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;

	(void)state;
	put(&pool, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5);
	assert_int_equal(b.discarded, 0);
	assert_string_equal(said, "");
	pool_free(&pool);
}

/* Offered under a hash that is another text's. */
static void a_false_text_is_not_believed(void **state)
{
	char *text = model_text("One", "value", "uint32"),
	     *other = model_text("One", "v", "uint64");
	struct pool pool =
		describe(dir[0], 1, other, id_of(text), pem_model__hash(text, strlen(text)));
	struct pem_balance b;

	(void)state;
	put(&pool, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 0);
	assert_int_equal(b.produced, 5);
	assert_int_equal(b.discarded, 5);
	assert_non_null(strstr(said, "not the one that its name tells"));
	assert_true(has_gap("not the one that its name tells"));
	free(text);
	free(other);
	pool_free(&pool);
}

/* Each word of a text counts, and so does its end. */
static void the_hash_is_of_all_of_the_text(void **state)
{
	char *text = model_text("One", "value", "uint32");
	size_t bytes = strlen(text), i;
	uint32_t hash = pem_model__hash(text, bytes);

	(void)state;
	for (i = 0; i < bytes; i++) {
		text[i] ^= 1;
		assert_int_not_equal(pem_model__hash(text, bytes), hash);
		text[i] ^= 1;
		assert_int_not_equal(pem_model__hash(text, i), hash);
	}
	assert_int_equal(pem_model__hash(text, bytes), hash);
	free(text);
}

/* A program and its recorder may be of different versions of pem. */
static void the_hash_stays_what_it_was(void **state)
{
	(void)state;
	assert_int_equal(pem_model__hash("", 0), 0x17450b5eu);
	assert_int_equal(pem_model__hash("pem-model\t2\n", 12), 0x946fa18fu);
}

/* One place offers a false text under the hash of another's, before that one does. */
static void a_text_is_of_its_dir(void **state)
{
	char *text = model_text("One", "value", "uint32"),
	     *other = model_text("One", "v", "uint64");
	uint32_t hash = pem_model__hash(text, strlen(text));
	struct pool hostile = describe(dir[1], 1, other, id_of(other), hash), pool;
	struct pem_balance b;

	(void)state;
	put(&hostile, 3, 77, 8);
	scan();
	pool = describe(dir[2], 1, text, id_of(text), hash);
	put(&pool, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5);
	assert_int_equal(b.delivered, 5);
	assert_int_equal(b.produced, 8);
	free(text);
	free(other);
	pool_free(&hostile);
	pool_free(&pool);
}

static void contradicting_dirs_are_both_recorded(void **state)
{
	struct pool first = describe_truly(dir[1], 1, model_text("One", "v", "uint64"));
	struct pool later = describe_truly(dir[2], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;
	char name[64];

	(void)state;
	put(&first, 3, 1ull << 40, 8);
	put(&later, 5, 77, 4);
	scan_producers();
	scan();
	snprintf(name, sizeof(name), "APP::Limits::One_of_user_%u", (unsigned)geteuid());
	assert_int_equal(in_trace("APP::Limits::One", 1ull << 40, &b) + in_trace(name, 77, &b), 8);
	assert_int_equal(in_trace(name, 1ull << 40, &b) + in_trace("APP::Limits::One", 77, &b), 0);
	assert_int_equal(b.delivered, 8);
	assert_int_equal(b.discarded, 0);
	pool_free(&first);
	pool_free(&later);
}

/* As long as the layout is the same: another level would switch the other's event off. */
static void contradicting_levels_are_apart(void **state)
{
	char *quiet = model_text("One", "value", "uint32"), *at = strstr(quiet, "\tinfo\t");
	struct pool first, later;
	char *loud = malloc(strlen(quiet) + 8);

	(void)state;
	assert_non_null(at);
	sprintf(loud, "%.*s\tdebug\t%s", (int)(at - quiet), quiet, at + 6);
	first = describe_truly(dir[1], 1, loud);
	scan();
	later = describe_truly(dir[2], 1, quiet);
	scan();
	assert_int_equal(
		pem_dir__event(session, dir[1], pem_pool__event_ids(&first.ring)[0])->level,
		PEM_LEVEL_DEBUG);
	assert_int_equal(
		pem_dir__event(session, dir[2], pem_pool__event_ids(&later.ring)[0])->level,
		PEM_LEVEL_INFO);
	/* And who has not met it yet asks the process. */
	assert_null(pem_dir__event(session, dir[0], pem_pool__event_ids(&later.ring)[0]));
	pool_free(&first);
	pool_free(&later);
}

static void the_same_description_is_one_event(void **state)
{
	struct pool first = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));
	struct pool later = describe_truly(dir[0], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;

	(void)state;
	put(&first, 3, 77, 4);
	put(&later, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 8);
	pool_free(&first);
	pool_free(&later);
}

/* What is certain comes before what any folder says. */
static void the_catalogue_wins(void **state)
{
	const struct pem_event *known = pem_model__by_name(session->model, "APP::Libc::Free");
	char *text = model_text("One", "value", "uint32"), *changed, *at;
	struct pool hostile, pool = make_pool(dir[0], 1, &usual);
	struct pem_balance b;
	char name[64];

	(void)state;
	/* The event's name, in its cells and in its declaration. */
	changed = malloc(strlen(text) + 64);
	at = strstr(text, "event\t");
	snprintf(name, sizeof(name), "event\t%08x\tAPP::Libc::Free\tAPP\tLibc\tFree", known->id);
	sprintf(changed, "%.*s%s%s", (int)(at - text), text, name,
		strstr(at, "\tLimits\tOne") + strlen("\tLimits\tOne"));
	free(text);
	hostile = describe_truly(dir[1], 1, changed);
	put(&hostile, 3, 77, 4);
	scan();
	pem_pool__event_ids(&pool.ring)[0] = known->id;
	put(&pool, 5, 77, 8);
	scan();
	assert_int_equal(in_trace("APP::Libc::Free", 77, &b), 5);
	assert_int_equal(b.discarded, 3);
	assert_true(has_gap("has other fields than the event of that name"));
	pool_free(&hostile);
	pool_free(&pool);
}

/* Events of the kernel are not for programs to describe: a session would look for them. */
static void a_program_describes_no_kernel_event(void **state)
{
	char *text = model_text("One", "value", "uint32"), *at = strstr(text, "\tstub\t"), *changed;
	size_t before = pem_model__count(session->model);
	struct pool pool;

	(void)state;
	assert_non_null(at);
	changed = malloc(strlen(text) + 16);
	sprintf(changed, "%.*s\ttracepoint\t%s", (int)(at - text), text, at + 6);
	free(text);
	pool = describe_truly(dir[1], 1, changed);
	scan();
	assert_int_equal(producers_of(dir[1]), 1);
	assert_int_equal(pem_model__count(session->model), before);
	pool_free(&pool);
}

/* In as many turns as it takes: a turn has a limit in time, and this machine may be busy. */
static void drain(struct pem_producer *p)
{
	unsigned turns = 0;

	do {
		assert_int_not_equal(turns++, 1000);
		pem_session__begin_turn(session);
	} while (!pem_session__drain_producer(session, p, false));
}

/* A keeper may have listed the models before the one that a pool names came. */
static void records_wait_for_their_model(void **state)
{
	struct pool pool = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));
	struct pem_producer *p;
	struct pem_balance b;

	(void)state;
	put(&pool, 5, 77, 4);
	pass_on("pool-", pem_session__found_pool);
	p = session->processes->producers;
	assert_non_null(p);
	drain(p);
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FULL);
	pass_on("model-", pem_session__found_model);
	drain(p);
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FREE);
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5);
	assert_int_equal(b.discarded, 0);
	pool_free(&pool);
}

/* But not for ever: the pool would be full. */
static void a_model_that_does_not_come_is_not_waited_for(void **state)
{
	struct pool pool = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));
	struct pem_producer *p;

	(void)state;
	put(&pool, 5, 77, 4);
	pass_on("pool-", pem_session__found_pool);
	p = session->processes->producers;
	assert_non_null(p);
	assert_int_not_equal(p->awaits_model_ns, 0);
	p->awaits_model_ns = 1;
	drain(p);
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FREE);
	pool_free(&pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_true_text_is_believed),
		TEST(a_false_text_is_not_believed),
		cmocka_unit_test(the_hash_is_of_all_of_the_text),
		cmocka_unit_test(the_hash_stays_what_it_was),
		TEST(a_text_is_of_its_dir),
		TEST(contradicting_dirs_are_both_recorded),
		TEST(contradicting_levels_are_apart),
		TEST(the_same_description_is_one_event),
		TEST(the_catalogue_wins),
		TEST(a_program_describes_no_kernel_event),
		TEST(records_wait_for_their_model),
		TEST(a_model_that_does_not_come_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
