// SPDX-License-Identifier: MIT
/*
 * tables.c - pem list for people: a page of classes, a line for each event, or all data of an event
 */
#include "list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- why events are not available --- */

static bool same_reason(const struct list_entry *a, const struct list_entry *b)
{
	return !a->available && !b->available && strcmp(a->why, b->why) == 0;
}

static bool same_class(const struct pem_event *a, const struct pem_event *b)
{
	return strcmp(a->layer, b->layer) == 0 && strcmp(a->class_name, b->class_name) == 0;
}

/*
 * Name the events that share entry i's reason: each event, or whole classes with a count. Returns
 * how many.
 */
static size_t name_those(const struct list *list, size_t i, bool by_class, char *names,
			 size_t bytes)
{
	size_t used = 0, count = 0, j, k, in_class;

	*names = '\0';
	for (j = i; j < list->count; j++) {
		const struct pem_event *event = list->entries[j].event;

		if (!same_reason(&list->entries[j], &list->entries[i]))
			continue;
		count++;
		if (used >= bytes)
			continue;
		if (!by_class) {
			used += (size_t)snprintf(names + used, bytes - used, "%s%s",
						 used != 0 ? ", " : "", cli_event_name(event));
			continue;
		}
		/* Entries of a class are neighbours, so its first entry names it. */
		for (k = j; k > i && same_class(list->entries[k - 1].event, event); k--)
			if (same_reason(&list->entries[k - 1], &list->entries[i]))
				break;
		if (k > i && same_class(list->entries[k - 1].event, event))
			continue;
		for (in_class = 0, k = j; k < list->count; k++)
			in_class += same_class(list->entries[k].event, event) &&
				    same_reason(&list->entries[k], &list->entries[i]);
		used += (size_t)snprintf(names + used, bytes - used, "%s%s::%s (%zu)",
					 used != 0 ? ", " : "", event->layer, event->class_name,
					 in_class);
	}
	return count;
}

/* Print each reason once, with the events that it holds for. */
static void print_reasons(const struct list *list, bool by_class)
{
	size_t i, j, count;
	char names[8192], why[640];

	for (i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entries[i];

		for (j = 0; j < i && !same_reason(&list->entries[j], entry); j++)
			;
		if (entry->available || j < i)
			continue;
		count = name_those(list, i, by_class, names, sizeof(names));
		if (by_class)
			snprintf(why, sizeof(why), "%zu event%s: %s", count, count == 1 ? "" : "s",
				 entry->why);
		else
			snprintf(why, sizeof(why), "%s", entry->why);
		printf("\nNot here: ");
		cli_wrap(stdout, by_class ? why : names, 10, 10, cli_width(stdout));
		printf("%10s", "");
		cli_wrap(stdout, by_class ? names : why, 10, 10, cli_width(stdout));
	}
}

/* --- a page of classes --- */

struct sums {
	size_t events, here, programs, usual;
};

/*
 * Sum up the events from i on that have the layer, and the class if of_class is set. They are
 * neighbours.
 */
static struct sums sum_up(const struct list *list, size_t i, bool of_class)
{
	const struct pem_event *first = list->entries[i].event;
	struct sums sums = {0, 0, 0, 0};

	for (; i < list->count; i++) {
		const struct list_entry *entry = &list->entries[i];

		if (of_class ? !same_class(entry->event, first)
			     : strcmp(entry->event->layer, first->layer) != 0)
			break;
		sums.events++;
		sums.here += entry->available && !entry->of_programs;
		sums.programs += entry->available && entry->of_programs;
		sums.usual += entry->event->level <= PEM_LEVEL_INFO;
	}
	return sums;
}

static void sum_row(struct cli_table *table, const char *name, const struct sums *sums,
		    enum cli_colour colour)
{
	cli_table__row(table, sums->here + sums->programs != 0 ? colour : CLI_DIM);
	cli_table__cell(table, name);
	cli_table__cell(table, cli_format("%zu", sums->events));
	cli_table__cell(table, cli_format("%zu", sums->here));
	cli_table__cell(table, cli_format("%zu", sums->programs));
	cli_table__cell(table, cli_format("%zu", sums->usual));
}

