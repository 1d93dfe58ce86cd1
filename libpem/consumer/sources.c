/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sources.c - source plugins: load them, ask who can deliver an event, open and drain them
 *
 * One plugin instance serves the events that became wanted together. Events of a command's process tree wait for
 * pem_session__run, which knows its root.
 */
#include "consumer/async.h"
#include "consumer/session.h"
#include "consumer/targets.h"
#include "util.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *pem_library_folder(char *path, size_t bytes)
{
	const char *chosen = secure_getenv("PEM_LIBRARY_PATH"), *slash;
	Dl_info info;

	if (chosen && chosen[0] == '/' && strlen(chosen) < bytes)
		return strcpy(path, chosen);
	if (!dladdr((void *)(uintptr_t)pem_library_folder, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (!slash || snprintf(path, bytes, "%.*s", (int)(slash - info.dli_fname),
			       info.dli_fname) >= (int)bytes)
		return NULL;
	return path;
}

static void load_plugin(struct pem_session *s, const char *path)
{
	struct pem_source_plugin *plugin;
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct pem_source_ops *ops = handle ? dlsym(handle, "pem_source") : NULL;

	if (!ops) {
		pem_session__say(s, PEM_LOG_WARNING, "source plugin '%s' is not usable: %s", path,
				 dlerror());
	} else if (ops->abi_version != PEM_SOURCE_ABI_VERSION || ops->size < sizeof(*ops)) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "source plugin '%s' is of another version (%u, not %u)", path,
				 ops->abi_version, PEM_SOURCE_ABI_VERSION);
	} else {
		plugin = calloc(1, sizeof(*plugin));
		if (plugin) {
			plugin->ops = ops;
			plugin->handle = handle;
			plugin->next = s->plugins;
			s->plugins = plugin;
			return;
		}
	}
	if (handle)
		dlclose(handle);
}

