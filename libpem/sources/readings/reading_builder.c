// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * reading_builder.c - packets of counter readings, laid out as abi.h says
 */
#include "reading_builder.h"

#include <string.h>

int reading_builder__flush(struct reading_builder *builder, uint64_t clock,
			   const struct pem_source_sink *sink, uint64_t *refused)
{
	struct pem_packet *packet = (struct pem_packet *)builder->bytes;
	uint64_t records = packet->record_count;
	int rc;

	if (!records)
		return 0;
	packet->timestamp_end = clock;
	packet->content_size = (uint64_t)builder->end * 8;
	packet->events_discarded = *refused;
	rc = sink->write(sink->arg, "c_0", packet, builder->end);
	if (rc < 0)
		*refused += records;
	packet->record_count = 0;
	return rc;
}

void reading_builder__init(struct reading_builder *builder)
{
	((struct pem_packet *)builder->bytes)->record_count = 0;
}

static void begin(struct reading_builder *builder, uint32_t pid, uint64_t clock)
{
	struct pem_packet *packet = (struct pem_packet *)builder->bytes;

	memset(packet, 0, sizeof(*packet));
	packet->timestamp_begin = clock;
	packet->pid = pid;
	packet->cpu = PEM_NO_CPU;
	packet->source = PEM_PACKET_COUNTER;
	builder->at = builder->end = PEM_PACKET_HEADER_BYTES;
}

static void append(struct reading_builder *builder, const struct counter_reading *reading)
{
	const struct pem_event *event = reading->event;
	uint8_t *record = (uint8_t *)builder->bytes + builder->at;
	struct pem_record_header header = {.clock_low = (uint32_t)reading->clock,
					   .event_id = event->id};

	memset(record, 0, event->max_bytes);
	memcpy(record, &header, sizeof(header));
	memcpy(record + reading->value_offset, &reading->value, sizeof(reading->value));
	builder->end = builder->at + event->fixed_bytes;
	builder->at = (builder->end + 7u) & ~7u;
	((struct pem_packet *)builder->bytes)->record_count++;
}

int reading_builder__put(struct reading_builder *builder, const struct counter_reading *reading,
			 const struct pem_source_sink *sink, uint64_t *refused)
{
	const struct pem_packet *packet = (const struct pem_packet *)builder->bytes;
	int rc = 0;

	if (!packet->record_count || packet->pid != reading->pid ||
	    builder->at + reading->event->max_bytes > sizeof(builder->bytes)) {
		rc = reading_builder__flush(builder, reading->clock, sink, refused);
		begin(builder, reading->pid, reading->clock);
	}
	append(builder, reading);
	return rc;
}
