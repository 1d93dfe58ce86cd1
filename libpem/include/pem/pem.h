/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pem.h - PEMAPI: observe events of programs, of the kernel and of the hardware, from a program
 *
 * Overview
 *
 * A session is one observation. The program names events, makes a set of them, and registers a
 * handle over the set: statistics (counts and sums), a callback (a function of the program), or a
 * log (a trace on disk). A handle starts disabled. The session then runs a command, or attaches to
 * processes that run already. pem_session__poll() does the session's work meanwhile. This counts
 * the files that a command opens:
 *
 *	char *const command[] = {"cat", "/dev/null", "/dev/null", NULL}; int status = 0;
 *	const struct pem_run_options run = {.size = sizeof(run), .preload_libc = 1};
 *	struct pem_statistic opens = {.size = sizeof(opens)};
 *	const char *name = "APP::File::Open";
 *	struct pem_session *s = pem_session__open(NULL, NULL);
 *	struct pem_event_set *set = pem_event_set__new(s, &name, 1, NULL);
 *	struct pem_statistics *st = pem_session__register_statistics(s, set, NULL, NULL, NULL);
 *
 *	pem_statistics__enable(st);
 *	pem_session__run(s, command, &run, NULL);
 *	while (pem_session__poll(s, 100, &status) == 0)
 *		;
 *	pem_statistics__read(st, &opens, 1);
 *	printf("%llu files opened\n", (unsigned long long)opens.count);
 *	pem_event_set__free(set);
 *	pem_session__close(s);
 *
 * A real program checks what each call returns: share/doc/pem/examples/watch.c does.
 *
 * Errors
 *
 * A function that returns int returns 0 or a count, or -errno. A function that makes something
 * returns NULL with errno set. A function that takes a struct pem_error fills it with a sentence
 * when it fails; NULL is accepted there. Outputs are written on success only. Every function that
 * returns int or makes something may fail with ENOMEM besides what its comment lists. A function
 * that can't fail returns void or its result.
 *
 * A NULL that the comment of a function does not accept is EINVAL, with a sentence. A function that
 * can't fail then does nothing, and returns 0 or NULL.
 *
 * Structs that the caller allocates
 *
 * They begin with their size, so that they can grow (<pem/sized.h> has the rules). A member that is
 * zero has its default. A struct that is read may be {0}. A struct that is filled in needs its
 * size. pem_error has no size and does not grow. What libpem allocates (events, models, a trace's
 * description) grows at its end.
 *
 * Threads and signals
 *
 * Every function here takes the session's lock, unless its comment says otherwise. So a session and
 * its handles may be used from several threads, and from callbacks of both kinds; a callback that
 * uses the session waits while another thread is in it. No function here is async-signal-safe,
 * unless its comment says so. A function may wait for the lock; what its comment says on blocking
 * comes on top.
 *
 * Closing or unregistering a handle ends its use: no other thread may be using it. Both wait for
 * calls of its function that run in other threads. So two functions that unregister each other's
 * callbacks while both run wait for ever. A caller waits for ever too if it holds a lock that the
 * function is about to take.
 *
 * Sources
 *
 * The kernel's and the hardware's events come from sources, which are plugins. A source is opened
 * when an event asks for it. A source that can't run is reported with its reason, and the others go
 * on.
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

/* --- the library --- */

/*
 * Version of the library, such as "0.2.0". Static. Thread-safe, async-signal-safe, does not block.
 */
const char *pem_version(void);

/*
 * Rate of pem_clock() of <pem/clock.h> in Hz. If the CPU does not report it, it is measured once in
 * a process, against CLOCK_MONOTONIC_RAW. Takes no lock of a session. Thread-safe.
 */
uint64_t pem_clock__hz(void);

/*
 * The runtime directory: the folder of shared memory in which this user's programs and consumers
 * find each other. path gets its name. It is made with mode 0700 if it is missing. The first one
 * that can be used is taken:
 *
 *	PEM_RUNTIME_DIR		alone, if it is set
 *	XDG_RUNTIME_DIR/pem
 *	/run/user/UID/pem
 *	/dev/shm/pem-UID	or pem-UID-RANDOM, if another user has taken that name
 *	/tmp/pem-UID		likewise
 *
 * A program that has more rights than its user ignores the variables. Returns 0, or -errno; path
 * then names the directory tried last. -EPERM: it is no directory, other users may write to it, or
 * it lies in another ordinary user's directory. Takes no lock. Thread-safe, async-signal-safe.
 * Blocks on files.
 */
int pem_runtime_dir(char *path, size_t bytes);

/* --- contexts --- */

#define PEM_ANY 0u /* pid or tid: unrestricted */

/*
 * Where events count. All members have to hold. A member that is zero restricts nothing: {0} is
 * everywhere, and {.pid = 1} is process 1 on every CPU. Where a function takes a context, NULL
 * stands for {0}.
 *
 * The context of a handle chooses among the processes that its session observes: the command of
 * pem_session__run(), those of pem_session__attach(), and this process. A session observes this
 * process only if it was attached to its pid, has a synchronous callback, or has enabled a handle
 * whose context names it: by pid, or by tid without a pid, if it is one of its threads. Until then
 * no other handle gets events of this process. So a consumer's own events are in no count that did
 * not ask for them. If handles were enabled and the session observed no process at all, its log
 * function is told at its close.
 *
 * A context that contradicts itself is refused with EINVAL: a cpu without one_cpu, follow
 * without a pid, or a program without a NUL. So is a cpu that this machine can't have. A pid or tid
 * above Linux's greatest, 4194303, is ESRCH. A process or thread need not exist yet, except for
 * pem_session__attach().
 */
