/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.c - the kernel source's plugin interface: demands, counts, start and stop (contract:
 * source.h)
 *
 * Demands are control words that the programs read. Statistics are cells that the programs write.
 * Both are mapped, so changing and reading them needs no system call. read_statistic and set_action
 * are safe in any thread.
 */
#include "kernel.h"

#include <pem/distribution.h>

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FINAL_TRIES 100 /* waits of 1 ms for a record that is reserved and not yet committed */

static bool is_ours(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT ||
	       event->source_kind == PEM_SOURCE_PROBE || event->source_kind == PEM_SOURCE_USDT ||
	       event->source_kind == PEM_SOURCE_UPROBE;
}

static int can_deliver(const struct pem_event *event, struct pem_error *reason)
{
	struct pem_probe *probe;
	int index, able;

	if (!is_ours(event))
		return -ENOENT;
	if (!pem_kernel__can_load(reason))
		return 0;
	index = pem_kernel__find(event->id);
	if (index < 0) {
		probe = pem_probe__of_event(event, reason);
		able = probe && pem_kernel__can_attach(probe->kind, reason);
		pem_probe__free(probe);
		return able;
	}
	return pem_kernel__choose((unsigned)index, 0, reason) >= 0;
}

static bool is_restricted(const struct pem_context *context)
{
	return context->pid != PEM_ANY || context->tid != PEM_ANY || context->one_cpu;
}

static bool same_context(const struct pem_context *a, const struct pem_context *b)
{
	return a->pid == b->pid && a->tid == b->tid && pem_context__cpu(a) == pem_context__cpu(b);
}

/*
 * Can the source deliver the session's event i? Sets its index. Returns 0; or -errno, with a
 * sentence in error unless why() has the sentence.
 */
static int take_demand(struct pem_source *source, size_t i, const struct pem_source_event *event,
		       struct pem_error *error)
{
	struct pem_source_demand *demand = &source->common.demands[i];
	int index = pem_kernel__find(event->event->id);
	uint32_t tests = event->test_count;
	size_t j;

	if (!is_ours(event->event))
		return -ENOENT;
	if (index < 0 && event->gates)
		return pem_error__set(error, -ENOTSUP,
				      "probes can't be counted 'inside' or 'from'; events of the "
				      "catalogue can");
	if (index >= 0 && event->gates && pem_kernel__event((uint32_t)index)->is_of_another)
		return pem_error__set(error, -ENOTSUP,
				      "%s can't be counted 'inside' or 'from': it is of a thread "
				      "that need not be the one that runs",
				      event->event->name);
	if (index < 0)
		index = pem_source__take_probe(source, event->event, error);
	if (index < 0)
		return index;
	atomic_store_explicit(&demand->index, (uint32_t)index, memory_order_relaxed);
	for (j = 0; j < i; j++) {
		/* There is one cell and one control word per event. */
		if (!source->common.demands[j].error &&
		    source->common.demands[j].index == demand->index)
			return -EBUSY;
		tests += source->common.demands[j].error ? 0 : source->common.demands[j].test_count;
	}
	if (tests > PEM_KTESTS_MAX)
		return -E2BIG;
	source->common.demands_thread_event |= index == source->context_index;
	return 0;
}

static const char *why(int error)
{
	return error == -EBUSY   ? "asked for twice; the first one counts"
	       : error == -E2BIG ? "the events' predicates have more tests than there is room for"
				 : "no BPF program in this build";
}

static void set_filter(struct pem_source *source, unsigned index, const struct pem_context *context)
{
	struct pem_kfilter *filter = &source->control->filter[index];

	filter->pid = context->pid;
	filter->tid = context->tid;
	filter->cpu = pem_context__cpu(context);
}

/*
 * Set the context in which switches are logged for the other events. It is the context of these
 * events if all have one in common, else any.
 */
