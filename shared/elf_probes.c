/* SPDX-License-Identifier: MIT */
/*
 * elf_probes.c - functions and static probes of a program or library (contract: elf_probes.h)
 *
 * The note of a static probe holds three addresses: its instruction, the section .stapsdt.base as
 * it was linked, and its semaphore or 0. Then it holds as text the provider, the name and the
 * arguments. The kernel wants file offsets, so addresses are translated through the segments that
 * they lie in.
 *
 * libelf checks its own results, and the content of the file is checked here. The file is read, not
 * mapped: its owner may truncate it meanwhile, and access to a missing part of a mapped file would
 * kill the reader.
 */
#include "elf_probes.h"

#include <ctype.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_STAPSDT 3
#define BASE_SECTION ".stapsdt.base"

struct binary {
	Elf *elf;
	size_t names; /* index of the section with the sections' names */
	size_t word; /* bytes of an address */
};

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define MACHINE_32 EM_386
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define MACHINE_32 EM_ARM
#else
#define MACHINE EM_NONE
#define MACHINE_32 EM_NONE
#endif

static void close_binary(struct binary *b)
{
	elf_end(b->elf);
}

static int open_binary(struct binary *b, int fd)
{
	*b = (struct binary){0};
	elf_version(EV_CURRENT);
	b->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!b->elf || elf_kind(b->elf) != ELF_K_ELF || elf_getshdrstrndx(b->elf, &b->names)) {
		close_binary(b);
		return -ENOEXEC;
	}
	b->word = gelf_getclass(b->elf) == ELFCLASS32 ? 4 : 8;
	return 0;
}

int pem_elf__is_for_here(int fd)
{
	GElf_Ehdr header;
	struct binary b;
	int rc = open_binary(&b, fd);

	if (rc)
		return rc;
	if (!gelf_getehdr(b.elf, &header))
		rc = -ENOEXEC;
	else if (header.e_machine != MACHINE && header.e_machine != MACHINE_32)
		rc = -EXDEV;
	close_binary(&b);
	return rc;
}

/*
 * Translate an address in a segment with these flags to a file offset. 0: it is in no such segment,
 * or is of code that the file does not have.
 */
static uint64_t location_in_file(const struct binary *b, uint64_t address, uint32_t flags)
{
	GElf_Phdr segment;
	size_t count, i;
	uint64_t bytes;

	if (elf_getphdrnum(b->elf, &count))
		return 0;
	for (i = 0; i < count; i++) {
		if (!gelf_getphdr(b->elf, (int)i, &segment))
			return 0;
		bytes = flags & PF_X ? segment.p_filesz : segment.p_memsz;
		if (segment.p_type == PT_LOAD && (segment.p_flags & flags) == flags &&
		    address >= segment.p_vaddr && address - segment.p_vaddr < bytes)
			return address - segment.p_vaddr + segment.p_offset;
	}
	return 0;
}

/* --- functions --- */

/*
 * Visit the functions named only, or all functions if only is NULL. symbols: the file that has this
 * table: the program, or its debug file, where exported functions have their version in their name.
 */
static int visit_symbols(const struct binary *b, const struct binary *symbols, Elf_Data *data,
			 const GElf_Shdr *header, const char *only,
			 int (*visit)(void *arg, const struct pem_elf_symbol *symbol), void *arg)
{
	size_t count = data->d_size / header->sh_entsize;
	struct pem_elf_symbol symbol;
	GElf_Sym entry;
	size_t i;
	int rc = 0;

	for (i = 0; i < count && !rc; i++) {
		if (!gelf_getsym(data, (int)i, &entry))
			return -ENOEXEC;
		if ((GELF_ST_TYPE(entry.st_info) != STT_FUNC &&
		     GELF_ST_TYPE(entry.st_info) != STT_GNU_IFUNC) ||
		    entry.st_shndx == SHN_UNDEF)
			continue;
		symbol.name = elf_strptr(symbols->elf, header->sh_link, entry.st_name);
		if (!symbol.name || !*symbol.name || (only && strcmp(only, symbol.name) != 0) ||
		    (symbols != b && strchr(symbol.name, '@')))
			continue;
		symbol.address = entry.st_value;
		symbol.offset = location_in_file(b, entry.st_value, PF_X);
		symbol.bytes = entry.st_size;
		symbol.is_indirect = GELF_ST_TYPE(entry.st_info) == STT_GNU_IFUNC;
		symbol.is_32bit = b->word == 4;
		if (symbol.offset)
			rc = visit(arg, &symbol);
	}
	return rc;
}

