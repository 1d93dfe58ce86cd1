/* SPDX-License-Identifier: MIT */
/* names.c - this program's own code by name, and what is refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef PEM_TEST_LIBDW
#include "agents/page-size/sites/site.h"

#include <pem/names.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

static uintptr_t inner_at, outer_at;

/* The address behind the call of this. It has an effect, so that two calls are two. */
static __attribute__((noinline)) uintptr_t here(void)
{
	__asm__ volatile("" ::: "memory");
	return (uintptr_t)__builtin_return_address(0);
}

#define HERE(at) ((at) = here(), __LINE__)

static inline __attribute__((always_inline)) int inner_line(void)
{
	return HERE(inner_at);
}

static __attribute__((noinline)) int outer_line(int *inner_call, int *inner)
{
	*inner_call = __LINE__ + 1;
	*inner = inner_line();
	return HERE(outer_at);
}

static int keep_bias(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1;
}

static uint64_t offset_of(uintptr_t address)
{
	uintptr_t bias = 0;

	dl_iterate_phdr(keep_bias, &bias);
	return address - bias;
}

static struct pem_object *open_path(const char *path)
{
	struct pem_object_query query = {.size = sizeof(query), .path = path};
	struct pem_error error = {""};
	struct pem_object *object = pem_object__open(&query, &error);

	if (!object)
		print_message("%s\n", error.text);
	return object;
}

static int refused(struct pem_object_query query, const char *says)
{
	struct pem_error error = {""};

	query.size = sizeof(query);
	errno = 0;
	assert_null(pem_object__open(&query, &error));
	if (!strstr(error.text, says))
		fail_msg("'%s' does not say '%s'", error.text, says);
	return errno;
}

static void lines_and_inlined_calls(void **state)
{
	struct pem_object *object = open_path(SELF);
	struct pem_name names[4];
	int inner_call, inner, outer = outer_line(&inner_call, &inner);

	(void)state;
	assert_non_null(object);
	assert_int_equal(pem_object__find(object, offset_of(outer_at) - 1, names, 4), 1);
	assert_string_equal(names[0].function, "outer_line");
	assert_int_equal(names[0].line, outer);
	assert_int_equal(names[0].source, PEM_NAME_DEBUG);
	assert_int_equal(names[0].start, offset_of((uintptr_t)outer_line));
	assert_non_null(strstr(names[0].file, "tests/unit/names.c"));

	assert_int_equal(pem_object__find(object, offset_of(inner_at) - 1, names, 4), 2);
	assert_string_equal(names[0].function, "inner_line");
	assert_int_equal(names[0].line, inner);
	assert_string_equal(names[1].function, "outer_line");
	assert_int_equal(names[1].line, inner_call);
	assert_non_null(strstr(names[1].file, "tests/unit/names.c"));
	/* No more is written than there is room for. */
	memset(names, 0x5a, sizeof(names));
	assert_int_equal(pem_object__find(object, offset_of(inner_at) - 1, names, 1), 1);
	assert_string_equal(names[0].function, "inner_line");
	assert_int_equal(names[1].line, 0x5a5a5a5a);
	assert_int_equal(pem_object__find(object, offset_of(inner_at) - 1, names, 0), 0);
	pem_object__close(object);
}

static void nothing_is_known(void **state)
{
	struct pem_object *object = open_path(SELF);
	struct pem_name name;

	(void)state;
	assert_int_equal(pem_object__find(object, 1, &name, 1), 0);
	assert_int_equal(pem_object__find(object, UINT64_MAX, &name, 1), 0);
	pem_object__close(object);
	pem_object__close(NULL);
}

static void told_by_build_id(void **state)
{
	struct pem_object *object = open_path(SELF);
	struct pem_object_query query = {.path = SELF};
	const uint8_t *build_id;
	uint8_t other[64];
	size_t bytes = pem_object__build_id(object, &build_id);

	(void)state;
	assert_in_range(bytes, 8, 64);
	assert_int_equal(pem_object__number(object), page_object__of_build_id(build_id, bytes));
	memcpy(other, build_id, bytes);
	query.number = pem_object__number(object);
	query.build_id = other;
	query.build_id_bytes = bytes;
	pem_object__close(object);
	object = pem_object__open(&query, NULL);
	assert_non_null(object);
	assert_string_equal(pem_object__path(object), SELF);
	pem_object__close(object);

	other[bytes - 1] ^= 1;
	assert_int_equal(refused(query, "was built again since"), ESTALE);
	query.build_id_bytes--;
	assert_int_equal(refused(query, "was built again since"), ESTALE);
	query.build_id = NULL;
	query.number++;
	assert_int_equal(refused(query, "was built again since"), ESTALE);
	query.path = NULL;
	assert_int_equal(refused(query, "no file with build id"), ENOENT);
}

