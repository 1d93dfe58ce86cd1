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

/* An event of a producer's table, found by id when records are walked. */
struct pem_event_entry {
	uint32_t id; /* 0: free */
	uint32_t event_index;
	uint32_t fixed_bytes; /* of each of its records; 0: they differ */
	/*
	 * Its description contradicts what is certain, or another of its place: event is of that
	 * description.
	 */
	bool refused;
	bool described; /* the trace's model has it */
	/*
	 * Of the session's model; NULL: unknown. Its id is another than the entry's if it was
	 * renamed (models.c).
	 */
	const struct pem_event *event;
	uint64_t judged_logged, judged_statistics; /* counted for the overhead budget so far */
	struct pem_demand *demand; /* of the session; NULL: not looked for yet, or refused */
};

#define PEM_EVENT_TABLE 1024u /* power of two, at least twice PEM_EVENT_CAPACITY_DEFAULT */

#define PEM_PROCESS_BUCKETS 4096u

/*
 * A process, by its control file: with its pool it is a producer, which it becomes at its first
 * event.
 */
struct pem_member {
	char name[64]; /* of the control file */
	struct pem_dir *dir; /* that it is in */
	uint64_t inode; /* of that */
	uint32_t pid; /* as this process knows it; 0: it does not */
	struct pem_control_file *control;
	uint64_t control_bytes;
	int session_index; /* of the session in its table; -1: it is not the session's */
	uint64_t word; /* of that entry */
	uint32_t incarnation; /* the same */
	uint64_t contexts; /* bit i: it is in the page's context i, as last found */
	bool joins; /* by itself, when last asked: it has no entry yet */
	uint64_t asked_ns; /* when it was last asked whether it is in a target */
	bool seen; /* by the scan under way */
	bool full_said;
	int cut; /* its control file was, while it was read */
	struct pem_producer *producer; /* NULL: it has made no pool yet */
	struct pem_member *next, **link; /* of all; link points here */
	struct pem_member *next_by_name;
};

struct pem_producer {
	/*
	 * "<pid>-<k>", with the directory's number behind if that is another's:
	 * "<pid>-<k>p<number>"
	 */
	char name[64];
	char file[64]; /* of its pool: "pool-<pid>-<k>" */
	char comm[PEM_NAME_BYTES];
	char control_name[64]; /* checked: a control file's name, or "" */
	uint32_t pid;
	uint32_t inner_pid, pid_namespace; /* its number as it knows it, in that namespace */
	uint64_t start_clock; /* when its pool was made */
	uint64_t filter_check_ns, filter_pause_ns; /* when, and how long after the last time */
	uint32_t filters; /* that are no news; ~0: not known yet */
	int pidfd; /* -1: none, or of another pid namespace: taken for dead at the end only */
	/* Its process is known, so that it can be asked for without a pidfd. */
	bool is_found;
	bool dead;
	/* Its pool was cut off, and that was said. */
	bool cut_said;
	/* The last turn in which it was drained, and whether something was left then. */
	uint64_t turn;
	bool waits;
	/* The recorder had no time to read it to its end. */
	bool unread;
	bool is_copy; /* of a pool whose process goes on (pool_copy.c) */
	bool recovering; /* its recorder died: what is missing was lost with it */
	struct pem_member *member; /* NULL: it has no control file, or that is gone */
	struct pem_dir *dir;
	uint32_t incarnation; /* in the tags of its statistics */
	/* the pool's was waited for in vain: not again until it holds still, even */
	bool fold_unfinished;
	struct pem_ring ring;
	uint64_t bytes;
	uint64_t *next_seq; /* per lane */
	uint64_t *delivered; /* per event */
	uint64_t *lost; /* per event: drained, but not written */
	uint64_t *callback_only; /* per event: logged for callbacks alone */
	/* how far asynchronous callbacks are; NULL: never were any */
	struct pem_async_producer *async;
	uint64_t *produced, *discarded; /* per event, as of the final drain */
	uint64_t damaged; /* records dropped because they could not be believed */
	int cut; /* its pool was cut off while it was read: it holds zeroes */
	struct pem_event_entry table[PEM_EVENT_TABLE];
	uint32_t table_events; /* ids entered so far */
	/* The next one's model is still to come: since when, of pem_monotonic_ns; 0: it is not. */
	uint64_t awaits_model_ns;
	struct pem_producer *next;
	/* In the session's tables, by name and by process. */
	struct pem_producer *next_by_name, *next_by_image;
};

/*
 * A provider's control page in another process's control file, which is hostile: its numbers,
 * loaded once and checked.
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
	 * The recorder that is being recovered from, or another one's recovery, died while it
	 * copied this one.
	 */
	bool held;
};

static inline struct pem_packet *pem_ring__chunk(const struct pem_ring *ring, uint32_t index)
{
	return (struct pem_packet *)(ring->chunks + (uint64_t)index * ring->chunk_bytes);
}

/* ticks that counters of two processors may lie apart, generously */
#define PEM_CLOCK_SLACK 1000000u

