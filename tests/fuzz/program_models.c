/* SPDX-License-Identifier: MIT */
/*
 * program_models.c - fuzz target: any bytes as a program file whose models are read
 *
 * The file lies in memory, in a folder that is removed at the end. What it names as libraries may
 * be there or not.
 */
#include <pem/model.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char path[64];

static void remove_file(void)
{
	unlink(path);
}

static int visit(void *arg, const char *text, size_t bytes, const char *origin)
{
	struct pem_model *model = arg;
	struct pem_error error;

	if (strlen(text) != bytes || !*text || !*origin)
		abort();
	pem_model__add_text(model, text, bytes, origin, &error);
	return pem_model__count(model) > 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pem_model *model = pem_model__new();
	struct pem_error error = {""};
	int fd, result;

	if (!*path) {
		snprintf(path, sizeof(path), "/dev/shm/pem-fuzz-%d", (int)getpid());
		atexit(remove_file);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || !model)
		abort();
	close(fd);
	result = pem_program__models(path, visit, model, &error);
	if (result < 0 && result != -ECANCELED && !*error.text)
		abort();
	pem_model__free(model);
	return 0;
}
