/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * life.c - the processes and threads of a trace, each from its start to its end
 *
 * A number names another process or thread when a record starts it anew, or when it comes with
 * another process. Those that ended stay: records may speak of them until their number is used
 * again, and callers hold them until the pass ends.
 *
 * Not here: which thread a kernel's record is of (reader/context.c).
 */
#include "pass.h"
#include "grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void pem_life__free(struct pem_life *life)
{
	size_t i;

	for (i = 0; i < life->process_count; i++) {
		free(life->processes[i]->arguments);
		free(life->processes[i]);
	}
	for (i = 0; i < life->thread_count; i++) {
		free(life->threads[i]->open);
		free(life->threads[i]->waits_on);
		free(life->threads[i]);
	}
	free(life->processes);
	free(life->threads);
	pem_keys__free(&life->by_pid);
	pem_keys__free(&life->by_tid);
}

static void name_process(const struct pem_pass *pass, struct pem_life_process *p)
{
	const char *name = pass->trace ? pem_trace__process_name(pass->trace, p->process.pid)
				       : pem_context_table__name(pass->live.names, p->process.pid);

	if (*name)
		snprintf(p->process.name, sizeof(p->process.name), "%s", name);
}

static void name_thread(const struct pem_pass *pass, struct pem_life_thread *t)
{
	const char *name =
		pass->trace ? pem_trace__thread_name(pass->trace, t->thread.tid)
			    : pem_context_table__thread_name(pass->live.names, t->thread.tid);

	if (*name)
		snprintf(t->thread.name, sizeof(t->thread.name), "%.15s", name);
}

int pem_life__call(struct pem_pass *pass, uint32_t pid, uint32_t tid)
{
	struct pem_life_process *p = pem_life__process(pass, pid);
	struct pem_life_thread *t = tid ? pem_life__thread(pass, pid, tid) : NULL;

	if (!p || (tid && !t))
		return -ENOMEM;
	name_process(pass, p);
	if (t)
		name_thread(pass, t);
	return 0;
}

void pem_life__finish(struct pem_pass *pass)
{
	size_t i;

	/* A process that is gone has the name that it ended with. */
	for (i = 0; i < pass->life.process_count; i++)
		if (pass->life.processes[i]->process.end_ns == PEM_TIME_UNKNOWN &&
		    pem_life__process(pass, pass->life.processes[i]->process.pid) ==
			    pass->life.processes[i])
			name_process(pass, pass->life.processes[i]);
}

static struct pem_life_process *new_process(struct pem_pass *pass, uint32_t pid)
{
	struct pem_life *life = &pass->life;
	struct pem_life_process *p;
	void **at = pem_keys__at(&life->by_pid, pid);

	if (!at || life->process_count >= PEM_NONE ||
	    pem_grow(&life->processes, sizeof(*life->processes), life->process_count + 1,
		     &life->process_capacity))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	life->reuses += *at != NULL;
	p->process.number = (uint32_t)life->process_count;
	p->process.pid = pid;
	p->process.start_ns = p->process.end_ns = PEM_TIME_UNKNOWN;
	p->process.arguments = "";
	p->observed_clock = pass->is_whole_machine ? 0 : UINT64_MAX;
	life->processes[life->process_count++] = p;
	*at = p;
	name_process(pass, p);
	return p;
}

struct pem_life_process *pem_life__process(struct pem_pass *pass, uint32_t pid)
{
	void **at = pem_keys__find(&pass->life.by_pid, pid);

	return at && *at ? *at : new_process(pass, pid);
}

static struct pem_life_thread *new_thread(struct pem_pass *pass, struct pem_life_process *process,
					  uint32_t tid)
{
	struct pem_life *life = &pass->life;
	struct pem_life_thread *t;
	void **at = pem_keys__at(&life->by_tid, tid);

	if (!at || life->thread_count >= PEM_NONE ||
	    pem_grow(&life->threads, sizeof(*life->threads), life->thread_count + 1,
		     &life->thread_capacity))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	life->reuses += *at != NULL;
	t->thread.number = (uint32_t)life->thread_count;
	t->thread.tid = tid;
	t->thread.start_ns = t->thread.end_ns = t->thread.since_ns = PEM_TIME_UNKNOWN;
	t->thread.cpu = PEM_NO_CPU;
	t->process = process;
	t->thread.process = process ? &process->process : NULL;
	if (process)
		process->live_threads++;
	life->threads[life->thread_count++] = t;
	*at = t;
	name_thread(pass, t);
	return t;
}

struct pem_life_thread *pem_life__known(const struct pem_pass *pass, uint32_t tid)
{
	void **at = tid ? pem_keys__find(&pass->life.by_tid, tid) : NULL;

