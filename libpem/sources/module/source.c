/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.c - the module source's plugin interface: demands, start and stop, statistics (contract:
 * source.h)
 *
 * A demand is told to the module by ioctl, only when it changes. Statistics are read from mapped
 * memory without a system call. read_statistic and set_action are safe in any thread.
 */
#include "module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL_BYTES_DEFAULT (4u << 20)
#define POOL_BYTES_MAX (256u << 20)
/* Of all CPUs together, unless the session asks for more. */
#define POOLS_BYTES_DEFAULT_MAX (256u << 20)
#define CHUNKS_WANTED 64u
/* Maximum if the size is chosen here. A larger chunk would only take longer to fill. */
#define CHUNK_BYTES_MAX (64u << 10)

static bool is_ours(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT ||
	       event->source_kind == PEM_SOURCE_MODULE;
}

/*
 * Can the module deliver this event? If it lacks a tracepoint event, another source may deliver it.
 * No other source delivers the events of its samplers.
 */
static int can_deliver(const struct pem_event *event, struct pem_error *reason)
{
	struct pem_error why = {""};
	int result;

	if (!is_ours(event))
		return -ENOENT;
	if (event->source_kind == PEM_SOURCE_TRACEPOINT)
		return pem_module__has(event->id, reason);
	result = pem_module__has(event->id, &why);
	if (result == 1)
		return 1;
	return pem_module__fail(reason, 0, "only pem.ko %s: %s",
				pem_module__is_sampled_by(event, "counters")
					? "reads counters at events (--counters)"
					: "sees this",
				why.text);
}

/* --- telling the module the demands --- */

static uint64_t told_action(uint64_t action)
{
	return action & PEM_SOURCE_DEMAND_WANTS
		       ? (action & ~0xffULL) | (action & PEM_SOURCE_DEMAND_FLAGS)
		       : action & ~0xffULL;
}

/*
 * Does the module raise the event in the source's own thread? The process of a context is then the
 * sampled one, not the one that runs.
 */
static bool is_periodic(const struct pem_event *event)
{
	return pem_module__is_sampled_by(event, "accessed") ||
	       pem_module__is_sampled_by(event, "supply");
}

/* Tell the module a demand: the first time with its predicate, later only its action. */
static int tell(struct pem_source *source, struct pem_source_demand *demand,
		const struct pem_source_event *first)
{
	struct pem_kmod_event request = {
		.size = sizeof(request),
		.event_id = demand->event->id,
		.action = told_action(atomic_load_explicit(&demand->action, memory_order_relaxed)),
		.cpu = PEM_NO_CPU,
		.distribution = atomic_load_explicit(&demand->distribution, memory_order_relaxed),
		.flags = first ? 0 : PEM_KMOD_KEEP_TESTS};
	int rc = 0;

	if (source->reads_counters && demand->event->source_kind != PEM_SOURCE_MODULE &&
	    (request.action & PEM_ACTION_LOG))
		request.flags |= PEM_KMOD_READ_COUNTERS;
	if (first && is_periodic(demand->event)) {
		request.tests = (uintptr_t)first->tests;
		request.test_count = first->test_count;
	} else if (first) {
		request.pid = first->context.pid;
		request.tid = first->context.tid;
		request.cpu = pem_context__cpu(&first->context);
		request.tests = (uintptr_t)first->tests;
		request.test_count = first->test_count;
	}
	pthread_mutex_lock(&source->lock);
	if (first || request.action != demand->told_action ||
	    request.distribution != demand->told_distribution) {
		rc = ioctl(source->fd, PEM_KMOD_EVENT, &request) ? -errno : 0;
		if (!rc) {
			demand->told_action = request.action;
			demand->told_distribution = request.distribution;
		}
	}
	pthread_mutex_unlock(&source->lock);
	return rc;
}

static int set_action(struct pem_source *source, size_t i, uint64_t action)
{
	struct pem_source_demand *demand;
	int error;

	demand = pem_source_demands__get(source, i, &error);
	if (!demand)
		return error;
	atomic_store_explicit(&demand->action, action, memory_order_relaxed);
	return source->stopped ? 0 : tell(source, demand, NULL);
}

