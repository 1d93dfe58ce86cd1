/* SPDX-License-Identifier: MIT */
/* site_print.c - call sites as a table and as JSON */
#include "sites.h"
#include "cxx_names.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COLUMNS 100 /* of a function in a table */

/* The text of a site as agents have it: OBJECT+OFFSET. */
static const char *key_of(const struct pem_code_object *object,
			  const struct pem_code_location *location)
{
	if (object->number == 0)
		return cli_format("+%llx", (unsigned long long)location->offset);
	return cli_format("%016llx+%llx", (unsigned long long)object->number,
			  (unsigned long long)location->offset);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

const char *report_site__short(const char *function)
{
	char *name = strdup(function);
	const char *words = function;
	size_t bytes;

	if (name == NULL)
		return function;
	pem_cxx__shorten(name);
	bytes = strlen(name);
	/* What is not of ASCII is cut by cli_format alone, so that no character is cut. */
	words = bytes <= NAME_COLUMNS || cli_columns(name) != bytes
			? cli_format("%s", name)
			: cli_format("%.*s..%s", NAME_COLUMNS / 2 - 1, name,
				     name + bytes - (NAME_COLUMNS / 2 - 1));
	free(name);
	return words;
}

const char *report_site__event(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_SAMPLE && event->source_kind == PEM_SOURCE_SAMPLE
		       ? "CPU samples"
		       : cli_event_name(event);
}

const char *report_site__function(const struct pem_code_location *site)
{
	const char *function = site->name_count != 0 ? site->names[0].function : NULL;
	const struct pem_code_name *outer;

	if (function == NULL)
		return "?";
	outer = &site->names[site->name_count - 1];
	if (site->name_count > 1 && outer->function != NULL)
		return cli_format("%.150s, in %.150s", report_site__short(function),
				  report_site__short(outer->function));
	return report_site__short(function);
}

const char *report_site__line(const struct pem_code *code, const struct pem_code_location *site)
{
	const struct pem_code_name *name = site->names;

	if (site->name_count != 0 && name->file != NULL)
		return cli_format("%.200s:%u", base_of(name->file), name->line);
	if (site->object != PEM_CODE_NONE)
		return cli_format("%.200s+%llx",
				  base_of(pem_code__object(code, site->object)->path),
				  (unsigned long long)site->offset);
	return cli_format("process %u, 0x%llx", site->pid, (unsigned long long)site->offset);
}

static void print_troubles(const struct report_sites *s)
{
	const char *kernel = pem_code__kernel_trouble(s->code);
	const char *kept = pem_code__kept_trouble(s->code);
	uint64_t left_out = pem_code__left_out(s->code);
	uint32_t i;

	for (i = 0; i < pem_code__object_count(s->code); i++) {
		const char *trouble = pem_code__object(s->code, i)->trouble;

		if (trouble != NULL && s->of_object[i] != 0)
			cli_wrap(stdout,
				 cli_format("No names for %s events: %.400s",
					    cli_count(s->of_object[i]), trouble),
				 4, 0, cli_width(stdout));
	}
	if (kernel != NULL)
		cli_wrap(stdout, cli_format("(kernel): %.200s.", kernel), 0, 0, cli_width(stdout));
	if (kept != NULL)
		cli_wrap(stdout, cli_format("%s.", kept), 0, 0, cli_width(stdout));
	if (left_out != 0)
		cli_wrap(stdout,
			 cli_format("%s programs and libraries were left out: one process had too "
				    "many",
				    cli_count(left_out)),
			 0, 0, cli_width(stdout));
}

static bool is_unknown(const struct pem_code_location *location)
{
	return location->object == PEM_CODE_NONE && !location->is_kernel &&
	       location->name_count == 0;
}

/* Is there a process with sites of which nothing is known? */
static bool lacks_objects(const struct report_sites *s)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (is_unknown(pem_code__location(s->code, s->sites[i].location)))
			return true;
	return false;
}

void report_sites__print_notes(const struct report_sites *s, const char *nothing)
{
	if (s->count == 0)
		cli_wrap(stdout, nothing, 0, 0, cli_width(stdout));
	else if (pem_code__object_count(s->code) == 0)
		cli_wrap(stdout,
			 "No names: the trace lacks APP::Loader::Object, which says where programs "
			 "and "
			 "libraries lay. Name it with -e, too.",
			 0, 0, cli_width(stdout));
	else if (lacks_objects(s))
		cli_wrap(stdout, "Code without an object: its process did not say what lay there.",
			 0, 0, cli_width(stdout));
	print_troubles(s);
}

