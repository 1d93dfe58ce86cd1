// SPDX-License-Identifier: MIT
/*
 * free_memory.c - may an observed process take more memory: control groups of both versions, as
 * files of a folder of the test's own
 */
#include "chunks/free_memory.h"

#include <ftw.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1ull << 20)

static char root[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/pem-groups-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void folder(const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	assert_int_equal(mkdir(whole, 0700), 0);
}

static void file(const char *path, const char *text)
{
	char whole[256];
	FILE *f;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	f = fopen(whole, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* What is allowed to a process with such a /proc/PID/cgroup: the most MiB of 1 to 4096, by powers
 * of two. */
static unsigned allowed(const char *text)
{
	char copy[512];
	unsigned mib, most = 0;

	for (mib = 1; mib <= 4096; mib *= 2) {
		snprintf(copy, sizeof(copy), "%s", text);
		if (pem_groups__allow(copy, root, mib * MIB))
			most = mib;
	}
	return most;
}

static void an_eighth_of_what_is_free(void **state)
{
	(void)state;
	folder("a");
	file("a/memory.max", "1073741824\n"); /* 1 GiB */
	file("a/memory.current", "0\n");
	assert_int_equal(allowed("0::/a\n"), 128);
	file("a/memory.current", "536870912\n");
	assert_int_equal(allowed("0::/a\n"), 64);
	file("a/memory.current", "536870913\n");
	assert_int_equal(allowed("0::/a\n"), 32);
	file("a/memory.current", "1073741824\n");
	assert_int_equal(allowed("0::/a\n"), 0);
	file("a/memory.current", "2073741824\n");
	assert_int_equal(allowed("0::/a\n"), 0);
}

static void a_group_without_a_limit_allows_all(void **state)
{
	(void)state;
	folder("a");
	folder("a/b");
	assert_int_equal(allowed("0::/a/b\n"), 4096);
	file("a/b/memory.max", "max\n");
	file("a/b/memory.current", "12345\n");
	assert_int_equal(allowed("0::/a/b\n"), 4096);
	assert_int_equal(allowed("0::/\n"), 4096);
}

static void the_groups_above_have_limits_too(void **state)
{
	(void)state;
	folder("a");
	folder("a/b");
	file("a/b/memory.max", "max\n");
	file("a/b/memory.current", "0\n");
	file("a/memory.max", "1073741824\n");
	file("a/memory.current", "0\n");
	assert_int_equal(allowed("0::/a/b\n"), 128);
	file("memory.max", "536870912\n");
	file("memory.current", "0\n");
	assert_int_equal(allowed("0::/a/b\n"), 64);
}

static void the_high_limit_counts(void **state)
{
	(void)state;
	folder("a");
	file("a/memory.max", "max\n");
	file("a/memory.high", "1073741824\n");
	file("a/memory.current", "0\n");
	assert_int_equal(allowed("0::/a\n"), 128);
}

static void version_1_is_asked_where_it_has_memory(void **state)
{
	static const char *const texts[] = {
		"3:memory:/a\n0::/\n",
		"0::/\n3:cpu,memory:/a\n",
		"4:pids:/x\n3:memory,cpu:/a\n",
	};
	unsigned i;

	(void)state;
	folder("memory");
	folder("memory/a");
	file("memory/a/memory.limit_in_bytes", "1073741824\n");
	file("memory/a/memory.usage_in_bytes", "0\n");
	file("memory/memory.limit_in_bytes", "9223372036854771712\n");
	file("memory/memory.usage_in_bytes", "5000\n");
	for (i = 0; i < 3; i++)
		assert_int_equal(allowed(texts[i]), 128);
}

static void version_2_may_lie_beside_version_1(void **state)
{
	(void)state;
	folder("unified");
	folder("unified/a");
	file("unified/a/memory.max", "1073741824\n");
	file("unified/a/memory.current", "0\n");
	assert_int_equal(allowed("2:cpu:/\n0::/a\n"), 128);
}

/* A limit that can't be read, a group that is not there, or text of another form. */
static void what_is_not_known_allows_nothing(void **state)
{
	(void)state;
	folder("a");
	assert_int_equal(allowed(""), 0);
	assert_int_equal(allowed("0::/gone\n"), 0);
	assert_int_equal(allowed("0::/../a\n"), 0);
	assert_int_equal(allowed("2:cpu:/a\n"), 0);
	assert_int_equal(allowed("2:memoryless:/a\n"), 0);
	assert_int_equal(allowed("3:memory:/a\n"), 0);
	file("a/memory.max", "1073741824\n");
	assert_int_equal(allowed("0::/a\n"), 0); /* how much is used is not told */
	file("a/memory.current", "0\n");
	file("a/memory.max", "");
	assert_int_equal(allowed("0::/a\n"), 0);
}

static void machine_and_file_system_have_an_end(void **state)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(pem_memory__allows(1));
	assert_false(pem_memory__allows(1ull << 60));
	assert_true(pem_file_system__allows(fd, 1));
	assert_false(pem_file_system__allows(fd, 1ull << 62));
	assert_false(pem_file_system__allows(-1, 1));
	assert_false(pem_process_groups__allow(~0u, 1));
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_eighth_of_what_is_free),
		TEST(a_group_without_a_limit_allows_all),
		TEST(the_groups_above_have_limits_too),
		TEST(the_high_limit_counts),
		TEST(version_1_is_asked_where_it_has_memory),
		TEST(version_2_may_lie_beside_version_1),
		TEST(what_is_not_known_allows_nothing),
		TEST(machine_and_file_system_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
