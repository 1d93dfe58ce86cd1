/* SPDX-License-Identifier: MIT */
/*
 * html_data.c - two passes over a trace: the first finds all (event, process) pairs, the second
 * fills the bins
 *
 * The first pass decides how many bins and processes fit. Each record but markers belongs to
 * exactly one series, so counts add up to the records that the reader delivers without these.
 */
#include "html_data.h"
#include "html_pairs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_CELLS (16u << 20) /* bins x series */
#define PAGE_CELLS 700000u /* maximum of written bins; each takes a few bytes */
#define BINS_MIN 32u
#define PROGRESS_EVERY 65536u

/* --- processes with series of their own --- */

static int by_number(const void *a, const void *b)
{
	const struct pem_html_process *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int by_count_descending(const void *a, const void *b)
{
	const struct pem_html_process *x = a, *y = b;

	/* The entry of other processes comes last, whatever its count. */
	if ((x->number == PEM_HTML_OTHERS) != (y->number == PEM_HTML_OTHERS))
		return x->number == PEM_HTML_OTHERS ? 1 : -1;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return by_number(a, b);
}

static uint32_t merge_same(struct pem_html_process *list, uint32_t count)
{
	uint32_t i, used = 0;

	qsort(list, count, sizeof(*list), by_number);
	for (i = 0; i < count; i++) {
		if (used && list[used - 1].number == list[i].number)
			list[used - 1].count += list[i].count;
		else
			list[used++] = list[i];
	}
	return used;
}

/* Put the busiest processes into data->processes, and all others into one last entry. */
static int choose_processes(struct pem_html_data *data)
{
	const struct pem_html_pairs *pairs = data->pairs;
	struct pem_html_process *list = calloc(pairs->count + 1, sizeof(*list));
	uint32_t i, count = 0;

	if (!list)
		return -ENOMEM;
	for (i = 0; i < pairs->capacity; i++)
		if (pairs->entry[i].event)
			list[count++] = (struct pem_html_process){pairs->entry[i].process,
								  pairs->entry[i].count};
	count = merge_same(list, count);
	qsort(list, count, sizeof(*list), by_count_descending);
	for (i = 0; i < count; i++) {
		struct pem_html_process *others = &data->processes[PEM_HTML_PROCESSES_MAX];

		if (i < PEM_HTML_PROCESSES_MAX && list[i].number != PEM_HTML_OTHERS) {
			data->processes[data->process_count++] = list[i];
			continue;
		}
		others->number = PEM_HTML_OTHERS;
		others->count += list[i].count;
		data->merged_count++;
	}
	if (data->merged_count) {
		data->processes[data->process_count] = data->processes[PEM_HTML_PROCESSES_MAX];
		data->process_count++;
	}
	free(list);
	return 0;
}

/* The index of a process that has this pem_html_number. */
static uint32_t process_of(const struct pem_html_data *data, uint32_t number)
{
	uint32_t i;

	for (i = 0; i + 1 < data->process_count; i++)
		if (data->processes[i].number == number)
			break;
	return i;
}

/* --- series --- */

static int by_event_and_process(const void *a, const void *b)
{
	const struct pem_html_series *x = a, *y = b;
	int order = strcmp(x->event->name, y->event->name);

	if (order)
		return order;
	if (x->event->id != y->event->id)
		return x->event->id < y->event->id ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static size_t series_index(const struct pem_html_data *data, const struct pem_html_pair *pair)
{
	struct pem_html_series key = {.event = pair->event,
				      .process = process_of(data, pair->process)};
	struct pem_html_series *found =
		bsearch(&key, data->series, data->series_count, sizeof(key), by_event_and_process);

	return (size_t)(found - data->series);
}

/* Make one series for each event of each chosen process. */
static int make_series(struct pem_html_data *data)
{
	struct pem_html_pairs *pairs = data->pairs;
	struct pem_html_series *series = calloc(pairs->count + 1, sizeof(*series));
	size_t count = 0, used = 0, i;

	if (!series)
		return -ENOMEM;
	for (i = 0; i < pairs->capacity; i++) {
		const struct pem_html_pair *pair = &pairs->entry[i];

		if (!pair->event)
			continue;
		series[count].event = pair->event;
		series[count].process = process_of(data, pair->process);
		series[count].count = pair->count;
		count++;
	}
	qsort(series, count, sizeof(*series), by_event_and_process);
	for (i = 0; i < count; i++) {
		if (used && by_event_and_process(&series[used - 1], &series[i]) == 0)
			series[used - 1].count += series[i].count;
		else
			series[used++] = series[i];
	}
	data->series = series;
	data->series_count = used;
	for (i = 0; i < pairs->capacity; i++)
		if (pairs->entry[i].event)
			pairs->entry[i].series = (uint32_t)series_index(data, &pairs->entry[i]);
	return 0;
}

static int has_value(const struct pem_event *event)
{
	return (event->meaning == PEM_MEANS_COUNTER || event->meaning == PEM_MEANS_GAUGE) &&
	       pem_event__field_by_role(event, PEM_ROLE_VALUE) >= 0;
}

/* Maximum of cells that a page with this number of bins writes. */
static double page_cells(const struct pem_html_data *data, uint32_t bins)
{
	double cells = 0;
	size_t i;

	for (i = 0; i < data->series_count; i++) {
		double records = 2 * (double)data->series[i].count;

		cells += (records < bins ? records : bins) *
			 (has_value(data->series[i].event) ? 4 : 1);
	}
	return cells;
}

/*
 * Choose the bins' width: the smallest 1, 2 or 5 times a power of ten that divides the span into at
 * most bins.
 */
static void choose_width(struct pem_html_data *data, uint32_t bins)
{
	static const uint64_t step[] = {1, 2, 5};
	uint64_t power = 1, width = 1;
	unsigned i = 0;

	while (data->span_ns / width >= bins && power <= UINT64_MAX / 100) {
		i++;
		if (i % 3 == 0)
			power *= 10;
		width = step[i % 3] * power;
	}
	data->bin_ns = width;
	data->bin_count = (uint32_t)(data->span_ns / width) + 1;
}

static int make_bins(struct pem_html_data *data)
{
	uint32_t bins = PEM_HTML_BINS_MAX;
	size_t i;

	while (bins > BINS_MIN && (page_cells(data, bins) > PAGE_CELLS ||
				   (double)bins * (double)data->series_count > MEMORY_CELLS))
		bins /= 2;
	if ((double)bins * (double)data->series_count > MEMORY_CELLS)
		return -E2BIG;
	choose_width(data, bins);
	for (i = 0; i < data->series_count; i++) {
		struct pem_html_series *series = &data->series[i];

		series->bins = calloc(data->bin_count, sizeof(*series->bins));
		if (!series->bins)
			return -ENOMEM;
		if (!has_value(series->event))
			continue;
		series->values = calloc(data->bin_count, sizeof(*series->values));
		if (!series->values)
			return -ENOMEM;
	}
	return 0;
}

/* --- the second pass --- */

static uint32_t bin_of(const struct pem_html_data *data, uint64_t time_ns)
{
	uint64_t bin = time_ns / data->bin_ns;

	return bin < data->bin_count ? (uint32_t)bin : data->bin_count - 1;
}

/*
 * The growth between two samples of a counter is spread evenly, because its distribution is
 * unknown.
 */
static void spread(struct pem_html_data *data, struct pem_html_series *series, double growth,
		   uint64_t from_ns, uint64_t to_ns)
{
	uint32_t first = bin_of(data, from_ns), last = bin_of(data, to_ns), i;
	double each;

	if (from_ns >= to_ns || first == last) {
		series->values[last] += growth;
		return;
	}
	each = growth / (double)(to_ns - from_ns);
	series->values[first] += each * (double)((first + 1ull) * data->bin_ns - from_ns);
	for (i = first + 1; i < last; i++)
		series->values[i] += each * (double)data->bin_ns;
	series->values[last] += each * (double)(to_ns - last * data->bin_ns);
}

static void add_value(struct pem_html_data *data, struct pem_html_series *series,
		      const struct pem_record *record, const struct pem_around *around)
{
	unsigned field = (unsigned)pem_event__field_by_role(record->event, PEM_ROLE_VALUE);
	uint64_t since_ns;
	double value;
	int err;

	if (record->event->meaning == PEM_MEANS_COUNTER) {
		err = pem_html_counters__step(data->counters, record, around, field, &value,
					      &since_ns);
		if (err > 0)
			spread(data, series, value, since_ns, record->time_ns);
		else if (err < 0)
			data->bad_values++;
		return;
	}
	value = pem_record__f64(record, field);
	if (isfinite(value))
		series->values[bin_of(data, record->time_ns)] += value;
	else
		data->bad_values++;
}

static uint32_t number_of(const struct pem_pass_thread *thread)
{
	return pem_html_number(thread ? thread->process : NULL);
}

static int add_ended(struct pem_html_data *data, const struct pem_ended *ended,
		     const struct pem_record *record)
{
	uint32_t node = (uint32_t)ended->interval->user[0] - 1;

	if (ended->interval->user[0] == 0)
		node = pem_html_tree__begin(&data->tree, ended->interval,
					    process_of(data, number_of(ended->interval->thread)));
	if (node == PEM_HTML_NO_NODE)
		return -ENOMEM;
	pem_html_tree__end(&data->tree, node, ended);
	if (pem_event__is_phase(ended->interval->begin.event))
		pem_html_phases__add(&data->phases, ended, record);
	/* What another process ended (pem mark) is no part of what its thread did. */
	if (record && ended->outcome == PEM_INTERVAL_ENDED &&
	    record->pid != ended->interval->begin.pid)
		return 0;
	return pem_html_lanes__interval(&data->lanes, ended, node);
}

/* Add what ended or became known. record NULL: there is none. */
static int add_around(struct pem_html_data *data, const struct pem_record *record,
		      const struct pem_around *around)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < around->span_count; i++)
		err = pem_html_lanes__span(&data->lanes, &around->spans[i]);
	for (i = 0; !err && i < around->ended_count; i++)
		err = add_ended(data, &around->ended[i], record);
	if (err || !record)
		return err;
	if (around->begun &&
	    pem_html_tree__begin(&data->tree, around->begun, data->process) == PEM_HTML_NO_NODE)
		return -ENOMEM;
	if (around->is_unmatched && record->event->meaning == PEM_MEANS_INTERVAL_END &&
	    strcmp(record->event->layer, "OS") && record->event->level <= PEM_LEVEL_INFO)
		data->phases.unmatched++;
	return around->partner ? pem_html_lanes__message(&data->lanes, record, around) : 0;
}

