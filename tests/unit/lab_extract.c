// SPDX-License-Identifier: MIT
/* lab_extract.c - what comes out of the lab is hostile: names, links, sizes, ends */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cli/lab/extract.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* An archive that a test writes, and the folder it goes to: one within another that stays empty. */
struct trial {
	int archive, folder;
	char outer[64], inner[80];
	char why[256];
};

static int set_up(void **state)
{
	struct trial *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	strcpy(t->outer, "/tmp/pem-lab-extract-XXXXXX");
	assert_non_null(mkdtemp(t->outer));
	snprintf(t->inner, sizeof(t->inner), "%s/inner", t->outer);
	assert_int_equal(mkdir(t->inner, 0700), 0);
	t->folder = open(t->inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t->archive = memfd_create("archive", MFD_CLOEXEC);
	assert_true(t->folder >= 0 && t->archive >= 0);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct trial *t = *state;
	char command[128];

	close(t->archive);
	close(t->folder);
	snprintf(command, sizeof(command), "rm -rf %s", t->outer);
	assert_int_equal(system(command), 0);
	free(t);
	return 0;
}

/* A header, before its checksum. */
static void make(char header[512], const char *name, char type, unsigned int bytes)
{
	memset(header, 0, 512);
	strncpy(header, name, 100);
	memcpy(header + 100, "0000644", 7);
	snprintf(header + 124, 12, "%011o", bytes);
	header[156] = type;
	memcpy(header + 257, "ustar  ", 7);
}

static void sign(char header[512])
{
	unsigned int sum = 0, i;

	memset(header + 148, ' ', 8);
	for (i = 0; i < 512; i++)
		sum += (unsigned char)header[i];
	snprintf(header + 148, 8, "%06o", sum);
}

static void put(struct trial *t, const void *data, size_t bytes)
{
	assert_int_equal(write(t->archive, data, bytes), bytes);
}

static void put_member(struct trial *t, const char *name, char type, const char *content)
{
	char header[512], block[512] = "";

	make(header, name, type, (unsigned int)strlen(content));
	sign(header);
	put(t, header, sizeof(header));
	if (*content == '\0')
		return;
	strncpy(block, content, sizeof(block) - 1);
	put(t, block, sizeof(block));
}

static void put_end(struct trial *t)
{
	static const char zero[1024];

	put(t, zero, sizeof(zero));
}

static int extract(struct trial *t)
{
	const struct lab_limits limits = {.bytes = 1000, .members = 10};

	assert_int_equal(lseek(t->archive, 0, SEEK_SET), 0);
	return lab_extract(t->archive, t->folder, &limits, t->why, sizeof(t->why));
}

static void expect_content(struct trial *t, const char *name, const char *content)
{
	char text[64] = "";
	int fd = openat(t->folder, name, O_RDONLY | O_NOFOLLOW);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(content));
	assert_string_equal(text, content);
	close(fd);
}

static void a_trace_is_unpacked(void **state)
{
	struct trial *t = *state;

	put_member(t, "./", '5', "");
	put_member(t, "./metadata", '0', "meta");
	put_member(t, "./.pem/", '5', "");
	put_member(t, "./.pem/run", '0', "run");
	put_member(t, "./empty", '\0', "");
	put_end(t);
	assert_int_equal(extract(t), 3);
	expect_content(t, "metadata", "meta");
	expect_content(t, ".pem/run", "run");
	expect_content(t, "empty", "");
}

/* Is there nothing in the outer folder but the inner one? */
static bool is_clean(const struct trial *t)
{
	DIR *folder = opendir(t->outer);
	const struct dirent *entry;
	bool clean = folder != NULL;

	while (clean && (entry = readdir(folder)) != NULL)
		clean = entry->d_name[0] == '.' || strcmp(entry->d_name, "inner") == 0;
	if (folder != NULL)
		closedir(folder);
	return clean;
}

static void expect_refusal(struct trial *t)
{
	put_end(t);
	assert_true(extract(t) < 0);
	assert_true(t->why[0] != '\0');
	assert_true(is_clean(t));
}

