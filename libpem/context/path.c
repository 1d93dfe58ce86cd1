/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * path.c - the critical path to each thread's present: what it had to wait for, back to its begin
 *
 * The method is that of Yang and Miller ("Critical Path Analysis for the Execution of Parallel and
 * Distributed Programs", ICDCS 1988), forwards in place of backwards, so that a trace is read once.
 * While a thread runs or waits for a CPU, its path grows by that. When a thread ends the wait of
 * another one, the sleeper's path so far did not matter: the waker's path takes its place. Only a
 * wait that no thread ended is a part of a path itself.
 *
 * Paths share their beginnings: a part knows the one before it, and how many parts and threads know
 * it. A part that nobody knows is freed. So memory is what the live paths take.
 *
 *	thread 1  ran ---- ran ---- ran         a wake of 2 by 1: both know the second part
 *	                         \
 *	thread 2                  for a CPU -- ran
 *
 * Parts of one path follow each other without a gap. Time in which a thread's state is not known is
 * a part of state UNKNOWN.
 */
#include "pass.h"

#include <errno.h>
#include <stdlib.h>

struct pem_path_node {
	struct pem_path_part part;
	uint32_t known_by; /* threads, and nodes whose part comes after this one */
	uint64_t start_ns; /* of the whole path */
};

static struct pem_path_node *node_of(const struct pem_path_part *part)
{
	/* Each part is a node's first member; only callers see it const. */
	return (struct pem_path_node *)(uintptr_t)part;
}

static void release(struct pem_pass *pass, struct pem_path_node *node)
{
	struct pem_path_node *before;

	while (node && !--node->known_by) {
		before = node_of(node->part.before);
		free(node);
		pass->path_parts--;
		node = before;
	}
}

static struct pem_path_node *share(struct pem_path_node *node)
{
	node->known_by++;
	return node;
}

static bool is_joinable(const struct pem_path_part *a, const struct pem_path_part *b)
{
	return a->thread == b->thread && a->state == b->state &&
	       a->is_forgotten == b->is_forgotten && a->state != PEM_THREAD_BLOCKED;
}

/* A wake split a state into parts. Join those that no other path needs apart. */
static void join(struct pem_pass *pass, struct pem_path_node *last)
{
	struct pem_path_node *before = node_of(last->part.before);

	while (before && before->known_by == 1 && is_joinable(&before->part, &last->part)) {
		last->part.begin_ns = before->part.begin_ns;
		last->part.before = before->part.before;
		free(before);
		pass->path_parts--;
		before = node_of(last->part.before);
	}
}

/* Add a part to a thread's path, which ends where the part begins. Returns 0 or -ENOMEM. */
static int add(struct pem_pass *pass, struct pem_life_thread *t, const struct pem_path_part *part)
{
	struct pem_path_node *last = t->critical, *node;

	if (last && last->known_by == 1 && is_joinable(&last->part, part)) {
		last->part.end_ns = part->end_ns;
		return 0;
	}
	node = malloc(sizeof(*node));
	if (!node)
		return -ENOMEM;
	pass->path_parts++;
	if (last)
		join(pass, last);
	*node = (struct pem_path_node){
		.part = *part, .known_by = 1, .start_ns = last ? last->start_ns : part->begin_ns};
	node->part.before = last ? &last->part : NULL;
	t->critical = node;
	return 0;
}

/* Too many parts: of this path, only that it exists is kept. */
static int forget(struct pem_pass *pass, struct pem_life_thread *t)
{
	struct pem_path_part unknown = {.thread = &t->thread, .is_forgotten = 1};
	uint64_t start_ns = t->critical->start_ns;
	int rc;

	unknown.begin_ns = start_ns;
	unknown.end_ns = t->critical->part.end_ns;
	release(pass, t->critical);
	t->critical = NULL;
	pass->unknown.left_out++;
	rc = add(pass, t, &unknown);
	return rc;
}

static int extend(struct pem_pass *pass, struct pem_life_thread *t, struct pem_path_part *part)
{
	struct pem_path_part gap = {.thread = &t->thread, .end_ns = part->begin_ns};
	int rc = 0;

	if (t->critical && pass->path_parts >= pass->open_max)
		rc = forget(pass, t);
	if (t->critical && part->begin_ns < t->critical->part.end_ns)
		part->begin_ns = t->critical->part.end_ns;
	if (rc || part->begin_ns >= part->end_ns)
		return rc;
	if (t->critical && t->critical->part.end_ns < part->begin_ns) {
		gap.begin_ns = t->critical->part.end_ns;
		rc = add(pass, t, &gap);
	}
	return rc ? rc : add(pass, t, part);
}

/* From the end of the thread's path, or of its state's begin, until now. */
static int extend_until_now(struct pem_pass *pass, struct pem_life_thread *t,
			    enum pem_thread_state state)
{
	struct pem_path_part part = {.thread = &t->thread,
				     .state = state,
				     .begin_ns = pass->now_ns,
				     .end_ns = pass->now_ns};

	if (!pass->has_paths)
		return 0;
	if (t->thread.state == PEM_THREAD_RUNNING)
		part.begin_ns = t->thread.since_ns;
	else if (t->thread.state == PEM_THREAD_ENDED && t->critical)
		part.begin_ns = t->critical->part.end_ns;
	return extend(pass, t, &part);
}

int pem_path__run(struct pem_pass *pass, struct pem_life_thread *t)
{
	return extend_until_now(pass, t, PEM_THREAD_RUNNING);
}

int pem_path__queue(struct pem_pass *pass, struct pem_life_thread *t)
{
	return extend_until_now(pass, t, PEM_THREAD_RUNNABLE);
}

void pem_path__forget_wake(struct pem_pass *pass, struct pem_life_thread *t)
{
	release(pass, t->woken_path);
	t->woken_path = NULL;
}

int pem_path__wake(struct pem_pass *pass, struct pem_life_thread *waker,
		   struct pem_life_thread *sleeper)
{
	int rc;

	if (!pass->has_paths || !waker)
		return 0;
	rc = pem_path__run(pass, waker);
	if (rc || !waker->critical || waker->critical->part.end_ns != pass->now_ns ||
	    waker->critical->part.state != PEM_THREAD_RUNNING)
		return rc;
	pem_path__forget_wake(pass, sleeper);
	sleeper->woken_path = share(waker->critical);
	return 0;
}

int pem_path__start(struct pem_pass *pass, struct pem_life_thread *parent,
		    struct pem_life_thread *child)
{
	int rc;

	if (!pass->has_paths || !parent)
		return 0;
	rc = pem_path__run(pass, parent);
	if (rc || !parent->critical || parent->critical->part.end_ns != pass->now_ns)
		return rc;
	child->critical = share(parent->critical);
	return 0;
}

int pem_path__add(struct pem_pass *pass, struct pem_life_thread *t, struct pem_span *span)
{
	struct pem_path_part part = {.thread = &t->thread,
				     .state = span->state,
				     .woken_by = span->woken_by,
				     .begin_ns = span->begin_ns,
				     .end_ns = span->end_ns};
	bool is_woken = span->state == PEM_THREAD_BLOCKED && span->woken_by == PEM_WOKEN_THREAD &&
			t->woken_path && t->woken_path->start_ns <= span->begin_ns;
	int rc;

	if (!pass->has_paths)
		return 0;
	if (is_woken) {
		release(pass, t->critical);
		t->critical = t->woken_path;
		t->woken_path = NULL;
		part.state = PEM_THREAD_RUNNABLE;
		part.woken_by = PEM_WOKEN_UNKNOWN;
	}
	rc = extend(pass, t, &part);
	if (!rc && part.state == PEM_THREAD_BLOCKED && t->critical &&
	    t->critical->part.state == PEM_THREAD_BLOCKED)
		span->part = &t->critical->part;
	return rc;
}

void pem_path__free(struct pem_pass *pass)
{
	size_t i;

	for (i = 0; i < pass->life.thread_count; i++) {
		release(pass, pass->life.threads[i]->critical);
		release(pass, pass->life.threads[i]->woken_path);
	}
}

/* --- what callers ask --- */

const struct pem_path_part *pem_pass__path(const struct pem_pass *pass,
					   const struct pem_pass_thread *thread)
{
	const struct pem_life_thread *t = NULL;

	if (pass && thread && thread->number < pass->life.thread_count)
		t = pass->life.threads[thread->number];
	return t && t->critical ? &t->critical->part : NULL;
}

const struct pem_path_part *pem_pass__command_path(const struct pem_pass *pass)
{
	const struct pem_trace_info *info =
		pass && pass->trace ? pem_trace__info(pass->trace) : NULL;
	const struct pem_life_process *command = NULL;
	const struct pem_life_thread *t, *last = NULL;
	size_t i;

	if (!info || !info->command_pid)
		return NULL;
	for (i = 0; !command && i < pass->life.process_count; i++)
		if (pass->life.processes[i]->process.pid == info->command_pid)
			command = pass->life.processes[i];
	/* Nothing says which thread of a program that goes on its end will wait for. */
	if (!command || (info->exit_status < 0 && command->live_threads))
		return NULL;
	for (i = 0; i < pass->life.thread_count; i++) {
		t = pass->life.threads[i];
		if (t->process == command && t->critical &&
		    (!last || t->critical->part.end_ns > last->critical->part.end_ns))
			last = t;
	}
	return last ? &last->critical->part : NULL;
}

void pem_path_part__set_user(const struct pem_path_part *part, uint64_t value)
{
	if (part)
		node_of(part)->part.user = value;
}
