// SPDX-License-Identifier: MIT
/*
 * session_limits.c - what a runtime folder's owner can make a recorder do: read, open, map and believe
 *
 * Folders are filled here by hand, as a hostile user would. One is the session's own, two are those of others. Not here:
 * damage within a pool of the right form (session_drain.c), other users for real (e2e/attach_false_models.py).
 */
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
/* Of the session's own place, and of others. */
static struct pem_place *place[1 + OTHERS];

static void note_message(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	strncat(said, text, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

/*
 * A place that is not the session's own, in a folder of its own. It has no keeper: pass_on does a keeper's work. The files in
 * it are this user's.
 */
static struct pem_place *make_place(int number)
{
	struct pem_place *made = calloc(1, sizeof(*made)), *last = session->places;
	char path[128];

	assert_non_null(made);
	*made = (struct pem_place){.owner = (uid_t)number, .number = (uint32_t)number};
	assert_non_null(pem_place__user(session, made)); /* each is of another user */
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
static void pass_on(const char *prefix, void (*found)(struct pem_session *s, struct pem_place *in,
						      const char *name, int fd))
{
	struct pem_place *in;
	struct dirent *entry;
	DIR *directory;

	for (in = session->places->next; in; in = in->next) {
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

static void scan_producers(void)
{
	pass_on("model-", pem_session__found_model);
	pass_on("pool-", pem_session__found_pool);
	pem_session__scan_producers(session);
}

static int set_up(void **state)
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
	pem_session__own_place(session);
	place[0] = session->places;
	for (i = 1; i <= OTHERS; i++)
		place[i] = make_place(i);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static void write_file(const struct pem_place *in, const char *name, const char *text)
{
	int fd = openat(in->directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static const struct pem_pool_geometry usual = {0, CHUNK, CHUNKS, LANES, EVENTS};

/* A pool of some geometry. */
static struct pool make_pool(const struct pem_place *in, unsigned number,
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
static void link_pool(const struct pem_place *in, unsigned number, unsigned count)
{
	char from[64], to[64];
	unsigned i;

	snprintf(from, sizeof(from), "pool-1-%u", number);
	for (i = 1; i <= count; i++) {
		snprintf(to, sizeof(to), "pool-1-%u", number + i);
		assert_int_equal(linkat(in->directory_fd, from, in->directory_fd, to, 0), 0);
	}
}

/* --- models --- */

/* A model of one event with one field. */
static char *model_text(const char *specifier, const char *field, const char *type)
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

static uint32_t id_of(const char *text)
{
	struct pem_model *model = pem_model__new();
	uint32_t id;

	assert_int_equal(pem_model__add_text(model, text, strlen(text), "test", NULL), 1);
	id = pem_model__event(model, 0)->id;
	pem_model__free(model);
	return id;
}

/* A process of a place whose slot is described by a text, offered under a hash. */
static struct pool describe(const struct pem_place *in, unsigned number, const char *text,
			    uint32_t id, uint32_t hash)
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

static struct pool describe_truly(const struct pem_place *in, unsigned number, char *text)
{
	struct pool pool =
		describe(in, number, text, id_of(text), pem_model__hash(text, strlen(text)));

	free(text);
	return pool;
}

/* count records of an event with a field of body_bytes, that holds value. */
static void put(struct pool *pool, unsigned count, uint64_t value, uint32_t body_bytes)
{
	struct pem_writer w = writer_make(&pool->ring, 1);

	assert_true(writer_claim(&pool->ring, &w, pem_clock()) >= 0);
	while (count--)
		assert_true(writer_put(&w, pem_clock(), pem_pool__event_ids(&pool->ring)[0], 0,
				       &value, 8 + body_bytes));
	pem_ring_retire(&pool->ring, &w);
}

static void scan(void)
{
	struct pem_producer *p;

	scan_producers();
	for (p = session->producers; p; p = p->next)
		pem_session__drain_producer(session, p, false);
}

static unsigned producers_of(const struct pem_place *in)
{
	const struct pem_producer *p;
	unsigned count = 0;

	for (p = session->producers; p; p = p->next)
		count += p->place == in;
	return count;
}

/* Finish the log; of the trace's records, those of an event whose field holds a value. */
static unsigned in_trace(const char *event, uint64_t value, struct pem_balance *balance)
{
	struct pem_error error = {""};
	struct pem_record record;
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

static bool has_gap(const char *text)
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

static void a_true_text_is_believed(void **state)
{
	struct pool pool = describe_truly(place[0], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;

	(void)state;
	put(&pool, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5);
	assert_int_equal(b.discarded, 0);
	assert_string_equal(said, "");
	pool_free(&pool);
}

/* Offered under a hash that is another text's. */
static void a_false_text_is_not_believed(void **state)
{
	char *text = model_text("One", "value", "uint32"),
	     *other = model_text("One", "v", "uint64");
	struct pool pool =
		describe(place[0], 1, other, id_of(text), pem_model__hash(text, strlen(text)));
	struct pem_balance b;

	(void)state;
	put(&pool, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 0);
	assert_int_equal(b.produced, 5);
	assert_int_equal(b.discarded, 5);
	assert_non_null(strstr(said, "not the one that its name tells"));
	assert_true(has_gap("not the one that its name tells"));
	free(text);
	free(other);
	pool_free(&pool);
}

/* Each word of a text counts, and so does its end. */
static void the_hash_is_of_all_of_the_text(void **state)
{
	char *text = model_text("One", "value", "uint32");
	size_t bytes = strlen(text), i;
	uint32_t hash = pem_model__hash(text, bytes);

	(void)state;
	for (i = 0; i < bytes; i++) {
		text[i] ^= 1;
		assert_int_not_equal(pem_model__hash(text, bytes), hash);
		text[i] ^= 1;
		assert_int_not_equal(pem_model__hash(text, i), hash);
	}
	assert_int_equal(pem_model__hash(text, bytes), hash);
	free(text);
}

/* A program and its recorder may be of different versions of pem. */
static void the_hash_stays_what_it_was(void **state)
{
	(void)state;
	assert_int_equal(pem_model__hash("", 0), 0x17450b5eu);
	assert_int_equal(pem_model__hash("pem-model\t2\n", 12), 0x946fa18fu);
}

/* One place offers a false text under the hash of another's, before that one does. */
static void a_text_is_of_its_place(void **state)
{
	char *text = model_text("One", "value", "uint32"),
	     *other = model_text("One", "v", "uint64");
	uint32_t hash = pem_model__hash(text, strlen(text));
	struct pool hostile = describe(place[1], 1, other, id_of(other), hash), pool;
	struct pem_balance b;

	(void)state;
	put(&hostile, 3, 77, 8);
	scan();
	pool = describe(place[2], 1, text, id_of(text), hash);
	put(&pool, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5);
	assert_int_equal(b.delivered, 5);
	assert_int_equal(b.produced, 8);
	free(text);
	free(other);
	pool_free(&hostile);
	pool_free(&pool);
}

static void contradicting_places_are_both_recorded(void **state)
{
	struct pool first = describe_truly(place[1], 1, model_text("One", "v", "uint64"));
	struct pool later = describe_truly(place[2], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;
	char name[64];

	(void)state;
	put(&first, 3, 1ull << 40, 8);
	put(&later, 5, 77, 4);
	scan_producers();
	scan();
	snprintf(name, sizeof(name), "APP::Limits::One_of_user_%u", (unsigned)geteuid());
	assert_int_equal(in_trace("APP::Limits::One", 1ull << 40, &b) + in_trace(name, 77, &b), 8);
	assert_int_equal(in_trace(name, 1ull << 40, &b) + in_trace("APP::Limits::One", 77, &b), 0);
	assert_int_equal(b.delivered, 8);
	assert_int_equal(b.discarded, 0);
	pool_free(&first);
	pool_free(&later);
}

/* As long as the layout is the same: another level would switch the other's event off. */
static void contradicting_levels_are_apart(void **state)
{
	char *quiet = model_text("One", "value", "uint32"), *at = strstr(quiet, "\tinfo\t");
	struct pool first, later;
	char *loud = malloc(strlen(quiet) + 8);

	(void)state;
	assert_non_null(at);
	sprintf(loud, "%.*s\tdebug\t%s", (int)(at - quiet), quiet, at + 6);
	first = describe_truly(place[1], 1, loud);
	scan();
	later = describe_truly(place[2], 1, quiet);
	scan();
	assert_int_equal(
		pem_place__event(session, place[1], pem_pool__event_ids(&first.ring)[0])->level,
		PEM_LEVEL_DEBUG);
	assert_int_equal(
		pem_place__event(session, place[2], pem_pool__event_ids(&later.ring)[0])->level,
		PEM_LEVEL_INFO);
	/* And who has not met it yet asks the process. */
	assert_null(pem_place__event(session, place[0], pem_pool__event_ids(&later.ring)[0]));
	pool_free(&first);
	pool_free(&later);
}

static void the_same_description_is_one_event(void **state)
{
	struct pool first = describe_truly(place[1], 1, model_text("One", "value", "uint32"));
	struct pool later = describe_truly(place[0], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;

	(void)state;
	put(&first, 3, 77, 4);
	put(&later, 5, 77, 4);
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 8);
	pool_free(&first);
	pool_free(&later);
}

/* What is certain comes before what any folder says. */
static void the_catalogue_wins(void **state)
{
	const struct pem_event *known = pem_model__by_name(session->model, "APP::Libc::Free");
	char *text = model_text("One", "value", "uint32"), *changed, *at;
	struct pool hostile, pool = make_pool(place[0], 1, &usual);
	struct pem_balance b;
	char name[64];

	(void)state;
	/* The event's name, in its cells and in its declaration. */
	changed = malloc(strlen(text) + 64);
	at = strstr(text, "event\t");
	snprintf(name, sizeof(name), "event\t%08x\tAPP::Libc::Free\tAPP\tLibc\tFree", known->id);
	sprintf(changed, "%.*s%s%s", (int)(at - text), text, name,
		strstr(at, "\tLimits\tOne") + strlen("\tLimits\tOne"));
	free(text);
	hostile = describe_truly(place[1], 1, changed);
	put(&hostile, 3, 77, 4);
	scan();
	pem_pool__event_ids(&pool.ring)[0] = known->id;
	put(&pool, 5, 77, 8);
	scan();
	assert_int_equal(in_trace("APP::Libc::Free", 77, &b), 5);
	assert_int_equal(b.discarded, 3);
	assert_true(has_gap("has other fields than the event of that name"));
	pool_free(&hostile);
	pool_free(&pool);
}

/* Events of the kernel are not for programs to describe: a session would look for them. */
static void a_program_describes_no_kernel_event(void **state)
{
	char *text = model_text("One", "value", "uint32"), *at = strstr(text, "\tstub\t"), *changed;
	size_t before = pem_model__count(session->model);
	struct pool pool;

	(void)state;
	assert_non_null(at);
	changed = malloc(strlen(text) + 16);
	sprintf(changed, "%.*s\ttracepoint\t%s", (int)(at - text), text, at + 6);
	free(text);
	pool = describe_truly(place[1], 1, changed);
	scan();
	assert_int_equal(producers_of(place[1]), 1);
	assert_int_equal(pem_model__count(session->model), before);
	pool_free(&pool);
}

/* A keeper may have listed the models before the one that a pool names came. */
static void records_wait_for_their_model(void **state)
{
	struct pool pool = describe_truly(place[1], 1, model_text("One", "value", "uint32"));
	struct pem_producer *p;
	struct pem_balance b;

	(void)state;
	put(&pool, 5, 77, 4);
	pass_on("pool-", pem_session__found_pool);
	p = session->producers;
	assert_non_null(p);
	assert_true(pem_session__drain_producer(session, p, false));
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FULL);
	pass_on("model-", pem_session__found_model);
	assert_true(pem_session__drain_producer(session, p, false));
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FREE);
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5);
	assert_int_equal(b.discarded, 0);
	pool_free(&pool);
}

/* But not for ever: the pool would be full. */
static void a_model_that_does_not_come_is_not_waited_for(void **state)
{
	struct pool pool = describe_truly(place[1], 1, model_text("One", "value", "uint32"));
	struct pem_producer *p;

	(void)state;
	put(&pool, 5, 77, 4);
	pass_on("pool-", pem_session__found_pool);
	p = session->producers;
	assert_non_null(p);
	assert_int_not_equal(p->awaits_model_ns, 0);
	p->awaits_model_ns = 1;
	assert_true(pem_session__drain_producer(session, p, false));
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FREE);
	pool_free(&pool);
}

/* --- limits --- */

static void models_of_a_place_are_limited(void **state)
{
	struct pool pool = make_pool(place[1], 1, &usual);
	char name[32], specifier[16], *text;
	uint32_t i, hash;

	(void)state;
	for (i = 0; i < 400; i++) {
		snprintf(specifier, sizeof(specifier), "E%u", i);
		text = model_text(specifier, "value", "uint32");
		hash = pem_model__hash(text, strlen(text));
		snprintf(name, sizeof(name), "model-%08x", hash);
		write_file(place[1], name, text);
		pem_pool__event_models(&pool.ring)[i] = hash;
		pem_pool__event_ids(&pool.ring)[i] = id_of(text);
		free(text);
	}
	scan();
	assert_int_equal(place[1]->usage.used[PEM_RESOURCE_MODELS], 256);
	assert_int_equal(place[1]->usage.used[PEM_RESOURCE_EVENTS], 256);
	assert_int_equal(place[1]->usage.excess[PEM_EXCESS_MODELS], 400 - 256);
	assert_true(has_gap("144 events of programs of user"));
	pool_free(&pool);
}

/* Texts that are large, and can't be parsed. */
static void bytes_of_models_are_limited(void **state)
{
	struct pool pool = make_pool(place[1], 1, &usual);
	static char text[900000];
	char name[32];
	uint32_t i, hash;

	(void)state;
	assert_true(pem_place__take(session, place[1], PEM_RESOURCE_MODEL_BYTES, 7u << 20));
	for (i = 0; i < 4; i++) {
		memset(text, '#', sizeof(text) - 1);
		text[i] = '!';
		if (i == 3)
			text[850000] = 0; /* fits, where the others don't */
		hash = pem_model__hash(text, strlen(text));
		snprintf(name, sizeof(name), "model-%08x", hash);
		write_file(place[1], name, text);
		pem_pool__event_models(&pool.ring)[i] = hash;
		pem_pool__event_ids(&pool.ring)[i] = 1000 + i;
	}
	scan();
	/* One at a time there is room for them; then they are not kept. */
	assert_int_equal(place[1]->usage.used[PEM_RESOURCE_MODEL_BYTES], 7u << 20);
	assert_int_equal(place[1]->usage.excess[PEM_EXCESS_FALSE_MODELS], 4);
	pool_free(&pool);
}

static void one_place_leaves_room_for_the_next(void **state)
{
	unsigned i;

	(void)state;
	/* All but 100 are taken by places that came before. */
	session->used_by_others[PEM_RESOURCE_EVENTS] = 2048 - 100;
	for (i = 0; pem_place__take(session, place[1], PEM_RESOURCE_EVENTS, 1); i++)
		;
	assert_int_equal(i, 50);
	for (i = 0; pem_place__take(session, place[2], PEM_RESOURCE_EVENTS, 1); i++)
		;
	assert_int_equal(i, 25);
	for (i = 0; i < 5000; i++)
		assert_true(pem_place__take(session, place[0], PEM_RESOURCE_EVENTS, 1));
	session->used_by_others[PEM_RESOURCE_EVENTS] = 75;
}

static void pools_of_another_geometry_are_refused(void **state)
{
	const struct pem_pool_geometry others[] = {
		{PEM_POOL_OVERWRITE, CHUNK, CHUNKS, LANES, EVENTS},
		{0, 2 * CHUNK, CHUNKS, LANES, EVENTS},
		{0, CHUNK, CHUNKS / 2, LANES, EVENTS},
		{0, CHUNK, 2 * CHUNKS, LANES, EVENTS},
		{0, CHUNK, CHUNKS, 2 * LANES, EVENTS},
		{0, CHUNK, CHUNKS, LANES, EVENTS / 2},
	};
	struct pool pool[6];
	uint64_t opened;
	unsigned i;

	(void)state;
	for (i = 0; i < 6; i++)
		pool[i] = make_pool(place[0], i, &others[i]);
	scan();
	assert_int_equal(producers_of(place[0]), 0);
	assert_int_equal(place[0]->usage.excess[PEM_EXCESS_GEOMETRY], 6);
	assert_non_null(strstr(said, "are no pools of this recording"));
	opened = place[0]->usage.files_opened;
	scan();
	scan();
	assert_int_equal(place[0]->usage.files_opened, opened);
	assert_int_equal(place[0]->usage.excess[PEM_EXCESS_GEOMETRY], 6);
	assert_true(has_gap("6 files of user"));
	for (i = 0; i < 6; i++)
		pool_free(&pool[i]);
}

/* Its size is right, and its head is not. */
static void a_head_of_another_geometry_is_refused(void **state)
{
	struct pool pool = make_pool(place[0], 1, &usual);

	(void)state;
	pool.header->flags = PEM_POOL_OVERWRITE;
	scan();
	assert_int_equal(producers_of(place[0]), 0);
	assert_int_equal(place[0]->usage.excess[PEM_EXCESS_GEOMETRY], 1);
	pool_free(&pool);
}

static void a_pool_that_is_not_ready_is_looked_at_again(void **state)
{
	struct pool pool = make_pool(place[0], 1, &usual);

	(void)state;
	pool.header->magic = 0;
	scan();
	assert_int_equal(producers_of(place[0]), 0);
	__atomic_store_n(&pool.header->magic, PEM_POOL_MAGIC, __ATOMIC_RELEASE);
	scan();
	assert_int_equal(producers_of(place[0]), 1);
	assert_string_equal(said, "");
	pool_free(&pool);
}

static void links_are_refused(void **state)
{
	struct pool pool = make_pool(place[0], 1, &usual);
	char *text = model_text("One", "value", "uint32");
	struct pool linked =
		describe(place[2], 1, text, id_of(text), pem_model__hash(text, strlen(text)));
	struct pem_balance b;
	char name[32];

	(void)state;
	link_pool(place[0], 1, 99);
	snprintf(name, sizeof(name), "model-%08x", pem_model__hash(text, strlen(text)));
	assert_int_equal(linkat(place[2]->directory_fd, name, place[2]->directory_fd, "again", 0),
			 0);
	put(&linked, 5, 77, 4);
	scan();
	assert_int_equal(producers_of(place[0]), 0);
	assert_int_equal(place[0]->usage.files_opened, 0);
	assert_int_equal(place[0]->usage.excess[PEM_EXCESS_LINKS], 100);
	assert_int_equal(place[2]->usage.excess[PEM_EXCESS_LINKS], 1);
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 0);
	assert_int_equal(b.discarded, 5);
	assert_true(has_gap("100 files of user"));
	free(text);
	pool_free(&pool);
	pool_free(&linked);
}

/* Sparse ones, each of its own; of the own place there may be more. */
static void pools_of_a_place_are_limited(void **state)
{
	struct pool pool;
	unsigned i;

	(void)state;
	for (i = 0; i < 1100; i++) {
		pool = make_pool(place[1], i, &usual);
		pool_free(&pool);
		pool = make_pool(place[0], i, &usual);
		pool_free(&pool);
	}
	scan();
	assert_int_equal(producers_of(place[0]), 1100);
	assert_int_equal(producers_of(place[1]), 1024);
	assert_int_equal(place[1]->usage.excess[PEM_EXCESS_POOLS], 1100 - 1024);
	assert_non_null(strstr(said, "1 processes of user"));
	assert_true(has_gap("76 processes of user"));
}

/* One place takes all of its turn: the others' pools are drained all the same, and its own go on with the next. */
static void a_turn_is_shared(void **state)
{
	struct pool busy = describe_truly(place[1], 1, model_text("One", "value", "uint32"));
	struct pool pool = describe_truly(place[2], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;
	struct pem_producer *p;

	(void)state;
	put(&busy, 3, 77, 4);
	put(&pool, 5, 77, 4);
	scan_producers();
	place[1]->usage.user->turn_ns = 1000000000u;
	for (p = session->producers; p; p = p->next)
		assert_int_equal(pem_session__drain_producer(session, p, false),
				 p->place != place[1]);
	assert_int_equal(PEM_CHUNK_STATE(busy.ring.chunk_state[0]), PEM_CHUNK_FULL);
	assert_int_equal(PEM_CHUNK_STATE(pool.ring.chunk_state[0]), PEM_CHUNK_FREE);
	scan();
	assert_int_equal(PEM_CHUNK_STATE(busy.ring.chunk_state[0]), PEM_CHUNK_FREE);
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 8);
	pool_free(&busy);
	pool_free(&pool);
}

/* However many folders a user has, they get no more than one. */
static void folders_of_a_user_share(void **state)
{
	struct pem_place *another;
	unsigned i;

	(void)state;
	another = make_place(OTHERS + 1);
	another->usage.user = place[1]->usage.user;
	for (i = 0; pem_place__take(session, place[1], PEM_RESOURCE_POOLS, 1); i++)
		;
	assert_int_equal(i, 1024);
	assert_false(pem_place__take(session, another, PEM_RESOURCE_POOLS, 1));
	assert_true(pem_place__take(session, place[2], PEM_RESOURCE_POOLS, 1));
	pem_place__give_back(session, place[1], PEM_RESOURCE_POOLS, 1);
	assert_true(pem_place__take(session, another, PEM_RESOURCE_POOLS, 1));
	pem_place__charge(session, place[1], 0); /* since the machine started */
	assert_true(pem_place__had_turn(another));
	assert_false(pem_place__had_turn(place[2]));
	pem_session__begin_end(session);
	pem_place__charge_end(session, place[1], pem_monotonic_ns() - 2000000000u);
	assert_true(pem_place__had_end(session, another));
	assert_false(pem_place__had_end(session, place[2]));
}

static void two_folders_of_one_user_have_one_account(void **state)
{
	struct pem_place one = {.number = 8, .owner = 5}, two = {.number = 9, .owner = 5},
			 other = {.number = 10, .owner = 6},
			 shared = {.number = 11, .owner = 5, .is_public = true};

	(void)state;
	assert_non_null(pem_place__user(session, &one));
	assert_ptr_equal(pem_place__user(session, &one), pem_place__user(session, &two));
	assert_ptr_not_equal(pem_place__user(session, &one), pem_place__user(session, &other));
	assert_ptr_not_equal(pem_place__user(session, &one), pem_place__user(session, &shared));
	assert_null(pem_place__user(session, place[0]));
}

/* Counts that its records do not bear out, however large: the trace is whole, and says whose they are. */
static void false_counts_of_another_user_balance(void **state)
{
	const uint64_t counts[][2] = {{0, 1000}, {1000, 0}, {UINT64_MAX, 7}, {3, UINT64_MAX}};
	struct pool pool, false_one;
	struct pem_balance b;
	unsigned i;

	(void)state;
	pool = describe_truly(place[0], 1, model_text("One", "value", "uint32"));
	put(&pool, 5, 77, 4);
	for (i = 0; i < PEM_ARRAY_SIZE(counts); i++) {
		false_one = describe_truly(place[1], i, model_text("One", "value", "uint32"));
		put(&false_one, 2, 77, 4);
		false_one.ring.slots[EVENTS].produced = counts[i][0];
		false_one.ring.slots[EVENTS].discarded = counts[i][1];
		pool_free(&false_one);
	}
	scan();
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 5 + 2 * PEM_ARRAY_SIZE(counts));
	assert_int_equal(b.produced, b.delivered + b.discarded + b.overwritten);
	assert_true(b.produced < UINT64_MAX / 2);
	assert_true(has_gap("4 processes of user"));
	pool_free(&pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_true_text_is_believed),
		TEST(a_false_text_is_not_believed),
		cmocka_unit_test(the_hash_is_of_all_of_the_text),
		cmocka_unit_test(the_hash_stays_what_it_was),
		TEST(a_text_is_of_its_place),
		TEST(contradicting_places_are_both_recorded),
		TEST(contradicting_levels_are_apart),
		TEST(the_same_description_is_one_event),
		TEST(the_catalogue_wins),
		TEST(a_program_describes_no_kernel_event),
		TEST(models_of_a_place_are_limited),
		TEST(bytes_of_models_are_limited),
		TEST(one_place_leaves_room_for_the_next),
		TEST(pools_of_another_geometry_are_refused),
		TEST(a_head_of_another_geometry_is_refused),
		TEST(a_pool_that_is_not_ready_is_looked_at_again),
		TEST(links_are_refused),
		TEST(pools_of_a_place_are_limited),
		TEST(records_wait_for_their_model),
		TEST(a_model_that_does_not_come_is_not_waited_for),
		TEST(a_turn_is_shared),
		TEST(folders_of_a_user_share),
		TEST(two_folders_of_one_user_have_one_account),
		TEST(false_counts_of_another_user_balance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
