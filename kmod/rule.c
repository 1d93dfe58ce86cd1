// SPDX-License-Identifier: GPL-2.0-only
/*
 * rule.c - the rules of a session: checked, kept, shown to probes
 *
 * A rule is complete before probes see it and does not change afterwards. A new rule replaces it.
 * The old rule is retired once it can't be restored any more. Retired rules are freed when no probe
 * can see them. They are freed many at a time, because waiting for probes takes milliseconds.
 *
 * An event's probe is registered exactly while the session runs and its rule wants something. While
 * any event is logged, context switches are logged, too. Their rule is then a copy with
 * PEM_ACTION_LOG added. The copy lives as long as probes see it. The event keeps the user's own
 * rule, because the next copy is made of it.
 */
#include "module.h"

/* A unit test compiles this file in user space. */
#ifdef __KERNEL__
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#endif

#define RETIRED_MAX 64
#define FLAGS (PEM_ACTION_LOG | PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION)

static void retire(struct pem_kmod_session *session, struct pem_kmod_rule *rule)
{
	if (!rule)
		return;
	rule->next = session->retired;
	session->retired = rule;
	if (++session->retired_count < RETIRED_MAX)
		return;
	tracepoint_synchronize_unregister();
	pem_kmod_rule__free_retired(session);
}

void pem_kmod_rule__free_retired(struct pem_kmod_session *session)
{
	struct pem_kmod_rule *rule;

	while ((rule = session->retired)) {
		session->retired = rule->next;
		kfree(rule);
	}
	session->retired_count = 0;
}

void pem_kmod_rule__free_all(struct pem_kmod_session *session)
{
	unsigned int i;

	pem_kmod_rule__free_retired(session);
	for (i = 0; i < pem_kmod_probe_count; i++)
		kfree(session->events[i].rule);
}

static bool is_wanted(const struct pem_kmod_rule *rule)
{
	return rule && (rule->action & (FLAGS | PEM_KACTION_COUNTERS));
}

static bool logs_anything(const struct pem_kmod_session *session)
{
	unsigned int i;

	for (i = 0; i < pem_kmod_probe_count; i++) {
		if (session->events[i].rule && (session->events[i].rule->action & PEM_ACTION_LOG))
			return true;
	}
	return false;
}

static struct pem_kmod_rule *new_rule(u32 test_count)
{
	struct pem_kmod_rule *rule;

	rule = kzalloc(struct_size(rule, tests, test_count), GFP_KERNEL_ACCOUNT);
	if (rule) {
		rule->cpu = PEM_NO_CPU;
		rule->test_count = test_count;
	}
	return rule;
}

/*
 * Make the rule of logged context switches: the user's demand, if there is one, with logging added.
 */
static struct pem_kmod_rule *logged_switch(const struct pem_kmod_session *session,
					   const struct pem_kmod_rule *user)
{
	bool user_wants = is_wanted(user);
	struct pem_kmod_rule *rule = new_rule(user_wants ? user->test_count : 0);

	if (!rule)
		return NULL;
	if (user_wants)
		memcpy(rule, user, struct_size(user, tests, user->test_count));
	else
		rule->action = PEM_ACTION(0, PEM_NO_FIELD, 0, 0, 0);
	rule->is_copy = true;
	rule->action |= PEM_ACTION_LOG;
	if (session->setup.flags & PEM_KMOD_TREE)
		rule->action |= PEM_KACTION_TREE;
	return rule;
}

/* Choose the rule that probes should see for an event. */
static int choose(const struct pem_kmod_session *session, unsigned int index,
		  struct pem_kmod_rule **live)
{
	struct pem_kmod_rule *rule = session->events[index].rule;

	*live = NULL;
	if (session->state != PEM_KMOD_SESSION_RUNNING)
		return 0;
	if (index == pem_switch_index && session->is_logging && pem_attach__has(index) &&
	    !(rule && (rule->action & PEM_ACTION_LOG))) {
		*live = logged_switch(session, rule);
		return *live ? 0 : -ENOMEM;
	}
	if (is_wanted(rule))
		*live = rule;
	return 0;
}

