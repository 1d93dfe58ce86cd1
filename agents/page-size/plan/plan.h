/* SPDX-License-Identifier: MIT */
/*
 * plan.h - from a profile to a choice: which sites get large pages, what that saves, what it needs
 *
 *	group.c		allocation contexts of a profile -> the sites that are told apart
 *	plan.c		sites and references -> the model -> a choice within the budget
 *	cost.c		the time of a mapping
 *	select.c	the choice, also of parts of sites
 *	text.c		a site of a plan <-> the text of its directive
 *
 * Times are of the whole observed run, simulated. Functions return 0, or -errno with error. Nothing
 * here is measured, and nothing blocks but for reading the profile.
 */
#ifndef PAGE_PLAN_H
#define PAGE_PLAN_H

#include "calibrate/calibrate.h"
#include "model/model.h"
#include "profile/profile.h"

#define PLAN_POINTS_MAX 16u
#define PLAN_NAME_BYTES 160u

struct plan_site {
	struct page_site site; /* with as many frames as tell it from others */
	char name[PLAN_NAME_BYTES]; /* for people; "" until somebody fills it in */
	uint64_t bytes; /* that it asked for, or its ranges where that is unknown */
	double share; /* of all references, 0 to 1 */
	double chained; /* share of its references that the program waits for */
	uint64_t stores; /* of the references that were kept */
	uint64_t calls; /* blocks that it had in all */
	/* Of a site of several frames: blocks of all who share its first one, itself among them. */
	uint64_t wrapped_calls;
	const char *refusal; /* why it can't have large pages; NULL: it can */
	double walks; /* with small pages: its share of all page walks, 0 to 1 */
	uint32_t size; /* chosen, as an index into page_geometry.shifts */
	bool in_part; /* large pages for some of its memory only */
	uint64_t large_bytes; /* that the choice gives it */
	double saved_ns; /* if it alone had large pages, of the size that saves most */
	uint32_t alone; /* this size, as an index into page_geometry.shifts */
	double part_ns; /* of the choice: what is lost without it */
	const char *reason; /* why it was chosen, or not */
};

/* The best choice within a number of bytes of large pages. */
struct plan_point {
	uint64_t bytes;
	double saved_ns, error_ns; /* error: standard */
};

struct page_plan {
	struct page_profile_summary summary;
	struct page_calibration calibration;
	uint64_t budget_bytes;
	uint32_t site_count;
	/* The hottest first; the last one stands for all that is not told apart: it stays small. */
	struct plan_site sites[PAGE_SITES_MAX];
	struct page_sites model_sites;
	struct page_model *model;
	double scale; /* references of the program for one that was kept */
	/* With small pages: misses of TLBs and first touches; and its standard error by sampling.
	 */
	double small_ns, small_error_ns;
	double run_ns; /* with small pages: the whole run, estimated from its instructions */
	double saved_ns, error_ns; /* by the choice */
	/* Misses of the last TLB level for all sizes, with small pages and with the choice. */
	double small_walks, walks;
	uint64_t bytes; /* of large pages that it needs */
	double gain, gain_low, gain_high; /* in % of run_ns, with its 95 % interval */
	struct plan_point points[PLAN_POINTS_MAX]; /* by rising bytes */
	uint32_t point_count;
};

/*
 * Make a plan. budget_bytes: of large pages at most; UINT64_MAX: as many as can be had. progress is
 * called with references read and their number, or is NULL. -ENOMEM, -EBADMSG the profile,
 * -ENODATA it has no reference. *plan is freed by plan__free also after an error.
 */
int plan__make(struct page_plan *plan, struct page_profile *profile,
	       const struct page_calibration *calibration, uint64_t budget_bytes,
	       void (*progress)(uint64_t done, uint64_t total, void *arg), void *arg,
	       struct pem_error *error);
void plan__free(struct page_plan *plan);
/* What a mapping of plan->sites saves against small pages, and its standard error. */
int plan__saved(const struct page_plan *plan, const struct page_mapping *mapping, double *saved_ns,
		double *error_ns);
/* Percent of the run that a saved time is. */
double plan__percent(const struct page_plan *plan, double saved_ns);

/*
 * Tell the sites of a profile apart by as few frames as will do, and choose those that matter:
 * plan->sites, with the rest as the last. index: for each site of the profile, its place there.
 */
int plan__group(struct page_plan *plan, const struct page_profile_site *sites, uint32_t count,
		uint32_t *index);

/* What a directive's text says of a site. */
struct plan_directive {
	uint64_t page_size, bytes;
	uint64_t most; /* bytes of large pages; 0: for all of its memory */
	double share, chained, saved_ms;
	uint32_t source; /* enum profile_source: who observed; 0: unknown */
	char name[PLAN_NAME_BYTES];
};
/* The word for enum profile_source in texts and JSON; "" for one that is none. Static. */
const char *plan_source__word(uint32_t source);
/* As "page_size=2097152 bytes=8388608 ...". write returns its length, or -ENOSPC. */
int plan_directive__write(const struct plan_directive *directive, char *text, size_t bytes);
/* -EBADMSG: the text is no such directive's. */
int plan_directive__read(struct plan_directive *directive, const char *text);

/*
 * Take the parameters off a C++ function's name, in place: "run(int) const" is "run". Of several
 * callers' names one with all its types leaves no room for the next.
 */
void plan_name__shorten(char *name);

#endif
