/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * match.c - a kernel's tracepoint compared with a prototype (contract: match.h)
 */
#include "match.h"
#include "prototype.h"

#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 64 /* nested typedefs, qualifiers and pointers; no kernel has as many */

static bool is_qualifier(const struct btf_type *type)
{
	return btf_is_mod(type) || btf_is_type_tag(type);
}

/*
 * The type behind qualifiers and typedefs. If a typedef has this name (NULL: no name), stop there
 * and report it.
 */
static const struct btf_type *resolve(const struct btf *btf, uint32_t id, const char *name,
				      bool *is_named)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	unsigned depth;

	for (depth = 0; type && depth < DEPTH_MAX; depth++) {
		if (btf_is_typedef(type)) {
			if (name && !strcmp(btf__name_by_offset(btf, type->name_off), name)) {
				*is_named = true;
				return type;
			}
		} else if (!is_qualifier(type)) {
			return type;
		}
		type = btf__type_by_id(btf, type->type);
	}
	return NULL;
}

static bool has_name(const struct btf *btf, const struct btf_type *type, const char *name)
{
	return !strcmp(btf__name_by_offset(btf, type->name_off), name);
}

static enum pem_kernel_match match_integer(const struct btf_type *type, uint32_t bytes,
					   bool is_signed)
{
	if (type->size != bytes)
		return PEM_KERNEL_DIFFERS;
	/* The compiler chooses whether a plain char is signed. */
	if (btf_is_int(type) &&
	    (bytes == 1 || !(btf_int_encoding(type) & BTF_INT_SIGNED) == !is_signed))
		return PEM_KERNEL_EQUAL;
	return PEM_KERNEL_FITS;
}

/*
 * Compare two types without all names and qualifiers, for type names in the spec that the kernel
 * spells differently.
 */
static enum pem_kernel_match match_types(const struct btf *btf, const struct btf_type *got,
					 const struct btf_type *wanted)
{
	if (btf_kind(got) == btf_kind(wanted) && (btf_is_composite(got) || btf_is_any_enum(got)))
		return has_name(btf, got, btf__name_by_offset(btf, wanted->name_off))
			       ? PEM_KERNEL_EQUAL
			       : PEM_KERNEL_DIFFERS;
	if ((btf_is_int(got) || btf_is_any_enum(got)) && btf_is_int(wanted))
		return match_integer(got, wanted->size, btf_int_encoding(wanted) & BTF_INT_SIGNED);
	return PEM_KERNEL_DIFFERS;
}

static enum pem_kernel_match match_typedef(const struct btf *btf, const struct btf_type *got,
					   const char *name)
{
	const struct btf_type *wanted;
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);

	wanted = id > 0 ? pem_btf__plain(btf, (uint32_t)id) : NULL;
	return wanted ? match_types(btf, got, wanted) : PEM_KERNEL_DIFFERS;
}

static bool is_tag(const struct btf_type *type, enum pem_c_kind kind)
{
	switch (kind) {
	case PEM_C_STRUCT:
		return btf_is_struct(type) || (btf_is_fwd(type) && !btf_kflag(type));
	case PEM_C_UNION:
		return btf_is_union(type) || (btf_is_fwd(type) && btf_kflag(type));
	default:
		return btf_is_any_enum(type);
	}
}

/* Compare a parameter's type with a C type, one pointer level after the other from the outside. */
static enum pem_kernel_match match_type(const struct btf *btf, uint32_t id,
					const struct pem_c_type *wanted)
{
	const char *name = wanted->kind == PEM_C_NAMED ? wanted->name : NULL;
	const struct btf_type *type;
	bool is_named = false;
	unsigned stars;

	for (stars = wanted->pointers; stars; stars--) {
		type = pem_btf__plain(btf, id);
		if (!type || !btf_is_ptr(type))
			return PEM_KERNEL_DIFFERS;
		id = type->type;
	}
	type = resolve(btf, id, name, &is_named);
	if (!type)
		return PEM_KERNEL_DIFFERS;
	if (is_named)
		return PEM_KERNEL_EQUAL;
	switch (wanted->kind) {
	case PEM_C_VOID:
		return btf_is_void(type)  ? PEM_KERNEL_EQUAL
		       : wanted->pointers ? PEM_KERNEL_FITS
					  : PEM_KERNEL_DIFFERS;
	case PEM_C_INTEGER:
		return btf_is_int(type) || btf_is_any_enum(type)
			       ? match_integer(type, wanted->bytes, wanted->is_signed)
			       : PEM_KERNEL_DIFFERS;
	case PEM_C_NAMED:
		return match_typedef(btf, type, wanted->name);
	default:
		return is_tag(type, wanted->kind) && has_name(btf, type, wanted->name)
			       ? PEM_KERNEL_EQUAL
			       : PEM_KERNEL_DIFFERS;
	}
}

