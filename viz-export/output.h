/* SPDX-License-Identifier: MIT */
/*
 * output.h - an exporter's output: a file that is either complete at its path or does not exist
 *
 * Not here: formats.
 */
#ifndef PEM_EXPORT_OUTPUT_H
#define PEM_EXPORT_OUTPUT_H

#include <pem/model.h>

#include <stdio.h>

struct pem_output {
	FILE *file; /* The caller writes here. pem_output__finish reports errors. */
	char *path; /* NULL: standard output */
	char *temporary;
};

/*
 * Open path for writing, through a temporary file beside it. '-' is standard output. Returns 0, or
 * -errno with error.
 */
int pem_output__open(struct pem_output *output, const char *path, struct pem_error *error);
/*
 * Close the output. If result is 0, the file is renamed to path. If result is negative, or if
 * something could not be written, the temporary file is removed. Returns result, or -errno with
 * error.
 */
int pem_output__finish(struct pem_output *output, int result, struct pem_error *error);

#endif
