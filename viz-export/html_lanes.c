/* SPDX-License-Identifier: MIT */
/* html_lanes.c - see html_lanes.h */
#include "html_lanes.h"
#include "grow.h"
#include "html_data.h"
#include "html_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRACKED_MAX 128u /* threads that are followed */
#define KEPT_MAX 4000u /* states of a lane, and as many intervals */
#define NAMES_MAX 4096u
#define DEPTH_MAX 6u
#define NO_NAME UINT32_MAX

/* A state of a thread, or an interval. */
struct piece {
	uint64_t begin_ns, end_ns;
	uint32_t what; /* the state, or the number of the interval's name */
	uint32_t depth; /* of an interval */
	const struct pem_pass_thread *waker; /* of a state; NULL: unknown */
};

/* The longest pieces. */
struct pieces {
	struct piece *kept;
	uint32_t count;
	uint64_t shortest_ns; /* not 0 once some were left out: shorter ones are left out at once */
	uint64_t left_out;
};

enum { RUNNING, RUNNABLE, BLOCKED, SHOWN_STATES };

struct pem_html_lane {
	const struct pem_pass_thread *thread;
	struct pieces states, intervals;
	float bins[SHOWN_STATES][PEM_HTML_LANE_BINS]; /* ns in each state */
	uint64_t busy_ns; /* it ran or waited for a CPU */
	uint32_t index; /* on the page; PEM_HTML_LANES_MAX: it is not there */
};

void pem_html_lanes__init(struct pem_html_lanes *lanes, uint64_t span_ns)
{
	memset(lanes, 0, sizeof(*lanes));
	lanes->span_ns = span_ns ? span_ns : 1;
}

static void free_lane(struct pem_html_lane *lane)
{
	free(lane->states.kept);
	free(lane->intervals.kept);
	free(lane);
}

void pem_html_lanes__free(struct pem_html_lanes *lanes)
{
	size_t i;

	for (i = 0; i < lanes->count; i++)
		free_lane(lanes->lanes[i]);
	for (i = 0; i < lanes->name_count; i++)
		free(lanes->names[i]);
	free(lanes->lanes);
	free(lanes->names);
	memset(lanes, 0, sizeof(*lanes));
}

/* --- pieces --- */

static uint64_t length_ns(const struct piece *piece)
{
	return piece->end_ns - piece->begin_ns;
}

