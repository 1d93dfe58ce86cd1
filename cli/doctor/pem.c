// SPDX-License-Identifier: MIT
/* pem.c - pem doctor for pem itself: available events, parts of pem, other tools */
#include "doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names or sentences in a row, as many as there is room for. */
struct list {
	char text[320];
	size_t count;
	size_t left_out; /* of count */
};

static void add(struct list *list, const char *separator, const char *word)
{
	size_t used = strlen(list->text);
	bool is_first = list->count++ == 0;

	if (used + strlen(separator) + strlen(word) < sizeof(list->text))
		snprintf(list->text + used, sizeof(list->text) - used, "%s%s",
			 is_first ? "" : separator, word);
	else
		list->left_out++;
}

/* ", and 2 more", or "". */
static const char *rest_of(const struct list *list)
{
	return list->left_out != 0
		       ? cli_format("%s%zu more", list->text[0] ? ", and " : "", list->left_out)
		       : "";
}

/* List the installed sources in the order in which they are asked. NULL: no memory. */
static struct pem_source_state *list_sources(struct pem_session *session, size_t *count)
{
	struct pem_source_state *states;
	size_t max;
	int filled;

	for (max = 16;; max *= 2) {
		states = calloc(max, sizeof(*states));
		if (states == NULL)
			return NULL;
		states[0].size = sizeof(*states);
		filled = pem_session__sources(session, states, max);
		if (filled < (int)max)
			break;
		free(states);
	}
	*count = filled < 0 ? 0 : (size_t)filled;
	return states;
}

/*
 * Check the catalogue's events of one source kind: how many are available, and why the first
 * unavailable one is not.
 */
static void check_events(struct doctor *doctor, struct pem_session *session,
			 enum pem_source_kind kind, const char *check)
{
	const struct pem_model *model = pem_session__model(session);
	struct pem_error first = {{0}};
	size_t i, all = 0, here = 0;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);
		struct pem_error reason = {{0}};

		if (event->source_kind != kind)
			continue;
		all++;
		if (pem_session__can_deliver(session, event, &reason) == 1)
			here++;
		else if (*first.text == '\0')
			first = reason;
	}
	if (all == 0)
		return;
	if (here == all)
		doctor__add(doctor, check, DOCTOR_OK, NULL, "all %zu of the catalogue", all);
	else
		doctor__add(doctor, check, here != 0 ? DOCTOR_LIMITED : DOCTOR_NO,
			    "pem list says it for each", "%zu of %zu of the catalogue: %.300s",
			    here, all, first.text);
}

/*
 * Try locations that each name one event. Returns how many are available. If why is empty, it gets
 * the reason of the first unavailable one.
 */
static size_t try_folders(struct pem_session *session, const char *const *locations, size_t count,
			  struct pem_error *why)
{
	size_t i, here = 0;

	for (i = 0; i < count; i++) {
		struct pem_error reason = {{0}};
		struct pem_event_set *set = pem_event_set__new(session, &locations[i], 1, &reason);
		bool can = set != NULL &&
			   pem_session__can_deliver(session, pem_event_set__event(set, 0),
						    &reason) == 1;

		here += can;
		if (!can && *why->text == '\0')
			*why = reason;
		pem_event_set__free(set);
	}
	return here;
}

/*
 * Check probes that no spec describes, with a function that each kernel has and one that each
 * program has.
 */
static void check_folders(struct doctor *doctor, struct pem_session *session)
{
	static const char *const kernel[] = {"fentry:vfs_read", "fexit:vfs_read"},
				 *const entry[] = {"kprobe:vfs_read"},
				 *const program[] = {"uprobe:libc.so.6:getenv"};
	struct pem_error why = {{0}}, ignored = {{0}};
	bool functions = try_folders(session, kernel, 2, &why) == 2;
	bool kprobes = try_folders(session, entry, 1, functions ? &why : &ignored) == 1;

	if (functions && kprobes)
		doctor__add(doctor, "kernel functions", DOCTOR_OK, NULL,
			    "fentry:, fexit:, kprobe: and kretprobe: can be had");
	else
		doctor__add(doctor, "kernel functions",
			    functions || kprobes ? DOCTOR_LIMITED : DOCTOR_NO, NULL, "%s%.300s",
			    functions ? "fentry: and fexit: can be had; kprobe: "
			    : kprobes ? "kprobe: and kretprobe: can be had; fentry: "
				      : "",
			    why.text);
	why.text[0] = '\0';
	if (try_folders(session, program, 1, &why) == 1)
		doctor__add(doctor, "program probes", DOCTOR_OK, NULL,
			    "uprobe:, uretprobe: and usdt: can be had");
	else
		doctor__add(doctor, "program probes", DOCTOR_NO, NULL, "%.300s", why.text);
}

