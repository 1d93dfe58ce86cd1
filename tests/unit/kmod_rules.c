/* SPDX-License-Identifier: MIT */
/*
 * kmod_rules.c - the module's rules: what probes see is what was asked for last, and lives as long
 * as they may see it
 *
 * kmod/rule.c, compiled for a kernel that hands out memory and registers probes until it is told
 * not to, and knows which rules probes may still hold. Not here: what probes make of a rule
 * (kmod_probes.c).
 */
#include "kmod_fixture.h"

/* --- what rule.c takes from the kernel --- */

#define __user
typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned __poll_t;
typedef struct {
	int unused;
} wait_queue_head_t, spinlock_t, refcount_t;
struct list_head {
	struct list_head *next;
};
struct hlist_node {
	struct hlist_node *next;
};
struct mutex {
	int unused;
};
struct irq_work {
	int unused;
};
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };
struct mem_cgroup;
struct page;
struct vm_area_struct;
struct pid {
	int number;
};

#define RULES_MAX 256
#define GFP_KERNEL_ACCOUNT 0
#define struct_size(p, member, count) (sizeof(*(p)) + (count) * sizeof((p)->member[0]))
#define u64_to_user_ptr(x) ((void *)(uintptr_t)(x))
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_assign_pointer(p, v) __atomic_store_n(&(p), v, __ATOMIC_RELEASE)

#include "kmod/module.h"

static const unsigned nr_cpu_ids = 4;
static struct pem_kmod_session *the_session;
static struct {
	void *at;
	bool is_held; /* by a probe that began before nobody could see it any more */
} rules[RULES_MAX];
static unsigned allocations_left, registrations_left;
static bool is_registered[COUNT];

static unsigned location_of(const void *at)
{
	unsigned i;

	for (i = 0; i < RULES_MAX && rules[i].at != at; i++)
		;
	assert_true(i < RULES_MAX);
	return i;
}

static bool is_shown(const void *at)
{
	unsigned i;

	for (i = 0; i < COUNT; i++) {
		if (at && the_session->probe_data.rule[i] == at)
			return true;
	}
	return false;
}

/* Probes begin all the time. */
static void hold_what_is_shown(void)
{
	unsigned i;

	for (i = 0; i < RULES_MAX; i++)
		rules[i].is_held |= is_shown(rules[i].at);
}

static void *kzalloc(size_t bytes, int flags)
{
	void *at;

	(void)flags;
	hold_what_is_shown();
	if (!allocations_left)
		return NULL;
	allocations_left--;
	at = calloc(1, bytes);
	assert_non_null(at);
	rules[location_of(NULL)].at = at;
	return at;
}

static void kfree(const void *at)
{
	unsigned i;

	hold_what_is_shown();
	if (!at)
		return;
	i = location_of(at);
	assert_false(is_shown(at));
	assert_false(rules[i].is_held);
	rules[i].at = NULL;
	free((void *)(uintptr_t)at);
}

static void tracepoint_synchronize_unregister(void)
{
	unsigned i;

	for (i = 0; i < RULES_MAX; i++)
		rules[i].is_held = false;
	hold_what_is_shown();
}

static unsigned long copy_from_user(void *to, const void *from, size_t bytes)
{
	if (bytes) /* memcpy wants places, the kernel's function does not */
		memcpy(to, from, bytes);
	return 0;
}

static const void *memchr_inv(const void *at, int byte, size_t bytes)
{
	const uint8_t *p = at;

	for (; bytes; bytes--, p++) {
		if (*p != byte)
			return p;
	}
	return NULL;
}

static struct pid *find_vpid(u32 number)
{
	static struct pid pid;

	pid.number = (int)number;
	return number < 100 ? &pid : NULL;
}

/*
 * Even numbers are processes, odd ones their second threads; that of 98 is left by one that is
 * gone.
 */
static struct task_struct *pid_task(struct pid *pid, enum pid_type type)
{
	static struct task_struct task;

	if (!pid || pid->number == 98 || (type == PIDTYPE_TGID && pid->number % 2))
		return NULL;
	task.pid = pid->number + 1000;
	return &task;
}

#include "kmod/rule.c"

bool pem_attach__has(unsigned int index)
{
	(void)index;
	return true;
}

int pem_attach__set(struct pem_kmod_session *session, unsigned int index, bool on)
{
	assert_ptr_equal(session, the_session);
	hold_what_is_shown();
	if (is_registered[index] == on)
		return 0;
	if (on && !registrations_left)
		return -ENOMEM;
	registrations_left -= on;
	is_registered[index] = on;
	return 0;
}

