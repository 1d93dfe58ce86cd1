/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pass.c - one record after the other, through all parts of the context stage (contract:
 * pem/context.h)
 */
#include "pass.h"
#include "grow.h"
#include "sized.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>

#define OPEN_MAX 4000000u

/* --- making and freeing --- */

int pem_pass__observe(struct pem_pass *pass, uint32_t command_pid, bool is_whole_machine)
{
	struct pem_life_process *p;

	pass->is_whole_machine = is_whole_machine;
	if (!command_pid)
		return 0;
	p = pem_life__process(pass, command_pid);
	if (p)
		p->observed_clock = 0;
	return p ? 0 : -ENOMEM;
}

int pem_pass__make_parts(struct pem_pass *pass, const struct pem_event_table *table,
			 const struct pem_model *model, size_t streams)
{
	int rc = pem_plans__build(&pass->plans, table, model);

	if (rc)
		return rc;
	pass->streams = calloc(streams + 1, sizeof(*pass->streams));
	pass->cpus = calloc(PEM_CPUS_MAX, sizeof(*pass->cpus));
	pass->intervals.by_cpu = calloc(PEM_CPUS_MAX, sizeof(*pass->intervals.by_cpu));
	return pass->streams && pass->cpus && pass->intervals.by_cpu ? 0 : -ENOMEM;
}

int pem_pass__allocate(struct pem_pass **result, struct pem_pass_options *given,
		       const struct pem_pass_options *options, struct pem_error *error)
{
	struct pem_pass *pass;
	int rc = 0;

	*given = (struct pem_pass_options){.size = sizeof(*given)};
	if (options)
		rc = PEM_READ_SIZED(pem_pass_options, given, options, open_max, error);
	if (rc)
		return rc;
	pass = calloc(1, sizeof(*pass));
	if (!pass)
		return -ENOMEM;
	pass->without = given->without;
	pass->has_paths = given->has_paths != 0;
	pass->open_max = given->open_max ? given->open_max : OPEN_MAX;
	*result = pass;
	return 0;
}

struct pem_pass *pem_pass__new(struct pem_trace *trace, const struct pem_pass_options *options,
			       struct pem_error *error)
{
	const struct pem_trace_info *info = pem_trace__info(trace);
	struct pem_pass_options given;
	struct pem_pass *pass = NULL;
	int rc = trace ? 0 : pem_error__lacks(error, "trace");

	if (!rc)
		rc = pem_pass__allocate(&pass, &given, options, error);
	if (!rc) {
		pass->trace = trace;
		pass->loss_count = pem_trace__known_losses(trace);
		rc = pem_pass__make_parts(pass, pem_trace__events(trace), pem_trace__model(trace),
					  pem_trace__stream_count(trace));
	}
	if (!rc)
		rc = pem_trace__rewind(trace);
	if (!rc)
		rc = pem_pass__observe(pass, info->command_pid, info->machine_cpu_ns != 0);
	if (!rc)
		return pass;
	pem_pass__free(pass);
	if (rc == -ENOMEM)
		pem_error__set(error, rc, "no memory for a pass over the trace");
	errno = -rc;
	return NULL;
}

void pem_pass__free(struct pem_pass *pass)
{
	if (!pass)
		return;
	pem_open_intervals__free(pass);
	pem_phases__free(pass);
	pem_messages__free(&pass->messages);
	pem_blocks__free(&pass->blocks);
	pem_files__free(&pass->files);
	pem_states__free(pass);
	pem_path__free(pass);
	pem_life__free(&pass->life);
	pem_plans__free(&pass->plans);
	pem_event_table__free(&pass->live.events);
	pem_context_table__free(pass->live.names);
	free(pass->streams);
	free(pass->ended);
	free(pass->spans);
	free(pass);
}

/* --- what the parts share --- */

uint64_t pem_pass__ns(const struct pem_pass *pass, uint64_t clock)
{
	return pass->trace ? pem_trace__ns(pass->trace, clock) : pem_pass__live_ns(pass, clock);
}

uint64_t pem_pass__where(const struct pem_pass *pass, const struct pem_plan *plan,
			 const struct pem_record *record)
{
	switch (plan->scope) {
	case PEM_SCOPE_THREAD:
		return pass->thread->thread.number;
	case PEM_SCOPE_PROCESS:
		return pass->process->process.number;
	case PEM_SCOPE_CPU:
		return record->cpu;
	default:
		return 0;
	}
}

uint64_t pem_pass__key(const struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record, uint64_t keys)
{
	return pem_mix2(keys, pem_pass__where(pass, plan, record) << 32 | plan->group) | 1;
}

