/* SPDX-License-Identifier: MIT */
/* judge.c - are runs with an agent's directives faster than those without? */
#include <pem/agent.h>

#include <math.h>
#include <stdbool.h>

/* Variance of the prior of the effect's size, in standard deviations of a run, or of a pair. */
#define PRIOR 10.0
#define FACTOR_MIN 20.0
#define EQUAL_RUNS_MIN 6u

/* Sums over groups that have runs of both kinds. */
struct sums {
	double weighted; /* differences of means of logarithms, by weight */
	double weight; /* n1 n2 / (n1 + n2) */
	double squares; /* within kinds and groups */
	double freedom;
	uint32_t treated, controls;
	uint32_t groups; /* that have both */
	/* Differences of groups of two. */
	uint32_t pairs;
	double pair_mean, pair_squares;
};

/* The first of the trials with this group is at first: has it been counted? */
static int is_first(const struct pem_agent_trial *trials, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++) {
		if (trials[i].group == trials[at].group)
			return 0;
	}
	return 1;
}

static void add_group(struct sums *sums, const struct pem_agent_trial *trials, size_t count,
		      uint32_t group)
{
	double mean[2] = {0}, squares = 0, x;
	uint32_t n[2] = {0}, kind;
	size_t i;

	for (i = 0; i < count; i++) {
		if (trials[i].group != group || !(trials[i].value > 0) ||
		    !isfinite(trials[i].value))
			continue;
		kind = trials[i].treated != 0;
		x = log(trials[i].value) - mean[kind];
		mean[kind] += x / ++n[kind];
		squares += x * (log(trials[i].value) - mean[kind]);
	}
	if (!n[0] || !n[1])
		return;
	x = (double)n[0] * n[1] / (n[0] + n[1]);
	sums->weighted += x * (mean[1] - mean[0]);
	sums->weight += x;
	sums->squares += squares;
	sums->freedom += n[0] + n[1] - 2;
	sums->treated += n[1];
	sums->controls += n[0];
	sums->groups++;
	if (n[0] + n[1] > 2)
		return;
	x = mean[1] - mean[0] - sums->pair_mean;
	sums->pair_mean += x / ++sums->pairs;
	sums->pair_squares += x * (mean[1] - mean[0] - sums->pair_mean);
}

/* Runs in pairs alone: what both of a pair have in common is no part of their difference. */
static void take_pairs(struct sums *sums)
{
	if (sums->pairs < sums->groups || sums->pairs < 2)
		return;
	sums->weighted = sums->pairs * sums->pair_mean;
	sums->weight = sums->pairs;
	sums->squares = sums->pair_squares;
	sums->freedom = sums->pairs - 1;
}

/*
 * The quantile 0.975 of Student's distribution: the expansion of Cornish and Fisher (Abramowitz and
 * Stegun, 26.7.5), exact enough from 3 degrees on; below, the true values.
 */
static double quantile(double freedom)
{
	const double z = 1.959963984540054, z2 = z * z;

	if (freedom < 1.5)
		return 12.706;
	if (freedom < 2.5)
		return 4.3027;
	return z + z * (z2 + 1) / (4 * freedom) +
	       z * ((5 * z2 + 16) * z2 + 3) / (96 * freedom * freedom) +
	       z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * freedom * freedom * freedom);
}

/* Finite, whatever the values were: a database refuses what is not. */
static double percent(double difference)
{
	return 100 * (1 - exp(fmin(difference, 100)));
}

static double bayes_factor(const struct sums *s, double difference)
{
	double t2, grown = 1 + s->weight * PRIOR;

	/* Equal values differ by the clock's resolution, at least by the processor's. */
	t2 = difference * difference * s->weight /
	     (fmax(s->squares, 1e-18 * s->freedom) / s->freedom);
	return exp(-0.5 * log(grown) +
		   (s->freedom + 1) / 2 *
			   (log1p(t2 / s->freedom) - log1p(t2 / (s->freedom * grown))));
}

static enum pem_agent_verdict verdict_of(const struct pem_agent_comparison *c, double gain_min)
{
	bool enough = c->treated >= EQUAL_RUNS_MIN && c->controls >= EQUAL_RUNS_MIN;

	if (c->bayes_factor >= FACTOR_MIN && c->gain < 0)
		return PEM_AGENT_SLOWER;
	if (c->bayes_factor >= FACTOR_MIN && c->gain >= gain_min)
		return PEM_AGENT_FASTER;
	if (enough && c->gain_low > -gain_min && c->gain_high < gain_min)
		return PEM_AGENT_EQUAL;
	return PEM_AGENT_UNCLEAR;
}

enum pem_agent_verdict pem_agent__judge(const struct pem_agent_trial *trials, size_t count,
					double gain_min, struct pem_agent_comparison *comparison)
{
	struct pem_agent_comparison c = {.bayes_factor = 1};
	struct sums s = {0};
	double difference, half;
	size_t i;

	for (i = 0; i < count; i++) {
		if (is_first(trials, i))
			add_group(&s, trials, count, trials[i].group);
	}
	take_pairs(&s);
	c.treated = s.treated;
	c.controls = s.controls;
	if (s.freedom >= 1) {
		difference = s.weighted / s.weight;
		half = quantile(s.freedom) * sqrt(s.squares / s.freedom / s.weight);
		c.gain = percent(difference);
		c.gain_low = percent(difference + half);
		c.gain_high = percent(difference - half);
		c.bayes_factor = bayes_factor(&s, difference);
	}
	if (comparison)
		*comparison = c;
	return verdict_of(&c, gain_min);
}
