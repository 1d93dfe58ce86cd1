/* SPDX-License-Identifier: MIT */
/* html_lanes.c - lanes of threads (contract: html_lanes.h) */
#include "html_lanes.h"
#include "grow.h"
#include "number_map.h"
#include "path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In memory, of all threads: 128 MB. */
#define SLICES_MAX (4u << 20)
/* Of so many threads, the newest ones, no lane is dropped. */
#define NEWEST 256u
_Static_assert(NEWEST < PEM_HTML_LANES_HELD_MAX / 2, "drop_half drops none");
/* On the page: some 20 bytes each. */
#define SLICES_WRITTEN_MAX 400000u
#define ROW_WRITTEN_MAX 8000u

void pem_html_lanes__init(struct pem_html_lanes *lanes, uint32_t bins, uint64_t bin_ns)
{
	memset(lanes, 0, sizeof(*lanes));
	lanes->rows.bins = bins;
	lanes->rows.bin_ns = bin_ns;
	lanes->rows.room = SLICES_MAX;
	lanes->dropped.index = PEM_HTML_NOTHING;
	pem_html_row__init(&lanes->messages, 1);
	pem_html_row__init(&lanes->path, PEM_HTML_KINDS_MAX);
}

/* Returns how many slices there was room for. */
static size_t free_rows(struct pem_html_lane *lane)
{
	size_t room = lane->states.capacity;
	unsigned i;

	for (i = 0; i < PEM_HTML_LANE_DEPTH; i++) {
		if (!lane->depth[i])
			continue;
		room += lane->depth[i]->capacity;
		pem_html_row__free(lane->depth[i]);
		free(lane->depth[i]);
		lane->depth[i] = NULL;
	}
	pem_html_row__free(&lane->states);
	return room;
}

void pem_html_lanes__free(struct pem_html_lanes *lanes)
{
	uint32_t i;

	for (i = 0; i < lanes->held_count; i++) {
		free_rows(lanes->held[i]);
		free(lanes->held[i]);
	}
	free(lanes->lane);
	pem_html_row__free(&lanes->messages);
	pem_html_row__free(&lanes->path);
	free(lanes->path_sums);
	memset(lanes, 0, sizeof(*lanes));
}

static int busiest_first(const void *a, const void *b)
{
	const struct pem_html_lane *x = *(struct pem_html_lane *const *)a;
	const struct pem_html_lane *y = *(struct pem_html_lane *const *)b;

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns > y->busy_ns ? -1 : 1;
	return x->thread->number < y->thread->number ? -1 : x->thread->number > y->thread->number;
}

/* Make room for lanes of more threads. */
static void drop_half(struct pem_html_lanes *lanes)
{
	uint32_t i, kept = PEM_HTML_LANES_HELD_MAX / 2;

	qsort(lanes->held, lanes->held_count, sizeof(lanes->held[0]), busiest_first);
	for (i = kept; i < lanes->held_count; i++) {
		struct pem_html_lane *lane = lanes->held[i];

		if (lane->thread->number + NEWEST >= lanes->count) {
			lanes->held[kept++] = lane;
			continue;
		}
		lanes->rows.room += (int64_t)free_rows(lane);
		lanes->lane[lane->thread->number] = &lanes->dropped;
		lanes->dropped_count++;
		free(lane);
	}
	lanes->held_count = kept;
}

/* The lane of a thread, made if it has none. NULL: no memory. */
static struct pem_html_lane *lane_of(struct pem_html_lanes *lanes,
				     const struct pem_pass_thread *thread)
{
	struct pem_html_lane *lane;
	size_t number = thread->number;

	if (number >= lanes->count) {
		if (pem_grow(&lanes->lane, sizeof(*lanes->lane), number + 1, &lanes->capacity))
			return NULL;
		memset(&lanes->lane[lanes->count], 0,
		       (number + 1 - lanes->count) * sizeof(struct pem_html_lane *));
		lanes->count = number + 1;
	}
	if (lanes->lane[number])
		return lanes->lane[number];
	if (lanes->held_count == PEM_HTML_LANES_HELD_MAX)
		drop_half(lanes);
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->thread = thread;
	lane->index = PEM_HTML_NOTHING;
	pem_html_row__init(&lane->states, PEM_HTML_KINDS_MAX);
	lanes->lane[number] = lane;
	lanes->held[lanes->held_count++] = lane;
	return lane;
}

