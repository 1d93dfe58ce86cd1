/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pass.h - what the parts of the context stage share
 *
 * Not here: the public interface (pem/context.h).
 *
 *	pass.c       one record after the other through all parts
 *	live.c       the same with records that the caller hands over
 *	plan.c       what the model's events mean, worked out once
 *	life.c       processes and threads: who exists, names, starts and ends
 *	states.c     what threads do: running, runnable, blocked
 *	path.c       the critical path to what they do
 *	intervals.c  open intervals, and which begin an end belongs to
 *	phases.c     which phase a record lies in
 *	messages.c   which send a receive belongs to
 *	blocks.c     memory that is allocated
 *	files.c      which file a descriptor is
 *	keys.c       a map from keys to lists
 *
 * Losses. A stream lost records in a window of time: between the record before the loss and the
 * record behind it. The reader tells a window when the merge arrives at its begin, so that nothing
 * is claimed of the time in it (pem_trace__losses). Each domain - the kernel, a process's own
 * records, all records - keeps the end of its last window. What began before that is in doubt, and
 * is not matched.
 */
#ifndef PEM_PASS_H
#define PEM_PASS_H

#include <pem/context.h>

#include "reader/reader.h"

#include <stdbool.h>
#include <string.h>

#define PEM_KEYS_MAX 16u
#define PEM_OPEN_NESTED_MAX 1024u /* of a thread, or of a CPU */
#define PEM_NONE UINT32_MAX
#define PEM_CALLS_MAX 1024u /* numbers of system calls */

/* --- plan.c --- */

/* A number in a record. bytes 0: the event has no such field. */
struct pem_number_at {
	uint16_t offset;
	uint8_t bytes;
	uint8_t is_signed;
};

/* What one event is to the pass. */
struct pem_plan {
	const struct pem_event *event; /* NULL: free entry of the table */
	uint8_t meaning;
	uint8_t scope;
	bool is_phase;
	/* The kernel raises it only in processes that the recording observes. */
	bool shows_observed;
	bool ends_elsewhere; /* may end an interval that another process began */
	bool is_named; /* an event of its group has a name */
	bool is_of_proc; /* the recorder raised it by looking: its interval may be open already */
	uint32_t group; /* PEM_NONE: matches nothing */
	uint32_t partners; /* begin events: ends of this group in the model; ends: begins */
	int16_t name; /* field of role 'name', or -1 */
	uint8_t key_count;
	uint8_t keys[PEM_KEYS_MAX]; /* fields of role 'key' */
	struct pem_number_at process, thread, previous_thread, parent, state;
	struct pem_number_at address, old_address, size, code, stack;
	struct pem_number_at system_call, descriptor, file_kind, interrupt, holder;
	/*
	 * Of a begin of system calls: a bit for each that takes a descriptor, and then for each
	 * that takes a path. NULL: it is none.
	 */
	uint64_t *call_kinds;
};

struct pem_plans {
	struct pem_plan *entries; /* as those of the trace's struct pem_event_table */
	size_t entry_count;
	const char **groups; /* names, of the model */
	size_t group_count;
	bool has_access; /* an event of meaning 'access' is in the model */
};

int pem_plans__build(struct pem_plans *plans, const struct pem_event_table *table,
		     const struct pem_model *model);
void pem_plans__free(struct pem_plans *plans);

static inline uint64_t pem_number__load(struct pem_number_at at, const uint8_t *data)
{
	uint64_t value = 0;

	if (PEM_LIKELY(at.bytes == 8)) {
		memcpy(&value, data + at.offset, sizeof(value));
		return value;
	}
	switch (at.bytes) {
	case 1:
		value = data[at.offset];
		break;
	case 2: {
		uint16_t n;

		memcpy(&n, data + at.offset, sizeof(n));
		value = n;
		break;
	}
	case 4: {
		uint32_t n;

		memcpy(&n, data + at.offset, sizeof(n));
		value = n;
		break;
	}
	default:
		return 0;
	}
	if (at.is_signed)
		value = (uint64_t)((int64_t)(value << (64 - at.bytes * 8)) >> (64 - at.bytes * 8));
	return value;
}

uint64_t pem_plan__hash_keys(const struct pem_plan *plan, const struct pem_record *record);
uint64_t pem_plan__hash_name(const struct pem_plan *plan, const struct pem_record *record);

/*
 * Hash of the values of a record's keys. A number has the same hash in every width. 0 keys: 0.
 */
static inline uint64_t pem_plan__keys(const struct pem_plan *plan, const struct pem_record *record)
{
	return plan->key_count ? pem_plan__hash_keys(plan, record) : 0;
}

