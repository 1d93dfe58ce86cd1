// SPDX-License-Identifier: MIT
/*
 * list.c - pem list: the events there are, and whether this machine can deliver them to this user
 *
 * Not here: how they are shown (list_tables.c, list_json.c).
 */
#include "list.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* By layer, as people go down from the program; by class; within one, as the model has them. */
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

/* A reason without the source's name: in front it goes, and elsewhere it is "of that name". */
static void generalize(struct list_entry *entry)
{
	const char *text = entry->reason.text, *name = entry->event->source_name, *found = NULL;
	size_t n = 0;

	/* The name that the reason tells of may be that of any alternative. */
	while (*name != '\0' && found == NULL) {
		char one[128];

		n = strcspn(name, "|");
		snprintf(one, sizeof(one), "%.*s", (int)n, name);
		found = strstr(text, one);
		name += n + (name[n] == '|');
	}
	if (found == text && text[n] == ' ')
		snprintf(entry->why, sizeof(entry->why), "%s", text + n + 1);
	else if (found != NULL && found != text)
		snprintf(entry->why, sizeof(entry->why), "%.*sof that name%s", (int)(found - text),
			 text, found + n);
	else
		snprintf(entry->why, sizeof(entry->why), "%s", text);
}

static int collect(struct list *list, struct pem_session *session, const char *layer,
		   const char *pattern)
{
	const struct pem_model *model = pem_session__model(session);
	size_t i, count = pem_model__count(model);

	list->entries = calloc(count + 1, sizeof(*list->entries));
	if (list->entries == NULL)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		const struct pem_event *event = pem_model__event(model, i);
		struct list_entry *entry = &list->entries[list->count];

		if ((layer != NULL && strcasecmp(event->layer, layer) != 0) ||
		    (pattern != NULL && pem_event__matches(event, pattern) != 1))
			continue;
		entry->event = event;
		entry->available = pem_session__can_deliver(session, event, &entry->reason) == 1;
		if (entry->event->source_kind == PEM_SOURCE_STUB)
			snprintf(entry->why, sizeof(entry->why), "%s", entry->reason.text);
		else
			generalize(entry);
		list->count++;
	}
	qsort(list->entries, list->count, sizeof(*list->entries), compare_entries);
	return 0;
}

struct request {
	const char *layer, *pattern;
	bool json, fields;
};

/* Words of the command line: [LAYER] [GLOB]. */
static int parse_words(const struct cli_verb *verb, int argc, char **argv, struct request *request)
{
	size_t i;

	if (optind < argc)
		for (i = 0; i < LAYERS; i++)
			if (strcasecmp(argv[optind], layers[i]) == 0)
				request->layer = layers[i];
	if (request->layer != NULL)
		optind++;
	if (optind < argc)
		request->pattern = argv[optind++];
	if (optind < argc)
		return cli_usage_error(verb, "one layer and one pattern at most, '%s' is too much",
				       argv[optind]);
	return 0;
}

static int print(const struct list *list, const struct request *request)
{
	if (list->count == 0 && request->pattern != NULL)
		return cli_error(CLI_WRONG_INPUT,
				 "no event%s%s matches '%s'; pem list '*' shows all",
				 request->layer != NULL ? " of layer " : "",
				 request->layer != NULL ? request->layer : "", request->pattern);
	if (request->json)
		list_print_json(list);
	else if (list->count == 0)
		printf("There is no event of layer %s.\n",
		       request->layer != NULL ? request->layer : "any");
	else if (request->fields)
		list_print_fields(list);
	else if (request->layer == NULL && request->pattern == NULL)
		list_print_summary(list);
	else
		list_print_rows(list);
	return CLI_DONE;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	bool quiet = true;
	struct pem_session_options session_options = {
		.size = sizeof(session_options), .log = cli_log, .log_arg = &quiet};
	struct request request = {0};
	struct list list = {0};
	struct pem_session *session;
	struct pem_error error = {{0}};
	int code, status;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == 'v')
			request.fields = true;
		else
			request.json = true;
	}
	if (parse_words(verb, argc, argv, &request) != 0)
		return CLI_WRONG_INPUT;
	session = pem_session__open(&session_options, &error);
	if (session == NULL)
		return cli_error(cli_status_of_errno(errno), "%s", error.text);
	status = cli_specs__load(session, NULL, NULL, false);
	if (status == CLI_DONE && collect(&list, session, request.layer, request.pattern) < 0)
		status = cli_error(CLI_FAILED, "no memory for the list of events");
	if (status == CLI_DONE)
		status = print(&list, &request);
	free(list.entries);
	pem_session__close(session);
	return status == CLI_DONE ? cli_finish_output(status) : status;
}

const struct cli_verb cli_list = {
	.name = "list",
	.summary = "events there are, and whether this machine can deliver them",
	.usage = "list [-v] [--json] [hw|os|app|cpo] [GLOB]",
	.text = "Without words: how many events each class has, how many of them this machine can "
		"deliver to you "
		"now, and why not the others. With a layer or a pattern: these events, a line "
		"each; -v tells "
		"everything about them. GLOB is a pattern over whole names with * and ?, or a "
		"class, or a specifier. "
		"Listed are the catalogue's events, and those of specs that are installed beside "
		"it or named by "
		"PEM_SPEC_PATH, a list of files and folders parted by colons.",
	.examples = "pem list                    what there is, in a page\n"
		    "pem list os                 what the operating system tells\n"
		    "pem list Sched              one class\n"
		    "pem list -v Switch          everything about one event\n"
		    "pem list '*Fault*'          events with Fault in their name\n"
		    "pem list hw --json | jq -r '.[] | select(.available) | .name'\n"
		    "                            counters that can be had here, one a line",
	.options = options,
	.run = run,
};
