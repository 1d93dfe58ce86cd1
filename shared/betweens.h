/* SPDX-License-Identifier: MIT */
/*
 * betweens.h - the metrics of form 'between' that a trace's model declares: times from the last
 * record of one event to the next record of another one, in the same thread
 *
 * Not here: what comes of the times.
 */
#ifndef PEM_SHARED_BETWEENS_H
#define PEM_SHARED_BETWEENS_H

#include <pem/context.h>

/* Where the threads of a trace stand. Not thread-safe. */
struct pem_betweens;

/* NULL: no memory. The trace has to live as long. */
struct pem_betweens *pem_betweens__new(const struct pem_trace *trace);
void pem_betweens__free(struct pem_betweens *betweens);

/*
 * Take the record that the trace or its pass gave last. thread is the record's thread in the pass;
 * NULL: unknown, and the record's numbers tell threads apart. Calls found with each time that ends
 * with the record: the number of the metric in the model, and ns. A time in which records of either
 * event may have been lost is left out. Returns 0, -ENOMEM, or what found returned if that is not 0.
 */
int pem_betweens__record(struct pem_betweens *betweens, const struct pem_record *record,
			 const struct pem_pass_thread *thread,
			 int (*found)(void *arg, size_t metric, uint64_t ns), void *arg);

#endif