static void set_context_filter(struct pem_source *source)
{
	struct pem_context any = {0}, common = any;
	uint32_t flags = PEM_ACTION_LOG;
	bool first = true;
	size_t i;

	for (i = 0; i < source->common.demand_count; i++) {
		if (source->common.demands[i].error)
			continue;
		if (first)
			common = source->common.demands[i].context;
		else if (!same_context(&common, &source->common.demands[i].context))
			common = any;
		first = false;
	}
	if (source->root)
		flags |= PEM_KACTION_TREE;
	if (is_restricted(&common))
		flags |= PEM_ACTION_FILTER;
	if (source->context_index >= 0 && !source->common.demands_thread_event)
		set_filter(source, (unsigned)source->context_index, &common);
	source->control->context_flags = source->common.beside ? 0 : flags;
}

static int set_action(struct pem_source *source, size_t i, uint64_t action)
{
	struct pem_source_demand *demand;
	uint64_t word;
	bool logging;
	int error;

	demand = pem_source_demands__get(source, i, &error);
	if (!demand)
		return error;
	logging = action & PEM_ACTION_LOG;
	word = (action & ~0xffULL) | (action & PEM_SOURCE_DEMAND_FLAGS);
	if (source->root)
		word |= PEM_KACTION_TREE;
	if (is_restricted(&demand->context))
		word |= PEM_ACTION_FILTER;
	if (!(action & PEM_SOURCE_DEMAND_WANTS))
		word = 0;
	atomic_store_explicit(&demand->action, action, memory_order_relaxed);
	if (logging)
		atomic_store_explicit(&demand->logged, true, memory_order_relaxed);
	/*
	 * none: Switches are logged before the event is, and until after it. Programs load control
	 * words in any order.
	 */
	if (logging && !atomic_exchange_explicit(&demand->logging, true, memory_order_relaxed))
		__atomic_fetch_add(&source->control->logging, 1, __ATOMIC_SEQ_CST);
	/* none: programs load control words in any order */
	__atomic_store_n(&source->control->action[demand->index], word, __ATOMIC_SEQ_CST);
	/* none: programs load control words in any order */
	if (!logging && atomic_exchange_explicit(&demand->logging, false, memory_order_relaxed))
		__atomic_fetch_sub(&source->control->logging, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int keep(struct pem_source *source, size_t i, uint32_t distribution)
{
	struct pem_source_demand *demand;
	int error;

	demand = pem_source_demands__get(source, i, &error);
	if (!demand)
		return error;
	atomic_store_explicit(&demand->distribution, distribution, memory_order_relaxed);
	__atomic_store_n(&source->control->filter[demand->index].distribution, distribution,
			 __ATOMIC_RELAXED);
	return 0;
}

static int add_target(struct pem_source *source, pid_t pid)
{
	uint32_t cpu;
	int rc;

	if (!source->root)
		return -ENOTSUP;
	rc = pem_source__add_target(source, pid);
	/* A CPU on which the process runs now has the answer that it is no target. */
	for (cpu = 0; !rc && cpu < source->common.cpu_count; cpu++)
		__atomic_store_n(&pem_source__ring(source, cpu)->context, PEM_KRING_CONTEXT_UNKNOWN,
				 __ATOMIC_RELAXED);
	return rc == -E2BIG ? -ENOSPC : rc;
}

/* --- cells and counts, for demands.c --- */

static uint64_t misses_of(const struct pem_source *source, unsigned index)
{
	unsigned known = pem_kernel__event_count();

	return index < known ? source->programs[index].misses
			     : source->probes[index - known].misses;
}

/*
 * Count what the programs counted. A run that the kernel refused, because the program was already
 * running on that CPU, counts as a lost event, even if it was possibly not wanted. Records left in
 * a damaged ring are discarded.
 */
static void count_event(const struct pem_source *source, unsigned index, bool logged,
			struct pem_balance *balance)
{
	const struct pem_cell *cell;
	uint64_t produced, discarded;
	uint32_t cpu;

	for (cpu = 0; cpu < source->common.cpu_count; cpu++) {
		cell = &pem_source__ring(source, cpu)->cells[index];
		produced = __atomic_load_n(&cell->produced, __ATOMIC_RELAXED);
		discarded = __atomic_load_n(&cell->discarded, __ATOMIC_RELAXED);
		if (source->cpus[cpu].broken)
			discarded = produced - source->cpus[cpu].read[index];
		balance->produced += produced;
		balance->discarded += discarded;
	}
	if (logged || balance->produced) {
		balance->produced += misses_of(source, index);
		balance->discarded += misses_of(source, index);
	}
}

static void count(struct pem_source *source, struct pem_source_demand *demand,
		  struct pem_balance *balance)
{
	if (demand)
		count_event(source, demand->index,
			    atomic_load_explicit(&demand->logged, memory_order_relaxed), balance);
	else
		count_event(source, (unsigned)source->context_index, false, balance);
}

static const struct pem_cell *cell_of(struct pem_source *source, struct pem_source_demand *demand,
				      uint32_t cpu, uint32_t part)
{
	(void)part;
	return &pem_source__ring(source, cpu)->cells[demand->index];
}

static const struct pem_distribution *distribution_of(const struct pem_source *source,
						      uint32_t index, uint32_t cpu, uint32_t part)
{
	(void)part;
	return &source->distributions[(size_t)cpu * PEM_DISTRIBUTION_COUNT + index];
}

static const struct pem_source_demand_ops demand_ops = {
	.name = "kernel",
	.parts = 1,
	.cell = cell_of,
	.distribution = distribution_of,
	.count = count,
};

static void close_source(struct pem_source *source)
{
	if (!source)
		return;
	pem_source__detach(source);
	pem_source__unload(source);
	pem_source__free_probes(source);
	pem_source__free_processes(source);
	free(source->packet);
	free(source->cpus);
	pem_source_demands__free(source);
	free(source);
}

static int allocate(struct pem_source *source, const struct pem_source_config *config)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return cpus;
	source->common.cpu_count = (uint32_t)cpus;
	source->cpus = calloc((size_t)cpus, sizeof(*source->cpus));
	source->packet = calloc(1, PEM_KERNEL_PACKET_BYTES);
	if (!source->cpus || !source->packet)
		return -ENOMEM;
	pem_source_demands__take(source, config, take_demand, why);
	return 0;
}

static int open_source(const struct pem_source_config *config, struct pem_source **result,
		       struct pem_error *error)
{
	struct pem_source *source;
	size_t i;
	int rc;

	if (config->size < sizeof(*config))
		return pem_error__set(error, -EINVAL, "the kernel source is newer than libpem");
	if (!pem_kernel__can_load(error))
		return -EPERM;
	source = calloc(1, sizeof(*source));
	if (!source)
		return pem_error__set(error, -ENOMEM, "out of memory");
	source->root = config->root;
	source->no_follow = config->no_follow;
	source->by_process = config->by_process;
	source->forgets = config->forgets;
	source->session_id = config->session_id;
	if (config->library_path && strlen(config->library_path) < sizeof(source->library_path))
		strcpy(source->library_path, config->library_path);
	source->buffer_bytes = config->buffer_bytes;
	source->context_index = pem_kernel__sets_thread();
	source->common.has_thread_event = source->context_index >= 0;
	rc = pem_source_demands__init(source, &demand_ops, config);
	if (!rc)
		rc = allocate(source, config);
	if (rc) {
		pem_error__set(error, rc, "can't prepare the kernel source: %s", strerror(-rc));
		goto out;
	}
	rc = pem_source__load(source, error);
	if (rc)
		goto out;
	for (i = 0; i < source->common.demand_count; i++) {
		if (source->common.demands[i].error)
			continue;
		set_filter(source, source->common.demands[i].index,
			   &source->common.demands[i].context);
		keep(source, i, config->events[i].distribution);
	}
	set_context_filter(source);
	*result = source;
	source = NULL;
out:
	close_source(source);
	return rc;
}

/*
 * Demands take effect after all programs are attached, which takes some milliseconds. So if a begin
 * is recorded, its end is, too.
 */
static int start(struct pem_source *source, struct pem_error *error)
{
	size_t i;
	int rc;

	if (source->started)
		return 0;
	rc = pem_source__attach(source, error);
	if (rc)
		return rc;
	for (i = 0; i < source->common.demand_count; i++)
		set_action(source, i,
			   atomic_load_explicit(&source->common.demands[i].action,
						memory_order_relaxed));
	source->started = true;
	return 0;
}

static void stop(struct pem_source *source)
{
	unsigned i;

	if (source->stopped)
		return;
	source->stopped = true;
	/* none: programs load control words in any order */
	__atomic_store_n(&source->control->logging, 0, __ATOMIC_SEQ_CST);
	/* none: programs load control words in any order */
	for (i = 0; i < PEM_KRING_EVENTS_MAX; i++)
		__atomic_store_n(&source->control->action[i], 0, __ATOMIC_SEQ_CST);
	pem_source__detach(source);
	pem_source_demands__say_targets_lost(source, source->control->targets_lost);
	if (source->control->values_lost)
		pem_source__log(
			source, PEM_LOG_WARNING,
			"kernel: statistics of probes lack %llu events: a thread was preempted "
			"while it counted one, and others came to the same place on its CPU",
			(unsigned long long)source->control->values_lost);
}

#define TELL_EACH_NS 1000000000u

/* What was told once is overwritten after a while: each second all that is used is told again. */
static void tell_each_second(struct pem_source *source)
{
	uint64_t now_ns;

	if (!source->forgets)
		return;
	now_ns = pem_kernel__now_ns();
	if (now_ns - source->told_ns < TELL_EACH_NS)
		return;
	source->told_ns = now_ns;
	pem_source__tell_again(source);
}

static int drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int rc, tries, more;

	tell_each_second(source);
	if (final)
		stop(source);
	rc = pem_source__drain_rings(source, sink);
	if (!final)
		return rc;
	for (tries = 0; tries < FINAL_TRIES && !pem_source__is_drained(source); tries++) {
		nanosleep(&pause, NULL);
		more = pem_source__drain_rings(source, sink);
		rc = rc ? rc : more;
	}
	pem_source__give_up_rest(source);
	return rc;
}

