// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * code.c - what lies in memory of a trace's processes, and locations of addresses there
 *
 * Not here: mappings (memory.c), names (code_names.c, kernel_names.c, jit_names.c), stacks
 * (stacks.c).
 */
#include "code_map.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Generations of processes that were forked and run the same program. */
#define FORKS_MAX 16u

struct pem_code *pem_code__new(void)
{
	struct pem_code *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	code->recent = calloc(CODE_RECENT, sizeof(*code->recent));
	code->multiplier = pem_hash__multiplier();
	code->generation = 1;
	if (!code->recent) {
		pem_code__free(code);
		return NULL;
	}
	return code;
}

struct pem_code *pem_code__new_data(void)
{
	struct pem_code *code = pem_code__new();

	if (code)
		code->is_data = true;
	return code;
}

void pem_code__free(struct pem_code *code)
{
	size_t i;

	if (!code)
		return;
	for (i = 0; i < code->object_count; i++) {
		free(code->objects[i].path);
		free(code->objects[i].trouble);
		free(code->objects[i].segments);
	}
	code__free_kept(code->kept);
	free(code->apart.users);
	for (i = 0; i < code->space_count; i++)
		code__share_memory(code, &code->spaces[i], NULL);
	for (i = 0; i < code->location_count; i++)
		code__free_names(&code->locations[i]);
	code__free_functions(code);
	free(code->objects);
	free(code->spaces);
	free(code->locations);
	free(code->nodes);
	free(code->recent);
	pem_number_map__free(&code->object_at);
	pem_number_map__free(&code->space_at);
	pem_number_map__free(&code->location_at);
	pem_number_map__free(&code->node_at);
	pem_number_map__free(&code->numbered_at);
	free(code);
}

/* --- memory --- */

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The first eight bytes of a build id, the first byte the most significant. */
static uint64_t number_of(const char *build_id)
{
	uint64_t number = 0;
	unsigned i;

	for (i = 0; i < 16 && digit(build_id[i]) >= 0; i++)
		number |= (uint64_t)digit(build_id[i]) << (60 - 4 * i);
	return number;
}

static int is_object(const struct code_object *object, const char *path, const char *build_id,
		     bool is_by_file)
{
	return object->is_by_file == is_by_file && !strcmp(object->path, path) &&
	       !strncmp(object->build_id, build_id, sizeof(object->build_id) - 1);
}

/* Returns the object's number, or -ENOMEM. */
static int64_t object_of(struct pem_code *code, const char *path, const char *build_id,
			 bool is_by_file)
{
	uint64_t key = pem_hash__secret_text(is_by_file, code->multiplier, path);
	struct code_object *object;
	uint32_t *at;

	key = pem_hash__secret_text(key, code->multiplier, build_id);

	/* Another object may have the same hash. */
	while ((at = pem_number_map__at(&code->object_at, key)) && *at != PEM_CODE_NONE) {
		if (is_object(&code->objects[*at], path, build_id, is_by_file))
			return *at;
		key++;
	}
	if (!at || pem_grow(&code->objects, sizeof(*code->objects), code->object_count + 1,
			    &code->object_capacity) < 0)
		return -ENOMEM;
	object = &code->objects[code->object_count];
	*object = (struct code_object){
		.path = strdup(path), .is_by_file = is_by_file, .first_ns = UINT64_MAX};
	if (!object->path)
		return -ENOMEM;
	snprintf(object->build_id, sizeof(object->build_id), "%s", build_id);
	object->told.number = number_of(object->build_id);
	*at = (uint32_t)code->object_count++;
	return *at;
}

static struct code_space *space_of(struct pem_code *code, uint32_t pid)
{
	uint32_t *at = pem_number_map__at(&code->space_at, pid);

	if (!at)
		return NULL;
	if (*at == PEM_CODE_NONE) {
		if (pem_grow(&code->spaces, sizeof(*code->spaces), code->space_count + 1,
			     &code->space_capacity) < 0)
			return NULL;
		code->spaces[code->space_count] = (struct code_space){0};
		*at = (uint32_t)code->space_count++;
	}
	return &code->spaces[*at];
}

/*
 * A process has the memory of a program that it just began (parent 0), or its parent's.
 * Returns 0 or -ENOMEM.
 */
static int renew(struct pem_code *code, uint32_t pid, uint32_t parent)
{
	struct code_space *space = space_of(code, parent);

	/* Both are in one array, which grows. */
	if (!space || !space_of(code, pid))
		return -ENOMEM;
	space = space_of(code, pid);
	space->is_told = true;
	code->generation++;
	if (pid != parent || !parent)
		code__share_memory(code, space, parent ? space_of(code, parent) : NULL);
	return 0;
}

/* Is it a part of a program or library that its process told as a whole? */
static bool is_told_whole(const struct pem_code *code, const struct code_space *space,
			  const struct code_mapping *part, const char *path)
{
	const struct code_mapping *whole =
		code->is_data ? code__mapping_at(space, part->start) : NULL;

	return whole && part->end <= whole->end && !code->objects[whole->object].is_by_file &&
	       !strcmp(code->objects[whole->object].path, path);
}

