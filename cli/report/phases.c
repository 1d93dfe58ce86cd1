// SPDX-License-Identifier: MIT
/*
 * phases.c - what happened between the begins and ends of phases
 *
 * A phase contains the events of its scope: of its thread, its process or its CPU, and of the
 * processes that this thread or process started; of scope 'system' all events. A phase that another
 * thread of its process ends contains the events of the process; one that another process ends, as
 * `pem mark end` does, contains all.
 *
 * While phases are open, what is in their scopes is counted in a tally of each thread, process and
 * CPU. A begin saves the tally's counts, and its end takes the difference. So the time of an event
 * does not depend on the number of open phases. intervals.h matches begins and ends.
 *
 * Only events that occurred are counted, in the order in which they occurred first: a trace's model
 * may have thousands of others. Phases of names beyond COUNTS_MAX share one row.
 */
#include "intervals.h"
#include "report.h"
#include "grow.h"
#include "hash.h"

#include <pem/context.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNTS_MAX (2u << 20) /* of all names, tallies and open phases together: 64 MiB */
#define NAMES_MAX 65536u
#define OTHER_NAMES "(other names)"
#define ANCESTORS_MAX 64u /* a trace may say that processes are each other's parents */
#define NONE UINT32_MAX

/* Whose events lie in a phase. */
enum whose { OF_THREAD, OF_PROCESS, OF_CPU, OF_ALL, WHOSE_COUNT };

/* The events of a thread, a process or a CPU, counted while a phase of it is open. */
struct tally {
	uint32_t phases; /* that are open; 0: it does not count */
	size_t count; /* events of report->occurred that it has room for */
	struct report_inside *inside;
	bool is_partial; /* it did not get room for all */
};

/* What had happened when a phase began. */
struct snapshot {
	uint32_t tally; /* index; NONE: of all events, or it was not taken */
	bool is_taken;
	size_t count; /* events that had occurred */
	struct report_inside *inside; /* of each of them, up to the begin */
};

struct open_phase {
	uint32_t phase; /* index in report->phases */
	uint64_t begin_ns;
	/* That began it. NULL: unknown. */
	const struct pem_pass_process *process;
	const struct pem_pass_thread *thread;
	enum whose whose; /* if its own thread ends it */
	struct snapshot at[WHOSE_COUNT];
};

struct report_open {
	struct pem_intervals *intervals; /* the data of an interval is a struct open_phase */
	/* key: hash of the name; value: first index in report->phases */
	struct pem_number_map by_name;
	size_t count; /* counts of all phases, tallies and open phases together */
	struct tally *tallies;
	size_t tally_count, tally_capacity;
	struct pem_number_map tally_at; /* key: enum whose, and a number */
	size_t counting; /* tallies of open phases */
};

struct report_open *report_open__new(void)
{
	struct report_open *open = calloc(1, sizeof(*open));

	if (open == NULL)
		return NULL;
	open->intervals = pem_intervals__new();
	if (open->intervals == NULL) {
		free(open);
		return NULL;
	}
	return open;
}

static void free_phase(struct report_open *open, struct open_phase *o)
{
	size_t i;

	if (o == NULL)
		return;
	for (i = 0; i < WHOSE_COUNT; i++) {
		struct tally *tally;

		open->count -= o->at[i].count;
		free(o->at[i].inside);
		if (!o->at[i].is_taken || o->at[i].tally == NONE)
			continue;
		tally = &open->tallies[o->at[i].tally];
		if (--tally->phases != 0)
			continue;
		open->counting--;
		open->count -= tally->count;
		free(tally->inside);
		*tally = (struct tally){0};
	}
	free(o);
}

void report_open__free(struct report_open *open)
{
	struct open_phase *o;

	if (open == NULL)
		return;
	while ((o = pem_intervals__take(open->intervals)) != NULL)
		free_phase(open, o);
	pem_intervals__free(open->intervals);
	pem_number_map__free(&open->by_name);
	pem_number_map__free(&open->tally_at);
	free(open->tallies);
	free(open);
}

/* NULL: no memory. */
static struct report_phase *add_phase(struct report *report, const char *name)
{
	struct report_phase *phase;

