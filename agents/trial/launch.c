/* SPDX-License-Identifier: MIT */
/*
 * launch.c - one run of a command: started, watched, ended with all that it started
 *
 * The explorer is a subreaper: whatever a command starts becomes its child, once its own parent has
 * ended, so that nothing of a trial outlives it. A process is ended by its pidfd, after its parent
 * was read again, so that a number that was given to another process meanwhile hits nobody.
 */
#include "trial/trial.h"

#include "grow.h"
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 50
#define LINE_BYTES 4096u
#define BLOCK_BYTES 65536u
/* Blocks of output that are taken before anything else is looked at. */
#define BLOCKS_MAX 16
/* How long a command may take to end when it is asked to, before it is made to. */
#define GRACE_S 2.0
#define ROUNDS_MAX 1000u

extern char **environ;

double trial_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- processes --- */

struct process {
	struct pem_proc_stat stat;
	bool is_ours; /* it descends from the root that was asked for */
};

struct processes {
	struct process *all;
	size_t count, capacity;
};

static bool add_process(int pid, void *arg)
{
	struct processes *processes = arg;
	struct process *process;

	if (pem_grow(&processes->all, sizeof(*processes->all), processes->count + 1,
		     &processes->capacity))
		return false;
	process = &processes->all[processes->count];
	process->is_ours = false;
	processes->count += pem_proc__read(pid, &process->stat);
	return true;
}

static bool is_ours(const struct processes *processes, pid_t pid)
{
	size_t i;

	for (i = 0; i < processes->count; i++) {
		if (processes->all[i].stat.pid == pid)
			return processes->all[i].is_ours;
	}
	return false;
}

/* Find what descends from root, but of its children that began earlier, which are not found. */
static void find_descendants(struct processes *processes, pid_t root, uint64_t since_ticks)
{
	bool found = true;
	size_t i;

	processes->count = 0;
	pem_proc__all(add_process, processes);
	while (found) {
		for (found = false, i = 0; i < processes->count; i++) {
			struct process *p = &processes->all[i];

			if (p->is_ours ||
			    !(p->stat.parent == root ? p->stat.began_ticks >= since_ticks
						     : is_ours(processes, p->stat.parent)))
				continue;
			p->is_ours = found = true;
		}
	}
}

static void signal_process(const struct process *process, int number)
{
	const struct pem_proc_stat *before = &process->stat;
	struct pem_proc_stat now;
	int fd = (int)syscall(SYS_pidfd_open, before->pid, 0);

	/* Its parent may have ended meanwhile, and then it is this process's child. */
	if (fd >= 0 && pem_proc__read(before->pid, &now) &&
	    (now.parent == before->parent || now.parent == getpid()))
		syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
	if (fd >= 0)
		close(fd);
}

/* Signal a process and all that descend from it. */
static void signal_tree(pid_t root, int number)
{
	struct processes processes = {0};
	size_t i;

	find_descendants(&processes, root, 0);
	for (i = 0; i < processes.count; i++) {
		if (processes.all[i].is_ours || processes.all[i].stat.pid == root)
			signal_process(&processes.all[i], number);
	}
	free(processes.all);
}

/* A closed session leaves a helper of pem for a moment (libpem's leave_behind.c). */
static bool is_left(const struct process *p)
{
	return p->is_ours && p->stat.state != 'Z' && strcmp(p->stat.name, "pem-detach");
}

/* Add the names of those that were found. */
static void add_names(const struct processes *processes, char *text, size_t bytes)
{
	size_t i, k, used = 0;

	for (i = 0; i < processes->count; i++) {
		const struct process *p = &processes->all[i];
		unsigned alike = 0;

		for (k = 0; is_left(p) && k < processes->count; k++) {
			const struct process *other = &processes->all[k];

			if (!is_left(other) || strcmp(other->stat.name, p->stat.name))
				continue;
			/* A name is told once, where it is first. */
			if (k < i)
				break;
			alike++;
		}
		if (k < processes->count || used >= bytes)
			continue;
		used += (size_t)snprintf(text + used, bytes - used, "%s%.31s", used ? ", " : "",
					 p->stat.name);
		if (alike > 1 && used < bytes)
			used += (size_t)snprintf(text + used, bytes - used, " (%u)", alike);
	}
}

