/* SPDX-License-Identifier: MIT */
/*
 * report.h - what pem-codegen prints for other programs, and for people who check a spec
 */
#ifndef PEM_CODEGEN_REPORT_H
#define PEM_CODEGEN_REPORT_H

#include "backends/backend.h"

/*
 * Print errors and warnings as a JSON array of objects: file, line, column, severity, message. Line
 * or column 0 means unknown.
 */
void pem_print_json(struct pem_spec_set *set, FILE *out);
/* Print one line: the numbers of events, specs, errors and warnings. */
void pem_print_summary(const struct pem_spec_set *set, FILE *out);
/* Print the lines "provider NAME" of all specs and "file NAME" of all generated files. */
void pem_print_names(const struct pem_spec_set *set, const struct pem_output *generated, FILE *out);
/* Print the model of one spec of a set without errors, with its events' locations (pem/event.h).
 */
void pem_print_model(const struct pem_spec_set *set, FILE *out);

#endif
