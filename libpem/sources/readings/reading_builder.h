/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* reading_builder.h - packets of counter readings, which sources of counters write */
#ifndef PEM_SOURCES_READING_BUILDER_H
#define PEM_SOURCES_READING_BUILDER_H

#include "source.h"

#define PACKET_RECORDS_BYTES 4096u

struct reading_builder {
	uint64_t bytes[(PEM_PACKET_HEADER_BYTES + PACKET_RECORDS_BYTES) / 8]; /* aligned */
	uint32_t at, end; /* at: where the next record begins; end: where the last one ended */
};

/* Begin a packet about a process. pid 0 means the whole machine. */
void reading_builder__begin(struct reading_builder *builder, uint32_t pid, uint64_t clock);
/*
 * Add a record with one value at value_offset. The packet must have room for the event's max_bytes.
 */
void reading_builder__append(struct reading_builder *builder, const struct pem_event *event,
			     uint32_t value_offset, uint64_t value, uint64_t clock);
/*
 * Give the packet to the sink if it has records. Records that the sink refuses are added to
 * *refused. Returns 0 or -errno.
 */
int reading_builder__flush(struct reading_builder *builder, uint64_t clock,
			   const struct pem_source_sink *sink, uint64_t *refused);

#endif
