// SPDX-License-Identifier: GPL-2.0-only
/*
 * target.c - the target processes of a session: named by ioctl, followed over fork, removed when
 * they are gone
 *
 * From SETUP with PEM_KMOD_TREE until the file is closed, two probes keep the set (targets.h):
 *	sched_process_fork   A target's child becomes a target before it runs for the first time.
 *	sched_process_free   A process's leader is gone, after its last thread exited. That thread
 *			     may still have to leave its CPU for good; only this switch then belongs
 *			     to no target. The tracepoint comes after an RCU grace period. So code
 *			     that found the process in an RCU read side has added it before.
 */
#include "module.h"
#include "targets.h"

#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct pem_kmod_targets *targets = data;

	if (child->signal != parent->signal &&
	    pem_targets_have(targets, (unsigned long)parent->signal))
		pem_targets_add(targets, (unsigned long)child->signal);
}

static void on_free(void *data, struct task_struct *task)
{
	if (task->pid == task->tgid)
		pem_targets_remove(data, (unsigned long)task->signal);
}

/* The compiler checks the parameters of these probes. */
static inline void check(void)
{
	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_sched_process_free(on_free);
}

static int hook(const char *name, void *probe, void *data)
{
	struct tracepoint *tracepoint = pem_attach__find(name);

	return tracepoint ? tracepoint_probe_register(tracepoint, probe, data) : -EOPNOTSUPP;
}

static void unhook(const char *name, void *probe, void *data)
{
	struct tracepoint *tracepoint = pem_attach__find(name);

	if (tracepoint)
		tracepoint_probe_unregister(tracepoint, probe, data);
}

int pem_target__init(struct pem_kmod_session *session)
{
	struct pem_kmod_targets *targets;
	int rc;

	if (!(session->setup.flags & PEM_KMOD_TREE))
		return 0;
	rc = pem_kmod_user__charge(session->user, sizeof(*targets), session->is_exempt);
	if (rc)
		return rc;
	rc = -ENOMEM;
	targets = kvzalloc(sizeof(*targets), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!targets)
		goto uncharge;
	atomic_set(&targets->generation, 1); /* so that no CPU has an answer of this generation */
	rc = hook("sched_process_free", on_free, targets);
	if (rc)
		goto free;
	if (!(session->setup.flags & PEM_KMOD_ALONE))
		rc = hook("sched_process_fork", on_fork, targets);
	if (rc)
		goto unhook_free;
	session->probe_data.targets = targets;
	return 0;
unhook_free:
	unhook("sched_process_free", on_free, targets);
	tracepoint_synchronize_unregister();
free:
	kvfree(targets);
uncharge:
	pem_kmod_user__uncharge(session->user, sizeof(*targets));
	return rc;
}

/* Free the set. No probe of an event may run any more. */
void pem_target__exit(struct pem_kmod_session *session)
{
	struct pem_kmod_targets *targets = session->probe_data.targets;

	if (!targets)
		return;
	if (!(session->setup.flags & PEM_KMOD_ALONE))
		unhook("sched_process_fork", on_fork, targets);
	unhook("sched_process_free", on_free, targets);
	tracepoint_synchronize_unregister();
	session->probe_data.targets = NULL;
	kvfree(targets);
	pem_kmod_user__uncharge(session->user, sizeof(*targets));
}

u32 pem_target__lost(const struct pem_kmod_session *session)
{
	return session->probe_data.targets ? atomic_read(&session->probe_data.targets->lost) : 0;
}

int pem_target__add(struct pem_kmod_session *session, u32 pid)
{
	struct task_struct *task;
	int rc = 0;

	if (!session->probe_data.targets)
		return -EINVAL;
	rcu_read_lock();
	task = pid_task(find_vpid(pid), PIDTYPE_TGID);
	if (!task)
		rc = -ESRCH;
	else if (!pem_targets_add(session->probe_data.targets, (unsigned long)task->signal))
		rc = -ENOMEM;
	rcu_read_unlock();
	return rc;
}