int pem_html_lanes__span(struct pem_html_lanes *lanes, const struct pem_span *span)
{
	struct pem_html_slice slice = {.begin_ns = span->begin_ns,
				       .end_ns = span->end_ns,
				       .what = span->cpu,
				       .extra = PEM_HTML_NOTHING,
				       .event = PEM_HTML_NOTHING};
	struct pem_html_lane *lane;

	if (span->state != PEM_THREAD_RUNNING && span->state != PEM_THREAD_RUNNABLE &&
	    span->state != PEM_THREAD_BLOCKED)
		return 0;
	if (!span->thread || span->end_ns <= span->begin_ns)
		return 0;
	lane = lane_of(lanes, span->thread);
	if (!lane || lane == &lanes->dropped)
		return lane ? 0 : -ENOMEM;
	slice.kind = span->state - PEM_THREAD_RUNNING;
	if (span->waker)
		slice.extra = span->waker->number;
	if (span->state == PEM_THREAD_RUNNING)
		lane->busy_ns += span->end_ns - span->begin_ns;
	lane->state_ns[span->state] += span->end_ns - span->begin_ns;
	return pem_html_row__add(&lane->states, &lanes->rows, &slice);
}

int pem_html_lanes__interval(struct pem_html_lanes *lanes, const struct pem_ended *ended,
			     uint32_t node)
{
	const struct pem_interval *interval = ended->interval;
	struct pem_html_slice slice = {.begin_ns = interval->begin.time_ns,
				       .end_ns = ended->end_ns,
				       .what = node,
				       .extra = PEM_HTML_NOTHING,
				       .event = ended->outcome};
	struct pem_html_lane *lane;

	if (!interval->thread)
		return 0;
	if (slice.end_ns < slice.begin_ns)
		slice.end_ns = slice.begin_ns;
	lane = lane_of(lanes, interval->thread);
	if (!lane || lane == &lanes->dropped)
		return lane ? 0 : -ENOMEM;
	if (interval->depth >= PEM_HTML_LANE_DEPTH) {
		lane->too_deep++;
		return 0;
	}
	if (interval->file)
		slice.extra = interval->file->number;
	if (interval->depth == 0)
		lane->busy_ns += slice.end_ns - slice.begin_ns;
	if (!lane->depth[interval->depth]) {
		lane->depth[interval->depth] = malloc(sizeof(struct pem_html_row));
		if (!lane->depth[interval->depth])
			return -ENOMEM;
		pem_html_row__init(lane->depth[interval->depth], 1);
	}
	return pem_html_row__add(lane->depth[interval->depth], &lanes->rows, &slice);
}

int pem_html_lanes__message(struct pem_html_lanes *lanes, const struct pem_record *record,
			    const struct pem_around *around)
{
	const struct pem_partner *partner = around->partner;
	int is_send = record->event->meaning == PEM_MEANS_SEND;
	struct pem_html_slice slice = {.event = is_send ? partner->event->id : record->event->id};

	if (!partner->thread || !around->thread)
		return 0;
	slice.what = is_send ? around->thread->number : partner->thread->number;
	slice.extra = is_send ? partner->thread->number : around->thread->number;
	slice.begin_ns = partner->time_ns;
	slice.end_ns = record->time_ns > partner->time_ns ? record->time_ns : partner->time_ns;
	return pem_html_row__add(&lanes->messages, &lanes->rows, &slice);
}

/* --- the critical path --- */

static int add_to_sum(struct pem_html_lanes *lanes, struct pem_number_map *at,
		      const struct pem_path_part *part)
{
	uint32_t *index = pem_number_map__at(at, part->thread->number);

	if (!index)
		return -ENOMEM;
	if (*index == UINT32_MAX) {
		if (pem_grow(&lanes->path_sums, sizeof(*lanes->path_sums),
			     lanes->path_sum_count + 1, &lanes->path_sum_capacity))
			return -ENOMEM;
		lanes->path_sums[lanes->path_sum_count] =
			(struct pem_html_path_sum){.thread = part->thread};
		*index = (uint32_t)lanes->path_sum_count++;
	}
	lanes->path_sums[*index].ns[part->state] += part->end_ns - part->begin_ns;
	lanes->path_ns += part->end_ns - part->begin_ns;
	if (pem_path_part__is_known(part))
		lanes->path_known_ns += part->end_ns - part->begin_ns;
	return 0;
}

static uint64_t path_time(const struct pem_html_path_sum *sum)
{
	uint64_t ns = 0;
	unsigned i;

	for (i = 0; i < PEM_THREAD_STATES; i++)
		ns += sum->ns[i];
	return ns;
}

