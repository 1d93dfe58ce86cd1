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
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* "": the process is gone, or it was not possible to ask. */
static void read_program(uint32_t pid, char program[static PEM_NAME_BYTES])
{
	char path[40];
	ssize_t bytes;
	int fd;

	memset(program, 0, PEM_NAME_BYTES);
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	bytes = read(fd, program, PEM_NAME_BYTES - 1);
	close(fd);
	if (bytes > 0 && program[bytes - 1] == '\n')
		program[bytes - 1] = '\0';
}

static int add_part(struct pem_kernel_processes *p, uint32_t index, uint32_t pid, uint32_t cpu,
		    const struct pem_kprocess *values)
{
	if (!values->count)
		return 0;
	if (pem_grow(&p->parts, sizeof(*p->parts), p->count + 1, &p->capacity))
		return -ENOMEM;
	p->parts[p->count++] =
		(struct part){.index = index, .pid = pid, .cpu = cpu, .values = *values};
	return 0;
}

/* Take an entry of the map. Returns 0 or -ENOMEM. *is_gone: its process is. */
static int take_entry(struct pem_source *source, uint64_t key, bool *is_gone)
{
	uint32_t index = (uint32_t)(key >> 32) & (PEM_KRING_EVENTS_MAX - 1), pid = (uint32_t)key;
	struct pem_kernel_processes *p = source->processes;
	uint64_t tag = tag_of(source, index);
	struct pem_kprocess sum = {.tag = tag};
	uint32_t cpu;
	int rc = 0;

	*is_gone = pid && kill((pid_t)pid, 0) && errno == ESRCH;
	for (cpu = 0; !rc && cpu < source->common.cpu_count; cpu++) {
		add(&sum, &p->of_cpus[cpu], tag);
		if (!pid && p->of_cpus[cpu].tag == tag)
			rc = add_part(p, index, 0, cpu, &p->of_cpus[cpu]);
	}
	if (*is_gone)
		add(&p->ended[index], &sum, tag);
	else if (pid)
		rc = add_part(p, index, pid, PEM_NO_CPU, &sum);
	return rc;
}

static int by_pid(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_index(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->index != y->index ? (x->index > y->index) - (x->index < y->index) : by_pid(a, b);
}

/* Look each process's name up once. */
static void name_parts(struct pem_kernel_processes *p)
{
	size_t i;

	if (p->count)
		qsort(p->parts, p->count, sizeof(*p->parts), by_pid);
	for (i = 0; i < p->count; i++) {
		if (i && p->parts[i].pid == p->parts[i - 1].pid)
			memcpy(p->parts[i].program, p->parts[i - 1].program, PEM_NAME_BYTES);
		else if (p->parts[i].pid)
			read_program(p->parts[i].pid, p->parts[i].program);
	}
	if (p->count)
		qsort(p->parts, p->count, sizeof(*p->parts), by_index);
}

static int read_map(struct pem_source *source)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(source->object, "pem_processes");
	struct pem_kernel_processes *p = source->processes;
	uint64_t *gone = NULL, key, next;
	size_t gone_count = 0, gone_capacity = 0, entries = 0, most = bpf_map__max_entries(map);
	int fd = bpf_map__fd(map), rc = 0;
	bool is_gone, more;

	p->count = 0;
	memset(p->handed_out, 0, sizeof(p->handed_out));
	/* Programs only add entries, and entries are removed below only: each is found once. */
	for (more = !bpf_map_get_next_key(fd, NULL, &next); !rc && more && entries < most;
	     entries++) {
		key = next;
		if (!bpf_map_lookup_elem(fd, &key, p->of_cpus)) {
			rc = take_entry(source, key, &is_gone);
			if (!rc && is_gone)
				rc = pem_grow(&gone, sizeof(*gone), gone_count + 1, &gone_capacity);
			if (!rc && is_gone)
				gone[gone_count++] = key;
		}
		more = !bpf_map_get_next_key(fd, &key, &next);
	}
	p->is_full = entries >= most;
	while (gone_count)
		bpf_map_delete_elem(fd, &gone[--gone_count]);
	free(gone);
	name_parts(p);
	p->was_read = !rc;
	return rc;
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
	for (k = 0; k < p->count; k++)
		if (p->parts[k].index == index)
			hand_on(&to, &p->parts[k].values, p->parts[k].pid, p->parts[k].cpu,
				p->parts[k].program);
	hand_on_rest(source, i, &to, p->ended[index]);
	return to.count;
}
