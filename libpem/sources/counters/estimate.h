/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * estimate.h - what a counter counted of what happened, if the hardware was shared
 *
 * If more hardware counters are wanted than a processor has, the kernel lets groups of them take
 * turns. A counter then counted for a part of the time (running) of the time in which it should
 * have (enabled). Its total is scaled to all of this time, which is an estimate with an error.
 *
 * Pure functions: they read no counter (readings.c), and tests give them any value.
 */
#ifndef PEM_COUNTERS_ESTIMATE_H
#define PEM_COUNTERS_ESTIMATE_H

#include <stdint.h>

/* With fewer windows the error is unknown. */
#define WINDOWS_LEAST 5u

/* What the kernel tells of one descriptor: PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING. */
struct reading {
	uint64_t value, enabled_ns, running_ns;
};

/* Readings of one counter's descriptors, added up. No sum wraps: it stays at the greatest value. */
struct tally {
	uint64_t counted; /* by the hardware */
	uint64_t enabled_ns, running_ns;
	uint64_t scaled; /* by each descriptor, to all the time that it was enabled */
	uint64_t never_ns; /* of enabled_ns: by descriptors that never ran */
};

/*
 * Scale the value of a counter that ran only a part of the time it was enabled to all of this time
 * (perf_event_open(2)). A result that does not fit becomes the greatest value.
 */
static inline uint64_t counter__scale(uint64_t value, uint64_t enabled_ns, uint64_t running_ns)
{
	unsigned __int128 scaled;

	if (!running_ns || running_ns >= enabled_ns)
		return value;
	scaled = (unsigned __int128)value * enabled_ns / running_ns;
	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

void tally__add(struct tally *tally, const struct reading *reading);
/* tally becomes what came since before. A member that is smaller than before becomes 0. */
void tally__subtract(struct tally *tally, const struct tally *before);
void tally__join(struct tally *tally, const struct tally *other);
/*
 * The total: scaled, and for descriptors that never ran what the others counted in such a time. If
 * no descriptor ran while it was enabled there is no number, see tally__never_ran.
 */
uint64_t tally__total(const struct tally *tally);
/* Was the counter enabled, and got no time in the hardware? */
static inline int tally__never_ran(const struct tally *tally)
{
	return tally->enabled_ns && !tally->running_ns;
}
static inline int tally__is_estimate(const struct tally *tally)
{
	return tally->running_ns < tally->enabled_ns;
}

/* Sums over windows: the times between two readings in which the counter ran. */
struct windows {
	struct tally last; /* at the end of the last window */
	uint64_t count;
	double v, r; /* of events counted, of time running in ns */
	double vv, vr, rr; /* of their products */
};

/* End a window at this reading, if the counter ran since the last one ended. */
void windows__add(struct windows *windows, const struct tally *now);
/*
 * The standard error of the mean rate v / r, in events per ns. NAN: there are too few windows.
 *
 * Windows are unequally long, so the rate is a ratio estimate with q = v / r over all n windows,
 * whose variance is n / (n - 1) * sum((v_i - q * r_i)^2) / r^2 (Cochran, Sampling Techniques, 3rd
 * edition, 1977, section 2.11). If all windows are equally long, this is the variance of the
 * windows' rates divided by n.
 */
double windows__rate_error(const struct windows *windows);
/*
 * Standard errors that are the half width of an interval of 95 %: Student's t for as many degrees
 * of freedom as there are windows, less 1.
 */
double windows__t(const struct windows *windows);

/*
 * The error of a total: the half width of its interval of 95 %, two standard errors. NAN: it is
 * unknown, as rate_error is. 0: it is no estimate.
 *
 * Windows are taken for a random sample of the time. The variance of a total of N windows, of which
 * n were seen, is N^2 / n * (1 - n / N) * s^2 (Cochran, section 2.5), where s^2 / n is that of the
 * mean. So it is rate_error^2 * enabled * (enabled - running). If nothing was counted, there were
 * with 95 % less than 3 in a time as long as running (Hanley and Lippman-Hand, If nothing goes
 * wrong, is everything all right?, JAMA 249, 1983).
 *
 * What happened only where the counter did not run, and is like nothing that it saw, is outside of
 * this interval.
 */
double estimate__error(const struct tally *tally, double rate_error);

#endif
