// SPDX-License-Identifier: MIT
/*
 * database.c - the CPO database (pem/database.h): rows, references, transactions, leases
 *
 * PEM_TEST_DB: the database to use instead of a file of its own, which has to be empty. So
 * tests/e2e/database_postgresql.py runs the same tests on a server.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pem/database.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[64], url[128];
static struct pem_database *db;
static struct pem_error error;

static int set_up(void **state)
{
	const char *given = getenv("PEM_TEST_DB");

	(void)state;
	strcpy(folder, "/tmp/pem-database-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(url, sizeof(url), "%s/cpo.db", folder);
	db = pem_database__open(given ? given : url, NULL, &error);
	if (!db)
		fail_msg("%s", error.text);
	return 0;
}

static int remove_row(const void *row, void *table)
{
	int64_t id;

	memcpy(&id, (const char *)row + sizeof(size_t), sizeof(id));
	return pem_database__remove(db, *(enum pem_db_table *)table, id, &error) < 0 ? -EIO : 0;
}

static int tear_down(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	enum pem_db_table table;
	char path[160];
	size_t i;

	(void)state;
	for (table = 1; table <= PEM_DB_TABLES; table++)
		pem_database__each(db, table, NULL, remove_row, &table, &error);
	pem_database__close(db);
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", url, suffixes[i]);
		unlink(path);
	}
	rmdir(folder);
	return 0;
}

/* --- rows to try with --- */

static int64_t put(enum pem_db_table table, const void *row)
{
	int64_t id = pem_database__put(db, table, row, &error);

	if (id <= 0)
		fail_msg("put: %lld: %s", (long long)id, error.text);
	return id;
}

static int64_t an_application(const char *build_id)
{
	struct pem_db_application app = {.size = sizeof(app), .name = "tar", .path = "/bin/tar"};

	snprintf(app.build_id, sizeof(app.build_id), "%s", build_id);
	return put(PEM_DB_APPLICATION, &app);
}

static int64_t a_machine(void)
{
	const struct pem_db_machine machine = {.size = sizeof(machine),
					       .fingerprint = "f00d",
					       .processor = "a 'quoted' \"name\"; --"};

	return put(PEM_DB_MACHINE, &machine);
}

static struct pem_db_run run_of(int64_t application, int64_t machine)
{
	struct pem_db_run run = {.size = sizeof(run),
				 .application = application,
				 .machine = machine,
				 .agent = "test",
				 .began_ns = 1700000000123456789};

	assert_int_equal(pem_database__uuid(run.uuid), 0);
	return run;
}

static struct pem_db_directive directive_of(int64_t application, int64_t machine,
					    const char *subject)
{
	struct pem_db_directive directive = {.size = sizeof(directive),
					     .application = application,
					     .machine = machine,
					     .agent = "test",
					     .text = "2M",
					     .predicted = 12.5};

	snprintf(directive.subject, sizeof(directive.subject), "%s", subject);
	return directive;
}

static int count_rows(const void *row, void *count)
{
	(void)row;
	++*(size_t *)count;
	return 0;
}

static size_t rows_of(enum pem_db_table table)
{
	size_t count = 0;
	int64_t visited = pem_database__each(db, table, NULL, count_rows, &count, &error);

	assert_int_equal(visited, count);
	return count;
}

/* --- rows --- */

static void a_row_is_read_as_it_was_put(void **state)
{
	struct pem_db_metric metric = {.size = sizeof(metric),
				       .run = 0,
				       .name = "time \xc3\xa9",
				       .unit = "s",
				       .count = INT64_MIN,
				       .mean = 0.1,
				       .spread = 1e-300,
				       .minimum = -1.7976931348623157e308,
				       .maximum = 3,
				       .origin = PEM_DB_SIMULATED},
			     like = {.size = sizeof(like)}, read = {.size = sizeof(read)};
	struct pem_db_run run = run_of(an_application("aa"), a_machine());

	(void)state;
	metric.run = put(PEM_DB_RUN, &run);
	metric.id = like.id = put(PEM_DB_METRIC, &metric);
	assert_int_equal(pem_database__find(db, PEM_DB_METRIC, &like, &read, &error), 1);
	assert_memory_equal(&read, &metric, sizeof(metric));
}

