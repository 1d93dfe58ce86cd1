/* SPDX-License-Identifier: MIT */
/*
 * fit.h - from measured times to what hits and walks cost
 *
 * Not here: how the times are measured.
 *
 * How long a walk takes depends on how near its tables are: those of some ten MiB stay in the near
 * caches, those of a GiB do not. So the last levels of the geometry may be no TLB: their entries
 * are the lines of the tables of small pages that are near, a hit is a short walk, and
 * walk_latency_ns is that of a long one.
 */
#ifndef PAGE_SIZE_FIT_H
#define PAGE_SIZE_FIT_H

#include "model/model.h"

#define FIT_POINTS_MAX 16u

/* What random accesses to as many bytes take less with large pages than with small ones. */
struct saving {
	double bytes;
	double latency_ns, throughput_ns; /* of accesses that wait, and that overlap */
};

/*
 * Fill the walks of small pages, and add levels of short walks if the savings ask for it. Needs
 * all else of the geometry, the walks of large pages, too. Costs are such that the savings that the
 * geometry predicts are near those that were measured, by least squares of the relative errors.
 */
void fit__walks(struct page_geometry *geometry, const struct saving *savings, size_t count);
/* What accesses take less with large pages, if one in so many instructions goes to random bytes. */
struct sparse_saving {
	double bytes, instructions, ns;
};

/*
 * Fill window_instructions, after all else: savings of overlapping accesses that are predicted with
 * it are near those that were measured, by ratio. 0 if no saving is above 0: then nothing can be
 * told.
 */
void fit__window(struct page_geometry *geometry, const struct sparse_saving *savings, size_t count);
/*
 * What the geometry predicts for random accesses, each to any of the bytes: the mean cost of
 * one. share: of accesses that wait.
 */
double fit__random_ns(const struct page_geometry *geometry, uint32_t size, double bytes,
		      double share);

/* The same where one of so many instructions is such an access, and none waits for another. */
double fit__sparse_ns(const struct page_geometry *geometry, uint32_t size, double bytes,
		      double instructions);

#endif
