// SPDX-License-Identifier: MIT
/* rows.c - makes the rows that pem top shows from samples: sums, filters, sorts */
#include "top.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool top__passes(const struct top *top, const char *name)
{
	return *top->filter == '\0' || strcasestr(name, top->filter) != NULL;
}

/* The key of the row that a part belongs to. Parts of one row have one key. */
static uint64_t key_of(const struct top_part *part, enum top_by by)
{
	switch (by) {
	case TOP_BY_PROCESS:
		return part->pid;
	case TOP_BY_THREAD: /* without a thread: kernel parts by CPU, or parts of ended threads */
		if (part->tid == 0)
			return 1ull << 63 | (uint64_t)(part->cpu & 0xffff) << 32 | part->pid;
		return (uint64_t)part->pid << 32 >> 1 | part->tid;
	default:
		return part->event;
	}
}

static bool is_in(const struct top_view *view, const struct top_part *part)
{
	return (view->event == TOP_NONE || part->event == view->event) &&
	       (view->pid == TOP_NONE || part->pid == view->pid) &&
	       (view->tid == TOP_NONE || part->tid == view->tid);
}

static struct top_row *new_row(struct top_rows *rows)
{
	struct top_row *row;

	if (pem_grow(&rows->rows, sizeof(*rows->rows), rows->count + 1, &rows->capacity) < 0)
		return NULL;
	row = &rows->rows[rows->count++];
	memset(row, 0, sizeof(*row));
	row->event = row->pid = row->tid = row->cpu = TOP_NONE;
	return row;
}

static struct top_row *row_at(struct top_rows *rows, struct pem_number_map *map, uint64_t key,
			      bool add)
{
	uint32_t *at = pem_number_map__at(map, key);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (!add || new_row(rows) == NULL)
			return NULL;
		*at = (uint32_t)(rows->count - 1);
	}
	return &rows->rows[*at];
}

static void describe(const struct top *top, const struct top_view *view,
		     const struct top_part *part, struct top_row *row)
{
	if (view->by == TOP_BY_EVENT) {
		row->event = part->event;
		row->layer = top->events[part->event].layer;
		return;
	}
	row->event = view->event;
	row->pid = part->pid;
	if (view->by == TOP_BY_THREAD) {
		row->tid = part->tid;
		row->cpu = part->cpu;
	}
	if (*part->program != '\0')
		memcpy(row->program, part->program, sizeof(row->program));
}

/* A counter's value is not a number of events, so it counts only in the row of its own event. */
static bool adds_up(const struct top *top, const struct top_view *view, const struct top_part *part)
{
	return view->by == TOP_BY_EVENT || view->event != TOP_NONE ||
	       !top->events[part->event].is_counter;
}

static void add_now(const struct top *top, const struct top_view *view, struct top_rows *rows,
		    struct pem_number_map *map)
{
	double seconds = (double)top__interval_ns(top) / 1e9;
	size_t i;

	for (i = 0; i < top->now.count; i++) {
		const struct top_part *part = &top->now.parts[i];
		struct top_row *row;

		if (!is_in(view, part) || !adds_up(top, view, part))
			continue;
		row = row_at(rows, map, key_of(part, view->by), true);
		if (row == NULL)
			continue;
		describe(top, view, part, row);
		row->total += part->count;
		row->sum += part->sum;
		row->layer_rate[top->events[part->event].layer] += (double)part->count / seconds;
	}
}

/*
 * Find the row that a part goes to if no row of its own exists any more. The counts of a thread or
 * process stay when it ends.
 */
static struct top_row *heir_of(const struct top_view *view, const struct top_part *part,
			       struct top_rows *rows, struct pem_number_map *map)
{
	struct top_part heir = *part;
	struct top_row *row = NULL;

	heir.tid = 0;
	if (view->by == TOP_BY_THREAD)
		row = row_at(rows, map, key_of(&heir, view->by), false);
	if (row != NULL)
		return row;
	heir.pid = TOP_ENDED;
	heir.cpu = PEM_NO_CPU;
	return row_at(rows, map, key_of(&heir, view->by), false);
}

