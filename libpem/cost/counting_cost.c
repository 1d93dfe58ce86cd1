/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counting_cost.c - measure what a recording costs beside its events: counters at an event,
 * counters and samples at a switch of threads and at a page fault, and memory for records
 *
 * The kernel stops and starts a thread's counters, and the timer of its samples, at each switch,
 * and gives them to each process that starts. A program does so (exercise/main.c), without counters
 * and with this session's. What was measured is remembered for the set of counters that was
 * measured last.
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "producer/producer.h"
#include "source_host/source_host.h"
#include "hash.h"
#include "writer/log.h"

#include <pem/clock.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 3
#define POPULATED_BYTES (64u << 10) /* as producers have pools' memory allocated */
#define POPULATED_TIMES 33

static double cycles_to_ns(double cycles)
{
	return cycles * 1e9 / (double)pem_clock__hz();
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* --- of this session --- */

/* Fill in the session's counters and samples that one source serves. Returns how many. */
static size_t find_counted(struct pem_session *s, const struct pem_source_ops **ops,
			   struct pem_source_event *wanted)
{
	const struct pem_source_ops *found;
	const struct pem_demand *demand;
	const char *name;
	size_t count = 0, i;

	*ops = NULL;
	for (i = 0; i < s->demand_count; i++) {
		demand = &s->demands[i];
		if ((!demand->want_log && !demand->want_statistic) ||
		    (demand->event->source_kind != PEM_SOURCE_PERF &&
		     demand->event->source_kind != PEM_SOURCE_SAMPLE))
			continue;
		found = pem_session__find_plugin(s, NULL, demand->event, &name, NULL);
		if (!found || (*ops && found != *ops))
			continue;
		*ops = found;
		wanted[count++] = (struct pem_source_event){
			.event = demand->event,
			.action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1)};
	}
	return count;
}

/* A hash of the session's counters and samples, and of how samples are taken. 0: it has none. */
static uint64_t set_of(struct pem_session *s)
{
	struct pem_source_event *wanted = calloc(s->demand_count + 1, sizeof(*wanted));
	const struct pem_source_ops *ops;
	size_t count = wanted ? find_counted(s, &ops, wanted) : 0, i;
	uint64_t hash = PEM_HASH_START + s->options.sample_hz * 4ull + s->options.sample_stacks;

	for (i = 0; i < count; i++)
		hash = pem_hash__text(hash, wanted[i].event->name);
	free(wanted);
	return count ? hash : 0;
}

/* The results of pem-exercise, of the runs in their order. */
struct runs {
	double values[3][ROUNDS];
};

/* Run it once, with these counters; config NULL: plain. */
static bool run_once(const struct pem_source_ops *ops, struct pem_source_config *config,
		     struct runs *runs, unsigned round)
{
	struct pem_source *source = NULL;
	struct pem_exercise run;
	double result[3];
	bool done;
	unsigned i;

	if (!pem_exercise__begin(&run, "switch", environ))
		return false;
	if (config) {
		config->root = run.pid;
		if (!ops->open(config, &source, NULL))
			ops->start(source, NULL);
	}
	done = pem_exercise__end(&run, result, sizeof(result)) && (!config || source);
	if (source)
		ops->close(source);
	for (i = 0; done && i < 3; i++)
		runs->values[i][round] = result[i];
	return done;
}

static double more(double *with, double *without)
{
	double ns;

	qsort(with, ROUNDS, sizeof(*with), by_value);
	qsort(without, ROUNDS, sizeof(*without), by_value);
	ns = with[ROUNDS / 2] - without[ROUNDS / 2];
	return ns > 0 ? pem_cost__rounded(ns) : 0;
}

static void measure_counting(struct pem_session *s, struct pem_counting_cost *cost)
{
	struct pem_source_event *wanted = calloc(s->demand_count + 1, sizeof(*wanted));
	struct pem_source_config config = {.size = sizeof(config),
					   .events = wanted,
					   .sample_hz = s->options.sample_hz,
					   .sample_stacks = (uint32_t)s->options.sample_stacks};
	const struct pem_source_ops *ops = NULL;
	struct runs plain, counted;
	unsigned i;

	if (wanted)
		config.event_count = find_counted(s, &ops, wanted);
	for (i = 0; config.event_count && i < ROUNDS; i++) {
		if (!run_once(ops, NULL, &plain, i) || !run_once(ops, &config, &counted, i))
			break;
	}
	free(wanted);
	if (i < ROUNDS)
		return;
	cost->switch_ns = more(counted.values[0], plain.values[0]);
	cost->fault_ns = more(counted.values[1], plain.values[1]);
	cost->start_ns = more(counted.values[2], plain.values[2]);
}

bool pem_session__measure_counting(struct pem_session *s)
{
	const struct pem_session_sources *sources = s->sources;
	struct pem_counting_cost *known = &s->cost->costs.counting;
	uint64_t set;

	if (!s->cost->reading_tried && sources->thread_counter_count) {
		s->cost->reading_tried = true;
		s->cost->reading_ns = pem_cost__rounded(cycles_to_ns(pem_counted__reading_cycles(
			sources->thread_counters, sources->thread_counter_count)));
	}
	/* Counters of CPUs, and those that are simulated, go on at a switch. */
	if (s->cost->counting_tried || s->sources->whole_machine || s->options.hardware)
		return false;
	s->cost->counting_tried = true;
	set = set_of(s);
	if (!set)
		return false;
	if (known->set == set) {
		s->cost->counting = *known;
		return false;
	}
	*known = (struct pem_counting_cost){.set = set};
	measure_counting(s, known);
	s->cost->counting = *known;
	return true;
}

/* --- memory for records --- */

double pem_page_ns(void)
{
	const size_t bytes = (size_t)POPULATED_BYTES * POPULATED_TIMES;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	double cycles[POPULATED_TIMES];
	int fd = memfd_create("pem-cost", MFD_CLOEXEC);
	uint8_t *memory = MAP_FAILED;
	uint64_t start;
	unsigned i = 0;

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (i = 0; memory != MAP_FAILED && i < POPULATED_TIMES; i++) {
		start = pem_clock();
		if (madvise(memory + (size_t)i * POPULATED_BYTES, POPULATED_BYTES,
			    MADV_POPULATE_WRITE))
			break;
		cycles[i] = (double)(pem_clock() - start);
	}
	if (memory != MAP_FAILED)
		munmap(memory, bytes);
	if (fd >= 0)
		close(fd);
	if (i < POPULATED_TIMES)
		return 0;
	qsort(cycles, POPULATED_TIMES, sizeof(*cycles), by_value);
	return cycles_to_ns(cycles[POPULATED_TIMES / 2]) / ((double)POPULATED_BYTES / (double)page);
}