/* "module serves 210, BPF serves 4 of the 217 kernel events of the catalogue" */
static void check_paths(struct doctor *doctor, struct pem_session *session,
			const struct pem_source_state *states, size_t count)
{
	const struct pem_model *model = pem_session__model(session);
	size_t *served = calloc(count + 1, sizeof(*served));
	struct list list = {.count = 0};
	size_t i, k, all = 0;
	const char *name;

	for (i = 0; served != NULL && i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		if (event->source_kind != PEM_SOURCE_TRACEPOINT)
			continue;
		all++;
		name = pem_session__source_of(session, event, NULL);
		for (k = 0; name != NULL && k < count; k++)
			served[k] += strcmp(name, states[k].name) == 0;
	}
	for (k = 0; served != NULL && k < count; k++)
		if (served[k] != 0)
			add(&list, ", ", cli_format("%s serves %zu", states[k].name, served[k]));
	free(served);
	doctor__add(doctor, "kernel path", list.count != 0 ? DOCTOR_OK : DOCTOR_NO,
		    list.count != 0 ? NULL : "one of the sources below has to be usable",
		    "%s%s of the %zu kernel events of the catalogue",
		    list.count != 0 ? list.text : "nothing serves any", rest_of(&list), all);
}

/*
 * List the sources of kernel events and counters in the order in which they are asked, and why one
 * is not available.
 */
static void check_sources(struct doctor *doctor, const struct pem_source_state *states,
			  size_t count)
{
	char check[sizeof(doctor->lines[0].check)];
	size_t i;

	for (i = 0; i < count; i++) {
		snprintf(check, sizeof(check), "source %s", states[i].name);
		if (states[i].usable)
			doctor__add(doctor, check, DOCTOR_OK, NULL, "can be used");
		else
			doctor__add(doctor, check, DOCTOR_NO, NULL, "%s", states[i].reason.text);
	}
}

#define COSTS_MAX 64u /* more than libpem has kinds */

/* Add a line for a kind of cost that libpem knows or could not measure. */
static void add_cost(struct doctor *doctor, const struct pem_event_cost *costs, int count,
		     const char *kind, const char *check, const char *what)
{
	size_t line = doctor->count;
	int i;

	for (i = 0; i < count && strcmp(costs[i].kind, kind) != 0; i++)
		;
	if (i >= count) {
		doctor__add(doctor, check, DOCTOR_NO, "the lines above on such events say why",
			    "not measured: %s can't be had here", what);
		return;
	}
	doctor__add(doctor, check, DOCTOR_OK, NULL, "%.1f ns for each record of %s",
		    costs[i].ns_each, what);
	if (doctor->count > line)
		doctor->lines[line].cost_ns = costs[i].ns_each;
}

static void check_costs(struct doctor *doctor, struct pem_session *session)
{
	struct pem_event_cost costs[COSTS_MAX] = {{.size = sizeof(costs[0])}};
	int count = pem_session__costs(session, costs, COSTS_MAX);

	add_cost(doctor, costs, count, "user-log", "stub event cost",
		 "an event that a program or library raises");
	add_cost(doctor, costs, count, "kernel-log", "kernel event cost", "an event of the kernel");
	add_cost(doctor, costs, count, "uprobe-log", "uprobe event cost",
		 "a function or static probe of a program");
	add_cost(doctor, costs, count, "sample", "sample cost", "a timer's sample");
}

/* Plugins of a kind: the names of those that can be used, and why the others can't. */
struct plugins {
	struct list names;
	struct list reasons;
};

static void refuse(const char *sentence, void *arg)
{
	struct plugins *plugins = arg;

	add(&plugins->reasons, "; ", sentence);
}

static void add_plugins(struct doctor *doctor, const char *check, const struct plugins *plugins)
{
	const struct list *names = &plugins->names, *reasons = &plugins->reasons;

	if (names->count == 0 && reasons->count == 0)
		doctor__add(
			doctor, check, DOCTOR_NO,
			"make says which package each one needs; PEM_PLUGIN_PATH names folders to "
			"search",
			"none found");
	else if (reasons->count != 0)
		doctor__add(doctor, check, names->count != 0 ? DOCTOR_LIMITED : DOCTOR_NO,
			    "mend what is said, or remove them", "%s%s%s%s%s",
			    names->count != 0 ? names->text : "none that can be used",
			    rest_of(names), "; ", reasons->text, rest_of(reasons));
	else
		doctor__add(doctor, check, DOCTOR_OK, NULL, "%s%s %s installed", names->text,
			    rest_of(names), names->count == 1 ? "is" : "are");
}

/* What libpem says while it loads the sources' plugins; other times are not for this list. */
struct listener {
	struct plugins sources;
	bool is_listening;
};

static void note_warning(enum pem_log_level level, const char *text, void *arg)
{
	struct listener *listener = arg;

	if (listener->is_listening && (level == PEM_LOG_WARNING || level == PEM_LOG_ERROR))
		refuse(text, &listener->sources);
}

static void check_session(struct doctor *doctor, struct pem_session *session,
			  struct listener *listener)
{
	struct pem_source_state *states;
	size_t i, count;

