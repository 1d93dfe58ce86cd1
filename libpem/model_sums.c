// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * model_sums.c - the sums of a quotient in a model's text
 *
 * The text may come from anyone. Not here: the line they stand in (model_parse.c).
 */
#include "metric_sum.h"
#include "model_internal.h"

#include <errno.h>
#include <string.h>

int pem_metric__is_name(const char *name)
{
	return *name && strlen(name) <= 150 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789_:") == strlen(name);
}

/* Make strings of a term's event and field. Its end is cut by the caller. */
static struct pem_metric_term term_of(char *name, size_t bytes)
{
	char *point = memchr(name, '.', bytes);

	if (!point)
		return (struct pem_metric_term){name, ""};
	*point = '\0';
	return (struct pem_metric_term){name, point + 1};
}

/* Parse a sum and add its terms to the metric. Returns 0 or -EINVAL. */
static int parse_sum(struct pem_metric *m, char *text, uint32_t is_divisor)
{
	const uint32_t first = m->part_count;
	struct pem_metric_sum_term term;
	const char *at = text;
	char *end = NULL;
	uint32_t i;
	int rc;

	while ((rc = pem_metric_sum__next(&at, m->part_count == first, &term)) == 1) {
		if (m->part_count == PEM_METRIC_PARTS)
			return -EINVAL;
		/* The sign behind the term before was needed until now. */
		if (end)
			*end = '\0';
		end = text + (at - text);
		m->parts[m->part_count++] = (struct pem_metric_part){
			.term = term_of(text + (term.name - text), term.bytes),
			.factor = term.factor,
			.is_divisor = is_divisor,
		};
	}
	if (rc < 0)
		return rc;
	for (i = first; i < m->part_count; i++)
		if (!pem_metric__is_name(m->parts[i].term.event) ||
		    strchr(m->parts[i].term.field, ':'))
			return -EINVAL;
	return 0;
}

int pem_metric__parse_sums(struct pem_metric *m, char *of, char *to)
{
	uint32_t first_of_divisor;

	if (parse_sum(m, of, 0) < 0)
		return -EINVAL;
	first_of_divisor = m->part_count;
	if (parse_sum(m, to, 1) < 0)
		return -EINVAL;
	m->of = m->parts[0].term;
	m->to = m->parts[first_of_divisor].term;
	return 0;
}
