/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * processes.h - processes as a session sees them: members by their control files, producers by
 * their pools
 *
 * Not here: the directories in which it meets them (dirs/dirs.h), moving records out of pools
 * (chunks/chunks.h).
 */
#ifndef PEM_PROCESSES_H
#define PEM_PROCESSES_H

#include "core/core.h"
#include "pool.h"

#include <pem/internal.h>
#include <pem/model.h>
#include <pem/pem.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pem_user;

struct pem_async_producer;
struct pem_demand;
struct pem_dir;
struct pem_environment;

/* An event of a producer's table. Records are looked up in it by event id. */
struct pem_event_entry {
	uint32_t id; /* 0: free */
	uint32_t event_index;
	uint32_t fixed_bytes; /* bytes of each of its records; 0: they differ */
	/*
	 * The event's description contradicts a certain one, or an earlier one of the same
	 * directory. event is then that of this description.
	 */
	bool refused;
	bool described; /* the trace's model has it */
	/*
	 * Event of the session's model; NULL: unknown. If the event was renamed (models.c), its id
	 * differs from the entry's id.
	 */
	const struct pem_event *event;
	/* The counts that the overhead budget has already taken: records, and the event's own cell.
	 */
	uint64_t judged_logged, judged_statistics;
	struct pem_demand *demand; /* demand of the session; NULL: not looked for yet, or refused */
};

#define PEM_EVENT_TABLE 1024u /* power of two, at least twice PEM_EVENT_CAPACITY_DEFAULT */

#define PEM_PROCESS_BUCKETS 4096u

/*
 * A process, by its control file. It makes a pool at its first event; from then on it is a
 * producer, too.
 */
struct pem_member {
	char name[64]; /* of the control file */
	struct pem_dir *dir; /* directory of the control file */
	uint64_t inode; /* inode number of the control file */
	uint32_t pid; /* its pid in this process's pid namespace; 0: not known */
	/* pem_dir__start() of the process when the file was found; 0: the owner had none. */
	uint64_t started;
	struct pem_control_file *control;
	uint64_t control_bytes;
	int session_index; /* the session's index in its table; -1: it has not joined the session */
	uint64_t word; /* word of the table's entry */
	uint32_t incarnation; /* incarnation of the table's entry */
	/* Bit i: the member is in the page's context i, as last found. */
	uint64_t contexts;
	/* When last asked, the member was about to join by itself: it had no entry yet. */
	bool joins;
	uint64_t asked_ns; /* when the session last asked whether it is in a target */
	bool seen; /* the current scan has seen its file */
	bool full_said;
	uint64_t gates; /* the address that pem_session_hooks.gates_found was told; 0: none */
	bool was_wanted; /* an event of its was enabled for the session */
	bool has_filter; /* it had a seccomp filter when the session was offered to it */
	char comm[PEM_NAME_BYTES]; /* its name then; "": it had no filter */
	int cut; /* the control file was cut off while it was read */
	struct pem_producer *producer; /* NULL: it has made no pool yet */
	struct pem_member *next, **link; /* list of all members; *link is this member */
	struct pem_member *next_by_name;
};

