// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * objects.c - the objects that are mapped, for names of addresses
 *
 * What a program loads later is found where its code allocates, and when a window that is kept
 * begins.
 */
#include "hooks.h"

#include "apply/object.h"

#include <limits.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#define OBJECTS_MAX 4096u
#define SMALL_PAGE 4096u
#define STACK_MAX (UINT64_C(1) << 30) /* of a stack without a limit */

struct object {
	uint64_t number;
	uintptr_t start, end, bias;
	bool is_data_told, is_seen;
};

/* Read without a lock, too: entries only come, until they are all looked at anew. */
static struct object objects[OBJECTS_MAX];
static uint32_t object_count;
static unsigned long long adds, subs; /* of the loader's list, when it was looked at */

static uintptr_t page_down(uintptr_t at)
{
	return at / SMALL_PAGE * SMALL_PAGE;
}

static uintptr_t page_up(uintptr_t at)
{
	return page_down(at + SMALL_PAGE - 1);
}

static struct object *holding(uintptr_t address)
{
	uint32_t i;

	for (i = __atomic_load_n(&object_count, __ATOMIC_ACQUIRE); i--;)
		if (address >= objects[i].start && address < objects[i].end)
			return &objects[i];
	return NULL;
}

bool objects__hold(uintptr_t address)
{
	return holding(address) != NULL;
}

/* With the output locked. name: as the loader has it, which is "" for the program. */
static struct object *add(uintptr_t start, uintptr_t end, uintptr_t bias, const char *name)
{
	static char path[PATH_MAX];
	struct profile_object told = {.start = start, .end = end, .bias = bias};
	struct object *object = &objects[object_count];
	ssize_t got;

	if (object_count == OBJECTS_MAX || !object__number(start, end, bias, &told.object)) {
		output__lose();
		return NULL;
	}
	*object = (struct object){.number = told.object, .start = start, .end = end, .bias = bias};
	__atomic_store_n(&object_count, object_count + 1, __ATOMIC_RELEASE);
	if (!*name) {
		got = readlink("/proc/self/exe", path, sizeof(path) - 1);
		path[got > 0 ? got : 0] = '\0';
		name = path;
	}
	output__object(&told, name);
	return object;
}

bool objects__find(uintptr_t address, struct page_frame *frame)
{
	const struct object *object = holding(address);
	struct dl_find_object found;

	if (!object && !_dl_find_object((void *)address, &found))
		object = add((uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end,
			     found.dlfo_link_map->l_addr, found.dlfo_link_map->l_name);
	if (!object)
		return false;
	frame->object = object->number;
	frame->offset = address - object->bias;
	return true;
}

/* --- looking at all --- */

static void tell_data(const struct object *object, const struct dl_phdr_info *info)
{
	struct page_site site = {.kind = PAGE_SITE_DATA, .frame_count = 1};
	uint32_t number = NO_SITE;
	const ElfW(Phdr) * header;
	uintptr_t start;
	unsigned i;

	site.frames[0].object = object->number;
	for (i = 0; i < info->dlpi_phnum; i++) {
		header = &info->dlpi_phdr[i];
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_W) || !header->p_memsz)
			continue;
		if (number == NO_SITE)
			number = sites__add(&site);
		start = info->dlpi_addr + header->p_vaddr;
		output__range(page_down(start), page_up(start + header->p_memsz), number,
			      header->p_memsz);
	}
}

/* Another object is where this one was. */
static struct object *replace(struct object *object)
{
	object->start = object->end = 0;
	sites__forget();
	return NULL;
}

static void see(const struct dl_phdr_info *info)
{
	uintptr_t start = UINTPTR_MAX, end = 0, at;
	struct object *object;
	uint64_t number;
	unsigned i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		if (start > page_down(at))
			start = page_down(at);
		if (end < page_up(at + info->dlpi_phdr[i].p_memsz))
			end = page_up(at + info->dlpi_phdr[i].p_memsz);
	}
	if (start > end)
		return;
	object = holding(start);
	if (object && object__number(start, end, info->dlpi_addr, &number) &&
	    number != object->number)
		object = replace(object);
	if (!object)
		object = add(start, end, info->dlpi_addr, info->dlpi_name);
	if (!object)
		return;
	object->is_seen = true;
	/* This library's data is in observed runs only. */
	if (object->is_data_told || ((uintptr_t)&objects >= start && (uintptr_t)&objects < end))
		return;
	object->is_data_told = true;
	tell_data(object, info);
}

static void drop_gone(void)
{
	uint32_t i, kept = 0;

	for (i = 0; i < object_count; i++) {
		if (objects[i].is_seen)
			objects[kept++] = objects[i];
		else if (objects[i].end)
			output__range(objects[i].start, objects[i].end, NO_SITE, 0);
	}
	if (kept != object_count)
		sites__forget();
	__atomic_store_n(&object_count, kept, __ATOMIC_RELEASE);
}

static int each_object(struct dl_phdr_info *info, size_t size, void *data)
{
	bool *changed = data;
	uint32_t i;

	(void)size;
	if (!*changed) {
		if (info->dlpi_adds == adds && info->dlpi_subs == subs)
			return 1;
		*changed = true;
		for (i = 0; i < object_count; i++)
			objects[i].is_seen = false;
	}
	see(info);
	adds = info->dlpi_adds;
	subs = info->dlpi_subs;
	return 0;
}

/* The loader's lock is taken first: its holders may allocate. */
static int locked(struct dl_phdr_info *info, size_t size, void *data)
{
	int rc;

	if (!output__lock())
		return 1;
	rc = each_object(info, size, data);
	output__unlock();
	return rc;
}

void objects__scan(void)
{
	bool changed = false;

	dl_iterate_phdr(locked, &changed);
	if (!changed || !output__lock())
		return;
	drop_gone();
	output__unlock();
}

void objects__tell_stack(void)
{
	const struct page_site site = {.kind = PAGE_SITE_STACK};
	/* The path of the program is the last thing on the stack. */
	uintptr_t end = page_up(getauxval(AT_EXECFN) + 1);
	struct rlimit limit;

	if (end < SMALL_PAGE || getrlimit(RLIMIT_STACK, &limit) || !output__lock())
		return;
	if (limit.rlim_cur > STACK_MAX)
		limit.rlim_cur = STACK_MAX;
	output__range(end - page_down(limit.rlim_cur), end, sites__add(&site), 0);
	output__unlock();
}
