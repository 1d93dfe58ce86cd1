/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cost.h - what observing costs on this machine, what it has cost, and the budget that limits it
 *
 * calibrate.c measures costs by event_cost.c and process_cost.c, and cost_cache.c remembers them.
 * ledger.c states what a recording cost. detail.c counts events and CPU time, has them judged
 * (budget.h), does what the judge says, and records each step.
 */
#ifndef PEM_COST_H
#define PEM_COST_H

#include <pem/pem.h>
#include <pem/trace.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct pem_detail_state;
struct pem_producer;
struct pem_session;
struct pem_source_ops;

/* --- detail.c --- */

/* Judge, if it is time to: change the demands' detail levels and publish them. */
void pem_session__judge(struct pem_session *session, uint64_t now_ns);

/* Count what a producer raised since the last count. The producer is about to go away. */
void pem_session__count_producer(struct pem_session *session, struct pem_producer *producer);

/*
 * Write the steps that are not in the log's trace yet, and their account. Note in info which events
 * were only counted.
 */
void pem_session__account_detail(struct pem_session *session, struct pem_trace_info *info);

void pem_session__forget_detail(struct pem_session *session);

/* --- cpu_time.c --- */

/*
 * Return the CPU time so far of the observed programs: the session's command, the processes that it
 * was attached to, every process with a pool, and the children that they have waited for. Returns
 * the machine's time if the whole machine is observed. The value falls when a process ends and no
 * observed process waits for it.
 */
uint64_t pem_session__program_cpu_ns(const struct pem_session *session);

/*
 * Return the CPU time of all that ran on this machine since it booted, in ns. Its steps are ticks
 * of some milliseconds. 0: not known.
 */
uint64_t pem_machine_cpu_ns(void);

/* Kinds of events, by how an event is raised. */
enum pem_cost_kind {
	PEM_COST_USER, /* a stub */
	PEM_COST_LIBC, /* a stub in a function that stands in front of the C library's */
	PEM_COST_SYSCALL, /* entry to or exit from a system call */
	PEM_COST_PATH, /* the path that a system call was given */
	PEM_COST_FILE, /* the path of the file that a descriptor is of */
	PEM_COST_KERNEL, /* another tracepoint, pem.ko, a function of the kernel */
	PEM_COST_UPROBE, /* an instruction of a program: functions' entries, static probes */
	PEM_COST_URETPROBE, /* functions' returns */
	/* A timer's interrupt. In the order of enum pem_stacks. */
	PEM_COST_SAMPLE,
	PEM_COST_SAMPLE_FRAMES, /* with callers, by frame pointers */
	PEM_COST_SAMPLE_TABLES, /* with a copy of the stack */
	PEM_COST_STACK, /* the stack of an allocation is looked for */
	PEM_COST_CALL, /* each call of it */
	PEM_COST_KINDS,
	PEM_COST_NONE = PEM_COST_KINDS /* counters, which the recorder reads in its own time */
};

/* Kinds that are measured together, with the source that serves the kernel's tracepoints. */
#define PEM_COST_KERNEL_KINDS                                                                      \
	(1u << PEM_COST_SYSCALL | 1u << PEM_COST_PATH | 1u << PEM_COST_FILE | 1u << PEM_COST_KERNEL)

/* They are measured together, and are no events: an event of the C library has them beside. */
#define PEM_COST_STACK_KINDS (1u << PEM_COST_STACK | 1u << PEM_COST_CALL)

struct pem_run_options;

/* What a step takes: in a loop; with other work that it includes; and after much other work. */
struct pem_step {
	double warm, cooler, cold;
};

/* What one event costs here, in nanoseconds; 0: not measured. The cold ones are not less. */
struct pem_cost {
	double log_ns, stat_ns, cold_log_ns, cold_stat_ns;
	/*
	 * A program that works no longer than this between two events has warm caches; and how much
	 * longer one works whose events cost half way from warm to cold.
	 */
	double warm_gap_ns, half_gap_ns;
};

