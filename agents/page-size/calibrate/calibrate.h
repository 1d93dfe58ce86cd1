/* SPDX-License-Identifier: MIT */
/*
 * calibrate.h - what the TLBs of this machine hold, and what their misses cost, as measured
 *
 * Nothing is looked up: a hypervisor that backs its guests with small pages breaks the reach of
 * large ones, and says nothing of it.
 */
#ifndef PAGE_CALIBRATE_H
#define PAGE_CALIBRATE_H

#include "model/model.h"

#include <pem/pem.h>

struct page_calibration {
	/*
	 * Times are above those of a hit in the first level. The last level may be no TLB, but the
	 * small pages whose tables are near: fit.h.
	 */
	struct page_geometry geometry;
	/* Of the page sizes of geometry; 0: not measured, or this machine does not have it. */
	double collapse_ns[PAGE_SIZES_MAX]; /* of making a page of small ones (MADV_COLLAPSE) */
	/*
	 * Of the first write to a page after fork. Kernels split a large page and copy a small part
	 * of it: then each other part that is written costs as much as a small page.
	 */
	double copy_ns[PAGE_SIZES_MAX];
	double ns_per_instruction; /* of a loop that waits for no memory */
	uint64_t supply_bytes[PAGE_SIZES_MAX]; /* of such pages that could be had now, about */
	double noise; /* relative spread of the measurements: standard deviation by median */
	double seconds; /* that the calibration took */
};

/*
 * Measure, in less than limit_s seconds (at least 2; 30 will do) unless others take most of the
 * CPU. progress is called with sentences for people, or is NULL. Uses at most 2 GiB of memory, and
 * a quarter of what is free. One thread, pinned to the CPU it is on while it measures; forks.
 * Writes *calibration on success only. Returns 0, or -errno with error: -EINVAL the limit is too
 * short, -ENOMEM, -EAGAIN the machine was too busy for results that agree.
 *
 * Page sizes are 4 KiB and, if the kernel gives them, 2 MiB. What walks cost depends on who else
 * uses the last cache: on a shared machine it changes from minute to minute, by a factor of 3.
 */
int page_calibrate(struct page_calibration *calibration, double limit_s,
		   void (*progress)(const char *sentence, void *arg), void *arg,
		   struct pem_error *error);

/*
 * What else was measured holds for the machine; the supply is that of the moment. Take it anew.
 * Blocks for reading some files of /proc and /sys.
 */
void page_calibration__update_supply(struct page_calibration *calibration);

/*
 * As a JSON object that fits pem_db_machine.facts (2,047 bytes), and back. write returns its
 * length; -ENOSPC; or -EINVAL: page_geometry__check refuses it. read returns 0, or -EBADMSG: it is
 * no calibration, or one that page_geometry__check refuses.
 */
int page_calibration__write(const struct page_calibration *calibration, char *text, size_t bytes);
int page_calibration__read(struct page_calibration *calibration, const char *text);

#endif
