/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * plugins.c - source plugins: load them, order them, ask which one delivers an event
 *
 * Opening instances of them in a session is in sources.c.
 */
#include "core/core.h"
#include "core/demand.h"
#include "source_host/source_host.h"
#include "plugin_folders.h"
#include "util.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Insert a plugin by falling preference. Plugins of equal preference are ordered by name, so that
 * the order of the folder does not matter.
 */
static void insert(struct pem_session *s, struct pem_source_plugin *plugin)
{
	struct pem_source_plugin **link;
	const struct pem_source_ops *ops;

	for (link = &s->sources->plugins; *link; link = &(*link)->next) {
		ops = (*link)->ops;
		if (ops->preference < plugin->ops->preference ||
		    (ops->preference == plugin->ops->preference &&
		     strcmp(ops->name, plugin->ops->name) > 0))
			break;
	}
	plugin->next = *link;
	*link = plugin;
}

static int load_plugin(const char *path, const char *name, void *arg)
{
	struct pem_session *s = arg;
	struct pem_source_plugin *plugin;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct pem_source_ops *ops = handle ? dlsym(handle, "pem_source") : NULL;
	struct pem_source_ops whole;
	int result = ops ? pem_sized__read(&whole, sizeof(whole), ops, sizeof(whole)) : 0;

	(void)name;
	if (!ops) {
		pem_session__say(s, PEM_LOG_WARNING, "source plugin '%s' is not usable: %s", path,
				 dlerror());
	} else if (result || whole.abi_version != PEM_SOURCE_ABI_VERSION) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "source plugin '%s' was built for another version of the source "
				 "interface than %u; build it again",
				 path, PEM_SOURCE_ABI_VERSION);
	} else {
		plugin = calloc(1, sizeof(*plugin));
		if (!plugin) {
			dlclose(handle);
			return -ENOMEM;
		}
		plugin->whole = whole;
		plugin->ops = &plugin->whole;
		plugin->handle = handle;
		insert(s, plugin);
		return 0;
	}
	if (handle)
		dlclose(handle);
	return 0;
}

static void refuse_plugin(const char *sentence, void *arg)
{
	pem_session__say(arg, PEM_LOG_WARNING, "%s", sentence);
}

void pem_session__load_plugins(struct pem_session *s)
{
	char folder[PATH_MAX];
	const struct pem_plugin_search search = {.prefix = "source-",
						 .library_folder = folder,
						 .visit = load_plugin,
						 .refuse = refuse_plugin,
						 .arg = s};

	if (s->sources->plugins_loaded)
		return;
	s->sources->plugins_loaded = true;
	if (!pem_library_folder(folder, sizeof(folder)))
		pem_session__say(s, PEM_LOG_WARNING,
				 "no sources were found: the folder of libpem is not known; name "
				 "it in PEM_LIBRARY_PATH");
	else if (pem_plugins__visit(&search) == -ENOMEM)
		pem_session__say(s, PEM_LOG_WARNING, "out of memory: some sources are not loaded");
}

void pem_session__unload_plugins(struct pem_session *s)
{
	struct pem_source_plugin *plugin;

	while ((plugin = s->sources->plugins)) {
		s->sources->plugins = plugin->next;
		dlclose(plugin->handle);
		free(plugin);
	}
}

/* Say what an event needs that no plugin can deliver. */
static void say_nobody(const struct pem_event *event, struct pem_error *error)
{
	if (event->source_kind == PEM_SOURCE_MODULE)
		pem_error__set(error, 0,
			       "only pem.ko sees this, and no installed source uses that module; "
			       "it is built by 'make kmod', and the source with the library");
	else
		pem_error__set(error, 0,
			       "no installed source delivers %s events: sources are built if "
			       "libbpf and libpfm4 are installed; build and install pem again "
			       "with them",
			       pem_source_kind__name((enum pem_source_kind)event->source_kind));
}

const struct pem_source_ops *pem_session__find_plugin(struct pem_session *s,
						      const struct pem_source_plugin *after,
						      const struct pem_event *event,
						      const char **name, struct pem_error *error)
{
	const struct pem_source_plugin *plugin;
	struct pem_error reason, before, said = {.text = ""};
	const struct pem_source_ops *able = NULL;
	int result, refused = 0;

	*name = "pem";
	if (event->source_kind == PEM_SOURCE_SIMULATED && !s->options.hardware) {
		pem_error__set(error, 0,
			       "is counted by a machine that is simulated: name its "
			       "description when the session opens (its option hardware; pem "
			       "stat, pem record: --hardware FILE)");
		return NULL;
	}
	pem_session__load_plugins(s);
	for (plugin = after ? after->next : s->sources->plugins; plugin; plugin = plugin->next) {
		reason.text[0] = '\0';
		result = plugin->ops->can_deliver(event, &reason);
		if (result == -ENOENT)
			continue;
		if (!able)
			*name = plugin->ops->name;
		if (result == 1 && s->options.by_process && !plugin->ops->each_process) {
			able = able ? able : plugin->ops;
			continue;
		}
		if (result == 1) {
			*name = plugin->ops->name;
			return plugin->ops;
		}
		/* The message has both reasons, so that the user can mend the easier one. */
		before = said;
		if (refused++)
			pem_error__set(&said, 0, "%.300s; or, by %s: %.120s", before.text,
				       plugin->ops->name, reason.text);
		else
			said = reason;
	}
	if (able)
		return able;
	if (!refused)
		say_nobody(event, error);
	else if (error)
		*error = said;
	return NULL;
}

