// SPDX-License-Identifier: LGPL-2.1-or-later
/* code_names.c - what locations in objects are called in their source (pem/names.h) */
#include "code_map.h"
#include "hash.h"
#include "held.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As told in pem_code_location: the type that others see has const texts. */
PEM_STATIC_ASSERT(sizeof(struct code_name) == sizeof(struct pem_code_name) &&
			  offsetof(struct code_name, number) ==
				  offsetof(struct pem_code_name, number),
		  "one layout");

struct code_name *code__make_names(struct code_location *location, uint32_t count)
{
	struct code_name *names = calloc(count, sizeof(*names));
	uint32_t i;

	if (!names)
		return NULL;
	for (i = 0; i < count; i++)
		names[i].number = PEM_CODE_NONE;
	location->told.names = (const struct pem_code_name *)names;
	location->told.name_count = count;
	return names;
}

void code__free_names(struct code_location *location)
{
	struct code_name *names = (struct code_name *)location->told.names;
	uint32_t i;

	for (i = 0; i < location->told.name_count; i++)
		free(names[i].file);
	free(names);
	location->told.names = NULL;
	location->told.name_count = 0;
}

int code__copy(const char *text, char **to)
{
	*to = text ? strdup(text) : NULL;
	if (*to)
		pem_printable(*to);
	return text && !*to ? -ENOMEM : 0;
}

/* Memory without a file has no names. */
static bool is_file(const char *path)
{
	return path[0] == '/' && path[1] != '/';
}

/* When the object was first in memory, as the clock says that files go by; 0: unknown. */
static uint64_t mapped_ns(const struct pem_code *code, const struct code_object *object)
{
	/* The clock may have been adjusted since the trace began, by 500 millionths at most. */
	uint64_t error_ns = object->first_ns / 1000 + 10000000;

	return code->start_time_ns ? code->start_time_ns + object->first_ns + error_ns : 0;
}

/* By segments the kernel's mappings are understood. */
int code__keep_segments(struct code_object *object, const struct pem_segment *segments,
			size_t count)
{
	if (!count || object->segment_count)
		return 0;
	object->segments = calloc(count, sizeof(*segments));
	if (!object->segments)
		return -ENOMEM;
	memcpy(object->segments, segments, count * sizeof(*segments));
	object->segment_count = count;
	return 0;
}

/* Which file an object is. id has space for the bytes of its build id. */
static struct pem_object_query query_of(const struct pem_code *code,
					const struct code_object *object, uint8_t *id)
{
	struct pem_object_query query = {.size = sizeof(query), .path = object->path};
	unsigned byte;

	for (; sscanf(object->build_id + 2 * query.build_id_bytes, "%2x", &byte) == 1;
	     query.build_id_bytes++)
		id[query.build_id_bytes] = (uint8_t)byte;
	query.build_id = query.build_id_bytes ? id : NULL;
	query.mapped_ns = mapped_ns(code, object);
	return query;
}

/*
 * Open the file of the object, unless n->opened is the same file. One that another user can change
 * is left to another process. Returns 0 or -ENOMEM.
 */
static int open_object(struct pem_code *code, struct naming *n)
{
	struct code_object *object = &code->objects[n->object];
	uint8_t id[sizeof(object->build_id) / 2];
	struct pem_object_query query = query_of(code, object, id);
	struct pem_error error = {""};
	const struct pem_segment *segments;
	uint32_t holder;
	size_t count;

	object->is_named = true;
	if (!n->opened && code->is_apart)
		n->opened = pem_object__open(&query, &error);
	else if (!n->opened && pem_path__is_held(object->path, &holder))
		n->opened = pem_object__open_held(&query, &error);
	else if (!n->opened && code__begin_apart(code, n, holder, &error) < 0)
		return -ENOMEM;
	if (!n->opened && n->is_apart && !object->trouble)
		return 0;
	/* A copy is of a file that root or this user owned. */
	if (!n->opened && query.build_id && code->kept_files[0]) {
		query.path = NULL;
		query.debug_folders = code->kept_files;
		n->opened = pem_object__open(&query, NULL);
	}
	if (n->opened) {
		free(object->trouble);
		object->trouble = NULL;
		object->told.number = pem_object__number(n->opened);
		count = pem_object__segments(n->opened, &segments);
		return code->keeps_segments && object->is_by_file
			       ? code__keep_segments(object, segments, count)
			       : 0;
	}
	if (n->is_apart)
		return 0;
	free(object->trouble);
	/* What was unknown as it was recorded is so for the reason of that time. */
	return code__copy(n->kept != PEM_CODE_NONE ? code__kept_trouble(code, n->kept) : error.text,
			  &object->trouble);
}

/* Name the function, or variable, of a location. Returns 0 or -ENOMEM. */
static int name_function(struct pem_code *code, const struct code_location *location,
			 struct code_name *in, const struct pem_name *found, bool is_inlined)
{
	struct code_function like = {.object = code->objects[location->told.object].same,
				     .is_inlined = is_inlined,
				     .identity = found->identity,
				     .start = found->start,
				     .line = found->declared_line};

	return found->function
		       ? code__name_function(code, in, &like, found->function, found->declared_in)
		       : 0;
}

/* Name what an object that is open has at a location. Returns 0 or -ENOMEM. */
static int name_location(struct pem_code *code, struct code_location *location,
			 struct pem_object *object)
{
	struct pem_name found[CODE_NAMES_MAX];
	/* The offset is behind the instruction. */
	uint64_t offset = location->told.offset - 1;
	struct code_name *names;
	unsigned i;
	int count = code->is_data ? pem_object__find_variable(object, offset, found)
				  : (int)pem_object__find(object, offset, found, CODE_NAMES_MAX);

