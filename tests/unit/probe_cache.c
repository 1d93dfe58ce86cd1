/* SPDX-License-Identifier: MIT */
/*
 * probe_cache.c - what a search found in a binary is had again by its name, and not once the binary has changed
 */
#ifdef PEM_TEST_LIBBPF
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "libpem/sources/kernel/probes.h"

#define NAME "uprobe:prog:f"

static char path[] = "/tmp/pem-probe-cache-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || write(fd, "one", 3) != 3)
		return -1;
	return close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static struct pem_probe *found(enum pem_probe_kind kind, const char *name)
{
	struct pem_probe *probe = pem_probe__new(kind, name, "APP", "prog", "f");

	probe->path = strdup(path);
	probe->description = strdup("entry of f");
	probe->sites = calloc(2, sizeof(*probe->sites));
	probe->sites[0].offset = 0x1000;
	probe->sites[1].semaphore = 7;
	probe->site_count = 2;
	strcpy(pem_probe__add_field(probe, "arg0")->name, "arg0");
	return probe;
}

static void a_copy_is_had_by_its_name(void **state)
{
	struct pem_probe *probe, *again;

	(void)state;
	assert_null(pem_probe_cache__find(NAME));
	pem_probe_cache__keep(found(PEM_PROBE_UPROBE, NAME));
	probe = pem_probe_cache__find(NAME);
	again = pem_probe_cache__find(NAME);
	assert_non_null(probe);
	assert_non_null(again);
	assert_ptr_not_equal(probe->sites, again->sites);
	assert_string_equal(probe->specifier, "f");
	assert_string_equal(probe->description, "entry of f");
	assert_string_equal(probe->fields[0].name, "arg0");
	assert_int_equal(probe->field_count, 1);
	assert_int_equal(probe->site_count, 2);
	assert_int_equal(probe->sites[0].offset, 0x1000);
	assert_int_equal(probe->sites[1].semaphore, 7);
	pem_probe__free(probe);
	pem_probe__free(again);
	assert_null(pem_probe_cache__find("uprobe:prog:g"));
}

static void other_kinds_are_not_kept(void **state)
{
	(void)state;
	pem_probe_cache__keep(found(PEM_PROBE_KPROBE, "kprobe:f"));
	assert_null(pem_probe_cache__find("kprobe:f"));
}

static void a_changed_binary_is_searched_anew(void **state)
{
	FILE *file;

	(void)state;
	pem_probe_cache__keep(found(PEM_PROBE_UPROBE, NAME));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("another", file);
	assert_int_equal(fclose(file), 0);
	assert_null(pem_probe_cache__find(NAME));
}

static void the_oldest_makes_room(void **state)
{
	struct pem_probe *probe;
	char name[64];
	unsigned i;

	(void)state;
	for (i = 0; i <= PEM_PROBES_MAX; i++) {
		snprintf(name, sizeof(name), "uprobe:prog:f%u", i);
		pem_probe_cache__keep(found(PEM_PROBE_UPROBE, name));
	}
	probe = pem_probe_cache__find(name);
	assert_non_null(probe);
	pem_probe__free(probe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_had_by_its_name),
		cmocka_unit_test(other_kinds_are_not_kept),
		cmocka_unit_test(a_changed_binary_is_searched_anew),
		cmocka_unit_test(the_oldest_makes_room),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