struct pem_context {
	size_t size; /* of this struct; 0: as in version 0.2.0 */
	uint32_t one_cpu; /* 1: only on the CPU that cpu names; 0: on all, and cpu is 0 */
	uint32_t cpu;
	uint32_t pid; /* as this process knows it */
	uint32_t tid;
	uint32_t follow; /* 1, with pid: also processes that it starts, across fork and exec */
	/* Inode number of any of the process's namespaces, as 'ls -Li /proc/PID/ns' shows them. */
	uint32_t in_namespace;
	/* a version 2 control group; processes below it count too: pem_cgroup_id() */
	uint64_t cgroup;
	/* The process's name as in /proc/PID/comm, of at most 15 bytes. */
	char program[PEM_NAME_BYTES];
};

/*
 * Find the id of a version 2 control group by its folder. A path that does not begin with a slash
 * is below /sys/fs/cgroup. 0, or -errno; -EINVAL: the folder is no version 2 control group. Takes
 * no lock. Thread-safe. Blocks on files.
 */
int pem_cgroup_id(const char *path, uint64_t *id);

/* --- sessions --- */

enum pem_log_level {
	PEM_LOG_ERROR,
	PEM_LOG_WARNING,
	PEM_LOG_INFO,
	/*
	 * Progress of work that takes more than two seconds. Each text replaces the last one. "":
	 * the work is done. Only with pem_session_options.progress.
	 */
	PEM_LOG_PROGRESS
};

/* Which callers samples have (struct pem_session_options). */
enum pem_stacks {
	PEM_STACKS_NONE,
	/* Of the program as frame pointers tell: only of code that was compiled with them. */
	PEM_STACKS_FRAMES,
	/*
	 * Of the program by its unwind tables, which the recorder reads. A sample then takes 8 KiB
	 * of the kernel's buffer, and what calls are further up the stack than that is not told.
	 */
	PEM_STACKS_TABLES
};

struct pem_session_options {
	size_t size; /* of this struct; 0: as in version 0.2.0 */
	/*
	 * The pool of each observed process. 0 for the defaults: 8192 bytes a chunk, 4096 chunks,
	 * and up to 16384 while the session can't keep up and memory allows (man pem-record,
	 * --buffer). Each thread that raises events holds a chunk. So many threads can raise events
	 * at once: half as many as there are chunks, but 2,047 at least and 65,535 at most.
	 */
	uint32_t chunk_bytes;
	uint32_t chunk_count;
	/* 1: flight recorder. A full pool loses its oldest records, not the newest. */
	int overwrite;
	int progress; /* 1: log is called with PEM_LOG_PROGRESS, too */
	/*
	 * Called with a sentence for people, without a newline, by any thread of the session. NULL:
	 * sentences are dropped.
	 */
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	/*
	 * 1: statistics of the kernel's events are kept by process where a source can (BPF), so
	 * that pem_statistics__each() tells which process raised them. Each event then costs one
	 * look-up more.
	 */
	int by_process;
	/*
	 * How often samples (HW::HWPerf::HPMsAndPC) are taken of each CPU that a program runs on, a
	 * second. 0: 199. The kernel has a limit: kernel.perf_event_max_sample_rate.
	 */
	uint32_t sample_hz;
	uint32_t sample_stacks; /* enum pem_stacks: whether samples have their callers, and how */
	/*
	 * 1: events of programs are stamped with a clock that a thread of the session advances each
	 * microsecond, and not with the cycle counter. An event then costs less; the thread takes a
	 * CPU. Within a thread the order is known, across threads to the error that the trace
	 * states.
	 */
	uint32_t coarse_clock;
	/*
	 * File of a simulated machine (pem/hardware.h), valid as long as the session, for events of
	 * source 'simulated'. The command runs under the tool for Valgrind that writes it. NULL:
	 * there is none.
	 */
	const char *hardware;
	/*
	 * How many threads may move records to the log while there are many, 64 at most. 0: half as
	 * many as there are CPUs, 8 at most. They belong to the session, and block all signals but
	 * those of faults.
	 */
	uint32_t drain_threads;
	/*
	 * 1: traces are compressed with libzstd, which must be there (else ENOPKG). Readers of
	 * pem's take them as any other trace; for others there is pem_trace__unpack.
	 */
	uint32_t compress;
};

/*
 * Open a session; options may be NULL. NULL with errno and error. EINVAL: an option is out of its
 * range, or a pool can't have these options; ENOENT and others: hardware can't be read. EACCES,
 * ENOSPC and others: from the runtime directory. The caller closes it. Blocks on
 * files.
 *
 * The first session in a process installs a handler of SIGBUS, for good. An observed program may
 * truncate a file that it shares. With the handler its memory then reads as zeroes; without it this
 * process would end. Every other SIGBUS goes to the handler that was there before, or has its
 * default effect. If the program installs its own handler later, that has to pass on what it does
 * not know, or such a truncation ends this process.
 */
struct pem_session *pem_session__open(const struct pem_session_options *options,
				      struct pem_error *error);

/*
 * Unregister all handles of a session, finish its log, and free it. NULL is accepted. May be called
 * in a callback of the session: then it does not wait for that call, and the event of its record is
 * freed. Blocks on files, and until functions that run in other threads return.
 *
 * Each session that observed its own process keeps about 140 MB of address space after its close,
 * and no memory.
 */
void pem_session__close(struct pem_session *session);

/*
 * The events that the session knows: the catalogue, events added, and events of every provider
 * found so far. The model lives as long as the session and grows meanwhile. Takes no lock.
 */
const struct pem_model *pem_session__model(const struct pem_session *session);

/*
 * Add events of neither the catalogue nor a provider found so far, so that sets can name them.
 * text: a model (format: pem/event.h), as 'pem-codegen --models' makes it of specs. origin names
 * the text in errors. Returns events added; identical events that are known already do not count.
 * -EINVAL with error: the text is damaged, or describes a known event differently. On failure
 * nothing is added. Does not block.
 */
int pem_session__add_model(struct pem_session *session, const char *text, size_t bytes,
			   const char *origin, struct pem_error *error);

