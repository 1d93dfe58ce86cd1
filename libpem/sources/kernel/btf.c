/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * btf.c - a kernel's tracepoints, found in its types (contract: btf.h)
 *
 * For each tracepoint X the kernel's types have `typedef void (*btf_trace_X)(void *, parameters...)`. libbpf finds one
 * by walking all types, some millisecond each; a list with hundreds of events asks hundreds of times, so one walk
 * collects all and a question is a binary search. Types are the running kernel's or come from files: they are checked
 * by libbpf when they are parsed.
 */
#include "btf.h"
#include "prototype.h"

#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX "btf_trace_"
#define DEPTH_MAX 64 /* of typedefs, qualifiers and pointers: no kernel comes near */

/* Types of one file: the kernel proper, or a module on top of it. */
struct part {
	struct btf *btf;
	char *name;
};

struct tracepoint {
	const char *name; /* lies in its part */
	uint32_t part;
	uint32_t proto; /* BTF_KIND_FUNC_PROTO */
};

struct pem_kernel_btf {
	struct part *parts; /* the first is vmlinux */
	uint32_t part_count;
	struct tracepoint *tracepoints; /* by name */
	size_t count;
};

static bool is_qualifier(const struct btf_type *type)
{
	return btf_is_mod(type) || btf_is_type_tag(type);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct tracepoint *)a)->name, ((const struct tracepoint *)b)->name);
}

/* The function type that a typedef points to, or 0. */
static uint32_t proto_of(const struct btf *btf, const struct btf_type *type)
{
	const struct btf_type *to = btf__type_by_id(btf, type->type);
	uint32_t id;

	if (!to || !btf_is_ptr(to))
		return 0;
	id = to->type;
	to = btf__type_by_id(btf, id);
	return to && btf_is_func_proto(to) ? id : 0;
}

static int collect(struct pem_kernel_btf *kernel, uint32_t part)
{
	const struct btf *btf = kernel->parts[part].btf;
	uint32_t id = pem_kernel_btf__first_type(kernel, part), proto;
	struct tracepoint *grown;
	const struct btf_type *type;
	const char *name;

	for (; id < btf__type_cnt(btf); id++) {
		type = btf__type_by_id(btf, id);
		if (!btf_is_typedef(type))
			continue;
		name = btf__name_by_offset(btf, type->name_off);
		if (!name || strncmp(name, PREFIX, sizeof(PREFIX) - 1))
			continue;
		proto = proto_of(btf, type);
		if (!proto)
			continue;
		if (!(kernel->count & (kernel->count - 1))) {
			grown = realloc(kernel->tracepoints,
					(kernel->count ? 2 * kernel->count : 1) * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			kernel->tracepoints = grown;
		}
		kernel->tracepoints[kernel->count++] = (struct tracepoint){
			.name = name + sizeof(PREFIX) - 1, .part = part, .proto = proto};
	}
	return 0;
}

/* Add the types of a file. A module's rest on the kernel's. 0, or -errno. */
static int add_part(struct pem_kernel_btf *kernel, const char *path, const char *name)
{
	struct part *grown = realloc(kernel->parts, (kernel->part_count + 1) * sizeof(*grown));
	struct part *part;

	if (!grown)
		return -ENOMEM;
	kernel->parts = grown;
	part = &grown[kernel->part_count];
	part->name = strdup(name);
	if (!part->name)
		return -ENOMEM;
	errno = 0;
	part->btf =
		kernel->part_count ? btf__parse_split(path, grown[0].btf) : btf__parse(path, NULL);
	if (!part->btf) {
		free(part->name);
		return errno ? -errno : -EINVAL;
	}
	return collect(kernel, kernel->part_count++);
}

/* A module whose types can't be read costs its own tracepoints only. */
static void add_modules(struct pem_kernel_btf *kernel, const char *folder)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	char path[4096];

	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "vmlinux"))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) <
		    (int)sizeof(path))
			add_part(kernel, path, entry->d_name);
	}
	closedir(directory);
}

struct pem_kernel_btf *pem_kernel_btf__open(const char *path)
{
	struct pem_kernel_btf *kernel = calloc(1, sizeof(*kernel));
	struct stat status;
	char file[4096];
	int rc;

	if (!kernel)
		return NULL;
	if (!stat(path, &status) && S_ISDIR(status.st_mode)) {
		rc = snprintf(file, sizeof(file), "%s/vmlinux", path) >= (int)sizeof(file)
			     ? -ENAMETOOLONG
			     : add_part(kernel, file, "vmlinux");
		if (!rc)
			add_modules(kernel, path);
	} else {
		rc = add_part(kernel, path, "vmlinux");
	}
	if (rc) {
		pem_kernel_btf__close(kernel);
		errno = -rc;
		return NULL;
	}
	qsort(kernel->tracepoints, kernel->count, sizeof(*kernel->tracepoints), compare_names);
	return kernel;
}

