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

#define ANCESTORS_MAX 64u /* a trace may say that processes are each other's parents */

static void link_to(struct pem_life_process *p, struct pem_open *open)
{
	open->phase_process = p;
	open->newer_phase = NULL;
	open->older_phase = p->phases;
	if (p->phases)
		p->phases->newer_phase = open;
	p->phases = open;
}

void pem_phases__begin(struct pem_pass *pass, struct pem_open *open)
{
	if (open->process)
		link_to(open->process, open);
	open->newer_of_all = NULL;
	open->older_of_all = pass->phases;
	if (pass->phases)
		pass->phases->newer_of_all = open;
	pass->phases = open;
}

void pem_phases__end(struct pem_pass *pass, struct pem_open *open)
{
	if (open->older_of_all)
		open->older_of_all->newer_of_all = open->newer_of_all;
	if (open->newer_of_all)
		open->newer_of_all->older_of_all = open->older_of_all;
	else
		pass->phases = open->older_of_all;
	if (!open->phase_process)
		return;
	if (open->older_phase)
		open->older_phase->newer_phase = open->newer_phase;
	if (open->newer_phase)
		open->newer_phase->older_phase = open->older_phase;
	else
		open->phase_process->phases = open->older_phase;
}

void pem_phases__process_ends(struct pem_life_process *p)
{
	struct pem_open *open, *oldest = p->phases;

	if (!p->parent || !oldest)
		return;
	while (oldest->older_phase)
		oldest = oldest->older_phase;
	p->phases = NULL;
	/* In the order in which they began. */
	while (oldest) {
		open = oldest;
		oldest = open->newer_phase;
		link_to(p->parent, open);
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
		if (process->phases)
			return &process->phases->interval;
	if (last->process && !last->process->parent &&
	    last->process->last_clock <= last->interval.begin.clock)
		return &last->interval;
	return NULL;
}
