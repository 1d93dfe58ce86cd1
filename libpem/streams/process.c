/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* process.c - facts about a process from its files in /proc */
#include "streams/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

/*
 * Is a file memory of memfd_create()? All such memory has one device. Returns -1 with errno if
 * that can't be known. Does not ask the file's file system.
 */
static int is_memory(int handle)
{
	int own = memfd_create("pem", MFD_CLOEXEC), result = -1;
	struct stat status;
	struct statx about;

	if (own < 0)
		return -1;
	if (fstat(own, &status) == 0 &&
	    statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &about) == 0)
		result = makedev(about.stx_dev_major, about.stx_dev_minor) == status.st_dev;
	close(own);
	return result;
}

int pem_streams__open_memory(const char *link, int flags)
{
	int handle = open(link, O_PATH | O_CLOEXEC), fd;
	char path[32];

	if (handle < 0)
		return -1;
	fd = is_memory(handle);
	if (fd == 1) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
		fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	} else if (fd == 0) {
		errno = ENOENT;
		fd = -1;
	}
	close(handle);
	return fd;
}
