// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * threads.c - counters that a program's thread reads by itself: how they are opened, and whether
 * that is possible here
 *
 * Not here: reading them, which libpem does in the program (libpem/producer/counters.c).
 */
#include "counters.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * What a thread can ask the kernel for without a descriptor (getrusage, clock_gettime): sums of
 * program and kernel.
 */
static int is_told_of_threads(const struct perf_event_attr *attr)
{
	if (attr->exclude_user || attr->exclude_kernel)
		return 0;
	return attr->config == PERF_COUNT_SW_TASK_CLOCK ||
	       attr->config == PERF_COUNT_SW_CPU_CLOCK ||
	       attr->config == PERF_COUNT_SW_PAGE_FAULTS ||
	       attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	       attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ ||
	       attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES;
}

/* May programs read registers of counters? Linux 5.17 and newer on arm64: a switch that is off. */
static int may_read(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_user_access", "re");
	int on = 1;

	if (!file)
		return 1;
	if (fscanf(file, "%d", &on) != 1)
		on = 1;
	fclose(file);
	return on;
}

/* Does the kernel let a thread read the counter? Returns 1, 0 or -errno. */
static int is_readable(struct perf_event_attr *attr)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *page;
	int fd, readable;

#if defined(__aarch64__)
	attr->config1 |= 2; /* see libpem/producer/counters.c */
#endif
	attr->exclude_hv = 1;
	fd = counter__open(attr, 0, -1, -1);
	if (fd < 0)
		return fd;
	page = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	readable = page == MAP_FAILED ? -errno : page->cap_user_rdpmc && may_read();
	if (page != MAP_FAILED)
		munmap(page, bytes);
	close(fd);
	return readable;
}

int counter__encode_for_threads(const char *names, struct pem_counter *counter,
				struct pem_error *error)
{
	struct perf_event_attr attr;
	int rc = counter__encode(names, &attr);

	if (!rc && attr.type == PERF_TYPE_SOFTWARE && !is_told_of_threads(&attr)) {
		counter__set_error(error, "can't be read by a thread: the kernel counts it, and "
					  "tells it to the recorder alone");
		return -ENOTSUP;
	}
	if (!rc && attr.type != PERF_TYPE_SOFTWARE)
		rc = is_readable(&attr);
	if (rc < 0) {
		counter__explain(names, &attr, rc, error);
		return rc;
	}
	if (!rc && attr.type != PERF_TYPE_SOFTWARE) {
		counter__set_error(error, "can't be read by programs: %s",
				   may_read() ? "the kernel does not allow it; where there is a "
						"file /sys/devices/cpu/rdpmc, write 1 to it"
					      : "sysctl kernel.perf_user_access=1 lets them");
		return -EPERM;
	}
	*counter = (struct pem_counter){.type = attr.type,
					.flags = (attr.exclude_kernel ? PEM_COUNTER_NO_KERNEL : 0) |
						 (attr.exclude_user ? PEM_COUNTER_NO_USER : 0),
					.config = attr.config,
					.config1 = attr.config1,
					.config2 = attr.config2};
	return 0;
}
