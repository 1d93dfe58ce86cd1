// SPDX-License-Identifier: MIT
/*
 * elf_names.c - finding functions without the loader: the same as dlsym finds, in all objects of
 * this process
 *
 * Not here: which functions libpem-libc looks for, and when (libc_real.c).
 */
#include "libc/elf_names.h"

#include "libc/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

static const Elf64_Dyn *entry_of(const struct link_map *map, Elf64_Sxword tag)
{
	const Elf64_Dyn *d;

	for (d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == tag)
			return d;
	}
	return NULL;
}

static const void *table_of(const struct link_map *map, Elf64_Sxword tag)
{
	const Elf64_Dyn *d = entry_of(map, tag);

	if (!d)
		return NULL;
	return (const void *)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr
							  : d->d_un.d_ptr);
}

/* Of an object with DT_GNU_HASH: one behind the last symbol of the last chain. */
static uint32_t symbol_count(const struct link_map *map)
{
	const uint32_t *table = table_of(map, DT_GNU_HASH), *buckets, *hashes;
	uint32_t i, last = 0;

	if (!table)
		return 0;
	buckets = table + 4 + table[2] * (sizeof(Elf64_Addr) / 4);
	hashes = buckets + table[0];
	for (i = 0; i < table[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	while (last && !(hashes[last - table[1]] & 1))
		last++;
	return last + 1;
}

/* Is the definition that dlsym found this object's, and not that of one which it needs? */
static bool is_of(const struct link_map *map, const void *found)
{
	struct link_map *whose = NULL;
	Dl_info info;

	return found && dladdr1(found, &info, (void **)&whose, RTLD_DL_LINKMAP) && whose == map;
}

static void compare_object(const struct link_map *map, unsigned *compared)
{
	void *handle = dlopen(map->l_name[0] ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD), *own,
	     *theirs;
	const Elf64_Sym *symbols = table_of(map, DT_SYMTAB);
	const char *strings = table_of(map, DT_STRTAB), *name;
	uint32_t i;

	if (!handle) /* the kernel's own */
		return;
	if (map->l_addr == getauxval(AT_BASE)) /* the loader finds nothing in itself */
		goto out;
	for (i = 1; i < symbol_count(map); i++) {
		/*
		 * Of a variable of a thread dlsym tells this thread's address; names of versions
		 * are at none.
		 */
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_TLS || symbols[i].st_shndx == SHN_ABS)
			continue;
		name = strings + symbols[i].st_name;
		own = pem_elf__find_in(map->l_addr, map->l_ld, name);
		theirs = dlsym(handle, name);
		if (own != theirs && (own || is_of(map, theirs)))
			fail_msg("%s in %s: %p, the loader %p", name, map->l_name, own, theirs);
		*compared += own != NULL;
	}
out:
	dlclose(handle);
}

static void finds_what_dlsym_finds_in_every_object(void **state)
{
	const struct link_map *map;
	unsigned compared = 0;

	(void)state;
	for (map = _r_debug.r_map; map; map = map->l_next)
		compare_object(map, &compared);
	assert_in_range(compared, 2000, 1000000); /* the C library alone has more */
}

static const struct link_map *object_with(const char *part)
{
	const struct link_map *map;

	for (map = _r_debug.r_map; map; map = map->l_next) {
		if (strstr(map->l_name, part))
			return map;
	}
	return NULL;
}

/* Of these an old form lives on: programs of today are not linked with it. */
static void prefers_the_version_of_today(void **state)
{
#if defined(__x86_64__)
	static const struct {
		const char *name, *today, *old;
	} forms[] = {
		{"pthread_cond_wait", "GLIBC_2.3.2", "GLIBC_2.2.5"},
		{"pthread_cond_signal", "GLIBC_2.3.2", "GLIBC_2.2.5"},
		{"posix_spawn", "GLIBC_2.15", "GLIBC_2.2.5"},
		{"memcpy", "GLIBC_2.14", "GLIBC_2.2.5"},
	};
	const struct link_map *map = object_with("libc.so.6");
	void *found;
	size_t i;

	(void)state;
	assert_non_null(map);
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		found = pem_elf__find_in(map->l_addr, map->l_ld, forms[i].name);
		assert_non_null(found);
		assert_ptr_equal(found, dlvsym(RTLD_DEFAULT, forms[i].name, forms[i].today));
		assert_ptr_not_equal(found, dlvsym(RTLD_DEFAULT, forms[i].name, forms[i].old));
	}
#else
	(void)state;
	skip(); /* other processors came after the old forms */
#endif
}

