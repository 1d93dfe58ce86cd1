// SPDX-License-Identifier: MIT
/*
 * program_memory.c - a program whose models find no memory: that is the error which is reported,
 * and no model of the program is called wrong
 *
 * Memory is limited to what the search reads, so that a copy of it finds none.
 */
#include <pem/pem.h>

#include <elf.h>
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define MODEL_BYTES (12u << 20)

static char path[64], said[1024];
static struct pem_session *session;
static struct rlimit limit;

static void note(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	snprintf(said, sizeof(said), "%s", text);
}

static int set_up(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options), .log = note};

	(void)state;
	/* What is freed is the system's again, so that the limit is exact. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	snprintf(path, sizeof(path), "/tmp/pem-memory-%d", (int)getpid());
	said[0] = '\0';
	session = pem_session__open(&options, NULL);
	return !session || getrlimit(RLIMIT_DATA, &limit);
}

static int tear_down(void **state)
{
	(void)state;
	pem_session__close(session);
	unlink(path);
	return 0;
}

/* A program with one model of so many bytes, which is damaged and is never read so far. */
static void make_program(size_t bytes)
{
	static const char names[] = "\0pem_model";
	const Elf64_Shdr sections[3] = {
		{0},
		{.sh_type = SHT_STRTAB,
		 .sh_offset = sizeof(Elf64_Ehdr) + sizeof(sections),
		 .sh_size = sizeof(names)},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_offset = sizeof(Elf64_Ehdr) + sizeof(sections) + sizeof(names),
		 .sh_size = bytes},
	};
	const Elf64_Ehdr head = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_shoff = sizeof(head),
		.e_shentsize = sizeof(*sections),
		.e_shnum = 3,
		.e_shstrndx = 1};
	FILE *file = fopen(path, "we");
	char *model = malloc(bytes);

	assert_non_null(file);
	assert_non_null(model);
	memset(model, 'x', bytes);
	model[bytes - 1] = '\0';
	assert_int_equal(fwrite(&head, sizeof(head), 1, file), 1);
	assert_int_equal(fwrite(sections, sizeof(sections), 1, file), 1);
	assert_int_equal(fwrite(names, sizeof(names), 1, file), 1);
	assert_int_equal(fwrite(model, bytes, 1, file), 1);
	assert_int_equal(fclose(file), 0);
	free(model);
}

/* Bytes of memory that RLIMIT_DATA counts. */
static rlim_t data_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) && sscanf(line, "VmData: %lu kB", &kib) != 1)
		;
	fclose(file);
	assert_true(kib != 0);
	return (rlim_t)kib << 10;
}

/* Load the program's events with so much more memory. Returns what is returned. */
static int load(rlim_t more_bytes, struct pem_error *error)
{
	struct rlimit low = {.rlim_cur = data_bytes() + more_bytes, .rlim_max = limit.rlim_max};
	int result;

	assert_int_equal(setrlimit(RLIMIT_DATA, &low), 0);
	result = pem_session__describe(session, PEM_ANY, path, error);
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	return result;
}

static void a_model_without_memory(void **state)
{
	struct pem_error error = {""};

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* the sanitizer's own memory counts, and its allocator ends the program */
#endif
	make_program(MODEL_BYTES);
	assert_int_equal(load(MODEL_BYTES * 3 / 2, &error), -ENOMEM);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, "out of memory"));
	assert_string_equal(said, "");
}

static void a_search_without_memory(void **state)
{
	struct pem_error error = {""};

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip();
#endif
	make_program(MODEL_BYTES);
	assert_int_equal(load(MODEL_BYTES / 2, &error), -ENOMEM);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, "out of memory"));
	assert_string_equal(said, "");
}

/* The same model, with memory enough, is one that is wrong. */
static void a_bad_model_is_left_out(void **state)
{
	struct pem_error error = {""};

	(void)state;
	make_program(1000);
	assert_int_equal(load(MODEL_BYTES, &error), 0);
	assert_string_equal(error.text, "");
	assert_non_null(strstr(said, " are left out: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_model_without_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_search_without_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_bad_model_is_left_out, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
