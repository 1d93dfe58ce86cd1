/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * states.c - what threads do: who runs on which CPU, who waits for one, who sleeps
 *
 * A recording of some processes has the switches of their threads, to them and from them. Of other
 * threads it has a switch now and then, so nothing is said of them.
 *
 * Only records of the kernel tell. A CPU's own records say all of its switches, so a running thread
 * runs until the CPU's next switch, or until the CPU lost records. A thread that does not run may
 * have been put on any CPU, so what is known of it ends with the first loss of any CPU.
 */
#include "pass.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * A trace that lost records more often than this is told as one that lost records all the time from
 * then on.
 */
#define WINDOWS_MAX 65536u

/* The first loss of the kernel that began at a clock or later; UINT64_MAX: there is none. */
static uint64_t first_loss(const struct pem_pass *pass, uint64_t clock)
{
	size_t low = 0, high = pass->kernel_window_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (pass->kernel_windows[middle] < clock)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < pass->kernel_window_count)
		return pass->kernel_windows[low];
	return low == WINDOWS_MAX ? clock : UINT64_MAX;
}

/*
 * Until when the thread surely was in its state, if it does not run: until a CPU loses records. One
 * that lost some as the thread entered the state may have run it at once.
 */
static uint64_t sure_until(const struct pem_pass *pass, const struct pem_life_thread *t)
{
	uint64_t loss;

	if (!pass->kernel_window_count)
		return pass->now_clock;
	loss = t->entered_in_loss ? t->since_clock : first_loss(pass, t->since_clock);
	return loss < pass->now_clock ? loss : pass->now_clock;
}

static const struct pem_interval *innermost(const struct pem_life_thread *t)
{
	return t->open_count ? &t->open[t->open_count - 1]->interval : NULL;
}

/* What a thread does, also one that has ended and leaves. */
static enum pem_thread_state does(const struct pem_life_thread *t)
{
	return t->thread.state == PEM_THREAD_ENDED ? t->leaving : t->thread.state;
}

/* Say what the thread did until a clock. */
static int say(struct pem_pass *pass, struct pem_life_thread *t, uint64_t end_clock)
{
	struct pem_span span = {
		.thread = &t->thread,
		.state = does(t),
		.cpu = t->thread.cpu,
		.begin_ns = t->thread.state == PEM_THREAD_ENDED ? pem_pass__ns(pass, t->since_clock)
								: t->thread.since_ns,
		.waker = t->waker ? &t->waker->thread : NULL,
		.woken_by = t->woken_by,
	};

	if (span.state == PEM_THREAD_UNKNOWN)
		return 0;
	if (!t->process || t->process->has_unseen_switches ||
	    t->since_clock < t->process->observed_clock)
		return 0;
	/* Behind a loss another sleep may have been woken. */
	if (span.state != PEM_THREAD_BLOCKED || end_clock < pass->now_clock) {
		span.waker = NULL;
		span.woken_by = PEM_WOKEN_UNKNOWN;
	}
	if (end_clock < t->since_clock)
		return 0;
	span.end_ns = pem_pass__ns(pass, end_clock);
	span.interval = innermost(t);
	if (t->is_told_why) {
		span.waits_on = t->waits_on;
		span.holder = t->holder ? &t->holder->thread : NULL;
	}
	if (pem_path__add(pass, t, &span))
		return -ENOMEM;
	return pem_pass__add_span(pass, &span);
}

/* The thread leaves its state at the record's time. */
static int leave(struct pem_pass *pass, struct pem_life_thread *t)
{
	return say(pass, t, does(t) == PEM_THREAD_RUNNING ? pass->now_clock : sure_until(pass, t));
}

static void enter(struct pem_pass *pass, struct pem_life_thread *t, enum pem_thread_state state)
{
	t->thread.state = state;
	t->thread.since_ns = pass->now_ns;
	t->since_clock = pass->now_clock;
	t->entered_in_loss = pass->kernel_loss > pass->now_clock;
	t->is_ready = t->is_told_why = false;
}