static void finds_the_version_that_is_named(void **state)
{
#if defined(__x86_64__)
	static const char *const names[] = {
		"pthread_cond_wait@GLIBC_2.2.5",  "pthread_cond_wait@GLIBC_2.3.2",
		"posix_spawn@GLIBC_2.2.5",        "posix_spawn@GLIBC_2.15",
		"pthread_cond_wait@GLIBC_2.15", /* a version of others */
		"pthread_cond_wait@GLIBC_2",      "pthread_cond_wai@GLIBC_2.2.5",
		"pthread_cond_waits@GLIBC_2.2.5",
	};
	const struct link_map *map = object_with("libc.so.6");
	void *handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD), *wanted;
	char name[64];
	size_t i;

	(void)state;
	for (i = 0; i < 8; i++) {
		strcpy(name, names[i]);
		*strchr(name, '@') = '\0';
		wanted = dlvsym(handle, name, strchr(names[i], '@') + 1);
		assert_ptr_equal(pem_elf__find_in(map->l_addr, map->l_ld, names[i]), wanted);
		assert_int_equal(wanted != NULL, i < 4);
	}
	dlclose(handle);
#else
	(void)state;
	skip(); /* other processors came after the old forms */
#endif
}

static void finds_an_indirect_function(void **state)
{
	const struct link_map *map = object_with("libc.so.6");
	void *handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);

	(void)state;
	/* strlen's symbol is its resolver's address, which no caller may call. */
	assert_ptr_equal(pem_elf__find_in(map->l_addr, map->l_ld, "strlen"),
			 dlsym(handle, "strlen"));
	dlclose(handle);
}

/*
 * Neither is found: a variable of a thread has no address of its own, and a version's name is no
 * function.
 */
static void passes_over_what_is_no_function(void **state)
{
	const struct link_map *map = object_with("libc.so.6");

	(void)state;
	assert_null(pem_elf__find_in(map->l_addr, map->l_ld, "errno"));
	assert_null(pem_elf__find_in(map->l_addr, map->l_ld, "GLIBC_2.2.5"));
	assert_null(pem_elf__find_in(map->l_addr, map->l_ld, "pem_no_such_function"));
	assert_null(pem_elf__find_in(map->l_addr, map->l_ld, ""));
}

static void reads_the_tables_of_the_kernels_object(void **state)
{
	const struct link_map *map = object_with("linux-vdso");
	void *found;

	(void)state;
	if (!map)
		skip();
#if defined(__x86_64__)
	found = pem_elf__find_in(map->l_addr, map->l_ld, "__vdso_clock_gettime");
#else
	found = pem_elf__find_in(map->l_addr, map->l_ld, "__kernel_clock_gettime");
#endif
	assert_in_range(found, getauxval(AT_SYSINFO_EHDR), getauxval(AT_SYSINFO_EHDR) + 65536);
}

/* The same object, its tables named by one kind of hash table only. */
static void either_hash_table_serves(void **state)
{
	const struct link_map *map = object_with("linux-vdso");
	const char *name = "__vdso_getcpu";
	Elf64_Dyn *only;
	unsigned i, kind;

	(void)state;
#if defined(__aarch64__)
	name = "__kernel_getcpu";
#endif
	if (!map || !entry_of(map, DT_HASH) || !entry_of(map, DT_GNU_HASH))
		skip();
	for (kind = 0; kind < 2; kind++) {
		Elf64_Dyn copy[64];

		for (i = 0; i < 63 && map->l_ld[i].d_tag != DT_NULL; i++) {
			copy[i] = map->l_ld[i];
			if (copy[i].d_tag == (kind ? DT_HASH : DT_GNU_HASH))
				copy[i].d_tag = DT_DEBUG;
			else if (copy[i].d_tag != DT_DEBUG && copy[i].d_un.d_ptr < map->l_addr)
				copy[i].d_un.d_ptr += map->l_addr;
		}
		copy[i].d_tag = DT_NULL;
		only = copy;
		/*
		 * With a base of 0 no address is taken for an offset: only the symbol's value is
		 * one.
		 */
		assert_int_equal((uintptr_t)pem_elf__find_in(0, only, name) + map->l_addr,
				 pem_elf__find_in(map->l_addr, map->l_ld, name));
		assert_null(pem_elf__find_in(0, only, "__vdso_no_such_function"));
	}
}

/*
 * An object of one name, whose symbols are all in one chain: only the last is a definition that
 * others may use.
 */
