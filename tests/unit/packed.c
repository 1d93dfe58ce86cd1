// SPDX-License-Identifier: MIT
/*
 * packed.c - compressed stream files: what is written is read, at any offset; files that are cut,
 * and that no recorder wrote
 */
#include "packed.h"

#include <pem/abi.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCKS 20u
#define RAW_BYTES 200000u
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static uint8_t raw[RAW_BYTES], back[RAW_BYTES];
static uint64_t ends[BLOCKS + 1]; /* offsets in the file at which blocks end */
static size_t sizes[BLOCKS];
static size_t raw_bytes;
static int fd;

static int set_up(void **state)
{
	struct pem_error error = {""};
	struct pem_packer *packer = pem_packer__new(&error);
	char path[] = "/tmp/pem-packed-XXXXXX";
	uint32_t seed = 1, i;
	ssize_t written;

	(void)state;
	if (!packer) {
		print_message("%s\n", error.text);
		return -1;
	}
	fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	unlink(path);
	for (i = 0; i < RAW_BYTES; i++) {
		seed = seed * 1664525u + 1013904223u;
		raw[i] = (uint8_t)(i % 24 < 20 ? i / 24 : seed >> 24);
	}
	raw_bytes = 0;
	for (i = 0; i < BLOCKS; i++) {
		sizes[i] = 128 + i * i * 37;
		written = pem_packer__write(packer, fd, raw + raw_bytes, sizes[i]);
		if (written <= 0)
			return -1;
		ends[i + 1] = ends[i] + (uint64_t)written;
		raw_bytes += sizes[i];
	}
	pem_packer__free(packer);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return close(fd);
}

static struct pem_packed *open_file(uint64_t bytes)
{
	struct pem_packed *packed;

	assert_int_equal(pem_packed__open(fd, bytes, &packed), 0);
	assert_non_null(packed);
	return packed;
}

static void any_part_is_read(void **state)
{
	struct pem_packed *packed = open_file(ends[BLOCKS]);
	uint32_t seed = 7, i;
	size_t at, bytes;

	(void)state;
	assert_int_equal(pem_packed__raw_bytes(packed), raw_bytes);
	assert_int_equal(pem_packed__whole_bytes(packed), ends[BLOCKS]);
	assert_false(pem_packed__is_torn(packed));
	assert_true(ends[BLOCKS] < raw_bytes);
	for (i = 0; i < 2000; i++) {
		seed = seed * 1664525u + 1013904223u;
		at = seed % raw_bytes;
		bytes = (seed >> 7) % 9000;
		pem_packed__keep(packed, i % 3 ? 1 << 20 : 0);
		if (bytes > raw_bytes - at)
			bytes = raw_bytes - at;
		assert_int_equal(pem_packed__read(packed, fd, back, bytes, at), bytes);
		assert_memory_equal(back, raw + at, bytes);
	}
	assert_int_equal(pem_packed__read(packed, fd, back, RAW_BYTES, 0), raw_bytes);
	assert_memory_equal(back, raw, raw_bytes);
	assert_int_equal(pem_packed__read(packed, fd, back, 10, raw_bytes - 3), 3);
	assert_int_equal(pem_packed__read(packed, fd, back, 10, raw_bytes), 0);
	pem_packed__free(packed);
}

/* However long the file is: its whole blocks are there, and it is told whether there is more. */
static void a_cut_file_has_its_whole_blocks(void **state)
{
	struct pem_packed *packed;
	uint64_t bytes, expected;
	unsigned whole;

	(void)state;
	for (bytes = ends[2]; bytes <= ends[4]; bytes++) {
		whole = bytes >= ends[4] ? 4 : bytes >= ends[3] ? 3 : 2;
		expected = sizes[0] + sizes[1] + (whole > 2 ? sizes[2] : 0) +
			   (whole > 3 ? sizes[3] : 0);
		packed = open_file(bytes);
		assert_int_equal(pem_packed__raw_bytes(packed), expected);
		assert_int_equal(pem_packed__whole_bytes(packed), ends[whole]);
		assert_int_equal(pem_packed__is_torn(packed), bytes != ends[whole]);
		assert_false(pem_packed__is_damaged(packed));
		pem_packed__free(packed);
	}
}