/* Hash of the name in the record, never 0; 0: the event has none. */
static inline uint64_t pem_plan__name(const struct pem_plan *plan, const struct pem_record *record)
{
	return plan->name < 0 ? 0 : pem_plan__hash_name(plan, record);
}

static inline uint64_t pem_mix(uint64_t x)
{
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
	return x ^ (x >> 32);
}

static inline uint64_t pem_mix2(uint64_t a, uint64_t b)
{
	return pem_mix(a ^ pem_mix(b + 0x9e3779b97f4a7c15ull));
}

/* --- keys.c: from a 64-bit key to the first of a list, which its elements link --- */

struct pem_keys {
	struct pem_key_entry {
		uint64_t key; /* 0: free */
		void *first;
	} * entries;
	size_t size; /* a power of two, or 0 */
	size_t count;
	unsigned shift; /* 64 - log2(size) */
	uint64_t multiplier; /* of hash.h */
};

/* Address of the first element's pointer, or NULL: there is no such key. key is not 0. */
void **pem_keys__find(const struct pem_keys *keys, uint64_t key);
/* The same, made if it is not there. NULL: no memory. */
void **pem_keys__at(struct pem_keys *keys, uint64_t key);
/* Forget a key whose list became empty. entry is what pem_keys__find returned. */
void pem_keys__remove(struct pem_keys *keys, void **entry);
void pem_keys__free(struct pem_keys *keys);

/* --- the pass's own processes and threads --- */

struct pem_open;
struct pem_phase_list;

struct pem_life_process {
	struct pem_pass_process process;
	struct pem_life_process *parent;
	uint32_t live_threads;
	uint64_t user_loss; /* end of the last window of its own records */
	uint64_t last_clock; /* of its last record */
	bool is_seen; /* it raised a record that is no sampler's */
	/* Since when all switches of its threads are recorded; UINT64_MAX: it is not known */
	uint64_t observed_clock;
	/* They are not: a thread left its CPU without a record, and none was lost. */
	bool has_unseen_switches;
	struct pem_phase_list *phases; /* its open phases; NULL: it had none */
	char *arguments; /* NULL: unknown */
	uint64_t arguments_clock; /* when they were told */
	bool is_told; /* and no name was told since */
};

struct pem_life_thread {
	struct pem_pass_thread thread;
	struct pem_life_process *process;
	uint64_t user_loss, kernel_loss; /* what began before is in doubt */
	uint64_t user_sure, kernel_sure; /* what was open then was open until here */
	uint64_t kernel_clock; /* until then the kernel's records tell where it was */
	bool is_doubtful; /* there was a loss that its intervals were not checked for */
	bool entered_in_loss; /* a CPU was losing records when it entered its state */
	bool makes_calls; /* its system calls are recorded */
	bool tells_wakes; /* the trace has records of its wake-ups */
	bool is_ready; /* in state UNKNOWN: it ran or waited for a CPU since since_clock */
	bool is_seen; /* it raised a record, or was on a CPU */
	struct pem_open **open; /* its open intervals of scope 'thread', the oldest first */
	uint32_t open_count, open_capacity;
	uint32_t phase_count; /* of these */
	struct pem_pass_file *path; /* of the call that it begins next; NULL: unknown */
	uint32_t path_call; /* number of that call */
	bool path_is_told, path_is_empty;
	uint64_t path_clock; /* when it was said */
	/* Said by 'thread-waking' since it blocked: */
	struct pem_life_thread *waker;
	enum pem_woken_by woken_by;
	struct pem_path_node *woken_path; /* the waker's path then; NULL: unknown */
	struct pem_path_node *critical; /* its critical path so far; NULL: none */
	uint64_t since_clock; /* of the state; of an ended thread: of what it does to leave */
	/* What an ended thread does until it leaves its CPU for good. UNKNOWN: it has left. */
	enum pem_thread_state leaving;
	/* What it sleeps on, as the recorder found it. waits_on is valid while is_told_why. */
	bool is_told_why;
	char *waits_on; /* NULL: unknown */
	struct pem_life_thread *holder;
};

/* An interval that is open. */
struct pem_open {
	struct pem_interval interval;
	const struct pem_plan *plan;
	struct pem_life_thread *thread;
	struct pem_life_process *process;
	uint64_t keys, name; /* hashes */
	struct pem_open *next, *previous; /* in the list of its key; free: in the free list */
	uint64_t list; /* key of that list; 0: it is in none */
	/* Of a phase: in the list of a process, and in the pass's list of all open phases */
	struct pem_open *older_phase, *newer_phase, *older_of_all, *newer_of_all;
	struct pem_open *next_named, *previous_named;
	uint64_t named_list;
	bool is_on_descriptor; /* a call that could take a path, and is on its descriptor's file */
	struct pem_phase_list *phase_list; /* that it was put in; NULL: in none */
	struct pem_open *allocated; /* the next of all that were ever allocated */
	uint32_t data_capacity;
	uint8_t *data; /* of the begin's record */
};