/* A provider whose events are not recorded, since they contradict what the session knows. */
struct pem_refusal {
	uint32_t pid;
	const struct pem_dir *dir;
	char event[128]; /* the first that does not fit */
	char reason[232];
};

struct pem_session_processes {
	struct pem_member *members;
	struct pem_member *members_by_name[PEM_PROCESS_BUCKETS];
	struct pem_producer *producers;
	struct pem_producer *producers_by_name[PEM_PROCESS_BUCKETS];
	struct pem_producer *producers_by_image[PEM_PROCESS_BUCKETS];
	/* Contexts that were attached to. */
	uint32_t target_count;
	/* A target may have processes in further directories. */
	bool searches_elsewhere;
	/*
	 * When the other folders of the process that was attached to are to be searched for; 0:
	 * never.
	 */
	uint64_t search_ns;
	uint32_t search_pid;
	/* models.c. By index in the model: who brought the event. NULL: it is certain. */
	const struct pem_dir *event_origins[PEM_DEMANDS_MAX];
	struct pem_refusal refusals[8];
	size_t refusal_count;
	uint64_t refusals_more; /* events of processes for which there was no room there */
};

/* --- models.c --- */

/*
 * The session's event for an event of a producer's table, entered into the session's model if it is
 * new there. NULL: unknown. *refused: what describes it contradicts what is certain, so that what
 * it raises can be measured, and not be recorded; the event is of that description then. Noted for
 * the trace.
 */
const struct pem_event *pem_producer__describe(struct pem_session *session,
					       struct pem_producer *producer, uint32_t event_index,
					       uint32_t id, bool *refused);

/* Is the model that describes an event still to come? */
bool pem_producer__awaits_model(const struct pem_session *session, struct pem_producer *producer,
				uint32_t event_index);

/* Does the model that describes an event contradict what is certain? */
bool pem_producer__is_misfit(struct pem_session *session, const struct pem_producer *producer,
			     uint32_t event_index);

/* The session's event that a process of the directory means by an id; NULL: unknown. */
const struct pem_event *pem_dir__event(struct pem_session *session, const struct pem_dir *dir,
				       uint32_t id);

/* A model's file of another's directory, open as fd, which is taken. */
void pem_session__found_model(struct pem_session *session, struct pem_dir *dir, const char *name,
			      int fd);

/* No producer of the directory is left. */
void pem_dir__forget_models(struct pem_session *session, struct pem_dir *dir);

/* Models of this process's own providers. Returns events added, or -errno. */
int pem_session__load_own_models(struct pem_session *session);

/*
 * The entry of an event of the session's model; NULL: the producer does not raise it, or it is
 * refused there.
 */
struct pem_event_entry *pem_producer__entry_of(struct pem_producer *producer,
					       const struct pem_event *event);

/* --- rules.c --- */

/* Publish the demands to the session page, this process and every known producer. */
void pem_session__publish(struct pem_session *session);

void pem_session__apply_to(struct pem_session *session, struct pem_member *member);
/*
 * The page's index of a context, which it gets if it has none; -1: there are too many. flags:
 * PEM_CONTEXT_TARGET, or 0.
 */
int pem_session__context(struct pem_session *session, const struct pem_context *context,
			 uint32_t pid, uint32_t flags);

/* --- wake.c --- */

/*
 * Shall events that asynchronous callbacks want wake their thread up? Nothing else of the rules
 * changes. False: there are processes whose control pages are out of reach.
 */
bool pem_session__set_wake(struct pem_session *session, bool wake);

/* --- filters.c --- */

/*
 * How many seccomp filters a process has; 0 also where the kernel does not count them (before Linux
 * 5.9).
 */
uint32_t pem_filters_of(uint32_t pid);

/* Has it taken a seccomp filter that it does not know to be harmless? Looked for now and then. */
void pem_producer__watch_filter(struct pem_session *session, struct pem_producer *producer,
				uint64_t now_ns);

/* --- environment.c --- */

/*
 * This process's environment, and what makes a program raise events. s: the session that tells
 * which adapters are wanted, NULL: any may be; session: the folder of the one that the program
 * joins, or NULL. program: what is started, looked for in PATH, or NULL; where nothing can be
 * preloaded into it nothing is, and s says so. NULL: out of memory.
 */
struct pem_environment *pem_environment__new(struct pem_session *s, const char *session,
					     const char *program,
					     const struct pem_run_options *options);

char **pem_environment__variables(const struct pem_environment *environment);
void pem_environment__free(struct pem_environment *environment);

/* --- control_file.c --- */

/*
 * Open a control file by its descriptor, which stays the caller's. NULL: it is not complete yet, it
 * is this process's own, or it is refused, which is counted.
 */
struct pem_member *pem_member__open(struct pem_session *session, struct pem_dir *dir,
				    const char *name, int fd);
/* Unmap the file and free the member, which is in no list. */
void pem_member__close(struct pem_session *session, struct pem_member *member);
/* Ids of the events that it may raise; NULL: it does not say. */
const uint32_t *pem_member__event_ids(const struct pem_member *member);
/* The control page of an entry of the member's control file; false: there is none that could be. */
bool pem_member__page(const struct pem_member *member, uint32_t entry,
		      struct pem_member_page *page);

