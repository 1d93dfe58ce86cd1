/* SPDX-License-Identifier: MIT */
/* sites.c - counts records by where they were in the code (pem/code.h) */
#include "sites.h"
#include "grow.h"

#include <pem/context.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct report_sites *report_sites__new(bool samples, bool lists_stacks)
{
	struct report_sites *sites = calloc(1, sizeof(*sites));

	if (sites == NULL)
		return NULL;
	sites->samples = samples;
	sites->lists_stacks = lists_stacks;
	sites->code = pem_code__new();
	if (sites->code == NULL) {
		free(sites);
		return NULL;
	}
	return sites;
}

/* Returns the site, which is new if its count is 0, or NULL. */
static struct report_site *site_of(struct report_sites *s, uint32_t event, int64_t location)
{
	uint32_t *at;

	if (location < 0)
		return NULL;
	at = pem_number_map__at(&s->site_at, (uint64_t)event << 32 | (uint64_t)location);
	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&s->sites, sizeof(*s->sites), s->count + 1, &s->capacity) < 0)
			return NULL;
		s->sites[s->count] =
			(struct report_site){.event = event, .location = (uint32_t)location};
		*at = (uint32_t)s->count++;
	}
	return &s->sites[*at];
}

/* Returns the row of a stack, which is new if its count is 0, or NULL. */
static struct report_stack *stack_of(struct report_sites *s, uint32_t event, uint32_t node)
{
	uint32_t *at = pem_number_map__at(&s->stack_at, (uint64_t)event << 32 | node);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&s->stacks, sizeof(*s->stacks), s->stack_count + 1,
			     &s->stack_capacity) < 0)
			return NULL;
		s->stacks[s->stack_count] = (struct report_stack){.event = event, .node = node};
		*at = (uint32_t)s->stack_count++;
	}
	return &s->stacks[*at];
}

/* --- blocks that are live --- */

static bool ends_blocks(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_RELEASE ||
	       (event->meaning == PEM_MEANS_ALLOCATION &&
		pem_event__field_by_role(event, PEM_ROLE_OLD_ADDRESS) >= 0);
}

/*
 * The bytes of a site's blocks change. What they were at a peak is kept when they change next: a
 * peak would otherwise ask for the bytes of all sites.
 */
static void keep_peak(const struct report_sites *s, struct report_amounts *sum)
{
	if (sum->peaks != s->peaks)
		sum->peak = sum->now;
	sum->peaks = s->peaks;
}

/* A block of a place begins, or ends. stack: the same place, of a stack; NULL: it is unknown. */
static void grow(struct report_sites *s, struct report_amounts *sum, struct report_amounts *stack,
		 uint64_t bytes)
{
	keep_peak(s, sum);
	sum->now += bytes;
	if (stack != NULL) {
		keep_peak(s, stack);
		stack->now += bytes;
	}
	s->now += bytes;
	if (s->now > s->most) {
		s->most = s->now;
		s->peaks++;
	}
}

static void shrink(struct report_sites *s, struct report_amounts *sum, uint64_t bytes,
		   bool is_temporary)
{
	keep_peak(s, sum);
	sum->now -= bytes < sum->now ? bytes : sum->now;
	sum->temporary += is_temporary;
}

/* What the process allocated last. NULL: no memory. Valid until the next call. */
static struct report_newest *newest_of(struct report_sites *s,
				       const struct pem_pass_process *process)
{
	uint32_t *at = pem_number_map__at(&s->newest_at, process->number);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&s->newest, sizeof(*s->newest), s->newest_count + 1,
			     &s->newest_capacity) < 0)
			return NULL;
		*at = (uint32_t)s->newest_count;
		s->newest[s->newest_count++] = (struct report_newest){.is_there = false};
	}
	return &s->newest[*at];
}

