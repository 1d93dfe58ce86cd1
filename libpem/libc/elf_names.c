// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * elf_names.c - symbol tables, their hash tables and versions, as the loader sees them
 *
 * Layouts: System V ABI, "Dynamic Linking". For DT_GNU_HASH and versions: the GNU C library's
 * elf/dl-lookup.c; this file makes the same choices. Not here: objects that the program loads
 * later, because only the loader can lock these.
 */
#include "libc/elf_names.h"

#include <stdint.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/ifunc.h>
#endif

#define VERSION_HIDDEN 0x8000u /* an older version, for programs that name it */
#define WORD_BITS (8 * sizeof(Elf64_Addr))

struct object {
	Elf64_Addr base;
	const Elf64_Sym *symbols;
	const char *strings;
	const Elf64_Half *versions; /* versions by symbol; NULL: the object has none */
	const Elf64_Verdef *definitions; /* definitions of versions; NULL: the object has none */
	const uint32_t *gnu_hash; /* gnu_hash, hash, or both are there */
	const uint32_t *hash;
};

struct wanted {
	const char *name; /* a version may follow it, after an @ */
	size_t length; /* length of the name */
	const char *version; /* NULL: the version that programs are linked with today */
	uint32_t gnu_hash;
};

/* Of DT_HASH: System V ABI, "Hash Table". Few objects have no other table. */
static uint32_t hash_of(const char *name, size_t length)
{
	const uint8_t *c = (const uint8_t *)name, *end = c + length;
	uint32_t h = 0;

	for (; c < end; c++) {
		h = (h << 4) + *c;
		h ^= h >> 24 & 0xf0;
		h &= 0x0fffffff;
	}
	return h;
}

/* A process that starts asks for a hundred names: so a name is read once, for all that is needed.
 */
static struct wanted wanted_of(const char *name)
{
	const uint8_t *c = (const uint8_t *)name;
	uint32_t h = 5381;
	size_t length;

	for (; *c && *c != '@'; c++)
		h = h * 33 + *c;
	length = (size_t)(c - (const uint8_t *)name);
	return (struct wanted){name, length, *c ? name + length + 1 : NULL, h};
}

/*
 * Return a table's address. The loader adds base to the addresses in the dynamic section, but not
 * if the section is read-only, as in the kernel's own object. A table lies near the section that
 * names it, so the nearer of the two addresses is right, unless the object lies lower than it is
 * long: then an address that is not below base has base in it. (A base that is "negative" is above
 * all addresses.)
 */
static const void *table_at(Elf64_Addr base, const Elf64_Dyn *dynamic, Elf64_Addr value)
{
	Elf64_Addr section = (Elf64_Addr)dynamic, moved = value + base;
	Elf64_Addr far = value > section ? value - section : section - value;
	Elf64_Addr far_moved = moved > section ? moved - section : section - moved;

	return (const void *)(far <= far_moved || value >= base ? value : moved);
}

/* Read an object's tables. Returns false if it has no table of symbols to search. */
static bool read_object(struct object *object, Elf64_Addr base, const Elf64_Dyn *dynamic)
{
	const Elf64_Dyn *d;

	memset(object, 0, sizeof(*object));
	object->base = base;
	for (d = dynamic; d && d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			object->symbols = table_at(base, dynamic, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			object->strings = table_at(base, dynamic, d->d_un.d_ptr);
			break;
		case DT_VERSYM:
			object->versions = table_at(base, dynamic, d->d_un.d_ptr);
			break;
		case DT_VERDEF:
			object->definitions = table_at(base, dynamic, d->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			object->gnu_hash = table_at(base, dynamic, d->d_un.d_ptr);
			break;
		case DT_HASH:
			object->hash = table_at(base, dynamic, d->d_un.d_ptr);
			break;
		default:
			break;
		}
	}
	return object->symbols && object->strings && (object->gnu_hash || object->hash);
}

/* Return whether a symbol has the wanted version. A symbol without a version has every version. */
static bool is_version(const struct object *object, uint32_t index, const char *wanted)
{
	const Elf64_Verdef *d = object->definitions;
	Elf64_Half version;

	if (!object->versions)
		return true;
	version = object->versions[index];
	if (version == VER_NDX_LOCAL)
		return false;
	if (!wanted || version == VER_NDX_GLOBAL)
		return !(version & VERSION_HIDDEN);
	for (; d; d = d->vd_next ? (const void *)((const char *)d + d->vd_next) : NULL) {
		const Elf64_Verdaux *name = (const void *)((const char *)d + d->vd_aux);

		if (d->vd_ndx == (version & ~VERSION_HIDDEN))
			return !strcmp(object->strings + name->vda_name, wanted);
	}
	return false;
}

/*
 * Return whether the symbol defines the name, other objects may be linked with it, and it has the
 * wanted version.
 */
static bool is_definition(const struct object *object, uint32_t index, const struct wanted *wanted)
{
	const Elf64_Sym *symbol = &object->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info), bind = ELF64_ST_BIND(symbol->st_info);
	unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
	const char *name;

	if (symbol->st_shndx == SHN_UNDEF || (!symbol->st_value && symbol->st_shndx != SHN_ABS))
		return false;
	if (bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE)
		return false;
	if (visibility == STV_HIDDEN || visibility == STV_INTERNAL)
		return false;
	if (type != STT_NOTYPE && type != STT_OBJECT && type != STT_FUNC && type != STT_COMMON &&
	    type != STT_GNU_IFUNC)
		return false;
	name = object->strings + symbol->st_name;
	return !strncmp(name, wanted->name, wanted->length) && !name[wanted->length] &&
	       is_version(object, index, wanted->version);
}

