/* SPDX-License-Identifier: MIT */
/*
 * data.h - the data structures that samples of data fell in: what data.c collects and names, and
 * data_print.c prints
 */
#ifndef PEM_CLI_REPORT_DATA_H
#define PEM_CLI_REPORT_DATA_H

#include "report.h"

#include <pem/code.h>

enum data_kind {
	DATA_NONE, /* samples without an address */
	DATA_UNKNOWN, /* nothing is known to lie at the address */
	DATA_HEAP, /* a block of memory, told by who allocated it */
	DATA_VARIABLE,
	DATA_STACK,
	DATA_MAPPING, /* a file, or memory without one */
	DATA_KINDS
};

#define DATA_SOURCES 16u /* more than enum DataSource of spec/hw/data.xml has */

struct data_row {
	enum data_kind kind;
	uint32_t event; /* HEAP: of the allocation */
	/* HEAP: of the call, in code. VARIABLE, MAPPING: of data. */
	uint32_t location;
	uint32_t pid, tid; /* STACK */
	const struct pem_pass_thread *thread; /* STACK; NULL: unknown */
	uint64_t count, loads, stores;
	uint64_t latency_count, latency_sum; /* of samples whose latency was measured */
	uint64_t of_source[DATA_SOURCES]; /* of samples whose source was measured */
};

struct report_data {
	struct pem_code *code; /* names who allocated */
	struct pem_code *data; /* names variables and mappings */
	const struct pem_event *event; /* whose samples were met */
	int address, stack_pointer, latency, access, source; /* fields of it */
	struct data_row *rows;
	size_t count, capacity;
	struct pem_number_map row_at;
	uint64_t samples, measured;
};

#endif