struct pem_producer {
	/*
	 * "<pid>-<k>", or "<pid>-<k>p<number>" with the number of a directory that is not the
	 * session's own.
	 */
	char name[64];
	char file[64]; /* name of its pool's file: "pool-<pid>-<k>" */
	char comm[PEM_NAME_BYTES];
	char control_name[64]; /* name of its control file, checked; "": none */
	uint32_t pid;
	uint32_t inner_pid,
		/*
		 * The pid as the process itself sees it, and the pid namespace in which that holds.
		 */
		pid_namespace;
	bool is_inner; /* that namespace is another one than this process's */
	/* With is_inner, by lane: the last thread, as the process sees it, and its number here. */
	struct pem_inner_tid {
		uint32_t inner, outer;
	} * tids;
	uint64_t start_clock; /* when its pool was made */
	uint64_t
		gates; /* address of its struct pem_gate_states for the session; 0: it keeps none */
	/* When filters are checked next, and the time between the last check and the next one. */
	uint64_t filter_check_ns, filter_pause_ns;
	uint32_t filters; /* number of filters that are known already; ~0: not known yet */
	/*
	 * -1: there is none, or its process was not found in this pid namespace. Such a process
	 * counts as dead at the end only.
	 */
	int pidfd;
	/* The process's pid is known here: signal 0 tells whether it lives if there is no pidfd. */
	bool is_found;
	uint64_t started; /* as of struct pem_member */
	bool dead;
	/* The pool was cut off, and the session has said so. */
	bool cut_said;
	/*
	 * The last turn in which the producer was drained. waits: something was left in the pool
	 * then.
	 */
	uint64_t turn;
	bool waits;
	/* The recorder had no time to read the pool to its end. */
	bool unread;
	bool is_copy; /* a copy of a pool whose process goes on (pool_copy.c) */
	bool recovering; /* its recorder died: what is missing was lost with it */
	struct pem_member *member; /* NULL: it has no control file, or the file is gone */
	struct pem_dir *dir;
	uint32_t incarnation; /* incarnation in the tags of its statistics */
	/* Bit i: it was found in the page's context i while it had a control file. */
	uint64_t contexts;
	/*
	 * A fold of this pool did not finish within the wait. Do not wait again until its sequence
	 * number is even.
	 */
	bool fold_unfinished;
	struct pem_ring ring;
	uint32_t chunk_limit; /* chunks of the pool that are in use: what the session has set */
	uint64_t next_growth_ns; /* the pool does not grow before: its process had no memory */
	uint64_t bytes;
	uint64_t *next_seq; /* next sequence number, per lane */
	uint64_t *delivered; /* records written, per event */
	uint64_t *lost; /* records drained and not written, per event */
	uint64_t *callback_only; /* callback-only records, per event */
	/*
	 * How far asynchronous callbacks have read the pool. NULL: there never was such a callback.
	 */
	struct pem_async_producer *async;
	uint64_t *produced, *discarded; /* per event, as of the final drain */
	uint64_t judged_further[PEM_FURTHER_CELLS]; /* as judged_statistics, of further cells */
	uint64_t damaged; /* records dropped because their content can't be true */
	int cut; /* the pool was cut off while it was read: it holds zeroes */
	struct pem_event_entry table[PEM_EVENT_TABLE];
	uint32_t table_events; /* number of ids entered so far */
	bool events_fixed; /* several threads read the table, and it must not change */
	/*
	 * The time (pem_monotonic_ns) since which the model of the next event of the table is
	 * missing; 0: no model is missing.
	 */
	uint64_t awaits_model_ns;
	struct pem_producer *next;
	/* Chains of the session's tables, by name and by process. */
	struct pem_producer *next_by_name, *next_by_image;
};

/*
 * A provider's control page in another process's control file. The file is hostile: the numbers
 * here were loaded once and checked.
 */
struct pem_member_page {
	struct pem_control_header *header;
	uint32_t event_count;
	uint32_t event_base;
};

/* A chunk that a lane owns or has filled. */
struct pem_found_chunk {
	uint32_t lane;
	uint32_t index;
	uint64_t seq;
	bool full;
	/*
	 * A recorder died while it copied this chunk: the one that is being recovered from, or an
	 * earlier recovery.
	 */
	bool held;
};

static inline struct pem_packet *pem_ring__chunk(const struct pem_ring *ring, uint32_t index)
{
	return (struct pem_packet *)(ring->chunks + (uint64_t)index * ring->chunk_bytes);
}

/* How many ticks the cycle counters of two processors may differ by. This is generous. */
#define PEM_CLOCK_SLACK 1000000u

/* A provider whose events are not recorded, because they contradict what the session knows. */
struct pem_refusal {
	uint32_t pid;
	const struct pem_dir *dir;
	char event[128]; /* the first event that does not fit */
	char reason[232];
};

