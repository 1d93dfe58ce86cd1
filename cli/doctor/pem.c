// SPDX-License-Identifier: MIT
/* pem.c - pem doctor for pem itself: available events, parts of pem, other tools */
#include "doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATHS_MAX 4
#define SOURCES_MAX 16

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
 * Try places that each name one event. Returns how many are available. If none is, reason is that
 * of the first.
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

/* "module 210, BPF 4 of 217" */
static void check_paths(struct doctor *doctor, struct pem_session *session)
{
	const struct pem_model *model = pem_session__model(session);
	struct {
		const char *name;
		size_t events;
	} paths[PATHS_MAX] = {{0}};
	char text[160] = "";
	size_t i, p, count = 0, used = 0, all = 0;
	const char *name;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		if (event->source_kind != PEM_SOURCE_TRACEPOINT)
			continue;
		all++;
		name = pem_session__source_of(session, event, NULL);
		for (p = 0; name != NULL && p < count && strcmp(paths[p].name, name) != 0; p++)
			;
		if (name == NULL || p == PATHS_MAX)
			continue;
		paths[p].name = name;
		paths[p].events++;
		count = p == count ? p + 1 : count;
	}
	for (p = 0; p < count; p++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s serves %zu",
					 p != 0 ? ", " : "", paths[p].name, paths[p].events);
	doctor__add(doctor, "kernel path", count != 0 ? DOCTOR_OK : DOCTOR_NO,
		    count != 0 ? NULL : "one of the sources below has to be usable",
		    "%s of the %zu kernel events of the catalogue",
		    count != 0 ? text : "nothing serves any", all);
}

/*
 * List the sources of kernel events and counters in the order in which they are asked, and why one
 * is not available.
 */
static void check_sources(struct doctor *doctor, struct pem_session *session)
{
	struct pem_source_state states[SOURCES_MAX] = {{.size = sizeof(states[0])}};
	int i, count = pem_session__sources(session, states, SOURCES_MAX);
	char check[24];

	for (i = 0; i < count; i++) {
		snprintf(check, sizeof(check), "source %s", states[i].name);
		if (states[i].usable)
			doctor__add(doctor, check, DOCTOR_OK, NULL, "can be used");
		else
			doctor__add(doctor, check, DOCTOR_NO, NULL, "%s", states[i].reason.text);
	}
}

/* Add a line for a kind of cost that libpem knows or could not measure. */
static void add_cost(struct doctor *doctor, const struct pem_event_cost *costs, int count,
		     const char *kind, const char *check, const char *what)
{
	size_t line = doctor->count;
	int i;

	for (i = 0; i < count && strcmp(costs[i].kind, kind) != 0; i++)
		;
	if (i == count) {
		doctor__add(doctor, check, DOCTOR_NO, "what kernel events and BPF say above holds",
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
	struct pem_event_cost costs[16] = {{.size = sizeof(costs[0])}};
	int count = pem_session__costs(session, costs, 16);

	add_cost(doctor, costs, count, "user-log", "stub event cost",
		 "an event that a program or library raises");
	add_cost(doctor, costs, count, "kernel-log", "kernel event cost", "an event of the kernel");
	add_cost(doctor, costs, count, "uprobe-log", "uprobe event cost",
		 "a function or static probe of a program");
	add_cost(doctor, costs, count, "sample", "sample cost", "a timer's sample");
}

static void check_delivery(struct doctor *doctor)
{
	struct pem_session_options options = {.size = sizeof(options)};
	struct pem_error error = {{0}};
	struct pem_session *session = pem_session__open(&options, &error);

	if (session == NULL) {
		doctor__add(doctor, "sessions", DOCTOR_NO, NULL, "%s", error.text);
		return;
	}
	check_events(doctor, session, PEM_SOURCE_STUB, "stub events");
	check_events(doctor, session, PEM_SOURCE_TRACEPOINT, "kernel events");
	check_events(doctor, session, PEM_SOURCE_MODULE, "events of pem.ko");
	check_events(doctor, session, PEM_SOURCE_PERF, "counter events");
	check_events(doctor, session, PEM_SOURCE_SAMPLE, "sample events");
	check_paths(doctor, session);
	check_folders(doctor, session);
	check_sources(doctor, session);
	check_costs(doctor, session);
	pem_session__close(session);
}

struct names {
	char text[400];
	size_t count;
	size_t refused;
};

static void add_name(struct names *names, const char *name)
{
	size_t used = strlen(names->text);

	snprintf(names->text + used, sizeof(names->text) - used, "%s%s",
		 names->count++ != 0 ? ", " : "", name);
}

static int visit_source(const char *path, const char *name, void *arg)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct names *names = arg;

	if (handle != NULL && dlsym(handle, "pem_source") != NULL)
		add_name(names, name);
	else
		names->refused++;
	if (handle != NULL)
		dlclose(handle);
	return 0;
}

static int visit_exporter(const char *path, const char *name, void *arg)
{
	struct names *names = arg;
	struct pem_exporter exporter;
	struct pem_error error;
	void *handle;

	(void)name;
	if (cli_exporter__load(path, &exporter, &handle, &error)) {
		add_name(names, name);
		dlclose(handle);
	} else {
		names->refused++;
	}
	return 0;
}

static void check_plugins(struct doctor *doctor, const char *prefix, const char *check,
			  int (*visit)(const char *path, const char *name, void *arg))
{
	struct names names = {.count = 0};

	cli_plugins__visit(prefix, visit, NULL, &names);
	if (names.count == 0)
		doctor__add(
			doctor, check, DOCTOR_NO,
			"make says which package each one needs; PEM_PLUGIN_PATH names folders to "
			"search",
			"none found%s", names.refused != 0 ? " that can be loaded" : "");
	else if (names.refused != 0)
		doctor__add(doctor, check, DOCTOR_LIMITED, "build them again, or remove them",
			    "%s; %zu more can't be loaded", names.text, names.refused);
	else
		doctor__add(doctor, check, DOCTOR_OK, NULL, "%s %s installed", names.text,
			    names.count == 1 ? "is" : "are");
}

static void check_preload(struct doctor *doctor)
{
	char path[PATH_MAX];

	if (cli_library_file("libpem-libc.so", path, sizeof(path)) == 0)
		doctor__add(doctor, "preload library", DOCTOR_OK, NULL, "%s", path);
	else
		doctor__add(doctor, "preload library", DOCTOR_NO,
			    "make builds it: without it an unmodified program tells nothing of its "
			    "allocations and threads",
			    "%s is missing", path);
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
	doctor__add(doctor, "pem", DOCTOR_OK, NULL, "version %s", pem_version());
	check_delivery(doctor);
	check_plugins(doctor, "source-", "sources", visit_source);
	check_preload(doctor);
	check_plugins(doctor, "export-", "exporters", visit_exporter);
	check_tools(doctor);
}