static int visit_tables(const struct binary *b, const struct binary *symbols, uint32_t type,
			const char *only,
			int (*visit)(void *arg, const struct pem_elf_symbol *symbol), void *arg)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;
	int rc = 0;

	while (!rc && (section = elf_nextscn(symbols->elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != type || !header.sh_entsize)
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf)
			rc = visit_symbols(b, symbols, data, &header, only, visit, arg);
	}
	return rc;
}

/* Exported functions come first, then the program's own symbols. A name may be in both. */
int pem_elf__each_function(int fd, int debug_fd, const char *only,
			   int (*visit)(void *arg, const struct pem_elf_symbol *symbol), void *arg)
{
	struct binary b, debug;
	int rc = open_binary(&b, fd);

	if (rc)
		return rc;
	rc = visit_tables(&b, &b, SHT_DYNSYM, only, visit, arg);
	if (!rc)
		rc = visit_tables(&b, &b, SHT_SYMTAB, only, visit, arg);
	if (!rc && debug_fd >= 0 && !open_binary(&debug, debug_fd)) {
		rc = visit_tables(&b, &debug, SHT_SYMTAB, only, visit, arg);
		close_binary(&debug);
	}
	close_binary(&b);
	return rc;
}

/* Is the address in a section of code? A file without such sections does not tell. */
static bool is_code(const struct binary *b, uint64_t address)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	bool any = false;

	while ((section = elf_nextscn(b->elf, section))) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
			continue;
		any = true;
		if (address >= header.sh_addr && address - header.sh_addr < header.sh_size)
			return true;
	}
	return !any;
}

int pem_elf__code(int fd, uint64_t address, uint64_t *offset, bool *is_32bit)
{
	struct binary b;
	int rc = open_binary(&b, fd);

	if (rc)
		return rc;
	*offset = location_in_file(&b, address, PF_X);
	*is_32bit = b.word == 4;
	if (!*offset || !is_code(&b, address))
		rc = -ENOENT;
	close_binary(&b);
	return rc;
}

/* --- variables --- */

struct sought {
	const char *name;
	size_t bytes;
	uint64_t address;
	bool found;
};

/*
 * Find the variable's address. -ENOTUNIQ: two source files of the program each have a variable of
 * this name.
 */
static int match_object(const struct binary *b, Elf_Data *data, const GElf_Shdr *header,
			struct sought *sought)
{
	size_t i, count = data->d_size / header->sh_entsize;
	const char *name;
	GElf_Sym entry;

	for (i = 0; i < count; i++) {
		if (!gelf_getsym(data, (int)i, &entry))
			return -ENOEXEC;
		if (GELF_ST_TYPE(entry.st_info) != STT_OBJECT || entry.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(b->elf, header->sh_link, entry.st_name);
		if (!name || strlen(name) != sought->bytes ||
		    memcmp(name, sought->name, sought->bytes) != 0)
			continue;
		if (sought->found && sought->address != entry.st_value)
			return -ENOTUNIQ;
		sought->address = entry.st_value;
		sought->found = true;
	}
	return 0;
}

int pem_elf__address(int fd, const char *name, size_t name_bytes, uint64_t *address)
{
	struct sought sought = {.name = name, .bytes = name_bytes};
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	struct binary b;
	Elf_Data *data;
	int rc = open_binary(&b, fd);

	if (rc)
		return rc;
	while (!rc && (section = elf_nextscn(b.elf, section))) {
		if (!gelf_getshdr(section, &header) || !header.sh_entsize ||
		    (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB))
			continue;
		data = elf_getdata(section, NULL);
		if (data)
			rc = match_object(&b, data, &header, &sought);
	}
	close_binary(&b);
	if (!rc && !sought.found)
		rc = -ENOENT;
	if (!rc)
		*address = sought.address;
	return rc;
}

/* --- notes --- */

/* The address of the section that addresses in notes are relative to. 0: there is none. */
static uint64_t base_address(const struct binary *b)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	const char *name;

	while ((section = elf_nextscn(b->elf, section))) {
		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(b->elf, b->names, header.sh_name);
		if (name && !strcmp(name, BASE_SECTION))
			return header.sh_addr;
	}
	return 0;
}