int pem_code__map(struct pem_code *code, const struct pem_record *record)
{
	const struct pem_event *event = record->event;
	int address = pem_event__field_by_role(event, PEM_ROLE_ADDRESS);
	int size = pem_event__field_by_role(event, PEM_ROLE_SIZE);
	int path = pem_event__field_by_role(event, PEM_ROLE_NAME);
	int base = pem_event__field_by_role(event, PEM_ROLE_VALUE);
	int id = pem_event__field_by_role(event, PEM_ROLE_KEY);
	int offset = base < 0 ? pem_event__field(event, "offset") : -1;
	const char *name, *build_id = NULL;
	struct code_mapping mapping;
	struct code_space *space;
	int64_t object;

	if (address < 0 || size < 0 || path < 0)
		return 0;
	name = pem_record__string(record, (unsigned)path);
	if (id >= 0)
		build_id = pem_record__string(record, (unsigned)id);
	mapping.start = pem_record__u64(record, (unsigned)address);
	mapping.end = mapping.start + pem_record__u64(record, (unsigned)size);
	mapping.base = base >= 0 ? pem_record__u64(record, (unsigned)base) : mapping.start;
	/* The kernel tells where in the file a mapping begins. */
	if (offset >= 0)
		mapping.base = mapping.start - pem_record__u64(record, (unsigned)offset);
	if (offset >= 0 && name && !*name && !mapping.start &&
	    pem_record__u64(record, (unsigned)size) == UINT64_MAX)
		return renew(code, record->pid,
			     (uint32_t)pem_record__u64(record, (unsigned)offset));
	/* What has no path is no file: the kernel's vdso. */
	if (mapping.end <= mapping.start || !name || (*name != '/' && !code->is_data))
		return 0;
	space = space_of(code, record->pid);
	if (space && offset >= 0 && is_told_whole(code, space, &mapping, name))
		return 0;
	object = object_of(code, name, build_id ? build_id : "", offset >= 0);
	if (!space || object < 0)
		return -ENOMEM;
	mapping.object = (uint32_t)object;
	if (record->time_ns < code->objects[object].first_ns)
		code->objects[object].first_ns = record->time_ns;
	code->has_maps |= offset >= 0;
	return code__map_object(code, space, &mapping);
}

/*
 * What lies in memory of a process. One that was forked, and has begun no other program since, has
 * what its parent has. NULL: no memory.
 */
static const struct code_space *memory_of(struct pem_code *code, uint32_t pid,
					  const struct pem_pass_process *process)
{
	const struct code_space *space = space_of(code, pid);
	unsigned i;

	if (!space || space->memory || space->is_told || !code->has_maps)
		return space;
	for (i = 0; i < FORKS_MAX && process && process->parent; i++) {
		process = process->parent;
		space = space_of(code, process->pid);
		if (!space || space->memory || space->is_told)
			return space;
	}
	return space_of(code, pid);
}

/* --- locations --- */

static void find_object(const struct code_space *space, uint64_t behind,
			struct pem_code_location *location)
{
	const struct code_mapping *mapping = code__mapping_at(space, behind - 1);

	location->object = mapping ? mapping->object : PEM_CODE_NONE;
	location->offset = mapping ? behind - mapping->base : behind;
	/* Linux: the upper half of all addresses is the kernel's. */
	location->is_kernel = !mapping && behind && (behind - 1) >> 63;
}

static int is_same(const struct pem_code_location *a, const struct pem_code_location *b)
{
	return a->object == b->object && a->offset == b->offset &&
	       (a->object != PEM_CODE_NONE || a->is_kernel || a->pid == b->pid);
}

/* Where the map has the first location like this one; PEM_CODE_NONE there: none yet. NULL: memory.
 */
static uint32_t *entry_of(struct pem_code *code, const struct pem_code_location *like)
{
	uint64_t key = pem_hash__join(0, code->multiplier, like->object);
	uint32_t *at;

	if (like->object == PEM_CODE_NONE && !like->is_kernel)
		key = pem_hash__join(key, code->multiplier, like->pid);
	key = pem_hash__join(key, code->multiplier, like->offset);
	while ((at = pem_number_map__at(&code->location_at, key)) && *at != PEM_CODE_NONE &&
	       !is_same(&code->locations[*at].told, like))
		key++;
	return at;
}

static int64_t location_of(struct pem_code *code, const struct pem_code_location *like)
{
	uint32_t *at = entry_of(code, like);

	if (!at)
		return -ENOMEM;
	if (*at != PEM_CODE_NONE)
		return *at;
	if (code->location_count >= PEM_CODE_NONE ||
	    pem_grow(&code->locations, sizeof(*code->locations), code->location_count + 1,
		     &code->location_capacity) < 0)
		return -ENOMEM;
	*at = (uint32_t)code->location_count;
	code->locations[code->location_count] = (struct code_location){
		.told = *like, .same = *at, .process_start_ns = PEM_TIME_UNKNOWN};
	code->location_count++;
	return *at;
}

