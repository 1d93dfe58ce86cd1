/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.c - the module source's plugin interface: demands, start and stop, statistics (contract: source.h)
 *
 * What is wanted is told to the module by ioctl, and only when it changes; statistics are read where it keeps them, without a
 * system call. read_statistic and set_action are safe in any thread.
 */
#include "module.h"
#include "sources/statistic.h"

#include <pem/distribution.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_TRIES 1000 /* an update takes some 10 ns, so that many mean a CPU that stands still */
#define POOL_BYTES_DEFAULT (4u << 20)
#define POOL_BYTES_MAX (256u << 20)
#define POOLS_BYTES_DEFAULT_MAX (256u << 20) /* of all CPUs together, unless asked for more */
#define CHUNKS_WANTED 64u
#define CHUNK_BYTES_MAX                                                                            \
	(64u << 10) /* of what is chosen here: more would only wait longer to be full */

#define KEPT_FLAGS (PEM_ACTION_LOG | PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION)
#define WANTED_FLAGS (PEM_ACTION_LOG | PEM_ACTION_STAT)

void pem_module__log(const struct pem_source *source, enum pem_log_level level, const char *format,
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
	       event->source_kind == PEM_SOURCE_MODULE;
}

/* Of a tracepoint somebody else may deliver what the module does not; of what it looks for itself nobody. */
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
				pem_module__observes(event, "counters")
					? "reads counters at events (--counters)"
					: "sees this",
				why.text);
}

/* --- telling it what is wanted --- */

static uint64_t told_action(uint64_t action)
{
	return action & WANTED_FLAGS ? (action & ~0xffULL) | (action & KEPT_FLAGS)
				     : action & ~0xffULL;
}

/* The source's own thread raises it: a context's process is the one looked at, not the one that runs. */
static bool is_of_worker(const struct pem_event *event)
{
	return pem_module__observes(event, "accessed") || pem_module__observes(event, "supply");
}

