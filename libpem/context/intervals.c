/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * intervals.c - open intervals, and which begin an end belongs to
 *
 * Where a begin is kept depends on its scope:
 *	thread		a stack of the thread. Its order is the nesting of the thread's intervals.
 *	cpu		a list of the CPU
 *	process, system	a list for each key: group, scope, process and fields of role 'key'; and one
 *			for each key and name, if the group has names
 * An end takes the innermost begin of its group that agrees in keys, and in the name where both
 * have one. A thread and a CPU have few open ones at a time. So the time of an end does not depend
 * on how many intervals are open.
 *
 * Intervals of programs without keys may be ended by another process (`pem mark end`): they are in
 * a list by name, too.
 */
#include "pass.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>

/* --- memory --- */

static struct pem_open *new_open(struct pem_pass *pass, const struct pem_record *record)
{
	struct pem_open_intervals *all = &pass->intervals;
	struct pem_open *open = all->free;
	uint8_t *data;

	if (open) {
		all->free = open->next;
	} else {
		open = calloc(1, sizeof(*open));
		if (!open)
			return NULL;
		open->allocated = all->allocated;
		all->allocated = open;
	}
	if (record->bytes > open->data_capacity) {
		data = realloc(open->data, (record->bytes + 63) & ~63u);
		if (!data) {
			open->next = all->free;
			all->free = open;
			return NULL;
		}
		open->data = data;
		open->data_capacity = (record->bytes + 63) & ~63u;
	}
	memcpy(open->data, record->data, record->bytes);
	open->interval.begin = *record;
	open->interval.begin.data = open->data;
	open->interval.outer = NULL;
	open->interval.depth = 0;
	open->interval.child_ns = open->interval.user[0] = open->interval.user[1] = 0;
	open->interval.number = ++all->begun;
	open->next = open->previous = NULL;
	open->list = open->named_list = 0;
	open->phase_list = NULL;
	all->open_count++;
	return open;
}

void pem_intervals__release_ended(struct pem_pass *pass)
{
	size_t i;

	for (i = 0; i < pass->ended_count; i++) {
		/* The interval is the first member of its struct pem_open. */
		struct pem_open *open = (struct pem_open *)(uintptr_t)pass->ended[i].interval;

		open->next = pass->intervals.free;
		pass->intervals.free = open;
	}
	pass->ended_count = 0;
}

/* --- lists by key and by name --- */

static int put_in_list(struct pem_pass *pass, struct pem_open *open, uint64_t key)
{
	void **first = pem_keys__at(&pass->intervals.by_key, key);

	if (!first)
		return -ENOMEM;
	open->list = key;
	open->next = *first;
	if (open->next)
		open->next->previous = open;
	*first = open;
	return 0;
}

static void take_from_list(struct pem_pass *pass, struct pem_open *open)
{
	void **first = pem_keys__find(&pass->intervals.by_key, open->list);

	if (open->next)
		open->next->previous = open->previous;
	if (open->previous) {
		open->previous->next = open->next;
		return;
	}
	*first = open->next;
	if (!open->next)
		pem_keys__remove(&pass->intervals.by_key, first);
}

/* where: the group, or a key of by_key. */
static uint64_t name_key(uint64_t name, uint64_t where)
{
	return pem_mix2(name, where) | 1;
}

static int put_in_names(struct pem_pass *pass, struct pem_open *open, uint64_t key)
{
	void **first = pem_keys__at(&pass->intervals.by_name, key);

	if (!first)
		return -ENOMEM;
	open->named_list = key;
	open->previous_named = NULL;
	open->next_named = *first;
	if (open->next_named)
		open->next_named->previous_named = open;
	*first = open;
	return 0;
}

