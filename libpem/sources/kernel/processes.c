/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * processes.c - statistics of the kernel's events by process, read from the programs' map
 *
 * A caller asks for one event after the other. The map is read as a whole, when an event is asked
 * for that has been handed out since the last reading. Entries of processes that are gone are taken
 * out of the map then, and kept as one sum for each event. While the map is full, the events of
 * processes that have no entry are what is missing in the parts of the event's whole statistic.
 */
#include "kernel.h"
#include "grow.h"
#include "sources/statistic.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct part {
	uint32_t index; /* of the event */
	uint32_t pid, cpu;
	struct pem_kprocess values;
	char program[PEM_NAME_BYTES];
};

struct pem_kernel_processes {
	struct part *parts; /* sorted by index */
	size_t count, capacity;
	struct pem_kprocess *of_cpus; /* the values of one entry */
	struct pem_kprocess ended[PEM_KRING_EVENTS_MAX];
	bool handed_out[PEM_KRING_EVENTS_MAX];
	bool was_read, is_full;
};

void pem_source__free_processes(struct pem_source *source)
{
	if (!source->processes)
		return;
	free(source->processes->parts);
	free(source->processes->of_cpus);
	free(source->processes);
	source->processes = NULL;
}

/* --- reading the map --- */

/* The tag of the event's last action. Values of another tag are of an epoch that is over. */
static uint64_t tag_of(const struct pem_source *source, uint32_t index)
{
	const struct pem_source_demand *demand = pem_source__demand_of(source, index);

	return demand ? PEM_ACTION_TAG(atomic_load_explicit(&demand->action, memory_order_relaxed))
		      : 0;
}

static void add(struct pem_kprocess *sum, const struct pem_kprocess *values, uint64_t tag)
{
	if (sum->tag != tag)
		*sum = (struct pem_kprocess){.tag = tag};
	if (values->tag != tag)
		return;
	sum->count += values->count;
	sum->sum += values->sum;
}

static int add_part(struct pem_kernel_processes *p, uint32_t index, uint32_t pid, uint32_t cpu,
		    const struct pem_kprocess *values)
{
	if (pem_grow(&p->parts, sizeof(*p->parts), p->count + 1, &p->capacity))
		return -ENOMEM;
	p->parts[p->count++] =
		(struct part){.index = index, .pid = pid, .cpu = cpu, .values = *values};
	return 0;
}

/*
 * Add an entry of the map as a part: a process's values of all CPUs together, those of the idle
 * task by CPU. Returns 0 or -ENOMEM.
 */
static int add_entry(const struct pem_source *source, uint64_t key)
{
	uint32_t index = (uint32_t)(key >> 32) & (PEM_KRING_EVENTS_MAX - 1), pid = (uint32_t)key;
	struct pem_kernel_processes *p = source->processes;
	uint64_t tag = tag_of(source, index);
	struct pem_kprocess sum = {.tag = tag};
	uint32_t cpu;
	int rc = 0;

	for (cpu = 0; !rc && cpu < source->common.cpu_count; cpu++) {
		if (pid)
			add(&sum, &p->of_cpus[cpu], tag);
		else
			rc = add_part(p, index, 0, cpu, &p->of_cpus[cpu]);
	}
	return pid ? add_part(p, index, pid, PEM_NO_CPU, &sum) : rc;
}

