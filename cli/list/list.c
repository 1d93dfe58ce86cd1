// SPDX-License-Identifier: MIT
/*
 * list.c - pem list: all events, and whether this machine can deliver them to this user
 *
 * Not here: printing them (tables.c, json.c).
 */
#include "list.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const struct cli_option options[] = {
	{'v', "fields", NULL,
	 "Everything about each event: its fields with units and labels, what it means, its level "
	 "and source."},
	{'j', "json", NULL, "Print an array of objects instead of a table."},
	{0},
};

static const char *const layers[] = {"hw", "os", "app", "cpo"};
#define LAYERS (sizeof(layers) / sizeof(layers[0]))

static size_t layer_rank(const char *layer)
{
	size_t i = 0;

	while (i < LAYERS && strcasecmp(layers[i], layer) != 0)
		i++;
	return i;
}

/* Sort by layer, from the program downwards; then by class; within a class as in the model. */
static int compare_entries(const void *a, const void *b)
{
	const struct pem_event *x = ((const struct list_entry *)a)->event;
	const struct pem_event *y = ((const struct list_entry *)b)->event;
	size_t left = layer_rank(x->layer), right = layer_rank(y->layer);
	int order;

	if (left != right)
		return left < right ? -1 : 1;
	order = strcmp(x->class_name, y->class_name);
	if (order != 0)
		return order;
	return strcmp(x->specifier, y->specifier);
}

/* A name of letters alone, such as "counters", may be a word of the sentence. */
static bool is_plain_word(const char *name)
{
	while (isalpha((unsigned char)*name))
		name++;
	return *name == '\0';
}

/*
 * Make a reason without the source's name. At the beginning the name is removed, elsewhere it
 * becomes "of that name".
 */
static void generalize(struct list_entry *entry)
{
	const char *text = entry->reason.text, *name = entry->event->source_name, *found = NULL;
	size_t n = 0;

	/* The reason may have the name of any alternative. */
	while (*name != '\0' && found == NULL) {
		char one[128];

		n = strcspn(name, "|");
		snprintf(one, sizeof(one), "%.*s", (int)n, name);
		found = strstr(text, one);
		name += n + (name[n] == '|');
	}
	if (found == text && text[n] == ' ')
		snprintf(entry->why, sizeof(entry->why), "%s", text + n + 1);
	else if (found != NULL && found != text && !is_plain_word(entry->event->source_name))
		snprintf(entry->why, sizeof(entry->why), "%.*sof that name%s", (int)(found - text),
			 text, found + n);
	else
		snprintf(entry->why, sizeof(entry->why), "%s", text);
}

/*
 * Is it the stub of a program, not of an adapter that comes with pem? The recorded program may or
 * may not raise it.
 */
static bool is_of_programs(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_STUB &&
	       (*event->source_name == '\0' || strchr(event->source_name, '/') != NULL);
}

/* Programs read this word, so it has the letters of other outputs. */
static void set_path(struct list_entry *entry, const char *source)
{
	size_t i;

	entry->available = source != NULL;
	for (i = 0; source != NULL && source[i] != '\0' && i + 1 < sizeof(entry->path); i++)
		entry->path[i] = (char)tolower((unsigned char)source[i]);
}

struct request {
	const char *layer;
	const char *program; /* a file; only its events are listed; NULL: all events */
	struct pem_model *carried; /* the events that the file carries */
	char **words;
	size_t count;
	bool json, fields;
	bool search; /* search for the words; otherwise the only word is a pattern */
};

/* Also events that no pattern takes when it says what to record. */
static bool matches(const struct pem_event *event, const char *pattern)
{
	struct pem_event shown = *event;

	if (shown.level == PEM_LEVEL_NAMED)
		shown.level = PEM_LEVEL_DEBUG;
	return pem_event__matches(&shown, pattern) == 1;
}

static bool is_asked_for(const struct pem_event *event, const struct request *request)
{
	if (request->layer != NULL && strcasecmp(event->layer, request->layer) != 0)
		return false;
	if (request->program != NULL && pem_model__by_id(request->carried, event->id) == NULL)
		return false;
	if (request->search)
		return list_search(event, request->words, request->count);
	return request->count == 0 || matches(event, request->words[0]);
}

