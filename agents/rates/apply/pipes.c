/* SPDX-License-Identifier: MIT */
/* pipes.c - finds pipes of running processes in /proc, reads and sets their sizes */
#include "apply/pipes.h"

#include "grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 1024u /* with those that they descend from; more are not looked at */
#define ENDS_MAX 16384u
#define SIZES_MAX 16384u
#define FIRST_NS 1000000u /* from one look to the next, and twice as long after each, */
#define LAST_NS 100000000u /* up to this, */
#define WORK_SHARE 10u /* and at least this many times as long as a look takes */
#define LIMIT_BYTES 1048576u /* where /proc does not tell */

/* A descriptor of a pipe. */
struct end {
	uint64_t inode;
	pid_t pid;
	int descriptor;
	bool writes;
	char name[RATE_NAME_BYTES]; /* of the process */
};

struct size {
	uint64_t inode;
	uint32_t bytes;
};

struct rate_pipes {
	pid_t roots[RATE_ROOTS_MAX];
	size_t root_count;
	struct rate_pipe_wish *wishes;
	size_t wish_count;
	pthread_t thread;
	bool is_running;
	/* The thread's own: */
	struct end *ends;
	size_t end_count, end_capacity;
	pid_t processes[PROCESSES_MAX];
	size_t process_count;
	/* Both are used under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t stopped;
	bool stop;
	struct size *sizes;
	size_t size_count, size_capacity;
};

/* --- what there is --- */

static void add_end(struct rate_pipes *pipes, const struct end *end)
{
	if (pipes->end_count < ENDS_MAX && !pem_grow(&pipes->ends, sizeof(*pipes->ends),
						     pipes->end_count + 1, &pipes->end_capacity))
		pipes->ends[pipes->end_count++] = *end;
}

static void read_name(pid_t pid, char name[RATE_NAME_BYTES])
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, (int)RATE_NAME_BYTES, file))
		*name = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Add the descriptors of a process that are pipes. */
static void look_at(struct rate_pipes *pipes, pid_t pid)
{
	char folder[64], path[80 + NAME_MAX], target[64];
	struct end end = {.pid = pid};
	struct dirent *entry;
	struct stat status;
	ssize_t bytes;
	DIR *all;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	all = opendir(folder);
	while (all && (entry = readdir(all))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		bytes = readlink(path, target, sizeof(target) - 1);
		if (bytes <= 0)
			continue;
		target[bytes] = '\0';
		if (sscanf(target, "pipe:[%" SCNu64 "]", &end.inode) != 1 || lstat(path, &status))
			continue;
		end.descriptor = atoi(entry->d_name);
		end.writes = status.st_mode & S_IWUSR;
		if (!*end.name)
			read_name(pid, end.name);
		add_end(pipes, &end);
	}
	if (all)
		closedir(all);
}

static void add_process(struct rate_pipes *pipes, pid_t pid)
{
	if (pipes->process_count < PROCESSES_MAX)
		pipes->processes[pipes->process_count++] = pid;
}

static void add_children(struct rate_pipes *pipes, const char *task)
{
	char path[96 + NAME_MAX];
	FILE *file;
	int child;

	snprintf(path, sizeof(path), "%s/children", task);
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &child) == 1)
		add_process(pipes, child);
	if (file)
		fclose(file);
}

static void add_children_of_threads(struct rate_pipes *pipes, pid_t pid)
{
	char folder[64], task[80 + NAME_MAX];
	struct dirent *entry;
	DIR *tasks;

	snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
	tasks = opendir(folder);
	while (tasks && (entry = readdir(tasks))) {
		if (*entry->d_name == '.')
			continue;
		snprintf(task, sizeof(task), "%s/%s", folder, entry->d_name);
		add_children(pipes, task);
	}
	if (tasks)
		closedir(tasks);
}

/* --- sizes --- */

/*
 * Open an end of a pipe of another process. Returns the descriptor, or -errno. While it is open, a
 * writer does not notice that the last reader has gone, so it is closed at once.
 */