/* The ended thread goes on to leave. */
static void go_on(const struct pem_pass *pass, struct pem_life_thread *t,
		  enum pem_thread_state leaving)
{
	t->leaving = leaving;
	t->since_clock = pass->now_clock;
	t->entered_in_loss = pass->kernel_loss > pass->now_clock;
}

/*
 * A thread that ran or waited for a CPU as the recorder looked: no switch of it was since, unless
 * one was lost. So the next one tells which it did.
 */
static void settle(struct pem_pass *pass, struct pem_life_thread *t, enum pem_thread_state state)
{
	if (t->is_ready && first_loss(pass, t->since_clock) >= pass->now_clock)
		t->thread.state = state;
	t->is_ready = false;
}

/* What the thread has begun is in doubt: it was surely open until a clock, and a loss ended later.
 */
static void doubt(struct pem_life_thread *t, uint64_t sure, uint64_t end)
{
	/* Of several losses that its intervals were not checked for, the first one counts. */
	if (!t->is_doubtful)
		t->kernel_sure = sure;
	t->is_doubtful = true;
	if (end > t->kernel_loss)
		t->kernel_loss = end;
}

/* Is the thread known to run, since its CPU's last switch? */
static bool runs(const struct pem_pass *pass, const struct pem_life_thread *t)
{
	return t->thread.cpu < PEM_CPUS_MAX && pass->cpus[t->thread.cpu].thread == t;
}

void pem_states__doubt(const struct pem_pass *pass, struct pem_life_thread *t)
{
	if (pass->kernel_loss <= t->kernel_clock || runs(pass, t))
		return;
	doubt(t, t->kernel_clock, pass->kernel_loss);
}

static void forget_waker(struct pem_pass *pass, struct pem_life_thread *t)
{
	pem_path__forget_wake(pass, t);
	t->waker = NULL;
	t->woken_by = PEM_WOKEN_UNKNOWN;
}

/* The thread gets a CPU. */
static int run_on(struct pem_pass *pass, struct pem_life_thread *t, uint32_t cpu)
{
	int rc = 0;

	/* It was not to be seen on its CPU for a time: what began before is in doubt. */
	pem_states__doubt(pass, t);
	t->thread.cpu = cpu;
	/* A thread that has ended runs on to leave for good. */
	if (t->thread.state == PEM_THREAD_ENDED) {
		rc = leave(pass, t);
		go_on(pass, t, PEM_THREAD_RUNNING);
		return rc ? rc : pem_path__queue(pass, t);
	}
	settle(pass, t, PEM_THREAD_RUNNABLE);
	/*
	 * A wake-up was not recorded: leave_unseen() says when. How long the thread slept and how
	 * long it waited for a CPU is unknown then.
	 */
	if (t->thread.state == PEM_THREAD_BLOCKED && t->tells_wakes &&
	    sure_until(pass, t) == pass->now_clock)
		t->thread.state = PEM_THREAD_UNKNOWN;
	if (t->thread.state != PEM_THREAD_RUNNING)
		rc = leave(pass, t);
	enter(pass, t, PEM_THREAD_RUNNING);
	forget_waker(pass, t);
	t->kernel_clock = pass->now_clock;
	t->is_seen = true;
	return rc;
}

static int run_off(struct pem_pass *pass, const struct pem_plan *plan,
		   const struct pem_record *record, struct pem_life_thread *t)
{
	struct pem_running *running = &pass->cpus[record->cpu];
	bool was_found = t->is_ready;
	uint32_t state = (uint32_t)pem_number__load(plan->state, record->data);
	bool is_preempted = plan->state.bytes && (!state || state == PEM_NO_SWITCH);
	int rc = 0;

	t->kernel_clock = pass->now_clock;
	t->thread.cpu = record->cpu;
	if (t->thread.state == PEM_THREAD_ENDED) {
		if (runs(pass, t))
			rc = pem_path__run(pass, t);
		if (!rc)
			rc = leave(pass, t);
		go_on(pass, t, is_preempted ? PEM_THREAD_RUNNABLE : PEM_THREAD_UNKNOWN);
		return rc;
	}
	settle(pass, t, PEM_THREAD_RUNNING);
	if ((running->is_known && running->thread == t) || was_found)
		rc = say(pass, t, pass->now_clock);
	forget_waker(pass, t);
	if (!plan->state.bytes)
		enter(pass, t, PEM_THREAD_UNKNOWN);
	else
		enter(pass, t, is_preempted ? PEM_THREAD_RUNNABLE : PEM_THREAD_BLOCKED);
	return rc;
}

