/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * phases.c - which phase a record lies in
 *
 * The innermost one of its thread; or else the last one that began in its process, and then in its
 * parent process, and so on. A process that ends leaves its phases to its parent: so a phase that a
 * script begins by `pem mark begin` is the script's. Where nothing tells which process is whose
 * child, such a phase is known by its process, which raised nothing after it.
 */
#include "pass.h"

#include <errno.h>
#include <stdlib.h>

#define ANCESTORS_MAX 64u /* a trace may say that processes are each other's parents */

/*
 * Open phases of a process. When it ends, its list becomes one with its parent's, and names that
 * one as its heir: so phases need not be told, however many there are. Heirs form a tree, as in
 * Tarjan's set union algorithm (Efficiency of a Good But Not Linear Set Union Algorithm, 1975).
 */
struct pem_phase_list {
	struct pem_phase_list *heir; /* NULL: it is a list of its own */
	struct pem_open *newest, *oldest;
	struct pem_phase_list *allocated; /* the next of all that were ever allocated */
};

/* The list that a list has become part of. */
static struct pem_phase_list *now_of(struct pem_phase_list *list)
{
	while (list->heir) {
		if (list->heir->heir)
			list->heir = list->heir->heir;
		list = list->heir;
	}
	return list;
}

static struct pem_phase_list *list_of(struct pem_pass *pass, struct pem_life_process *p)
{
	if (p->phases)
		return p->phases;
	p->phases = calloc(1, sizeof(*p->phases));
	if (!p->phases)
		return NULL;
	p->phases->allocated = pass->phase_lists;
	pass->phase_lists = p->phases;
	return p->phases;
}

int pem_phases__begin(struct pem_pass *pass, struct pem_open *open)
{
	struct pem_phase_list *list;

	open->newer_of_all = NULL;
	open->older_of_all = pass->phases;
	if (pass->phases)
		pass->phases->newer_of_all = open;
	pass->phases = open;
	if (!open->process)
		return 0;
	list = list_of(pass, open->process);
	if (!list)
		return -ENOMEM;
	open->phase_list = list;
	open->newer_phase = NULL;
	open->older_phase = list->newest;
	if (list->newest)
		list->newest->newer_phase = open;
	else
		list->oldest = open;
	list->newest = open;
	return 0;
}

void pem_phases__end(struct pem_pass *pass, struct pem_open *open)
{
	struct pem_phase_list *list;

	if (open->older_of_all)
		open->older_of_all->newer_of_all = open->newer_of_all;
	if (open->newer_of_all)
		open->newer_of_all->older_of_all = open->older_of_all;
	else
		pass->phases = open->older_of_all;
	if (!open->phase_list)
		return;
	list = now_of(open->phase_list);
	if (open->older_phase)
		open->older_phase->newer_phase = open->newer_phase;
	else
		list->oldest = open->newer_phase;
	if (open->newer_phase)
		open->newer_phase->older_phase = open->older_phase;
	else
		list->newest = open->older_phase;
}

void pem_phases__process_ends(struct pem_life_process *p)
{
	struct pem_phase_list *list = p->phases, *heir;

	if (!p->parent || p->parent == p || !list || !list->newest)
		return;
	heir = p->parent->phases;
	p->phases = NULL;
	if (!heir) {
		p->parent->phases = list;
		return;
	}
	/* The child's phases are newer than those of its parent. */
	list->oldest->older_phase = heir->newest;
	if (heir->newest)
		heir->newest->newer_phase = list->oldest;
	else
		heir->oldest = list->oldest;
	heir->newest = list->newest;
	list->heir = heir;
}

void pem_phases__free(struct pem_pass *pass)
{
	struct pem_phase_list *list;

	while ((list = pass->phase_lists)) {
		pass->phase_lists = list->allocated;
		free(list);
	}
}

const struct pem_interval *pem_phases__of(const struct pem_pass *pass,
					  const struct pem_life_process *process,
					  const struct pem_life_thread *thread)
{
	const struct pem_open *last = pass->phases;
	uint32_t i;

	if (!last)
		return NULL;
	if (thread && thread->phase_count)
		for (i = thread->open_count; i-- > 0;)
			if (thread->open[i]->plan->is_phase)
				return &thread->open[i]->interval;
	for (i = 0; process && i < ANCESTORS_MAX; i++, process = process->parent)
		if (process->phases && process->phases->newest)
			return &process->phases->newest->interval;
	if (last->process && !last->process->parent &&
	    last->process->last_clock <= last->interval.begin.clock)
		return &last->interval;
	return NULL;
}