/* --- members.c --- */

/* Look for control files: in the session's targets, processes are offered the session. */
void pem_session__scan_members(struct pem_session *session);

/*
 * The member of a control file, which is opened if need be; NULL: there is none, or it is this
 * process.
 */
struct pem_member *pem_session__member(struct pem_session *session, struct pem_dir *dir,
				       const char *name);

void pem_session__forget_member(struct pem_session *session, struct pem_member *member);
/* A control file of another's directory, open as fd, which is taken; or it is no more. */
void pem_session__found_control(struct pem_session *session, struct pem_dir *dir, const char *name,
				int fd);

void pem_session__lost_control(struct pem_session *session, struct pem_dir *dir, const char *name);
/* Give back every entry, and forget all members. */
void pem_session__leave_members(struct pem_session *session);

/*
 * A process that is found already, in the session's own folder, can be observed at once: the other
 * folders that it and what it starts may have are looked for by a scan soon after. False: it is not
 * found, or another waits for that.
 */
bool pem_session__search_later(struct pem_session *session, uint32_t pid);

/* Find out which entry of its table is the session's, if any. */
void pem_member__find_index(struct pem_session *session, struct pem_member *member);

/*
 * Is the pool of the image that made this control file? An earlier image of the process had a file
 * of the same name.
 */
bool pem_member__has_made(const struct pem_member *member, const struct pem_producer *producer);

/* Has it the session in its table still? */
bool pem_member__is_served(struct pem_member *member);

/* Find out which contexts it is in, and let it know. */
void pem_member__find_contexts(struct pem_session *session, struct pem_member *member);

/* If it is in a target, offer it the session, and enable there what is wanted. 0, or -EUSERS. */
int pem_member__ask(struct pem_session *session, struct pem_member *member);

bool pem_is_control_name(const char *name);

/* --- producers.c --- */

/* Where a file of the directory has its chain in the session's tables. */
uint32_t pem_session__hash_name(const struct pem_session *session, const struct pem_dir *dir,
				const char *name);

/* Look for processes that came. */
void pem_session__find_producers(struct pem_session *session);

/* The same, and gather what processes of other directories have counted. */
void pem_session__scan_producers(struct pem_session *session);

/* A pool of another's directory, open as fd, which is taken. */
void pem_session__found_pool(struct pem_session *session, struct pem_dir *dir, const char *name,
			     int fd);

void pem_producer__free(struct pem_producer *producer);
struct pem_event_entry *pem_producer__event(struct pem_producer *producer, uint32_t id);
/*
 * Enter events that came since; the session's model may have grown. False: the model of the next
 * one is still to come.
 */
bool pem_producer__refresh_events(struct pem_session *session, struct pem_producer *producer);

/* --- pool_copy.c --- */

/*
 * The producer as it is now, its pool in private memory, for draining and accounting once. NULL: no
 * memory.
 */
struct pem_producer *pem_producer__copy(const struct pem_producer *producer);

/*
 * What the owner of a chunk in a pool that overwrites has committed. It may retire the chunk, lose
 * it, and another begin it meanwhile: then false, as for a chunk that says nothing that could be;
 * to is spoilt.
 */
bool pem_chunk__copy_owned(const struct pem_ring *ring, uint32_t index, uint32_t lane,
			   struct pem_packet *to);

/* Take a producer, at link of the list of all, out of the list and the tables. */
void pem_session__remove_producer(struct pem_session *session, struct pem_producer **link);

/* Cut off all memory mapped from a user (pem_fault__cut). Returns of how many processes. */
uint64_t pem_session__cut_user(struct pem_session *session, const struct pem_user *user);

/* --- pool_read.c --- */

/* The number here of a thread that has tid in its process's namespace; tid, if it is gone. */
uint32_t pem_producer__tid(const struct pem_producer *producer, uint32_t tid);

/* Records that all its threads have raised of an event. */
uint64_t pem_producer__produced(const struct pem_producer *producer, uint32_t event_index);

/*
 * The next lane that was ever a thread's, or lane_count. Lanes are handed out in order: past one
 * that is free and never was used none was. One that is being taken, or found no memory, is passed
 * over.
 */
uint32_t pem_producer__next_lane(const struct pem_producer *producer, uint32_t lane);

/*
 * Full chunks, and owned ones if asked for, by lane and sequence number; found has room for all.
 * Returns how many.
 */
size_t pem_producer__find_chunks(const struct pem_producer *producer, bool owned_too,
				 struct pem_found_chunk *found);

/* Let a producer have a chunk again that is being read. */
void pem_producer__free_chunk(const struct pem_producer *producer, uint32_t index);

/* The event of a record, met before or not; NULL: unknown. */
struct pem_event_entry *pem_producer__find_event(struct pem_session *session,
						 struct pem_producer *producer, uint32_t id);

/* Length of a record of which at most bytes are there; negative: it does not fit its event. */
int pem_event_entry__record_bytes(const struct pem_event_entry *entry, const uint8_t *record,
				  size_t bytes);

#endif
