/* SPDX-License-Identifier: MIT */
/*
 * html.c - the event reference as HTML: DIR/index.html, and DIR/LAYER-CLASS.html for each class
 *
 * The pages need no other file, and are readable on light and dark. Text of a spec's author is
 * printed only by put(), which escapes it. Not here: the texts (reference.c).
 */
#include "backend.h"
#include "reference.h"

#include <stdlib.h>
#include <string.h>

static const char style[] =
#include "reference.css.h"
	;
static const char script[] =
#include "reference.js.h"
	;

/* Print text, escaped for text and for attributes in double or single quotes. */
static void put(FILE *f, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		case '\'':
			fputs("&#39;", f);
			break;
		default:
			fputc(*text, f);
		}
	}
}

static void put_freed(FILE *f, char *text)
{
	put(f, text);
	free(text);
}

static void put_spec_comment(FILE *f, const struct pem_spec *spec)
{
	fprintf(f, "  %016llx  %s (%s)\n", (unsigned long long)spec->hash, spec->provider,
		spec->file);
}

static void put_banner(FILE *f)
{
	fprintf(f, "<!doctype html>\n<!-- SPDX-License-Identifier: MIT\n"
		   "Made by pem-codegen; edit the specs instead:\n");
}

static void put_head(FILE *f, const char *title, const char *policy)
{
	fprintf(f, "-->\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "style-src 'unsafe-inline'");
	fprintf(f, "%s\">\n<title>", policy);
	put(f, title);
	fprintf(f, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
}

/* --- one event --- */

static void put_labels(FILE *f, const struct pem_spec_field *field)
{
	size_t i;

	fprintf(f, "<ul class=\"labels\">");
	for (i = 0; i < field->labels->count; i++) {
		const struct pem_spec_label *label = &field->labels->labels[i];

		fprintf(f, "<li><code>");
		put_freed(f, reference__label_value(field, label));
		fprintf(f, " ");
		put(f, label->name);
		fprintf(f, "</code> ");
		put(f, label->description);
		fprintf(f, "</li>");
	}
	fprintf(f, "</ul>");
}

static void put_field(FILE *f, const struct pem_spec_field *field)
{
	fprintf(f, "<tr><td class=\"name\">");
	put(f, field->name);
	fprintf(f, "</td><td>");
	put_freed(f, reference__type(field));
	fprintf(f, "%s</td><td>", reference__is_hexadecimal(field) ? ", hexadecimal" : "");
	put(f, field->unit);
	fprintf(f, "</td><td>");
	put(f, field->role ? pem_word__role(field->role) : "");
	fprintf(f, "</td><td>");
	put(f, field->description);
	if (field->labels)
		put_labels(f, field);
	fprintf(f, "</td></tr>\n");
}

static void put_fields(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	if (!event->field_count) {
		fprintf(f, "<p class=\"soft\">No fields.</p>\n");
		return;
	}
	fprintf(f, "<div class=\"wide\"><table>\n<tr><th>Field</th><th>Type</th><th>Unit</th>"
		   "<th>Role</th><th>What it is</th></tr>\n");
	for (i = 0; i < event->field_count; i++)
		put_field(f, &event->fields[i]);
	fprintf(f, "</table></div>\n");
}

static void put_meaning(FILE *f, const struct reference *reference,
			const struct pem_spec_event *event)
{
	const struct pem_spec_event *partner;
	size_t at = 0;
	int first = 1;

	if (event->meaning == PEM_MEANS_NOTHING)
		return;
	fprintf(f, "<dt>Meaning</dt><dd><code>");
	put(f, pem_word__meaning(event->meaning));
	fprintf(f, "</code>: ");
	put(f, reference__meaning(event));
	fprintf(f, "</dd>\n");
	while ((partner = reference__next_partner(reference, event, &at))) {
		fprintf(f, first ? "<dt>Pairs with</dt><dd>" : ", ");
		fprintf(f, "<a class=\"name\" href=\"%s.html#%s\">",
			reference__page_of(reference, partner)->name, partner->specifier);
		put(f, partner->name);
		fprintf(f, "</a>");
		first = 0;
	}
	if (first)
		return;
	fprintf(f, "<br><span class=\"soft\">");
	put_freed(f, reference__matching(event));
	fprintf(f, "</span></dd>\n");
}

static void put_sources(FILE *f, const struct pem_spec_event *event)
{
	char *source;
	size_t i;

	fprintf(f, "<dt>Comes from</dt><dd>");
	put(f, reference__origin(event));
	fprintf(f, "%s<ul class=\"sources\">",
		event->source_count > 1 ? "; the first of these that is there:" : "");
	for (i = 0; i < event->source_count; i++) {
		source = reference__source(event, i);
		if (source[0]) {
			fprintf(f, "<li><code>");
			put(f, source);
			fprintf(f, "</code></li>");
		}
		free(source);
	}
	fprintf(f, "</ul></dd>\n");
}

static void put_facts(FILE *f, const struct reference *reference,
		      const struct pem_spec_event *event)
{
	fprintf(f, "<dl class=\"facts\">\n<dt>Level</dt><dd><code>%s</code>: ",
		pem_word__level(event->level));
	put(f, reference__level(event));
	fprintf(f, "</dd>\n");
	if (event->since[0] || event->version > 1) {
		fprintf(f, "<dt>Version</dt><dd>%u", event->version);
		if (event->since[0]) {
			fprintf(f, ", since %s ", event->spec->provider);
			put(f, event->since);
		}
		fprintf(f, "</dd>\n");
	}
	put_meaning(f, reference, event);
	put_sources(f, event);
	fprintf(f, "<dt>Cost</dt><dd>");
	put_freed(f, reference__size(event));
	fprintf(f, "<br>");
	put_freed(f, reference__cost(event));
	fprintf(f, "</dd>\n</dl>\n");
}

static void put_event(FILE *f, const struct reference *reference,
		      const struct pem_spec_event *event)
{
	fprintf(f, "<article class=\"event\" id=\"%s\">\n<h2><a class=\"name\" href=\"#%s\">",
		event->specifier, event->specifier);
	put(f, event->name);
	fprintf(f, "</a></h2>\n<p>");
	put(f, event->description[0] ? event->description : "not described");
	fprintf(f, "</p>\n");
	if (event->deprecated[0]) {
		fprintf(f, "<p class=\"old\">Deprecated: ");
		put(f, event->deprecated);
		fprintf(f, "</p>\n");
	}
	put_fields(f, event);
	put_facts(f, reference, event);
	fprintf(f, "</article>\n");
}

/* --- pages --- */

/* Print links to the events of a long page. */
static void put_contents(FILE *f, const struct reference_page *page)
{
	size_t i;

	if (page->count < 4)
		return;
	fprintf(f, "<p class=\"contents\">");
	for (i = 0; i < page->count; i++)
		fprintf(f, "<a class=\"name\" href=\"#%s\">%s</a>\n", page->events[i]->specifier,
			page->events[i]->specifier);
	fprintf(f, "</p>\n");
}

static void put_page(FILE *f, const struct reference *reference, const struct reference_page *page)
{
	const struct pem_spec *spec;
	char *title = pem_xprintf("%s::%s", page->layer, page->class_name);
	size_t i, at = 0;

	put_banner(f);
	while ((spec = reference__next_spec(reference, page, &at)))
		put_spec_comment(f, spec);
	put_head(f, title, "");
	fprintf(f, "<nav><a href=\"index.html\">Events of pem</a></nav>\n<h1>");
	put_freed(f, title);
	fprintf(f, "</h1>\n");
	for (at = 0; (spec = reference__next_spec(reference, page, &at));) {
		fprintf(f, "<p>");
		put(f, spec->description);
		fprintf(f, "</p>\n");
	}
	fprintf(f, "<p class=\"soft\">What a record of an event costs on your machine, in "
		   "nanoseconds, "
		   "<code>pem doctor</code> says; whether your machine has the event, "
		   "<code>pem list</code> does.</p>\n");
	put_contents(f, page);
	for (i = 0; i < page->count; i++)
		put_event(f, reference, page->events[i]);
	fprintf(f, "</body>\n</html>\n");
}

/* Print the words of its fields and sources by which a reader may search for an event. */
static void put_search(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		put(f, event->fields[i].name);
		fprintf(f, " ");
		put(f, event->fields[i].unit);
		fprintf(f, " ");
		put(f, event->fields[i].description);
		fprintf(f, " ");
	}
	for (i = 0; i < event->source_count; i++) {
		put(f, event->sources[i].name);
		fprintf(f, " ");
	}
}

/* Print a row of the index. The page's filter searches data-t. */
static void put_row(FILE *f, const struct reference_page *page, const struct pem_spec_event *event)
{

	fprintf(f, "<li data-t=\"");
	put(f, event->name);
	fprintf(f, " ");
	put(f, event->description);
	fprintf(f, " %s ", pem_word__level(event->level));
	put_search(f, event);
	fprintf(f, "\"><a class=\"name\" href=\"%s.html#%s\">", page->name, event->specifier);
	put(f, event->specifier);
	fprintf(f, "</a><span>");
	put(f, event->description);
	if (event->deprecated[0])
		fprintf(f, "<span class=\"tag\">deprecated</span>");
	fprintf(f, "</span></li>\n");
}

static void put_class(FILE *f, const struct reference_page *page)
{
	size_t i;

	fprintf(f, "<section>\n<h3><a href=\"%s.html\">", page->name);
	put(f, page->class_name);
	fprintf(f, "</a></h3>\n<ul class=\"list\">\n");
	for (i = 0; i < page->count; i++)
		put_row(f, page, page->events[i]);
	fprintf(f, "</ul>\n</section>\n");
}

static void put_index(FILE *f, const struct reference *reference)
{
	const char *layer = NULL;
	size_t i;

	put_banner(f);
	for (i = 0; i < reference->set->count; i++)
		put_spec_comment(f, &reference->set->specs[i]);
	put_head(f, "Events of pem", "; script-src 'unsafe-inline'");
	fprintf(f, "<h1>Events of pem</h1>\n"
		   "<input id=\"find\" type=\"search\" autofocus autocomplete=\"off\" "
		   "aria-label=\"Find events\" placeholder=\"Find: block I/O, network send, "
		   "perf::CYCLES "
		   "...\">\n<p class=\"soft\" id=\"count\" role=\"status\"></p>\n");
	for (i = 0; i < reference->count; i++) {
		const struct reference_page *page = &reference->pages[i];

		if (!layer || strcmp(layer, page->layer) != 0) {
			fprintf(f, "%s<section>\n<h2>%s, ", layer ? "</section>\n" : "",
				page->layer);
			put(f, reference__layer(page->layer));
			fprintf(f, "</h2>\n");
		}
		layer = page->layer;
		put_class(f, page);
	}
	fprintf(f, "%s<script>\n%s</script>\n</body>\n</html>\n", layer ? "</section>\n" : "",
		script);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	struct reference *reference = reference__new(set);
	char *name;
	size_t i;

	put_index(pem_output__file(out, "index.html"), reference);
	for (i = 0; i < reference->count; i++) {
		name = pem_xprintf("%s.html", reference->pages[i].name);
		put_page(pem_output__file(out, name), reference, &reference->pages[i]);
		free(name);
	}
	reference__free(reference);
}

const struct pem_backend pem_backend_html = {
	.name = "html",
	.description = "the event reference as HTML: index.html and a page per class",
	.emit = emit,
};