static void take_from_names(struct pem_pass *pass, struct pem_open *open)
{
	void **first = pem_keys__find(&pass->intervals.by_name, open->named_list);

	if (open->next_named)
		open->next_named->previous_named = open->previous_named;
	if (open->previous_named) {
		open->previous_named->next_named = open->next_named;
		return;
	}
	*first = open->next_named;
	if (!open->next_named)
		pem_keys__remove(&pass->intervals.by_name, first);
}

/* --- a thread's stack --- */

static void take_from_stack(struct pem_open *open)
{
	struct pem_life_thread *t = open->thread;
	uint32_t i = open->interval.depth;

	t->phase_count -= open->plan->is_phase;
	t->open_count--;
	if (i < t->open_count) {
		t->open[i + 1]->interval.outer = open->interval.outer;
		memmove(&t->open[i], &t->open[i + 1], (t->open_count - i) * sizeof(t->open[0]));
	}
	for (; i < t->open_count; i++)
		t->open[i]->interval.depth = i;
}

static void take_from_cpu(struct pem_pass *pass, struct pem_open *open)
{
	struct pem_cpu_intervals *cpu = &pass->intervals.by_cpu[open->interval.begin.cpu];
	struct pem_open **at = &cpu->first;

	while (*at != open)
		at = &(*at)->next;
	*at = open->next;
	cpu->count--;
}

/* --- ending --- */

/* Could a loss hide another end of this begin? */
static bool is_doubtful(const struct pem_pass *pass, const struct pem_open *open)
{
	const struct pem_record *begin = &open->interval.begin;

	return PEM_UNLIKELY(pass->losses_seen) &&
	       begin->clock < pem_pass__loss(pass, (enum pem_scope)open->plan->scope, begin->source,
					     open->process, open->thread, begin->cpu);
}

/* Take an interval out of all lists, and say that it ended. */
static int close_interval(struct pem_pass *pass, struct pem_open *open,
			  enum pem_interval_outcome outcome, uint64_t end_ns)
{
	uint64_t begin_ns = open->interval.begin.time_ns;
	struct pem_open *outer;

	if (open->plan->scope == PEM_SCOPE_THREAD)
		take_from_stack(open);
	else if (open->plan->scope == PEM_SCOPE_CPU)
		take_from_cpu(pass, open);
	else
		take_from_list(pass, open);
	if (open->named_list)
		take_from_names(pass, open);
	if (open->plan->is_phase)
		pem_phases__end(pass, open);
	pass->intervals.open_count--;
	if (outcome == PEM_INTERVAL_LOST)
		pass->unknown.intervals++;
	if (open->interval.outer && outcome != PEM_INTERVAL_LOST) {
		outer = (struct pem_open *)(uintptr_t)open->interval.outer;
		outer->interval.child_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	}
	return pem_pass__end_interval(pass, open, outcome, end_ns);
}

int pem_intervals__thread_ends(struct pem_pass *pass, struct pem_life_thread *t)
{
	uint32_t kept = 0;
	int rc;

	pem_states__doubt(pass, t);
	rc = pem_intervals__doubt(pass, t);

	/* Another process may end a phase of a thread that has ended. */
	while (!rc && t->open_count > kept) {
		struct pem_open *open = t->open[t->open_count - 1 - kept];

		if (open->named_list)
			kept++;
		else
			rc = close_interval(pass, open, PEM_INTERVAL_WITH_THREAD, pass->now_ns);
	}
	return rc;
}

void pem_intervals__pass_on(struct pem_life_thread *from, struct pem_life_thread *to)
{
	uint32_t i;

	for (i = 0; i < from->open_count; i++)
		from->open[i]->thread = to;
	to->open = from->open;
	to->open_count = from->open_count;
	to->open_capacity = from->open_capacity;
	to->phase_count = from->phase_count;
	to->makes_calls = from->makes_calls;
	from->open = NULL;
	from->open_count = from->open_capacity = from->phase_count = 0;
}