void trial_launch__ask(pid_t pid)
{
	signal_tree(pid, SIGTERM);
}

uint64_t trial_launch__now_ticks(void)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * hz + (uint64_t)now.tv_nsec * hz / 1000000000u;
}

void trial_launch__end_all(uint64_t since_ticks, char *text, size_t bytes)
{
	struct processes processes = {0};
	const struct timespec pause = {.tv_nsec = 5000000};
	size_t i, alive, round;

	if (text)
		text[0] = '\0';
	for (round = 0; round < ROUNDS_MAX; round++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		find_descendants(&processes, getpid(), since_ticks);
		if (!round && text)
			add_names(&processes, text, bytes);
		for (i = alive = 0; i < processes.count; i++) {
			const struct process *p = &processes.all[i];

			if (!p->is_ours)
				continue;
			alive++;
			signal_process(p, SIGKILL);
		}
		if (!alive)
			break;
		nanosleep(&pause, NULL);
	}
	free(processes.all);
}

/* --- a run --- */

/* What the command prints, or its errors. */
struct stream {
	int fd; /* the end of a pipe that it comes from; -1: it was closed */
	char line[LINE_BYTES];
	size_t used;
	char last[160]; /* line that was not empty */
};

struct run {
	const struct trial_launch *launch;
	struct trial_ended *ended;
	pid_t pid;
	int pidfd;
	struct stream streams[2]; /* output, errors */
	double began_s, asked_s; /* asked to end at; 0: not yet */
	long own_kib; /* that this process had resident when it started the command */
	bool is_over; /* it has ended, and its number may be another process's */
	uint64_t free_bytes[2]; /* of the disks of its folder and of scratch, at its start */
};

/* UINT64_MAX: unknown. */
static uint64_t free_bytes(const char *folder)
{
	struct statvfs st;

	return !folder || statvfs(folder, &st) ? UINT64_MAX : (uint64_t)st.f_bavail * st.f_frsize;
}

/* Has a disk less free space than at the start, by more than is allowed? */
static bool is_filled(const struct run *run)
{
	const char *const folders[] = {run->launch->folder, run->launch->scratch};
	size_t i;

	for (i = 0; run->launch->disk_bytes && i < 2; i++) {
		uint64_t now = free_bytes(folders[i]), before = run->free_bytes[i];

		if (now != UINT64_MAX && before != UINT64_MAX && now < before &&
		    before - now > run->launch->disk_bytes)
			return true;
	}
	return false;
}

/* In a process group of its own: a command that kills its group, by kill 0, does not kill pem. */
static int spawn_alone(char *const argv[], pid_t *pid)
{
	posix_spawnattr_t attributes;
	int code;

	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	code = posix_spawn(pid, argv[0], NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	return -code;
}

/* What the shell is given: a command with a control group joins that first. NULL: no memory. */
static char *text_of(const struct trial_launch *launch)
{
	char *text;

	if (!launch->cgroup)
		return strdup(launch->command);
	return asprintf(&text, "echo $$ >'%s/cgroup.procs' || exit 125\n%s", launch->cgroup,
			launch->command) < 0
		       ? NULL
		       : text;
}

/*
 * Start the command with outs for its output and its errors. This process's own ones are put back
 * after that.
 */
static int spawn(const struct trial_launch *launch, const int outs[2], pid_t *pid,
		 struct pem_error *error)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	char *text = text_of(launch), *argv[] = {shell, option, text, NULL};
	const struct pem_run_options options = {.size = sizeof(options),
						.preload_libc = 1,
						.no_preload = launch->no_preload,
						.own_group = 1};
	int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), rc = own < 0 ? -errno : 0;
	int own_error = rc ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	if (!rc && (own_error < 0 || !text))
		rc = text ? -errno : -ENOMEM;
	if (!rc && (dup2(outs[0], STDOUT_FILENO) < 0 || dup2(outs[1], STDERR_FILENO) < 0))
		rc = -errno;
	if (!rc && launch->session) {
		rc = pem_session__run(launch->session, argv, &options, error);
		*pid = rc;
	} else if (!rc) {
		rc = spawn_alone(argv, pid);
	}
	if (own_error >= 0)
		dup2(own_error, STDERR_FILENO);
	if (own >= 0)
		dup2(own, STDOUT_FILENO);
	close(own);
	close(own_error);
	free(text);
	if (rc < 0 && !error->text[0])
		snprintf(error->text, sizeof(error->text), "/bin/sh can't be started: %s",
			 strerror(-rc));
	return rc < 0 ? rc : 0;
}