/* --- life.c --- */

struct pem_life {
	struct pem_life_process **processes;
	size_t process_count, process_capacity;
	struct pem_life_thread **threads;
	size_t thread_count, thread_capacity;
	struct pem_keys by_pid; /* pid to the process of now */
	struct pem_keys by_tid; /* tid to the thread of now */
	uint64_t reuses; /* how often a number got another owner */
};

struct pem_pass;

void pem_life__free(struct pem_life *life);
/* The trace ends: processes get their last names. */
void pem_life__finish(struct pem_pass *pass);
/* A process and one of its threads (tid 0: none) got names. Returns 0 or -ENOMEM. */
int pem_life__call(struct pem_pass *pass, uint32_t pid, uint32_t tid);
/* The process of a pid, made if it is not known. pid is not 0. NULL: no memory. */
struct pem_life_process *pem_life__process(struct pem_pass *pass, uint32_t pid);
/*
 * The thread of a tid, made if it is not known. pid 0: its process is unknown. tid is not 0. NULL:
 * no memory.
 */
struct pem_life_thread *pem_life__thread(struct pem_pass *pass, uint32_t pid, uint32_t tid);
/* The thread of a tid, or NULL. */
struct pem_life_thread *pem_life__known(const struct pem_pass *pass, uint32_t tid);
/* Learn from a record of meaning thread-start, thread-end or of names. Returns 0 or -ENOMEM. */
int pem_life__learn(struct pem_pass *pass, const struct pem_plan *plan,
		    const struct pem_record *record);

/* --- states.c --- */

struct pem_running {
	struct pem_life_thread *thread; /* NULL: idle, or unknown */
	bool is_known;
	uint64_t since_clock;
	uint64_t loss; /* end of the last window of this CPU's records */
};

int pem_states__switch(struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record);
int pem_states__wake(struct pem_pass *pass, const struct pem_plan *plan,
		     const struct pem_record *record);
/* The recorder found the record's thread in a state. Returns 0 or -ENOMEM. */
int pem_states__found(struct pem_pass *pass, const struct pem_plan *plan,
		      const struct pem_record *record);
/* The kernel lost records of a CPU between two clocks. Returns 0 or -ENOMEM. */
int pem_states__lose(struct pem_pass *pass, uint32_t cpu, uint64_t begin, uint64_t end);
/*
 * If the kernel lost records since it told where the thread was, and the thread is not known to
 * have run all the time, what it had begun is in doubt.
 */
void pem_states__doubt(const struct pem_pass *pass, struct pem_life_thread *thread);
/* The kernel says that a thread started another one. parent may be NULL. Returns 0 or -ENOMEM. */
int pem_states__start(struct pem_pass *pass, struct pem_life_thread *parent,
		      struct pem_life_thread *thread);
/* The thread ends. */
int pem_states__end(struct pem_pass *pass, struct pem_life_thread *thread);
/*
 * The thread 'from', which calls exec on this CPU, goes on as 'to', which is new. Returns 0 or
 * -ENOMEM.
 */
int pem_states__pass_on(struct pem_pass *pass, struct pem_life_thread *from,
			struct pem_life_thread *to, uint32_t cpu);
/* The trace ends: say the last spans. */
int pem_states__finish(struct pem_pass *pass);
void pem_states__free(struct pem_pass *pass);

/* --- path.c; each function that returns int: 0 or -ENOMEM --- */

/* The thread has run until now. */
int pem_path__run(struct pem_pass *pass, struct pem_life_thread *thread);
/* A thread that ended had no CPU until now. */
int pem_path__queue(struct pem_pass *pass, struct pem_life_thread *thread);
/* A thread that runs wakes one that is blocked. */
int pem_path__wake(struct pem_pass *pass, struct pem_life_thread *waker,
		   struct pem_life_thread *sleeper);
/* The sleeper runs, or it is not known who woke it. */
void pem_path__forget_wake(struct pem_pass *pass, struct pem_life_thread *sleeper);
/* A thread that runs starts another one. */
int pem_path__start(struct pem_pass *pass, struct pem_life_thread *parent,
		    struct pem_life_thread *child);
/* The thread's path grows by a span, whose part is filled in. */
int pem_path__add(struct pem_pass *pass, struct pem_life_thread *thread, struct pem_span *span);
void pem_path__free(struct pem_pass *pass);

