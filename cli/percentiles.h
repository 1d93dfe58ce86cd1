/* SPDX-License-Identifier: MIT */
/* percentiles.h - the percentiles that stand beside a mean: as columns, in words, in JSON */
#ifndef PEM_CLI_PERCENTILES_H
#define PEM_CLI_PERCENTILES_H

#include "cli.h"
#include "sketch.h"

/* Columns P50, P90, P99 and P99.9. In a narrow terminal P99 stays longest. */
void cli_percentiles__columns(struct cli_table *table);
/* Their cells, of durations in nanoseconds. most_ns: the greatest one, exactly. */
void cli_percentiles__durations(const struct pem_sketch *sketch, uint64_t most_ns,
				struct cli_table *table);
/* ", p50 8 B, p90 ..." in a unit. "": there are less than two values. */
const char *cli_percentiles__words(const struct pem_sketch *sketch, const char *unit);
/* Members p50, p90, p99, p99_9 + suffix: whole numbers up to *most; NULL: floating ones. */
void cli_percentiles__json(const struct pem_sketch *sketch, const uint64_t *most,
			   const char *suffix, struct json_object *object);

#endif
