/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * models.c - what a session learns of events: from its caller, from providers of this process, from those of others
 *
 * What the session knows for certain comes from the catalogue, its caller, and providers of this process. A provider of
 * another process that contradicts it (which was made from another version of a spec, say) lays out its records otherwise.
 * Its model, kept apart, tells how long they are, so that they can be passed over and counted.
 *
 * All else is described by models that processes leave in the session's folders. A model is read from the folder of the
 * process that it is of, and believed for processes of that folder (place) only:
 *
 *	text in a folder --hash, limits--> met model of the place --raised--> event of the place --> event of the session
 *
 * A trace describes each event once. Places whose descriptions say the same share one event of the session. Where they
 * differ, the later one becomes an event with a name and an id of its own, and records are given that id on their way into
 * the trace (drain.c).
 */
#include "consumer/clock_sync.h"
#include "consumer/limits.h"
#include "consumer/session.h"
#include "consumer/shared_file.h"
#include "model_internal.h"
#include "producer/producer.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL_NS                                                                                   \
	3000000000u /* a keeper rests for a second at most after a listing (confined/keep.c) */

/* A text that a process left in a place. */
struct pem_met_model {
	uint32_t hash; /* of the text, and in the name of its file */
	/* Its events; NULL: over a limit, or false, as excess tells. */
	struct pem_model_block *block;
	enum pem_excess excess;
	uint64_t bytes;
	/* The first of its events that contradicts what is certain; NULL: none does. */
	const struct pem_event *misfit;
	struct pem_met_model *next;
};

/* An event as processes of a place raise it. */
struct pem_place_event {
	uint32_t id; /* that they give it */
	const struct pem_event *described; /* by a met model of the place */
	const struct pem_event *event; /* of the session's model */
	struct pem_place_event *next;
};

int pem_session__add_model(struct pem_session *session, const char *text, size_t bytes,
			   const char *origin, struct pem_error *error)
{
	int added;

	pem_session__lock(session);
	added = pem_model__add_text(session->model, text, bytes, origin, error);
	if (added > 0 && session->log)
		pem_log__model_grew(session->log);
	pem_session__unlock(session);
	return added;
}

/* --- texts --- */

/* Who brought an event of the session's model; NULL: it is certain. */
static const struct pem_place **origin_of(struct pem_session *s, const struct pem_event *event)
{
	return &s->event_origins[pem_model__index(s->model, event->id)];
}

/* An event of the session's that has the id or the name of one described elsewhere. */
static const struct pem_event *find_rival(const struct pem_session *s,
					  const struct pem_event *described)
{
	const struct pem_event *known = pem_model__by_id(s->model, described->id);

	if (known)
		return known;
	known = pem_model__by_name(s->model, described->name);
	return known && known->version == described->version ? known : NULL;
}

/* The first event of a text that is certain to be another; NULL: none. */
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

/* The text behind a hash in a place, read and checked. NULL: there is none yet, or met->excess tells. */
static char *read_text(struct pem_session *s, struct pem_place *place, struct pem_met_model *met,
		       int fd)
{
	struct stat st;
	char *text;
	size_t bytes;
	int result = pem_shared_file__check(fd, place->owner, &st);

	if (result == -EPERM)
		met->excess = PEM_EXCESS_LINKS;
	if (result)
		return NULL;
	if ((uint64_t)st.st_size > pem_place__text_bytes_max(place) ||
	    !pem_place__take(s, place, PEM_RESOURCE_MODEL_BYTES, (uint64_t)st.st_size)) {
		met->excess = PEM_EXCESS_MODELS;
		return NULL;
	}
	met->bytes = (uint64_t)st.st_size;
	text = pem_shared_file__read(fd, &st, &bytes);
	if (text && bytes == met->bytes && pem_model__hash(text, bytes) == met->hash)
		return text;
	met->excess = PEM_EXCESS_FALSE_MODELS;
	free(text);
	return NULL;
}