uint64_t pem_pass__loss(const struct pem_pass *pass, enum pem_scope scope, uint32_t source,
			const struct pem_life_process *process,
			const struct pem_life_thread *thread, uint32_t cpu)
{
	bool is_kernel = source == PEM_PACKET_KERNEL || source == PEM_PACKET_KERNEL_THREAD;

	switch (scope) {
	case PEM_SCOPE_THREAD:
		return is_kernel ? thread->kernel_loss : thread->user_loss;
	case PEM_SCOPE_PROCESS:
		return is_kernel ? pass->kernel_loss : process->user_loss;
	case PEM_SCOPE_CPU:
		return cpu < PEM_CPUS_MAX ? pass->cpus[cpu].loss : pass->kernel_loss;
	default:
		return is_kernel ? pass->kernel_loss : pass->user_loss;
	}
}

int pem_pass__end_interval(struct pem_pass *pass, struct pem_open *open,
			   enum pem_interval_outcome outcome, uint64_t end_ns)
{
	if (PEM_UNLIKELY(pass->ended_count == pass->ended_capacity) &&
	    pem_grow(&pass->ended, sizeof(*pass->ended), pass->ended_count + 1,
		     &pass->ended_capacity))
		return -ENOMEM;
	pass->ended[pass->ended_count++] = (struct pem_ended){
		.interval = &open->interval, .outcome = outcome, .end_ns = end_ns};
	return 0;
}

int pem_pass__add_span(struct pem_pass *pass, const struct pem_span *span)
{
	if (pem_grow(&pass->spans, sizeof(*pass->spans), pass->span_count + 1,
		     &pass->span_capacity))
		return -ENOMEM;
	pass->spans[pass->span_count++] = *span;
	return 0;
}

/* --- losses --- */

static int lose_of_program(struct pem_pass *pass, const struct pem_loss *loss)
{
	struct pem_life_process *p = loss->pid ? pem_life__process(pass, loss->pid) : NULL;
	struct pem_life_thread *t = NULL;

	if (loss->end_clock > pass->user_loss)
		pass->user_loss = loss->end_clock;
	if (!p)
		return loss->pid ? -ENOMEM : 0;
	if (loss->end_clock > p->user_loss)
		p->user_loss = loss->end_clock;
	if (!loss->tid)
		return 0;
	t = pem_life__thread(pass, loss->pid, loss->tid);
	if (!t)
		return -ENOMEM;
	if (!t->is_doubtful)
		t->user_sure = loss->begin_clock;
	t->is_doubtful = true;
	if (loss->end_clock > t->user_loss)
		t->user_loss = loss->end_clock;
	return 0;
}

/* Learn of the windows that begin until now. */
static int take_losses(struct pem_pass *pass)
{
	const struct pem_loss *losses;
	size_t count = pem_trace__losses(pass->trace, &losses);
	int rc = 0;

	for (; !rc && pass->losses_seen < count; pass->losses_seen++) {
		const struct pem_loss *loss = &losses[pass->losses_seen];

		pass->unknown.losses++;
		if (loss->source == PEM_PACKET_USER)
			rc = lose_of_program(pass, loss);
		else if (loss->source != PEM_PACKET_COUNTER && loss->cpu < PEM_CPUS_MAX)
			rc = pem_states__lose(pass, loss->cpu, loss->begin_clock, loss->end_clock);
	}
	return rc;
}

/* --- one record --- */

/* Find the record's process and thread. */
static int locate(struct pem_pass *pass, const struct pem_record *record)
{
	struct pem_stream_cache *cache = &pass->streams[record->stream];

	if (PEM_UNLIKELY(cache->pid != record->pid || cache->tid != record->tid ||
			 cache->reuses != pass->life.reuses)) {
		cache->pid = record->pid;
		cache->tid = record->tid;
		cache->thread = NULL;
		cache->process = NULL;
		if (record->tid) {
			cache->thread = pem_life__thread(pass, record->pid, record->tid);
			if (!cache->thread)
				return -ENOMEM;
			cache->process = cache->thread->process;
		} else if (record->pid) {
			cache->process = pem_life__process(pass, record->pid);
			if (!cache->process)
				return -ENOMEM;
		}
		/* Making them may have been a reuse. */
		cache->reuses = pass->life.reuses;
	}
	pass->thread = cache->thread;
	pass->process = cache->process;
	return 0;
}

/* Forget what losses have made doubtful of what the thread has begun. */
static int check_thread(struct pem_pass *pass, const struct pem_plan *plan,
			const struct pem_record *record)
{
	struct pem_life_thread *t = pass->thread;

	t->is_seen = true;
	if (plan->shows_observed && record->source == PEM_PACKET_KERNEL && t->process &&
	    t->process->observed_clock == UINT64_MAX)
		t->process->observed_clock = record->clock;
	if (PEM_UNLIKELY(pass->kernel_loss)) {
		pem_states__doubt(pass, t);
		if (record->source == PEM_PACKET_KERNEL)
			t->kernel_clock = record->clock;
	}
	if (PEM_LIKELY(!t->is_doubtful))
		return 0;
	t->is_doubtful = false;
	return pem_intervals__doubt(pass, t);
}

