// SPDX-License-Identifier: LGPL-2.1-or-later
/* code_names.c - what locations in objects are called in their source (pem/names.h) */
#include "code_map.h"

#include <pem/names.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As told in pem_code_location: the type that others see has const texts. */
PEM_STATIC_ASSERT(sizeof(struct code_name) == sizeof(struct pem_code_name), "one layout");

struct code_name *code__make_names(struct code_location *location, uint32_t count)
{
	struct code_name *names = calloc(count, sizeof(*names));

	if (!names)
		return NULL;
	location->told.names = (const struct pem_code_name *)names;
	location->told.name_count = count;
	return names;
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

static struct pem_object *open_object(struct code_object *object)
{
	struct pem_object_query query = {.size = sizeof(query), .path = object->path};
	struct pem_error error = {""};
	struct pem_object *opened;
	uint8_t id[sizeof(object->build_id) / 2];
	unsigned byte;

	for (; sscanf(object->build_id + 2 * query.build_id_bytes, "%2x", &byte) == 1;
	     query.build_id_bytes++)
		id[query.build_id_bytes] = (uint8_t)byte;
	query.build_id = query.build_id_bytes ? id : NULL;
	opened = pem_object__open(&query, &error);
	if (!opened)
		object->trouble = strdup(error.text);
	else
		object->told.number = pem_object__number(opened);
	return opened;
}

/* The variable that an address is in. Returns 0 or -ENOMEM. */
static int name_variable(struct code_location *location, struct pem_object *object, bool is_by_file)
{
	struct pem_name found;
	struct code_name *names;
	uint64_t offset;
	int rc;

	if (is_by_file && !pem_object__data_offset(object, location->told.offset - 1, &offset))
		location->told.offset = offset + 1;
	else if (is_by_file)
		return 0;
	rc = pem_object__find_variable(object, location->told.offset - 1, &found);
	if (rc <= 0)
		return rc;
	names = code__make_names(location, 1);
	return names ? code__copy(found.function, &names->function) : -ENOMEM;
}

static int name_location(struct code_location *location, struct pem_object *object, bool is_by_file)
{
	struct pem_name found[CODE_NAMES_MAX];
	struct code_name *names;
	unsigned i, count;
	uint64_t offset;

	/* The offset is behind the instruction. */
	if (is_by_file && !pem_object__offset(object, location->told.offset - 1, &offset))
		location->told.offset = offset + 1;
	else if (is_by_file)
		return 0;
	count = pem_object__find(object, location->told.offset - 1, found, CODE_NAMES_MAX);
	if (!count)
		return 0;
	names = code__make_names(location, count);
	if (!names)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		names[i].line = found[i].line;
		if (code__copy(found[i].function, &names[i].function) ||
		    code__copy(found[i].file, &names[i].file))
			return -ENOMEM;
	}
	return 0;
}

static int by_object(const void *a, const void *b)
{
	const struct code_location *x = *(struct code_location *const *)a;
	const struct code_location *y = *(struct code_location *const *)b;

	if (x->told.object != y->told.object)
		return x->told.object < y->told.object ? -1 : 1;
	return (x->told.offset > y->told.offset) - (x->told.offset < y->told.offset);
}

/* Name sorted locations. One object is open at a time: their debug information is large. */
static int name_sorted(struct pem_code *code, struct code_location **sorted, size_t count)
{
	struct pem_object *opened = NULL;
	uint32_t last = PEM_CODE_NONE;
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < count; i++) {
		struct code_object *object = &code->objects[sorted[i]->told.object];

		if (sorted[i]->told.object != last) {
			last = sorted[i]->told.object;
			pem_object__close(opened);
			opened = is_file(object->path) ? open_object(object) : NULL;
		}
		if (opened)
			rc = code->is_data ? name_variable(sorted[i], opened, object->is_by_file)
					   : name_location(sorted[i], opened, object->is_by_file);
	}
	pem_object__close(opened);
	return rc;
}

int code__name_objects(struct pem_code *code)
{
	struct code_location **sorted = calloc(code->location_count + 1, sizeof(*sorted));
	size_t i, count = 0;
	int rc;

	if (!sorted)
		return -ENOMEM;
	for (i = 0; i < code->location_count; i++)
		if (code->locations[i].told.object != PEM_CODE_NONE && code->locations[i].same == i)
			sorted[count++] = &code->locations[i];
	qsort(sorted, count, sizeof(struct code_location *), by_object);
	rc = name_sorted(code, sorted, count);
	free(sorted);
	return rc;
}
