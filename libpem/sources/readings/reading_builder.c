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

void reading_builder__begin(struct reading_builder *builder, uint32_t pid, uint64_t clock)
{
	struct pem_packet *packet = (struct pem_packet *)builder->bytes;

	memset(packet, 0, sizeof(*packet));
	packet->timestamp_begin = clock;
	packet->pid = pid;
	packet->cpu = PEM_NO_CPU;
	packet->source = PEM_PACKET_COUNTER;
	builder->at = builder->end = PEM_PACKET_HEADER_BYTES;
}

void reading_builder__append(struct reading_builder *builder, const struct pem_event *event,
			     uint32_t value_offset, uint64_t value, uint64_t clock)
{
	uint8_t *record = (uint8_t *)builder->bytes + builder->at;
	struct pem_record_header header = {.clock_low = (uint32_t)clock, .event_id = event->id};

	memset(record, 0, event->max_bytes);
	memcpy(record, &header, sizeof(header));
	memcpy(record + value_offset, &value, sizeof(value));
	builder->end = builder->at + event->fixed_bytes;
	builder->at = (builder->end + 7u) & ~7u;
	((struct pem_packet *)builder->bytes)->record_count++;
}