/*
 * Show probes the current rule of an event. On failure probes still see the old rule. Removing a
 * demand does not fail.
 */
static int apply(struct pem_kmod_session *session, unsigned int index)
{
	struct pem_kmod_session_event *event = &session->events[index];
	struct pem_kmod_rule *live, *old = event->live, *unused;
	int rc = choose(session, index, &live);

	if (rc || live == old)
		return rc;
	rcu_assign_pointer(session->probe_data.rule[index], live);
	rc = pem_attach__set(session, index, live);
	if (rc && live) {
		rcu_assign_pointer(session->probe_data.rule[index], old);
		unused = live;
	} else {
		event->live = live;
		unused = old;
		rc = 0;
	}
	if (unused && unused->is_copy)
		retire(session, unused);
	return rc;
}

int pem_kmod_rule__apply_all(struct pem_kmod_session *session)
{
	unsigned int i;
	int rc = 0, error;

	session->is_logging = logs_anything(session);
	for (i = 0; i < pem_kmod_probe_count; i++) {
		error = apply(session, i);
		/*
		 * The module of this tracepoint may have gone meanwhile. Its event can't be
		 * recorded then.
		 */
		if (error && error != -EOPNOTSUPP)
			rc = error;
	}
	return rc;
}

/*
 * Replace an event's rule, or on failure leave everything as it was. Switches are logged before any
 * other event is, and until no other event is. So only one step may fail after another step has
 * succeeded: the event's own. That step keeps the old rule on failure.
 */
static int replace(struct pem_kmod_session *session, unsigned int index, struct pem_kmod_rule *rule)
{
	struct pem_kmod_session_event *event = &session->events[index];
	struct pem_kmod_rule *old = event->rule;
	bool was_logging = session->is_logging, has_changed;
	int rc = 0;

	event->rule = rule;
	session->is_logging = logs_anything(session);
	has_changed = was_logging != session->is_logging && index != pem_switch_index &&
		      pem_switch_index != PEM_KMOD_NO_EVENT;
	if (has_changed && session->is_logging)
		rc = apply(session, pem_switch_index);
	if (!rc)
		rc = apply(session, index);
	if (!rc) {
		if (has_changed && !session->is_logging)
			apply(session, pem_switch_index);
		retire(session, old);
		return 0;
	}
	event->rule = old;
	session->is_logging = was_logging;
	if (has_changed)
		apply(session, pem_switch_index);
	retire(session, rule);
	return rc;
}

/*
 * Translate a process or thread number of the caller's pid namespace to the kernel's global number.
 * 0 stays 0.
 */
static int global_number(u32 number, enum pid_type type, u32 *global)
{
	struct task_struct *task;

	*global = 0;
	if (!number)
		return 0;
	rcu_read_lock();
	/*
	 * A number may outlive its process or thread, for example as the number of a process group.
	 */
	task = pid_task(find_vpid(number), type);
	if (task)
		*global = task->pid;
	rcu_read_unlock();
	return *global ? 0 : -ESRCH;
}

static bool is_valid(const struct pem_kmod_event *wanted)
{
	u32 flags = PEM_ACTION_FLAGS(wanted->action);

	if ((flags & ~FLAGS) || (wanted->flags & ~(PEM_KMOD_KEEP_TESTS | PEM_KMOD_READ_COUNTERS)))
		return false;
	if (wanted->cpu != PEM_NO_CPU && wanted->cpu >= nr_cpu_ids)
		return false;
	/*
	 * An unused cell has tag 0 and has no least value yet. So a statistic with tag 0 is
	 * refused.
	 */
	if ((flags & PEM_ACTION_STAT) && !PEM_ACTION_TAG(wanted->action))
		return false;
	if (!(flags & PEM_ACTION_DISTRIBUTION))
		return true;
	return (flags & PEM_ACTION_STAT) &&
	       PEM_DISTRIBUTION_INDEX(wanted->distribution) < PEM_DISTRIBUTION_COUNT &&
	       !(PEM_DISTRIBUTION_KEEP(wanted->distribution) &
		 ~(PEM_DISTRIBUTION_VARIANCE | PEM_DISTRIBUTION_HISTOGRAM |
		   PEM_DISTRIBUTION_VALUES)) &&
	       wanted->distribution >> 16;
}

