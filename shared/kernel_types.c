/* SPDX-License-Identifier: MIT */
/*
 * kernel_types.c - a kernel's types and tracepoints, through libbpf (contract: kernel_types.h)
 *
 * For each tracepoint X the kernel's types have `typedef void (*btf_trace_X)(void *, types...)`.
 * libbpf finds one by walking all types, which takes some milliseconds. A list with hundreds of
 * events needs hundreds of them. So one walk collects all tracepoints, and each look-up is a binary
 * search. Types are the running kernel's or come from files. libbpf checks them when it parses
 * them.
 */
#include "kernel_types.h"

#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX "btf_trace_"
#define DEPTH_MAX 64 /* nested typedefs and qualifiers; no kernel has as many */
#define NESTING_MAX 8 /* unnamed structures inside each other */

/* The types of one file: the kernel itself, or a module that extends it. */
struct part {
	struct btf *btf;
	char *name;
};

struct tracepoint {
	const char *name; /* belongs to its part's types */
	uint32_t part;
	uint32_t proto; /* BTF_KIND_FUNC_PROTO */
};

struct pem_kernel_btf {
	struct part *parts; /* the first is vmlinux */
	uint32_t part_count;
	struct tracepoint *tracepoints; /* sorted by name */
	size_t count;
};

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

/* Add the types of a file. A module's types refer to the kernel's. Returns 0 or -errno. */
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

/*
 * Add the types of all modules. If a module's types can't be read, only its own tracepoints are
 * missing.
 */
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
	/* Modules are freed first, because they refer to the kernel's types. */
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

const struct btf *pem_kernel_btf__tracepoint(const struct pem_kernel_btf *btf,
					     const char *tracepoint, uint32_t *proto)
{
	const struct tracepoint *found = find(btf, tracepoint);

	if (!found)
		return NULL;
	*proto = found->proto;
	return btf->parts[found->part].btf;
}

const char *pem_kernel_btf__home(const struct pem_kernel_btf *btf, const char *tracepoint)
{
	const struct tracepoint *found = find(btf, tracepoint);

	return found ? btf->parts[found->part].name : NULL;
}

/* --- types --- */

const struct btf_type *pem_btf__plain(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	unsigned depth;

	for (depth = 0; type && depth < DEPTH_MAX; depth++) {
		if (!btf_is_mod(type) && !btf_is_typedef(type) && !btf_is_type_tag(type))
			return type;
		type = btf__type_by_id(btf, type->type);
	}
	return NULL;
}

bool pem_btf__is_number(const struct btf_type *type)
{
	return type && (btf_is_int(type) || btf_is_any_enum(type));
}

bool pem_btf__is_signed(const struct btf_type *type)
{
	return btf_is_int(type) ? (btf_int_encoding(type) & BTF_INT_SIGNED) != 0 : btf_kflag(type);
}

static bool find_member(const struct btf *btf, const struct btf_type *type, const char *name,
			size_t bytes, struct pem_btf_member *found, unsigned nesting)
{
	const struct btf_member *members;
	const char *its;
	unsigned i;

	if (!type || !btf_is_composite(type) || nesting == NESTING_MAX)
		return false;
	members = btf_members(type);
	for (i = 0; i < btf_vlen(type); i++) {
		its = btf__name_by_offset(btf, members[i].name_off);
		if (!its || !*its) {
			if (find_member(btf, pem_btf__plain(btf, members[i].type), name, bytes,
					found, nesting + 1))
				return true;
		} else if (!strncmp(its, name, bytes) && !its[bytes]) {
			found->type = members[i].type;
			found->is_bitfield = btf_member_bitfield_size(type, i) != 0;
			return true;
		}
	}
	return false;
}

bool pem_btf__find_member(const struct btf *btf, const struct btf_type *type, const char *name,
			  struct pem_btf_member *found)
{
	return find_member(btf, type, name, strlen(name), found, 0);
}

bool pem_kernel_btf__has_member(const struct btf *btf, const char *structure, const char *path)
{
	int id = btf__find_by_name_kind(btf, structure, BTF_KIND_STRUCT);
	struct pem_btf_member member = {.type = (uint32_t)id};
	size_t bytes;

	if (id <= 0)
		return false;
	for (;; path += bytes + 1) {
		bytes = strcspn(path, ".");
		if (!find_member(btf, pem_btf__plain(btf, member.type), path, bytes, &member, 0))
			return false;
		if (!path[bytes])
			return true;
	}
}
