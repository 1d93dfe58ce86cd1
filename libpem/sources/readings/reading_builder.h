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

/* A record with one value at value_offset. pid 0 means the whole machine. */
struct counter_reading {
	const struct pem_event *event;
	uint32_t value_offset, pid;
	uint64_t value, clock;
};

/* The builder has no packet. */
void reading_builder__init(struct reading_builder *builder);
/*
 * Add a record. A packet is of one process: that of others, and one without room, is flushed first.
 * Returns 0, or -errno of that; the record is added in any case.
 */
int reading_builder__put(struct reading_builder *builder, const struct counter_reading *reading,
			 const struct pem_source_sink *sink, uint64_t *refused);
/*
 * Give the packet to the sink if it has records. Records that the sink refuses are added to
 * *refused. Returns 0 or -errno.
 */
int reading_builder__flush(struct reading_builder *builder, uint64_t clock,
			   const struct pem_source_sink *sink, uint64_t *refused);

#endif
