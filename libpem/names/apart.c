/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * apart.c - work on files of other users in a process of its own, with limits (contract: apart.h)
 *
 * elfutils maps files, so that one that is cut ends the process by SIGBUS; a small file can ask for
 * any amount of memory or time; and a file system that a user's program serves can let a process
 * wait in a way that no signal ends. So the parent waits for no more than a pipe and a clock.
 */
#include "apart.h"
#include "grow.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Memory that a child may take besides its parent's. */
#define MEMORY_BYTES_MAX (UINT64_C(2) << 30)
#define TEXT_BYTES_MAX (64u << 20)
#define TICK_MS 100
/* Ticks without any use of a CPU: 10 s of one user, 30 s of all. */
#define USER_WAITS_MAX 100u
#define ALL_WAITS_MAX 300u
#define USER_CPU_NS_MAX UINT64_C(10000000000)
#define ALL_CPU_NS_MAX UINT64_C(60000000000)
/* Servers of debug files (DEBUGINFOD_URLS) may take longer: this many times those waits. */
#define SERVER_WAITS 12u
/* A child that does not end, since it waits for a file, is left after a second. */
#define END_FIRST_NS 1000000L
#define END_LAST_NS 512000000L
#define NOGROUP 65534u

/* --- in the child --- */

/* Returns whether the process has no more rights than the user. */
static bool drop_rights(uint32_t holder)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* EINVAL: a user namespace does not have the user, and its root no right over the files. */
	if (geteuid() == 0 && holder != 0 &&
	    ((setgroups(0, NULL) != 0 && errno != EPERM) ||
	     (setresgid(NOGROUP, NOGROUP, NOGROUP) != 0 && errno != EINVAL) ||
	     (setresuid(holder, holder, holder) != 0 && errno != EINVAL)))
		return false;
	return syscall(SYS_capset, &head, none) == 0;
}

/* Bytes of address space that this process has. 0: unknown. */
static uint64_t space_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (f != NULL && fscanf(f, "%llu", &pages) != 1)
		pages = 0;
	if (f != NULL)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit(int what, uint64_t most)
{
	struct rlimit now;

	if (getrlimit(what, &now) != 0 || now.rlim_cur <= most)
		return;
	now.rlim_cur = now.rlim_max = most;
	(void)setrlimit(what, &now);
}

static _Noreturn void be_child(int to, uint32_t holder, int (*work)(void *arg, FILE *out),
			       void *arg)
{
	FILE *out;

	/* A child that no signal ends holds no lock, and no pipe that somebody reads to its end. */
	if (dup2(to, 3) != 3 || syscall(SYS_close_range, 4u, ~0u, 0u) != 0 ||
	    syscall(SYS_close_range, 0u, 2u, 0u) != 0 || open("/dev/null", O_RDWR) != 0 ||
	    dup(0) != 1 || dup(0) != 2)
		_exit(1);
	signal(SIGPIPE, SIG_DFL);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_AS, space_bytes() + MEMORY_BYTES_MAX);
	if (!drop_rights(holder))
		_exit(1);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	out = fdopen(3, "w");
	/* A zero byte tells that nothing is missing before it. */
	if (out == NULL || work(arg, out) != 0 || fputc('\0', out) == EOF || fflush(out) != 0)
		_exit(1);
	_exit(0);
}

/* --- in the parent --- */

struct child {
	pid_t pid;
	int from;
	clockid_t clock;
	char *text;
	size_t bytes, capacity;
	uint64_t cpu_ns; /* as of the last tick */
	uint64_t waits;
};

static uint64_t cpu_of(struct child *child)
{
	struct timespec used;

	/* A process that has ended has no clock. */
	if (clock_gettime(child->clock, &used) != 0)
		return child->cpu_ns;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Returns 1: there may be more; 0: this is the end; or -errno. */
static int take_text(struct child *child)
{
	ssize_t got;

	if (child->bytes >= TEXT_BYTES_MAX)
		return -EFBIG;
	if (pem_grow(&child->text, 1, child->bytes + 65536, &child->capacity) != 0)
		return -ENOMEM;
	got = read(child->from, child->text + child->bytes, 65536);
	if (got < 0)
		return errno == EINTR ? 1 : -errno;
	child->bytes += (size_t)got;
	return got != 0;
}

/* Which limit is reached, or NULL. */
static const char *over(const struct apart *apart, const struct apart_user *user)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	unsigned int times = servers != NULL && *servers != '\0' ? SERVER_WAITS : 1;

	if (user->cpu_ns > USER_CPU_NS_MAX || apart->cpu_ns > ALL_CPU_NS_MAX)
		return "took too much CPU time";
	if (user->waits > times * USER_WAITS_MAX || apart->waits > times * ALL_WAITS_MAX)
		return "waited too long";
	return NULL;
}