static int longer(const void *a, const void *b)
{
	uint64_t x = length_ns(a), y = length_ns(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

static int earlier(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

static void keep_longest(struct pieces *pieces)
{
	if (pieces->count <= KEPT_MAX)
		return;
	qsort(pieces->kept, pieces->count, sizeof(*pieces->kept), longer);
	pieces->left_out += pieces->count - KEPT_MAX;
	pieces->count = KEPT_MAX;
	pieces->shortest_ns = length_ns(&pieces->kept[KEPT_MAX - 1]);
}

static int keep(struct pieces *pieces, const struct piece *piece)
{
	if (length_ns(piece) < pieces->shortest_ns) {
		pieces->left_out++;
		return 0;
	}
	if (!pieces->kept) {
		pieces->kept = calloc(2 * KEPT_MAX, sizeof(*pieces->kept));
		if (!pieces->kept)
			return -ENOMEM;
	}
	if (pieces->count == 2 * KEPT_MAX)
		keep_longest(pieces);
	pieces->kept[pieces->count++] = *piece;
	return 0;
}

/* --- collecting --- */

/* The thread's lane; *lane NULL: too many threads have one. */
static int lane_of(struct pem_html_lanes *lanes, const struct pem_pass_thread *thread,
		   struct pem_html_lane **lane)
{
	*lane = thread->user;
	if (*lane)
		return 0;
	if (lanes->count == TRACKED_MAX)
		return 0;
	if (pem_grow(&lanes->lanes, sizeof(*lanes->lanes), lanes->count + 1, &lanes->capacity))
		return -ENOMEM;
	*lane = calloc(1, sizeof(**lane));
	if (!*lane)
		return -ENOMEM;
	(*lane)->thread = thread;
	lanes->lanes[lanes->count++] = *lane;
	pem_pass_thread__set_user(thread, *lane);
	return 0;
}

static void add_to_bins(const struct pem_html_lanes *lanes, float *bins, uint64_t begin_ns,
			uint64_t end_ns)
{
	double width = (double)lanes->span_ns / PEM_HTML_LANE_BINS;
	double from = (double)begin_ns / width, to = (double)end_ns / width, low, high;
	unsigned i = from < PEM_HTML_LANE_BINS ? (unsigned)from : PEM_HTML_LANE_BINS - 1;

	for (; i < PEM_HTML_LANE_BINS && (double)i < to; i++) {
		low = from > i ? from : i;
		high = to < i + 1 ? to : i + 1;
		if (high > low)
			bins[i] += (float)((high - low) * width);
	}
}

static int add_span(struct pem_html_lanes *lanes, const struct pem_span *span)
{
	static const int shown[PEM_THREAD_STATES] = {[PEM_THREAD_UNKNOWN] = -1,
						     [PEM_THREAD_RUNNING] = RUNNING,
						     [PEM_THREAD_RUNNABLE] = RUNNABLE,
						     [PEM_THREAD_BLOCKED] = BLOCKED,
						     [PEM_THREAD_ENDED] = -1};
	struct piece piece = {.begin_ns = span->begin_ns, .waker = span->waker};
	struct pem_html_lane *lane;
	int state = shown[span->state], rc;

	if (state < 0 || span->end_ns <= span->begin_ns)
		return 0;
	rc = lane_of(lanes, span->thread, &lane);
	if (rc || !lane)
		return rc;
	piece.end_ns = span->end_ns;
	piece.what = (uint32_t)state;
	add_to_bins(lanes, lane->bins[state], span->begin_ns, span->end_ns);
	if (state != BLOCKED)
		lane->busy_ns += span->end_ns - span->begin_ns;
	return keep(&lane->states, &piece);
}

/* Number of a name. NO_NAME: there are too many, or no memory. */
static uint32_t name_of(struct pem_html_lanes *lanes, const char *name)
{
	size_t i;

	/* The names of neighbours are often the same, and few. */
	for (i = lanes->name_count; i-- > 0;)
		if (!strncmp(lanes->names[i], name, PEM_HTML_NAME_BYTES - 1))
			return (uint32_t)i;
	if (lanes->name_count == NAMES_MAX ||
	    pem_grow(&lanes->names, sizeof(*lanes->names), lanes->name_count + 1,
		     &lanes->name_capacity))
		return NO_NAME;
	lanes->names[lanes->name_count] = strndup(name, PEM_HTML_NAME_BYTES - 1);
	return lanes->names[lanes->name_count] ? (uint32_t)lanes->name_count++ : NO_NAME;
}

static int add_interval(struct pem_html_lanes *lanes, const struct pem_ended *ended)
{
	const struct pem_interval *interval = ended->interval;
	struct piece piece = {.begin_ns = interval->begin.time_ns,
			      .end_ns = ended->end_ns,
			      .depth = interval->depth};
	struct pem_html_lane *lane;
	int rc;

	if (!interval->thread || interval->begin.event->scope != PEM_SCOPE_THREAD ||
	    ended->outcome == PEM_INTERVAL_LOST || interval->depth >= DEPTH_MAX ||
	    ended->end_ns < piece.begin_ns)
		return 0;
	rc = lane_of(lanes, interval->thread, &lane);
	if (rc || !lane)
		return rc;
	if (length_ns(&piece) < lane->intervals.shortest_ns) {
		lane->intervals.left_out++;
		return 0;
	}
	piece.what = name_of(lanes, pem_html__interval_name(interval));
	return piece.what == NO_NAME ? 0 : keep(&lane->intervals, &piece);
}

int pem_html_lanes__add(struct pem_html_lanes *lanes, const struct pem_around *around)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < around->span_count; i++)
		rc = add_span(lanes, &around->spans[i]);
	for (i = 0; !rc && i < around->ended_count; i++)
		rc = add_interval(lanes, &around->ended[i]);
	return rc;
}

/* --- the page's lanes --- */

static int busier(const void *a, const void *b)
{
	const struct pem_html_lane *x = *(struct pem_html_lane *const *)a;
	const struct pem_html_lane *y = *(struct pem_html_lane *const *)b;

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns < y->busy_ns ? 1 : -1;
	if (x->intervals.count != y->intervals.count)
		return x->intervals.count < y->intervals.count ? 1 : -1;
	return x->thread->number < y->thread->number ? -1 : 1;
}

/* Threads of a process together, processes and threads as they were met. */
static int by_process(const void *a, const void *b)
{
	const struct pem_pass_thread *x = (*(struct pem_html_lane *const *)a)->thread;
	const struct pem_pass_thread *y = (*(struct pem_html_lane *const *)b)->thread;
	uint32_t i = x->process ? x->process->number : UINT32_MAX;
	uint32_t j = y->process ? y->process->number : UINT32_MAX;

	if (i != j)
		return i < j ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

void pem_html_lanes__finish(struct pem_html_lanes *lanes)
{
	size_t i, shown = lanes->count < PEM_HTML_LANES_MAX ? lanes->count : PEM_HTML_LANES_MAX;

	if (!lanes->count)
		return;
	qsort(lanes->lanes, lanes->count, sizeof(*lanes->lanes), busier);
	qsort(lanes->lanes, shown, sizeof(*lanes->lanes), by_process);
	lanes->left_out = lanes->count - shown;
	for (i = 0; i < lanes->count; i++) {
		struct pem_html_lane *lane = lanes->lanes[i];

		lane->index = i < shown ? (uint32_t)i : PEM_HTML_LANES_MAX;
		keep_longest(&lane->states);
		keep_longest(&lane->intervals);
		if (lane->states.count)
			qsort(lane->states.kept, lane->states.count, sizeof(*lane->states.kept),
			      earlier);
		if (lane->intervals.count)
			qsort(lane->intervals.kept, lane->intervals.count,
			      sizeof(*lane->intervals.kept), earlier);
	}
}

/* --- writing --- */

/* Begins are written as distances from the begin before. */
static void write_states(FILE *out, const struct pieces *pieces)
{
	uint64_t before = 0;
	uint32_t i;

	for (i = 0; i < pieces->count; i++) {
		const struct piece *p = &pieces->kept[i];
		const struct pem_html_lane *waker = p->waker ? p->waker->user : NULL;

		fprintf(out, "%s%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%d", i ? "," : "",
			p->begin_ns - before, length_ns(p), p->what,
			waker && waker->index < PEM_HTML_LANES_MAX ? (int)waker->index : -1);
		before = p->begin_ns;
	}
}

static void write_intervals(FILE *out, const struct pieces *pieces)
{
	uint64_t before = 0;
	uint32_t i;

	for (i = 0; i < pieces->count; i++) {
		const struct piece *p = &pieces->kept[i];

		fprintf(out, "%s%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32, i ? "," : "",
			p->begin_ns - before, length_ns(p), p->depth, p->what);
		before = p->begin_ns;
	}
}

/* Of each bin the share of each state, in percent. */
static void write_bins(FILE *out, const struct pem_html_lanes *lanes,
		       const struct pem_html_lane *lane)
{
	double width = (double)lanes->span_ns / PEM_HTML_LANE_BINS;
	unsigned state, i;

	for (state = 0; state < SHOWN_STATES; state++) {
		fputs(state ? ",[" : "[", out);
		for (i = 0; i < PEM_HTML_LANE_BINS; i++)
			fprintf(out, "%s%d", i ? "," : "",
				(int)((double)lane->bins[state][i] * 100 / width + 0.5));
		fputc(']', out);
	}
}

static void write_lane(FILE *out, const struct pem_html_lanes *lanes,
		       const struct pem_html_lane *lane)
{
	const struct pem_pass_thread *thread = lane->thread;

	fprintf(out, "{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",",
		thread->process ? thread->process->pid : 0, thread->tid);
	pem_json__key_string(out, "process", thread->process ? thread->process->name : "",
			     PEM_HTML_NAME_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "arguments", thread->process ? thread->process->arguments : "",
			     PEM_HTML_NAME_BYTES);
	fputc(',', out);
	pem_json__key_string(out, "thread", thread->name, PEM_HTML_NAME_BYTES);
	fprintf(out, ",\"left_out\":%" PRIu64 ",\"states\":[",
		lane->states.left_out + lane->intervals.left_out);
	write_states(out, &lane->states);
	fputs("],\"intervals\":[", out);
	write_intervals(out, &lane->intervals);
	fputs("],\"bins\":[", out);
	write_bins(out, lanes, lane);
	fputs("]}", out);
}

void pem_html_lanes__write(FILE *out, const struct pem_html_lanes *lanes)
{
	size_t i;

	fprintf(out, "\"lanes\":{\"left_out\":%" PRIu64 ",\"span_ns\":%" PRIu64 ",\"names\":[",
		lanes->left_out, lanes->span_ns);
	for (i = 0; i < lanes->name_count; i++) {
		fputs(i ? "," : "", out);
		pem_json__string(out, lanes->names[i], PEM_HTML_NAME_BYTES);
	}
	fputs("],\"list\":[", out);
	for (i = 0; i < lanes->count && i < PEM_HTML_LANES_MAX; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_lane(out, lanes, lanes->lanes[i]);
	}
	fputs("]},\n", out);
}
