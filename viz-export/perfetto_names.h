/* SPDX-License-Identifier: MIT */
/*
 * perfetto_names.h - names of slices and of their tracks
 *
 * A slice's own name is pem_interval__name of shared/intervals.h.
 */
#ifndef PEM_VIZ_EXPORT_PERFETTO_NAMES_H
#define PEM_VIZ_EXPORT_PERFETTO_NAMES_H

#include <pem/trace.h>

#include <stdbool.h>

/* All zero at first. */
struct pem_slice_names {
	/* The last event that was asked for, and the answer. */
	const struct pem_event *end;
	bool is_nameless;
};

/*
 * Does an event that ends slices lack the name that their begins have, such as that of a system
 * call? Readers of Perfetto's format end the innermost slice for an end without a name; with
 * another name they would end none.
 */
bool pem_slice_names__is_nameless(struct pem_slice_names *names, const struct pem_trace *trace,
				  const struct pem_event *end);

/* The name of the track of an event's slices: its group without the layer. */
const char *pem_slice_names__track(const struct pem_event *event);

#endif