struct pem_session_processes {
	struct pem_member *members;
	struct pem_member *members_by_name[PEM_PROCESS_BUCKETS];
	struct pem_producer *producers;
	struct pem_producer *producers_by_name[PEM_PROCESS_BUCKETS];
	struct pem_producer *producers_by_image[PEM_PROCESS_BUCKETS];
	/* Number of contexts that the session was attached to. */
	uint32_t target_count;
	uint32_t unknown_count; /* processes and threads whose numbers are not known */
	/* A target may have processes in further directories. */
	bool searches_elsewhere;
	/* Said: a process has become another user; has a seccomp filter and has not joined. */
	bool given_up_said, filtered_said;
	/*
	 * When to search for the other folders of the process that the session was attached to,
	 * search_pid; 0: never.
	 */
	uint64_t search_ns;
	uint32_t search_pid;
	/*
	 * models.c. By the event's index in the model: the directory that brought the event. NULL:
	 * the event is certain.
	 */
	const struct pem_dir *event_origins[PEM_DEMANDS_MAX];
	struct pem_refusal refusals[8];
	size_t refusal_count;
	uint64_t refusals_more; /* events that found no room in refusals */
};

/* --- models.c --- */

/*
 * Return the session's event for an event of a producer's table. A new event is entered into the
 * session's model. NULL: unknown. *refused: the event's description contradicts a certain one. The
 * returned event then has the producer's description: its records can be measured but are not
 * recorded, and the refusal is noted for the trace.
 */
const struct pem_event *pem_producer__describe(struct pem_session *session,
					       struct pem_producer *producer, uint32_t event_index,
					       uint32_t id, bool *refused);

/* Is the model that describes an event of a producer's table still to come? */
bool pem_producer__awaits_model(const struct pem_session *session, struct pem_producer *producer,
				uint32_t event_index);

/* Does the model that describes an event contradict a certain description? */
bool pem_producer__is_misfit(struct pem_session *session, const struct pem_producer *producer,
			     uint32_t event_index);

/* Return the session's event that processes of the directory mean by an id; NULL: unknown. */
const struct pem_event *pem_dir__event(struct pem_session *session, const struct pem_dir *dir,
				       uint32_t id);

/* Take in a model's file of another user's directory, open as fd. Takes fd. */
void pem_session__found_model(struct pem_session *session, struct pem_dir *dir, const char *name,
			      int fd);

/* Free what the directory's models take. No producer of the directory is left. */
void pem_dir__forget_models(struct pem_session *session, struct pem_dir *dir);

/*
 * Load the models of this process's own providers. Returns the number of events added, or -errno.
 */
int pem_session__load_own_models(struct pem_session *session);

/*
 * Return a producer's entry of an event of the session's model. NULL: the producer does not raise
 * the event, or the event is refused there.
 */
struct pem_event_entry *pem_producer__entry_of(struct pem_producer *producer,
					       const struct pem_event *event);

/* --- rules.c --- */

/* Publish the demands to the session page, this process and every known producer. */
void pem_session__publish(struct pem_session *session);

void pem_session__apply_to(struct pem_session *session, struct pem_member *member);
/*
 * Return the session page's index of a context, which is added if it is new. -1: there are too
 * many. flags: PEM_CONTEXT_TARGET, or 0.
 */
int pem_session__context(struct pem_session *session, const struct pem_context *context,
			 uint32_t pid, uint32_t flags);

/* --- wake.c --- */

/*
 * Set whether events that asynchronous callbacks want wake their thread. Nothing else of the rules
 * changes. False: the control pages of some processes are out of reach.
 */
bool pem_session__set_wake(struct pem_session *session, bool wake);

/* --- filters.c --- */

/*
 * Check now and then whether a process has a seccomp filter that it did not report as harmless. If
 * so, prepare its pool and mark it as restricted.
 */
void pem_producer__watch_filter(struct pem_session *session, struct pem_producer *producer,
				uint64_t now_ns);

/* --- environment.c --- */

