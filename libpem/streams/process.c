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

/* The device of memory that memfd_create() makes: all of it has the same. 0: unknown. */
static dev_t memory_device(void)
{
	int fd = memfd_create("pem", MFD_CLOEXEC);
	struct stat status = {.st_dev = 0};

	if (fd >= 0) {
		fstat(fd, &status);
		close(fd);
	}
	return status.st_dev;
}

int pem_streams__open_memory(const char *link, int flags)
{
	int fd = -1, handle = open(link, O_PATH | O_CLOEXEC);
	char path[32];
	struct statx about;

	if (handle < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	if (statx(handle, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &about) == 0) {
		errno = ENOENT;
		if (makedev(about.stx_dev_major, about.stx_dev_minor) == memory_device())
			fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	}
	close(handle);
	return fd;
}
