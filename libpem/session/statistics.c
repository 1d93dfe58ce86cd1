/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * statistics.c - statistics handles: choose what is accumulated where the event happens, and read
 * it
 */
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "session/session.h"
#include "source_host/source_host.h"
#include "statistics/statistics.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Choose the attribute of one event. Returns 0, or -errno with error. */
static int choose_field(struct pem_demand *demand, const char *attribute, struct pem_error *error)
{
	const struct pem_event *event = demand->event;
	int field = PEM_NO_FIELD;
	char numbers[256] = "";
	size_t i, used = 0;

	if (attribute) {
		field = pem_event__field(event, attribute);
		if (field < 0 || !pem_type__bytes((enum pem_type)event->fields[field].type)) {
			for (i = 0; i < event->field_count && used < sizeof(numbers); i++)
				if (pem_type__bytes((enum pem_type)event->fields[i].type))
					used += (size_t)snprintf(
						numbers + used, sizeof(numbers) - used, "%s%s",
						used ? ", " : "", event->fields[i].name);
			return pem_error__set(error, -EINVAL,
					      "%s has no number named '%.100s': %s%s", event->name,
					      attribute, used ? "its numbers are " : "it has none",
					      numbers);
		}
	}
	demand->field = (uint8_t)field;
	return 0;
}

struct pem_statistics *pem_session__register_statistics(struct pem_session *session,
							const struct pem_event_set *set,
							const struct pem_context *given,
							const char *attribute,
							struct pem_error *error)
{
	struct pem_context own, *context = &own;
	struct pem_statistics *st;
	struct pem_demand *demand;
	int result;
	size_t i;

	result = pem_event_set__check(session, set, error);
	if (result) {
		errno = -result;
		return NULL;
	}
	result = pem_context__copy(context, given, error);
	if (result) {
		errno = -result;
		return NULL;
	}
	st = calloc(1, sizeof(*st) + set->count * sizeof(st->demands[0]));
	if (!st) {
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	pem_session__lock(session);
	st->session = session;
	for (i = 0; i < set->count; i++) {
		result = pem_session__bind(session, set, i, context, PEM_USE_STATISTIC, &demand,
					   error);
		if (result)
			goto fail;
		result = choose_field(demand, attribute, error);
		if (result) {
			pem_demand__unbind(demand);
			goto fail;
		}
		demand->statistics = st;
		demand->want_statistic = true;
		st->demands[st->count++] = demand;
	}
	if (attribute)
		snprintf(st->attribute, sizeof(st->attribute), "%s", attribute);
	st->next = session->statistics->handles;
	session->statistics->handles = st;
	pem_session__unlock(session);
	return st;
fail:
	for (i = 0; i < st->count; i++) {
		st->demands[i]->statistics = NULL;
		st->demands[i]->want_statistic = false;
		st->demands[i]->field = PEM_NO_FIELD;
		pem_demand__unbind(st->demands[i]);
	}
	pem_session__unlock(session);
	free(st);
	errno = -result;
	return NULL;
}

/*
 * Join the session in this process where a demand's context names this process: its events are
 * counted only then.
 */
static int join_if_named(struct pem_session *s, struct pem_demand *const *demands, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (pem_context__names_self(&demands[i]->context))
			return pem_session__join_self(s, NULL);
	}
	return 0;
}

int pem_statistics__enable(struct pem_statistics *st)
{
	struct pem_error error;
	int result;
	size_t i;

	if (!st)
		return -EINVAL;
	pem_session__lock(st->session);
	for (i = 0; i < st->count; i++)
		st->demands[i]->statistic = true;
	st->enabled = st->was_enabled = st->session->was_enabled = true;
	result = join_if_named(st->session, st->demands, st->count);
	if (!result)
		result = pem_session__open_sources(st->session, &error);
	pem_session__publish(st->session);
	pem_session__update_sources(st->session);
	pem_session__unlock(st->session);
	return result;
}

void pem_statistics__disable(struct pem_statistics *st)
{
	size_t i;

	if (!st)
		return;
	pem_session__lock(st->session);
	for (i = 0; i < st->count; i++)
		st->demands[i]->statistic = false;
	st->enabled = false;
	pem_session__publish(st->session);
	pem_session__update_sources(st->session);
	pem_session__unlock(st->session);
}