/*
 * Add the events of specs, so that sets can name them. path is a file or a folder. A file is a spec
 * in XML, or has models that 'pem-codegen --models' made. In a folder, and up to four levels below
 * it, these are the files *.xml whose root element is <spec>.
 *
 * Returns events added; identical events that are known already do not count. All failures come
 * with error. -EINVAL: a spec is wrong, or describes a known event differently; error has the first
 * mistake and its place. Nothing of that file is added; the other files of a folder are. -EEXIST:
 * as -EINVAL, and the known event is one that a program was described to have. -ENOENT and others:
 * path can't be read, or the folder has no spec; -E2BIG: the folder has more than 1,000. -ENOPKG:
 * pem-codegen is missing, which is started for each spec in XML. Blocks until it ends, about 5 ms a
 * file.
 */
int pem_session__add_specs(struct pem_session *session, const char *path, struct pem_error *error);

/*
 * Add the events that a program describes itself, so that sets can name them before it raises any.
 * Give one of both: pid, a process that runs (program NULL), whose program and loaded libraries are
 * read; or program, the file of a program that need not run (pid PEM_ANY), which is read with the
 * libraries that it needs, as by pem_program__models(). Stubs of C, C++, Fortran and Rust carry
 * their descriptions. Those of Python and Java do not: give their specs to
 * pem_session__add_specs().
 *
 * Returns how many events the program describes, known ones included. Events that contradict known
 * ones are left out, and the session's log function gets a warning for each model. The session
 * believes the program: describe only programs that may tell it what their events are. -errno with
 * error: -EINVAL: neither or both were given, or the program is damaged; -ESRCH: no such process;
 * -EACCES: the process may not be read; others: as pem_program__models(). Blocks on files.
 */
int pem_session__describe(struct pem_session *session, uint32_t pid, const char *program,
			  struct pem_error *error);

/*
 * Add the events of ad-hoc probes, which no spec describes, so that sets can name them. pattern is
 * one of
 *
 *	SYSTEM:EVENT                               tracepoints of the running kernel, with * and ?
 *	fentry:FUNCTION  fexit:FUNCTION           functions of the kernel by its types, with * and ?
 *	kprobe:FUNCTION[+OFFSET]  kretprobe:FUNCTION    functions of a kernel with kprobes
 *	uprobe:PATH:FUNCTION[+OFFSET]  uretprobe:PATH:FUNCTION    functions of a program or library
 *	uprobe:PATH:0xADDRESS  uretprobe:PATH:0xADDRESS    code by an address of its symbol table
 *	usdt:PATH:[PROVIDER:]NAME                  static probes of a program or library
 *	NAME[:MODIFIER]...                         a counter, as libpfm4 names it: cycles:k
 *
 * PATH is a file, or a name that is searched as the system searches programs and libraries. Fields
 * are those of the tracepoint's format, the function's parameters (and "ret"), or arg0, arg1 and so
 * on. Parameters of a binary's function need debug information, in the file or in a debug file. If
 * an event of the catalogue comes from the tracepoint, the pattern names that event.
 * pem_event_set__new() calls this for such patterns itself.
 *
 * Returns how many events the pattern names. -EINVAL: it is no such pattern; -ENOENT: nothing has
 * that name; -E2BIG: it names too many events; another -errno: the search failed. All come with
 * error. Blocks on files, some milliseconds.
 */
int pem_session__add_probes(struct pem_session *session, const char *pattern,
			    struct pem_error *error);

/*
 * Return whether this machine can deliver an event to this user now: 1, or 0 with the reason and
 * what would change it. reason may be NULL. Opens nothing that lasts. Blocks on files.
 */
int pem_session__can_deliver(struct pem_session *session, const struct pem_event *event,
			     struct pem_error *reason);

/*
 * Return the source that delivers an event to this user now: "module" (pem.ko), "BPF", "counters"
 * or "stub". It is the first of pem_session__sources() that can. NULL: none can, and reason, which
 * may be NULL, says why and what would change it. The name lives as long as the session. Opens
 * nothing that lasts. Blocks on files.
 */
const char *pem_session__source_of(struct pem_session *session, const struct pem_event *event,
				   struct pem_error *reason);

/* How this machine counts an event of the processor, or of the kernel beside it. */
struct pem_counted_as {
	size_t size; /* of this struct */
	char name[160]; /* what libpfm4 calls it: the first of the event's names that is counted
			   here */
	uint64_t config; /* as struct perf_event_attr has it */
	uint32_t type; /* the same */
	/* 1: it takes one of the processor's counters while it is counted. */
	uint32_t takes_counter;
	/*
	 * Counters that the processor has for a thread, as libpfm4 tells: for any event, and for
	 * one event each. 0: unknown. The kernel or a virtual machine may have fewer of them.
	 */
	uint32_t counters, fixed_counters;
};

/*
 * Find how this machine counts an event, whether this user may count it or not. Returns 0. -ENOENT:
 * it is not the event of a counter, or this processor has none for it, as far as libpfm4 knows.
 * -EINVAL: counted_as->size. Opens nothing that lasts.
 */
int pem_session__counted_as(struct pem_session *session, const struct pem_event *event,
			    struct pem_counted_as *counted_as);
/*
 * Which of these events does the processor count at the same times, if all of them are counted in a
 * thread? turns[i] becomes the number of the turn in which event i is, from 1 on; 0: it takes no
 * counter of the processor, or can't be counted. Returns the number of turns; with 1, all are
 * counted all the time. Opens nothing that lasts: the kernel is asked, event by event.
 */
int pem_session__counter_turns(struct pem_session *session, const struct pem_event *const *events,
			       size_t count, uint32_t *turns);

/* A source that is installed. */
struct pem_source_state {
	size_t size; /* of this struct */
	const char *name; /* lives as long as the session */
	/* 1: this user can use it now. 0: reason says why not, and what would change it. */
	uint32_t usable;
	uint32_t reserved;
	struct pem_error reason;
};

/*
 * The installed sources, in the order in which they are asked for an event. Fills in at most max
 * elements, and returns how many it filled in. -EINVAL: the first element's size. Blocks on files.
 */
int pem_session__sources(struct pem_session *session, struct pem_source_state *states, size_t max);