/*
 * Find a symbol by DT_GNU_HASH. The table has: number of buckets, first symbol, words of the
 * filter, its shift; then the filter, the first symbol of each bucket, and the hashes of the
 * symbols.
 */
static uint32_t find_by_gnu_hash(const struct object *object, const struct wanted *wanted)
{
	const uint32_t *table = object->gnu_hash, h = wanted->gnu_hash;
	uint32_t bucket_count = table[0], first = table[1], words = table[2], shift = table[3];
	const Elf64_Addr *filter = (const void *)&table[4];
	const uint32_t *buckets = (const void *)&filter[words], *hashes = &buckets[bucket_count];
	Elf64_Addr word;
	uint32_t i;

	if (!bucket_count || !words)
		return STN_UNDEF;
	word = filter[h / WORD_BITS % words];
	if (!(word >> h % WORD_BITS & word >> (h >> shift) % WORD_BITS & 1))
		return STN_UNDEF;
	i = buckets[h % bucket_count];
	if (i < first)
		return STN_UNDEF;
	for (;; i++) { /* the lowest bit ends a chain */
		if ((hashes[i - first] | 1) == (h | 1) && is_definition(object, i, wanted))
			return i;
		if (hashes[i - first] & 1)
			return STN_UNDEF;
	}
}

/*
 * Find a symbol by DT_HASH. The table has: number of buckets, number of symbols; then the first
 * symbol of each bucket, and the next symbol of each symbol.
 */
static uint32_t find_by_hash(const struct object *object, const struct wanted *wanted)
{
	const uint32_t *table = object->hash, *buckets = &table[2], *next;
	uint32_t bucket_count = table[0], symbol_count = table[1], i;

	if (!bucket_count)
		return STN_UNDEF;
	next = &buckets[bucket_count];
	for (i = buckets[hash_of(wanted->name, wanted->length) % bucket_count];
	     i != STN_UNDEF && i < symbol_count; i = next[i]) {
		if (is_definition(object, i, wanted))
			return i;
	}
	return STN_UNDEF;
}

/* Return the address of an indirect function: its resolver returns it. */
static void *resolve_indirect(Elf64_Addr resolver)
{
#if defined(__aarch64__)
	const __ifunc_arg_t argument = {sizeof(argument), getauxval(AT_HWCAP),
					getauxval(AT_HWCAP2)};

	return ((void *(*)(uint64_t, const __ifunc_arg_t *))resolver)(
		argument._hwcap | _IFUNC_ARG_HWCAP, &argument);
#else
	return ((void *(*)(void))resolver)();
#endif
}

static uint32_t find_symbol(const struct object *object, const struct wanted *wanted)
{
	return object->gnu_hash ? find_by_gnu_hash(object, wanted) : find_by_hash(object, wanted);
}

static void *find_name(const struct object *object, const struct wanted *wanted)
{
	uint32_t index = find_symbol(object, wanted);
	const Elf64_Sym *symbol = &object->symbols[index];
	Elf64_Addr address;

	if (index == STN_UNDEF)
		return NULL;
	address = symbol->st_value + (symbol->st_shndx == SHN_ABS ? 0 : object->base);
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return resolve_indirect(address);
	return (void *)address;
}

