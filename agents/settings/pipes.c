/* SPDX-License-Identifier: MIT */
/* pipes.c - sizes of pipes of running processes: read, and set by the names of their ends */
#include "pipes.h"

#include "grow.h"
#include "processes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZES_MAX 16384u
#define FIRST_NS 1000000u /* from one look to the next, and twice as long after each, */
#define LAST_NS 100000000u /* up to this, */
#define WORK_SHARE 10u /* and at least this many times as long as a look takes */

struct size {
	uint64_t inode;
	uint32_t bytes;
};

struct settings_pipes {
	pid_t roots[SETTINGS_ROOTS_MAX];
	size_t root_count;
	struct settings_pipe_wish *wishes;
	size_t wish_count;
	uint64_t pause_ns, due_ns; /* between two looks; when it is time for the next one */
	struct pem_proc_pipes ends;
	struct size *sizes;
	size_t size_count, size_capacity;
};

/* --- sizes --- */

static void note_size(struct settings_pipes *pipes, uint64_t inode, uint32_t bytes)
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
static void visit(struct settings_pipes *pipes, const struct pem_proc_pipe *end,
		  struct settings_pipe_wish *wish)
{
	int set, bytes = pem_proc__pipe_bytes(end, wish ? wish->bytes : 0, &set);

	if (bytes <= 0)
		return;
	if (wish && !wish->was_bytes)
		wish->was_bytes = (uint32_t)bytes;
	/* The process may have asked for more, or the kernel have rounded up. */
	if (wish && set < 0)
		wish->error = set;
	note_size(pipes, end->inode, (uint32_t)(set > 0 ? set : bytes));
}

/* Does a process of this name write to a pipe? The process is not "except". */
static bool is_written(const struct settings_pipes *pipes, uint64_t inode, const char *name,
		       pid_t except)
{
	const struct pem_proc_pipe *end = pipes->ends.pipes, *last = end + pipes->ends.count;

	while (end < last && (end->inode != inode || !end->writes || end->pid == except ||
			      strcmp(end->name, name)))
		end++;
	return end < last;
}

/* The wish for a pipe that this end reads. NULL: there is none. */
static struct settings_pipe_wish *wish_for(const struct settings_pipes *pipes,
					   const struct pem_proc_pipe *end)
{
	size_t i;

	for (i = 0; i < pipes->wish_count; i++)
		if (!strcmp(end->name, pipes->wishes[i].to) &&
		    is_written(pipes, end->inode, pipes->wishes[i].from, end->pid))
			return &pipes->wishes[i];
	return NULL;
}

static void look(struct settings_pipes *pipes)
{
	size_t i;

	pem_proc__find_pipes(pipes->roots, pipes->root_count, &pipes->ends);
	for (i = 0; i < pipes->ends.count; i++)
		if (!pipes->ends.pipes[i].writes)
			visit(pipes, &pipes->ends.pipes[i], wish_for(pipes, &pipes->ends.pipes[i]));
}

/* --- from time to time --- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t settings_pipes__look(struct settings_pipes *pipes)
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

struct settings_pipes *settings_pipes__new(const pid_t *roots, size_t root_count,
					   struct settings_pipe_wish *wishes, size_t count)
{
	struct settings_pipes *pipes = calloc(1, sizeof(*pipes));

	if (!pipes)
		return NULL;
	pipes->root_count = root_count < SETTINGS_ROOTS_MAX ? root_count : SETTINGS_ROOTS_MAX;
	memcpy(pipes->roots, roots, pipes->root_count * sizeof(*roots));
	pipes->wishes = wishes;
	pipes->wish_count = wishes ? count : 0;
	pipes->pause_ns = FIRST_NS;
	return pipes;
}

void settings_pipes__free(struct settings_pipes *pipes)
{
	if (!pipes)
		return;
	free(pipes->ends.pipes);
	free(pipes->sizes);
	free(pipes);
}

uint32_t settings_pipes__bytes(const struct settings_pipes *pipes, uint64_t inode)
{
	size_t i;

	for (i = 0; pipes && i < pipes->size_count; i++)
		if (pipes->sizes[i].inode == inode)
			return pipes->sizes[i].bytes;
	return 0;
}
