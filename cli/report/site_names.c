/* SPDX-License-Identifier: MIT */
/* site_names.c - what sites are called in their source, by pem/names.h where pem was built with it
 */
#include "sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef PEM_REPORT_HAS_NAMES
#include <pem/names.h>

static struct pem_object *open_object(struct report_object *object)
{
	struct pem_object_query query = {.size = sizeof(query), .path = object->path};
	struct pem_error error = {""};
	struct pem_object *opened;
	uint8_t id[sizeof(object->build_id) / 2];
	unsigned int byte;

	for (; sscanf(object->build_id + 2 * query.build_id_bytes, "%2x", &byte) == 1;
	     query.build_id_bytes++)
		id[query.build_id_bytes] = (uint8_t)byte;
	query.build_id = query.build_id_bytes != 0 ? id : NULL;
	opened = pem_object__open(&query, &error);
	if (opened == NULL)
		object->trouble = strdup(error.text);
	else
		object->number = pem_object__number(opened);
	return opened;
}

/* Texts of a file can hold anything. Returns false if there is no memory. */
static bool copy(const char *text, char **to)
{
	if (text == NULL)
		return true;
	*to = strdup(text);
	if (*to != NULL)
		pem_printable(*to);
	return *to != NULL;
}

static int name_site(struct report_site *site, struct pem_object *object, bool is_by_file)
{
	struct pem_name names[SITE_NAMES_MAX];
	unsigned int i, count;
	uint64_t offset;

	/* The offset is behind the call. */
	if (is_by_file && pem_object__offset(object, site->offset - 1, &offset) == 0)
		site->offset = offset + 1;
	else if (is_by_file)
		return 0;
	count = pem_object__find(object, site->offset - 1, names, SITE_NAMES_MAX);
	if (count == 0)
		return 0;
	site->names = calloc(count, sizeof(*site->names));
	if (site->names == NULL)
		return -ENOMEM;
	site->name_count = count;
	for (i = 0; i < count; i++) {
		site->names[i].line = names[i].line;
		if (!copy(names[i].function, &site->names[i].function) ||
		    !copy(names[i].file, &site->names[i].file))
			return -ENOMEM;
	}
	return 0;
}

static int by_object(const void *a, const void *b)
{
	const struct report_site *x = a, *y = b;

	return x->object < y->object ? -1 : x->object > y->object;
}

/* One object is open at a time: their debug information is large. */
int report_sites__name(struct report_sites *s)
{
	struct pem_object *opened = NULL;
	uint32_t last = NO_OBJECT;
	size_t i;
	int rc = 0;

	if (s->count != 0)
		qsort(s->sites, s->count, sizeof(*s->sites), by_object);
	for (i = 0; rc == 0 && i < s->count && s->sites[i].object != NO_OBJECT; i++) {
		if (s->sites[i].object != last) {
			last = s->sites[i].object;
			pem_object__close(opened);
			opened = open_object(&s->objects[last]);
		}
		if (opened != NULL)
			rc = name_site(&s->sites[i], opened, s->objects[last].is_by_file);
	}
	pem_object__close(opened);
	return rc;
}
#else
int report_sites__name(struct report_sites *s)
{
	size_t i;

	for (i = 0; i < s->object_count; i++) {
		s->objects[i].trouble =
			strdup("this pem was built without libdw, which reads names");
		if (s->objects[i].trouble == NULL)
			return -ENOMEM;
	}
	return 0;
}
#endif
