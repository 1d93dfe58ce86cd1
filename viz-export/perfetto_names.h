/* SPDX-License-Identifier: MIT */
/* perfetto_names.h - what slices are called whose events have no text of role 'name' */
#ifndef PEM_VIZ_EXPORT_PERFETTO_NAMES_H
#define PEM_VIZ_EXPORT_PERFETTO_NAMES_H

#include <pem/trace.h>

#include <stdbool.h>

/* All zero at first. */
struct pem_slice_names {
	/* The last event that ended a slice, and whether a record begins such slices by name. */
	const struct pem_event *end;
	bool end_is_nameless;
};

/*
 * The name of a slice that a record of the trace begins or ends: of a system call, its name; else
 * the event's class. NULL: an end of slices that have names, of which its own record has none.
 * Readers of Perfetto's format then end the innermost slice; with another name they would end none.
 * Valid as long as the trace, and not to be changed: messages of protobuf-c have no const.
 */
char *pem_slice_names__of(struct pem_slice_names *names, const struct pem_trace *trace,
			  const struct pem_record *record);

#endif
