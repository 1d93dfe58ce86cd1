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
 * libc: see libc_cost.c. process-start: see start_cost.c. sample: see sample_cost.c.
 *
 * syscall, path: a call on a descriptor, and one that takes a path. All events of system calls are
 * wanted, with the files that calls are on. The way of a call through the kernel that has events is
 * a longer one; its entry and its exit have half of that each.
 *
 * kernel: the entry to a system call alone, for all other events of the kernel.
 *
 * uprobe, uretprobe: the same for a function of pem that does nothing. A probe is really attached
 * to it, in this process alone. This takes some ten milliseconds, so it is measured when such an
 * event is wanted for the first time.
 *
 * Not here: what counters cost beside their records (counting_cost.c); which kinds are measured
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
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define USER_EVENTS 5000
#define KERNEL_EVENTS 400
#define PATH_TRIES 3 /* the cost of a path is a small difference of large ones */
#define SYSCALL_EVENTS_MAX 8
#define DRAIN_NS 100000
#define RING_BYTES (256u << 10)

static double cycles_to_ns(double cycles)
{
	return cycles * 1e9 / (double)pem_clock__hz();
}

/* --- steps --- */

/*
 * A call of the program's own: those that libpem makes by its hidden functions are marked as pem's,
 * and are no events (pem/internal.h).
 */
static long (*program_call)(long number, ...);

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

static void seek(void *arg)
{
	program_call(SYS_lseek, *(int *)arg, 0, SEEK_CUR);
}

static void ask_for_path(void *arg)
{
	(void)arg;
	program_call(SYS_faccessat, AT_FDCWD, "/dev/null", F_OK);
}