static void texts_are_values_not_statements(void **state)
{
	struct pem_db_machine machine = {.size = sizeof(machine)};

	(void)state;
	a_machine();
	assert_int_equal(pem_database__find(db, PEM_DB_MACHINE, &machine, &machine, &error), 1);
	assert_string_equal(machine.processor, "a 'quoted' \"name\"; --");
}

static void a_row_of_the_same_key_is_replaced_and_keeps_its_number(void **state)
{
	struct pem_db_application app = {.size = sizeof(app)};
	int64_t first = an_application("aa"), other = an_application("bb");

	(void)state;
	strcpy(app.build_id, "aa");
	strcpy(app.name, "gnu-tar");
	assert_int_equal(put(PEM_DB_APPLICATION, &app), first);
	assert_int_not_equal(first, other);
	assert_int_equal(rows_of(PEM_DB_APPLICATION), 2);
	app.name[0] = '\0';
	assert_int_equal(pem_database__find(db, PEM_DB_APPLICATION, &app, &app, &error), 1);
	assert_string_equal(app.name, "gnu-tar");
	assert_string_equal(app.path, "");
}

static void replacing_a_row_uses_up_no_number(void **state)
{
	int64_t first = an_application("aa");

	(void)state;
	an_application("aa");
	an_application("aa");
	assert_int_equal(an_application("bb"), first + 1);
}

static void a_search_compares_all_that_is_set(void **state)
{
	int64_t app = an_application("aa"), machine = a_machine();
	struct pem_db_directive d = directive_of(app, machine, "one"),
				like = {.size = sizeof(like)};
	size_t count = 0;

	(void)state;
	d.state = PEM_DB_KEPT;
	put(PEM_DB_DIRECTIVE, &d);
	strcpy(d.subject, "two");
	d.state = PEM_DB_WITHDRAWN;
	put(PEM_DB_DIRECTIVE, &d);
	like.application = app;
	assert_int_equal(
		pem_database__each(db, PEM_DB_DIRECTIVE, &like, count_rows, &count, &error), 2);
	like.state = PEM_DB_WITHDRAWN;
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &like, &d, &error), 1);
	assert_string_equal(d.subject, "two");
	strcpy(like.subject, "one");
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &like, &d, &error), 0);
	assert_string_equal(d.subject, "two");
}

static void a_search_for_what_no_row_can_have_is_refused(void **state)
{
	struct pem_db_application like = {.size = sizeof(like)};

	(void)state;
	an_application("aa");
	memset(like.build_id, 'x', sizeof(like.build_id));
	assert_int_equal(pem_database__find(db, PEM_DB_APPLICATION, &like, &like, &error), -EINVAL);
	assert_non_null(strstr(error.text, "application.build_id"));
	strcpy(like.build_id, "\xff");
	assert_int_equal(pem_database__each(db, PEM_DB_APPLICATION, &like, NULL, NULL, &error),
			 -EINVAL);
	strcpy(like.build_id, "bb");
	assert_int_equal(pem_database__each(db, PEM_DB_APPLICATION, &like, NULL, NULL, &error), 0);
}

static int end_walk(const void *row, void *arg)
{
	(void)row;
	return *(int *)arg;
}

static void a_walk_ends_when_its_function_says_so(void **state)
{
	int word = 1;

	(void)state;
	an_application("aa");
	an_application("bb");
	assert_int_equal(pem_database__each(db, PEM_DB_APPLICATION, NULL, end_walk, &word, &error),
			 1);
	word = -ECANCELED;
	assert_int_equal(pem_database__each(db, PEM_DB_APPLICATION, NULL, end_walk, &word, &error),
			 -ECANCELED);
}

