/* SPDX-License-Identifier: MIT */
/* outcome.c - see outcome.h */
#include "outcome.h"

#include "cli.h"

#include <errno.h>
#include <inttypes.h>

/* A larger part of a run's time in which other programs had its CPU is shown. */
#define WAITED_LEAST 0.05

void agent_outcome__say(const struct pem_agent_report *report, const char *const purposes[4],
			const char *more)
{
	const char *gain = "", *waited = "";

	if (report->treated && report->controls && report->treated + report->controls > 2) {
		/* An interval that has no end yet is not a figure for people. */
		gain = report->gain_low < -100
			       ? "; the gain is not known yet"
			       : cli_format("; measured gain %.1f %% (%.1f to %.1f)", report->gain,
					    report->gain_low, report->gain_high);
		gain = cli_format("%s: %u run%s with, %u without", gain, report->treated,
				  report->treated == 1 ? "" : "s", report->controls);
	}
	if (report->waited > WAITED_LEAST * report->seconds)
		waited = cli_format(", %.3f s of it waiting for a CPU", report->waited);
	cli_say("run %" PRId64 ", %s: %.3f s%s%s%s", report->run, purposes[report->purpose],
		report->seconds, waited, gain, more);
}

struct json_object *agent_outcome__json(const struct pem_agent_report *report)
{
	static const char *const purposes[] = {"alone", "observed", "treated", "control"};
	static const char *const verdicts[] = {"faster", "equal", "slower", "unclear"};
	struct json_object *object = json_object_new_object();

	cli_json__count(object, "run", (uint64_t)report->run);
	cli_json__text(object, "purpose", purposes[report->purpose]);
	cli_json__text(object, "verdict", verdicts[report->verdict]);
	cli_json__real(object, "seconds", report->seconds);
	cli_json__real(object, "gain", report->gain);
	cli_json__real(object, "gain_low", report->gain_low);
	cli_json__real(object, "gain_high", report->gain_high);
	cli_json__count(object, "treated", report->treated);
	cli_json__count(object, "controls", report->controls);
	cli_json__count(object, "directives", report->directives);
	cli_json__flag(object, "kept", report->kept);
	cli_json__flag(object, "counts", !report->excluded);
	return object;
}

int agent_outcome__fail(int rc, const struct pem_error *error)
{
	switch (rc) {
	case -ENOENT:
		return cli_error(CLI_NOT_FOUND, "%s", error->text);
	case -EACCES:
		return cli_error(CLI_NOT_EXECUTABLE, "%s", error->text);
	case -EPERM:
		return cli_error(CLI_NOT_HERE, "%s", error->text);
	default:
		return cli_fail(rc, error);
	}
}
