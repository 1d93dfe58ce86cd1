// SPDX-License-Identifier: MIT
/* record_samples.c - pem record: what is sampled, and how often: time, data, pages */
#include "record.h"

#include <getopt.h>
#include <string.h>

int record_samples__parse_pages(const struct cli_verb *verb, uint32_t *interval_us,
				uint64_t *region_bytes)
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

#define FREQUENCY_MAX_HZ 1000000u

int record_samples__parse_rate(const struct cli_verb *verb, uint32_t *rate_hz)
{
	uint64_t hz;

	if (cli_parse_number(optarg, FREQUENCY_MAX_HZ, &hz) < 0 || hz == 0)
		return cli_usage_error(verb, "-F %s is no number of samples a second, 1 to %u",
				       optarg, FREQUENCY_MAX_HZ);
	*rate_hz = (uint32_t)hz;
	return 0;
}

#define FIRST_OF_DATA 7 /* index in cli_patterns.also */

void record_samples__take_data(struct cli_patterns *patterns)
{
	static const char *const events[] = {"HW::HWPerf::DataSample", "HW::HWPerf::DataMap",
					     "APP::Libc::*alloc", "APP::Libc::Free",
					     "APP::Loader::Object"};

	memcpy(&patterns->also[FIRST_OF_DATA], events, sizeof(events));
}
