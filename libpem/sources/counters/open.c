// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * open.c - opens counters, in groups, on the threads, processes or CPUs that they are about
 *
 * A group is opened on each thread or CPU at once, its leader first. The leader alone is disabled,
 * and enabling it enables the members. Descendants inherit the whole group.
 */
#include "open.h"

#include "groups.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 4096u
#define SCAN_PASSES 8

/* Counters to be opened together. The first one is the leader. */
struct group {
	const struct pem_source *source;
	struct counter *members[GROUP_MEMBERS_MAX];
	struct perf_event_attr attrs[GROUP_MEMBERS_MAX];
	size_t count;
};

void counter__close_fds(struct counter *counter)
{
	while (counter->fd_count)
		close(counter->fds[--counter->fd_count]);
	free(counter->fds);
	counter->fds = NULL;
	counter->is_leader = 0;
}

static int add_fd(struct counter *counter, int fd)
{
	int *grown;

	if (fd < 0)
		return fd;
	grown = realloc(counter->fds, (counter->fd_count + 1) * sizeof(*grown));
	if (!grown) {
		close(fd);
		return -ENOMEM;
	}
	counter->fds = grown;
	counter->fds[counter->fd_count++] = fd;
	return 0;
}

/*
 * Open the group on a thread, or on a CPU. Returns 0, or the -errno of its leader. A member that
 * fails has its error set. -ESRCH: the thread has ended, so that there is nothing to count.
 */
static int open_at(struct group *group, pid_t pid, int cpu)
{
	struct counter *leader = group->members[0], *member;
	int rc = add_fd(leader,
			counter__open_on(group->source->cgroup_fd, &group->attrs[0], pid, cpu, -1));
	size_t i;

	if (rc < 0)
		return rc;
	leader->is_leader = 1;
	for (i = 1; i < group->count; i++) {
		member = group->members[i];
		if (member->error)
			continue;
		rc = add_fd(member, counter__open_on(group->source->cgroup_fd, &group->attrs[i],
						     pid, cpu, leader->fds[leader->fd_count - 1]));
		if (rc < 0 && rc != -ESRCH)
			member->error = rc;
	}
	return 0;
}

static int is_known(const pid_t *known, size_t count, pid_t tid)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (known[i] == tid)
			return 1;
	return 0;
}

/*
 * Open the group on each thread of a process that is not yet in known. Returns how many were
 * opened, or -errno.
 */
static int open_new_threads(struct group *group, int cpu, pid_t *known, size_t *known_count)
{
	char path[48];
	struct dirent *entry;
	int rc, added = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", group->members[0]->pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(tasks)) && *known_count < THREADS_MAX) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || is_known(known, *known_count, tid))
			continue;
		rc = open_at(group, tid, cpu);
		if (rc == -ESRCH) /* the thread has ended meanwhile */
			continue;
		if (rc < 0) {
			added = rc;
			break;
		}
		known[(*known_count)++] = tid;
		added++;
	}
	closedir(tasks);
	return added;
}

static void set_inherit(struct group *group, int inherit_thread)
{
	size_t i;

	for (i = 0; i < group->count; i++) {
		group->attrs[i].inherit = 1;
		group->attrs[i].inherit_thread = inherit_thread != 0;
	}
}

/*
 * Threads may start during the search, so it is repeated until no new thread is found. Threads that
 * start later inherit the counter, and so do processes if follow is set.
 */
static int open_process(struct group *group, int cpu, int follow)
{
	pid_t *known = calloc(THREADS_MAX, sizeof(*known));
	size_t known_count = 0;
	int rc = 1, pass;

	if (!known)
		return -ENOMEM;
	set_inherit(group, !follow);
	for (pass = 0; rc > 0 && pass < SCAN_PASSES; pass++) {
		rc = open_new_threads(group, cpu, known, &known_count);
		if (rc == -EINVAL && group->attrs[0].inherit_thread && !known_count) {
			/* Before Linux 5.13 child processes are counted, too. */
			set_inherit(group, 0);
			rc = 1;
		}
	}
	free(known);
	if (rc >= 0 && !known_count)
		return -ESRCH;
	return rc < 0 ? rc : 0;
}

static int open_machine(struct group *group)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), i;
	int rc;

	for (i = 0; i < cpus; i++) {
		rc = open_at(group, -1, (int)i);
		if (rc < 0 && rc != -ENODEV)
			return rc;
	}
	return group->members[0]->fd_count ? 0 : -ENODEV;
}

