/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * models.c - a session learns about events from its caller, from providers of this process, and
 * from providers of other processes
 *
 * The session is certain of the catalogue, of its caller's models, and of providers of this
 * process. A provider of another process may contradict these, for example if it was made from
 * another version of a spec. Its records then have another layout. Its model is kept apart. The
 * model gives the length of such a record, so that it can be passed over and counted.
 *
 * All other events are described by models that processes leave in the session's directories. A
 * model is read from the directory of its process. It is believed for processes of this directory
 * only:
 *
 *	text in a folder --hash, limits--> known model of the directory --raised--> event of the
 *	directory --> event of the session
 *
 * A trace describes each event once. Directories with equal descriptions share one event of the
 * session. Where descriptions differ, the later one becomes an event with a name and an id of its
 * own. Its records are given this id on their way into the trace (drain.c).
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "writer/log.h"
#include "model_internal.h"
#include "producer/producer.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * How long a model is waited for. A keeper rests for a second at most after a listing
 * (confined/keep.c).
 */
#define MODEL_NS 3000000000u

/* A text that a process left in a directory. */
struct pem_known_model {
	uint32_t hash; /* hash of the text; the name of its file has it too */
	/* Its events. NULL: the text is over a limit or false, and excess says which. */
	struct pem_model_block *block;
	enum pem_excess excess;
	uint64_t bytes;
	/*
	 * The first of its events that contradicts an event that is certain. NULL: there is none.
	 */
	const struct pem_event *misfit;
	struct pem_known_model *next;
};

/* An event as processes of a directory raise it. */
struct pem_dir_event {
	uint32_t id; /* the id that these processes give it */
	const struct pem_event *described; /* as a known model of the directory describes it */
	const struct pem_event *event; /* the event of the session's model */
	struct pem_dir_event *next;
};

int pem_session__add_model(struct pem_session *session, const char *text, size_t bytes,
			   const char *origin, struct pem_error *error)
{
	int added;

	if (!session || !text)
		return pem_error__lacks(error, session ? "text of a model" : "session");
	pem_session__lock(session);
	added = pem_model__add_text(session->model, text, bytes, origin, error);
	if (added > 0 && session->log)
		pem_log__model_grew(session->log);
	pem_session__unlock(session);
	return added;
}

/* --- texts --- */

/* The directory that brought an event of the session's model. NULL: the event is certain. */
static const struct pem_dir **origin_of(struct pem_session *s, const struct pem_event *event)
{
	return &s->processes->event_origins[pem_model__index(s->model, event->id)];
}

/*
 * Find the session's event that has the id, or the name and version, of an event described
 * elsewhere.
 */
static const struct pem_event *find_rival(const struct pem_session *s,
					  const struct pem_event *described)
{
	const struct pem_event *known = pem_model__by_id(s->model, described->id);

	if (known)
		return known;
	known = pem_model__by_name(s->model, described->name);
	return known && known->version == described->version ? known : NULL;
}

/*
 * Find the first event of a model that contradicts an event that is certain. NULL: there is none.
 */
static const struct pem_event *find_misfit(struct pem_session *s,
					   const struct pem_model_block *block)
{
	const struct pem_event *event, *known;
	size_t i;

	for (i = 0; i < block->event_count; i++) {
		event = &block->events[i];
		known = find_rival(s, event);
		if (known && !*origin_of(s, known) && !pem_event__equal(known, event))
			return event;
	}
	return NULL;
}

/*
 * Read and check the text of known->hash. Returns NULL where there is no text yet, or where the
 * text is refused. If it is refused, known->excess is the reason.
 */
