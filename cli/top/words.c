// SPDX-License-Identifier: MIT
/* words.c - names and numbers of pem top, short enough for columns of constant width */
#include "top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *top_number(double value)
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
	double size = fabs(value);
	unsigned int i = 0;

	/* 999.5 would be rounded to 1000 */
	while (size >= 999.5 && i < 6) {
		size /= 1000;
		value /= 1000;
		i++;
	}
	if (size == 0)
		return "0";
	if (i == 0 && size == floor(size))
		return cli_format("%.0f", value);
	return cli_format("%.*f%s", size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2, value, units[i]);
}

const char *top_unit(const struct top_event *e)
{
	int field = e->is_counter ? pem_event__field_by_role(e->event, PEM_ROLE_VALUE) : e->field;

	return field >= 0 ? e->event->fields[field].unit : "";
}

static const char *amount(double value, const char *unit)
{
	if (value >= 0 && strcmp(unit, "bytes") == 0)
		return cli_bytes((uint64_t)(value + 0.5));
	if (value >= 0 && strcmp(unit, "ns") == 0)
		return cli_duration((uint64_t)(value + 0.5));
	return top_number(value);
}

static const struct top_event *event_of(const struct top *top, const struct top_row *row)
{
	return row->event != TOP_NONE ? &top->events[row->event] : NULL;
}

const char *top_rate(const struct top *top, const struct top_row *row)
{
	const struct top_event *e = event_of(top, row);

	if (row->unavailable)
		return "not here";
	/* Time counted per second is a share of a CPU. */
	if (e != NULL && e->is_counter && strcmp(top_unit(e), "ns") == 0)
		return cli_percent(row->rate / 1e9);
	if (e == NULL && row->is_layer && row->total == 0)
		return "";
	return cli_format("%s/s", top_number(row->rate));
}

const char *top_total(const struct top *top, const struct top_row *row)
{
	const struct top_event *e = event_of(top, row);

	if (row->unavailable || (row->is_layer && row->total == 0))
		return "";
	if (e != NULL && e->is_counter)
		return cli_format("%s%s", e->is_estimate ? "~" : "",
				  amount((double)row->total, top_unit(e)));
	return top_number((double)row->total);
}

const char *top_sum_rate(const struct top *top, const struct top_row *row)
{
	const struct top_event *e = event_of(top, row);

	if (e == NULL || e->field < 0 || row->total == 0)
		return "";
	return cli_format("%s/s", amount(row->sum_rate, top_unit(e)));
}

const char *top_mean(const struct top *top, const struct top_row *row)
{
	const struct top_event *e = event_of(top, row);

	return e == NULL || e->field < 0 || row->total == 0 ? "" : amount(row->mean, top_unit(e));
}

const char *top_name(const struct top *top, const struct top_row *row)
{
	if (row->is_layer)
		return top_layers[row->layer];
	if (row->pid == TOP_NONE) {
		const char *name = cli_event_name(top->events[row->event].event);
		const char *rest = strstr(name, "::");

		return rest != NULL ? rest + 2 : name;
	}
	if (*row->program != '\0')
		return row->program;
	return row->pid == TOP_ENDED ? "(ended)" : row->pid == 0 ? "(kernel)" : "?";
}

const char *top_why_empty(const struct top *top)
{
	struct pem_error error = {{0}};
	size_t i;

	for (i = 0; i < top->event_count && top->now.count == 0; i++)
		if (pem_session__can_deliver(top->session, top->events[i].event, &error) != 1 &&
		    *error.text != '\0')
			return cli_format("%s: %.400s", cli_event_name(top->events[i].event),
					  error.text);
	return NULL;
}

char *top_showable(char *text)
{
	unsigned char *p;

	pem_printable(text);
	if (mbstowcs(NULL, text, 0) == (size_t)-1)
		for (p = (unsigned char *)text; *p != '\0'; p++)
			if (*p >= 0x80)
				*p = '?';
	return text;
}
