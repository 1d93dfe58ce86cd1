/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.c - the kernel source's plugin interface: wishes, statistics, balance (contract: source.h)
 *
 * What is wanted lies in control words that the programs read, statistics in slots that they write, both mapped:
 * changing and reading them costs no system call. read_statistic and set_action are safe in any thread.
 */
#include "kernel.h"
#include "sources/statistic.h"

#include <pem/ring.h>
#include <pem/wide.h>

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STAT_TRIES 1000 /* an update takes some 10 ns, so that many mean a CPU that stands still */
#define FINAL_TRIES 100 /* of 1 ms, for a record reserved and not yet committed */

#define KEPT_FLAGS (PEM_ACTION_LOG | PEM_ACTION_STAT | PEM_ACTION_WIDE)
#define WANTED_FLAGS (PEM_ACTION_LOG | PEM_ACTION_STAT)

void pem_source__log(const struct pem_source *source, enum pem_log_level level, const char *format,
		     ...)
{
	char text[1024];
	va_list args;

	if (!source->log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	source->log(level, text, source->log_arg);
}

static bool is_ours(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT ||
	       event->source_kind == PEM_SOURCE_PROBE || event->source_kind == PEM_SOURCE_USDT;
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
		probe = event->source_kind == PEM_SOURCE_USDT ? pem_probe__of_static(event, reason)
							      : pem_probe__of_event(event, reason);
		able = probe && pem_kernel__can_attach(probe->kind, reason);
		pem_probe__free(probe);
		return able;
	}
	return pem_kernel__choose((unsigned)index, 0, reason) >= 0;
}

static bool is_restricted(const struct pem_context *context)
{
	return context->pid != PEM_ANY || context->tid != PEM_ANY || context->cpu != PEM_NO_CPU;
}

static bool same_context(const struct pem_context *a, const struct pem_context *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->cpu == b->cpu;
}

/* Can the session's event i be served? Sets its index; 0, or -errno, with a sentence in error if it is not why()'s. */
static int take_wish(struct pem_source *source, size_t i, const struct pem_source_event *event,
		     struct pem_error *error)
{
	struct pem_kernel_wish *wish = &source->wishes[i];
	int index = pem_kernel__find(event->event->id);
	uint32_t tests = event->test_count;
	size_t j;

	wish->event = event->event;
	wish->context = event->context;
	wish->tests = event->tests;
	wish->test_count = event->test_count;
	if (!is_ours(event->event))
		return -ENOENT;
	if (index < 0)
		index = pem_source__take_probe(source, event->event, error);
	if (index < 0)
		return index;
	wish->index = (unsigned)index;
	for (j = 0; j < i; j++) {
		/* One slot and one control word per event. */
		if (!source->wishes[j].error && source->wishes[j].index == wish->index)
			return -EBUSY;
		tests += source->wishes[j].error ? 0 : source->wishes[j].test_count;
	}
	if (tests > PEM_KTESTS_MAX)
		return -E2BIG;
	source->context_wished |= index == source->context_index;
	return 0;
}

static const char *why(int error)
{
	return error == -EBUSY   ? "asked for twice; the first one counts"
	       : error == -E2BIG ? "the events' predicates have more tests than there is room for"
				 : "no BPF program in this build";
}

static int take_wishes(struct pem_source *source, const struct pem_source_config *config)
{
	struct pem_error reason;
	size_t i;

	source->wish_count = config->event_count;
	source->wishes = calloc(config->event_count + 1, sizeof(*source->wishes));
	if (!source->wishes)
		return -ENOMEM;
	for (i = 0; i < config->event_count; i++) {
		reason.text[0] = '\0';
		source->wishes[i].error = take_wish(source, i, &config->events[i], &reason);
		if (source->wishes[i].error)
			pem_source__log(source, PEM_LOG_WARNING, "%s: %s",
					config->events[i].event->name,
					*reason.text ? reason.text : why(source->wishes[i].error));
	}
	return 0;
}