static uint64_t sure_of(const struct pem_life_thread *t, const struct pem_open *open)
{
	uint64_t begin = open->interval.begin.clock;
	uint64_t sure =
		open->interval.begin.source == PEM_PACKET_USER ? t->user_sure : t->kernel_sure;

	return sure > begin ? sure : begin;
}

int pem_intervals__doubt(struct pem_pass *pass, struct pem_life_thread *t)
{
	uint32_t i;
	int rc = 0;

	for (i = t->open_count; !rc && i-- > 0;) {
		struct pem_open *open = t->open[i];

		if (!is_doubtful(pass, open))
			continue;
		rc = close_interval(pass, open, PEM_INTERVAL_LOST,
				    pem_pass__ns(pass, sure_of(t, open)));
	}
	return rc;
}

/* --- beginning --- */

static int push(struct pem_pass *pass, struct pem_open *open)
{
	struct pem_life_thread *t = open->thread;
	size_t capacity = t->open_capacity;

	if (t->open_count == PEM_OPEN_NESTED_MAX) {
		pass->unknown.left_out++;
		if (close_interval(pass, t->open[0], PEM_INTERVAL_LOST,
				   t->open[0]->interval.begin.time_ns))
			return -ENOMEM;
	}
	if (pem_grow(&t->open, sizeof(*t->open), t->open_count + 1, &capacity))
		return -ENOMEM;
	t->open_capacity = (uint32_t)capacity;
	if (t->open_count)
		open->interval.outer = &t->open[t->open_count - 1]->interval;
	open->interval.depth = t->open_count;
	t->open[t->open_count++] = open;
	t->phase_count += open->plan->is_phase;
	return 0;
}

static int push_on_cpu(struct pem_pass *pass, struct pem_open *open)
{
	struct pem_cpu_intervals *cpu = &pass->intervals.by_cpu[open->interval.begin.cpu];
	struct pem_open *oldest = cpu->first;

	if (cpu->count == PEM_OPEN_NESTED_MAX) {
		while (oldest->next)
			oldest = oldest->next;
		pass->unknown.left_out++;
		if (close_interval(pass, oldest, PEM_INTERVAL_LOST, oldest->interval.begin.time_ns))
			return -ENOMEM;
	}
	open->next = cpu->first;
	cpu->first = open;
	cpu->count++;
	return 0;
}

static int keep(struct pem_pass *pass, struct pem_open *open)
{
	const struct pem_plan *plan = open->plan;
	uint64_t key;
	int rc;

	if (plan->scope == PEM_SCOPE_THREAD) {
		rc = push(pass, open);
		key = plan->group;
	} else if (plan->scope == PEM_SCOPE_CPU) {
		return push_on_cpu(pass, open);
	} else {
		key = pem_pass__key(pass, plan, &open->interval.begin, open->keys);
		rc = put_in_list(pass, open, key);
	}
	if (!rc && (plan->scope == PEM_SCOPE_THREAD ? plan->ends_elsewhere : plan->is_named))
		rc = put_in_names(pass, open, name_key(open->name, key));
	return rc;
}

/* Does the thread have an open interval of the plan's group? */
static bool is_open(const struct pem_life_thread *t, const struct pem_plan *plan)
{
	uint32_t i;

	for (i = 0; t && i < t->open_count; i++)
		if (t->open[i]->interval.group == plan->group)
			return true;
	return false;
}

