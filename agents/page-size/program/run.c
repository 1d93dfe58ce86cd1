/* SPDX-License-Identifier: MIT */
/* run.c - a command under the loop of agents: observed, tried, kept */
#include "program.h"

#include "apply/supply.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Nobody waits for a run that is shorter: another one of the program is what to look at. */
#define SHORT_NS 50e6

/* What the functions of the agent share. */
struct page_agent {
	const struct page_request *request;
	struct page_observer observer;
	struct page_treatment treatment;
	struct page_calibration calibration; /* of an observed run */
	char profile[PATH_MAX];
	bool has_directives; /* on trial or kept */
	uint64_t planned_bytes; /* by these, of large pages */
	int64_t lease; /* of them; 0: none */
	int64_t since_ns; /* when the first directive was proposed */
	/* Samples of runs with and without large pages, lest they make a difference; NULL: none. */
	struct timer *timer;
};

/* --- observe --- */

/* Have the command write a profile. */
static int set_up(struct pem_agent *agent, const struct page_observer *observer)
{
	int rc = 0, i;

	for (i = 0; !rc && observer->variables[i][0]; i++)
		rc = pem_agent__set_variable(agent, observer->variables[i][0],
					     observer->variables[i][1]);
	return rc || !observer->words[0] ? rc : pem_agent__wrap(agent, observer->words);
}

/*
 * A machine that can't be measured has no model of the command: then it is not observed, which
 * would make it slower for nothing.
 */
static int know_machine(struct pem_agent *agent, struct page_agent *page, struct pem_error *error)
{
	return page_machine__calibration(page->request, pem_agent__database(agent),
					 pem_agent__machine(agent), &page->calibration, error);
}

static int observe(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	struct page_agent *page = arg;
	struct pem_error error;
	int rc;

	/* The observer sees more than a session does. */
	(void)session;
	rc = know_machine(agent, page, &error);
	if (!rc)
		rc = page_treatment__begin(&page->treatment, &error);
	if (!rc) {
		snprintf(page->profile, sizeof(page->profile), "%s/profile",
			 page->treatment.folder);
		rc = page_observer__find(&page->observer, page->request->words[0], page->profile,
					 page->request->limit_s, &error);
	}
	if (rc) {
		pem_agent__say(agent, PEM_LOG_WARNING, "%s", error.text);
		return rc;
	}
	rc = set_up(agent, &page->observer);
	if (!rc)
		pem_agent__say(agent, PEM_LOG_INFO,
			       "observing the command with %s: slower this once, for %u s at most",
			       page_observer__name(page->observer.source), page->request->limit_s);
	return rc;
}

/* --- model --- */

static void show_progress(uint64_t done, uint64_t total, void *arg)
{
	cli_progress__update(done, total, arg);
}

static int make_plan(struct page_agent *page, struct page_plan *plan, struct pem_error *error)
{
	struct page_profile *profile = page_profile__open(page->profile, error);
	struct cli_progress progress;
	int rc;

	if (!profile)
		return -errno;
	cli_progress__start(&progress, "modelling");
	rc = plan__make(plan, profile, &page->calibration, page->request->budget_bytes,
			show_progress, &progress, error);
	cli_progress__end(&progress);
	if (!rc)
		page_names__fill(plan, profile);
	page_profile__close(profile);
	return rc;
}

/* Said once for each observation: later runs do without. */
static void try_timer(struct pem_agent *agent)
{
	struct timer_result result;
	struct pem_error error;
	struct timer *timer = timer__start(TIMER_RATE_HZ, &error);

	if (!timer)
		pem_agent__say(
			agent, PEM_LOG_INFO,
			"%s: whether a run is still what was observed, its memory alone will "
			"tell",
			error.text);
	timer__stop(timer, &result);
	free(result.addresses);
}

