/* SPDX-License-Identifier: MIT */
/*
 * data.c - counts samples of data by the data structure that each fell in
 *
 * A sample falls in the block of memory that holds its address at that time (pem/context.h), which
 * is told by who allocated it. Without one it is of the stack of its thread, if its stack pointer
 * is in the same mapping; else of a variable, or of what is mapped there.
 */
#include "data.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct report_data *report_data__new(void)
{
	struct report_data *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->code = pem_code__new();
	d->data = pem_code__new_data();
	if (d->code == NULL || d->data == NULL) {
		report_data__free(d);
		return NULL;
	}
	return d;
}

void report_data__free(struct report_data *d)
{
	if (d == NULL)
		return;
	pem_code__free(d->code);
	pem_code__free(d->data);
	free(d->rows);
	pem_number_map__free(&d->row_at);
	free(d);
}

/* Is it an event of data samples? Its fields are looked up when the event changes. */
static bool is_sample(struct report_data *d, const struct pem_event *event)
{
	int address, stack_pointer, latency, access, source;

	if (event->source_kind != PEM_SOURCE_SAMPLE || event->meaning != PEM_MEANS_ACCESS)
		return false;
	if (event == d->event)
		return true;
	address = pem_event__field_by_role(event, PEM_ROLE_ADDRESS);
	stack_pointer = pem_event__field(event, "stackPointer");
	latency = pem_event__field(event, "latency");
	access = pem_event__field(event, "access");
	source = pem_event__field(event, "source");
	/* A damaged trace may have several such events, and some of them without these fields. */
	if (address < 0 || stack_pointer < 0 || latency < 0 || access < 0 || source < 0)
		return false;
	d->address = address;
	d->stack_pointer = stack_pointer;
	d->latency = latency;
	d->access = access;
	d->source = source;
	d->event = event;
	return true;
}

/* Returns the row of a key, which is new if its count is 0, or NULL without memory. */
static struct data_row *row_of(struct report_data *d, enum data_kind kind, uint64_t key)
{
	uint32_t *at = pem_number_map__at(&d->row_at, (uint64_t)kind << 60 | key);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&d->rows, sizeof(*d->rows), d->count + 1, &d->capacity) < 0)
			return NULL;
		d->rows[d->count] = (struct data_row){.kind = kind};
		*at = (uint32_t)d->count++;
	}
	return &d->rows[*at];
}

static struct data_row *heap_row(struct report_data *d, const struct report *report,
				 const struct pem_record *record, const struct pem_around *around)
{
	const struct pem_block *block = around->block;
	struct data_row *row;
	uint32_t event = 0;
	int64_t location;

	while (event < report->event_count && report->events[event].event != block->event)
		event++;
	location = pem_code__locate(d->code, record->pid, around->process, block->code);
	if (location < 0)
		return NULL;
	row = row_of(d, DATA_HEAP, (uint64_t)event << 32 | (uint64_t)location);
	if (row == NULL)
		return NULL;
	row->event = event;
	row->location = (uint32_t)location;
	return row;
}

static struct data_row *stack_row(struct report_data *d, const struct pem_record *record,
				  const struct pem_around *around)
{
	struct data_row *row = row_of(d, DATA_STACK, record->tid);

	if (row == NULL)
		return NULL;
	row->pid = record->pid;
	row->tid = record->tid;
	row->thread = around->thread;
	return row;
}

/* Is a mapping one without a file? All of its addresses are then one location. */
static bool is_anonymous(const struct report_data *d, uint32_t location)
{
	uint32_t object = pem_code__location(d->data, location)->object;
	const char *path = object != PEM_CODE_NONE ? pem_code__object(d->data, object)->path : "/";

	return path[0] != '/' || path[1] == '/';
}

/* The row of an address that is in no block. NULL: no memory. */
static struct data_row *memory_row(struct report_data *d, const struct pem_record *record,
				   const struct pem_around *around, uint64_t address)
{
	uint64_t stack = pem_record__u64(record, (unsigned int)d->stack_pointer), begin, end;
	struct data_row *row;
	int64_t location;
	int rc = pem_code__mapping(d->data, record->pid, around->process, address, &begin, &end);

	if (rc <= 0)
		return rc < 0 ? NULL : row_of(d, DATA_UNKNOWN, 0);
	location = pem_code__locate(d->data, record->pid, around->process, begin + 1);
	if (location >= 0 && is_anonymous(d, (uint32_t)location)) {
		if (around->block == NULL && stack >= begin && stack < end)
			return stack_row(d, record, around);
	} else if (location >= 0) {
		location = pem_code__locate(d->data, record->pid, around->process, address + 1);
	}
	if (location < 0)
		return NULL;
	row = row_of(d, DATA_MAPPING, (uint64_t)location);
	if (row != NULL)
		row->location = (uint32_t)location;
	return row;
}