/* A block of the process ends. Returns 0 or -ENOMEM. */
static int end_block(struct report_sites *s, const struct pem_pass_process *process,
		     const struct pem_block *block)
{
	uint32_t event = pem_number_map__value(&s->event_at, block->event->id);
	uint32_t node = pem_code__numbered(s->code, process->pid, process, block->stack);
	struct report_stack *stack = NULL;
	struct report_site *site;
	struct report_newest *newest;
	bool is_temporary;

	if (event == UINT32_MAX || block->code == 0)
		return 0;
	newest = newest_of(s, process);
	site = site_of(s, event, pem_code__locate(s->code, process->pid, process, block->code));
	if (node != PEM_CODE_NONE)
		stack = stack_of(s, event, node);
	if (newest == NULL || site == NULL || (node != PEM_CODE_NONE && stack == NULL))
		return -ENOMEM;
	is_temporary = newest->is_there && newest->size == block->size &&
		       newest->stack == block->stack && newest->code == block->code;
	newest->is_there = false;
	shrink(s, &site->sum, block->size, is_temporary);
	if (stack != NULL)
		shrink(s, &stack->sum, block->size, is_temporary);
	s->now -= block->size < s->now ? block->size : s->now;
	return 0;
}

/* Blocks that a record ends. Returns 0 or -ENOMEM. */
static int end_blocks(struct report_sites *s, const struct pem_event *event,
		      const struct pem_around *around)
{
	const struct pem_block *ended =
		event->meaning == PEM_MEANS_RELEASE ? around->block : around->old_block;

	return around->process != NULL && ended != NULL ? end_block(s, around->process, ended) : 0;
}

/* The site allocates. stack: its stack, or NULL. Returns 0 or -ENOMEM. */
static int begin_block(struct report_sites *s, struct report_site *site, struct report_stack *stack,
		       const struct pem_around *around)
{
	const struct pem_block *block = around->block;
	struct report_newest *newest;
	uint32_t *at;

	if (around->process == NULL || block == NULL)
		return 0;
	newest = newest_of(s, around->process);
	at = pem_number_map__at(&s->event_at, block->event->id);
	if (newest == NULL || at == NULL)
		return -ENOMEM;
	*at = site->event;
	*newest = (struct report_newest){true, block->size, block->stack, block->code};
	grow(s, &site->sum, stack != NULL ? &stack->sum : NULL, block->size);
	return 0;
}

/* The field that holds the address behind a call, by its name: role 'code' is any code. */
static int call_site(const struct pem_event *event)
{
	int field = pem_event__field_by_role(event, PEM_ROLE_CODE);
	const char *name = field >= 0 ? event->fields[field].name : "";
	size_t length = strlen(name);

	if (strcmp(name, "site") == 0 || (length > 4 && strcmp(name + length - 4, "Site") == 0))
		return field;
	return -1;
}

static void count(struct report_amounts *sum, const struct report_event *e,
		  const struct pem_record *record)
{
	sum->count++;
	if (e->value == VALUE_SUM && strcmp(e->event->fields[e->field].unit, "bytes") == 0)
		cli_sum__add(&sum->bytes, pem_record__u64(record, (unsigned int)e->field));
}

/*
 * Count the record's stack, of which the event is a sample's or an allocation's. Returns 0, with
 * *stack, which is NULL where the record has none; or -ENOMEM.
 */
static int count_stack(struct report_sites *s, const struct report_event *e, uint32_t event,
		       const struct pem_record *record, const struct pem_pass_process *process,
		       struct report_stack **stack)
{
	int field = pem_event__field_by_role(e->event, PEM_ROLE_STACK);
	uint64_t number = field >= 0 ? pem_record__u64(record, (unsigned int)field) : 0;
	int64_t node = PEM_CODE_NONE;

	*stack = NULL;
	if (e->event->meaning == PEM_MEANS_SAMPLE)
		node = pem_code__sample(s->code, record, process);
	else if (number != 0)
		node = pem_code__numbered(s->code, record->pid, process, number);
	if (node < 0)
		return -ENOMEM;
	s->stackless += number != 0 && node == PEM_CODE_NONE;
	if (node == PEM_CODE_NONE)
		return 0;
	*stack = stack_of(s, event, (uint32_t)node);
	if (*stack == NULL)
		return -ENOMEM;
	count(&(*stack)->sum, e, record);
	return 0;
}

