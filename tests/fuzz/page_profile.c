/* SPDX-License-Identifier: MIT */
/* page_profile.c - libFuzzer: a file as a profile; every reference is read, twice */
#include "profile/profile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t read_all(struct page_profile *profile, uint32_t site_count)
{
	struct page_profile_reference references[37];
	uint64_t total = 0;
	int64_t n, i;

	while ((n = page_profile__read(profile, references, 37, NULL)) > 0) {
		for (i = 0; i < n; i++) {
			if (references[i].site != UINT32_MAX && references[i].site >= site_count)
				abort();
			if (references[i].address > PROFILE_ADDRESS || references[i].flags > 3)
				abort();
		}
		total += n;
	}
	if (n < 0)
		abort(); /* what could be opened can be read */
	return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct profile_head head = {
		.magic = PROFILE_MAGIC, .source = PROFILE_VALGRIND, .pid = 1};
	int fd = memfd_create("profile", MFD_CLOEXEC);
	struct page_profile *profile;
	uint64_t kept;
	uint32_t count;
	char path[64];

	/* The head is right: there is nothing to find in it. */
	if (fd < 0 || write(fd, &head, sizeof(head)) != (ssize_t)sizeof(head) ||
	    write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	profile = page_profile__open(path, NULL);
	if (profile) {
		page_profile__sites(profile, &count);
		kept = page_profile__summary(profile)->kept;
		if (read_all(profile, count) != kept)
			abort();
		page_profile__rewind(profile);
		if (read_all(profile, count) != kept)
			abort();
		page_profile__close(profile);
	}
	close(fd);
	return 0;
}
