// SPDX-License-Identifier: LGPL-2.1-or-later
/* estimate.c - see estimate.h */
#include "estimate.h"

#include <math.h>

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* a * b / c, or the greatest value where that does not fit. c is not 0. */
static uint64_t share(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 all = (unsigned __int128)a * b / c;

	return all > UINT64_MAX ? UINT64_MAX : (uint64_t)all;
}

void tally__add(struct tally *tally, const struct reading *reading)
{
	tally->counted = add(tally->counted, reading->value);
	tally->enabled_ns = add(tally->enabled_ns, reading->enabled_ns);
	tally->running_ns = add(tally->running_ns, reading->running_ns);
	tally->scaled = add(tally->scaled, counter__scale(reading->value, reading->enabled_ns,
							  reading->running_ns));
	if (!reading->running_ns)
		tally->never_ns = add(tally->never_ns, reading->enabled_ns);
}

void tally__subtract(struct tally *tally, const struct tally *before)
{
	tally->counted = subtract(tally->counted, before->counted);
	tally->enabled_ns = subtract(tally->enabled_ns, before->enabled_ns);
	tally->running_ns = subtract(tally->running_ns, before->running_ns);
	tally->scaled = subtract(tally->scaled, before->scaled);
	tally->never_ns = subtract(tally->never_ns, before->never_ns);
}

void tally__join(struct tally *tally, const struct tally *other)
{
	tally->counted = add(tally->counted, other->counted);
	tally->enabled_ns = add(tally->enabled_ns, other->enabled_ns);
	tally->running_ns = add(tally->running_ns, other->running_ns);
	tally->scaled = add(tally->scaled, other->scaled);
	tally->never_ns = add(tally->never_ns, other->never_ns);
}

uint64_t tally__total(const struct tally *tally)
{
	uint64_t missing = 0;

	if (tally->never_ns && tally->running_ns)
		missing = share(tally->counted, tally->never_ns, tally->running_ns);
	return add(tally->scaled, missing);
}

void windows__add(struct windows *windows, const struct tally *now)
{
	double v, r;

	/* A damaged reading may go back. */
	if (now->running_ns <= windows->last.running_ns || now->counted < windows->last.counted)
		return;
	v = (double)(now->counted - windows->last.counted);
	r = (double)(now->running_ns - windows->last.running_ns);
	windows->last = *now;
	windows->count++;
	windows->v += v;
	windows->r += r;
	windows->vv += v * v;
	windows->vr += v * r;
	windows->rr += r * r;
}

double windows__rate_error(const struct windows *windows)
{
	double n = (double)windows->count, rate, squares;

	if (windows->count < WINDOWS_LEAST)
		return NAN;
	rate = windows->v / windows->r;
	squares = windows->vv - 2 * rate * windows->vr + rate * rate * windows->rr;
	/* Rounding may make it less than 0. */
	return squares > 0 ? sqrt(n / (n - 1) * squares) / windows->r : 0;
}

double windows__t(const struct windows *windows)
{
	/* Of 4 degrees of freedom and more, upper quantiles of 97.5 %. */
	static const double t[] = {2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
				   2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110};
	const uint64_t least = WINDOWS_LEAST, known = sizeof(t) / sizeof(t[0]);

	if (windows->count < least)
		return NAN;
	return windows->count - least < known ? t[windows->count - least] : 2.1;
}

double estimate__error(const struct tally *tally, double rate_error)
{
	double enabled = (double)tally->enabled_ns, running = (double)tally->running_ns;

	if (!tally__is_estimate(tally))
		return 0;
	if (!tally->counted && running > 0 && !isnan(rate_error))
		return 3 * (enabled - running) / running;
	return 2 * rate_error * sqrt(enabled * (enabled - running));
}
