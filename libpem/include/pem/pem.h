/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pem.h - PEMAPI: sessions, contexts, event sets, statistics, callbacks, logs
 *
 * A consumer opens a session, registers what it wants of which events in which context, and enables it. Every
 * handle starts disabled. Sources (stubs of processes, the kernel, counters) are opened as events ask for them;
 * one that cannot run is reported with its reason, and the others go on.
 *
 * Threads: every function takes the session's lock, so a session and its handles may be used from several threads and
 * from synchronous callbacks; none but pem_session__interrupt is async-signal-safe. A callback that uses the API waits
 * while another thread is in it. Closing or unregistering a handle ends its use: no other thread may be using it.
 *
 * What is enabled after pem_session__run reaches processes that have raised an event already, at once, and processes that
 * start later; not yet a process that runs and has raised none. A process that opens sessions again and again keeps about
 * 100 MB of address space, and no memory, of each one that observed itself.
 */
#ifndef PEM_PEM_H
#define PEM_PEM_H

#include <pem/abi.h>
#include <pem/model.h>
#include <pem/trace.h>

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct pem_session;
struct pem_event_set;
struct pem_statistics;
struct pem_callback;
struct pem_log;

#define PEM_ANY 0u /* pid or tid: unrestricted */

/* Where events count: cpu (PEM_NO_CPU: any), process, thread. */
struct pem_context {
	uint32_t cpu;
	uint32_t pid;
	uint32_t tid;
};

enum pem_log_level { PEM_LOG_ERROR, PEM_LOG_WARNING, PEM_LOG_INFO };

struct pem_session_options {
	size_t size; /* of this struct */
	/* Pool of each recorded process; 0 for the defaults: 8 KiB chunks, 4096 of them. */
	uint32_t chunk_bytes;
	uint32_t chunk_count;
	int overwrite; /* flight recorder: a full pool loses its oldest records, not the newest */
	/* Sentences for people, one per call, no newline; NULL: silence. Called from the session's threads. */
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
};

/* Version of the library, such as "0.1.0". */
const char *pem_version(void);
/* Rate of pem_clock() in Hz, measured once per process against CLOCK_MONOTONIC_RAW where the CPU does not tell. */
uint64_t pem_clock__hz(void);

/* Open a session; options may be NULL. NULL with errno and error. Blocks on files. */
struct pem_session *pem_session__open(const struct pem_session_options *options,
				      struct pem_error *error);
/* Disable and unregister all of it, finish its log, free it. NULL is accepted. */
void pem_session__close(struct pem_session *session);
/* Events the session knows: the catalogue, and those of every provider met so far. */
const struct pem_model *pem_session__model(const struct pem_session *session);

/*
 * Can this machine deliver an event here and now, to this user? 1: yes. 0: no, and reason (may be NULL) says why
 * and what would change it. Opens nothing that lasts.
 */
int pem_session__can_deliver(struct pem_session *session, const struct pem_event *event,
			     struct pem_error *reason);

/*
 * What one logged event of each kind costs on this machine, in nanoseconds, as the ledger of a recording counts it:
 * "user-log" raised by a stub, and "kernel-log" at a tracepoint, which is left out where this user can't have kernel
 * events. Fills at most max elements of costs, whose counts are 0, and returns how many. Measured once for each boot and
 * version of pem, which takes some tens of milliseconds, and remembered in the user's cache folder. Blocks on files.
 */
int pem_session__costs(struct pem_session *session, struct pem_trace_cost *costs, uint32_t max);

/*
 * Let the session know events of neither the catalogue nor a provider met so far: a model text (format: pem/event.h), as
 * 'pem-codegen --models' makes of specs. They can then be named in sets. origin names the text in errors. Returns
 * events added (those known already, identically, are not), or -EINVAL with error: bad text, or an event that is known and
 * differs; -ENOMEM. On failure nothing is added.
 */
int pem_session__add_model(struct pem_session *session, const char *text, size_t bytes,
			   const char *origin, struct pem_error *error);

/*
 * A set of the events that match any of the patterns (pem_event__matches); a layer's name alone takes those up to level
 * 'info' only. NULL with errno: ENOENT, a pattern
 * matches nothing, and error names it and what comes near. The set is the caller's; handles copy what they need.
 */
struct pem_event_set *pem_event_set__new(struct pem_session *session, const char *const *patterns,
					 size_t count, struct pem_error *error);
void pem_event_set__free(struct pem_event_set *set);
size_t pem_event_set__count(const struct pem_event_set *set);
const struct pem_event *pem_event_set__event(const struct pem_event_set *set, size_t i);

/* --- statistics --- */

struct pem_statistic {
	const struct pem_event *event;
	int unavailable; /* 0, or the -errno of a source that can't deliver the event; the values are then 0 */
	uint64_t count;
	/* of the chosen attribute; in its own type; all 0 without one */
	int is_signed; /* read sum, min and max as int64_t */
	int is_float; /* read sum_f, min_f, max_f */
	uint64_t sum, min, max;
	double sum_f, min_f, max_f, mean;
};