/* What one event costs the observed program. */
struct pem_event_cost {
	size_t size; /* of this struct */
	/*
	 * "user-log" and "user-stat": a stub logs or counts the event. "libc-log" and so on: a
	 * function in front of the C library's does. "syscall-log": the entry or the exit of a
	 * system call, "path-log": a path of one, "kernel-log": another tracepoint. "uprobe-log"
	 * and so on: a function or static probe of a program. "uretprobe-log" and so on: a
	 * function's return. "sample": a timer; "sample-fp": with callers by frame pointers;
	 * "sample-dwarf": with a copy of the stack. "stack": an allocation's stack is looked for,
	 * beside its event; "stack-call": each call of that stack.
	 */
	char kind[24];
	double ns_each; /* nanoseconds, where pem's code and data are in the caches */
};

/*
 * Find what one event of each kind costs on this machine, as the ledger of a recording counts it.
 * Kinds that this user can't use are left out. Fills in at most max elements, and returns how many
 * it filled in. -EINVAL: the first element's size. The costs are measured once for each boot,
 * kernel, processor and version of pem, and kept in the user's cache folder. Measuring takes some
 * tenths of a second. Blocks on files.
 */
int pem_session__costs(struct pem_session *session, struct pem_event_cost *costs, size_t max);

/* --- sets of events --- */

/*
 * Make a set of the events that match any of count patterns (pem_event__matches). A layer's name
 * alone matches only events up to level 'info'. NULL with errno and error. EINVAL: count is 0, or a
 * pattern is empty. ENOENT: a pattern matches nothing; error names it and similar names. Events of
 * a program or a spec have to be added first, by pem_session__describe() or
 * pem_session__add_specs(). EPERM and others: a source could not search for a probe. The caller
 * frees the set; handles copy what they need. Blocks as pem_session__add_probes() for patterns of
 * probes.
 */
struct pem_event_set *pem_event_set__new(struct pem_session *session, const char *const *patterns,
					 size_t count, struct pem_error *error);

/* Free a set. Handles registered with it go on. NULL is accepted. */
void pem_event_set__free(struct pem_event_set *set);

/*
 * Let the events of a set count only where a predicate on their fields holds. The predicate is
 * tested where the event happens, before anything is written. Handles registered with the set from
 * then on are bound to it. NULL removes it.
 *
 *	predicate:	FIELD [& NUMBER] OP VALUE, joined by && and ||, negated by !, grouped by ( )
 *	OP:		== != < <= > >=
 *	VALUE:		a decimal, 0x or floating number, or a label ('state == running')
 *	NUMBER:		bits of the field, as a whole number or a label
 *
 * A comparison may also be a gate, joined to the rest by && alone, for statistics alone:
 *
 *	gate:		[!] inside INTERVAL [per thread | per process]
 *			[!] from EVENT to EVENT [per thread | per process]
 *
 * INTERVAL is the name of an event that begins intervals, or the group of such events. The events
 * of a gate are whole names of events that programs raise. 'inside': as many begins as ends were
 * not raised yet; 'from': the first event was raised after the second. The opening event is
 * outside, the closing one inside. The state is each thread's, or the process's; unless it is said,
 * it is as the interval's scope is, and each thread's for other events. Programs keep it
 * themselves, so that it is exact for each event, also of the kernel. A process that is observed
 * from its start on, and starts after a handle with the gate was enabled, is outside at first. In
 * any other, the state is unknown at first (in each thread): with 'from' until the next event of
 * the gate, with 'inside' until the next begin. Intervals that began before that begin do not
 * count. Events before it count in pem_statistic.undecided. So do events of the kernel in a process
 * that raises no event of the gate, or of which the session does not know yet, and those for which
 * the state could not be read. The session learns of a process in pem_session__poll(), which has to
 * run while the process works. After fork a child is outside; after exec a process is outside.
 *
 * FIELD alone is FIELD != 0. With bits, the result is an unsigned number. && binds tighter than ||.
 * Numbers are compared by value, whatever the field's width and sign. A NaN is unequal to every
 * number, and neither less nor greater. Strings, lists and arrays can't be tested. A pattern such
 * as 'APP' also matches events that the session does not know yet; with a predicate it does not.
 * Handles of a session may have different predicates of an event; a handle keeps the one that its
 * set had when it was registered.
 *
 * Returns 0; -EINVAL with error: where the mistake is and what may stand there, or the event that
 * lacks the field; -E2BIG: more than 32 comparisons, or 8 gates in the session; -ENOTSUP: a
 * counter, or a gate of an event that can't have one. On failure the set is as it was. Does not
 * block.
 */
int pem_event_set__where(struct pem_event_set *set, const char *predicate, struct pem_error *error);

/*
 * As pem_event_set__where(), for those events of the set that match a pattern. -ENOENT: none does;
 * -EINVAL also: pattern is NULL.
 */
int pem_event_set__where_of(struct pem_event_set *set, const char *pattern, const char *predicate,
			    struct pem_error *error);

/*
 * The predicate of event i as it was written first; NULL: it has none. Lives as long as the
 * session. Takes no lock.
 */
const char *pem_event_set__predicate(const struct pem_event_set *set, size_t i);

/* How many events are in the set. Takes no lock. */
size_t pem_event_set__count(const struct pem_event_set *set);

/* Event i of the set, or NULL. Lives as long as the session. Takes no lock. */
const struct pem_event *pem_event_set__event(const struct pem_event_set *set, size_t i);

/* --- statistics --- */