static void other_files_are_not_compressed(void **state)
{
	struct pem_packed *packed = (struct pem_packed *)1;
	uint32_t magic = 0xC1FC1FC1;

	(void)state;
	assert_int_equal(pem_packed__open(fd, 3, &packed), 0);
	assert_null(packed);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pem_packed__open(fd, 0, &packed), 0);
	assert_null(packed);
	assert_int_equal(write(fd, &magic, sizeof(magic)), sizeof(magic));
	assert_int_equal(pem_packed__open(fd, sizeof(magic), &packed), 0);
	assert_null(packed);
	pem_packed__free(NULL);
	pem_packed__drop(NULL);
}

/* Change a number of the head of the third block. The file ends before it then. */
static void check_refused(size_t member, uint32_t value)
{
	struct pem_packed *packed;
	uint32_t was;

	assert_int_equal(pread(fd, &was, 4, (off_t)(ends[2] + member)), 4);
	fcntl(fd, F_SETFL, 0); /* pwrite appends to files that are open for appending */
	assert_int_equal(pwrite(fd, &value, 4, (off_t)(ends[2] + member)), 4);
	packed = open_file(ends[BLOCKS]);
	assert_int_equal(pem_packed__raw_bytes(packed), sizes[0] + sizes[1]);
	assert_true(pem_packed__is_damaged(packed));
	assert_false(pem_packed__is_torn(packed));
	pem_packed__free(packed);
	assert_int_equal(pwrite(fd, &was, 4, (off_t)(ends[2] + member)), 4);
}

static void heads_that_can_not_be_end_the_stream(void **state)
{
	(void)state;
	check_refused(offsetof(struct pem_packed_head, magic), PEM_PACKED_MAGIC + 1);
	check_refused(offsetof(struct pem_packed_head, bytes), 7);
	check_refused(offsetof(struct pem_packed_head, bytes), ~0u);
	check_refused(offsetof(struct pem_packed_head, packed_bytes), 0);
	check_refused(offsetof(struct pem_packed_head, packed_bytes),
		      (uint32_t)(ends[BLOCKS] - ends[2] - 15));
	check_refused(offsetof(struct pem_packed_head, packed_bytes), ~0u);
	check_refused(offsetof(struct pem_packed_head, raw_bytes), 0);
	check_refused(offsetof(struct pem_packed_head, raw_bytes), PEM_PACKET_HEADER_BYTES - 1);
	check_refused(offsetof(struct pem_packed_head, raw_bytes), PEM_PACKED_RAW_MAX + 1);
	check_refused(offsetof(struct pem_packed_head, raw_bytes), ~0u);
	/* More than zstd makes of so many bytes, however long the file is. */
	assert_int_equal(ftruncate(fd, 1ll << 32), 0);
	ends[BLOCKS] = 1ull << 32;
	check_refused(offsetof(struct pem_packed_head, packed_bytes), 0xf0000000);
	check_refused(offsetof(struct pem_packed_head, packed_bytes), 400);
}

/* What follows the last block is the beginning of one, or anything else. */
static void a_tail_is_torn_or_damaged(void **state)
{
	static const uint8_t head[] = {0x5e, 0x2a, 0x4d, 0x18, 8, 0, 0, 0, 1};
	struct pem_packed *packed;
	size_t bytes;

	(void)state;
	for (bytes = 1; bytes <= sizeof(head); bytes++) {
		assert_int_equal(ftruncate(fd, (off_t)ends[3]), 0);
		assert_int_equal(write(fd, head, bytes), bytes);
		packed = open_file(ends[3] + bytes);
		assert_true(pem_packed__is_torn(packed) && !pem_packed__is_damaged(packed));
		pem_packed__free(packed);
		assert_int_equal(ftruncate(fd, (off_t)ends[3]), 0);
		assert_int_equal(write(fd, head, bytes - 1), bytes - 1);
		assert_int_equal(write(fd, "\xff", 1), 1);
		packed = open_file(ends[3] + bytes);
		assert_int_equal(pem_packed__is_damaged(packed), bytes <= 8);
		assert_int_equal(pem_packed__is_torn(packed), bytes > 8);
		assert_int_equal(pem_packed__whole_bytes(packed), ends[3]);
		pem_packed__free(packed);
	}
}

