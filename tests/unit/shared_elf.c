/* SPDX-License-Identifier: MIT */
/*
 * shared_elf.c - functions, variables and static probes, in copies of this program
 */
#ifdef PEM_TEST_LIBELF
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/elf_probes.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define NT_STAPSDT 3

int shared_elf_variable = 1, shared_elf_variable_2 = 1;

/* Notes as sys/sdt.h makes them: in code; elsewhere; with a semaphore that is no data; in code. */
#define NOTE(address, semaphore, strings)                                                          \
	".balign 4\n.4byte 8, 2f - 1f, 3\n.asciz \"stapsdt\"\n"                                    \
	"1: .8byte " address ", 0, " semaphore "\n" strings "\n2: .balign 4\n"
#define STRINGS(name) ".asciz \"test\", \"" name "\", \"-4@%eax 8@5\""
__asm__(".pushsection .note.stapsdt,\"\",%note\n" NOTE("main", "0", STRINGS("first"))
		NOTE("shared_elf_variable", "0", STRINGS("data"))
			NOTE("main", "main", STRINGS("counted"))
				NOTE("main", "0", STRINGS("last")) ".popsection\n");

/* A copy of this program that can be spoilt. */
static int copy_of_self(void)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = memfd_create("program", MFD_CLOEXEC);
	off_t bytes = lseek(from, 0, SEEK_END);

	assert_true(from >= 0 && to >= 0 && bytes > 0);
	lseek(from, 0, SEEK_SET);
	while (lseek(to, 0, SEEK_CUR) < bytes)
		assert_true(sendfile(to, from, NULL, (size_t)bytes) > 0);
	close(from);
	return to;
}

struct seen {
	int fd; /* to be truncated with the first; -1: none */
	char names[256];
	unsigned count;
	struct pem_elf_symbol symbol;
	struct pem_elf_note note;
};

static int see_function(void *arg, const struct pem_elf_symbol *symbol)
{
	struct seen *seen = arg;

	if (!seen->count++ && seen->fd >= 0)
		assert_int_equal(ftruncate(seen->fd, 0), 0);
	assert_true(strlen(symbol->name) > 0);
	if (!strcmp(symbol->name, "main"))
		seen->symbol = *symbol;
	return 0;
}

static int see_note(void *arg, const struct pem_elf_note *note)
{
	struct seen *seen = arg;

	if (!seen->count++ && seen->fd >= 0)
		assert_int_equal(ftruncate(seen->fd, 0), 0);
	assert_string_equal(note->provider, "test");
	assert_string_equal(note->arguments, "-4@%eax 8@5");
	strcat(strcat(seen->names, note->name), " ");
	seen->note = *note;
	return 0;
}

static int stop(void *arg, const struct pem_elf_symbol *symbol)
{
	(void)symbol;
	++*(int *)arg;
	return 42;
}

static void functions_are_found(void **state)
{
	struct seen all = {.fd = -1}, one = {.fd = -1};
	int fd = copy_of_self(), stopped = 0;

	(void)state;
	assert_int_equal(pem_elf__each_function(fd, -1, NULL, see_function, &all), 0);
	assert_true(all.count > 10 && all.symbol.offset && all.symbol.bytes);
	assert_false(all.symbol.is_indirect || all.symbol.is_32bit);
	assert_int_equal(pem_elf__each_function(fd, -1, "main", see_function, &one), 0);
	assert_true(one.count && one.count < 3);
	assert_int_equal(one.symbol.offset, all.symbol.offset);
	assert_int_equal(pem_elf__each_function(fd, -1, NULL, stop, &stopped), 42);
	assert_int_equal(stopped, 1);
	close(fd);
}

static void notes_that_cannot_work_are_passed_over(void **state)
{
	struct seen notes = {.fd = -1}, code = {.fd = -1};
	int fd = copy_of_self();

	(void)state;
	assert_int_equal(pem_elf__each_note(fd, see_note, &notes), 0);
	assert_string_equal(notes.names, "first last ");
	assert_int_equal(notes.note.semaphore, 0);
	assert_int_equal(pem_elf__each_function(fd, -1, "main", see_function, &code), 0);
	assert_int_equal(notes.note.offset, code.symbol.offset);
	close(fd);
}

static void variables_are_found(void **state)
{
	uint64_t address = 0;
	int fd = copy_of_self();

	(void)state;
	assert_int_equal(pem_elf__address(fd, "shared_elf_variable+8", 19, &address), 0);
	assert_true(address);
	assert_int_equal(pem_elf__address(fd, "shared_elf_variables", 20, &address), -ENOENT);
	assert_int_equal(pem_elf__address(fd, "main", 4, &address), -ENOENT);
	close(fd);
}

