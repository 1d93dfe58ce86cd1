/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * models.c - what a session learns of events: from its caller, from providers of this process, from those of others
 *
 * A provider made from another version of a spec than the one known here may lay out its records otherwise. Its model,
 * kept apart, tells how long they are, so that they can be passed over and counted; none gets into a trace, which
 * describes each event once.
 */
#include "consumer/session.h"
#include "model_internal.h"
#include "producer/producer.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL_BYTES_MAX (64u << 20)

struct pem_met_model {
	uint32_t hash; /* of its text, and in the name of its file */
	struct pem_model *misfit; /* its events, if they contradict the session's; else NULL */
	char differs[128]; /* the first that does */
	struct pem_met_model *next;
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

void pem_session__forget_models(struct pem_session *s)
{
	struct pem_met_model *met;

	while ((met = s->met_models)) {
		s->met_models = met->next;
		pem_model__free(met->misfit);
		free(met);
	}
}

/* The first event of a model that the session knows otherwise; NULL: none. */
static const struct pem_event *find_misfit(const struct pem_session *s,
					   const struct pem_model *theirs)
{
	const struct pem_event *event, *known;
	size_t i;

	for (i = 0; i < pem_model__count(theirs); i++) {
		event = pem_model__event(theirs, i);
		known = pem_model__by_id(s->model, event->id);
		if (known && !pem_event__equal(known, event))
			return event;
	}
	return NULL;
}

/* Read a model that a process left in the session's folder, add what it says, or keep it as a misfit. NULL: not there. */
static struct pem_met_model *meet_model(struct pem_session *s, uint32_t hash)
{
	struct pem_met_model *met = NULL;
	struct pem_model *theirs = NULL;
	const struct pem_event *misfit;
	struct pem_error error;
	char name[32], *text = NULL;
	struct pem_place *place;
	size_t bytes;
	int added, fd;

	snprintf(name, sizeof(name), "model-%08x", hash);
	for (place = s->places; !text && place; place = place->next) {
		fd = pem_place__open_model(place, hash);
		text = fd < 0 ? NULL : pem_read_descriptor(fd, MODEL_BYTES_MAX, &bytes);
	}
	if (!text)
		return NULL;
	met = calloc(1, sizeof(*met));
	theirs = pem_model__new();
	if (!met || !theirs)
		goto fail;
	met->hash = hash;
	if (pem_model__add_text(theirs, text, bytes, name, &error) < 0) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "a program's event descriptions are not usable: %s", error.text);
		goto done;
	}
	misfit = find_misfit(s, theirs);
	if (misfit) {
		pem_copy_text(met->differs, sizeof(met->differs), misfit->name);
		met->misfit = theirs;
		theirs = NULL;
		goto done;
	}
	added = pem_model__add_text(s->model, text, bytes, name, &error);
	if (added < 0)
		pem_session__say(s, PEM_LOG_WARNING,
				 "a program's event descriptions are not usable: %s", error.text);
	else if (added && s->log)
		pem_log__model_grew(s->log);
done:
	met->next = s->met_models;
	s->met_models = met;
	pem_model__free(theirs);
	free(text);
	return met;
fail:
	free(met);
	pem_model__free(theirs);
	free(text);
	return NULL;
}

static struct pem_met_model *find_or_meet(struct pem_session *s, uint32_t hash)
{
	struct pem_met_model *met;

	for (met = s->met_models; met; met = met->next) {
		if (met->hash == hash)
			return met;
	}
	return meet_model(s, hash);
}

void pem_session__load_models(struct pem_session *s)
{
	DIR *directory = s->places ? pem_list_folder(s->places->directory_fd) : NULL;
	struct pem_place *place;
	struct dirent *entry;
	uint32_t hash, i;

	while (directory && (entry = readdir(directory))) {
		if (sscanf(entry->d_name, "model-%8x", &hash) == 1)
			find_or_meet(s, hash);
	}
	if (directory)
		closedir(directory);
	for (place = s->places ? s->places->next : NULL; place; place = place->next) {
		for (i = 0; i < place->model_count; i++)
			find_or_meet(s, place->models[i].hash);
	}
}

/* For the trace, once for each process and event. */
static void note_refusal(struct pem_session *s, const struct pem_producer *p, const char *event)
{
	struct pem_refusal *refusal;
	size_t i;

	for (i = 0; i < s->refusal_count; i++) {
		if (s->refusals[i].pid == p->pid && !strcmp(s->refusals[i].event, event))
			return;
	}
	if (s->refusal_count == PEM_ARRAY_SIZE(s->refusals))
		return;
	refusal = &s->refusals[s->refusal_count++];
	refusal->pid = p->pid;
	pem_copy_text(refusal->event, sizeof(refusal->event), event);
	snprintf(refusal->reason, sizeof(refusal->reason),
		 "%.90s in %.15s (process %u) has other fields than the event of that name pem "
		 "knows: "
		 "build the program again with the same spec",
		 event, p->comm, p->pid);
	pem_printable(refusal->reason);
}

const struct pem_model *pem_session__misfit(struct pem_session *s, const struct pem_producer *p,
					    uint32_t slot)
{
	const uint32_t *models = pem_pool__event_models(&p->ring);
	uint32_t hash = slot < p->ring.event_capacity
				? __atomic_load_n(&models[slot], __ATOMIC_RELAXED)
				: 0;
	struct pem_met_model *met = hash ? find_or_meet(s, hash) : NULL;

	if (!met || !met->misfit)
		return NULL;
	note_refusal(s, p, met->differs);
	return met->misfit;
}

int pem_session__load_own_models(struct pem_session *s)
{
	const struct pem_provider *provider, *found[PEM_PROVIDERS_MAX];
	int count = 0, added = 0, result, i;
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
			return result;
		added += result;
	}
	return added;
}
