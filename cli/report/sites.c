/* SPDX-License-Identifier: MIT */
/* sites.c - counts records by where they were in the code, as an object and an offset in it */
#include "sites.h"
#include "grow.h"

#include <pem/context.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Programs have some hundreds at most. */
#define MAPPINGS_MAX 4096u

struct report_sites *report_sites__new(bool samples)
{
	struct report_sites *sites = calloc(1, sizeof(*sites));

	if (sites != NULL)
		sites->samples = samples;
	return sites;
}

/* FNV-1a of Fowler, Noll and Vo. Two keys are one with a probability of 2^-64. */
static uint64_t hash(uint64_t so_far, const void *bytes, size_t count)
{
	const unsigned char *byte = bytes;

	for (; count-- != 0; byte++)
		so_far = (so_far ^ *byte) * 0x100000001b3ull;
	return so_far;
}

#define HASH_START 0xcbf29ce484222325ull

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The first eight bytes of a build id, the first byte the most significant. */
static uint64_t number_of(const char *build_id)
{
	uint64_t number = 0;
	unsigned int i;

	for (i = 0; i < 16 && digit(build_id[i]) >= 0; i++)
		number |= (uint64_t)digit(build_id[i]) << (60 - 4 * i);
	return number;
}

/* Returns the object's number in the table, or -ENOMEM. */
static int64_t object_of(struct report_sites *s, const char *path, const char *build_id,
			 bool is_by_file)
{
	uint64_t key = hash(hash(HASH_START + is_by_file, path, strlen(path) + 1), build_id,
			    strlen(build_id));
	uint32_t *at = pem_number_map__at(&s->object_at, key);
	struct report_object *object;

	if (at == NULL)
		return -ENOMEM;
	if (*at != UINT32_MAX)
		return *at;
	if (pem_grow(&s->objects, sizeof(*s->objects), s->object_count + 1, &s->object_capacity) <
	    0)
		return -ENOMEM;
	object = &s->objects[s->object_count];
	*object = (struct report_object){.path = strdup(path)};
	if (object->path == NULL)
		return -ENOMEM;
	snprintf(object->build_id, sizeof(object->build_id), "%s", build_id);
	object->number = number_of(object->build_id);
	object->is_by_file = is_by_file;
	*at = (uint32_t)s->object_count++;
	return *at;
}

static struct report_space *space_of(struct report_sites *s, uint32_t pid)
{
	uint32_t *at = pem_number_map__at(&s->space_at, pid);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&s->spaces, sizeof(*s->spaces), s->space_count + 1,
			     &s->space_capacity) < 0)
			return NULL;
		s->spaces[s->space_count] = (struct report_space){0};
		*at = (uint32_t)s->space_count++;
	}
	return &s->spaces[*at];
}

/* How many mappings end at an address or before it. */
static size_t first_behind(const struct report_space *space, uint64_t address)
{
	size_t low = 0, high = space->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct report_mapping *mapping_at(const struct report_space *space, uint64_t address)
{
	size_t i = first_behind(space, address);

	return i < space->count && space->mappings[i].start <= address ? &space->mappings[i] : NULL;
}

/* Put a mapping in place of those that it overlaps. Returns 0 or -ENOMEM. */
static int map_object(struct report_sites *s, struct report_space *space,
		      const struct report_mapping *mapping)
{
	size_t from = first_behind(space, mapping->start), to = from;

	while (to < space->count && space->mappings[to].start < mapping->end)
		to++;
	if (from == to && space->count == MAPPINGS_MAX) {
		s->left_out++;
		return 0;
	}
	if (pem_grow(&space->mappings, sizeof(*space->mappings), space->count + 1,
		     &space->capacity) < 0)
		return -ENOMEM;
	memmove(space->mappings + from + 1, space->mappings + to,
		(space->count - to) * sizeof(*space->mappings));
	space->mappings[from] = *mapping;
	space->count = space->count + 1 - (to - from);
	return 0;
}

static int take_object(struct report_sites *s, const struct pem_record *record)
{
	const struct pem_event *event = record->event;
	int address = pem_event__field_by_role(event, PEM_ROLE_ADDRESS);
	int size = pem_event__field_by_role(event, PEM_ROLE_SIZE);
	int path = pem_event__field_by_role(event, PEM_ROLE_NAME);
	int base = pem_event__field_by_role(event, PEM_ROLE_VALUE);
	int id = pem_event__field_by_role(event, PEM_ROLE_KEY);
	int offset = base < 0 ? pem_event__field(event, "offset") : -1;
	struct report_mapping mapping;
	struct report_space *space;
	const char *name, *build_id = NULL;
	int64_t object;

	if (address < 0 || size < 0 || path < 0)
		return 0;
	name = pem_record__string(record, (unsigned int)path);
	if (id >= 0)
		build_id = pem_record__string(record, (unsigned int)id);
	mapping.start = pem_record__u64(record, (unsigned int)address);
	mapping.end = mapping.start + pem_record__u64(record, (unsigned int)size);
	mapping.base = base >= 0 ? pem_record__u64(record, (unsigned int)base) : mapping.start;
	/* The kernel tells where in the file a mapping begins. */
	if (offset >= 0)
		mapping.base = mapping.start - pem_record__u64(record, (unsigned int)offset);
	/* What has no path is no file: the kernel's vdso. */
	if (mapping.end <= mapping.start || name == NULL || *name != '/')
		return 0;
	space = space_of(s, record->pid);
	object = object_of(s, name, build_id != NULL ? build_id : "", offset >= 0);
	if (space == NULL || object < 0)
		return -ENOMEM;
	mapping.object = (uint32_t)object;
	s->has_maps |= offset >= 0;
	return map_object(s, space, &mapping);
}

/* Returns the site, which is new if its count is 0, or NULL. */
static struct report_site *site_of(struct report_sites *s, struct pem_number_map *map,
				   const struct report_site *like)
{
	uint64_t words[] = {(uint64_t)like->event << 32 | like->object,
			    like->object == NO_OBJECT ? like->pid : 0, like->offset};
	uint32_t *at = pem_number_map__at(map, hash(HASH_START, words, sizeof(words)));

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&s->sites, sizeof(*s->sites), s->count + 1, &s->capacity) < 0)
			return NULL;
		s->sites[s->count] = *like;
		*at = (uint32_t)s->count++;
	}
	return &s->sites[*at];
}

