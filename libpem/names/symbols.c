/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* symbols.c - functions and variables from an object's symbol tables, and what C++ calls them */
#include "names.h"
#include "grow.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * What is demangled: the result can grow by half with each reference to an earlier part, so a short
 * name that is made for it fills the memory. Of the 29,000 names of LLVM's library 99.9 % have
 * fewer than 32.
 */
#define DEMANGLED_MAX 4096
#define REFERENCES_MAX 32

static char *(*demangle)(const char *name, char *result, size_t *bytes, int *status);

/* The library stays: its names are asked for again. */
static void find_demangler(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	void *function = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;

	memcpy(&demangle, &function, sizeof(demangle));
}

/* References look as S_, S0_, T_, T0_. */
static bool is_simple(const char *name)
{
	const char *at = name;
	unsigned int references = 0;

	for (; *at != '\0'; at++) {
		const char *end = at + 1;

		if (*at != 'S' && *at != 'T')
			continue;
		while (isdigit((unsigned char)*end) || isupper((unsigned char)*end))
			end++;
		references += *end == '_';
	}
	return at - name <= DEMANGLED_MAX && references <= REFERENCES_MAX;
}

char *pem_symbols__demangle(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int status = 0;

	if (strncmp(name, "_Z", 2) != 0 || !is_simple(name))
		return NULL;
	pthread_once(&once, find_demangler);
	return demangle != NULL ? demangle(name, NULL, NULL, &status) : NULL;
}

const char *pem_symbol__name(struct pem_symbol *symbol)
{
	if (!symbol->is_named) {
		symbol->is_named = true;
		symbol->demangled = pem_symbols__demangle(symbol->name);
		if (symbol->demangled != NULL)
			symbol->name = symbol->demangled;
	}
	return symbol->name;
}

/* A symbol while they are sorted. */
struct found {
	uint64_t start, bytes;
	uint64_t section_end;
	const char *name;
	const char *file; /* that it is local to; NULL: it is not, or the file is unknown */
	bool is_local;
};

/* Of functions in one place the one that is exported comes last, and holds; malloc before _malloc.
 */
static int compare(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->is_local != y->is_local)
		return x->is_local ? -1 : 1;
	return strcmp(x->name, y->name);
}

static uint64_t section_end(Elf *elf, GElf_Word index, GElf_Addr bias)
{
	Elf_Scn *section = elf != NULL ? elf_getscn(elf, index) : NULL;
	GElf_Shdr header;

	if (section == NULL || gelf_getshdr(section, &header) == NULL)
		return 0;
	return header.sh_addr + header.sh_size + bias;
}

/*
 * Functions; or variables, which have a size and are not a thread's own: those lie elsewhere.
 */
static bool is_wanted(const GElf_Sym *symbol, enum pem_symbol_kind kind)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	if (kind == PEM_SYMBOL_VARIABLES)
		return type == STT_OBJECT && symbol->st_size != 0;
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* Returns how many there are, or -ENOMEM. */
static ssize_t read_all(struct found **found, Dwfl_Module *module, int total,
			enum pem_symbol_kind kind)
{
	size_t count = 0, capacity = 0;
	const char *file = NULL;
	int i;

	for (i = 0; i < total; i++) {
		GElf_Sym symbol;
		GElf_Addr address, bias;
		GElf_Word section;
		Elf *elf;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, &section,
							   &elf, &bias);

		/* The local symbols of a source file come after the one that names the file. */
		if (name != NULL && GELF_ST_TYPE(symbol.st_info) == STT_FILE)
			file = *name != '\0' ? name : NULL;
		if (name == NULL || *name == '\0' || !is_wanted(&symbol, kind) ||
		    section == SHN_UNDEF || section == SHN_ABS)
			continue;
		if (pem_grow(found, sizeof(**found), count + 1, &capacity) != 0)
			return -ENOMEM;
		(*found)[count++] = (struct found){
			.start = address,
			.bytes = symbol.st_size,
			.section_end = symbol.st_size == 0 ? section_end(elf, section, bias) : 0,
			.name = name,
			.file = GELF_ST_BIND(symbol.st_info) == STB_LOCAL ? file : NULL,
			.is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
		};
	}
	return (ssize_t)count;
}

/* A function without a size, of an assembler, reaches to the next one. */
static uint64_t end_of(const struct found *found, size_t i, size_t count)
{
	size_t next = i + 1;

	if (found[i].bytes != 0)
		return found[i].bytes > UINT64_MAX - found[i].start
			       ? found[i].start
			       : found[i].start + found[i].bytes;
	while (next < count && found[next].start == found[i].start)
		next++;
	return next < count && found[next].start < found[i].section_end ? found[next].start
									: found[i].section_end;
}

static int keep(struct pem_symbols *symbols, const struct found *found, size_t count)
{
	size_t i;

	for (i = 0; i < count && i < PEM_SPAN_NONE; i++) {
		symbols->symbols[i].name = found[i].name;
		symbols->symbols[i].file = found[i].file;
		symbols->symbols[i].start = found[i].start;
		symbols->count++;
		if (pem_spans__add(&symbols->spans, found[i].start, end_of(found, i, count),
				   (uint32_t)i) != 0)
			return -ENOMEM;
	}
	return pem_spans__sort(&symbols->spans);
}

int pem_symbols__read(struct pem_symbols *symbols, Dwfl_Module *module, enum pem_symbol_kind kind)
{
	int total = dwfl_module_getsymtab(module), rc;
	struct found *found = NULL;
	ssize_t count;

	if (total <= 0)
		return 0;
	if (total > PEM_SYMBOLS_MAX)
		return -EFBIG;
	count = read_all(&found, module, total, kind);
	if (count > 0) {
		qsort(found, (size_t)count, sizeof(*found), compare);
		symbols->symbols = calloc((size_t)count, sizeof(*symbols->symbols));
	}
	rc = count <= 0         ? (int)count
	     : symbols->symbols ? keep(symbols, found, (size_t)count)
				: -ENOMEM;
	free(found);
	return rc;
}

struct pem_symbol *pem_symbols__find(const struct pem_symbols *symbols, uint64_t address)
{
	uint32_t i = pem_spans__find(&symbols->spans, address);

	return i != PEM_SPAN_NONE ? &symbols->symbols[i] : NULL;
}

void pem_symbols__free(struct pem_symbols *symbols)
{
	size_t i;

	for (i = 0; i < symbols->count; i++)
		free(symbols->symbols[i].demangled);
	free(symbols->symbols);
	pem_spans__free(&symbols->spans);
}
