/* SPDX-License-Identifier: MIT */
/*
 * dirs_fixture.h - runtime folders that are filled by hand, as a hostile user would: the session's
 * own and two of others
 *
 * Included by session_models.c, session_limits.c and session_stalls.c.
 */
#ifndef DIRS_FIXTURE_H
#define DIRS_FIXTURE_H

#include "chunks/chunks.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "writer/log.h"
#include "model_internal.h"
#include "util.h"
#include "ring_fixture.h"
#include "session_fixture.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNKS 8u
#define OTHERS 2

static struct pem_session *session;
static struct pem_log *trace_log;
static char said[8192]; /* all messages */
/* Of the session's own directory, and of others. */
static struct pem_dir *dir[1 + OTHERS];

__attribute__((unused)) static void note_message(enum pem_log_level level, const char *text,
						 void *arg)
{
	(void)level;
	(void)arg;
	strncat(said, text, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

/*
 * A directory that is not the session's own, in a folder of its own. It has no keeper: pass_on does
 * a keeper's work. The files in it are this user's.
 */
__attribute__((unused)) static struct pem_dir *make_dir(int number)
{
	struct pem_dir *made = calloc(1, sizeof(*made)), *last = session->dirs->first;
	char path[128];

	assert_non_null(made);
	*made = (struct pem_dir){.owner = (uid_t)number, .number = (uint32_t)number};
	assert_non_null(pem_dir__user(session, made)); /* each is of another user */
	made->owner = geteuid();
	snprintf(path, sizeof(path), "%s/other-%d", folder, number);
	assert_int_equal(mkdir(path, 0700), 0);
	made->runtime_fd = -1;
	made->directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(made->directory_fd >= 0);
	while (last->next)
		last = last->next;
	last->next = made;
	return made;
}

/* Pass on all files of others' folders with a prefix, each once, as keepers do. */
__attribute__((unused)) static void pass_on(const char *prefix,
					    void (*found)(struct pem_session *s, struct pem_dir *in,
							  const char *name, int fd))
{
	struct pem_dir *in;
	struct dirent *entry;
	DIR *directory;

	for (in = session->dirs->first->next; in; in = in->next) {
		directory = pem_list_folder(in->directory_fd);
		while ((entry = readdir(directory))) {
			if (strncmp(entry->d_name, prefix, strlen(prefix)))
				continue;
			found(session, in, entry->d_name,
			      openat(in->directory_fd, entry->d_name, O_RDWR | O_CLOEXEC));
			unlinkat(in->directory_fd, entry->d_name, 0);
		}
		closedir(directory);
	}
}

__attribute__((unused)) static void scan_producers(void)
{
	pass_on("model-", pem_session__found_model);
	pass_on("pool-", pem_session__found_pool);
	pem_session__scan_producers(session);
}

__attribute__((unused)) static int set_up(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options),
						    .chunk_bytes = CHUNK,
						    .chunk_count = CHUNKS,
						    .log = note_message};
	int i;

	if (folder_make(state))
		return -1;
	said[0] = 0;
	session = session_open(&options);
	session->geometry.lane_count = LANES;
	trace_log = log_to_trace(session, "APP", NULL);
	pem_session__add_session_dir(session);
	dir[0] = session->dirs->first;
	for (i = 1; i <= OTHERS; i++)
		dir[i] = make_dir(i);
	return 0;
}

__attribute__((unused)) static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

