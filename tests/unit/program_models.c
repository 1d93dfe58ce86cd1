// SPDX-License-Identifier: MIT
/*
 * program_models.c - models that program files carry: found in sound files, and nothing but an
 * error in damaged ones
 *
 * The program that is read is this one, which has stubs. Not here: which libraries it needs
 * (tests/e2e/program_events.py).
 */
#include <pem/model.h>

#include "programs/probe.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];
static uint8_t *image; /* this program's file, to be damaged */
static size_t image_bytes;

static int set_up(void **state)
{
	FILE *self = fopen("/proc/self/exe", "re");
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/pem-program-%d", (int)getpid());
	if (!self || fstat(fileno(self), &st))
		return -1;
	image_bytes = (size_t)st.st_size;
	image = malloc(image_bytes);
	if (!image || fread(image, 1, image_bytes, self) != image_bytes)
		return -1;
	fclose(self);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(image);
	unlink(path);
	return 0;
}

static void write_image(size_t bytes)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(image, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

/* Does the text describe Tick? Counts in arg. */
static int note(void *arg, const char *text, size_t bytes, const char *origin)
{
	assert_string_equal(origin, path);
	assert_int_equal(text[bytes], 0);
	assert_true(*text);
	*(int *)arg += strstr(text, "\tAPP::Probe::Tick\t") != NULL;
	return 0;
}

/* What is returned for the image as it is, of which so many models describe Tick. */
static int models(int *ticks, struct pem_error *error)
{
	*ticks = 0;
	write_image(image_bytes);
	return pem_program__models(path, note, ticks, error);
}

static Elf64_Shdr *section(const char *name, unsigned type)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)image;
	Elf64_Shdr *s = (Elf64_Shdr *)(image + head->e_shoff);
	const char *names = (const char *)image + s[head->e_shstrndx].sh_offset;
	unsigned i;

	for (i = 0; i < head->e_shnum; i++) {
		if (name ? !strcmp(names + s[i].sh_name, name) : s[i].sh_type == type)
			return &s[i];
	}
	fail_msg("no such section");
	return NULL;
}

static void found_in_a_sound_file(void **state)
{
	struct pem_error error = {""};
	int ticks;

	(void)state;
	assert_true(models(&ticks, &error) >= 1);
	assert_int_equal(ticks, 1);
}

static void what_is_no_program(void **state)
{
	static const char script[] = "#!/bin/sh\nexit 0\n";
	struct pem_error error = {""};
	int ticks = 0;

	(void)state;
	assert_int_equal(pem_program__models("/nowhere/at/all", note, &ticks, &error), -ENOENT);
	assert_non_null(strstr(error.text, "/nowhere/at/all"));
	assert_int_equal(pem_program__models("/tmp", note, &ticks, &error), 0);
	assert_int_equal(pem_program__models("/dev/null", note, &ticks, &error), 0);
	memcpy(image, script, sizeof(script) - 1);
	write_image(sizeof(script) - 1);
	assert_int_equal(pem_program__models(path, note, &ticks, &error), 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pem_program__models(path, note, &ticks, &error), 0);
}

static void of_another_class_or_order(void **state)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)image;
	struct pem_error error;
	int ticks;

	(void)state;
	head->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(models(&ticks, &error), 0);
	head->e_ident[EI_CLASS] = ELFCLASS64;
	head->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(models(&ticks, &error), 0);
	head->e_ident[EI_DATA] = ELFDATA2LSB;
	head->e_type = ET_CORE;
	assert_int_equal(models(&ticks, &error), 0);
}

static int stop(void *arg, const char *text, size_t bytes, const char *origin)
{
	(void)text;
	(void)bytes;
	(void)origin;
	++*(int *)arg;
	return -7;
}

static void the_caller_ends_it(void **state)
{
	struct pem_error error;
	int calls = 0;

	(void)state;
	write_image(image_bytes);
	assert_int_equal(pem_program__models(path, stop, &calls, &error), -ECANCELED);
	assert_int_equal(calls, 1);
}

/* Without sections nothing is known, and nothing is wrong. */
static void without_sections(void **state)
{
	struct pem_error error;
	int ticks;

	(void)state;
	((Elf64_Ehdr *)image)->e_shoff = 0;
	assert_int_equal(models(&ticks, &error), 0);
}

static void cut_anywhere(void **state)
{
	struct pem_error error;
	size_t bytes;
	int ticks = 0, result;

	(void)state;
	for (bytes = 0; bytes < image_bytes; bytes += image_bytes / 300 + 1) {
		write_image(bytes);
		result = pem_program__models(path, note, &ticks, &error);
		/* Its table of sections is at the file's end. */
		assert_true(result == -EINVAL || (result == 0 && bytes < sizeof(Elf64_Ehdr)));
	}
	assert_int_equal(ticks, 0);
}

