/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* spans.c - ranges of addresses that may overlap, made into steps that are searched in halves */
#include "names.h"

#include <errno.h>
#include <grow.h>
#include <stdlib.h>

int pem_spans__add(struct pem_spans *spans, uint64_t low, uint64_t high, uint32_t of)
{
	if (low >= high)
		return 0;
	if (pem_grow(&spans->spans, sizeof(*spans->spans), spans->count + 1, &spans->capacity) != 0)
		return -ENOMEM;
	spans->spans[spans->count++] = (struct pem_span){low, high, of};
	return 0;
}

/* By start; then the longer one first, which the shorter one then covers; then as they were added.
 */
static int compare(const void *a, const void *b)
{
	const struct pem_span *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	return x->of < y->of ? -1 : x->of > y->of;
}

/* The spans that cover the address reached so far, the last one on top. */
struct cover {
	const struct pem_span **open;
	size_t depth;
	struct pem_spans *spans;
};

static void step(struct pem_spans *spans, uint64_t start, uint32_t of)
{
	struct pem_step *last = spans->steps + spans->step_count - 1;

	if (spans->step_count != 0 && last->start == start)
		last->of = of;
	else
		spans->steps[spans->step_count++] = (struct pem_step){start, of};
}

/* End what ends up to an address. */
static void close_up_to(struct cover *cover, uint64_t address)
{
	while (cover->depth != 0 && cover->open[cover->depth - 1]->high <= address) {
		uint64_t end = cover->open[--cover->depth]->high;

		/* Spans below that ended before the one above them are not seen again. */
		while (cover->depth != 0 && cover->open[cover->depth - 1]->high <= end)
			cover->depth--;
		step(cover->spans, end,
		     cover->depth != 0 ? cover->open[cover->depth - 1]->of : PEM_SPAN_NONE);
	}
}

int pem_spans__sort(struct pem_spans *spans)
{
	struct cover cover = {.spans = spans};
	size_t i;

	if (spans->count == 0)
		return 0;
	/* A span makes at most two steps: its start, and its end. */
	spans->steps = calloc(spans->count, 2 * sizeof(*spans->steps));
	cover.open = calloc(spans->count, sizeof(*cover.open));
	if (spans->steps == NULL || cover.open == NULL) {
		free(cover.open);
		return -ENOMEM;
	}
	qsort(spans->spans, spans->count, sizeof(*spans->spans), compare);
	for (i = 0; i < spans->count; i++) {
		close_up_to(&cover, spans->spans[i].low);
		cover.open[cover.depth++] = &spans->spans[i];
		step(spans, spans->spans[i].low, spans->spans[i].of);
	}
	close_up_to(&cover, UINT64_MAX);
	free(cover.open);
	free(spans->spans);
	spans->spans = NULL;
	spans->count = spans->capacity = 0;
	return 0;
}

uint32_t pem_spans__find(const struct pem_spans *spans, uint64_t address)
{
	size_t low = 0, high = spans->step_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->steps[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? PEM_SPAN_NONE : spans->steps[low - 1].of;
}

void pem_spans__free(struct pem_spans *spans)
{
	free(spans->spans);
	free(spans->steps);
	*spans = (struct pem_spans){0};
}
