/* SPDX-License-Identifier: MIT */
/*
 * html_write.c - writes the data of the page as one JSON object
 *
 * page/model.js reads it. "format" changes with its shape. Lists of bins are shortened. In "bins" a
 * negative number -n means n empty bins. "values" has pairs: a number of successive bins, and the
 * value of each.
 */
#include "html_data.h"
#include "html_json.h"
#include "model_words.h"

#include <inttypes.h>

#define TEXT_BYTES 256u

static void write_run(FILE *out, const struct pem_trace_info *info)
{
	fputs("\"run\":{", out);
	pem_json__key_string(out, "command", info->command, sizeof(info->command));
	fputc(',', out);
	pem_json__key_string(out, "host", info->host, sizeof(info->host));
	fputc(',', out);
	pem_json__key_string(out, "version", info->version, sizeof(info->version));
	fputc(',', out);
	pem_json__key_u64(out, "start_time_ns", info->start_time_ns);
	fputc(',', out);
	pem_json__key_u64(out, "duration_ns", info->duration_ns);
	fputc(',', out);
	pem_json__key_u64(out, "clock_hz", info->clock_hz);
	fputc(',', out);
	pem_json__key_u64(out, "clock_error_ns", info->clock_error_ns);
	fputc(',', out);
	pem_json__key_u64(out, "recorder_cpu_ns", info->recorder_cpu_ns);
	fputc(',', out);
	pem_json__key_u64(out, "program_cpu_ns", info->program_cpu_ns);
	fputc(',', out);
	pem_json__key_u64(out, "machine_cpu_ns", info->machine_cpu_ns);
	fprintf(out, ",\"exit_status\":%" PRId32 ",\"complete\":%s},\n", info->exit_status,
		info->complete ? "true" : "false");
}

static void write_balance(FILE *out, const struct pem_balance *balance)
{
	fprintf(out,
		"\"produced\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"discarded\":%" PRIu64
		",\"overwritten\":%" PRIu64,
		balance->produced, balance->delivered, balance->discarded, balance->overwritten);
}

static void write_costs_and_gaps(FILE *out, const struct pem_trace_info *info)
{
	const uint32_t costs_max = sizeof(info->costs) / sizeof(info->costs[0]);
	const uint32_t gaps_max = sizeof(info->gaps) / sizeof(info->gaps[0]);
	uint32_t i;

	fputs("\"costs\":[", out);
	for (i = 0; i < info->cost_count && i < costs_max; i++) {
		const struct pem_trace_cost *cost = &info->costs[i];

		fputs(i ? ",{" : "{", out);
		pem_json__key_string(out, "kind", cost->kind, sizeof(cost->kind));
		fputc(',', out);
		if (cost->ns_each > 0)
			pem_json__key_number(out, "ns_each", cost->ns_each);
		else /* the cost was not measured */
			fputs("\"ns_each\":null", out);
		fputc(',', out);
		pem_json__key_u64(out, "count", cost->count);
		fputc(',', out);
		pem_json__key_number(out, "least_ns", info->cost_ranges[i].least_ns);
		fputc(',', out);
		pem_json__key_number(out, "most_ns", info->cost_ranges[i].most_ns);
		fputc('}', out);
	}
	fputs("],\n\"gaps\":[", out);
	for (i = 0; i < info->gap_count && i < gaps_max; i++) {
		const struct pem_trace_gap *gap = &info->gaps[i];

		fputs(i ? ",{" : "{", out);
		pem_json__key_string(out, "source", gap->source, sizeof(gap->source));
		fputc(',', out);
		pem_json__key_string(out, "reason", gap->reason, sizeof(gap->reason));
		fputc('}', out);
	}
	fputs("],\n", out);
}

static void write_processes(FILE *out, const struct pem_html_data *data)
{
	uint32_t i;

	fputs("\"processes\":[", out);
	for (i = 0; i < data->process_count; i++) {
		const struct pem_html_process *process = &data->processes[i];
		int rest = process->number == PEM_HTML_OTHERS;
		const struct pem_pass_process *known =
			rest || !process->number
				? NULL
				: pem_pass__process(data->pass, process->number - 1);

		fputs(i ? ",{" : "{", out);
		pem_json__key_u64(out, "pid", rest ? PEM_HTML_OTHERS : known ? known->pid : 0);
		fputc(',', out);
		pem_json__key_string(out, "name", known ? known->name : "", TEXT_BYTES);
		fputc(',', out);
		fprintf(out, "\"process\":%" PRId64 ",", rest ? -2 : (int64_t)process->number - 1);
		pem_json__key_u64(out, "merged", rest ? data->merged_count : 0);
		fputc('}', out);
	}
	fputs("],\n", out);
}

static void write_bins(FILE *out, const struct pem_html_data *data,
		       const struct pem_html_series *series)
{
	uint32_t i, run = 0;
	int more = 0;

	fputs("\"bins\":[", out);
	for (i = 0; i < data->bin_count; i++) {
		if (!series->bins[i]) {
			run++;
			continue;
		}
		if (run)
			fprintf(out, "%s-%" PRIu32, more++ ? "," : "", run);
		fprintf(out, "%s%" PRIu64, more++ ? "," : "", series->bins[i]);
		run = 0;
	}
	fputc(']', out);
}