void pem_statistics__reset(struct pem_statistics *st)
{
	size_t i;

	if (!st)
		return;
	pem_session__lock(st->session);
	for (i = 0; i < st->count; i++)
		st->demands[i]->epoch = (st->demands[i]->epoch + 1) & 0xffffff;
	pem_session__publish(st->session);
	pem_session__update_sources(st->session);
	pem_session__unlock(st->session);
}

static int read_source(struct pem_session *s, const struct pem_demand *demand,
		       struct pem_statistic *value)
{
	const struct pem_instance *instance = &s->sources->instances[demand->instance];

	return instance->ops->read_statistic(instance->source, demand->instance_index, value);
}

static void read_demand(struct pem_session *s, const struct pem_demand *demand,
			struct pem_statistic *value)
{
	struct pem_distribution_total total;
	struct pem_producer *p;
	uint64_t began_ns;

	if (demand->unavailable) {
		value->unavailable = demand->unavailable;
	} else if (demand->instance >= 0) {
		value->unavailable = read_source(s, demand, value);
	} else {
		if (demand->retired_epoch == demand->epoch)
			pem_statistic__add(value, &demand->retired);
		for (p = s->processes->producers; p; p = p->next) {
			began_ns = pem_dir__begin(s, p->dir);
			pem_producer__refresh_events(s, p);
			pem_producer__statistic(p, demand, value);
			pem_dir__charge(s, p->dir, began_ns);
		}
	}
	value->is_partial = demand->first->was_off;
	pem_statistic__finish(value, demand);
	if (PEM_DISTRIBUTION_KEEP(demand->distribution) & PEM_DISTRIBUTION_VARIANCE &&
	    !value->unavailable && !pem_demand__read_distribution(s, demand, &total))
		value->variance = pem_distribution__variance(&total.sum);
}

/*
 * Warn once, and again with the sum when the session ends. Programs write this count, and may
 * change it all the time.
 */
static void say_lost(struct pem_session *s, uint64_t lost)
{
	if (lost == s->statistics->lost_said)
		return;
	s->statistics->lost_said = lost;
	pem_session__say(s, PEM_LOG_WARNING,
			 "statistics lack %llu events: raised by signal handlers too deep in one "
			 "another, or where shared memory had no room",
			 (unsigned long long)lost);
}

void pem_session__say_all_lost(struct pem_session *s)
{
	if (s->statistics->lost_said)
		say_lost(s, __atomic_load_n(&s->page->lost_statistics, __ATOMIC_RELAXED));
}

int pem_statistics__read(struct pem_statistics *st, struct pem_statistic *values, size_t count)
{
	size_t i;

	if (!st)
		return -EINVAL;
	if (pem_sized__check_array(values, count))
		return -EINVAL;
	pem_session__lock(st->session);
	if (count > st->count)
		count = st->count;
	pem_session__scan_producers(st->session);
	for (i = 0; i < count; i++) {
		struct pem_statistic value = {0};

		read_demand(st->session, st->demands[i], &value);
		pem_sized__write(values, i, &value, sizeof(value));
	}
	if (!st->session->statistics->lost_said)
		say_lost(st->session,
			 __atomic_load_n(&st->session->page->lost_statistics, __ATOMIC_RELAXED));
	pem_session__unlock(st->session);
	return (int)count;
}

/* The caller's function, and the arguments for each call. */
struct caller {
	const struct pem_demand *demand;
	struct pem_statistic_owner owner;
	void (*function)(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
			 void *arg);
	void *arg;
	struct pem_statistic all; /* of a source: the parts by process don't have min and max */
};

static void call_for_thread(const struct pem_statistic *part, uint32_t tid, void *arg)
{
	struct caller *caller = arg;

	caller->owner.tid = tid;
	caller->function(part, &caller->owner, caller->arg);
}

static void call_for_cpu(const struct pem_statistic *part, uint32_t cpu, void *arg)
{
	struct caller *caller = arg;
	struct pem_statistic copy = *part;

	caller->owner.cpu = cpu;
	pem_statistic__finish(&copy, caller->demand);
	caller->function(&copy, &caller->owner, caller->arg);
}

