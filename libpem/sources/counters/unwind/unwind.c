// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * unwind.c - the callers of sampled instructions: the processes that are sampled, and what they
 * have mapped
 *
 * Not here: opening files (files.c), walking up a stack (stack.c).
 *
 *	unwinder ---- processes, by pid
 *			  |
 *			  +-- mappings	what the kernel told. A child shares those of its parent.
 *			  |	  +------ the file, once a sample needed it. Processes share it.
 *			  +-- Dwfl	libdwfl's modules and what it has parsed of them
 *
 * Mappings can't be asked for again, so they are kept for many processes. A Dwfl can be made again,
 * so few are kept.
 */
#include "unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES 1024u
#define READY 64u
#define MAPPINGS_MAX 2048u
#define BUCKETS 1024u /* a power of 2 */

/* Samples of a process that took too long. */
#define SLOW_MAX 3u

/* --- processes and their mappings --- */

/* Of one process, or of several that have forked. */
struct mapping {
	unsigned users;
	struct ring_map *map; /* cut behind the path's end */
};

struct mapped {
	struct mapping *mapping;
	bool is_tried; /* file is known */
	struct unwind_file *file; /* NULL: it can't be used */
	uint64_t low, high; /* addresses that the file takes */
};

struct process {
	struct process *next;
	uint32_t pid;
	uint64_t used; /* when, as unwinder.now counts */
	unsigned mapped_count, mapped_room;
	struct mapped *mapped;
	Dwfl *dwfl; /* NULL: it is to be made */
	bool is_stale; /* dwfl lacks mappings, or has some that are gone */
	unsigned slow;
	struct unwind_stack stack;
};

struct unwinder {
	struct unwinder_options options;
	struct unwinder_counts counts;
	struct unwind_files *files;
	Elf *machine; /* for which a Dwfl is */
	uint64_t now;
	unsigned process_count, ready_count;
	bool was_cut; /* the last sample's callers */
	struct process *buckets[BUCKETS];
};

static struct process **find(struct unwinder *unwinder, uint32_t pid)
{
	struct process **at = &unwinder->buckets[pid % BUCKETS];

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	return at;
}

/* Give back what unwinding needs. The mappings stay. */
static void unready(struct unwinder *unwinder, struct process *process)
{
	unsigned i;

	if (!process->dwfl)
		return;
	dwfl_end(process->dwfl);
	process->dwfl = NULL;
	unwinder->ready_count--;
	for (i = 0; i < process->mapped_count; i++) {
		unwind_files__put(unwinder->files, process->mapped[i].file);
		process->mapped[i].file = NULL;
		process->mapped[i].is_tried = false;
	}
}

static void unmap(struct unwinder *unwinder, struct process *process, unsigned i)
{
	struct mapping *mapping = process->mapped[i].mapping;

	unwind_files__put(unwinder->files, process->mapped[i].file);
	if (!--mapping->users) {
		free(mapping->map);
		free(mapping);
	}
	process->mapped[i] = process->mapped[--process->mapped_count];
	process->is_stale = true;
}

static void forget(struct unwinder *unwinder, struct process **at)
{
	struct process *process = *at;

	*at = process->next;
	unwinder->process_count--;
	unready(unwinder, process);
	while (process->mapped_count)
		unmap(unwinder, process, process->mapped_count - 1);
	free(process->mapped);
	free(process);
}

/* The process that was used least recently; of those with a Dwfl. */
static struct process *least_used(struct unwinder *unwinder, bool is_ready)
{
	struct process *process, *found = NULL;
	unsigned i;

	for (i = 0; i < BUCKETS; i++)
		for (process = unwinder->buckets[i]; process; process = process->next)
			if ((!is_ready || process->dwfl) && (!found || process->used < found->used))
				found = process;
	return found;
}

/* Find a process, or begin one. Returns NULL if there is no memory. */
static struct process *get(struct unwinder *unwinder, uint32_t pid)
{
	struct process **at = find(unwinder, pid), *process = *at;

	if (!process) {
		if (unwinder->process_count >= unwinder->options.process_max) {
			forget(unwinder, find(unwinder, least_used(unwinder, false)->pid));
			unwinder->counts.forgotten++;
		}
		process = calloc(1, sizeof(*process));
		if (!process)
			return NULL;
		process->pid = pid;
		process->next = unwinder->buckets[pid % BUCKETS];
		unwinder->buckets[pid % BUCKETS] = process;
		unwinder->process_count++;
	}
	process->used = ++unwinder->now;
	return process;
}

void unwinder__forget(struct unwinder *unwinder, uint32_t pid)
{
	struct process **at = find(unwinder, pid);

	if (*at)
		forget(unwinder, at);
}

