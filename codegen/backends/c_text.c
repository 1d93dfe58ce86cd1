/* SPDX-License-Identifier: MIT */
/* c_text.c - signatures, labels and comments of the C stubs, for all C backends */
#include "c_text.h"

#include <ctype.h>
#include <stdlib.h>

int pem_c_has_type(const struct pem_spec_event *event, unsigned type)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type == type)
			return 1;
	}
	return 0;
}

void pem_c_put_comment(FILE *f, const char *text)
{
	for (; *text; text++) {
		fputc(*text, f);
		if ((text[0] == '*' && text[1] == '/') || (text[0] == '/' && text[1] == '*'))
			fputc(' ', f);
	}
}

void pem_c_put_field_comment(FILE *f, const struct pem_spec_field *field)
{
	if (!field->unit[0] && !field->description[0])
		return;
	fprintf(f, " /* ");
	pem_c_put_comment(f, field->unit);
	fprintf(f, "%s", field->unit[0] && field->description[0] ? ": " : "");
	pem_c_put_comment(f, field->description);
	fprintf(f, " */");
}

static void put_upper(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc(toupper((unsigned char)*text), f);
}

static void put_label(FILE *f, const struct pem_spec_label *label)
{
	/* C has no literal for the least value. */
	if (label->is_negative && label->value == 1ull << 63)
		fprintf(f, " (-0x7fffffffffffffffLL - 1)");
	else if (label->is_negative)
		fprintf(f, " (%lldLL)", (long long)label->value);
	else
		fprintf(f, " 0x%llx%s", (unsigned long long)label->value,
			label->value > UINT32_MAX ? "ULL" : "u");
	if (label->description[0]) {
		fprintf(f, " /* ");
		pem_c_put_comment(f, label->description);
		fprintf(f, " */");
	}
	fprintf(f, "\n");
}

/* Labels are macros PEM_PROVIDER_LABELS_LABEL, because they may be wider than an int. */
void pem_c_put_labels(FILE *f, const struct pem_spec *spec)
{
	char *prefix, *labels, *name;
	size_t i, k;

	for (i = 0; i < spec->labels_count; i++) {
		labels = pem_snake_case(spec->labels[i].name);
		prefix = pem_xprintf("PEM_%s_%s_", spec->provider, labels);
		fprintf(f, "/* %s: ", spec->labels[i].name);
		pem_c_put_comment(f, spec->labels[i].description);
		fprintf(f, " */\n");
		for (k = 0; k < spec->labels[i].count; k++) {
			name = pem_snake_case(spec->labels[i].labels[k].name);
			fprintf(f, "#define ");
			put_upper(f, prefix);
			put_upper(f, name);
			put_label(f, &spec->labels[i].labels[k]);
			free(name);
		}
		fprintf(f, "\n");
		free(prefix);
		free(labels);
	}
}

void pem_c_put_parameters(FILE *f, const struct pem_spec_event *event, const char *before)
{
	const struct pem_spec_field *field;
	const char *comma = before;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "%sconst char *%s", comma, field->c_name);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "%sconst %s *%s", comma, pem_type__c(field->element_type),
				field->c_name);
		else if (field->type == PEM_TYPE_LIST)
			fprintf(f, "%suint32_t %s_count, const %s *%s", comma, field->c_name,
				pem_type__c(field->element_type), field->c_name);
		else
			fprintf(f, "%s%s %s", comma, pem_type__c(field->type), field->c_name);
		comma = ", ";
	}
	if (comma == before && !before[0])
		fprintf(f, "void");
}

void pem_c_put_arguments(FILE *f, const struct pem_spec_event *event, const char *before)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		fprintf(f, "%s", i ? ", " : before);
		if (event->fields[i].type == PEM_TYPE_LIST)
			fprintf(f, "%s_count, ", event->fields[i].c_name);
		fprintf(f, "%s", event->fields[i].c_name);
	}
}

size_t pem_c_parameter_count(const struct pem_spec_event *event)
{
	size_t i, count = event->field_count;

	for (i = 0; i < event->field_count; i++)
		count += event->fields[i].type == PEM_TYPE_LIST;
	return count;
}

void pem_c_put_enabled(FILE *f, const struct pem_spec_event *event, const char *expression)
{
	fprintf(f,
		"/* Does anybody want %s? For those who must do work to know its fields. */\n"
		"static inline int pem_enabled_%s(void)\n{\n\treturn %s != 0;\n}\n\n",
		event->name, event->c_name, expression);
}

void pem_c_begin_notify(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "/* Raise %s.%s */\n", event->name,
		pem_c_has_type(event, PEM_TYPE_STRING) ? " A NULL string counts as empty." : "");
	if (event->deprecated[0]) {
		fprintf(f, "__attribute__((deprecated(\"");
		pem_put_c_escaped(f, event->deprecated);
		fprintf(f, "\"))) ");
	}
	fprintf(f, "static inline void pem_notify_%s(", event->c_name);
	pem_c_put_parameters(f, event, "");
	fprintf(f, ")\n{\n");
}

void pem_c_put_members(FILE *f, const struct pem_spec_event *event, size_t first)
{
	const struct pem_spec_field *field;
	size_t i;

	for (i = first; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "\tconst char *%s;", field->c_name);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "\tconst %s *%s;", pem_type__c(field->element_type),
				field->c_name);
		else if (field->type == PEM_TYPE_LIST)
			fprintf(f, "\tuint32_t %s_count;\n\tconst %s *%s;", field->c_name,
				pem_type__c(field->element_type), field->c_name);
		else
			fprintf(f, "\t%s %s;", pem_type__c(field->type), field->c_name);
		pem_c_put_field_comment(f, field);
		fprintf(f, "\n");
	}
}

void pem_c_put_tidy(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "\tif (!%s)\n\t\t%s = \"\";\n", field->c_name, field->c_name);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f,
				"\tif (!%1$s) {\n\t\tstatic const %2$s pem_zeros[%3$u] = { 0 };\n\n"
				"\t\t%1$s = pem_zeros;\n\t}\n",
				field->c_name, pem_type__c(field->element_type), field->max_count);
		else if (field->type == PEM_TYPE_LIST)
			fprintf(f,
				"\tif (!%1$s)\n\t\t%1$s_count = 0;\n"
				"\tif (%1$s_count > %2$uu)\n\t\t%1$s_count = %2$uu;\n",
				field->c_name, field->max_count);
	}
}

void pem_c_begin_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec,
			const char *includes)
{
	char *guard = pem_xprintf("PEM_STUBS_%s_H", spec->provider), *p;

	for (p = guard; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	pem_banner(f, set, spec);
	fprintf(f, "#ifndef %s\n#define %s\n\n%s\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
		guard, guard, includes);
	pem_c_put_labels(f, spec);
	free(guard);
}

void pem_c_end_header(FILE *f)
{
	fprintf(f, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