/* Find what the list's counters are counted as, and in which turns. Returns 0 or -ENOMEM. */
static int find_counters(struct list *list, struct pem_session *session)
{
	const struct pem_event **events = calloc(list->count + 1, sizeof(*events));
	uint32_t *turns = calloc(list->count + 1, sizeof(*turns));
	size_t i;

	for (i = 0; events != NULL && turns != NULL && i < list->count; i++) {
		struct list_entry *entry = &list->entries[i];

		events[i] = entry->event;
		entry->is_counter = entry->event->source_kind == PEM_SOURCE_PERF;
		entry->as.size = sizeof(entry->as);
		entry->is_counted = entry->is_counter &&
				    pem_session__counted_as(session, events[i], &entry->as) == 0;
	}
	list->turns = events != NULL && turns != NULL
			      ? pem_session__counter_turns(session, events, list->count, turns)
			      : -ENOMEM;
	for (i = 0; list->turns > 0 && i < list->count; i++)
		list->entries[i].turn = turns[i];
	free(events);
	free(turns);
	return list->turns < 0 ? list->turns : 0;
}

static int collect(struct list *list, struct pem_session *session, const struct request *request)
{
	const struct pem_model *model = pem_session__model(session);
	size_t i, count = pem_model__count(model);

	free(list->entries);
	list->count = 0;
	list->entries = calloc(count + 1, sizeof(*list->entries));
	if (list->entries == NULL)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		const struct pem_event *event = pem_model__event(model, i);
		struct list_entry *entry = &list->entries[list->count];

		if (!is_asked_for(event, request))
			continue;
		entry->event = event;
		set_path(entry, pem_session__source_of(session, event, &entry->reason));
		entry->of_programs = is_of_programs(event);
		if (entry->event->source_kind == PEM_SOURCE_STUB)
			snprintf(entry->why, sizeof(entry->why), "%s", entry->reason.text);
		else
			generalize(entry);
		list->count++;
	}
	qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
	return find_counters(list, session);
}

/* Does the user ask for probes, SYSTEM:EVENT or KIND:PLACE? These must be searched. */
static bool names_probes(const struct request *request)
{
	const char *colon = request->count == 1 ? strchr(request->words[0], ':') : NULL;

	return colon != NULL && colon != request->words[0] && colon[1] != ':' && colon[1] != '\0';
}

/*
 * Find events by one or several words. A single word that is neither a layer nor a pattern of any
 * event is searched in the events' descriptions, as several words are.
 */
static int find(struct list *list, struct pem_session *session, struct request *request)
{
	struct pem_error ignored;
	int rc = 0;

	request->search = request->count > 1;
	rc = collect(list, session, request);
	/* It may be a counter that no spec describes. */
	if (rc == 0 && list->count == 0 && request->count == 1 && !names_probes(request) &&
	    pem_session__add_probes(session, request->words[0], &ignored) == 1)
		rc = collect(list, session, request);
	if (rc == 0 && list->count == 0 && request->count == 1) {
		request->search = true;
		rc = collect(list, session, request);
	}
	return rc;
}

const char *list_here(const struct list_entry *entry)
{
	return !entry->available ? "no" : entry->of_programs ? "program" : "yes";
}

/* Does names have a name of n bytes before end? */
static bool stands_before(const char *names, const char *end, const char *name, size_t n)
{
	for (; names < end; names += strcspn(names, "|") + 1)
		if (strcspn(names, "|") == n && strncmp(names, name, n) == 0)
			return true;
	return false;
}

size_t list_next_source(const struct pem_event *event, const char **p, const char **name)
{
	size_t n;

	while (**p != '\0') {
		*name = *p;
		n = strcspn(*p, "|");
		*p += n + ((*p)[n] == '|');
		if (n != 0 && !stands_before(event->source_name, *name, *name, n))
			return n;
	}
	return 0;
}

static bool is_known(struct pem_session *session, const char *pattern)
{
	const struct pem_model *model = pem_session__model(session);
	size_t i;

	for (i = 0; i < pem_model__count(model); i++)
		if (matches(pem_model__event(model, i), pattern))
			return true;
	return false;
}

/*
 * Does the word stand for a program's or library's file? One that begins like a path always does;
 * another one with a slash, such as I/O, does so if the file exists.
 */
static bool is_path(const char *word)
{
	struct stat st;

	if (*word == '/' || strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0)
		return true;
	return strchr(word, '/') != NULL && stat(word, &st) == 0 && S_ISREG(st.st_mode);
}