int report_data__record(struct report_data *d, const struct report *report,
			const struct pem_record *record, const struct pem_around *around)
{
	const struct pem_event *event = record->event;
	uint64_t address, access, source, latency;
	struct data_row *row;

	if (event->meaning == PEM_MEANS_OBJECT && pem_code__map(d->code, record) < 0)
		return -ENOMEM;
	if (event->meaning == PEM_MEANS_OBJECT ||
	    (event->source_kind == PEM_SOURCE_SAMPLE && event->meaning == PEM_MEANS_NOTHING))
		return pem_code__map(d->data, record);
	if (!is_sample(d, event))
		return 0;
	address = pem_record__u64(record, (unsigned int)d->address);
	access = pem_record__u64(record, (unsigned int)d->access);
	source = pem_record__u64(record, (unsigned int)d->source);
	latency = pem_record__u64(record, (unsigned int)d->latency);
	if (address == 0)
		row = row_of(d, DATA_NONE, 0);
	else if (around->block != NULL && around->block->code != 0)
		row = heap_row(d, report, record, around);
	else
		row = memory_row(d, record, around, address);
	if (row == NULL)
		return -ENOMEM;
	d->samples++;
	row->count++;
	row->loads += access == 1;
	row->stores += access == 2;
	row->latency_count += latency != 0;
	cli_sum__add(&row->latency_sum, latency);
	if (source != 0 && source < DATA_SOURCES) {
		row->of_source[source]++;
		d->measured++;
	}
	return 0;
}

/* --- one row for each data structure --- */

static void add(struct data_row *to, const struct data_row *row)
{
	unsigned int i;

	to->count += row->count;
	to->loads += row->loads;
	to->stores += row->stores;
	to->latency_count += row->latency_count;
	cli_sum__add(&to->latency_sum, row->latency_sum);
	for (i = 0; i < DATA_SOURCES; i++)
		to->of_source[i] += row->of_source[i];
}

static const struct report_data *sort_of;

/* What a row of memory is called: its object's path, and a variable's name. */
static const char *path_of(const struct pem_code_location *at)
{
	return at->object != PEM_CODE_NONE ? pem_code__object(sort_of->data, at->object)->path : "";
}

static int by_identity(const void *a, const void *b)
{
	const struct data_row *x = a, *y = b;
	const struct pem_code_location *i, *j;
	int order;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->kind == DATA_STACK)
		return (x->tid > y->tid) - (x->tid < y->tid);
	if (x->kind == DATA_HEAP && x->event != y->event)
		return x->event < y->event ? -1 : 1;
	if (x->kind == DATA_HEAP || x->kind <= DATA_UNKNOWN)
		return (x->location > y->location) - (x->location < y->location);
	i = pem_code__location(sort_of->data, x->location);
	j = pem_code__location(sort_of->data, y->location);
	order = strcmp(path_of(i), path_of(j));
	if (order == 0 && x->kind == DATA_VARIABLE)
		order = strcmp(i->names[0].function, j->names[0].function);
	return order;
}

static int more(const void *a, const void *b)
{
	const struct data_row *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return by_identity(a, b);
}

int report_data__finish(struct report_data *d, const struct report *report)
{
	int rc = pem_code__name(d->code, report->trace);
	size_t i, n = 0;

	if (rc == 0)
		rc = pem_code__name(d->data, report->trace);
	if (rc != 0 || d->count == 0)
		return rc;
	for (i = 0; i < d->count; i++) {
		struct data_row *row = &d->rows[i];

		if (row->kind == DATA_HEAP)
			row->location = pem_code__same(d->code, row->location);
		if (row->kind == DATA_MAPPING &&
		    pem_code__location(d->data, row->location)->name_count != 0)
			row->kind = DATA_VARIABLE;
	}
	sort_of = d;
	qsort(d->rows, d->count, sizeof(*d->rows), by_identity);
	for (i = 0; i < d->count; i++) {
		if (n != 0 && by_identity(&d->rows[n - 1], &d->rows[i]) == 0)
			add(&d->rows[n - 1], &d->rows[i]);
		else
			d->rows[n++] = d->rows[i];
	}
	d->count = n;
	qsort(d->rows, d->count, sizeof(*d->rows), more);
	return 0;
}