	if (pem_grow(&report->phases, sizeof(*report->phases), report->phase_count + 1,
		     &report->phase_capacity) < 0)
		return NULL;
	phase = &report->phases[report->phase_count];
	memset(phase, 0, sizeof(*phase));
	phase->first_ns = phase->least_ns = UINT64_MAX;
	phase->name = strdup(name);
	if (phase->name == NULL)
		return NULL;
	report->phase_count++;
	return phase;
}

/*
 * Find the phase of a name, or make it. UINT32_MAX: no memory. Names with equal hashes would share
 * one phase.
 */
static uint32_t phase_of(struct report_open *open, struct report *report, const char *name)
{
	bool is_full = report->phase_count >= NAMES_MAX || open->count >= COUNTS_MAX;
	uint32_t *at;

	if (is_full && pem_number_map__value(&open->by_name,
					     pem_hash__text(PEM_HASH_START, name)) == UINT32_MAX)
		name = OTHER_NAMES;
	at = pem_number_map__at(&open->by_name, pem_hash__text(PEM_HASH_START, name));
	if (at == NULL)
		return UINT32_MAX;
	if (*at == UINT32_MAX) {
		if (add_phase(report, name) == NULL)
			return UINT32_MAX;
		*at = (uint32_t)report->phase_count - 1;
	}
	return *at;
}

/* --- tallies --- */

static uint64_t tally_key(enum whose whose, uint32_t number)
{
	return (uint64_t)whose << 32 | number;
}

/* NULL: no memory. Valid until the next one is made. */
static struct tally *tally_of(struct report_open *open, enum whose whose, uint32_t number)
{
	uint32_t *at = pem_number_map__at(&open->tally_at, tally_key(whose, number));

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&open->tallies, sizeof(*open->tallies), open->tally_count + 1,
			     &open->tally_capacity) < 0)
			return NULL;
		open->tallies[open->tally_count] = (struct tally){0};
		*at = (uint32_t)open->tally_count++;
	}
	return &open->tallies[*at];
}

/* Make room for counts of the first events that occurred. Returns 1, 0: there is none, -ENOMEM. */
static int widen(struct report_open *open, struct report_inside **inside, size_t *count,
		 size_t wanted)
{
	struct report_inside *larger;
	size_t more;

	if (wanted <= *count)
		return 1;
	more = wanted - *count;
	if (open->count + more > COUNTS_MAX)
		return 0;
	larger = reallocarray(*inside, wanted, sizeof(*larger));
	if (larger == NULL)
		return -ENOMEM;
	memset(larger + *count, 0, more * sizeof(*larger));
	*inside = larger;
	*count = wanted;
	open->count += more;
	return 1;
}

static void add_amount(const struct report_event *e, union report_amount *sum,
		       const union report_amount *amount)
{
	if (e->field < 0)
		return;
	if (report_event__is_float(e))
		sum->f += amount->f;
	else
		sum->i += amount->i;
}

static int count_in(struct report_open *open, const struct report_event *e, enum whose whose,
		    uint32_t number)
{
	uint32_t at = pem_number_map__value(&open->tally_at, tally_key(whose, number));
	struct tally *tally = at != UINT32_MAX ? &open->tallies[at] : NULL;
	int rc;

	if (tally == NULL || tally->phases == 0)
		return 0;
	rc = widen(open, &tally->inside, &tally->count, e->occurred_at);
	if (rc <= 0) {
		tally->is_partial = true;
		return rc;
	}
	tally->inside[e->occurred_at - 1].count++;
	add_amount(e, &tally->inside[e->occurred_at - 1].sum, &e->amount);
	return 0;
}

int report_open__count(struct report_open *open, const struct report_event *e,
		       const struct pem_around *around)
{
	const struct pem_pass_thread *thread = around->thread;
	const struct pem_pass_process *process = around->process;
	uint32_t i;
	int rc = 0;

	if (open->counting == 0)
		return 0;
	if (around->cpu != PEM_NO_CPU)
		rc = count_in(open, e, OF_CPU, around->cpu);
	for (i = 0; rc == 0 && i < ANCESTORS_MAX; i++) {
		if (thread != NULL)
			rc = count_in(open, e, OF_THREAD, thread->number);
		if (process == NULL)
			break;
		if (rc == 0)
			rc = count_in(open, e, OF_PROCESS, process->number);
		thread = process->starter;
		process = process->parent;
	}
	return rc;
}