static void take_before(const struct top *top, const struct top_view *view, struct top_rows *rows,
			struct pem_number_map *map)
{
	double seconds = (double)top__interval_ns(top) / 1e9;
	size_t i;

	for (i = 0; i < top->before.count; i++) {
		const struct top_part *part = &top->before.parts[i];
		struct top_row *row;

		if (!is_in(view, part) || !adds_up(top, view, part))
			continue;
		row = row_at(rows, map, key_of(part, view->by), false);
		if (row == NULL)
			row = heir_of(view, part, rows, map);
		if (row == NULL)
			continue;
		row->before += part->count;
		row->sum_before += part->sum;
		row->layer_rate[top->events[part->event].layer] -= (double)part->count / seconds;
	}
}

/* Count the different threads of each process whose threads are known. */
static void count_threads(const struct top *top, const struct top_view *view, struct top_rows *rows,
			  struct pem_number_map *map)
{
	struct pem_number_map seen = {0};
	size_t i;

	for (i = 0; i < top->now.count; i++) {
		const struct top_part *part = &top->now.parts[i];
		uint32_t *mark;
		struct top_row *row;

		if (part->tid == 0 || !is_in(view, part))
			continue;
		mark = pem_number_map__at(&seen, key_of(part, TOP_BY_THREAD));
		row = row_at(rows, map, key_of(part, TOP_BY_PROCESS), false);
		if (mark == NULL || row == NULL || *mark == 0)
			continue;
		*mark = 0;
		row->threads++;
	}
	pem_number_map__free(&seen);
}

/* Add events that have not occurred yet, if they are to be shown. */
static void add_zeros(const struct top *top, struct top_rows *rows, struct pem_number_map *map)
{
	uint32_t i;

	for (i = 0; i < top->event_count; i++) {
		struct top_row *row = row_at(rows, map, i, true);

		if (row == NULL)
			return;
		row->event = i;
		row->layer = top->events[i].layer;
		row->unavailable = top->events[i].statistics == NULL;
	}
}

static bool is_counter(const struct top *top, const struct top_row *row)
{
	return row->event != TOP_NONE && top->events[row->event].is_counter;
}

static bool is_estimate(const struct top *top, const struct top_row *row)
{
	return row->event != TOP_NONE && top->events[row->event].is_estimate;
}

/*
 * Compute rates from counts. A count that decreased was registered anew, or belongs to another
 * thread now; or it is an estimate, which another interval made smaller.
 */
static void derive(const struct top *top, const struct top_view *view, struct top_rows *rows)
{
	double seconds = (double)top__interval_ns(top) / 1e9, all = 0;
	size_t i;

	for (i = 0; i < rows->count; i++) {
		struct top_row *row = &rows->rows[i];
		unsigned int layer;

		if (row->before > row->total && is_estimate(top, row)) {
			row->before = row->total;
			row->sum_before = row->sum;
		} else if (row->before > row->total) {
			row->before = 0;
		}
		if (row->before == 0)
			row->sum_before = 0;
		if (seconds > 0) {
			row->rate = (double)(row->total - row->before) / seconds;
			row->sum_rate = (row->sum - row->sum_before) / seconds;
		}
		row->mean = row->total != 0 ? row->sum / (double)row->total : 0;
		for (layer = 0; layer < TOP_LAYERS; layer++)
			if (row->layer_rate[layer] < 0)
				row->layer_rate[layer] = 0;
		if (view->by == TOP_BY_EVENT && view->pid == TOP_NONE)
			row->total += top->events[row->event].base_count;
		all += is_counter(top, row) ? 0 : row->rate;
	}
	for (i = 0; i < rows->count; i++)
		if (all > 0 && !is_counter(top, &rows->rows[i]))
			rows->rows[i].share = rows->rows[i].rate / all;
}

