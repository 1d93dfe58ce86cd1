/* SPDX-License-Identifier: MIT */
/*
 * man.c - the event reference as man pages: DIR/pem-LAYER-CLASS.7, and DIR/pem-events.7, which
 * lists them
 *
 * The pages use the man macros, which do not change running text. Besides roff's own characters
 * only the first character of a line needs care. Not here: the texts (reference.c).
 */
#include "backend.h"
#include "reference.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LINE_COLUMNS 76u

/*
 * The name of a character that roff interprets or that its fonts would change. NULL: any other
 * character.
 */
static const char *name_of(char c)
{
	static const struct {
		char c;
		const char *name;
	} special[] = {{'\\', "\\(rs"}, {'"', "\\(dq"}, {'\'', "\\(aq"}, {'`', "\\(ga"},
		       {'^', "\\(ha"},  {'~', "\\(ti"}, {'-', "\\-"}};
	size_t i;

	for (i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (special[i].c == c)
			return special[i].name;
	return NULL;
}

static size_t escaped_bytes(const char *word, size_t count)
{
	size_t i, bytes = 0;

	for (i = 0; i < count; i++)
		bytes += name_of(word[i]) ? strlen(name_of(word[i])) : 1;
	return bytes;
}

static void put_word(FILE *f, const char *word, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (name_of(word[i]))
			fputs(name_of(word[i]), f);
		else
			fputc(word[i], f);
	}
}

static void put(FILE *f, const char *text)
{
	put_word(f, text, strlen(text));
}

/* Print a paragraph's text in lines of limited length. No line begins with a roff request. */
static void put_text(FILE *f, const char *text)
{
	size_t column = 0, count, bytes;

	while (*text) {
		count = strcspn(text, " ");
		bytes = escaped_bytes(text, count);
		if (count && column && column + 1 + bytes > LINE_COLUMNS) {
			fputc('\n', f);
			column = 0;
		} else if (count && column) {
			fputc(' ', f);
			column++;
		}
		if (count && !column && (*text == '.' || *text == '\''))
			fputs("\\&", f);
		put_word(f, text, count);
		column += bytes;
		text += count;
		text += strspn(text, " ");
	}
	fputc('\n', f);
}

/*
 * Print two texts with a separator, for sentences that are composed here. The caller keeps the
 * texts.
 */
static void put_text2(FILE *f, const char *a, const char *separator, const char *b)
{
	char *text = pem_xprintf("%s%s%s", a, separator, b);

	put_text(f, text);
	free(text);
}

static char *upper(const char *name)
{
	char *text = pem_xprintf("PEM-%s", name), *at;

	for (at = text; *at; at++)
		*at = (char)toupper((unsigned char)*at);
	return text;
}

static void put_spec(FILE *f, const struct pem_spec *spec)
{
	fprintf(f, ".\\\"   %016llx  %s (%s)\n", (unsigned long long)spec->hash, spec->provider,
		spec->file);
}

static void put_head(FILE *f, const char *name)
{
	char *title = upper(name);

	fprintf(f, ".TH \"");
	put(f, title);
	/* Names of events are long and must not be broken: ragged lines, no hyphens. */
	fprintf(f, "\" 7 \"" PEM_RELEASED "\" \"pem\" \"Events of pem\"\n.nh\n.ad l\n");
	free(title);
}

static void put_banner(FILE *f)
{
	fprintf(f, ".\\\" SPDX-License-Identifier: MIT\n"
		   ".\\\" Made by pem-codegen; edit the specs instead:\n");
}

/* --- one event --- */

static void put_labels(FILE *f, const struct pem_spec_field *field)
{
	size_t i;

	for (i = 0; i < field->labels->count; i++) {
		const struct pem_spec_label *label = &field->labels->labels[i];
		char *value = reference__label_value(field, label);

		fprintf(f, ".br\n");
		put(f, value);
		fprintf(f, " \\fB");
		put(f, label->name);
		fprintf(f, "\\fR\n");
		if (label->description[0])
			put_text(f, label->description);
		free(value);
	}
}

/* Print a field as a tagged paragraph: name, type, unit, role, then its description. */
static void put_field(FILE *f, const struct pem_spec_field *field)
{
	char *type = reference__type(field);

	fprintf(f, ".TP 7\n\\fB");
	put(f, field->name);
	fprintf(f, "\\fR, ");
	put(f, type);
	free(type);
	if (field->unit[0]) {
		fprintf(f, ", ");
		put(f, field->unit);
	}
	if (reference__is_hexadecimal(field))
		fprintf(f, ", hexadecimal");
	if (field->role) {
		fprintf(f, ", role ");
		put(f, pem_word__role(field->role));
	}
	fprintf(f, "\n");
	put_text(f, field->description[0] ? field->description : "not described");
	if (field->labels)
		put_labels(f, field);
}

static void put_fact(FILE *f, const char *what)
{
	fprintf(f, ".TP 13\n%s:\n", what);
}

static void put_meaning(FILE *f, const struct reference *reference,
			const struct pem_spec_event *event)
{
	const struct pem_spec_event *partner;
	char *text;
	size_t at = 0;

	if (event->meaning == PEM_MEANS_NOTHING)
		return;
	put_fact(f, "Meaning");
	put_text2(f, pem_word__meaning(event->meaning), ": ", reference__meaning(event));
	partner = reference__next_partner(reference, event, &at);
	if (!partner)
		return;
	put_fact(f, "Pairs with");
	for (; partner; partner = reference__next_partner(reference, event, &at)) {
		text = pem_xprintf("%s of pem-%s(7)", partner->name,
				   reference__page_of(reference, partner)->name);
		put_text(f, text);
		fprintf(f, ".br\n");
		free(text);
	}
	text = reference__matching(event);
	put_text(f, text);
	free(text);
}

