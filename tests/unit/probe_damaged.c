/* SPDX-License-Identifier: MIT */
/*
 * probe_damaged.c - programs with damaged headers, symbols, unwind tables and debug information are
 * searched for functions, or refused: nothing crashes, hangs or is out of bounds
 */
#ifdef PEM_TEST_LIBBPF
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "libpem/sources/kernel/probes/probes.h"

#define FILES 400

static char path[] = "/tmp/pem-probe-damaged-XXXXXX";
static char *good;
static size_t bytes;

static int read_program(void **state)
{
	const char *build = getenv("B");
	char name[4096];
	FILE *file;
	long size;

	(void)state;
	snprintf(name, sizeof(name), "%s/programs/functions", build ? build : "build");
	file = fopen(name, "re");
	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) <= 0)
		return -1;
	rewind(file);
	bytes = (size_t)size;
	good = malloc(bytes);
	if (!good || fread(good, 1, bytes, file) != bytes)
		return -1;
	fclose(file);
	return close(mkstemp(path));
}

static int forget_program(void **state)
{
	(void)state;
	free(good);
	return unlink(path);
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* A place where something can go wrong: near the begin of a section, or of the tables of headers.
 */
static size_t choose(uint64_t *seed)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)good;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(good + header->e_shoff);
	uint64_t which = next(seed) % (header->e_shnum + 2u), start;

	start = which == 0 ? 0 : which == 1 ? header->e_shoff : sections[which - 2].sh_offset;
	return (size_t)((start + next(seed) % (1u << next(seed) % 11)) % bytes);
}

static void write_damaged(uint64_t *seed)
{
	static const char values[] = {0, 1, 0x7f, (char)0x80, (char)0xff};
	unsigned i, changes = 1u << next(seed) % 6;
	char *bad = malloc(bytes);
	size_t left = next(seed) % 8 ? bytes : next(seed) % bytes;
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_non_null(bad);
	memcpy(bad, good, bytes);
	for (i = 0; i < changes; i++)
		bad[choose(seed)] =
			next(seed) % 2 ? values[next(seed) % sizeof(values)] : (char)next(seed);
	assert_int_equal(fwrite(bad, 1, left, file), left);
	fclose(file);
	free(bad);
}

static int take(void *arg, struct pem_probe *probe)
{
	unsigned i;

	++*(unsigned *)arg;
	for (i = 0; i < probe->field_count; i++) {
		assert_true(*probe->fields[i].name);
		assert_true(probe->fields[i].location.offset < 512);
		assert_true(probe->fields[i].location.load_bytes <= 8);
	}
	pem_probe__free(probe);
	return 0;
}

/* Search for a pattern. Returns how many probes were found. */
static unsigned search(enum pem_probe_kind kind, const char *pattern)
{
	struct pem_error error = {""};
	char text[256];
	unsigned found = 0;
	int rc;

	snprintf(text, sizeof(text), "%s:%s", path, pattern);
	rc = pem_probe__find_in_binary(kind, text, take, &found, &error);
	assert_true(rc == (int)found || (rc < 0 && !found && *error.text));
	return found;
}

static int keep(void *arg, struct pem_probe *probe)
{
	*(struct pem_probe **)arg = probe;
	return 0;
}

static void an_undamaged_program_has_parameters(void **state)
{
	FILE *file = fopen(path, "we");
	struct pem_probe *probe = NULL;
	struct pem_error error = {""};
	char text[256];

	(void)state;
	assert_non_null(file);
	assert_int_equal(fwrite(good, 1, bytes, file), bytes);
	fclose(file);
	snprintf(text, sizeof(text), "%s:wide", path);
	assert_int_equal(pem_probe__find_in_binary(PEM_PROBE_UPROBE, text, keep, &probe, &error),
			 1);
	assert_int_equal(probe->site_count, 1);
#ifdef PEM_TEST_LIBDW
	assert_int_equal(probe->field_count, 8);
	assert_string_equal(probe->fields[1].name, "h");
	assert_int_equal(probe->fields[1].type, PEM_TYPE_UINT16);
	assert_int_equal(probe->fields[7].type, PEM_TYPE_STRING);
#endif
	pem_probe__free(probe);
}

static void damaged_programs_are_searched_or_refused(void **state)
{
	unsigned i, at, found = 0;
	char address[32];
	uint64_t seed = 36;

	(void)state;
	for (i = 0; i < FILES; i++) {
		write_damaged(&seed);
		found += search(PEM_PROBE_UPROBE, "*");
		found += search(PEM_PROBE_URETPROBE, "*");
		for (at = 0; at < 4; at++) {
			snprintf(address, sizeof(address), "0x%x",
				 0x1000 + (unsigned)(next(&seed) % 0x400));
			found += search(PEM_PROBE_UPROBE, address);
		}
	}
	assert_true(found > FILES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_undamaged_program_has_parameters),
		cmocka_unit_test(damaged_programs_are_searched_or_refused),
	};

	return cmocka_run_group_tests(tests, read_program, forget_program);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
