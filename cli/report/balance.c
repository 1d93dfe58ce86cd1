// SPDX-License-Identifier: MIT
/* balance.c - whether a trace accounts for every event, and why it does not */
#include "report.h"

#include <string.h>

/* Does the trace's model have an event that was asked for and that no program raises by itself? */
static bool asked_for_others(const struct report *report)
{
	const struct pem_model *model = pem_trace__model(report->trace);
	size_t i;

	for (i = 0; i < pem_model__count(model); i++)
		if (pem_model__event(model, i)->source_kind != PEM_SOURCE_STUB)
			return true;
	return false;
}

/*
 * Find why some losses are unknown. If another process completed the trace of a killed recorder,
 * all records of programs are accounted for. Records of the kernel that nobody read are not, if
 * they were asked for. A recorder that was killed before it named its command has recorded nothing.
 */
static const char *find_uncounted(const struct report *report)
{
	bool begun = report->read != 0 || report->info->command[0] != '\0';
	const char *reason = NULL;
	size_t i;

	for (i = 0; i < report->info->gap_count; i++)
		if (strcmp(report->info->gaps[i].source, "recorder") == 0)
			reason = report->info->gaps[i].reason;
	return !begun || asked_for_others(report) ? reason : NULL;
}

void report__weigh(struct report *report)
{
	struct pem_balance *b = &report->total;
	size_t i;

	*b = pem_trace__total_balance(report->trace);
	if (!report->info->complete && b->delivered == 0) {
		/*
		 * The recorder could not write its balance, so only the records that were read are
		 * known.
		 */
		b->delivered = report->read;
		b->produced = b->delivered + b->discarded + b->overwritten;
	}
	report->uncounted = find_uncounted(report);
	report->balanced = report->info->complete && report->uncounted == NULL &&
			   report->damaged == 0 &&
			   b->produced == b->delivered + b->discarded + b->overwritten &&
			   b->delivered == report->read;
	for (i = 0; i < report->event_count; i++) {
		const struct report_event *e = &report->events[i];

		if (e->balance.produced !=
			    e->balance.delivered + e->balance.discarded + e->balance.overwritten ||
		    e->balance.delivered != e->count + e->markers)
			report->balanced = false;
	}
}

const char *report__verdict(const struct report *report)
{
	const struct pem_balance *b = &report->total;

	if (report->balanced)
		return "";
	if (!report->info->complete)
		return "the recorder did not finish this trace (killed?): what was under way "
		       "then is lost, and nobody counted it";
	if (report->damaged != 0)
		return report->damage.text;
	if (report->uncounted != NULL)
		return cli_format("the recorder did not finish; %s", report->uncounted);
	if (b->delivered != report->read)
		return cli_format(
			"the recorder wrote %s events, but %s were read: files of the trace "
			"are missing or changed",
			cli_count(b->delivered), cli_count(report->read));
	return "produced is not delivered + discarded + overwritten for every event: "
	       "the recorder's account is wrong";
}