/*
 * What a process costs more that is observed by all that a session wants, in ns, beside its events:
 * at each switch of its threads, at each page fault, and from its start to its end. 0: unknown.
 */
struct pem_process_cost {
	uint64_t set; /* a hash of what was wanted; 0: nothing was measured */
	double switch_ns, fault_ns, start_ns;
};

/* Sets whose costs are remembered. A set that is measured when there are as many drops the last. */
#define PEM_PROCESS_COSTS 32

struct pem_costs {
	struct pem_cost each[PEM_COST_KINDS];
	double page_ns; /* first use of a page of a pool; 0: not measured */
	double lost_ns; /* an event of a program that finds no room in its pool; 0: not measured */
	/* The set that was measured last is the first. After the last one, set is 0. */
	struct pem_process_cost processes[PEM_PROCESS_COSTS];
	/* Name of the source for which the kernel's kinds were measured; "": not asked yet. */
	char kernel_source[16];
};

struct pem_session_cost {
	struct pem_detail_state *detail; /* of the overhead budget; NULL: none was ever set */
	struct pem_costs costs; /* zero: not measured */
	uint32_t costs_tried; /* bits of the kinds that were asked for */
	/*
	 * What it takes a thread to read the session's counters at an event, without the record. 0:
	 * not measured, or it reads none. Not remembered: each session may have other counters.
	 */
	double reading_ns;
	bool reading_tried;
	struct pem_process_cost process; /* of what this session wants */
	uint64_t pool_pages; /* of pools that are gone */
};

/* --- calibrate.c --- */

enum pem_cost_kind pem_session__cost_kind(const struct pem_session *session,
					  const struct pem_event *event);
/* Return a bit for each kind of which an event is wanted, logged or counted. */
uint32_t pem_session__cost_kinds(const struct pem_session *session);

/*
 * Return what these kinds cost: remembered, or measured now. To measure, programs are loaded into
 * the kernel.
 */
const struct pem_costs *pem_session__measure(struct pem_session *session, uint32_t kinds);

/*
 * Write a kind's name, such as "uprobe-log" or "uprobe-stat". A sample is only logged, so its name
 * has no ending.
 */
void pem_cost__name(char *text, size_t bytes, unsigned kind, bool stat);

/*
 * Return what an event that is logged (or counted) costs a program that works gap_ns between two of
 * them; less than 0: unknown. It lies between the cost with warm caches and that with cold ones.
 */
double pem_cost__at(const struct pem_cost *cost, bool stat, double gap_ns);

/* The cost of which these are the costs of a step plain, logged and counted, with its events. */
struct pem_cost pem_cost__of(struct pem_step plain, struct pem_step logged, struct pem_step counted,
			     double events);

/* How much longer something takes than without it: not less than 0. */
static inline double pem_cost__more(double with, double without)
{
	return with > without ? with - without : 0;
}

/* Round to picoseconds, so that a measured cost equals the remembered one. */
double pem_cost__rounded(double ns);

/* --- event_cost.c --- */

/*
 * Measure these kinds (bits), and write their costs. kernel: the source above. A cost of 0 could
 * not be measured.
 */
void pem_session__measure_kinds(struct pem_session *session, uint32_t kinds,
				const struct pem_source_ops *kernel, struct pem_costs *costs);

/* --- source_cost.c --- */

/* Measure the kernel's kinds: a call on a descriptor, a path beside its call, and a new file. */
void pem_session__measure_calls(struct pem_session *session, const struct pem_source_ops *kernel,
				struct pem_cost *each);

/* Measure an event of a function. kind: "uprobe" or "uretprobe". */
struct pem_cost pem_session__measure_function(struct pem_session *session, const char *kind);

/* The source that serves the kernel's tracepoints here. NULL: there is none. */
const struct pem_source_ops *pem_session__kernel_source(struct pem_session *session);

