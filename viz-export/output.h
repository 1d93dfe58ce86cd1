/* SPDX-License-Identifier: MIT */
/*
 * output.h - an exporter's output: a file that is whole at its path or not there at all
 *
 * Not here: formats.
 */
#ifndef PEM_EXPORT_OUTPUT_H
#define PEM_EXPORT_OUTPUT_H

#include <pem/model.h>

#include <stdio.h>

struct pem_output {
	FILE *file; /* write here; errors are found by pem_output__finish */
	char *path; /* NULL: standard output */
	char *temporary;
};

/*
 * Open path ('-': standard output) for writing through a temporary file beside it. 0, or -errno
 * with error.
 */
int pem_output__open(struct pem_output *output, const char *path, struct pem_error *error);
/*
 * Close it. With result 0 the file takes its place at path; with a negative result, or when
 * anything could not be written, the temporary file goes away. Returns result, or -errno with
 * error.
 */
int pem_output__finish(struct pem_output *output, int result, struct pem_error *error);

#endif