static void ask_for_parent(void *arg)
{
	(void)arg;
	program_call(SYS_getppid);
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

/* What a step takes in ns. */
static struct pem_step measure(void (*step)(void *), unsigned count, void (*between)(void *),
			       void *arg)
{
	struct pem_step taken = pem_step__measure(step, count, between, arg);

	return (struct pem_step){cycles_to_ns(taken.warm), cycles_to_ns(taken.cold)};
}

static double more(double with, double without)
{
	return with > without ? with - without : 0;
}

static struct pem_cost cost_of(struct pem_step without, struct pem_step logged,
			       struct pem_step counted, double events)
{
	return (struct pem_cost){.log_ns = more(logged.warm, without.warm) / events,
				 .stat_ns = more(counted.warm, without.warm) / events,
				 .cold_log_ns = more(logged.cold, without.cold) / events,
				 .cold_stat_ns = more(counted.cold, without.cold) / events};
}

static struct pem_cost user_cost(void)
{
	struct recording r = {.memory = calloc(1, RING_BYTES)};
	struct pem_step nothing, logged, counted;

	if (!r.memory)
		return (struct pem_cost){0};
	r.writer.packet = (struct pem_packet *)r.memory;
	r.writer.cursor = r.writer.end = r.memory + RING_BYTES;
	nothing = measure(do_nothing, USER_EVENTS, NULL, NULL);
	logged = measure(put_record, USER_EVENTS, NULL, &r);
	memset(&r.cell, 0, sizeof(r.cell));
	counted = measure(add_value, USER_EVENTS, NULL, &r);
	free(r.memory);
	return cost_of(nothing, logged, counted, 1);
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

/* A step, and how it is observed meanwhile. */
struct observed {
	const struct pem_source_ops *ops;
	const struct pem_event *const *events;
	size_t event_count;
	void (*step)(void *arg);
	void *arg;
	struct pem_source *source; /* set while it is open */
	int ended; /* no further records are to be drained */
};

static void take_step(void *arg)
{
	struct observed *o = arg;

	o->step(o->arg);
}

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

static struct pem_step measure_observed(struct observed *o)
{
	return measure(take_step, KERNEL_EVENTS, NULL, o);
}

/* As above, while records are made, and taken out of the buffer. */
static struct pem_step measure_logged(struct observed *o)
{
	struct pem_step taken = {0, 0};
	pthread_t thread;

	if (!start_draining(o, &thread))
		return taken;
	taken = measure_observed(o);
	__atomic_store_n(&o->ended, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return taken;
}

static void set_actions(struct observed *o, uint32_t flags)
{
	size_t i;

	for (i = 0; i < o->event_count; i++)
		o->ops->set_action(o->source, i, PEM_ACTION(flags, PEM_NO_FIELD, 0, 0, 1));
}

/*
 * Measure what a step takes more while events are logged and counted, and divide it by per_step. A
 * cost of 0 could not be measured. s: of whose options samples are.
 */
static struct pem_cost measure_events(const struct pem_session *s, struct observed *o,
				      double per_step)
{
	struct pem_source_event *wanted = calloc(o->event_count + 1, sizeof(*wanted));
	struct pem_source_config config = {.size = sizeof(config),
					   .root = getpid(),
					   .root_runs = 1,
					   .no_follow = 1,
					   .sets_thread = pem_session__event_that_sets_thread(s),
					   .session_id = s->id,
					   .library_path = s->sources->library_path,
					   .events = wanted,
					   .event_count = o->event_count,
					   .sample_hz = s->options.sample_hz,
					   .sample_stacks = (uint32_t)s->options.sample_stacks};
	struct pem_step without, logged = {0}, counted = {0};
	size_t i;

	for (i = 0; wanted && i < o->event_count; i++) {
		wanted[i].event = o->events[i];
		wanted[i].action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	}
	if (!wanted || !o->ops || !o->event_count || o->ops->open(&config, &o->source, NULL)) {
		free(wanted);
		return (struct pem_cost){0};
	}
	without = measure_observed(o);
	if (!o->ops->start(o->source, NULL)) {
		logged = measure_logged(o);
		set_actions(o, PEM_ACTION_STAT);
		counted = measure_observed(o);
	}
	drain(o);
	o->ops->close(o->source);
	free(wanted);
	return cost_of(without, logged, counted, per_step);
}

/* Measure a call with the events of this source's tracepoints whose names begin so. */
static struct pem_cost measure_calls(struct pem_session *s, const struct pem_source_ops *ops,
				     const char *tracepoints, void (*step)(void *), double per_step)
{
	const struct pem_event *events[SYSCALL_EVENTS_MAX];
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct observed o = {.ops = ops, .events = events, .step = step, .arg = &fd};
	struct pem_cost cost;

	*(void **)&program_call = dlsym(RTLD_DEFAULT, "syscall");
	o.event_count = ops && program_call ? find_events(s, tracepoints, ops, events) : 0;
	cost = measure_events(s, &o, per_step);
	if (fd >= 0)
		close(fd);
	return cost;
}

static int by_log_ns(const void *a, const void *b)
{
	const struct pem_cost *x = a, *y = b;

	return x->log_ns < y->log_ns ? -1 : x->log_ns > y->log_ns;
}

/* What the path of a call costs beside the call's entry and exit: the median of some tries. */
static struct pem_cost measure_path(struct pem_session *s, const struct pem_source_ops *ops,
				    const struct pem_cost *call_cost)
{
	struct pem_cost tries[PATH_TRIES], whole;
	size_t i;

	for (i = 0; i < PATH_TRIES; i++) {
		whole = measure_calls(s, ops, "raw_syscalls:", ask_for_path, 1);
		tries[i] = (struct pem_cost){
			.log_ns = more(whole.log_ns, 2 * call_cost->log_ns),
			.stat_ns = more(whole.stat_ns, 2 * call_cost->stat_ns),
			.cold_log_ns = more(whole.cold_log_ns, 2 * call_cost->cold_log_ns),
			.cold_stat_ns = more(whole.cold_stat_ns, 2 * call_cost->cold_stat_ns)};
	}
	qsort(tries, PATH_TRIES, sizeof(*tries), by_log_ns);
	return tries[PATH_TRIES / 2];
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
	struct observed o = {.ops = source_of(s, event),
			     .events = &event,
			     .event_count = event ? 1 : 0,
			     .step = call};
	struct pem_cost cost = measure_events(s, &o, 1);

	pem_model__free(model);
	return cost;
}

/* --- all kinds --- */

static struct pem_cost measure_sample(unsigned kind)
{
	double ns = pem_sample_ns((enum pem_stacks)(kind - PEM_COST_SAMPLE));

	return (struct pem_cost){.log_ns = ns, .cold_log_ns = ns};
}

struct pem_cost pem_session__measure_kind(struct pem_session *s, unsigned kind,
					  const struct pem_source_ops *kernel,
					  const struct pem_costs *costs)
{
	struct pem_cost cost;

	switch (kind) {
	case PEM_COST_USER:
		cost = user_cost();
		break;
	case PEM_COST_LIBC:
		cost = pem_libc_cost();
		break;
	case PEM_COST_SYSCALL:
		cost = measure_calls(s, kernel, "raw_syscalls:", seek, 2);
		break;
	case PEM_COST_PATH:
		cost = measure_path(s, kernel, &costs->each[PEM_COST_SYSCALL]);
		break;
	case PEM_COST_KERNEL:
		cost = measure_calls(s, kernel, "raw_syscalls:sys_enter", ask_for_parent, 1);
		break;
	case PEM_COST_UPROBE:
	case PEM_COST_URETPROBE:
		cost = measure_function(s, kind == PEM_COST_UPROBE ? "uprobe" : "uretprobe");
		break;
	default:
		cost = measure_sample(kind);
		break;
	}
	return (struct pem_cost){
		pem_cost__rounded(cost.log_ns), pem_cost__rounded(cost.stat_ns),
		pem_cost__rounded(more(cost.cold_log_ns, cost.log_ns) + cost.log_ns),
		pem_cost__rounded(more(cost.cold_stat_ns, cost.stat_ns) + cost.stat_ns)};
}