/* A directive for each site: on trial if it was chosen and the whole pays, and else for people. */
static int propose(struct pem_agent *agent, const struct page_plan *plan, uint32_t at, bool pays,
		   uint32_t rank)
{
	const struct page_geometry *geometry = &plan->calibration.geometry;
	const struct plan_site *site = &plan->sites[at];
	struct pem_db_directive d = {.size = sizeof(d), .rank = rank};
	struct plan_directive text = {.page_size = UINT64_C(1) << geometry->shifts[site->size],
				      .bytes = site->bytes,
				      .most = site->in_part ? site->large_bytes : 0,
				      .share = site->share,
				      .chained = site->chained};
	double saved_ns = site->size ? site->part_ns : site->saved_ns;
	/* Errors are a share of what is saved. */
	double spread =
		plan->saved_ns > 0 ? 1.96 * plan->error_ns * fabs(saved_ns / plan->saved_ns) : 0;

	text.saved_ms = saved_ns / 1e6;
	text.source = plan->summary.source;
	memcpy(text.name, site->name, sizeof(text.name));
	pem_printable(text.name);
	page_site__write(&site->site, d.subject);
	if (plan_directive__write(&text, d.text, sizeof(d.text)) < 0)
		return 0;
	d.predicted = plan__percent(plan, saved_ns);
	d.predicted_low = plan__percent(plan, saved_ns - spread);
	d.predicted_high = plan__percent(plan, saved_ns + spread);
	d.state = site->size && pays ? PEM_DB_ON_TRIAL : PEM_DB_WITHDRAWN;
	d.cost_bytes = (int64_t)site->large_bytes;
	snprintf(d.reason, sizeof(d.reason), "%s",
		 site->size && !pays ? "the gain is too small to try" : site->reason);
	return pem_agent__propose(agent, &d);
}

static void note_plan(struct pem_agent *agent, const struct page_plan *plan)
{
	char name[64];
	uint64_t bytes = 0;
	uint32_t i;

	pem_agent__note(agent, "references", "", (double)plan->summary.references, PEM_DB_MEASURED);
	pem_agent__note(agent, "instructions", "", (double)plan->summary.instructions,
			PEM_DB_MEASURED);
	for (i = 0; i < plan->site_count; i++)
		bytes += plan->sites[i].bytes;
	pem_agent__note(agent, PAGE_OBSERVED_MEMORY, "B", (double)bytes, PEM_DB_SAMPLED);
	/* Nobody knows how long a run was that went on unobserved. One that was killed did not. */
	if (!plan->summary.stopped_at)
		pem_agent__note(agent, PAGE_OBSERVED_TIME, "s", plan->run_ns / 1e9,
				PEM_DB_SIMULATED);
	pem_agent__note(agent, "page walks before", "", plan->small_walks, PEM_DB_SIMULATED);
	pem_agent__note(agent, "page walks after", "", plan->walks, PEM_DB_SIMULATED);
	pem_agent__note(agent, "translation before", "s", plan->small_ns / 1e9, PEM_DB_SIMULATED);
	pem_agent__note(agent, "translation after", "s", (plan->small_ns - plan->saved_ns) / 1e9,
			PEM_DB_SIMULATED);
	pem_agent__note(agent, "predicted gain", "%", plan->gain, PEM_DB_SIMULATED);
	for (i = 0; i < plan->point_count; i++) {
		snprintf(name, sizeof(name), "front %02u: large pages", i);
		pem_agent__note(agent, name, "B", (double)plan->points[i].bytes, PEM_DB_SIMULATED);
		snprintf(name, sizeof(name), "front %02u: gain", i);
		pem_agent__note(agent, name, "%", plan__percent(plan, plan->points[i].saved_ns),
				PEM_DB_SIMULATED);
		snprintf(name, sizeof(name), "front %02u: error", i);
		pem_agent__note(agent, name, "%", plan__percent(plan, plan->points[i].error_ns),
				PEM_DB_SIMULATED);
	}
}

/* Data of pem's library are in observed runs only. */
static bool is_observer(const struct plan_site *site)
{
	static const char prefix[] = "static data of libpem.so";

	return site->site.kind == PAGE_SITE_DATA &&
	       !strncmp(site->name, prefix, sizeof(prefix) - 1);
}