static void what_is_refused(void **state)
{
	char folder[] = "/tmp/pem-names-XXXXXX", path[64], too_long[5000];
	uint8_t id[65] = {1};
	struct pem_object_query query = {.path = path};

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(refused((struct pem_object_query){0}, "neither"), EINVAL);
	assert_int_equal(refused((struct pem_object_query){.build_id = id, .build_id_bytes = 65},
				 "2 to 64 bytes"),
			 EINVAL);
	assert_int_equal(refused((struct pem_object_query){.build_id = id, .build_id_bytes = 1},
				 "2 to 64 bytes"),
			 EINVAL);
	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = '\0';
	query.path = too_long;
	assert_int_equal(refused(query, "can't be read"), ENAMETOOLONG);
	query.path = path;
	strcpy(path, folder);
	assert_int_equal(refused(query, "not an ELF file"), ENOEXEC);
	sprintf(path, "%s/x", folder);
	assert_int_equal(refused(query, "there is no file"), ENOENT);
	/* A pipe without a writer blocks who opens it. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(refused(query, "not an ELF file"), ENOEXEC);
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(refused(query, "not an ELF file"), ENOEXEC);
	unlink(path);
	rmdir(folder);
}

/* A file without a build id, and with headers alone. */
static void number_of_headers(void **state)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr programs[2];
	} image = {.header = {.e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(Elf64_Ehdr),
			      .e_ehsize = sizeof(Elf64_Ehdr),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 2},
		   .programs = {{.p_type = PT_LOAD, .p_memsz = 4096, .p_align = 4096}}};
	struct pem_object_query query = {.size = sizeof(query)};
	struct pem_object *object;
	const uint8_t *build_id;
	char path[64];
	int fd = memfd_create("headers", MFD_CLOEXEC);

	(void)state;
	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	image.header.e_ident[EI_VERSION] = EV_CURRENT;
	assert_int_equal(write(fd, &image, sizeof(image)), sizeof(image));
	sprintf(path, "/proc/self/fd/%d", fd);
	query.path = path;
	query.number = page_object__of_headers(&image.header, sizeof(image.header), image.programs,
					       sizeof(image.programs));
	object = pem_object__open(&query, NULL);
	assert_non_null(object);
	assert_int_equal(pem_object__number(object), query.number);
	assert_int_equal(pem_object__build_id(object, &build_id), 0);
	pem_object__close(object);
	query.number++;
	assert_int_equal(refused(query, "was built again since"), ESTALE);
	/* No segments: nothing is mapped. */
	image.programs[0].p_type = PT_NULL;
	assert_int_equal(pwrite(fd, &image, sizeof(image), 0), sizeof(image));
	query.number = 0;
	assert_int_equal(refused(query, "is damaged"), ENOEXEC);
	close(fd);
}

/* A copy of this program whose table of symbols is a hole of so many. */
static int with_symbols(uint64_t count)
{
	int self = open(SELF, O_RDONLY | O_CLOEXEC), fd = memfd_create("symbols", MFD_CLOEXEC);
	Elf64_Ehdr header;
	struct stat status;
	unsigned i;

	assert_int_equal(fstat(self, &status), 0);
	while (sendfile(fd, self, NULL, (size_t)status.st_size) > 0)
		;
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	for (i = 0; i < header.e_shnum; i++) {
		off_t at = (off_t)(header.e_shoff + i * sizeof(Elf64_Shdr));
		Elf64_Shdr section;

		assert_int_equal(pread(fd, &section, sizeof(section), at), sizeof(section));
		if (section.sh_type != SHT_SYMTAB)
			continue;
		section.sh_offset = ((uint64_t)status.st_size + 7) & ~7ull;
		section.sh_size = count * sizeof(Elf64_Sym);
		section.sh_info = 0;
		assert_int_equal(pwrite(fd, &section, sizeof(section), at), sizeof(section));
		assert_int_equal(ftruncate(fd, (off_t)(section.sh_offset + section.sh_size)), 0);
	}
	close(self);
	return fd;
}

static void a_hole_of_symbols_is_refused(void **state)
{
	char path[64];
	int fd = with_symbols(17u << 20), few = with_symbols(1000);

	(void)state;
	sprintf(path, "/proc/self/fd/%d", fd);
	assert_int_equal(refused((struct pem_object_query){.path = path}, "memory"), EFBIG);
	sprintf(path, "/proc/self/fd/%d", few);
	pem_object__close(open_path(path));
	close(fd);
	close(few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_inlined_calls),
		cmocka_unit_test(nothing_is_known),
		cmocka_unit_test(told_by_build_id),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(number_of_headers),
		cmocka_unit_test(a_hole_of_symbols_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	print_message("libdw-dev is missing\n");
	return 77;
}
#endif
