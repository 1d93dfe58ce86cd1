/* SPDX-License-Identifier: MIT */
/* model.c - the model text of event.h: DIR/catalogue.c, and the text in generated stubs */
#include "backend.h"
#include "model_hash.h"
#include "model_words.h"

#include <stdlib.h>
#include <string.h>

static void put_field(FILE *f, const struct pem_spec_field *field)
{
	const struct pem_spec_labels *labels = field->labels;
	size_t i;

	fprintf(f, "field\t%s\t%s\t%s\t%u\t%s\t%u\t%u\t%s\t%s\t%zu\t%s\n", field->name,
		pem_word__type(field->type), pem_word__type(field->element_type), field->base,
		pem_word__role(field->role), field->offset, field->max_count, field->unit,
		pem_word__label_kind(labels ? labels->kind : PEM_LABELS_NONE),
		labels ? labels->count : 0, field->description);
	for (i = 0; labels && i < labels->count; i++)
		fprintf(f, "label\t%016llx\t%s\t%s\n", (unsigned long long)labels->labels[i].value,
			labels->labels[i].name, labels->labels[i].description);
}

/* Print the binary and parameters of a uprobe, which need no other table. */
static void put_uprobe(FILE *f, const struct pem_spec_event *event, size_t source)
{
	const struct pem_spec_source *its = &event->sources[source];
	size_t i;

	fprintf(f, "uprobe:%s:%s(", its->binary, its->name);
	for (i = 0; i < event->field_count; i++)
		fprintf(f, "%s%s", i ? "," : "",
			pem_spec_event__from(event, source, &event->fields[i]));
	fputc(')', f);
}

/* Print the alternatives, separated by a character that no name has. */
static void put_sources(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->source_count; i++) {
		fputs(i ? "|" : "", f);
		if (event->source_kind == PEM_SOURCE_UPROBE)
			put_uprobe(f, event, i);
		else
			fputs(event->sources[i].name, f);
	}
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

void pem_put_model(FILE *f, const struct pem_spec_event *event)
{
	char *tsdl = NULL;
	size_t bytes = 0, i;
	FILE *stream = open_memstream(&tsdl, &bytes);

	if (!stream) {
		pem_complain(stderr, "out of memory");
		exit(1);
	}
	pem_put_tsdl(stream, event);
	fclose(stream);
	fprintf(f, "event\t%08x\t%s\t%s\t%s\t%s\t%u\t%s\t%s\t%s\t%s\t%s\t", event->id, event->name,
		event->layer, event->class_name, event->specifier, event->version,
		pem_word__level(event->level), pem_word__meaning(event->meaning), event->group,
		pem_word__scope(event->scope), pem_word__source(event->source_kind));
	put_sources(f, event);
	fprintf(f, "\t%u\t%u\t%zu\t%u\t%s\t%s\t%s\n", event->fixed_bytes, event->max_bytes,
		event->field_count, count_lines(tsdl), event->since, event->deprecated,
		event->description);
	for (i = 0; i < event->field_count; i++)
		put_field(f, &event->fields[i]);
	fputs(tsdl, f);
	free(tsdl);
}

/* Print "EVENT<tab>FIELD" of "EVENT.FIELD". */
static void put_term(FILE *f, const char *term)
{
	const char *point = term ? strchr(term, '.') : NULL;

	fprintf(f, "%.*s\t%s\t", term ? (int)(point ? point - term : (long)strlen(term)) : 0,
		term ? term : "", point ? point + 1 : "");
}

/* Print a sum without its spaces. It takes the cells of a term. */
static void put_sum(FILE *f, const char *sum)
{
	for (; *sum; sum++)
		if (*sum != ' ')
			fputc(*sum, f);
	fputs("\t\t", f);
}

void pem_put_metrics(FILE *f, const struct pem_spec *spec)
{
	size_t i;

	for (i = 0; i < spec->metric_count; i++) {
		const struct pem_spec_metric *metric = &spec->metrics[i];

		fprintf(f, "metric\t%s\t%s\t", metric->name, pem_metric_form_words[metric->form]);
		if (metric->form == PEM_METRIC_QUOTIENT) {
			put_sum(f, metric->of);
			put_sum(f, metric->to);
		} else {
			put_term(f, metric->of);
			put_term(f, metric->to);
		}
		fprintf(f, "%s\t%s\n", metric->unit, metric->description);
	}
}

/* Return the text, which the caller frees. */
static char *model_text(const struct pem_spec *const *specs, size_t count, int stubs_only)
{
	char *text = NULL;
	size_t bytes = 0, i, k;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream) {
		pem_complain(stderr, "out of memory");
		exit(1);
	}
	fprintf(stream, "pem-model\t%d\n", PEM_MODEL_VERSION);
	for (i = 0; i < count; i++) {
		for (k = 0; k < specs[i]->event_count; k++) {
			if (!stubs_only || specs[i]->events[k].source_kind == PEM_SOURCE_STUB)
				pem_put_model(stream, &specs[i]->events[k]);
		}
	}
	for (i = 0; i < count; i++)
		pem_put_metrics(stream, specs[i]);
	fclose(stream);
	return text;
}

uint32_t pem_model_text_hash(const struct pem_spec *spec)
{
	char *text = model_text(&spec, 1, 1);
	uint32_t hash = pem_model__hash(text, strlen(text));

	free(text);
	return hash;
}

void pem_put_model_literal(FILE *f, const struct pem_spec *const *specs, size_t count,
			   int stubs_only)
{
	char *text = model_text(specs, count, stubs_only), *line, *end;

	for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		fputs("\t\"", f);
		pem_put_c_escaped(f, line);
		fputs("\\n\"\n", f);
	}
	free(text);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	const struct pem_spec **specs = pem_xrealloc(NULL, set->count, sizeof(*specs));
	FILE *f = pem_output__file(out, "catalogue.c");
	size_t i;

	for (i = 0; i < set->count; i++)
		specs[i] = &set->specs[i];
	pem_banner(f, set, NULL);
	fprintf(f, "#include <stddef.h>\n\n");
	fprintf(f, "extern const char pem_catalogue_model[];\n"
		   "extern const size_t pem_catalogue_model_bytes;\n\n");
	fprintf(f, "const char pem_catalogue_model[] =\n");
	pem_put_model_literal(f, specs, set->count, 0);
	fprintf(f, "\t\"\";\n\nconst size_t pem_catalogue_model_bytes = "
		   "sizeof(pem_catalogue_model) - 1;\n");
	free(specs);
}

const struct pem_backend pem_backend_model = {
	.name = "model",
	.description = "catalogue.c: all events as one model text, for readers of traces",
	.emit = emit,
};
