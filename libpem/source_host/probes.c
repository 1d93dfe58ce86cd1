/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probes.c - events that no spec describes: sources find them, and the session's model takes them
 */
#include "core/core.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "model_internal.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct finding {
	struct pem_session *session;
	bool literal;
	int count;
	struct pem_found *found; /* NULL: the caller does not ask for them */
	struct pem_error *error;
};

void pem_found__free(struct pem_found *found)
{
	while (found->count)
		free(found->names[--found->count]);
	free(found->names);
	*found = (struct pem_found){0};
}

bool pem_found__has(const struct pem_found *found, const struct pem_event *event)
{
	size_t i;

	for (i = 0; i < found->count; i++) {
		if (pem_event__has_source(event, found->names[i]))
			return true;
	}
	return false;
}

static int note(struct pem_found *found, const char *name)
{
	size_t capacity = found->capacity ? 2 * found->capacity : 64;
	char **grown;

	if (found->count == found->capacity) {
		grown = reallocarray(found->names, capacity, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		found->names = grown;
		found->capacity = capacity;
	}
	found->names[found->count] = strdup(name);
	if (!found->names[found->count])
		return -ENOMEM;
	found->count++;
	return 0;
}

/* Does an event of the model come from this place already? Then it is the same event. */
static bool is_known(const struct pem_model *model, const struct pem_event *told)
{
	const struct pem_event *event;
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		event = pem_model__event(model, i);
		if (event->source_kind == told->source_kind &&
		    pem_event__has_source(event, told->source_name))
			return true;
	}
	return false;
}

/*
 * Take an event that a source found. One that cannot be described is left out, and the others are
 * taken all the same.
 */
static int take(void *arg, const struct pem_event *event)
{
	struct finding *f = arg;
	struct pem_error error;
	int rc = f->found ? note(f->found, event->source_name) : 0;

	if (rc)
		return pem_error__set(f->error, rc, "out of memory");
	if (!is_known(f->session->model, event))
		rc = pem_model__describe(f->session->model, event, &error);
	if (rc >= 0) {
		f->count++;
		return 0;
	}
	pem_error__set(f->error, rc, "%s", error.text);
	if (f->literal)
		return rc;
	pem_session__say(f->session, PEM_LOG_WARNING, "%s", error.text);
	return rc == -ENOMEM ? rc : 0;
}

/*
 * Let each source search, or if is_counter is set, those that know counters. Returns the number
 * found, or -errno with error.
 */
static int ask_sources(struct pem_session *session, const char *pattern, bool is_counter,
		       struct finding *f, struct pem_error *error)
{
	const struct pem_source_plugin *plugin;
	size_t before = pem_model__count(session->model);
	int rc = -ENOENT, one;

	for (plugin = session->sources->plugins; plugin; plugin = plugin->next) {
		if (!plugin->ops->find || (is_counter && !plugin->ops->knows_counter))
			continue;
		one = plugin->ops->find(pattern, take, f, error);
		rc = one >= 0 || rc == -ENOENT ? one : rc;
	}
	if (session->log && pem_model__count(session->model) != before)
		pem_log__model_grew(session->log);
	return rc < 0 ? rc : f->count;
}

/* A source that finds nothing says why, and another may find the place: error is for a failure. */
static int fail_search(struct pem_error *error, int rc, const struct pem_error *why)
{
	if (rc < 0 && error)
		*error = *why;
	return rc;
}

int pem_session__find_counter(struct pem_session *session, const char *name,
			      struct pem_error *error)
{
	struct pem_error why = {""};
	struct finding f = {.session = session, .literal = true, .error = &why};
	int rc;

	pem_session__lock(session);
	pem_session__load_plugins(session);
	rc = ask_sources(session, name, true, &f, &why);
	pem_session__unlock(session);
	return fail_search(error, rc, &why);
}

int pem_session__find_probes(struct pem_session *session, const char *pattern,
			     struct pem_found *found, struct pem_error *error)
{
	struct pem_error why;
	struct finding f = {.session = session,
			    .literal = !strpbrk(pattern, "*?["),
			    .found = found,
			    .error = &why};
	int rc;

	if (!pem_pattern__is_probe(pattern))
		return pem_error__set(
			error, -EINVAL,
			"'%.100s' is no probe: expected SYSTEM:EVENT, or fentry:, "
			"fexit:, kprobe:, kretprobe:, uprobe:, uretprobe: or usdt: and a "
			"place",
			pattern);
	pem_session__lock(session);
	pem_session__load_plugins(session);
	pem_error__set(&why, 0,
		       "no installed source finds probes such as '%.100s': source-kernel.so does, "
		       "which is built if libbpf is installed; build and install pem again with it",
		       pattern);
	rc = ask_sources(session, pattern, false, &f, &why);
	pem_session__unlock(session);
	return fail_search(error, rc, &why);
}

int pem_session__add_probes(struct pem_session *session, const char *pattern,
			    struct pem_error *error)
{
	int rc = -ENOENT;

	if (!session || !pattern || !*pattern)
		return pem_error__lacks(error, session ? "pattern of probes" : "session");
	if (!pem_pattern__is_probe(pattern))
		rc = pem_session__find_counter(session, pattern, error);
	if (rc != -ENOENT)
		return rc;
	return pem_session__find_probes(session, pattern, NULL, error);
}