/*
 * Does a thread of this number run on, after exec gave it the number of its process? The kernel
 * reports no switch then.
 */
static bool is_renamed(const struct pem_life_thread *t, uint32_t pid, uint32_t tid)
{
	return t->process && t->process->process.pid == pid && tid == pid && t->thread.tid != tid;
}

/*
 * The thread left its CPU, and no switch was recorded, though none was lost. Kernels of some
 * virtual machines run no tracing program while a thread of process 1 runs. So the switches of its
 * process are not all recorded.
 */
static void leave_unseen(struct pem_pass *pass, struct pem_life_thread *t)
{
	if (t->process && t->process->observed_clock <= t->since_clock)
		t->process->has_unseen_switches = true;
	enter(pass, t, PEM_THREAD_UNKNOWN);
}

int pem_states__switch(struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record)
{
	uint32_t previous = (uint32_t)pem_number__load(plan->previous_thread, record->data);
	uint32_t pid = (uint32_t)pem_number__load(plan->process, record->data);
	uint32_t tid = (uint32_t)pem_number__load(plan->thread, record->data);
	struct pem_running *running = &pass->cpus[record->cpu];
	struct pem_life_thread *t = running->thread;
	int rc = 0;

	if (!previous && t && is_renamed(t, pid, tid)) {
		previous = t->thread.tid;
	} else if (previous) {
		t = pem_life__thread(pass, record->pid, previous);
		if (!t)
			return -ENOMEM;
	}
	if (previous)
		rc = run_off(pass, plan, record, t);
	t = running->thread;
	if (t && t->thread.tid != previous && t->thread.state == PEM_THREAD_RUNNING)
		leave_unseen(pass, t);
	else if (t && t->thread.tid != previous)
		t->leaving = PEM_THREAD_UNKNOWN;
	running->thread = NULL;
	running->is_known = true;
	running->since_clock = pass->now_clock;
	if (rc || !tid)
		return rc;
	t = pem_life__thread(pass, pid, tid);
	if (!t)
		return -ENOMEM;
	rc = run_on(pass, t, record->cpu);
	running->thread = t;
	return rc;
}

/* Does the end of a thread wake the other one: in its process, or in the one that started that? */
static bool waits_for_end(const struct pem_life_thread *sleeper,
			  const struct pem_life_thread *ended)
{
	return sleeper->process && ended->process &&
	       (sleeper->process == ended->process || sleeper->process == ended->process->parent);
}

/*
 * Who wakes a thread, if the record does not tell interrupts. A thread that makes system calls, and
 * is in none, does not: an interrupt does that came while it ran. An ended thread is in none
 * either, but its end wakes who waits for it.
 */
static struct pem_life_thread *waker_of(struct pem_life_thread *t,
					const struct pem_life_thread *sleeper)
{
	uint32_t i = t ? t->open_count : 0;

	if (t && t->thread.state == PEM_THREAD_ENDED)
		return waits_for_end(sleeper, t) ? t : NULL;
	while (i-- > 0)
		if (t->open[i]->plan->system_call.bytes)
			return t;
	return t && t->makes_calls ? NULL : t;
}

/* Note which thread or interrupt wakes the sleeper. Only its first record since it blocked counts.
 */