enum pem_kernel_match pem_kernel_btf__match(const struct pem_kernel_btf *btf,
					    const char *tracepoint, const char *prototype)
{
	enum pem_kernel_match match = PEM_KERNEL_EQUAL, one;
	const struct btf_param *params;
	const struct btf_type *type;
	struct pem_c_type wanted;
	const struct btf *types;
	unsigned i, count;
	uint32_t proto;
	int rc;

	types = pem_kernel_btf__tracepoint(btf, tracepoint, &proto);
	if (!types)
		return PEM_KERNEL_ABSENT;
	if (!prototype || !*prototype)
		return PEM_KERNEL_EQUAL;
	type = btf__type_by_id(types, proto);
	params = btf_params(type);
	count = btf_vlen(type);
	/* The first parameter is the probe's own, not the tracepoint's. */
	for (i = 1; (rc = pem_prototype__next(&prototype, &wanted)) > 0; i++) {
		/* "void": no parameters */
		if (wanted.kind == PEM_C_VOID && !wanted.pointers)
			break;
		one = i < count ? match_type(types, params[i].type, &wanted) : PEM_KERNEL_DIFFERS;
		match = one < match ? one : match;
	}
	if (rc < 0)
		return PEM_KERNEL_DIFFERS;
	return i < count && match == PEM_KERNEL_EQUAL ? PEM_KERNEL_FITS : match;
}

/* --- describing --- */

static const char *tag_word(const struct btf_type *type)
{
	if (btf_is_struct(type) || (btf_is_fwd(type) && !btf_kflag(type)))
		return "struct ";
	if (btf_is_union(type) || btf_is_fwd(type))
		return "union ";
	return btf_is_any_enum(type) ? "enum " : "";
}

static void describe_type(const struct btf *btf, uint32_t id, char *text, size_t bytes)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	unsigned pointers = 0, depth;
	const char *name;

	for (depth = 0; type && depth < DEPTH_MAX && (is_qualifier(type) || btf_is_ptr(type));
	     depth++) {
		pointers += btf_is_ptr(type);
		type = btf__type_by_id(btf, type->type);
	}
	if (!type || depth == DEPTH_MAX)
		name = "?";
	else if (btf_is_void(type))
		name = "void";
	else if (btf_is_func_proto(type))
		name = "function";
	else
		name = btf__name_by_offset(btf, type->name_off);
	snprintf(text, bytes, "%s%s%s%.*s", type ? tag_word(type) : "", name, pointers ? " " : "",
		 (int)(pointers > 8 ? 8 : pointers), "********");
}

void pem_kernel_btf__describe(const struct pem_kernel_btf *btf, const char *tracepoint, char *text,
			      size_t bytes)
{
	const struct btf_param *params;
	const struct btf_type *type;
	const struct btf *types;
	char one[96];
	size_t used = 0;
	uint32_t proto;
	unsigned i;

	if (!bytes)
		return;
	text[0] = '\0';
	types = pem_kernel_btf__tracepoint(btf, tracepoint, &proto);
	if (!types)
		return;
	type = btf__type_by_id(types, proto);
	params = btf_params(type);
	for (i = 1; i < btf_vlen(type) && used < bytes; i++) {
		describe_type(types, params[i].type, one, sizeof(one));
		used += (size_t)snprintf(text + used, bytes - used, "%s%s", i > 1 ? ", " : "", one);
	}
}