static int keep(struct pem_source *source, size_t i, uint32_t distribution)
{
	struct pem_source_demand *demand;
	int error;

	demand = pem_source_demands__get(source, i, &error);
	if (demand)
		atomic_store_explicit(&demand->distribution, distribution, memory_order_relaxed);
	return error;
}

static int add_target(struct pem_source *source, pid_t pid)
{
	struct pem_kmod_target request = {.size = sizeof(request), .pid = (uint32_t)pid};

	if (!source->has_tree)
		return -ENOTSUP;
	if (!ioctl(source->fd, PEM_KMOD_TARGET, &request)) {
		if (source->samples_pages)
			pem_module__sample_process(source, (uint32_t)pid);
		return 0;
	}
	return errno == ENOMEM ? -ENOSPC : -errno;
}

/* --- opening --- */

static const char *why(int error)
{
	return error == -EBUSY     ? "asked for twice; the first one counts"
	       : error == -ESRCH   ? "the process that it is asked for of has ended"
	       : error == -ENOENT  ? "the module was built without it"
	       : error == -ENOTSUP ? "this kernel has no tracepoint for it"
	       : error == -EPROTO  ? "the module can't count 'inside' or 'from', only BPF can"
				   : strerror(-error);
}

static int take_demand(struct pem_source *source, size_t i, const struct pem_source_event *event,
		       struct pem_error *reason)
{
	struct pem_source_demand *demand = &source->common.demands[i];
	size_t j;

	(void)reason;
	if (!is_ours(event->event))
		return -ENOENT;
	if (event->gates)
		return -EPROTO;
	for (j = 0; j < i; j++) {
		/* there is one cell and one rule per event */
		if (source->common.demands[j].event == demand->event)
			return -EBUSY;
	}
	if (event->event->meaning == PEM_MEANS_SETS_THREAD) {
		source->sets_thread = event->event;
		source->common.has_thread_event = source->common.demands_thread_event = true;
	}
	return tell(source, demand, event);
}

/* Set up the samplers that must exist before the module is told of the first event. */
static void prepare_sampling(struct pem_source *source, const struct pem_source_config *config)
{
	size_t i;

	source->pages_interval_us = config->pages_interval_us;
	source->pages_region_bytes = config->pages_region_bytes;
	for (i = 0; i < config->event_count; i++) {
		if (pem_module__is_sampled_by(config->events[i].event, "counters"))
			source->reads_counters =
				!pem_module__open_counters(source, config->counters);
		source->samples_pages |=
			pem_module__is_sampled_by(config->events[i].event, "accessed");
	}
}

/*
 * Start the sampler that a demand needs. The module has been told the demand. If the session
 * follows a tree, its processes are added to the sampler separately.
 */
static int start_sampling(struct pem_source *source, const struct pem_source_demand *demand)
{
	size_t i;

	if (pem_module__is_sampled_by(demand->event, "counters"))
		return source->reads_counters ? pem_module__count_at_switches(source) : -EINVAL;
	source->needs_worker |= is_periodic(demand->event);
	if (pem_module__is_sampled_by(demand->event, "supply"))
		return pem_module__watch_supply(source);
	if (!pem_module__is_sampled_by(demand->event, "accessed") || source->has_tree)
		return 0;
	if (demand->context.pid == PEM_ANY)
		return -ENODEV;
	for (i = 0; source->common.demands + i < demand; i++) {
		if (pem_module__is_sampled_by(source->common.demands[i].event, "accessed") &&
		    source->common.demands[i].context.pid == demand->context.pid)
			return source->common.demands[i].error;
	}
	return pem_module__sample_process(source, demand->context.pid);
}

static int take_demands(struct pem_source *source, const struct pem_source_config *config)
{
	size_t i;

	source->sets_thread = config->sets_thread;
	source->common.has_thread_event = config->sets_thread;
	prepare_sampling(source, config);
	pem_source_demands__take(source, config, take_demand, why);
	for (i = 0; i < config->event_count; i++) {
		if (source->common.demands[i].error)
			continue;
		source->common.demands[i].error =
			start_sampling(source, &source->common.demands[i]);
		if (source->common.demands[i].error == -ENODEV)
			pem_source__log(
				source, PEM_LOG_WARNING,
				"%s: pages are sampled of a command or of processes that are "
				"named, not of the whole machine",
				config->events[i].event->name);
	}
	return pem_module__index_events(source);
}

