/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * event_cost.c - measure what one event of each kind costs on this machine
 *
 * Each kind is measured by a step that raises it (steps.c), with warm caches and with cold ones:
 * what the step takes more when the event is logged, and when it is counted.
 *
 * user: a record of two fields into a private ring, by the inlines that stubs use, with the clock
 * read; one value added to a statistic by the same inlines.
 *
 * libc, stack: see libc_cost.c. sample: see sample_cost.c.
 *
 * syscall, path, file: a call on a descriptor, one that takes a path, and those that open a file
 * and close it, in turn. All events of system calls are wanted, with the files that calls are on.
 * The way of a call through the kernel that has events is a longer one; its entry and its exit have
 * half of that each. pem-exercise makes these calls: a process of one thread. The paths are its
 * own.
 *
 * kernel: all other events of the kernel count as the entry to a system call. What a switch of
 * threads or a page fault costs more than that stands beside (process_cost.c).
 *
 * uprobe, uretprobe: the same for a function of pem that does nothing. A probe is really attached
 * to it, in this process alone. This takes some ten milliseconds, so it is measured when such an
 * event is wanted for the first time.
 *
 * Not here: what counters cost beside their records (process_cost.c); which kinds are measured
 * when (calibrate.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "producer/producer.h"
#include "source_host/source_host.h"
#include "model_internal.h"
#include "util.h"

#include <pem/clock.h>
#include <pem/ring.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define USER_EVENTS 5000
#define PROBE_EVENTS 200
#define ROUNDS 3
#define SYSCALL_EVENTS_MAX 8
#define DRAIN_NS 100000
#define RING_BYTES (256u << 10)
#define PART_LEAST 0.02 /* of the way from warm to cold: a less one can't be told from none */

/* --- steps --- */

static void do_nothing(void *arg)
{
	(void)arg;
}

struct recording {
	uint8_t *memory;
	struct pem_writer writer;
	struct pem_cell cell;
	uint64_t value;
};

static void put_record(void *arg)
{
	struct recording *r = arg;
	uint64_t now = pem_clock();
	uint8_t *record = pem_ring_reserve(&r->writer, now, 24);

	if (!record) {
		r->writer.cursor = r->memory + PEM_PACKET_HEADER_BYTES;
		r->writer.last_clock = now;
		record = r->writer.cursor;
	}
	((uint64_t *)record)[1] = now;
	((uint64_t *)record)[2] = now;
	pem_ring_commit(&r->writer, &r->cell, now, 16, 24);
}

static void add_value(void *arg)
{
	struct recording *r = arg;

	pem_cell_add(&r->cell, 1, r->value, r->value);
	r->value++;
}

/*
 * The function that probes are attached to. It is exported anyway. It begins with an instruction
 * that the kernel does not have to step through (session.c). So do static probes, and functions
 * that begin by saving the frame pointer. Functions that begin with another instruction cost more
 * than is measured here, such as endbr64 where the kernel does not know it.
 */
static void call(void *arg)
{
	const char *(*volatile function)(void) = pem_version;

	(void)arg;
	function();
}

static double more(double with, double without)
{
	return with > without ? with - without : 0;
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

/* What one event of a step costs more. It costs no less the colder the caches are. */
static struct pem_step event_of(struct pem_step step, struct pem_step plain, double events)
{
	double warm = more(step.warm, plain.warm) / events;
	double cooler = greater(warm, more(step.cooler, plain.cooler) / events);

	return (struct pem_step){warm, cooler,
				 greater(cooler, more(step.cold, plain.cold) / events)};
}

/*
 * How much longer than in a loop programs work whose events cost half way from warm to cold: so
 * that those that cost what was measured work as long as was measured.
 */
static double half_gap(double longer_ns, struct pem_step event)
{
	double part = event.cold > event.warm
			      ? (event.cooler - event.warm) / (event.cold - event.warm)
			      : 1;

	part = part < PART_LEAST ? PART_LEAST : part > 1 - PART_LEAST ? 1 - PART_LEAST : part;
	return longer_ns * (1 - part) / part;
}

struct pem_cost pem_cost__of(struct pem_step plain, struct pem_step logged, struct pem_step counted,
			     double events)
{
	const struct pem_step log = event_of(logged, plain, events);
	const struct pem_step stat = event_of(counted, plain, events);
	double longer_ns = more(plain.cooler, plain.warm) / events;

	return (struct pem_cost){.log_ns = log.warm,
				 .stat_ns = stat.warm,
				 .cold_log_ns = log.cold,
				 .cold_stat_ns = stat.cold,
				 .warm_gap_ns = plain.warm / events,
				 .half_gap_ns = half_gap(longer_ns, log)};
}

static struct pem_cost user_cost(void)
{
	void (*const steps[])(void *) = {do_nothing, put_record, add_value};
	struct recording r = {.memory = malloc(RING_BYTES)};
	struct pem_cost cost = {0};
	struct pem_step taken[3];

	if (!r.memory)
		return cost;
	/* The first use of a page has a cost of its own (pem_page_ns()). */
	memset(r.memory, 1, RING_BYTES);
	r.writer.packet = (struct pem_packet *)r.memory;
	r.writer.cursor = r.writer.end = r.memory + RING_BYTES;
	if (pem_step__compare(steps, 3, USER_EVENTS, &r, taken))
		cost = pem_cost__of(taken[0], taken[1], taken[2], 1);
	free(r.memory);
	return cost;
}

/* --- events of sources --- */

static int forget(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	(void)arg;
	(void)name;
	(void)packet;
	(void)bytes;
	return 0;
}

static uint64_t same_time(void *arg, uint64_t monotonic_ns)
{
	(void)arg;
	return monotonic_ns;
}

/* The source that serves an event here and now. NULL: there is none. */
static const struct pem_source_ops *source_of(struct pem_session *s, const struct pem_event *event)
{
	const char *name;

	return event ? pem_session__find_plugin(s, NULL, event, &name, NULL) : NULL;
}

/*
 * Find the events of a tracepoint's system that a source serves; ops NULL: any. Returns how many,
 * at most SYSCALL_EVENTS_MAX. Their names may be any.
 */
static size_t find_events(struct pem_session *s, const char *system,
			  const struct pem_source_ops *ops, const struct pem_event **events)
{
	const struct pem_event *event;
	size_t count = 0, i;

	for (i = 0; i < pem_model__count(s->model) && count < SYSCALL_EVENTS_MAX; i++) {
		event = pem_model__event(s->model, i);
		if (event->source_kind == PEM_SOURCE_TRACEPOINT &&
		    !strncmp(event->source_name, system, strlen(system)) &&
		    (!ops || source_of(s, event) == ops))
			events[count++] = event;
	}
	return count;
}

const struct pem_source_ops *pem_session__kernel_source(struct pem_session *s)
{
	const struct pem_event *events[SYSCALL_EVENTS_MAX];

	return find_events(s, "raw_syscalls:sys_enter", NULL, events) ? source_of(s, events[0])
								      : NULL;
}

#define STEPS_MAX 3

/* Steps, and how they are observed meanwhile. */
struct observed {
	const struct pem_source_ops *ops;
	const struct pem_event *const *events;
	size_t event_count;
	const char *words; /* of steps that pem-exercise takes; NULL: this process calls call() */
	struct pem_exercise run; /* with words: the program */
	struct pem_source *source; /* set while it is open */
	int ended; /* no further records are to be drained */
};

/* What each step takes, by how it is observed. */
struct taken {
	struct pem_step plain[STEPS_MAX], logged[STEPS_MAX], counted[STEPS_MAX];
};

static void drain(struct observed *o)
{
	const struct pem_source_sink sink = {.write = forget, .clock_at = same_time};

	o->ops->drain(o->source, &sink, 0);
}

static void *drain_on(void *arg)
{
	const struct timespec pause = {.tv_nsec = DRAIN_NS};
	struct observed *o = arg;

	while (!__atomic_load_n(&o->ended, __ATOMIC_RELAXED)) {
		drain(o);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Start to drain as a recorder does: meanwhile, and on another CPU if there is one. */
static bool start_draining(struct observed *o, pthread_t *thread)
{
	pthread_attr_t attributes;
	int cpu = sched_getcpu();
	cpu_set_t others;
	bool started;

	if (pthread_attr_init(&attributes))
		return false;
	if (!sched_getaffinity(0, sizeof(others), &others) && cpu >= 0 && CPU_COUNT(&others) > 1) {
		CPU_CLR((unsigned)cpu, &others);
		pthread_attr_setaffinity_np(&attributes, sizeof(others), &others);
	}
	o->ended = 0;
	started = !pthread_create(thread, &attributes, drain_on, o);
	pthread_attr_destroy(&attributes);
	return started;
}

static bool measure_step(const struct observed *o, unsigned i, struct pem_step *step)
{
	struct pem_exercised done;

	if (!o->words) {
		*step = pem_step__measure(call, PROBE_EVENTS, NULL);
		return true;
	}
	if (!pem_exercise__do(&o->run, o->words[i], &done))
		return false;
	*step = done.step;
	return true;
}

/* Measure the steps in turn. The least of some rounds counts: other load adds time. */
static bool measure_steps(const struct observed *o, struct pem_step *taken)
{
	unsigned count = o->words ? (unsigned)strlen(o->words) : 1, r, i;
	struct pem_step one;

	for (r = 0; r < ROUNDS; r++) {
		for (i = 0; i < count; i++) {
			if (!measure_step(o, i, &one))
				return false;
			taken[i] = r ? pem_step__least(taken[i], one) : one;
		}
	}
	return true;
}

/* Measure the steps of a program that nobody observes. */
static bool measure_plain(struct observed *o, struct pem_step *taken)
{
	bool done = !o->words || pem_exercise__begin(&o->run, environ);

	done = done && measure_steps(o, taken);
	if (o->words)
		pem_exercise__end(&o->run);
	return done;
}

/* Measure them while records are made, and taken out of the buffer. */
static bool measure_logged(struct observed *o, struct pem_step *taken)
{
	pthread_t thread;
	bool done;

	if (!start_draining(o, &thread))
		return false;
	done = measure_steps(o, taken);
	__atomic_store_n(&o->ended, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return done;
}

static void set_actions(struct observed *o, uint32_t flags)
{
	size_t i;

	for (i = 0; i < o->event_count; i++)
		o->ops->set_action(o->source, i, PEM_ACTION(flags, PEM_NO_FIELD, 0, 0, 1));
}

/* Open the source for the program, or for this process. */
static bool open_source(const struct pem_session *s, struct observed *o)
{
	struct pem_source_event *wanted = calloc(o->event_count + 1, sizeof(*wanted));
	struct pem_source_config config = {.size = sizeof(config),
					   .root = o->words ? o->run.pid : getpid(),
					   .root_runs = !o->words,
					   .no_follow = 1,
					   .sets_thread = pem_session__event_that_sets_thread(s),
					   .session_id = s->id,
					   .library_path = s->sources->library_path,
					   .events = wanted,
					   .event_count = o->event_count,
					   .sample_hz = s->options.sample_hz,
					   .sample_stacks = (uint32_t)s->options.sample_stacks};
	bool opened = false;
	size_t i;

	for (i = 0; wanted && i < o->event_count; i++) {
		wanted[i].event = o->events[i];
		wanted[i].action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	}
	if (wanted && o->ops && o->event_count)
		opened = !o->ops->open(&config, &o->source, NULL);
	free(wanted);
	return opened;
}

/*
 * Measure what the steps take while events are logged and counted, and without. False: it could not
 * be measured. s: of whose options samples are.
 */
static bool measure_events(const struct pem_session *s, struct observed *o, struct taken *taken)
{
	bool done = false;

	if (!o->ops || !o->event_count || !measure_plain(o, taken->plain) ||
	    (o->words && !pem_exercise__begin(&o->run, environ)))
		return false;
	if (open_source(s, o)) {
		if (!o->ops->start(o->source, NULL) && measure_logged(o, taken->logged)) {
			set_actions(o, PEM_ACTION_STAT);
			done = measure_steps(o, taken->counted);
		}
		drain(o);
		o->ops->close(o->source);
	}
	if (o->words)
		pem_exercise__end(&o->run);
	return done;
}

/* The cost of what a step has beside these calls, which have two events each, and this path. */
static struct pem_cost beside(const struct pem_cost *step, const struct pem_cost *call,
			      unsigned calls, const struct pem_cost *path)
{
	return (struct pem_cost){
		more(step->log_ns, 2 * calls * call->log_ns + path->log_ns),
		more(step->stat_ns, 2 * calls * call->stat_ns + path->stat_ns),
		more(step->cold_log_ns, 2 * calls * call->cold_log_ns + path->cold_log_ns),
		more(step->cold_stat_ns, 2 * calls * call->cold_stat_ns + path->cold_stat_ns),
		call->warm_gap_ns,
		call->half_gap_ns};
}

/* Measure a call on a descriptor, what a path costs beside its call, and what a new file costs. */
static void measure_calls(struct pem_session *s, const struct pem_source_ops *ops,
			  struct pem_cost *each)
{
	static const struct pem_cost none = {0};
	const struct pem_event *events[SYSCALL_EVENTS_MAX];
	static const char words[] = {PEM_EXERCISE_CALL, PEM_EXERCISE_PATH, PEM_EXERCISE_OPEN, 0};
	struct observed o = {.ops = ops, .events = events, .words = words};
	struct pem_cost *call_cost = &each[PEM_COST_SYSCALL], *path = &each[PEM_COST_PATH], whole;
	struct taken t;

	o.event_count = ops ? find_events(s, "raw_syscalls:", ops, events) : 0;
	if (!measure_events(s, &o, &t))
		return;
	*call_cost = pem_cost__of(t.plain[0], t.logged[0], t.counted[0], 2);
	whole = pem_cost__of(t.plain[1], t.logged[1], t.counted[1], 1);
	*path = beside(&whole, call_cost, 1, &none);
	whole = pem_cost__of(t.plain[2], t.logged[2], t.counted[2], 1);
	each[PEM_COST_FILE] = beside(&whole, call_cost, 3, path);
	each[PEM_COST_KERNEL] = *call_cost;
}

/* --- functions of programs --- */

static int describe(void *arg, const struct pem_event *event)
{
	return pem_model__describe(arg, event, NULL);
}

/* Find the event of this function's entry, or of its return. NULL: no source finds it. */
static const struct pem_event *own_function(struct pem_session *s, struct pem_model *model,
					    const char *kind)
{
	char path[PATH_MAX], pattern[PATH_MAX + 64];
	const struct pem_source_plugin *plugin;
	Dl_info info;

	/*
	 * A program may have entries of its own for exported functions of libpem. So dladdr() gets
	 * the address of a function that is not exported.
	 */
	if (!dladdr((void *)(uintptr_t)call, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, path))
		return NULL;
	snprintf(pattern, sizeof(pattern), "%s:%s:pem_version", kind, path);
	pem_session__load_plugins(s);
	for (plugin = s->sources->plugins; plugin; plugin = plugin->next) {
		if (plugin->ops->find && plugin->ops->find(pattern, describe, model, NULL) == 1)
			return pem_model__event(model, pem_model__count(model) - 1);
	}
	return NULL;
}

static struct pem_cost measure_function(struct pem_session *s, const char *kind)
{
	struct pem_model *model = pem_model__new();
	const struct pem_event *event = model ? own_function(s, model, kind) : NULL;
	struct observed o = {
		.ops = source_of(s, event), .events = &event, .event_count = event ? 1 : 0};
	struct pem_cost cost = {0};
	struct taken taken;

	if (measure_events(s, &o, &taken))
		cost = pem_cost__of(taken.plain[0], taken.logged[0], taken.counted[0], 1);
	pem_model__free(model);
	return cost;
}

/* --- all kinds --- */

static struct pem_cost measure_sample(unsigned kind)
{
	double ns = pem_sample_ns((enum pem_stacks)(kind - PEM_COST_SAMPLE));

	return (struct pem_cost){.log_ns = ns, .cold_log_ns = ns};
}

/* As it is remembered. */
static struct pem_cost kept(const struct pem_cost *cost)
{
	return (struct pem_cost){pem_cost__rounded(cost->log_ns),
				 pem_cost__rounded(cost->stat_ns),
				 pem_cost__rounded(greater(cost->cold_log_ns, cost->log_ns)),
				 pem_cost__rounded(greater(cost->cold_stat_ns, cost->stat_ns)),
				 pem_cost__rounded(cost->warm_gap_ns),
				 pem_cost__rounded(cost->half_gap_ns)};
}

void pem_session__measure_kinds(struct pem_session *s, uint32_t kinds,
				const struct pem_source_ops *kernel, struct pem_costs *costs)
{
	struct pem_cost *each = costs->each;
	unsigned i;

	if (kinds >> PEM_COST_USER & 1)
		each[PEM_COST_USER] = user_cost();
	if (kinds >> PEM_COST_LIBC & 1)
		each[PEM_COST_LIBC] = pem_libc_cost(&costs->lost_ns);
	if (kinds & PEM_COST_KERNEL_KINDS)
		measure_calls(s, kernel, each);
	if (kinds >> PEM_COST_UPROBE & 1)
		each[PEM_COST_UPROBE] = measure_function(s, "uprobe");
	if (kinds >> PEM_COST_URETPROBE & 1)
		each[PEM_COST_URETPROBE] = measure_function(s, "uretprobe");
	for (i = PEM_COST_SAMPLE; i <= PEM_COST_SAMPLE_TABLES; i++) {
		if (kinds >> i & 1)
			each[i] = measure_sample(i);
	}
	if (kinds & PEM_COST_STACK_KINDS)
		pem_stack_cost(&each[PEM_COST_LIBC], &each[PEM_COST_STACK], &each[PEM_COST_CALL]);
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (kinds >> i & 1)
			each[i] = kept(&each[i]);
	}
	costs->lost_ns = pem_cost__rounded(costs->lost_ns);
}
