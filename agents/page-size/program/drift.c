/* SPDX-License-Identifier: MIT */
/*
 * drift.c - is a run still what was observed?
 *
 * A program that was built anew is another application, and directives that pay no longer are found
 * by the loop. What neither finds is another input: what reached all memory then reaches it no
 * more, or what had nothing to gain in a moment's work has in a minute's. Memory and time tell, and
 * so do timer samples: which data the time goes to.
 */
#include "program.h"

#include <math.h>

/* So many times what was observed, and so much more, is another input. */
#define MEMORY_TIMES 3.0
#define MEMORY_MORE (64.0 * (1 << 20))
/*
 * The time of the observed run is an estimate from its instructions: one that waits for memory
 * takes some times as long.
 */
#define TIME_TIMES 5.0
#define TIME_MORE 0.5

/*
 * Time is not references: what is used in order costs little of it, what is used at random much. So
 * data had to have a share of time that is far below that of the references, and by more than
 * chance; and had not in an earlier run, for there are programs whose time never goes as their
 * references do, such as those whose threads wait for each other in a loop.
 */
#define HITS_LESS 4.0
#define HITS_CHANCE 1e-4
/* Of the command's time, that samples have to stand for: threads of milliseconds have none. */
#define COVERED 0.5

bool page_drift__is_larger(double observed_bytes, double bytes)
{
	return observed_bytes > 0 && bytes >= MEMORY_TIMES * observed_bytes &&
	       bytes >= observed_bytes + MEMORY_MORE;
}

bool page_drift__is_longer(double observed_s, double seconds)
{
	return observed_s > 0 && seconds >= TIME_TIMES * observed_s &&
	       seconds >= observed_s + TIME_MORE;
}

/*
 * Would so few of the samples be hits by chance, if a quarter of the share were to be? The binomial
 * distribution's tail, term by term.
 */
bool page_drift__is_elsewhere(double share, const struct page_hits *hits)
{
	double each = share / HITS_LESS, n = (double)hits->samples, term, sum;
	size_t i;

	if (!(share > 0) || share > 1.001)
		return false;
	term = sum = pow(1 - each, n);
	for (i = 1; i <= hits->hits; i++) {
		term *= (n - (double)i + 1) / (double)i * each / (1 - each);
		sum += term;
	}
	return sum < HITS_CHANCE;
}

static double percent_of(const struct page_hits *hits)
{
	return hits->samples ? 100 * (double)hits->hits / (double)hits->samples : 0;
}

/* What an earlier run of the same directives would have had. */
struct earlier {
	struct pem_agent *agent;
	int64_t since_ns;
	double percent;
	bool found;
};

static int look_at(const void *row, void *arg)
{
	const struct pem_db_metric *metric = row;
	struct earlier *earlier = arg;
	struct pem_db_run run = {.size = sizeof(run), .id = metric->run};
	struct pem_error error;

	earlier->found = metric->mean >= earlier->percent &&
			 pem_database__find(pem_agent__database(earlier->agent), PEM_DB_RUN, &run,
					    &run, &error) > 0 &&
			 run.application == pem_agent__application(earlier->agent)->id &&
			 run.began_ns >= earlier->since_ns;
	return earlier->found;
}

/* Was the time of an earlier run where it was expected? */
static bool was_there(struct pem_agent *agent, int64_t since_ns, double share)
{
	struct earlier earlier = {agent, since_ns, 100 * share / HITS_LESS, false};
	struct pem_db_metric like = {.size = sizeof(like), .name = PAGE_TIMER_HITS};
	struct pem_error error;

	if (pem_agent__database(agent))
		pem_database__each(pem_agent__database(agent), PEM_DB_METRIC, &like, look_at,
				   &earlier, &error);
	return earlier.found;
}

void page_drift__notice_hits(struct pem_agent *agent, int64_t since_ns, double share,
			     const struct page_hits *hits)
{
	struct pem_agent_usage usage = {.size = sizeof(usage)};

	/* One that failed may have ended before it began. */
	if (pem_agent__usage(agent, &usage) || usage.status || !hits->samples ||
	    hits->seconds < COVERED * usage.user_s)
		return;
	pem_agent__note(agent, PAGE_TIMER_SAMPLES, "", (double)hits->samples, PEM_DB_SAMPLED);
	pem_agent__note(agent, PAGE_TIMER_HITS, "%", percent_of(hits), PEM_DB_SAMPLED);
	if (!page_drift__is_elsewhere(share, hits) || !was_there(agent, since_ns, share) ||
	    pem_agent__observe_again(agent,
				     "the command's time goes to other data than when it was "
				     "observed") <= 0)
		return;
	pem_agent__say(
		agent, PEM_LOG_INFO,
		"the command was at the chosen data in %zu of %zu timer samples, and %.0f %% "
		"of what was observed were references to them: its next run is observed anew",
		hits->hits, hits->samples, 100 * share);
}

/* What of this run is compared with what of the observed one. */
struct measure {
	const char *name; /* of the observed run's metric */
	const char *asked; /* and of what the run used that asked for the observation */
	bool (*is_far_more)(double observed, double now);
	double now;
};

/* Is it another input? What asked for the observation was no other one. *observed is set then. */
static bool has_drifted(struct pem_agent *agent, const struct measure *m, double *observed)
{
	double value = 0, asked = 0;

	if (pem_agent__observed(agent, m->name, &value) <= 0 || !m->is_far_more(value, m->now) ||
	    pem_agent__observed(agent, m->asked, &asked) < 0)
		return false;
	*observed = fmax(value, asked);
	return m->is_far_more(*observed, m->now);
}

void page_drift__notice(struct pem_agent *agent, bool has_directives)
{
	struct pem_agent_usage usage = {.size = sizeof(usage)};
	struct measure memory = {PAGE_OBSERVED_MEMORY, "asked memory", page_drift__is_larger, 0};
	struct measure time = {PAGE_OBSERVED_TIME, "asked time", page_drift__is_longer, 0};
	double observed;

	if (pem_agent__usage(agent, &usage))
		return;
	memory.now = (double)usage.peak_bytes;
	time.now = usage.user_s + usage.system_s;
	if (has_drifted(agent, &memory, &observed)) {
		if (pem_agent__observe_again(agent, "the command takes far more memory than when "
						    "it was observed") > 0)
			pem_agent__say(agent, PEM_LOG_INFO,
				       "the command took %s, far more than the %s that were "
				       "observed: its next run is observed anew",
				       cli_bytes((uint64_t)memory.now),
				       cli_bytes((uint64_t)observed));
		return;
	}
	/* What is tried or kept is compared: time alone is no reason to begin anew. */
	if (has_directives || !has_drifted(agent, &time, &observed))
		return;
	if (pem_agent__observe_again(agent, "the command works far longer than when it was "
					    "observed") > 0)
		pem_agent__say(agent, PEM_LOG_INFO,
			       "the command worked for %.1f s, far longer than the %.1f s that "
			       "were observed: its next run is observed anew",
			       time.now, observed);
}
