# SPDX-License-Identifier: MIT
"""
page_size_metrics.py - how far a prediction of gains is from what was measured

Not here: any measurement. A mapping's gain is the time that it saves, against all pages small, in any unit.
"""
import math
import statistics

# An error of 0 would make the geometric mean 0, whatever the others are: errors below this count as this, in % points.
ERROR_MIN = 0.01
# The standard error of a median is that of a mean, times this, if noise is normal.
MEDIAN_ERROR = math.sqrt(math.pi / 2)
# The standard deviation, if noise is normal, by the median absolute deviation.
DEVIATION_BY_MEDIAN = 1.4826


def percentages(gains):
    """Each gain in per cent of the greatest; all 0 if no mapping gains."""
    most = max(gains)
    return [100 * g / most if most > 0 else 0.0 for g in gains]


def ranking_error(predicted, measured):
    """Mean absolute difference of two lists of gains of the same mappings, each in per cent of its own maximum; % points."""
    return statistics.mean(abs(p - m) for p, m in zip(percentages(predicted), percentages(measured)))


def ranking_error_nontrivial(predicted, measured, trivial):
    """The same without the mappings that trivial says are all or none; they still count for the maxima. None: no other is left."""
    pairs = zip(percentages(predicted), percentages(measured), trivial)
    return statistics.mean(d) if (d := [abs(p - m) for p, m, t in pairs if not t]) else None


def geometric_mean(values, least=ERROR_MIN):
    """Of values that are not negative. Values below least count as least."""
    return math.exp(statistics.mean(math.log(max(v, least)) for v in values))


def kendall_tau_b(first, second):
    """
    Kendall's tau-b (Kendall 1945): (concordant - discordant) / sqrt((pairs - ties in first) * (pairs - ties in second)). None: all
    of one list are equal.
    """
    balance = untied_first = untied_second = 0
    for i in range(len(first)):
        for k in range(i):
            a, b = first[i] - first[k], second[i] - second[k]
            untied_first += a != 0
            untied_second += b != 0
            balance += (a * b > 0) - (a * b < 0)
    if not untied_first or not untied_second:
        return None
    return balance / math.sqrt(untied_first * untied_second)


def resolved_agreement(predicted, measured, errors, times=2):
    """
    (Concordant - discordant) / pairs, of the pairs whose measured difference is more than so many times its standard error; errors
    are those of the gains. None: there are no such pairs.
    """
    balance = pairs = 0
    for i in range(len(predicted)):
        for k in range(i):
            a, b = predicted[i] - predicted[k], measured[i] - measured[k]
            if abs(b) > times * math.hypot(errors[i], errors[k]):
                pairs += 1
                balance += (a * b > 0) - (a * b < 0)
    return balance / pairs if pairs else None


def deviation(values):
    """A standard deviation that a few outliers do not change, from the median absolute deviation."""
    middle = statistics.median(values)
    return DEVIATION_BY_MEDIAN * statistics.median(abs(v - middle) for v in values)


def without_rounds(times):
    """
    Times of ways, by name and round, each as it would be if its round had been as quick as the median round. What slows the machine
    down for longer than a round slows all ways of the round down, so it is known from their mean.
    """
    rounds = len(next(iter(times.values())))
    means = [statistics.mean(t[r] for t in times.values()) for r in range(rounds)]
    usual = statistics.median(means)
    return {way: [t * usual / mean for t, mean in zip(values, means)] for way, values in times.items()}


def medians(times):
    """(Median, its standard error) of each way, of times by name and round."""
    return {way: (statistics.median(values), MEDIAN_ERROR * deviation(values) / math.sqrt(len(values)))
            for way, values in without_rounds(times).items()}


def gains(times, base):
    """(Gain against the way base, its standard error) of each way; that of base is (0, its own error)."""
    found = medians(times)
    least, error = found[base]
    return {way: (least - value, math.hypot(error, own) if way != base else error) for way, (value, own) in found.items()}
