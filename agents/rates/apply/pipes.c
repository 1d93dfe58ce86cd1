/* SPDX-License-Identifier: MIT */
/* pipes.c - finds pipes of running processes in /proc, reads and sets their sizes */
#include "apply/pipes.h"

#include "grow.h"
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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

/* An end of a pipe. */
struct end {
	struct pem_proc_pipe pipe;
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
	uint64_t pause_ns, due_ns; /* between two looks; when it is time for the next one */
	struct end *ends;
	size_t end_count, end_capacity, process_count;
	pid_t looked_at;
	struct size *sizes;
	size_t size_count, size_capacity;
};

/* --- what there is --- */

static bool look_at_descriptor(int descriptor, void *arg)
{
	struct rate_pipes *pipes = arg;
	struct end end;

	if (!pem_proc__is_pipe(pipes->looked_at, descriptor, &end.pipe))
		return true;
	if (pem_grow(&pipes->ends, sizeof(*pipes->ends), pipes->end_count + 1,
		     &pipes->end_capacity))
		return false;
	pem_proc__name(pipes->looked_at, end.name, sizeof(end.name));
	pipes->ends[pipes->end_count++] = end;
	return pipes->end_count < ENDS_MAX;
}

static bool look_at_process(int pid, void *arg)
{
	struct rate_pipes *pipes = arg;

	pipes->looked_at = pid;
	if (pid != getpid())
		pem_proc__descriptors(pid, look_at_descriptor, pipes);
	return ++pipes->process_count < PROCESSES_MAX;
}

/* --- sizes --- */

static void note_size(struct rate_pipes *pipes, uint64_t inode, uint32_t bytes)
{
	size_t i;

	for (i = 0; i < pipes->size_count && pipes->sizes[i].inode != inode;)
		i++;
	if (i < pipes->size_count ||
	    (i < SIZES_MAX &&
	     !pem_grow(&pipes->sizes, sizeof(*pipes->sizes), i + 1, &pipes->size_capacity))) {
		pipes->sizes[i] = (struct size){inode, bytes};
		pipes->size_count += i == pipes->size_count;
	}
}

/* Read the size, which a process may change at any time, and set it if there is a wish. */
static void visit(struct rate_pipes *pipes, const struct end *end, struct rate_pipe_wish *wish)
{
	int fd = pem_proc__open_pipe(&end->pipe), set;
	int bytes = fd < 0 ? -1 : fcntl(fd, F_GETPIPE_SZ);

	if (wish && bytes > 0 && !wish->was_bytes)
		wish->was_bytes = (uint32_t)bytes;
	/* The process may have asked for more, or the kernel have rounded up. */
	if (wish && bytes > 0 && (uint32_t)bytes < wish->bytes) {
		set = fcntl(fd, F_SETPIPE_SZ, (int)wish->bytes);
		wish->error = set < 0 ? -errno : 0;
		bytes = set < 0 ? bytes : set;
	}
	if (bytes > 0)
		note_size(pipes, end->pipe.inode, (uint32_t)bytes);
	if (fd >= 0)
		close(fd);
}

/* Is there an end of this pipe in a process of this name? The process is not "except". */
static const struct end *find_end(const struct rate_pipes *pipes, uint64_t inode, bool writes,
				  const char *name, pid_t except)
{
	size_t i;

	for (i = 0; i < pipes->end_count; i++) {
		const struct end *end = &pipes->ends[i];

		if (end->pipe.inode == inode && end->pipe.writes == writes &&
		    end->pipe.pid != except && !strcmp(end->name, name))
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
		if (other->pipe.inode == end->pipe.inode && other->pipe.writes &&
		    !strcmp(other->name, end->name))
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

		if (!writer->pipe.writes || strcmp(writer->name, wish->from) || is_again(pipes, i))
			continue;
		reader = find_end(pipes, writer->pipe.inode, false, wish->to, writer->pipe.pid);
		if (!reader)
			continue;
		if (++found == wish->number)
			chosen = reader;
	}
	if (chosen && found >= wish->of)
		visit(pipes, chosen, wish);
}

static void look(struct rate_pipes *pipes)
{
	size_t i;

	pipes->end_count = pipes->process_count = 0;
	pem_proc__walk(pipes->roots, pipes->root_count, UINT_MAX, look_at_process, pipes);
	for (i = 0; i < pipes->end_count; i++)
		if (!pipes->ends[i].pipe.writes)
			visit(pipes, &pipes->ends[i], NULL);
	for (i = 0; i < pipes->wish_count; i++)
		grant(pipes, &pipes->wishes[i]);
}

/* --- from time to time --- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t rate_pipes__look(struct rate_pipes *pipes)
{
	uint64_t begin_ns = now_ns(), end_ns, pause_ns;

	if (begin_ns < pipes->due_ns)
		return pipes->due_ns - begin_ns;
	look(pipes);
	end_ns = now_ns();
	pause_ns = (end_ns - begin_ns) * WORK_SHARE;
	if (pause_ns < pipes->pause_ns)
		pause_ns = pipes->pause_ns;
	pipes->pause_ns = pipes->pause_ns * 2 < LAST_NS ? pipes->pause_ns * 2 : LAST_NS;
	pipes->due_ns = end_ns + pause_ns;
	return pause_ns;
}

struct rate_pipes *rate_pipes__new(const pid_t *roots, size_t root_count,
				   struct rate_pipe_wish *wishes, size_t count)
{
	struct rate_pipes *pipes = calloc(1, sizeof(*pipes));

	if (!pipes)
		return NULL;
	pipes->root_count = root_count < RATE_ROOTS_MAX ? root_count : RATE_ROOTS_MAX;
	memcpy(pipes->roots, roots, pipes->root_count * sizeof(*roots));
	pipes->wishes = wishes;
	pipes->wish_count = wishes ? count : 0;
	pipes->pause_ns = FIRST_NS;
	return pipes;
}

void rate_pipes__free(struct rate_pipes *pipes)
{
	if (!pipes)
		return;
	free(pipes->ends);
	free(pipes->sizes);
	free(pipes);
}

uint32_t rate_pipes__bytes(const struct rate_pipes *pipes, uint64_t inode)
{
	size_t i;

	for (i = 0; pipes && i < pipes->size_count; i++)
		if (pipes->sizes[i].inode == inode)
			return pipes->sizes[i].bytes;
	return 0;
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
