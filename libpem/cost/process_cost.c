/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * process_cost.c - measure what a recording costs processes beside their events: at switches of
 * threads, at page faults, as they start and end; to read counters; and memory for records
 *
 * The kernel stops and starts a thread's counters, and the timer of its samples, at each switch,
 * and gives them to each process that starts, which also loads libpem. Events that come together
 * cost more than each alone. So a program switches, faults and starts processes (exercise/main.c)
 * plain, and as it is observed by all that this session wants. Its events of the kernel are charged
 * as the ledger charges them. What it takes beyond that is the cost found here. It is remembered
 * for the sets of events and counters that were measured last.
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "processes/processes.h"
#include "producer/producer.h"
#include "source_host/source_host.h"
#include "hash.h"
#include "writer/log.h"

#include <pem/clock.h>
#include <pem/event.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 3
#define SOURCES 2 /* one of the kernel's events, and one of counters and samples */
#define POPULATED_BYTES (64u << 10) /* as producers have pools' memory allocated */
#define POPULATED_TIMES 33

/* --- how a process is observed --- */

/* What this session wants of one source. */
struct observer {
	const struct pem_source_ops *ops; /* NULL: nothing */
	struct pem_source_event *wanted;
	size_t count;
	struct pem_source *source; /* set while it is open */
};

struct observation {
	struct pem_session *s;
	struct observer observers[SOURCES];
	const struct pem_run_options *started; /* NULL: the session starts no program */
	bool wants_stubs; /* it wants events of programs */
	/* How programs are started; NULL: as plain ones. */
	struct pem_session *own;
	struct pem_environment *environment;
};

static void note_wanted(struct observation *o, const struct pem_demand *demand)
{
	const struct pem_event *event = demand->event;
	bool counted =
		event->source_kind == PEM_SOURCE_PERF || event->source_kind == PEM_SOURCE_SAMPLE;
	struct observer *observer = &o->observers[counted];
	const struct pem_source_ops *ops;
	const char *name;

	if (!demand->want_log && !demand->want_statistic)
		return;
	if (event->source_kind == PEM_SOURCE_STUB)
		o->wants_stubs = true;
	if (!counted && !pem_event__is_of_kernel(event))
		return;
	ops = pem_session__find_plugin(o->s, NULL, event, &name, NULL);
	if (!ops || (observer->ops && ops != observer->ops))
		return;
	observer->ops = ops;
	observer->wanted[observer->count++] = (struct pem_source_event){
		.event = event, .action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1)};
}

static bool find_wanted(struct observation *o)
{
	size_t i;

	for (i = 0; i < SOURCES; i++) {
		o->observers[i].wanted =
			calloc(o->s->demand_count + 1, sizeof(*o->observers[i].wanted));
		if (!o->observers[i].wanted)
			return false;
	}
	for (i = 0; i < o->s->demand_count; i++)
		note_wanted(o, &o->s->demands[i]);
	return true;
}

/* A hash of all that makes a difference. 0: nothing is observed that processes notice. */
static uint64_t set_of(const struct observation *o)
{
	const struct pem_run_options *started = o->started;
	uint64_t hash = PEM_HASH_START + o->s->options.sample_hz * 64ull +
			o->s->options.sample_stacks * 16ull;
	size_t count = 0, i, j;

	if (started)
		hash += 1u + (started->preload_libc ? 2u : 0u) + (started->no_preload ? 4u : 0u) +
			(o->wants_stubs ? 8u : 0u);
	for (i = 0; i < SOURCES; i++) {
		count += o->observers[i].count;
		for (j = 0; j < o->observers[i].count; j++)
			hash = pem_hash__text(hash, o->observers[i].wanted[j].event->name);
	}
	return count || started ? hash : 0;
}