static int add_between(void *arg, size_t metric, uint64_t ns)
{
	struct pem_html_data *data = arg;
	uint64_t bin = data->record->time_ns / data->coarse_ns;
	struct pem_html_cell **all, **cells;

	if (metric >= PEM_HTML_BETWEENS_MAX)
		return 0;
	all = data->between_cells + metric * PEM_HTML_BETWEEN_TABLES;
	cells = &all[data->process];
	if (!*cells && data->between_used == PEM_HTML_BETWEENS_MAX)
		cells = &all[PEM_HTML_BETWEEN_TABLES - 1];
	else
		data->between_used += !*cells;
	if (!*cells)
		*cells = calloc(data->coarse_count, sizeof(**cells));
	if (!*cells)
		return -ENOMEM;
	pem_html_cell__add(&(*cells)[bin < data->coarse_count ? bin : data->coarse_count - 1],
			   (double)ns);
	return 0;
}

static int add_sample(struct pem_html_data *data, struct pem_samples *samples,
		      const struct pem_record *record, const struct pem_around *around)
{
	if (!pem_samples__wants(samples, record->event))
		return 0;
	return pem_samples__record(samples, record, around, (uint16_t)data->process);
}

static int add(struct pem_html_data *data, const struct pem_record *record,
	       const struct pem_around *around)
{
	struct pem_html_pair *pair;
	struct pem_html_series *series;

	if (pem_record__is_marker(record))
		return add_around(data, record, around);
	pair = pem_html_pairs__find(data->pairs, record->event, pem_html_number(around->process));
	if (!pair)
		return -ESTALE;
	series = &data->series[pair->series];
	series->bins[bin_of(data, record->time_ns)]++;
	if (series->values)
		add_value(data, series, record, around);
	if (series->fields)
		pem_html_fields__add(data, series, record);
	data->record = record;
	data->process = series->process;
	if (pem_betweens__record(data->betweens, record, around->thread, add_between, data))
		return -ENOMEM;
	if (add_sample(data, &data->samples, record, around) ||
	    add_sample(data, &data->allocations, record, around))
		return -ENOMEM;
	return add_around(data, record, around);
}

