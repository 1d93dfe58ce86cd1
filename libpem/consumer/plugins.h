/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * plugins.h - the source plugins that a session has loaded, the preferred ones first
 */
#ifndef PEM_CONSUMER_PLUGINS_H
#define PEM_CONSUMER_PLUGINS_H

#include "source.h"

struct pem_source_plugin {
	const struct pem_source_ops *ops;
	void *handle;
	struct pem_source_plugin *next;
};

/* Once; into session->plugins, by falling preference. */
void pem_session__load_plugins(struct pem_session *session);
void pem_session__unload_plugins(struct pem_session *session);
/* The first behind one, NULL: of all, that delivers an event; NULL: none, and error says why, and *name whose word it is. */
const struct pem_source_ops *pem_session__find_plugin(struct pem_session *session,
						      const struct pem_source_plugin *after,
						      const struct pem_event *event,
						      const char **name, struct pem_error *error);
/* What a search for probes found, by their sources' names. */
struct pem_found {
	char **names;
	size_t count, capacity;
};
void pem_found__free(struct pem_found *found);
/* Is one of them a source of the event? */
bool pem_found__has(const struct pem_found *found, const struct pem_event *event);
/* pem_session__add_probes, with what was found, which is to be freed either way; NULL: never mind. */
int pem_session__find_probes(struct pem_session *session, const char *pattern,
			     struct pem_found *found, struct pem_error *error);
/* Has the session tried to have an event, and can't? True: reason says why. */
bool pem_session__refusal(const struct pem_session *session, const struct pem_event *event,
			  struct pem_error *reason);
/* The folder of what is preloaded: PEM_LIBRARY_PATH, else where libpem was loaded from; NULL: not to be found. */
const char *pem_library_folder(char *path, size_t bytes);

/* Does a source, of those that know counters' names, know this one? 1, also if there is no such source; -ENOENT with error. */
int pem_session__knows_counter(struct pem_session *session, const char *name,
			       struct pem_error *error);

#endif