/* Add what a child used since the last tick. */
static void charge(struct apart *apart, struct apart_user *user, struct child *child, bool has_text)
{
	uint64_t now = cpu_of(child);

	user->cpu_ns += now - child->cpu_ns;
	apart->cpu_ns += now - child->cpu_ns;
	if (now == child->cpu_ns && !has_text) {
		user->waits++;
		apart->waits++;
	}
	child->cpu_ns = now;
}

/* Returns NULL at the end of the child's text, or which limit was reached. */
static const char *follow(struct apart *apart, struct apart_user *user, struct child *child)
{
	const char *limit = NULL;
	int rc = 1;

	while (rc == 1 && limit == NULL) {
		struct pollfd ready = {.fd = child->from, .events = POLLIN};
		int count = poll(&ready, 1, TICK_MS);

		if (count > 0)
			rc = take_text(child);
		charge(apart, user, child, count > 0);
		limit = over(apart, user);
	}
	if (rc == -EFBIG)
		return "gave too many names";
	return rc < 0 ? "failed for lack of memory" : limit;
}

/*
 * Returns the status as of waitpid(2); 0: unknown. A child that has told all may still wait, as it
 * closes files of a file system that does not answer: then no signal ends it.
 */
static int end_child(const struct child *child, bool is_complete)
{
	struct timespec pause = {.tv_nsec = END_FIRST_NS};
	int status = 0;

	if (!is_complete)
		kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, WNOHANG) == 0 && pause.tv_nsec <= END_LAST_NS) {
		nanosleep(&pause, NULL);
		pause.tv_nsec *= 2;
	}
	if (pause.tv_nsec > END_LAST_NS)
		kill(child->pid, SIGKILL);
	return status;
}

static struct apart_user *user_of(struct apart *apart, uint32_t user)
{
	size_t i;

	for (i = 0; i < apart->count; i++)
		if (apart->users[i].user == user)
			return &apart->users[i];
	if (pem_grow(&apart->users, sizeof(*apart->users), i + 1, &apart->capacity) != 0)
		return NULL;
	apart->users[i] = (struct apart_user){.user = user};
	apart->count++;
	return &apart->users[i];
}

/* Returns 0 with the pipe's end to read from and the child's pid; or -errno. */
static int start(struct child *child, uint32_t holder, int (*work)(void *arg, FILE *out), void *arg)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	child->pid = fork();
	if (child->pid == 0)
		be_child(ends[1], holder, work, arg);
	close(ends[1]);
	child->from = ends[0];
	if (child->pid < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	if (clock_getcpuclockid(child->pid, &child->clock) != 0)
		child->clock = CLOCK_MONOTONIC;
	/* Of the other clock, only what passes from now on counts. */
	child->cpu_ns = child->clock == CLOCK_MONOTONIC ? cpu_of(child) : 0;
	return 0;
}

int apart__run(struct apart *apart, uint32_t holder, int (*work)(void *arg, FILE *out), void *arg,
	       char **text, char *why)
{
	struct apart_user *user = user_of(apart, holder);
	struct child child = {.text = NULL};
	const char *limit;
	int status;

	if (user == NULL)
		return -ENOMEM;
	limit = over(apart, user);
	if (limit == NULL && start(&child, holder, work, arg) != 0)
		limit = "failed: no process can be started";
	else if (limit == NULL) {
		limit = follow(apart, user, &child);
		status = end_child(&child, limit == NULL);
		close(child.from);
		if (limit == NULL && child.bytes != 0 && child.text[child.bytes - 1] == '\0') {
			*text = child.text;
			return 0;
		}
		if (limit == NULL)
			limit = WIFSIGNALED(status)
					? "ended by a signal: a file is damaged or was cut"
					: "failed: a file needs too much memory, or "
					  "can't be read with the user's rights";
	}
	free(child.text);
	snprintf(why, APART_WHY_BYTES, "reading files that user %u can change %s", holder, limit);
	return -ECANCELED;
}