void pem_kernel_btf__close(struct pem_kernel_btf *btf)
{
	if (!btf)
		return;
	/* Modules first: they rest on the kernel's types. */
	while (btf->part_count) {
		btf->part_count--;
		btf__free(btf->parts[btf->part_count].btf);
		free(btf->parts[btf->part_count].name);
	}
	free(btf->parts);
	free(btf->tracepoints);
	free(btf);
}

static const struct tracepoint *find(const struct pem_kernel_btf *kernel, const char *name)
{
	const char *colon = strchr(name, ':');
	const struct tracepoint key = {.name = colon ? colon + 1 : name};

	return kernel->count ? bsearch(&key, kernel->tracepoints, kernel->count, sizeof(key),
				       compare_names)
			     : NULL;
}

const struct btf *pem_kernel_btf__part(const struct pem_kernel_btf *btf, unsigned part,
				       const char **name)
{
	if (part >= btf->part_count)
		return NULL;
	*name = btf->parts[part].name;
	return btf->parts[part].btf;
}

unsigned pem_kernel_btf__first_type(const struct pem_kernel_btf *btf, unsigned part)
{
	return part ? btf__type_cnt(btf->parts[0].btf) : 1;
}

const char *pem_kernel_btf__home(const struct pem_kernel_btf *btf, const char *tracepoint)
{
	const struct tracepoint *found = find(btf, tracepoint);

	return found ? btf->parts[found->part].name : NULL;
}

/* --- comparing --- */

/* The type behind qualifiers; at a type of this name (NULL: none wanted) it stops, and says so. */
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
	/* A plain char's sign is the compiler's choice. */
	if (btf_is_int(type) &&
	    (bytes == 1 || !(btf_int_encoding(type) & BTF_INT_SIGNED) == !is_signed))
		return PEM_KERNEL_EQUAL;
	return PEM_KERNEL_FITS;
}

/* Are two types behind all names and qualifiers the same? For the spec's type names that the kernel spells otherwise. */
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

	wanted = id > 0 ? resolve(btf, (uint32_t)id, NULL, NULL) : NULL;
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

/* Compare a parameter's type with a C type, layer by layer from the outermost pointer. */
static enum pem_kernel_match match_type(const struct btf *btf, uint32_t id,
					const struct pem_c_type *wanted)
{
	const char *name = wanted->kind == PEM_C_NAMED ? wanted->name : NULL;
	const struct btf_type *type;
	bool is_named = false;
	unsigned stars;

	for (stars = wanted->pointers; stars; stars--) {
		type = resolve(btf, id, NULL, NULL);
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
	const struct tracepoint *found = find(btf, tracepoint);
	enum pem_kernel_match match = PEM_KERNEL_EQUAL, one;
	const struct btf_param *params;
	const struct btf_type *type;
	struct pem_c_type wanted;
	const struct btf *types;
	unsigned i, count;
	int rc;

	if (!found)
		return PEM_KERNEL_ABSENT;
	if (!prototype || !*prototype)
		return PEM_KERNEL_EQUAL;
	types = btf->parts[found->part].btf;
	type = btf__type_by_id(types, found->proto);
	params = btf_params(type);
	count = btf_vlen(type);
	/* The first parameter is the probe's own. */
	for (i = 1; (rc = pem_prototype__next(&prototype, &wanted)) > 0; i++) {
		if (wanted.kind == PEM_C_VOID && !wanted.pointers)
			break; /* "void": none */
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
	const struct tracepoint *found = find(btf, tracepoint);
	const struct btf_param *params;
	const struct btf_type *type;
	const struct btf *types;
	char one[96];
	size_t used = 0;
	unsigned i;

	if (!bytes)
		return;
	text[0] = '\0';
	if (!found)
		return;
	types = btf->parts[found->part].btf;
	type = btf__type_by_id(types, found->proto);
	params = btf_params(type);
	for (i = 1; i < btf_vlen(type) && used < bytes; i++) {
		describe_type(types, params[i].type, one, sizeof(one));
		used += (size_t)snprintf(text + used, bytes - used, "%s%s", i > 1 ? ", " : "", one);
	}
}

/* --- members --- */

static int has_member(const struct btf *btf, uint32_t id, const char *path, unsigned depth)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const struct btf_member *members;
	size_t n = strcspn(path, ".");
	const char *name;
	unsigned i;

	if (!type || !btf_is_composite(type) || depth == DEPTH_MAX)
		return 0;
	members = btf_members(type);
	for (i = 0; i < btf_vlen(type); i++) {
		name = btf__name_by_offset(btf, members[i].name_off);
		if (!*name) {
			if (has_member(btf, members[i].type, path, depth + 1))
				return 1;
		} else if (!strncmp(name, path, n) && !name[n]) {
			return !path[n] ||
			       has_member(btf, members[i].type, path + n + 1, depth + 1);
		}
	}
	return 0;
}

int pem_kernel_btf__has_member(const struct btf *btf, const char *structure, const char *path)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);

	return id > 0 && has_member(btf, (uint32_t)id, path, 0);
}