/* Copy the predicate into the rule, and check it. */
static int copy_tests(struct pem_kmod_rule *rule, const struct pem_kmod_event *wanted,
		      u32 fixed_bytes)
{
	u32 i;

	if (copy_from_user(rule->tests, u64_to_user_ptr(wanted->tests),
			   rule->test_count * sizeof(rule->tests[0])))
		return -EFAULT;
	if (!pem_tests__valid(rule->tests, rule->test_count, fixed_bytes))
		return -EINVAL;
	for (i = 0; i < rule->test_count; i++) {
		/* The kernel can't use floating point. */
		if (rule->tests[i].is_float ||
		    memchr_inv(rule->tests[i].reserved, 0, sizeof(rule->tests[i].reserved)))
			return -EINVAL;
	}
	return 0;
}

static int read_context(struct pem_kmod_rule *rule, const struct pem_kmod_event *wanted,
			u32 fixed_bytes)
{
	int rc = global_number(wanted->pid, PIDTYPE_TGID, &rule->pid);

	if (!rc)
		rc = global_number(wanted->tid, PIDTYPE_PID, &rule->tid);
	if (rc)
		return rc;
	rule->cpu = wanted->cpu;
	return copy_tests(rule, wanted, fixed_bytes);
}

static void keep_context(struct pem_kmod_rule *rule, const struct pem_kmod_rule *old)
{
	rule->pid = old->pid;
	rule->tid = old->tid;
	rule->cpu = old->cpu;
	memcpy(rule->tests, old->tests, old->test_count * sizeof(rule->tests[0]));
}

/* The index of the event with this id, or PEM_KMOD_NO_EVENT. */
static unsigned int index_of(u32 event_id)
{
	unsigned int i;

	for (i = 0; i < pem_kmod_probe_count; i++) {
		if (pem_kmod_probes[i].event_id == event_id)
			return i;
	}
	return PEM_KMOD_NO_EVENT;
}

int pem_kmod_rule__set(struct pem_kmod_session *session, const struct pem_kmod_event *wanted)
{
	unsigned int index = index_of(wanted->event_id);
	const struct pem_kmod_rule *old;
	struct pem_kmod_rule *rule;
	bool keeps;
	int rc = 0;

	if (!is_valid(wanted))
		return -EINVAL;
	if (index == PEM_KMOD_NO_EVENT)
		return -ENOENT;
	if ((PEM_ACTION_FLAGS(wanted->action) || wanted->flags & PEM_KMOD_READ_COUNTERS) &&
	    !pem_attach__has(index))
		return -EOPNOTSUPP;
	if (wanted->flags & PEM_KMOD_READ_COUNTERS &&
	    (!session->probe_data.counters || pem_kmod_probes[index].is_emitted))
		return -EINVAL;
	old = session->events[index].rule;
	keeps = wanted->flags & PEM_KMOD_KEEP_TESTS;
	if (!keeps && wanted->test_count > PEM_TESTS_MAX)
		return -EINVAL;
	rule = new_rule(!keeps ? wanted->test_count : old ? old->test_count : 0);
	if (!rule)
		return -ENOMEM;
	if (!keeps)
		rc = read_context(rule, wanted, pem_kmod_probes[index].fixed_bytes);
	else if (old)
		keep_context(rule, old);
	if (rc) {
		kfree(rule);
		return rc;
	}
	rule->distribution = wanted->distribution;
	rule->action = wanted->action;
	if (rule->pid || rule->tid || rule->cpu != PEM_NO_CPU || rule->test_count)
		rule->action |= PEM_ACTION_FILTER;
	if (session->setup.flags & PEM_KMOD_TREE)
		rule->action |= PEM_KACTION_TREE;
	if (wanted->flags & PEM_KMOD_READ_COUNTERS)
		rule->action |= PEM_KACTION_COUNTERS;
	return replace(session, index, rule);
}
