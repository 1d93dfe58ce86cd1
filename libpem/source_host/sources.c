/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sources.c - instances of source plugins in a session: open them, tell them what is wanted
 *
 * Loading plugins, and choosing the one that delivers an event, is in plugins.c; what instances
 * write, in drain.c.
 *
 * One plugin instance serves the events that were first wanted together. Events of a command's
 * process tree wait for pem_session__run, which knows the root process.
 */
#include "core/binding.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/demand.h"
#include "delivery/delivery.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void mark_unavailable(struct pem_demand *demand, int code, const char *source,
			     const char *reason)
{
	demand->unavailable = code ? code : -ENOTSUP;
	pem_copy_text(demand->source, sizeof(demand->source), source);
	pem_copy_text(demand->reason, sizeof(demand->reason), reason);
}

/* --- opening --- */

static void fill_source_event(struct pem_source_event *e, const struct pem_demand *demand)
{
	e->event = demand->event;
	e->context = demand->context;
	e->action = pem_demand__action(demand) &
		    ~(uint64_t)(PEM_ACTION_FILTER | PEM_ACTION_CALLBACK | PEM_ACTION_WAKE);
	e->distribution = demand->distribution;
	e->tests = demand->predicate ? demand->predicate->test : NULL;
	e->test_count = demand->predicate ? demand->predicate->test_count : 0;
	e->gates = pem_predicate__gates(demand->predicate);
}

const struct pem_event *pem_session__event_that_sets_thread(const struct pem_session *s)
{
	const struct pem_event *event;
	size_t i;

	for (i = 0; i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (pem_event__tells_context(event) && event->meaning == PEM_MEANS_SETS_THREAD)
			return event;
	}
	return NULL;
}

/*
 * Is this event among the demands? The event is the one that tells which thread runs on a CPU. The
 * instance that delivers it does so for all other events of the session too.
 */
static bool is_among(const struct pem_event *event, struct pem_demand **demands, size_t count)
{
	size_t i;

	for (i = 0; event && i < count; i++) {
		if (demands[i]->event == event)
			return true;
	}
	return false;
}

/* Does an instance deliver an event? */
static bool is_delivered(struct pem_session *s, const struct pem_event *event)
{
	const struct pem_demand *demand = event ? pem_session__demand(s, event) : NULL;

	while (demand && demand->instance < 0)
		demand = demand->next;
	return demand;
}

/* Write one sentence for all events that found no descriptor, so that it is reported once. */
static void say_descriptors(const struct pem_instance *instance, size_t count, char *reason,
			    size_t bytes)
{
	struct pem_balance balance;
	struct rlimit limit = {0};
	size_t i, without = 0;

	for (i = 0; i < count; i++)
		without += instance->ops->balance(instance->source, i, &balance) == -EMFILE;
	getrlimit(RLIMIT_NOFILE, &limit);
	snprintf(reason, bytes,
		 "%zu of %zu found no descriptor, for this process may have %llu: allow it more "
		 "(ulimit -n), or name fewer",
		 without, count, (unsigned long long)limit.rlim_cur);
}

/* Mark the events that a started source could not open. They belong to the instance no more. */
static void mark_refused(struct pem_instance *instance, struct pem_demand **demands, size_t count)
{
	struct pem_balance balance;
	char reason[sizeof(demands[0]->reason)];
	size_t i;
	int rc;

	for (i = 0; i < count; i++) {
		rc = instance->ops->balance(instance->source, i, &balance);
		if (rc >= 0)
			continue;
		if (*demands[i]->reason)
			pem_copy_text(reason, sizeof(reason), demands[i]->reason);
		else if (rc == -EMFILE)
			say_descriptors(instance, count, reason, sizeof(reason));
		else
			snprintf(reason, sizeof(reason), "%.128s can't be observed: %s",
				 demands[i]->event->name, strerror(-rc));
		demands[i]->instance = -1;
		mark_unavailable(demands[i], rc, instance->ops->name, reason);
	}
}

/* The metrics of a model, which the caller frees. NULL: no memory. */
static const struct pem_metric **metrics_of(const struct pem_model *model)
{
	size_t i, count = pem_model__metric_count(model);
	const struct pem_metric **metrics = calloc(count + 1, sizeof(*metrics));

	for (i = 0; metrics && i < count; i++)
		metrics[i] = pem_model__metric(model, i);
	return metrics;
}

/* What a source's sentences are about while it opens. */
static void set_opening(struct pem_session *s, struct pem_demand **demands, size_t count)
{
	s->sources->opening = demands;
	s->sources->opening_count = count;
}