static void ask_to_end(struct run *run, enum trial_how how)
{
	if (run->asked_s > 0 || run->is_over)
		return;
	run->ended->how = how;
	run->asked_s = trial_now_s();
	signal_tree(run->pid, SIGTERM);
}

static void give_line(struct run *run, struct stream *stream)
{
	const char *text;
	size_t i;

	for (i = 0; i < stream->used; i++) {
		if (!stream->line[i])
			stream->line[i] = ' ';
	}
	stream->line[stream->used] = '\0';
	stream->used = 0;
	text = stream->line + strspn(stream->line, " \t\r");
	if (*text)
		snprintf(stream->last, sizeof(stream->last), "%s", text);
	if (run->launch->line &&
	    run->launch->line(stream->line, trial_now_s() - run->began_s, run->launch->arg))
		ask_to_end(run, TRIAL_WAS_STOPPED);
}

/* Add bytes to the line that has begun; what is too long for a line is cut off it. */
static void add_to_line(struct stream *stream, const char *bytes, size_t count)
{
	size_t left = LINE_BYTES - 1 - stream->used;

	if (count > left)
		count = left;
	memcpy(stream->line + stream->used, bytes, count);
	stream->used += count;
}

/* Take a block of what the command has printed; false: nothing is there now. */
static bool take_block(struct run *run, struct stream *stream)
{
	static char block[BLOCK_BYTES];
	ssize_t got = stream->fd >= 0 ? read(stream->fd, block, sizeof(block)) : -1;
	const char *at = block, *end = block + got, *line;

	if (!got) {
		close(stream->fd);
		stream->fd = -1;
	}
	if (got <= 0)
		return false;
	/* Lines that nobody measures are not looked at, but for the last ones. */
	if (!run->launch->line && got > (ssize_t)LINE_BYTES) {
		at = end - LINE_BYTES;
		stream->used = 0;
	}
	while ((line = memchr(at, '\n', (size_t)(end - at)))) {
		add_to_line(stream, at, (size_t)(line - at));
		give_line(run, stream);
		at = line + 1;
	}
	add_to_line(stream, at, (size_t)(end - at));
	return true;
}

/* Take some of what is there: a command that prints without pause is watched all the same. */
static void take_output(struct run *run)
{
	int i;

	for (i = 0; i < BLOCKS_MAX &&
		    (take_block(run, &run->streams[0]) || take_block(run, &run->streams[1]));
	     i++)
		;
}

/* Does anything say that the command has to end? */
static void watch(struct run *run)
{
	const struct trial_launch *launch = run->launch;
	double ran_s = trial_now_s() - run->began_s;

	if (launch->interrupted && *launch->interrupted)
		ask_to_end(run, TRIAL_INTERRUPTED);
	if (launch->duration_s > 0 && ran_s >= launch->duration_s)
		ask_to_end(run, TRIAL_WAS_STOPPED);
	if (launch->limit_s > 0 && ran_s >= launch->limit_s)
		ask_to_end(run, TRIAL_TOO_LONG);
	if (launch->line && launch->line(NULL, ran_s, launch->arg))
		ask_to_end(run, TRIAL_WAS_STOPPED);
	if (is_filled(run))
		ask_to_end(run, TRIAL_TOO_BIG);
	if (run->asked_s > 0 && trial_now_s() - run->asked_s > GRACE_S)
		signal_tree(run->pid, SIGKILL);
}