/* A counter's growth in the bin, or the mean of a gauge's samples (NaN without samples). */
static double value_at(const struct pem_html_series *series, uint32_t bin)
{
	if (series->event->meaning == PEM_MEANS_COUNTER)
		return series->values[bin];
	return series->bins[bin] ? series->values[bin] / (double)series->bins[bin]
				 : (double)__builtin_nanf("");
}

/* Are two values equal on the page? It shows six digits. */
static int same_value(double a, double b)
{
	return a == b || (__builtin_isnan(a) && __builtin_isnan(b)) ||
	       __builtin_fabs(a - b) <= __builtin_fabs(a) * 1e-7;
}

static void write_values(FILE *out, const struct pem_html_data *data,
			 const struct pem_html_series *series)
{
	uint32_t i, j;

	fputs(",\"values\":[", out);
	for (i = 0; i < data->bin_count; i = j) {
		double value = value_at(series, i);

		for (j = i + 1; j < data->bin_count && same_value(value, value_at(series, j)); j++)
			;
		fprintf(out, "%s%" PRIu32 ",", i ? "," : "", j - i);
		pem_json__number(out, value);
	}
	fputc(']', out);
}

static void write_event_head(FILE *out, const struct pem_event *event, struct pem_trace *trace)
{
	struct pem_balance balance = pem_trace__event_balance(trace, event);
	int value = pem_event__field_by_role(event, PEM_ROLE_VALUE);

	fputc('{', out);
	pem_json__key_string(out, "name", event->name, TEXT_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "layer", event->layer, TEXT_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "class", event->class_name, TEXT_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "specifier", event->specifier, TEXT_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "description", event->description, TEXT_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "meaning", pem_meaning__name(event->meaning), TEXT_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "unit", value >= 0 ? event->fields[value].unit : "", TEXT_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "group", event->group, TEXT_BYTES);
	fputc(',', out);
	write_balance(out, &balance);
	fputs(",\"series\":[", out);
}

static void write_fields(FILE *out, const struct pem_html_data *data,
			 const struct pem_html_series *series, uint32_t fold)
{
	uint32_t n, count = pem_html_fields__count(series->event);

	fputs(",\"fields\":[", out);
	for (n = 0; n < count; n++) {
		uint32_t index = pem_html_fields__index(series->event, n);
		const struct pem_field *field = &series->event->fields[index];

		fputs(n ? ",{" : "{", out);
		pem_json__key_string(out, "name", field->name, TEXT_BYTES);
		fputc(',', out);
		pem_json__key_string(out, "unit", field->unit, TEXT_BYTES);
		fputc(',', out);
		pem_html_cells__write(out, "cells", series->fields + (size_t)n * data->coarse_count,
				      data->coarse_count, fold, 0);
		fputc('}', out);
	}
	fputc(']', out);
}

static size_t write_event(FILE *out, const struct pem_html_data *data, size_t first,
			  struct pem_trace *trace, uint32_t fold)
{
	const struct pem_event *event = data->series[first].event;
	size_t i;

	write_event_head(out, event, trace);
	for (i = first; i < data->series_count && data->series[i].event == event; i++) {
		const struct pem_html_series *series = &data->series[i];

		fprintf(out, "%s{\"process\":%" PRIu32 ",\"records\":%" PRIu64 ",",
			i > first ? "," : "", series->process, series->count);
		write_bins(out, data, series);
		if (series->values)
			write_values(out, data, series);
		if (series->fields)
			write_fields(out, data, series, fold);
		fputc('}', out);
	}
	fputs("]}", out);
	return i;
}

static int has_series(const struct pem_html_data *data, const struct pem_event *event)
{
	size_t i;

	for (i = 0; i < data->series_count; i++)
		if (data->series[i].event == event)
			return 1;
	return 0;
}

/* Write the events with records, then the events whose records were all lost. */
static void write_events(FILE *out, const struct pem_html_data *data, struct pem_trace *trace)
{
	const struct pem_model *model = pem_trace__model(trace);
	uint32_t fold = pem_html_fields__fold(data);
	size_t i;
	int more = 0;

	fprintf(out, "\"field_bin_ns\":%" PRIu64 ",", fold * data->coarse_ns);
	fputs("\"events\":[\n", out);
	for (i = 0; i < data->series_count;) {
		if (more++)
			fputs(",\n", out);
		i = write_event(out, data, i, trace, fold);
	}
	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		if (pem_trace__event_balance(trace, event).produced == 0 || has_series(data, event))
			continue;
		if (more++)
			fputs(",\n", out);
		write_event_head(out, event, trace);
		fputs("]}", out);
	}
	fputs("],\n", out);
}

static void write_term(FILE *out, const char *key, const struct pem_metric_term *term)
{
	fprintf(out, ",\"%s\":[", key);
	pem_json__string(out, term->event, TEXT_BYTES);
	fputc(',', out);
	pem_json__string(out, term->field, TEXT_BYTES);
	fputc(']', out);
}

