/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * own.c - what the module is to look at itself: counters at events, a process's pages, free memory
 *
 * Not here: what is wanted of these events, which is told as of all others (source.c).
 */
#include "module.h"

#ifdef PEM_HAVE_PFM
#include "sources/counters/counters.h"
#endif

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

bool pem_module__looks_at(const struct pem_event *event, const char *what)
{
	return event->source_kind == PEM_SOURCE_MODULE && !strcmp(event->source_name, what);
}

/* --- counters --- */

#ifdef PEM_HAVE_PFM
/* The names of one counter, as the module takes it. 0; -ENOENT: no such counter here. */
static int encode(const char *names, struct pem_kmod_counter *counter)
{
	struct perf_event_attr attr;
	int rc = counter__encode(names, &attr);

	if (rc)
		return rc;
	*counter = (struct pem_kmod_counter){
		.type = attr.type,
		.flags = (attr.exclude_user ? PEM_KMOD_EXCLUDE_USER : 0) |
			 (attr.exclude_kernel ? PEM_KMOD_EXCLUDE_KERNEL : 0),
		.config = attr.config,
		.config1 = attr.config1,
		.config2 = attr.config2,
	};
	return 0;
}
#else
static int encode(const char *names, struct pem_kmod_counter *counter)
{
	(void)names, (void)counter;
	return -ENOSYS;
}
#endif

/* Why the kernel has not a counter that libpfm4 knows, or libpfm4 none: a sentence without its subject. */
static void explain(const char *names, int error, struct pem_error *reason)
{
#ifdef PEM_HAVE_PFM
	struct perf_event_attr attr;

	counter__encode(names, &attr);
	counter__explain(names, &attr, error, reason);
#else
	(void)names;
	pem_module__fail(reason, error, "this processor has no such counter");
#endif
}

static const char *why(int error)
{
	return error == -ENOSYS       ? "pem was built without libpfm4, which knows its name"
	       : error == -ENOSPC     ? "the processor counts no more at a time"
	       : error == -EACCES     ? "counting on whole CPUs needs CAP_PERFMON, or "
					"kernel.perf_event_paranoid below 1"
	       : error == -EOPNOTSUPP ? "it is none of a CPU"
				      : strerror(-error);
}

/*
 * The names are those of one counter, parted by '|'. It says --counters, so that who opens the source takes it for why their
 * event, which is named so, is not there.
 */
static void say_refused(const struct pem_source *source, char *names, int error)
{
	struct pem_error reason = {""};

	if (error == -ENOENT || error == -ENODEV)
		explain(names, error, &reason);
	names[strcspn(names, "|")] = '\0'; /* the first of alternatives will do */
	pem_module__log(source, PEM_LOG_WARNING,
			"--counters: %s can't be read at events of the kernel: %s", names,
			*reason.text ? reason.text : why(error));
}

/* A copy of the nth name, cut off where it is too long. False: there is none. */
static bool nth_name(const char *names, uint32_t n, char *name, size_t bytes)
{
	size_t length;

	for (; n; n--) {
		names += strcspn(names, ",");
		names += *names == ',';
	}
	length = strcspn(names, ",");
	snprintf(name, bytes, "%.*s", (int)length, names);
	return length != 0;
}

int pem_module__open_counters(struct pem_source *source, const char *names)
{
	struct pem_kmod_counter counter[PEM_KMOD_COUNTERS_MAX];
	struct pem_kmod_counters request = {.size = sizeof(request),
					    .counters = (uintptr_t)counter};
	char name[1024];
	int rc = 0;

	if (!names) {
		pem_module__log(source, PEM_LOG_WARNING,
				"no counters are named that could be read at events: --counters "
				"names them");
		return -EINVAL;
	}
	while (!rc && request.count < PEM_KMOD_COUNTERS_MAX &&
	       nth_name(names, request.count, name, sizeof(name))) {
		request.failed = request.count;
		rc = encode(name, &counter[request.count]);
		request.count += !rc;
	}
	if (!rc)
		rc = ioctl(source->fd, PEM_KMOD_COUNTERS, &request) ? -errno : 0;
	if (!rc)
		return 0;
	nth_name(names, request.failed, name, sizeof(name));
	say_refused(source, name, rc);
	return rc;
}

int pem_module__count_at_switches(const struct pem_source *source)
{
	struct pem_kmod_event request = {
		.size = sizeof(request), .cpu = PEM_NO_CPU, .flags = PEM_KMOD_READ_COUNTERS};

	if (!source->sets_thread || source->sets_thread_wished)
		return 0; /* its own wish says so */
	request.event_id = source->sets_thread->id;
	return ioctl(source->fd, PEM_KMOD_EVENT, &request) ? -errno : 0;
}

/* --- pages --- */

int pem_module__sample_process(const struct pem_source *source, uint32_t pid)
{
	struct pem_kmod_accessed request = {.size = sizeof(request),
					    .pid = pid,
					    .interval_us = source->pages_interval_us,
					    .region_bytes = source->pages_region_bytes};
	int rc = ioctl(source->fd, PEM_KMOD_ACCESSED, &request) ? -errno : 0;

	if (rc)
		pem_module__log(source, PEM_LOG_WARNING,
				"pages of process %u are not looked at: %s", pid,
				rc == -EPERM    ? "its memory may be read by its user and by "
						  "CAP_SYS_PTRACE only"
				: rc == -ENOSPC ? "16 processes are the most"
						: strerror(-rc));
	return rc;
}

int pem_module__watch_supply(const struct pem_source *source)
{
	struct pem_kmod_supply request = {.size = sizeof(request),
					  .interval_us = source->pages_interval_us};

	return ioctl(source->fd, PEM_KMOD_SUPPLY, &request) ? -errno : 0;
}
