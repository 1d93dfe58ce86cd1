/* SPDX-License-Identifier: MIT */
/*
 * stacks.c - stacks of calls as a table and as JSON: what was allocated from each, and where the
 * CPU was
 *
 * Not here: how they are counted (sites.c), and sums by function (functions.c).
 */
#include "sites.h"

#include <stdlib.h>

#define STACKS_MOST 20u /* in the table */
#define CALLS_MOST 30u /* of one of them */

/* Those with most bytes at the peak first, then with most bytes, then with most records. */
static int by_weight(const void *a, const void *b)
{
	const struct report_stack *x = *(const struct report_stack *const *)a;
	const struct report_stack *y = *(const struct report_stack *const *)b;

	if (x->sum.peak != y->sum.peak)
		return x->sum.peak < y->sum.peak ? 1 : -1;
	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes < y->sum.bytes ? 1 : -1;
	if (x->sum.count != y->sum.count)
		return x->sum.count < y->sum.count ? 1 : -1;
	return (x > y) - (x < y);
}

/* Returns NULL if there is no memory. */
static const struct report_stack **sorted(const struct report_sites *s)
{
	const struct report_stack **order = calloc(s->stack_count + 1, sizeof(*order));
	size_t i;

	for (i = 0; order != NULL && i < s->stack_count; i++)
		order[i] = &s->stacks[i];
	if (order != NULL)
		qsort(order, s->stack_count, sizeof(*order), by_weight);
	return order;
}

/* The first row has the stack's amounts, the others are its callers. */
static void put_rows(struct cli_table *table, const struct report *r,
		     const struct report_stack *stack)
{
	const struct pem_code *code = r->sites->code;
	uint32_t node = stack->node, calls;
	unsigned int column;

	for (calls = 0; node != PEM_CODE_NONE; node = pem_code__caller(code, node), calls++) {
		const struct pem_code_location *at =
			pem_code__location(code, pem_code__node_location(code, node));

		cli_table__row(table, calls == 0 ? CLI_PLAIN : CLI_DIM);
		if (calls == 0) {
			report_amounts__cells(table, &stack->sum);
			cli_table__cell(table, report_site__event(r->events[stack->event].event));
		}
		for (column = 0; calls != 0 && column < REPORT_AMOUNT_COLUMNS + 1; column++)
			cli_table__cell(table, "");
		if (calls == CALLS_MOST) {
			cli_table__cell(table, "");
			cli_table__cell(table, "(and further callers: --json)");
			return;
		}
		cli_table__cell(table, report_site__line(code, at));
		cli_table__cell(table, report_site__function(at));
	}
}

void report_stacks__print(const struct report *r)
{
	const struct report_sites *s = r->sites;
	const struct report_stack **order = sorted(s);
	struct cli_table *table = cli_table__new(stdout);
	size_t i, count = order != NULL ? s->stack_count : 0;

	report__heading("Stacks");
	report_amounts__columns(table);
	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "LINE", CLI_CUT);
	cli_table__column(table, "FUNCTION, AND ITS CALLERS", CLI_CUT);
	for (i = 0; i < count && i < STACKS_MOST; i++)
		put_rows(table, r, order[i]);
	cli_table__print(table);
	if (count > STACKS_MOST)
		printf("and %s more (--json)\n", cli_count(count - STACKS_MOST));
	if (order == NULL)
		cli_wrap(stdout, "No memory to list stacks.", 0, 0, cli_width(stdout));
	else if (count == 0)
		cli_wrap(stdout,
			 "No event of the trace has a stack. Record allocations, or samples of "
			 "the CPU, with -g.",
			 0, 0, cli_width(stdout));
	if (s->stackless != 0)
		cli_wrap(stdout,
			 cli_format("%s allocations are in no stack: its records were lost.",
				    cli_count(s->stackless)),
			 0, 0, cli_width(stdout));
	if (s->count != 0)
		report_sites__print_notes(s, "");
	free(order);
}

/* Functions that were inlined into each other are frames of their own. */
static void add_frames(struct json_object *frames, const struct pem_code *code,
		       const struct pem_code_location *at)
{
	uint32_t i;

	for (i = 0; i < at->name_count || i == 0; i++) {
		struct json_object *frame = json_object_new_object();
		const struct pem_code_name *name = i < at->name_count ? &at->names[i] : NULL;

		if (name != NULL && name->function != NULL)
			cli_json__text(frame, "function", name->function);
		if (name != NULL && name->file != NULL)
			cli_json__text(frame, "file", name->file);
		if (name != NULL && name->line != 0)
			cli_json__count(frame, "line", name->line);
		if (at->object != PEM_CODE_NONE)
			cli_json__text(frame, "object", pem_code__object(code, at->object)->path);
		cli_json__count(frame, "offset", at->offset);
		if (i + 1 < at->name_count)
			cli_json__flag(frame, "inlined", true);
		json_object_array_add(frames, frame);
	}
}

void report_stacks__json(const struct report *r, struct cli_json_stream *json)
{
	const struct report_sites *s = r->sites;
	const struct report_stack **order = sorted(s);
	size_t i;

	if (!s->lists_stacks || order == NULL) {
		free(order);
		return;
	}
	cli_json_stream__open(json, "stacks", '[');
	for (i = 0; i < s->stack_count; i++) {
		struct json_object *entry = json_object_new_object();
		struct json_object *frames = json_object_new_array();
		uint32_t node;

		cli_json__text(entry, "event", r->events[order[i]->event].event->name);
		report_amounts__json(entry, &order[i]->sum);
		for (node = order[i]->node; node != PEM_CODE_NONE;
		     node = pem_code__caller(s->code, node))
			add_frames(frames, s->code,
				   pem_code__location(s->code,
						      pem_code__node_location(s->code, node)));
		json_object_object_add(entry, "frames", frames);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
	cli_json_stream__add(json, "without_stack", json_object_new_uint64(s->stackless));
	free(order);
}