/* --- begins --- */

/* Save what was counted until now. Returns 0 or -ENOMEM. */
static int take_snapshot(struct report_open *open, const struct report *report,
			 struct open_phase *o, enum whose whose, uint32_t number)
{
	struct snapshot *s = &o->at[whose];
	struct tally *tally = NULL;
	size_t i, wanted = report->occurred_count;
	int rc;

	if (whose != OF_ALL) {
		if (number == NONE)
			return 0;
		tally = tally_of(open, whose, number);
		if (tally == NULL)
			return -ENOMEM;
		wanted = tally->count;
	}
	rc = widen(open, &s->inside, &s->count, wanted);
	if (rc <= 0)
		return rc;
	s->is_taken = true;
	s->tally = NONE;
	for (i = 0; tally == NULL && i < s->count; i++) {
		const struct report_event *e = &report->events[report->occurred[i]];

		s->inside[i] = (struct report_inside){e->count, e->so_far};
	}
	if (tally == NULL)
		return 0;
	if (s->count != 0)
		memcpy(s->inside, tally->inside, s->count * sizeof(s->inside[0]));
	s->tally = (uint32_t)(tally - open->tallies);
	open->counting += tally->phases++ == 0;
	return 0;
}

static int take_snapshots(struct report_open *open, const struct report *report,
			  struct open_phase *o, const struct pem_record *record,
			  const struct pem_around *around)
{
	/* As intervals.h has it: a mark. */
	bool ends_elsewhere = o->whose == OF_THREAD &&
			      pem_event__field_by_role(record->event, PEM_ROLE_NAME) >= 0 &&
			      pem_event__field_by_role(record->event, PEM_ROLE_KEY) < 0;
	int rc = 0;

	if (o->whose == OF_THREAD)
		rc = take_snapshot(open, report, o, OF_THREAD,
				   o->thread != NULL ? o->thread->number : NONE);
	if (rc == 0 && (o->whose == OF_PROCESS || ends_elsewhere))
		rc = take_snapshot(open, report, o, OF_PROCESS,
				   o->process != NULL ? o->process->number : NONE);
	if (rc == 0 && o->whose == OF_CPU)
		rc = take_snapshot(open, report, o, OF_CPU, around->cpu);
	if (rc == 0 && (o->whose == OF_ALL || ends_elsewhere))
		rc = take_snapshot(open, report, o, OF_ALL, 0);
	return rc;
}

static enum whose whose_of(const struct pem_event *event)
{
	switch (event->scope) {
	case PEM_SCOPE_THREAD:
		return OF_THREAD;
	case PEM_SCOPE_PROCESS:
		return OF_PROCESS;
	case PEM_SCOPE_CPU:
		return OF_CPU;
	default:
		return OF_ALL;
	}
}

int report_open__begin(struct report_open *open, struct report *report,
		       const struct pem_record *record, const struct pem_around *around)
{
	uint32_t phase = phase_of(open, report, pem_interval__name(record));
	struct open_phase *o;

	if (phase == UINT32_MAX)
		return -ENOMEM;
	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return -ENOMEM;
	o->phase = phase;
	o->begin_ns = record->time_ns;
	o->process = around->process;
	o->thread = around->thread;
	o->whose = whose_of(record->event);
	if (take_snapshots(open, report, o, record, around) < 0) {
		free_phase(open, o);
		return -ENOMEM;
	}
	if (record->time_ns < report->phases[phase].first_ns)
		report->phases[phase].first_ns = record->time_ns;
	o = pem_intervals__begin(open->intervals, record, o);
	if (o != NULL)
		report->phases[o->phase].unfinished++;
	free_phase(open, o);
	return 0;
}

/* --- ends --- */

/* What is counted now of what a snapshot was taken of. i: index in report->occurred. */
static struct report_inside counted_now(const struct report_open *open, const struct report *report,
					const struct snapshot *s, size_t i)
{
	const struct report_event *e = &report->events[report->occurred[i]];
	const struct tally *tally = s->tally != NONE ? &open->tallies[s->tally] : NULL;

	if (tally == NULL)
		return (struct report_inside){e->count, e->so_far};
	return i < tally->count ? tally->inside[i] : (struct report_inside){0};
}