/* Of a quotient: each term with its factor, and whether it divides. */
static void write_parts(FILE *out, const struct pem_metric *m)
{
	uint32_t i;

	fputs(",\"parts\":[", out);
	for (i = 0; i < m->part_count; i++) {
		fprintf(out, "%s{\"factor\":%" PRId32 ",\"divides\":%s", i ? "," : "",
			m->parts[i].factor, m->parts[i].is_divisor ? "true" : "false");
		write_term(out, "term", &m->parts[i].term);
		fputc('}', out);
	}
	fputc(']', out);
}

/* Of a metric of times: the cells of each process that has some. */
static void write_times(FILE *out, const struct pem_html_data *data, size_t metric, uint32_t fold)
{
	uint32_t i;
	int more = 0;

	fputs(",\"times\":[", out);
	for (i = 0; metric < PEM_HTML_BETWEENS_MAX && i < PEM_HTML_BETWEEN_TABLES; i++) {
		const struct pem_html_cell *cells =
			data->between_cells[metric * PEM_HTML_BETWEEN_TABLES + i];

		if (!cells)
			continue;
		/* Those of several processes are of none that can be chosen. */
		fprintf(out, "%s{\"process\":%" PRId32 ",", more++ ? "," : "",
			i < PEM_HTML_BETWEEN_TABLES - 1 ? (int32_t)i : -1);
		pem_html_cells__write(out, "cells", cells, data->coarse_count, fold, 1);
		fputc('}', out);
	}
	fputc(']', out);
}

/* Write the metrics that the model declares. */
static void write_metrics(FILE *out, const struct pem_html_data *data,
			  const struct pem_model *model)
{
	uint32_t fold = pem_html_fields__fold(data);
	size_t i;

	fputs("\"metrics\":[", out);
	for (i = 0; i < pem_model__metric_count(model); i++) {
		const struct pem_metric *m = pem_model__metric(model, i);

		fprintf(out, "%s{\"form\":\"%s\",", i ? ",\n" : "\n",
			pem_metric_form_words[m->form]);
		pem_json__key_string(out, "name", m->name, TEXT_BYTES);
		fputc(',', out);
		pem_json__key_string(out, "unit", m->unit, TEXT_BYTES);
		fputc(',', out);
		pem_json__key_string(out, "description", m->description, TEXT_BYTES);
		write_term(out, "of", &m->of);
		write_term(out, "to", &m->to);
		if (m->form == PEM_METRIC_BETWEEN)
			write_times(out, data, i, fold);
		if (m->form == PEM_METRIC_QUOTIENT)
			write_parts(out, m);
		fputc('}', out);
	}
	fputs("],\n", out);
}

static void write_phases(FILE *out, const struct pem_html_phases *phases)
{
	uint32_t i;

	fprintf(out, "\"phases\":{\"left_out\":%" PRIu64 ",\"unmatched\":%" PRIu64 ",\"list\":[",
		phases->left_out, phases->unmatched);
	for (i = 0; i < phases->kept_count; i++) {
		const struct pem_html_phase *phase = &phases->kept[i];

		fputs(i ? ",\n[" : "\n[", out);
		pem_json__string(out, phase->name, sizeof(phase->name));
		fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%s,%" PRId64 "]",
			phase->begin_ns, phase->end_ns, phase->pid, phase->tid,
			phase->is_open ? "true" : "false", (int64_t)phase->process - 1);
	}
	fputs("]}", out);
}

void pem_html__write(FILE *out, const struct pem_html_data *data, struct pem_trace *trace,
		     const struct pem_export_options *options)
{
	const struct pem_trace_info *info = pem_trace__info(trace);
	struct pem_balance balance = pem_trace__total_balance(trace);
	const char *title = options && options->title ? options->title : "";

	fputs("{\"format\":2,", out);
	pem_json__key_string(out, "title", title, TEXT_BYTES);
	fputs(",\n", out);
	write_run(out, info);
	fputs("\"balance\":{", out);
	write_balance(out, &balance);
	fprintf(out,
		"},\n\"time\":{\"span_ns\":%" PRIu64 ",\"bin_ns\":%" PRIu64 ",\"bins\":%" PRIu32
		"},\n",
		data->span_ns, data->bin_ns, data->bin_count);
	fprintf(out,
		"\"read\":{\"records\":%" PRIu64 ",\"bad_values\":%" PRIu64
		",\"torn_packets\":%" PRIu64 ",\"damaged\":%" PRIu64 ",",
		data->record_count, data->bad_values, pem_trace__torn_packets(trace),
		data->damaged);
	pem_json__key_string(out, "damage", data->damage.text, sizeof(data->damage.text));
	fputs("},\n", out);
	write_costs_and_gaps(out, info);
	write_processes(out, data);
	write_events(out, data, trace);
	write_metrics(out, data, pem_trace__model(trace));
	write_phases(out, &data->phases);
	fputs(",\n", out);
	pem_html_tree__write(out, &data->tree);
	fputs(",\n", out);
	pem_html_samples__write(out, data);
	fputs(",\n", out);
	pem_html_lanes__write(out, &data->lanes, data->pass);
	fputs("}\n", out);
}
