// SPDX-License-Identifier: MIT
/*
 * list.c - pem list: the events there are, and whether this machine can deliver them to this user
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct cli_option options[] = {
	{'j', "json", NULL, "Print an array of objects instead of a table."},
	{0},
};

struct entry {
	const struct pem_event *event;
	bool available;
	struct pem_error reason;
};

struct list {
	struct entry *entries;
	size_t count;
};

static const char *source_words(const struct pem_event *event)
{
	if (event->source_kind == PEM_SOURCE_STUB || *event->source_name == '\0')
		return pem_source_kind__name(event->source_kind);
	return event->source_name;
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
		struct entry *entry = &list->entries[list->count];

		if ((layer != NULL && strcasecmp(event->layer, layer) != 0) ||
		    (pattern != NULL && pem_event__matches(event, pattern) != 1))
			continue;
		entry->event = event;
		entry->available = pem_session__can_deliver(session, event, &entry->reason) == 1;
		list->count++;
	}
	return 0;
}

static struct json_object *entry_json(const struct entry *entry)
{
	struct json_object *object = json_object_new_object();
	struct json_object *fields = json_object_new_array();
	unsigned int i;

	cli_json__text(object, "name", entry->event->name);
	cli_json__text(object, "layer", entry->event->layer);
	cli_json__text(object, "description", entry->event->description);
	cli_json__text(object, "source", source_words(entry->event));
	cli_json__flag(object, "available", entry->available);
	cli_json__text(object, "reason", entry->available ? "" : entry->reason.text);
	for (i = 0; i < entry->event->field_count; i++) {
		const struct pem_field *f = &entry->event->fields[i];
		struct json_object *field = json_object_new_object();

		cli_json__text(field, "name", f->name);
		if (f->type == PEM_TYPE_LIST)
			cli_json__text(field, "type",
				       cli_format("list of %s", pem_type__name(f->element_type)));
		else
			cli_json__text(field, "type", pem_type__name(f->type));
		cli_json__text(field, "unit", f->unit);
		cli_json__text(field, "description", f->description);
		json_object_array_add(fields, field);
	}
	json_object_object_add(object, "fields", fields);
	return object;
}

static void print_json(const struct list *list)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < list->count; i++)
		json_object_array_add(array, entry_json(&list->entries[i]));
	cli_json__print(array, stdout, false);
}

/* Where it comes from, and its fields with their units, as if it were called: stub (size/bytes, site). */
static void event_row(struct cli_table *table, const struct entry *entry)
{
	char text[1024];
	size_t used = 0;
	unsigned int i;

	used = (size_t)snprintf(text, sizeof(text), "%.200s (", source_words(entry->event));
	for (i = 0; i < entry->event->field_count && used < sizeof(text); i++) {
		const struct pem_field *f = &entry->event->fields[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s%s",
					 i != 0 ? ", " : "", f->name, *f->unit != '\0' ? "/" : "",
					 f->unit);
	}
	if (used < sizeof(text))
		snprintf(text + used, sizeof(text) - used, ")");
	cli_table__row(table, entry->available ? CLI_PLAIN : CLI_DIM);
	cli_table__cell(table, entry->event->name);
	cli_table__cell(table, entry->available ? "yes" : "no");
	cli_table__cell(table, text);
}

/* Its reason without the source's name in front, so that one reason for many sources is one. */
static const char *reason_of(const struct entry *entry)
{
	size_t n = strlen(entry->event->source_name);
	const char *text = entry->reason.text;

	if (n != 0 && strncmp(text, entry->event->source_name, n) == 0 && text[n] == ' ')
		text += n + 1;
	return text;
}

static bool same_reason(const struct entry *a, const struct entry *b)
{
	return !a->available && !b->available && strcmp(reason_of(a), reason_of(b)) == 0;
}