int report_sites__record(struct report_sites *s, const struct report_event *e, uint32_t event,
			 const struct pem_record *record, const struct pem_around *around)
{
	const struct pem_pass_process *process = around->process;
	bool is_sample = e->event->meaning == PEM_MEANS_SAMPLE;
	struct report_stack *stack;
	struct report_site *site;
	uint64_t behind;
	int field;

	if (e->event->meaning == PEM_MEANS_OBJECT)
		return pem_code__map(s->code, record);
	if (e->event->meaning == PEM_MEANS_FRAME)
		return pem_code__frame(s->code, record, process);
	if (ends_blocks(e->event) && end_blocks(s, e->event, around) < 0)
		return -ENOMEM;
	field = e->layer == LAYER_APP ? call_site(e->event) : -1;
	if (s->samples && is_sample)
		field = pem_event__field_by_role(e->event, PEM_ROLE_CODE);
	if (field < 0)
		return 0;
	/* A sample is at an instruction, a call site behind one. */
	behind = pem_record__u64(record, (unsigned int)field) + is_sample;
	site = site_of(s, event, pem_code__locate(s->code, record->pid, process, behind));
	if (site == NULL || count_stack(s, e, event, record, process, &stack) < 0)
		return -ENOMEM;
	count(&site->sum, e, record);
	return e->event->meaning == PEM_MEANS_ALLOCATION ? begin_block(s, site, stack, around) : 0;
}

static const struct report_sites *sort_of;

static int more(const void *a, const void *b)
{
	const struct report_site *x = a, *y = b;
	const struct pem_code_location *i, *j;

	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes < y->sum.bytes ? 1 : -1;
	if (x->sum.count != y->sum.count)
		return x->sum.count < y->sum.count ? 1 : -1;
	i = pem_code__location(sort_of->code, x->location);
	j = pem_code__location(sort_of->code, y->location);
	if (i->object != j->object)
		return i->object < j->object ? -1 : 1;
	if (i->offset != j->offset)
		return i->offset < j->offset ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return (i->pid > j->pid) - (i->pid < j->pid);
}

void report_amounts__join(struct report_amounts *to, const struct report_amounts *from)
{
	to->count += from->count;
	to->live += from->live;
	to->temporary += from->temporary;
	cli_sum__add(&to->peak, from->peak);
	cli_sum__add(&to->bytes, from->bytes);
	cli_sum__add(&to->live_bytes, from->live_bytes);
}

/* Join sites that are one, now that all objects are known. Returns 0 or -ENOMEM. */
static int join(struct report_sites *s)
{
	size_t i, n = 0;

	pem_number_map__free(&s->site_at);
	s->site_at = (struct pem_number_map){0};
	for (i = 0; i < s->count; i++) {
		struct report_site site = s->sites[i];
		uint32_t *at;

		site.location = pem_code__same(s->code, site.location);
		at = pem_number_map__at(&s->site_at, (uint64_t)site.event << 32 | site.location);
		if (at == NULL)
			return -ENOMEM;
		if (*at == UINT32_MAX) {
			*at = (uint32_t)n;
			s->sites[n++] = site;
			continue;
		}
		report_amounts__join(&s->sites[*at].sum, &site.sum);
	}
	s->count = n;
	return 0;
}

static int count_objects(struct report_sites *s)
{
	size_t i;

	s->of_object = calloc(pem_code__object_count(s->code) + 1, sizeof(*s->of_object));
	if (s->of_object == NULL)
		return -ENOMEM;
	for (i = 0; i < s->count; i++) {
		uint32_t object = pem_code__location(s->code, s->sites[i].location)->object;

		if (object != PEM_CODE_NONE)
			s->of_object[object] += s->sites[i].sum.count;
	}
	return 0;
}

/* --- what is live at the end --- */

struct live {
	struct report_sites *sites;
	const struct report *report;
	bool *is_known; /* by event: all that ends its blocks was recorded */
};

/* Was the event recorded each time, also where that cost too much, and whatever its fields? */
static bool is_recorded(const struct report *report, const char *name)
{
	const struct pem_trace_info *info = report->info;
	bool found = false;
	size_t i;

	for (i = 0; i < report->event_count; i++)
		if (strcmp(report->events[i].event->name, name) == 0)
			found = !report__is_reduced(report, &report->events[i]);
	for (i = 0; i < info->predicate_count; i++)
		found &= strcmp(info->predicates[i].event, name) != 0;
	return found && info->predicates_more == 0;
}

/*
 * Was each event recorded that ends blocks of the group? catalogue tells which there are. At least
 * one has to be.
 */
