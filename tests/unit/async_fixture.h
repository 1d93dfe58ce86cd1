/* SPDX-License-Identifier: MIT */
/*
 * async_fixture.h - another process that raises ticks when told to, and what an asynchronous
 * callback saw of them
 *
 * Included by the programs async_*.c.
 */
#ifndef ASYNC_FIXTURE_H
#define ASYNC_FIXTURE_H

#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static struct pem_session *session;

/*
 * A process that raises 'a byte's value' ticks for each byte it reads, and answers with one; a byte
 * of 0: one event of Types.
 */
struct raiser {
	pid_t pid;
	int to, from;
};

static inline void raiser_main(uint64_t who, int in, int out)
{
	uint64_t number = 0;
	unsigned char c;
	unsigned i;

	if (pem_process__join(session->directory) < 0)
		_exit(1);
	pem_notify_types_floats(1, 2); /* counted: from here on the session knows this process */
	if (write(out, "", 1) != 1)
		_exit(1);
	while (read(in, &c, 1) == 1) {
		for (i = 0; i < c; i++)
			pem_notify_probe_tick(who, ++number);
		if (!c)
			pem_notify_types_floats(1, 2);
		if (write(out, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static inline struct raiser raiser_start(uint64_t who)
{
	struct raiser r;
	int in[2], out[2];

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	r.pid = fork();
	assert_true(r.pid >= 0);
	if (!r.pid) {
		close(in[1]);
		close(out[0]);
		raiser_main(who, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	r.to = in[1];
	r.from = out[0];
	assert_int_equal(read(r.from, &(char){0}, 1), 1);
	return r;
}

/*
 * This program anew, whose main calls raiser_main_anew for the argument "raise", with a runtime
 * folder: what its environment was at its start is where it is looked for.
 */
static inline struct raiser raiser_start_in(const char *runtime)
{
	struct raiser r;
	int in[2], out[2];

	assert_int_equal(pipe(in) | pipe(out), 0);
	r.pid = fork();
	assert_true(r.pid >= 0);
	if (!r.pid) {
		setenv("PEM_RUNTIME_DIR", runtime, 1);
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", program_invocation_short_name, "raise", NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	r.to = in[1];
	r.from = out[0];
	assert_int_equal(read(r.from, &(char){0}, 1), 1);
	return r;
}

static inline int raiser_main_anew(void)
{
	uint64_t number = 0;
	unsigned char c, i;

	pem_notify_probe_tick(1, 0); /* makes the control file */
	if (write(1, "", 1) != 1)
		return 1;
	while (read(0, &c, 1) == 1) {
		for (i = 0; i < c; i++)
			pem_notify_probe_tick(1, ++number);
		if (write(1, &c, 1) != 1)
			return 1;
	}
	return 0;
}

static inline void raise_ticks(struct raiser *r, unsigned count)
{
	unsigned char c;

	for (; count; count -= c) {
		c = count < 200 ? (unsigned char)count : 200;
		assert_int_equal(write(r->to, &c, 1), 1);
		assert_int_equal(read(r->from, &c, 1), 1);
	}
}

static inline void raiser_end(struct raiser *r)
{
	kill(r->pid, SIGKILL); /* later ones have its pipe open, too */
	close(r->to);
	close(r->from);
	waitpid(r->pid, NULL, 0);
}

#define SEEN_MAX 400000u

/* What the callback saw. */
static struct seen {
	uint64_t count;
	uint64_t disorder; /* records after one of a later clock, which is what 'late' counts */
	/* the latest so far: late records may come in a row, in order among themselves */
	uint64_t last_clock;
	uint64_t next_number[8]; /* by raiser */
	uint64_t gaps;
	uint32_t pid, tid, thread;
	struct pem_callback *self;
	void (*also)(struct seen *seen);
} seen;

static inline void also_do(void (*function)(struct seen *seen))
{
	__atomic_store_n(&seen.also, function, __ATOMIC_RELEASE);
}

/* A word that one thread sets and another waits for. */
static inline void put(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline void wait_until(int *word, int value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		usleep(100);
}

/* A function that does not return before 'leave' is 1; 'inside': it was called. */
static int inside, leave;

static inline void stay(struct seen *s)
{
	(void)s;
	put(&inside, 1);
	wait_until(&leave, 1);
}

static inline void on_tick(const struct pem_record *record, void *arg)
{
	struct seen *s = arg;
	uint64_t who = pem_record__u64(record, 0) % 8, number = pem_record__u64(record, 1);
	void (*also)(struct seen * seen);

	s->disorder += record->clock < s->last_clock;
	if (record->clock > s->last_clock)
		s->last_clock = record->clock;
	s->gaps += number != s->next_number[who] + 1;
	s->next_number[who] = number;
	s->pid = record->pid;
	s->tid = record->tid;
	s->thread = (uint32_t)gettid();
	also = __atomic_load_n(&s->also, __ATOMIC_ACQUIRE);
	if (also)
		also(s);
	__atomic_fetch_add(&s->count, 1, __ATOMIC_RELEASE);
}

static inline uint64_t seen_count(void)
{
	return __atomic_load_n(&seen.count, __ATOMIC_ACQUIRE);
}

/*
 * Until as many were seen. No test says how soon: the program's alarm ends one that waits in vain.
 */
static inline void wait_for(uint64_t count)
{
	while (seen_count() < count)
		usleep(200);
}

static inline struct pem_callback *
callback_on(const char *pattern, const struct pem_context *context, uint64_t max_delay_us)
{
	const struct pem_async_options options = {sizeof(options), max_delay_us};
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_callback *cb;

	cb = pem_session__register_async_callback(session, set, context, on_tick, &seen, &options,
						  &error);
	if (!cb)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	seen.self = cb;
	return cb;
}

static inline struct pem_callback *enabled_on(const char *pattern, uint64_t max_delay_us)
{
	struct pem_callback *cb = callback_on(pattern, NULL, max_delay_us);

	pem_callback__enable(cb);
	return cb;
}

static inline struct pem_callback_counts counts_of(struct pem_callback *cb)
{
	struct pem_callback_counts counts = {.size = sizeof(counts)};

	assert_int_equal(pem_callback__counts(cb, &counts), 0);
	return counts;
}

/* Has the session any process? The thread tends them, too. */
static inline int has_producers(void)
{
	int any;

	pem_session__lock(session);
	any = session->processes->producers != NULL;
	pem_session__unlock(session);
	return any;
}

/* Has a process in another runtime folder been told what the session wants of it? */
static inline bool observes_elsewhere(void)
{
	const struct pem_member *m;

	pem_session__lock(session);
	for (m = session->processes->members; m && (!m->dir->number || m->session_index < 0);
	     m = m->next)
		;
	pem_session__unlock(session);
	return m != NULL;
}

/* Does the thread sleep until an event wakes it? */
static inline bool is_asleep(void)
{
	return __atomic_load_n(&session->page->wake, __ATOMIC_SEQ_CST) & 1;
}

/* A new session, in which raisers count an event as they start. */
static inline int begin_session(const struct pem_session_options *options)
{
	struct pem_statistics *statistics;
	struct pem_event_set *set;

	session = session_open(options);
	set = events(session, "APP::Types::Floats");
	statistics = pem_session__register_statistics(session, set, NULL, NULL, NULL);
	pem_event_set__free(set);
	return statistics ? pem_statistics__enable(statistics) : -1;
}

static inline int open_session(void **state, const struct pem_session_options *options)
{
	memset(&seen, 0, sizeof(seen));
	return folder_make(state) ? -1 : begin_session(options);
}

static inline int async_set_up(void **state)
{
	return open_session(state, NULL);
}

static inline int async_tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

#endif
