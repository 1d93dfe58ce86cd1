/* SPDX-License-Identifier: MIT */
/* space.c - parameters and their levels; configurations by number */
#include "trial/space.h"

#include "grow.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Configurations that are listed, to know which of them constraints allow. */
#define LISTED_MAX 20000u

static int refuse(struct pem_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(struct pem_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return -EINVAL;
}

struct trial_space *trial_space__new(void)
{
	struct trial_space *space = calloc(1, sizeof(*space));

	if (!space)
		return NULL;
	space->view.size = sizeof(space->view);
	space->view.parameters = space->parameters;
	space->view.arg = space;
	return space;
}

void trial_space__free(struct trial_space *space)
{
	uint32_t i, k;

	if (!space)
		return;
	for (i = 0; i < space->view.parameter_count; i++) {
		struct pem_explore_parameter *parameter = &space->parameters[i];

		for (k = 0; k < parameter->levels; k++)
			free((char *)parameter->values[k]);
		free((void *)parameter->values);
		free((void *)parameter->positions);
		free((char *)parameter->name);
	}
	free(space->rows);
	free(space->sorted);
	free(space);
}

/* A value that was given, and where. */
struct value {
	const char *text;
	double number;
	size_t given; /* its place in the list */
};

static int by_number(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int by_text(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static int by_place(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return x->given < y->given ? -1 : x->given > y->given;
}

/* The whole text as a finite number. */
static bool as_number(const char *text, double *number)
{
	char *end;

	*number = strtod(text, &end);
	return end != text && !*end && isfinite(*number);
}

/*
 * Sort values into the order of their levels. Returns 1: they are numbers; 0: they are not; or
 * -EINVAL with error.
 */
static int put_in_order(struct value *values, size_t count, const char *name,
			struct pem_error *error)
{
	size_t i;

	qsort(values, count, sizeof(*values), by_text);
	for (i = 1; i < count; i++) {
		if (!strcmp(values[i].text, values[i - 1].text))
			return refuse(error, "'%.100s' has the value '%.100s' twice", name,
				      values[i].text);
	}
	for (i = 0; i < count && as_number(values[i].text, &values[i].number); i++)
		;
	if (i < count) {
		qsort(values, count, sizeof(*values), by_place);
		return 0;
	}
	qsort(values, count, sizeof(*values), by_number);
	for (i = 1; i < count; i++) {
		if (values[i].number == values[i - 1].number)
			return refuse(error, "'%.100s' has one number twice: '%.100s' and '%.100s'",
				      name, values[i - 1].text, values[i].text);
	}
	return 1;
}

/* Where numbers lie between the first and the last. */
static double *positions_of(const struct value *values, size_t count, bool log_scale)
{
	double *positions = calloc(count, sizeof(*positions));
	double first, last;
	size_t i;

	if (!positions)
		return NULL;
	/* Halves, so that a difference of two finite numbers is finite. */
	for (i = 0; i < count; i++)
		positions[i] = log_scale ? log(values[i].number) : values[i].number / 2;
	first = positions[0];
	last = positions[count - 1];
	for (i = 0; i < count; i++)
		positions[i] = count > 1 ? (positions[i] - first) / (last - first) : 0;
	return positions;
}

static int fill(struct pem_explore_parameter *parameter, const struct value *values, size_t count)
{
	const char **texts = calloc(count, sizeof(*texts));
	size_t i;

	parameter->values = texts;
	if (!texts)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		texts[i] = strdup(values[i].text);
		if (!texts[i])
			return -ENOMEM;
		parameter->levels++;
	}
	return 0;
}

int trial_space__add(struct trial_space *space, const char *name, const char *const *values,
		     size_t count, bool log_scale, uint32_t *level_of, struct pem_error *error)
{
	struct pem_explore_parameter *parameter = &space->parameters[space->view.parameter_count];
	struct value *order;
	int ordered = -ENOMEM;
	size_t i;

	if (space->view.parameter_count == TRIAL_PARAMETERS_MAX)
		return refuse(error, "there are more than %u parameters", TRIAL_PARAMETERS_MAX);
	if (!count || count > TRIAL_LEVELS_MAX)
		return refuse(error, "'%.100s' has %zu values: 1 to %u are possible", name, count,
			      TRIAL_LEVELS_MAX);
	order = calloc(count, sizeof(*order));
	if (order) {
		for (i = 0; i < count; i++)
			order[i] = (struct value){.text = values[i], .given = i};
		ordered = put_in_order(order, count, name, error);
	}
	if (ordered == 1 && log_scale && order[0].number <= 0)
		ordered = refuse(error, "'%.100s' has a logarithmic scale, and the value %s", name,
				 order[0].text);
	if (ordered < 0) {
		free(order);
		return ordered;
	}
	space->view.parameter_count++; /* from here on trial_space__free frees it */
	parameter->name = strdup(name);
	parameter->is_ordered = (uint32_t)ordered;
	parameter->positions = ordered ? positions_of(order, count, log_scale) : NULL;
	if (fill(parameter, order, count) || !parameter->name ||
	    (ordered && !parameter->positions)) {
		free(order);
		return -ENOMEM;
	}
	for (i = 0; level_of && i < count; i++)
		level_of[order[i].given] = (uint32_t)i;
	free(order);
	return 0;
}

static int compare_rows(const struct trial_space *space, const uint32_t *a, const uint32_t *b)
{
	uint32_t i;

	for (i = 0; i < space->view.parameter_count; i++) {
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	}
	return 0;
}

static const uint32_t *row_of(const struct trial_space *space, uint64_t number)
{
	return space->rows + number * space->view.parameter_count;
}

static int by_levels(const void *a, const void *b, void *space)
{
	return compare_rows(space, row_of(space, *(const uint64_t *)a),
			    row_of(space, *(const uint64_t *)b));
}

static int sort_rows(struct trial_space *space, struct pem_error *error)
{
	uint64_t i;

	space->sorted = calloc(space->row_count, sizeof(*space->sorted));
	if (!space->sorted)
		return -ENOMEM;
	for (i = 0; i < space->row_count; i++)
		space->sorted[i] = i;
	qsort_r(space->sorted, space->row_count, sizeof(*space->sorted), by_levels, space);
	for (i = 1; i < space->row_count; i++) {
		uint64_t a = space->sorted[i - 1], b = space->sorted[i];

		if (!by_levels(&a, &b, space))
			return refuse(error, "configurations %llu and %llu are equal",
				      (unsigned long long)(a < b ? a : b) + 1,
				      (unsigned long long)(a < b ? b : a) + 1);
	}
	return 0;
}

/* The last parameter's level is the fastest. */
static void at(const struct pem_explore_space *view, uint64_t number, uint32_t *levels)
{
	const struct trial_space *space = view->arg;
	uint32_t i;

	if (space->rows) {
		memcpy(levels, row_of(space, number), view->parameter_count * sizeof(*levels));
		return;
	}
	for (i = view->parameter_count; i-- > 0;) {
		levels[i] = (uint32_t)(number % view->parameters[i].levels);
		number /= view->parameters[i].levels;
	}
}

uint64_t trial_space__number(const struct trial_space *space, const uint32_t *levels)
{
	uint64_t low = 0, high = space->row_count, number = 0;
	uint32_t i;

	for (i = 0; i < space->view.parameter_count; i++) {
		if (levels[i] >= space->parameters[i].levels)
			return UINT64_MAX;
		number = number * space->parameters[i].levels + levels[i];
	}
	if (!space->rows)
		return number;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int order = compare_rows(space, levels, row_of(space, space->sorted[middle]));

		if (!order)
			return space->sorted[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return UINT64_MAX;
}

static int allows(const struct pem_explore_space *view, uint32_t *levels)
{
	const struct trial_space *space = view->arg;

	if (space->is_allowed && !space->is_allowed(space->arg, levels))
		return 0;
	return trial_space__number(space, levels) != UINT64_MAX;
}

void trial_space__allow(struct trial_space *space, bool (*is_allowed)(void *arg, uint32_t *levels),
			void *arg)
{
	space->is_allowed = is_allowed;
	space->arg = arg;
}

/* List those of count configurations that are allowed, each once. */
static int list_allowed(struct trial_space *space, uint64_t count)
{
	uint32_t n = space->view.parameter_count, levels[TRIAL_PARAMETERS_MAX];
	uint32_t *row, *rows = NULL;
	size_t capacity = 0;
	uint64_t i;

	for (i = 0; i < count; i++) {
		if (pem_grow(&rows, n * sizeof(*rows), space->row_count + 1, &capacity)) {
			free(rows);
			return -ENOMEM;
		}
		row = rows + space->row_count * n;
		at(&space->view, i, levels);
		memcpy(row, levels, n * sizeof(*row));
		/* One with a level that means nothing stands for those with other levels there. */
		if (space->is_allowed(space->arg, row) && !memcmp(row, levels, n * sizeof(*row)))
			space->row_count++;
	}
	space->rows = rows;
	return 0;
}

int trial_space__finish(struct trial_space *space, uint32_t *rows, uint64_t row_count,
			struct pem_error *error)
{
	uint64_t count = 1;
	uint32_t i;

	space->rows = rows;
	space->row_count = row_count;
	for (i = 0; i < space->view.parameter_count; i++) {
		if (__builtin_mul_overflow(count, space->parameters[i].levels, &count))
			count = UINT64_MAX;
	}
	space->view.at = at;
	space->view.allows = allows;
	if (space->is_allowed && count <= LISTED_MAX) {
		if (list_allowed(space, count))
			return -ENOMEM;
		count = space->row_count;
	} else if (space->is_allowed) {
		count = UINT64_MAX;
	}
	space->view.count = rows ? row_count : count;
	return space->rows ? sort_rows(space, error) : 0;
}
