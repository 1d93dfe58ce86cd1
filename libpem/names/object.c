/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* object.c - an object as libdwfl reads it, and the names of its addresses */
#include "names.h"
#include "held.h"
#include "probing.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* libdwfl takes what is open already, and closes it. */
static int give_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
		    char **path, Elf **elf)
{
	struct pem_object *object = *user;
	int fd = object->file.fd;

	(void)module, (void)name, (void)base;
	*path = strdup(object->file.path);
	*elf = object->file.elf;
	object->file.fd = -1;
	object->file.elf = NULL;
	return fd;
}

/*
 * libdwfl asks for the debug file first, and then, or again, for what it shares with others.
 * Without folders and names it asks servers of debug files alone, if any are named.
 */
static int find_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			   const char *file, const char *link, GElf_Word crc, char **path)
{
	struct pem_object *object = *user;
	bool is_first = !object->was_asked;
	int fd = -1;

	(void)file;
	object->was_asked = true;
	if (is_first)
		fd = pem_debug_file__open(object, link, crc, path);
	if (fd >= 0)
		return fd;
	errno = 0;
	fd = dwfl_standard_find_debuginfo(module, user, name, base, NULL, NULL, 0, path);
	object->is_shared = !is_first && fd >= 0;
	return fd;
}

/* Does the file have debug information alone? Its code then takes no bytes. */
static bool is_debug_file(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) != NULL && header.sh_flags & SHF_EXECINSTR)
			return header.sh_type == SHT_NOBITS;
	return false;
}

/*
 * Keep where the file's bytes lie in memory. A debug file has the headers of its object, and other
 * places.
 */
static void keep_segments(struct pem_object *object)
{
	Elf *elf = object->file.elf;
	GElf_Phdr segment;
	size_t count, i;

	if (is_debug_file(elf) || elf_getphdrnum(elf, &count) != 0)
		return;
	for (i = 0; i < count && i < INT_MAX && object->segment_count < PEM_OBJECT_SEGMENTS_MAX;
	     i++)
		if (gelf_getphdr(elf, (int)i, &segment) != NULL && segment.p_type == PT_LOAD)
			object->segments[object->segment_count++] =
				(struct pem_segment){segment.p_offset, segment.p_filesz,
						     segment.p_vaddr, segment.p_memsz};
}

/* The addresses that the object's segments take. */
static int extent(Elf *elf, GElf_Addr *low, GElf_Addr *high)
{
	GElf_Phdr segment;
	size_t count, i;

	*low = UINT64_MAX;
	*high = 0;
	if (elf_getphdrnum(elf, &count) != 0)
		return -ENOEXEC;
	for (i = 0; i < count && i < INT_MAX; i++) {
		GElf_Addr align;

		if (gelf_getphdr(elf, (int)i, &segment) == NULL || segment.p_type != PT_LOAD ||
		    segment.p_memsz > UINT64_MAX - segment.p_vaddr)
			continue;
		align = segment.p_align != 0 ? segment.p_align : 1;
		*low = segment.p_vaddr < *low ? segment.p_vaddr & -align : *low;
		if (segment.p_vaddr + segment.p_memsz > *high)
			*high = segment.p_vaddr + segment.p_memsz;
	}
	return *low < *high ? 0 : -ENOEXEC;
}

static int damaged(const struct pem_object *object, struct pem_error *error)
{
	int reason = dwfl_errno();

	return pem_names__fail(error, ENOEXEC, SHOWN " is damaged: %s", object->file.path,
			       reason != 0 ? dwfl_errmsg(reason) : "it has no segments");
}

