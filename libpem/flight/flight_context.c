/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flight_context.c - threads of CPUs and names of processes, as they are where the records that are
 * left begin (contract: flight_context.h)
 *
 * The reader learns both from records in time order (reader/context.c). So a trace whose beginning
 * was pushed out gets the last switch of each CPU as a record, and names as accounts of processes
 * that raised nothing.
 */
#include "flight/flight.h"
#include "flight/flight_context.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"

#include <stdlib.h>
#include <string.h>

#define CPUS_MAX 8192u
#define SWITCH_BYTES 256u

/* The last switch that was pushed out of a CPU's stream. */
struct kept_switch {
	const struct pem_event *event; /* NULL: none */
	char stream[PEM_STREAM_FILE_BYTES];
	uint64_t clock;
	uint64_t discarded; /* discarded in its stream at that time */
	uint32_t cpu;
	uint32_t bytes;
	uint8_t record[SWITCH_BYTES];
};

struct name {
	uint32_t pid; /* 0: free */
	char text[PEM_NAME_BYTES];
};

struct pem_flight_context {
	struct kept_switch **cpus; /* by the CPU's number; NULL: none yet */
	uint32_t cpu_count;
	uint32_t next_name; /* index of the oldest name */
	struct name names[PEM_FLIGHT_NAMES_MAX];
};

struct pem_flight_context *pem_flight_context__new(void)
{
	return calloc(1, sizeof(struct pem_flight_context));
}

void pem_flight_context__free(struct pem_flight_context *context)
{
	uint32_t i;

	if (!context)
		return;
	for (i = 0; i < context->cpu_count; i++)
		free(context->cpus[i]);
	free(context->cpus);
	free(context);
}

static struct kept_switch *cpu_at(struct pem_flight_context *context, uint32_t cpu)
{
	struct kept_switch **larger;

	if (cpu >= CPUS_MAX)
		return NULL;
	if (cpu >= context->cpu_count) {
		larger = realloc(context->cpus, (cpu + 1) * sizeof(*larger));
		if (!larger)
			return NULL;
		memset(larger + context->cpu_count, 0,
		       (cpu + 1 - context->cpu_count) * sizeof(*larger));
		context->cpus = larger;
		context->cpu_count = cpu + 1;
	}
	if (!context->cpus[cpu])
		context->cpus[cpu] = calloc(1, sizeof(**larger));
	return context->cpus[cpu];
}

static struct name *find_name(struct pem_flight_context *context, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < PEM_FLIGHT_NAMES_MAX; i++) {
		if (context->names[i].pid == pid)
			return &context->names[i];
	}
	return NULL;
}

static void set_name(struct pem_flight_context *context, uint32_t pid, const char *text)
{
	const char *slash = strrchr(text, '/');
	struct name *name = pid ? find_name(context, pid) : NULL;

	if (!pid)
		return;
	if (!name) {
		name = &context->names[context->next_name];
		context->next_name = (context->next_name + 1) % PEM_FLIGHT_NAMES_MAX;
	}
	if (slash)
		text = slash + 1;
	memset(name, 0, sizeof(*name));
	name->pid = pid;
	memcpy(name->text, text, strnlen(text, sizeof(name->text) - 1));
}

static uint32_t value_of(const struct pem_record *record, enum pem_role role)
{
	int field = pem_event__field_by_role(record->event, role);

	return field >= 0 ? (uint32_t)pem_record__u64(record, (unsigned)field) : 0;
}

static void learn_name(struct pem_flight_context *context, const struct pem_record *record)
{
	uint32_t pid = value_of(record, PEM_ROLE_PROCESS), parent;
	const struct name *inherited;
	char text[PEM_NAME_BYTES];
	int field;

	if (record->event->meaning == PEM_MEANS_PROCESS_NAME) {
		field = pem_event__field_by_role(record->event, PEM_ROLE_NAME);
		if (field >= 0)
			set_name(context, pid, pem_record__string(record, (unsigned)field));
		return;
	}
	parent = value_of(record, PEM_ROLE_PARENT);
	inherited = parent && parent != pid ? find_name(context, parent) : NULL;
	if (!inherited)
		return;
	/* set_name may overwrite the inherited name. */
	memcpy(text, inherited->text, sizeof(text));
	set_name(context, pid, text);
}

const struct pem_event *
pem_flight_context__learn(struct pem_flight_context *context, const char *stream,
			  const struct pem_packet *packet, const struct pem_event *event,
			  const uint8_t *data, uint32_t bytes, uint64_t clock)
{
	struct pem_record record = {
		.size = sizeof(record), .event = event, .data = data, .bytes = bytes};
	const struct pem_event *before;
	struct kept_switch *kept;

	if (event->meaning == PEM_MEANS_PROCESS_NAME || event->meaning == PEM_MEANS_THREAD_START)
		learn_name(context, &record);
	if (packet->source != PEM_PACKET_KERNEL || event->meaning != PEM_MEANS_SETS_THREAD ||
	    bytes > SWITCH_BYTES)
		return event;
	kept = cpu_at(context, packet->cpu);
	if (!kept)
		return event;
	before = kept->event;
	kept->event = event;
	strcpy(kept->stream, stream);
	kept->clock = clock;
	kept->discarded = packet->events_discarded;
	kept->cpu = packet->cpu;
	kept->bytes = bytes;
	memcpy(kept->record, data, bytes);
	return before;
}

static void write_switch(const struct kept_switch *kept, struct pem_trace_writer *writer)
{
	struct {
		struct pem_packet header;
		uint8_t record[SWITCH_BYTES];
	} packet = {
		.header = {.timestamp_begin = kept->clock,
			   .timestamp_end = kept->clock,
			   .content_size = ((uint64_t)PEM_PACKET_HEADER_BYTES + kept->bytes) * 8,
			   .events_discarded = kept->discarded,
			   .cpu = kept->cpu,
			   .source = PEM_PACKET_KERNEL,
			   .record_count = 1}};

	memcpy(packet.record, kept->record, kept->bytes);
	/*
	 * A loss makes the reader doubt the packet behind it, too. So an empty packet states the
	 * loss.
	 */
	pem_trace_writer__discarded(writer, kept->stream, kept->discarded, kept->clock);
	pem_trace_writer__packet(writer, kept->stream, &packet.header, sizeof(packet));
}

void pem_flight_context__write(const struct pem_flight_context *context,
			       struct pem_trace_writer *writer)
{
	uint32_t i;

	for (i = 0; i < context->cpu_count; i++) {
		if (context->cpus[i] && context->cpus[i]->event)
			write_switch(context->cpus[i], writer);
	}
	for (i = 0; i < PEM_FLIGHT_NAMES_MAX; i++) {
		if (context->names[i].pid)
			pem_trace_writer__balance(writer, context->names[i].pid,
						  context->names[i].text, 0, NULL, 0);
	}
}