/* A file that has gone may come again: false. All else is remembered in met. */
static bool fill_model(struct pem_session *s, struct pem_place *place, struct pem_met_model *met,
		       int fd)
{
	struct pem_error error;
	char name[32], *text = read_text(s, place, met, fd);

	if (!text)
		return met->excess != PEM_EXCESS_COUNT;
	snprintf(name, sizeof(name), "model-%08x", met->hash);
	met->block = pem_model__parse(text, met->bytes, name, &error);
	free(text);
	if (met->block) {
		met->misfit = find_misfit(s, met->block);
		return true;
	}
	met->excess = PEM_EXCESS_FALSE_MODELS;
	pem_session__say(s, PEM_LOG_WARNING, "a program's event descriptions are not usable: %s",
			 error.text);
	return true;
}

/* The model in a file that is open, and stays so. NULL: the file has gone, or there is no memory. */
static struct pem_met_model *meet_model(struct pem_session *s, struct pem_place *place,
					uint32_t hash, int fd)
{
	struct pem_met_model *met = calloc(1, sizeof(*met));

	if (!met)
		return NULL;
	met->hash = hash;
	met->excess = PEM_EXCESS_COUNT;
	if (!fill_model(s, place, met, fd)) {
		free(met);
		return NULL;
	}
	if (!met->block) {
		pem_place__give_back(s, place, PEM_RESOURCE_MODEL_BYTES, met->bytes);
		met->bytes = 0;
	}
	met->next = place->met_models[hash % PEM_PLACE_BUCKETS];
	place->met_models[hash % PEM_PLACE_BUCKETS] = met;
	return met;
}

static struct pem_met_model *find_model(const struct pem_place *place, uint32_t hash)
{
	struct pem_met_model *met = place->met_models[hash % PEM_PLACE_BUCKETS];

	while (met && met->hash != hash)
		met = met->next;
	return met;
}

/* The model of a hash that was not met before; one that says so, if the place may have no more. */
static struct pem_met_model *meet_further(struct pem_session *s, struct pem_place *place,
					  uint32_t hash, int fd)
{
	static struct pem_met_model over_limit = {.excess = PEM_EXCESS_MODELS};
	struct pem_met_model *met;

	if (!pem_place__take(s, place, PEM_RESOURCE_MODELS, 1)) {
		place->models_over = true;
		return &over_limit;
	}
	met = meet_model(s, place, hash, fd);
	if (!met)
		pem_place__give_back(s, place, PEM_RESOURCE_MODELS, 1);
	return met;
}

void pem_session__found_model(struct pem_session *s, struct pem_place *place, const char *name,
			      int fd)
{
	uint32_t hash;

	if (sscanf(name, "model-%8x", &hash) == 1 && !find_model(place, hash))
		meet_further(s, place, hash, fd);
	close(fd);
}

/*
 * The file with the text of a producer's events. In a public folder it is one of the same user's: where another has been first
 * with the name of all, it has the pool's name (producer/pools.c). -1: there is none.
 */
static int open_text(const struct pem_producer *p, uint32_t hash)
{
	const struct pem_place *place = p->place;
	char name[64];
	struct stat st;
	int fd;

	if (place->public_folder)
		snprintf(name, sizeof(name), "model-%08x-%u", hash, (unsigned)place->owner);
	else
		snprintf(name, sizeof(name), "model-%08x", hash);
	fd = pem_shared_file__open(place->directory_fd, name, O_RDONLY);
	if (!place->public_folder || (fd >= 0 && !pem_shared_file__check(fd, place->owner, &st)))
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(name, sizeof(name), "model-%08x-%.31s", hash, p->file + strlen("pool-"));
	return pem_shared_file__open(place->directory_fd, name, O_RDONLY);
}

/* The model that a producer names for a slot; NULL: it names none, or there is none that could be read. */
static struct pem_met_model *model_of(struct pem_session *s, const struct pem_producer *p,
				      uint32_t slot)
{
	const uint32_t *models = pem_pool__event_models(&p->ring);
	struct pem_met_model *met;
	uint32_t hash;
	int fd;

	hash = slot < p->ring.event_capacity ? __atomic_load_n(&models[slot], __ATOMIC_RELAXED) : 0;
	met = hash ? find_model(p->place, hash) : NULL;
	if (!hash || met || !pem_place__opens_files(p->place)) /* keepers pass them on */
		return met;
	fd = open_text(p, hash);
	if (fd < 0)
		return NULL;
	met = meet_further(s, p->place, hash, fd);
	close(fd);
	return met;
}

/* --- refusals --- */

