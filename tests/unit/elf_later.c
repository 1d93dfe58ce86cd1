// SPDX-License-Identifier: MIT
/*
 * elf_later.c - finding functions in libraries that were loaded after the program's start
 *
 * Three libraries made here define the same name; one more needs one of them.
 */
#include "libc/elf_later.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/pem-elf-later-XXXXXX";
static const char *const names[] = {"pem_later", "pem_missing"};

/* lib<name>.so, from source, linked with flags. */
static void make(const char *name, const char *source, const char *flags)
{
	char command[600];

	snprintf(command, sizeof(command),
		 "cd %s && echo '%s' | ${CC:-cc} -w -shared -fPIC -x c - -x none -o lib%s.so "
		 "-Wl,-soname,lib%s.so -L. -Wl,-rpath,%s %s",
		 folder, source, name, name, folder, flags);
	assert_int_equal(system(command), 0);
}

static void *load(const char *name)
{
	char path[100];
	void *library;

	snprintf(path, sizeof(path), "%s/lib%s.so", folder, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	return library;
}

static int make_libraries(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	make("other", "int pem_later(void) { return 1; }", "");
	make("needed", "int pem_later(void) { return 2; }", "");
	make("named", "int pem_later(void) { return 3; }", "");
	make("caller", "int pem_later(void); int use(void) { return pem_later(); }", "-lneeded");
	make("both", "int pem_later(void) { return 4; } int use(void) { return 0; }", "-lneeded");
	return 0;
}

static int remove_libraries(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static uintptr_t site_in(void *library)
{
	return (uintptr_t)dlsym(library, "use") + 1;
}

static void nothing_is_found_in_no_library(void **state)
{
	void *found[2] = {&found, &found};

	(void)state;
	assert_false(pem_elf__find_later(0, NULL, names, found, 2));
	assert_ptr_equal(found[0], &found);
	assert_ptr_equal(found[1], &found);
}

static void caller_then_what_it_needs_then_the_name(void **state)
{
	void *other = load("other"), *found[2];
	void *caller, *both, *named;

	(void)state;
	/* of another name only: found where no name is asked for */
	assert_false(pem_elf__find_later(0, "libnamed.so", names, found, 2));
	assert_true(pem_elf__find_later(0, NULL, names, found, 2));
	assert_ptr_equal(found[0], dlsym(other, "pem_later"));
	assert_null(found[1]);
	named = load("named");
	assert_true(pem_elf__find_later(0, NULL, names, found, 2));
	assert_ptr_equal(found[0], dlsym(other, "pem_later")); /* the first of equals */
	assert_true(pem_elf__find_later(0, "libnamed.so", names, found, 2));
	assert_ptr_equal(found[0], dlsym(named, "pem_later"));
	caller = load("caller");
	assert_true(pem_elf__find_later(site_in(caller), "libnamed.so", names, found, 2));
	assert_ptr_equal(found[0], dlsym(caller, "pem_later"));
	both = load("both");
	assert_true(pem_elf__find_later(site_in(both), "libnamed.so", names, found, 2));
	assert_ptr_equal(found[0], dlsym(both, "pem_later"));
	dlclose(both);
	dlclose(caller);
	assert_true(pem_elf__find_later(0, "libnamed.so", names, found, 2));
	assert_ptr_equal(found[0], dlsym(named, "pem_later"));
	dlclose(named);
	dlclose(other);
}

static void leaves_errno_and_dlerror_alone(void **state)
{
	void *found[2], *other = load("other");
	const char *text;

	(void)state;
	assert_null(dlsym(RTLD_DEFAULT, "pem_mine_is_missing"));
	errno = 77;
	assert_true(pem_elf__find_later(0, NULL, names, found, 2));
	assert_false(pem_elf__find_later(0, "libnamed.so", names, found, 2));
	assert_int_equal(errno, 77);
	text = dlerror();
	assert_non_null(text);
	assert_non_null(strstr(text, "pem_mine_is_missing"));
	dlclose(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_in_no_library),
		cmocka_unit_test(caller_then_what_it_needs_then_the_name),
		cmocka_unit_test(leaves_errno_and_dlerror_alone),
	};

	return cmocka_run_group_tests(tests, make_libraries, remove_libraries);
}