static char *read_text(struct pem_session *s, struct pem_dir *dir, struct pem_known_model *known,
		       int fd)
{
	struct stat st;
	char *text;
	size_t bytes;
	int result = pem_shared_file__check(fd, dir->owner, &st);

	if (result == -EPERM)
		known->excess = PEM_EXCESS_LINKS;
	if (result)
		return NULL;
	if ((uint64_t)st.st_size > pem_dir__text_bytes_max(dir) ||
	    !pem_dir__take(s, dir, PEM_RESOURCE_MODEL_BYTES, (uint64_t)st.st_size)) {
		known->excess = PEM_EXCESS_MODELS;
		return NULL;
	}
	known->bytes = (uint64_t)st.st_size;
	text = pem_shared_file__read(fd, &st, &bytes);
	if (text && bytes == known->bytes && pem_model__hash(text, bytes) == known->hash)
		return text;
	known->excess = PEM_EXCESS_FALSE_MODELS;
	free(text);
	return NULL;
}

/*
 * Read and parse a model. Returns false where the file has gone: it may come again. Any other
 * result is remembered in known.
 */
static bool fill_model(struct pem_session *s, struct pem_dir *dir, struct pem_known_model *known,
		       int fd)
{
	struct pem_error error;
	char name[32], *text = read_text(s, dir, known, fd);

	if (!text)
		return known->excess != PEM_EXCESS_COUNT;
	snprintf(name, sizeof(name), "model-%08x", known->hash);
	known->block = pem_model__parse(text, known->bytes, name, &error);
	free(text);
	if (known->block) {
		known->misfit = find_misfit(s, known->block);
		return true;
	}
	known->excess = PEM_EXCESS_FALSE_MODELS;
	pem_session__say(s, PEM_LOG_WARNING, "a program's event descriptions are not usable: %s",
			 error.text);
	return true;
}

/*
 * Read the model in the open file fd and add it to the directory. The caller closes fd. Returns
 * NULL where the file has gone or memory ran out.
 */
static struct pem_known_model *note_model(struct pem_session *s, struct pem_dir *dir, uint32_t hash,
					  int fd)
{
	struct pem_known_model *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	known->hash = hash;
	known->excess = PEM_EXCESS_COUNT;
	if (!fill_model(s, dir, known, fd)) {
		free(known);
		return NULL;
	}
	if (!known->block) {
		pem_dir__give_back(s, dir, PEM_RESOURCE_MODEL_BYTES, known->bytes);
		known->bytes = 0;
	}
	known->next = dir->known_models[hash % PEM_DIR_BUCKETS];
	dir->known_models[hash % PEM_DIR_BUCKETS] = known;
	return known;
}

static struct pem_known_model *find_model(const struct pem_dir *dir, uint32_t hash)
{
	struct pem_known_model *known = dir->known_models[hash % PEM_DIR_BUCKETS];

	while (known && known->hash != hash)
		known = known->next;
	return known;
}

/*
 * Read the model of a new hash. Returns a model with the excess PEM_EXCESS_MODELS where the
 * directory may have no more models, and else as note_model.
 */
static struct pem_known_model *note_new_model(struct pem_session *s, struct pem_dir *dir,
					      uint32_t hash, int fd)
{
	static struct pem_known_model over_limit = {.excess = PEM_EXCESS_MODELS};
	struct pem_known_model *known;

	if (!pem_dir__take(s, dir, PEM_RESOURCE_MODELS, 1)) {
		dir->models_over = true;
		return &over_limit;
	}
	known = note_model(s, dir, hash, fd);
	if (!known)
		pem_dir__give_back(s, dir, PEM_RESOURCE_MODELS, 1);
	return known;
}

void pem_session__found_model(struct pem_session *s, struct pem_dir *dir, const char *name, int fd)
{
	uint32_t hash;

	if (sscanf(name, "model-%8x", &hash) == 1 && !find_model(dir, hash))
		note_new_model(s, dir, hash, fd);
	close(fd);
}

/*
 * Open the file with the text of a producer's events. Returns its descriptor, or -1 where there is
 * none. In a public folder the file must belong to the producer's user. If another user has taken
 * the usual name first, the file has the pool's name (producer/pools.c).
 */