static int begin(struct pem_pass *pass, const struct pem_plan *plan,
		 const struct pem_record *record)
{
	struct pem_open *open;

	if (plan->is_of_proc && is_open(pass->thread, plan))
		return 0;
	if (!pem_pass__is_placed(pass, plan, record) ||
	    pass->intervals.open_count >= pass->open_max) {
		pass->unknown.intervals++;
		pass->unknown.left_out += pass->intervals.open_count >= pass->open_max;
		return 0;
	}
	open = new_open(pass, record);
	if (!open)
		return -ENOMEM;
	open->plan = plan;
	open->thread = pass->thread;
	open->process = pass->process;
	open->interval.thread = pass->thread ? &pass->thread->thread : NULL;
	open->interval.group = plan->group;
	open->keys = pem_plan__keys(plan, record);
	open->name = pem_plan__name(plan, record);
	open->is_on_descriptor = false;
	open->interval.file = NULL;
	if (plan->call_kinds)
		pem_files__begin(pass, open);
	if (keep(pass, open))
		return -ENOMEM;
	if (plan->system_call.bytes && pass->thread)
		pass->thread->makes_calls = true;
	if (plan->is_phase && pem_phases__begin(pass, open))
		return -ENOMEM;
	pass->around->begun = &open->interval;
	return 0;
}

/* --- matching an end --- */

static bool agrees(const struct pem_open *open, uint32_t group, uint64_t keys, uint64_t name)
{
	return open->interval.group == group && open->keys == keys &&
	       (!name || !open->name || open->name == name);
}

static struct pem_open *find_in_thread(const struct pem_pass *pass, const struct pem_plan *plan,
				       uint64_t keys, uint64_t name)
{
	const struct pem_life_thread *t = pass->thread;
	uint32_t i;

	for (i = t->open_count; i-- > 0;)
		if (agrees(t->open[i], plan->group, keys, name))
			return t->open[i];
	return NULL;
}

/*
 * The last one of another process, by its name; of the last PEM_OPEN_NESTED_MAX ones, so that many
 * of its own process take no longer.
 */
static struct pem_open *find_elsewhere(const struct pem_pass *pass, const struct pem_plan *plan,
				       uint64_t name)
{
	struct pem_open *open;
	unsigned i = 0;
	void **first;

	first = pem_keys__find(&pass->intervals.by_name, name_key(name, plan->group));
	for (open = first ? *first : NULL; open && i < PEM_OPEN_NESTED_MAX;
	     open = open->next_named, i++)
		if (open->process != pass->process && open->plan->group == plan->group &&
		    open->name == name)
			return open;
	return NULL;
}

static struct pem_open *find_in_list(struct pem_open *open, const struct pem_plan *plan,
				     uint64_t keys, uint64_t name)
{
	while (open && !agrees(open, plan->group, keys, name))
		open = open->next;
	return open;
}

/* The last one of a key and name. name 0: the last one that has none. */
static struct pem_open *last_of_name(const struct pem_pass *pass, const struct pem_plan *plan,
				     uint64_t key, uint64_t keys, uint64_t name)
{
	void **first = pem_keys__find(&pass->intervals.by_name, name_key(name, key));
	struct pem_open *open = first ? *first : NULL;

	while (open &&
	       !(open->list == key && open->name == name && agrees(open, plan->group, keys, name)))
		open = open->next_named;
	return open;
}

static struct pem_open *find_by_key(const struct pem_pass *pass, const struct pem_plan *plan,
				    const struct pem_record *record, uint64_t keys, uint64_t name)
{
	uint64_t key = pem_pass__key(pass, plan, record, keys);
	struct pem_open *named, *nameless;
	void **first;

	if (!name || !plan->is_named) {
		first = pem_keys__find(&pass->intervals.by_key, key);
		return find_in_list(first ? *first : NULL, plan, keys, name);
	}
	named = last_of_name(pass, plan, key, keys, name);
	nameless = last_of_name(pass, plan, key, keys, 0);
	if (!named || !nameless)
		return named ? named : nameless;
	return named->interval.number > nameless->interval.number ? named : nameless;
}

static struct pem_open *find(const struct pem_pass *pass, const struct pem_plan *plan,
			     const struct pem_record *record)
{
	uint64_t keys = pem_plan__keys(plan, record), name = pem_plan__name(plan, record);
	struct pem_open *open;

	switch (plan->scope) {
	case PEM_SCOPE_THREAD:
		open = find_in_thread(pass, plan, keys, name);
		return open || !plan->ends_elsewhere ? open : find_elsewhere(pass, plan, name);
	case PEM_SCOPE_CPU:
		return find_in_list(pass->intervals.by_cpu[record->cpu].first, plan, keys, name);
	default:
		return find_by_key(pass, plan, record, keys, name);
	}
}