/*
 * Make an environment: this process's, with what makes a program raise events. s: the session that
 * tells which adapters are wanted; NULL: any may be. session: the folder of the session that the
 * program joins, or NULL. program: the program that is started, looked for in PATH, or NULL. If
 * nothing can be preloaded into the program, nothing is, and s says so. NULL: out of memory.
 */
struct pem_environment *pem_environment__new(struct pem_session *s, const char *session,
					     const char *program,
					     const struct pem_run_options *options);

char **pem_environment__variables(const struct pem_environment *environment);
void pem_environment__free(struct pem_environment *environment);
/*
 * The beginning of the path of each library of pem's that LD_PRELOAD names. "": unknown, or it does
 * not fit.
 */
void pem_environment__library_path(char path[PEM_LIBRARY_PATH_BYTES + 1]);

/* --- control_file.c --- */

/*
 * Open a control file by its descriptor, which stays the caller's. NULL: the file is not complete
 * yet, it is this process's own, or it is refused, which is counted.
 */
struct pem_member *pem_member__open(struct pem_session *session, struct pem_dir *dir,
				    const char *name, int fd);
/* Unmap the file and free the member. The member is in no list. */
void pem_member__close(struct pem_session *session, struct pem_member *member);
/* Return the ids of the events that the member may raise; NULL: it does not say. */
const uint32_t *pem_member__event_ids(const struct pem_member *member);
/*
 * Fill page with the control page of an entry of the member's control file. False: there is no such
 * page, or its numbers can't be true.
 */
bool pem_member__page(const struct pem_member *member, uint32_t entry,
		      struct pem_member_page *page);

/* --- members.c --- */

/* Look for control files. Processes that are in the session's targets are offered the session. */
void pem_session__scan_members(struct pem_session *session);

/*
 * Return the member of a control file. In the session's own directory, the file is opened if need
 * be. NULL: there is none, or it is this process.
 */
struct pem_member *pem_session__member(struct pem_session *session, struct pem_dir *dir,
				       const char *name);

void pem_session__forget_member(struct pem_session *session, struct pem_member *member);
/*
 * Take in a control file of another user's directory, open as fd. Takes fd. __lost_control: the
 * file was removed.
 */
void pem_session__found_control(struct pem_session *session, struct pem_dir *dir, const char *name,
				int fd);

void pem_session__lost_control(struct pem_session *session, struct pem_dir *dir, const char *name);
/* Give back the session's entry of every member's table, and forget all members. */
void pem_session__leave_members(struct pem_session *session);

/*
 * Let a scan soon after look for the other folders of a process and of what it starts. The process
 * can be observed at once, because its control file was found in the session's own folder. False:
 * the file was not found, or another process waits for that scan.
 */
bool pem_session__search_later(struct pem_session *session, uint32_t pid);

/* Find out which entry of the member's table is the session's, if any. */
void pem_member__find_index(struct pem_session *session, struct pem_member *member);

/*
 * Was the pool made by the image that made this control file? An earlier image of the process had a
 * control file of the same name.
 */
bool pem_member__has_made(const struct pem_member *member, const struct pem_producer *producer);

/* Is the session still in the member's table? */
bool pem_member__is_served(struct pem_member *member);

/* Find out which contexts the member is in, and write them to its table. */
void pem_member__find_contexts(struct pem_session *session, struct pem_member *member);

/*
 * If the member is in a target, offer it the session. If it has joined, enable in its control file
 * what is wanted. Returns 0, -EUSERS: its table is full, or another -errno.
 */
int pem_member__ask(struct pem_session *session, struct pem_member *member);

bool pem_is_control_name(const char *name);

/* --- producers.c --- */

/* Return the bucket of the session's tables for a file of the directory. */
uint32_t pem_session__hash_name(const struct pem_session *session, const struct pem_dir *dir,
				const char *name);

/* Look for new processes. */
void pem_session__find_producers(struct pem_session *session);