static void call_for_source(const struct pem_statistic *part,
			    const struct pem_distribution *distribution, uint32_t cpu, void *arg)
{
	struct pem_statistic copy = *part;

	copy.variance = distribution ? pem_distribution__variance(distribution) : 0;
	call_for_cpu(&copy, cpu, arg);
}

static void call_for_process(const struct pem_statistic *part, uint32_t pid, uint32_t cpu,
			     const char *program, void *arg)
{
	struct caller *caller = arg;
	struct pem_statistic copy = *part;

	caller->owner.pid = pid;
	pem_copy_text(caller->owner.program, sizeof(caller->owner.program), program);
	copy.may_have_overflowed =
		pem_statistic__may_overflow(&copy, caller->all.min, caller->all.max);
	call_for_cpu(&copy, cpu, caller);
}

static int each_of_source(struct pem_session *s, struct caller *caller)
{
	const struct pem_instance *instance = &s->sources->instances[caller->demand->instance];
	int result;

	if (s->options.by_process && instance->ops->each_process &&
	    !read_source(s, caller->demand, &caller->all))
		return instance->ops->each_process(instance->source, caller->demand->instance_index,
						   call_for_process, caller);
	if (instance->ops->each_statistic)
		return instance->ops->each_statistic(
			instance->source, caller->demand->instance_index, call_for_source, caller);
	result = read_source(s, caller->demand, &caller->all);
	if (result || !caller->all.count)
		return result;
	call_for_cpu(&caller->all, PEM_NO_CPU, caller);
	return 1;
}

static int each_of_stubs(struct pem_session *s, struct caller *caller)
{
	const struct pem_demand *demand = caller->demand;
	struct pem_producer *p;
	int count = 0, result = 0;

	if (demand->retired_epoch == demand->epoch &&
	    (demand->retired.count || demand->retired.undecided)) {
		call_for_cpu(&demand->retired, PEM_NO_CPU, caller);
		count++;
	}
	for (p = s->processes->producers; p && result >= 0; p = p->next) {
		pem_producer__refresh_events(s, p);
		caller->owner.pid = p->pid;
		memcpy(caller->owner.program, p->comm, sizeof(caller->owner.program));
		result = pem_producer__parts(p, demand, call_for_thread, caller);
		count += result;
	}
	return result < 0 ? result : count;
}

int pem_statistics__each(struct pem_statistics *st, size_t i,
			 void (*function)(const struct pem_statistic *part,
					  const struct pem_statistic_owner *owner, void *arg),
			 void *arg)
{
	struct caller caller = {
		.owner = {.size = sizeof(struct pem_statistic_owner), .cpu = PEM_NO_CPU},
		.function = function,
		.arg = arg};
	struct pem_session *s;
	int result;

	if (!st || !function || i >= st->count)
		return -EINVAL;
	s = st->session;
	pem_session__lock(s);
	pem_session__scan_producers(s);
	caller.demand = st->demands[i];
	if (caller.demand->unavailable)
		result = caller.demand->unavailable;
	else if (caller.demand->instance >= 0)
		result = each_of_source(s, &caller);
	else
		result = each_of_stubs(s, &caller);
	pem_session__unlock(s);
	return result;
}

void pem_statistics__unregister(struct pem_statistics *st)
{
	struct pem_statistics **link;
	struct pem_session *s;
	size_t i;

	if (!st)
		return;
	s = st->session;
	pem_statistics__disable(st);
	pem_session__lock(s);
	for (i = 0; i < st->count; i++) {
		st->demands[i]->statistics = NULL;
		st->demands[i]->want_statistic = false;
		st->demands[i]->field = PEM_NO_FIELD;
		pem_demand__release_distribution(s, st->demands[i]);
		st->demands[i]->epoch = (st->demands[i]->epoch + 1) & 0xffffff;
		pem_demand__unbind(st->demands[i]);
	}
	for (link = &s->statistics->handles; *link; link = &(*link)->next) {
		if (*link == st) {
			*link = st->next;
			break;
		}
	}
	pem_session__unlock(s);
	free(st);
}