/* Did anything happen in the phase? */
static bool is_empty(const struct report_open *open, const struct report *report,
		     const struct snapshot *s)
{
	size_t i;

	for (i = 0; i < report->occurred_count; i++)
		if (counted_now(open, report, s, i).count !=
		    (i < s->count ? s->inside[i].count : 0))
			return false;
	return true;
}

/* Add what lay within an instance. Returns 0 or -ENOMEM. */
static int add_inside(struct report_open *open, struct report *report, struct report_phase *phase,
		      const struct snapshot *s)
{
	int rc = s->is_taken ? widen(open, &phase->inside, &phase->counted, report->occurred_count)
			     : 0;
	size_t i;

	if (rc == 0 || (s->is_taken && s->tally != NONE && open->tallies[s->tally].is_partial))
		phase->is_partial = true;
	if (!s->is_taken || rc < 0)
		return rc;
	for (i = 0; i < phase->counted; i++) {
		const struct report_event *e = &report->events[report->occurred[i]];
		struct report_inside now = counted_now(open, report, s, i);
		union report_amount *sum = &phase->inside[i].sum;

		phase->inside[i].count += now.count;
		add_amount(e, sum, &now.sum);
		if (i >= s->count)
			continue;
		phase->inside[i].count -= s->inside[i].count;
		if (e->field >= 0 && report_event__is_float(e))
			sum->f -= s->inside[i].sum.f;
		else
			sum->i -= s->inside[i].sum.i;
	}
	return 0;
}

/* Whose events lie in a phase that ends. around NULL: it did not end. */
static enum whose whose_at_end(const struct report_open *open, const struct report *report,
			       const struct open_phase *o, const struct pem_around *around)
{
	if (o->whose != OF_THREAD || !o->at[OF_ALL].is_taken || o->process == NULL)
		return o->whose;
	if (around != NULL ? around->process != o->process : o->process->end_ns != PEM_TIME_UNKNOWN)
		return OF_ALL;
	/*
	 * A process that raised nothing in its phase, and of which no relative is known, marks a
	 * phase of others, as `pem mark run` does.
	 */
	if (o->process->parent == NULL && o->at[OF_PROCESS].is_taken &&
	    is_empty(open, report, &o->at[OF_PROCESS]))
		return OF_ALL;
	return around == NULL || around->thread == o->thread ? OF_THREAD : OF_PROCESS;
}

static int close_phase(struct report_open *open, struct report *report, struct open_phase *o,
		       uint64_t end_ns, const struct pem_around *around)
{
	struct report_phase *phase = &report->phases[o->phase];
	uint64_t ns = end_ns > o->begin_ns ? end_ns - o->begin_ns : 0;
	enum whose whose = whose_at_end(open, report, o, around);
	int rc = add_inside(open, report, phase, &o->at[whose]);

	phase->is_of_threads |= whose == OF_THREAD;
	cli_sum__add(&phase->total_ns, ns);
	if (ns < phase->least_ns)
		phase->least_ns = ns;
	if (ns > phase->most_ns)
		phase->most_ns = ns;
	free_phase(open, o);
	return rc;
}

int report_open__end(struct report_open *open, struct report *report,
		     const struct pem_record *record, const struct pem_around *around)
{
	struct open_phase *o = pem_intervals__end(open->intervals, record);
	int rc, closed;
	uint64_t ns;

	if (o == NULL) {
		report->ends_without_begin++;
		return 0;
	}
	report->phases[o->phase].times++;
	ns = record->time_ns > o->begin_ns ? record->time_ns - o->begin_ns : 0;
	rc = pem_sketch__add(&report->phases[o->phase].sketch, (double)ns);
	closed = close_phase(open, report, o, record->time_ns, around);
	return rc < 0 ? rc : closed;
}

int report_open__finish(struct report_open *open, struct report *report, uint64_t end_ns)
{
	struct open_phase *o;
	int rc = 0;

	while (rc == 0 && (o = pem_intervals__take(open->intervals)) != NULL) {
		report->phases[o->phase].unfinished++;
		rc = close_phase(open, report, o, end_ns, NULL);
	}
	return rc;
}