/* A module of one object, at the addresses that it was linked for. */
static int start_dwfl(struct pem_object *object, struct pem_error *error)
{
	GElf_Addr low, high;
	void **user;

	object->callbacks = (Dwfl_Callbacks){
		.find_elf = give_elf,
		.find_debuginfo = find_debug_file,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &object->no_folders,
	};
	object->dwfl = dwfl_begin(&object->callbacks);
	if (object->dwfl == NULL)
		return pem_names__fail(error, ENOMEM, "no memory to read " SHOWN,
				       object->file.path);
	(void)dwfl_errno();
	if (extent(object->file.elf, &low, &high) != 0)
		return damaged(object, error);
	keep_segments(object);
	dwfl_report_begin(object->dwfl);
	object->module = dwfl_report_module(object->dwfl, object->file.path, low, high);
	if (object->module == NULL || dwfl_report_end(object->dwfl, NULL, NULL) != 0)
		return damaged(object, error);
	dwfl_module_info(object->module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
	*user = object;
	if (dwfl_module_getelf(object->module, &object->symbol_bias) == NULL)
		return damaged(object, error);
	return 0;
}

static int read_all(struct pem_object *object, struct pem_error *error)
{
	/* No debug information is no error. */
	Dwarf *dwarf = dwfl_module_getdwarf(object->module, &object->debug_bias);
	const char *from = pem_object__debug_path(object);
	int rc;

	if (from == NULL)
		from = object->file.path;
	if (dwarf != NULL && !object->is_shared && !pem_debug_file__share(object, dwarf, from))
		dwarf = NULL;
	rc = pem_symbols__read(&object->symbols, object->module, PEM_SYMBOL_FUNCTIONS);

	if (rc == -EFBIG)
		return pem_names__fail(error, EFBIG, SHOWN " has more than %d symbols",
				       object->file.path, PEM_SYMBOLS_MAX);
	if (rc != 0 || (dwarf != NULL && pem_units__read(&object->units, dwarf, from) != 0))
		return pem_names__fail(error, ENOMEM, "no memory for the names of " SHOWN,
				       object->file.path);
	return 0;
}

static int set_folders(struct pem_object *object, const char *folders, struct pem_error *error)
{
	object->no_folders = strdup("");
	object->debug_folders = folders != NULL ? strdup(folders) : NULL;
	if (object->no_folders == NULL || (folders != NULL && object->debug_folders == NULL))
		return pem_names__fail(error, ENOMEM, "no memory to find debug files");
	return 0;
}

static struct pem_object *open_object(const struct pem_object_query *query, bool only_held,
				      struct pem_error *error)
{
	struct pem_object *object = calloc(1, sizeof(*object));
	int rc;

	if (object == NULL) {
		errno = -pem_names__fail(error, ENOMEM, "no memory to open an object");
		return NULL;
	}
	object->file.fd = object->shared_file.fd = -1;
	object->only_held = only_held;
	rc = pem_object_file__open(&object->file, query, error);
	if (rc == 0)
		rc = set_folders(object, query->debug_folders, error);
	if (rc == 0)
		rc = start_dwfl(object, error);
	if (rc == 0)
		rc = read_all(object, error);
	if (rc != 0) {
		pem_object__close(object);
		errno = -rc;
		return NULL;
	}
	return object;
}

struct pem_object *pem_object__open(const struct pem_object_query *query, struct pem_error *error)
{
	return open_object(query, false, error);
}

struct pem_object *pem_object__open_held(const struct pem_object_query *query,
					 struct pem_error *error)
{
	return open_object(query, true, error);
}

void pem_object__close(struct pem_object *object)
{
	if (object == NULL)
		return;
	pem_symbols__free(&object->symbols);
	pem_symbols__free(&object->variables);
	pem_units__free(&object->units);
	if (object->dwfl != NULL)
		dwfl_end(object->dwfl);
	dwarf_end(object->shared);
	pem_object_file__close(&object->shared_file);
	pem_object_file__close(&object->file);
	free(object->debug_folders);
	free(object->no_folders);
	free(object);
}

const char *pem_object__path(const struct pem_object *object)
{
	return object->file.path;
}

const char *pem_object__debug_path(const struct pem_object *object)
{
	const char *path = NULL;

	dwfl_module_info(object->module, NULL, NULL, NULL, NULL, NULL, NULL, &path);
	return path;
}

uint64_t pem_object__number(const struct pem_object *object)
{
	return object->file.identity.number;
}

size_t pem_object__build_id(const struct pem_object *object, const uint8_t **build_id)
{
	*build_id = object->file.identity.build_id;
	return object->file.identity.build_id_bytes;
}

size_t pem_object__segments(const struct pem_object *object, const struct pem_segment **segments)
{
	*segments = object->segments;
	return object->segment_count;
}

static int offset_of(const struct pem_object *object, uint64_t file_offset, bool is_data,
		     uint64_t *offset)
{
	if (!pem_segments__offset(object->segments, object->segment_count, is_data, &file_offset))
		return -ENOENT;
	*offset = file_offset;
	return 0;
}

int pem_object__offset(const struct pem_object *object, uint64_t file_offset, uint64_t *offset)
{
	return offset_of(object, file_offset, false, offset);
}

int pem_object__data_offset(const struct pem_object *object, uint64_t file_offset, uint64_t *offset)
{
	return offset_of(object, file_offset, true, offset);
}

int pem_object__find_variable(struct pem_object *object, uint64_t offset, struct pem_name *name)
{
	struct pem_symbol *symbol;

	if (!object->has_variables &&
	    pem_symbols__read(&object->variables, object->module, PEM_SYMBOL_VARIABLES) != 0)
		return -ENOMEM;
	object->has_variables = true;
	symbol = pem_symbols__find(&object->variables, offset + object->symbol_bias);
	if (symbol == NULL)
		return 0;
	*name = (struct pem_name){.function = pem_symbol__name(symbol),
				  .source = PEM_NAME_SYMBOL,
				  .start = symbol->start - object->symbol_bias,
				  .declared_in = symbol->file,
				  .identity = symbol->start - object->symbol_bias};
	return 1;
}

/* Where the unit's lines say that an instruction comes from. */
static void name_line(struct pem_unit *unit, uint64_t address, struct pem_name *name)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
	int number = 0;

	if (line == NULL)
		return;
	name->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		name->line = (uint32_t)number;
}

