// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sampler_records.c - records of samples, and of what was mapped, in packets
 *
 * Successive records of one thread share a packet, because a packet belongs to one process and
 * thread.
 */
#include "sampler.h"

#include <errno.h>
#include <string.h>

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

/* The field of a sample of data; 0: it has no such field. */
static uint16_t data_field(const struct pem_event *event, const char *name, enum pem_type type)
{
	unsigned i;

	for (i = 0; i < event->field_count; i++)
		if (is_number(&event->fields[i], type, name, PEM_ROLE_NONE))
			return event->fields[i].offset;
	return 0;
}

/* Returns 0, or -ENOTSUP if some of the fields are missing. */
static int data_layout(const struct pem_event *event, struct sample_layout *layout)
{
	layout->address = data_field(event, "address", PEM_TYPE_UINT64);
	layout->stack_pointer = data_field(event, "stackPointer", PEM_TYPE_UINT64);
	layout->latency = data_field(event, "latency", PEM_TYPE_UINT32);
	layout->origin = data_field(event, "origin", PEM_TYPE_UINT8);
	layout->access = data_field(event, "access", PEM_TYPE_UINT8);
	layout->source = data_field(event, "source", PEM_TYPE_UINT8);
	layout->tlb = data_field(event, "tlb", PEM_TYPE_UINT8);
	return layout->address && layout->stack_pointer && layout->latency && layout->origin &&
			       layout->access && layout->source && layout->tlb
		       ? 0
		       : -ENOTSUP;
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
	if (event->meaning == PEM_MEANS_ACCESS && data_layout(event, &found))
		return -ENOTSUP;
	if (!found.pc || event->max_bytes > PACKET_BYTES - PEM_PACKET_HEADER_BYTES)
		return -ENOTSUP;
	*layout = found;
	return 0;
}

/* Give a filled packet to the sink and empty it. */
int sampler__flush(struct cpu_ring *ring, const struct pem_source_sink *sink)
{
	struct builder *builder = &ring->builder;
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

static void begin(struct cpu_ring *ring, uint32_t pid, uint32_t tid, uint64_t clock)
{
	struct builder *builder = &ring->builder;
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

static void put_data(uint8_t *record, const struct sample_layout *layout,
		     const struct ring_data *data)
{
	memcpy(record + layout->address, &data->address, 8);
	memcpy(record + layout->stack_pointer, &data->stack_pointer, 8);
	memcpy(record + layout->latency, &data->latency, 4);
	record[layout->origin] = data->origin;
	record[layout->access] = data->access;
	record[layout->source] = data->source;
	record[layout->tlb] = data->tlb;
}

static void append(const struct sampler *sampler, struct cpu_ring *ring,
		   const struct ring_sample *sample, uint64_t clock)
{
	struct builder *builder = &ring->builder;
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
	if (layout->address)
		put_data(record, layout, &sample->data);
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
static int is_apart(const struct cpu_ring *ring, uint32_t pid, uint32_t tid, uint32_t max_bytes,
		    uint64_t clock)
{
	const struct builder *builder = &ring->builder;
	const struct pem_packet *packet = (const struct pem_packet *)builder->bytes;

	return !packet->record_count || packet->pid != pid || packet->tid != tid ||
	       builder->at + max_bytes > sizeof(builder->bytes) ||
	       clock - ring->last_clock > UINT32_MAX / 2;
}

/* Make room for a record. *clock becomes the record's. Returns 0 or -errno of the sink. */
static int make_room(struct cpu_ring *ring, const struct pem_source_sink *sink, uint32_t pid,
		     uint32_t tid, uint64_t time_ns, uint32_t max_bytes, uint64_t *clock)
{
	int rc;

	*clock = sink->clock_at(sink->arg, time_ns);
	if (*clock < ring->last_clock)
		*clock = ring->last_clock;
	if (!is_apart(ring, pid, tid, max_bytes, *clock))
		return 0;
	rc = sampler__flush(ring, sink);
	begin(ring, pid, tid, *clock);
	return rc;
}

int sampler__put_sample(struct sampler *sampler, struct cpu_ring *ring,
			const struct pem_source_sink *sink, const struct ring_sample *sample)
{
	uint64_t clock;
	int rc = make_room(ring, sink, sample->pid, sample->tid, sample->time_ns,
			   sampler->event->max_bytes, &clock);

	append(sampler, ring, sample, clock);
	sampler->samples++;
	return rc;
}

int sampler__put_map(struct sampler *sampler, struct cpu_ring *ring,
		     const struct pem_source_sink *sink, const struct ring_map *map)
{
	struct builder *builder = &ring->builder;
	struct pem_packet *packet = (struct pem_packet *)builder->bytes;
	struct pem_record_header header = {.event_id = sampler->map_event->id};
	uint64_t clock;
	int rc = make_room(ring, sink, map->pid, map->tid, map->time_ns, MAP_RECORD_BYTES_MAX,
			   &clock);
	uint8_t *record = (uint8_t *)builder->bytes + builder->at;

	header.clock_low = (uint32_t)clock;
	memcpy(record, &header, sizeof(header));
	builder->end = builder->at + (uint32_t)map__put(&sampler->map_layout, map, record);
	builder->at = (builder->end + 7u) & ~7u;
	packet->record_count++;
	ring->last_clock = clock;
	sampler->maps++;
	return rc;
}
