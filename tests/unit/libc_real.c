// SPDX-License-Identifier: MIT
/*
 * libc_real.c - which functions libpem-libc passes calls on to
 *
 * Its wrappers are not linked: this program's own malloc is not stood in front of.
 */
#include "libc/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * As in a program whose first call comes before the constructors. The table itself is put back by
 * finding again.
 */
static void *(*first_malloc)(size_t size);

__attribute__((constructor(102))) static void note_found(void)
{
	first_malloc = PEM_LIBC_REAL(malloc); /* by a constructor of a lower number */
}

static void constructor_finds_them(void **state)
{
	void *found = dlsym(RTLD_NEXT, "malloc");

	(void)state;
	assert_memory_equal(&first_malloc, &found, sizeof(found));
}

#define ASSERT_REAL(name)                                                                          \
	do {                                                                                       \
		void *wanted_ = dlsym(RTLD_NEXT, #name);                                           \
		assert_non_null(wanted_);                                                          \
		assert_memory_equal(&pem_libc_real.name, &wanted_, sizeof(wanted_));               \
	} while (0)

static void each_is_the_one_of_its_name(void **state)
{
	(void)state;
	ASSERT_REAL(malloc);
	ASSERT_REAL(calloc);
	ASSERT_REAL(realloc);
	ASSERT_REAL(free);
	ASSERT_REAL(posix_memalign);
	ASSERT_REAL(aligned_alloc);
	ASSERT_REAL(memalign);
	ASSERT_REAL(valloc);
	ASSERT_REAL(pvalloc);
	ASSERT_REAL(mmap);
	ASSERT_REAL(munmap);
	ASSERT_REAL(pthread_create);
}

/*
 * The version that programs are linked with: of some the C library keeps older ones, which dlsym
 * used to prefer.
 */
static void *of_today(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name), *found = NULL;
	Dl_info info;

	/* A sanitizer's own has no versions. */
	if (!next || !dladdr(next, &info) || !strstr(info.dli_fname, "libc.so"))
		return next;
#if defined(__x86_64__)
	if (!strncmp(name, "pthread_cond_", 13) && strcmp(name, "pthread_cond_clockwait"))
		found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
	else if (!strncmp(name, "posix_spawn", 11))
		found = dlvsym(RTLD_NEXT, name, "GLIBC_2.15");
#endif
	return found ? found : next;
}

static void each_of_the_others_is_the_one_of_its_name(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < PEM_LIBC_NEXT_COUNT; i++) {
		void *wanted = of_today(pem_libc_next_names[i]);

		if (wanted && pem_libc_next__get(i) != wanted)
			fail_msg("%s: %p, the loader %p", pem_libc_next_names[i],
				 pem_libc_next__get(i), wanted);
	}
}

static void first_call_finds_its_function(void **state)
{
	void *wanted = of_today("write");

	(void)state;
	memset(pem_libc_next, 0, sizeof(pem_libc_next));
	errno = 77;
	assert_ptr_equal(pem_libc_next__get(PEM_LIBC_NEXT_write), wanted);
	assert_int_equal(errno, 77);
	assert_ptr_equal(pem_libc_next[PEM_LIBC_NEXT_write], wanted);
	/* That is all it finds. */
	assert_null(pem_libc_next[PEM_LIBC_NEXT_read]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constructor_finds_them),
		cmocka_unit_test(each_is_the_one_of_its_name),
		cmocka_unit_test(each_of_the_others_is_the_one_of_its_name),
		cmocka_unit_test(first_call_finds_its_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
