/* SPDX-License-Identifier: MIT */
/*
 * catalogue.c - finds events of pem's catalogue in the specs that travel inside the program
 *
 * An index of all names is made from the texts at once, because parsing 44 files takes longer than
 * checking a spec. A file is parsed when one of its events is wanted.
 */
#include "catalogue.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *path;
	const char *text;
} files[] = {
#include "catalogue_specs.h"
};

#define FILE_COUNT (sizeof(files) / sizeof(files[0]))

/* An event's name in its file's text. */
struct entry {
	const char *name;
	size_t bytes;
	size_t file;
};

static struct entry *entries;
static size_t entry_count;
static struct pem_spec_set sets[FILE_COUNT]; /* one for each file; empty until it is read */

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = memcmp(x->name, y->name, x->bytes < y->bytes ? x->bytes : y->bytes);

	if (order)
		return order;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static void build_index(void)
{
	static const char tag[] = "<event name=";
	const char *p;
	size_t i;

	for (i = 0; i < FILE_COUNT; i++) {
		for (p = strstr(files[i].text, tag); p; p = strstr(p, tag)) {
			p += sizeof(tag) - 1;
			entries = pem_xgrow(entries, entry_count, sizeof(*entries));
			entries[entry_count++] = (struct entry){p + 1, strcspn(p + 1, "'\""), i};
		}
	}
	qsort(entries, entry_count, sizeof(*entries), compare);
}

static struct pem_spec *read_file(size_t file)
{
	if (!sets[file].count) {
		pem_spec_set__load_bytes(&sets[file], files[file].path, files[file].text,
					 strlen(files[file].text));
		pem_spec_set__resolve(&sets[file]);
		pem_spec_set__layout(&sets[file]);
	}
	return &sets[file].specs[0];
}

const struct pem_spec_event *pem_catalogue__find(const char *name, size_t bytes)
{
	struct entry wanted = {name, bytes, 0}, *found;
	const struct pem_spec *spec;
	size_t i;

	if (!entries)
		build_index();
	found = bsearch(&wanted, entries, entry_count, sizeof(*entries), compare);
	if (!found)
		return NULL;
	spec = read_file(found->file);
	for (i = 0; i < spec->event_count; i++) {
		if (strlen(spec->events[i].name) == bytes &&
		    !memcmp(spec->events[i].name, name, bytes))
			return &spec->events[i];
	}
	return NULL;
}

void pem_catalogue__suggest(struct pem_suggestion *near)
{
	size_t i;

	if (!entries)
		build_index();
	for (i = 0; i < entry_count; i++)
		pem_suggestion__try(near, entries[i].name, entries[i].bytes);
}

int pem_catalogue__has_file(const struct pem_spec *spec)
{
	size_t i;

	for (i = 0; i < FILE_COUNT; i++) {
		if (pem_hash64(files[i].text, strlen(files[i].text)) == spec->hash)
			return 1;
	}
	return 0;
}

void pem_catalogue__cleanup(void)
{
	size_t i;

	for (i = 0; i < FILE_COUNT; i++)
		pem_spec_set__free(&sets[i]);
	free(entries);
	entries = NULL;
	entry_count = 0;
}