static void load_plugins_of(struct pem_session *s, const char *folder)
{
	DIR *directory = opendir(folder);
	char path[PATH_MAX + 256];
	struct dirent *entry;
	struct stat st;

	if (!directory)
		return;
	if (fstat(dirfd(directory), &st) || (st.st_mode & S_IWOTH)) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "plugin folder '%s' is writable by everybody: not used", folder);
		closedir(directory);
		return;
	}
	while ((entry = readdir(directory))) {
		size_t length = strlen(entry->d_name);

		if (strncmp(entry->d_name, "source-", 7) || length < 10 ||
		    strcmp(entry->d_name + length - 3, ".so"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		load_plugin(s, path);
	}
	closedir(directory);
}

/* From the folders of PEM_PLUGIN_PATH, parted by colons, else from 'pem' beside libpem. */
void pem_session__load_plugins(struct pem_session *s)
{
	const char *chosen = secure_getenv("PEM_PLUGIN_PATH");
	char folders[PATH_MAX], *rest = folders, *folder;
	size_t used;

	if (s->plugins_loaded)
		return;
	s->plugins_loaded = true;
	if (chosen && *chosen) {
		pem_copy_text(folders, sizeof(folders), chosen);
	} else {
		if (!pem_library_folder(folders, sizeof(folders) - sizeof("/pem")))
			return;
		used = strlen(folders);
		memcpy(folders + used, "/pem", sizeof("/pem"));
		load_plugins_of(
			s, folders); /* whole: a library's folder may have a colon in its name */
		return;
	}
	while ((folder = strsep(&rest, ":"))) {
		if (folder[0] == '/')
			load_plugins_of(s, folder);
	}
}

/* The plugin that delivers an event; NULL: none, and error says why, and *name whose word it is. */
static const struct pem_source_ops *find_plugin(struct pem_session *s,
						const struct pem_event *event, const char **name,
						struct pem_error *error)
{
	const struct pem_source_plugin *plugin;
	int result;

	pem_session__load_plugins(s);
	for (plugin = s->plugins; plugin; plugin = plugin->next) {
		result = plugin->ops->can_deliver(event, error);
		if (result == -ENOENT)
			continue;
		*name = plugin->ops->name;
		return result == 1 ? plugin->ops : NULL;
	}
	*name = "pem";
	if (event->source_kind == PEM_SOURCE_USDT)
		pem_error__set(
			error, 0,
			"pem does not attach to USDT probes yet; where the program has them, "
			"'bpftrace -l' lists and 'bpftrace -e' reads them");
	else
		pem_error__set(error, 0,
			       "no installed source delivers %s events; build with libbpf and "
			       "libpfm4, see "
			       "'make deps'",
			       pem_source_kind__name((enum pem_source_kind)event->source_kind));
	return NULL;
}

/*
 * A stub's event with the name of a library of ours is raised by it: is it there? One without is raised by programs that
 * were built to.
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
		"%s, which raises it, is not in %s: it is built where the headers of what it "
		"watches are installed ('make deps', then 'make')",
		event->source_name, folder);
}

int pem_session__can_deliver(struct pem_session *session, const struct pem_event *event,
			     struct pem_error *reason)
{
	struct pem_error error = {""};
	const char *name;
	int result;

	if (event->source_kind == PEM_SOURCE_STUB)
		return can_stub(event, reason);
	pem_session__lock(session);
	result = find_plugin(session, event, &name, &error) != NULL;
	if (!result)
		pem_error__set(reason, 0, "%s", error.text);
	pem_session__unlock(session);
	return result;
}

static void say_from_source(enum pem_log_level level, const char *text, void *arg)
{
	pem_session__say(arg, level, "%s", text);
}

static void mark_unavailable(struct pem_wish *wish, int code, const char *source,
			     const char *reason)
{
	wish->unavailable = code ? code : -ENOTSUP;
	pem_copy_text(wish->source, sizeof(wish->source), source);
	pem_copy_text(wish->reason, sizeof(wish->reason), reason);
}

/* --- opening --- */

static void fill_source_event(struct pem_source_event *e, const struct pem_wish *wish)
{
	e->event = wish->event;
	e->context = wish->context;
	e->action = pem_wish__action(wish) &
		    ~(uint64_t)(PEM_ACTION_FILTER | PEM_ACTION_CALLBACK | PEM_ACTION_WAKE);
	e->wide = wish->wide;
	e->tests = wish->predicate ? wish->predicate->test : NULL;
	e->test_count = wish->predicate ? wish->predicate->test_count : 0;
}

/* Open an instance of a plugin for the wishes listed. Failing, they are marked with its reason. */
static void open_instance(struct pem_session *s, const struct pem_source_ops *ops,
			  struct pem_wish **wishes, size_t count)
{
	struct pem_instance *instance = &s->instances[s->instance_count];
	struct pem_error error = {"too many sources in one session"};
	struct pem_source_config config = {.size = sizeof(config),
					   .root = s->root,
					   .root_runs = s->root_runs,
					   .no_follow = s->no_follow,
					   .whole_machine = s->whole_machine,
					   .event_count = count,
					   .log = say_from_source,
					   .log_arg = s};
	int result = -EMFILE;
	size_t i;

	memset(instance, 0, sizeof(*instance));
	if (s->instance_count == PEM_INSTANCES_MAX)
		goto fail;
	instance->events = calloc(count, sizeof(*instance->events));
	result = -ENOMEM;
	if (!instance->events)
		goto fail;
	for (i = 0; i < count; i++)
		fill_source_event(&instance->events[i], wishes[i]);
	instance->ops = ops;
	instance->event_count = count;
	config.events = instance->events;
	result = ops->open(&config, &instance->source, &error);
	if (result)
		goto fail;
	pem_session__add_targets_to(s, instance);
	result = ops->start(instance->source, &error);
	if (result) {
		ops->close(instance->source);
		goto fail;
	}
	for (i = 0; i < count; i++) {
		wishes[i]->instance = s->instance_count;
		wishes[i]->instance_index = i;
	}
	s->instance_count++;
	return;
fail:
	free(instance->events);
	for (i = 0; i < count; i++)
		mark_unavailable(wishes[i], result, ops->name, error.text);
	pem_session__say(s, PEM_LOG_WARNING, "%s events are not observed: %s", ops->name,
			 error.text);
}

static bool wants_source(const struct pem_session *s, const struct pem_wish *wish)
{
	return wish->event->source_kind != PEM_SOURCE_STUB &&
	       (wish->want_log || wish->want_statistic || wish->want_async) && wish->instance < 0 &&
	       !wish->unavailable && (s->root || s->whole_machine || wish->context.pid != PEM_ANY);
}

int pem_session__open_sources(struct pem_session *s, struct pem_error *error)
{
	const struct pem_source_plugin *plugin;
	const struct pem_source_ops **chosen;
	struct pem_error reason;
	struct pem_wish **group;
	const char *name;
	int before = s->instance_count;
	size_t count, i;

	if (!s->root)
		pem_session__find_targets(s);
	group = calloc(s->wish_count + 1, sizeof(*group));
	chosen = calloc(s->wish_count + 1, sizeof(*chosen));
	if (!group || !chosen) {
		free(group);
		free(chosen);
		return pem_error__set(error, -ENOMEM, "out of memory");
	}
	for (i = 0; i < s->wish_count; i++) {
		if (!wants_source(s, &s->wishes[i]))
			continue;
		chosen[i] = find_plugin(s, s->wishes[i].event, &name, &reason);
		if (!chosen[i])
			mark_unavailable(&s->wishes[i], -ENOTSUP, name, reason.text);
	}
	for (plugin = s->plugins; plugin; plugin = plugin->next) {
		for (i = count = 0; i < s->wish_count; i++) {
			if (chosen[i] == plugin->ops)
				group[count++] = &s->wishes[i];
		}
		if (count)
			open_instance(s, plugin->ops, group, count);
	}
	free(group);
	free(chosen);
	if (s->instance_count == before)
		return 0;
	pem_session__find_targets(s); /* who was started since, or before */
	if (s->target_count && pem_session__observes_kernel(s))
		pem_log__name_processes(s->log);
	return 0;
}

void pem_session__update_sources(struct pem_session *s)
{
	struct pem_instance *instance;
	struct pem_wish *wish;
	size_t i;

	for (i = 0; i < s->wish_count; i++) {
		wish = &s->wishes[i];
		if (wish->instance < 0)
			continue;
		instance = &s->instances[wish->instance];
		fill_source_event(&instance->events[wish->instance_index], wish);
		if (instance->ops->keep)
			instance->ops->keep(instance->source, wish->instance_index, wish->wide);
		instance->ops->set_action(instance->source, wish->instance_index,
					  instance->events[wish->instance_index].action);
	}
}

/* --- draining --- */

/*
 * Take what is not the log's out of a packet. Returns where its content ends: behind the last record that is left, or that
 * fits its description.
 */
static size_t keep_for_log(struct pem_session *s, struct pem_packet *packet, size_t content)
{
	const struct pem_record_header *header;
	const struct pem_event *event = NULL;
	uint8_t *base = (uint8_t *)packet;
	size_t at = PEM_PACKET_HEADER_BYTES, to = at, end = at;
	uint64_t clock = packet->timestamp_begin;
	struct pem_wish *wish = NULL;
	int bytes;

	while (at + sizeof(*header) <= content) {
		header = (const struct pem_record_header *)(base + at);
		if (!event || event->id != header->event_id) {
			event = pem_model__by_id(s->model, header->event_id);
			wish = event ? pem_session__wish(s, event) : NULL;
		}
		bytes = event ? pem_event__record_bytes(event, base + at, content - at) : -EINVAL;
		if (bytes < 0)
			break;
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		if (wish && (!pem_session__is_logging(s) || !pem_log__wants(s->log, wish, clock))) {
			wish->aside++;
			packet->record_count--;
		} else {
			if (to != at)
				memmove(base + to, base + at, (size_t)bytes);
			end = to + (size_t)bytes;
			to += ((size_t)bytes + 7) & ~(size_t)7;
		}
		at += ((size_t)bytes + 7) & ~(size_t)7;
	}
	packet->content_size = (uint64_t)end * 8;
	return end;
}

/* Count a packet's records by event. */
static void count_records(struct pem_session *s, const struct pem_packet *packet, size_t content,
			  bool written)
{
	const struct pem_record_header *header;
	const struct pem_event *event = NULL;
	const uint8_t *base = (const uint8_t *)packet;
	size_t at = PEM_PACKET_HEADER_BYTES;
	struct pem_wish *wish = NULL;
	int bytes;

	while (at + sizeof(*header) <= content) {
		header = (const struct pem_record_header *)(base + at);
		if (!event || event->id != header->event_id) {
			event = pem_model__by_id(s->model, header->event_id);
			wish = event ? pem_session__wish(s, event) : NULL;
		}
		bytes = event ? pem_event__record_bytes(event, base + at, content - at) : -EINVAL;
		if (bytes < 0)
			break;
		if (wish && written)
			wish->delivered++;
		else if (wish)
			wish->lost++;
		at += ((size_t)bytes + 7) & ~(size_t)7;
	}
}

static int sink_write(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	struct pem_session *s = arg;
	size_t content = packet->content_size / 8;
	int result;

	if (packet->content_size % 8 || content < PEM_PACKET_HEADER_BYTES || content > bytes)
		return -EINVAL;
	pem_async__take_packet(s, packet, content);
	content = keep_for_log(s, packet, content);
	if (!pem_session__is_logging(s))
		return 0;
	result = pem_trace_writer__packet(s->log->writer, name, packet, content);
	count_records(s, packet, content, !result);
	return result;
}

static uint64_t sink_clock_at(void *arg, uint64_t monotonic_ns)
{
	return pem_clock_sync__cycles_at(&((struct pem_session *)arg)->clock, monotonic_ns);
}

void pem_session__drain_sources(struct pem_session *s, bool final)
{
	const struct pem_source_sink sink = {
		.arg = s, .write = sink_write, .clock_at = sink_clock_at};
	int i, result;

	pem_clock_sync__update(&s->clock);
	for (i = 0; i < s->instance_count; i++) {
		result = s->instances[i].ops->drain(s->instances[i].source, &sink, final);
		if (result < 0 && s->log && !pem_trace_writer__failed(s->log->writer))
			pem_session__say(s, PEM_LOG_WARNING, "%s: %s", s->instances[i].ops->name,
					 strerror(-result));
	}
}

void pem_session__count_sources(struct pem_session *s, struct pem_balance *counted)
{
	const struct pem_instance *instance;
	size_t i;

	for (i = 0; i < s->wish_count; i++) {
		memset(&counted[i], 0, sizeof(counted[i]));
		if (s->wishes[i].instance < 0 || !s->wishes[i].want_log)
			continue;
		instance = &s->instances[s->wishes[i].instance];
		instance->ops->balance(instance->source, s->wishes[i].instance_index, &counted[i]);
	}
}

static struct pem_balance balance_of(const struct pem_wish *wish, struct pem_balance counted,
				     bool goes_on)
{
	struct pem_balance b = counted;

	b.produced -= b.produced > wish->aside ? wish->aside : b.produced;
	b.delivered = wish->delivered;
	b.discarded += wish->lost;
	b.overwritten = wish->overwritten;
	/* What was counted since has been read already. */
	if (goes_on && b.produced < b.delivered + b.discarded + b.overwritten)
		b.produced = b.delivered + b.discarded + b.overwritten;
	return b;
}

void pem_session__account_sources(struct pem_session *s, const struct pem_balance *counted)
{
	struct pem_balance_entry *entries = calloc(s->wish_count + 1, sizeof(*entries));
	struct pem_balance *asked = calloc(s->wish_count + 1, sizeof(*asked));
	size_t count, i;
	int n;

	if (asked && !counted)
		pem_session__count_sources(s, asked);
	for (n = 0; entries && asked && n < s->instance_count; n++) {
		for (i = count = 0; i < s->wish_count; i++) {
			if (s->wishes[i].instance != n || !s->wishes[i].want_log)
				continue;
			entries[count].event_id = s->wishes[i].event->id;
			entries[count++].balance = balance_of(
				&s->wishes[i], counted ? counted[i] : asked[i], counted != NULL);
		}
		pem_trace_writer__balance(s->log->writer, 0, s->instances[n].ops->name, 0, entries,
					  count);
	}
	free(entries);
	free(asked);
}

void pem_session__note_gaps(struct pem_session *s, struct pem_trace_info *info)
{
	struct pem_trace_gap *gap;
	const struct pem_wish *wish;
	size_t i;
	uint32_t g;

	for (i = 0; i < s->wish_count; i++) {
		wish = &s->wishes[i];
		if (!wish->unavailable)
			continue;
		for (g = 0; g < info->gap_count; g++) {
			if (!strcmp(info->gaps[g].reason, wish->reason))
				break;
		}
		if (g < info->gap_count || g == PEM_ARRAY_SIZE(info->gaps))
			continue;
		gap = &info->gaps[info->gap_count++];
		memcpy(gap->source, wish->source, sizeof(gap->source));
		memcpy(gap->reason, wish->reason, sizeof(gap->reason));
	}
	for (i = 0; i < s->refusal_count && info->gap_count < PEM_ARRAY_SIZE(info->gaps); i++) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "stub");
		memcpy(gap->reason, s->refusals[i].reason, sizeof(gap->reason));
	}
	if (s->page->refused && info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "stubs");
		snprintf(gap->reason, sizeof(gap->reason),
			 "%u processes could not make a pool in shared memory: %s",
			 s->page->refused, strerror((int)s->page->last_errno));
	}
	if (s->late_targets && info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		gap = &info->gaps[info->gap_count++];
		pem_copy_text(gap->source, sizeof(gap->source), "sources");
		snprintf(gap->reason, sizeof(gap->reason),
			 "%u processes were found after they had started: what the kernel and "
			 "counters had of them before is missing, some 20 ms after the first event "
			 "of their own, or a second",
			 s->late_targets);
	}
}

void pem_session__close_sources(struct pem_session *s)
{
	struct pem_source_plugin *plugin;
	int i;

	for (i = 0; i < s->instance_count; i++) {
		s->instances[i].ops->close(s->instances[i].source);
		free(s->instances[i].events);
	}
	s->instance_count = 0;
	free(s->observed);
	s->observed = NULL;
	s->observed_count = s->observed_capacity = 0;
	while ((plugin = s->plugins)) {
		s->plugins = plugin->next;
		dlclose(plugin->handle);
		free(plugin);
	}
}