struct pem_statistic {
	size_t size; /* of this struct */
	const struct pem_event *event; /* lives as long as the session */
	/* 0, or the -errno of a source that can't deliver the event; the values are then 0 */
	int unavailable;
	int is_partial; /* 1: for a time it was not counted, to keep the overhead budget */
	uint64_t count;
	/* The members from here on describe the attribute. Without an attribute they are 0. */
	int is_signed; /* 1: read sum, min and max as int64_t */
	int is_float; /* 1: read sum_f, min_f and max_f */
	uint64_t sum, min, max;
	double sum_f, min_f, max_f, mean;
	/* of all values, not of a sample; 0 unless PEM_STATISTIC_VARIANCE is kept */
	double variance;
	/*
	 * Of a counter: the time in which what it counts could happen, and in which it counted. If
	 * running_ns is less, the hardware was shared: counted is what it counted, and count and
	 * sum are estimates for all of enabled_ns. If it never counted, unavailable is -EBUSY. Of
	 * other events these are 0.
	 */
	uint64_t enabled_ns, running_ns, counted;
	/*
	 * Of an estimate: with 95 % the true sum is at most so far from it, if the times in which
	 * the counter ran were like the others. NAN: too few times are known. 0: no estimate.
	 */
	double error;
	/*
	 * Counters with the same number, other than 0, were counted at the same times, so that the
	 * ratio of their sums is that of these times.
	 */
	uint32_t together;
	/*
	 * 1: count times the value that is furthest from 0 passes 64 bits, so the sum may have
	 * wrapped: it is right modulo 2^64, and mean is NAN. 0: sum and mean are right.
	 */
	uint32_t may_have_overflowed;
	/*
	 * With 'inside' or 'from' in the predicate: events that are not counted, because the
	 * state of a gate was unknown (pem_event_set__where).
	 */
	uint64_t undecided;
};

/*
 * Register statistics over each event of a set, in a context: its count and, of the field that
 * attribute names, the sum, least, greatest and mean value. attribute NULL: count only. A counter
 * event's attribute is its value. NULL with errno and error. EINVAL: no such attribute, or the
 * context; ENOSPC: PEM_FURTHER_HANDLES_MAX. The handle is the session's, until it is unregistered.
 * Does not block.
 *
 * A session may have several handles of an event, of every kind, each with an attribute, a
 * predicate and a context of its own. Those that share context and predicate cost a process no more
 * than one, but for a second statistic. Each that differs costs some nanoseconds more for each
 * event, in the processes that are in its context. Of an event without a stub, each that differs
 * costs as much as the first one: its source delivers the event once more.
 */
struct pem_statistics *pem_session__register_statistics(struct pem_session *session,
							const struct pem_event_set *set,
							const struct pem_context *context,
							const char *attribute,
							struct pem_error *error);

/* Handles of a session that differ from others of the same event; all its events together. */
#define PEM_FURTHER_HANDLES_MAX 64u

/* Bits for pem_statistics__keep: what else to keep of the attribute. */
#define PEM_STATISTIC_VARIANCE 1u
#define PEM_STATISTIC_HISTOGRAM 2u
#define PEM_STATISTIC_TOP 4u
#define PEM_DISTRIBUTION_EVENTS_MAX 16u /* in a session */

/*
 * Keep more of the attribute. what: PEM_STATISTIC_* joined by '|'. This costs some more nanoseconds
 * an event. Counters can't keep more. Call it before the handle is enabled for the first time. 0;
 * -EINVAL: there is no attribute; -EBUSY: it was enabled; -ENOTSUP: its events are counters only;
 * -ENOSPC: more than PEM_DISTRIBUTION_EVENTS_MAX such events in the session. Does not block.
 */
int pem_statistics__keep(struct pem_statistics *statistics, unsigned what);

/*
 * Begin to accumulate, in addition to the present values. Every observed process gets the demand at
 * once. 0, or -errno of joining this process (-EUSERS: eight sessions observe it already). If an
 * event's source fails, pem_statistic.unavailable says so, and not this function. The first call
 * may block until a source is open, some 50 ms for the kernel's. Later calls do not block.
 */
int pem_statistics__enable(struct pem_statistics *statistics);

/* Stop accumulating. The accumulated values stay readable. Does not block. */
void pem_statistics__disable(struct pem_statistics *statistics);

/*
 * Set the values to zero, enabled or not. An event that happens at the same time may still count
 * with values from before. Does not block.
 */
void pem_statistics__reset(struct pem_statistics *statistics);

/*
 * Fill in up to count elements, one for each event in the set's order, summed over processes,
 * threads and CPUs. Returns elements filled in; -EINVAL: the first element's size. Never stops a
 * producer. Blocks on the session's folder, and makes a system call for each counter.
 */
int pem_statistics__read(struct pem_statistics *statistics, struct pem_statistic *values,
			 size_t count);

/*
 * A histogram. bucket[0] counts values of 0 and below. bucket[i] counts values with 2^(i-1) <=
 * value < 2^i. The last one also counts greater values. Floating values count by their whole part.
 */
struct pem_histogram {
	size_t size; /* of this struct */
	uint64_t bucket[65];
};

/*
 * Read the histogram of event i of the set, summed as by pem_statistics__read(). Returns 0;
 * -EINVAL: i, or the size; -ENODATA: not kept.
 */
int pem_statistics__histogram(struct pem_statistics *statistics, size_t i,
			      struct pem_histogram *histogram);

/*
 * A frequent value. It came between count - error and count times (Space-Saving: Metwally, Agrawal,
 * El Abbadi, ICDT 2005). If a value is more frequent than one in 16 of a thread's or CPU's events,
 * it is among the entries of that thread or CPU.
 */
struct pem_top {
	size_t size; /* of this struct */
	uint64_t value; /* in the attribute's own type; the bits of a double for floating ones */
	uint64_t count, error;
};

/*
 * The most frequent values of event i, most frequent first. Fills in up to count elements, and
 * returns how many it filled in; -EINVAL: i, or the first element's size; -ENODATA: not kept.
 */
int pem_statistics__top(struct pem_statistics *statistics, size_t i, struct pem_top *top,
			size_t count);

