/* SPDX-License-Identifier: MIT */
/*
 * output.h - an exporter's output: a file that is either complete at its path or does not exist
 *
 * Not here: formats.
 */
#ifndef PEM_EXPORT_OUTPUT_H
#define PEM_EXPORT_OUTPUT_H

#include <pem/model.h>

#include <stdbool.h>
#include <stdio.h>

struct pem_output {
	FILE *file; /* The caller writes here. pem_output__finish reports errors. */
	char *path; /* NULL: standard output */
	char *temporary; /* name of the file until it is complete; NULL: it has none */
	bool nameless; /* The file gets a name when it is complete. */
};

/*
 * Open path for writing. Until the output is finished the file has no name, or, where the file
 * system knows no such files, a temporary name beside path, which SIGINT, SIGTERM, SIGHUP and
 * SIGPIPE remove. '-' is standard output. Returns 0, or -errno with error.
 * -EEXIST: path is a link, a pipe, or anything else that is not a regular file.
 */
int pem_output__open(struct pem_output *output, const char *path, struct pem_error *error);
/*
 * Close the output. If result is 0, the file appears at path. If result is negative, or if
 * something could not be written, nothing is left and a file that was at path stays. Returns
 * result, or -errno with error.
 */
int pem_output__finish(struct pem_output *output, int result, struct pem_error *error);

#endif
