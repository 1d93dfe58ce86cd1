/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gates.c - tell sources in which memory programs keep the state of the session's gates */
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "source_host/source_host.h"

static void tell(const struct pem_instance *instance, uint32_t pid, uint64_t address)
{
	if (address && pid && instance->ops->set_gates)
		instance->ops->set_gates(instance->source, (pid_t)pid, address);
}

void pem_session__note_gates(struct pem_session *s, uint32_t pid, uint64_t address)
{
	int i;

	for (i = 0; i < s->sources->instance_count; i++)
		tell(&s->sources->instances[i], pid, address);
}

/* Is the process still there, and still its owner's? Its pid may have gone to another one. */
static bool has_process(const struct pem_dir *dir, uint32_t pid, uint64_t started)
{
	return started && pem_dir__start(dir->owner, pid) == started;
}

void pem_session__tell_gates(const struct pem_session *s, const struct pem_instance *instance)
{
	const struct pem_producer *p;
	const struct pem_member *m;

	for (m = s->processes->members; m; m = m->next) {
		if (m->gates && has_process(m->dir, m->pid, m->started))
			tell(instance, m->pid, m->gates);
	}
	for (p = s->processes->producers; p; p = p->next) {
		if (p->gates && has_process(p->dir, p->pid, p->started))
			tell(instance, p->pid, p->gates);
	}
}