static int end(struct pem_pass *pass, const struct pem_plan *plan, const struct pem_record *record)
{
	struct pem_open *open =
		pem_pass__is_placed(pass, plan, record) ? find(pass, plan, record) : NULL;

	if (open && !is_doubtful(pass, open))
		return close_interval(pass, open, PEM_INTERVAL_ENDED, record->time_ns);
	pass->around->is_unmatched = 1;
	pass->unknown.ends++;
	if (!open)
		return 0;
	return close_interval(pass, open, PEM_INTERVAL_LOST, open->interval.begin.time_ns);
}

int pem_intervals__record(struct pem_pass *pass, const struct pem_plan *plan,
			  const struct pem_record *record)
{
	if (plan->group == PEM_NONE)
		return 0;
	if (plan->meaning == PEM_MEANS_INTERVAL_BEGIN)
		return begin(pass, plan, record);
	return end(pass, plan, record);
}

/* --- the end --- */

static int finish_list(struct pem_pass *pass, struct pem_open *first)
{
	int rc = 0;

	while (!rc && first) {
		struct pem_open *open = first;

		first = open->next;
		rc = close_interval(pass, open,
				    is_doubtful(pass, open) ? PEM_INTERVAL_LOST : PEM_INTERVAL_OPEN,
				    pass->now_ns);
	}
	return rc;
}

static int finish_thread(struct pem_pass *pass, struct pem_life_thread *t)
{
	int rc;

	pem_states__doubt(pass, t);
	rc = pem_intervals__doubt(pass, t);
	while (!rc && t->open_count)
		rc = close_interval(pass, t->open[t->open_count - 1], PEM_INTERVAL_OPEN,
				    pass->now_ns);
	return rc;
}

static int by_begin(const void *a, const void *b)
{
	const struct pem_open *x = *(struct pem_open *const *)a;
	const struct pem_open *y = *(struct pem_open *const *)b;

	return (x->interval.number > y->interval.number) -
	       (x->interval.number < y->interval.number);
}

/* Close all in lists by key, in the order of their begins: the lists have none among them. */
static int finish_lists(struct pem_pass *pass)
{
	const struct pem_keys *lists = &pass->intervals.by_key;
	struct pem_open **all, *open;
	size_t i, count = 0;
	int rc = 0;

	all = calloc(pass->intervals.open_count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (i = 0; i < lists->size; i++)
		for (open = lists->entries[i].first; open; open = open->next)
			all[count++] = open;
	qsort(all, count, sizeof(*all), by_begin);
	for (i = 0; !rc && i < count; i++)
		rc = close_interval(pass, all[i],
				    is_doubtful(pass, all[i]) ? PEM_INTERVAL_LOST
							      : PEM_INTERVAL_OPEN,
				    pass->now_ns);
	free(all);
	return rc;
}

int pem_intervals__finish(struct pem_pass *pass)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < pass->life.thread_count; i++)
		rc = finish_thread(pass, pass->life.threads[i]);
	for (i = 0; !rc && i < PEM_CPUS_MAX; i++)
		rc = finish_list(pass, pass->intervals.by_cpu[i].first);
	return rc ? rc : finish_lists(pass);
}

void pem_open_intervals__free(struct pem_pass *pass)
{
	struct pem_open_intervals *all = &pass->intervals;
	struct pem_open *open;

	while (all->allocated) {
		open = all->allocated;
		all->allocated = open->allocated;
		free(open->data);
		free(open);
	}
	pem_keys__free(&all->by_key);
	pem_keys__free(&all->by_name);
	free(all->by_cpu);
}