static int open_text(const struct pem_producer *p, uint32_t hash)
{
	const struct pem_dir *dir = p->dir;
	char name[64];
	struct stat st;
	int fd;

	if (dir->public_folder)
		snprintf(name, sizeof(name), "model-%08x-%u", hash, (unsigned)dir->owner);
	else
		snprintf(name, sizeof(name), "model-%08x", hash);
	fd = pem_shared_file__open(dir->directory_fd, name, O_RDONLY);
	if (!dir->public_folder || (fd >= 0 && !pem_shared_file__check(fd, dir->owner, &st)))
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(name, sizeof(name), "model-%08x-%.31s", hash, p->file + strlen("pool-"));
	return pem_shared_file__open(dir->directory_fd, name, O_RDONLY);
}

/*
 * The model that a producer names for an event. NULL: it names none, or there is none that could be
 * read.
 */
static struct pem_known_model *model_of(struct pem_session *s, const struct pem_producer *p,
					uint32_t event_index)
{
	const uint32_t *models = pem_pool__event_models(&p->ring);
	struct pem_known_model *known;
	uint32_t hash;
	int fd;

	hash = event_index < p->ring.event_capacity
		       ? __atomic_load_n(&models[event_index], __ATOMIC_RELAXED)
		       : 0;
	known = hash ? find_model(p->dir, hash) : NULL;
	/* Keepers pass models on. */
	if (!hash || known || !pem_dir__opens_files(p->dir))
		return known;
	fd = open_text(p, hash);
	if (fd < 0)
		return NULL;
	known = note_new_model(s, p->dir, hash, fd);
	close(fd);
	return known;
}

/* --- refusals --- */

/*
 * Remember a refusal for the trace: once for each process and event, and for another user's
 * directory only once.
 */
static void note_refusal(struct pem_session *s, const struct pem_producer *p, const char *event)
{
	struct pem_refusal *refusal;
	size_t i;

	for (i = 0; i < s->processes->refusal_count; i++) {
		refusal = &s->processes->refusals[i];
		if (refusal->pid == p->pid && !strcmp(refusal->event, event))
			return;
		if (p->dir->number && refusal->dir == p->dir) {
			s->processes->refusals_more++;
			return;
		}
	}
	if (s->processes->refusal_count == PEM_ARRAY_SIZE(s->processes->refusals)) {
		s->processes->refusals_more++;
		return;
	}
	refusal = &s->processes->refusals[s->processes->refusal_count++];
	refusal->pid = p->pid;
	refusal->dir = p->dir;
	pem_copy_text(refusal->event, sizeof(refusal->event), event);
	snprintf(refusal->reason, sizeof(refusal->reason),
		 "%.90s in %.15s (process %u) has other fields than the event of that name pem "
		 "knows: "
		 "build the program again with the same spec",
		 event, p->comm, p->pid);
	pem_printable(refusal->reason);
}

bool pem_producer__is_misfit(struct pem_session *s, const struct pem_producer *p,
			     uint32_t event_index)
{
	const struct pem_known_model *known = model_of(s, p, event_index);

	return known && known->misfit;
}

/* --- events of directories --- */

static struct pem_dir_event *find_dir_event(const struct pem_dir *dir, uint32_t id)
{
	struct pem_dir_event *e;

	for (e = dir->events[id % PEM_DIR_BUCKETS]; e; e = e->next) {
		if (e->id == id)
			return e;
	}
	return NULL;
}

const struct pem_event *pem_dir__event(struct pem_session *s, const struct pem_dir *dir,
				       uint32_t id)
{
	const struct pem_dir_event *e = find_dir_event(dir, id);
	const struct pem_event *known = e ? e->event : pem_model__by_id(s->model, id);

	return e || (known && !*origin_of(s, known)) ? known : NULL;
}