/* --- process_cost.c --- */

/*
 * Find what a process costs that this session observes, beside its events: remembered, or measured
 * now. started: how the session starts programs; NULL: it starts none. Returns whether it had to be
 * measured.
 */
bool pem_session__measure_process(struct pem_session *session,
				  const struct pem_run_options *started);

/* Find once what reading the session's counters at an event costs. */
void pem_session__measure_reading(struct pem_session *session);

/* Measure the first use of a page of a pool, in ns. 0: it can't be measured. */
double pem_page_ns(void);

/* How many ns are these cycles of pem_clock()? */
double pem_cycles_ns(double cycles);

/* --- ledger.c --- */

/*
 * Find what each kind of logged event costs here, and what processes cost. started: how the session
 * starts programs; NULL: it starts none. Fills ns_each of info->costs; counts stay 0.
 */
void pem_session__calibrate(struct pem_session *session, struct pem_trace_info *info,
			    const struct pem_run_options *started);

/*
 * Add a line to info->costs, of a cost between least_ns and most_ns. If there are as many as that
 * holds, lines without an event give way, and then the last line becomes the sum of "others".
 */
void pem_cost__add(struct pem_trace_info *info, const char *kind, double ns, double least_ns,
		   double most_ns, uint64_t count);

/* Fill in info->costs as of now, when info has the programs' CPU time. */
void pem_session__count_costs(struct pem_session *session, struct pem_trace_info *info);

/* Add what counting costs to info->costs. counted: how many events of each kind were counted. */
void pem_session__add_stat_costs(struct pem_session *session, struct pem_trace_info *info,
				 const uint64_t *counted);

/*
 * What it costs an allocation that its stack is looked for, in a program that works gap_ns between
 * two events: the mean so far. 0: none was looked for.
 */
double pem_session__walk_ns(const struct pem_session *session, double gap_ns);

/* Note how much of its pool a producer used, which is about to go away. */
void pem_session__note_pool(struct pem_session *session, const struct pem_producer *producer);

/* --- steps.c --- */

enum pem_caches { PEM_WARM, PEM_COOLER, PEM_COLD, PEM_CACHES };

/* A step that this thread takes. */
struct pem_stepper {
	void (*step)(void *arg);
	void *arg;
	volatile uint8_t *memory; /* pem_step__memory() */
	unsigned warm; /* how often in a row */
	/*
	 * How often in a turn with cold caches, and how many steps before these do not count,
	 * because another program may have run before the turn.
	 */
	unsigned cold, before;
};

/* Memory to walk through, so that caches become cold. The caller frees it. NULL: there is none. */
volatile uint8_t *pem_step__memory(void);

/* Take a turn of a step; the result is the time of one step in ns. */
double pem_step__turn_ns(const struct pem_stepper *stepper, enum pem_caches caches);

/*
 * Measure a step for some time: what it takes warm, and in cooler with the other work before it. In
 * ns; cold is as cooler.
 */
struct pem_step pem_step__measure(const struct pem_stepper *stepper);

#define PEM_STEPS_MOST 4
#define PEM_TURNS 81

/* Take a turn of a step, here or in a program, and write its time. Returns success. */
typedef bool pem_step_turn(void *arg, unsigned step, enum pem_caches caches, double *ns);

/*
 * Find in turns how much longer the other steps take than the first one, whose times the caller has
 * written to taken[0]. The differences hold beside other load. Two results of pem_step__measure()
 * may not be subtracted there. Returns false if a turn fails; then taken is left alone. step_count:
 * at most PEM_STEPS_MOST.
 */
bool pem_step__compare(pem_step_turn *turn, void *arg, unsigned step_count, struct pem_step *taken);

/* Return the mean of the middle half of these values, which are sorted meanwhile. */
double pem_step__typical(double *values, size_t count);

/* The time of a clock in ns. */
double pem_step__clock_ns(clockid_t clock);

