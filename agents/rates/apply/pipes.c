/* SPDX-License-Identifier: MIT */
/* pipes.c - sizes of pipes of running processes: read, and set by the names of their ends */
#include "apply/pipes.h"

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

struct rate_pipes {
	pid_t roots[RATE_ROOTS_MAX];
	size_t root_count;
	struct rate_pipe_wish *wishes;
	size_t wish_count;
	uint64_t pause_ns, due_ns; /* between two looks; when it is time for the next one */
	struct pem_proc_pipes ends;
	struct size *sizes;
	size_t size_count, size_capacity;
};

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
static void visit(struct rate_pipes *pipes, const struct pem_proc_pipe *end,
		  struct rate_pipe_wish *wish)
{
	int set, bytes = pem_proc__pipe_bytes(end, wish ? wish->bytes : 0, &set);

	if (bytes <= 0)
		return;
	if (wish && !wish->was_bytes)
		wish->was_bytes = (uint32_t)bytes;
	/* The process may have asked for more, or the kernel have rounded up. */
	if (wish && (uint32_t)bytes < wish->bytes)
		wish->error = set < 0 ? set : 0;
	note_size(pipes, end->inode, (uint32_t)(set > 0 ? set : bytes));
}

/* Is there an end of this pipe in a process of this name? The process is not "except". */
static const struct pem_proc_pipe *find_end(const struct rate_pipes *pipes, uint64_t inode,
					    bool writes, const char *name, pid_t except)
{
	size_t i;

	for (i = 0; i < pipes->ends.count; i++) {
		const struct pem_proc_pipe *end = &pipes->ends.pipes[i];

		if (end->inode == inode && end->writes == writes && end->pid != except &&
		    !strcmp(end->name, name))
			return end;
	}
	return NULL;
}

/* Was this pipe found before, in another process of that name? */
static bool is_again(const struct rate_pipes *pipes, size_t at)
{
	const struct pem_proc_pipe *end = &pipes->ends.pipes[at], *other;
	size_t i;

	for (i = 0; i < at; i++) {
		other = &pipes->ends.pipes[i];
		if (other->inode == end->inode && other->writes && !strcmp(other->name, end->name))
			return true;
	}
	return false;
}

/* Grant a wish, if as many pipes between such processes are there as it asks for. */
static void grant(struct rate_pipes *pipes, struct rate_pipe_wish *wish)
{
	const struct pem_proc_pipe *chosen = NULL;
	uint32_t found = 0;
	size_t i;

	/* Processes are looked at in the order in which their parent started them. */
	for (i = 0; i < pipes->ends.count; i++) {
		const struct pem_proc_pipe *writer = &pipes->ends.pipes[i], *reader;

		if (!writer->writes || strcmp(writer->name, wish->from) || is_again(pipes, i))
			continue;
		reader = find_end(pipes, writer->inode, false, wish->to, writer->pid);
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

	pem_proc__find_pipes(pipes->roots, pipes->root_count, &pipes->ends);
	for (i = 0; i < pipes->ends.count; i++)
		if (!pipes->ends.pipes[i].writes)
			visit(pipes, &pipes->ends.pipes[i], NULL);
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
	free(pipes->ends.pipes);
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