static int longest_first(const void *a, const void *b)
{
	uint64_t x = path_time(a), y = path_time(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

int pem_html_lanes__path(struct pem_html_lanes *lanes, const struct pem_pass *pass)
{
	const struct pem_path_part *part = pem_pass__command_path(pass);
	struct pem_number_map at = {0};
	int err = 0;

	for (; !err && part; part = part->before) {
		struct pem_html_slice slice = {.begin_ns = part->begin_ns,
					       .end_ns = part->end_ns,
					       .what = part->thread->number,
					       .extra = PEM_HTML_NOTHING,
					       .event = PEM_HTML_NOTHING,
					       .kind = part->state - PEM_THREAD_RUNNING};

		err = add_to_sum(lanes, &at, part);
		if (!err && part->state != PEM_THREAD_UNKNOWN)
			err = pem_html_row__add(&lanes->path, &lanes->rows, &slice);
	}
	pem_number_map__free(&at);
	if (lanes->path_sum_count)
		qsort(lanes->path_sums, lanes->path_sum_count, sizeof(*lanes->path_sums),
		      longest_first);
	return err;
}

/* --- what the page gets --- */

/* Threads of one process together, the busiest process first. */
static int by_process(const void *a, const void *b)
{
	const struct pem_html_lane *x = *(struct pem_html_lane *const *)a;
	const struct pem_html_lane *y = *(struct pem_html_lane *const *)b;
	uint32_t p = x->thread->process ? x->thread->process->number : UINT32_MAX;
	uint32_t q = y->thread->process ? y->thread->process->number : UINT32_MAX;

	if (x->process_ran_ns != y->process_ran_ns)
		return x->process_ran_ns > y->process_ran_ns ? -1 : 1;
	if (x->process_busy_ns != y->process_busy_ns)
		return x->process_busy_ns > y->process_busy_ns ? -1 : 1;
	if (p != q)
		return p < q ? -1 : 1;
	return x->thread->number < y->thread->number ? -1 : x->thread->number > y->thread->number;
}

/* Of the lanes of the page, what their processes did together. */
static void sum_processes(struct pem_html_lanes *lanes)
{
	uint32_t i, j;

	for (i = 0; i < lanes->chosen_count; i++) {
		struct pem_html_lane *lane = lanes->chosen[i];

		for (j = 0; j < lanes->chosen_count; j++) {
			const struct pem_html_lane *other = lanes->chosen[j];

			if (other->thread->process != lane->thread->process)
				continue;
			lane->process_ran_ns += other->state_ns[PEM_THREAD_RUNNING];
			lane->process_busy_ns += other->busy_ns;
		}
	}
}

static void choose(struct pem_html_lanes *lanes)
{
	uint32_t i, busy = 0;

	/* A thread that only slept through the trace shows nothing. */
	qsort(lanes->held, lanes->held_count, sizeof(lanes->held[0]), busiest_first);
	while (busy < lanes->held_count && lanes->held[busy]->busy_ns)
		busy++;
	for (i = 0; i < busy && i < PEM_HTML_LANES_MAX; i++)
		lanes->chosen[lanes->chosen_count++] = lanes->held[i];
	lanes->left_out = busy + lanes->dropped_count - lanes->chosen_count;
	sum_processes(lanes);
	qsort(lanes->chosen, lanes->chosen_count, sizeof(*lanes->chosen), by_process);
	for (i = 0; i < lanes->chosen_count; i++)
		lanes->chosen[i]->index = i;
}

static int limit_lane(struct pem_html_lane *lane, const struct pem_html_rows *rows,
		      uint32_t per_bin, size_t *left)
{
	int err = pem_html_row__limit(&lane->states, rows, per_bin);
	unsigned i;

	*left += lane->states.count;
	for (i = 0; !err && i < PEM_HTML_LANE_DEPTH; i++) {
		if (!lane->depth[i])
			continue;
		err = pem_html_row__limit(lane->depth[i], rows, per_bin);
		*left += lane->depth[i]->count;
	}
	return err;
}

/* A row that the page has once. */
static int limit_row(struct pem_html_row *row, const struct pem_html_rows *rows)
{
	uint32_t per_bin;
	int err = 0;

	for (per_bin = PEM_HTML_ROW_SLICES; !err; per_bin /= 2) {
		err = pem_html_row__limit(row, rows, per_bin);
		if (row->count <= ROW_WRITTEN_MAX || per_bin == 1)
			break;
	}
	pem_html_row__sort(row);
	return err;
}

static void sort_lane(struct pem_html_lane *lane)
{
	unsigned i;

	pem_html_row__sort(&lane->states);
	for (i = 0; i < PEM_HTML_LANE_DEPTH; i++)
		if (lane->depth[i])
			pem_html_row__sort(lane->depth[i]);
}

int pem_html_lanes__finish(struct pem_html_lanes *lanes)
{
	uint32_t per_bin, i;
	size_t left;
	int err = 0;

	choose(lanes);
	for (per_bin = PEM_HTML_ROW_SLICES; !err; per_bin /= 2) {
		left = 0;
		for (i = 0; !err && i < lanes->chosen_count; i++)
			err = limit_lane(lanes->chosen[i], &lanes->rows, per_bin, &left);
		if (left <= SLICES_WRITTEN_MAX || per_bin == 1)
			break;
	}
	if (!err)
		err = limit_row(&lanes->messages, &lanes->rows);
	if (!err)
		err = limit_row(&lanes->path, &lanes->rows);
	for (i = 0; i < lanes->chosen_count; i++)
		sort_lane(lanes->chosen[i]);
	return err;
}