static void kinds_of_files(void **state)
{
	struct seen notes = {.fd = -1};
	Elf64_Half machine = EM_SPARCV9;
	int fd = copy_of_self(), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(pem_elf__is_for_here(fd), 0);
	assert_int_equal(pem_elf__is_for_here(null), -ENOEXEC);
	assert_int_equal(pem_elf__each_note(null, see_note, &notes), -ENOEXEC);
	assert_int_equal(pwrite(fd, &machine, sizeof(machine), offsetof(Elf64_Ehdr, e_machine)),
			 sizeof(machine));
	assert_int_equal(pem_elf__is_for_here(fd), -EXDEV);
	assert_int_equal(pem_elf__each_note(fd, see_note, &notes), 0);
	assert_int_equal(notes.count, 2);
	close(fd);
	close(null);
}

/* Its owner may do so while a recorder reads it. */
static void a_file_may_be_truncated(void **state)
{
	struct seen functions = {.fd = copy_of_self()}, notes = {.fd = copy_of_self()};

	(void)state;
	pem_elf__each_function(functions.fd, -1, NULL, see_function, &functions);
	assert_true(functions.count);
	pem_elf__each_note(notes.fd, see_note, &notes);
	assert_true(notes.count);
	close(functions.fd);
	close(notes.fd);
}

static int read_all(void *arg, const struct pem_elf_note *note)
{
	*(size_t *)arg += strlen(note->provider) + strlen(note->name) + strlen(note->arguments);
	return 0;
}

/* Any bytes of its notes may be others: they are refused or read, and nothing beyond them is. */
static void damaged_notes(void **state)
{
	static const uint8_t bad[4] = {0xff, 0xff, 0xff, 0xff};
	/* Bytes of a description: less than three addresses, then no texts, then no end of one. */
	static const uint32_t cut[] = {23, 24, 27, 34};
	int fd = copy_of_self();
	off_t bytes = lseek(fd, 0, SEEK_END);
	char *map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *at;
	unsigned step;
	size_t seen = 0;
	/* Completed below, since the program's constants are not to be found. */
	volatile char head[] = "?\0\0\0stapsdt";
	uint8_t kept[4];

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	head[0] = NT_STAPSDT;
	at = memmem(map, (size_t)bytes, (const char *)head, sizeof(head));
	assert_non_null(at);
	memcpy(kept, at - 4, 4);
	for (step = 0; step < 4; step++) {
		memcpy(at - 4, &cut[step], 4);
		assert_int_equal(pem_elf__each_note(fd, read_all, &seen), -ENOEXEC);
	}
	memcpy(at - 4, kept, 4);
	for (step = 0; step < 160; step += 4) {
		memcpy(kept, at - 8 + step, 4);
		memcpy(at - 8 + step, bad, 4);
		pem_elf__each_note(fd, read_all, &seen);
		memcpy(at - 8 + step, kept, 4);
	}
	assert_true(seen);
	munmap(map, (size_t)bytes);
	close(fd);
}

static void arguments_have_sizes(void **state)
{
	static const struct {
		const char *location;
		unsigned bytes;
		bool is_signed, is_float;
	} wanted[] = {
		{"%eax", 4, true, false},      {"(%rax, %rbx)", 8, false, false},
		{"[sp, 96]", 8, true, false},  {"%xmm0", 8, false, true},
		{"%rdi", 8, false, false},     {"x@%rdi", 0, false, false},
		{"-@%rdi", 0, false, false},   {"16@%rdi", 0, false, false},
		{"--4@%rdi", 0, false, false}, {"-+4@%rdi", 0, false, false},
		{"4ff@%rdi", 0, false, false}, {"%rdi", 3, false, false},
		{"$5", 1, false, false},       {"9@$5", 0, false, false},
	};
	const char *text = " -4@%eax 8@(%rax, %rbx) -8@[sp, 96] 8f@%xmm0 %rdi x@%rdi -@%rdi"
			   " 16@%rdi --4@%rdi -+4@%rdi 4ff@%rdi 3@%rdi 1@$5 9@$5 ";
	struct pem_usdt_value value;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		assert_int_equal(pem_usdt_value__next(&text, &value), 1);
		assert_int_equal(value.end - value.location, strlen(wanted[i].location));
		assert_memory_equal(value.location, wanted[i].location, strlen(wanted[i].location));
		assert_int_equal(value.bytes, wanted[i].bytes);
		assert_int_equal(value.is_signed, wanted[i].is_signed);
		assert_int_equal(value.is_float, wanted[i].is_float);
	}
	assert_int_equal(pem_usdt_value__next(&text, &value), 0);
	assert_int_equal(*text, '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found),
		cmocka_unit_test(notes_that_cannot_work_are_passed_over),
		cmocka_unit_test(variables_are_found),
		cmocka_unit_test(kinds_of_files),
		cmocka_unit_test(a_file_may_be_truncated),
		cmocka_unit_test(damaged_notes),
		cmocka_unit_test(arguments_have_sizes),
	};

	return cmocka_run_group_tests_name("shared_elf", tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP libelf is missing\n");
	return 0;
}
#endif