static void say_what_failed(struct pem_error *error, int err)
{
	if (!error)
		return;
	if (err == -E2BIG)
		snprintf(error->text, sizeof(error->text),
			 "the trace has more kinds of events than one page can show; "
			 "record fewer with -e");
	else if (err == -ESTALE)
		snprintf(error->text, sizeof(error->text),
			 "the trace changed while it was read; export it once recording has ended");
	else
		snprintf(error->text, sizeof(error->text), "no memory to summarize the trace: %s",
			 strerror(-err));
}

/* Of a damaged packet only its own records are lost. Reading continues. */
static void note_damage(struct pem_html_data *data, const struct pem_error *error)
{
	if (data->damaged++ == 0)
		data->damage = *error;
}

struct progress {
	const struct pem_export_options *options;
	uint64_t done, total;
};

static void tell(struct progress *progress)
{
	const struct pem_export_options *options = progress->options;

	if (++progress->done % PROGRESS_EVERY == 0 && options && options->progress)
		options->progress(progress->done, progress->total, options->progress_arg);
}

static int count_all(struct pem_html_data *data, struct pem_trace *trace, struct progress *progress,
		     struct pem_error *error)
{
	/* Nothing of it adds a process: both passes number them alike. */
	struct pem_pass_options options = {.size = sizeof(options),
					   .without = PEM_PASS_BLOCKS | PEM_PASS_MESSAGES |
						      PEM_PASS_INTERVALS};
	struct pem_pass *pass = pem_pass__new(trace, &options, error);
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	struct pem_error damage = {""};
	int err = 0, ret;

