/* SPDX-License-Identifier: MIT */
/*
 * path.h - what is known of a part of a critical path (pem/context.h)
 */
#ifndef PEM_SHARED_PATH_H
#define PEM_SHARED_PATH_H

#include <pem/context.h>

#include <stdbool.h>

/* Is it known what the part's time went to? */
static inline bool pem_path_part__is_known(const struct pem_path_part *part)
{
	if (part->state == PEM_THREAD_BLOCKED)
		return part->woken_by != PEM_WOKEN_UNKNOWN;
	return part->state == PEM_THREAD_RUNNING || part->state == PEM_THREAD_RUNNABLE;
}

#endif
