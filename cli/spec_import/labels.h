// SPDX-License-Identifier: MIT
/*
 * labels.h - the names of values that an import finds: <enum> and <flags>, each set of labels
 * printed once
 */
#ifndef PEM_CLI_SPEC_IMPORT_LABELS_H
#define PEM_CLI_SPEC_IMPORT_LABELS_H

#include "import.h"

struct import_btf;

/* Set out, where the XML of the sets is printed. All other members are zero at first. */
struct import_sets {
	FILE *out;
	struct cli_names names;
	char **texts; /* element and labels of each set, by the index of its name */
	size_t count, capacity;
};

/*
 * Find or make the set with exactly these labels. labels: XML lines. element: "enum" or "flags". A
 * new set is named after field. Returns its name, valid until import_sets__free. NULL: no memory.
 */
const char *import_sets__name(struct import_sets *sets, const char *element, const char *field,
			      const char *labels);
void import_sets__free(struct import_sets *sets);
/*
 * Print a label. text is changed to a name that is not in taken. value is decimal. Returns 0 or
 * -ENOMEM.
 */
int import_put_label(FILE *out, struct cli_names *taken, const char *text, const char *value);

/*
 * Print the attribute " enum='...'" or " flags='...'" for a field, from __print_symbolic or
 * __print_flags in a tracepoint's print format. Prints "" if the format names no values, or unknown
 * ones. Returns 0 or -ENOMEM.
 */
int import_print_labels(struct import_sets *sets, struct import_btf *btf, const char *format,
			const char *field, size_t size, bool is_signed, char *attribute,
			size_t bytes);

#endif