/* Generations of processes that were forked and run the same program. */
#define FORKS_MAX 16u

/*
 * What lies in memory of a process. One that was forked, and has begun no other program since, has
 * what its parent has.
 */
static const struct report_space *memory_of(struct report_sites *s, uint32_t pid,
					    const struct pem_pass_process *process)
{
	const struct report_space *space = space_of(s, pid);
	unsigned int i;

	if (space == NULL || space->count != 0 || !s->has_maps)
		return space;
	for (i = 0; i < FORKS_MAX && process != NULL && process->parent != NULL; i++) {
		process = process->parent;
		space = space_of(s, process->pid);
		if (space == NULL || space->count != 0)
			return space;
	}
	return space_of(s, pid);
}

static void locate(const struct report_space *space, uint64_t address, struct report_site *site)
{
	const struct report_mapping *mapping = mapping_at(space, address - 1);

	site->object = mapping != NULL ? mapping->object : NO_OBJECT;
	site->offset = mapping != NULL ? address - mapping->base : address;
}

/* The field that holds the address behind a call, by its name: role 'code' is any code. */
static int call_site(const struct pem_event *event)
{
	int field = pem_event__field_by_role(event, PEM_ROLE_CODE);
	const char *name = field >= 0 ? event->fields[field].name : "";
	size_t length = strlen(name);

	if (strcmp(name, "site") == 0 || (length > 4 && strcmp(name + length - 4, "Site") == 0))
		return field;
	return -1;
}

int report_sites__record(struct report_sites *s, const struct report_event *e, uint32_t event,
			 const struct pem_record *record, const struct pem_pass_process *process)
{
	struct report_site like = {.event = event, .pid = record->pid}, *site;
	const struct report_space *space;
	uint64_t address;
	int field;

	if (e->event->meaning == PEM_MEANS_OBJECT)
		return take_object(s, record);
	field = e->layer == LAYER_APP ? call_site(e->event) : -1;
	if (s->samples && e->event->meaning == PEM_MEANS_SAMPLE)
		field = pem_event__field_by_role(e->event, PEM_ROLE_CODE);
	if (field < 0)
		return 0;
	space = memory_of(s, record->pid, process);
	if (space == NULL)
		return -ENOMEM;
	address = pem_record__u64(record, (unsigned int)field);
	/* A sample is at an instruction, a call site behind one. */
	locate(space, address + (e->event->meaning == PEM_MEANS_SAMPLE), &like);
	site = site_of(s, &s->site_at, &like);
	if (site == NULL)
		return -ENOMEM;
	site->count++;
	if (e->value == VALUE_SUM && strcmp(e->event->fields[e->field].unit, "bytes") == 0)
		cli_sum__add(&site->bytes, pem_record__u64(record, (unsigned int)e->field));
	return 0;
}

