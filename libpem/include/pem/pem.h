/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pem.h - PEMAPI: sessions, contexts, event sets, statistics, callbacks, logs
 *
 * A consumer opens a session, registers what it wants of which events in which context, and enables it. Every
 * handle starts disabled. Sources (stubs of processes, the kernel, counters) are opened as events ask for them;
 * one that cannot run is reported with its reason, and the others go on.
 *
 * Threads: every function takes the session's lock, so a session and its handles may be used from several threads and
 * from callbacks of both kinds; none but pem_session__interrupt is async-signal-safe. A callback that uses the API waits
 * while another thread is in it. Closing or unregistering a handle ends its use: no other thread may be using it. It waits
 * for calls under way in other threads, so that functions which unregister each other's callbacks, or close each other's
 * sessions, while both run, wait for ever; so does whoever holds a lock that the function is about to take.
 *
 * What is enabled later reaches every observed process at once. A process that opens sessions again and again keeps about
 * 140 MB of address space, and no memory, of each one that observed itself.
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

/*
 * Where events count. All of it has to hold; what is zero is unrestricted, except for cpu: there 0 is the first CPU, and
 * PEM_NO_CPU is unrestricted. So {.pid = x} and {0} count on CPU 0 alone. Begin with PEM_CONTEXT_ANY:
 * struct pem_context here = PEM_CONTEXT_ANY; here.pid = getpid();
 */