/*
 * The thread or CPU that a part of a statistic is of.
 *
 * Events of stubs have pid and tid. tid stays for a while after the thread's end. tid 0: threads
 * whose cells other threads have taken. pid 0 and cpu PEM_NO_CPU: processes that ended. Events of
 * the kernel have cpu. Counters have one part, with pid 0 and cpu PEM_NO_CPU.
 *
 * With pem_session_options.by_process, events of the kernel have pid, and tid 0 and cpu PEM_NO_CPU,
 * and their parts have only count, sum and mean. pid 0 with a cpu: the CPU was idle. pid 0 and cpu
 * PEM_NO_CPU: also processes for which there was no room.
 */
struct pem_statistic_owner {
	size_t size; /* of this struct */
	uint32_t pid, tid, cpu;
	uint32_t reserved;
	char program[PEM_NAME_BYTES];
};

/*
 * Call function for each part that pem_statistics__read() would add up for event i: for each thread
 * or CPU that has values. part and owner live during the call. function must not use the session.
 * Returns parts, or -errno of an unavailable event. Blocks as pem_statistics__read().
 */
int pem_statistics__each(struct pem_statistics *statistics, size_t i,
			 void (*function)(const struct pem_statistic *part,
					  const struct pem_statistic_owner *owner, void *arg),
			 void *arg);

/* Disable and free a handle. NULL is accepted. Does not block. */
void pem_statistics__unregister(struct pem_statistics *statistics);

/* --- callbacks --- */

/*
 * Register a synchronous callback. function is called in the producing thread, in the middle of the
 * program, each time one of the set's events happens in this process in the context. The events
 * have stubs, and this process raises them. record and its data live until function returns.
 *
 * function may use every function here. It has to return: no longjmp, no pthread_exit. Events that
 * it raises are not called back. Events that a thread raises inside a function of pem (in malloc,
 * in a signal handler) are not called back either, because that function holds a lock; these count
 * as lost.
 *
 * NULL with errno and error. ENOTSUP: events without stubs, or of another process; EUSERS: eight
 * sessions observe this process; EINVAL: the context; ENOMEM: more than 64 such callbacks; ENOSPC:
 * PEM_FURTHER_HANDLES_MAX. Does not block.
 */
struct pem_callback *
pem_session__register_callback(struct pem_session *session, const struct pem_event_set *set,
			       const struct pem_context *context,
			       void (*function)(const struct pem_record *record, void *arg),
			       void *arg, struct pem_error *error);

struct pem_async_options {
	size_t size; /* of this struct; 0: as in version 0.2.0 */
	/*
	 * Call function at most this many microseconds after the event, if this process gets CPU
	 * time. 0: 1000. While events come, a timer wakes the callback thread after 3/4 of this
	 * time, but at least every 10 ms, and never more often than every 10 us. A shorter delay
	 * costs this process more wake-ups, and the observed program nothing.
	 */
	uint64_t max_delay_us;
};

/*
 * Register an asynchronous callback. function is called in this process, on a thread of the session
 * that does nothing else, for the events of any observed process and of the kernel, in the order of
 * their time across threads and CPUs. The program goes on meanwhile. It makes a system call only
 * for the first event after a pause, to wake this process up.
 *
 * function may use every function here. Events that it raises are not called back. If it forks, the
 * child's thread ends when function returns. While it runs no program waits for it: events wait in
 * as much memory as a pool has. An event that finds no room is lost and counted; a log of the
 * session does not lose it. If a thread is preempted while it writes a record, the record may come
 * after later ones, and counts as late. record (its time_ns is 0) lives until function returns.
 *
 * The log and all asynchronous callbacks of a session share an event's records: each gets those
 * that are its own. lost counts for each of them whatever was lost of the event, as nobody can tell
 * whose it was.
 *
 * options may be NULL. NULL with errno and error. EBUSY: the log or another asynchronous callback
 * takes records of one of the events in a way that a session can't add to: of an event with a stub,
 * on another CPU; of context switches, in another context or with another predicate. ENOSPC: more
 * than 64 such callbacks, or PEM_FURTHER_HANDLES_MAX; EUSERS: eight sessions observe this process;
 * EAGAIN: no thread; EINVAL: the context. Does not block.
 */
struct pem_callback *
pem_session__register_async_callback(struct pem_session *session, const struct pem_event_set *set,
				     const struct pem_context *context,
				     void (*function)(const struct pem_record *record, void *arg),
				     void *arg, const struct pem_async_options *options,
				     struct pem_error *error);

/*
 * Call function from the next event on. If a source of its events can't run, the session's log
 * function is told. The first call may block until a source is open.
 */
void pem_callback__enable(struct pem_callback *callback);

/*
 * Stop calling function, from the next event on. A call that runs goes on. Events that wait for an
 * asynchronous callback are not called back any more, and count as lost. A caller that wants all of
 * them calls pem_callback__settle first. Does not block.
 */
void pem_callback__disable(struct pem_callback *callback);

/* Counts of a callback so far. A synchronous callback has only lost. */
struct pem_callback_counts {
	size_t size; /* of this struct */
	uint64_t called; /* events that function was called for */
	uint64_t late; /* of these, called after an event of a later time */
	/*
	 * Events that found no room, were overwritten, or still waited when the callback was
	 * disabled. Of a synchronous callback: raised inside of pem.
	 */
	uint64_t lost;
	/*
	 * Events of all asynchronous callbacks of the session that are not called back yet. 0: no
	 * event from before this call waits.
	 */
	uint64_t waiting;
};

/* Read a callback's counts. Returns 0; -EINVAL: the size. Does not block. */
int pem_callback__counts(struct pem_callback *callback, struct pem_callback_counts *counts);

/*
 * Wait until an asynchronous callback has been called for each event from before this call that it
 * did not lose. Events that come later may be called back as well, and do not prolong the wait.
 * Returns 0, at once for a synchronous or a disabled callback, and in a child of fork; -EINVAL;
 * -EDEADLK: called by a function of an asynchronous callback of the session. Blocks for as long as
 * the functions of the session's callbacks take. Any other thread may call it, but no signal
 * handler.
 */
int pem_callback__settle(struct pem_callback *callback);