/* Fill a cell with "Switch, Wakeup, Migrate ..." of the class that begins at i, as many as fit. */
static void name_cell(struct cli_table *table, const struct list *list, size_t i)
{
	size_t room = cli_width(stdout) > 60 ? cli_width(stdout) - 55 : 14, used = 0, k;
	char names[512] = "";

	if (room > sizeof(names) - 64)
		room = sizeof(names) - 64;
	for (k = i; k < list->count && same_class(list->entries[k].event, list->entries[i].event);
	     k++) {
		const char *name = list->entries[k].event->specifier;

		if (used + strlen(name) + 6 > room) {
			snprintf(names + used, sizeof(names) - used, " ...");
			break;
		}
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 k != i ? ", " : "", name);
	}
	cli_table__cell(table, names);
}

void list_print_summary(const struct list *list)
{
	struct cli_table *table = cli_table__new(stdout);
	struct sums sums, all = {0, 0, 0, 0};
	const char *layer = "";
	size_t i;

	cli_table__column(table, "CLASS", CLI_LEFT);
	cli_table__column(table, "EVENTS", CLI_RIGHT);
	cli_table__column(table, "HERE", CLI_RIGHT);
	cli_table__column(table, "PROGRAM", CLI_RIGHT);
	cli_table__column(table, "USUAL", CLI_RIGHT);
	cli_table__column(table, "SUCH AS", CLI_LEFT);
	for (i = 0; i < list->count; i += sums.events) {
		if (strcmp(layer, list->entries[i].event->layer) != 0) {
			layer = list->entries[i].event->layer;
			sums = sum_up(list, i, false);
			sum_row(table, layer, &sums, CLI_BOLD);
			all.events += sums.events;
			all.here += sums.here;
			all.programs += sums.programs;
		}
		sums = sum_up(list, i, true);
		sum_row(table, cli_format("  %s", list->entries[i].event->class_name), &sums,
			CLI_PLAIN);
		name_cell(table, list, i);
	}
	cli_table__print(table);
	printf("\n%zu of %zu events can be had here, by you, now; %zu more (PROGRAM) are raised by "
	       "programs\n"
	       "that call them, and by nothing else. USUAL ones are recorded when none are named; "
	       "others\n"
	       "with -e. A layer's or class's events: pem list os, pem list Sched; one: pem list "
	       "-v "
	       "Switch;\n"
	       "by what they tell: pem list huge page.\n",
	       all.here, all.events, all.programs);
	print_reasons(list, true);
}

/* --- a line for each event --- */

void list_print_rows(const struct list *list)
{
	struct cli_table *table = cli_table__new(stdout);
	bool has_counters = list_has_counters(list);
	size_t i;

	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "HERE", CLI_LEFT);
	cli_table__column(table, "LEVEL", CLI_LEFT);
	if (has_counters)
		cli_table__column(table, "COUNTED AS", CLI_LEFT);
	cli_table__column(table, "WHAT HAPPENED", CLI_LEFT);
	for (i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entries[i];

		cli_table__row(table, entry->available ? CLI_PLAIN : CLI_DIM);
		cli_table__cell(table, cli_event_name(entry->event));
		cli_table__cell(table, list_here(entry));
		cli_table__cell(table, pem_level__name(entry->event->level));
		if (has_counters)
			cli_table__cell(table, list_counted_as(list, entry));
		cli_table__cell(table,
				*entry->event->deprecated != '\0'
					? cli_format("%s (deprecated)", entry->event->description)
					: entry->event->description);
	}
	cli_table__print(table);
	list_print_counters(list);
	print_reasons(list, false);
}

/* --- all data of an event --- */

static void print_fact(const char *name, const char *text)
{
	printf("  %-11s ", name);
	cli_wrap(stdout, text, 14, 14, cli_width(stdout));
}

