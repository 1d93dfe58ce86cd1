// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sampler.c - periodic samples of program counter and counters, through one perf ring per CPU
 *
 * Not here: parsing the ring (ring.c), the plugin's operations (counters.c).
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
 *
 * Successive samples of one thread share a packet, because a packet belongs to one process and
 * thread.
 */
#include "counters.h"

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
#define DEFAULT_BUFFER_BYTES (128u << 10) /* what an ordinary user may lock per CPU */
#define PACKET_BYTES 8192u
#define CPUS_MAX 65536

#define MEMBERS_MAX (RING_VALUES_MAX - 1)

struct cpu_ring {
	int fd;
	int members[MEMBERS_MAX];
	unsigned member_count;
	uint32_t cpu;
	struct perf_event_mmap_page *page; /* MAP_FAILED: not mapped */
	size_t map_bytes;
	struct ring ring;
	uint64_t last_clock;
	/* Records in packets that the sink refused; packets report them as discarded. */
	uint64_t refused;
	char stream[16];
};

struct sampler {
	const struct pem_event *event;
	struct sample_layout layout;
	const struct pem_event *map_event; /* NULL: what is mapped is not told */
	struct map_layout map_layout;
	pid_t pid;
	int tells_present; /* what is mapped already is still to be told */
	unsigned values;
	uint64_t samples, maps; /* records made */
	unsigned ring_count;
	struct cpu_ring rings[];
};

/* A packet being filled. */
struct builder {
	uint64_t bytes[PACKET_BYTES / 8]; /* aligned for struct pem_packet */
	uint32_t at, end; /* at: where the next record begins; end: where the last one ended */
};

static int is_number(const struct pem_field *field, enum pem_type type, const char *name,
		     enum pem_role role)
{
	return field->type == type && (!strcmp(field->name, name) || (role && field->role == role));
}

/* Lists: callers, and values under any other name. Returns 0 or -ENOTSUP. */
static int list_layout(const struct pem_field *field, struct sample_layout *layout)
{
	int is_callers = !strcmp(field->name, "callers");
	uint16_t *at = is_callers ? &layout->callers : &layout->values;

	/* They are written in this order. */
	if (field->element_type != PEM_TYPE_UINT64 || *at || (!is_callers && layout->callers))
		return -ENOTSUP;
	*at = field->offset;
	*(is_callers ? &layout->callers_max : &layout->values_max) = field->max_count;
	return 0;
}

int sample__layout(const struct pem_event *event, struct sample_layout *layout)
{
	struct sample_layout found = {.fixed_bytes = event->fixed_bytes};
	unsigned i;

	for (i = 0; i < event->field_count; i++) {
		const struct pem_field *field = &event->fields[i];

		if (field->type == PEM_TYPE_STRING ||
		    (field->type == PEM_TYPE_LIST && list_layout(field, &found)))
			return -ENOTSUP;
		if (is_number(field, PEM_TYPE_UINT64, "pc", PEM_ROLE_NONE))
			found.pc = field->offset;
		else if (is_number(field, PEM_TYPE_UINT32, "pid", PEM_ROLE_PROCESS))
			found.pid = field->offset;
		else if (is_number(field, PEM_TYPE_UINT32, "tid", PEM_ROLE_THREAD))
			found.tid = field->offset;
		else if (is_number(field, PEM_TYPE_UINT32, "cpu", PEM_ROLE_NONE))
			found.cpu = field->offset;
	}
	if (!found.pc || event->max_bytes > PACKET_BYTES - PEM_PACKET_HEADER_BYTES)
		return -ENOTSUP;
	*layout = found;
	return 0;
}

/* Let the ring have what is mapped, too, as soon as the event is enabled. */
static void tell_maps(struct perf_event_attr *attr, int with_build_id)
{
	attr->mmap = 1; /* of code alone */
	attr->mmap2 = 1;
	attr->sample_id_all = 1;
	attr->build_id = (unsigned)with_build_id & 1u;
}

