// SPDX-License-Identifier: MIT
/* events.c - the events that pem top counts, and samples of them */
#include "top.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const top_layers[TOP_LAYERS] = {"APP", "OS", "HW", "CPO"};

static unsigned int layer_of(const struct pem_event *event)
{
	unsigned int i;

	for (i = 0; i < TOP_LAYERS; i++)
		if (strcmp(top_layers[i], event->layer) == 0)
			return i;
	return 0;
}

/*
 * The field that most users would sum: bytes, or the value itself. What an interval ends with and
 * has no unit is a result, such as an address or an error. -1: none.
 */
int top_event__natural_field(const struct pem_event *event)
{
	static const enum pem_role roles[] = {PEM_ROLE_SIZE, PEM_ROLE_VALUE};
	size_t i;

	if (cli_event__is_counter(event) || event->meaning == PEM_MEANS_OBJECT)
		return -1;
	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		int field = pem_event__field_by_role(event, roles[i]);

		if (field >= 0 && pem_type__bytes((enum pem_type)event->fields[field].type) != 0 &&
		    (event->meaning != PEM_MEANS_INTERVAL_END ||
		     *event->fields[field].unit != '\0'))
			return field;
	}
	return -1;
}

int top_event__next_field(const struct pem_event *event, int field)
{
	int i, n = event->field_count;

	for (i = 1; i <= n; i++) {
		const struct pem_field *next = &event->fields[(field + i) % n];

		/* An address is not a quantity. */
		if (pem_type__bytes((enum pem_type)next->type) != 0 &&
		    next->type != PEM_TYPE_ADDRESS && next->role != PEM_ROLE_ADDRESS &&
		    next->role != PEM_ROLE_OLD_ADDRESS && next->role != PEM_ROLE_CODE)
			return (field + i) % n;
	}
	return -1;
}

static int register_event(struct top *top, struct top_event *e, int field, bool distribution,
			  struct pem_error *error)
{
	const char *pattern = cli_format("%s@%u", e->event->name, e->event->version);
	struct pem_event_set *set = pem_event_set__new(top->session, &pattern, 1, error);
	int rc = 0;

	if (set == NULL)
		return errno != 0 ? -errno : -EINVAL;
	if (e->where != NULL)
		rc = pem_event_set__where(set, e->where, error);
	if (rc < 0) {
		pem_event_set__free(set);
		return rc;
	}
	e->statistics = pem_session__register_statistics(
		top->session, set, NULL, field >= 0 ? e->event->fields[field].name : NULL, error);
	pem_event_set__free(set);
	if (e->statistics == NULL)
		return -errno;
	e->field = field;
	e->distribution = distribution;
	if (distribution)
		rc = pem_statistics__keep(e->statistics, PEM_STATISTIC_HISTOGRAM);
	if (rc == 0)
		rc = pem_statistics__enable(e->statistics);
	if (rc < 0) {
		pem_statistics__unregister(e->statistics);
		e->statistics = NULL;
	}
	return rc;
}

int top_event__measure(struct top *top, uint32_t event, int field, bool distribution,
		       struct pem_error *error)
{
	struct top_event *e = &top->events[event];
	struct pem_statistic last = {.size = sizeof(last)};
	int rc;

	if (e->field == field && e->distribution == distribution)
		return 0;
	if (e->statistics != NULL && pem_statistics__read(e->statistics, &last, 1) == 1)
		e->base_count += e->is_counter ? last.sum : last.count;
	pem_statistics__unregister(e->statistics);
	e->statistics = NULL;
	rc = register_event(top, e, field, distribution, error);
	if (rc < 0 && register_event(top, e, -1, false, NULL) < 0)
		top->unavailable++;
	return rc;
}

/*
 * The predicate of the last pattern that has one and that the event matches, as in
 * cli_choose_events.
 */
static const char *where_of(const struct top *top, const struct pem_event *event)
{
	const char *where = top->patterns.all_where;
	size_t i;

	for (i = 0; i < top->patterns.count; i++)
		if (top->patterns.where[i] != NULL &&
		    pem_event__matches(event, top->patterns.text[i]))
			where = top->patterns.where[i];
	return where;
}

