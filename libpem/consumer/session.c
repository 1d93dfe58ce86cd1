/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.c - opening and closing a session, its demands
 *
 * Not here: what handles do (statistics.c, callback.c, log.c), running a program (run.c).
 */
#include "consumer/async.h"
#include "consumer/budget.h"
#include "consumer/detail.h"
#include "consumer/session.h"
#include "consumer/shared_file.h"
#include "entry.h"
#include "model_internal.h"
#include "producer/producer.h"
#include "runtime_dir.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Begins with an instruction that does nothing: calibrate.c attaches probes to it. */
__attribute__((patchable_function_entry(1))) const char *pem_version(void)
{
	return PEM_VERSION;
}

void pem_session__lock(struct pem_session *session)
{
	pem_thread_inside++;
	PEM_BARRIER();
	pthread_mutex_lock(&session->mutex);
}

void pem_session__unlock(struct pem_session *session)
{
	pthread_mutex_unlock(&session->mutex);
	PEM_BARRIER();
	pem_thread_inside--;
}

void pem_session__say(struct pem_session *session, enum pem_log_level level, const char *format,
		      ...)
{
	char text[1024];
	va_list arguments;

	if (!session->options.log || (level == PEM_LOG_PROGRESS && !session->options.progress))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	pem_printable(text);
	session->options.log(level, text, session->options.log_arg);
}

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

/* Another one than any other session's that a process may meet. */
static uint32_t new_id(void)
{
	uint32_t id = 0;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id = (uint32_t)pem_clock() * 2654435761u;
	return id ? id : 1;
}