static void rows_that_break_the_rules_are_refused(void **state)
{
	struct pem_db_application app = {.size = sizeof(app), .build_id = "aa"};
	struct pem_db_validation v = {.size = sizeof(v), .directive = 1, .gain = NAN};

	(void)state;
	memset(app.name, 'x', sizeof(app.name));
	assert_int_equal(pem_database__put(db, PEM_DB_APPLICATION, &app, &error), -EINVAL);
	assert_non_null(strstr(error.text, "application.name"));
	strcpy(app.name, "a\nb");
	assert_int_equal(pem_database__put(db, PEM_DB_APPLICATION, &app, &error), -EINVAL);
	strcpy(app.name, "\xff");
	assert_int_equal(pem_database__put(db, PEM_DB_APPLICATION, &app, &error), -EINVAL);
	strcpy(app.name, "\xc2\x9b");
	assert_int_equal(pem_database__put(db, PEM_DB_APPLICATION, &app, &error), -EINVAL);
	strcpy(app.name, "fine");
	app.build_id[0] = '\0';
	assert_int_equal(pem_database__put(db, PEM_DB_APPLICATION, &app, &error), -EINVAL);
	assert_int_equal(pem_database__put(db, PEM_DB_VALIDATION, &v, &error), -EINVAL);
	v.gain = 0;
	v.verdict = 4;
	assert_int_equal(pem_database__put(db, PEM_DB_VALIDATION, &v, &error), -EINVAL);
	assert_non_null(strstr(error.text, "0 to 3"));
	v.verdict = 0;
	v.directive = 0;
	assert_int_equal(pem_database__put(db, PEM_DB_VALIDATION, &v, &error), -EINVAL);
	assert_int_equal(pem_database__put(db, 9, &v, &error), -EINVAL);
	v.size = 12;
	assert_int_equal(pem_database__put(db, PEM_DB_VALIDATION, &v, &error), -EINVAL);
	assert_int_equal(rows_of(PEM_DB_APPLICATION) + rows_of(PEM_DB_VALIDATION), 0);
}

static void a_row_refers_to_rows_that_are_there(void **state)
{
	struct pem_db_run run = run_of(an_application("aa"), 987654);

	(void)state;
	assert_int_equal(pem_database__put(db, PEM_DB_RUN, &run, &error), -ENOENT);
	assert_int_equal(rows_of(PEM_DB_RUN), 0);
}

static void what_refers_to_a_removed_row_goes_with_it(void **state)
{
	int64_t app = an_application("aa"), machine = a_machine();
	struct pem_db_run run = run_of(app, machine);
	struct pem_db_directive d = directive_of(app, machine, "one");
	struct pem_db_evidence e = {.size = sizeof(e)};

	(void)state;
	e.run = put(PEM_DB_RUN, &run);
	e.directive = put(PEM_DB_DIRECTIVE, &d);
	put(PEM_DB_EVIDENCE, &e);
	assert_int_equal(pem_database__remove(db, PEM_DB_APPLICATION, app, &error), 1);
	assert_int_equal(pem_database__remove(db, PEM_DB_APPLICATION, app, &error), 0);
	assert_int_equal(rows_of(PEM_DB_RUN) + rows_of(PEM_DB_DIRECTIVE) + rows_of(PEM_DB_EVIDENCE),
			 0);
	assert_int_equal(rows_of(PEM_DB_MACHINE), 1);
}

static void numbers_are_never_given_twice(void **state)
{
	int64_t first = an_application("aa");

	(void)state;
	assert_int_equal(pem_database__remove(db, PEM_DB_APPLICATION, first, &error), 1);
	assert_true(an_application("bb") > first);
}

/* --- transactions --- */

static int64_t put_two_and_return(struct pem_database *database, void *result)
{
	an_application("aa");
	an_application("bb");
	assert_int_equal(pem_database__together(database, put_two_and_return, result, &error),
			 -EDEADLK);
	return *(int64_t *)result;
}

static void what_fails_together_leaves_nothing(void **state)
{
	int64_t result = -ECANCELED;

	(void)state;
	assert_int_equal(pem_database__together(db, put_two_and_return, &result, &error),
			 -ECANCELED);
	assert_int_equal(rows_of(PEM_DB_APPLICATION), 0);
	result = 7;
	assert_int_equal(pem_database__together(db, put_two_and_return, &result, &error), 7);
	assert_int_equal(rows_of(PEM_DB_APPLICATION), 2);
}

static int64_t break_a_reference(struct pem_database *database, void *arg)
{
	struct pem_db_run run = run_of(an_application("aa"), 987654);

	(void)arg;
	return pem_database__put(database, PEM_DB_RUN, &run, &error);
}

