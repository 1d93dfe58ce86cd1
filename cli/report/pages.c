// SPDX-License-Identifier: MIT
/*
 * pages.c - pem report: what pem.ko sampled: counters at kernel events, and the use of memory
 *
 * A counter's value is the CPU's total at an event. So an event's share is the difference to the
 * event before on that CPU: a system call's is shown at its exit. Passes report regions of memory.
 * A region that a pass does not report has no page.
 */
#include "report.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS_MAX 8
#define NAME_BYTES 64
#define ROWS_MOST 10

/* What was counted up to the events of one kind. */
struct counted {
	const struct pem_event *event; /* NULL: the trace does not describe it */
	uint64_t count;
	/* Sum of differences, and the number of them. */
	uint64_t sum[COUNTERS_MAX], of[COUNTERS_MAX];
};

/* The last values of a CPU. Bit i of known: counter i has one. */
struct cpu {
	uint64_t value[COUNTERS_MAX];
	uint32_t known;
};

struct region {
	uint64_t address, bytes;
	uint32_t process; /* index of the process */
	uint32_t pages; /* pages in memory at the last pass */
	/* Passes that reported the region, and passes in which it was used. */
	uint64_t passes, used;
};

struct process {
	uint32_t pid;
	uint64_t passes;
	struct pem_number_map region_at; /* key: address */
};

struct report_page_samples {
	unsigned int counters;
	char names[COUNTERS_MAX][NAME_BYTES];
	struct counted *counted;
	size_t counted_count, counted_capacity;
	struct cpu *cpus;
	size_t cpu_count, cpu_capacity;
	struct region *regions;
	size_t region_count, region_capacity;
	struct process *processes;
	size_t process_count, process_capacity;
	struct pem_number_map counted_at, cpu_at, process_at;
};

struct report_page_samples *report_page_samples__new(const struct pem_trace_info *info)
{
	struct report_page_samples *samples = calloc(1, sizeof(*samples));
	const char *at = info->counters;

	while (samples != NULL && *at != '\0' && samples->counters < COUNTERS_MAX) {
		snprintf(samples->names[samples->counters++], NAME_BYTES, "%.*s",
			 (int)strcspn(at, ","), at);
		at += strcspn(at, ",");
		at += *at == ',';
	}
	return samples;
}

void report_page_samples__free(struct report_page_samples *samples)
{
	size_t i;

	if (samples == NULL)
		return;
	for (i = 0; i < samples->process_count; i++)
		pem_number_map__free(&samples->processes[i].region_at);
	free(samples->counted);
	free(samples->cpus);
	free(samples->regions);
	free(samples->processes);
	pem_number_map__free(&samples->counted_at);
	pem_number_map__free(&samples->cpu_at);
	pem_number_map__free(&samples->process_at);
	free(samples);
}

/*
 * Find the element of an array by a map's key. array: as cli_grow takes it. A new element is zero.
 * NULL: no memory.
 */
static void *element(struct pem_number_map *map, uint64_t key, void *array, size_t bytes,
		     size_t *count, size_t *capacity)
{
	uint32_t *at = pem_number_map__at(map, key);
	char *elements;

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(array, bytes, *count + 1, capacity) < 0)
			return NULL;
		memcpy(&elements, array, sizeof(elements));
		memset(elements + *count * bytes, 0, bytes);
		*at = (uint32_t)(*count)++;
	}
	memcpy(&elements, array, sizeof(elements));
	return elements + *at * bytes;
}

enum report_page_sample report_page_sample__of(const struct pem_event *event)
{
	if (strcmp(event->name, PEM_COUNTERS_EVENT) == 0)
		return SAMPLE_COUNTERS;
	if (strcmp(event->name, "OS::Pages::Region") == 0)
		return SAMPLE_REGION;
	return strcmp(event->name, "OS::Pages::Pass") == 0 ? SAMPLE_PASS : SAMPLE_NONE;
}

static uint64_t number(const struct pem_record *record, const char *field)
{
	int i = pem_event__field(record->event, field);

	return i >= 0 ? pem_record__u64(record, (unsigned int)i) : 0;
}