static int open_end(const struct end *end)
{
	struct stat status;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)end->pid, end->descriptor);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* The descriptor may be another file by now. */
	if (!fstat(fd, &status) && S_ISFIFO(status.st_mode) && status.st_ino == end->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

static void note_size(struct rate_pipes *pipes, uint64_t inode, uint32_t bytes)
{
	size_t i;

	pthread_mutex_lock(&pipes->lock);
	for (i = 0; i < pipes->size_count && pipes->sizes[i].inode != inode;)
		i++;
	if (i < pipes->size_count ||
	    (i < SIZES_MAX &&
	     !pem_grow(&pipes->sizes, sizeof(*pipes->sizes), i + 1, &pipes->size_capacity))) {
		pipes->sizes[i] = (struct size){inode, bytes};
		pipes->size_count += i == pipes->size_count;
	}
	pthread_mutex_unlock(&pipes->lock);
}

/* A process may change the size at any time. */
static void read_size(struct rate_pipes *pipes, const struct end *end)
{
	int fd = open_end(end), bytes;

	if (fd < 0)
		return;
	bytes = fcntl(fd, F_GETPIPE_SZ);
	close(fd);
	if (bytes > 0)
		note_size(pipes, end->inode, (uint32_t)bytes);
}

static void set_size(struct rate_pipes *pipes, struct rate_pipe_wish *wish, const struct end *end)
{
	int fd = open_end(end), bytes;

	if (fd < 0)
		return;
	bytes = fcntl(fd, F_GETPIPE_SZ);
	if (bytes > 0 && !wish->was_bytes)
		wish->was_bytes = (uint32_t)bytes;
	/* The process may have asked for more, or the kernel have rounded up. */
	if (bytes > 0 && (uint32_t)bytes < wish->bytes) {
		wish->error = 0;
		bytes = fcntl(fd, F_SETPIPE_SZ, (int)wish->bytes);
		if (bytes < 0)
			wish->error = -errno;
		else
			note_size(pipes, end->inode, (uint32_t)bytes);
	}
	close(fd);
}

/* Is there an end of this pipe in a process of this name? The process is not "except". */
static const struct end *find_end(const struct rate_pipes *pipes, uint64_t inode, bool writes,
				  const char *name, pid_t except)
{
	size_t i;

	for (i = 0; i < pipes->end_count; i++) {
		const struct end *end = &pipes->ends[i];

		if (end->inode == inode && end->writes == writes && end->pid != except &&
		    !strcmp(end->name, name))
			return end;
	}
	return NULL;
}

/* Was this pipe found before, in another process of that name? */
static bool is_again(const struct rate_pipes *pipes, size_t at)
{
	const struct end *end = &pipes->ends[at], *other;
	size_t i;

	for (i = 0; i < at; i++) {
		other = &pipes->ends[i];
		if (other->inode == end->inode && other->writes && !strcmp(other->name, end->name))
			return true;
	}
	return false;
}

/* Grant a wish, if as many pipes between such processes are there as it asks for. */
static void grant(struct rate_pipes *pipes, struct rate_pipe_wish *wish)
{
	const struct end *chosen = NULL;
	uint32_t found = 0;
	size_t i;

	/* Processes are looked at in the order in which their parent started them. */
	for (i = 0; i < pipes->end_count; i++) {
		const struct end *writer = &pipes->ends[i], *reader;

		if (!writer->writes || strcmp(writer->name, wish->from) || is_again(pipes, i))
			continue;
		reader = find_end(pipes, writer->inode, false, wish->to, writer->pid);
		if (!reader)
			continue;
		if (++found == wish->number)
			chosen = reader;
	}
	if (chosen && found >= wish->of)
		set_size(pipes, wish, chosen);
}

static void look(struct rate_pipes *pipes)
{
	size_t i;

	pipes->end_count = pipes->process_count = 0;
	for (i = 0; i < pipes->root_count; i++)
		add_process(pipes, pipes->roots[i]);
	for (i = 0; i < pipes->process_count; i++) {
		if (pipes->processes[i] != getpid())
			look_at(pipes, pipes->processes[i]);
		add_children_of_threads(pipes, pipes->processes[i]);
	}
	for (i = 0; i < pipes->end_count; i++)
		if (!pipes->ends[i].writes)
			read_size(pipes, &pipes->ends[i]);
	for (i = 0; i < pipes->wish_count; i++)
		grant(pipes, &pipes->wishes[i]);
}

/* --- the thread --- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *follow(void *arg)
{
	struct rate_pipes *pipes = arg;
	uint64_t pause_ns = FIRST_NS, begin_ns, end_ns, least_ns, at_ns;
	struct timespec until;

	pthread_mutex_lock(&pipes->lock);
	while (!pipes->stop) {
		pthread_mutex_unlock(&pipes->lock);
		begin_ns = now_ns();
		look(pipes);
		end_ns = now_ns();
		least_ns = (end_ns - begin_ns) * WORK_SHARE;
		at_ns = end_ns + (pause_ns > least_ns ? pause_ns : least_ns);
		until.tv_sec = (time_t)(at_ns / 1000000000u);
		until.tv_nsec = (long)(at_ns % 1000000000u);
		pause_ns = pause_ns * 2 < LAST_NS ? pause_ns * 2 : LAST_NS;
		pthread_mutex_lock(&pipes->lock);
		if (!pipes->stop)
			pthread_cond_timedwait(&pipes->stopped, &pipes->lock, &until);
	}
	pthread_mutex_unlock(&pipes->lock);
	return NULL;
}

struct rate_pipes *rate_pipes__follow(const pid_t *roots, size_t root_count,
				      struct rate_pipe_wish *wishes, size_t count)
{
	struct rate_pipes *pipes = calloc(1, sizeof(*pipes));
	pthread_condattr_t attributes;
	sigset_t all, before;
	int rc;

	if (!pipes)
		return NULL;
	pipes->root_count = root_count < RATE_ROOTS_MAX ? root_count : RATE_ROOTS_MAX;
	memcpy(pipes->roots, roots, pipes->root_count * sizeof(*roots));
	pipes->wishes = wishes;
	pipes->wish_count = wishes ? count : 0;
	pthread_mutex_init(&pipes->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&pipes->stopped, &attributes);
	pthread_condattr_destroy(&attributes);
	/* Signals are the command's, or the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&pipes->thread, NULL, follow, pipes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pipes->is_running = !rc;
	if (!rc)
		return pipes;
	rate_pipes__free(pipes);
	errno = rc;
	return NULL;
}

void rate_pipes__end(struct rate_pipes *pipes)
{
	if (!pipes || !pipes->is_running)
		return;
	pthread_mutex_lock(&pipes->lock);
	pipes->stop = true;
	pthread_cond_signal(&pipes->stopped);
	pthread_mutex_unlock(&pipes->lock);
	pthread_join(pipes->thread, NULL);
	pipes->is_running = false;
}

void rate_pipes__free(struct rate_pipes *pipes)
{
	if (!pipes)
		return;
	rate_pipes__end(pipes);
	pthread_mutex_destroy(&pipes->lock);
	pthread_cond_destroy(&pipes->stopped);
	free(pipes->ends);
	free(pipes->sizes);
	free(pipes);
}

uint32_t rate_pipes__bytes(struct rate_pipes *pipes, uint64_t inode)
{
	uint32_t bytes = 0;
	size_t i;

	if (!pipes)
		return 0;
	pthread_mutex_lock(&pipes->lock);
	for (i = 0; !bytes && i < pipes->size_count; i++)
		if (pipes->sizes[i].inode == inode)
			bytes = pipes->sizes[i].bytes;
	pthread_mutex_unlock(&pipes->lock);
	return bytes;
}

uint32_t rate_pipes__limit(void)
{
	FILE *file = fopen("/proc/sys/fs/pipe-max-size", "re");
	unsigned bytes = 0;

	if (file && fscanf(file, "%u", &bytes) != 1)
		bytes = 0;
	if (file)
		fclose(file);
	return bytes ? bytes : LIMIT_BYTES;
}
