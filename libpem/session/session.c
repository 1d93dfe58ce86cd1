/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.c - opening and closing a session; its demands
 *
 * Other files: what handles do (statistics.c, callback.c, log.c), running a program (run.c).
 */
#include "core/demand.h"
#include "callbacks/callbacks.h"
#include "chunks/chunks.h"
#include "core/binding.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/fault.h"
#include "core/shared_file.h"
#include "cost/cost.h"
#include "delivery/delivery.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "flight/flight.h"
#include "processes/processes.h"
#include "session/session.h"
#include "source_host/source_host.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "entry.h"
#include "model_internal.h"
#include "producer/producer.h"
#include "runtime_dir.h"
#include "packed.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the session's folder --- */

static int no_runtime(const char *path, int result, struct pem_error *error)
{
	char why[128];
	struct stat st;

	snprintf(why, sizeof(why), "%s", strerror(-result));
	if (result == -EPERM && lstat(path, &st))
		snprintf(why, sizeof(why), "it would lie in a folder of another user");
	else if (result == -EPERM && S_ISDIR(st.st_mode))
		snprintf(why, sizeof(why), "it belongs to user %u%s", st.st_uid,
			 st.st_uid == geteuid() ? ", and others may write in it" : "");
	return pem_error__set(error, result,
			      "no folder for shared memory at '%s': %s; set PEM_RUNTIME_DIR to a "
			      "folder of your own, best on a tmpfs",
			      path, why);
}

static int make_directory(struct pem_session *s, struct pem_error *error)
{
	int result = pem_runtime_dir(s->runtime, sizeof(s->runtime));
	unsigned k;

	if (result)
		return no_runtime(s->runtime, result, error);
	pem_runtime__sweep(s->runtime);
	pem_public__sweep(s);
	for (k = 0;; k++) {
		snprintf(s->directory, sizeof(s->directory), "%s/session-%d-%u", s->runtime,
			 (int)getpid(), k);
		if (!mkdir(s->directory, 0700))
			break;
		if (errno != EEXIST || k == 999)
			return pem_error__set(error, -errno, "cannot make '%s': %s", s->directory,
					      strerror(errno));
	}
	s->directory_fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->directory_fd < 0)
		return pem_error__set(error, -errno, "cannot open '%s': %s", s->directory,
				      strerror(errno));
	s->alive_fd = pem_alive__hold(s->directory_fd);
	if (s->alive_fd < 0)
		return pem_error__set(error, s->alive_fd,
				      "cannot lock '%s', by which programs know that this session "
				      "lives: %s",
				      s->directory, strerror(-s->alive_fd));
	return 0;
}

/* Make an id that differs from the id of any other session that a process may find. */
static uint32_t new_id(void)
{
	uint32_t id = 0;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id = (uint32_t)pem_clock() * 2654435761u;
	return id ? id : 1;
}

/*
 * A thread that raises events has a lane and holds a chunk, and others wait for the consumer. So
 * there is a lane for every other chunk.
 */
static uint32_t lane_count(uint32_t chunk_count)
{
	if (chunk_count / 2 < PEM_LANE_COUNT_DEFAULT)
		return PEM_LANE_COUNT_DEFAULT;
	return chunk_count / 2 < PEM_LANE_COUNT_MAX ? chunk_count / 2 : PEM_LANE_COUNT_MAX;
}