/* "; for the file: pem list ./program" if the only word is the name of a program that is here. */
static const char *hint_at_file(const struct request *request)
{
	char path[PATH_MAX], start[4] = "";
	struct stat st;
	FILE *file;
	size_t n;

	if (request->count != 1 || request->program != NULL ||
	    strchr(request->words[0], '/') != NULL ||
	    snprintf(path, sizeof(path), "./%s", request->words[0]) >= (int)sizeof(path) ||
	    stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return "";
	file = fopen(path, "re");
	if (file == NULL)
		return "";
	n = fread(start, 1, sizeof(start), file);
	fclose(file);
	if (n != sizeof(start) || memcmp(start, "\177ELF", sizeof(start)) != 0)
		return "";
	return cli_format("; for the file: pem list %.300s", path);
}

/* Parse the words of the command line: [LAYER] [PROGRAM] [GLOB | WORD...]. */
static void parse_words(int argc, char **argv, struct request *request)
{
	size_t i;

	if (optind < argc)
		for (i = 0; i < LAYERS; i++)
			if (strcasecmp(argv[optind], layers[i]) == 0)
				request->layer = layers[i];
	if (request->layer != NULL)
		optind++;
	if (optind < argc && is_path(argv[optind]))
		request->program = argv[optind++];
	request->words = argv + optind;
	request->count = (size_t)(argc - optind);
}

/* "'block' and 'I/O'" */
static const char *quote(const struct request *request)
{
	const char *text = "";
	size_t i;

	for (i = 0; i < request->count; i++)
		text = cli_format("%.300s%s'%.100s'", text, i != 0 ? " and " : "",
				  request->words[i]);
	return text;
}

/* "; 'block' alone: 31 events, 'I/O': 12", or "" for one word. */
static const char *count_each(const struct pem_model *model, const struct request *request)
{
	const char *text = "";
	size_t i, w, n;

	for (w = 0; request->count > 1 && w < request->count; w++) {
		for (i = n = 0; i < pem_model__count(model); i++)
			n += list_search(pem_model__event(model, i), &request->words[w], 1);
		text = cli_format("%.300s%s'%.100s'%s %zu%s", text, w != 0 ? ", " : "; ",
				  request->words[w], w != 0 ? "" : " alone finds", n,
				  w != 0 ? "" : " events");
	}
	return text;
}

/* No event has the words. A long word that is similar to an event's name may be misspelt. */
static int say_none(const struct pem_model *model, const struct request *request)
{
	const char **names = calloc(pem_model__count(model) + 1, sizeof(*names)), *near = NULL;
	size_t i;

	for (i = 0; names != NULL && i < pem_model__count(model); i++)
		names[i] = pem_model__event(model, i)->specifier;
	if (names != NULL && request->count == 1 && strlen(request->words[0]) >= 8)
		near = cli_nearest(request->words[0], names, pem_model__count(model));
	free(names);
	return cli_error(CLI_WRONG_INPUT,
			 "no event%s%s has %s in its name, description, fields, units or source%s"
			 "%s%s%s pem list '*' shows all there are; specs of your own are found in "
			 "the current folder and by PEM_SPEC_PATH%s",
			 request->layer != NULL ? " of layer " : "",
			 request->layer != NULL ? request->layer : "", quote(request),
			 count_each(model, request), near != NULL ? "; did you mean '" : ";",
			 near != NULL ? near : "", near != NULL ? "'?" : "", hint_at_file(request));
}

/* The session says which models are wrong. */
static int add_carried(void *arg, const char *text, size_t bytes, const char *origin)
{
	struct request *request = arg;

	pem_model__add_text(request->carried, text, bytes, origin, NULL);
	return 0;
}

/*
 * Load the events of the program. Returns 0 or more models, or a status below 0 after printing a
 * sentence.
 */
static int load_program(struct pem_session *session, struct request *request)
{
	struct pem_error error = {{0}};
	struct stat st;
	int rc;

	if (stat(request->program, &st) != 0)
		return -cli_error(CLI_WRONG_INPUT, "%s: %s", request->program,
				  errno == ENOENT ? "no such file" : strerror(errno));
	if (!S_ISREG(st.st_mode))
		return -cli_error(CLI_WRONG_INPUT, "%s is no program file", request->program);
	request->carried = pem_model__new();
	if (request->carried == NULL)
		return -cli_error(CLI_FAILED, "no memory for the events of a program");
	rc = pem_session__describe(session, PEM_ANY, request->program, &error);
	if (rc >= 0)
		rc = pem_program__models(request->program, add_carried, request, &error);
	if (rc < 0)
		return -cli_error(rc == -EINVAL || rc == -E2BIG ? CLI_WRONG_INPUT
								: cli_status_of_errno(-rc),
				  "%s", error.text);
	if (rc == 0)
		return -cli_error(CLI_WRONG_INPUT,
				  "%s brings along no events: neither it nor a library that it "
				  "needs has stubs of pem-codegen, from version 0.2.0 on",
				  request->program);
	return rc;
}

static int print(const struct list *list, const struct request *request,
		 const struct pem_model *model)
{
	if (list->count == 0 && request->program != NULL)
		return cli_error(CLI_WRONG_INPUT,
				 "%s brings along no such event; pem list %s shows those it does",
				 request->program, request->program);
	if (list->count == 0 && request->count != 0)
		return say_none(model, request);
	if (request->search)
		cli_say("no pattern of events: %s; shown are those that have %s in name, "
			"description, fields, units or source%s",
			quote(request), request->count > 1 ? "all of it" : "it",
			hint_at_file(request));
	if (request->json)
		list_print_json(list);
	else if (list->count == 0)
		printf("There is no event of layer %s.\n",
		       request->layer != NULL ? request->layer : "any");
	else if (request->fields)
		list_print_fields(list);
	else if (request->layer == NULL && request->program == NULL && request->count == 0)
		list_print_summary(list);
	else
		list_print_rows(list);
	return CLI_DONE;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	bool quiet = true;
	struct pem_session_options session_options = {
		.size = sizeof(session_options), .log = cli_log, .progress = 1, .log_arg = &quiet};
	struct request request = {0};
	struct list list = {0};
	struct pem_session *session;
	struct pem_error error = {{0}};
	int code, status, rc = 0;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == 'v')
			request.fields = true;
		else
			request.json = true;
	}
	parse_words(argc, argv, &request);
	session = pem_session__open(&session_options, &error);
	if (session == NULL)
		return cli_error(cli_status_of_errno(errno), "%s", error.text);
	/* Only of the program asked for is it said which events are left out. */
	quiet = request.program == NULL;
	if (request.program != NULL)
		rc = load_program(session, &request);
	quiet = true;
	status = rc < 0 ? -rc : cli_specs__load(session, NULL, NULL, NULL, false);
	rc = 0;
	if (status == CLI_DONE && names_probes(&request))
		rc = pem_session__add_probes(session, request.words[0], &error);
	/* An event that the catalogue has and this kernel lacks is listed with the reason. */
	if (rc == -ENOENT && is_known(session, request.words[0]))
		rc = 0;
	if (rc < 0)
		status = cli_error(rc == -E2BIG ? CLI_WRONG_INPUT : cli_status_of_errno(rc), "%s",
				   error.text);
	if (status == CLI_DONE && find(&list, session, &request) < 0)
		status = cli_error(CLI_FAILED, "no memory for the list of events");
	if (status == CLI_DONE)
		status = print(&list, &request, pem_session__model(session));
	free(list.entries);
	pem_model__free(request.carried);
	pem_session__close(session);
	return status == CLI_DONE ? cli_finish_output(status) : status;
}