	return at ? *at : NULL;
}

struct pem_life_thread *pem_life__thread(struct pem_pass *pass, uint32_t pid, uint32_t tid)
{
	struct pem_life_thread *t = pem_life__known(pass, tid);
	struct pem_life_process *p = NULL;

	if (t && (!pid || (t->process && t->process->process.pid == pid)))
		return t;
	if (pid) {
		p = pem_life__process(pass, pid);
		if (!p)
			return NULL;
	}
	if (t && !t->process) {
		t->process = p;
		t->thread.process = &p->process;
		p->live_threads++;
		return t;
	}
	return new_thread(pass, p, tid);
}

/* --- arguments --- */

#define ARGUMENTS_BYTES 255u /* as pem_pass_process says */

/* Give a process a copy of arguments. NULL: they are unknown. Without memory they are, too. */
static void set_arguments(struct pem_life_process *p, const char *arguments)
{
	free(p->arguments);
	p->arguments = arguments ? strndup(arguments, ARGUMENTS_BYTES) : NULL;
	p->process.arguments = p->arguments ? p->arguments : "";
}

/* --- starts and ends --- */

/*
 * The process of a thread that starts. A process that starts with it may be known by samplers
 * alone, which may tell of it shortly before. NULL: no memory.
 */
static struct pem_life_process *starting(struct pem_pass *pass, uint32_t pid, bool is_known)
{
	void **at = pem_keys__find(&pass->life.by_pid, pid);
	struct pem_life_process *p = at ? *at : NULL;

	if (is_known)
		return pem_life__process(pass, pid);
	if (p && !p->is_seen && p->process.start_ns == PEM_TIME_UNKNOWN &&
	    p->process.end_ns == PEM_TIME_UNKNOWN)
		return p;
	return new_process(pass, pid);
}

static int start(struct pem_pass *pass, const struct pem_plan *plan,
		 const struct pem_record *record)
{
	uint32_t tid = (uint32_t)pem_number__load(plan->thread, record->data);
	uint32_t pid = plan->process.bytes ? (uint32_t)pem_number__load(plan->process, record->data)
					   : record->pid;
	uint32_t parent = plan->parent.bytes
				  ? (uint32_t)pem_number__load(plan->parent, record->data)
				  : record->pid;
	struct pem_life_thread *t = pem_life__known(pass, tid);
	struct pem_life_process *p, *above;
	struct pem_life_thread *starter;

	if (!tid || !pid)
		return 0;
	/* Several events may tell of one start. */
	if (t && t->process && t->process->process.pid == pid &&
	    t->thread.start_ns != PEM_TIME_UNKNOWN && !t->is_seen)
		return 0;
	p = starting(pass, pid, pid == parent);
	if (!p)
		return -ENOMEM;
	if (pid != parent && parent) {
		above = pem_life__process(pass, parent);
		if (!above)
			return -ENOMEM;
		p->parent = above;
		p->process.parent = &above->process;
		/* The parent raises this event. */
		starter = record->pid == parent ? pem_life__known(pass, record->tid) : NULL;
		if (starter && starter->process == above)
			p->process.starter = &starter->thread;
		p->process.start_ns = record->time_ns;
		/* Until exec it has those of its parent, whose exec may be lost. */
		set_arguments(p, above->arguments_clock >= pass->kernel_loss ? above->arguments
									     : NULL);
		p->arguments_clock = above->arguments_clock;
		/* What an observed process starts is observed. */
		if (above->observed_clock != UINT64_MAX)
			p->observed_clock = record->clock;
	}
	if (!t || t->process != p || p->is_seen || t->thread.start_ns != PEM_TIME_UNKNOWN)
		t = new_thread(pass, p, tid);
	if (!t)
		return -ENOMEM;
	t->thread.start_ns = record->time_ns;
	return record->source == PEM_PACKET_KERNEL ? pem_states__start(pass, pass->thread, t) : 0;
}

/* A thread ends. */
static int end_thread(struct pem_pass *pass, struct pem_life_thread *t)
{
	int rc;

	if (t->thread.state == PEM_THREAD_ENDED)
		return 0;
	rc = pem_states__end(pass, t);
	if (!rc)
		rc = pem_intervals__thread_ends(pass, t);
	t->thread.end_ns = pass->now_ns;
	if (t->process && t->process->live_threads)
		t->process->live_threads--;
	return rc;
}