static int more(const void *a, const void *b)
{
	const struct report_site *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/*
 * Locate what was called before its object was known, and join what became one. Returns 0 or
 * -ENOMEM.
 */
static int locate_late(struct report_sites *s)
{
	struct report_site *all = s->sites, *site;
	size_t i, count = s->count;
	struct pem_number_map joined = {0};
	int rc = 0;

	s->sites = NULL;
	s->count = s->capacity = 0;
	for (i = 0; rc == 0 && i < count; i++) {
		struct report_site like = all[i];

		if (like.object == NO_OBJECT)
			locate(space_of(s, like.pid), like.offset, &like);
		like.count = like.bytes = like.live = like.live_bytes = 0;
		site = site_of(s, &joined, &like);
		if (site == NULL) {
			rc = -ENOMEM;
			break;
		}
		site->count += all[i].count;
		cli_sum__add(&site->bytes, all[i].bytes);
		site->live += all[i].live;
		cli_sum__add(&site->live_bytes, all[i].live_bytes);
		if (site->object != NO_OBJECT)
			s->objects[site->object].count += all[i].count;
	}
	free(all);
	pem_number_map__free(&joined);
	return rc;
}

/* --- what is live at the end --- */

struct live {
	struct report_sites *sites;
	const struct report *report;
	bool *is_known; /* by event: all that ends its blocks was recorded */
};

static bool ends_blocks(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_RELEASE ||
	       (event->meaning == PEM_MEANS_ALLOCATION &&
		pem_event__field_by_role(event, PEM_ROLE_OLD_ADDRESS) >= 0);
}

/* Was the event recorded each time, also where that cost too much, and whatever its fields? */
static bool is_recorded(const struct report *report, const char *name)
{
	const struct pem_trace_info *info = report->info;
	bool found = false;
	size_t i;

	for (i = 0; i < report->event_count; i++)
		if (strcmp(report->events[i].event->name, name) == 0)
			found = !report__is_reduced(report, &report->events[i]);
	for (i = 0; i < info->predicate_count; i++)
		found &= strcmp(info->predicates[i].event, name) != 0;
	return found && info->predicates_more == 0;
}

/*
 * Was each event recorded that ends blocks of the group? catalogue tells which there are. At least
 * one has to be.
 */
static bool sees_all_ends(const struct report *report, const struct pem_model *catalogue,
			  const char *group)
{
	bool found = false;
	size_t i;

	for (i = 0; i < pem_model__count(catalogue); i++) {
		const struct pem_event *event = pem_model__event(catalogue, i);

		if (ends_blocks(event) && strcmp(event->group, group) == 0 &&
		    !is_recorded(report, event->name))
			return false;
	}
	for (i = 0; i < report->event_count; i++) {
		const struct pem_event *event = report->events[i].event;

		if (!ends_blocks(event) || strcmp(event->group, group) != 0)
			continue;
		if (!is_recorded(report, event->name))
			return false;
		found |= event->meaning == PEM_MEANS_RELEASE;
	}
	return found;
}

static bool *find_known(const struct report *report)
{
	struct pem_model *catalogue = pem_model__new();
	bool *known = calloc(report->event_count + 1, sizeof(*known));
	struct pem_error error = {{0}};
	size_t i;

	if (catalogue == NULL || pem_model__add_catalogue(catalogue, &error) < 0) {
		free(known);
		known = NULL;
	}
	for (i = 0; known != NULL && i < report->event_count; i++)
		known[i] = report->events[i].event->meaning == PEM_MEANS_ALLOCATION &&
			   sees_all_ends(report, catalogue, report->events[i].event->group);
	pem_model__free(catalogue);
	return known;
}

static int add_live(void *arg, const struct pem_pass_process *process,
		    const struct pem_block *block)
{
	const struct live *live = arg;
	struct report_site like = {.pid = process != NULL ? process->pid : 0}, *site;
	struct report_space *space;

	if (block->code == 0 || like.pid == 0)
		return 0;
	while (like.event < live->report->event_count &&
	       live->report->events[like.event].event != block->event)
		like.event++;
	if (like.event == live->report->event_count || !live->is_known[like.event])
		return 0;
	space = space_of(live->sites, like.pid);
	if (space == NULL)
		return -ENOMEM;
	locate(space, block->code, &like);
	site = site_of(live->sites, &live->sites->site_at, &like);
	if (site == NULL)
		return -ENOMEM;
	site->live++;
	cli_sum__add(&site->live_bytes, block->size);
	return 0;
}

int report_sites__finish(struct report_sites *s, const struct report *report)
{
	struct live live = {s, report, find_known(report)};
	int rc = live.is_known != NULL
			 ? pem_pass__blocks(report_times__pass(report), add_live, &live)
			 : -ENOMEM;

	free(live.is_known);

	if (rc == 0)
		rc = locate_late(s);
	if (rc == 0)
		rc = report_sites__name(s);
	if (rc == 0)
		rc = report_sites__name_kernel(s, report->info);
	if (rc == 0)
		rc = report_sites__name_jit(s, report->info);
	if (rc == 0 && s->count != 0)
		qsort(s->sites, s->count, sizeof(*s->sites), more);
	return rc;
}

void report_sites__free(struct report_sites *s)
{
	size_t i, n;

	if (s == NULL)
		return;
	for (i = 0; i < s->object_count; i++) {
		free(s->objects[i].path);
		free(s->objects[i].trouble);
	}
	for (i = 0; i < s->space_count; i++)
		free(s->spaces[i].mappings);
	for (i = 0; i < s->count; i++) {
		for (n = 0; n < s->sites[i].name_count; n++) {
			free(s->sites[i].names[n].function);
			free(s->sites[i].names[n].file);
		}
		free(s->sites[i].names);
	}
	free(s->objects);
	free(s->spaces);
	free(s->sites);
	pem_number_map__free(&s->object_at);
	pem_number_map__free(&s->space_at);
	pem_number_map__free(&s->site_at);
	free(s);
}