const struct cli_verb cli_list = {
	.name = "list",
	.summary = "events there are, and whether this machine can deliver them",
	.usage = "list [-v] [--json] [hw|os|app|cpo] [PROGRAM] [GLOB | PLACE | WORD...]",
	.text = "Without words: how many events each class has, how many of them this machine can "
		"deliver to you now (HERE), how many are raised by such programs only that call "
		"them (PROGRAM), and why not the others. With a layer or a pattern: these events, "
		"a line each; -v tells everything about them. With the file of a PROGRAM or "
		"library, a "
		"word with a slash in it: events that it and the libraries it needs bring along; "
		"nothing of it is run. GLOB is a pattern with * and ? "
		"over whole names (OS::*), classes (Sched, OS::Sched) or specifiers (MutexWait*). "
		"PLACE is a tracepoint "
		"of "
		"the running kernel or a pattern of some (sched:*), a function of the kernel "
		"(fentry:vfs_*), or one, an address or a static probe of a program or library "
		"(uprobe:PATH:FUNCTION, uprobe:PATH:0x1176, usdt:PATH:*): pem record(1) tells "
		"more. Any other WORD is "
		"looked for, in any case, in names, descriptions, fields, units and sources; of "
		"several, all have to be there. Listed are the catalogue's events, and those of "
		"specs that are installed beside it, in the current folder, or named by "
		"PEM_SPEC_PATH, a list of files and folders parted by colons.",
	.examples = "pem list                    what there is, in a page\n"
		    "pem list os                 what the operating system tells\n"
		    "pem list Sched              one class\n"
		    "pem list -v Switch          everything about one event\n"
		    "pem list '*Fault*'          events with Fault in their name\n"
		    "pem list ./program          events that a program brings along\n"
		    "pem list -v 'block:*'       tracepoints with their fields, in the catalogue "
		    "or not\n"
		    "pem list 'usdt:/usr/bin/python3:*'\n"
		    "                            static probes of a program\n"
		    "pem list huge page          events that tell of huge pages\n"
		    "pem list hw --json | jq -r '.[] | select(.available) | .name'\n"
		    "                            counters that can be had here, one a line",
	.options = options,
	.run = run,
};