static void set_filter(struct pem_source *source, unsigned index, const struct pem_context *context)
{
	struct pem_kfilter *filter = &source->control->filter[index];

	filter->pid = context->pid;
	filter->tid = context->tid;
	filter->cpu = context->cpu;
}

/* The context in which switches are logged for the other events' sake: theirs, if all have the same; else any. */
static void set_context_filter(struct pem_source *source)
{
	struct pem_context any = {.cpu = PEM_NO_CPU}, common = any;
	uint32_t flags = PEM_ACTION_LOG;
	bool first = true;
	size_t i;

	for (i = 0; i < source->wish_count; i++) {
		if (source->wishes[i].error)
			continue;
		if (first)
			common = source->wishes[i].context;
		else if (!same_context(&common, &source->wishes[i].context))
			common = any;
		first = false;
	}
	if (source->root)
		flags |= PEM_KACTION_TREE;
	if (is_restricted(&common))
		flags |= PEM_ACTION_FILTER;
	if (source->context_index >= 0 && !source->context_wished)
		set_filter(source, (unsigned)source->context_index, &common);
	source->control->context_flags = source->beside ? 0 : flags;
}

static int set_action(struct pem_source *source, size_t i, uint64_t action)
{
	struct pem_kernel_wish *wish;
	uint64_t word;
	bool logging;

	if (i >= source->wish_count)
		return -EINVAL;
	wish = &source->wishes[i];
	if (wish->error)
		return wish->error;
	logging = action & PEM_ACTION_LOG;
	word = (action & ~0xffULL) | (action & KEPT_FLAGS);
	if (source->root)
		word |= PEM_KACTION_TREE;
	if (is_restricted(&wish->context))
		word |= PEM_ACTION_FILTER;
	if (!(action & WANTED_FLAGS))
		word = 0;
	atomic_store(&wish->action, action); /* also when nothing is wanted: its epoch is read */
	if (logging)
		atomic_store(&wish->logged, true);
	/* Switches are logged before the event is, and until after it. */
	if (logging && !atomic_exchange(&wish->logging, true))
		__atomic_fetch_add(&source->control->logging, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&source->control->action[wish->index], word, __ATOMIC_SEQ_CST);
	if (!logging && atomic_exchange(&wish->logging, false))
		__atomic_fetch_sub(&source->control->logging, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int keep(struct pem_source *source, size_t i, uint32_t wide)
{
	if (i >= source->wish_count)
		return -EINVAL;
	if (!source->wishes[i].error)
		__atomic_store_n(&source->control->filter[source->wishes[i].index].wide, wide,
				 __ATOMIC_RELAXED);
	return source->wishes[i].error;
}

static int add_target(struct pem_source *source, pid_t pid)
{
	uint32_t cpu;
	int rc;

	if (!source->root)
		return -ENOTSUP;
	rc = pem_source__add_target(source, pid);
	/* Where it runs just now, it was found not to be of the target. */
	for (cpu = 0; !rc && cpu < source->cpu_count; cpu++)
		__atomic_store_n(&pem_source__ring(source, cpu)->context, PEM_KRING_CONTEXT_UNKNOWN,
				 __ATOMIC_RELAXED);
	return rc == -E2BIG ? -ENOSPC : rc;
}

static void close_source(struct pem_source *source)
{
	if (!source)
		return;
	pem_source__detach(source);
	pem_source__unload(source);
	pem_source__free_probes(source);
	free(source->packet);
	free(source->cpus);
	free(source->wishes);
	free(source);
}

static int allocate(struct pem_source *source, const struct pem_source_config *config)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return cpus;
	source->cpu_count = (uint32_t)cpus;
	source->cpus = calloc((size_t)cpus, sizeof(*source->cpus));
	source->packet = calloc(1, PEM_KERNEL_PACKET_BYTES);
	if (!source->cpus || !source->packet)
		return -ENOMEM;
	return take_wishes(source, config);
}

static int open_source(const struct pem_source_config *config, struct pem_source **result,
		       struct pem_error *error)
{
	struct pem_source *source;
	size_t i;
	int rc;

	if (config->size < sizeof(*config))
		return pem_kernel__fail(error, -EINVAL, "the kernel source is newer than libpem");
	if (!pem_kernel__can_load(error))
		return -EPERM;
	source = calloc(1, sizeof(*source));
	if (!source)
		return pem_kernel__fail(error, -ENOMEM, "out of memory");
	source->log = config->log;
	source->log_arg = config->log_arg;
	source->root = config->root;
	source->no_follow = config->no_follow;
	source->buffer_bytes = config->buffer_bytes;
	source->beside = config->beside;
	source->context_index = pem_kernel__sets_thread();
	rc = allocate(source, config);
	if (rc) {
		pem_kernel__fail(error, rc, "can't prepare the kernel source: %s", strerror(-rc));
		goto out;
	}
	rc = pem_source__load(source, error);
	if (rc)
		goto out;
	for (i = 0; i < source->wish_count; i++) {
		if (source->wishes[i].error)
			continue;
		set_filter(source, source->wishes[i].index, &source->wishes[i].context);
		keep(source, i, config->events[i].wide);
		atomic_store(&source->wishes[i].action, config->events[i].action);
	}
	set_context_filter(source);
	*result = source;
	source = NULL;
out:
	close_source(source);
	return rc;
}

/* What was asked for begins when all programs are attached, which takes some milliseconds: a begin's end is seen, too. */
static int start(struct pem_source *source, struct pem_error *error)
{
	size_t i;
	int rc;

	if (source->started)
		return 0;
	rc = pem_source__attach(source, error);
	if (rc)
		return rc;
	for (i = 0; i < source->wish_count; i++)
		set_action(source, i, atomic_load(&source->wishes[i].action));
	source->started = true;
	return 0;
}

/* One CPU's statistic in the action's epoch; false: there is none. */
static bool read_cpu(struct pem_source *source, const struct pem_kernel_wish *wish, uint32_t cpu,
		     uint64_t action, struct pem_slot *slot)
{
	pem_slot_read(&pem_source__ring(source, cpu)->slots[wish->index], slot, STAT_TRIES);
	return slot->tag == PEM_ACTION_TAG(action) && slot->stat_end;
}

static int read_statistic(struct pem_source *source, size_t i, struct pem_statistic *value)
{
	struct pem_slot sum = {.min = ~0ULL}, slot;
	const struct pem_kernel_wish *wish;
	uint64_t action;
	uint32_t cpu;

	if (i >= source->wish_count)
		return -EINVAL;
	wish = &source->wishes[i];
	memset(value, 0, sizeof(*value));
	value->event = wish->event;
	value->unavailable = wish->error;
	if (wish->error)
		return wish->error;
	action = atomic_load(&wish->action);
	for (cpu = 0; cpu < source->cpu_count; cpu++) {
		if (!read_cpu(source, wish, cpu, action, &slot))
			continue;
		sum.stat_end += slot.stat_end;
		sum.sum += slot.sum;
		sum.min = slot.min < sum.min ? slot.min : sum.min;
		sum.max = slot.max > sum.max ? slot.max : sum.max;
	}
	pem_statistic__fill(value, &sum, action);
	return 0;
}

/* What one CPU keeps of an event besides, in the action's epoch; NULL: nothing. */
static const struct pem_wide *read_wide(const struct pem_source *source,
					const struct pem_kernel_wish *wish, uint32_t cpu,
					uint64_t action, struct pem_wide *copy)
{
	uint32_t word =
		__atomic_load_n(&source->control->filter[wish->index].wide, __ATOMIC_RELAXED);
	size_t at = (size_t)cpu * PEM_WIDE_COUNT + (PEM_WIDE_INDEX(word) & (PEM_WIDE_COUNT - 1));

	if (!word ||
	    !pem_wide_read(&source->wides[at], copy, PEM_WIDE_TAG(word, action), STAT_TRIES))
		return NULL;
	return copy;
}

static int each_statistic(struct pem_source *source, size_t i,
			  void (*function)(const struct pem_statistic *part,
					   const struct pem_wide *wide, uint32_t cpu, void *arg),
			  void *arg)
{
	const struct pem_kernel_wish *wish;
	struct pem_statistic part;
	struct pem_wide wide;
	struct pem_slot slot;
	uint64_t action;
	uint32_t cpu;
	int count = 0;

	if (i >= source->wish_count)
		return -EINVAL;
	wish = &source->wishes[i];
	if (wish->error)
		return wish->error;
	action = atomic_load(&wish->action);
	for (cpu = 0; cpu < source->cpu_count; cpu++) {
		if (!read_cpu(source, wish, cpu, action, &slot))
			continue;
		memset(&part, 0, sizeof(part));
		pem_statistic__fill(&part, &slot, action);
		function(&part, read_wide(source, wish, cpu, action, &wide), cpu, arg);
		count++;
	}
	return count;
}

static void stop(struct pem_source *source)
{
	unsigned i;

	if (source->stopped)
		return;
	source->stopped = true;
	__atomic_store_n(&source->control->logging, 0, __ATOMIC_SEQ_CST);
	for (i = 0; i < PEM_KRING_EVENTS_MAX; i++)
		__atomic_store_n(&source->control->action[i], 0, __ATOMIC_SEQ_CST);
	pem_source__detach(source);
	if (source->control->targets_lost)
		pem_source__log(source, PEM_LOG_WARNING,
				"kernel: %u processes of the program were not observed: more were "
				"alive than there is room for",
				source->control->targets_lost);
	if (source->control->values_lost)
		pem_source__log(
			source, PEM_LOG_WARNING,
			"kernel: statistics of probes lack %llu events: a thread was preempted "
			"while it counted one, and others came to the same place on its CPU",
			(unsigned long long)source->control->values_lost);
}

static int drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int rc, tries, more;

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

static uint64_t misses_of(const struct pem_source *source, unsigned index)
{
	unsigned known = pem_kernel__event_count();

	return index < known ? source->programs[index].misses
			     : source->probes[index - known].misses;
}

/*
 * What the programs counted. Runs that the kernel refused, because the program was under way on that CPU, are lost
 * events, whether or not they would have been wanted. What was left in a damaged ring is discarded.
 */
static void count_event(const struct pem_source *source, unsigned index, bool logged,
			struct pem_balance *balance)
{
	const struct pem_slot *slot;
	uint64_t produced, discarded;
	uint32_t cpu;

	for (cpu = 0; cpu < source->cpu_count; cpu++) {
		slot = &pem_source__ring(source, cpu)->slots[index];
		produced = __atomic_load_n(&slot->produced, __ATOMIC_RELAXED);
		discarded = __atomic_load_n(&slot->discarded, __ATOMIC_RELAXED);
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

static int balance_of(struct pem_source *source, size_t i, struct pem_balance *balance)
{
	struct pem_kernel_wish *wish;

	memset(balance, 0, sizeof(*balance));
	if (i == source->wish_count && source->context_index >= 0 && !source->context_wished &&
	    !source->beside) {
		count_event(source, (unsigned)source->context_index, false, balance);
		return 0;
	}
	if (i >= source->wish_count)
		return -EINVAL;
	wish = &source->wishes[i];
	if (wish->error)
		return wish->error;
	count_event(source, wish->index, atomic_load(&wish->logged), balance);
	return 0;
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
	.abi_version = PEM_SOURCE_ABI_VERSION,
	.size = sizeof(struct pem_source_ops),
	.name = "BPF",
	.can_deliver = can_deliver,
	.open = open_source,
	.start = start,
	.set_action = set_action,
	.read_statistic = read_statistic,
	.each_statistic = each_statistic,
	.keep = keep,
	.find = find,
	.usable = pem_kernel__can_load,
	.drain = drain,
	.add_target = add_target,
	.balance = balance_of,
	.close = close_source,
};