static struct mapping *copy(const struct ring_map *map)
{
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	size_t path_bytes = strnlen(map->path, sizeof(map->path) - 1);

	if (!mapping)
		return NULL;
	mapping->map = calloc(1, offsetof(struct ring_map, path) + path_bytes + 1);
	if (!mapping->map) {
		free(mapping);
		return NULL;
	}
	memcpy(mapping->map, map, offsetof(struct ring_map, path) + path_bytes);
	return mapping;
}

static int make_room(struct process *process, unsigned more)
{
	unsigned room = process->mapped_room ? process->mapped_room : 16;
	struct mapped *mapped;

	if (process->mapped_count + more <= process->mapped_room)
		return 0;
	while (room < process->mapped_count + more)
		room *= 2;
	mapped = realloc(process->mapped, room * sizeof(*mapped));
	if (!mapped)
		return -ENOMEM;
	process->mapped = mapped;
	process->mapped_room = room;
	return 0;
}

/* Has this been told already? What is mapped at the start is told without build ids. */
static bool is_known(const struct ring_map *old, const struct ring_map *map)
{
	return old->address == map->address && old->length == map->length &&
	       old->offset == map->offset && !strcmp(old->path, map->path) &&
	       (!map->build_id_bytes ||
		(old->build_id_bytes == map->build_id_bytes &&
		 !memcmp(old->build_id, map->build_id, map->build_id_bytes)));
}

/* Returns 1 if the mapping is known. Otherwise what it covers is gone. */
static int clear(struct unwinder *unwinder, struct process *process, const struct ring_map *map)
{
	unsigned i = 0;

	while (i < process->mapped_count) {
		const struct ring_map *old = process->mapped[i].mapping->map;

		if (is_known(old, map))
			return 1;
		if (old->address < map->address + map->length &&
		    map->address < old->address + old->length)
			unmap(unwinder, process, i);
		else
			i++;
	}
	return 0;
}

int unwinder__map(struct unwinder *unwinder, const struct ring_map *map)
{
	bool is_code = map->path[0] == '/' && map->path[1] != '/';
	struct process *process;
	struct mapping *mapping;

	if (!map->pid || !map->length || map->length > UINT64_MAX - map->address)
		return 0;
	is_code = is_code || !strcmp(map->path, "[vdso]");
	process = is_code ? get(unwinder, map->pid) : *find(unwinder, map->pid);
	if (!process)
		return is_code ? -ENOMEM : 0;
	if (clear(unwinder, process, map) || !is_code)
		return 0;
	if (process->mapped_count >= MAPPINGS_MAX) {
		unwinder->counts.refused_maps++;
		return -ENOSPC;
	}
	mapping = make_room(process, 1) ? NULL : copy(map);
	if (!mapping)
		return -ENOMEM;
	mapping->users = 1;
	process->mapped[process->mapped_count++] = (struct mapped){.mapping = mapping};
	process->is_stale = true;
	return 0;
}

int unwinder__fork(struct unwinder *unwinder, uint32_t child, uint32_t parent)
{
	struct process *from, *to;
	unsigned i;

	if (child == parent || !*find(unwinder, parent))
		return 0;
	unwinder__forget(unwinder, child);
	/* In this order, so that the child does not make the parent forgotten. */
	from = get(unwinder, parent);
	to = unwinder->options.process_max > 1 ? get(unwinder, child) : NULL;
	if (!to)
		return -ENOMEM;
	if (make_room(to, from->mapped_count)) {
		unwinder__forget(unwinder, child);
		return -ENOMEM;
	}
	for (i = 0; i < from->mapped_count; i++) {
		to->mapped[i].mapping = from->mapped[i].mapping;
		to->mapped[i].mapping->users++;
		to->mapped[i].is_tried = false;
		to->mapped[i].file = NULL;
	}
	to->mapped_count = from->mapped_count;
	to->is_stale = true;
	return 0;
}

/* --- what libdwfl is told --- */

static int give_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
		    char **path, Elf **elf)
{
	(void)module, (void)name, (void)base, (void)path;
	*elf = unwind_file__elf(*user);
	return -1;
}

/* Debug information is never searched for: it takes long, and .eh_frame is enough. */
static int give_no_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			      const char *path, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)user, (void)name, (void)base, (void)path, (void)link, (void)crc;
	(void)found;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = give_elf,
	.find_debuginfo = give_no_debug_file,
};

static int begin_dwfl(struct unwinder *unwinder, struct process *process)
{
	while (unwinder->ready_count >= unwinder->options.ready_max)
		unready(unwinder, least_used(unwinder, true));
	process->dwfl = dwfl_begin(&callbacks);
	if (!process->dwfl)
		return -ENOMEM;
	unwinder->ready_count++;
	if (!unwind_stack__attach(&process->stack, process->dwfl, unwinder->machine, process->pid))
		return 0;
	unready(unwinder, process);
	return -ENOTSUP;
}

