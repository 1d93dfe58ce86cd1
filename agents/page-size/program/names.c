/* SPDX-License-Identifier: MIT */
/* names.c - what people call a site: the functions that allocate, with file and line */
#include "program.h"

#ifdef PAGE_HAS_NAMES
#include <pem/names.h>
#endif

#include <inttypes.h>
#include <string.h>

/* Functions that are inlined into each other, of one frame. */
#define INLINED_MAX 4u

/* Objects that were opened, or could not be, each once. */
struct naming {
	const struct page_profile *profile;
#ifdef PAGE_HAS_NAMES
	/* Each frame of each site may have one of its own. */
	struct {
		uint64_t number;
		struct pem_object *object; /* NULL: it is not here any more */
	} objects[PAGE_SITES_MAX * PAGE_FRAMES_MAX];
	uint32_t count;
#endif
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Append to a name; what does not fit is cut. */
static void append(char *name, const char *text)
{
	size_t used = strlen(name);

	snprintf(name + used, PLAN_NAME_BYTES - used, "%s", text);
}

#ifdef PAGE_HAS_NAMES
static struct pem_object *object_of(struct naming *naming, uint64_t number)
{
	struct pem_object_query query = {.size = sizeof(query), .number = number};
	struct pem_error error;
	uint32_t i;

	for (i = 0; i < naming->count; i++) {
		if (naming->objects[i].number == number)
			return naming->objects[i].object;
	}
	query.path = page_profile__path(naming->profile, number);
	naming->objects[naming->count].number = number;
	naming->objects[naming->count].object = pem_object__open(&query, &error);
	return naming->objects[naming->count++].object;
}

/*
 * The function that calls, with file and line, and those that it was inlined into. False: it has no
 * name.
 */
static bool append_function(struct naming *naming, const struct page_frame *frame, char *name)
{
	struct pem_object *object = object_of(naming, frame->object);
	struct pem_name found[INLINED_MAX] = {{0}};
	char function[1024];
	unsigned count, i;

	/* The call is before the address that it returns to. */
	count = object ? pem_object__find(object, frame->offset - 1, found, INLINED_MAX) : 0;
	if (!count || !found[0].function)
		return false;
	for (i = 0; i < count && i < INLINED_MAX && found[i].function; i++) {
		snprintf(function, sizeof(function), "%s", found[i].function);
		plan_name__shorten(function);
		append(name, i ? " < " : "");
		append(name, function);
		if (found[i].file && found[i].line)
			append(name,
			       cli_format(" (%s:%u)", base_name(found[i].file), found[i].line));
	}
	return true;
}

static void end(struct naming *naming)
{
	while (naming->count)
		pem_object__close(naming->objects[--naming->count].object);
}
#else
static bool append_function(struct naming *naming, const struct page_frame *frame, char *name)
{
	(void)naming;
	(void)frame;
	(void)name;
	return false;
}

static void end(struct naming *naming)
{
	(void)naming;
}
#endif

static void append_frame(struct naming *naming, const struct page_frame *frame, char *name)
{
	const char *path;

	if (append_function(naming, frame, name))
		return;
	path = page_profile__path(naming->profile, frame->object);
	append(name, cli_format("%s+0x%" PRIx64, path ? base_name(path) : "?", frame->offset));
}

static void name_site(struct naming *naming, struct plan_site *site)
{
	const struct page_site *key = &site->site;
	const char *path;
	uint32_t i;

	site->name[0] = '\0';
	switch (key->kind) {
	case PAGE_SITE_STACK:
		append(site->name, "stack");
		break;
	case PAGE_SITE_DATA:
		path = page_profile__path(naming->profile, key->frames[0].object);
		append(site->name, cli_format("static data of %s", path ? base_name(path) : "?"));
		break;
	default:
		for (i = 0; i < key->frame_count; i++) {
			append(site->name, i ? " < " : "");
			append_frame(naming, &key->frames[i], site->name);
		}
		if (key->kind == PAGE_SITE_MAP || key->kind == PAGE_SITE_RESERVED)
			append(site->name, ", mmap");
	}
	/* Names are the program's word. */
	pem_printable(site->name);
}

void page_names__fill(struct page_plan *plan, const struct page_profile *profile)
{
	struct naming naming = {.profile = profile};
	uint32_t i;

	for (i = 0; i + 1 < plan->site_count; i++)
		name_site(&naming, &plan->sites[i]);
	strcpy(plan->sites[plan->site_count - 1].name, "(others)");
	end(&naming);
}
