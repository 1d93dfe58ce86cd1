/* SPDX-License-Identifier: MIT */
/*
 * times.h - where the time of threads went, and how long intervals took: collected by times.c,
 * shown by times_print.c
 */
#ifndef PEM_CLI_REPORT_TIMES_H
#define PEM_CLI_REPORT_TIMES_H

#include "report.h"
#include "sketch.h"

#include <pem/code.h>

#include <pem/context.h>

/* All intervals of one group and title. */
struct report_interval {
	char *name; /* group, and title where it says more */
	uint64_t count; /* intervals of known length */
	uint64_t unknown; /* those that have begun, and of which no end is known */
	uint64_t total_ns, most_ns;
	struct pem_sketch sketch; /* of their durations */
	/* Time in which their threads were blocked, with no interval inside. */
	uint64_t blocked_ns;
	bool is_call; /* a system call */
	bool moves_bytes; /* and returns how many bytes it has moved */
	int lock_field; /* of its begin: the address of a lock; -1: it is about none */
};

#define CALLS_MAX 1024u /* numbers of system calls whose rows are known by number */

/* Time that one thread was blocked in intervals of one name. */
struct report_blocked {
	uint32_t thread; /* number of the pass */
	uint32_t interval; /* index, or NO_INTERVAL: in none */
	uint64_t ns;
};

#define NO_INTERVAL UINT32_MAX
#define NO_FILE UINT32_MAX

/* System calls of one name by one thread in one phase on one file. */
struct report_call {
	uint32_t interval; /* index */
	uint32_t file; /* number of the pass, or NO_FILE: on none, or unknown */
	uint32_t thread; /* number of the pass, or NO_THREAD */
	uint32_t phase; /* index of the phase's intervals, or NO_INTERVAL: in none */
	uint64_t count, total_ns, most_ns;
	struct pem_sketch sketch; /* of the calls' durations */
	uint64_t errors; /* of these, calls that failed */
	uint64_t unknown; /* more calls that began, and of which no end is known */
	uint64_t bytes; /* that they have moved, of calls that return that */
};

#define NO_THREAD UINT32_MAX
#define LOCKS_MAX 1000000u /* rows of locks: some 100 MB */

/* Waits of one thread in one interval on one thing, which one thread ended. */
struct report_wait {
	uint32_t thread; /* number of the pass */
	uint32_t waker; /* the same, or NO_THREAD: unknown, or not a thread */
	enum pem_woken_by woken_by;
	const char *waits_on; /* object that it waits for, of this row; NULL: unknown */
	uint32_t holder; /* number of the thread that holds it, or NO_THREAD */
	uint32_t interval; /* index, or NO_INTERVAL */
	uint32_t file; /* number of the pass, or NO_FILE */
	uint64_t lock; /* address of role 'key'; 0: none */
	uint32_t location; /* of the lock, in report_times.data */
	uint64_t count, total_ns, most_ns;
};

/* Intervals of one name and lock in one thread. */
struct report_lock {
	uint64_t lock; /* address */
	uint32_t location; /* the same, in report_times.data */
	uint32_t interval; /* index */
	uint32_t thread; /* number of the pass, or NO_THREAD */
	uint64_t count, total_ns, most_ns;
};

struct report_message; /* messages.c */
struct report_path; /* path.c */

struct report_thread_time {
	const struct pem_pass_thread *thread;
	uint64_t ns[PEM_THREAD_STATES];
	uint32_t longest; /* index + 1 of where it was blocked for longest; 0: it never was */
};