static int propose_all(struct pem_agent *agent, const struct page_plan *plan, const char *command)
{
	bool pays = plan->gain >= 1;
	uint32_t i, rank = 0, chosen = 0, sites = plan->site_count - 1;
	int rc = 0;

	note_plan(agent, plan);
	for (i = 0; !rc && i + 1 < plan->site_count; i++) {
		if (is_observer(&plan->sites[i])) {
			sites--;
			continue;
		}
		rc = propose(agent, plan, i, pays, ++rank);
		chosen += plan->sites[i].size != 0;
	}
	if (chosen && pays)
		try_timer(agent);
	if (chosen && pays)
		pem_agent__say(agent, PEM_LOG_INFO,
			       "%u of %u sites are to have large pages, %s in all: predicted gain "
			       "%.1f %% (%.1f to %.1f; simulated)",
			       chosen, sites, cli_bytes(plan->bytes), plan->gain, plan->gain_low,
			       plan->gain_high);
	else
		pem_agent__say(agent, PEM_LOG_INFO,
			       "there is nothing to gain by large pages (%.1f %%; simulated)",
			       plan->gain);
	if (!chosen && plan->run_ns < SHORT_NS)
		pem_agent__say(agent, PEM_LOG_INFO,
			       "that was a short run, of some %.1f ms: after one that works far "
			       "longer its next is observed, and after 'pem page-size forget %s' "
			       "any",
			       plan->run_ns / 1e6, command);
	return rc;
}

static int model(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	struct page_agent *page = arg;
	struct page_plan *plan = calloc(1, sizeof(*plan));
	struct pem_error error;
	int rc;

	(void)session;
	if (!plan)
		return -ENOMEM;
	rc = make_plan(page, plan, &error);
	if (rc)
		pem_agent__say(agent, PEM_LOG_WARNING, "%s", error.text);
	else
		rc = propose_all(agent, plan, page->request->words[0]);
	plan__free(plan);
	free(plan);
	return rc;
}

/* --- apply --- */

/* What the machine, and the budget of this run, have for large pages now, but for others' leases.
 */
static uint64_t supply_bytes(const struct page_agent *page, uint64_t others)
{
	uint64_t bytes = page->request->budget_bytes, memory = supply__memory(),
		 limit = supply__limit();

	memory = memory > others ? memory - others : 0;
	bytes = bytes < memory ? bytes : memory;
	return bytes < limit ? bytes : limit;
}

/* What this run may use: all it is allowed, but what those before it mean to use. */
static uint64_t take_lease(struct pem_agent *agent, struct page_agent *page)
{
	uint64_t others;

	page->lease = page_lease__take(agent, page->planned_bytes);
	others = page_lease__others(agent, page->lease);
	/* The allocator asks for free memory by itself. */
	return others ? supply_bytes(page, others) : page->request->budget_bytes;
}

/*
 * Asked before chance decides: a run with too few large pages would count against the directives,
 * and to leave out only treated ones would count for them, since where memory is short controls are
 * slow, too.
 */
static int ready(struct pem_agent *agent, const struct pem_db_directive *directives, size_t count,
		 void *arg)
{
	uint64_t planned = page_treatment__planned(directives, count), others, supply;
	struct page_agent *page = arg;
	struct pem_error error;

	page->has_directives = true;
	page->planned_bytes = planned;
	others = page_lease__others(agent, 0);
	supply = supply_bytes(page, others);
	if (!page_treatment__is_far_less(supply, planned)) {
		/* Who can't have samples was told when the command was observed. */
		page->timer = timer__start(TIMER_RATE_HZ, &error);
		return 1;
	}
	pem_agent__say(agent, PEM_LOG_INFO,
		       "there is %s for large pages now, and %s are planned%s: this run does not "
		       "count",
		       cli_bytes(supply), cli_bytes(planned),
		       others ? cli_format("; other runs count on %s", cli_bytes(others)) : "");
	return 0;
}

static int apply(struct pem_agent *agent, const struct pem_db_directive *directive, void *arg)
{
	struct page_agent *page = arg;
	struct page_treatment *treatment = &page->treatment;
	struct pem_error error;
	bool first = !treatment->file;
	uint64_t budget = page->request->budget_bytes; /* only the first names it */
	int rc;

	rc = first ? page_treatment__begin(treatment, &error) : 0;
	if (rc) {
		pem_agent__say(agent, PEM_LOG_WARNING, "%s", error.text);
		return rc;
	}
	if (first)
		budget = take_lease(agent, page);
	rc = page_treatment__add(treatment, directive, budget);
	if (rc) {
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "directive %" PRId64
			       " of the database is none of this version: it is not "
			       "applied; pem page-size forget %s has the program observed anew",
			       directive->id, page->request->words[0]);
		return rc;
	}
	/* The file is read by the command: what other calls add is in it by then. */
	if (first) {
		page->since_ns = directive->began_ns;
		return page_treatment__apply(treatment, agent);
	}
	return fflush(treatment->file) ? -EIO : 0;
}

