/* SPDX-License-Identifier: MIT */
/* simulation.h - a TLB that is simulated for one mapping, part of the references after part */
#ifndef PAGE_SIZE_SIMULATION_H
#define PAGE_SIZE_SIMULATION_H

#include "internal.h"

struct simulation;

/*
 * open: the TLB is as the stack distances have it: each level sees every reference, not only the
 * misses of the levels before it, and every pool is LRU. The arguments have been checked. NULL: no
 * memory.
 */
struct simulation *simulation__new(const struct page_geometry *geometry,
				   const struct page_sites *sites,
				   const struct page_mapping *mapping, bool open);
/* Accepts NULL. */
void simulation__free(struct simulation *simulation);
/* 0, or -EINVAL: a site is out of range. */
int simulation__add(struct simulation *simulation, const struct page_reference *references,
		    size_t count);
/* Count from 0 again; pages stay where they are. */
void simulation__forget_counts(struct simulation *simulation);
/* What was counted, of count references. */
void simulation__report(const struct simulation *simulation, const struct page_geometry *geometry,
			const struct page_sites *sites, const struct page_mapping *mapping,
			uint64_t count, struct page_result *result, struct level_hits *hits);

#endif