static const char *source_words(const struct pem_event *e)
{
	const char *kind = pem_source_kind__name(e->source_kind), *p = e->source_name;
	const char *text = "", *name;
	size_t n;

	if (*e->source_name == '\0')
		return e->source_kind == PEM_SOURCE_STUB ? "stub: programs built with it raise it"
							 : kind;
	while ((n = list_next_source(e, &p, &name)) != 0)
		text = cli_format("%s%s%.*s", text, *text != '\0' ? ", or else " : "", (int)n,
				  name);
	return cli_format("%s %s", kind, text);
}

static const char *meaning_words(const struct pem_event *e)
{
	if (*e->group == '\0')
		return pem_meaning__name(e->meaning);
	return cli_format("%s, matched within group %s by %s", pem_meaning__name(e->meaning),
			  e->group, pem_scope__name(e->scope));
}

/* "enum: 0 cash, 1 card", or of flags in hexadecimal. */
static const char *label_words(const struct pem_field *f)
{
	bool is_signed = f->type >= PEM_TYPE_INT8 && f->type <= PEM_TYPE_INT64;
	static char text[2048];
	size_t used = 0;
	unsigned int i;

	for (i = 0; i < f->label_count && used < sizeof(text); i++) {
		const struct pem_label *l = &f->labels[i];
		const char *form = f->label_kind == PEM_LABELS_FLAGS ? "%s0x%" PRIx64 " %s"
				   : is_signed                       ? "%s%" PRId64 " %s"
								     : "%s%" PRIu64 " %s";

		used += (size_t)snprintf(text + used, sizeof(text) - used, form, i != 0 ? ", " : "",
					 l->value, l->name);
	}
	return text;
}

static const char *type_words(const struct pem_field *f)
{
	if (f->type == PEM_TYPE_LIST)
		return cli_format("up to %u %s", f->max_count, pem_type__name(f->element_type));
	if (f->type == PEM_TYPE_ARRAY)
		return cli_format("%u %s", f->max_count, pem_type__name(f->element_type));
	return pem_type__name(f->type);
}

static void print_event_fields(const struct pem_event *e)
{
	struct cli_table *table = cli_table__new(stdout);
	unsigned int i;

	cli_table__column(table, "  FIELD", CLI_LEFT);
	cli_table__column(table, "TYPE", CLI_LEFT);
	cli_table__column(table, "UNIT", CLI_LEFT);
	cli_table__column(table, "ROLE", CLI_LEFT);
	cli_table__column(table, "WHAT IT HOLDS", CLI_LEFT);
	for (i = 0; i < e->field_count; i++) {
		const struct pem_field *f = &e->fields[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_format("  %s", f->name));
		cli_table__cell(table, type_words(f));
		cli_table__cell(table, f->unit);
		cli_table__cell(table, f->role != PEM_ROLE_NONE ? pem_role__name(f->role) : "");
		cli_table__cell(table, f->label_count != 0 ? cli_format("%s (%s)", f->description,
									label_words(f))
							   : f->description);
	}
	cli_table__print(table);
}

void list_print_fields(const struct list *list)
{
	const char *bold = cli_colour(stdout, CLI_BOLD), *plain = cli_colour(stdout, CLI_PLAIN);
	size_t i;

	for (i = 0; i < list->count; i++) {
		const struct list_entry *entry = &list->entries[i];
		const struct pem_event *e = entry->event;

		printf("%s%s%s%s\n", i != 0 ? "\n" : "", bold, cli_event_name(e), plain);
		print_fact("", e->description);
		print_fact(entry->available ? "here" : "not here",
			   !entry->available    ? entry->reason.text
			   : entry->of_programs ? "raised by programs that call it; by nothing else"
						: "yes");
		print_fact("level",
			   cli_format("%s%s", pem_level__name(e->level),
				      e->level > PEM_LEVEL_INFO ? ": recorded when it is named (-e)"
								: ""));
		if (e->meaning != 0)
			print_fact("meaning", meaning_words(e));
		print_fact("source", source_words(e));
		if (entry->is_counted)
			print_fact("counted as", list_counted_fact(entry));
		if (e->version > 1)
			print_fact("version", cli_format("%u", e->version));
		if (*e->since != '\0')
			print_fact("since", e->since);
		if (*e->deprecated != '\0')
			print_fact("deprecated", e->deprecated);
		print_event_fields(e);
	}
}