/* The id that processes of the directory give to an event of the session. */
static uint32_t id_in_dir(const struct pem_dir *dir, const struct pem_event *event)
{
	const struct pem_dir_event *e;
	size_t i;

	for (i = 0; i < PEM_DIR_BUCKETS; i++) {
		for (e = dir->events[i]; e; e = e->next) {
			if (e->event == event)
				return e->id;
		}
	}
	return event->id;
}

struct pem_event_entry *pem_producer__entry_of(struct pem_producer *p,
					       const struct pem_event *event)
{
	uint32_t id = p->dir && p->dir->renamed ? id_in_dir(p->dir, event) : event->id;
	struct pem_event_entry *entry = pem_producer__event(p, id);

	return entry && entry->event == event ? entry : NULL;
}

/*
 * Add an event to the session's model for a description of the directory. The name of the event
 * gets a suffix with the user's id.
 */
static const struct pem_event *add_renamed(struct pem_session *s, const struct pem_dir *dir,
					   const struct pem_event *described)
{
	const struct pem_event *event = NULL;
	char suffix[48], name[256];
	unsigned n;

	for (n = 1; !event && n < 100; n++) {
		snprintf(suffix, sizeof(suffix), n > 1 ? "_of_user_%u_%u" : "_of_user_%u",
			 (unsigned)dir->owner, n);
		snprintf(name, sizeof(name), "%.200s%s", described->name, suffix);
		if (!pem_model__by_name(s->model, name))
			event = pem_model__add_copy(s->model, described, suffix, NULL);
	}
	return event;
}

/*
 * Find or make the session's event for a description of a directory. NULL: a limit is reached, or
 * no program raises the event.
 */
static const struct pem_event *enter(struct pem_session *s, struct pem_dir *dir,
				     const struct pem_event *described)
{
	const struct pem_event *known = find_rival(s, described), *event;

	if (known && (*origin_of(s, known) ? pem_event__same(known, described)
					   : pem_event__equal(known, described)))
		return known;
	/* No model of a program may describe an event that the kernel raises. */
	if (described->source_kind != PEM_SOURCE_STUB)
		return NULL;
	if (!pem_dir__take(s, dir, PEM_RESOURCE_EVENTS, 1)) {
		pem_dir__exceed(s, dir, PEM_EXCESS_EVENTS, 1);
		return NULL;
	}
	event = known ? add_renamed(s, dir, described)
		      : pem_model__add_copy(s->model, described, NULL, NULL);
	if (event) {
		*origin_of(s, event) = dir;
		dir->renamed += known != NULL;
		return event;
	}
	pem_dir__give_back(s, dir, PEM_RESOURCE_EVENTS, 1);
	pem_dir__exceed(s, dir, PEM_EXCESS_EVENTS, 1);
	return NULL;
}

/*
 * Find or make the directory's event for a description. *misfit is true where an earlier
 * description in this directory contradicts it.
 */
static struct pem_dir_event *dir_event(struct pem_session *s, struct pem_dir *dir,
				       const struct pem_event *described, bool *misfit)
{
	struct pem_dir_event *e = find_dir_event(dir, described->id);

	*misfit = e && !pem_event__equal(e->described, described);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->id = described->id;
	e->described = described;
	e->event = enter(s, dir, described);
	if (!e->event) {
		free(e);
		return NULL;
	}
	e->next = dir->events[e->id % PEM_DIR_BUCKETS];
	dir->events[e->id % PEM_DIR_BUCKETS] = e;
	return e;
}

static const struct pem_event *find_described(const struct pem_known_model *known, uint32_t id)
{
	size_t i;

	for (i = 0; i < known->block->event_count; i++) {
		if (known->block->events[i].id == id)
			return &known->block->events[i];
	}
	return NULL;
}

/*
 * Should the session wait for the model that a producer names? A keeper reports models before it
 * reports pools, but a file may appear while the keeper lists them. A model that does not come
 * within MODEL_NS is given up. Its event is unknown then, unless the event is certain.
 */
