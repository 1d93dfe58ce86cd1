// SPDX-License-Identifier: MIT
/*
 * labels.h - names of values that an import finds: <enum> and <flags>, each set of labels once
 */
#ifndef PEM_CLI_SPEC_IMPORT_LABELS_H
#define PEM_CLI_SPEC_IMPORT_LABELS_H

#include "import.h"

struct import_btf;

/* Zeroed but for out, where the XML of the sets is printed. */
struct import_sets {
	FILE *out;
	struct cli_names names;
	char **texts; /* element and labels, by the index of the set's name */
	size_t count, capacity;
};

/*
 * The name of the set that holds just these labels, XML lines, in an element "enum" or "flags"; a
 * new one is named after field. Valid until import_sets__free. NULL without memory.
 */
const char *import_sets__name(struct import_sets *sets, const char *element, const char *field,
			      const char *labels);
void import_sets__free(struct import_sets *sets);
/* Print a label. text becomes a name that is not in taken; value is decimal. 0 or -ENOMEM. */
int import_put_label(FILE *out, struct cli_names *taken, const char *text, const char *value);

/*
 * What a tracepoint's print format calls the values of a field, by __print_symbolic or
 * __print_flags: the attribute " enum='...'" or " flags='...'", or "" if it names none, or with
 * values that are not known. 0 or -ENOMEM.
 */
int import_print_labels(struct import_sets *sets, struct import_btf *btf, const char *format,
			const char *field, size_t size, bool is_signed, char *attribute,
			size_t bytes);

#endif
