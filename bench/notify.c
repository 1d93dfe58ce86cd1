// SPDX-License-Identifier: MIT
/*
 * notify.c - what raising an event costs: disabled, logged to a flight recorder, counted
 *
 * Not here: several threads, the kernel's events, consumers.
 *
 *	notify/loop	the empty loop that all others hold
 *	notify/floor	a read of the clock and 24 bytes stored, through memory of the pool's size: nothing that
 *			records when something happened can do with less
 *	notify/disabled, notify/log2, notify/stat	the generated stub of an event of two 64-bit fields
 *
 * The peer raises the same event through LTTng-UST in this process, in the same rounds.
 */
#include "bench/bench.h"
#include "bench/lttng.h"

#include "stubs/bench.h"

#include <pem/clock.h>
#include <pem/pem.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BYTES 8192u
#define CHUNK_COUNT 1024u
#define POOL_BYTES ((uint64_t)CHUNK_BYTES * CHUNK_COUNT)
#define ROUNDS 25
#define SLICE_MS 12.0

struct record {
	uint64_t clock, a, b;
};

static struct record *floor_next, *floor_start, *floor_end;

static void run_loop(uint64_t n)
{
	BENCH_LOOP(n, )
}

static void run_floor(uint64_t n)
{
	BENCH_LOOP(n, struct record *r = floor_next; r->clock = pem_clock(); r->a = i; r->b = ~i;
		   floor_next = r + 1 < floor_end ? r + 1 : floor_start)
}

static void run_disabled(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_disabled(i, ~i))
}

static void run_log(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_log(i, ~i))
}

static void run_stat(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_stat(i, ~i))
}

/* Memory as a pool has it: shared, in files on tmpfs, present. */
static int make_floor(void)
{
	int fd = memfd_create("pem-bench-floor", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)POOL_BYTES) < 0)
		return -1;
	floor_start =
		mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (floor_start == MAP_FAILED)
		return -1;
	floor_next = floor_start;
	floor_end = floor_start + POOL_BYTES / sizeof(struct record);
	return 0;
}

/* --- pem --- */

struct pem_side {
	struct pem_session *session;
	struct pem_event_set *logged, *counted;
	struct pem_log *log;
	struct pem_statistics *statistics;
	char directory[64];
};

static void tell(enum pem_log_level level, const char *text, void *arg)
{
	(void)level, (void)arg;
	fprintf(stderr, "notify: pem: %s\n", text);
}

static int enable(struct pem_side *side, struct pem_error *error)
{
	struct pem_session_options options = {.size = sizeof(options),
					      .chunk_bytes = CHUNK_BYTES,
					      .chunk_count = CHUNK_COUNT,
					      .overwrite = 1,
					      .log = tell};
	const char *const logged[] = {"APP::Bench::Log"}, *const counted[] = {"APP::Bench::Stat"};

	side->session = pem_session__open(&options, error);
	if (!side->session)
		return -1;
	pem_session__poll(side->session, 0, NULL); /* to meet this process's provider */
	side->logged = pem_event_set__new(side->session, logged, 1, error);
	side->counted = pem_event_set__new(side->session, counted, 1, error);
	if (!side->logged || !side->counted)
		return -1;
	strcpy(side->directory, "/dev/shm/pem-bench-XXXXXX");
	if (!mkdtemp(side->directory)) {
		snprintf(error->text, sizeof(error->text),
			 "cannot make a directory in /dev/shm: %s", strerror(errno));
		side->directory[0] = '\0';
		return -1;
	}
	side->log = pem_session__register_log(side->session, side->logged, NULL, side->directory,
					      error);
	side->statistics =
		pem_session__register_statistics(side->session, side->counted, NULL, "a", error);
	if (!side->log || !side->statistics)
		return -1;
	snprintf(error->text, sizeof(error->text), "the log or the statistic could not be enabled");
	return pem_log__enable(side->log) || pem_statistics__enable(side->statistics) ? -1 : 0;
}

/* Was what we timed what we mean? Records must have been made and counted. */
static int check(struct pem_side *side, struct pem_error *error)
{
	struct pem_statistic before, after;

	if (pem_statistics__read(side->statistics, &before, 1) != 1)
		goto wrong;
	run_stat(1000);
	run_log(1000);
	run_disabled(1000);
	if (pem_statistics__read(side->statistics, &after, 1) != 1 ||
	    after.count - before.count != 1000)
		goto wrong;
	return 0;
wrong:
	snprintf(error->text, sizeof(error->text), "the statistic does not count what is raised");
	return -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	remove(path);
	return 0;
}

static void disable(struct pem_side *side)
{
	pem_statistics__unregister(side->statistics);
	pem_log__unregister(side->log);
	pem_event_set__free(side->logged);
	pem_event_set__free(side->counted);
	pem_session__close(side->session);
	if (side->directory[0])
		nftw(side->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	struct bench_case cases[] = {
		{"notify/loop", run_loop, NULL, NULL},
		{"notify/floor", run_floor, NULL, NULL},
		{"notify/disabled", run_disabled, "LTTng-UST " LTTNG_VERSION, NULL},
		{"notify/log2", run_log, "LTTng-UST " LTTNG_VERSION, NULL},
		{"notify/stat", run_stat, NULL, NULL},
	};
	struct bench bench = {"notify", ROUNDS, SLICE_MS, cases, sizeof(cases) / sizeof(cases[0])};
	struct pem_side side = {0};
	struct pem_error error = {"memory of the pool's size could not be had"};
	struct lttng lttng;
	int rc = 1;

	if (lttng__start(&lttng, POOL_BYTES) < 0)
		printf("notify: no LTTng-UST beside us: %s\n", lttng.reason);
	cases[2].run_peer = lttng.run_disabled;
	cases[3].run_peer = lttng.run_log;
	if (make_floor() < 0 || enable(&side, &error) < 0 || check(&side, &error) < 0) {
		fprintf(stderr, "notify: %s\n", error.text);
		goto out;
	}
	if (bench__pin() < 0)
		fprintf(stderr, "notify: not bound to one CPU\n");
	rc = bench__run(&bench) < 0;
out:
	disable(&side);
	lttng__stop(&lttng);
	return rc;
}