/*
 * Disable and free a callback. It waits until the callback's function returns in other threads.
 * After it returns the function is not called again. May be called from the function itself; it
 * does not wait for that call. NULL is accepted.
 */
void pem_callback__unregister(struct pem_callback *callback);

/* --- logs --- */

/*
 * Register a log of a set's events, in a context. directory is the trace's folder, which must not
 * exist, or is empty and not a link. A session has one log in its life. NULL with errno and error:
 * EACCES, ENOSPC and others of files; ENOSPC also: PEM_FURTHER_HANDLES_MAX; EEXIST: directory is
 * not empty; EBUSY: the session has had its log, or an asynchronous callback takes records of one
 * of the events in a way that rules a log out (pem_session__register_async_callback); EINVAL: the
 * context. The handle is the session's, until it is unregistered. Blocks on files.
 */
struct pem_log *pem_session__register_log(struct pem_session *session,
					  const struct pem_event_set *set,
					  const struct pem_context *context, const char *directory,
					  struct pem_error *error);

/*
 * Begin to log. Events that set the thread of the kernel's records are logged too, wanted or not.
 * Returns 0; -errno of joining this process; -EINVAL: the log is finished, and a session has one
 * log in its life. May block until sources are open, as pem_statistics__enable().
 */
int pem_log__enable(struct pem_log *log);

/* Stop logging, until the log is enabled again. Does not block. */
void pem_log__disable(struct pem_log *log);

/*
 * Stop, drain and complete the trace. Returns 0, or -errno of the first write that failed, with
 * error; lost records are counted. Further calls return the same result. Blocks on files.
 */
int pem_log__finish(struct pem_log *log, struct pem_error *error);

/* Finish and free a log. NULL is accepted. Blocks on files. */
void pem_log__unregister(struct pem_log *log);

/* --- flight recorders --- */

/*
 * Write what a flight recorder (options.overwrite) holds now as a separate trace, with the log's
 * events, and go on recording. The next snapshot also has the records that are still there then.
 * directory is as for pem_session__register_log(). cause: a few words that the trace notes; NULL:
 * "asked for". 0, or -errno with error; -EINVAL: not a flight recorder, or it logs nothing. Blocks
 * on files; producers go on.
 *
 * A flight recorder's memory is bounded, whatever it has recorded: a pool of each living process,
 * and twice as much for the events of the kernel and of counters and for the last 1,000 processes
 * that ended. Until a snapshot or the end of the log writes a trace, nothing is on a disk but those
 * pools, and these only if the runtime directory is on one.
 */
int pem_session__snapshot(struct pem_session *session, const char *directory, const char *cause,
			  struct pem_error *error);

/* A flight recorder of this user: a session with the option overwrite and a log. */
struct pem_recorder {
	/*
	 * Of this struct. pem_recorders() needs the first element's, and fills in the others.
	 * pem_recorder__snapshot() reads it; 0: as in version 0.2.0
	 */
	size_t size;
	uint32_t pid;
	/* 0: it was killed; pem_trace__recover() adds to its trace what programs had logged */
	uint32_t is_running;
	char session[64]; /* its name */
	char command[512]; /* the command that it started; "": none */
	char trace[4096]; /* where its log will be */
};

/*
 * Find the flight recorders of this user. Fills in at most max elements, and returns how many there
 * are, or -errno. -EINVAL: the first element's size. Takes no lock. Thread-safe. Blocks on files.
 */
int pem_recorders(struct pem_recorder *recorders, size_t max);

/*
 * Have a flight recorder write a snapshot to a directory, and wait for at most timeout_ms. The
 * directory is made, or is empty and not a link. The recorder writes it in pem_session__poll(). 0,
 * or -errno with error. -ESRCH: it does not run; -EBUSY: another request waits for its answer, and
 * this one was not made; -ETIMEDOUT: the recorder may still write the snapshot. Takes no lock.
 * Thread-safe.
 */
int pem_recorder__snapshot(const struct pem_recorder *recorder, const char *directory,
			   const char *cause, int timeout_ms, struct pem_error *error);

/* --- what a session asks of its sources --- */

/*
 * Read counters at each event of the kernel that is logged, and at context switches:
 * HW::HWPerf::HPMsAtEvent has their values. Only pem.ko does so (events of source type 'module').
 * names: a list separated by commas. Each name is an event of the catalogue that comes from a
 * counter (its last word is enough, in upper or lower case), or a libpfm4 event. Call it before
 * anything is enabled. 0, or -errno with error. -EBUSY: a handle was enabled already; -EINVAL: an
 * empty name; -E2BIG: more than 8;
 * -ENOENT: libpfm4 knows no such name, if pem was built with it. Only opening the counters shows
 * whether this machine has them. May block on files.
 */
int pem_session__set_counters(struct pem_session *session, const char *names,
			      struct pem_error *error);

/*
 * Let threads read the counters of pem_session__set_counters at each event of a set that a program
 * raises and that is logged: HW::HWPerf::HPMsInThread has their values, in front of the event's
 * record. A thread reads its own counters, in the processor, without a system call. Call it before
 * anything is enabled; enable HW::HWPerf::HPMsInThread, too. Of a counter that can't be had here
 * the session's log function is told why. 0, or -errno with error: -EBUSY: a handle was enabled
 * already; -EINVAL: no counters are named;
 * -ENOENT: the set has no events of programs; -ENOTSUP: threads can read none of the counters here.
 * May block on files.
 */
int pem_session__count_at(struct pem_session *session, const struct pem_event_set *set,
			  struct pem_error *error);

/*
 * Set how often pem.ko samples page tables and free memory (OS::Pages), in microseconds, and the
 * size of a region in bytes. The defaults are 100000 us and 2 MiB. Call it before anything is
 * enabled. 0; -EBUSY: a handle was enabled already; -EINVAL: an interval below 1000 us, or a region
 * that is no power of two from 4096 to 2^40. Does not block.
 */
int pem_session__set_page_sampling(struct pem_session *session, uint32_t interval_us,
				   uint64_t region_bytes);