static uint64_t word_at(const struct binary *b, const char *text)
{
	uint64_t whole = 0;
	uint32_t narrow;

	if (b->word == 8) {
		memcpy(&whole, text, 8);
		return whole;
	}
	memcpy(&narrow, text, 4);
	return narrow;
}

/* Read the description of one note: three words, then three strings. */
static int visit_note(const struct binary *b, const char *text, size_t bytes, uint64_t base,
		      int (*visit)(void *arg, const struct pem_elf_note *note), void *arg)
{
	const char *strings[3], *at = text + 3 * b->word, *end = text + bytes;
	uint64_t moved, semaphore;
	struct pem_elf_note note;
	int i;

	if (bytes < 3 * b->word)
		return -ENOEXEC;
	for (i = 0; i < 3; i++) {
		strings[i] = at;
		at = memchr(at, '\0', (size_t)(end - at));
		if (!at)
			return -ENOEXEC;
		at++;
	}
	/* A tool that moves a linked program (prelink) does not change its notes. */
	moved = base ? base - word_at(b, text + b->word) : 0;
	semaphore = word_at(b, text + 2 * b->word);
	note = (struct pem_elf_note){
		.provider = strings[0],
		.name = strings[1],
		.arguments = strings[2],
		.address = word_at(b, text) + moved,
		.offset = location_in_file(b, word_at(b, text) + moved, PF_X),
		.semaphore = semaphore ? location_in_file(b, semaphore + moved, PF_W) : 0};
	/* Outside of code, or without its count of users, the probe would not work. */
	if (!note.offset || (semaphore && (!note.semaphore || note.semaphore > UINT32_MAX)))
		return 0;
	return visit(arg, &note);
}

static int visit_notes(const struct binary *b, Elf_Data *data, uint64_t base,
		       int (*visit)(void *arg, const struct pem_elf_note *note), void *arg)
{
	size_t offset = 0, name, description;
	GElf_Nhdr note;
	int rc = 0;

	while (!rc && (offset = gelf_getnote(data, offset, &note, &name, &description)) > 0) {
		if (note.n_type == NOTE_STAPSDT && note.n_namesz == sizeof("stapsdt") &&
		    !memcmp((char *)data->d_buf + name, "stapsdt", sizeof("stapsdt")))
			rc = visit_note(b, (char *)data->d_buf + description, note.n_descsz, base,
					visit, arg);
	}
	return rc;
}

int pem_elf__each_note(int fd, int (*visit)(void *arg, const struct pem_elf_note *note), void *arg)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	struct binary b;
	const char *name;
	Elf_Data *data;
	uint64_t base;
	int rc = open_binary(&b, fd);

	if (rc)
		return rc;
	base = base_address(&b);
	while (!rc && (section = elf_nextscn(b.elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(b.elf, b.names, header.sh_name);
		data = elf_getdata(section, NULL);
		if (name && !strcmp(name, ".note.stapsdt") && data && data->d_buf)
			rc = visit_notes(&b, data, base, visit, arg);
	}
	close_binary(&b);
	return rc;
}

/* --- arguments --- */

/* Skip an argument of any form. Blanks separate arguments, except inside brackets. */
static const char *end_of_argument(const char *text)
{
	int depth = 0;

	for (; *text && (*text != ' ' || depth > 0); text++)
		depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
	return text;
}

/* Parse "-4@" or "8f@" before a location. False: this is not a size. */
static bool read_size(struct pem_usdt_value *value, const char *text, const char *at)
{
	unsigned long bytes;
	char *end;

	value->is_signed = *text == '-';
	text += value->is_signed;
	if (!isdigit((unsigned char)*text))
		return false;
	bytes = strtoul(text, &end, 10);
	value->is_float = *end == 'f';
	if (end + value->is_float != at || bytes > 8)
		return false;
	value->bytes = (uint8_t)bytes;
	return true;
}

int pem_usdt_value__next(const char **text, struct pem_usdt_value *value)
{
	const char *at;

	while (**text == ' ')
		(*text)++;
	if (!**text)
		return 0;
	*value = (struct pem_usdt_value){.location = *text, .end = end_of_argument(*text)};
	at = memchr(*text, '@', (size_t)(value->end - *text));
	if (!at) {
		value->bytes = 8;
	} else if (read_size(value, *text, at)) {
		value->location = at + 1;
	} else {
		value->is_signed = value->is_float = false;
	}
	*text = value->end;
	return 1;
}