/* A file that can't be read is not taken for a shorter one. */
static void failing_reads_are_told(void **state)
{
	struct pem_packed *packed = open_file(ends[BLOCKS]), *none;
	int closed = dup(fd);

	(void)state;
	close(closed);
	assert_int_equal(pem_packed__open(closed, 1000, &none), -EBADF);
	assert_null(none);
	assert_int_equal(pem_packed__read(packed, closed, back, 10, 0), -EBADF);
	/* It has become shorter. */
	assert_int_equal(ftruncate(fd, (off_t)ends[2] + 5), 0);
	assert_int_equal(pem_packed__read(packed, fd, back, RAW_BYTES, 0), sizes[0] + sizes[1]);
	assert_memory_equal(back, raw, sizes[0] + sizes[1]);
	pem_packed__free(packed);
}

/* Without memory bytes are stored as they are, and any reader of zstd takes them. */
static void blocks_may_be_stored(void **state)
{
	struct pem_packer *packer = pem_packer__new(NULL);
	struct pem_packed *packed;
	static uint8_t large[300000], again[300000];
	struct rlimit was, few;
	ssize_t written;

	(void)state;
	if (SANITIZED) {
		print_message("a sanitizer ends the program where there is no memory\n");
		pem_packer__free(packer);
		skip();
	}
	memset(large, 7, sizeof(large));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	few = (struct rlimit){1, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &few), 0);
	written = pem_packer__write(packer, fd, large, sizeof(large));
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
	assert_true(written > (ssize_t)sizeof(large));
	packed = open_file((uint64_t)written);
	assert_int_equal(pem_packed__read(packed, fd, again, sizeof(again), 0), sizeof(again));
	assert_memory_equal(again, large, sizeof(large));
	pem_packed__free(packed);
	pem_packer__free(packer);
}

/* A block that has more or fewer bytes than its head says, or other ones, is damaged; others are
 * not. */
static void damaged_blocks_are_told(void **state)
{
	static const int changes[] = {-1, 1};
	struct pem_packed *packed;
	off_t at = (off_t)(ends[1] + offsetof(struct pem_packed_head, raw_bytes));
	uint32_t value;
	uint8_t byte;
	unsigned i;

	(void)state;
	fcntl(fd, F_SETFL, 0);
	for (i = 0; i < 2; i++) {
		value = (uint32_t)((int)sizes[1] + changes[i]);
		assert_int_equal(pwrite(fd, &value, 4, at), 4);
		packed = open_file(ends[BLOCKS]);
		assert_int_equal(pem_packed__read(packed, fd, back, 10, sizes[0] - 5), -EBADMSG);
		assert_int_equal(pem_packed__read(packed, fd, back, 10, sizes[0] - 10), 10);
		assert_memory_equal(back, raw + sizes[0] - 10, 10);
		pem_packed__free(packed);
	}
	value = (uint32_t)sizes[1];
	assert_int_equal(pwrite(fd, &value, 4, at), 4);
	/* The magic number of its frame. */
	assert_int_equal(pread(fd, &byte, 1, (off_t)ends[1] + 16), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)ends[1] + 16), 1);
	packed = open_file(ends[BLOCKS]);
	assert_int_equal(pem_packed__read(packed, fd, back, 10, sizes[0]), -EBADMSG);
	assert_int_equal(pem_packed__read(packed, fd, back, 10, sizes[0] + sizes[1]), 10);
	pem_packed__free(packed);
}

static void failed_writes_are_told(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct pem_packer *packer = pem_packer__new(NULL);

	(void)state;
	assert_non_null(packer);
	if (full >= 0)
		assert_int_equal(pem_packer__write(packer, full, raw, 1000), -ENOSPC);
	assert_int_equal(pem_packer__write(packer, -1, raw, 1000), -EBADF);
	assert_int_equal(pem_packer__write(packer, fd, raw, PEM_PACKED_RAW_MAX + 1), -EFBIG);
	pem_packer__free(packer);
	pem_packer__free(NULL);
	close(full);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(any_part_is_read),
		TEST(a_cut_file_has_its_whole_blocks),
		TEST(other_files_are_not_compressed),
		TEST(heads_that_can_not_be_end_the_stream),
		TEST(a_tail_is_torn_or_damaged),
		TEST(failing_reads_are_told),
		TEST(blocks_may_be_stored),
		TEST(damaged_blocks_are_told),
		TEST(failed_writes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