/* Where a function was inlined. */
static void name_call(struct pem_unit *unit, const struct pem_function *inlined,
		      struct pem_name *name)
{
	Dwarf_Files *files;
	size_t count;

	name->line = inlined->call_line;
	if (dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && inlined->call_file < count)
		name->file = dwarf_filesrc(files, inlined->call_file, NULL, NULL);
}

static void name_symbol(const struct pem_object *object, uint64_t offset, struct pem_name *name)
{
	struct pem_symbol *symbol =
		pem_symbols__find(&object->symbols, offset + object->symbol_bias);

	if (symbol == NULL)
		return;
	name->function = pem_symbol__name(symbol);
	name->start = symbol->start - object->symbol_bias;
	name->source = PEM_NAME_SYMBOL;
	name->declared_in = symbol->file;
	name->identity = name->start;
}

/*
 * What the symbol at a function's begin calls it better than debug information. A function of C++
 * that is local to its source has no linkage name there; the symbol's says for instance which
 * lambda it is. Of C the linkage name may be one that only a library uses itself (__GI_malloc),
 * beside which it exports others. NULL: there is none.
 */
static const char *linkage_name(const struct pem_object *object,
				const struct pem_function *function, uint64_t offset)
{
	struct pem_symbol *symbol =
		pem_symbols__find(&object->symbols, offset + object->symbol_bias);
	const char *name;

	if (symbol == NULL || symbol->start != offset + object->symbol_bias)
		return NULL;
	name = pem_symbol__name(symbol);
	return function->has_linkage ? name : symbol->demangled;
}

static void name_function(const struct pem_object *object, struct pem_unit *unit,
			  struct pem_function *function, struct pem_name *name)
{
	const char *linkage = NULL;

	pem_function__describe(unit, function);
	name->start = function->start - (object->symbol_bias - object->debug_bias);
	/* function->text: the linkage name is of C++, and has all scopes */
	if ((!function->has_linkage || function->text == NULL) &&
	    function->outer == PEM_NO_FUNCTION)
		linkage = linkage_name(object, function, name->start);
	name->function = linkage != NULL ? linkage : function->name;
	name->source = name->function != NULL ? PEM_NAME_DEBUG : PEM_NAME_NONE;
	name->declared_in = function->file;
	name->declared_line = function->line;
	name->identity = function->identity;
}

/* The functions of a unit at an address, innermost first. The first name has its line already. */
static unsigned int name_functions(const struct pem_object *object, struct pem_unit *unit,
				   uint64_t address, struct pem_name *names, unsigned int max)
{
	uint32_t i = pem_spans__find(&unit->spans, address);
	unsigned int count = 0;

	for (; i != PEM_SPAN_NONE && count < max; i = unit->functions[i].outer) {
		struct pem_function *function = &unit->functions[i];

		name_function(object, unit, function, &names[count]);
		count++;
		if (function->outer != PEM_NO_FUNCTION && count < max) {
			names[count] = (struct pem_name){0};
			name_call(unit, function, &names[count]);
		}
	}
	return count;
}

unsigned int pem_object__find(struct pem_object *object, uint64_t offset, struct pem_name *names,
			      unsigned int max)
{
	uint64_t address = offset + object->symbol_bias - object->debug_bias;
	struct pem_unit *unit = pem_units__find(&object->units, address);
	unsigned int count = 0;

	if (max == 0)
		return 0;
	names[0] = (struct pem_name){0};
	if (unit != NULL) {
		name_line(unit, address, &names[0]);
		count = name_functions(object, unit, address, names, max);
	}
	if (names[0].function == NULL)
		name_symbol(object, offset, &names[0]);
	if (count == 0)
		count = names[0].function != NULL || names[0].file != NULL;
	return count;
}