	/* Names that the trace keeps give way to those of debug information that came later. */
	if (count <= 0 || (location->told.name_count && !found[0].file))
		return count < 0 ? count : 0;
	code__free_names(location);
	names = code__make_names(location, (uint32_t)count);
	if (!names)
		return -ENOMEM;
	for (i = 0; i < (unsigned)count; i++) {
		names[i].line = found[i].line;
		if (name_function(code, location, &names[i], &found[i], i + 1 < (unsigned)count) ||
		    code__copy(found[i].file, &names[i].file))
			return -ENOMEM;
	}
	return 0;
}

/* By file, by object, then by offset. */
static int by_object(const void *a, const void *b, void *arg)
{
	const struct code_location *x = *(struct code_location *const *)a;
	const struct code_location *y = *(struct code_location *const *)b;
	const struct pem_code *code = arg;
	uint32_t i = code->objects[x->told.object].same, j = code->objects[y->told.object].same;

	if (i != j)
		return i < j ? -1 : 1;
	if (x->told.object != y->told.object)
		return x->told.object < y->told.object ? -1 : 1;
	return (x->told.offset > y->told.offset) - (x->told.offset < y->told.offset);
}

static int name_one(struct pem_code *code, struct naming *n, struct code_location *location)
{
	struct code_object *object = &code->objects[n->object];
	uint64_t given = location->told.offset, offset = given - 1;
	bool is_resolved = !object->is_by_file, was_apart = n->is_apart;
	int rc = 0;

	if (!is_resolved && n->kept != PEM_CODE_NONE && code__kept_offset(code, n->kept, &offset)) {
		location->told.offset = offset + 1;
		is_resolved = true;
	}
	if (is_resolved && n->kept != PEM_CODE_NONE)
		rc = code__name_kept(code, location, kept_owner(KEPT_OBJECT, n->kept));
	if (rc < 0 || (rc > 0 && (code->is_data || location->told.names[0].file)))
		return rc < 0 ? rc : 0;
	if (!n->was_opened && is_file(object->path)) {
		/* Another process resolves the offset itself. */
		uint64_t resolved = location->told.offset;

		n->was_opened = true;
		location->told.offset = given;
		rc = open_object(code, n);
		if (rc == 0 && n->is_apart && !was_apart) {
			code__free_names(location);
			return name_one(code, n, location);
		}
		location->told.offset = resolved;
	}
	n->was_opened = true;
	if (rc < 0 || !n->opened)
		return rc < 0 ? rc : 0;
	if (!is_resolved && (code->is_data ? pem_object__data_offset(n->opened, offset, &offset)
					   : pem_object__offset(n->opened, offset, &offset)))
		return 0;
	location->told.offset = offset + 1;
	return name_location(code, location, n->opened);
}

/* Go to an object of the file. Returns 0 or -ENOMEM. */
static int enter(struct pem_code *code, struct naming *n, uint32_t object)
{
	int64_t kept = code__kept_object(code, &code->objects[object]);

	n->object = object;
	n->kept = (uint32_t)kept;
	n->was_opened = n->is_apart;
	return kept < 0 ? -ENOMEM : n->is_apart ? code__adopt(code, n) : 0;
}

int code__name_file(struct pem_code *code, struct naming *n)
{
	uint32_t same = code->objects[n->sorted[n->at]->told.object].same;
	int rc = 0;

	for (; !rc && n->at < n->count; n->at++) {
		uint32_t object = n->sorted[n->at]->told.object;

		if (code->objects[object].same != same)
			break;
		if (object != n->object)
			rc = enter(code, n, object);
		if (!rc)
			rc = name_one(code, n, n->sorted[n->at]);
	}
	return rc;
}

static int name_sorted(struct pem_code *code, struct code_location **sorted, size_t count)
{
	struct naming naming = {.sorted = sorted, .count = count};
	int rc = 0;

	while (!rc && naming.at < count) {
		naming.object = PEM_CODE_NONE;
		rc = code__name_file(code, &naming);
		pem_object__close(naming.opened);
		naming.opened = NULL;
		code__end_apart(code, &naming);
	}
	return rc;
}

/*
 * One file is two objects where both the loader and the kernel say that it was mapped, or where it
 * has two paths: its build id tells.
 */
static int join_objects(struct pem_code *code)
{
	struct pem_number_map map = {0};
	int rc = 0;
	uint32_t i;

	for (i = 0; !rc && i < code->object_count; i++) {
		const struct code_object *object = &code->objects[i], *other;
		const char *id = object->build_id[0] ? object->build_id : object->path;
		uint64_t key = pem_hash__secret_text(0, code->multiplier, id);
		uint32_t *at;

		while ((at = pem_number_map__at(&map, key)) && *at != PEM_CODE_NONE) {
			other = &code->objects[*at];
			if (!strcmp(other->build_id, object->build_id) &&
			    (object->build_id[0] || !strcmp(other->path, object->path)))
				break;
			key++;
		}
		if (!at)
			rc = -ENOMEM;
		else if (*at == PEM_CODE_NONE)
			*at = i;
		code->objects[i].same = at ? *at : i;
	}
	pem_number_map__free(&map);
	return rc;
}

int code__name_objects(struct pem_code *code)
{
	struct code_location **sorted = calloc(code->location_count + 1, sizeof(*sorted));
	size_t i, count = 0;
	int rc = sorted ? join_objects(code) : -ENOMEM;

	if (rc) {
		free(sorted);
		return rc;
	}
	for (i = 0; i < code->location_count; i++)
		if (code->locations[i].told.object != PEM_CODE_NONE && code->locations[i].same == i)
			sorted[count++] = &code->locations[i];
	qsort_r(sorted, count, sizeof(struct code_location *), by_object, code);
	rc = name_sorted(code, sorted, count);
	free(sorted);
	return rc;
}
