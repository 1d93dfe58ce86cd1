// SPDX-License-Identifier: MIT
/* percentiles.c - percentiles as columns, in words, in JSON (contract: percentiles.h) */
#include "percentiles.h"

#include <json-c/json.h>

static const struct {
	const char *title, *key;
	enum cli_align align;
	unsigned int per_mille;
} shown[] = {
	{"P50", "p50", CLI_SPARE, 500},
	{"P90", "p90", CLI_SPARE, 900},
	{"P99", "p99", CLI_RIGHT, 990},
	{"P99.9", "p99_9", CLI_SPARE, 999},
};
#define SHOWN (sizeof(shown) / sizeof(shown[0]))

/* As a double, the greatest duration may be a little longer than it is. */
static uint64_t whole(const struct pem_sketch *sketch, unsigned int i, uint64_t most)
{
	double value = pem_sketch__percentile(sketch, shown[i].per_mille);

	return value < (double)most ? (uint64_t)value : most;
}

void cli_percentiles__columns(struct cli_table *table)
{
	unsigned int i;

	for (i = 0; i < SHOWN; i++)
		cli_table__column(table, shown[i].title, shown[i].align);
}

void cli_percentiles__durations(const struct pem_sketch *sketch, uint64_t most_ns,
				struct cli_table *table)
{
	unsigned int i;

	for (i = 0; i < SHOWN; i++)
		cli_table__cell(table,
				sketch->count != 0 ? cli_duration(whole(sketch, i, most_ns)) : "");
}

const char *cli_percentiles__words(const struct pem_sketch *sketch, const char *unit)
{
	const char *words = "", *value;
	unsigned int i;
	double at;

	for (i = 0; i < SHOWN && sketch->count > 1; i++) {
		at = pem_sketch__percentile(sketch, shown[i].per_mille);
		value = sketch->has_fractions || at < 0 ? cli_decimal(at)
			: at >= 0x1p64                  ? cli_quantity(UINT64_MAX, unit)
							: cli_quantity((uint64_t)at, unit);
		words = cli_format("%.100s, p%.4s %.24s", words, shown[i].title + 1, value);
	}
	return words;
}

void cli_percentiles__json(const struct pem_sketch *sketch, const uint64_t *most,
			   const char *suffix, struct json_object *object)
{
	unsigned int i;

	for (i = 0; i < SHOWN && sketch->count != 0; i++) {
		const char *key = cli_format("%s%s", shown[i].key, suffix);

		if (most != NULL)
			cli_json__count(object, key, whole(sketch, i, *most));
		else
			cli_json__real(object, key,
				       pem_sketch__percentile(sketch, shown[i].per_mille));
	}
}