/* Wait for the end, at most a tick. Returns true if it has ended. */
static bool wait_a_tick(struct run *run, struct rusage *used, int *status)
{
	struct pollfd fds[] = {{.fd = run->pidfd, .events = POLLIN},
			       {.fd = run->streams[0].fd, .events = POLLIN},
			       {.fd = run->streams[1].fd, .events = POLLIN}};
	int rc;

	if (run->launch->session) {
		/* The session has to work while the command runs, and waits for it. */
		rc = pem_session__poll(run->launch->session, 5, status);
		if (rc >= 0)
			return rc > 0;
		/* The session failed: the command is waited for without it. */
	}
	poll(fds, 3, TICK_MS);
	return wait4(run->pid, status, WNOHANG, used) == run->pid;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* What this process has resident now, in KiB. */
static long own_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (file && fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void follow(struct run *run)
{
	const struct trial_launch *launch = run->launch;
	struct rusage used = {0}, before;
	double watched_s = 0;
	int status = 0, i;

	getrusage(RUSAGE_CHILDREN, &before);
	while (!run->is_over) {
		run->is_over = wait_a_tick(run, &used, &status);
		if (run->is_over)
			run->ended->seconds = trial_now_s() - run->began_s;
		take_output(run);
		if (!run->is_over && trial_now_s() - watched_s >= TICK_MS / 1e3) {
			watch(run);
			watched_s = trial_now_s();
		}
	}
	for (i = 0; i < 2; i++) {
		if (run->streams[i].used)
			give_line(run, &run->streams[i]);
	}
	/* Why a command failed is among its errors, if it has printed any. */
	memcpy(run->ended->last, run->streams[*run->streams[1].last ? 1 : 0].last,
	       sizeof(run->ended->last));
	/* Whoever ended the explorer may have ended the command with it. */
	if (run->ended->how == TRIAL_ENDED && launch->interrupted && *launch->interrupted)
		run->ended->how = TRIAL_INTERRUPTED;
	if (launch->session) {
		/* Without what it takes to observe it. */
		run->ended->seconds = (double)pem_session__elapsed_ns(launch->session) / 1e9;
		getrusage(RUSAGE_CHILDREN, &used);
		timersub(&used.ru_utime, &before.ru_utime, &used.ru_utime);
		timersub(&used.ru_stime, &before.ru_stime, &used.ru_stime);
		used.ru_maxrss = 0; /* it is that of all commands so far */
	}
	run->ended->status = status;
	run->ended->cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
	/* A command that had less than this process has this process's. */
	run->ended->memory_bytes =
		used.ru_maxrss > run->own_kib ? (uint64_t)used.ru_maxrss * 1024 : 0;
}

/*
 * Linux counts what this process had at most as the command's, which shared its memory until it was
 * started. From here on the most is what this process has now.
 */
static void forget_own_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "5", 1);
		close(fd);
	}
}

int trial_launch__run(const struct trial_launch *launch, struct trial_ended *ended,
		      struct pem_error *error)
{
	struct run *run = calloc(1, sizeof(*run));
	int outs[2] = {-1, -1}, ends[2], rc = run ? 0 : -ENOMEM, i;

	memset(ended, 0, sizeof(*ended));
	for (i = 0; i < 2 && run; i++) {
		run->streams[i].fd = -1;
		if (rc || pipe2(ends, O_CLOEXEC)) {
			rc = rc ? rc : -errno;
			continue;
		}
		run->streams[i].fd = ends[0];
		outs[i] = ends[1];
		/* While nobody reads, a command that prints much should not wait. */
		fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
		fcntl(ends[0], F_SETFL, O_NONBLOCK);
	}
	if (rc) {
		snprintf(error->text, sizeof(error->text), "no pipe for the command's output: %s",
			 strerror(-rc));
	} else {
		run->launch = launch;
		run->ended = ended;
		run->free_bytes[0] = free_bytes(launch->folder);
		run->free_bytes[1] = free_bytes(launch->scratch);
		forget_own_peak();
		/* What it takes for the start itself comes on top. */
		run->own_kib = own_kib() + 1024;
		run->began_s = trial_now_s();
		rc = spawn(launch, outs, &run->pid, error);
	}
	for (i = 0; i < 2; i++) {
		if (outs[i] >= 0)
			close(outs[i]);
	}
	if (!rc) {
		run->pidfd = (int)syscall(SYS_pidfd_open, run->pid, 0);
		follow(run);
		if (run->pidfd >= 0)
			close(run->pidfd);
	}
	for (i = 0; i < 2 && run; i++) {
		if (run->streams[i].fd >= 0)
			close(run->streams[i].fd);
	}
	free(run);
	return rc;
}

pid_t trial_launch__start(const struct trial_launch *launch, struct pem_error *error)
{
	int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t pid = 0;
	int rc = out < 0 ? -errno : spawn(launch, (const int[]){out, out}, &pid, error);

	if (out >= 0)
		close(out);
	if (rc)
		return rc;
	return pid;
}
