/* SPDX-License-Identifier: MIT */
/* heap.c - what became of memory that was allocated (contract: heap.h) */
#include "heap.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- what a trace knows --- */

static bool ends_blocks(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_RELEASE ||
	       (event->meaning == PEM_MEANS_ALLOCATION &&
		pem_event__field_by_role(event, PEM_ROLE_OLD_ADDRESS) >= 0);
}

const struct pem_block *pem_heap__ended(const struct pem_event *event,
					const struct pem_around *around)
{
	if (event->meaning == PEM_MEANS_RELEASE)
		return around->block;
	return event->meaning == PEM_MEANS_ALLOCATION ? around->old_block : NULL;
}

/* Was the event recorded each time, whatever its fields and its cost? */
static bool is_recorded(const struct pem_trace *trace, const char *name)
{
	const struct pem_trace_info *info = pem_trace__info(trace);
	uint32_t i;

	for (i = 0; i < info->predicate_count; i++)
		if (!strcmp(info->predicates[i].event, name))
			return false;
	for (i = 0; i < info->reduced_count; i++)
		if (!strcmp(info->reduced[i].event, name))
			return false;
	return !info->predicates_more && pem_model__by_name(pem_trace__model(trace), name);
}

bool pem_heap__sees_ends(const struct pem_trace *trace, const struct pem_model *catalogue,
			 const char *group)
{
	const struct pem_model *models[] = {catalogue, pem_trace__model(trace)};
	bool found = false;
	size_t m, i;

	for (m = 0; m < 2; m++) {
		for (i = 0; i < pem_model__count(models[m]); i++) {
			const struct pem_event *event = pem_model__event(models[m], i);

			if (!ends_blocks(event) || strcmp(event->group, group) != 0)
				continue;
			if (!is_recorded(trace, event->name))
				return false;
			found |= event->meaning == PEM_MEANS_RELEASE;
		}
	}
	return found;
}

bool pem_heap__is_complete(const struct pem_trace *trace, const struct pem_pass *pass)
{
	struct pem_balance all = pem_trace__total_balance(trace);
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};

	pem_pass__unknown(pass, &unknown);
	return !(all.discarded + all.overwritten + unknown.left_out);
}

/* --- blocks begin and end --- */

/* Count the programs that recorded by process id. False: no memory. */
static bool count_images(struct pem_heap *heap)
{
	const struct pem_trace_producer *p;
	uint32_t *count;
	size_t i;

	for (i = 0; (p = pem_trace__producer(heap->trace, i)) != NULL; i++) {
		count = pem_number_map__at(&heap->images, p->pid);
		if (!count)
			return false;
		*count = *count == UINT32_MAX ? 1 : *count + 1;
	}
	return true;
}

/* When the next program of the last record's process id joined. UINT64_MAX: none did. */
static uint64_t next_image(const struct pem_heap *heap)
{
	const struct pem_trace_producer *p;
	uint64_t next = UINT64_MAX;
	size_t i;

	if (pem_number_map__value(&heap->images, heap->pid) == 1)
		return next;
	for (i = 0; (p = pem_trace__producer(heap->trace, i)) != NULL; i++)
		if (p->pid == heap->pid && p->start_clock > heap->clock && p->start_clock < next)
			next = p->start_clock;
	return next;
}

/* The program that the process runs. NULL: no memory. Valid until the next call. */
static struct pem_heap_run *run_of(struct pem_heap *heap, const struct pem_pass_process *process)
{
	uint32_t *at = pem_number_map__at(&heap->run_at, process->number);

	if (!at)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&heap->runs, sizeof(*heap->runs), heap->run_count + 1,
			     &heap->run_capacity) < 0)
			return NULL;
		*at = (uint32_t)heap->run_count;
		heap->runs[heap->run_count++] = (struct pem_heap_run){.until = next_image(heap)};
	}
	return &heap->runs[*at];
}

static bool tells_exec(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_PROCESS_NAME &&
	       pem_event__field_by_role(event, PEM_ROLE_PREVIOUS_THREAD) >= 0;
}

