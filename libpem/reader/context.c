/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * context.c - who ran where: the only code that finds process and thread of kernel records
 *
 * Not here: when to learn and when to forget (trace.c).
 *
 * It uses an event's meaning and its fields' roles, never its name:
 *	sets-thread	its cpu runs role 'thread' of role 'process' from here on; the record itself
 *			still belongs to role 'previous-thread'
 *	thread-start	role 'thread' belongs to role 'process'; a new process takes the name of
 *			role 'parent'
 *	process-name	role 'name' is the name of role 'process', or else of the process that
 *			raised the event
 *	thread-name	role 'name' is the name of role 'thread'; a new thread takes the name of the
 *			thread that started it
 *	thread-end	role 'thread' of role 'process' ends
 *
 * Only packets of PEM_PACKET_KERNEL teach it what runs on CPUs. All packets teach it names, and
 * which process started which. The process that an event names raises the starts, ends and names of
 * processes itself (thread-start: its parent does). So that process runs on the CPU. In this way a
 * lost or unknown context is found again before the next switch.
 */
#include "reader.h"
#include "hash.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

/* Maps a process or thread id, which is never 0, to a value. Open-addressed, at most half full. */
struct map {
	struct {
		uint32_t key;
		uint32_t value;
	} * entries;
	uint32_t size;
	uint32_t count;
	uint64_t multiplier; /* of hash.h */
};

struct cpu {
	uint32_t pid;
	uint32_t tid;
	bool known;
};

struct pem_context_table {
	struct cpu cpus[PEM_CPUS_MAX];
	struct map threads; /* tid to pid */
	struct map processes; /* pid to index of name */
	struct map thread_names; /* tid to index of name */
	char (*names)[NAME_BYTES];
	uint32_t name_count;
	uint32_t name_capacity;
};

static uint32_t map_index(const struct map *map, uint32_t key)
{
	uint32_t i = (uint32_t)pem_hash__index(key, map->multiplier, map->size);

	while (map->entries[i].key && map->entries[i].key != key)
		i = (i + 1) & (map->size - 1);
	return i;
}

static bool map_find(const struct map *map, uint32_t key, uint32_t *value)
{
	uint32_t i;

	if (!map->size || !key)
		return false;
	i = map_index(map, key);
	*value = map->entries[i].value;
	return map->entries[i].key == key;
}

static int map_set(struct map *map, uint32_t key, uint32_t value)
{
	struct map larger = {.size = map->size ? map->size * 2 : 256};
	uint32_t i, index;

	if (!key)
		return 0;
	if (map->count * 2 >= map->size) {
		larger.multiplier = map->size ? map->multiplier : pem_hash__multiplier();
		larger.entries = calloc(larger.size, sizeof(*larger.entries));
		if (!larger.entries)
			return -ENOMEM;
		for (i = 0; i < map->size; i++) {
			if (!map->entries[i].key)
				continue;
			index = map_index(&larger, map->entries[i].key);
			larger.entries[index] = map->entries[i];
		}
		larger.count = map->count;
		free(map->entries);
		*map = larger;
	}
	index = map_index(map, key);
	map->count += map->entries[index].key == 0;
	map->entries[index].key = key;
	map->entries[index].value = value;
	return 0;
}

static void map_clear(struct map *map)
{
	if (map->size)
		memset(map->entries, 0, map->size * sizeof(*map->entries));
	map->count = 0;
}

struct pem_context_table *pem_context_table__new(void)
{
	return calloc(1, sizeof(struct pem_context_table));
}

void pem_context_table__free(struct pem_context_table *table)
{
	if (!table)
		return;
	free(table->threads.entries);
	free(table->processes.entries);
	free(table->thread_names.entries);
	free(table->names);
	free(table);
}

void pem_context_table__reset(struct pem_context_table *table)
{
	memset(table->cpus, 0, sizeof(table->cpus));
	map_clear(&table->threads);
	map_clear(&table->processes);
	map_clear(&table->thread_names);
	table->name_count = 0;
}

static int call(struct pem_context_table *table, struct map *map, uint32_t key, const char *name)
{
	uint32_t i, capacity = table->name_capacity ? table->name_capacity * 2 : 64;
	void *larger;
	int rc;

	if (!key)
		return 0;
	if (!map_find(map, key, &i)) {
		if (table->name_count == table->name_capacity) {
			larger = realloc(table->names, (size_t)capacity * NAME_BYTES);
			if (!larger)
				return -ENOMEM;
			table->names = larger;
			table->name_capacity = capacity;
		}
		i = table->name_count;
		rc = map_set(map, key, i);
		if (rc)
			return rc;
		table->name_count++;
	}
	memset(table->names[i], 0, NAME_BYTES);
	memcpy(table->names[i], name, strnlen(name, NAME_BYTES - 1));
	pem_printable(table->names[i]);
	return 0;
}

int pem_context_table__call(struct pem_context_table *table, uint32_t pid, const char *name)
{
	return call(table, &table->processes, pid, name);
}

int pem_context_table__call_thread(struct pem_context_table *table, uint32_t pid, uint32_t tid,
				   const char *name)
{
	int rc = pid ? map_set(&table->threads, tid, pid) : 0;

	return rc ? rc : call(table, &table->thread_names, tid, name);
}

int pem_context_table__set_name(struct pem_context_table *table, uint32_t pid, const char *name)
{
	const char *slash = strrchr(name, '/');

	return pem_context_table__call(table, pid, slash ? slash + 1 : name);
}

