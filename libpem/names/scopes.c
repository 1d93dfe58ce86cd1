/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * scopes.c - a function of debug information by name: its linkage name, or its name with the
 * namespaces, classes and functions around it
 *
 * Compilers write no linkage name of a function that is local to its source, such as one of an
 * unnamed namespace, of a local class or of a lambda. So scopes are kept as functions are read.
 */
#include "names.h"

#include <dwarf.h>
#include <errno.h>
#include <grow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCOPES_MAX 32u /* around a function, that are printed */
#define NAME_BYTES 2048u
#define STEPS_MAX                                                                                  \
	4u /* from a function's code to its declaration; a damaged file's are a circle             \
	    */

static bool is_class(int tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

static bool is_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return true;
	default:
		return false;
	}
}

int64_t pem_scopes__add(struct pem_unit *unit, Dwarf_Die *die, int tag, uint32_t outer)
{
	if ((tag != DW_TAG_namespace && tag != DW_TAG_module && tag != DW_TAG_subprogram &&
	     !is_class(tag)) ||
	    is_c(&unit->root) || unit->scope_count >= PEM_NO_SCOPE)
		return outer;
	if (pem_grow(&unit->scopes, sizeof(*unit->scopes), unit->scope_count + 1,
		     &unit->scope_capacity) != 0)
		return -ENOMEM;
	unit->scopes[unit->scope_count] = (struct pem_code_scope){*die, outer};
	return (int64_t)unit->scope_count++;
}

static int compare(const void *a, const void *b)
{
	const struct pem_code_scope *x = a, *y = b;

	return (x->die.addr > y->die.addr) - (x->die.addr < y->die.addr);
}

/* The scope that a function's declaration is, or PEM_NO_SCOPE: it is not in the unit. */
static uint32_t find_scope(const struct pem_unit *unit, const Dwarf_Die *function)
{
	static const unsigned int attributes[] = {DW_AT_abstract_origin, DW_AT_specification};
	struct pem_code_scope like = {.die = *function}, *found;
	Dwarf_Attribute value;
	unsigned int i, step;
	Dwarf_Die next;

	for (step = 0; step < STEPS_MAX; step++) {
		for (i = 0; i < 2; i++) {
			if (dwarf_formref_die(dwarf_attr(&like.die, attributes[i], &value), &next))
				break;
		}
		if (i == 2)
			break;
		like.die = next;
	}
	if (unit->scope_count == 0 || like.die.cu != unit->root.cu)
		return PEM_NO_SCOPE;
	found = bsearch(&like, unit->scopes, unit->scope_count, sizeof(like), compare);
	return found != NULL ? (uint32_t)(found - unit->scopes) : PEM_NO_SCOPE;
}

static const char *text_of(Dwarf_Die *die, unsigned int attribute)
{
	Dwarf_Attribute value;

	return dwarf_formstring(dwarf_attr_integrate(die, attribute, &value));
}

static const char *linkage_of(Dwarf_Die *die)
{
	const char *name = text_of(die, DW_AT_linkage_name);

	return name != NULL ? name : text_of(die, DW_AT_MIPS_linkage_name);
}

/* The part of a name that stands for a scope. of: the part after it. */
static void put_scope(FILE *out, Dwarf_Die *die, const char *of)
{
	const char *name = text_of(die, DW_AT_name);
	int tag = dwarf_tag(die);

	if (name != NULL && strncmp(name, "<lambda", 7) == 0)
		fprintf(out, "{%.*s}", (int)strcspn(name + 1, ">"), name + 1);
	else if (name != NULL)
		fputs(name, out);
	else if (tag == DW_TAG_namespace)
		fputs("(anonymous namespace)", out);
	else
		fputs(strcmp(of, "operator()") == 0 ? "{lambda}" : "{unnamed}", out);
	fputs("::", out);
}

/*
 * The scopes around a function, outermost first. A function around it is one only if a class lies
 * between. Returns their count.
 */