/* Prepare how programs are started: in a session of their own, whose records are never drained. */
static bool prepare_start(struct observation *o)
{
	if (!o->started)
		return true;
	o->own = pem_session__open(NULL, NULL);
	if (!o->own)
		return false;
	o->own->page->rules[0] =
		(struct pem_rule){.event_id = PEM_RULE_ANY_EVENT,
				  .action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1),
				  .max_level = PEM_LEVEL_INFO};
	/* UI */
	__atomic_store_n(&o->own->page->rule_count, o->wants_stubs, __ATOMIC_RELEASE);
	o->environment = pem_environment__new(o->s, o->own->directory, NULL, o->started);
	return o->environment != NULL;
}

static void open_observer(const struct observation *o, struct observer *observer, pid_t pid)
{
	const struct pem_session *s = o->s;
	const struct pem_source_config config = {
		.size = sizeof(config),
		.root = pid,
		.sets_thread = pem_session__event_that_sets_thread(s),
		.session_id = s->id,
		.library_path = s->sources->library_path,
		.events = observer->wanted,
		.event_count = observer->count,
		.sample_hz = s->options.sample_hz,
		.sample_stacks = (uint32_t)s->options.sample_stacks};

	if (observer->ops && !observer->ops->open(&config, &observer->source, NULL))
		observer->ops->start(observer->source, NULL);
}

static bool is_observed(const struct observer *observer)
{
	return !observer->ops || observer->source;
}

static void close_observer(struct observer *observer)
{
	if (observer->source)
		observer->ops->close(observer->source);
	observer->source = NULL;
}

static void end_observation(struct observation *o)
{
	size_t i;

	pem_environment__free(o->environment);
	pem_session__close(o->own);
	for (i = 0; i < SOURCES; i++)
		free(o->observers[i].wanted);
}

/* --- what it costs --- */

enum { SWITCH, FAULT, START, PHASES };

static const char words[PHASES] = {PEM_EXERCISE_SWITCH, PEM_EXERCISE_FAULT, PEM_EXERCISE_START};

/* Of each phase, what one step takes, and the kernel's events in it, by kind of cost. */
struct phase {
	double plain_ns[ROUNDS], observed_ns[ROUNDS];
	double events[PEM_COST_KINDS];
};

/* Add the events so far of each kind; factor -1: take them off. */
static void count_events(const struct observation *o, double *events, double factor)
{
	const struct observer *kernel = &o->observers[0];
	struct pem_balance balance;
	enum pem_cost_kind kind;
	size_t i;

	for (i = 0; kernel->source && i < kernel->count; i++) {
		kind = pem_session__cost_kind(o->s, kernel->wanted[i].event);
		if (kind != PEM_COST_NONE && !kernel->ops->balance(kernel->source, i, &balance))
			events[kind] += factor * (double)balance.produced;
	}
}

/* Run the phases plain some times. */
static bool run_plain(int cpu, struct phase *phases, unsigned round, unsigned end)
{
	struct pem_exercised done;
	struct pem_exercise run;
	bool success = pem_exercise__begin(&run, cpu, environ);
	unsigned i;

	for (; success && round < end; round++) {
		for (i = 0; success && i < PHASES; i++) {
			success = pem_exercise__do(&run, words[i], &done);
			phases[i].plain_ns[round] = done.ns;
		}
	}
	pem_exercise__end(&run);
	return success;
}

static bool run_once(const struct observation *o, const struct pem_exercise *run,
		     struct phase *phases, unsigned round)
{
	struct pem_exercised done;
	struct phase *phase;
	unsigned i, kind;

	for (i = 0; i < PHASES; i++) {
		phase = &phases[i];
		memset(phase->events, 0, sizeof(phase->events));
		count_events(o, phase->events, -1);
		if (!pem_exercise__do(run, words[i], &done))
			return false;
		count_events(o, phase->events, 1);
		phase->observed_ns[round] = done.ns;
		for (kind = 0; kind < PEM_COST_KINDS; kind++)
			phase->events[kind] /= done.count;
	}
	return true;
}