int pem_heap__record(struct pem_heap *heap, const struct pem_record *record,
		     const struct pem_pass_process *process)
{
	uint32_t at;

	heap->clock = record->clock;
	heap->pid = record->pid;
	if (!heap->images_counted && !count_images(heap))
		return -ENOMEM;
	heap->images_counted = true;
	if (!process || (record->event->meaning != PEM_MEANS_ALLOCATION &&
			 record->event->meaning != PEM_MEANS_RELEASE && !tells_exec(record->event)))
		return 0;
	at = pem_number_map__value(&heap->run_at, process->number);
	if (at != UINT32_MAX &&
	    (tells_exec(record->event) || record->clock >= heap->runs[at].until))
		*pem_number_map__at(&heap->run_at, process->number) = UINT32_MAX;
	return 0;
}

/*
 * The row's bytes change. What they were at a peak is kept when they change next: a peak would
 * otherwise ask for the bytes of all rows.
 */
static void keep_peak(struct pem_heap_row *row, const struct pem_heap_run *run)
{
	if (row->peaks != run->peaks)
		row->peak = row->now;
	row->peaks = run->peaks;
}

/* NULL: no memory. Valid until the next call. */
static struct pem_heap_row *row_of(struct pem_heap *heap, const struct pem_heap_run *run,
				   uint32_t origin)
{
	uint32_t number = (uint32_t)(run - heap->runs);
	uint32_t *at = pem_number_map__at(&heap->row_at, (uint64_t)number << 32 | origin);

	if (!at)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&heap->rows, sizeof(*heap->rows), heap->row_count + 1,
			     &heap->row_capacity) < 0)
			return NULL;
		*at = (uint32_t)heap->row_count;
		heap->rows[heap->row_count++] = (struct pem_heap_row){number, origin, 0, 0, 0, 0};
	}
	keep_peak(&heap->rows[*at], run);
	return &heap->rows[*at];
}

int pem_heap__begin(struct pem_heap *heap, const struct pem_pass_process *process,
		    const struct pem_block *block, const uint32_t origins[PEM_HEAP_ORIGINS])
{
	struct pem_heap_run *run = run_of(heap, process);
	struct pem_heap_row *row;
	unsigned i;

	for (i = 0; run && i < PEM_HEAP_ORIGINS; i++) {
		if (origins[i] == PEM_HEAP_NO_ORIGIN)
			continue;
		row = row_of(heap, run, origins[i]);
		if (!row)
			return -ENOMEM;
		row->now += block->size;
	}
	if (!run)
		return -ENOMEM;
	run->has_newest = true;
	run->size = block->size;
	run->stack = block->stack;
	run->code = block->code;
	run->now += block->size;
	if (run->now > run->most) {
		run->most = run->now;
		run->peaks++;
	}
	return 0;
}

int pem_heap__end(struct pem_heap *heap, const struct pem_pass_process *process,
		  const struct pem_block *block, const uint32_t origins[PEM_HEAP_ORIGINS])
{
	struct pem_heap_run *run = run_of(heap, process);
	bool is_temporary = run && run->has_newest && run->size == block->size &&
			    run->stack == block->stack && run->code == block->code;
	struct pem_heap_row *row;
	unsigned i;

	for (i = 0; run && i < PEM_HEAP_ORIGINS; i++) {
		if (origins[i] == PEM_HEAP_NO_ORIGIN)
			continue;
		row = row_of(heap, run, origins[i]);
		if (!row)
			return -ENOMEM;
		row->now -= block->size < row->now ? block->size : row->now;
		row->temporary += is_temporary;
	}
	if (!run)
		return -ENOMEM;
	run->has_newest = false;
	run->now -= block->size < run->now ? block->size : run->now;
	return 0;
}

void pem_heap__finish(struct pem_heap *heap)
{
	size_t i;

	for (i = 0; i < heap->row_count; i++)
		keep_peak(&heap->rows[i], &heap->runs[heap->rows[i].run]);
}

void pem_heap__free(struct pem_heap *heap)
{
	free(heap->rows);
	free(heap->runs);
	pem_number_map__free(&heap->row_at);
	pem_number_map__free(&heap->run_at);
	pem_number_map__free(&heap->images);
}