static void prepare(struct perf_event_attr *attr, uint32_t stacks, int with_read)
{
	attr->inherit = 1;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->read_format = 0;
	if (stacks)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (with_read) {
		attr->sample_type |= PERF_SAMPLE_READ;
		attr->read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
				    PERF_FORMAT_TOTAL_TIME_RUNNING;
	}
}

/*
 * Open the leader. Clears with_read if the kernel can't combine it with inheritance. Before Linux
 * 5.12 the kernel tells no build ids.
 */
static int open_leader(struct cpu_ring *ring, struct perf_event_attr *attr,
		       const struct sampler_request *request, int *with_read)
{
	attr->freq = 1;
	attr->sample_freq = request->hz ? request->hz : SAMPLE_RATE_HZ;
	attr->disabled = 1;
	attr->enable_on_exec = (unsigned)request->on_exec & 1u;
	if (request->map_event)
		tell_maps(attr, 1);
	prepare(attr, request->stacks, *with_read);
	ring->fd = counter__open(attr, request->pid, (int)ring->cpu, -1);
	if (ring->fd == -EINVAL && *with_read) {
		*with_read = 0;
		prepare(attr, request->stacks, 0);
		ring->fd = counter__open(attr, request->pid, (int)ring->cpu, -1);
	}
	if (ring->fd == -EINVAL && attr->build_id) {
		tell_maps(attr, 0);
		ring->fd = counter__open(attr, request->pid, (int)ring->cpu, -1);
	}
	ring->ring.tells_maps = request->map_event != NULL;
	ring->ring.has_callers = request->stacks != PEM_STACKS_NONE;
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
		fd = counter__open(&attr, request->pid, (int)ring->cpu, ring->fd);
		if (fd >= 0)
			ring->members[ring->member_count++] = fd;
	}
}

/*
 * Rings are drained some ten times a second, so they have room for a quarter of a second. A sample
 * takes 48 bytes, and 8 a counter or caller.
 */