static int make_page(struct pem_session *s, struct pem_error *error)
{
	struct pem_pool_geometry geometry = {
		.flags = PEM_POOL_FURTHER | (s->options.overwrite ? PEM_POOL_OVERWRITE : 0) |
			 (s->options.coarse_clock ? PEM_POOL_COARSE : 0),
		.chunk_bytes =
			s->options.chunk_bytes ? s->options.chunk_bytes : PEM_CHUNK_BYTES_DEFAULT,
		.chunk_count =
			s->options.chunk_count ? s->options.chunk_count : PEM_CHUNK_COUNT_DEFAULT,
		.event_capacity = PEM_EVENT_CAPACITY_DEFAULT,
	};
	int fd, result;

	geometry.lane_count = lane_count(geometry.chunk_count);
	if (!s->options.chunk_count && !s->options.overwrite && !s->options.chunk_bytes) {
		geometry.chunk_limit = geometry.chunk_count;
		geometry.chunk_count = PEM_CHUNK_COUNT_GROWN;
	}
	if (!pem_pool_geometry__valid(&geometry))
		return pem_error__set(error, -EINVAL,
				      "%u chunks of %u bytes cannot be a pool: chunks are a power "
				      "of two between 4096 "
				      "and 16777216 bytes, and there are 2 to 1048576 of them",
				      geometry.chunk_count, geometry.chunk_bytes);
	fd = openat(s->directory_fd, "config", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return pem_error__set(error, -errno, "cannot write in '%s': %s", s->directory,
				      strerror(errno));
	result = -posix_fallocate(fd, 0, sizeof(*s->page));
	if (!result) {
		s->page = mmap(NULL, sizeof(*s->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (s->page == MAP_FAILED) {
			s->page = NULL;
			result = -errno;
		}
	}
	if (!result)
		result = pem_fault__watch(s->page, sizeof(*s->page), &s->page_cut);
	close(fd);
	if (result) {
		pem_error__set(error, result, "cannot write in '%s': %s", s->directory,
			       strerror(-result));
		pem_error__advise_space(error, result, "");
		return result;
	}
	s->page->abi_version = PEM_ABI_VERSION;
	s->geometry = geometry;
	s->page->context_count = s->context_count = 1;
	s->page->contexts[0].cpu = PEM_NO_CPU;
	s->page->pool_flags = geometry.flags;
	s->page->chunk_bytes = geometry.chunk_bytes;
	s->page->chunk_count = pem_pool_geometry__first_chunks(&geometry);
	s->page->chunk_most = geometry.chunk_limit ? geometry.chunk_count : 0;
	s->page->lane_count = geometry.lane_count;
	s->page->event_capacity = geometry.event_capacity;
	s->page->consumer_pid = (uint32_t)getpid();
	s->page->id = s->id = new_id();
	/* UA */
	__atomic_store_n(&s->page->magic, PEM_SESSION_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* --- hooks --- */

static void wake_callbacks(struct pem_session *s)
{
	/*
	 * With more than one directory the callbacks' thread waits by the clock, so it is woken
	 * here.
	 */
	if (s->async)
		pem_async__kick(s);
}

static const struct pem_session_hooks hooks = {
	.found_pool = pem_session__found_pool,
	.found_control = pem_session__found_control,
	.found_model = pem_session__found_model,
	.lost_control = pem_session__lost_control,
	.dir_closes = pem_dir__forget_models,
	.cut_user = pem_session__cut_user,
	.dir_added = wake_callbacks,
	.handle_comes = pem_session__take_by_level,
	.process_found = pem_session__note_target,
	.gates_found = pem_session__note_gates,
	.outer_tid = pem_session__outer_tid,
	.members_scanned = pem_session__update_targets,
	.source_starts = pem_session__begin_log,
};

/* --- life --- */

/* A session with the states of all rooms, as one block of memory. */
struct whole_session {
	struct pem_session session;
	struct pem_session_dirs dirs;
	struct pem_session_processes processes;
	struct pem_session_sources sources;
	struct pem_session_statistics statistics;
	struct pem_session_cost cost;
	struct pem_session_chunks chunks;
	struct pem_session_flight flight;
	struct pem_session_turn turn;
};

struct pem_session *pem_session__new_empty(void)
{
	struct whole_session *whole = calloc(1, sizeof(*whole));
	struct pem_session *s = &whole->session;
	pthread_mutexattr_t attributes;

	if (!whole)
		return NULL;
	s->hooks = &hooks;
	s->dirs = &whole->dirs;
	s->processes = &whole->processes;
	s->sources = &whole->sources;
	s->statistics = &whole->statistics;
	s->cost = &whole->cost;
	s->chunks = &whole->chunks;
	s->flight = &whole->flight;
	s->turn = &whole->turn;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	pthread_mutex_init(&s->chunks->describing, NULL);
	s->directory_fd = s->command.pidfd = s->flight->serve_fd = s->flight->asking_fd =
		s->alive_fd = -1;
	s->self_index = -1;
	s->model = pem_model__new();
	if (!s->model) {
		pem_session__close(s);
		errno = ENOMEM;
		return NULL;
	}
	return s;
}

int pem_session__load_trace_model(struct pem_session *s, const struct pem_model *model,
				  struct pem_error *error)
{
	char *text = pem_model__to_text(model);
	int result =
		text ? pem_model__add_text(s->model, text, strlen(text), "the trace's model", error)
		     : -ENOMEM;

	free(text);
	if (result < 0)
		return result;
	pem_clock_sync__init(&s->clock);
	return pem_chunks__begin(s);
}

static int start_coarse_clock(struct pem_session *s, struct pem_error *error)
{
	int result;

	if (!s->options.coarse_clock)
		return 0;
	result = pem_coarse_clock__start(&s->coarse, &s->page->coarse_clock, s->clock.hz);
	return result ? pem_error__set(error, result, "no thread for the coarse clock: %s",
				       strerror(-result))
		      : 0;
}

static int check_options(const struct pem_session_options *o, struct pem_error *error)
{
	const struct {
		const char *name;
		uint32_t value, most;
	} all[] = {
		{"overwrite", (uint32_t)o->overwrite, 1},
		{"progress", (uint32_t)o->progress, 1},
		{"by_process", (uint32_t)o->by_process, 1},
		{"sample_stacks", o->sample_stacks, PEM_STACKS_TABLES},
		{"coarse_clock", o->coarse_clock, 1},
		{"drain_threads", o->drain_threads, PEM_DRAIN_THREADS_MAX},
		{"compress", o->compress, 1},
	};
	size_t i;

	for (i = 0; i < PEM_ARRAY_SIZE(all); i++) {
		if (all[i].value > all[i].most)
			return pem_error__set(error, -EINVAL,
					      "struct pem_session_options: %s is %d: set it to a "
					      "number from 0 to %u",
					      all[i].name, (int)all[i].value, all[i].most);
	}
	if (o->hardware && access(o->hardware, R_OK))
		return pem_error__set(error, -errno,
				      "struct pem_session_options: hardware is '%.200s', which "
				      "can't be read: %s; name the file that the simulating tool "
				      "writes (pem/hardware.h), or leave it NULL",
				      o->hardware, strerror(errno));
	return 0;
}

struct pem_session *pem_session__open(const struct pem_session_options *options,
				      struct pem_error *error)
{
	struct pem_session *s = pem_session__new_empty();
	int result = -ENOMEM;

	if (!s) {
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	pem_session__set_page_sampling(s, 100000, 2u << 20);
	result = options ? PEM_READ_SIZED(pem_session_options, &s->options, options, by_process,
					  error)
			 : 0;
	if (!result)
		result = check_options(&s->options, error);
	if (result)
		goto fail;
	result = pem_model__add_catalogue(s->model, error);
	if (result < 0)
		goto fail;
	result = make_directory(s, error);
	if (!result)
		result = make_page(s, error);
	if (result)
		goto fail;
	result = pem_chunks__begin(s);
	if (result)
		goto fail;
	if (s->options.compress) {
		s->packer = pem_packer__new(error);
		result = s->packer ? 0 : -errno;
	}
	if (result)
		goto fail;
	pem_clock_sync__init(&s->clock);
	result = start_coarse_clock(s, error);
	if (result)
		goto fail;
	return s;
fail:
	pem_session__close(s);
	errno = -result;
	return NULL;
}

static bool was_enabled(const struct pem_session *s)
{
	const struct pem_statistics *st;
	const struct pem_callback *cb;

	for (st = s->statistics->handles; st && !st->was_enabled; st = st->next)
		;
	for (cb = s->callbacks; cb && !(cb->async && cb->async->enabled); cb = cb->next)
		;
	return st || cb || (s->log && s->log->span_count);
}

/* Handles were enabled, and no event could come. */
static void say_unobserved(struct pem_session *s)
{
	if (s->command.pid || s->processes->target_count || s->self_index >= 0 || !was_enabled(s))
		return;
	pem_session__say(s, PEM_LOG_WARNING,
			 "the session observed no process: run a command in it, attach it, or, for "
			 "events of this process, name process %d in a handle's context",
			 (int)getpid());
}

/*
 * Processes keep their pools until they join another session. Only the memory is released, so no
 * thread's access fails.
 */
static void free_producers(struct pem_session *s)
{
	struct pem_producer *producer;

	while ((producer = s->processes->producers)) {
		s->processes->producers = producer->next;
		if (producer->ring.header)
			madvise(producer->ring.header, producer->bytes, MADV_REMOVE);
		pem_producer__free(producer);
	}
}

void pem_session__close(struct pem_session *s)
{
	struct pem_demand *demand;
	size_t i;

	if (!s)
		return;
	say_unobserved(s);
	/* Where there is a log, its trace tells. */
	if (!s->log)
		pem_session__say_left(s);
	while (s->callbacks)
		pem_callback__unregister(s->callbacks);
	pem_async__free(s->async);
	s->async = NULL;
	while (s->statistics->handles)
		pem_statistics__unregister(s->statistics->handles);
	pem_log__unregister(s->log);
	if (s->page) {
		/* none: nothing is ordered by it */
		__atomic_store_n(&s->page->closed, 1, __ATOMIC_RELEASE);
		for (i = 0; i < s->demand_count; i++) {
			for (demand = &s->demands[i]; demand; demand = demand->next)
				demand->log = demand->statistic = demand->callback = false;
		}
		pem_session__publish(s);
	}
	if (s->self_index >= 0)
		pem_process__leave((unsigned)s->self_index);
	pem_session__close_sources(s);
	pem_session__leave_members(s);
	pem_session__forget_detail(s);
	free_producers(s);
	pem_session__retire_standby(s);
	pem_session__say_excess(s);
	pem_session__say_unread(s);
	if (s->page) {
		pem_session__say_all_refused(s);
		pem_session__say_all_lost(s);
	}
	pem_session__close_dirs(s);
	pem_alive__release(s->alive_fd);
	pem_runtime__remove(s->directory_fd, s->directory);
	/* Remove control files that programs left when they were killed or called _exit. */
	pem_runtime__sweep(s->runtime);
	pem_coarse_clock__stop(&s->coarse);
	if (s->page)
		pem_shared_file__unmap(s->page, sizeof(*s->page));
	if (s->command.pidfd >= 0)
		close(s->command.pidfd);
	pem_session__forget_predicates(s);
	pem_session__forget_specs(s);
	pem_model__free(s->model);
	free(s->demands);
	free(s->further);
	free(s->sources->counters);
	free(s->sources->counter_names);
	pem_chunks__end(s);
	pem_packer__free(s->packer);
	pthread_mutex_destroy(&s->chunks->describing);
	pthread_mutex_destroy(&s->mutex);
	free(s); /* frees the whole_session that begins with it */
}

const struct pem_model *pem_session__model(const struct pem_session *session)
{
	return session ? session->model : NULL;
}

/* --- demands --- */
