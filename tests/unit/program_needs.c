// SPDX-License-Identifier: MIT
/*
 * program_needs.c - programs that need many files: what a search for their models reads has limits,
 * and a search that ends at one says so
 *
 * The files are made here, by a table of what they need. Not here: damage within one file
 * (program_models.c), which library serves (tests/e2e/program_events.py).
 */
#include <pem/model.h>

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FILES 513u
#define SECTIONS_OF_4_MIB 65536u
#define ENTRIES_BYTES 65536u /* of each file's table of what it needs */

static char folder[32], path[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/pem-needs-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/program", folder);
	return 0;
}

static char *file_name(unsigned number, char name[64])
{
	snprintf(name, 64, "%s/%u", folder, number);
	return name;
}

static int tear_down(void **state)
{
	char name[64];
	unsigned i;

	(void)state;
	for (i = 0; i < FILES; i++)
		unlink(file_name(i, name));
	unlink(path);
	return rmdir(folder);
}

static void put(FILE *file, const void *bytes, size_t count)
{
	assert_int_equal(fwrite(bytes, 1, count, file), count);
}

static Elf64_Ehdr make_head(Elf64_Off sections_at, uint16_t sections)
{
	return (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			    .e_type = ET_DYN,
			    .e_shoff = sections_at,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = sections,
			    .e_shstrndx = 1};
}

/*
 * Make an ELF file that needs count files. Its table of names of sections has names_bytes. The
 * table of names of files has as many more than they take.
 */
static void make_file(const char *name, const char *const *needed, size_t count, size_t names_bytes)
{
	enum { SECTIONS = 4, SECTIONS_AT = sizeof(Elf64_Ehdr) };
	const uint64_t entries_at = SECTIONS_AT + SECTIONS * sizeof(Elf64_Shdr);
	const uint64_t texts_at = entries_at + ENTRIES_BYTES;
	const Elf64_Ehdr head = make_head(SECTIONS_AT, SECTIONS);
	Elf64_Shdr sections[SECTIONS] = {
		[1] = {.sh_type = SHT_STRTAB, .sh_offset = texts_at, .sh_size = names_bytes},
		[2] = {.sh_type = SHT_DYNAMIC,
		       .sh_offset = entries_at,
		       .sh_size = ENTRIES_BYTES,
		       .sh_link = 3},
		[3] = {.sh_type = SHT_STRTAB, .sh_offset = texts_at, .sh_size = names_bytes},
	};
	Elf64_Dyn entry = {.d_tag = DT_NEEDED};
	FILE *file = fopen(name, "we");
	size_t i;

	assert_non_null(file);
	assert_true(count < ENTRIES_BYTES / sizeof(entry)); /* the last one is DT_NULL */
	for (i = 0; i < count; i++)
		sections[3].sh_size += strlen(needed[i]) + 1;
	put(file, &head, sizeof(head));
	put(file, sections, sizeof(sections));
	for (i = 0; i < count; i++) {
		put(file, &entry, sizeof(entry));
		entry.d_un.d_val += strlen(needed[i]) + 1;
	}
	assert_int_equal(fseek(file, (long)texts_at, SEEK_SET), 0);
	for (i = 0; i < count; i++)
		put(file, needed[i], strlen(needed[i]) + 1);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(ftruncate(fileno(file), (off_t)(texts_at + sections[3].sh_size)), 0);
	assert_int_equal(fclose(file), 0);
}

static int ignore(void *arg, const char *text, size_t bytes, const char *origin)
{
	(void)arg;
	(void)text;
	(void)bytes;
	(void)origin;
	return 0;
}

/* What is returned for a program that needs count files. */
static int search(const char *const *needed, size_t count, struct pem_error *error)
{
	memset(error, 0, sizeof(*error));
	make_file(path, needed, count, 0);
	return pem_program__models(path, ignore, NULL, error);
}

/* So many times the same name. */
static const char *const *repeated(const char *name, size_t count)
{
	static const char *names[3000];

	assert_true(count <= sizeof(names) / sizeof(names[0]));
	while (count--)
		names[count] = name;
	return names;
}

static void a_known_file_is_read_once(void **state)
{
	struct pem_error error = {""};
	char name[64];

	(void)state;
	make_file(file_name(0, name), NULL, 0, 1000000);
	assert_int_equal(search(repeated(name, 3000), 3000, &error), 0);
	assert_string_equal(error.text, "");
	make_file(path, repeated(path, 3000), 3000, 500000);
	assert_int_equal(pem_program__models(path, ignore, NULL, &error), 0);
	assert_string_equal(error.text, "");
}

/* A damaged file is read as often as it is named. Its table of sections has 4 MiB. */
static void tables_of_damaged_files_are_limited(void **state)
{
	/* The second one is the table of names, and is damaged. */
	const Elf64_Shdr sections[2] = {{.sh_size = SECTIONS_OF_4_MIB}, {.sh_size = UINT64_MAX}};
	const Elf64_Ehdr head = make_head(sizeof(head), 0);
	struct pem_error error;
	char damaged[64];
	FILE *file = fopen(file_name(0, damaged), "we");

	(void)state;
	assert_non_null(file);
	put(file, &head, sizeof(head));
	put(file, sections, sizeof(sections));
	assert_int_equal(fflush(file), 0);
	assert_int_equal(ftruncate(fileno(file), (4 << 20) + sizeof(head)), 0);
	fclose(file);
	assert_int_equal(search(repeated(damaged, 63), 63, &error), 0);
	assert_string_equal(error.text, "");
	assert_int_equal(search(repeated(damaged, 64), 64, &error), -E2BIG);
	assert_non_null(strstr(error.text, "more than 268435456 bytes of tables"));
	assert_non_null(strstr(error.text, "ended at"));
	assert_non_null(strstr(error.text, damaged));
}

/*
 * Sound files, each with 64 KiB of what it needs and 512 KiB of names of sections and of files: all
 * of these count, and 240 such files have less than 256 MiB.
 */
static void tables_of_sound_files_are_limited(void **state)
{
	static char names[241][64];
	const char *needed[241];
	struct pem_error error;
	unsigned i;

	(void)state;
	for (i = 0; i < 241; i++) {
		needed[i] = file_name(i, names[i]);
		make_file(needed[i], NULL, 0, 512 << 10);
	}
	assert_int_equal(search(needed, 240, &error), 0);
	assert_string_equal(error.text, "");
	assert_int_equal(search(needed, 241, &error), -E2BIG);
	assert_non_null(strstr(error.text, "bytes of tables"));
	assert_non_null(strstr(error.text, names[240]));
}

/* 512 libraries are allowed. Other names of known files behind the last one are no excess. */
static void libraries_are_limited(void **state)
{
	static char names[FILES][64];
	const char *needed[FILES + 2];
	struct pem_error error;
	unsigned i;

	(void)state;
	for (i = 0; i < FILES; i++) {
		needed[i] = file_name(i, names[i]);
		make_file(needed[i], NULL, 0, 1);
	}
	needed[512] = path;
	needed[513] = names[0];
	needed[514] = "/nowhere/at/all";
	assert_int_equal(search(needed, 515, &error), 0);
	assert_string_equal(error.text, "");
	needed[513] = names[512];
	assert_int_equal(search(needed, 515, &error), -E2BIG);
	assert_non_null(strstr(error.text, "more than 512 libraries"));
	assert_non_null(strstr(error.text, "ended at"));
	assert_non_null(strstr(error.text, names[512]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_known_file_is_read_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tables_of_damaged_files_are_limited, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(tables_of_sound_files_are_limited, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(libraries_are_limited, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
