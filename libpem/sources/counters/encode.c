// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * encode.c - event names of libpfm4, opening counters, and why one can't be opened
 *
 * Not here: what is done with an open counter.
 */
#include "counters.h"

#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t pfm_once = PTHREAD_ONCE_INIT;
static int pfm_state;

static void pfm_start(void)
{
	pfm_state = pfm_initialize();
}

void counter__set_error(struct pem_error *error, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
}

int counter__encode(const char *name, struct perf_event_attr *attr)
{
	pfm_perf_encode_arg_t argument = {.attr = attr, .size = sizeof(argument)};

	memset(attr, 0, sizeof(*attr));
	pthread_once(&pfm_once, pfm_start);
	if (pfm_state != PFM_SUCCESS ||
	    pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &argument) !=
		    PFM_SUCCESS)
		return -ENOENT;
	attr->size = sizeof(*attr);
	return 0;
}

static int perf_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* Software events that the kernel raises while it runs: without it they would read 0, which is no answer. */
static int happens_in_kernel(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		attr->config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

int counter__open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	int fd = perf_open(attr, pid, cpu, group);

	if ((fd != -EACCES && fd != -EPERM) || attr->exclude_kernel || happens_in_kernel(attr))
		return fd;
	attr->exclude_kernel = 1;
	return perf_open(attr, pid, cpu, group);
}

int counter__try(struct perf_event_attr *attr)
{
	int fd;

	attr->disabled = 1;
	fd = counter__open(attr, 0, -1, -1);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Does the kernel count anything in hardware here? */
static int has_pmu(void)
{
	static const uint64_t tries[] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS};
	size_t i;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
					       .size = sizeof(attr),
					       .config = tries[i],
					       .exclude_hv = 1};

		if (counter__try(&attr) == 0)
			return 1;
	}
	return 0;
}

int counter__encode_clock(const char *name, struct perf_event_attr *attr)
{
	int rc = counter__encode(name, attr);

	if (rc < 0 || attr->type == PERF_TYPE_SOFTWARE || counter__try(attr) == 0)
		return rc;
	return counter__encode("perf::CPU-CLOCK", attr);
}

/* kernel.perf_event_paranoid; 0 and -errno in value's place is no problem: it only goes into a sentence. */
static int paranoid_level(int *level)
{
	char text[16];
	int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return -EIO;
	text[got] = '\0';
	*level = atoi(text);
	return 0;
}

static void explain_refusal(const char *name, const struct perf_event_attr *attr,
			    struct pem_error *reason)
{
	int level = 0;

	if (paranoid_level(&level) < 0 || level <= 1) {
		counter__set_error(
			reason,
			"%s can't be counted: the kernel or a container's seccomp filter "
			"refuses perf_event_open; run with CAP_PERFMON, or allow it there",
			name);
		return;
	}
	counter__set_error(
		reason,
		"%s can't be counted by this user: kernel.perf_event_paranoid is %d; set "
		"it to %d (sysctl kernel.perf_event_paranoid=%d) or run with CAP_PERFMON",
		name, level, happens_in_kernel(attr) ? 1 : 2, happens_in_kernel(attr) ? 1 : 2);
}

void counter__explain(const char *name, const struct perf_event_attr *attr, int err,
		      struct pem_error *reason)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		explain_refusal(name, attr, reason);
		return;
	case ENOSYS:
		counter__set_error(reason,
				   "%s can't be counted: this kernel has no perf_event_open", name);
		return;
	case EMFILE:
		counter__set_error(
			reason, "%s can't be counted: too many open files; raise ulimit -n", name);
		return;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		if (!attr->size)
			counter__set_error(reason,
					   "libpfm4 knows no event '%s'; its showevtinfo "
					   "lists those of this machine",
					   name);
		else if (attr->type != PERF_TYPE_SOFTWARE && !has_pmu())
			counter__set_error(reason,
					   "%s can't be counted: this machine has no performance "
					   "monitoring unit that the kernel can use; run on bare "
					   "metal, or give the virtual machine one",
					   name);
		else
			counter__set_error(reason,
					   "%s can't be counted: this machine's performance "
					   "monitoring unit has no such event",
					   name);
		return;
	default:
		counter__set_error(reason, "%s can't be counted: %s", name, strerror(-err));
	}
}
