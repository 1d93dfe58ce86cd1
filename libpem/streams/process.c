/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* process.c - facts about a process from its files in /proc */
#include "streams/streams.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long pem_streams__own_id(const char *status_path)
{
	unsigned long id = 0;
	char line[256], *next;
	FILE *file = fopen(status_path, "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		next = strrchr(line, '\t');
		id = next ? strtoul(next, NULL, 10) : 0;
		break;
	}
	if (file)
		fclose(file);
	return id;
}

bool pem_streams__uses_gstreamer(uint32_t pid)
{
	char path[64], *line = NULL;
	size_t bytes = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	file = fopen(path, "re");
	while (file && !found && getline(&line, &bytes, file) > 0)
		found = strstr(line, "/libgstreamer-1.0.so") != NULL;
	free(line);
	if (file)
		fclose(file);
	return found;
}