/*
 * Can a stub raise this event? An event with a library of pem as source is raised by this library,
 * which must be there. An event without a source is raised by programs that were built for it.
 */
static int can_stub(const struct pem_event *event, struct pem_error *reason)
{
	char folder[PATH_MAX], path[PATH_MAX + 128];

	if (!*event->source_name || strchr(event->source_name, '/'))
		return 1;
	if (!pem_library_folder(folder, sizeof(folder)))
		return pem_error__set(reason, 0,
				      "libpem's folder, where %s has to be, was not found",
				      event->source_name);
	snprintf(path, sizeof(path), "%s/%s", folder, event->source_name);
	if (!access(path, R_OK))
		return 1;
	return pem_error__set(
		reason, 0,
		"%s, which raises it, is not in %s: it is built if the headers of the library "
		"that it watches are installed; build and install pem again with them",
		event->source_name, folder);
}

const char *pem_session__source_of(struct pem_session *session, const struct pem_event *event,
				   struct pem_error *reason)
{
	struct pem_error error = {""};
	const struct pem_source_ops *ops;
	const char *name;

	if (!session || !event) {
		pem_error__lacks(reason, session ? "event" : "session");
		return NULL;
	}
	if (event->source_kind == PEM_SOURCE_STUB)
		return can_stub(event, reason) ? "stub" : NULL;
	pem_session__lock(session);
	ops = pem_session__refusal(session, event, &error)
		      ? NULL
		      : pem_session__find_plugin(session, NULL, event, &name, &error);
	pem_session__unlock(session);
	if (!ops)
		pem_error__set(reason, 0, "%s", error.text);
	return ops ? ops->name : NULL;
}

int pem_session__can_deliver(struct pem_session *session, const struct pem_event *event,
			     struct pem_error *reason)
{
	return pem_session__source_of(session, event, reason) != NULL;
}

int pem_session__knows_counter(struct pem_session *session, const char *name,
			       struct pem_error *error)
{
	const struct pem_source_plugin *plugin;
	int result = 1;

	pem_session__lock(session);
	pem_session__load_plugins(session);
	for (plugin = session->sources->plugins; plugin; plugin = plugin->next) {
		if (!plugin->ops->knows_counter)
			continue;
		result = plugin->ops->knows_counter(name, error);
		if (result == 1)
			break;
	}
	pem_session__unlock(session);
	return result;
}

/* Has the plugin's struct the member? Those that were built before it have not. */
#define HAS(ops, member)                                                                           \
	((ops)->size >= offsetof(struct pem_source_ops, member) + sizeof((ops)->member) &&         \
	 (ops)->member)

int pem_session__counted_as(struct pem_session *session, const struct pem_event *event,
			    struct pem_counted_as *counted_as)
{
	struct pem_counted_as found = {.size = sizeof(found)};
	const struct pem_source_plugin *plugin;
	int result = -ENOENT;

	if (!session || !event || pem_sized__check(counted_as))
		return -EINVAL;
	pem_session__lock(session);
	pem_session__load_plugins(session);
	for (plugin = session->sources->plugins; plugin && result; plugin = plugin->next)
		if (HAS(plugin->ops, counted_as))
			result = plugin->ops->counted_as(event, &found);
	pem_session__unlock(session);
	if (!result)
		pem_sized__write(counted_as, 0, &found, sizeof(found));
	return result;
}

int pem_session__counter_turns(struct pem_session *session, const struct pem_event *const *events,
			       size_t count, uint32_t *turns)
{
	const struct pem_source_plugin *plugin;
	int result = 0;

	if (!session || (count && (!events || !turns)))
		return -EINVAL;
	if (count)
		memset(turns, 0, count * sizeof(*turns));
	pem_session__lock(session);
	pem_session__load_plugins(session);
	for (plugin = session->sources->plugins; plugin && !result; plugin = plugin->next)
		if (HAS(plugin->ops, counter_turns))
			result = plugin->ops->counter_turns(events, count, turns);
	pem_session__unlock(session);
	return result;
}

int pem_session__sources(struct pem_session *session, struct pem_source_state *states, size_t max)
{
	const struct pem_source_plugin *plugin;
	size_t count = 0;

	if (!session || pem_sized__check_array(states, max))
		return -EINVAL;
	pem_session__lock(session);
	pem_session__load_plugins(session);
	for (plugin = session->sources->plugins; plugin && count < max;
	     plugin = plugin->next, count++) {
		struct pem_source_state state = {.name = plugin->ops->name};

		state.usable = !plugin->ops->usable || plugin->ops->usable(&state.reason) == 1;
		pem_sized__write(states, count, &state, sizeof(state));
	}
	pem_session__unlock(session);
	return (int)count;
}

void pem_session__each_context_event(struct pem_session *s,
				     void (*function)(struct pem_session *s,
						      struct pem_demand *demand))
{
	const struct pem_event *event;
	struct pem_demand *demand;
	size_t i;

	for (i = 0; i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (!pem_event__tells_context(event))
			continue;
		demand = pem_session__demand(s, event);
		if (demand && pem_session__can_deliver(s, event, NULL))
			function(s, demand);
	}
}