/*
 * Keep the cost of observing below a share of the observed programs' CPU time. 0.01: one hundredth;
 * 0: no limit. It is checked every 100 ms, with the cost of each kind of event on this machine
 * (pem_session__costs) and the number of events. The costliest events step down from log to
 * statistics to off, and back up once there is room. Each step is reported to the session's log
 * function and recorded in the trace. Returns 0; -EINVAL: no valid share. Does not block.
 */
int pem_session__set_budget(struct pem_session *session, double share);

/* --- observing programs --- */

struct pem_run_options {
	size_t size; /* of this struct; 0: as in version 0.2.0 */
	/*
	 * 1: raise the events of an unmodified program. libpem-libc.so is preloaded, and so are the
	 * adapters whose events are wanted at this time.
	 */
	int preload_libc;
	int no_follow; /* 1: observe the command alone, and not processes that it starts */
	/*
	 * So many first words of argv run the command: the trace has the rest, of one word or more,
	 * as its own.
	 */
	uint32_t runner_words;
	/*
	 * 1: preload nothing, whatever preload_libc says. The command, and what it starts, raise no
	 * events of their own but those of providers that are linked with libpem. For sessions of
	 * events of the kernel and of the hardware alone. Without effect if a predicate has a gate.
	 */
	uint32_t no_preload;
	/*
	 * 1: the command begins a process group of its own, as by setpgid(0, 0). A signal that it
	 * sends to its group does not reach the caller. ^C at the caller's terminal does not reach
	 * the command. Without effect on pem_run__exec().
	 */
	uint32_t own_group;
};

/*
 * Start a command under the session. argv ends with NULL; argv[0] is searched in PATH. Events that
 * are enabled now are observed from the command's first instruction on, in it and in its
 * descendants. A session has one command in its life. options may be NULL.
 *
 * Returns its pid, or -errno with error. -ENOENT: no such command; -EBUSY: the session has had its
 * command, or a try to start one. Blocks while sources open.
 */
pid_t pem_session__run(struct pem_session *session, char *const argv[],
		       const struct pem_run_options *options, struct pem_error *error);

/*
 * Observe programs in a context, both running ones and later ones. The context may be a process
 * (pid, with or without follow), all processes with a program's name, of a control group or of a
 * namespace. An unrestricted context is every program of this user; for root it is every program,
 * and also the kernel's events of the whole machine. Call it once for each context. A handle's own
 * context restricts further what the handle gets.
 *
 * A program can raise application events if it was linked with libpem or started with it preloaded
 * ('pem run -- COMMAND'). Link with 'pkg-config --libs libpem': -lpem alone is left out by linkers
 * that get --as-needed, as stubs refer to nothing of it. Other programs have only the kernel's
 * events. A context with pid also describes that process (pem_session__describe): sets made later
 * can name its own events. If the process can't be described, they stay unknown, and attach goes on
 * without an error. Sets that exist do not grow.
 *
 * Returns how many processes were found that have raised application events, or -errno with error.
 * A process that can raise them and has raised none yet is not counted; it is observed from its
 * first event on. If the context names a process that can raise none, because it was not started
 * with libpem, or none of the events that handles of the session are registered for, because their
 * library was not loaded into it, then error has a sentence that says so, which the log gets as a
 * warning, too: statistics of these events there stay 0. In all other cases of success error has no
 * text. -ESRCH: no such process or thread; -EPERM: another user's; -EUSERS: eight sessions observe
 * it; -ENOSPC: more than 63 contexts in the session; -EINVAL: the context. On failure the session
 * may observe a part of it. Blocks while sources open, some 50 ms, and while the runtime
 * directories of other users and of containers are searched, at most 2 s. It does the work of
 * pem_session__poll() meanwhile, and other threads may use the session. Processes that are found
 * there later are observed too.
 */
int pem_session__attach(struct pem_session *session, const struct pem_context *context,
			struct pem_error *error);

/*
 * The processes observed now. Fills in at most max elements, and returns how many there are.
 * -EINVAL: the first element's size. Does not block.
 */
int pem_session__processes(struct pem_session *session, struct pem_statistic_owner *processes,
			   size_t max);

/*
 * Do the session's work for at most timeout_ms: find new producers, drain pools, sample counters.
 * Pools fill between calls, so call it again soon.
 *
 * Returns 1: the command ended, and *wait_status is as waitpid() fills it. 0: the time is up (at
 * once, if timeout_ms is 0 or less). -EINTR: the session was interrupted. -ECHILD, at once: the
 * command could not be started, and the session observes nothing else. A session without a command
 * never returns 1.
 */
int pem_session__poll(struct pem_session *session, int timeout_ms, int *wait_status);

/*
 * Wall-clock time in nanoseconds from the command's exec to its end, or to now; 0: none was
 * started. Does not block.
 */
uint64_t pem_session__elapsed_ns(const struct pem_session *session);

/*
 * End pem_session__poll() in every thread, now and later: after a signal, before pem_log__finish().
 * The command goes on. Takes no lock. Thread-safe, async-signal-safe, does not block.
 */
void pem_session__interrupt(struct pem_session *session);

/*
 * Replace this process by a command that sessions can attach to later. Libraries that raise its
 * events are preloaded. No session observes it yet. options as for pem_session__run(), or NULL.
 * Returns on failure only: -errno with error; -ENOENT: no such command. By then the thread may have
 * dropped capabilities as pem_run__drop_capabilities() does. Takes no lock.
 */
int pem_run__exec(char *const argv[], const struct pem_run_options *options,
		  struct pem_error *error);

/*
 * Take pem's own capabilities (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYS_ADMIN) out of the
 * inheritable and ambient sets of the calling thread, and of threads that it makes later. The
 * thread's own rights stay. Programs that it starts as an ordinary user no longer get them; root's
 * programs get what they always get. The functions above do this for their command. Call this one
 * before a program is started in another way. 0, or -errno. Takes no lock. Thread-safe,
 * async-signal-safe, does not block.
 */
int pem_run__drop_capabilities(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