static void a_database_works_on_after_an_error(void **state)
{
	(void)state;
	assert_int_equal(pem_database__together(db, break_a_reference, NULL, &error), -ENOENT);
	assert_int_equal(rows_of(PEM_DB_APPLICATION), 0);
	an_application("cc");
	assert_int_equal(rows_of(PEM_DB_APPLICATION), 1);
}

static int64_t pass_over_an_error(struct pem_database *database, void *arg)
{
	an_application("bb");
	assert_int_equal(break_a_reference(database, arg), -ENOENT);
	return 7;
}

static void an_error_that_is_passed_over_undoes_all(void **state)
{
	(void)state;
	assert_int_equal(pem_database__together(db, pass_over_an_error, NULL, &error), -ENOENT);
	assert_int_equal(rows_of(PEM_DB_APPLICATION), 0);
	an_application("cc");
}

static int64_t vacuum_inside(struct pem_database *database, void *arg)
{
	(void)arg;
	return pem_database__vacuum(database, &error);
}

static void no_vacuum_inside_of_a_transaction(void **state)
{
	(void)state;
	assert_int_equal(pem_database__together(db, vacuum_inside, NULL, &error), -EDEADLK);
	assert_int_equal(pem_database__vacuum(db, &error), 0);
}

/* --- leases --- */

static int64_t in_seconds(int64_t seconds)
{
	return ((int64_t)time(NULL) + seconds) * 1000000000;
}

static int take(const char *holder, int64_t access, int64_t until_ns, struct pem_db_lease *lease)
{
	*lease = (struct pem_db_lease){.size = sizeof(*lease),
				       .resource = "huge pages",
				       .access = access,
				       .until_ns = until_ns};
	snprintf(lease->holder, sizeof(lease->holder), "%s", holder);
	return pem_database__lease(db, lease, &error);
}

static void one_changes_alone(void **state)
{
	struct pem_db_lease lease;

	(void)state;
	assert_int_equal(take("a", 1, in_seconds(60), &lease), 1);
	assert_int_equal(take("b", 1, in_seconds(60), &lease), 0);
	assert_string_equal(lease.holder, "a");
	assert_int_equal(take("b", 0, in_seconds(60), &lease), 0);
	assert_int_equal(take("a", 1, in_seconds(120), &lease), 1);
	assert_int_equal(rows_of(PEM_DB_LEASE), 1);
	assert_int_equal(pem_database__remove(db, PEM_DB_LEASE, lease.id, &error), 1);
	assert_int_equal(take("b", 1, in_seconds(60), &lease), 1);
}

static void many_observe_together(void **state)
{
	struct pem_db_lease lease;

	(void)state;
	assert_int_equal(take("a", 0, in_seconds(60), &lease), 1);
	assert_int_equal(take("b", 0, in_seconds(60), &lease), 1);
	assert_int_equal(take("c", 1, in_seconds(60), &lease), 0);
}

static void a_lease_that_is_over_counts_no_more(void **state)
{
	struct pem_db_lease lease;

	(void)state;
	assert_int_equal(take("a", 1, in_seconds(-1), &lease), 1);
	assert_int_equal(take("b", 1, in_seconds(60), &lease), 1);
	assert_int_equal(rows_of(PEM_DB_LEASE), 2);
	assert_int_equal(pem_database__vacuum(db, &error), 0);
	assert_int_equal(rows_of(PEM_DB_LEASE), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_row_is_read_as_it_was_put),
		TEST(texts_are_values_not_statements),
		TEST(a_row_of_the_same_key_is_replaced_and_keeps_its_number),
		TEST(replacing_a_row_uses_up_no_number),
		TEST(a_search_compares_all_that_is_set),
		TEST(a_search_for_what_no_row_can_have_is_refused),
		TEST(a_walk_ends_when_its_function_says_so),
		TEST(rows_that_break_the_rules_are_refused),
		TEST(a_row_refers_to_rows_that_are_there),
		TEST(what_refers_to_a_removed_row_goes_with_it),
		TEST(numbers_are_never_given_twice),
		TEST(what_fails_together_leaves_nothing),
		TEST(a_database_works_on_after_an_error),
		TEST(an_error_that_is_passed_over_undoes_all),
		TEST(no_vacuum_inside_of_a_transaction),
		TEST(one_changes_alone),
		TEST(many_observe_together),
		TEST(a_lease_that_is_over_counts_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