static int count_values(struct report_page_samples *samples, const struct report *report,
			const struct pem_record *record)
{
	int list = pem_event__field(record->event, "counterValues");
	uint32_t id = (uint32_t)number(record, "eventId"), n, i;
	uint64_t missing = number(record, "missing"), value;
	struct counted *counted;
	const void *values;
	struct cpu *cpu;

	counted = element(&samples->counted_at, id, &samples->counted, sizeof(*counted),
			  &samples->counted_count, &samples->counted_capacity);
	cpu = element(&samples->cpu_at, record->cpu, &samples->cpus, sizeof(*cpu),
		      &samples->cpu_count, &samples->cpu_capacity);
	if (counted == NULL || cpu == NULL)
		return -ENOMEM;
	counted->event = pem_model__by_id(pem_trace__model(report->trace), id);
	counted->count++;
	n = list >= 0 ? pem_record__list(record, (unsigned int)list, &values) : 0;
	for (i = 0; i < n && i < COUNTERS_MAX; i++) {
		if (missing >> i & 1)
			continue;
		memcpy(&value, (const char *)values + i * sizeof(value), sizeof(value));
		if (cpu->known >> i & 1 && value >= cpu->value[i]) {
			counted->sum[i] += value - cpu->value[i];
			counted->of[i]++;
		}
		cpu->value[i] = value;
		cpu->known |= 1u << i;
	}
	return 0;
}

static struct process *process_of(struct report_page_samples *samples, uint32_t pid)
{
	struct process *p = element(&samples->process_at, pid, &samples->processes, sizeof(*p),
				    &samples->process_count, &samples->process_capacity);

	if (p != NULL)
		p->pid = pid;
	return p;
}

static int count_region(struct report_page_samples *samples, const struct pem_record *record)
{
	struct process *process = process_of(samples, (uint32_t)number(record, "pid"));
	uint64_t address = number(record, "address");
	struct region *region;

	if (process == NULL)
		return -ENOMEM;
	region = element(&process->region_at, address, &samples->regions, sizeof(*region),
			 &samples->region_count, &samples->region_capacity);
	if (region == NULL)
		return -ENOMEM;
	region->address = address;
	region->bytes = number(record, "size");
	region->process = (uint32_t)(process - samples->processes);
	region->pages = (uint32_t)number(record, "pages");
	region->passes++;
	region->used += number(record, "accessed") != 0;
	return 0;
}

int report_page_samples__record(struct report_page_samples *samples, enum report_page_sample sample,
				const struct report *report, const struct pem_record *record)
{
	struct process *process;

	switch (sample) {
	case SAMPLE_COUNTERS:
		return count_values(samples, report, record);
	case SAMPLE_REGION:
		return count_region(samples, record);
	case SAMPLE_PASS:
		process = process_of(samples, (uint32_t)number(record, "pid"));
		if (process == NULL)
			return -ENOMEM;
		process->passes++;
		return 0;
	default:
		return 0;
	}
}

/*
 * Number of passes over the region's memory. If the passes themselves were not recorded, it is the
 * number that reported the region.
 */
static uint64_t passes_of(const struct report_page_samples *samples, const struct region *region)
{
	uint64_t passes = samples->processes[region->process].passes;

	return passes > region->passes ? passes : region->passes;
}

static double share_of(const struct report_page_samples *samples, const struct region *region)
{
	return (double)region->used / (double)passes_of(samples, region);
}

/* Sort by use. Of two regions with equal use the one with more pages in memory is first. */
static int by_use(const void *a, const void *b, void *arg)
{
	const struct report_page_samples *samples = arg;
	const struct region *x = a, *y = b;
	double left = share_of(samples, x), right = share_of(samples, y);

	if (left < right || left > right)
		return left < right ? 1 : -1;
	if (x->pages != y->pages)
		return x->pages < y->pages ? 1 : -1;
	return x->address > y->address ? 1 : x->address < y->address ? -1 : 0;
}

static const char *name_of(const struct report *r, uint32_t pid)
{
	return cli_format("%u %.15s", pid, pem_trace__process_name(r->trace, pid));
}

static void add_region(const struct report *r, const struct region *region, struct cli_table *table)
{
	const struct report_page_samples *samples = r->samples;

	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, name_of(r, samples->processes[region->process].pid));
	cli_table__cell(table, cli_format("0x%llx", (unsigned long long)region->address));
	cli_table__cell(table, cli_bytes(region->bytes));
	cli_table__cell(table, cli_count(region->pages));
	cli_table__cell(table, cli_format("%s of %s passes", cli_percent(share_of(samples, region)),
					  cli_count(passes_of(samples, region))));
}

