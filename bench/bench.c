// SPDX-License-Identifier: MIT
/* bench.c - runs benchmarks: rounds, medians, the table and the JSON lines */
#include "bench/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_MS 100.0
#define QUICK_MS 1.0

/* Values of one function over the rounds. Case i has series 2 * i, its peer has the next one. */
struct series {
	void (*run)(uint64_t n);
	clockid_t clock;
	uint64_t n; /* operations in one slice */
	unsigned count; /* number of values; 0: it did not run */
	double *values; /* sorted at the end */
};

static double now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double time_ns(const struct series *series, uint64_t n)
{
	double start = now_ns(series->clock);

	series->run(n);
	return now_ns(series->clock) - start;
}

static int quick(void)
{
	return getenv("BENCH_QUICK") != NULL;
}

int bench__wants(const char *name)
{
	const char *word = getenv("BENCH_CASE");

	return !word || strstr(name, word) != NULL;
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

/*
 * Find how many operations fill a slice, and then warm up: a peer's buffers may be as large as
 * ours, and untouched.
 */
static void calibrate(const struct bench *bench, struct series *series)
{
	double slice = quick() ? QUICK_MS : bench->slice_ms;
	double took, warm = quick() ? (WARM_MS - QUICK_MS) * 1e6 : 0;

	for (series->n = 1024; series->n < 1ull << 40; series->n *= 2) {
		took = time_ns(series, series->n);
		if (took >= slice * 1e6 / 2)
			break;
	}
	while (warm < WARM_MS * 1e6)
		warm += time_ns(series, series->n);
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

static void measure(const struct bench *bench, struct series *series)
{
	size_t count = 2 * bench->case_count, i;
	unsigned round;

	for (i = 0; i < count; i++)
		if (series[i].run)
			calibrate(bench, &series[i]);
	for (round = 0; round < (quick() ? 1 : bench->rounds); round++)
		for (i = 0; i < count; i++)
			if (series[i].run)
				series[i].values[series[i].count++] =
					time_ns(&series[i], series[i].n) / (double)series[i].n;
}

/* The median of the case named by beside. 0: there is none. */
static double value_beside(const struct bench *bench, const struct bench_case *c,
			   const struct series *series)
{
	size_t i;

	for (i = 0; c->beside && i < bench->case_count; i++)
		if (!strcmp(bench->cases[i].name, c->beside) && series[2 * i].count)
			return median(series[2 * i].values, series[2 * i].count);
	return 0;
}

static void write_json(FILE *out, const struct bench *bench, const struct bench_case *c,
		       const struct series *ours, const struct series *peer, double beside)
{
	double value = median(ours->values, ours->count), peer_value;

	fprintf(out,
		"{\"bench\":\"%s\",\"case\":\"%s\",\"unit\":\"ns\",\"value\":%.4f,\"min\":%.4f,"
		"\"max\":%.4f,\"runs\":%u",
		bench->name, c->name, value, ours->values[0], ours->values[ours->count - 1],
		ours->count);
	if (peer->count) {
		peer_value = median(peer->values, peer->count);
		fprintf(out, ",\"peer\":\"%s\",\"peer_value\":%.4f,\"ratio\":%.4f", c->peer,
			peer_value, value / peer_value);
	}
	if (beside > 0)
		fprintf(out, ",\"beside\":\"%s\",\"beside_ratio\":%.4f", c->beside, value / beside);
	fputs("}\n", out);
}

static void print_row(const struct bench_case *c, const struct series *ours,
		      const struct series *peer, double beside)
{
	double value = median(ours->values, ours->count), peer_value;

	printf("%-20s %9.3f %9.3f %9.3f  ns", c->name, value, ours->values[0],
	       ours->values[ours->count - 1]);
	if (peer->count) {
		peer_value = median(peer->values, peer->count);
		printf("   %s %.3f ns, ratio %.3f", c->peer, peer_value, value / peer_value);
	} else if (c->peer) {
		printf("   %s not here", c->peer);
	}
	if (beside > 0)
		printf("   %.3f of %s", value / beside, c->beside);
	putchar('\n');
}

static int report(const struct bench *bench, const struct series *series)
{
	const char *path = getenv("BENCH_OUT");
	FILE *out = path ? fopen(path, "a") : NULL;
	double beside;
	size_t i;

	if (path && !out)
		return -errno;
	printf("%-20s %9s %9s %9s\n", bench->name, "median", "min", "max");
	for (i = 0; i < bench->case_count; i++) {
		if (!series[2 * i].count)
			continue;
		beside = value_beside(bench, &bench->cases[i], series);
		print_row(&bench->cases[i], &series[2 * i], &series[2 * i + 1], beside);
		if (out)
			write_json(out, bench, &bench->cases[i], &series[2 * i], &series[2 * i + 1],
				   beside);
	}
	if (out && fclose(out))
		return -errno;
	return 0;
}

/* --- several processes --- */

static struct series *make_series(const struct bench *bench, unsigned capacity)
{
	size_t count = 2 * bench->case_count, i;
	struct series *series = calloc(count, sizeof(*series));
	double *values = calloc(count * capacity, sizeof(*values));

	if (!series || !values) {
		free(series);
		free(values);
		return NULL;
	}
	for (i = 0; i < count; i++) {
		if (bench__wants(bench->cases[i / 2].name))
			series[i].run =
				i % 2 ? bench->cases[i / 2].run_peer : bench->cases[i / 2].run;
		series[i].clock =
			bench->cases[i / 2].clock ? bench->cases[i / 2].clock : bench->clock;
		series[i].values = values + i * capacity;
	}
	return series;
}

static void free_series(struct series *series)
{
	if (series)
		free(series[0].values);
	free(series);
}

/* Send a child's values to the parent: for each series their number, then the values. */
static int send(const struct bench *bench, const struct series *series, FILE *to)
{
	size_t i;

	for (i = 0; i < 2 * bench->case_count; i++) {
		fwrite(&series[i].count, sizeof(series[i].count), 1, to);
		fwrite(series[i].values, sizeof(double), series[i].count, to);
	}
	return fflush(to) || ferror(to) ? -EIO : 0;
}

static int receive(const struct bench *bench, struct series *series, FILE *from)
{
	unsigned count;
	size_t i;

	for (i = 0; i < 2 * bench->case_count; i++) {
		if (fread(&count, sizeof(count), 1, from) != 1 || count > bench->rounds ||
		    fread(series[i].values + series[i].count, sizeof(double), count, from) != count)
			return -EIO;
		series[i].count += count;
	}
	return 0;
}

/*
 * Wait for a child. Returns 0, or -ECHILD after the child or this function has printed the reason.
 */
static int wait_for_child(const struct bench *bench, pid_t child, unsigned k)
{
	int status;

	if (waitpid(child, &status, 0) != child) {
		fprintf(stderr, "%s: lost child %u: %s\n", bench->name, k, strerror(errno));
		return -ECHILD;
	}
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: child %u was ended by signal %d (%s)\n", bench->name, k,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	return status ? -ECHILD : 0;
}

/* Run this program again as child number k, and read its values through a pipe. */
static int run_child(const struct bench *bench, struct series *series, unsigned k)
{
	int ends[2], rc, ended;
	char number[16], fd[16];
	FILE *from;
	pid_t child;

	if (pipe(ends) < 0)
		return -errno;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		snprintf(number, sizeof(number), "%u", k);
		snprintf(fd, sizeof(fd), "%d", ends[1]);
		setenv("BENCH_CHILD", number, 1);
		setenv("BENCH_FD", fd, 1);
		execl("/proc/self/exe", bench->name, NULL);
		fprintf(stderr, "%s: can't run itself again: %s\n", bench->name, strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return -errno;
	}
	from = fdopen(ends[0], "r");
	rc = from ? receive(bench, series, from) : -errno;
	if (from)
		fclose(from);
	ended = wait_for_child(bench, child, k);
	return ended ? ended : rc;
}

unsigned bench__child(void)
{
	const char *number = getenv("BENCH_CHILD");

	return number ? (unsigned)strtoul(number, NULL, 10) : 0;
}

int bench__spread(const struct bench *bench)
{
	unsigned k, processes = quick() ? 1 : bench->processes;
	struct series *series;
	size_t i, wanted = 0;
	int rc;

	for (i = 0; i < bench->case_count; i++) {
		if (getenv("BENCH_LIST"))
			puts(bench->cases[i].name);
		wanted += (size_t)bench__wants(bench->cases[i].name);
	}
	if (!wanted || getenv("BENCH_LIST"))
		return 0;
	series = make_series(bench, bench->rounds * processes);
	rc = series ? 0 : -ENOMEM;
	for (k = 1; rc == 0 && k <= processes; k++)
		rc = run_child(bench, series, k);
	for (i = 0; rc == 0 && i < 2 * bench->case_count; i++)
		qsort(series[i].values, series[i].count, sizeof(double), compare);
	if (rc == 0)
		rc = report(bench, series);
	free_series(series);
	return rc;
}

int bench__run(const struct bench *bench)
{
	struct series *series = make_series(bench, bench->rounds);
	const char *fd = getenv("BENCH_FD");
	FILE *to = fd ? fdopen((int)strtol(fd, NULL, 10), "w") : NULL;
	int rc = series && to ? 0 : -EINVAL;

	if (rc == 0) {
		measure(bench, series);
		rc = send(bench, series, to);
	}
	if (rc < 0)
		fprintf(stderr, "%s: nothing was measured: %s\n", bench->name, strerror(-rc));
	if (to)
		fclose(to);
	free_series(series);
	return rc;
}
