/* SPDX-License-Identifier: MIT */
/*
 * html_data.h - a trace reduced to the data of one HTML page: bins for each event and process, and
 * phases
 *
 * Memory and page size are bounded for every trace. What did not fit is counted.
 */
#ifndef PEM_HTML_DATA_H
#define PEM_HTML_DATA_H

#include "betweens.h"
#include "html_lanes.h"
#include "html_tree.h"
#include "samples.h"

#include <pem/export.h>

#include <stdio.h>

#define PEM_HTML_BINS_MAX 4000u
#define PEM_HTML_PROCESSES_MAX 24u
#define PEM_HTML_PHASES_MAX 5000u
#define PEM_HTML_STACKS_MAX 20000u /* nodes of the tree of samples */
#define PEM_HTML_NAME_BYTES 64u
/* Used as a process: all those without a series of their own. */
#define PEM_HTML_OTHERS 0xffffffffu

/* Times between events are kept of so many metrics, and of so many processes in all: 25 MB. */
#define PEM_HTML_BETWEENS_MAX 256u
/* A metric's tables: one for each process, and one for those for which there was no room. */
#define PEM_HTML_BETWEEN_TABLES (PEM_HTML_PROCESSES_MAX + 2)

struct pem_html_phase {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t pid; /* 0: the phase belongs to the whole run */
	uint32_t process; /* pem_html_number of pid's */
	uint32_t tid;
	uint32_t is_open; /* its end is unknown, or not in the trace */
	char name[PEM_HTML_NAME_BYTES];
};

/* The longest phases are kept. */
struct pem_html_phases {
	struct pem_html_phase *kept;
	uint32_t kept_count;
	/* Not 0 once phases were left out: shorter phases are then left out at once. */
	uint64_t shortest_ns;
	uint64_t left_out;
	uint64_t unmatched; /* ends without a begin */
};

/* The records of one event in one process over time. */
struct pem_html_series {
	const struct pem_event *event;
	uint32_t process; /* index of the process */
	uint64_t count;
	uint64_t *bins; /* records in each bin */
	/* For a counter: growth in each bin. For a gauge: sum in each bin. Else NULL. */
	double *values;
	/* Values of the event's fields: coarse bins of each one after another. NULL: none. */
	struct pem_html_cell *fields;
};

struct pem_html_process {
	uint32_t number; /* pem_html_number; PEM_HTML_OTHERS: all other processes */
	uint64_t count;
};

/* The number of a process in a page: that of the pass + 1. 0: it is unknown, or there is none. */
static inline uint32_t pem_html_number(const struct pem_pass_process *process)
{
	return process ? process->number + 1 : 0;
}

struct pem_html_pairs;
struct pem_html_counters;

struct pem_html_data {
	uint64_t span_ns;
	uint64_t bin_ns;
	uint32_t bin_count;
	uint64_t record_count;
	uint64_t damaged; /* packets with a part that could not be read */
	struct pem_error damage; /* the first error, or "" */
	uint64_t bad_values; /* values that are not finite, and counters that went backwards */
	/* Sorted by event in the order of first records, then by process. */
	struct pem_html_series *series;
	size_t series_count;
	struct pem_html_process processes[PEM_HTML_PROCESSES_MAX + 1];
	uint32_t process_count;
	uint32_t merged_count; /* processes that PEM_HTML_OTHERS stands for */
	struct pem_html_phases phases;
	/* Intervals, lanes and fields have coarse bins: two of the others. */
	uint32_t coarse_count;
	uint64_t coarse_ns;
	struct pem_html_tree tree;
	struct pem_html_lanes lanes;
	uint64_t series_without_fields; /* memory did not go so far */
	struct pem_pass *pass; /* owns the threads and files of lanes */
	struct pem_samples samples, allocations; /* by process and coarse bin */
	struct pem_html_pairs *pairs;
	struct pem_html_counters *counters;
	struct pem_betweens *betweens;
	/*
	 * Times between events: for each metric of the model PEM_HTML_BETWEEN_TABLES tables of
	 * coarse bins, by the time of the second event. NULL: there are none.
	 */
	struct pem_html_cell **between_cells;
	size_t between_count; /* of between_cells */
	size_t between_used; /* tables of one process */
	const struct pem_record *record; /* that is being added */
	uint32_t process; /* index of its process */
};

/*
 * Read the whole trace twice, from its start. Damaged parts are skipped and counted. Returns 0, or
 * -errno with error set: -ENOMEM; -E2BIG if there are more kinds of events than a page can hold; or
 * an error of the reader. data is valid in each case; pem_html_data__free empties it.
 */
int pem_html_data__read(struct pem_html_data *data, struct pem_trace *trace,
			const struct pem_export_options *options, struct pem_error *error);
void pem_html_data__free(struct pem_html_data *data);

/* --- html_phases.c --- */

int pem_html_phases__init(struct pem_html_phases *phases);
void pem_html_phases__free(struct pem_html_phases *phases);
/* Add a phase that ended. record: that ended it; NULL: none did. */
void pem_html_phases__add(struct pem_html_phases *phases, const struct pem_ended *ended,
			  const struct pem_record *record);
/* Keep the longest. Sorts phases by begin, longer ones first. */
void pem_html_phases__finish(struct pem_html_phases *phases);

/* --- html_fields.c --- */

/* The fields of an event that are quantities: count them, or find the nth's index. */
uint32_t pem_html_fields__count(const struct pem_event *event);
uint32_t pem_html_fields__index(const struct pem_event *event, uint32_t n);
/* Make room for the values of each field of each series, as far as memory goes. 0 or -ENOMEM. */
int pem_html_fields__make(struct pem_html_data *data);
void pem_html_fields__add(struct pem_html_data *data, struct pem_html_series *series,
			  const struct pem_record *record);
/* How many bins of fields are one on the page. */
uint32_t pem_html_fields__fold(const struct pem_html_data *data);

/* --- html_samples.c --- */

/* Write "samples":{...}, and the same of allocations. */
void pem_html_samples__write(FILE *out, const struct pem_html_data *data);

/* --- html_counters.c --- */

struct pem_html_counters *pem_html_counters__new(void);
void pem_html_counters__free(struct pem_html_counters *counters);
/*
 * Compute how much the counter in a record grew since its last record, and when that was. One
 * counter is: event, process, thread, cpu, stream. Returns 1 with *growth and *since_ns set; 0 for
 * its first record; -EINVAL if it went backwards or is not a number.
 */
int pem_html_counters__step(struct pem_html_counters *counters, const struct pem_record *record,
			    const struct pem_around *around, unsigned field, double *growth,
			    uint64_t *since_ns);

/* --- html_write.c --- */

/* Write the data of the page as one JSON object. Errors show in ferror(out). */
void pem_html__write(FILE *out, const struct pem_html_data *data, struct pem_trace *trace,
		     const struct pem_export_options *options);

#endif
