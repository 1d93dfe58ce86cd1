// SPDX-License-Identifier: MIT
/*
 * fault_ranges.c - shared memory that is cut off reads as zeroes, however many mappings are watched
 */

#include "core/fault.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096u
#define MAPPINGS 10000

static char *mapping[MAPPINGS];
static int cut[MAPPINGS];

static char *map(int fd)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static int file_of(size_t bytes)
{
	int fd = memfd_create("pool", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

/* The first, one in the middle, and the last are of files that are truncated. */
static void check_any_number(void)
{
	const int at[] = {0, 4095, 4096, MAPPINGS - 1};
	int other = file_of(PAGE), fd[4], i, k = 0;

	for (i = 0; i < 4; i++)
		fd[i] = file_of(PAGE);
	for (i = 0; i < MAPPINGS; i++) {
		mapping[i] = map(i == at[k] ? fd[k] : other);
		k += i == at[k] && k < 3;
		assert_int_equal(pem_fault__watch(mapping[i], PAGE, &cut[i]), 0);
		mapping[i][0] = 1;
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(ftruncate(fd[i], 0), 0);
		assert_int_equal(*(volatile char *)mapping[at[i]], 0);
		close(fd[i]);
	}
	for (i = 0; i < MAPPINGS; i++)
		assert_int_equal(cut[i], i == at[0] || i == at[1] || i == at[2] || i == at[3]);
	for (i = 0; i < MAPPINGS; i++) {
		pem_fault__forget(mapping[i]);
		munmap(mapping[i], PAGE);
	}
	close(other);
}

/* A range that was forgotten is used again, and no other is taken for it. */
static void check_reuse(void)
{
	int fd = file_of(PAGE), flag, i;
	char *memory;

	for (i = 0; i < 3 * MAPPINGS; i++) {
		flag = 0;
		memory = map(fd);
		assert_int_equal(pem_fault__watch(memory, PAGE, &flag), 0);
		if (i == 3 * MAPPINGS - 1) {
			assert_int_equal(ftruncate(fd, 0), 0);
			assert_int_equal(*(volatile char *)memory, 0);
			assert_int_equal(flag, 1);
		}
		pem_fault__forget(memory);
		munmap(memory, PAGE);
	}
	close(fd);
}

/* One test: the handler is installed once, and cmocka installs its own before each test. */
static void any_number_is_watched(void **state)
{
	(void)state;
	check_any_number();
	check_reuse();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_number_is_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
