/* SPDX-License-Identifier: MIT */
/*
 * intervals.h - matches records that begin and end intervals into pairs
 *
 * An end record closes the latest open interval of its key (pem_record__key) and name. If there is
 * none, and the event has a role 'name' and no key, it closes the latest interval of its name in
 * any thread, because `pem mark begin` and `pem mark end` are two processes.
 *
 * Not here: what the caller keeps of an interval, and what it does with a pair.
 */
#ifndef PEM_SHARED_INTERVALS_H
#define PEM_SHARED_INTERVALS_H

#include <pem/trace.h>

/* Maximum of open intervals. A trace may begin intervals without end. */
#define PEM_INTERVALS_OPEN_MAX 4096u

/*
 * Intervals that have begun and not ended. Not thread-safe. The events of its records are valid as
 * long as the set.
 */
struct pem_intervals;

/* Make an empty set of intervals. NULL: no memory. */
struct pem_intervals *pem_intervals__new(void);
/* Free the set, but not the callers' data of open intervals. intervals may be NULL. */
void pem_intervals__free(struct pem_intervals *intervals);

/*
 * The name of the interval that a record begins or ends: the text of the field with role 'name'. If
 * that is missing or empty, it is the last word of the event's group: 'Work' of 'APP::Shop::Work'.
 * Valid as long as the record.
 */
const char *pem_interval__name(const struct pem_record *record);

/*
 * Open an interval with a record whose event means interval-begin. data belongs to the caller and
 * is not NULL. Returns NULL. If PEM_INTERVALS_OPEN_MAX intervals are open, the oldest of them is
 * forgotten, because it most likely never ends; its data is returned. If the event's source is
 * 'proc', and the interval is open already, data is returned.
 */
void *pem_intervals__begin(struct pem_intervals *intervals, const struct pem_record *record,
			   void *data);
/*
 * Close the interval that a record ends. The record's event means interval-end. Returns the
 * interval's data, or NULL if the record ends none.
 */
void *pem_intervals__end(struct pem_intervals *intervals, const struct pem_record *record);
/* Close the interval that began last. Returns its data, or NULL if none is open. */
void *pem_intervals__take(struct pem_intervals *intervals);

#endif