static int add_event(struct top *top, const struct pem_event *event)
{
	struct top_event *e;

	if (event->source_kind == PEM_SOURCE_SAMPLE)
		return 0;
	if (pem_grow(&top->events, sizeof(*top->events), top->event_count + 1,
		     &top->event_capacity) < 0)
		return -ENOMEM;
	e = &top->events[top->event_count++];
	memset(e, 0, sizeof(*e));
	e->event = event;
	e->where = where_of(top, event);
	e->layer = layer_of(event);
	e->is_counter = event->source_kind == PEM_SOURCE_PERF;
	if (register_event(top, e, top_event__natural_field(event), false, NULL) < 0)
		top->unavailable++;
	return 0;
}

static bool is_wanted(const struct top *top, const struct pem_event *event)
{
	size_t i;

	if (cli_patterns__has_usual(&top->patterns) && strcmp(event->layer, "APP") == 0 &&
	    event->level <= PEM_LEVEL_INFO)
		return true;
	for (i = 0; i < top->patterns.count; i++)
		if (pem_event__matches(event, top->patterns.text[i]))
			return true;
	return false;
}

static bool is_known(const struct top *top, const struct pem_event *event)
{
	size_t i;

	for (i = 0; i < top->event_count; i++)
		if (top->events[i].event == event)
			return true;
	return false;
}

void top_events__refresh(struct top *top)
{
	const struct pem_model *model = pem_session__model(top->session);
	size_t count = pem_model__count(model);

	for (; top->known < count; top->known++) {
		const struct pem_event *event = pem_model__event(model, top->known);

		if (is_wanted(top, event) && !is_known(top, event))
			add_event(top, event);
	}
}

int top_events__register(struct top *top)
{
	struct pem_error error = {{0}};
	struct pem_event_set *set = cli_choose_events(top->session, &top->patterns, false, &error);
	size_t i;
	int rc = 0;

	if (set == NULL)
		return cli_error(errno == ENOENT ? CLI_WRONG_INPUT : cli_status_of_errno(errno),
				 "%s", error.text);
	top->has_stubs = cli_event_set__has_stubs(set);
	for (i = 0; rc == 0 && i < pem_event_set__count(set); i++)
		rc = add_event(top, pem_event_set__event(set, i));
	pem_event_set__free(set);
	if (rc < 0)
		return cli_error(CLI_FAILED, "%s", strerror(-rc));
	top->known = pem_model__count(pem_session__model(top->session));
	return CLI_DONE;
}

void top_events__reset(struct top *top)
{
	size_t i;

	for (i = 0; i < top->event_count; i++)
		if (top->events[i].statistics != NULL)
			pem_statistics__reset(top->events[i].statistics);
}

/* --- samples --- */

struct sampling {
	struct top *top;
	uint32_t event;
};

static void add_part(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
		     void *arg)
{
	struct sampling *s = arg;
	struct top_sample *sample = &s->top->now;
	struct top_event *e = &s->top->events[s->event];
	struct top_part *p;

	e->is_estimate |= part->running_ns < part->enabled_ns;

	if (part->count == 0 || pem_grow(&sample->parts, sizeof(*sample->parts), sample->count + 1,
					 &sample->capacity) < 0)
		return;
	p = &sample->parts[sample->count++];
	memset(p, 0, sizeof(*p));
	p->event = s->event;
	p->pid = owner->pid == 0 && owner->cpu == PEM_NO_CPU ? TOP_ENDED : owner->pid;
	p->tid = owner->tid;
	p->cpu = owner->cpu;
	p->count = e->is_counter ? part->sum : part->count;
	if (e->field >= 0)
		p->sum = part->is_float    ? part->sum_f
			 : part->is_signed ? (double)(int64_t)part->sum
					   : (double)part->sum;
	memcpy(p->program, owner->program, sizeof(p->program));
	p->program[sizeof(p->program) - 1] = '\0';
	top_showable(p->program);
}

void top__sample(struct top *top)
{
	struct top_sample last = top->before;
	struct sampling s = {.top = top};

	top->before = top->now;
	top->now = last;
	top->now.count = 0;
	top_events__refresh(top);
	for (s.event = 0; s.event < top->event_count; s.event++)
		if (top->events[s.event].statistics != NULL)
			pem_statistics__each(top->events[s.event].statistics, 0, add_part, &s);
	top->now.time_ns = cli_now_ns();
}

uint64_t top__interval_ns(const struct top *top)
{
	return top->now.time_ns - (top->before.time_ns != 0 ? top->before.time_ns : top->start_ns);
}

void top__free(struct top *top)
{
	free(top->events);
	free(top->now.parts);
	free(top->before.parts);
	cli_patterns__free(&top->patterns);
}