static void only_definitions_count(void **state)
{
	static const char strings[] = "\0f";
	static Elf64_Sym symbols[] = {
		{0},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, SHN_UNDEF, 0x100, 8},
		{1, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), STV_DEFAULT, 1, 0x200, 8},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_HIDDEN, 1, 0x300, 8},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_INTERNAL, 1, 0x400, 8},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_TLS), STV_DEFAULT, 1, 0x500, 8},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, 1, 0, 8},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, 1, 0x700, 8},
		{1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, 1, 0x800, 8},
		{0, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, 1, 0x900, 8},
		{1, ELF64_ST_INFO(STB_WEAK, STT_FUNC), STV_PROTECTED, 1, 0xa00, 8},
	};
	/* of symbol 7 none that others see, of 8 one for old programs */
	static Elf64_Half versions[] = {0, 2, 2, 2, 2, 2, 2, 0, 0x8002, 2, 3};
	static uint32_t hash[] = {1, 11, 1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0};
	const Elf64_Dyn dynamic[] = {
		{DT_STRTAB, {(uintptr_t)strings}},
		{DT_SYMTAB, {(uintptr_t)symbols}},
		{DT_VERSYM, {(uintptr_t)versions}},
		{DT_HASH, {(uintptr_t)hash}},
		{DT_NULL, {0}},
	};

	(void)state;
	assert_ptr_equal(pem_elf__find_in(0, dynamic, "f"), (void *)0xa00);
	/*
	 * A definition of the version of none serves whoever names one, of another version only who
	 * names that.
	 */
	versions[10] = VER_NDX_GLOBAL;
	assert_ptr_equal(pem_elf__find_in(0, dynamic, "f@ANY"), (void *)0xa00);
	versions[10] = 3;
	assert_null(pem_elf__find_in(0, dynamic, "f@ANY"));
	hash[12] = 0; /* the chain ends one earlier */
	hash[11] = 0;
	assert_null(pem_elf__find_in(0, dynamic, "f"));
	/* Tables without names, an empty one, and none at all. */
	assert_null(pem_elf__find_in(0, dynamic + 1, "f"));
	hash[0] = 0;
	assert_null(pem_elf__find_in(0, dynamic, "f"));
	assert_null(pem_elf__find_in(0, dynamic + 4, "f"));
}

static void next_is_behind_this_object(void **state)
{
	static const char *const names[] = {"malloc", "pem_no_such_function", "pthread_create",
					    "pem_provider_register"};
	void *found[4] = {NULL, &found, NULL, &found};

	(void)state;
	assert_true(pem_elf__find_next(names, found, 4));
	assert_ptr_equal(found[0], dlsym(RTLD_NEXT, "malloc"));
	assert_null(found[1]);
	assert_ptr_equal(found[2], dlsym(RTLD_NEXT, "pthread_create"));
	assert_null(found[3]); /* this program's own, which lies in front */
}

static void too_many_names_are_refused(void **state)
{
	static const char *names[PEM_ELF_NAMES_MAX + 1];
	static void *found[PEM_ELF_NAMES_MAX + 1];
	size_t i;

	(void)state;
	for (i = 0; i <= PEM_ELF_NAMES_MAX; i++)
		names[i] = "malloc";
	assert_true(pem_elf__find_next(names, found, PEM_ELF_NAMES_MAX));
	assert_ptr_equal(found[PEM_ELF_NAMES_MAX - 1], dlsym(RTLD_NEXT, "malloc"));
	found[0] = NULL;
	assert_false(pem_elf__find_next(names, found, PEM_ELF_NAMES_MAX + 1));
	assert_null(found[0]);
}

static bool is_defined(const char *name)
{
	return pem_elf__is_defined(&name, 1);
}

static void anywhere_includes_this_program(void **state)
{
	static const char *const several[] = {"pem_no_such_function", "pem_nor_this", "malloc"};

	(void)state;
	assert_true(is_defined("pem_provider_register")); /* linked in: -rdynamic */
	assert_true(is_defined("malloc"));
	assert_false(is_defined("pem_no_such_function"));
	assert_true(pem_elf__is_defined(several, 3));
	assert_false(pem_elf__is_defined(several, 2));
}

/* As the rest of the program sees it, nothing happened. */
static void leaves_no_trace(void **state)
{
	char *before;

	(void)state;
	assert_null(dlsym(RTLD_DEFAULT, "pem_mine_is_missing"));
	errno = 77;
	assert_false(is_defined("pem_no_such_function"));
	assert_true(pem_libc_real__find());
	assert_int_equal(errno, 77);
	before = dlerror();
	assert_non_null(before);
	assert_non_null(strstr(before, "pem_mine_is_missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_dlsym_finds_in_every_object),
		cmocka_unit_test(prefers_the_version_of_today),
		cmocka_unit_test(finds_the_version_that_is_named),
		cmocka_unit_test(finds_an_indirect_function),
		cmocka_unit_test(passes_over_what_is_no_function),
		cmocka_unit_test(reads_the_tables_of_the_kernels_object),
		cmocka_unit_test(either_hash_table_serves),
		cmocka_unit_test(only_definitions_count),
		cmocka_unit_test(next_is_behind_this_object),
		cmocka_unit_test(too_many_names_are_refused),
		cmocka_unit_test(anywhere_includes_this_program),
		cmocka_unit_test(leaves_no_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
