// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sampler.c - periodic samples of program counter and counters, through one perf ring per CPU
 *
 * Not here: what comes out of the rings (sampler_drain.c), the plugin's operations (counters.c).
 *
 * The kernel does not map a ring for an event that is inherited and follows its task across CPUs.
 * So one event per CPU is opened on the task. Each is the leader of a group, and each sample reads
 * the members of the group:
 *
 *	[0]	the sampling clock itself (ns; cycles if it is a cycle counter)
 *	[1..7]	the session's counter events that can be counted here, in the order of the request
 *
 * Values are those of the sampled thread on that CPU since observation began. Kernels before 6.12
 * refuse to read a group in inherited samples. The list of values is then empty. If a group counted
 * only a part of the time, it is scaled by time enabled / time running.
 */
#include "sampler.h"

#include <pem/operand.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * A prime, so that samples do not keep step with the program's own timers. A sample costs some 20
 * us if a virtual machine handles the timer's interrupt: 997 Hz slowed sqlite3 by 3 %, 199 Hz by
 * 0.5 %.
 */
#define SAMPLE_RATE_HZ 199
#define STACK_BYTES 8192u /* of a program's stack, to be unwound: as perf takes */
#define DEFAULT_BUFFER_BYTES (128u << 10) /* what an ordinary user may lock per CPU */
#define LEAST_BUFFER_BYTES (64u << 10)
#define CPUS_MAX 65536

/* Let the ring have what is mapped, too, as soon as the event is enabled. */
static void tell_maps(struct perf_event_attr *attr, int with_build_id)
{
	attr->mmap = 1; /* of code; of other memory with mmap_data */
	attr->mmap2 = 1;
	attr->task = 1; /* a child has what its parent has */
	attr->comm = 1;
	attr->comm_exec = 1; /* and a program what it begins with */
	attr->build_id = (unsigned)with_build_id & 1u;
}

/* What a timer has to tell for the data to be found (operands.c). The kernel's are nobody's. */
static void prepare_data(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = pem_operand__registers();
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->mmap_data = attr->mmap;
}

static void prepare(struct perf_event_attr *attr, uint32_t stacks, int with_read)
{
	attr->inherit = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->sample_id_all = 1;
	attr->read_format = 0;
	if (stacks)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (stacks == PEM_STACKS_TABLES) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = unwind__registers();
		attr->sample_stack_user = STACK_BYTES;
		attr->exclude_callchain_user = 1;
	}
	if (with_read) {
		attr->sample_type |= PERF_SAMPLE_READ;
		attr->read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
				    PERF_FORMAT_TOTAL_TIME_RUNNING;
	}
}

static void prepare_leader(const struct sampler *sampler, struct perf_event_attr *attr,
			   uint32_t stacks, int with_read)
{
	prepare(attr, stacks, with_read);
	if (sampler->is_precise)
		precise__prepare(attr);
	else if (sampler->layout.address)
		prepare_data(attr);
}

static int open_here(const struct sampler *sampler, struct cpu_ring *ring,
		     struct perf_event_attr *attr, const struct sampler_request *request)
{
	ring->fd = precise__open(&sampler->precise, attr, request->cgroup_fd, request->pid,
				 (int)ring->cpu, ring->beside);
	return ring->fd;
}

/*
 * Open the leader. Clears with_read if the kernel can't combine it with inheritance. Before Linux
 * 5.12 the kernel tells no build ids.
 */