static size_t default_bytes(const struct sampler_request *request)
{
	uint64_t sample_bytes = request->stacks == PEM_STACKS_NONE ? 64 : 512;
	uint64_t bytes = request->hz * sample_bytes / 4;

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
	ring->map_bytes = page_bytes + data_bytes;
	ring->page = mmap(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (ring->page == MAP_FAILED)
		return -errno;
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
	int rc, with_read = most > 0;

	rc = open_leader(ring, &attr, request, &with_read);
	if (rc < 0)
		return rc;
	ring->ring.has_read = with_read;
	if (with_read)
		open_members(ring, request, most);
	sampler->values = with_read ? ring->member_count + 1 : 0;
	return map_ring(ring, request);
}

static int open_cpus(struct sampler *sampler, const struct sampler_request *request, long cpus,
		     const struct perf_event_attr *clock)
{
	long i;
	int rc;

	for (i = 0; i < cpus; i++) {
		struct cpu_ring *ring = &sampler->rings[sampler->ring_count++];

		ring->page = MAP_FAILED;
		ring->fd = -1;
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
	sampler->tells_present = request->map_event && !request->on_exec;
	rc = sample__layout(request->event, &sampler->layout);
	if (!rc && request->map_event)
		rc = map__layout(request->map_event, &sampler->map_layout);
	if (rc < 0) {
		counter__set_error(error, "has fields that a sample can't fill; it needs pc");
		goto fail;
	}
	rc = counter__encode_clock(request->event->source_name, &clock);
	if (rc == 0)
		rc = open_cpus(sampler, request, cpus, &clock);
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
	*out = sampler;
	return 0;
fail:
	sampler__close(sampler);
	return rc;
}

int sampler__start(struct sampler *sampler)
{
	unsigned i;

	for (i = 0; i < sampler->ring_count; i++)
		if (ioctl(sampler->rings[i].fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) < 0)
			return -errno;
	return 0;
}

/* Give a filled packet to the sink and empty it. */
static int flush(struct cpu_ring *ring, struct builder *builder, const struct pem_source_sink *sink)
{
	struct pem_packet *packet = (struct pem_packet *)builder->bytes;
	uint64_t records = packet->record_count;
	int rc;

	if (!records)
		return 0;
	packet->timestamp_end = ring->last_clock;
	packet->content_size = (uint64_t)builder->end * 8;
	packet->events_discarded = ring->ring.lost + ring->refused;
	rc = sink->write(sink->arg, ring->stream, packet, builder->end);
	if (rc < 0)
		ring->refused += records;
	packet->record_count = 0;
	return rc;
}

static void begin(struct cpu_ring *ring, struct builder *builder, uint32_t pid, uint32_t tid,
		  uint64_t clock)
{
	struct pem_packet *packet = (struct pem_packet *)builder->bytes;

	memset(packet, 0, sizeof(*packet));
	packet->timestamp_begin = clock;
	packet->pid = pid;
	packet->tid = tid;
	packet->cpu = ring->cpu;
	packet->source = PEM_PACKET_COUNTER;
	builder->at = builder->end = PEM_PACKET_HEADER_BYTES;
}

/* Write a list behind its record's bytes. Returns the record's bytes. */
static uint32_t put_list(uint8_t *record, uint32_t bytes, uint16_t length_at,
			 const uint64_t *elements, uint32_t count)
{
	if (!length_at)
		return bytes;
	bytes = (bytes + 7u) & ~7u;
	memcpy(record + length_at, &count, 4);
	memcpy(record + bytes, elements, (size_t)count * 8);
	return bytes + count * 8;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void append(const struct sampler *sampler, struct cpu_ring *ring, struct builder *builder,
		   const struct ring_sample *sample, uint64_t clock)
{
	struct pem_packet *packet = (struct pem_packet *)builder->bytes;
	const struct sample_layout *layout = &sampler->layout;
	uint8_t *record = (uint8_t *)builder->bytes + builder->at;
	struct pem_record_header header = {.clock_low = (uint32_t)clock,
					   .event_id = sampler->event->id};
	uint32_t bytes = layout->fixed_bytes;

	memset(record, 0, (bytes + 7u) & ~7u);
	memcpy(record, &header, sizeof(header));
	memcpy(record + layout->pc, &sample->ip, 8);
	if (layout->pid)
		memcpy(record + layout->pid, &sample->pid, 4);
	if (layout->tid)
		memcpy(record + layout->tid, &sample->tid, 4);
	if (layout->cpu)
		memcpy(record + layout->cpu, &ring->cpu, 4);
	bytes = put_list(record, bytes, layout->values, sample->values,
			 least(sample->value_count, layout->values_max));
	bytes = put_list(record, bytes, layout->callers, sample->callers,
			 least(sample->caller_count, layout->callers_max));
	builder->end = builder->at + bytes;
	builder->at = (builder->end + 7u) & ~7u;
	packet->record_count++;
	ring->last_clock = clock;
}

/*
 * Does a record need a new packet? It does if it is of another thread, if there is no room, or if
 * its clock is too far from the last one for 32 bits.
 */
static int is_apart(const struct cpu_ring *ring, const struct builder *builder, uint32_t pid,
		    uint32_t tid, uint32_t max_bytes, uint64_t clock)
{
	const struct pem_packet *packet = (const struct pem_packet *)builder->bytes;

	return !packet->record_count || packet->pid != pid || packet->tid != tid ||
	       builder->at + max_bytes > sizeof(builder->bytes) ||
	       clock - ring->last_clock > UINT32_MAX / 2;
}

/* One CPU's records on their way into packets. */
struct draining {
	struct sampler *sampler;
	struct cpu_ring *ring;
	const struct pem_source_sink *sink;
	struct builder builder;
	int result; /* the first -errno of the sink */
};

/* Make room for a record. Returns its clock. */
static uint64_t make_room(struct draining *d, uint32_t pid, uint32_t tid, uint64_t time_ns,
			  uint32_t max_bytes)
{
	uint64_t clock = d->sink->clock_at(d->sink->arg, time_ns);
	int rc;

	if (clock < d->ring->last_clock)
		clock = d->ring->last_clock;
	if (!is_apart(d->ring, &d->builder, pid, tid, max_bytes, clock))
		return clock;
	rc = flush(d->ring, &d->builder, d->sink);
	d->result = d->result ? d->result : rc;
	begin(d->ring, &d->builder, pid, tid, clock);
	return clock;
}

static void take_sample(struct draining *d, const struct ring_sample *sample)
{
	uint64_t clock = make_room(d, sample->pid, sample->tid, sample->time_ns,
				   d->sampler->event->max_bytes);

	append(d->sampler, d->ring, &d->builder, sample, clock);
	d->sampler->samples++;
}

static void take_map(struct draining *d, const struct ring_map *map)
{
	struct pem_packet *packet = (struct pem_packet *)d->builder.bytes;
	struct pem_record_header header = {.event_id = d->sampler->map_event->id};
	uint64_t clock = make_room(d, map->pid, map->tid, map->time_ns, MAP_RECORD_BYTES_MAX);
	uint8_t *record = (uint8_t *)d->builder.bytes + d->builder.at;

	header.clock_low = (uint32_t)clock;
	memcpy(record, &header, sizeof(header));
	d->builder.end = d->builder.at + (uint32_t)map__put(&d->sampler->map_layout, map, record);
	d->builder.at = (d->builder.end + 7u) & ~7u;
	packet->record_count++;
	d->ring->last_clock = clock;
	d->sampler->maps++;
}

static void take_present(void *arg, const struct ring_map *map)
{
	struct ring_map now = *map;
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	now.time_ns = (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
	take_map(arg, &now);
}

static int drain_cpu(struct sampler *sampler, struct cpu_ring *ring,
		     const struct pem_source_sink *sink, int log, int log_maps)
{
	struct draining d; /* its packet is filled from begin() on */
	/*
	 * linux: pairs with the kernel's store of data_head after the records below it After the
	 * records before it.
	 */
	uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	struct ring_sample sample;
	int rc;

	d.sampler = sampler;
	d.ring = ring;
	d.sink = sink;
	d.result = 0;
	((struct pem_packet *)d.builder.bytes)->record_count = 0;
	while ((rc = ring__next(&ring->ring, head, &sample)) > 0) {
		if (rc == RING_MAP && log_maps)
			take_map(&d, &ring->ring.map);
		else if (rc == RING_SAMPLE && log)
			take_sample(&d, &sample);
	}
	d.result = d.result ? d.result : rc;
	if (log_maps && sampler->tells_present) {
		sampler->tells_present = 0;
		maps__each(sampler->pid, take_present, &d);
	}
	rc = flush(ring, &d.builder, sink);
	/*
	 * linux: pairs with the kernel's load of data_tail before it overwrites Before it
	 * overwrites what was read.
	 */
	__atomic_store_n(&ring->page->data_tail, ring->ring.tail, __ATOMIC_RELEASE);
	return d.result ? d.result : rc;
}

int sampler__drain(struct sampler *sampler, const struct pem_source_sink *sink, int log,
		   int log_maps, int final)
{
	int rc, result = 0;
	unsigned i;

	for (i = 0; i < sampler->ring_count; i++) {
		if (final &&
		    ioctl(sampler->rings[i].fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP))
			result = result ? result : -errno;
		rc = drain_cpu(sampler, &sampler->rings[i], sink, log, log_maps);
		result = result ? result : rc;
	}
	return result;
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

void sampler__close(struct sampler *sampler)
{
	unsigned i, k;

	if (!sampler)
		return;
	for (i = 0; i < sampler->ring_count; i++) {
		struct cpu_ring *ring = &sampler->rings[i];

		if (ring->page != MAP_FAILED)
			munmap(ring->page, ring->map_bytes);
		for (k = 0; k < ring->member_count; k++)
			close(ring->members[k]);
		if (ring->fd >= 0)
			close(ring->fd);
	}
	free(sampler);
}
