/* SPDX-License-Identifier: MIT */
/* perfetto_fields.h - fields of a record as annotations of a Perfetto event */
#ifndef PEM_VIZ_EXPORT_PERFETTO_FIELDS_H
#define PEM_VIZ_EXPORT_PERFETTO_FIELDS_H

#include "perfetto.pb-c.h"
#include "perfetto_arena.h"

#include <pem/trace.h>

#define PEM_PERFETTO_WORDS_BYTES 256u /* of the arena, for the labels of a field */

/*
 * Add all fields except number skip as annotations of the event. They lie in the arena and in the
 * record. Returns 0 or -ENOMEM: the arena is full.
 */
int pem_perfetto__annotate(struct pem_arena *arena, Perfetto__Protos__TrackEvent *e,
			   const struct pem_record *record, int skip);

#endif