/*
 * Register a statistic over each event of a set in a context: count, and, when attribute names a field of these
 * events, its sum, min, max and mean (NULL: count only; a counter event's attribute is its value). context
 * NULL: everything the session observes. NULL with errno: EINVAL (no such attribute), EBUSY (the session already
 * holds a statistic of another attribute of one of these events), ENOMEM.
 */
struct pem_statistics *pem_session__register_statistics(struct pem_session *session,
							const struct pem_event_set *set,
							const struct pem_context *context,
							const char *attribute,
							struct pem_error *error);
/*
 * Begin to accumulate, on top of what is there. 0, or -errno of joining this process (EUSERS: eight sessions observe it
 * already). An event whose source fails is marked in what is read (unavailable), not here. The first time it may
 * block for a source to open, some 50 ms for the kernel's; then it does not block.
 */
int pem_statistics__enable(struct pem_statistics *statistics);
/* What happened while enabled stays readable. Always 0. */
int pem_statistics__disable(struct pem_statistics *statistics);
/* Begin at zero, enabled or not. Always 0. Values of one event may come from before it for as long as it takes to happen. */
int pem_statistics__reset(struct pem_statistics *statistics);
/*
 * Read up to count entries, one per event in the set's order, summed over processes, threads and CPUs. Returns
 * entries filled. Never stops a producer; reads the session's folder, and counters with a system call each.
 */
int pem_statistics__read(struct pem_statistics *statistics, struct pem_statistic *values,
			 size_t count);
/* Disable and free it. NULL is accepted. */
void pem_statistics__unregister(struct pem_statistics *statistics);

/* --- callbacks --- */

/*
 * Synchronous callback: called in the producing thread, in the middle of the program, each time one of the set's
 * events occurs in this process in the context. Only events with stubs, raised by the calling process. It may use
 * every function here but pem_session__close and its own unregister-from-another-thread; events it raises
 * itself are not called back (no recursion). The record and its data live until the function returns. NULL with errno:
 * ENOTSUP for events without stubs or of another process, EUSERS (eight sessions observe this process), ENOMEM.
 */
struct pem_callback *
pem_session__register_callback(struct pem_session *session, const struct pem_event_set *set,
			       const struct pem_context *context,
			       void (*function)(const struct pem_record *record, void *arg),
			       void *arg, struct pem_error *error);
/* Both return 0 and take effect for the next event; a call under way goes on. */
int pem_callback__enable(struct pem_callback *callback);
int pem_callback__disable(struct pem_callback *callback);
/*
 * After return the function is not running in another thread and will not be called again: waits for it. May be called
 * from the function itself, then its own call is not waited for. Frees the handle; NULL is accepted.
 */
void pem_callback__unregister(struct pem_callback *callback);

/* --- logs --- */

/*
 * Register a log of a set's events, in a context, to a trace directory that must not exist or be empty. One in a
 * session's life. NULL with errno and error (EACCES, ENOSPC, EEXIST, EBUSY: the session has had its log, ...).
 */
struct pem_log *pem_session__register_log(struct pem_session *session,
					  const struct pem_event_set *set,
					  const struct pem_context *context, const char *directory,
					  struct pem_error *error);
/*
 * Begin to log; also what tells whose the kernel's records are, asked for or not. 0, or -errno of joining this process.
 * May block for sources to open, as pem_statistics__enable.
 */
int pem_log__enable(struct pem_log *log);
/* Log no more, until enabled again. Always 0. */
int pem_log__disable(struct pem_log *log);
/*
 * Stop, drain and complete the trace. 0, or -errno of the first write that failed: what was lost is counted. Called
 * again it says the same. Blocks on files.
 */
int pem_log__finish(struct pem_log *log, struct pem_error *error);
/* Finish and free it. NULL is accepted. */
void pem_log__unregister(struct pem_log *log);

/* --- running a program --- */

struct pem_run_options {
	size_t size;
	/* raise the events of an unmodified program: libpem-libc.so, and adapters whose events are wanted by now */
	int preload_libc;
};

/*
 * Start argv (argv[0] searched in PATH) under the session; what is enabled now is observed from its first
 * instruction on, in it and its descendants. One command in a session's life. Returns its pid, or -errno with error:
 * -ENOENT, no such command; -EBUSY, the session has had one. Blocks while sources open. options may be NULL.
 */
pid_t pem_session__run(struct pem_session *session, char *const argv[],
		       const struct pem_run_options *options, struct pem_error *error);
/*
 * Do the session's work for at most timeout_ms: find new producers, drain pools, sample counters. 1: the command
 * ended, *wait_status (as of waitpid) set; 0: time is up (at once, if timeout_ms is 0 or less); -EINTR: the session was
 * interrupted. A session without a command just waits. Pools fill while nobody polls: call it again soon.
 */
int pem_session__poll(struct pem_session *session, int timeout_ms, int *wait_status);
/* Wall-clock time from the command's exec to its end, or to now; 0: none was run. Does not block. */
uint64_t pem_session__elapsed_ns(const struct pem_session *session);
/* Stop draining: after a signal, before pem_log__finish. The command goes on. Async-signal-safe. */
void pem_session__interrupt(struct pem_session *session);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
