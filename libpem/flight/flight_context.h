/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flight_context.h - context that pushed-out records of a flight recorder told: the thread that
 * each CPU runs, and names of processes. The records that are left need it.
 */
#ifndef PEM_FLIGHT_CONTEXT_H
#define PEM_FLIGHT_CONTEXT_H

struct pem_trace_writer;

struct pem_flight_context;

struct pem_flight_context *pem_flight_context__new(void);
void pem_flight_context__free(struct pem_flight_context *context);

/*
 * Learn from a record of a source that is pushed out. A switch of threads is kept until the next
 * switch on its CPU is pushed out. Returns the event of the record that is lost by this call, or
 * NULL.
 */
const struct pem_event *
pem_flight_context__learn(struct pem_flight_context *context, const char *stream,
			  const struct pem_packet *packet, const struct pem_event *event,
			  const uint8_t *record, uint32_t bytes, uint64_t clock);
/* Write the kept switches at the beginning of a trace's streams, and the names to its accounts. */
void pem_flight_context__write(const struct pem_flight_context *context,
			       struct pem_trace_writer *writer);

#endif