static int end(struct pem_pass *pass, const struct pem_plan *plan, const struct pem_record *record)
{
	uint32_t tid = plan->thread.bytes ? (uint32_t)pem_number__load(plan->thread, record->data)
					  : record->tid;
	uint32_t pid = plan->process.bytes ? (uint32_t)pem_number__load(plan->process, record->data)
					   : record->pid;
	struct pem_life_thread *t;
	int rc;

	if (!tid)
		return 0;
	t = pem_life__thread(pass, pid, tid);
	if (!t)
		return -ENOMEM;
	if (t->thread.state == PEM_THREAD_ENDED)
		return 0;
	rc = end_thread(pass, t);
	if (!t->process)
		return rc;
	name_process(pass, t->process);
	t->process->process.end_ns = record->time_ns;
	if (!t->process->live_threads)
		pem_phases__process_ends(t->process);
	return rc;
}

/* Of what the thread has begun, forget what losses have made doubtful since its last record. */
static int forget_doubtful(struct pem_pass *pass, struct pem_life_thread *t)
{
	pem_states__doubt(pass, t);
	if (!t->is_doubtful)
		return 0;
	t->is_doubtful = false;
	return pem_intervals__doubt(pass, t);
}

/*
 * A thread that was not the first one of its process has called exec. The kernel ends the others,
 * and gives this one the number of the first. From here on it is a thread of that number, which
 * goes on with what the caller had begun.
 */
static int exec_by_another(struct pem_pass *pass, struct pem_life_process *p, uint32_t caller_tid,
			   uint32_t cpu)
{
	struct pem_life_thread *caller = pem_life__known(pass, caller_tid), *first, *next;
	int rc;

	if (caller_tid == p->process.pid || !caller || caller->process != p ||
	    caller->thread.state == PEM_THREAD_ENDED)
		return 0;
	first = pem_life__known(pass, p->process.pid);
	rc = first && first->process == p ? end_thread(pass, first) : 0;
	if (!rc)
		rc = forget_doubtful(pass, caller);
	if (rc)
		return rc;
	next = new_thread(pass, p, p->process.pid);
	if (!next)
		return -ENOMEM;
	next->thread.start_ns = pass->now_ns;
	next->is_seen = true;
	rc = pem_states__pass_on(pass, caller, next, cpu);
	pem_intervals__pass_on(caller, next);
	pass->thread = next;
	return rc ? rc : end_thread(pass, caller);
}

static int rename_process(struct pem_pass *pass, const struct pem_plan *plan,
			  const struct pem_record *record)
{
	uint32_t pid = plan->process.bytes ? (uint32_t)pem_number__load(plan->process, record->data)
					   : record->pid;
	struct pem_life_process *p;

	if (!pid)
		return 0;
	p = pem_life__process(pass, pid);
	if (!p)
		return -ENOMEM;
	name_process(pass, p);
	/*
	 * The kernel says so at exec. The arguments of the new program come directly before this
	 * record or behind it.
	 */
	if (record->source != PEM_PACKET_KERNEL)
		return 0;
	if (!p->is_told || p->arguments_clock < pass->kernel_loss)
		set_arguments(p, NULL);
	p->is_told = false;
	return exec_by_another(pass, p,
			       (uint32_t)pem_number__load(plan->previous_thread, record->data),
			       record->cpu);
}

static int learn_arguments(struct pem_pass *pass, const struct pem_plan *plan,
			   const struct pem_record *record)
{
	uint32_t pid = (uint32_t)pem_number__load(plan->process, record->data);
	struct pem_life_process *p;

	if (!pid || plan->name < 0 || record->event->fields[plan->name].type != PEM_TYPE_STRING)
		return 0;
	p = pem_life__process(pass, pid);
	if (!p)
		return -ENOMEM;
	set_arguments(p, pem_record__string(record, (unsigned)plan->name));
	p->arguments_clock = record->clock;
	p->is_told = true;
	return 0;
}

static int rename_thread(struct pem_pass *pass, const struct pem_plan *plan,
			 const struct pem_record *record)
{
	uint32_t tid = (uint32_t)pem_number__load(plan->thread, record->data);
	struct pem_life_thread *t;

	if (!tid)
		return 0;
	t = pem_life__thread(pass, 0, tid);
	if (!t)
		return -ENOMEM;
	name_thread(pass, t);
	return 0;
}

int pem_life__learn(struct pem_pass *pass, const struct pem_plan *plan,
		    const struct pem_record *record)
{
	switch (plan->meaning) {
	case PEM_MEANS_THREAD_START:
		return start(pass, plan, record);
	case PEM_MEANS_THREAD_END:
		return end(pass, plan, record);
	case PEM_MEANS_PROCESS_NAME:
		return rename_process(pass, plan, record);
	case PEM_MEANS_THREAD_NAME:
		return rename_thread(pass, plan, record);
	case PEM_MEANS_PROCESS_ARGUMENTS:
		return learn_arguments(pass, plan, record);
	default:
		return 0;
	}
}