bool pem_producer__awaits_model(const struct pem_session *s, struct pem_producer *p,
				uint32_t event_index)
{
	bool is_last = p->dead || p->is_copy || (s->log && s->log->finished);
	uint32_t hash =
		__atomic_load_n(&pem_pool__event_models(&p->ring)[event_index], __ATOMIC_RELAXED);
	uint64_t now;

	if (pem_dir__opens_files(p->dir) || is_last || p->dir->models_over || !hash ||
	    find_model(p->dir, hash)) {
		p->awaits_model_ns = 0;
		return false;
	}
	now = pem_monotonic_ns();
	if (!p->awaits_model_ns)
		p->awaits_model_ns = now;
	return now - p->awaits_model_ns < MODEL_NS;
}

static bool names_model(const struct pem_producer *p, uint32_t event_index)
{
	return __atomic_load_n(&pem_pool__event_models(&p->ring)[event_index], __ATOMIC_RELAXED) !=
	       0;
}

const struct pem_event *pem_producer__describe(struct pem_session *s, struct pem_producer *p,
					       uint32_t event_index, uint32_t id, bool *refused)
{
	struct pem_known_model *known = model_of(s, p, event_index);
	const struct pem_event *described = NULL;
	struct pem_dir_event *e;

	*refused = false;
	/*
	 * The model cannot be read. An event that is certain may have this id and still be another
	 * event.
	 */
	if (known ? !known->block : p->dir->models_over && names_model(p, event_index)) {
		pem_dir__exceed(s, p->dir, known ? known->excess : PEM_EXCESS_MODELS, 1);
		return NULL;
	}
	if (known)
		described = find_described(known, id);
	if (!described)
		return pem_dir__event(s, p->dir, id);
	if (known->misfit) {
		note_refusal(s, p, known->misfit->name);
		*refused = true;
		return described;
	}
	e = dir_event(s, p->dir, described, refused);
	if (*refused) {
		note_refusal(s, p, described->name);
		return described;
	}
	return e ? e->event : NULL;
}

void pem_dir__forget_models(struct pem_session *s, struct pem_dir *dir)
{
	static const struct pem_dir gone;
	struct pem_dir_event *e;
	struct pem_known_model *known;
	size_t i;

	/*
	 * The directory's events stay in the session's model, and belong to no directory from now
	 * on.
	 */
	for (i = 0; i < PEM_DEMANDS_MAX; i++) {
		if (s->processes->event_origins[i] == dir)
			s->processes->event_origins[i] = &gone;
	}
	for (i = 0; i < PEM_DIR_BUCKETS; i++) {
		while ((known = dir->known_models[i])) {
			dir->known_models[i] = known->next;
			pem_dir__give_back(s, dir, PEM_RESOURCE_MODELS, 1);
			pem_dir__give_back(s, dir, PEM_RESOURCE_MODEL_BYTES, known->bytes);
			if (known->block)
				pem_model_block__free(known->block);
			free(known);
		}
		while ((e = dir->events[i])) {
			dir->events[i] = e->next;
			free(e);
		}
	}
}

int pem_session__load_own_models(struct pem_session *s)
{
	const struct pem_provider *provider, *found[PEM_PROVIDERS_MAX];
	int count = 0, added = 0, failed = 0, result, i;
	struct pem_error error;

	if (!pem_process__lock())
		return -EDEADLK;
	for (provider = pem_process.providers; provider && count < (int)PEM_PROVIDERS_MAX;
	     provider = provider->next)
		found[count++] = provider;
	pem_process__unlock();
	for (i = 0; i < count; i++) {
		result = pem_model__add_text(s->model, found[i]->model, strlen(found[i]->model),
					     found[i]->name, &error);
		if (result < 0)
			failed = result;
		else
			added += result;
	}
	return failed ? failed : added;
}