static void is_damaged(void)
{
	struct pem_error error = {""};
	int ticks;

	assert_int_equal(models(&ticks, &error), -EINVAL);
	assert_non_null(strstr(error.text, "damaged"));
}

static void with_a_damaged_header(void **state)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)image, sound = *head;
	Elf64_Shdr *first = (Elf64_Shdr *)(image + head->e_shoff);
	struct pem_error error;
	int ticks;

	(void)state;
	head->e_shoff = image_bytes - 1;
	is_damaged();
	head->e_shoff = UINT64_MAX - 8;
	is_damaged();
	*head = sound;
	head->e_shentsize--;
	is_damaged();
	*head = sound;
	head->e_shstrndx = head->e_shnum;
	is_damaged();
	*head = sound;
	head->e_shnum = 0;
	is_damaged();
	first->sh_size = UINT64_MAX / sizeof(*first);
	is_damaged();
	first->sh_size = 65537;
	is_damaged();
	/* Its bytes would pass the end of a 64-bit number. */
	first->sh_size = (1ull << 58) + sound.e_shnum;
	is_damaged();
	first->sh_size = sound.e_shnum;
	first->sh_link = sound.e_shstrndx;
	head->e_shstrndx = SHN_XINDEX;
	assert_true(models(&ticks, &error) >= 1);
	assert_int_equal(ticks, 1);
}

static void with_damaged_sections(void **state)
{
	Elf64_Shdr *s = section("pem_model", 0), sound = *s;
	Elf64_Shdr *names = section(".shstrtab", 0);
	struct pem_error error;
	int ticks;

	(void)state;
	s->sh_offset = image_bytes - s->sh_size + 1;
	is_damaged();
	s->sh_offset = UINT64_MAX;
	is_damaged();
	*s = sound;
	s->sh_size = 1u << 30;
	is_damaged();
	/* The last text has no NUL in the section; another one would follow in the file. */
	*s = sound;
	s->sh_size -= 1;
	while (image[s->sh_offset + s->sh_size - 1] == 0)
		s->sh_size--;
	is_damaged();
	*s = sound;
	s->sh_flags |= SHF_COMPRESSED;
	assert_int_equal(models(&ticks, &error), 0);
	*s = sound;
	s->sh_type = SHT_NOBITS;
	assert_int_equal(models(&ticks, &error), 0);
	*s = sound;
	s->sh_name = (uint32_t)names->sh_size;
	assert_int_equal(models(&ticks, &error), 0);
	s->sh_name = UINT32_MAX;
	assert_int_equal(models(&ticks, &error), 0);
	*s = sound;
	names->sh_offset = image_bytes;
	is_damaged();
}

static void with_damaged_dependencies(void **state)
{
	Elf64_Shdr *s = section(NULL, SHT_DYNAMIC), sound = *s;
	Elf64_Dyn *entries = (Elf64_Dyn *)(image + s->sh_offset);
	Elf64_Ehdr *head = (Elf64_Ehdr *)image;
	Elf64_Shdr *strings = (Elf64_Shdr *)(image + head->e_shoff) + s->sh_link;
	int ticks, result;
	struct pem_error error;

	(void)state;
	s->sh_link = head->e_shnum;
	is_damaged();
	*s = sound;
	s->sh_offset = image_bytes;
	is_damaged();
	*s = sound;
	s->sh_size = 1u << 20;
	is_damaged();
	*s = sound;
	assert_int_equal(entries[0].d_tag, DT_NEEDED);
	entries[0].d_un.d_val = strings->sh_size;
	is_damaged();
	/* A name without an end in the table ends where the table does. */
	entries[0].d_un.d_val = strings->sh_size - 1;
	result = models(&ticks, &error);
	assert_true(result >= 1 && ticks == 1);
	memset(image + strings->sh_offset, 'x', strings->sh_size);
	entries[0].d_un.d_val = 0;
	result = models(&ticks, &error);
	assert_true(result >= 1 && ticks == 1);
}

/* --- files that are made to cost much --- */

/* Make the image a file of text, dynamic entries and sections. The first section is of type NULL.
 */
static void make_image(const Elf64_Shdr *sections, size_t count, const Elf64_Dyn *entries,
		       size_t entry_count, const char *texts, size_t bytes)
{
	static const char names[] = "\0pem_model";
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_shentsize = sizeof(*sections),
			   .e_shnum = (uint16_t)count,
			   .e_shstrndx = 1};
	uint8_t *p;

	head.e_shoff = sizeof(head) + sizeof(names) + entry_count * sizeof(*entries) + bytes;
	image_bytes = head.e_shoff + count * sizeof(*sections);
	free(image);
	image = malloc(image_bytes);
	assert_non_null(image);
	p = mempcpy(image, &head, sizeof(head));
	p = mempcpy(p, names, sizeof(names));
	if (entry_count)
		p = mempcpy(p, entries, entry_count * sizeof(*entries));
	if (bytes)
		p = mempcpy(p, texts, bytes);
	if (count)
		memcpy(p, sections, count * sizeof(*sections));
}