/* With an event's tests the first time, then its action alone. */
static int tell(struct pem_source *source, struct pem_module_demand *demand,
		const struct pem_source_event *first)
{
	struct pem_kmod_event request = {.size = sizeof(request),
					 .event_id = demand->event->id,
					 .action = told_action(atomic_load(&demand->action)),
					 .cpu = PEM_NO_CPU,
					 .distribution = atomic_load(&demand->distribution),
					 .flags = first ? 0 : PEM_KMOD_KEEP_TESTS};
	int rc = 0;

	if (source->reads_counters && demand->event->source_kind != PEM_SOURCE_MODULE &&
	    (request.action & PEM_ACTION_LOG))
		request.flags |= PEM_KMOD_READ_COUNTERS;
	if (first && is_of_worker(demand->event)) {
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
	struct pem_module_demand *demand;

	if (i >= source->demand_count)
		return -EINVAL;
	demand = &source->demands[i];
	if (demand->error)
		return demand->error;
	atomic_store(&demand->action, action); /* also when nothing is wanted: its epoch is read */
	return source->stopped ? 0 : tell(source, demand, NULL);
}

static int keep(struct pem_source *source, size_t i, uint32_t distribution)
{
	if (i >= source->demand_count)
		return -EINVAL;
	if (!source->demands[i].error)
		atomic_store(&source->demands[i].distribution, distribution);
	return source->demands[i].error;
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
				   : strerror(-error);
}

static int take_demand(struct pem_source *source, size_t i, const struct pem_source_event *event)
{
	struct pem_module_demand *demand = &source->demands[i];
	size_t j;

	demand->event = event->event;
	demand->context = event->context;
	atomic_store(&demand->action, event->action);
	atomic_store(&demand->distribution, event->distribution);
	atomic_store(&demand->index, PEM_MODULE_NO_INDEX);
	if (!is_ours(event->event))
		return -ENOENT;
	for (j = 0; j < i; j++) {
		if (source->demands[j].event == demand->event)
			return -EBUSY; /* one cell and one rule per event */
	}
	if (event->event->meaning == PEM_MEANS_SETS_THREAD) {
		source->sets_thread = event->event;
		source->sets_thread_demanded = true;
	}
	return tell(source, demand, event);
}

/* What has to be there before the first event is told. */
static void look_first(struct pem_source *source, const struct pem_source_config *config)
{
	size_t i;

	source->pages_interval_us = config->pages_interval_us;
	source->pages_region_bytes = config->pages_region_bytes;
	for (i = 0; i < config->event_count; i++) {
		if (pem_module__observes(config->events[i].event, "counters"))
			source->reads_counters =
				!pem_module__open_counters(source, config->counters);
		source->samples_pages |= pem_module__observes(config->events[i].event, "accessed");
	}
}

/* What the module looks at for a demand, which it knows. Processes of the target follow with it. */
static int look_at(struct pem_source *source, const struct pem_module_demand *demand)
{
	size_t i;

	if (pem_module__observes(demand->event, "counters"))
		return source->reads_counters ? pem_module__count_at_switches(source) : -EINVAL;
	source->looks |= is_of_worker(demand->event);
	if (pem_module__observes(demand->event, "supply"))
		return pem_module__watch_supply(source);
	if (!pem_module__observes(demand->event, "accessed") || source->has_tree)
		return 0;
	if (demand->context.pid == PEM_ANY)
		return -ENODEV;
	for (i = 0; source->demands + i < demand; i++) {
		if (pem_module__observes(source->demands[i].event, "accessed") &&
		    source->demands[i].context.pid == demand->context.pid)
			return source->demands[i].error;
	}
	return pem_module__sample_process(source, demand->context.pid);
}

static int take_demands(struct pem_source *source, const struct pem_source_config *config)
{
	size_t i;

	source->sets_thread = config->sets_thread;
	source->demands = calloc(config->event_count + 1, sizeof(*source->demands));
	if (!source->demands)
		return -ENOMEM;
	source->demand_count = config->event_count;
	look_first(source, config);
	for (i = 0; i < config->event_count; i++) {
		source->demands[i].error = take_demand(source, i, &config->events[i]);
		if (source->demands[i].error)
			pem_module__log(source, PEM_LOG_WARNING, "%s: %s",
					config->events[i].event->name,
					why(source->demands[i].error));
	}
	for (i = 0; i < config->event_count; i++) {
		if (source->demands[i].error)
			continue;
		source->demands[i].error = look_at(source, &source->demands[i]);
		if (source->demands[i].error == -ENODEV)
			pem_module__log(
				source, PEM_LOG_WARNING,
				"%s: pages are looked at of a command or of processes that are "
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

/* The pools of all CPUs, smaller ones where the machine, or the user's limit, has no room for what was asked for. */
static int set_up(struct pem_source *source, const struct pem_source_config *config,
		  struct pem_error *error)
{
	const uint32_t least = PEM_KMOD_CHUNK_BYTES_MIN * PEM_KMOD_CHUNKS_MIN;
	struct pem_kmod_setup request = {.size = sizeof(request)};
	uint32_t bytes = pool_bytes_for(config->buffer_bytes, source->cpu_count), chunk;

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
		pem_module__log(source, PEM_LOG_INFO,
				"module: no buffers of %u bytes per CPU (%s), trying %u", bytes,
				strerror(errno), bytes / 2);
	}
	source->chunk_bytes = request.chunk_bytes;
	source->has_tree = config->root != 0;
	source->packet = calloc(1, request.chunk_bytes);
	return source->packet ? 0 : pem_module__fail(error, -ENOMEM, "out of memory");
}

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
	free(source->demands);
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
	source->cpu_count = info.cpu_count;
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
	source->log = config->log;
	source->log_arg = config->log_arg;
	source->beside = config->beside;
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
	rc = source->looks ? pem_module__start_worker(source) : 0;
	return rc ? pem_module__fail(error, rc,
				     "no thread in which the module could look at pages: %s",
				     strerror(-rc))
		  : 0;
}

/* --- statistics --- */

static void add_cell(struct pem_cell *sum, const struct pem_cell *part)
{
	sum->stat_end += part->stat_end;
	sum->sum += part->sum;
	sum->min = part->min < sum->min ? part->min : sum->min;
	sum->max = part->max > sum->max ? part->max : sum->max;
}

/* One lane's statistic in the action's epoch; false: there is none. */
static bool read_lane(struct pem_source *source, struct pem_module_demand *demand, uint32_t cpu,
		      uint32_t lane, uint64_t action, struct pem_cell *cell)
{
	const struct pem_cell *shared =
		pem_module__cell(&source->cpus[cpu], lane, pem_module__index(source, demand));

	if (!shared)
		return false;
	pem_cell_read(shared, cell, STAT_TRIES);
	return cell->tag == PEM_ACTION_TAG(action) && cell->stat_end;
}

static int read_statistic(struct pem_source *source, size_t i, struct pem_statistic *value)
{
	struct pem_cell sum = {.min = ~0ULL}, cell;
	struct pem_module_demand *demand;
	uint32_t cpu, lane;
	uint64_t action;

	if (i >= source->demand_count)
		return -EINVAL;
	demand = &source->demands[i];
	memset(value, 0, sizeof(*value));
	value->event = demand->event;
	value->unavailable = demand->error;
	if (demand->error)
		return demand->error;
	action = atomic_load(&demand->action);
	for (cpu = 0; cpu < source->cpu_count; cpu++) {
		for (lane = 0; lane < PEM_KMOD_LANES; lane++) {
			if (read_lane(source, demand, cpu, lane, action, &cell))
				add_cell(&sum, &cell);
		}
	}
	pem_statistic__fill(value, &sum, action);
	return 0;
}

/* What one lane keeps of an event besides, in the action's epoch; false: nothing. */
static bool read_distribution(const struct pem_source *source,
			      const struct pem_module_demand *demand, uint32_t cpu, uint32_t lane,
			      uint64_t action, struct pem_distribution *copy)
{
	const struct pem_ring *ring = &source->cpus[cpu].ring;
	uint32_t word = atomic_load(&demand->distribution);

	return word &&
	       pem_distribution_read(pem_pool__distribution(ring,
							    PEM_DISTRIBUTION_INDEX(word) &
								    (PEM_DISTRIBUTION_COUNT - 1),
							    lane),
				     copy, PEM_DISTRIBUTION_TAG(word, action), STAT_TRIES);
}

/* Where what is kept besides, lanes are parts of their own: their most frequent values add up with bounds of their own. */
static int each_statistic(struct pem_source *source, size_t i,
			  void (*function)(const struct pem_statistic *part,
					   const struct pem_distribution *distribution,
					   uint32_t cpu, void *arg),
			  void *arg)
{
	struct pem_module_demand *demand;
	struct pem_statistic part;
	struct pem_cell sum, cell;
	struct pem_distribution distribution;
	uint32_t cpu, lane;
	uint64_t action;
	int count = 0;

	if (i >= source->demand_count)
		return -EINVAL;
	demand = &source->demands[i];
	if (demand->error)
		return demand->error;
	action = atomic_load(&demand->action);
	for (cpu = 0; cpu < source->cpu_count; cpu++) {
		sum = (struct pem_cell){.min = ~0ULL};
		for (lane = 0; lane < PEM_KMOD_LANES; lane++) {
			if (!read_lane(source, demand, cpu, lane, action, &cell))
				continue;
			if (!read_distribution(source, demand, cpu, lane, action, &distribution)) {
				add_cell(&sum, &cell);
				continue;
			}
			memset(&part, 0, sizeof(part));
			pem_statistic__fill(&part, &cell, action);
			function(&part, &distribution, cpu, arg);
			count++;
		}
		if (!sum.stat_end)
			continue;
		memset(&part, 0, sizeof(part));
		pem_statistic__fill(&part, &sum, action);
		function(&part, NULL, cpu, arg);
		count++;
	}
	return count;
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
		pem_module__log(source, PEM_LOG_ERROR, "module: it does not stop: %s",
				strerror(errno));
	pem_module__end_worker(source);
	if (ioctl(source->fd, PEM_KMOD_INFO, &info))
		return;
	if (info.targets_lost)
		pem_module__log(source, PEM_LOG_WARNING,
				"module: %u processes of the program were not observed: more were "
				"alive than there is room for",
				info.targets_lost);
	if (info.statistics_lost)
		pem_module__log(source, PEM_LOG_WARNING,
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

static int balance_of(struct pem_source *source, size_t i, struct pem_balance *balance)
{
	memset(balance, 0, sizeof(*balance));
	if (i == source->demand_count && source->sets_thread && !source->sets_thread_demanded &&
	    !source->beside) {
		pem_module__count(source, pem_module__index_of(source, source->sets_thread->id),
				  balance);
		return 0;
	}
	if (i >= source->demand_count)
		return -EINVAL;
	if (source->demands[i].error)
		return source->demands[i].error;
	pem_module__count(source, pem_module__index(source, &source->demands[i]), balance);
	return 0;
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
	.read_statistic = read_statistic,
	.each_statistic = each_statistic,
	.keep = keep,
	.drain = drain,
	.add_target = add_target,
	.balance = balance_of,
	.close = close_source,
	.preference = 1,
	.poll_fd = poll_fd,
	.usable = pem_module__usable,
};
