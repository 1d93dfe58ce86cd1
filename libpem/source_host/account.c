/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * account.c - note in the trace what sources delivered and lost, and what could not be observed,
 * and why
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

/* Does a text contain this name as a whole word, and not only as the beginning of a longer name? */
static bool names(const char *text, const char *name)
{
	const char *found = *name ? strstr(text, name) : NULL;

	return found && !strchr("_.+", found[strlen(name)] ? found[strlen(name)] : ' ') &&
	       !isalnum((unsigned char)found[strlen(name)]);
}

void pem_session__say_from_source(enum pem_log_level level, const char *text, void *arg)
{
	struct pem_session *s = arg;
	size_t i;

	for (i = 0; level <= PEM_LOG_WARNING && i < s->sources->opening_count; i++) {
		if (names(text, s->sources->opening[i]->event->source_name) ||
		    names(text, s->sources->opening[i]->event->name))
			pem_copy_text(s->sources->opening[i]->reason,
				      sizeof(s->sources->opening[i]->reason), text);
	}
	pem_session__say(s, level, "%s", text);
}

static bool never_counted(const struct pem_session *s, const struct pem_demand *demand,
			  struct pem_error *reason)
{
	struct pem_trace_estimate ignored;
	const struct pem_instance *instance;
	struct pem_error why;

	if (demand->instance < 0)
		return false;
	instance = &s->sources->instances[demand->instance];
	if (!instance->ops->estimate ||
	    instance->ops->estimate(instance->source, demand->instance_index, &ignored, &why) !=
		    -EBUSY)
		return false;
	pem_error__set(reason, 0, "%s: %s", demand->event->name, why.text);
	return true;
}

bool pem_session__refusal(const struct pem_session *s, const struct pem_event *event,
			  struct pem_error *reason)
{
	const struct pem_demand *demand;
	size_t i;

	for (i = 0; i < s->demand_count && s->demands[i].event != event; i++)
		;
	if (i == s->demand_count)
		return false;
	for (demand = &s->demands[i]; demand; demand = demand->next) {
		if (demand->unavailable) {
			pem_error__set(reason, 0, "%s", demand->reason);
			return true;
		}
		if (never_counted(s, demand, reason))
			return true;
	}
	return false;
}

void pem_session__count_sources(struct pem_session *s, struct pem_balance *counted)
{
	const struct pem_instance *instance;
	const struct pem_demand *demand;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		memset(&counted[i], 0, sizeof(counted[i]));
		demand = pem_demand__of_log(&s->demands[i]);
		if (!demand || demand->instance < 0)
			continue;
		instance = &s->sources->instances[demand->instance];
		instance->ops->balance(instance->source, demand->instance_index, &counted[i]);
	}
}

uint64_t pem_session__internal_calls(const struct pem_session *s)
{
	const struct pem_instance *instance;
	uint64_t calls = 0;
	int i;

	for (i = 0; i < s->sources->instance_count; i++) {
		instance = &s->sources->instances[i];
		if (instance->source && instance->ops->internal_calls)
			calls += instance->ops->internal_calls(instance->source);
	}
	return calls;
}

/* demand: the log's demand of an event. */
static struct pem_balance balance_of(const struct pem_demand *demand, struct pem_balance counted,
				     bool goes_on)
{
	const struct pem_demand *first = demand->first;
	struct pem_balance b = counted;

	b.produced -= b.produced > demand->callback_only ? demand->callback_only : b.produced;
	b.delivered = first->delivered;
	b.discarded += first->lost;
	b.overwritten = first->overwritten;
	/* produced was read first: records that were delivered since then are counted too. */
	if (goes_on && b.produced < b.delivered + b.discarded + b.overwritten)
		b.produced = b.delivered + b.discarded + b.overwritten;
	return b;
}

void pem_session__account_sources(struct pem_session *s, const struct pem_balance *counted)
{
	struct pem_balance_entry *entries = calloc(s->demand_count + 1, sizeof(*entries));
	struct pem_balance *asked = calloc(s->demand_count + 1, sizeof(*asked));
	const struct pem_demand *demand;
	size_t count, i;
	int n;

	if (asked && !counted)
		pem_session__count_sources(s, asked);
	for (n = 0; entries && asked && n < s->sources->instance_count; n++) {
		for (i = count = 0; i < s->demand_count; i++) {
			demand = pem_demand__of_log(&s->demands[i]);
			if (!demand || demand->instance != n)
				continue;
			entries[count].event_id = s->demands[i].event->id;
			entries[count++].balance = balance_of(
				demand, counted ? counted[i] : asked[i], counted != NULL);
		}
		pem_trace_writer__balance(s->log->writer, 0, s->sources->instances[n].ops->name, 0,
					  entries, count);
	}
	free(entries);
	free(asked);
}

