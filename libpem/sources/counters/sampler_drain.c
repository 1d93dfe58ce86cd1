// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sampler_drain.c - moves what the rings of all CPUs have into packets, in the order of time
 *
 * A process maps files on one CPU and is sampled on another. To unwind a stack by what lay in
 * memory just then, records of all CPUs are taken by time.
 */
#include "sampler.h"

#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <time.h>

struct draining {
	struct sampler *sampler;
	const struct pem_source_sink *sink;
	int log, log_maps;
	int result; /* the first -errno */
};

static void note(struct draining *d, int rc)
{
	if (rc < 0 && !d->result)
		d->result = rc;
}

/*
 * Add the program's callers to a sample. Where it was in the kernel, the instruction at which it
 * entered is one (struct ring_sample).
 */
static void unwind(struct unwinder *unwinder, struct ring_sample *sample)
{
	struct unwind_sample of = {.pid = sample->pid,
				   .abi = sample->abi,
				   .registers = sample->registers,
				   .stack = sample->stack,
				   .stack_bytes = sample->stack_bytes,
				   .is_partial = sample->stack_is_partial};
	uint32_t count = sample->caller_count;

	if (sample->abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	/* Linux: the upper half of all addresses is the kernel's. */
	if (sample->ip >> 63 && count < RING_CALLERS_MAX)
		sample->callers[count++] = unwind__pc(sample->registers) + 1;
	if (count < RING_CALLERS_MAX - 1) {
		count += unwinder__unwind(unwinder, &of, sample->callers + count,
					  RING_CALLERS_MAX - 1 - count);
		if (unwinder__was_cut(unwinder))
			sample->callers[count++] = PEM_CALLERS_CUT;
	} else {
		count = RING_CALLERS_MAX;
	}
	sample->caller_count = count;
}

static void take_map(struct draining *d, struct cpu_ring *ring, const struct ring_map *map)
{
	if (d->log_maps)
		mapped_files__take(d->sampler->files, map, d->sink);
	if (d->sampler->unwinder)
		unwinder__map(d->sampler->unwinder, map); /* without memory: no callers */
	if (d->log_maps && (map->is_file || d->sampler->layout.address))
		note(d, sampler__put_map(d->sampler, ring, d->sink, map));
}

/* Memory that is new is told as a mapping of all addresses, without a path (spec/hw/perf.xml). */
static void take_task(struct draining *d, struct cpu_ring *ring, const struct ring_task *task)
{
	struct unwinder *unwinder = d->sampler->unwinder;
	struct ring_map all = {.pid = task->pid,
			       .tid = task->pid,
			       .time_ns = task->time_ns,
			       .length = UINT64_MAX,
			       .offset = task->parent};

	if (unwinder && task->parent)
		unwinder__fork(unwinder, task->pid, task->parent);
	else if (unwinder)
		unwinder__forget(unwinder, task->pid);
	if (d->log_maps)
		note(d, sampler__put_map(d->sampler, ring, d->sink, &all));
}

/* What lay in memory as sampling began. */
static void take_present(void *arg, const struct ring_map *map)
{
	struct draining *d = arg;
	struct ring_map present = *map;

	present.time_ns = d->sampler->start_ns;
	take_map(d, &d->sampler->rings[0], &present);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void find_next(struct cpu_ring *ring)
{
	ring->next_ns =
		ring->ring.tail != ring->head ? ring__time_ns(&ring->ring, ring->head) : UINT64_MAX;
}

/* Take what comes next in a ring. */
static void take_next(struct draining *d, struct cpu_ring *ring)
{
	struct sampler *sampler = d->sampler;
	int rc = ring__next(&ring->ring, ring->head, &sampler->sample);

	if (rc == RING_MAP) {
		take_map(d, ring, &ring->ring.map);
	} else if (rc == RING_TASK) {
		take_task(d, ring, &ring->ring.task);
	} else if (rc == RING_SAMPLE && d->log) {
		if (sampler->unwinder)
			unwind(sampler->unwinder, &sampler->sample);
		if (sampler->operands)
			operands__find(sampler->operands, &sampler->sample);
		else if (sampler->is_precise)
			access__find(&sampler->sample);
		note(d, sampler__put_sample(sampler, ring, d->sink, &sampler->sample));
	}
	note(d, rc);
	find_next(ring);
}

/*
 * The ring whose next record is the earliest; NULL: none is before the limit. What other CPUs wrote
 * before may not have been seen behind it.
 */
static struct cpu_ring *earliest(struct sampler *sampler, uint64_t limit_ns)
{
	struct cpu_ring *found = NULL;
	unsigned i;

	for (i = 0; i < sampler->ring_count; i++) {
		struct cpu_ring *ring = &sampler->rings[i];

		if (ring->next_ns < limit_ns && (!found || ring->next_ns < found->next_ns))
			found = ring;
	}
	return found;
}

int sampler__drain(struct sampler *sampler, const struct pem_source_sink *sink, int log,
		   int log_maps, int final)
{
	struct draining d = {.sampler = sampler, .sink = sink, .log = log, .log_maps = log_maps};
	struct cpu_ring *ring;
	uint64_t limit_ns;
	unsigned i;
	size_t k;

	for (k = 0; final && k < sampler->thread_count; k++)
		if (ioctl(sampler->threads[k].fd, PERF_EVENT_IOC_DISABLE, 0))
			note(&d, -errno);
	limit_ns = final ? UINT64_MAX : now_ns();
	for (i = 0; i < sampler->ring_count; i++) {
		ring = &sampler->rings[i];
		if (final && ioctl(ring->fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP))
			note(&d, -errno);
		/*
		 * linux: pairs with the kernel's store of data_head after the records below it
		 * After the records before it.
		 */
		ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
		find_next(ring);
	}
	if ((log_maps || sampler->unwinder) && sampler->tells_present) {
		sampler->tells_present = 0;
		maps__each(sampler->pid, sampler->layout.address != 0, take_present, &d);
	}
	if (sampler->operands)
		operands__forget(sampler->operands);
	while ((ring = earliest(sampler, limit_ns)))
		take_next(&d, ring);
	for (i = 0; i < sampler->ring_count; i++) {
		ring = &sampler->rings[i];
		note(&d, sampler__flush(ring, sink));
		/*
		 * linux: pairs with the kernel's load of data_tail before it overwrites Before it
		 * overwrites what was read.
		 */
		__atomic_store_n(&ring->page->data_tail, ring->ring.tail, __ATOMIC_RELEASE);
	}
	return d.result;
}