static int take_record(struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record)
{
	switch (plan->meaning) {
	case PEM_MEANS_SETS_THREAD:
		/* Only the kernel's own streams say all switches of their CPUs. */
		if (record->source != PEM_PACKET_KERNEL || record->cpu >= PEM_CPUS_MAX)
			return 0;
		return pem_states__switch(pass, plan, record);
	case PEM_MEANS_THREAD_WAKING:
	case PEM_MEANS_THREAD_RUNNABLE:
		return pem_states__wake(pass, plan, record);
	case PEM_MEANS_THREAD_STATE:
		return pem_states__found(pass, plan, record);
	case PEM_MEANS_THREAD_START:
	case PEM_MEANS_THREAD_END:
	case PEM_MEANS_PROCESS_NAME:
	case PEM_MEANS_THREAD_NAME:
	case PEM_MEANS_PROCESS_ARGUMENTS:
		return pem_life__learn(pass, plan, record);
	case PEM_MEANS_DESCRIPTOR_NAME:
		pem_files__learn(pass, plan, record);
		return 0;
	case PEM_MEANS_CALL_PATH:
		pem_files__learn_path(pass, plan, record);
		return 0;
	case PEM_MEANS_INTERVAL_BEGIN:
	case PEM_MEANS_INTERVAL_END:
		return pass->without & PEM_PASS_INTERVALS
			       ? 0
			       : pem_intervals__record(pass, plan, record);
	case PEM_MEANS_ALLOCATION:
	case PEM_MEANS_RELEASE:
	case PEM_MEANS_ACCESS:
		return pass->without & PEM_PASS_BLOCKS ? 0 : pem_blocks__record(pass, plan, record);
	case PEM_MEANS_SEND:
	case PEM_MEANS_RECEIVE:
		return pass->without & PEM_PASS_MESSAGES ? 0
							 : pem_messages__record(pass, plan, record);
	default:
		return 0;
	}
}

static void describe(struct pem_pass *pass, const struct pem_record *record)
{
	struct pem_around *around = pass->around;
	const struct pem_life_thread *t = pass->thread;

	around->process = pass->process ? &pass->process->process : NULL;
	around->thread = t ? &t->thread : NULL;
	around->cpu = record->cpu;
	if (record->cpu == PEM_NO_CPU && t && t->thread.state == PEM_THREAD_RUNNING)
		around->cpu = t->thread.cpu;
	around->interval = t && t->open_count ? &t->open[t->open_count - 1]->interval : NULL;
	around->phase = pass->phases ? pem_phases__of(pass, pass->process, t) : NULL;
	around->ended = pass->ended;
	around->ended_count = pass->ended_count;
	around->spans = pass->spans;
	around->span_count = pass->span_count;
	if (!pass->process)
		return;
	pass->process->last_clock = record->clock;
	pass->process->is_seen |= record->source != PEM_PACKET_COUNTER;
}

int pem_pass__take_record(struct pem_pass *pass, const struct pem_plan *plan,
			  const struct pem_record *record)
{
	int rc;

	pass->now_clock = record->clock;
	pass->now_ns = record->time_ns;
	rc = PEM_UNLIKELY(pass->loss_count && *pass->loss_count != pass->losses_seen)
		     ? take_losses(pass)
		     : 0;
	if (!rc)
		rc = locate(pass, record);
	if (!rc && pass->thread)
		rc = check_thread(pass, plan, record);
	if (!rc)
		rc = take_record(pass, plan, record);
	if (!rc)
		describe(pass, record);
	return rc;
}

int pem_pass__finish(struct pem_pass *pass)
{
	int rc = 0;

	if (pass->finished)
		return 0;
	pass->finished = true;
	if (pass->trace)
		rc = take_losses(pass);
	if (!rc)
		rc = pem_states__finish(pass);
	if (!rc)
		rc = pem_intervals__finish(pass);
	pass->around->ended = pass->ended;
	pass->around->ended_count = pass->ended_count;
	pass->around->spans = pass->spans;
	pass->around->span_count = pass->span_count;
	pem_life__finish(pass);
	return rc;
}

int pem_pass__no_memory(struct pem_error *error)
{
	return pem_error__set(error, -ENOMEM, "no memory to follow what is open in the trace");
}

void pem_pass__begin_record(struct pem_pass *pass, struct pem_around *around)
{
	if (pass->ended_count)
		pem_intervals__release_ended(pass);
	pass->span_count = 0;
	pass->around = around;
	around->is_unmatched = 0;
	around->begun = NULL;
	around->partner = NULL;
	around->block = around->old_block = NULL;
}