/* Sources take some time to open, so that they are opened once for all rounds. */
static bool run_observed(struct observation *o, int cpu, struct phase *phases)
{
	struct pem_exercised done;
	struct pem_exercise run;
	bool success = pem_exercise__begin(
		&run, cpu, o->environment ? pem_environment__variables(o->environment) : environ);
	unsigned i;

	for (i = 0; success && i < SOURCES; i++) {
		open_observer(o, &o->observers[i], run.pid);
		success = is_observed(&o->observers[i]);
	}
	/* With the first word it becomes that program. */
	success = success && pem_exercise__do(&run, PEM_EXERCISE_FAULT, &done);
	for (i = 0; success && i < ROUNDS; i++)
		success = run_once(o, &run, phases, i);
	pem_exercise__end(&run);
	for (i = 0; i < SOURCES; i++)
		close_observer(&o->observers[i]);
	return success;
}

/* The median of the rounds. Of starts, the least: they are long, and other load adds time. */
static double typical(double *values, unsigned phase)
{
	qsort(values, ROUNDS, sizeof(*values), pem_step__by_value);
	return values[phase == START ? 0 : ROUNDS / 2];
}

/* What a step costs beside its events. */
static double beside_events(const struct pem_costs *costs, struct phase *phases, unsigned which)
{
	struct phase *phase = &phases[which];
	double plain = typical(phase->plain_ns, which), sum = 0;
	double more = typical(phase->observed_ns, which) - plain;
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++)
		sum += phase->events[i];
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (phase->events[i] > 0)
			more -= phase->events[i] *
				pem_cost__at(&costs->each[i], false, plain / sum);
	}
	return more > 0 ? pem_cost__rounded(more) : 0;
}

static void measure(struct observation *o, const struct pem_costs *costs,
		    struct pem_process_cost *process)
{
	struct phase phases[PHASES];
	int cpu = sched_getcpu();

	if (!run_plain(cpu, phases, 0, ROUNDS / 2) || !run_observed(o, cpu, phases) ||
	    !run_plain(cpu, phases, ROUNDS / 2, ROUNDS))
		return;
	process->switch_ns = beside_events(costs, phases, SWITCH);
	process->fault_ns = beside_events(costs, phases, FAULT);
	process->start_ns = o->started ? beside_events(costs, phases, START) : 0;
}

bool pem_session__measure_process(struct pem_session *s, const struct pem_run_options *started)
{
	struct observation o = {.s = s, .started = started};
	struct pem_process_cost cost = {0};
	const struct pem_process_cost *known = NULL;
	bool measured = false;

	/* Counters of CPUs, and those that are simulated, go on at a switch. */
	if (s->sources->whole_machine || s->options.hardware)
		return false;
	if (find_wanted(&o)) {
		cost.set = set_of(&o);
		known = pem_costs__of_set(&s->cost->costs, cost.set);
		measured = cost.set && !known;
		if (measured) {
			if (prepare_start(&o))
				measure(&o, &s->cost->costs, &cost);
			pem_costs__add_set(&s->cost->costs, &cost);
		}
		if (cost.set)
			s->cost->process = known ? *known : cost;
	}
	end_observation(&o);
	return measured;
}

/* --- reading counters --- */

double pem_cycles_ns(double cycles)
{
	return cycles * 1e9 / (double)pem_clock__hz();
}

void pem_session__measure_reading(struct pem_session *s)
{
	const struct pem_session_sources *sources = s->sources;

	if (s->cost->reading_tried || !sources->thread_counter_count)
		return;
	s->cost->reading_tried = true;
	s->cost->reading_ns = pem_cost__rounded(pem_cycles_ns(pem_counted__reading_cycles(
		sources->thread_counters, sources->thread_counter_count)));
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
	qsort(cycles, POPULATED_TIMES, sizeof(*cycles), pem_step__by_value);
	return pem_cycles_ns(cycles[POPULATED_TIMES / 2]) /
	       ((double)POPULATED_BYTES / (double)page);
}
