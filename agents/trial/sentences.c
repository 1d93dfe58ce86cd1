/* SPDX-License-Identifier: MIT */
/* sentences.c - values and gains in words */
#include "trial/trial.h"

#include "cli.h"
#include "rounded.h"

const char *trial_gain__text(double value, double low, double high, const char *than,
			     const char *how)
{
	/* In %. Three digits of the gain at most. */
	double error = fmax(50 * (high - low), 10 * fabs(value));
	const char *between = isnan(low)
				      ? "its error is unknown: that takes two runs of each"
				      : cli_format("%+g to %+g %%", pem_rounded(100 * low, error),
						   pem_rounded(100 * high, error));

	if (isnan(value))
		return "";
	if (low <= 0 && high >= 0)
		return cli_format(", no difference from %s is seen (%s%s)", than, between, how);
	return cli_format(", %g %% %s than %s (%s%s)", pem_rounded(100 * fabs(value), error),
			  value >= 0 ? "better" : "worse", than, between, how);
}

const char *trial_measure__text(const struct trial_measure *metric, double value, double error)
{
	return cli_format("%g%s%s", pem_rounded(value, error), *metric->unit ? " " : "",
			  metric->unit);
}