/* For the trace, once for each process and event; of other users' once for each of them. */
static void note_refusal(struct pem_session *s, const struct pem_producer *p, const char *event)
{
	struct pem_refusal *refusal;
	size_t i;

	for (i = 0; i < s->refusal_count; i++) {
		refusal = &s->refusals[i];
		if (refusal->pid == p->pid && !strcmp(refusal->event, event))
			return;
		if (p->place->number && refusal->place == p->place) {
			s->refusals_more++;
			return;
		}
	}
	if (s->refusal_count == PEM_ARRAY_SIZE(s->refusals)) {
		s->refusals_more++;
		return;
	}
	refusal = &s->refusals[s->refusal_count++];
	refusal->pid = p->pid;
	refusal->place = p->place;
	pem_copy_text(refusal->event, sizeof(refusal->event), event);
	snprintf(refusal->reason, sizeof(refusal->reason),
		 "%.90s in %.15s (process %u) has other fields than the event of that name pem "
		 "knows: "
		 "build the program again with the same spec",
		 event, p->comm, p->pid);
	pem_printable(refusal->reason);
}

bool pem_producer__is_misfit(struct pem_session *s, const struct pem_producer *p, uint32_t slot)
{
	const struct pem_met_model *met = model_of(s, p, slot);

	return met && met->misfit;
}

/* --- events of places --- */

static struct pem_place_event *find_place_event(const struct pem_place *place, uint32_t id)
{
	struct pem_place_event *e;

	for (e = place->events[id % PEM_PLACE_BUCKETS]; e; e = e->next) {
		if (e->id == id)
			return e;
	}
	return NULL;
}

const struct pem_event *pem_place__event(struct pem_session *s, const struct pem_place *place,
					 uint32_t id)
{
	const struct pem_place_event *e = find_place_event(place, id);
	const struct pem_event *known = e ? e->event : pem_model__by_id(s->model, id);

	return e || (known && !*origin_of(s, known)) ? known : NULL;
}

/* The id that processes of the place give an event of the session's. */
static uint32_t id_in_place(const struct pem_place *place, const struct pem_event *event)
{
	const struct pem_place_event *e;
	size_t i;

	for (i = 0; i < PEM_PLACE_BUCKETS; i++) {
		for (e = place->events[i]; e; e = e->next) {
			if (e->event == event)
				return e->id;
		}
	}
	return event->id;
}

struct pem_event_entry *pem_producer__entry_of(struct pem_producer *p,
					       const struct pem_event *event)
{
	uint32_t id = p->place && p->place->renamed ? id_in_place(p->place, event) : event->id;
	struct pem_event_entry *entry = pem_producer__event(p, id);

	return entry && entry->event == event ? entry : NULL;
}

/* An event of the session's own for what a place says, under a name that says whose it is. */
static const struct pem_event *add_renamed(struct pem_session *s, const struct pem_place *place,
					   const struct pem_event *described)
{
	const struct pem_event *event = NULL;
	char suffix[48], name[256];
	unsigned n;

	for (n = 1; !event && n < 100; n++) {
		snprintf(suffix, sizeof(suffix), n > 1 ? "_of_user_%u_%u" : "_of_user_%u",
			 (unsigned)place->owner, n);
		snprintf(name, sizeof(name), "%.200s%s", described->name, suffix);
		if (!pem_model__by_name(s->model, name))
			event = pem_model__add_copy(s->model, described, suffix, NULL);
	}
	return event;
}

/* The session's event for what a place describes; NULL: over a limit, or no event of a program. */
static const struct pem_event *enter(struct pem_session *s, struct pem_place *place,
				     const struct pem_event *described)
{
	const struct pem_event *known = find_rival(s, described), *event;

	if (known && (*origin_of(s, known) ? pem_event__same(known, described)
					   : pem_event__equal(known, described)))
		return known;
	/* What the kernel raises nobody's program describes. */
	if (described->source_kind != PEM_SOURCE_STUB)
		return NULL;
	if (!pem_place__take(s, place, PEM_RESOURCE_EVENTS, 1)) {
		pem_place__exceed(s, place, PEM_EXCESS_EVENTS, 1);
		return NULL;
	}
	event = known ? add_renamed(s, place, described)
		      : pem_model__add_copy(s->model, described, NULL, NULL);
	if (event) {
		*origin_of(s, event) = place;
		place->renamed += known != NULL;
		return event;
	}
	pem_place__give_back(s, place, PEM_RESOURCE_EVENTS, 1);
	pem_place__exceed(s, place, PEM_EXCESS_EVENTS, 1);
	return NULL;
}