static int note_waker(struct pem_pass *pass, const struct pem_plan *plan,
		      const struct pem_record *record, struct pem_life_thread *sleeper)
{
	uint64_t interrupt = PEM_INTERRUPT_UNKNOWN;

	if (plan->interrupt.bytes)
		interrupt = pem_number__load(plan->interrupt, record->data);
	if (!plan->interrupt.bytes)
		sleeper->waker = waker_of(pass->thread, sleeper);
	else if (interrupt == 0)
		sleeper->waker = pass->thread;
	if (sleeper->waker)
		sleeper->woken_by = PEM_WOKEN_THREAD;
	else if (interrupt == 0)
		sleeper->woken_by = PEM_WOKEN_OUTSIDE;
	else if (interrupt != PEM_INTERRUPT_UNKNOWN)
		sleeper->woken_by = PEM_WOKEN_INTERRUPT;
	else if (plan->interrupt.bytes)
		sleeper->woken_by = PEM_WOKEN_INTERRUPT_OR_FAULT;
	if (!sleeper->waker || !runs(pass, sleeper->waker))
		return 0;
	return pem_path__wake(pass, sleeper->waker, sleeper);
}

int pem_states__wake(struct pem_pass *pass, const struct pem_plan *plan,
		     const struct pem_record *record)
{
	uint32_t tid = (uint32_t)pem_number__load(plan->thread, record->data);
	struct pem_life_thread *t;
	bool is_known;
	int rc;

	if (!tid)
		return 0;
	t = pem_life__thread(pass, 0, tid);
	if (!t)
		return -ENOMEM;
	if (plan->meaning == PEM_MEANS_THREAD_WAKING) {
		if (t->thread.state != PEM_THREAD_BLOCKED || t->woken_by != PEM_WOKEN_UNKNOWN)
			return 0;
		return note_waker(pass, plan, record, t);
	}
	/*
	 * A thread that is about to sleep can be woken while it still runs. So only a thread that
	 * is known to sleep waits for a CPU from here on.
	 */
	if (t->thread.state != PEM_THREAD_BLOCKED)
		return 0;
	t->tells_wakes = true;
	is_known = sure_until(pass, t) == pass->now_clock;
	rc = leave(pass, t);
	enter(pass, t, is_known ? PEM_THREAD_RUNNABLE : PEM_THREAD_UNKNOWN);
	return rc;
}

/* Keep what a thread that sleeps waits for. */
static int note_reason(struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record, struct pem_life_thread *t)
{
	uint32_t holder = (uint32_t)pem_number__load(plan->holder, record->data);
	const char *object =
		plan->name < 0 ? NULL : pem_record__string(record, (unsigned)plan->name);

	free(t->waits_on);
	t->waits_on = object && *object ? strdup(object) : NULL;
	t->holder = holder ? pem_life__thread(pass, record->pid, holder) : NULL;
	t->is_told_why = true;
	return (holder && !t->holder) || (object && *object && !t->waits_on) ? -ENOMEM : 0;
}

int pem_states__found(struct pem_pass *pass, const struct pem_plan *plan,
		      const struct pem_record *record)
{
	struct pem_life_thread *t = pass->thread;
	bool sleeps = pem_number__load(plan->state, record->data) != 0;

	if (!t || t->thread.state == PEM_THREAD_ENDED)
		return 0;
	/* The recorder looks at threads that it observes. */
	if (t->process && t->process->observed_clock > record->clock)
		t->process->observed_clock = record->clock;
	t->kernel_clock = record->clock;
	/* Switches that were recorded tell more. */
	if (t->thread.state == PEM_THREAD_UNKNOWN && !t->is_ready) {
		enter(pass, t, sleeps ? PEM_THREAD_BLOCKED : PEM_THREAD_UNKNOWN);
		t->is_ready = !sleeps;
	}
	if (!sleeps || t->thread.state != PEM_THREAD_BLOCKED)
		return 0;
	return note_reason(pass, plan, record, t);
}