	if (!pass)
		return -errno;
	while (!err && (ret = pem_pass__next(pass, &record, &around, &damage)) != 0) {
		if (ret == -EINVAL) {
			note_damage(data, &damage);
			continue;
		}
		if (ret < 0) {
			if (error)
				*error = damage;
			pem_pass__free(pass);
			return ret;
		}
		data->record_count++;
		if (record.time_ns > data->span_ns)
			data->span_ns = record.time_ns;
		if (!pem_record__is_marker(&record))
			err = pem_html_pairs__count(data->pairs, record.event,
						    pem_html_number(around.process));
		tell(progress);
	}
	pem_pass__free(pass);
	if (err)
		say_what_failed(error, err);
	return err;
}

static int fill(struct pem_html_data *data, struct pem_trace *trace, struct progress *progress,
		struct pem_error *error)
{
	struct pem_pass_options options = {
		.size = sizeof(options),
		.without = pem_samples__needs_blocks(trace) ? 0 : PEM_PASS_BLOCKS,
		.has_paths = 1};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	struct pem_error damage = {""};
	int err = 0, ret;

	data->pairs->last = NULL;
	data->pass = pem_pass__new(trace, &options, error);
	if (!data->pass)
		return -errno;
	while (!err && (ret = pem_pass__next(data->pass, &record, &around, &damage)) != 0) {
		if (ret < 0 && ret != -EINVAL) {
			if (error)
				*error = damage;
			return ret;
		}
		/* Damage was noted by the first pass. */
		err = ret == 1 ? add(data, &record, &around) : add_around(data, NULL, &around);
		tell(progress);
	}
	if (!err)
		err = add_around(data, NULL, &around);
	if (!err)
		err = pem_html_lanes__path(&data->lanes, data->pass);
	if (!err)
		err = pem_html_lanes__finish(&data->lanes);
	if (!err)
		err = pem_samples__finish(&data->samples, trace, data->pass, PEM_HTML_STACKS_MAX);
	if (!err)
		err = pem_samples__finish(&data->allocations, trace, data->pass,
					  PEM_HTML_STACKS_MAX);
	if (err)
		say_what_failed(error, err);
	pem_html_tree__finish(&data->tree);
	pem_html_phases__finish(&data->phases);
	return err;
}

