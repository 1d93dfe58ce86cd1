/* SPDX-License-Identifier: MIT */
/*
 * report.h - what pem-codegen prints for other programs, and for people who check a spec
 */
#ifndef PEM_CODEGEN_REPORT_H
#define PEM_CODEGEN_REPORT_H

#include "backends/backend.h"

/*
 * Errors and warnings as a JSON array of objects: file, line, column, severity, message; line or
 * column 0: unknown.
 */
void pem_print_json(struct pem_spec_set *set, FILE *out);
/* One line: how many events in how many specs, how many errors and warnings. */
void pem_print_summary(const struct pem_spec_set *set, FILE *out);
/* Lines "provider NAME" and "file NAME", for each of both. */
void pem_print_names(const struct pem_spec_set *set, const struct pem_output *generated, FILE *out);
/*
 * The model of a sound set of one spec, as pem reads it: a line "spec INDEX PLACES BYTES", PLACES
 * lines "ID LINE COLUMN", and BYTES of model text (pem/event.h); cells are parted by tabs.
 */
void pem_print_model(const struct pem_spec_set *set, int index, FILE *out);

#endif