__attribute__((unused)) static void write_file(const struct pem_dir *in, const char *name,
					       const char *text)
{
	int fd = openat(in->directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static const struct pem_pool_geometry usual = {PEM_POOL_FURTHER, CHUNK, CHUNKS, LANES, EVENTS, 0};

/* A pool of some geometry. */
__attribute__((unused)) static struct pool make_pool(const struct pem_dir *in, unsigned number,
						     const struct pem_pool_geometry *g)
{
	struct pem_pool_header header = {.abi_version = PEM_ABI_VERSION,
					 .flags = g->flags,
					 .chunk_bytes = g->chunk_bytes,
					 .chunk_count = g->chunk_count,
					 .lane_count = g->lane_count,
					 .event_capacity = g->event_capacity};
	struct pool pool;
	char name[64];
	int fd;

	pem_pool__layout(&header);
	pool.bytes = header.total_bytes;
	snprintf(name, sizeof(name), "pool-1-%u", number);
	fd = openat(in->directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)pool.bytes), 0);
	pool.header = mmap(NULL, pool.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(pool.header, MAP_FAILED);
	close(fd);
	memcpy(pool.header, &header, sizeof(header));
	pool.header->pid = (uint32_t)getpid();
	pool.header->start_clock = pem_clock();
	strcpy(pool.header->comm, "by hand");
	pem_pool__point(pool.header, &header, &pool.ring);
	__atomic_store_n(&pool.header->magic, PEM_POOL_MAGIC, __ATOMIC_RELEASE);
	return pool;
}

/* The same file under further names. */
__attribute__((unused)) static void link_pool(const struct pem_dir *in, unsigned number,
					      unsigned count)
{
	char from[64], to[64];
	unsigned i;

	snprintf(from, sizeof(from), "pool-1-%u", number);
	for (i = 1; i <= count; i++) {
		snprintf(to, sizeof(to), "pool-1-%u", number + i);
		assert_int_equal(linkat(in->directory_fd, from, in->directory_fd, to, 0), 0);
	}
}

/* A model of one event with one field. */
__attribute__((unused)) static char *model_text(const char *specifier, const char *field,
						const char *type)
{
	struct pem_error error = {""};
	struct pem_model *model = pem_model__new();
	const struct pem_field f = {
		.name = field,
		.description = "",
		.unit = "none",
		.type = (uint8_t)(!strcmp(type, "uint32") ? PEM_TYPE_UINT32 : PEM_TYPE_UINT64),
		.max_count = 1,
		.base = 10};
	const struct pem_event event = {.layer = "APP",
					.class_name = "Limits",
					.specifier = specifier,
					.description = "",
					.source_name = "",
					.fields = &f,
					.field_count = 1,
					.level = PEM_LEVEL_INFO,
					.version = 1};
	char *text;

	if (pem_model__describe(model, &event, &error) < 0)
		fail_msg("%s", error.text);
	text = pem_model__to_text(model);
	pem_model__free(model);
	return text;
}

__attribute__((unused)) static uint32_t id_of(const char *text)
{
	struct pem_model *model = pem_model__new();
	uint32_t id;

	assert_int_equal(pem_model__add_text(model, text, strlen(text), "test", NULL), 1);
	id = pem_model__event(model, 0)->id;
	pem_model__free(model);
	return id;
}

/* A process of a directory whose slot is described by a text, offered under a hash. */
__attribute__((unused)) static struct pool describe(const struct pem_dir *in, unsigned number,
						    const char *text, uint32_t id, uint32_t hash)
{
	struct pool pool = make_pool(in, number, &usual);
	char name[32];

	snprintf(name, sizeof(name), "model-%08x", hash);
	if (faccessat(in->directory_fd, name, F_OK, 0))
		write_file(in, name, text);
	pem_pool__event_ids(&pool.ring)[0] = id;
	pem_pool__event_models(&pool.ring)[0] = hash;
	return pool;
}

__attribute__((unused)) static struct pool describe_truly(const struct pem_dir *in, unsigned number,
							  char *text)
{
	struct pool pool =
		describe(in, number, text, id_of(text), pem_model__hash(text, strlen(text)));

	free(text);
	return pool;
}

/* count records of an event with a field of body_bytes, that holds value. */
__attribute__((unused)) static void put(struct pool *pool, unsigned count, uint64_t value,
					uint32_t body_bytes)
{
	struct pem_writer w = writer_make(&pool->ring, 1);

	assert_true(writer_claim(&pool->ring, &w, pem_clock()) >= 0);
	while (count--)
		assert_true(writer_put(&w, pem_clock(), pem_pool__event_ids(&pool->ring)[0], 0,
				       &value, 8 + body_bytes));
	pem_ring_retire(&pool->ring, &w);
}

__attribute__((unused)) static void scan(void)
{
	struct pem_producer *p;

	scan_producers();
	for (p = session->processes->producers; p; p = p->next)
		pem_session__drain_producer(session, p, false);
}

__attribute__((unused)) static unsigned producers_of(const struct pem_dir *in)
{
	const struct pem_producer *p;
	unsigned count = 0;

	for (p = session->processes->producers; p; p = p->next)
		count += p->dir == in;
	return count;
}

/* Finish the log; of the trace's records, those of an event whose field holds a value. */
__attribute__((unused)) static unsigned in_trace(const char *event, uint64_t value,
						 struct pem_balance *balance)
{
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace;
	unsigned count = 0;

	assert_int_equal(pem_log__finish(trace_log, &error), 0);
	trace = pem_trace__open(trace_path, &error);
	if (!trace)
		fail_msg("%s", error.text);
	while (pem_trace__next(trace, &record, &error) == 1) {
		if (!strcmp(record.event->name, event))
			count += pem_record__u64(&record, 0) == value;
	}
	*balance = pem_trace__total_balance(trace);
	pem_trace__close(trace);
	return count;
}

__attribute__((unused)) static bool has_gap(const char *text)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	bool found = false;
	uint32_t i;

	assert_int_equal(pem_log__finish(trace_log, &error), 0);
	trace = pem_trace__open(trace_path, &error);
	if (!trace)
		fail_msg("%s", error.text);
	for (i = 0; i < pem_trace__info(trace)->gap_count; i++)
		found |= strstr(pem_trace__info(trace)->gaps[i].reason, text) != NULL;
	pem_trace__close(trace);
	return found;
}

#endif