/* All that depends on what the first pass found. */
static int prepare(struct pem_html_data *data, const struct pem_trace *trace)
{
	int err = choose_processes(data);
	size_t metrics;

	if (!err)
		err = make_series(data);
	if (!err)
		err = make_bins(data);
	if (err)
		return err;
	data->coarse_count = (data->bin_count + 1) / 2;
	data->coarse_ns = 2 * data->bin_ns;
	data->samples.bin_ns = data->allocations.bin_ns = data->coarse_ns;
	data->samples.bin_count = data->allocations.bin_count = data->coarse_count;
	metrics = pem_model__metric_count(pem_trace__model(trace));
	data->between_count = (metrics < PEM_HTML_BETWEENS_MAX ? metrics : PEM_HTML_BETWEENS_MAX) *
			      PEM_HTML_BETWEEN_TABLES;
	data->betweens = pem_betweens__new(trace);
	data->between_cells = calloc(data->between_count + 1, sizeof(*data->between_cells));
	if (!data->betweens || !data->between_cells)
		return -ENOMEM;
	pem_html_lanes__init(&data->lanes, data->coarse_count, data->coarse_ns);
	err = pem_html_tree__init(&data->tree, data->coarse_count, data->coarse_ns);
	return err ? err : pem_html_fields__make(data);
}

int pem_html_data__read(struct pem_html_data *data, struct pem_trace *trace,
			const struct pem_export_options *options, struct pem_error *error)
{
	struct progress progress = {.options = options,
				    .total = 2 * pem_trace__total_balance(trace).delivered};
	int err;

	memset(data, 0, sizeof(*data));
	data->span_ns = pem_trace__info(trace)->duration_ns;
	data->pairs = pem_html_pairs__new();
	data->counters = pem_html_counters__new();
	err = pem_html_phases__init(&data->phases);
	if (!err)
		err = pem_samples__init(&data->samples, PEM_SAMPLES_OF_CPU, trace);
	if (!err)
		err = pem_samples__init(&data->allocations, PEM_SAMPLES_OF_ALLOCATIONS, trace);
	if (!err && (!data->pairs || !data->counters))
		err = -ENOMEM;
	if (err) {
		say_what_failed(error, err);
		return err;
	}
	err = count_all(data, trace, &progress, error);
	if (err)
		return err;
	err = prepare(data, trace);
	if (err) {
		say_what_failed(error, err);
		return err;
	}
	return fill(data, trace, &progress, error);
}

void pem_html_data__free(struct pem_html_data *data)
{
	size_t i;

	for (i = 0; i < data->series_count; i++) {
		free(data->series[i].bins);
		free(data->series[i].values);
		free(data->series[i].fields);
	}
	free(data->series);
	for (i = 0; i < data->between_count; i++)
		free(data->between_cells[i]);
	free(data->between_cells);
	pem_betweens__free(data->betweens);
	pem_html_pairs__free(data->pairs);
	pem_html_counters__free(data->counters);
	pem_html_phases__free(&data->phases);
	pem_html_lanes__free(&data->lanes);
	pem_html_tree__free(&data->tree);
	pem_samples__free(&data->samples);
	pem_samples__free(&data->allocations);
	pem_pass__free(data->pass);
	memset(data, 0, sizeof(*data));
}
