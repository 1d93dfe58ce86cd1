/* SPDX-License-Identifier: MIT */
/*
 * drift.c - is a run still what was observed?
 *
 * A program that was built anew is another application, and directives that pay no longer are found
 * by the loop. What neither finds is an input that is larger than the one observed: what reached
 * all memory then reaches it no more. Memory tells.
 */
#include "program.h"

#include <string.h>

/* So many times what was observed, and so much more, is another input. */
#define GROWTH_MIN 3.0
#define MORE_MIN (64.0 * (1 << 20))

struct search {
	struct pem_database *database;
	struct pem_db_directive directive; /* the latest */
	int64_t basis; /* the run that it was made from */
	struct pem_error error;
};

static int take_directive(const void *row, void *arg)
{
	((struct search *)arg)->directive = *(const struct pem_db_directive *)row;
	return 0;
}

static int take_evidence(const void *row, void *arg)
{
	const struct pem_db_evidence *evidence = row;

	if (evidence->role == PEM_DB_BASIS)
		((struct search *)arg)->basis = evidence->run;
	return 0;
}

/* Memory of the run that was observed; 0: none was, or nobody knows. */
static double observed_bytes(struct pem_agent *agent, struct search *search)
{
	struct pem_db_directive like = {.size = sizeof(like),
					.application = pem_agent__application(agent)->id,
					.machine = pem_agent__machine(agent)->id,
					.agent = PAGE_AGENT};
	struct pem_db_evidence evidence = {.size = sizeof(evidence)};
	struct pem_db_metric metric = {.size = sizeof(metric), .name = PAGE_OBSERVED_MEMORY};

	pem_database__each(search->database, PEM_DB_DIRECTIVE, &like, take_directive, search,
			   &search->error);
	evidence.directive = search->directive.id;
	if (evidence.directive)
		pem_database__each(search->database, PEM_DB_EVIDENCE, &evidence, take_evidence,
				   search, &search->error);
	metric.run = search->basis;
	if (!metric.run || pem_database__find(search->database, PEM_DB_METRIC, &metric, &metric,
					      &search->error) <= 0)
		return 0;
	return metric.mean;
}

void page_drift__notice(struct pem_agent *agent)
{
	struct pem_agent_usage usage = {.size = sizeof(usage)};
	struct search search = {.database = pem_agent__database(agent)};
	double bytes;

	if (!search.database || pem_agent__usage(agent, &usage))
		return;
	bytes = observed_bytes(agent, &search);
	if (!(bytes > 0) || (double)usage.peak_bytes < GROWTH_MIN * bytes ||
	    (double)usage.peak_bytes < bytes + MORE_MIN)
		return;
	if (!pem_agent__observe_again(agent, "the command takes far more memory than when it was "
					     "observed"))
		pem_agent__say(agent, PEM_LOG_INFO,
			       "the command took %s, far more than the %s that were observed: the "
			       "next run is observed anew",
			       cli_bytes((uint64_t)usage.peak_bytes), cli_bytes((uint64_t)bytes));
}
