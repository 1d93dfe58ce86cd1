// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * encode.c - names of libpfm4, opening counters, and why a counter can't be opened
 *
 * Not here: using an open counter.
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
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_BYTES COUNTER_NAME_BYTES

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

static int encode_one(const char *name, struct perf_event_attr *attr)
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

/*
 * Take the next of the alternatives separated by '|' from *names. It is truncated if it is too
 * long. Returns 1, or 0 if none is left.
 */
static int next_name(const char **names, char name[NAME_BYTES])
{
	size_t count = strcspn(*names, "|");

	if (!count)
		return 0;
	snprintf(name, NAME_BYTES, "%.*s", (int)count, *names);
	*names += count;
	*names += **names == '|';
	return 1;
}

int counter__encode_first(const char *names, struct perf_event_attr *attr, char *taken,
			  size_t taken_bytes)
{
	const int alone = strchr(names, '|') == NULL;
	struct perf_event_attr first = {0}, tried;
	char name[NAME_BYTES];

	snprintf(taken, taken_bytes, "%s", "");
	while (next_name(&names, name)) {
		if (encode_one(name, attr) < 0)
			continue;
		tried = *attr;
		if (!first.size)
			snprintf(taken, taken_bytes, "%s", name);
		if (alone)
			return 0;
		if (counter__try(&tried) == 0) {
			snprintf(taken, taken_bytes, "%s", name);
			return 0;
		}
		if (!first.size)
			first = *attr;
	}
	*attr = first;
	return first.size ? 0 : -ENOENT;
}

int counter__encode(const char *names, struct perf_event_attr *attr)
{
	char name[NAME_BYTES];

	return counter__encode_first(names, attr, name, sizeof(name));
}

static int perf_open(int cgroup_fd, struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	const int in_cgroup = cgroup_fd >= 0 && pid == -1;
	long fd = syscall(SYS_perf_event_open, attr, in_cgroup ? cgroup_fd : pid, cpu, group,
			  PERF_FLAG_FD_CLOEXEC | (in_cgroup ? PERF_FLAG_PID_CGROUP : 0));

	return fd < 0 ? -errno : (int)fd;
}

/*
 * Is this a software event that the kernel raises while it runs? Without the kernel its counter
 * would read 0, which would be wrong.
 */
static int happens_in_kernel(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		attr->config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

int counter__open_on(int cgroup_fd, struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	int fd = perf_open(cgroup_fd, attr, pid, cpu, group);

	if ((fd != -EACCES && fd != -EPERM) || attr->exclude_kernel || attr->exclude_user ||
	    happens_in_kernel(attr))
		return fd;
	attr->exclude_kernel = 1;
	return perf_open(cgroup_fd, attr, pid, cpu, group);
}

int counter__open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	return counter__open_on(-1, attr, pid, cpu, group);
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

static pthread_once_t pmu_once = PTHREAD_ONCE_INIT;
static int pmu_state;

static void find_pmu(void)
{
	static const uint64_t tries[] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS};
	size_t i;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
					       .size = sizeof(attr),
					       .config = tries[i],
					       .exclude_hv = 1};

		if (counter__try(&attr) == 0)
			pmu_state = 1;
	}
}

/*
 * Does the kernel count any hardware event here? The result is kept, because a list of events asks
 * for each event.
 */
static int has_pmu(void)
{
	pthread_once(&pmu_once, find_pmu);
	return pmu_state;
}

int counter__encode_clock(const char *names, struct perf_event_attr *attr)
{
	int rc = counter__encode(names, attr);

	if (rc < 0 || attr->type == PERF_TYPE_SOFTWARE || counter__try(attr) == 0)
		return rc;
	return counter__encode("perf::CPU-CLOCK", attr);
}