/* The place's event for one of its descriptions; *misfit: an earlier one of the place contradicts it. */
static struct pem_place_event *place_event(struct pem_session *s, struct pem_place *place,
					   const struct pem_event *described, bool *misfit)
{
	struct pem_place_event *e = find_place_event(place, described->id);

	*misfit = e && !pem_event__equal(e->described, described);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->id = described->id;
	e->described = described;
	e->event = enter(s, place, described);
	if (!e->event) {
		free(e);
		return NULL;
	}
	e->next = place->events[e->id % PEM_PLACE_BUCKETS];
	place->events[e->id % PEM_PLACE_BUCKETS] = e;
	return e;
}

static const struct pem_event *find_described(const struct pem_met_model *met, uint32_t id)
{
	size_t i;

	for (i = 0; i < met->block->event_count; i++) {
		if (met->block->events[i].id == id)
			return &met->block->events[i];
	}
	return NULL;
}

/*
 * A keeper tells of models before it tells of pools, but a file may come while it lists them. A model that does not come
 * within MODEL_NS never will: what it describes is unknown then, unless it is certain.
 */
bool pem_producer__awaits_model(const struct pem_session *s, struct pem_producer *p, uint32_t slot)
{
	bool is_last = p->dead || p->is_copy || (s->log && s->log->finished);
	uint32_t hash = __atomic_load_n(&pem_pool__event_models(&p->ring)[slot], __ATOMIC_RELAXED);
	uint64_t now;

	if (pem_place__opens_files(p->place) || is_last || p->place->models_over || !hash ||
	    find_model(p->place, hash)) {
		p->awaits_model_ns = 0;
		return false;
	}
	now = pem_monotonic_ns();
	if (!p->awaits_model_ns)
		p->awaits_model_ns = now;
	return now - p->awaits_model_ns < MODEL_NS;
}

static bool names_model(const struct pem_producer *p, uint32_t slot)
{
	return __atomic_load_n(&pem_pool__event_models(&p->ring)[slot], __ATOMIC_RELAXED) != 0;
}

const struct pem_event *pem_producer__describe(struct pem_session *s, struct pem_producer *p,
					       uint32_t slot, uint32_t id, bool *refused)
{
	struct pem_met_model *met = model_of(s, p, slot);
	const struct pem_event *described = NULL;
	struct pem_place_event *e;

	*refused = false;
	/* What it says can't be known: what is certain of the id may be another event. */
	if (met ? !met->block : p->place->models_over && names_model(p, slot)) {
		pem_place__exceed(s, p->place, met ? met->excess : PEM_EXCESS_MODELS, 1);
		return NULL;
	}
	if (met)
		described = find_described(met, id);
	if (!described)
		return pem_place__event(s, p->place, id);
	if (met->misfit) {
		note_refusal(s, p, met->misfit->name);
		*refused = true;
		return described;
	}
	e = place_event(s, p->place, described, refused);
	if (*refused) {
		note_refusal(s, p, described->name);
		return described;
	}
	return e ? e->event : NULL;
}

void pem_place__forget_models(struct pem_session *s, struct pem_place *place)
{
	static const struct pem_place gone;
	struct pem_place_event *e;
	struct pem_met_model *met;
	size_t i;

	/* Its events stay in the session's model, and are nobody's that may come. */
	for (i = 0; i < PEM_WISHES_MAX; i++) {
		if (s->event_origins[i] == place)
			s->event_origins[i] = &gone;
	}
	for (i = 0; i < PEM_PLACE_BUCKETS; i++) {
		while ((met = place->met_models[i])) {
			place->met_models[i] = met->next;
			pem_place__give_back(s, place, PEM_RESOURCE_MODELS, 1);
			pem_place__give_back(s, place, PEM_RESOURCE_MODEL_BYTES, met->bytes);
			if (met->block)
				pem_model_block__free(met->block);
			free(met);
		}
		while ((e = place->events[i])) {
			place->events[i] = e->next;
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
