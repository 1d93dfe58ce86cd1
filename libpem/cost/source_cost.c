/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_cost.c - measure what an event of a source costs: of system calls, and of functions of
 * programs
 *
 * syscall, path, file: a call on a descriptor, one that takes a path, and those that open a file
 * and close it, in turn. All events of system calls are wanted, with the files that calls are on.
 * The way of a call through the kernel that has events is a longer one; its entry and its exit have
 * half of that each. pem-exercise makes these calls: a process of one thread. The paths are its
 * own. An open source slows the calls of all programs of the machine, and to open it takes some
 * 100 ms. So the plain turns come before it is opened and after it is closed, and the median of
 * some such cycles counts.
 *
 * kernel: all other events of the kernel count as the entry to a system call. What a switch of
 * threads or a page fault costs more than that stands beside (process_cost.c).
 *
 * uprobe, uretprobe: the same for a function of pem that does nothing, beside one without a probe.
 * A probe is really attached to it, in this process alone: kernels detach it some time after the
 * source is closed, so that the plain turns are between the others. This takes some ten
 * milliseconds, so it is measured when such an event is wanted for the first time.
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "source_host/source_host.h"
#include "model_internal.h"
#include "util.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROBE_EVENTS 200
#define CYCLES 3
#define TURNS 28
#define SYSCALL_EVENTS_MAX 8
#define DRAIN_NS 100000

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

static const char *no_version(void)
{
	return "";
}

/* The same for a function without a probe. */
static void call_plain(void *arg)
{
	const char *(*volatile function)(void) = no_version;

	(void)arg;
	function();
}

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

enum { PLAIN, LOGGED, COUNTED, WAYS };

/* Steps, and how they are observed meanwhile. */
struct observed {
	const struct pem_source_ops *ops;
	const struct pem_event *const *events;
	size_t event_count;
	const char *words; /* of steps that pem-exercise takes; NULL: see own */
	unsigned step_count;
	struct pem_exercise run; /* with words: the program */
	struct pem_stepper own, own_plain; /* without words: the step here, and its plain form */
	struct pem_source *source; /* set while it is open */
	int ended; /* no further records are to be drained */
	double turns[WAYS][STEPS_MAX][PEM_CACHES][TURNS]; /* of this cycle */
	double more[WAYS][STEPS_MAX][PEM_CACHES][CYCLES]; /* than plain */
};