static int make_page(struct pem_session *s, struct pem_error *error)
{
	struct pem_pool_geometry geometry = {
		.flags = s->options.overwrite ? PEM_POOL_OVERWRITE : 0,
		.chunk_bytes =
			s->options.chunk_bytes ? s->options.chunk_bytes : PEM_CHUNK_BYTES_DEFAULT,
		.chunk_count =
			s->options.chunk_count ? s->options.chunk_count : PEM_CHUNK_COUNT_DEFAULT,
		.lane_count = PEM_LANE_COUNT_DEFAULT,
		.event_capacity = PEM_EVENT_CAPACITY_DEFAULT,
	};
	int fd, result;

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
	if (result)
		return pem_error__set(error, result,
				      "cannot write in '%s': %s; free some space there",
				      s->directory, strerror(-result));
	s->page->abi_version = PEM_ABI_VERSION;
	s->geometry = geometry;
	s->page->context_count = s->context_count = 1;
	s->page->contexts[0].cpu = PEM_NO_CPU;
	s->page->pool_flags = geometry.flags;
	s->page->chunk_bytes = geometry.chunk_bytes;
	s->page->chunk_count = geometry.chunk_count;
	s->page->lane_count = geometry.lane_count;
	s->page->event_capacity = geometry.event_capacity;
	s->page->consumer_pid = (uint32_t)getpid();
	s->page->id = s->id = new_id();
	__atomic_store_n(&s->page->magic, PEM_SESSION_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* --- life --- */

struct pem_session *pem_session__new_empty(void)
{
	struct pem_session *s = calloc(1, sizeof(*s));
	pthread_mutexattr_t attributes;

	if (!s)
		return NULL;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	s->directory_fd = s->command_pidfd = s->serve_fd = s->asking_fd = s->alive_fd = -1;
	s->self_index = -1;
	s->model = pem_model__new();
	if (!s->model) {
		pem_session__close(s);
		errno = ENOMEM;
		return NULL;
	}
	return s;
}

int pem_session__make_batch(struct pem_session *s)
{
	s->batch_bytes = s->geometry.chunk_bytes > PEM_BATCH_BYTES ? s->geometry.chunk_bytes
								   : PEM_BATCH_BYTES;
	s->batch = malloc(s->batch_bytes);
	return s->batch ? 0 : -ENOMEM;
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
	return pem_session__make_batch(s);
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
	if (options)
		memcpy(&s->options, options,
		       options->size < sizeof(s->options) ? options->size : sizeof(s->options));
	result = pem_model__add_catalogue(s->model, error);
	if (result < 0)
		goto fail;
	result = make_directory(s, error);
	if (!result)
		result = make_page(s, error);
	if (result)
		goto fail;
	result = pem_session__make_batch(s);
	if (result)
		goto fail;
	pem_clock_sync__init(&s->clock);
	return s;
fail:
	pem_session__close(s);
	errno = -result;
	return NULL;
}

void pem_session__close(struct pem_session *s)
{
	struct pem_producer *producer;
	size_t i;

	if (!s)
		return;
	while (s->callbacks)
		pem_callback__unregister(s->callbacks);
	pem_async__free(s->async);
	s->async = NULL;
	while (s->statistics)
		pem_statistics__unregister(s->statistics);
	pem_log__unregister(s->log);
	if (s->page) {
		__atomic_store_n(&s->page->closed, 1, __ATOMIC_RELEASE);
		for (i = 0; i < s->demand_count; i++)
			s->demands[i].log = s->demands[i].statistic = s->demands[i].callback =
				false;
		pem_session__publish(s);
	}
	if (s->self_index >= 0)
		pem_process__leave((unsigned)s->self_index);
	pem_session__close_sources(s);
	pem_session__leave_members(s);
	pem_session__forget_detail(s);
	while ((producer = s->producers)) {
		s->producers = producer->next;
		/* Processes keep their pools until another session comes: only the memory goes, so that no thread finds an end. */
		if (producer->ring.header)
			madvise(producer->ring.header, producer->bytes, MADV_REMOVE);
		pem_producer__free(producer);
	}
	pem_session__say_excess(s);
	pem_session__say_unread(s);
	if (s->page) {
		pem_session__say_all_refused(s);
		pem_session__say_all_lost(s);
	}
	pem_session__close_dirs(s);
	pem_alive__release(s->alive_fd);
	pem_runtime__remove(s->directory_fd, s->directory);
	/* Programs that were killed, or left by _exit, keep control files. */
	pem_runtime__sweep(s->runtime);
	if (s->page)
		pem_shared_file__unmap(s->page, sizeof(*s->page));
	if (s->command_pidfd >= 0)
		close(s->command_pidfd);
	pem_session__forget_predicates(s);
	pem_model__free(s->model);
	free(s->demands);
	free(s->counters);
	free(s->counter_names);
	free(s->batch);
	pthread_mutex_destroy(&s->mutex);
	free(s);
}

const struct pem_model *pem_session__model(const struct pem_session *session)
{
	return session->model;
}

int pem_session__join_self(struct pem_session *s)
{
	if (s->self_index >= 0)
		return 0;
	s->self_index = pem_process__join(s->directory);
	return s->self_index < 0 ? s->self_index : 0;
}

/* --- demands --- */

struct pem_demand *pem_session__demand(struct pem_session *s, const struct pem_event *event)
{
	ssize_t index = pem_model__index(s->model, event->id);
	size_t i;

	if (!s->demands) {
		s->demands = calloc(PEM_DEMANDS_MAX, sizeof(*s->demands));
		if (!s->demands)
			return NULL;
	}
	/* Each record that a source delivers asks for one: a directory that is remembered, and looked for if it is another's now. */
	i = index >= 0 ? s->demand_of[index] : s->demand_count;
	if (i < s->demand_count && s->demands[i].event == event)
		return &s->demands[i];
	for (i = 0; i < s->demand_count && s->demands[i].event != event; i++)
		;
	if (i == PEM_DEMANDS_MAX)
		return NULL;
	if (index >= 0)
		s->demand_of[index] = (uint16_t)i;
	if (i < s->demand_count)
		return &s->demands[i];
	s->demands[i].event = event;
	s->demands[i].context.cpu = PEM_NO_CPU;
	s->demands[i].field = PEM_NO_FIELD;
	s->demands[i].epoch = 1;
	s->demands[i].instance = -1;
	s->demands[i].detail = PEM_DETAIL_LOG;
	s->demand_count++;
	return &s->demands[i];
}

int pem_demand__set_context(struct pem_demand *demand, const struct pem_context *context,
			    struct pem_error *error)
{
	struct pem_context any = {.cpu = PEM_NO_CPU};

	if (!context)
		context = &any;
	if (demand->has_context && memcmp(&demand->context, context, sizeof(*context)))
		return pem_error__set(error, -EBUSY,
				      "this session already observes %s in another context; open a "
				      "second session",
				      demand->event->name);
	demand->context = *context;
	demand->has_context = true;
	return 0;
}

void pem_demand__release_context(struct pem_demand *demand)
{
	if (!demand->want_log && !demand->want_statistic && !demand->want_async &&
	    demand->instance < 0)
		demand->has_context = false;
}

uint64_t pem_demand__action(const struct pem_demand *demand)
{
	uint32_t flags = 0, type = 0, offset = 0;

	/* What the overhead budget does not let be logged is counted. */
	if ((demand->log && demand->detail == PEM_DETAIL_LOG) || demand->async ||
	    demand->async_context)
		flags |= PEM_ACTION_LOG;
	if (demand->wake)
		flags |= PEM_ACTION_WAKE;
	if (demand->callback)
		flags |= PEM_ACTION_CALLBACK;
	if ((demand->statistic && demand->detail != PEM_DETAIL_OFF) ||
	    (demand->log && demand->detail == PEM_DETAIL_STATISTICS))
		flags |= PEM_ACTION_STAT | (demand->distribution ? PEM_ACTION_DISTRIBUTION : 0);
	if (demand->field != PEM_NO_FIELD) {
		type = demand->event->fields[demand->field].type;
		if (type == PEM_TYPE_ADDRESS) /* an action has 4 bits for what is added up */
			type = PEM_TYPE_UINT64;
		offset = demand->event->fields[demand->field].offset;
	}
	if (demand->context.tid != PEM_ANY || demand->context.cpu != PEM_NO_CPU ||
	    demand->predicate)
		flags |= flags ? PEM_ACTION_FILTER : 0;
	/* The epoch stays when nothing is wanted: a source's statistic is of it, and can still be read. */
	return PEM_ACTION(flags, demand->field, type, offset, demand->epoch);
}