/* For qsort(), of numbers of type double. */
int pem_step__by_value(const void *a, const void *b);

/* --- exercise.c, and exercise/main.c, the program that is run --- */

#define PEM_EXERCISE_ALLOCATE 'a' /* a pair of malloc and free */
#define PEM_EXERCISE_DEEP 'd' /* the same below PEM_EXERCISE_DEPTH further calls */
#define PEM_EXERCISE_DEPTH 20
#define PEM_EXERCISE_CALL 'c' /* a system call */
#define PEM_EXERCISE_PATH 'p' /* one that takes a path */
#define PEM_EXERCISE_OPEN 'o' /* three: another file is opened, used and closed */
#define PEM_EXERCISE_SWITCH 's' /* to another process */
#define PEM_EXERCISE_FAULT 'f' /* madvise(), and a page fault */
#define PEM_EXERCISE_START 'x' /* a process starts, becomes another program, and ends */

struct pem_exercised {
	struct pem_step step; /* of the first five */
	/*
	 * Of the others: the CPU time of each, and how many there were. Of a turn of the first
	 * five, the time of one. Of an allocation, count is the number of calls of its stack.
	 */
	double ns, count;
};

/* What the program reads. caches: take a turn; PEM_CACHES: do it whole. */
struct pem_exercise_word {
	char what;
	uint8_t caches;
};

/* A process that is about to become pem-exercise. */
struct pem_exercise {
	pid_t pid; /* 0: it could not be started */
	int fd;
	unsigned limit_ms; /* a program that takes longer for a word is taken for one that hangs */
};

/* cpu: the program runs on it alone, as do others that it is compared with; -1: on any. */
bool pem_exercise__begin(struct pem_exercise *exercise, int cpu, char *const environment[]);

/* Let it do something. It becomes that program with the first such call. Returns success. */
bool pem_exercise__do(const struct pem_exercise *exercise, char what, struct pem_exercised *done);

/* Let it take a turn of one of the first five. Returns success. */
bool pem_exercise__turn(const struct pem_exercise *exercise, char what, enum pem_caches caches,
			double *ns);

/* A step of a program. */
struct pem_exercise_step {
	const struct pem_exercise *exercise;
	char what;
	double count; /* as in pem_exercised */
};

/*
 * Measure the first step, and how much longer the others take (pem_step__compare). Writes each
 * count. Returns success. step_count: at most PEM_STEPS_MOST.
 */
bool pem_exercise__compare(struct pem_exercise_step *steps, unsigned step_count,
			   struct pem_step *taken);

/* End the program, by force if it hangs. One that was not started is left alone. */
void pem_exercise__end(struct pem_exercise *exercise);

/* --- libc_cost.c --- */

/*
 * Measure what a call of malloc or free costs that is recorded, one that is counted, and one whose
 * record is lost.
 */
struct pem_cost pem_libc_cost(double *lost_ns);

/*
 * Measure what it costs an allocation that its stack is looked for: in any case, and for each call
 * of the stack. libc: the cost of an event of the C library.
 */
void pem_stack_cost(const struct pem_cost *libc, struct pem_cost *stack, struct pem_cost *call);

/* --- sample_cost.c --- */

/* Measure by how much the interrupt of a sample with such stacks delays the sampled thread. */
double pem_sample_ns(enum pem_stacks stacks);

/* --- cost_cache.c --- */

/* Load the remembered costs. False: there are none that hold here and now. */
bool pem_costs__load(struct pem_costs *costs);

/*
 * Remember costs. If this fails, the next recording takes some time to measure, and nothing else
 * happens.
 */
void pem_costs__store(const struct pem_costs *costs);

/* What was remembered of a set. NULL: nothing. */
const struct pem_process_cost *pem_costs__of_set(const struct pem_costs *costs, uint64_t set);

/* Put a set in front of the others, in place of what was remembered of it. */
void pem_costs__add_set(struct pem_costs *costs, const struct pem_process_cost *process);

#endif
