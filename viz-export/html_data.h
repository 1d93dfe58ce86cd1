/* SPDX-License-Identifier: MIT */
/*
 * html_data.h - a trace boiled down to what one page can hold: bins per event and process, and
 * phases
 *
 * Memory and page size are bounded whatever the trace says; what did not fit is counted.
 */
#ifndef PEM_HTML_DATA_H
#define PEM_HTML_DATA_H

#include <pem/export.h>

#include <stdio.h>

#define PEM_HTML_BINS_MAX 4000u
#define PEM_HTML_PROCESSES_MAX 24u
#define PEM_HTML_PHASES_MAX 5000u
#define PEM_HTML_NAME_BYTES 64u
/* Stands for all processes that have no series of their own. */
#define PEM_HTML_OTHERS 0xffffffffu

struct pem_html_phase {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t pid; /* 0: of the whole run */
	uint32_t tid;
	uint32_t is_open; /* the trace ended first */
	char name[PEM_HTML_NAME_BYTES];
};

struct pem_intervals;

/* Phases kept are the longest ones; those begun and not yet ended are open. */
struct pem_html_phases {
	struct pem_html_phase *kept;
	struct pem_intervals *open; /* their data: struct pem_html_phase */
	uint32_t kept_count;
	uint64_t shortest_ns; /* once some were left out: shorter ones are left out at once */
	uint64_t left_out;
	uint64_t unmatched; /* ends without a beginning */
};

/* One event of one process over time. */
struct pem_html_series {
	const struct pem_event *event;
	uint32_t process; /* index */
	uint64_t count;
	uint64_t *bins; /* records in each bin */
	double *values; /* counter: growth in each bin; gauge: sum in each bin; else NULL */
};

struct pem_html_process {
	uint32_t pid; /* PEM_HTML_OTHERS: all the rest */
	uint64_t count;
};

struct pem_html_pairs;
struct pem_html_counters;

struct pem_html_data {
	uint64_t span_ns;
	uint64_t bin_ns;
	uint32_t bin_count;
	uint64_t record_count;
	uint64_t damaged; /* packets that could not be read to their end */
	struct pem_error damage; /* what was wrong with the first, or "" */
	uint64_t bad_values; /* not a finite number, or a counter that went backwards */
	struct pem_html_series *series; /* by event as first met, then by process */
	size_t series_count;
	struct pem_html_process processes[PEM_HTML_PROCESSES_MAX + 1];
	uint32_t process_count;
	uint32_t merged_count; /* processes behind PEM_HTML_OTHERS */
	struct pem_html_phases phases;
	struct pem_html_pairs *pairs;
	struct pem_html_counters *counters;
};

/*
 * Read the whole trace twice, from its start; what is damaged is passed over and counted. 0, or
 * -errno with error set: -ENOMEM, -E2BIG (more kinds of events than a page can hold), or the
 * reader's own. data is valid after either; pem_html_data__free empties it.
 */
int pem_html_data__read(struct pem_html_data *data, struct pem_trace *trace,
			const struct pem_export_options *options, struct pem_error *error);
void pem_html_data__free(struct pem_html_data *data);

/* --- html_phases.c --- */

int pem_html_phases__init(struct pem_html_phases *phases);
void pem_html_phases__free(struct pem_html_phases *phases);
/* A record whose event means interval-begin or interval-end. 0 or -ENOMEM. */
int pem_html_phases__add(struct pem_html_phases *phases, const struct pem_record *record);
/* End of the trace: what is open ends here. Sorts by beginning, longer first. */
void pem_html_phases__finish(struct pem_html_phases *phases, uint64_t end_ns);

/* --- html_counters.c --- */

struct pem_html_counters *pem_html_counters__new(void);
void pem_html_counters__free(struct pem_html_counters *counters);
/*
 * How much the counter in a record grew since the last record of the same counter (event, process,
 * thread, cpu, stream) and when that was. 1: *growth and *since_ns set; 0: first seen; -EINVAL:
 * went backwards or is no number.
 */
int pem_html_counters__step(struct pem_html_counters *counters, const struct pem_record *record,
			    unsigned field, double *growth, uint64_t *since_ns);

/* --- html_write.c --- */

/* Write what the page needs as one JSON object; errors show in ferror(out). */
void pem_html__write(FILE *out, const struct pem_html_data *data, struct pem_trace *trace,
		     const struct pem_export_options *options);

#endif
