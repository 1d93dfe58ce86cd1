/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flight_context.h - what records that were pushed out of a flight recorder tell of those that are
 * left: the thread that each CPU runs, and what processes are called
 */
#ifndef PEM_FLIGHT_CONTEXT_H
#define PEM_FLIGHT_CONTEXT_H

struct pem_trace_writer;

struct pem_flight_context;

struct pem_flight_context *pem_flight_context__new(void);
void pem_flight_context__free(struct pem_flight_context *context);

/*
 * A record of a source is pushed out. A switch of threads is kept until the next one on its CPU is.
 * Returns the event of the record that is lost by that, or NULL.
 */
const struct pem_event *
pem_flight_context__learn(struct pem_flight_context *context, const char *stream,
			  const struct pem_packet *packet, const struct pem_event *event,
			  const uint8_t *record, uint32_t bytes, uint64_t clock);
/* Begin a trace's streams with the switches, and let it know the names. */
void pem_flight_context__write(const struct pem_flight_context *context,
			       struct pem_trace_writer *writer);

#endif
