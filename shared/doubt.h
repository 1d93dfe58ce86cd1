/* SPDX-License-Identifier: MIT */
/*
 * doubt.h - until when records may be missing, as far as a reader of a trace knows by now
 *
 * Between two records of which the first lies before that time, others may have been lost.
 */
#ifndef PEM_SHARED_DOUBT_H
#define PEM_SHARED_DOUBT_H

#include <pem/trace.h>

/* Programs, the kernel and counters lose records each by themselves. */
enum pem_doubt_source {
	PEM_DOUBT_PROGRAMS,
	PEM_DOUBT_KERNEL,
	PEM_DOUBT_COUNTERS,
	PEM_DOUBT_SOURCES
};

/* All zero: nothing was lost. */
struct pem_doubt {
	size_t losses; /* that were taken */
	uint64_t until_ns[PEM_DOUBT_SOURCES];
};

/* source: of a record or a loss, enum pem_packet_source. */
static inline enum pem_doubt_source pem_doubt__source(uint32_t source)
{
	if (source == PEM_PACKET_USER)
		return PEM_DOUBT_PROGRAMS;
	return source == PEM_PACKET_COUNTER ? PEM_DOUBT_COUNTERS : PEM_DOUBT_KERNEL;
}

/* Take the losses that became known with the last record. */
static inline void pem_doubt__note(struct pem_doubt *doubt, const struct pem_trace *trace)
{
	struct pem_trace_loss loss = {.size = sizeof(loss)};
	size_t count = pem_trace__loss_count(trace);

	for (; doubt->losses < count; doubt->losses++) {
		uint64_t *until_ns;

		if (pem_trace__loss(trace, doubt->losses, &loss) < 0)
			continue;
		until_ns = &doubt->until_ns[pem_doubt__source(loss.source)];
		if (loss.end_ns != UINT64_MAX && loss.end_ns > *until_ns)
			*until_ns = loss.end_ns;
	}
}

#endif