struct report_times {
	struct pem_pass *pass;
	struct report_interval *intervals;
	size_t interval_count, interval_capacity;
	struct report_blocked *blocked;
	size_t blocked_count, blocked_capacity;
	struct report_thread_time *threads; /* by number; NULL thread: nothing is known */
	size_t thread_count, thread_capacity;
	struct report_wait *waits;
	size_t wait_count, wait_capacity;
	struct pem_number_map wait_at; /* key: hash of thread, waker, interval, file and lock */
	struct report_lock *locks;
	size_t lock_count, lock_capacity;
	uint64_t locks_left_out; /* intervals of locks beyond LOCKS_MAX */
	struct pem_number_map lock_at; /* key: hash of lock, interval and thread */
	struct pem_code *data; /* names the variables that locks are */
	struct report_message *messages;
	size_t message_count, message_capacity;
	uint64_t messages_left_out; /* for which there was no row */
	struct pem_number_map message_at; /* key: ids of both events */
	struct report_call *calls;
	size_t call_count, call_capacity;
	struct pem_number_map call_at; /* key: hash of what the row is of */
	struct pem_number_map name_at; /* key: hash of a process's name; value: how many have it */
	struct pem_number_map interval_at; /* key: hash of group and title */
	/* Rows of system calls that one event begins, by their numbers: index + 1; 0: not yet. */
	const struct pem_event *call_event;
	unsigned int call_field;
	uint32_t call_intervals[CALLS_MAX];
	/* The event that ended the last system call, and where its result is; -1: nowhere. */
	const struct pem_event *end_event;
	int end_field;
	struct pem_number_map blocked_at; /* key: thread and interval */
	struct report_path *path; /* set at the end; path.c */
};

/* One more word into a hash, which is 0 at first. */
static inline uint64_t report_mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Which interval the thread was blocked in for longest; NULL: it was never blocked. */
static inline const struct report_blocked *
report_times__longest(const struct report_times *times, const struct report_thread_time *thread)
{
	return thread->longest != 0 ? &times->blocked[thread->longest - 1] : NULL;
}

/* Index of the intervals of an interval's name. NO_INTERVAL: no memory. */
uint32_t report_times__interval(struct report_times *times, const struct pem_interval *interval);
/* The title of intervals, which is behind their group; or the group's last word. */
const char *report_times__title(const struct report_interval *interval);
void report_calls__free(struct report_times *times);
/* Add a message whose second end the record is. Returns 0 or -ENOMEM. */
int report_messages__add(struct report_times *times, const struct pem_record *record,
			 const struct pem_partner *partner);
void report_messages__free(struct report_times *times);
/* The thread's own name. "": it has none but its process's. */
const char *report_times__own_name(const struct pem_pass_thread *thread);
/* Names of process and thread, and the number of the thread. "": it is unknown. */
const char *report_times__thread_words(const struct report_times *times, uint32_t thread);
/* Where a lock is, in times->data, while a thread is about it. Returns it, or -ENOMEM. */
int64_t report_locks__locate(struct report_times *times, uint64_t lock,
			     const struct pem_pass_thread *thread);
/* The variable at a located lock, as "&pool+0x40". NULL: it is in none that is known. */
const char *report_locks__variable(const struct report_times *times, uint32_t location);
/* That, or the lock's address. */
const char *report_locks__words(const struct report_times *times, uint64_t lock, uint32_t location);
/* Add an interval of a lock, which took so long. Returns 0 or -ENOMEM. */
int report_locks__add(struct report_times *times, uint32_t interval,
		      const struct pem_interval *ended, uint64_t ns);
/* The interval that a row of waits is about, its object and who ended it. "": none or unknown. */
const char *report_waits__reason(const struct report_times *times, const struct report_wait *row);
const char *report_waits__object(const struct report_times *times, const struct report_wait *row);
const char *report_waits__waker(const struct report_times *times, const struct report_wait *row);
/* Add the same to an object. */
struct json_object;
void report_waits__describe(const struct report_times *times, const struct report_wait *row,
			    struct json_object *entry);
/* Find the command's critical path, after the last record. Returns 0 or -ENOMEM. */
int report_path__find(struct report_times *times);
void report_path__free(struct report_path *path);
/* Add a time in which a thread was blocked. Returns 0 or -ENOMEM. */
int report_waits__add(struct report_times *times, const struct pem_span *span, uint64_t ns);
/* Free the rows of waits. */
void report_waits__free(struct report_times *times);
/*
 * Add a system call that the record ended, or one that has no end. interval: index of its name.
 * Returns 0 or -ENOMEM.
 */
int report_calls__add(struct report_times *times, uint32_t interval, const struct pem_ended *ended,
		      const struct pem_record *record, const struct pem_interval *phase);

#endif
