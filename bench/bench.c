// SPDX-License-Identifier: MIT
/*
 * bench.c - the harness: rounds, medians, the table and the JSON lines
 */
#include "bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What one function measured over the rounds. */
struct series {
	void (*run)(uint64_t n);
	uint64_t n; /* operations in one slice */
	double *values; /* one per round; sorted at the end */
};

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_ns(const struct bench *bench, void (*run)(uint64_t n), uint64_t n)
{
	double start = now_ns(bench->clock);

	run(n);
	return now_ns(bench->clock) - start;
}

int bench__pin(void)
{
	cpu_set_t allowed, one;
	int cpu;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	for (cpu = CPU_SETSIZE - 1; cpu > 0 && !CPU_ISSET(cpu, &allowed); cpu--)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return -errno;
	return cpu;
}

/* Find how many operations take a slice; this warms the case up as well. */
static void calibrate(const struct bench *bench, struct series *series)
{
	double took;

	for (series->n = 1024; series->n < 1ull << 40; series->n *= 2) {
		took = time_ns(bench, series->run, series->n);
		if (took >= bench->slice_ms * 1e6 / 2)
			break;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *sorted, unsigned count)
{
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static void measure(const struct bench *bench, struct series *series, size_t count)
{
	unsigned round;
	size_t i;

	for (i = 0; i < count; i++)
		if (series[i].run)
			calibrate(bench, &series[i]);
	for (round = 0; round < bench->rounds; round++)
		for (i = 0; i < count; i++)
			if (series[i].run)
				series[i].values[round] =
					time_ns(bench, series[i].run, series[i].n) /
					(double)series[i].n;
	for (i = 0; i < count; i++)
		if (series[i].run)
			qsort(series[i].values, bench->rounds, sizeof(double), compare);
}

static void write_json(FILE *out, const struct bench *bench, const struct bench_case *c,
		       const struct series *ours, const struct series *peer)
{
	double value = median(ours->values, bench->rounds), peer_value;

	fprintf(out,
		"{\"bench\":\"%s\",\"case\":\"%s\",\"unit\":\"ns\",\"value\":%.4f,\"min\":%.4f,"
		"\"max\":%.4f,\"runs\":%u",
		bench->name, c->name, value, ours->values[0], ours->values[bench->rounds - 1],
		bench->rounds);
	if (peer->run) {
		peer_value = median(peer->values, bench->rounds);
		fprintf(out, ",\"peer\":\"%s\",\"peer_value\":%.4f,\"ratio\":%.4f", c->peer,
			peer_value, value / peer_value);
	}
	fputs("}\n", out);
}

static void print_row(const struct bench *bench, const struct bench_case *c,
		      const struct series *ours, const struct series *peer)
{
	double value = median(ours->values, bench->rounds), peer_value;

	printf("%-20s %9.3f %9.3f %9.3f  ns", c->name, value, ours->values[0],
	       ours->values[bench->rounds - 1]);
	if (peer->run) {
		peer_value = median(peer->values, bench->rounds);
		printf("   %s %.3f ns, ratio %.3f", c->peer, peer_value, value / peer_value);
	} else if (c->peer) {
		printf("   %s not here", c->peer);
	}
	putchar('\n');
}

static int report(const struct bench *bench, const struct series *series)
{
	const char *path = getenv("BENCH_OUT");
	FILE *out = path ? fopen(path, "a") : NULL;
	size_t i;

	if (path && !out)
		return -errno;
	printf("%-20s %9s %9s %9s\n", bench->name, "median", "min", "max");
	for (i = 0; i < bench->case_count; i++) {
		if (!series[2 * i].run)
			continue;
		print_row(bench, &bench->cases[i], &series[2 * i], &series[2 * i + 1]);
		if (out)
			write_json(out, bench, &bench->cases[i], &series[2 * i],
				   &series[2 * i + 1]);
	}
	if (out && fclose(out))
		return -errno;
	return 0;
}

int bench__run(const struct bench *bench)
{
	size_t count = 2 * bench->case_count, i;
	struct series *series = calloc(count, sizeof(*series));
	double *values = calloc(count * bench->rounds, sizeof(*values));
	int rc = -ENOMEM;

	if (!series || !values)
		goto out;
	for (i = 0; i < count; i++) {
		series[i].run = i % 2 ? bench->cases[i / 2].run_peer : bench->cases[i / 2].run;
		series[i].values = values + i * bench->rounds;
	}
	measure(bench, series, count);
	rc = report(bench, series);
out:
	free(values);
	free(series);
	return rc;
}
