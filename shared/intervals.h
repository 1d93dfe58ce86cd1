/* SPDX-License-Identifier: MIT */
/*
 * intervals.h - records that begin and end intervals, matched into pairs
 *
 * An end closes the latest interval that belongs to it (pem_record__key) and has its name. If there
 * is none, and the event has a role 'name' and no key, it closes the latest of its name in any
 * thread: `pem mark begin` and `pem mark end` are two processes.
 *
 * Not here: what the caller keeps of an interval and what it does with a pair.
 */
#ifndef PEM_SHARED_INTERVALS_H
#define PEM_SHARED_INTERVALS_H

#include <pem/trace.h>

/* A trace may begin intervals without end: so many are open at once. */
#define PEM_INTERVALS_OPEN_MAX 4096u

/* Intervals that have begun and not ended. Not thread-safe. */
struct pem_intervals;

/* NULL: no memory. */
struct pem_intervals *pem_intervals__new(void);
/* The callers' data of intervals that are still open is not freed. intervals may be NULL. */
void pem_intervals__free(struct pem_intervals *intervals);

/*
 * The name of the interval that a record begins or ends: the text of its field of role 'name'; if
 * it has none, or an empty one, the last word of the event's group, 'Work' of 'APP::Shop::Work'.
 * Valid as long as the record.
 */
const char *pem_interval__name(const struct pem_record *record);

/*
 * Opens an interval with a record whose event means interval-begin. data is the caller's, and not
 * NULL. Returns NULL; or, where PEM_INTERVALS_OPEN_MAX were open, the data of the one that began
 * first, which is forgotten: it is the likeliest to never end.
 */
void *pem_intervals__begin(struct pem_intervals *intervals, const struct pem_record *record,
			   void *data);
/*
 * Closes the interval that a record ends, whose event means interval-end. Returns the interval's
 * data. NULL: the record ends none.
 */
void *pem_intervals__end(struct pem_intervals *intervals, const struct pem_record *record);
/* Closes the interval that began last. Returns its data. NULL: none is open. */
void *pem_intervals__take(struct pem_intervals *intervals);

#endif