/* --- a session --- */

static struct pem_kmod_session *make_session(enum pem_kmod_session_state state)
{
	struct pem_kmod_session *session =
		calloc(1, sizeof(*session) + COUNT * sizeof(session->probe_data.rule[0]));

	assert_non_null(session);
	session->events = calloc(COUNT, sizeof(*session->events));
	assert_non_null(session->events);
	session->state = state;
	the_session = session;
	memset(rules, 0, sizeof(rules));
	memset(is_registered, 0, sizeof(is_registered));
	allocations_left = registrations_left = 1u << 30;
	return session;
}

/* As session.c: stopped, then freed. Nothing is left, registered or shown. */
static void free_session(struct pem_kmod_session *session)
{
	unsigned i;

	session->state = PEM_KMOD_SESSION_STOPPED;
	assert_int_equal(pem_kmod_rule__apply_all(session), 0);
	for (i = 0; i < COUNT; i++)
		assert_false(is_registered[i] || session->probe_data.rule[i]);
	tracepoint_synchronize_unregister();
	pem_kmod_rule__free_retired(session);
	pem_kmod_rule__free_all(session);
	for (i = 0; i < RULES_MAX; i++)
		assert_null(rules[i].at);
	free(session->events);
	free(session);
}

static int set(struct pem_kmod_session *session, unsigned index, uint32_t flags)
{
	struct pem_kmod_event event = {.size = sizeof(event),
				       .event_id = pem_kmod_probes[index].event_id,
				       .action = PEM_ACTION(flags, PEM_NO_FIELD, 0, 0, 1),
				       .cpu = PEM_NO_CPU};

	return pem_kmod_rule__set(session, &event);
}

/* The flags that probes see of an event; 0: they see no rule, and are not registered. */
static uint32_t shown(const struct pem_kmod_session *session, unsigned index)
{
	const struct pem_kmod_rule *rule = session->probe_data.rule[index];

	assert_int_equal(is_registered[index], rule != NULL);
	assert_ptr_equal(rule, session->events[index].live);
	if (rule)
		location_of(rule);
	return rule ? PEM_ACTION_FLAGS(rule->action) : 0;
}

/* --- tests --- */

static void switches_are_logged_while_anything_is(void **state)
{
	struct pem_kmod_session *session = make_session(PEM_KMOD_SESSION_RUNNING);

	(void)state;
	assert_int_equal(set(session, ALL, PEM_ACTION_STAT), 0);
	assert_int_equal(shown(session, SWITCH), 0);
	assert_int_equal(set(session, ALL, PEM_ACTION_LOG), 0);
	assert_int_equal(shown(session, SWITCH), PEM_ACTION_LOG);
	assert_int_equal(set(session, SWITCH, PEM_ACTION_STAT), 0);
	assert_int_equal(shown(session, SWITCH), PEM_ACTION_LOG | PEM_ACTION_STAT);
	assert_int_equal(set(session, ALL, 0), 0);
	assert_int_equal(shown(session, SWITCH), PEM_ACTION_STAT);
	free_session(session);
}

static void a_rule_that_could_not_be_replaced_stays(void **state)
{
	struct pem_kmod_session *session = make_session(PEM_KMOD_SESSION_RUNNING);
	unsigned i;

	(void)state;
	assert_int_equal(set(session, ALL, PEM_ACTION_STAT), 0);
	for (i = 0; i < 3 * RETIRED_MAX; i++) {
		allocations_left = 1; /* for the rule, and none for that of switches */
		assert_int_equal(set(session, ALL, PEM_ACTION_LOG), -ENOMEM);
		assert_int_equal(shown(session, ALL), PEM_ACTION_STAT);
		assert_int_equal(shown(session, SWITCH), 0);
	}
	allocations_left = 2;
	registrations_left = 0; /* of switches */
	assert_int_equal(set(session, ALL, PEM_ACTION_LOG), -ENOMEM);
	assert_int_equal(shown(session, ALL), PEM_ACTION_STAT);
	assert_int_equal(set(session, CHOICE, PEM_ACTION_STAT), -ENOMEM);
	allocations_left = 2;
	registrations_left = 1; /* of switches, and not of what is to be logged */
	assert_int_equal(set(session, CHOICE, PEM_ACTION_LOG), -ENOMEM);
	assert_int_equal(shown(session, CHOICE), 0);
	assert_int_equal(shown(session, SWITCH), 0);
	free_session(session);
}