static int open_leader(const struct sampler *sampler, struct cpu_ring *ring,
		       struct perf_event_attr *attr, const struct sampler_request *request,
		       int *with_read)
{
	const int is_of_data = sampler->layout.address != 0;
	const int tables = request->stacks == PEM_STACKS_TABLES;
	const int tells_maps = request->map_event || tables;

	attr->freq = 1;
	attr->sample_freq = request->hz ? request->hz : SAMPLE_RATE_HZ;
	attr->disabled = 1;
	attr->enable_on_exec = (unsigned)request->on_exec & 1u;
	if (tells_maps)
		tell_maps(attr, 1);
	prepare_leader(sampler, attr, request->stacks, *with_read);
	if (open_here(sampler, ring, attr, request) == -EINVAL && *with_read) {
		*with_read = 0;
		prepare_leader(sampler, attr, request->stacks, 0);
		open_here(sampler, ring, attr, request);
	}
	if (ring->fd == -EINVAL && attr->build_id) {
		tell_maps(attr, 0);
		open_here(sampler, ring, attr, request);
	}
	ring->ring.tells_maps = tells_maps;
	ring->ring.tells_all_maps = tables || is_of_data;
	ring->ring.register_count = (unsigned)__builtin_popcountll(attr->sample_regs_user);
	ring->ring.has_stack = tables;
	ring->ring.has_callers = request->stacks != PEM_STACKS_NONE;
	ring->ring.has_data = sampler->is_precise;
	ring->ring.skips_kernel = sampler->precise.samples_kernel;
	ring->attr = *attr;
	return ring->fd < 0 ? ring->fd : 0;
}

/*
 * Open the members of a group. Members that can't be opened are left out, and these are the same on
 * each CPU.
 */
static void open_members(struct cpu_ring *ring, const struct sampler_request *request,
			 uint32_t most)
{
	size_t i;

	for (i = 0; i < request->member_count && ring->member_count + 1 < most; i++) {
		struct perf_event_attr attr;
		int fd;

		if (counter__encode(request->members[i], &attr) < 0)
			continue;
		prepare(&attr, PEM_STACKS_NONE, 1);
		fd = counter__open_on(request->cgroup_fd, &attr, request->pid, (int)ring->cpu,
				      ring->fd);
		if (fd >= 0)
			ring->members[ring->member_count++] = fd;
	}
}

/*
 * Rings are drained some ten times a second, so they have room for a quarter of a second or more. A
 * sample takes 48 bytes, and 8 a counter, caller or register.
 */
static size_t default_bytes(const struct sampler_request *request)
{
	/* Of data: with 17 registers. */
	uint64_t sample_bytes = request->stacks == PEM_STACKS_NONE     ? 208
				: request->stacks == PEM_STACKS_FRAMES ? 512
								       : 2 * STACK_BYTES;
	uint64_t bytes = (request->hz ? request->hz : SAMPLE_RATE_HZ) * sample_bytes / 4;

	return bytes > DEFAULT_BUFFER_BYTES ? bytes : DEFAULT_BUFFER_BYTES;
}

static int map_ring(struct cpu_ring *ring, const struct sampler_request *request)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), data_bytes = page_bytes;
	size_t wanted = request->buffer_bytes;

	if (!wanted)
		wanted = default_bytes(request);
	while (data_bytes * 2 <= wanted)
		data_bytes *= 2;
	for (;; data_bytes /= 2) {
		ring->map_bytes = page_bytes + data_bytes;
		ring->page = mmap(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				  ring->fd, 0);
		if (ring->page != MAP_FAILED)
			break;
		/* More than this user may lock. What a smaller one loses is counted. */
		if (errno != EPERM || request->buffer_bytes || data_bytes <= LEAST_BUFFER_BYTES)
			return -errno;
	}
	ring->ring.data = (const uint8_t *)ring->page + page_bytes;
	ring->ring.data_bytes = data_bytes;
	return 0;
}

static int open_cpu(struct sampler *sampler, struct cpu_ring *ring,
		    const struct sampler_request *request, const struct perf_event_attr *clock)
{
	struct perf_event_attr attr = *clock;
	uint32_t most = sampler->layout.values_max < RING_VALUES_MAX ? sampler->layout.values_max
								     : RING_VALUES_MAX;
	/* Beside a processor's samples the group has other members: of stores, say. */
	int rc, with_read = most > 0 && !sampler->is_precise;

	rc = open_leader(sampler, ring, &attr, request, &with_read);
	if (rc < 0)
		return rc;
	ring->ring.has_read = with_read;
	if (with_read)
		open_members(ring, request, most);
	sampler->values = with_read ? ring->member_count + 1 : 0;
	rc = map_ring(ring, request);
	return rc ? rc : sampler__join_ring(ring, ring->beside);
}

