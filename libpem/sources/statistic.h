/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * statistic.h - a statistic's values from a slot, for the sources that keep cells
 *
 * Not here: reading cells consistently (pem/ring.h), adding up those of CPUs.
 */
#ifndef PEM_SOURCES_STATISTIC_H
#define PEM_SOURCES_STATISTIC_H

#include <pem/abi.h>
#include <pem/event.h>
#include <pem/pem.h>

#include <stdbool.h>

/*
 * Values in the field's own type, from a slot or a sum of cells of this action. What there is none
 * of stays as it was.
 */
static inline void pem_statistic__fill(struct pem_statistic *value, const struct pem_cell *sum,
				       uint64_t action)
{
	uint32_t type = PEM_ACTION_TYPE(action);
	bool is_signed = type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;
	uint64_t flip = is_signed ? 1ULL << 63 : 0;

	value->count = sum->stat_end;
	if (PEM_ACTION_FIELD(action) == PEM_NO_FIELD || !sum->stat_end)
		return;
	value->is_signed = is_signed;
	value->sum = sum->sum;
	value->min = sum->min ^ flip;
	value->max = sum->max ^ flip;
	value->mean =
		(is_signed ? (double)(int64_t)sum->sum : (double)sum->sum) / (double)sum->stat_end;
}

#endif