/* Counters that never counted: one gap for all of them. */
struct idle_counters {
	char source[sizeof(((struct pem_trace_gap *)0)->source)];
	char names[64]; /* of the first ones */
	size_t used, count, unnamed;
	struct pem_error reason;
};

static void add_idle(struct idle_counters *idle, const char *name, const char *source)
{
	size_t bytes = strlen(name) + 2;

	idle->count++;
	pem_copy_text(idle->source, sizeof(idle->source), source);
	if (idle->unnamed || idle->used + bytes >= sizeof(idle->names)) {
		idle->unnamed++;
		return;
	}
	snprintf(idle->names + idle->used, sizeof(idle->names) - idle->used, "%s%s",
		 idle->used ? ", " : "", name);
	idle->used = strlen(idle->names);
}

static void note_idle(const struct idle_counters *idle, struct pem_trace_info *info)
{
	struct pem_trace_gap *gap;
	char more[40] = "";

	if (!idle->count || info->gap_count == PEM_ARRAY_SIZE(info->gaps))
		return;
	if (idle->unnamed && idle->used)
		snprintf(more, sizeof(more), " and %zu others", idle->unnamed);
	else if (idle->unnamed)
		snprintf(more, sizeof(more), "%zu counters", idle->unnamed);
	gap = &info->gaps[info->gap_count++];
	memcpy(gap->source, idle->source, sizeof(gap->source));
	snprintf(gap->reason, sizeof(gap->reason), "%s%s: %.*s", idle->names, more,
		 (int)(sizeof(gap->reason) - sizeof(idle->names) - sizeof(more)),
		 idle->reason.text);
}

void pem_session__note_estimates(struct pem_session *s, struct pem_trace_info *info)
{
	struct idle_counters idle = {.names = ""};
	const struct pem_instance *instance;
	const struct pem_demand *demand;
	unsigned unmarked = 0;
	size_t i;
	int rc;

	for (i = 0; i < s->demand_count; i++) {
		struct pem_trace_estimate estimate = {.event = ""};

		demand = pem_demand__of_log(&s->demands[i]);
		if (!demand || demand->instance < 0)
			continue;
		instance = &s->sources->instances[demand->instance];
		if (!instance->ops->estimate)
			continue;
		rc = instance->ops->estimate(instance->source, demand->instance_index, &estimate,
					     &idle.reason);
		if (rc == -EBUSY)
			add_idle(&idle, demand->event->name, instance->ops->name);
		if (rc == 1 && info->estimate_count == PEM_ARRAY_SIZE(info->estimates))
			unmarked++;
		if (rc != 1 || info->estimate_count == PEM_ARRAY_SIZE(info->estimates))
			continue;
		pem_copy_text(estimate.event, sizeof(estimate.event), demand->event->name);
		info->estimates[info->estimate_count++] = estimate;
	}
	note_idle(&idle, info);
	if (unmarked && info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		struct pem_trace_gap *gap = &info->gaps[info->gap_count++];

		pem_copy_text(gap->source, sizeof(gap->source), "counters");
		snprintf(gap->reason, sizeof(gap->reason),
			 "the values of %u more counters are estimates, and not marked: count "
			 "fewer at a time",
			 unmarked);
	}
}

void pem_session__note_gaps(struct pem_session *s, struct pem_trace_info *info)
{
	struct pem_trace_gap *gap;
	const struct pem_demand *demand;
	size_t i;
	uint32_t g;

	pem_session__note_excess(s, info);
	pem_session__note_unread(s, info);
	pem_public__note_room(s, info);
	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand && !demand->unavailable; demand = demand->next)
			;
		if (!demand)
			continue;
		for (g = 0; g < info->gap_count; g++) {
			if (!strcmp(info->gaps[g].reason, demand->reason))
				break;
		}
		if (g < info->gap_count || g == PEM_ARRAY_SIZE(info->gaps))
			continue;
		gap = &info->gaps[info->gap_count++];
		memcpy(gap->source, demand->source, sizeof(gap->source));
		memcpy(gap->reason, demand->reason, sizeof(gap->reason));
	}
	for (i = 0; i < s->processes->refusal_count && info->gap_count < PEM_ARRAY_SIZE(info->gaps);
	     i++) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "stub");
		memcpy(gap->reason, s->processes->refusals[i].reason, sizeof(gap->reason));
	}
	if (s->processes->refusals_more && info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "stub");
		snprintf(gap->reason, sizeof(gap->reason),
			 "%llu further events of processes have other fields than the events of "
			 "their names pem knows",
			 (unsigned long long)s->processes->refusals_more);
	}
	pem_session__note_counters(s, info);
	pem_session__note_rights(s, info);
	if (s->sources->late_targets && info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "sources");
		snprintf(gap->reason, sizeof(gap->reason),
			 "%u processes were found after they had started: what the kernel and "
			 "counters had of them before is missing, some 20 ms after the first event "
			 "of their own, or a second",
			 s->sources->late_targets);
	}
}