struct ending {
	struct pem_agent *agent;
	const struct page_outcome *outcome;
	int64_t lease;
};

/* Together, since each change of a file is waited for. */
static int64_t put_ending(struct pem_database *database, void *arg)
{
	const struct ending *ending = arg;
	const struct page_outcome *outcome = ending->outcome;

	(void)database;
	/* Nobody has looked whether a killed process used what it was granted. */
	pem_agent__note(ending->agent, "large pages", "B", (double)outcome->large_bytes,
			outcome->killed ? PEM_DB_SAMPLED : PEM_DB_MEASURED);
	pem_agent__note(ending->agent, "large pages refused", "B", (double)outcome->refused_bytes,
			PEM_DB_MEASURED);
	page_lease__end(ending->agent, ending->lease);
	return 0;
}

static void note_outcome(struct pem_agent *agent, const struct page_outcome *outcome, int64_t lease)
{
	struct ending ending = {agent, outcome, lease};
	struct pem_error error;

	if (pem_agent__database(agent) &&
	    pem_database__together(pem_agent__database(agent), put_ending, &ending, &error) < 0)
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "what came of the large pages is not kept: %s", error.text);
}

static void ended(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg)
{
	struct page_agent *page = arg;
	struct page_outcome outcome;
	struct timer_result samples;
	struct page_hits hits;

	timer__stop(page->timer, &samples);
	page->timer = NULL;
	page_hits__count(page->treatment.lines, &samples, &hits);
	free(samples.addresses);
	if (purpose == PEM_AGENT_TREATED) {
		page_treatment__outcome(&page->treatment, &outcome);
		note_outcome(agent, &outcome, page->lease);
		if (*outcome.error && outcome.refused_bytes)
			pem_agent__say(agent, PEM_LOG_WARNING,
				       "%s of the chosen memory had small pages: %s",
				       cli_bytes(outcome.refused_bytes),
				       page_treatment__in_words(outcome.error));
		else if (*outcome.error)
			pem_agent__say(agent, PEM_LOG_WARNING, "of the command's large pages: %s",
				       page_treatment__in_words(outcome.error));
		if (page_treatment__is_short(&page->treatment, &outcome)) {
			pem_agent__say(agent, PEM_LOG_INFO,
				       "that is more than half of what was asked for: this run "
				       "does not count");
			pem_agent__exclude(agent);
		} else if (!*outcome.error) {
			page_drift__notice_hits(agent, page->since_ns, page->treatment.share,
						&hits);
		}
	} else {
		/* Not all directives could be applied. */
		page_lease__end(agent, page->lease);
	}
	if (purpose != PEM_AGENT_OBSERVED)
		page_drift__notice(agent, page->has_directives);
	page_treatment__end(&page->treatment);
}

/* --- */

static const struct pem_agent_ops ops = {.size = sizeof(ops),
					 .name = PAGE_AGENT,
					 .observe = observe,
					 .model = model,
					 .apply = apply,
					 .ended = ended,
					 .ready = ready};

int page_agent__run(const struct page_request *request, bool always,
		    struct pem_agent_report *report, struct pem_error *error)
{
	const struct pem_agent_options options = {
		.size = sizeof(options), .log = page_log, .apply_always = always, .exec_alone = 1};
	struct page_agent *page = calloc(1, sizeof(*page));
	struct timer_result unused;
	int status;

	*report = (struct pem_agent_report){.size = sizeof(*report)};
	if (!page) {
		snprintf(error->text, sizeof(error->text), "no memory");
		return -ENOMEM;
	}
	page->request = request;
	status = pem_agent__run(&ops, page, request->words, &options, report, error);
	/* If the command could not be started. */
	timer__stop(page->timer, &unused);
	free(unused.addresses);
	free(page);
	return status;
}