/* What each step takes, by how it is observed. */
struct taken {
	struct pem_step steps[WAYS][STEPS_MAX];
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

/* Measure the plain steps, and let the program begin. */
static bool measure_plain(const struct observed *o, struct pem_step *plain)
{
	struct pem_exercised done;
	unsigned i;

	for (i = 0; i < o->step_count; i++) {
		if (o->words && !pem_exercise__do(&o->run, o->words[i], &done))
			return false;
		plain[i] = o->words ? done.step : pem_step__measure(&o->own_plain);
	}
	return true;
}

/* Let each step take one turn. */
static bool take_turns(struct observed *o, unsigned way, unsigned turn)
{
	enum pem_caches caches;
	double *ns;
	unsigned i;

	for (i = 0; i < o->step_count; i++) {
		for (caches = PEM_WARM; caches < PEM_CACHES; caches++) {
			ns = &o->turns[way][i][caches][turn];
			if (!o->words)
				*ns = pem_step__turn_ns(way == PLAIN ? &o->own_plain : &o->own,
							caches);
			else if (!pem_exercise__turn(&o->run, o->words[i], caches, ns))
				return false;
		}
	}
	return true;
}

/* Of a program, turns of a time in which no source is open. */
static bool take_plain_turns(struct observed *o, unsigned from, unsigned to)
{
	for (; o->words && from < to; from++) {
		if (!take_turns(o, PLAIN, from))
			return false;
	}
	return true;
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
					   .root_runs = 1,
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

/* Take turns while records are made, and taken out of the buffer, and while events are counted. */
static bool take_observed_turns(struct observed *o)
{
	bool done = true;
	pthread_t thread;
	unsigned turn;

	if (!start_draining(o, &thread))
		return false;
	for (turn = 0; done && turn < TURNS; turn++) {
		set_actions(o, PEM_ACTION_LOG);
		done = take_turns(o, LOGGED, turn);
		set_actions(o, PEM_ACTION_STAT);
		done = done && take_turns(o, COUNTED, turn) &&
		       (o->words || take_turns(o, PLAIN, turn));
	}
	__atomic_store_n(&o->ended, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return done;
}

static bool take_cycle(const struct pem_session *s, struct observed *o, unsigned cycle)
{
	double plain, observed;
	unsigned way, i, c;
	bool done;

	if (!take_plain_turns(o, 0, TURNS / 2) || !open_source(s, o))
		return false;
	done = !o->ops->start(o->source, NULL) && take_observed_turns(o);
	drain(o);
	o->ops->close(o->source);
	if (!done || !take_plain_turns(o, TURNS / 2, TURNS))
		return false;
	for (i = 0; i < o->step_count; i++) {
		for (c = 0; c < PEM_CACHES; c++) {
			plain = pem_step__typical(o->turns[PLAIN][i][c], TURNS);
			for (way = LOGGED; way < WAYS; way++) {
				observed = pem_step__typical(o->turns[way][i][c], TURNS);
				o->more[way][i][c][cycle] = observed - plain;
			}
		}
	}
	return true;
}

/* The median of the cycles. */
static double middle(double *cycles)
{
	qsort(cycles, CYCLES, sizeof(*cycles), pem_step__by_value);
	return cycles[CYCLES / 2];
}

/*
 * Measure what the steps take while events are logged and counted, and without. False: it could not
 * be measured. s: of whose options samples are.
 */
static bool measure_events(const struct pem_session *s, struct observed *o, struct taken *taken)
{
	const struct pem_step *plain = taken->steps[PLAIN];
	unsigned cycle = 0, way, i;
	bool done;

	o->step_count = o->words ? (unsigned)strlen(o->words) : 1;
	if (!o->ops || !o->event_count ||
	    (o->words && !pem_exercise__begin(&o->run, sched_getcpu(), environ)))
		return false;
	done = measure_plain(o, taken->steps[PLAIN]);
	while (done && cycle < CYCLES)
		done = take_cycle(s, o, cycle++);
	if (o->words)
		pem_exercise__end(&o->run);
	for (way = LOGGED; done && way < WAYS; way++) {
		for (i = 0; i < o->step_count; i++)
			taken->steps[way][i] = (struct pem_step){
				plain[i].warm + middle(o->more[way][i][PEM_WARM]),
				plain[i].cooler + middle(o->more[way][i][PEM_COOLER]),
				plain[i].cold + middle(o->more[way][i][PEM_COLD])};
	}
	return done;
}

/* What one event of a step costs that has this number of them. */
static struct pem_cost cost_of(const struct taken *taken, unsigned step, double events)
{
	return pem_cost__of(taken->steps[PLAIN][step], taken->steps[LOGGED][step],
			    taken->steps[COUNTED][step], events);
}

/* The cost of what a step has beside these calls, which have two events each, and this path. */
static struct pem_cost beside(const struct pem_cost *step, const struct pem_cost *call,
			      unsigned calls, const struct pem_cost *path)
{
	return (struct pem_cost){
		pem_cost__more(step->log_ns, 2 * calls * call->log_ns + path->log_ns),
		pem_cost__more(step->stat_ns, 2 * calls * call->stat_ns + path->stat_ns),
		pem_cost__more(step->cold_log_ns,
			       2 * calls * call->cold_log_ns + path->cold_log_ns),
		pem_cost__more(step->cold_stat_ns,
			       2 * calls * call->cold_stat_ns + path->cold_stat_ns),
		call->warm_gap_ns,
		call->half_gap_ns};
}

/* Measure a call on a descriptor, what a path costs beside its call, and what a new file costs. */
void pem_session__measure_calls(struct pem_session *s, const struct pem_source_ops *ops,
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
	*call_cost = cost_of(&t, 0, 2);
	whole = cost_of(&t, 1, 1);
	*path = beside(&whole, call_cost, 1, &none);
	whole = cost_of(&t, 2, 1);
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

struct pem_cost pem_session__measure_function(struct pem_session *s, const char *kind)
{
	struct pem_model *model = pem_model__new();
	const struct pem_event *event = model ? own_function(s, model, kind) : NULL;
	struct observed o = {.ops = source_of(s, event),
			     .events = &event,
			     .event_count = event ? 1 : 0,
			     .own = {call, NULL, pem_step__memory(), PROBE_EVENTS, 4, 0}};
	struct pem_cost cost = {0};
	struct taken taken;

	o.own_plain = o.own;
	o.own_plain.step = call_plain;
	if (o.own.memory && measure_events(s, &o, &taken))
		cost = cost_of(&taken, 0, 1);
	free((void *)o.own.memory);
	pem_model__free(model);
	return cost;
}