/*
 * Print a source on a line of its own. Some are longer than a line, and may be broken after ':' and
 * '_'.
 */
static void put_source(FILE *f, const char *source)
{
	size_t count;

	fprintf(f, ".br\n");
	while (*source) {
		count = strcspn(source, ":_");
		count += strspn(source + count, ":_");
		put_word(f, source, count);
		source += count;
		if (*source)
			fprintf(f, "\\:");
	}
	fprintf(f, "\n");
}

static void put_sources(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	put_fact(f, "Comes from");
	put_text2(f, reference__origin(event), "",
		  event->source_count > 1 ? "; the first of these that is there:" : "");
	for (i = 0; i < event->source_count; i++) {
		char *source = reference__source(event, i);

		if (source[0])
			put_source(f, source);
		free(source);
	}
}

static void put_event(FILE *f, const struct reference *reference,
		      const struct pem_spec_event *event)
{
	char *size = reference__size(event), *cost = reference__cost(event), *text;
	size_t i;

	fprintf(f, ".SS \"");
	put(f, event->name);
	fprintf(f, "\"\n");
	put_text(f, event->description[0] ? event->description : "not described");
	for (i = 0; i < event->field_count; i++)
		put_field(f, &event->fields[i]);
	if (event->deprecated[0]) {
		put_fact(f, "Deprecated");
		put_text(f, event->deprecated);
	}
	put_fact(f, "Level");
	put_text2(f, pem_word__level(event->level), ": ", reference__level(event));
	if (event->since[0] || event->version > 1) {
		put_fact(f, "Version");
		text = pem_xprintf("%u%s%s%s%s", event->version, event->since[0] ? ", since " : "",
				   event->since[0] ? event->spec->provider : "",
				   event->since[0] ? " " : "", event->since);
		put_text(f, text);
		free(text);
	}
	put_meaning(f, reference, event);
	put_sources(f, event);
	put_fact(f, "Cost");
	put_text2(f, size, "; ", cost);
	free(size);
	free(cost);
}

/* --- pages --- */

static void put_page(FILE *f, const struct reference *reference, const struct reference_page *page)
{
	const struct pem_spec *spec;
	char *title = pem_xprintf("pem-%s", page->name), *text;
	size_t i, at = 0;

	put_banner(f);
	while ((spec = reference__next_spec(reference, page, &at)))
		put_spec(f, spec);
	put_head(f, page->name);
	fprintf(f, ".SH NAME\n");
	put(f, title);
	fprintf(f, " \\- events of class ");
	put(f, page->class_name);
	fprintf(f, " in layer %s\n.SH DESCRIPTION\n", page->layer);
	for (at = 0; (spec = reference__next_spec(reference, page, &at));) {
		text = pem_xprintf("%s: %s.", spec->provider,
				   spec->description[0] ? spec->description : "not described");
		put_text(f, text);
		fprintf(f, ".PP\n");
		free(text);
	}
	put_text(f,
		 "What a record of an event costs on this machine, in nanoseconds, \"pem doctor\" "
		 "says; whether this machine has the event, \"pem list\" does.");
	fprintf(f, ".SH EVENTS\n");
	for (i = 0; i < page->count; i++)
		put_event(f, reference, page->events[i]);
	fprintf(f, ".SH SEE ALSO\n.BR pem\\-events (7),\n.BR pem\\-list (1),\n"
		   ".BR pem\\-doctor (1)\n");
	free(title);
}

static void put_overview(FILE *f, const struct reference *reference)
{
	const char *layer = "";
	size_t i, k, count = 0;

	put_banner(f);
	for (i = 0; i < reference->set->count; i++)
		put_spec(f, &reference->set->specs[i]);
	put_head(f, "events");
	for (i = 0; i < reference->count; i++)
		count += reference->pages[i].count;
	fprintf(f, ".SH NAME\npem\\-events \\- the events that pem knows\n.SH DESCRIPTION\n");
	fprintf(f, "%zu events in %zu classes; each class has a page of its own.\n", count,
		reference->count);
	for (i = 0; i < reference->count; i++) {
		const struct reference_page *page = &reference->pages[i];

		if (strcmp(layer, page->layer) != 0) {
			layer = page->layer;
			fprintf(f, ".SH \"LAYER %s: ", layer);
			put(f, reference__layer(layer));
			fprintf(f, "\"\n");
		}
		fprintf(f, ".TP\n.BR pem\\-");
		put(f, page->name);
		fprintf(f, " (7)\n");
		for (k = 0; k < page->count; k++) {
			put(f, page->events[k]->specifier);
			fprintf(f, k + 1 < page->count ? ",\n" : "\n");
		}
	}
	fprintf(f, ".SH SEE ALSO\n.BR pem (1),\n.BR pem\\-list (1)\n");
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	struct reference *reference = reference__new(set);
	char *name;
	size_t i;

	put_overview(pem_output__file(out, "pem-events.7"), reference);
	for (i = 0; i < reference->count; i++) {
		name = pem_xprintf("pem-%s.7", reference->pages[i].name);
		put_page(pem_output__file(out, name), reference, &reference->pages[i]);
		free(name);
	}
	reference__free(reference);
}

const struct pem_backend pem_backend_man = {
	.name = "man",
	.description = "the event reference as man pages: pem-events.7 and one per class",
	.emit = emit,
};
