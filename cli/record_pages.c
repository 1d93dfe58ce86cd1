// SPDX-License-Identifier: MIT
/* record_pages.c - pem record: how often, and by what regions, pages are sampled */
#include "record.h"

#include <getopt.h>
#include <string.h>

int record_pages__parse(const struct cli_verb *verb, uint32_t *interval_us, uint64_t *region_bytes)
{
	char unit[3] = "", end;
	unsigned number;
	const char *region = strchr(optarg, ',');
	uint64_t us = 0;
	int n = sscanf(optarg, "%6u%2[mus]%c", &number, unit, &end);

	*region_bytes = 2u << 20;
	if (n >= 2 && (n == 2 || end == ','))
		us = strcmp(unit, "us") == 0   ? number
		     : strcmp(unit, "ms") == 0 ? number * 1000ull
		     : strcmp(unit, "s") == 0  ? number * 1000000ull
					       : 0;
	if (us < 1000 || us > UINT32_MAX)
		return cli_usage_error(verb,
				       "--pages %s: expected an interval from 1ms to 1000s, such "
				       "as 100ms",
				       optarg);
	if (region != NULL && cli_parse_bytes(region + 1, region_bytes) < 0)
		return cli_usage_error(verb, "--pages %s: expected a region's size, such as 2M",
				       optarg);
	*interval_us = (uint32_t)us;
	return 0;
}