/* --- intervals.c --- */

struct pem_open_intervals {
	struct pem_keys by_key; /* of scopes 'process' and 'system': group, scope and keys */
	/*
	 * Those that another process may end: group and name. Of scopes 'process' and 'system', if
	 * their group has names: key in by_key and name.
	 */
	struct pem_keys by_name;
	/* Of scope 'cpu': the last one first, linked by 'next' */
	struct pem_cpu_intervals {
		struct pem_open *first;
		uint32_t count;
	} * by_cpu;
	struct pem_open *free; /* linked by next */
	struct pem_open *allocated; /* all that there are, free or not */
	uint64_t begun; /* number of the last one */
	uint64_t open_count;
};

int pem_intervals__record(struct pem_pass *pass, const struct pem_plan *plan,
			  const struct pem_record *record);
/* The thread ended: so do its intervals. Returns 0 or -ENOMEM. */
int pem_intervals__thread_ends(struct pem_pass *pass, struct pem_life_thread *thread);
/* The thread 'to', which is new, goes on with all that 'from' has begun. */
void pem_intervals__pass_on(struct pem_life_thread *from, struct pem_life_thread *to);
/* Forget the thread's intervals that its losses made doubtful. Returns 0 or -ENOMEM. */
int pem_intervals__doubt(struct pem_pass *pass, struct pem_life_thread *thread);
/* The trace ends: all that is open ends as OPEN. Returns 0 or -ENOMEM. */
int pem_intervals__finish(struct pem_pass *pass);
/* Give back the intervals that the last record ended. */
void pem_intervals__release_ended(struct pem_pass *pass);
void pem_open_intervals__free(struct pem_pass *pass);

/* --- phases.c --- */

/* Returns 0 or -ENOMEM. */
int pem_phases__begin(struct pem_pass *pass, struct pem_open *open);
void pem_phases__end(struct pem_pass *pass, struct pem_open *open);
/* A process ends: its parent gets its open phases. */
void pem_phases__process_ends(struct pem_life_process *process);
void pem_phases__free(struct pem_pass *pass);
const struct pem_interval *pem_phases__of(const struct pem_pass *pass,
					  const struct pem_life_process *process,
					  const struct pem_life_thread *thread);

/* --- messages.c --- */

struct pem_message; /* one end of a message that waits for the other one */

struct pem_messages {
	struct pem_keys by_key;
	struct pem_message *free;
	uint64_t waiting;
	struct pem_partner partner; /* of the last record */
};

int pem_messages__record(struct pem_pass *pass, const struct pem_plan *plan,
			 const struct pem_record *record);
void pem_messages__free(struct pem_messages *messages);

/* --- blocks.c --- */

struct pem_held; /* a block that is allocated */
struct pem_slab;

struct pem_blocks {
	struct pem_keys by_address; /* group, process and address */
	struct pem_keys by_bucket; /* for 'access' only: process, size class, and place */
	struct pem_held *unsorted; /* not in buckets yet, linked by bucket_next */
	uint64_t classes; /* a bit for each size class that has blocks */
	struct pem_held *free; /* linked by older */
	struct pem_slab *slabs; /* memory of all */
	uint64_t held;
	/* of the last record: what a realloc ended, and what was too much to be held */
	struct pem_block old_block, left_out;
};

int pem_blocks__record(struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record);
void pem_blocks__free(struct pem_blocks *blocks);

/* --- files.c --- */

struct pem_descriptor;

struct pem_files {
	struct pem_keys by_descriptor; /* process and descriptor */
	struct pem_keys by_path;
	struct pem_pass_file **all; /* by number */
	size_t count, capacity;
	uint64_t descriptor_count;
};

/* Work out which system calls of the plan's event take a descriptor. Returns 0 or -ENOMEM. */
int pem_files__plan(struct pem_plan *plan);
/* Learn from a record of meaning call-path. Without memory the file is unknown. */
void pem_files__learn_path(struct pem_pass *pass, const struct pem_plan *plan,
			   const struct pem_record *record);
/* Learn from a record of meaning descriptor-name. Without memory the file is unknown. */
void pem_files__learn(struct pem_pass *pass, const struct pem_plan *plan,
		      const struct pem_record *record);
/* A system call begins: find the file that it is on. */
void pem_files__begin(struct pem_pass *pass, struct pem_open *open);
void pem_files__free(struct pem_files *files);

/* --- the pass --- */

/* The process and thread that a stream's last record was of. */
struct pem_stream_cache {
	uint32_t pid, tid;
	uint64_t reuses; /* of life: a number may have had another owner before */
	struct pem_life_process *process;
	struct pem_life_thread *thread;
};

