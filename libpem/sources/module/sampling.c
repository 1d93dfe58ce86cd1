/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampling.c - what the module samples itself: counters at events, a process's pages, free memory;
 * and the thread for it
 *
 * Not here: demands of these events. They are told to the module like all others (source.c).
 */
#include "module.h"

#ifdef PEM_HAVE_PFM
#include "sources/counters/counters.h"
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define WORKER_PATIENCE_S 1

bool pem_module__is_sampled_by(const struct pem_event *event, const char *what)
{
	return event->source_kind == PEM_SOURCE_MODULE && !strcmp(event->source_name, what);
}

/* --- counters --- */

#ifdef PEM_HAVE_PFM
/*
 * Encode the name of one counter, or its alternatives, for the module. Returns 0, or -ENOENT if
 * this machine has no such counter.
 */
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

/*
 * Explain why libpfm4 does not know a counter, or the kernel lacks one that libpfm4 knows. The
 * sentence has no subject.
 */
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
 * Log why a counter was refused. names holds the alternatives of one counter, separated by '|'. The
 * message begins with --counters, the option that it is about, because an event may have the name
 * of the counter.
 */
static void say_refused(const struct pem_source *source, char *names, int error)
{
	struct pem_error reason = {""};

	if (error == -ENOENT || error == -ENODEV)
		explain(names, error, &reason);
	names[strcspn(names, "|")] = '\0'; /* the first alternative is enough for the message */
	pem_source__log(source, PEM_LOG_WARNING,
			"--counters: %s can't be read at events of the kernel: %s", names,
			*reason.text ? reason.text : why(error));
}

/* Copy the nth name, truncated to bytes. False: there is no nth name. */
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
		pem_source__log(source, PEM_LOG_WARNING,
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

	/* the demand of the event tells the module already */
	if (!source->sets_thread || source->common.demands_thread_event)
		return 0;
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
		pem_source__log(source, PEM_LOG_WARNING, "pages of process %u are not sampled: %s",
				pid,
				rc == -EPERM    ? "its memory may be read by its user and by "
						  "CAP_SYS_PTRACE only"
				: rc == -ENOSPC ? "16 processes are the most"
				: rc == -EAGAIN ? "it takes too long to execute its program"
						: strerror(-rc));
	return rc;
}

int pem_module__watch_supply(const struct pem_source *source)
{
	struct pem_kmod_supply request = {.size = sizeof(request),
					  .interval_us = source->pages_interval_us};

	return ioctl(source->fd, PEM_KMOD_SUPPLY, &request) ? -errno : 0;
}

/* --- the thread --- */

/*
 * The thread may live longer than the source. So it has its own descriptor and uses nothing of the
 * source. The thread or the source, whichever ends last, frees it.
 */
struct pem_module_worker {
	pthread_t thread;
	int fd;
	atomic_int users;
};

static void put_worker(struct pem_module_worker *worker)
{
	/* MF, mf */
	if (atomic_fetch_sub(&worker->users, 1) != 1)
		return;
	close(worker->fd);
	free(worker);
}

static void *work(void *arg)
{
	struct pem_module_worker *worker = arg;

	while (ioctl(worker->fd, PEM_KMOD_WORK, 0) && errno == EINTR)
		;
	put_worker(worker);
	return NULL;
}

/* All signals are blocked in this thread, so that the program's own threads handle them. */
static int create_thread(struct pem_module_worker *worker)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&worker->thread, NULL, work, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int pem_module__start_worker(struct pem_source *source)
{
	struct pem_module_worker *worker = calloc(1, sizeof(*worker));
	int rc = 0;

	if (!worker)
		return -ENOMEM;
	atomic_init(&worker->users, 2);
	worker->fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
	if (worker->fd < 0)
		rc = -errno;
	else
		rc = create_thread(worker);
	if (!rc) {
		source->worker = worker;
		return 0;
	}
	if (worker->fd >= 0)
		close(worker->fd);
	free(worker);
	return rc;
}

/*
 * STOP has told the thread to end. A sampled process can block the thread as long as it likes. The
 * recording must not wait for that.
 */
void pem_module__end_worker(struct pem_source *source)
{
	struct pem_module_worker *worker = source->worker;
	struct timespec until;

	if (!worker)
		return;
	source->worker = NULL;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WORKER_PATIENCE_S;
	if (pthread_timedjoin_np(worker->thread, NULL, &until)) {
		pthread_detach(worker->thread);
		pem_source__log(source, PEM_LOG_WARNING,
				"module: a process keeps its memory locked, and the thread that "
				"samples its pages waits for it: it is left behind, and holds "
				"this session's buffers until then");
	}
	put_worker(worker);
}