static int open_cpus(struct sampler *sampler, const struct sampler_request *request, long cpus,
		     const struct perf_event_attr *clock)
{
	long i;
	int rc;

	for (i = 0; i < cpus; i++) {
		struct cpu_ring *ring = &sampler->rings[sampler->ring_count++];

		ring->page = MAP_FAILED;
		ring->fd = ring->beside[PRECISE_STORES] = ring->beside[PRECISE_LEADER] = -1;
		ring->cpu = (uint32_t)i;
		snprintf(ring->stream, sizeof(ring->stream), "c_%u",
			 request->first_stream + (unsigned)i);
		rc = open_cpu(sampler, ring, request, clock);
		if (rc == -ENODEV) /* a CPU is offline */
			sampler->ring_count--;
		else if (rc < 0)
			return rc;
	}
	return sampler->ring_count ? 0 : -ENODEV;
}

/* The kernel's limit. UINT32_MAX: it is unknown. */
static uint32_t max_rate_hz(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned limit = UINT32_MAX;

	if (!file)
		return UINT32_MAX;
	if (fscanf(file, "%u", &limit) != 1)
		limit = UINT32_MAX;
	fclose(file);
	return limit;
}

static int open_unwinder(struct sampler *sampler, const struct sampler_request *request,
			 struct pem_error *error)
{
	struct unwinder_options options = {.trusts_files = request->pid > 0};

	if (request->stacks != PEM_STACKS_TABLES)
		return 0;
	sampler->unwinder = unwinder__open(&options);
	if (sampler->unwinder)
		return 0;
	if (errno == ENOMEM) {
		counter__set_error(error, "can't have the callers of samples: no memory");
		return -ENOMEM;
	}
	counter__set_error(error, "can't have the callers of samples: pem was built without "
				  "elfutils, which reads unwind tables; --call-graph fp follows "
				  "frame pointers");
	return -ENOTSUP;
}

/* Returns 0 or -errno. */
static int open_rings(struct sampler *sampler, const struct sampler_request *request, long cpus,
		      const struct perf_event_attr *clock)
{
	int rc = open_cpus(sampler, request, cpus, clock);

	return rc == 0 && request->all_threads ? sampler__add_threads(sampler) : rc;
}

static void close_rings(struct sampler *sampler)
{
	unsigned i, k;

	for (i = 0; i < sampler->ring_count; i++) {
		struct cpu_ring *ring = &sampler->rings[i];

		if (ring->page != MAP_FAILED)
			munmap(ring->page, ring->map_bytes);
		for (k = 0; k < ring->member_count; k++)
			close(ring->members[k]);
		for (k = 0; k < PRECISE_BESIDE; k++)
			if (ring->beside[k] >= 0)
				close(ring->beside[k]);
		if (ring->fd >= 0)
			close(ring->fd);
		memset(ring, 0, sizeof(*ring));
	}
	sampler->ring_count = 0;
	while (sampler->thread_count)
		close(sampler->threads[--sampler->thread_count].fd);
}

/*
 * Let the processor itself sample data. Of a processor with cores of two kinds only one may be able
 * to: then a timer has to sample all. Returns 0 or -errno; -ENOENT: the processor can't.
 */
static int open_precise(struct sampler *sampler, const struct sampler_request *request, long cpus)
{
	const char *devices = request->devices ? request->devices : PRECISE_DEVICES;
	int rc = precise__find(devices, &sampler->precise);

	if (rc == 0) {
		sampler->is_precise = 1;
		rc = open_rings(sampler, request, cpus, &sampler->precise.loads);
		/* To the caller -ENOENT is a processor without such samples. */
		rc = rc == -ENOENT ? -ENODEV : rc;
	}
	if (rc == 0)
		return 0;
	close_rings(sampler);
	memset(&sampler->precise, 0, sizeof(sampler->precise));
	sampler->is_precise = 0;
	return rc;
}