static int keep_window(struct pem_pass *pass, uint64_t begin)
{
	size_t i, n = pass->kernel_window_count;

	if (n == WINDOWS_MAX)
		return 0;
	if (pem_grow(&pass->kernel_windows, sizeof(*pass->kernel_windows), n + 1,
		     &pass->kernel_window_capacity))
		return -ENOMEM;
	for (i = n; i > 0 && pass->kernel_windows[i - 1] > begin; i--)
		pass->kernel_windows[i] = pass->kernel_windows[i - 1];
	pass->kernel_windows[i] = begin;
	pass->kernel_window_count++;
	return 0;
}

int pem_states__lose(struct pem_pass *pass, uint32_t cpu, uint64_t begin, uint64_t end)
{
	struct pem_running *running = &pass->cpus[cpu];
	struct pem_life_thread *t = running->thread;
	int rc = keep_window(pass, begin);

	if (end > pass->kernel_loss)
		pass->kernel_loss = end;
	if (end > running->loss)
		running->loss = end;
	if (rc || !running->is_known)
		return rc;
	running->is_known = false;
	running->thread = NULL;
	if (!t)
		return 0;
	rc = say(pass, t, begin);
	t->leaving = PEM_THREAD_UNKNOWN;
	if (t->thread.state == PEM_THREAD_ENDED)
		return rc;
	doubt(t, begin, end);
	t->kernel_clock = begin;
	t->thread.state = PEM_THREAD_UNKNOWN;
	t->thread.since_ns = pem_pass__ns(pass, begin);
	t->since_clock = begin;
	return rc;
}

int pem_states__start(struct pem_pass *pass, struct pem_life_thread *parent,
		      struct pem_life_thread *t)
{
	enter(pass, t, PEM_THREAD_RUNNABLE);
	return parent && runs(pass, parent) ? pem_path__start(pass, parent, t) : 0;
}

int pem_states__end(struct pem_pass *pass, struct pem_life_thread *t)
{
	int rc;

	settle(pass, t, PEM_THREAD_RUNNING);
	rc = leave(pass, t);
	/* The kernel takes its memory and files apart before it leaves its CPU. */
	t->leaving = t->thread.state == PEM_THREAD_RUNNING && runs(pass, t) ? PEM_THREAD_RUNNING
									    : PEM_THREAD_UNKNOWN;
	enter(pass, t, PEM_THREAD_ENDED);
	return rc;
}

int pem_states__pass_on(struct pem_pass *pass, struct pem_life_thread *from,
			struct pem_life_thread *to, uint32_t cpu)
{
	struct pem_running *running = cpu < PEM_CPUS_MAX ? &pass->cpus[cpu] : NULL;
	struct pem_life_thread *now = running && running->is_known ? running->thread : NULL;
	int rc;

	/*
	 * The switch to the new number said that 'from' left its CPU. It did not, but after another
	 * switch it is not known what it did since.
	 */
	if (now && now != from && from->thread.state == PEM_THREAD_RUNNABLE) {
		from->thread.state = running->since_clock == from->since_clock ? PEM_THREAD_RUNNING
									       : PEM_THREAD_UNKNOWN;
		from->thread.cpu = cpu;
	}
	rc = leave(pass, from);
	to->critical = from->critical;
	from->critical = NULL;
	to->kernel_clock = pass->now_clock;
	if (now) {
		enter(pass, to, PEM_THREAD_RUNNING);
		to->thread.cpu = cpu;
		running->thread = to;
		running->since_clock = pass->now_clock;
	}
	from->thread.state = PEM_THREAD_UNKNOWN;
	return rc;
}

int pem_states__finish(struct pem_pass *pass)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < pass->life.thread_count; i++) {
		struct pem_life_thread *t = pass->life.threads[i];

		if (t->thread.state != PEM_THREAD_ENDED)
			rc = leave(pass, t);
	}
	return rc;
}

void pem_states__free(struct pem_pass *pass)
{
	free(pass->kernel_windows);
	free(pass->cpus);
}