/* Look for new processes, and gather what processes of other directories have counted. */
void pem_session__scan_producers(struct pem_session *session);

/* Take in a pool of another user's directory, open as fd. Takes fd. */
void pem_session__found_pool(struct pem_session *session, struct pem_dir *dir, const char *name,
			     int fd);

void pem_producer__free(struct pem_producer *producer);
struct pem_event_entry *pem_producer__event(struct pem_producer *producer, uint32_t id);
/*
 * Enter the pool's new events into the producer's table. The session's model may grow. False: the
 * model of the next event is still to come.
 */
bool pem_producer__refresh_events(struct pem_session *session, struct pem_producer *producer);
/*
 * fixed: from now on, pem_producer__find_event changes nothing and any thread may call it, since
 * all events of the table have their demands. Not fixed: from now on, it is as usual.
 */
void pem_producer__fix_events(struct pem_session *session, struct pem_producer *producer,
			      bool fixed);

/* --- pool_copy.c --- */

/*
 * Copy a producer and its pool to private memory, as they are now, for draining and accounting
 * once. NULL: out of memory.
 */
struct pem_producer *pem_producer__copy(const struct pem_producer *producer);

/*
 * Copy what the owner of a chunk has committed, in a pool that overwrites. Meanwhile the owner may
 * retire the chunk, lose it, and another may begin it. False: that happened, or the chunk's size
 * can't be true; to is spoilt then.
 */
bool pem_chunk__copy_owned(const struct pem_ring *ring, uint32_t index, uint32_t lane,
			   struct pem_packet *to);

/* Take the producer *link out of the list of all producers and out of the tables. */
void pem_session__remove_producer(struct pem_session *session, struct pem_producer **link);

/*
 * Cut off all memory mapped from a user (pem_fault__cut). Returns the number of processes that this
 * concerns.
 */
uint64_t pem_session__cut_user(struct pem_session *session, const struct pem_user *user);

/* --- pool_read.c --- */

/*
 * Return the number, in this process's pid namespace, of a lane's thread that has tid in its own
 * process's namespace. clock: of a record that it raised. If the thread is gone and not known, it
 * gets a number from PEM_PID_UNKNOWN on.
 */
uint32_t pem_producer__tid(struct pem_session *session, struct pem_producer *producer,
			   uint32_t lane, uint32_t tid, uint64_t clock);
/* A number for a process or thread whose own is not known. Any thread may call it. */
uint32_t pem_session__unknown_pid(struct pem_session *session);

/*
 * Return the session page's contexts that the process is in, a bit for each: as it says itself, or
 * as was found.
 */
uint64_t pem_producer__contexts(const struct pem_producer *producer);

/* Return how many records of an event all threads of the producer have raised. */
uint64_t pem_producer__produced(const struct pem_producer *producer, uint32_t event_index);

/*
 * Return the next lane that ever belonged to a thread, or lane_count. Lanes are handed out in
 * order: if a free lane was never used, no later lane was. A lane that is being taken, or for which
 * there was no memory, is skipped.
 */
uint32_t pem_producer__next_lane(const struct pem_producer *producer, uint32_t lane);

/*
 * Find full chunks and, if asked for, owned ones; sort them by lane and sequence number. found has
 * room for all chunks. Returns how many were found.
 */
size_t pem_producer__find_chunks(const struct pem_producer *producer, bool owned_too,
				 struct pem_found_chunk *found);

/* Free a chunk that was read: the producer may use it again. */
void pem_producer__free_chunk(const struct pem_producer *producer, uint32_t index);

/*
 * Return the entry of a record's event; the producer's table is refreshed if need be. NULL:
 * unknown.
 */
struct pem_event_entry *pem_producer__find_event(struct pem_session *session,
						 struct pem_producer *producer, uint32_t id);

/*
 * Return the length of a record of which at most bytes are readable. Negative: it does not fit its
 * event.
 */
int pem_event_entry__record_bytes(const struct pem_event_entry *entry, const uint8_t *record,
				  size_t bytes);

#endif