/* What computes the data of a timer's samples. Returns 0, or -errno with error. */
static int open_operands(struct sampler *sampler, struct pem_error *error)
{
	sampler->operands = operands__open();
	if (sampler->operands)
		return 0;
	if (errno == ENOMEM) {
		counter__set_error(error, "can't have the data of samples: no memory");
		return -ENOMEM;
	}
	counter__set_error(error, "can't be had: this processor tells no data addresses, and "
				  "instructions, from which pem computes them, can be decoded on "
				  "x86-64 alone, by a pem that was built with capstone");
	return -ENOTSUP;
}

int sampler__open(struct sampler **out, const struct sampler_request *request,
		  struct pem_error *error)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct perf_event_attr clock;
	struct sampler *sampler;
	int rc;

	if (cpus < 1 || cpus > CPUS_MAX)
		return -ENODEV;
	sampler = calloc(1, sizeof(*sampler) + (size_t)cpus * sizeof(sampler->rings[0]));
	if (!sampler)
		return -ENOMEM;
	sampler->event = request->event;
	sampler->map_event = request->map_event;
	sampler->pid = request->pid;
	sampler->files = request->map_event ? mapped_files__new() : NULL;
	sampler->tells_present =
		(request->map_event || request->stacks == PEM_STACKS_TABLES) && !request->on_exec;
	rc = open_unwinder(sampler, request, error);
	if (rc < 0)
		goto fail;
	rc = sample__layout(request->event, &sampler->layout);
	if (!rc && request->map_event)
		rc = map__layout(request->map_event, &sampler->map_layout);
	if (rc < 0) {
		counter__set_error(error, "has fields that a sample can't fill; it needs pc");
		goto fail;
	}
	if (sampler->layout.address) {
		sampler->no_precise = open_precise(sampler, request, cpus);
		if (sampler->is_precise)
			goto out;
		rc = open_operands(sampler, error);
		if (rc < 0)
			goto fail;
	}
	rc = counter__encode_clock(request->event->source_name, &clock);
	if (rc == 0)
		rc = open_rings(sampler, request, cpus, &clock);
	if (rc == -EINVAL && request->hz > max_rate_hz()) {
		counter__set_error(error,
				   "can't be sampled %u times a second: this kernel allows %u; "
				   "sysctl kernel.perf_event_max_sample_rate raises it",
				   request->hz, max_rate_hz());
		goto fail;
	}
	if (rc < 0) {
		counter__explain(request->event->source_name, &clock, rc, error);
		goto fail;
	}
out:
	*out = sampler;
	return 0;
fail:
	sampler__close(sampler);
	return rc;
}

static int enable(struct sampler *sampler)
{
	unsigned i;
	size_t k;

	for (i = 0; i < sampler->ring_count; i++)
		if (ioctl(sampler->rings[i].fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) < 0)
			return -errno;
	for (k = 0; k < sampler->thread_count; k++)
		if (ioctl(sampler->threads[k].fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			return -errno;
	return 0;
}

int sampler__start(struct sampler *sampler)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	sampler->start_ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	return enable(sampler);
}

uint64_t sampler__discarded(const struct sampler *sampler)
{
	uint64_t lost = 0;
	unsigned i;

	for (i = 0; i < sampler->ring_count; i++)
		lost += sampler->rings[i].ring.lost;
	return lost;
}

uint64_t sampler__produced(const struct sampler *sampler)
{
	return sampler->samples + sampler__discarded(sampler);
}

uint64_t sampler__maps(const struct sampler *sampler)
{
	return sampler->maps;
}

unsigned sampler__values(const struct sampler *sampler)
{
	return sampler->values;
}

int sampler__no_precise(const struct sampler *sampler)
{
	return sampler->no_precise;
}

void sampler__close(struct sampler *sampler)
{
	if (!sampler)
		return;
	close_rings(sampler);
	free(sampler->threads);
	unwinder__close(sampler->unwinder);
	operands__close(sampler->operands);
	free(sampler->files);
	free(sampler);
}