void *pem_elf__find_in(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *name)
{
	struct wanted wanted = wanted_of(name);
	struct object object;

	return read_object(&object, base, dynamic) ? find_name(&object, &wanted) : NULL;
}

bool pem_elf__is_function(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *name,
			  uintptr_t address)
{
	struct wanted wanted = wanted_of(name);
	const Elf64_Sym *symbol;
	struct object object;
	uint32_t index;

	if (!read_object(&object, base, dynamic))
		return false;
	index = find_symbol(&object, &wanted);
	symbol = &object.symbols[index];
	return index != STN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
	       address - (base + symbol->st_value) < symbol->st_size;
}

const char *pem_elf__soname(Elf64_Addr base, const Elf64_Dyn *dynamic)
{
	const Elf64_Dyn *d;
	struct object object;

	if (!read_object(&object, base, dynamic))
		return NULL;
	for (d = dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SONAME)
			return object.strings + d->d_un.d_val;
	}
	return NULL;
}

bool pem_elf__needs(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *soname)
{
	const Elf64_Dyn *d;
	struct object object;

	if (!read_object(&object, base, dynamic))
		return false;
	for (d = dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_NEEDED && !strcmp(object.strings + d->d_un.d_val, soname))
			return true;
	}
	return false;
}

/*
 * Return the first of the objects that the program was started with, in search order. The kernel's
 * own object is the second; it defines no function of the C library.
 */
static const struct link_map *first_object(void)
{
	return _r_debug.r_map;
}

/*
 * The last object that the program was started with, as the first search finds it. It, all before
 * it and the links between them stay; what dlopen appends may be closed while it is searched. It
 * lies among variables that the loader has to change anyway.
 */
static const struct link_map *last_object __attribute__((section(".data.last_object")));

/* This object; NULL: it is not in the list, or there is none yet. */
static const struct link_map *own_object(void)
{
	const struct link_map *own = first_object(), *last;

	/* The linker gives each object its own _DYNAMIC. Here it is that of this object. */
	while (own && own->l_ld != _DYNAMIC)
		own = own->l_next;
	if (!own || __atomic_load_n(&last_object, __ATOMIC_RELAXED))
		return own;
	for (last = own; last->l_next; last = last->l_next)
		;
	__atomic_store_n(&last_object, last, __ATOMIC_RELAXED);
	return own;
}

/* The object behind one; NULL: that was the last. */
static const struct link_map *next_object(const struct link_map *map)
{
	return map == __atomic_load_n(&last_object, __ATOMIC_RELAXED) ? NULL : map->l_next;
}

bool pem_elf__find_next(const char *const names[], void *found[], size_t count)
{
	const struct link_map *map = own_object();
	struct wanted wanted[PEM_ELF_NAMES_MAX];
	struct object object;
	size_t i, left = count;

	if (!map || count > PEM_ELF_NAMES_MAX)
		return false;
	for (i = 0; i < count; i++) {
		wanted[i] = wanted_of(names[i]);
		found[i] = NULL;
	}
	for (map = next_object(map); map && left; map = next_object(map)) {
		if (!read_object(&object, map->l_addr, map->l_ld))
			continue;
		for (i = 0; i < count; i++) {
			if (found[i])
				continue;
			found[i] = find_name(&object, &wanted[i]);
			left -= found[i] != NULL;
		}
	}
	return true;
}

bool pem_elf__find_next_one(const char *name, void **found)
{
	const struct link_map *map = own_object();
	const struct wanted wanted = wanted_of(name);
	struct object object;

	if (!map)
		return false;
	*found = NULL;
	for (map = next_object(map); map && !*found; map = next_object(map)) {
		if (read_object(&object, map->l_addr, map->l_ld))
			*found = find_name(&object, &wanted);
	}
	return true;
}

bool pem_elf__is_defined(const char *const names[], size_t count)
{
	struct wanted wanted[PEM_ELF_NAMES_MAX];
	const struct link_map *map;
	struct object object;
	size_t i;

	for (i = 0; i < count && i < PEM_ELF_NAMES_MAX; i++)
		wanted[i] = wanted_of(names[i]);
	for (map = first_object(); map; map = map->l_next) {
		if (!read_object(&object, map->l_addr, map->l_ld))
			continue;
		for (i = 0; i < count && i < PEM_ELF_NAMES_MAX; i++) {
			if (find_name(&object, &wanted[i]))
				return true;
		}
	}
	return false;
}