struct pem_pass {
	struct pem_trace *trace; /* NULL: the caller hands records over */
	/* Of a pass without a trace, in its place: */
	struct {
		struct pem_event_table events;
		struct pem_context_table *names;
		uint64_t first_clock; /* of the first record; 0: there was none */
		uint64_t hz;
	} live;
	struct pem_plans plans;
	struct pem_life life;
	struct pem_stream_cache *streams;
	uint64_t generation; /* of life: changes when a pid or tid means another one */
	struct pem_running *cpus;
	struct pem_open_intervals intervals;
	struct pem_open *phases; /* all open phases, the last one first */
	struct pem_phase_list *phase_lists; /* all that were ever allocated */
	struct pem_messages messages;
	struct pem_blocks blocks;
	struct pem_files files;
	uint64_t open_max;
	uint64_t without; /* bits of enum pem_pass_part */
	bool has_paths;
	uint64_t path_parts; /* of all paths */
	/* losses */
	/* The trace's: windows that it knows of. NULL: there is no trace. */
	const size_t *loss_count;
	size_t losses_seen;
	bool is_whole_machine; /* all processes are observed */
	uint64_t kernel_loss; /* end of the last window of any CPU */
	uint64_t user_loss; /* of any program */
	/* the windows of the kernel: begins, rising */
	uint64_t *kernel_windows;
	size_t kernel_window_count, kernel_window_capacity;
	/* the record being looked at */
	uint64_t now_clock, now_ns;
	struct pem_life_process *process;
	struct pem_life_thread *thread;
	struct pem_around *around; /* the caller's */
	struct pem_ended *ended;
	size_t ended_count, ended_capacity;
	struct pem_span *spans;
	size_t span_count, span_capacity;
	struct pem_pass_unknown unknown;
	bool finished;
};

/* Is it known in which instance of its scope the record lies? */
static inline bool pem_pass__is_placed(const struct pem_pass *pass, const struct pem_plan *plan,
				       const struct pem_record *record)
{
	switch (plan->scope) {
	case PEM_SCOPE_THREAD:
		return pass->thread != NULL;
	case PEM_SCOPE_PROCESS:
		return pass->process != NULL;
	case PEM_SCOPE_CPU:
		return record->cpu < PEM_CPUS_MAX;
	default:
		return true;
	}
}
/* Number of that instance: of a thread, process or CPU; 0: there is one. */
uint64_t pem_pass__where(const struct pem_pass *pass, const struct pem_plan *plan,
			 const struct pem_record *record);
/* A key, never 0, of the plan's group in that instance. */
uint64_t pem_pass__key(const struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record, uint64_t keys);
/*
 * End of the last window in which the scope of the record, or of one of its kind by another thread
 * or process, lost records.
 */
uint64_t pem_pass__loss(const struct pem_pass *pass, enum pem_scope scope, uint32_t source,
			const struct pem_life_process *process,
			const struct pem_life_thread *thread, uint32_t cpu);
int pem_pass__end_interval(struct pem_pass *pass, struct pem_open *open,
			   enum pem_interval_outcome outcome, uint64_t end_ns);
int pem_pass__add_span(struct pem_pass *pass, const struct pem_span *span);
/* The time of a clock, in nanoseconds since the trace's start. */
uint64_t pem_pass__ns(const struct pem_pass *pass, uint64_t clock);
/* live.c: the same since the first record, in a pass without a trace */
uint64_t pem_pass__live_ns(const struct pem_pass *pass, uint64_t clock);

/* --- pass.c: for live.c --- */

/* given: a copy of options. Returns 0; -EINVAL, -E2BIG with error: options; -ENOMEM. */
int pem_pass__allocate(struct pem_pass **result, struct pem_pass_options *given,
		       const struct pem_pass_options *options, struct pem_error *error);
/* Processes that are observed from the begin on. Returns 0 or -ENOMEM. */
int pem_pass__observe(struct pem_pass *pass, uint32_t command_pid, bool is_whole_machine);
/* Returns 0 or -ENOMEM. */
int pem_pass__make_parts(struct pem_pass *pass, const struct pem_event_table *table,
			 const struct pem_model *model, size_t streams);
void pem_pass__begin_record(struct pem_pass *pass, struct pem_around *around);
/* Returns 0 or -ENOMEM. */
int pem_pass__take_record(struct pem_pass *pass, const struct pem_plan *plan,
			  const struct pem_record *record);
/* Returns 0 or -ENOMEM. */
int pem_pass__finish(struct pem_pass *pass);
int pem_pass__no_memory(struct pem_error *error);

#endif
