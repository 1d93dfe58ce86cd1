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

/* The origins of a site and of a stack; NULL: the stack is unknown. */
static void find_origins(const struct report_sites *s, const struct report_site *site,
			 const struct report_stack *stack, uint32_t origins[PEM_HEAP_ORIGINS])
{
	origins[0] = (uint32_t)(site - s->sites) << 1;
	origins[1] = stack != NULL ? (uint32_t)(stack - s->stacks) << 1 | 1 : PEM_HEAP_NO_ORIGIN;
}

/* A block of the process ends. Returns 0 or -ENOMEM. */
static int end_block(struct report_sites *s, const struct pem_pass_process *process,
		     const struct pem_block *block)
{
	uint32_t event = pem_number_map__value(&s->event_at, block->event->id);
	uint32_t node = pem_code__numbered(s->code, process->pid, process, block->stack);
	struct report_stack *stack = NULL;
	struct report_site *site;
	uint32_t origins[PEM_HEAP_ORIGINS];

	if (event == UINT32_MAX || block->code == 0)
		return 0;
	site = site_of(s, event, pem_code__locate(s->code, process->pid, process, block->code));
	if (node != PEM_CODE_NONE)
		stack = stack_of(s, event, node);
	if (site == NULL || (node != PEM_CODE_NONE && stack == NULL))
		return -ENOMEM;
	find_origins(s, site, stack, origins);
	return pem_heap__end(&s->heap, process, block, origins);
}

/* The site allocates. stack: its stack, or NULL. Returns 0 or -ENOMEM. */
static int begin_block(struct report_sites *s, struct report_site *site, struct report_stack *stack,
		       const struct pem_around *around)
{
	const struct pem_block *block = around->block;
	uint32_t *at, origins[PEM_HEAP_ORIGINS];

	if (around->process == NULL || block == NULL)
		return 0;
	at = pem_number_map__at(&s->event_at, block->event->id);
	if (at == NULL)
		return -ENOMEM;
	*at = site->event;
	find_origins(s, site, stack, origins);
	return pem_heap__begin(&s->heap, around->process, block, origins);
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

int report_sites__record(const struct report *report, const struct report_event *e, uint32_t event,
			 const struct pem_record *record, const struct pem_around *around)
{
	const struct pem_pass_process *process = around->process;
	struct report_sites *s = report->sites;
	bool is_sample = e->event->meaning == PEM_MEANS_SAMPLE;
	const struct pem_block *ended;
	struct report_stack *stack;
	struct report_site *site;
	uint64_t behind;
	int field;

	if (e->event->meaning == PEM_MEANS_OBJECT)
		return pem_code__map(s->code, record);
	if (e->event->meaning == PEM_MEANS_FRAME)
		return pem_code__frame(s->code, record, process);
	s->heap.trace = report->trace;
	if (pem_heap__record(&s->heap, record, process) < 0)
		return -ENOMEM;
	ended = process != NULL ? pem_heap__ended(e->event, around) : NULL;
	if (ended != NULL && end_block(s, process, ended) < 0)
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
			   pem_heap__sees_ends(report->trace, catalogue,
					       report->events[i].event->group);
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
static void add_rows(struct report_sites *s, const struct live *live)
{
	size_t i;

	pem_heap__finish(&s->heap);
	for (i = 0; i < s->heap.row_count; i++) {
		const struct pem_heap_row *row = &s->heap.rows[i];
		bool is_stack = row->origin & 1;
		uint32_t at = row->origin >> 1,
			 event = is_stack ? s->stacks[at].event : s->sites[at].event;
		struct report_amounts *sum = is_stack ? &s->stacks[at].sum : &s->sites[at].sum;

		if (!live->is_known[event])
			continue;
		cli_sum__add(&sum->peak, row->peak);
		sum->temporary += row->temporary;
	}
}

int report_sites__finish(struct report_sites *s, const struct report *report)
{
	struct live live = {s, report, find_known(report)};
	int rc = live.is_known != NULL
			 ? pem_pass__blocks(report_times__pass(report), add_live, &live)
			 : -ENOMEM;

	if (rc == 0 && pem_heap__is_complete(report->trace, report_times__pass(report)))
		add_rows(s, &live);
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
	pem_heap__free(&s->heap);
	pem_number_map__free(&s->event_at);
	pem_number_map__free(&s->site_at);
	pem_number_map__free(&s->stack_at);
	free(s);
}