int counter__waits_for_exec(const struct pem_source *source, const struct counter *counter)
{
	return source->root && !source->root_runs && counter->context.tid == PEM_ANY &&
	       (counter->context.pid == PEM_ANY || counter->context.pid == (uint32_t)source->root);
}

static void set_pid(struct group *group, uint32_t pid)
{
	size_t i;

	for (i = 0; i < group->count; i++)
		group->members[i]->pid = pid;
}

/* All members of a group have one context. */
static int open_group(struct group *group)
{
	const struct pem_context *context = &group->members[0]->context;
	const struct pem_source *source = group->source;
	int cpu = context->one_cpu ? (int)context->cpu : -1;
	size_t i;

	for (i = 0; i < group->count; i++) {
		group->attrs[i].disabled = i == 0;
		group->attrs[i].read_format =
			PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	}
	set_pid(group, context->pid);
	if (context->tid != PEM_ANY)
		return open_at(group, (pid_t)context->tid, cpu);
	if (context->pid != PEM_ANY && context->pid != (uint32_t)source->root)
		return open_process(group, cpu, 0);
	if (source->root)
		set_pid(group, (uint32_t)source->root);
	if (source->root && source->root_runs)
		return open_process(group, cpu, !source->no_follow);
	if (source->root) {
		set_inherit(group, source->no_follow);
		group->attrs[0].enable_on_exec = 1;
		return open_at(group, source->root, cpu);
	}
	if (cpu >= 0)
		return open_at(group, -1, cpu);
	return open_machine(group);
}

/* --- all counters --- */

static int find_value(const struct pem_event *event)
{
	unsigned i;

	for (i = 0; i < event->field_count; i++)
		if (event->fields[i].type == PEM_TYPE_UINT64 &&
		    (event->fields[i].role == PEM_ROLE_VALUE ||
		     !strcmp(event->fields[i].name, "value")))
			return event->fields[i].offset;
	return -1;
}

/* Explain why a control group can't be counted. Returns 0: it is not because it is a group. */
static int explain_cgroup(const struct perf_event_attr *attr, int rc, struct pem_error *error)
{
	struct perf_event_attr alone = *attr;

	if (rc == -EACCES || rc == -EPERM) {
		counter__set_error(error, "can't be counted of a control group by this user: "
					  "sysctl kernel.perf_event_paranoid=0 lets all users, "
					  "CAP_PERFMON this one");
		return 1;
	}
	if ((rc != -ENOENT && rc != -EBADF && rc != -EINVAL) || counter__try(&alone) < 0)
		return 0;
	counter__set_error(error, "can't be counted of a control group: the kernel was built "
				  "without CONFIG_CGROUP_PERF, or counts groups of version 1 (a "
				  "mounted hierarchy has perf_event)");
	return 1;
}

static void fail(const struct pem_source *source, struct counter *counter,
		 const struct perf_event_attr *attr, int rc, refuse_function *refuse)
{
	struct pem_error error;

	counter->error = rc;
	if (rc == -ESRCH)
		counter__set_error(&error, "can't be counted: process %u or thread %u is gone",
				   counter->context.pid, counter->context.tid);
	else if (source->cgroup_fd < 0 || !explain_cgroup(attr, rc, &error))
		counter__explain(counter->event->source_name, attr, rc, &error);
	refuse(source, counter, error.text);
}

/* Is this a counter of the hardware? The kernel counts all others all the time. */
static int is_hardware(const struct perf_event_attr *attr)
{
	return attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT &&
	       attr->type != PERF_TYPE_BREAKPOINT;
}

/* Find how the counter is encoded. Returns 0; -errno: it is refused. */
static int encode(const struct pem_source *source, struct counter *counter,
		  struct perf_event_attr *attr, refuse_function *refuse)
{
	int offset = find_value(counter->event), rc;

	if (offset < 0 || counter->event->fixed_bytes != counter->event->max_bytes ||
	    counter->event->max_bytes > 256) {
		counter->error = -ENOTSUP;
		refuse(source, counter, "needs a uint64 field with role 'value', and no lists");
		return -ENOTSUP;
	}
	counter->value_offset = (uint16_t)offset;
	rc = counter__encode(counter->event->source_name, attr);
	if (rc < 0)
		fail(source, counter, attr, rc, refuse);
	counter->is_hardware = !rc && is_hardware(attr);
	return rc;
}

/*
 * Open a group, and what can't be opened in it as a further one: the kernel may take other groups
 * on another CPU than in the plan.
 */