/* --- order --- */

static int by_number(double a, double b)
{
	return a > b ? -1 : a < b;
}

static int by_name(const struct top *top, const struct top_row *a, const struct top_row *b)
{
	int order = strcmp(top_name(top, a), top_name(top, b));

	if (order == 0 && a->pid != b->pid)
		order = a->pid < b->pid ? -1 : 1;
	if (order == 0 && a->tid != b->tid)
		order = a->tid < b->tid ? -1 : 1;
	return order;
}

static int compare(const void *left, const void *right, void *arg)
{
	const struct top *top = arg;
	const struct top_row *a = left, *b = right;
	int order = 0;

	/* Rows of a layer are neighbours. The layer's own row is first. */
	if (a->layer != b->layer)
		return a->layer < b->layer ? -1 : 1;
	if (a->is_layer != b->is_layer)
		return a->is_layer ? -1 : 1;
	switch (top->order) {
	case TOP_RATE:
		order = by_number(a->rate, b->rate);
		break;
	case TOP_TOTAL:
		order = by_number((double)a->total, (double)b->total);
		break;
	case TOP_SUM:
		order = by_number(a->sum_rate, b->sum_rate);
		break;
	case TOP_MEAN:
		order = by_number(a->mean, b->mean);
		break;
	default:
		break;
	}
	if (order == 0) /* equal rows keep their order from one screen to the next */
		return top->order == TOP_NAME && top->reverse ? by_name(top, b, a)
							      : by_name(top, a, b);
	return top->reverse ? -order : order;
}

static void filter_rows(const struct top *top, const struct top_view *view, struct top_rows *rows)
{
	size_t i, n = 0;

	for (i = 0; i < rows->count; i++) {
		const struct top_row *row = &rows->rows[i];

		if (view->by == TOP_BY_EVENT && row->total == 0 && !top->show_zero)
			continue;
		if (top__passes(top, top_name(top, row)))
			rows->rows[n++] = *row;
	}
	rows->count = n;
}

static void add_layers(const struct top *top, struct top_rows *rows)
{
	struct top_row sum[TOP_LAYERS] = {{0}};
	bool any[TOP_LAYERS] = {false};
	size_t i, n = 0, count = rows->count;
	unsigned int layer;

	for (i = 0; i < count; i++) {
		const struct top_row *row = &rows->rows[i];
		struct top_row *of = &sum[row->layer];

		any[row->layer] = true;
		if (!is_counter(top, row)) {
			of->total += row->total;
			of->rate += row->rate;
			of->share += row->share;
		}
		if (!top->folded[row->layer])
			rows->rows[n++] = *row;
	}
	rows->count = n;
	for (layer = 0; layer < TOP_LAYERS; layer++) {
		struct top_row *row = any[layer] ? new_row(rows) : NULL;

		if (row == NULL)
			continue;
		*row = sum[layer];
		row->event = row->pid = row->tid = row->cpu = TOP_NONE;
		row->layer = layer;
		row->is_layer = true;
	}
}

void top_rows__make(const struct top *top, const struct top_view *view, struct top_rows *rows)
{
	struct pem_number_map map = {0};

	rows->count = 0;
	add_now(top, view, rows, &map);
	take_before(top, view, rows, &map);
	if (view->by == TOP_BY_PROCESS)
		count_threads(top, view, rows, &map);
	if (view->by == TOP_BY_EVENT && top->show_zero && view->pid == TOP_NONE)
		add_zeros(top, rows, &map);
	pem_number_map__free(&map);
	derive(top, view, rows);
	filter_rows(top, view, rows);
	if (view->by == TOP_BY_EVENT && view->pid == TOP_NONE)
		add_layers(top, rows);
	if (rows->count != 0)
		qsort_r(rows->rows, rows->count, sizeof(*rows->rows), compare, (void *)top);
}

void top_rows__free(struct top_rows *rows)
{
	free(rows->rows);
	memset(rows, 0, sizeof(*rows));
}