struct pem_context {
	uint32_t cpu;
	uint32_t pid; /* as this process knows it */
	uint32_t tid;
	uint32_t follow; /* 1, with pid: and whatever that process starts, across fork and exec */
	uint32_t
		in_namespace; /* inode number of any of the process's namespaces, as 'ls -Li /proc/PID/ns' shows them */
	uint32_t reserved;
	uint64_t cgroup; /* in this version 2 control group or below: pem_cgroup_id() */
	char program
		[PEM_NAME_BYTES]; /* the process's name as in /proc/PID/comm, of at most 15 bytes */
};
#define PEM_CONTEXT_ANY                                                                            \
	{                                                                                          \
		PEM_NO_CPU, PEM_ANY, PEM_ANY, 0, 0, 0, 0,                                          \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

/* Id of a version 2 control group from its folder, below /sys/fs/cgroup if path does not begin with a slash; 0 with errno. */
uint64_t pem_cgroup_id(const char *path);

enum pem_log_level {
	PEM_LOG_ERROR,
	PEM_LOG_WARNING,
	PEM_LOG_INFO,
	PEM_LOG_PROGRESS /* for who asked for it: how far work of more than two seconds is, each text in the last one's place; "": it is done */
};

struct pem_session_options {
	size_t size; /* of this struct */
	/* Pool of each recorded process; 0 for the defaults: 8 KiB chunks, 4096 of them. */
	uint32_t chunk_bytes;
	uint32_t chunk_count;
	int overwrite; /* flight recorder: a full pool loses its oldest records, not the newest */
	/* Sentences for people, one per call, no newline; NULL: silence. Called from the session's threads. */
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	int progress; /* 1: log is called with PEM_LOG_PROGRESS, too */
};

/* Version of the library, such as "0.1.0". */
const char *pem_version(void);
/* Rate of pem_clock() of <pem/clock.h> in Hz, measured once per process against CLOCK_MONOTONIC_RAW where the CPU does not tell. */
uint64_t pem_clock__hz(void);

/*
 * Open a session; options may be NULL. NULL with errno and error. Blocks on files.
 *
 * The first one in a process installs a handler of SIGBUS, for good: the memory of a program that cuts off the files it
 * shares reads as zeroes then, instead of ending the reader. Every other SIGBUS goes to the handler that was there before, or
 * does what it did without one. A program that installs its own later passes on what it does not know; one that does not is
 * ended by such a cut.
 */
struct pem_session *pem_session__open(const struct pem_session_options *options,
				      struct pem_error *error);
/*
 * Disable and unregister all of it, finish its log, free it. In a callback of its own, too: that call is not waited for, and
 * its record's event is no more. NULL is accepted.
 */
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
 * Which source delivers an event here and now, to this user: "module" (pem.ko), "BPF", "counters", or "stub": the first of
 * pem_session__sources that can. NULL: none, and reason (may be NULL) says why and what would change it. The name lives as
 * long as the session. Opens nothing that lasts.
 */
const char *pem_session__source_of(struct pem_session *session, const struct pem_event *event,
				   struct pem_error *reason);

/* A source that is installed. */
struct pem_source_state {
	const char *name; /* lives as long as the session */
	int usable; /* 1: by this user, here and now; 0: reason says why not, and what would change it */
	struct pem_error reason;
};
/* The installed sources, in the order in which they are asked for an event. Fills at most max elements; returns how many. */
int pem_session__sources(struct pem_session *session, struct pem_source_state *states,
			 uint32_t max);

/*
 * Let the session know events of places that no spec describes, so that they can be named in sets. pattern: one of
 *
 *	SYSTEM:EVENT                               tracepoints of the running kernel, with * and ?
 *	fentry:FUNCTION  fexit:FUNCTION            functions of the kernel by its types, with * and ?
 *	kprobe:FUNCTION[+OFFSET]  kretprobe:FUNCTION    the same where the kernel has kprobes
 *	uprobe:PATH:FUNCTION[+OFFSET]  uretprobe:PATH:FUNCTION    functions of a program or library
 *	usdt:PATH:[PROVIDER:]NAME                  static probes of a program or library
 *
 * PATH is a file, or a name that is looked for as the system looks for programs and libraries. Fields are those of the
 * tracepoint's format, the function's parameters (and "ret"), or arg0, arg1 and so on. A tracepoint that an event of the
 * catalogue comes from is that event. pem_event_set__new() calls this for such patterns itself. Returns how many events the
 * pattern names; -EINVAL: that is no such pattern; -ENOENT: there is nothing of that name, -E2BIG: too much; another -errno:
 * it can't be told; with error. Blocks on files, and takes some milliseconds.
 */
int pem_session__add_probes(struct pem_session *session, const char *pattern,
			    struct pem_error *error);

/*
 * What one event of each kind costs on this machine, in nanoseconds, as the ledger of a recording counts it: "user-log"
 * and "user-stat", logged or counted by a stub; "kernel-log" and "kernel-stat" at a tracepoint; "uprobe-log" and so on at
 * a function or static probe of a program, "uretprobe-log" and so on at a function's return; "sample", a timer's. Those
 * that this user can't have are left out. Fills at most max elements of costs, whose counts are 0, and returns how many.
 * Measured once for each boot, kernel, processor and version of pem, which takes some tenths of a second, and remembered
 * in the user's cache folder. Blocks on files.
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
 * 'info' only. NULL with errno: ENOENT, a pattern matches nothing, and error names it and what comes near; EPERM and others
 * that a source gives, which could not look for a probe. The set is the caller's; handles copy what they need.
 */
struct pem_event_set *pem_event_set__new(struct pem_session *session, const char *const *patterns,
					 size_t count, struct pem_error *error);
/*
 * Let the events of a set count only where a predicate on their fields holds, tested where the event happens before
 * anything is written. Handles registered with the set from then on are bound to it; NULL takes it back.
 *
 *	predicate:	FIELD [& NUMBER] OP VALUE, joined by && and ||, negated by !, grouped by ( )
 *	OP:		== != < <= > >=
 *	VALUE:		a decimal, 0x or floating number, or a label of the field ('state == running'); FIELD alone is FIELD != 0
 *	NUMBER:		bits of the field, as a whole number or a label; what they leave is a number without a sign
 *
 * As in C, && binds tighter than ||; a number is compared by value whatever the field's width and sign. A NaN is unequal to
 * all, and not less or greater. Strings, lists and arrays can't be tested. Events that the session has not met yet, which a
 * pattern such as 'APP' takes too, are not in a set with a predicate. All handles of a session are bound to one
 * predicate of an event: registering one with another fails with EBUSY. 0; -EINVAL with error: the place of the mistake and
 * what may stand there, or the event that lacks the field; -E2BIG: more than 32 comparisons; -ENOTSUP: a counter. On failure
 * the set is as it was.
 */
int pem_event_set__where(struct pem_event_set *set, const char *predicate, struct pem_error *error);
/* The same for some of its events: those that match a pattern. -ENOENT: none does. */
int pem_event_set__where_of(struct pem_event_set *set, const char *pattern, const char *predicate,
			    struct pem_error *error);
/* The predicate of event i, as it was written first; NULL: none. Lives as long as the session. */
const char *pem_event_set__predicate(const struct pem_event_set *set, size_t i);
void pem_event_set__free(struct pem_event_set *set);
size_t pem_event_set__count(const struct pem_event_set *set);
const struct pem_event *pem_event_set__event(const struct pem_event_set *set, size_t i);

/* --- statistics --- */

struct pem_statistic {
	const struct pem_event *event;
	int unavailable; /* 0, or the -errno of a source that can't deliver the event; the values are then 0 */
	int is_partial; /* for a time nobody counted, to keep the overhead budget */
	uint64_t count;
	/* of the chosen attribute; in its own type; all 0 without one */
	int is_signed; /* read sum, min and max as int64_t */
	int is_float; /* read sum_f, min_f, max_f */
	uint64_t sum, min, max;
	double sum_f, min_f, max_f, mean;
	double variance; /* of the whole, not of a sample; 0 unless PEM_STATISTIC_VARIANCE was asked for */
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
/*
 * What else to keep of the attribute, PEM_STATISTIC_*, for those events of the handle that have stubs or are the kernel's,
 * before it is enabled first: each costs some more nanoseconds an event. Of counters no more than their statistic is known.
 * 0; -EINVAL: there is no attribute; -EBUSY: it was enabled; -ENOTSUP: there are only counters among them; -ENOSPC: more than
 * PEM_DISTRIBUTION_EVENTS_MAX such events in the session; -ENOMEM.
 */
#define PEM_STATISTIC_VARIANCE 1u
#define PEM_STATISTIC_HISTOGRAM 2u
#define PEM_STATISTIC_TOP 4u
#define PEM_DISTRIBUTION_EVENTS_MAX 16u
int pem_statistics__keep(struct pem_statistics *statistics, unsigned what);

/* bucket[0]: values of 0 and below; bucket[i]: 2^(i-1) <= value < 2^i; the last: and more. Floating: of the whole part. */
struct pem_histogram {
	uint64_t bucket[65];
};
/* Of event i of the set, summed as pem_statistics__read does. 0; -ENODATA: not kept. */
int pem_statistics__histogram(struct pem_statistics *statistics, size_t i,
			      struct pem_histogram *histogram);

/*
 * A frequent value and how often it came: between count - error and count times (Space-Saving: Metwally, Agrawal,
 * El Abbadi, ICDT 2005). A value more frequent than one in 16 of a thread's events, or a CPU's, is among those of that one.
 */
struct pem_top {
	uint64_t value; /* in the attribute's own type; the bits of a double for floating ones */
	uint64_t count, error;
};
/* The most frequent values of event i, most frequent first. Returns entries filled, -ENODATA: not kept. */
int pem_statistics__top(struct pem_statistics *statistics, size_t i, struct pem_top *top,
			size_t count);

/*
 * Who did what a part of a statistic counts. Events with stubs: pid and tid, the latter also for a while after the thread's
 * end; tid 0: threads whose place others took; pid 0 too, and cpu PEM_NO_CPU: processes that ended. The kernel's: by cpu.
 * Counters: all together, as those of ended processes.
 */
struct pem_statistic_owner {
	uint32_t pid, tid, cpu;
	char program[PEM_NAME_BYTES];
};
/*
 * The parts that pem_statistics__read would add up for event i: one call for each thread, or CPU, that has any. function
 * must not use the session. Returns parts, or -errno of an unavailable event.
 */
int pem_statistics__each(struct pem_statistics *statistics, size_t i,
			 void (*function)(const struct pem_statistic *part,
					  const struct pem_statistic_owner *owner, void *arg),
			 void *arg);
/* Disable and free it. NULL is accepted. */
void pem_statistics__unregister(struct pem_statistics *statistics);

/* --- callbacks --- */

/*
 * Synchronous callback: called in the producing thread, in the middle of the program, each time one of the set's
 * events occurs in this process in the context. Only events with stubs, raised by the calling process. It may use
 * every function here, and has to return (no longjmp, no pthread_exit); events it raises itself are not called back (no
 * recursion). Those that a thread raises inside of a function of pem (in malloc, in a signal handler) aren't either, since
 * that holds a lock, and are counted as lost. The record and its data live until the function returns. NULL with errno:
 * ENOTSUP for events without stubs or of another process, EUSERS (eight sessions observe this process), ENOMEM.
 */
struct pem_callback *
pem_session__register_callback(struct pem_session *session, const struct pem_event_set *set,
			       const struct pem_context *context,
			       void (*function)(const struct pem_record *record, void *arg),
			       void *arg, struct pem_error *error);
struct pem_async_options {
	size_t size; /* of this struct */
	/*
	 * Call back at most so long after the event, if this process gets to run; 0: 1000. While events flow the thread
	 * wakes up by the clock, every 3/4 of it, at most every 10 ms: a shorter delay costs this process more wake-ups, and
	 * the program nothing.
	 */
	uint64_t max_delay_us;
};
/*
 * Asynchronous callback: called in this process, on a thread of the session's that does nothing else, for the events of
 * any observed process and of the kernel, in the order of their time across threads and CPUs. The program goes on meanwhile;
 * it makes a system call only for the first event after a pause, to wake this process up. The function may use
 * all of the API; events that it raises itself are not called back (no recursion); should it
 * fork, the child's thread ends when the function returns. While it runs nobody waits for it: events wait in as much
 * memory as a pool has, and what finds no room is lost and counted; a log of the same session loses nothing by it. A
 * record that its thread could not complete in time (it was preempted there) comes after later ones, as late. The record
 * (time_ns: 0) lives until the function returns. NULL with errno and error: EBUSY, the session observes one of the
 * events in another context; ENOSPC, more than 64 of them; EUSERS; ENOMEM; EAGAIN.
 */
struct pem_callback *
pem_session__register_async_callback(struct pem_session *session, const struct pem_event_set *set,
				     const struct pem_context *context,
				     void (*function)(const struct pem_record *record, void *arg),
				     void *arg, const struct pem_async_options *options,
				     struct pem_error *error);
struct pem_callback_counts {
	uint64_t called; /* asynchronous callbacks: events delivered */
	uint64_t late; /* of these, after one of a later time */
	uint64_t
		lost; /* events that found no room, were overwritten, or waited still when it was disabled; synchronous: raised inside of pem */
	uint64_t
		waiting; /* of all asynchronous callbacks of the session: events not called back yet. 0: none of before this call */
};
/* How a callback fared so far; of a synchronous one only what it lost. Always 0. */
int pem_callback__counts(struct pem_callback *callback, struct pem_callback_counts *counts);

/*
 * Both take effect for the next event; a call under way goes on. Asynchronous: events that wait when it is disabled are
 * not called back any more and counted as lost, so that whoever wants all waits until none does (pem_callback__counts).
 * 0.
 */
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

/*
 * Write what a flight recorder (options.overwrite) holds now as a trace of its own, with the log's events, and record on:
 * the next snapshot has what is still there then too. cause: a few words, noted in the trace; NULL: "asked for".
 * directory as for pem_session__register_log. 0, or -errno with error; -EINVAL: not a flight recorder, or it logs nothing.
 * Blocks on files; producers go on.
 *
 * A flight recorder's memory is bounded: a pool of each living process, twice as much for the kernel's and counters'
 * events and for the last 1,000 processes that ended, whatever it has recorded. Nothing but those pools is on a disk, if
 * the runtime folder is on one, until a snapshot or the end of the log writes a trace.
 */
int pem_session__snapshot(struct pem_session *session, const char *directory, const char *cause,
			  struct pem_error *error);

/* A flight recorder of this user: a session with the option overwrite and a log. */
struct pem_recorder {
	uint32_t pid;
	uint32_t
		is_running; /* 0: it was killed; pem_trace__recover of its trace gets what programs had logged */
	char session[64]; /* its name */
	char command[512]; /* what it records; "" if it did not start it */
	char trace[4096]; /* where its log will be */
};
/* Fill in at most max; returns how many there are, or -errno. Blocks on files. */
int pem_recorders(struct pem_recorder *recorders, size_t max);
/*
 * Have a recorder write a snapshot to a directory, which is made, or is empty, and wait for at most timeout_ms. It does so
 * in pem_session__poll. 0, or -errno with error; -ESRCH: it does not run; -EBUSY: others wait to be answered, and nothing
 * was asked; -ETIMEDOUT: it may still write it.
 */
int pem_recorder__snapshot(const struct pem_recorder *recorder, const char *directory,
			   const char *cause, int timeout_ms, struct pem_error *error);

/*
 * What pem.ko is to look at (events of source type 'module'); before anything is enabled.
 *
 * Counters that HW::HWPerf::HPMsAtEvent reads at each event of the kernel that is logged, and at context switches: names
 * parted by commas, each an event of the catalogue's that comes from a counter (its last word will do, whatever its case) or a
 * libpfm4 event. 0; -EINVAL: an empty name; -E2BIG: more than 8; -ENOENT: libpfm4 knows no such name, where pem was built with
 * it; -ENOMEM; with error. Whether this machine has such counters shows when they are opened. May block on files.
 */
int pem_session__set_counters(struct pem_session *session, const char *names,
			      struct pem_error *error);
/*
 * How often page tables and free memory are looked at (OS::Pages), and by what regions of memory: 100000 us and 2 MiB if this
 * is not called. 0; -EINVAL: below 1000 us, or no power of two from 4096 to 2^40.
 */
int pem_session__set_page_sampling(struct pem_session *session, uint32_t interval_us,
				   uint64_t region_bytes);

/*
 * Keep what the observation costs the observed programs below a share of their CPU time (0.01: one hundredth; 0: no bound).
 * Judged every 100 ms by what each kind of event costs here (pem_session__costs) and how many there were: the
 * costliest events step down from log to statistics to off, and back up once there is room. Each step is said
 * through the log callback and recorded in the trace. 0; -EINVAL.
 */
int pem_session__set_budget(struct pem_session *session, double share);

/*
 * The folder of shared memory that this user's programs and consumers meet in, made with mode 0700 if missing: the
 * first that can be had of PEM_RUNTIME_DIR, alone if it is set; 'pem' in XDG_RUNTIME_DIR; 'pem' in /run/user/UID; pem-UID in
 * /dev/shm, or pem-UID-RANDOM where somebody else has taken that name; the same in /tmp. A program with rights that
 * its user has not does not heed the variables. 0, or -errno with the path that was tried last; -EPERM: it is
 * no folder that this user alone may write to, or lies in another ordinary user's. Async-signal-safe. Blocks on files.
 */
int pem_runtime_dir(char *path, size_t bytes);

/* --- observing programs --- */

/*
 * Observe programs that run already, and those to come that are in the context: a process (pid, with follow or not), all of
 * a program's name, control group or namespace, or, with PEM_CONTEXT_ANY, every program of this user; of every
 * user for root, and then the kernel's events of the whole machine. Call it several times for several. What
 * handles ask for is observed there; their own contexts restrict it further. A program can raise application events
 * if it was linked with libpem or started with it preloaded ('pem run -- COMMAND'); others show in the kernel's
 * events only. Returns how many processes with application events were found, or -errno with error: -ESRCH, no such
 * process; -EPERM, another user's; -EUSERS, eight sessions observe it. Blocks while sources open, some 50 ms, and while
 * the runtime folders of other users and of containers are looked for, 2 s at most. It does the work of
 * pem_session__poll meanwhile, and other threads may use the session. What is found there later is observed, too.
 * A process is observed from when it was told so; by events that neither the catalogue nor the caller describes, from when it
 * has described them, some milliseconds later.
 */
int pem_session__attach(struct pem_session *session, const struct pem_context *who,
			struct pem_error *error);
/* Observed processes now: fills at most max, returns how many there are. Does not block. */
int pem_session__processes(struct pem_session *session, struct pem_statistic_owner *processes,
			   size_t max);

struct pem_run_options {
	size_t size;
	/* raise the events of an unmodified program: libpem-libc.so, and adapters whose events are wanted by now */
	int preload_libc;
	int no_follow; /* observe the command alone and not what it starts */
};

/*
 * Start argv (argv[0] searched in PATH) under the session; what is enabled now is observed from its first
 * instruction on, in it and its descendants. One command in a session's life. Returns its pid, or -errno with error:
 * -ENOENT, no such command; -EBUSY, the session has had one. Blocks while sources open. options may be NULL.
 */
pid_t pem_session__run(struct pem_session *session, char *const argv[],
		       const struct pem_run_options *options, struct pem_error *error);
/*
 * Become a command that can be attached to later: what raises events in it is preloaded, and no session observes it.
 * options as above, or NULL. Returns on failure only: -errno with error; -ENOENT, no such command. By then the thread
 * may have dropped capabilities as pem_run__drop_capabilities says.
 */
int pem_run__exec(char *const argv[], const struct pem_run_options *options,
		  struct pem_error *error);
/*
 * Take the capabilities that are pem's own (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYS_ADMIN) out of the inheritable
 * and ambient sets of the calling thread, and of threads that it makes later. What it may do itself stays; programs
 * that it starts as an ordinary user no longer get them. Root's programs get what they always get. The functions above
 * do so for their command; call it before a program is started in another way. 0, or -errno. Async-signal-safe. Does not
 * block.
 */
int pem_run__drop_capabilities(void);
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