static void open_members(struct group *group, refuse_function *refuse)
{
	static uint32_t last_number;
	struct group rest = {.source = group->source};
	struct counter *member;
	uint32_t number;
	size_t i;
	int rc;

	while (group->count) {
		rest.count = 0;
		/* alone: orders nothing */
		number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
		rc = open_group(group);
		for (i = 0; i < group->count; i++) {
			member = group->members[i];
			member->group = member->is_hardware ? number : 0;
			if (!rc && !member->error)
				continue;
			counter__close_fds(member);
			member->error = 0;
			if (i == 0) {
				fail(group->source, member, &group->attrs[0], rc, refuse);
				continue;
			}
			rest.members[rest.count] = member;
			rest.attrs[rest.count++] = group->attrs[i];
		}
		*group = rest;
	}
}

/* What is to be opened, and how. */
struct plan {
	struct pem_source *source;
	size_t count; /* of counters and of items, which are in the same order */
	size_t *counters; /* their indices in the source */
	struct group_item *items;
	uint32_t group_count;
};

/* Is it the counter of a term's event? */
static int counts(const struct plan *plan, size_t item, const struct pem_metric_term *term)
{
	const struct counter *counter = &plan->source->counters[plan->counters[item]];

	return !strcmp(counter->event->name, term->event);
}

/* The number of a context: the index of the first counter that has it. */
static uint32_t context_of(const struct pem_source *source, const struct counter *counter)
{
	uint32_t i;

	for (i = 0;
	     memcmp(&source->counters[i].context, &counter->context, sizeof(counter->context)); i++)
		;
	return i;
}

/* Add a counter to the plan. Those of the kernel need no group. */
static void add_counter(struct plan *plan, size_t i, refuse_function *refuse)
{
	struct counter *counter = &plan->source->counters[i];
	struct group alone = {.source = plan->source, .members = {counter}, .count = 1};
	struct perf_event_attr attr;

	if (encode(plan->source, counter, &attr, refuse) < 0)
		return;
	if (!counter->is_hardware) {
		alone.attrs[0] = attr;
		open_members(&alone, refuse);
		return;
	}
	plan->items[plan->count] =
		(struct group_item){.context = context_of(plan->source, counter), .attr = attr};
	plan->counters[plan->count++] = i;
}

/* In each context, join a term's counter with that of the metric's first one, if both are wanted.
 */
static void join(struct plan *plan, const struct pem_metric_term *first,
		 const struct pem_metric_term *term)
{
	size_t a, b;

	for (a = 0; term->event && a < plan->count; a++)
		for (b = 0; counts(plan, a, first) && b < plan->count; b++)
			if (counts(plan, b, term) &&
			    plan->items[a].context == plan->items[b].context)
				groups__join(plan->items, plan->count, a, b);
}

static void choose_groups(struct plan *plan, const struct pem_source_config *config)
{
	size_t i, k;

	groups__part(plan->items, plan->count);
	for (i = 0; i < config->metric_count; i++) {
		const struct pem_metric *metric = config->metrics[i];

		join(plan, &metric->of, &metric->to);
		for (k = 0; k < metric->part_count && k < PEM_METRIC_PARTS; k++)
			join(plan, &metric->of, &metric->parts[k].term);
	}
	plan->group_count = groups__plan(plan->items, plan->count, groups__fit, NULL);
}

static void open_planned(struct plan *plan, refuse_function *refuse)
{
	struct group group = {.source = plan->source};
	uint32_t number;
	size_t i;

	for (number = 0; number < plan->group_count; number++) {
		for (i = group.count = 0; i < plan->count; i++) {
			if (plan->items[i].group != number)
				continue;
			group.members[group.count] = &plan->source->counters[plan->counters[i]];
			group.attrs[group.count++] = plan->items[i].attr;
		}
		open_members(&group, refuse);
	}
}

int counters__open_values(struct pem_source *source, const struct pem_source_config *config,
			  refuse_function *refuse)
{
	struct plan plan = {.source = source};
	int rc = -ENOMEM;
	size_t i;

	plan.counters = calloc(source->count + 1, sizeof(*plan.counters));
	plan.items = calloc(source->count + 1, sizeof(*plan.items));
	if (plan.counters && plan.items) {
		for (i = 0; i < source->count; i++)
			if (source->counters[i].event->source_kind == PEM_SOURCE_PERF)
				add_counter(&plan, i, refuse);
		choose_groups(&plan, config);
		open_planned(&plan, refuse);
		rc = 0;
	}
	free(plan.counters);
	free(plan.items);
	return rc;
}