void report_amounts__columns(struct cli_table *table)
{
	cli_table__column(table, "EVENTS", CLI_RIGHT);
	cli_table__column(table, "BYTES", CLI_RIGHT);
	cli_table__column(table, "PEAK", CLI_RIGHT);
	cli_table__column(table, "LIVE", CLI_RIGHT);
	cli_table__column(table, "TEMPORARY", CLI_RIGHT);
}

void report_amounts__cells(struct cli_table *table, const struct report_amounts *sum)
{
	cli_table__cell(table, cli_count(sum->count));
	cli_table__cell(table, sum->bytes != 0 ? cli_sum__bytes(sum->bytes) : "");
	cli_table__cell(table, sum->peak != 0 ? cli_sum__bytes(sum->peak) : "");
	cli_table__cell(table, sum->live != 0 ? cli_sum__bytes(sum->live_bytes) : "");
	cli_table__cell(table, sum->temporary != 0 ? cli_count(sum->temporary) : "");
}

void report_amounts__json(struct json_object *entry, const struct report_amounts *sum)
{
	cli_json__count(entry, "count", sum->count);
	cli_json__count(entry, "bytes", sum->bytes);
	cli_json__count(entry, "peak_bytes", sum->peak);
	cli_json__count(entry, "temporary", sum->temporary);
	cli_json__count(entry, "live", sum->live);
	cli_json__count(entry, "live_bytes", sum->live_bytes);
}

void report_sites__print(const struct report *r)
{
	const struct report_sites *s = r->sites;
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	report__heading("Call sites");
	report_amounts__columns(table);
	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "LINE", CLI_CUT);
	cli_table__column(table, "FUNCTION", CLI_CUT);
	for (i = 0; i < s->count; i++) {
		const struct report_site *site = &s->sites[i];
		const struct pem_code_location *at = pem_code__location(s->code, site->location);

		cli_table__row(table, CLI_PLAIN);
		report_amounts__cells(table, &site->sum);
		cli_table__cell(table, report_site__event(r->events[site->event].event));
		cli_table__cell(table, report_site__line(s->code, at));
		cli_table__cell(table, report_site__function(at));
	}
	cli_table__print(table);
	report_sites__print_notes(s,
				  "No event of the trace says where it was called. Those of the C "
				  "library do, such as APP::Libc::Malloc.");
}

static struct json_object *names_json(const struct pem_code_location *site)
{
	struct json_object *array = json_object_new_array();
	uint32_t i;

	for (i = 0; i < site->name_count; i++) {
		struct json_object *name = json_object_new_object();

		if (site->names[i].function != NULL)
			cli_json__text(name, "function", site->names[i].function);
		if (site->names[i].file != NULL)
			cli_json__text(name, "file", site->names[i].file);
		if (site->names[i].line != 0)
			cli_json__count(name, "line", site->names[i].line);
		json_object_array_add(array, name);
	}
	return array;
}

static void object_json(struct json_object *entry, const struct pem_code_object *object,
			const struct pem_code_location *location)
{
	cli_json__text(entry, "site", key_of(object, location));
	cli_json__text(entry, "object", object->path);
	cli_json__text(entry, "build_id", object->build_id);
	if (object->trouble != NULL)
		cli_json__text(entry, "no_names", object->trouble);
}

void report_sites__json(const struct report *r, struct cli_json_stream *json)
{
	const struct report_sites *s = r->sites;
	size_t i;

	cli_json_stream__open(json, "sites", '[');
	for (i = 0; i < s->count; i++) {
		const struct report_site *site = &s->sites[i];
		const struct pem_code_location *at = pem_code__location(s->code, site->location);
		struct json_object *entry = json_object_new_object();

		cli_json__text(entry, "event", r->events[site->event].event->name);
		report_amounts__json(entry, &site->sum);
		if (at->object != PEM_CODE_NONE) {
			object_json(entry, pem_code__object(s->code, at->object), at);
		} else {
			if (!at->is_kernel)
				cli_json__count(entry, "pid", at->pid);
			cli_json__count(entry, "address", at->offset);
		}
		json_object_object_add(entry, "names", names_json(at));
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}