static int by_pid(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_index(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

/* Name each process. Parts of one that is gone leave the map, and become part of its event's sum.
 */
static void name_parts(struct pem_kernel_processes *p, int map_fd)
{
	size_t i, kept = 0;
	bool is_gone = false;
	uint64_t key;

	for (i = 0; i < p->count; i++) {
		struct part *part = &p->parts[i];

		if (part->pid && i && part->pid == p->parts[i - 1].pid) {
			memcpy(part->program, p->parts[i - 1].program, PEM_NAME_BYTES);
		} else {
			is_gone = part->pid && kill((pid_t)part->pid, 0) && errno == ESRCH;
			if (part->pid && !is_gone)
				pem_process_name(part->pid, part->program);
		}
		key = (uint64_t)part->index << 32 | part->pid;
		if (is_gone && !bpf_map_delete_elem(map_fd, &key))
			add(&p->ended[part->index], &part->values, part->values.tag);
		else
			p->parts[kept++] = *part;
	}
	p->count = kept;
}

static int read_map(struct pem_source *source)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(source->object, "pem_processes");
	struct pem_kernel_processes *p = source->processes;
	size_t entries = 0, most = bpf_map__max_entries(map);
	int fd = bpf_map__fd(map), rc = 0;
	uint64_t key, next;
	bool more;

	p->count = 0;
	memset(p->handed_out, 0, sizeof(p->handed_out));
	/* Programs only add entries, and entries are removed below only: each is found once. */
	for (more = !bpf_map_get_next_key(fd, NULL, &next); !rc && more && entries < most;
	     entries++) {
		key = next;
		if (!bpf_map_lookup_elem(fd, &key, p->of_cpus))
			rc = add_entry(source, key);
		more = !bpf_map_get_next_key(fd, &key, &next);
	}
	p->is_full = entries >= most;
	if (!rc && p->count) {
		qsort(p->parts, p->count, sizeof(*p->parts), by_pid);
		name_parts(p, fd);
		qsort(p->parts, p->count, sizeof(*p->parts), by_index);
	}
	p->was_read = !rc;
	return rc;
}

/* The first part of an event, or the end. */
static size_t first_of(const struct pem_kernel_processes *p, uint32_t index)
{
	size_t low = 0, high = p->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (p->parts[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- what a caller asks for --- */

struct receiver {
	void (*function)(const struct pem_statistic *part, uint32_t pid, uint32_t cpu,
			 const char *program, void *arg);
	void *arg;
	uint64_t action;
	int count;
	uint64_t counted, sum; /* of all parts */
};

static void hand_on(struct receiver *to, const struct pem_kprocess *values, uint32_t pid,
		    uint32_t cpu, const char *program)
{
	struct pem_cell cell = {.stat_end = values->count, .sum = values->sum};
	struct pem_statistic part;

	if (!values->count || values->tag != PEM_ACTION_TAG(to->action))
		return;
	memset(&part, 0, sizeof(part));
	pem_statistic__fill(&part, &cell, to->action);
	part.min = part.max = 0;
	to->function(&part, pid, cpu, program, to->arg);
	to->count++;
	to->counted += values->count;
	to->sum += values->sum;
}

/* What has no entry: the difference to the whole statistic, which goes on meanwhile. */
static void hand_on_rest(struct pem_source *source, size_t i, struct receiver *to,
			 struct pem_kprocess ended)
{
	struct pem_statistic whole;

	if (source->processes->is_full && !pem_source_demands__read(source, i, &whole) &&
	    whole.count > to->counted + ended.count) {
		ended.tag = PEM_ACTION_TAG(to->action);
		ended.count = whole.count - to->counted;
		ended.sum = whole.sum - to->sum;
	}
	hand_on(to, &ended, 0, PEM_NO_CPU, "");
}

static int prepare(struct pem_source *source)
{
	struct pem_kernel_processes *p;

	if (source->processes)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p)
		p->of_cpus = calloc(source->common.cpu_count, sizeof(*p->of_cpus));
	source->processes = p;
	if (p && p->of_cpus)
		return 0;
	pem_source__free_processes(source);
	return -ENOMEM;
}

int pem_source__each_process(struct pem_source *source, size_t i,
			     void (*function)(const struct pem_statistic *part, uint32_t pid,
					      uint32_t cpu, const char *program, void *arg),
			     void *arg)
{
	struct receiver to = {.function = function, .arg = arg};
	struct pem_kernel_processes *p;
	struct pem_source_demand *demand;
	uint32_t index;
	size_t k;
	int rc;

	demand = pem_source_demands__get(source, i, &rc);
	if (!demand)
		return rc;
	rc = prepare(source);
	if (rc)
		return rc;
	p = source->processes;
	index = atomic_load_explicit(&demand->index, memory_order_relaxed);
	if (!p->was_read || p->handed_out[index])
		rc = read_map(source);
	if (rc)
		return rc;
	p->handed_out[index] = true;
	to.action = atomic_load_explicit(&demand->action, memory_order_relaxed);
	for (k = first_of(p, index); k < p->count && p->parts[k].index == index; k++)
		hand_on(&to, &p->parts[k].values, p->parts[k].pid, p->parts[k].cpu,
			p->parts[k].program);
	hand_on_rest(source, i, &to, p->ended[index]);
	return to.count;
}

uint32_t pem_source__outer_tid(struct pem_source *source, uint32_t pid_namespace, uint32_t tid,
			       uint32_t *uid, uint64_t *start_ns)
{
	const struct bpf_map *map =
		bpf_object__find_map_by_name(source->object, "pem_inner_threads");
	const struct pem_inner_thread inner = {pid_namespace, tid};
	struct pem_outer_thread outer = {0};

	if (!map || bpf_map__lookup_elem(map, &inner, sizeof(inner), &outer, sizeof(outer), 0))
		return 0;
	*uid = outer.uid;
	*start_ns = outer.start_ns;
	return outer.tid;
}

/* --- which processes are observed --- */

void pem_source__each_target(struct pem_source *source, void (*found)(void *arg, uint32_t pid),
			     void *arg)
{
	const struct bpf_map *targets = bpf_object__find_map_by_name(source->object, "pem_targets");
	size_t left = targets ? bpf_map__max_entries(targets) : 0;
	int fd = targets ? bpf_map__fd(targets) : -1;
	uint32_t pid, before;
	bool more;

	/* A process that ends meanwhile may begin the list again. So it has an end. */
	for (more = left && !bpf_map_get_next_key(fd, NULL, &pid); more && left; left--) {
		found(arg, pid);
		before = pid;
		more = !bpf_map_get_next_key(fd, &before, &pid);
	}
}
