/* SPDX-License-Identifier: MIT */
/*
 * cost_cache.c - what sessions measured of costs is remembered together, and nonsense among it
 * spoils nothing
 */
#include "cost/cost.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

/* The name of this build's file: with the beginning of the build id that its ELF note has. */
static const char *own_name(void)
{
	static const char start[] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU";
	static char name[64], text[1 << 14];
	const unsigned char *id;
	FILE *program;
	size_t i;
	int n;

	if (*name)
		return name;
	program = fopen("/proc/self/exe", "re");
	assert_non_null(program);
	i = fread(text, 1, sizeof(text), program);
	fclose(program);
	id = memmem(text, i, start, sizeof(start));
	n = snprintf(name, sizeof(name), id ? "observation-costs-" : "observation-costs");
	for (i = 0; id && i < 16; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", id[sizeof(start) + i]);
	return name;
}

/*
 * Another session's, who locked the folder and stores what it measured while somebody waits; -1:
 * there is none.
 */
static int other_lock = -1;
static struct pem_costs other_costs;

/* libpem's pauses come here. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	if (other_lock < 0 || !other_costs.each[PEM_COST_USER].log_ns)
		return 0;
	close(other_lock);
	other_lock = -1;
	pem_costs__store(&other_costs);
	return 0;
}

static int new_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/pem-cost-cache-XXXXXX");
	return !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1);
}

static int remove_folder(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/pem/%s", folder, own_name());
	/* A test that is skipped leaves nothing. */
	if (remove(path) && errno != ENOENT)
		return 1;
	snprintf(path, sizeof(path), "%s/pem", folder);
	if (remove(path) && errno != ENOENT)
		return 1;
	return remove(folder);
}

/* Let another session lock the folder. */
static void lock_folder(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/pem", folder);
	mkdir(path, 0700);
	other_lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(other_lock >= 0);
	assert_int_equal(flock(other_lock, LOCK_EX), 0);
}

static void what_another_stored_is_kept(void **state)
{
	struct pem_costs one = {.kernel_source = "BPF"}, other = {.kernel_source = "-"}, found;

	(void)state;
	one.each[PEM_COST_USER].log_ns = 10;
	one.each[PEM_COST_KERNEL].log_ns = 200;
	one.each[PEM_COST_UPROBE].log_ns = 900;
	other.each[PEM_COST_USER].log_ns = 12;
	other.each[PEM_COST_SAMPLE].log_ns = 5000;
	other.lost_ns = 90;
	pem_costs__store(&one);
	pem_costs__store(&other);
	assert_true(pem_costs__load(&found));
	assert_int_equal(found.each[PEM_COST_USER].log_ns, 12);
	assert_int_equal(found.each[PEM_COST_KERNEL].log_ns, 200);
	assert_string_equal(found.kernel_source, "BPF");
	assert_int_equal(found.each[PEM_COST_UPROBE].log_ns, 900);
	assert_int_equal(found.each[PEM_COST_SAMPLE].log_ns, 5000);
	assert_int_equal(found.lost_ns, 90);
}

static void what_another_is_about_to_store_is_waited_for(void **state)
{
	struct pem_costs mine = {.kernel_source = "-"}, found;

	(void)state;
	other_costs = (struct pem_costs){.kernel_source = "-"};
	other_costs.each[PEM_COST_USER].log_ns = 10;
	mine.each[PEM_COST_SAMPLE].log_ns = 5000;
	lock_folder();
	pem_costs__store(&mine);
	assert_int_equal(other_lock, -1);
	assert_true(pem_costs__load(&found));
	assert_int_equal(found.each[PEM_COST_USER].log_ns, 10);
	assert_int_equal(found.each[PEM_COST_SAMPLE].log_ns, 5000);
}

static void who_never_unlocks_the_folder_is_not_waited_for(void **state)
{
	struct pem_costs mine = {.kernel_source = "-"}, found;

	(void)state;
	other_costs = (struct pem_costs){.kernel_source = "-"};
	mine.each[PEM_COST_SAMPLE].log_ns = 5000;
	lock_folder();
	pem_costs__store(&mine);
	assert_true(pem_costs__load(&found));
	assert_int_equal(found.each[PEM_COST_SAMPLE].log_ns, 5000);
	close(other_lock);
	other_lock = -1;
}

/* Write a file as another build does whose first line is this one. */
static void write_other(const char *name, const char *line)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/pem/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "%s\n", line);
	fclose(file);
}

static bool has_other(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/pem/%s", folder, name);
	return !access(path, F_OK);
}

