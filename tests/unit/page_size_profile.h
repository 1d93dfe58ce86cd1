/* SPDX-License-Identifier: MIT */
/* page_size_profile.h - profiles that are written piece by piece, for the tests of their reader */
#ifndef PAGE_SIZE_PROFILE_FIXTURE_H
#define PAGE_SIZE_PROFILE_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "profile/profile.h"
#include "profile/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define BASE (UINT64_C(1) << 32)

static char path[] = "/tmp/pem-profile-XXXXXX";
static struct pem_error error;

/* A profile that is written piece by piece. */
static unsigned char file[8u << 20];
static size_t used;

static inline void put(const void *data, size_t bytes)
{
	assert_true(used + bytes <= sizeof(file));
	memcpy(file + used, data, bytes);
	used += bytes;
}

static inline void put_chunk(uint32_t kind, const void *payload, uint32_t bytes)
{
	const struct profile_chunk head = {.kind = kind, .bytes = bytes};
	const uint64_t zero = 0;

	put(&head, sizeof(head));
	put(payload, bytes);
	put(&zero, -bytes & 7);
}

static inline void put_head(void)
{
	const struct profile_head head = {
		.magic = PROFILE_MAGIC, .source = PROFILE_VALGRIND, .pid = 1};

	used = 0;
	put(&head, sizeof(head));
}

static inline void put_object(uint64_t number, const char *name)
{
	struct {
		struct profile_object object;
		char path[64];
	} chunk = {.object = {.object = number}};

	strcpy(chunk.path, name);
	put_chunk(PROFILE_OBJECT, &chunk, sizeof(chunk.object) + strlen(name) + 1);
}

static inline void put_site(uint64_t offset)
{
	const struct profile_site site = {
		.site = {.kind = PAGE_SITE_HEAP, .frame_count = 1, .frames = {{7, offset}}}};

	put_chunk(PROFILE_SITE, &site, sizeof(site));
}

static inline void put_range(uint64_t start, uint64_t end, uint32_t site, uint64_t requested)
{
	const struct profile_range range = {start, end, site, 0, requested};

	put_chunk(PROFILE_RANGE, &range, sizeof(range));
}

static inline void put_burst(uint64_t at, uint32_t thread, const uint64_t *references,
			     uint32_t count)
{
	struct {
		struct profile_burst burst;
		uint64_t references[64];
	} chunk = {.burst = {.at = at, .thread = thread}};

	assert_true(count <= 64);
	memcpy(chunk.references, references, count * sizeof(*references));
	put_chunk(PROFILE_BURST, &chunk, sizeof(chunk.burst) + count * sizeof(*references));
}

#define BURST(at, thread, ...)                                                                     \
	put_burst(at, thread, (const uint64_t[]){__VA_ARGS__},                                     \
		  sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static inline void put_end(uint64_t references)
{
	const struct profile_end end = {.references = references,
					.instructions = 99,
					.lost = 3,
					.stopped_at = 5,
					.forks = 7};

	put_chunk(PROFILE_END, &end, sizeof(end));
}

static inline struct page_profile *open_bytes(size_t bytes)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, bytes), bytes);
	close(fd);
	error.text[0] = '\0';
	return page_profile__open(path, &error);
}

static inline struct page_profile *open_sound(void)
{
	struct page_profile *profile = open_bytes(used);

	assert_string_equal(error.text, "");
	assert_non_null(profile);
	return profile;
}

static inline void expect_damaged(const char *what)
{
	struct page_profile *profile = open_bytes(used);

	assert_null(profile);
	assert_int_equal(errno, EBADMSG);
	if (!strstr(error.text, what) || !strstr(error.text, path))
		fail_msg("'%s' lacks '%s'", error.text, what);
}

/* Two sites of 2 MiB each. */
static inline void put_sites(void)
{
	put_head();
	put_object(7, "/bin/app");
	put_site(0x10);
	put_site(0x20);
	put_range(BASE, BASE + 2 * MIB, 0, 100);
	put_range(BASE + 2 * MIB, BASE + 4 * MIB, 1, 200);
}

/* --- sound profiles --- */

/* Run tests with a file for profiles. */
static inline int run_with_file(const struct CMUnitTest *tests, size_t count)
{
	int fd = mkstemp(path), failed;

	if (fd < 0)
		return 1;
	close(fd);
	failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
	unlink(path);
	return failed;
}

#endif