/* The next record, in structs of this version. */
static inline int next_whole(struct pem_pass *pass, struct pem_record *record,
			     struct pem_around *around, struct pem_error *error)
{
	const struct pem_plan *plan;
	int rc;

	pem_pass__begin_record(pass, around);
	rc = pem_trace__next(pass->trace, record, error);
	if (PEM_LIKELY(rc == 1)) {
		plan = &pass->plans.entries[pem_trace__event_entry(pass->trace)];
		rc = pem_pass__take_record(pass, plan, record);
		return PEM_LIKELY(!rc) ? 1 : pem_pass__no_memory(error);
	}
	*around = (struct pem_around){.size = sizeof(*around), .cpu = PEM_NO_CPU};
	return rc == 0 && pem_pass__finish(pass) ? pem_pass__no_memory(error) : rc;
}

/* For a caller of another version. */
static int next_resized(struct pem_pass *pass, struct pem_record *record, struct pem_around *around,
			struct pem_error *error)
{
	struct pem_record whole = {.size = sizeof(whole)};
	struct pem_around whole_around = {.size = sizeof(whole_around)};
	int rc;

	if (!pass || !record || !around)
		return pem_error__lacks(error, !pass     ? "pass over a trace"
					       : !record ? "record"
							 : "struct pem_around");
	if (pem_sized__check(record) || pem_sized__check(around))
		return pem_error__set(error, -EINVAL,
				      "the record's or the around's size is not set: set it to "
				      "sizeof");
	rc = next_whole(pass, &whole, &whole_around, error);
	if (rc == 1)
		pem_sized__write(record, 0, &whole, sizeof(whole));
	pem_sized__write(around, 0, &whole_around, sizeof(whole_around));
	return rc;
}

int pem_pass__next(struct pem_pass *pass, struct pem_record *record, struct pem_around *around,
		   struct pem_error *error)
{
	if (PEM_UNLIKELY(!pass || !record || !around || record->size != sizeof(*record) ||
			 around->size != sizeof(*around)))
		return next_resized(pass, record, around, error);
	return next_whole(pass, record, around, error);
}

/* --- what callers ask --- */

size_t pem_pass__process_count(const struct pem_pass *pass)
{
	return pass ? pass->life.process_count : 0;
}

const struct pem_pass_process *pem_pass__process(const struct pem_pass *pass, size_t number)
{
	return number < pem_pass__process_count(pass) ? &pass->life.processes[number]->process
						      : NULL;
}

size_t pem_pass__thread_count(const struct pem_pass *pass)
{
	return pass ? pass->life.thread_count : 0;
}

const struct pem_pass_thread *pem_pass__thread(const struct pem_pass *pass, size_t number)
{
	return number < pem_pass__thread_count(pass) ? &pass->life.threads[number]->thread : NULL;
}

void pem_pass_thread__set_user(const struct pem_pass_thread *thread, void *user)
{
	/* The pass's own threads are writable; only callers see them const. */
	if (thread)
		((struct pem_pass_thread *)(uintptr_t)thread)->user = user;
}

void pem_interval__set_user(const struct pem_interval *interval, unsigned i, uint64_t value)
{
	if (interval)
		((struct pem_interval *)(uintptr_t)interval)->user[i & 1] = value;
}

size_t pem_pass__group_count(const struct pem_pass *pass)
{
	return pass ? pass->plans.group_count : 0;
}

const char *pem_pass__group_name(const struct pem_pass *pass, size_t group)
{
	return group < pem_pass__group_count(pass) ? pass->plans.groups[group] : "";
}

const char *pem_interval__title(const struct pem_interval *interval)
{
	const struct pem_event *event = interval ? interval->begin.event : NULL;
	int field = pem_event__field_by_role(event, PEM_ROLE_NAME);
	const char *text = "", *colon;

	if (!event)
		return "";
	colon = strrchr(event->group, ':');
	if (field >= 0 && event->fields[field].type == PEM_TYPE_STRING)
		text = pem_record__string(&interval->begin, (unsigned)field);
	field = field >= 0 ? -1 : pem_event__field_by_role(event, PEM_ROLE_SYSTEM_CALL);
	if (field >= 0)
		text = pem_field__label(
			&event->fields[field],
			(uint64_t)pem_record__i64(&interval->begin, (unsigned)field));
	if (text && *text)
		return text;
	return colon ? colon + 1 : *event->group ? event->group : event->class_name;
}

void pem_pass__unknown(const struct pem_pass *pass, struct pem_pass_unknown *unknown)
{
	if (pass && !pem_sized__check(unknown))
		pem_sized__write(unknown, 0, &pass->unknown, sizeof(pass->unknown));
}