struct finding {
	int (*found)(void *arg, const struct pem_event *event);
	void *arg;
};

static int tell(void *arg, struct pem_probe *probe)
{
	struct pem_field fields[PEM_PROBE_FIELDS_MAX];
	const struct finding *finding = arg;
	struct pem_event event;
	int rc;

	pem_probe__as_event(probe, &event, fields);
	rc = finding->found(finding->arg, &event);
	pem_probe_cache__keep(probe);
	return rc;
}

static int find(const char *pattern, int (*found)(void *arg, const struct pem_event *event),
		void *arg, struct pem_error *error)
{
	struct finding finding = {found, arg};

	return pem_probe__find(pattern, tell, &finding, error);
}

__attribute__((visibility("default"))) const struct pem_source_ops pem_source = {
	.size = sizeof(struct pem_source_ops),
	.abi_version = PEM_SOURCE_ABI_VERSION,
	.name = "BPF",
	.can_deliver = can_deliver,
	.open = open_source,
	.start = start,
	.set_action = set_action,
	.read_statistic = pem_source_demands__read,
	.each_statistic = pem_source_demands__each,
	.each_process = pem_source__each_process,
	.keep = keep,
	.find = find,
	.usable = pem_kernel__can_load,
	.drain = drain,
	.add_target = add_target,
	.each_target = pem_source__each_target,
	.set_gates = pem_source__set_gates,
	.outer_tid = pem_source__outer_tid,
	.internal_calls = pem_source__internal_calls,
	.balance = pem_source_demands__balance,
	.close = close_source,
};