/* Find the file of a mapping. It covers what other files took of its addresses. */
static void try_file(struct unwinder *unwinder, struct process *process, struct mapped *mapped)
{
	const struct ring_map *map = mapped->mapping->map;
	struct unwind_file *file = unwind_files__get(unwinder->files, map);
	unsigned i;

	mapped->is_tried = true;
	if (file && !unwind_file__extent(file, map, &mapped->low, &mapped->high)) {
		mapped->file = file;
	} else {
		unwinder->counts.refused_files++;
		unwind_files__put(unwinder->files, file);
		return;
	}
	for (i = 0; i < process->mapped_count; i++) {
		struct mapped *other = &process->mapped[i];

		if (other == mapped || !other->file || other->high <= mapped->low ||
		    mapped->high <= other->low ||
		    (other->file == file && other->low == mapped->low))
			continue;
		unwind_files__put(unwinder->files, other->file);
		other->file = NULL;
	}
}

/* Tell libdwfl of all files. It keeps what it knows of those that it is told of again. */
static int report(struct process *process)
{
	unsigned i;

	dwfl_report_begin(process->dwfl);
	for (i = 0; i < process->mapped_count; i++) {
		const struct mapped *mapped = &process->mapped[i];
		Dwfl_Module *module;
		char name[24];
		void **user;

		if (!mapped->file)
			continue;
		snprintf(name, sizeof(name), "%llu",
			 (unsigned long long)unwind_file__number(mapped->file));
		module = dwfl_report_module(process->dwfl, name, mapped->low, mapped->high);
		if (!module)
			return -ENOMEM;
		dwfl_module_info(module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
		*user = mapped->file;
	}
	return dwfl_report_end(process->dwfl, NULL, NULL) ? -ENOMEM : 0;
}

static int prepare(struct unwinder *unwinder, struct process *process)
{
	unsigned i;
	int rc;

	if (process->dwfl && !process->is_stale)
		return 0;
	rc = process->dwfl ? 0 : begin_dwfl(unwinder, process);
	if (rc)
		return rc;
	for (i = 0; i < process->mapped_count; i++)
		if (!process->mapped[i].is_tried)
			try_file(unwinder, process, &process->mapped[i]);
	unwinder->counts.prepared++;
	rc = report(process);
	if (rc)
		unready(unwinder, process);
	else
		process->is_stale = false;
	return rc;
}

unsigned unwinder__unwind(struct unwinder *unwinder, const struct unwind_sample *sample,
			  uint64_t *callers, unsigned max)
{
	struct process *process = *find(unwinder, sample->pid);
	unsigned count = 0;
	bool is_slow = false;

	unwinder->was_cut = false;
	max = max < UNWIND_CALLERS_MAX ? max : UNWIND_CALLERS_MAX;
	if (!max)
		return 0;
	if (process && sample->abi == PERF_SAMPLE_REGS_ABI_64 && process->slow < SLOW_MAX) {
		process->used = ++unwinder->now;
		if (!prepare(unwinder, process)) {
			count = unwind_stack__walk(&process->stack, process->dwfl, sample, callers,
						   max, &is_slow);
			unwinder->was_cut = process->stack.is_cut;
		}
	}
	if (is_slow) {
		process->slow++;
		unwinder->counts.slow++;
	}
	if (count)
		unwinder->counts.unwound++;
	else
		unwinder->counts.failed++;
	return count;
}

bool unwinder__was_cut(const struct unwinder *unwinder)
{
	return unwinder->was_cut;
}

const struct unwinder_counts *unwinder__counts(const struct unwinder *unwinder)
{
	return &unwinder->counts;
}

struct unwinder *unwinder__open(const struct unwinder_options *options)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	if (options)
		unwinder->options = *options;
	if (!unwinder->options.process_max)
		unwinder->options.process_max = PROCESSES;
	if (!unwinder->options.ready_max)
		unwinder->options.ready_max = READY;
	elf_version(EV_CURRENT);
	unwinder->machine = unwind_stack__machine();
	unwinder->files = unwind_files__open(unwinder->options.trusts_files);
	if (!unwinder->machine || !unwinder->files) {
		unwinder__close(unwinder);
		errno = ENOMEM;
		return NULL;
	}
	return unwinder;
}

void unwinder__close(struct unwinder *unwinder)
{
	unsigned i;

	if (!unwinder)
		return;
	for (i = 0; i < BUCKETS; i++)
		while (unwinder->buckets[i])
			forget(unwinder, &unwinder->buckets[i]);
	unwind_files__close(unwinder->files);
	elf_end(unwinder->machine);
	free(unwinder);
}