static void each_build_has_a_file_of_its_own_until_the_next_boot(void **state)
{
	struct pem_costs costs = {.kernel_source = "-"}, found;
	char line[512], path[256];
	FILE *file;

	(void)state;
	costs.each[PEM_COST_USER].log_ns = 10;
	pem_costs__store(&costs);
	assert_true(has_other(own_name()));
	snprintf(path, sizeof(path), "%s/pem/%s", folder, own_name());
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	line[strcspn(line, "\n")] = 0;
	write_other("observation-costs-0011", line);
	write_other("observation-costs-2233", "0.1 of-another-boot 6.1 x");
	write_other("kept", "0.1 of-another-boot 6.1 x");
	costs.each[PEM_COST_USER].log_ns = 11;
	pem_costs__store(&costs);
	assert_true(pem_costs__load(&found));
	assert_int_equal(found.each[PEM_COST_USER].log_ns, 11);
	assert_true(has_other("observation-costs-0011"));
	assert_false(has_other("observation-costs-2233"));
	assert_true(has_other("kept"));
	snprintf(path, sizeof(path), "%s/pem/observation-costs-0011", folder);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/pem/kept", folder);
	assert_int_equal(unlink(path), 0);
}

static void a_cost_beyond_reason_is_not_stored(void **state)
{
	struct pem_costs costs = {.kernel_source = "BPF"}, found;

	(void)state;
	costs.each[PEM_COST_USER].log_ns = 10;
	costs.each[PEM_COST_UPROBE].log_ns = 2e6;
	pem_costs__store(&costs);
	assert_true(pem_costs__load(&found));
	assert_int_equal(found.each[PEM_COST_USER].log_ns, 10);
	assert_int_equal(found.each[PEM_COST_UPROBE].log_ns, 0);
}

static void store_set(uint64_t set, double start_ns)
{
	struct pem_costs costs = {.kernel_source = "-"};

	pem_costs__add_set(&costs, &(struct pem_process_cost){.set = set, .start_ns = start_ns});
	pem_costs__store(&costs);
}

static void the_sets_of_several_sessions_are_kept(void **state)
{
	struct pem_costs found;
	uint64_t set;

	(void)state;
	for (set = 1; set <= PEM_PROCESS_COSTS; set++)
		store_set(set, (double)set);
	store_set(2, 7); /* measured again by a session that knew nothing of it */
	store_set(3, 1e10);
	assert_true(pem_costs__load(&found));
	for (set = 1; set <= PEM_PROCESS_COSTS; set++)
		assert_int_equal(pem_costs__of_set(&found, set)->start_ns, set == 2 ? 7 : set);
	store_set(set, 5);
	store_set(set + 1, 6);
	assert_true(pem_costs__load(&found));
	assert_int_equal(pem_costs__of_set(&found, set)->start_ns, 5);
	assert_int_equal(pem_costs__of_set(&found, set + 1)->start_ns, 6);
	assert_null(pem_costs__of_set(&found, 1));
	assert_non_null(pem_costs__of_set(&found, 2)); /* it was measured after 3 */
	assert_null(pem_costs__of_set(&found, 3));
	assert_non_null(pem_costs__of_set(&found, 4));
}

static void nothing_is_made_in_another_users_folder(void **state)
{
	const struct pem_costs costs = {.each[PEM_COST_USER] = {.log_ns = 5, .stat_ns = 3}};
	char path[128];

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chown(folder, 65534, 65534), 0);
	pem_costs__store(&costs);
	snprintf(path, sizeof(path), "%s/pem", folder);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(chown(folder, 0, 0), 0);
	pem_costs__store(&costs); /* for the teardown */
	assert_int_equal(access(path, F_OK), 0);
}

static void no_link_of_anothers_is_followed(void **state)
{
	const struct pem_costs costs = {.each[PEM_COST_USER] = {.log_ns = 5, .stat_ns = 3}};
	char real[128], path[160];

	(void)state;
	if (geteuid())
		skip();
	snprintf(real, sizeof(real), "%s-real", folder);
	snprintf(path, sizeof(path), "%s/pem", folder);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(symlink(real, path), 0);
	pem_costs__store(&costs);
	assert_int_equal(rmdir(real), 0); /* it is empty */
	assert_int_equal(unlink(path), 0);
	pem_costs__store(&costs);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(what_another_stored_is_kept),
		TEST(what_another_is_about_to_store_is_waited_for),
		TEST(who_never_unlocks_the_folder_is_not_waited_for),
		TEST(each_build_has_a_file_of_its_own_until_the_next_boot),
		TEST(a_cost_beyond_reason_is_not_stored),
		TEST(the_sets_of_several_sessions_are_kept),
		TEST(nothing_is_made_in_another_users_folder),
		TEST(no_link_of_anothers_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