	/* Before any other call that loads plugins. */
	listener->is_listening = true;
	states = list_sources(session, &count);
	listener->is_listening = false;
	if (states == NULL) {
		doctor__add(doctor, "sources", DOCTOR_NO, NULL, "no memory to list them");
		return;
	}
	for (i = 0; i < count; i++)
		add(&listener->sources.names, ", ", states[i].name);
	check_events(doctor, session, PEM_SOURCE_STUB, "stub events");
	check_events(doctor, session, PEM_SOURCE_TRACEPOINT, "kernel events");
	check_events(doctor, session, PEM_SOURCE_MODULE, "events of pem.ko");
	check_events(doctor, session, PEM_SOURCE_PERF, "counter events");
	check_events(doctor, session, PEM_SOURCE_SAMPLE, "sample events");
	check_paths(doctor, session, states, count);
	check_folders(doctor, session);
	check_sources(doctor, states, count);
	check_costs(doctor, session);
	add_plugins(doctor, "sources", &listener->sources);
	free(states);
}

static void check_delivery(struct doctor *doctor)
{
	struct listener listener = {.is_listening = false};
	struct pem_session_options options = {
		.size = sizeof(options), .log = note_warning, .log_arg = &listener};
	struct pem_error error = {{0}};
	struct pem_session *session = pem_session__open(&options, &error);

	if (session == NULL) {
		doctor__add(doctor, "sessions", DOCTOR_NO, NULL, "%s", error.text);
		return;
	}
	check_session(doctor, session, &listener);
	pem_session__close(session);
}

static int visit_exporter(const char *path, const char *name, void *arg)
{
	struct plugins *plugins = arg;
	struct pem_exporter exporter;
	struct pem_error error;
	void *handle;

	if (cli_exporter__load(path, &exporter, &handle, &error)) {
		add(&plugins->names, ", ", name);
		dlclose(handle);
	} else {
		refuse(error.text, plugins);
	}
	return 0;
}

static void check_exporters(struct doctor *doctor)
{
	struct plugins plugins = {.names = {.count = 0}};

	cli_exporters__visit(visit_exporter, refuse, &plugins);
	add_plugins(doctor, "exporters", &plugins);
}

static void check_preload(struct doctor *doctor)
{
	char path[PATH_MAX];

	if (cli_library_file("libpem-preload.so", path, sizeof(path)) == 0)
		doctor__add(doctor, "preload library", DOCTOR_OK, NULL, "%s", path);
	else
		doctor__add(doctor, "preload library", DOCTOR_NO,
			    "make builds it: without it an unmodified program tells nothing of its "
			    "allocations and threads",
			    "%s is missing", path);
}

static void check_lab(struct doctor *doctor)
{
	struct cli_lab_parts parts;
	struct pem_error error = {{0}};

	if (cli_lab_parts__find(&parts, &error) == 0)
		doctor__add(doctor, "lab", DOCTOR_OK, NULL, "%s", parts.folder);
	else
		doctor__add(doctor, "lab", DOCTOR_LIMITED,
			    "pem lab needs it, to count in an emulated machine", "%s", error.text);
	cli_lab_parts__free(&parts);
}

/* Read the first line that a tool prints about its version. False: the tool is missing. */
static bool tool_version(const char *command, char *line, size_t bytes)
{
	FILE *pipe = popen(command, "re");
	bool read;

	if (pipe == NULL)
		return false;
	read = fgets(line, (int)bytes, pipe) != NULL;
	while (fgetc(pipe) != EOF)
		;
	if (pclose(pipe) != 0 || !read)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

static void check_tools(struct doctor *doctor)
{
	static const struct {
		const char *name;
		const char *command;
		const char *use;
	} tools[] = {
		{"pem-codegen", NULL, "pem gen and pem spec need it; it is built with libxml2"},
		{"babeltrace2", "babeltrace2 --version 2>/dev/null",
		 "reads traces event by event: install it to look at one"},
		{"bpftool", "bpftool version 2>/dev/null", "not needed to record"},
	};
	char path[PATH_MAX], line[200];
	size_t i;

	for (i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		if (tools[i].command != NULL) {
			if (tool_version(tools[i].command, line, sizeof(line)))
				doctor__add(doctor, tools[i].name, DOCTOR_OK, NULL, "%s", line);
			else
				doctor__add(doctor, tools[i].name, DOCTOR_LIMITED, tools[i].use,
					    "not found");
			continue;
		}
		if (cli_program_folder(path, sizeof(path) - 16) < 0)
			continue;
		strcat(path, "/pem-codegen");
		if (access(path, X_OK) == 0)
			doctor__add(doctor, tools[i].name, DOCTOR_OK, NULL, "%s", path);
		else
			doctor__add(doctor, tools[i].name, DOCTOR_LIMITED, tools[i].use, "%s: %s",
				    path, strerror(errno));
	}
}

void doctor__pem(struct doctor *doctor)
{
	doctor__add(doctor, "pem", DOCTOR_OK, NULL, "version %s", PEM_VERSION);
	check_delivery(doctor);
	check_preload(doctor);
	check_exporters(doctor);
	check_lab(doctor);
	check_tools(doctor);
}