static uint32_t pool_bytes_for(uint32_t wanted, uint32_t cpu_count)
{
	const uint32_t least = PEM_KMOD_CHUNK_BYTES_MIN * PEM_KMOD_CHUNKS_MIN;
	uint32_t bytes = least;

	if (!wanted) {
		wanted = POOLS_BYTES_DEFAULT_MAX / (cpu_count ? cpu_count : 1);
		wanted = wanted > POOL_BYTES_DEFAULT ? POOL_BYTES_DEFAULT : wanted;
	}
	if (wanted > POOL_BYTES_MAX)
		wanted = POOL_BYTES_MAX;
	while (bytes < wanted)
		bytes <<= 1;
	return bytes;
}

/*
 * Set up the pools of all CPUs. They are smaller than asked for if the machine's memory or the
 * user's limit is too small.
 */
static int set_up(struct pem_source *source, const struct pem_source_config *config,
		  struct pem_error *error)
{
	const uint32_t least = PEM_KMOD_CHUNK_BYTES_MIN * PEM_KMOD_CHUNKS_MIN;
	struct pem_kmod_setup request = {.size = sizeof(request)};
	uint32_t bytes = pool_bytes_for(config->buffer_bytes, source->common.cpu_count), chunk;

	if (config->root)
		request.flags = PEM_KMOD_TREE | (config->no_follow ? PEM_KMOD_ALONE : 0);
	for (;; bytes >>= 1) {
		chunk = bytes / CHUNKS_WANTED;
		chunk = chunk < PEM_KMOD_CHUNK_BYTES_MIN ? PEM_KMOD_CHUNK_BYTES_MIN : chunk;
		request.chunk_bytes = chunk > CHUNK_BYTES_MAX ? CHUNK_BYTES_MAX : chunk;
		request.chunk_count = bytes / request.chunk_bytes;
		if (!ioctl(source->fd, PEM_KMOD_SETUP, &request))
			break;
		if ((errno != ENOMEM && errno != EDQUOT && errno != ENOSPC) || bytes / 2 < least)
			return pem_module__fail(error, -errno,
						"the module makes no buffers of %u bytes per CPU: "
						"%s",
						bytes, strerror(errno));
		pem_source__log(source, PEM_LOG_INFO,
				"module: no buffers of %u bytes per CPU (%s), trying %u", bytes,
				strerror(errno), bytes / 2);
	}
	source->chunk_bytes = request.chunk_bytes;
	source->has_tree = config->root != 0;
	source->packet = calloc(1, request.chunk_bytes);
	return source->packet ? 0 : pem_module__fail(error, -ENOMEM, "out of memory");
}

/* --- cells and counts, for demands.c --- */

static const struct pem_cell *cell_of(struct pem_source *source, struct pem_source_demand *demand,
				      uint32_t cpu, uint32_t part)
{
	return pem_module__cell(&source->cpus[cpu], part, pem_module__index(source, demand));
}

static const struct pem_distribution *distribution_of(const struct pem_source *source,
						      uint32_t index, uint32_t cpu, uint32_t part)
{
	return pem_pool__distribution(&source->cpus[cpu].ring, index, part);
}

static void count(struct pem_source *source, struct pem_source_demand *demand,
		  struct pem_balance *balance)
{
	pem_module__count(source,
			  demand ? pem_module__index(source, demand)
				 : pem_module__index_of(source, source->sets_thread->id),
			  balance);
}

static const struct pem_source_demand_ops demand_ops = {
	.name = "module",
	.parts = PEM_KMOD_LANES,
	.cell = cell_of,
	.distribution = distribution_of,
	.count = count,
};

/* --- opening and closing --- */

static void close_source(struct pem_source *source)
{
	if (!source)
		return;
	if (source->worker)
		ioctl(source->fd, PEM_KMOD_STOP, 0);
	pem_module__end_worker(source);
	pem_module__unmap_pools(source);
	if (source->fd >= 0)
		close(source->fd);
	pthread_mutex_destroy(&source->lock);
	free(source->by_id);
	free(source->packet);
	free(source->cpus);
	pem_source_demands__free(source);
	free(source);
}

static int prepare(struct pem_source *source, const struct pem_source_config *config,
		   struct pem_error *error)
{
	struct pem_kmod_info info;
	int rc;