static bool sees_all_ends(const struct report *report, const struct pem_model *catalogue,
			  const char *group)
{
	bool found = false;
	size_t i;

	for (i = 0; i < pem_model__count(catalogue); i++) {
		const struct pem_event *event = pem_model__event(catalogue, i);

		if (ends_blocks(event) && strcmp(event->group, group) == 0 &&
		    !is_recorded(report, event->name))
			return false;
	}
	for (i = 0; i < report->event_count; i++) {
		const struct pem_event *event = report->events[i].event;

		if (!ends_blocks(event) || strcmp(event->group, group) != 0)
			continue;
		if (!is_recorded(report, event->name))
			return false;
		found |= event->meaning == PEM_MEANS_RELEASE;
	}
	return found;
}

static bool *find_known(const struct report *report)
{
	struct pem_model *catalogue = pem_model__new();
	bool *known = calloc(report->event_count + 1, sizeof(*known));
	struct pem_error error = {{0}};
	size_t i;

	if (catalogue == NULL || pem_model__add_catalogue(catalogue, &error) < 0) {
		free(known);
		known = NULL;
	}
	for (i = 0; known != NULL && i < report->event_count; i++)
		known[i] = report->events[i].event->meaning == PEM_MEANS_ALLOCATION &&
			   sees_all_ends(report, catalogue, report->events[i].event->group);
	pem_model__free(catalogue);
	return known;
}

static void add_block(struct report_amounts *sum, uint64_t bytes)
{
	sum->live++;
	cli_sum__add(&sum->live_bytes, bytes);
}

static int add_live(void *arg, const struct pem_pass_process *process,
		    const struct pem_block *block)
{
	const struct live *live = arg;
	struct report_stack *stack = NULL;
	struct report_site *site;
	uint32_t event = 0, node;

	if (block->code == 0 || process == NULL || process->pid == 0)
		return 0;
	while (event < live->report->event_count &&
	       live->report->events[event].event != block->event)
		event++;
	if (event == live->report->event_count || !live->is_known[event])
		return 0;
	site = site_of(live->sites, event,
		       pem_code__locate(live->sites->code, process->pid, NULL, block->code));
	node = pem_code__numbered(live->sites->code, process->pid, process, block->stack);
	if (node != PEM_CODE_NONE)
		stack = stack_of(live->sites, event, node);
	if (site == NULL || (node != PEM_CODE_NONE && stack == NULL))
		return -ENOMEM;
	add_block(&site->sum, block->size);
	if (stack != NULL)
		add_block(&stack->sum, block->size);
	return 0;
}

/* What follows from releases is known if all of them were recorded, and none lost. */
static void finish_peak(const struct report_sites *s, const struct live *live, uint32_t event,
			struct report_amounts *sum)
{
	bool is_complete = live->report->total.discarded + live->report->total.overwritten == 0;

	keep_peak(s, sum);
	if (!is_complete || !live->is_known[event])
		sum->peak = sum->temporary = 0;
}

static void finish_peaks(struct report_sites *s, const struct live *live)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		finish_peak(s, live, s->sites[i].event, &s->sites[i].sum);
	for (i = 0; i < s->stack_count; i++)
		finish_peak(s, live, s->stacks[i].event, &s->stacks[i].sum);
}

int report_sites__finish(struct report_sites *s, const struct report *report)
{
	struct live live = {s, report, find_known(report)};
	int rc = live.is_known != NULL
			 ? pem_pass__blocks(report_times__pass(report), add_live, &live)
			 : -ENOMEM;

	if (rc == 0)
		finish_peaks(s, &live);
	free(live.is_known);
	if (rc == 0)
		rc = pem_code__name(s->code, report->trace);
	if (rc == 0)
		rc = join(s);
	if (rc == 0)
		rc = count_objects(s);
	sort_of = s;
	if (rc == 0 && s->count != 0)
		qsort(s->sites, s->count, sizeof(*s->sites), more);
	return rc;
}

void report_sites__free(struct report_sites *s)
{
	if (s == NULL)
		return;
	pem_code__free(s->code);
	free(s->sites);
	free(s->stacks);
	free(s->of_object);
	free(s->newest);
	pem_number_map__free(&s->event_at);
	pem_number_map__free(&s->newest_at);
	pem_number_map__free(&s->site_at);
	pem_number_map__free(&s->stack_at);
	free(s);
}