static void a_rule_is_freed_when_no_probe_holds_it(void **state)
{
	struct pem_kmod_session *session = make_session(PEM_KMOD_SESSION_RUNNING);

	(void)state;
	assert_int_equal(set(session, SWITCH, PEM_ACTION_STAT), 0);
	hold_what_is_shown();
	/* A copy with LOG takes its place; it stays, for the next one to be made of. */
	assert_int_equal(set(session, ALL, PEM_ACTION_LOG), 0);
	assert_int_equal(set(session, SWITCH, PEM_ACTION_STAT), 0);
	free_session(session);
}

/* What is asked for and refused in any order: kfree() above looks after the rules. */
static void rules_survive_any_order_of_failures(void **state)
{
	static const uint32_t flags[] = {0, PEM_ACTION_LOG, PEM_ACTION_STAT,
					 PEM_ACTION_LOG | PEM_ACTION_STAT};
	static const unsigned indexes[] = {ALL, CHOICE, SWITCH};
	struct pem_kmod_session *session = make_session(PEM_KMOD_SESSION_READY);
	uint32_t wanted[COUNT] = {0}, seed = 1, one, is_logging;
	unsigned i, index;

	(void)state;
	for (i = 0; i < 20000; i++) {
		seed = seed * 1664525 + 1013904223;
		index = indexes[(seed >> 8) % 3];
		one = flags[(seed >> 12) % 4];
		allocations_left = (seed >> 16) % 8 ? 1000 : (seed >> 19) % 3;
		registrations_left = (seed >> 21) % 4 ? 1000 : (seed >> 23) % 2;
		if (!set(session, index, one))
			wanted[index] = one;
		if ((seed >> 24) % 16 == 0) {
			allocations_left = registrations_left = 1000;
			session->state = (seed >> 28) % 2 ? PEM_KMOD_SESSION_RUNNING
							  : PEM_KMOD_SESSION_STOPPED;
			assert_int_equal(pem_kmod_rule__apply_all(session), 0);
		}
		is_logging = (wanted[ALL] | wanted[CHOICE] | wanted[SWITCH]) & PEM_ACTION_LOG;
		for (index = 0; index < COUNT; index++) {
			one = wanted[index] | (index == SWITCH ? is_logging : 0);
			assert_int_equal(shown(session, index),
					 session->state == PEM_KMOD_SESSION_RUNNING ? one : 0);
		}
	}
	free_session(session);
}

static void processes_and_threads_that_are_there(void **state)
{
	static const struct {
		u32 pid, tid;
		int rc;
	} cases[] = {{2, 0, 0},      {0, 2, 0},       {2, 3, 0},       {0, 3, 0},
		     {3, 0, -ESRCH}, {98, 0, -ESRCH}, {0, 98, -ESRCH}, {100, 0, -ESRCH}};
	struct pem_kmod_session *session = make_session(PEM_KMOD_SESSION_RUNNING);
	struct pem_kmod_event event = {.size = sizeof(event),
				       .event_id = pem_kmod_probes[ALL].event_id,
				       .action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1),
				       .cpu = PEM_NO_CPU};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		event.pid = cases[i].pid;
		event.tid = cases[i].tid;
		assert_int_equal(pem_kmod_rule__set(session, &event), cases[i].rc);
		if (cases[i].rc)
			continue;
		assert_int_equal(session->events[ALL].rule->pid, event.pid ? event.pid + 1000 : 0);
		assert_int_equal(session->events[ALL].rule->tid, event.tid ? event.tid + 1000 : 0);
	}
	free_session(session);
}

static void a_statistic_has_an_epoch(void **state)
{
	struct pem_kmod_session *session = make_session(PEM_KMOD_SESSION_RUNNING);
	struct pem_kmod_event event = {.size = sizeof(event),
				       .event_id = pem_kmod_probes[ALL].event_id,
				       .action = PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 0),
				       .cpu = PEM_NO_CPU};

	(void)state;
	assert_int_equal(pem_kmod_rule__set(session, &event), -EINVAL);
	event.action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 0);
	assert_int_equal(pem_kmod_rule__set(session, &event), 0);
	free_session(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_are_logged_while_anything_is),
		cmocka_unit_test(a_rule_that_could_not_be_replaced_stays),
		cmocka_unit_test(a_rule_is_freed_when_no_probe_holds_it),
		cmocka_unit_test(processes_and_threads_that_are_there),
		cmocka_unit_test(a_statistic_has_an_epoch),
		cmocka_unit_test(rules_survive_any_order_of_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