static void names_that_lead_elsewhere(void **state)
{
	static const char *const names[] = {
		"../x",         "./../x",   "/tmp/x", ".",          "..",        "a//b",
		".pem/../../x", ".pem/./x", "a b",    "a\nb",       "\xff",      "a\\b",
		"./",           "none/x",   ".pem/",  "metadata/x", "a/b/c/d/e", "././x"};
	struct trial *t = *state;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(ftruncate(t->archive, 0), 0);
		lseek(t->archive, 0, SEEK_SET);
		unlinkat(t->folder, "metadata", 0);
		unlinkat(t->folder, ".pem", AT_REMOVEDIR);
		put_member(t, "./.pem/", '5', "");
		put_member(t, "./metadata", '0', "m");
		put_member(t, names[i], '0', "x");
		expect_refusal(t);
	}
}

static void links_and_devices(void **state)
{
	static const char types[] = "1234678gxLKSV";
	struct trial *t = *state;
	size_t i;

	for (i = 0; i < sizeof(types) - 1; i++) {
		assert_int_equal(ftruncate(t->archive, 0), 0);
		lseek(t->archive, 0, SEEK_SET);
		put_member(t, "x", types[i], "");
		expect_refusal(t);
		assert_int_not_equal(faccessat(t->folder, "x", F_OK, AT_SYMLINK_NOFOLLOW), 0);
	}
}

/* Whoever else could write to the folder might have put one there. */
static void a_link_that_is_there_is_not_followed(void **state)
{
	struct trial *t = *state;

	assert_int_equal(symlinkat("..", t->folder, "up"), 0);
	put_member(t, "up/x", '0', "x");
	expect_refusal(t);
}

static void nothing_is_overwritten(void **state)
{
	struct trial *t = *state;

	put_member(t, "x", '0', "first");
	put_member(t, "x", '0', "second");
	expect_refusal(t);
	expect_content(t, "x", "first");
}

static void sizes_are_bounded(void **state)
{
	static const char *const sizes[] = {"00000001751", "77777777777", "-0000000001",
					    "0x000000001", "            "};
	struct trial *t = *state;
	char header[512];
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(ftruncate(t->archive, 0), 0);
		lseek(t->archive, 0, SEEK_SET);
		make(header, "x", '0', 0);
		memcpy(header + 124, sizes[i], strlen(sizes[i]));
		sign(header);
		put(t, header, sizeof(header));
		expect_refusal(t);
	}
}

static void many_members(void **state)
{
	struct trial *t = *state;
	char name[8];
	int i;

	for (i = 0; i < 11; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		put_member(t, name, '0', "");
	}
	expect_refusal(t);
}

static void sizes_add_up(void **state)
{
	struct trial *t = *state;
	char content[512], name[8];
	int i;

	memset(content, 'x', sizeof(content) - 1);
	content[sizeof(content) - 1] = '\0';
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		put_member(t, name, '0', content);
	}
	expect_refusal(t);
}

static void a_wrong_checksum(void **state)
{
	struct trial *t = *state;
	char header[512];

	make(header, "x", '0', 0);
	sign(header);
	header[0] = 'y';
	put(t, header, sizeof(header));
	expect_refusal(t);
}

static void a_long_prefix(void **state)
{
	struct trial *t = *state;
	char header[512];

	make(header, "x", '0', 0);
	strcpy(header + 345, "..");
	sign(header);
	put(t, header, sizeof(header));
	expect_refusal(t);
}

static void an_archive_that_breaks_off(void **state)
{
	struct trial *t = *state;

	assert_int_equal(extract(t), -EPERM);
	put_member(t, "x", '0', "content");
	assert_int_equal(extract(t), -EPERM); /* no end */
	assert_string_equal(t->why, "it breaks off");
	assert_int_equal(unlinkat(t->folder, "x", 0), 0);
	assert_int_equal(ftruncate(t->archive, 700), 0);
	assert_int_equal(extract(t), -EPERM);
	assert_string_equal(t->why, "it breaks off");
}

#define TRIAL(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TRIAL(a_trace_is_unpacked),
		TRIAL(names_that_lead_elsewhere),
		TRIAL(links_and_devices),
		TRIAL(a_link_that_is_there_is_not_followed),
		TRIAL(nothing_is_overwritten),
		TRIAL(sizes_are_bounded),
		TRIAL(many_members),
		TRIAL(sizes_add_up),
		TRIAL(a_wrong_checksum),
		TRIAL(a_long_prefix),
		TRIAL(an_archive_that_breaks_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