enum { NAMES_AT = sizeof(Elf64_Ehdr), NAMES = 11, ENTRIES_AT = NAMES_AT + NAMES, ENTRIES = 4000 };

/* What a file is said to be that names texts of a table, each from one byte further on. */
static int of_overlapping_names(size_t name_bytes, size_t count, size_t folders, char letter,
				struct pem_error *error)
{
	static Elf64_Dyn entries[ENTRIES];
	const size_t entries_bytes = sizeof(entries), bytes = name_bytes + ENTRIES + 65537;
	Elf64_Shdr sections[4] = {
		{0},
		{.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = NAMES},
		{.sh_type = SHT_DYNAMIC,
		 .sh_offset = ENTRIES_AT,
		 .sh_size = entries_bytes,
		 .sh_link = 3},
		{.sh_type = SHT_STRTAB, .sh_offset = ENTRIES_AT + entries_bytes, .sh_size = bytes},
	};
	char *texts = calloc(1, bytes);
	int ticks;
	size_t i;

	assert_non_null(texts);
	memset(texts, 'a', name_bytes + ENTRIES - 1);
	memset(texts + name_bytes + ENTRIES, letter, folders);
	for (i = 0; i < ENTRIES; i++) {
		entries[i].d_tag = i ? DT_NEEDED : DT_RUNPATH;
		entries[i].d_un.d_val = i ? i : name_bytes + ENTRIES;
	}
	if (count < ENTRIES)
		entries[count].d_tag = DT_NULL;
	make_image(sections, 4, entries, ENTRIES, texts, bytes);
	free(texts);
	return models(&ticks, error);
}

/* An overlap makes gigabytes of a small file; what no file can be called is passed over. */
static void overlapping_names(void **state)
{
	struct pem_error error = {""};
	struct rlimit sound, low;

	(void)state;
	getrlimit(RLIMIT_DATA, &sound);
	low = sound;
	low.rlim_cur = 256u << 20;
	if (!getenv("ASAN_OPTIONS"))
		setrlimit(RLIMIT_DATA, &low);
	assert_int_equal(of_overlapping_names(900000, ENTRIES, 0, ':', &error), 0);
	setrlimit(RLIMIT_DATA, &sound);
	/* 4,000 names of at most 4,000 bytes, together 8 MB */
	assert_int_equal(of_overlapping_names(10, ENTRIES, 0, ':', &error), -E2BIG);
	assert_non_null(strstr(error.text, "in more than 4194304 bytes"));
}

static void folders_without_end(void **state)
{
	struct pem_error error = {""};

	(void)state;
	/* One name of 4,095 bytes, which no folder's path can stand before: a try, nevertheless. */
	assert_int_equal(of_overlapping_names(97, 2, 60000, ':', &error), -E2BIG);
	assert_non_null(strstr(error.text, "more than 20000 paths of libraries"));
	assert_int_equal(of_overlapping_names(97, 2, 65535, 'x', &error), 0);
	assert_int_equal(of_overlapping_names(97, 2, 65536, 'x', &error), -E2BIG);
	assert_non_null(strstr(error.text, "list of folders"));
}

/* Sections may overlap, so that a small file has models without an end. */
static void overlapping_sections(void **state)
{
	enum { COUNT = 20, BYTES = 1 << 20 };
	Elf64_Shdr sections[COUNT] = {
		{0}, {.sh_type = SHT_STRTAB, .sh_offset = NAMES_AT, .sh_size = NAMES}};
	struct pem_error error = {""};
	char *texts = malloc(BYTES);
	int ticks, i;

	(void)state;
	assert_non_null(texts);
	memset(texts, 'x', BYTES);
	texts[BYTES - 1] = '\0';
	for (i = 2; i < COUNT; i++)
		sections[i] = (Elf64_Shdr){.sh_name = 1,
					   .sh_type = SHT_PROGBITS,
					   .sh_offset = ENTRIES_AT,
					   .sh_size = BYTES};
	make_image(sections, 18, NULL, 0, texts, BYTES);
	assert_int_equal(models(&ticks, &error), 16);
	make_image(sections, 19, NULL, 0, texts, BYTES);
	assert_int_equal(models(&ticks, &error), -E2BIG);
	assert_non_null(strstr(error.text, "more than 16777216 bytes of models"));
	free(texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(found_in_a_sound_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_program, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_another_class_or_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_caller_ends_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_sections, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cut_anywhere, set_up, tear_down),
		cmocka_unit_test_setup_teardown(with_a_damaged_header, set_up, tear_down),
		cmocka_unit_test_setup_teardown(with_damaged_sections, set_up, tear_down),
		cmocka_unit_test_setup_teardown(with_damaged_dependencies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(overlapping_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(folders_without_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(overlapping_sections, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