static void print_regions(const struct report *r, struct report_page_samples *samples)
{
	struct cli_table *table = cli_table__new(stdout);
	size_t i, used = 0;

	qsort_r(samples->regions, samples->region_count, sizeof(*samples->regions), by_use,
		samples);
	cli_table__column(table, "PROCESS", CLI_CUT);
	cli_table__column(table, "REGION", CLI_RIGHT);
	cli_table__column(table, "SIZE", CLI_RIGHT);
	cli_table__column(table, "PAGES", CLI_RIGHT);
	cli_table__column(table, "USED IN", CLI_RIGHT);
	for (i = 0; i < samples->region_count; i++) {
		used += samples->regions[i].used != 0;
		if (i < ROWS_MOST)
			add_region(r, &samples->regions[i], table);
	}
	report__heading("Memory in use");
	cli_table__print(table);
	printf("%s of %s regions with pages were used%s\n", cli_count(used),
	       cli_count(samples->region_count),
	       samples->region_count > ROWS_MOST ? "; these are the most used" : "");
}

static int by_count(const void *a, const void *b)
{
	uint64_t x = ((const struct counted *)a)->count, y = ((const struct counted *)b)->count;

	return x > y ? -1 : x < y;
}

static const char *counter_name(const struct report_page_samples *samples, unsigned int i)
{
	return i < samples->counters ? samples->names[i] : cli_format("value %u", i);
}

/* Number of counters that have values. */
static unsigned int counters_of(const struct report_page_samples *samples)
{
	unsigned int n = samples->counters, i;
	size_t k;

	for (k = 0; k < samples->counted_count; k++)
		for (i = n; i < COUNTERS_MAX; i++)
			if (samples->counted[k].of[i] != 0)
				n = i + 1;
	return n;
}

static void print_counters(struct report_page_samples *samples)
{
	struct cli_table *table = cli_table__new(stdout);
	unsigned int n = counters_of(samples), i;
	size_t k;

	qsort(samples->counted, samples->counted_count, sizeof(*samples->counted), by_count);
	cli_table__column(table, "UP TO EVENT", CLI_LEFT);
	cli_table__column(table, "COUNT", CLI_RIGHT);
	for (i = 0; i < n; i++)
		cli_table__column(table, counter_name(samples, i), CLI_RIGHT);
	for (k = 0; k < samples->counted_count && k < ROWS_MOST; k++) {
		const struct counted *c = &samples->counted[k];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, c->event != NULL ? cli_event_name(c->event) : "(unknown)");
		cli_table__cell(table, cli_count(c->count));
		for (i = 0; i < n; i++)
			cli_table__cell(table,
					c->of[i] != 0 ? cli_count(c->sum[i] / c->of[i]) : "");
	}
	report__heading("Counters, on average since the event before on the CPU");
	cli_table__print(table);
}

void report_page_samples__print(const struct report *r)
{
	if (r->samples->counted_count != 0)
		print_counters(r->samples);
	if (r->samples->region_count != 0)
		print_regions(r, r->samples);
}

static void counters_json(const struct report_page_samples *samples, struct cli_json_stream *json)
{
	unsigned int n = counters_of(samples), i;
	size_t k;

	cli_json_stream__open(json, "counters", '[');
	for (k = 0; k < samples->counted_count; k++) {
		const struct counted *c = &samples->counted[k];
		struct json_object *entry = json_object_new_object();
		struct json_object *means = json_object_new_object();

		cli_json__text(entry, "event", c->event != NULL ? c->event->name : "");
		cli_json__count(entry, "count", c->count);
		for (i = 0; i < n; i++)
			if (c->of[i] != 0)
				cli_json__real(means, counter_name(samples, i),
					       (double)c->sum[i] / (double)c->of[i]);
		json_object_object_add(entry, "means", means);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}

static void regions_json(struct report_page_samples *samples, struct cli_json_stream *json)
{
	size_t i;

	if (samples->region_count != 0)
		qsort_r(samples->regions, samples->region_count, sizeof(*samples->regions), by_use,
			samples);
	cli_json_stream__open(json, "memory", '[');
	for (i = 0; i < samples->region_count; i++) {
		const struct region *region = &samples->regions[i];
		struct json_object *entry = json_object_new_object();

		cli_json__count(entry, "pid", samples->processes[region->process].pid);
		cli_json__count(entry, "address", region->address);
		cli_json__count(entry, "bytes", region->bytes);
		cli_json__count(entry, "pages", region->pages);
		cli_json__count(entry, "passes", passes_of(samples, region));
		cli_json__count(entry, "used", region->used);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}

void report_page_samples__json(const struct report *r, struct cli_json_stream *json)
{
	counters_json(r->samples, json);
	regions_json(r->samples, json);
}