static int start(struct pem_session *s, struct pem_instance *instance, struct pem_error *error)
{
	pem_session__add_targets_to(s, instance);
	/* What /proc tells is of no time but now. */
	if (instance->events[0].event->source_kind != PEM_SOURCE_PROC)
		s->hooks->source_starts(s);
	return instance->ops->start(instance->source, error);
}

/*
 * Open an instance of a plugin for a list of demands. A demand that the plugin cannot serve is
 * marked with the reason; if the plugin fails, all are.
 */
static void open_instance(struct pem_session *s, const struct pem_source_ops *ops,
			  struct pem_demand **demands, size_t count)
{
	struct pem_instance *instance = &s->sources->instances[s->sources->instance_count];
	struct pem_error error = {"too many sources in one session"};
	struct pem_source_config config = {.size = sizeof(config),
					   .root = s->sources->root,
					   .root_runs = s->sources->root_runs,
					   .no_follow = s->sources->no_follow,
					   .whole_machine = s->sources->whole_machine,
					   .event_count = count,
					   .sets_thread = pem_session__event_that_sets_thread(s),
					   .counters = s->sources->counters,
					   .pages_interval_us = s->sources->pages_interval_us,
					   .pages_region_bytes = s->sources->pages_region_bytes,
					   .by_process = s->options.by_process,
					   .sample_hz = s->options.sample_hz,
					   .sample_stacks = s->options.sample_stacks,
					   .forgets = s->options.overwrite,
					   .cgroup = s->sources->cgroup,
					   .hardware = s->options.hardware,
					   .session_id = s->id,
					   .library_path = s->sources->library_path,
					   .metric_count = pem_model__metric_count(s->model),
					   .log = pem_session__say_from_source,
					   .log_arg = s};
	const struct pem_metric **metrics = NULL;
	int result = s->sources->instance_count == PEM_INSTANCES_MAX ? -EMFILE : -ENOMEM;
	size_t i;

	*instance = (struct pem_instance){.ops = ops, .event_count = count};
	if (result == -EMFILE)
		goto fail;
	instance->events = calloc(count, sizeof(*instance->events));
	config.metrics = metrics = metrics_of(s->model);
	if (!instance->events || !metrics)
		goto fail;
	for (i = 0; i < count; i++)
		fill_source_event(&instance->events[i], demands[i]);
	instance->has_no_targets = !config.root && !config.whole_machine && !config.cgroup;
	config.beside = is_among(config.sets_thread, demands, count)
				? 0
				: (uint32_t)s->sources->instance_count + 1;
	config.thread_is_told = is_delivered(s, config.sets_thread);
	config.events = instance->events;
	set_opening(s, demands, count);
	result = ops->open(&config, &instance->source, &error);
	if (result)
		goto fail;
	result = start(s, instance, &error);
	s->sources->opening_count = 0;
	if (result) {
		ops->close(instance->source);
		goto fail;
	}
	for (i = 0; i < count; i++) {
		demands[i]->instance = s->sources->instance_count;
		demands[i]->instance_index = i;
	}
	s->sources->instance_count++;
	mark_refused(instance, demands, count);
	free(metrics);
	return;
fail:
	s->sources->opening_count = 0;
	free(metrics);
	free(instance->events);
	for (i = 0; i < count; i++)
		mark_unavailable(demands[i], result, ops->name, error.text);
	pem_session__say(s, PEM_LOG_WARNING, "%s events are not observed: %s", ops->name,
			 error.text);
}

/* A demand that wants a source, and the plugin to serve it. NULL: no plugin does. */
struct choice {
	struct pem_demand *demand;
	const struct pem_source_ops *ops;
};

/*
 * Choose the next plugin for demands that a plugin failed to serve. The event that tells which
 * thread runs stays with an instance that runs: its streams already use it.
 */
static void choose_again(struct pem_session *s, const struct pem_source_plugin *plugin,
			 struct choice *choices, size_t choice_count, bool runs)
{
	const struct pem_event *sets_thread = pem_session__event_that_sets_thread(s);
	const struct pem_source_ops *next = NULL;
	struct pem_error ignored;
	struct pem_demand *demand;
	const char *name;
	size_t i, count = 0;

	for (i = 0; i < choice_count; i++) {
		demand = choices[i].demand;
		if (choices[i].ops != plugin->ops || !demand->unavailable ||
		    (runs && demand->event == sets_thread))
			continue;
		choices[i].ops =
			pem_session__find_plugin(s, plugin, demand->event, &name, &ignored);
		if (!choices[i].ops)
			continue;
		next = choices[i].ops;
		count++;
		demand->unavailable = 0;
		demand->reason[0] = '\0';
	}
	if (count)
		pem_session__say(s, PEM_LOG_WARNING, "%s is asked for %zu events that %s has not",
				 next->name, count, plugin->ops->name);
}

