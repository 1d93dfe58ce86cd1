/* SPDX-License-Identifier: MIT */
/* site_print.c - call sites as a table and as JSON */
#include "sites.h"

#include <json-c/json.h>
#include <string.h>

/* The text of a site as agents have it: OBJECT+OFFSET. */
static const char *key_of(const struct report_sites *s, const struct report_site *site)
{
	uint64_t object = s->objects[site->object].number;

	if (object == 0)
		return cli_format("+%llx", (unsigned long long)site->offset);
	return cli_format("%016llx+%llx", (unsigned long long)object,
			  (unsigned long long)site->offset);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static const char *function_of(const struct report_site *site)
{
	const char *function = site->name_count != 0 ? site->names[0].function : NULL;
	const struct report_site_name *outer;

	if (function == NULL)
		return "?";
	outer = &site->names[site->name_count - 1];
	if (site->name_count > 1 && outer->function != NULL)
		return cli_format("%.200s, in %.200s", function, outer->function);
	return function;
}

static const char *line_of(const struct report_sites *s, const struct report_site *site)
{
	const struct report_site_name *name = site->names;

	if (site->name_count != 0 && name->file != NULL)
		return cli_format("%.200s:%u", base_of(name->file), name->line);
	if (site->object != NO_OBJECT)
		return cli_format("%.200s+%llx", base_of(s->objects[site->object].path),
				  (unsigned long long)site->offset);
	return cli_format("process %u, 0x%llx", site->pid, (unsigned long long)site->offset);
}

static void print_troubles(const struct report_sites *s)
{
	size_t i;

	for (i = 0; i < s->object_count; i++) {
		const struct report_object *object = &s->objects[i];

		if (object->trouble != NULL && object->count != 0)
			cli_wrap(stdout,
				 cli_format("No names for %s events: %.400s",
					    cli_count(object->count), object->trouble),
				 4, 0, cli_width(stdout));
	}
	if (s->kernel_trouble != NULL)
		cli_wrap(stdout, cli_format("(kernel): %.200s.", s->kernel_trouble), 0, 0,
			 cli_width(stdout));
	if (s->left_out != 0)
		printf("%s programs and libraries were left out: one process had too many\n",
		       cli_count(s->left_out));
}

/* Is there a process with sites of which nothing is known? */
static bool lacks_objects(const struct report_sites *s)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		if (s->sites[i].object == NO_OBJECT && s->sites[i].offset >> 63 == 0)
			return true;
	return false;
}

void report_sites__print_notes(const struct report_sites *s, const char *nothing)
{
	if (s->count == 0)
		cli_wrap(stdout, nothing, 0, 0, cli_width(stdout));
	else if (s->object_count == 0)
		puts("No names: the trace lacks APP::Loader::Object, which says where programs and "
		     "libraries lay. Name it with -e, too.");
	else if (lacks_objects(s))
		puts("Code without an object: its process did not say what lay there.");
	print_troubles(s);
}

void report_sites__print(const struct report *r)
{
	const struct report_sites *s = r->sites;
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	report__heading("Call sites");
	cli_table__column(table, "EVENTS", CLI_RIGHT);
	cli_table__column(table, "BYTES", CLI_RIGHT);
	cli_table__column(table, "LIVE", CLI_RIGHT);
	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "LINE", CLI_LEFT);
	cli_table__column(table, "FUNCTION", CLI_LEFT);
	for (i = 0; i < s->count; i++) {
		const struct report_site *site = &s->sites[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_count(site->count));
		cli_table__cell(table, site->bytes != 0 ? cli_sum__bytes(site->bytes) : "");
		cli_table__cell(table, site->live != 0 ? cli_sum__bytes(site->live_bytes) : "");
		cli_table__cell(table, cli_event_name(r->events[site->event].event));
		cli_table__cell(table, line_of(s, site));
		cli_table__cell(table, function_of(site));
	}
	cli_table__print(table);
	report_sites__print_notes(s,
				  "No event of the trace says where it was called. Those of the C "
				  "library do, such as APP::Libc::Malloc.");
}

static struct json_object *names_json(const struct report_site *site)
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

void report_sites__json(const struct report *r, struct cli_json_stream *json)
{
	const struct report_sites *s = r->sites;
	size_t i;

	cli_json_stream__open(json, "sites", '[');
	for (i = 0; i < s->count; i++) {
		const struct report_site *site = &s->sites[i];
		struct json_object *entry = json_object_new_object();

		cli_json__text(entry, "event", r->events[site->event].event->name);
		cli_json__count(entry, "count", site->count);
		cli_json__count(entry, "bytes", site->bytes);
		cli_json__count(entry, "live", site->live);
		cli_json__count(entry, "live_bytes", site->live_bytes);
		if (site->object != NO_OBJECT) {
			cli_json__text(entry, "site", key_of(s, site));
			cli_json__text(entry, "object", s->objects[site->object].path);
			cli_json__text(entry, "build_id", s->objects[site->object].build_id);
			if (s->objects[site->object].trouble != NULL)
				cli_json__text(entry, "no_names", s->objects[site->object].trouble);
		} else {
			cli_json__count(entry, "pid", site->pid);
			cli_json__count(entry, "address", site->offset);
		}
		json_object_object_add(entry, "names", names_json(site));
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}