static void note_start(struct code_location *location, const struct pem_pass_process *process)
{
	uint64_t start_ns =
		process && process->start_ns != PEM_TIME_UNKNOWN ? process->start_ns : 0;

	if (start_ns < location->process_start_ns)
		location->process_start_ns = start_ns;
}

int64_t pem_code__locate(struct pem_code *code, uint32_t pid,
			 const struct pem_pass_process *process, uint64_t behind)
{
	uint64_t key = (behind ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15ull;
	struct code_recent *recent = &code->recent[key >> 32 & (CODE_RECENT - 1)];
	struct pem_code_location like = {.pid = pid};
	const struct code_space *space;
	int64_t location;

	if (recent->address == behind && recent->pid == pid &&
	    recent->generation == code->generation)
		return recent->location;
	space = memory_of(code, pid, process);
	if (!space)
		return -ENOMEM;
	find_object(space, behind, &like);
	location = location_of(code, &like);
	if (location >= 0)
		note_start(&code->locations[location], process);
	if (location >= 0)
		*recent = (struct code_recent){.address = behind,
					       .pid = pid,
					       .location = (uint32_t)location,
					       .generation = code->generation};
	return location;
}

int pem_code__mapping(struct pem_code *code, uint32_t pid, const struct pem_pass_process *process,
		      uint64_t address, uint64_t *begin, uint64_t *end)
{
	const struct code_space *space = memory_of(code, pid, process);
	const struct code_mapping *mapping = space ? code__mapping_at(space, address) : NULL;

	if (!mapping)
		return space ? 0 : -ENOMEM;
	*begin = mapping->start;
	*end = mapping->end;
	return 1;
}

/* Locate what was met before its object was told. Returns 0 or -ENOMEM. */
static int locate_late(struct pem_code *code)
{
	uint32_t *at;
	size_t i;

	for (i = 0; i < code->location_count; i++) {
		struct code_location *location = &code->locations[i];
		struct pem_code_location now = location->told;
		struct code_space *space;

		if (now.object != PEM_CODE_NONE || now.is_kernel || now.name_count)
			continue;
		space = space_of(code, now.pid);
		if (!space)
			return -ENOMEM;
		find_object(space, now.offset, &now);
		if (now.object == PEM_CODE_NONE)
			continue;
		location->told = now;
		at = entry_of(code, &now);
		if (!at)
			return -ENOMEM;
		if (*at == PEM_CODE_NONE)
			*at = (uint32_t)i;
		location->same = *at;
	}
	/* Addresses have other locations now. */
	code->generation++;
	return 0;
}

/* Name what stands for callers that are not known. Returns 0 or -ENOMEM. */
static int name_cut(struct pem_code *code)
{
	size_t i;

	for (i = 0; i < code->location_count; i++) {
		struct code_location *location = &code->locations[i];
		struct code_name *names;

		if (location->told.object != PEM_CODE_NONE ||
		    location->told.offset != PEM_CALLERS_CUT || location->same != i)
			continue;
		names = code__make_names(location, 1);
		if (!names || code__name_text(code, names, "[cut off]") < 0)
			return -ENOMEM;
	}
	return 0;
}

int code__name_anew(struct pem_code *code, const struct pem_trace *trace)
{
	const struct pem_trace_info *info = trace ? pem_trace__info(trace) : NULL;
	int rc = locate_late(code);

	code->keeps_segments = !code->kept;
	code->start_time_ns = info ? info->start_time_ns : 0;
	if (!trace || pem_trace__files_kept(trace, code->kept_files, sizeof(code->kept_files)))
		code->kept_files[0] = '\0';
	if (!rc)
		rc = name_cut(code);
	if (!rc)
		rc = code__name_objects(code);
	if (!rc && !code->is_data)
		rc = code__name_kernel(code, info);
	if (!rc && !code->is_data)
		rc = code__name_jit(code, info);
	return rc ? rc : code__finish_functions(code);
}

int pem_code__name(struct pem_code *code, const struct pem_trace *trace)
{
	int rc = trace ? code__read_kept(code, trace) : 0;

	return rc ? rc : code__name_anew(code, trace);
}

/* --- what there is --- */

size_t pem_code__object_count(const struct pem_code *code)
{
	return code->object_count;
}

const struct pem_code_object *pem_code__object(const struct pem_code *code, uint32_t i)
{
	struct code_object *object = &code->objects[i];

	/* The array may have moved since. */
	object->told.path = object->path;
	object->told.build_id = object->build_id;
	object->told.trouble = object->trouble;
	return &object->told;
}

size_t pem_code__location_count(const struct pem_code *code)
{
	return code->location_count;
}

const struct pem_code_location *pem_code__location(const struct pem_code *code, uint32_t i)
{
	return &code->locations[code->locations[i].same].told;
}

uint32_t pem_code__same(const struct pem_code *code, uint32_t location)
{
	return code->locations[location].same;
}

const char *pem_code__kernel_trouble(const struct pem_code *code)
{
	return code->kernel_trouble;
}

uint64_t pem_code__left_out(const struct pem_code *code)
{
	return code->left_out;
}

const char *pem_code__kept_trouble(const struct pem_code *code)
{
	return code->kept_trouble[0] ? code->kept_trouble : NULL;
}
