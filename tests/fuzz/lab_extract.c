// SPDX-License-Identifier: MIT
/*
 * lab_extract.c - fuzz target: any bytes as what the lab sends back
 *
 * The checksums are put right, since nothing would get past them. Nothing may appear beside the
 * folder.
 */
#include "cli/lab/extract.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void sign(unsigned char header[512])
{
	unsigned int sum = 0, i;

	memset(header + 148, ' ', 8);
	for (i = 0; i < 512; i++)
		sum += header[i];
	snprintf((char *)header + 148, 8, "%06o", sum);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	return ftw->level == 0 ? 0 : remove(path);
}

/* Stop at what lies beside the inner folder. */
static int check_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	return ftw->level == 1 && strcmp(path + ftw->base, "inner") != 0;
}

static int archive_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);
	unsigned char block[512];
	size_t at, n;

	for (at = 0; fd >= 0 && at < size; at += n) {
		n = size - at < sizeof(block) ? size - at : sizeof(block);
		memcpy(block, data + at, n);
		if (n == sizeof(block) && memcmp(block + 257, "ustar", 5) == 0)
			sign(block);
		if (write(fd, block, n) != (ssize_t)n)
			abort();
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char outer[512], inner[520];
	const struct lab_limits limits = {.bytes = 100000, .members = 20};
	char why[256];
	int archive = archive_of(data, size), folder;

	if (outer[0] == '\0') {
		snprintf(outer, sizeof(outer), "%.400s/pem-fuzz-lab-XXXXXX",
			 getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
		snprintf(inner, sizeof(inner), "%s/inner", mkdtemp(outer));
		mkdir(inner, 0700);
	}
	folder = open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lab_extract(archive, folder, &limits, why, sizeof(why));
	close(folder);
	close(archive);
	if (nftw(outer, check_entry, 8, FTW_PHYS) != 0)
		abort();
	nftw(inner, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return 0;
}