/* The counters source observes a control group without knowing its processes. */
static bool counts_group(const struct pem_session *s, const struct pem_event *event)
{
	return s->sources->cgroup &&
	       (event->source_kind == PEM_SOURCE_PERF || event->source_kind == PEM_SOURCE_SAMPLE);
}

static bool wants_source(const struct pem_session *s, const struct pem_demand *demand)
{
	return demand->event->source_kind != PEM_SOURCE_STUB &&
	       (demand->want_log || demand->want_statistic || demand->want_async) &&
	       demand->instance < 0 && !demand->unavailable &&
	       (s->sources->root || s->sources->whole_machine || demand->context.pid != PEM_ANY ||
		counts_group(s, demand->event));
}

/*
 * Choose a plugin for each demand that wants a source and has none. Returns how many demands there
 * are.
 */
static size_t choose(struct pem_session *s, struct choice *choices)
{
	struct pem_demand *demand;
	struct pem_error reason;
	const char *name;
	size_t count = 0, i;

	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (!wants_source(s, demand))
				continue;
			choices[count] = (struct choice){
				demand,
				pem_session__find_plugin(s, NULL, demand->event, &name, &reason)};
			if (!choices[count++].ops)
				mark_unavailable(demand, -ENOTSUP, name, reason.text);
		}
	}
	return count;
}

/*
 * Gather the demands that one instance of a plugin can serve together: one of each event. The first
 * demand of an event comes first. Returns how many there are.
 */
static size_t gather(const struct pem_source_plugin *plugin, const struct choice *choices,
		     size_t choice_count, struct pem_demand **group)
{
	size_t count = 0, i;

	for (i = 0; i < choice_count; i++) {
		if (choices[i].ops == plugin->ops && choices[i].demand->instance < 0 &&
		    !choices[i].demand->unavailable &&
		    (!count || group[count - 1]->event != choices[i].demand->event))
			group[count++] = choices[i].demand;
	}
	return count;
}

bool pem_session__awaits_source(const struct pem_session *s)
{
	const struct pem_demand *demand;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (wants_source(s, demand))
				return true;
		}
	}
	return false;
}

int pem_session__open_sources(struct pem_session *s, struct pem_error *error)
{
	size_t room = s->demand_count + PEM_FURTHER_CELLS + 1, choice_count, count;
	int before = s->sources->instance_count, opened;
	const struct pem_source_plugin *plugin;
	struct choice *choices;
	struct pem_demand **group;

	if (!s->sources->root)
		pem_session__find_targets(s);
	group = calloc(room, sizeof(*group));
	choices = calloc(room, sizeof(*choices));
	if (!group || !choices) {
		free(group);
		free(choices);
		return pem_error__set(error, -ENOMEM, "out of memory");
	}
	pem_environment__library_path(s->sources->library_path);
	choice_count = choose(s, choices);
	for (plugin = s->sources->plugins; plugin; plugin = plugin->next) {
		opened = s->sources->instance_count;
		while ((count = gather(plugin, choices, choice_count, group)))
			open_instance(s, plugin->ops, group, count);
		choose_again(s, plugin, choices, choice_count, s->sources->instance_count > opened);
	}
	free(group);
	free(choices);
	if (s->sources->instance_count == before)
		return 0;
	pem_session__find_targets(s); /* processes that were started before or since */
	if (s->processes->target_count && pem_session__observes_kernel(s))
		pem_log__name_processes(s->log);
	return 0;
}

static void update_source(struct pem_session *s, const struct pem_demand *demand)
{
	struct pem_instance *instance = &s->sources->instances[demand->instance];

	fill_source_event(&instance->events[demand->instance_index], demand);
	if (instance->ops->keep)
		instance->ops->keep(instance->source, demand->instance_index, demand->distribution);
	instance->ops->set_action(instance->source, demand->instance_index,
				  instance->events[demand->instance_index].action);
}

void pem_session__update_sources(struct pem_session *s)
{
	const struct pem_demand *demand;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (demand->instance >= 0)
				update_source(s, demand);
		}
	}
}

void pem_session__close_sources(struct pem_session *s)
{
	int i;

	for (i = 0; i < s->sources->instance_count; i++) {
		s->sources->instances[i].ops->close(s->sources->instances[i].source);
		free(s->sources->instances[i].events);
	}
	s->sources->instance_count = 0;
	free(s->sources->observed);
	s->sources->observed = NULL;
	s->sources->observed_count = s->sources->observed_capacity = 0;
	pem_session__unload_plugins(s);
}