/* Each reason once, with the events it holds for. */
static void print_reasons(const struct list *list)
{
	size_t i, j;

	for (i = 0; i < list->count; i++) {
		const struct entry *entry = &list->entries[i];
		char names[2048];
		size_t used = 0;

		for (j = 0; j < i && !same_reason(&list->entries[j], entry); j++)
			;
		if (entry->available || j < i)
			continue;
		for (j = i; j < list->count && used < sizeof(names); j++)
			if (same_reason(&list->entries[j], entry))
				used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
							 j != i ? ", " : "",
							 list->entries[j].event->name);
		printf("\nNot here: ");
		cli_wrap(stdout, names, 10, 10, cli_width(stdout));
		printf("%10s", "");
		cli_wrap(stdout, reason_of(entry), 10, 10, cli_width(stdout));
	}
}

static void print_table(const struct list *list)
{
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "HERE", CLI_LEFT);
	cli_table__column(table, "SOURCE (FIELDS/UNITS)", CLI_LEFT);
	for (i = 0; i < list->count; i++)
		event_row(table, &list->entries[i]);
	cli_table__print(table);
	print_reasons(list);
}

/* Words of the command line: [LAYER] [GLOB]. */
static int parse_words(const struct cli_verb *verb, int argc, char **argv, const char **layer,
		       const char **pattern)
{
	static const char *const layers[] = {"hw", "os", "app", "cpo"};
	size_t i;

	if (optind < argc)
		for (i = 0; i < 4; i++)
			if (strcasecmp(argv[optind], layers[i]) == 0)
				*layer = layers[i];
	if (*layer != NULL)
		optind++;
	if (optind < argc)
		*pattern = argv[optind++];
	if (optind < argc)
		return cli_usage_error(verb, "one layer and one pattern at most, '%s' is too much",
				       argv[optind]);
	return 0;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	bool json = false, quiet = true;
	struct pem_session_options session_options = {
		.size = sizeof(session_options), .log = cli_log, .log_arg = &quiet};
	const char *layer = NULL, *pattern = NULL;
	struct list list = {0};
	struct pem_session *session;
	struct pem_error error = {{0}};
	int code, status = CLI_DONE;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		json = true;
	}
	if (parse_words(verb, argc, argv, &layer, &pattern) != 0)
		return CLI_WRONG_INPUT;
	session = pem_session__open(&session_options, &error);
	if (session == NULL)
		return cli_error(cli_status_of_errno(errno), "%s", error.text);
	if (collect(&list, session, layer, pattern) < 0)
		status = cli_error(CLI_FAILED, "no memory for the list of events");
	else if (list.count == 0 && pattern != NULL)
		status = cli_error(
			CLI_WRONG_INPUT,
			"no event%s%s matches '%s'; pem list without a pattern shows all",
			layer != NULL ? " of layer " : "", layer != NULL ? layer : "", pattern);
	else if (json)
		print_json(&list);
	else if (list.count == 0)
		printf("The catalogue has no event of layer %s.\n", layer != NULL ? layer : "any");
	else
		print_table(&list);
	free(list.entries);
	pem_session__close(session);
	return status == CLI_DONE ? cli_finish_output(status) : status;
}

const struct cli_verb cli_list = {
	.name = "list",
	.summary = "events there are, and whether this machine can deliver them",
	.usage = "list [hw|os|app|cpo] [GLOB] [--json]",
	.text = "Lists the events of the catalogue with the source each comes from, its fields "
		"(with "
		"their units), and whether this machine can deliver it to you now; where it can't, "
		"why, and "
		"what would change that. GLOB is a pattern over whole names with * and ?, or a "
		"class or a "
		"specifier.",
	.examples = "pem list                    everything\n"
		    "pem list os                 what the operating system tells\n"
		    "pem list '*Fault*'          events with Fault in their name\n"
		    "pem list hw --json | jq -r '.[] | select(.available) | .name'\n"
		    "                            counters that can be had here, one a line",
	.options = options,
	.run = run,
};
