/* SPDX-License-Identifier: MIT */
/*
 * record.h - what the parts of pem record share
 */
#ifndef PEM_CLI_RECORD_H
#define PEM_CLI_RECORD_H

#include "cli.h"

struct record_end {
	struct pem_session *session;
	const struct cli_patterns *patterns;
	const char *program; /* file of the command */
	size_t known; /* events in the session's model before the command ran */
	/* A part could not be written to disk, and this was printed. */
	bool not_written;
};

/*
 * Print what could not be recorded, what was lost, and which events were asked for but never
 * raised.
 */
void record_end__say(const struct record_end *end, const struct pem_trace *trace);

/*
 * Name the code of a trace that was just recorded, and keep the names with it (trace.c). A failure
 * is printed: the trace is whole without names. It changes the environment, which no other thread
 * may use then.
 */
void cli_trace__keep_names(const char *directory);
/* The same, and open the trace. NULL with errno and error. */
struct pem_trace *cli_trace__read_back(const char *directory, struct pem_error *error);

/* Codes of options that record_buffers.c parses; those of attach.h begin at 512. */
enum { RECORD_BUFFER = 768, RECORD_CLOCK, RECORD_DRAIN_THREADS, RECORD_COMPRESS };

/* Parse such an option's argument, in optarg. Returns a status. */
int record_buffers__parse(const struct cli_verb *verb, int option,
			  struct pem_session_options *session);
/* Parse the argument of --pages, "100ms,2M" or "1s", in optarg. Returns a status. */
int record_samples__parse_pages(const struct cli_verb *verb, uint32_t *interval_us,
				uint64_t *region_bytes);
/* Parse the argument of -F, samples a second, in optarg. Returns a status. */
int record_samples__parse_rate(const struct cli_verb *verb, uint32_t *rate_hz);
/* Ask for samples of data, and for what pem report needs to name them. */
void record_samples__take_data(struct cli_patterns *patterns);

#endif