const char *pem_context_table__name(const struct pem_context_table *table, uint32_t pid)
{
	uint32_t i;

	return map_find(&table->processes, pid, &i) ? table->names[i] : "";
}

const char *pem_context_table__thread_name(const struct pem_context_table *table, uint32_t tid)
{
	uint32_t i;

	return map_find(&table->thread_names, tid, &i) ? table->names[i] : "";
}

void pem_context_table__lose(struct pem_context_table *table, uint32_t cpu)
{
	table->cpus[cpu].known = false;
}

void pem_context_table__get(const struct pem_context_table *table, uint32_t cpu, uint32_t *pid,
			    uint32_t *tid)
{
	const struct cpu *c = &table->cpus[cpu];

	*pid = c->known ? c->pid : 0;
	*tid = c->known ? c->tid : 0;
}

/* Return the value of a field as an id; 0: there is no such field. */
static uint32_t role_value(const struct pem_record *record, int field)
{
	return field >= 0 ? (uint32_t)pem_record__u64(record, (unsigned)field) : 0;
}

static uint32_t process_of(const struct pem_context_table *table, uint32_t tid)
{
	uint32_t pid;

	return map_find(&table->threads, tid, &pid) ? pid : 0;
}

static int learn_switch(struct pem_context_table *table, const struct pem_event_info *info,
			struct pem_record *record)
{
	uint32_t previous, tid = role_value(record, info->thread);
	uint32_t pid = role_value(record, info->process);
	struct cpu *c;
	int rc = 0;

	if (record->source != PEM_PACKET_KERNEL)
		return 0;
	c = &table->cpus[record->cpu];
	if (info->previous_thread >= 0) {
		previous = role_value(record, info->previous_thread);
		if (!c->known || c->tid != previous)
			record->pid = process_of(table, previous);
		record->tid = previous;
	}
	if (pid)
		rc = map_set(&table->threads, tid, pid);
	else
		pid = process_of(table, tid);
	c->known = true;
	c->pid = pid;
	c->tid = tid;
	return rc;
}

/*
 * A new thread takes its starter's name. If the starter has none, a name that belonged to the same
 * number before is removed.
 */
static int inherit_thread_name(struct pem_context_table *table, uint32_t starter, uint32_t tid)
{
	char name[NAME_BYTES] = "";
	uint32_t i;

	/* A copy: call() may move the names. */
	if (map_find(&table->thread_names, starter, &i))
		memcpy(name, table->names[i], NAME_BYTES);
	else if (!map_find(&table->thread_names, tid, &i))
		return 0;
	return call(table, &table->thread_names, tid, name);
}

static int learn_start(struct pem_context_table *table, const struct pem_event_info *info,
		       const struct pem_record *record)
{
	uint32_t parent = info->parent >= 0 ? role_value(record, info->parent) : record->pid;
	uint32_t pid = info->process >= 0 ? role_value(record, info->process) : record->pid;
	char name[NAME_BYTES];
	int rc;

	rc = map_set(&table->threads, role_value(record, info->thread), pid);
	if (!rc)
		rc = inherit_thread_name(table, record->tid, role_value(record, info->thread));
	if (rc || pid == parent)
		return rc;
	/* A copy: naming the child may move the names. */
	memcpy(name, "", 1);
	if (*pem_context_table__name(table, parent))
		memcpy(name, pem_context_table__name(table, parent), NAME_BYTES);
	return *name ? pem_context_table__set_name(table, pid, name) : 0;
}

/*
 * If it is unknown what runs on the record's CPU, take the process that must run there to raise
 * this event.
 */
static void learn_from_self(struct pem_context_table *table, const struct pem_event_info *info,
			    struct pem_record *record)
{
	bool starts = info->event->meaning == PEM_MEANS_THREAD_START;
	uint32_t pid = role_value(record, starts ? info->parent : info->process);
	struct cpu *c;

	if (record->source != PEM_PACKET_KERNEL || table->cpus[record->cpu].known || !pid)
		return;
	c = &table->cpus[record->cpu];
	c->known = true;
	c->pid = pid;
	c->tid = starts ? 0 : role_value(record, info->thread);
	record->pid = c->pid;
	record->tid = c->tid;
}

int pem_context_table__learn(struct pem_context_table *table, const struct pem_event_info *info,
			     struct pem_record *record)
{
	if (info->event->meaning == PEM_MEANS_SETS_THREAD)
		return learn_switch(table, info, record);
	learn_from_self(table, info, record);
	return pem_context_table__learn_names(table, info, record);
}

int pem_context_table__learn_names(struct pem_context_table *table,
				   const struct pem_event_info *info,
				   const struct pem_record *record)
{
	uint32_t pid;

	switch (info->event->meaning) {
	case PEM_MEANS_THREAD_START:
		return learn_start(table, info, record);
	case PEM_MEANS_PROCESS_NAME:
		if (info->name < 0)
			return 0;
		pid = info->process >= 0 ? role_value(record, info->process) : record->pid;
		return pem_context_table__set_name(
			table, pid, pem_record__string(record, (unsigned)info->name));
	case PEM_MEANS_THREAD_NAME:
		if (info->name < 0)
			return 0;
		return call(table, &table->thread_names, role_value(record, info->thread),
			    pem_record__string(record, (unsigned)info->name));
	default:
		return 0;
	}
}
