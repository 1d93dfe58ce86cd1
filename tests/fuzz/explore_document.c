/* SPDX-License-Identifier: MIT */
/* explore_document.c - libFuzzer: any bytes as an experiment of pem explore */
#include "agents/trial/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What a sound experiment promises. */
static void check(const struct trial_experiment *e)
{
	const struct pem_explore_space *space = &e->space->view;
	const char *values[TRIAL_PARAMETERS_MAX];
	uint32_t levels[TRIAL_PARAMETERS_MAX] = {0};
	char text[TRIAL_TEXT_BYTES], *command;

	if (!e->name || !e->command || !e->folder || !e->metric_count || !e->objectives)
		abort();
	if (space->count != UINT64_MAX) {
		space->at(space, space->count - 1, levels);
		if (!space->allows(space, levels))
			abort();
	}
	if (trial_words__text(e, levels, text))
		abort();
	trial_experiment__values(e, levels, values);
	command = trial_words__command(e, levels, e->command, true, "scratch");
	if (!command)
		abort();
	free(command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct trial_experiment experiment;
	struct pem_error error = {.text = ""};
	char path[64];
	int fd = memfd_create("experiment", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!trial_experiment__read(&experiment, path, &error))
		check(&experiment);
	else if (!error.text[0])
		abort();
	trial_experiment__free(&experiment);
	close(fd);
	return 0;
}