/* Read a sysctl of the kernel. Returns 0 or -errno. The value only goes into a sentence. */
static int kernel_setting(const char *path, int *level)
{
	char text[16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
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

static void explain_refusal(const struct perf_event_attr *attr, struct pem_error *reason)
{
	int level = 0;

	if (kernel_setting("/proc/sys/kernel/perf_event_paranoid", &level) < 0 || level <= 1) {
		counter__set_error(reason, "can't be counted: the kernel or a container's seccomp "
					   "filter refuses perf_event_open; run with CAP_PERFMON, "
					   "or allow it there");
		return;
	}
	counter__set_error(reason,
			   "can't be counted by this user: kernel.perf_event_paranoid is %d; set "
			   "it to %d (sysctl kernel.perf_event_paranoid=%d) or run with "
			   "CAP_PERFMON",
			   level, happens_in_kernel(attr) ? 1 : 2, happens_in_kernel(attr) ? 1 : 2);
}

/*
 * Does this machine have this PMU, according to libpfm4? The PMU is the part of an event's name
 * before '::'.
 */
static int is_present(const char *name, size_t count)
{
	pfm_pmu_info_t info;
	int pmu;

	for (pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (pfm_get_pmu_info((pfm_pmu_t)pmu, &info) == PFM_SUCCESS && info.is_present &&
		    strlen(info.name) == count && !strncmp(info.name, name, count))
			return 1;
	}
	return 0;
}

/*
 * Does this PMU have the event, on this or another machine? The part of the name after a colon,
 * which modifies the event, is ignored.
 */
static int has_event(const pfm_pmu_info_t *pmu, const char *name)
{
	const char *colons = strstr(name, "::"), *event = colons ? colons + 2 : name;
	const size_t count = colons ? (size_t)(colons - name) : 0, bytes = strcspn(event, ":");
	pfm_event_info_t info;
	int i;

	if (colons && (strlen(pmu->name) != count || strncasecmp(pmu->name, name, count)))
		return 0;
	for (i = pmu->first_event; i != -1; i = pfm_get_event_next(i)) {
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (pfm_get_event_info(i, PFM_OS_PERF_EVENT, &info) == PFM_SUCCESS &&
		    strlen(info.name) == bytes && !strncasecmp(info.name, event, bytes))
			return 1;
	}
	return 0;
}

int counter__knows(const char *name, struct pem_error *error)
{
	struct perf_event_attr attr;
	pfm_pmu_info_t info;
	int pmu;

	if (encode_one(name, &attr) == 0)
		return 1;
	for (pmu = PFM_PMU_NONE; pfm_state == PFM_SUCCESS && pmu < PFM_PMU_MAX; pmu++) {
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (pfm_get_pmu_info((pfm_pmu_t)pmu, &info) == PFM_SUCCESS && !info.is_present &&
		    has_event(&info, name))
			return 1;
	}
	counter__set_error(error, "libpfm4 knows no counter '%.100s'", name);
	return -ENOENT;
}

/* The maker of the processors with this PMU. NULL: the name does not tell. */
static const char *maker_of(const char *name)
{
	static const struct {
		const char *prefix, *maker;
	} makers[] = {{"amd64_", "AMD"},  {"arm_", "Arm"},    {"ix86arch::", "Intel"},
		      {"skl::", "Intel"}, {"skx::", "Intel"}, {"clx::", "Intel"}};
	size_t i;

	for (i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		if (!strncmp(name, makers[i].prefix, strlen(makers[i].prefix)))
			return makers[i].maker;
	return NULL;
}

/* Can a processor of this maker be of this architecture? maker may be NULL: unknown. */
static int is_of_architecture(const char *maker)
{
#if defined(__x86_64__)
	return !maker || strcmp(maker, "Arm") != 0;
#elif defined(__aarch64__)
	return !maker || !strcmp(maker, "Arm");
#else
	return 1;
#endif
}

/* Has libpfm4 a table for this machine's processor? */
static int knows_processor(void)
{
	pfm_pmu_info_t info;
	int pmu;

	for (pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (pfm_get_pmu_info((pfm_pmu_t)pmu, &info) == PFM_SUCCESS && info.is_present &&
		    info.type == PFM_PMU_TYPE_CORE)
			return 1;
	}
	return 0;
}

/* Explain why no name can be encoded: one is misspelt, or all belong to other processors. */
static void explain_unknown(const char *names, struct pem_error *reason)
{
	char name[NAME_BYTES], makers[NAME_BYTES] = "";
	const char *maker, *colons;
	int may_be_here = 0;

	while (next_name(&names, name)) {
		maker = maker_of(name);
		may_be_here |= is_of_architecture(maker);
		colons = strstr(name, "::");
		if (!colons || is_present(name, (size_t)(colons - name)) ||
		    (!maker && strlen(makers) + strlen(name) + 3 > sizeof(makers))) {
			counter__set_error(reason,
					   "libpfm4 knows no event '%s'; its showevtinfo lists "
					   "those of this machine",
					   name);
			return;
		}
		name[colons - name] = '\0';
		if (!strstr(makers, maker ? maker : name))
			snprintf(makers + strlen(makers), sizeof(makers) - strlen(makers), "%s%s",
				 makers[0] ? ", " : "", maker ? maker : name);
	}
	if (pfm_state == PFM_SUCCESS && may_be_here && !knows_processor()) {
		counter__set_error(reason,
				   "can't be counted: libpfm4 does not know this processor, and so "
				   "not its names; a newer libpfm4 may, and the kernel's own "
				   "counters, such as cycles and instructions, can be counted");
		return;
	}
	counter__set_error(
		reason,
		"can't be counted: only some processors of %s have it, and this is none of them, "
		"as far as libpfm4 knows",
		makers);
}

/*
 * What gives counters back that the kernel itself has. "": it has none. Where the watchdog is on,
 * it may be one that uses a CPU's neighbours instead of a counter.
 */
static const char *watchdog_words(void)
{
	int on = 0;

	return kernel_setting("/proc/sys/kernel/nmi_watchdog", &on) < 0 || on != 1
		       ? ""
		       : "; the kernel's NMI watchdog may have one: sysctl "
			 "kernel.nmi_watchdog=0 frees it";
}

void counter__explain_busy(struct pem_error *reason)
{
	counter__set_error(reason, "the hardware counters were others' all the time%s",
			   watchdog_words());
}

void counter__explain(const char *names, const struct perf_event_attr *attr, int err,
		      struct pem_error *reason)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		explain_refusal(attr, reason);
		return;
	case ENOSYS:
		counter__set_error(reason, "can't be counted: this kernel has no perf_event_open");
		return;
	case EMFILE:
		counter__set_error(reason,
				   "can't be counted: too many open files; raise ulimit -n");
		return;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		if (!attr->size)
			explain_unknown(names, reason);
		else if (attr->type != PERF_TYPE_SOFTWARE && !has_pmu())
			counter__set_error(reason,
					   "can't be counted: this machine has no performance "
					   "monitoring unit that the kernel can use; run on bare "
					   "metal, or give the virtual machine one");
		else
			counter__set_error(reason, "can't be counted: this machine's performance "
						   "monitoring unit has no such event");
		return;
	case EINVAL:
	case EBUSY:
		if (attr->type == PERF_TYPE_SOFTWARE)
			break;
		counter__set_error(
			reason,
			"can't be counted: the kernel finds no counter of this processor "
			"for it%s",
			watchdog_words());
		return;
	default:
		break;
	}
	counter__set_error(reason, "can't be counted: %s", strerror(-err));
}