static unsigned int list_scopes(const struct pem_unit *unit, uint32_t i,
				const struct pem_code_scope **scopes)
{
	unsigned int count = 0, low;
	bool in_class = false;

	for (; i != PEM_NO_SCOPE && count < SCOPES_MAX; i = unit->scopes[i].outer) {
		Dwarf_Die *die = &unit->scopes[i].die;
		bool is_function = dwarf_tag(die) == DW_TAG_subprogram;

		if (is_function && !in_class)
			continue;
		in_class = is_class(dwarf_tag(die));
		scopes[count++] = &unit->scopes[i];
		/* A linkage name has all scopes around it. */
		if (is_function && linkage_of(die) != NULL)
			break;
	}
	for (low = 0; low < count / 2; low++) {
		const struct pem_code_scope *scope = scopes[low];

		scopes[low] = scopes[count - 1 - low];
		scopes[count - 1 - low] = scope;
	}
	return count;
}

/* The name with its scopes, which the caller frees; or NULL: it has none, or no memory. */
static char *with_scopes(const struct pem_unit *unit, struct pem_function *function,
			 const char *plain)
{
	const struct pem_code_scope *scopes[SCOPES_MAX];
	uint32_t own = find_scope(unit, &function->die);
	unsigned int i, count = own != PEM_NO_SCOPE
					? list_scopes(unit, unit->scopes[own].outer, scopes)
					: 0;
	char *text = count != 0 ? malloc(NAME_BYTES) : NULL;
	FILE *out = text != NULL ? fmemopen(text, NAME_BYTES, "w") : NULL;

	for (i = 0; out != NULL && i < count; i++) {
		Dwarf_Die die = scopes[i]->die;
		const char *linkage =
			dwarf_tag(&die) == DW_TAG_subprogram ? linkage_of(&die) : NULL;
		char *demangled = linkage != NULL ? pem_symbols__demangle(linkage) : NULL;

		if (linkage != NULL)
			fprintf(out, "%s::", demangled != NULL ? demangled : linkage);
		else
			put_scope(out, &die, plain);
		free(demangled);
	}
	if (out != NULL) {
		fputs(plain, out);
		/* Too long a name is cut. */
		fclose(out);
		text[NAME_BYTES - 1] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

/*
 * The source file that declares a function, which may be of another unit. dwarf_decl_file ends the
 * program where the file has split DWARF.
 */
static const char *file_of(struct pem_unit *unit, struct pem_function *function)
{
	Dwarf_Attribute value;
	Dwarf_Die other, *owner = &unit->die;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t count;

	if (dwarf_attr_integrate(&function->die, DW_AT_decl_file, &value) == NULL ||
	    dwarf_formudata(&value, &number) != 0 || number == 0)
		return NULL;
	if (value.cu != unit->root.cu)
		owner = dwarf_cu_die(value.cu, &other, NULL, NULL, NULL, NULL, NULL, NULL);
	if (owner == NULL || dwarf_getsrcfiles(owner, &files, &count) != 0 || number >= count)
		return NULL;
	return dwarf_filesrc(files, number, NULL, NULL);
}

/* FNV-1a, as in file.c. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text != NULL && *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/*
 * A function that is not local to its source is one by its linkage name alone, which C does not
 * need, wherever it was inlined.
 */
static uint64_t identify(struct pem_function *function, const char *name, bool is_unique)
{
	uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), name);
	Dwarf_Attribute value;
	int column = 0;
	bool is_external = false;

	if (is_unique &&
	    dwarf_formflag(dwarf_attr_integrate(&function->die, DW_AT_external, &value),
			   &is_external) == 0 &&
	    is_external)
		return hash;
	if (function->line == 0)
		return hash ^ function->start;
	(void)dwarf_decl_column(&function->die, &column);
	hash = hash_text(hash, function->file);
	return (hash ^ function->line ^ (uint64_t)column << 32) * UINT64_C(0x9e3779b97f4a7c15);
}

void pem_function__describe(struct pem_unit *unit, struct pem_function *function)
{
	const char *linkage, *plain;
	int line = 0;

	if (function->is_named)
		return;
	function->is_named = true;
	linkage = linkage_of(&function->die);
	plain = text_of(&function->die, DW_AT_name);
	function->has_linkage = linkage != NULL;
	if (linkage != NULL)
		function->text = pem_symbols__demangle(linkage);
	else if (plain != NULL)
		function->text = with_scopes(unit, function, plain);
	function->name = function->text != NULL ? function->text
			 : linkage != NULL      ? linkage
						: plain;
	function->file = file_of(unit, function);
	if (dwarf_decl_line(&function->die, &line) == 0 && line > 0)
		function->line = (uint32_t)line;
	function->identity = identify(function, linkage != NULL ? linkage : function->name,
				      linkage != NULL || is_c(&unit->root));
}