	source->fd = pem_module__open(&info, error);
	if (source->fd < 0)
		return source->fd;
	if (!info.cpu_count || info.cpu_count > 65536)
		return pem_module__fail(error, -EPROTO, "the module claims to have %u CPUs",
					info.cpu_count);
	source->common.cpu_count = info.cpu_count;
	source->cpus = calloc(info.cpu_count, sizeof(*source->cpus));
	if (!source->cpus)
		return pem_module__fail(error, -ENOMEM, "out of memory");
	rc = set_up(source, config, error);
	if (rc)
		return rc;
	rc = take_demands(source, config);
	if (rc)
		return pem_module__fail(error, rc, "can't prepare the module source: %s",
					strerror(-rc));
	rc = config->root ? add_target(source, config->root) : 0;
	return rc ? pem_module__fail(error, rc, "the module does not observe process %d: %s",
				     (int)config->root, strerror(-rc))
		  : 0;
}

static int open_source(const struct pem_source_config *config, struct pem_source **result,
		       struct pem_error *error)
{
	struct pem_source *source;
	int rc;

	if (config->size < sizeof(*config))
		return pem_module__fail(error, -EINVAL, "the module source is newer than libpem");
	source = calloc(1, sizeof(*source));
	if (!source)
		return pem_module__fail(error, -ENOMEM, "out of memory");
	source->fd = -1;
	pthread_mutex_init(&source->lock, NULL);
	if (pem_source_demands__init(source, &demand_ops, config))
		rc = pem_module__fail(error, -ENOMEM, "out of memory");
	else
		rc = prepare(source, config, error);
	if (rc) {
		close_source(source);
		return rc;
	}
	*result = source;
	return 0;
}

static int start(struct pem_source *source, struct pem_error *error)
{
	int rc;

	if (source->started)
		return 0;
	if (ioctl(source->fd, PEM_KMOD_START, 0))
		return pem_module__fail(error, -errno, "the module does not start: %s",
					strerror(errno));
	rc = pem_module__map_pools(source);
	if (rc <= 0)
		return pem_module__fail(error, rc ? rc : -EPROTO, "no CPU's pool can be mapped: %s",
					rc ? strerror(-rc) : "the module made none");
	source->started = true;
	rc = source->needs_worker ? pem_module__start_worker(source) : 0;
	return rc ? pem_module__fail(error, rc,
				     "no thread in which the module could sample pages: %s",
				     strerror(-rc))
		  : 0;
}

/* --- the log --- */

static void stop(struct pem_source *source)
{
	struct pem_kmod_info info = {.size = sizeof(info)};

	if (source->stopped)
		return;
	source->stopped = true;
	if (!source->started)
		return;
	if (ioctl(source->fd, PEM_KMOD_STOP, 0))
		pem_source__log(source, PEM_LOG_ERROR, "module: it does not stop: %s",
				strerror(errno));
	pem_module__end_worker(source);
	if (ioctl(source->fd, PEM_KMOD_INFO, &info))
		return;
	pem_source_demands__say_targets_lost(source, info.targets_lost);
	if (info.statistics_lost)
		pem_source__log(source, PEM_LOG_WARNING,
				"module: statistics lack %llu events: raised where probes were too "
				"deep in one another, or on a CPU without a buffer",
				(unsigned long long)info.statistics_lost);
}

static int drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	if (final)
		stop(source);
	return source->started ? pem_module__drain(source, sink, final) : 0;
}

static int poll_fd(const struct pem_source *source)
{
	return source->started && !source->stopped ? source->fd : -1;
}

__attribute__((visibility("default"))) const struct pem_source_ops pem_source = {
	.size = sizeof(struct pem_source_ops),
	.abi_version = PEM_SOURCE_ABI_VERSION,
	.name = "module",
	.can_deliver = can_deliver,
	.open = open_source,
	.start = start,
	.set_action = set_action,
	.read_statistic = pem_source_demands__read,
	.each_statistic = pem_source_demands__each,
	.keep = keep,
	.drain = drain,
	.add_target = add_target,
	.balance = pem_source_demands__balance,
	.close = close_source,
	.preference = 1,
	.poll_fd = poll_fd,
	.usable = pem_module__usable,
};
