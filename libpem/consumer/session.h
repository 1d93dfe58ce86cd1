/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.h - a session from the inside: demands, producers, sources, the log
 *
 * A demand is what the session wants of one event: the union of what its handles want. Demands become rules in the
 * session page and action words in the producers' control pages (rules.c), or actions of a source (sources.c).
 *
 *	handles (statistics, callback, log) --> demands --> rules --> producers --drain--> log (trace_writer)
 *	                                              \--> sources -----^  |
 *	                                                                   +------> asynchronous callbacks (async.h)
 *
 * Every entry takes the session's mutex, which is recursive: a synchronous callback may come from the session's
 * own thread. Producer threads take it only inside a callback that uses the API.
 */
#ifndef PEM_SESSION_H
#define PEM_SESSION_H

#include "consumer/clock_sync.h"
#include "consumer/costs.h"
#include "consumer/fault.h"
#include "consumer/processes.h"
#include "consumer/trace_writer.h"
#include "consumer/where.h"
#include "pool.h"
#include "source.h"
#include "distribution.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>

#define PEM_INSTANCES_MAX 16
#define PEM_DEMANDS_MAX                                                                            \
	4096u /* every event that a model may hold: pointers to demands stay valid */
#define PEM_BATCH_BYTES (256u << 10) /* at least one chunk: half of a second-level cache */

struct pem_demand {
	const struct pem_event *event;
	struct pem_context context;
	bool has_context; /* some handle has set it */
	const struct pem_predicate
		*predicate; /* of the sets that handles were made of; NULL: none */
	unsigned bound; /* handles that chose it */
	bool log, statistic, callback;
	bool want_log, want_statistic,
		want_async; /* registered, enabled or not: a source opens what may be wanted */
	uint64_t
		async; /* bit i: asynchronous callback i is enabled and wants it; also under the async lock */
	bool async_ever; /* it was so: not all that lies in pools is the log's */
	bool async_context; /* of the kernel: tells whose records are, for asynchronous callbacks */
	bool wake; /* their thread sleeps */
	uint64_t async_lost; /* while wanted by one: found no room, or was overwritten */
	uint64_t source_lost; /* of a source: discarded by it, as async_lost knows */
	uint64_t callback_only; /* records of a source that were not for the log */
	uint8_t field;
	uint32_t epoch;
	const struct pem_statistics *statistics; /* the handle that chose field */
	int instance; /* of sources, -1: none yet or a stub */
	size_t instance_index;
	uint8_t detail; /* enum pem_detail: the most that the overhead budget lets it have */
	bool was_reduced, was_off; /* it ever was less than wanted, or off */
	int unavailable; /* 0, or -errno of a source that can't */
	char reason[232]; /* why */
	char source[24]; /* its name */
	uint64_t delivered, lost; /* records of a source: written, not written */
	uint64_t overwritten; /* kept by a flight recorder for a while, and not any more */
	uint32_t distribution; /* PEM_DISTRIBUTION(...): what else to keep, 0: nothing */
	struct pem_statistic retired; /* from processes that are gone; valid for retired_epoch */
	struct pem_distribution_total *retired_distribution; /* with wide */
	uint32_t retired_epoch;
};

/* A provider whose events are not recorded, since they contradict what the session knows. */
struct pem_refusal {
	uint32_t pid;
	const struct pem_dir *dir;
	char event[128]; /* the first that does not fit */
	char reason[232];
};

struct pem_instance {
	const struct pem_source_ops *ops;
	struct pem_source *source;
	bool refused_said; /* a target */
	struct pem_source_event *events;
	size_t event_count;
};

/* A process that the sources observe. */
struct pem_target {
	uint32_t pid;
	bool seen; /* by the look under way */
};

struct pem_event_set {
	struct pem_session *session;
	const struct pem_predicate **predicates; /* of the events; NULL: none */
	uint8_t any_level; /* enum pem_level up to which patterns cover every stub event, met or not; 0: none do */
	size_t count;
	const struct pem_event *events[];
};

struct pem_statistics {
	struct pem_session *session;
	struct pem_statistics *next;
	char attribute[64];
	bool enabled, was_enabled, keeps;
	size_t count;
	struct pem_demand *demands[];
};

struct pem_environment;

struct pem_callback {
	struct pem_session *session;
	struct pem_callback *next;
	struct pem_async_callback *async; /* NULL: synchronous */
	uint32_t pid; /* of the process whose threads it is called in: not a child's */
	size_t count;
	struct {
		struct pem_demand *demand;
		unsigned index; /* in pem_joined.callback */
	} entry[];
};

struct pem_log_span {
	uint64_t from, to; /* clocks */
};

struct pem_log {
	struct pem_session *session;
	struct pem_trace_writer *writer;
	struct pem_model
		*model; /* of the trace: the session's, without what the trace can't hold */
	size_t model_seen; /* of the session's events: those that were looked at for it */
	struct pem_trace_info info;
	uint64_t machine_cpu_ns; /* when its time began, since boot; 0: not known */
	bool enabled, finished;
	bool named; /* the trace knows who ran before */
	struct pem_log_span *spans; /* when it was enabled; the last one may go on */
	size_t span_count;
	bool closed; /* accounted for: nothing more goes into the trace */
	int result; /* of finishing */
	uint8_t any_level; /* up to which also what processes raise that the session has not met; 0: nothing */
	/* user records, of producers accounted for but for delivered */
	uint64_t delivered, produced, overwritten;
	size_t count;
	struct pem_demand *demands[];
};

/* The stall clock: times at pem_dir__begin (stall.c). */
struct pem_stall_clock {
	pid_t tid; /* whose times they are; 0: none, and fd is not open */
	int fd;
	uint64_t began_ns, ran_ns, written_ns;
};

struct pem_session {
	pthread_mutex_t mutex;
	struct pem_session_options options;
	struct pem_model *model;
	char runtime[PATH_MAX - 128];
	char directory[PATH_MAX - 64];
	char public_directory[64]; /* see public.c; "": none */
	int directory_fd;
	struct pem_session_page *page;
	int page_cut, page_cut_said; /* it was truncated: no process can join any more */
	/* What the page was made with and holds: whoever joins may write there, so that it is not asked for again. */
	struct pem_pool_geometry geometry;
	uint32_t id, generation, context_count, rule_count, test_count;
	int self_index; /* of this process, -1: not joined */
	struct pem_demand *demands; /* one per model event, lazily */
	uint16_t demand_of
		[PEM_DEMANDS_MAX]; /* by the event's index in the model: where its demand may be */
	size_t demand_count;
	int alive_fd; /* holds the lock that says so */
	struct pem_dir *dirs; /* the first is the session's own */
	uint32_t dir_numbers; /* given to further ones so far */
	struct pem_finder *finders; /* of further directories */
	uint64_t next_search_ns; /* for further directories */
	/* Why confined helpers can't be started, an errno; 0: they can, as far as is known. And that this was said. */
	int helper_error;
	bool helpless_said;
	/* Folders for all users, such as /tmp, that finders have not read to their end. */
	uint32_t unread_folders;
	struct pem_member *members;
	struct pem_member *members_by_name[PEM_PROCESS_BUCKETS];
	uint32_t target_count; /* contexts that were attached to */
	pid_t root; /* whose tree the sources observe; 0: none yet */
	bool root_runs; /* it was attached to: no exec of it is to be waited for */
	bool whole_machine; /* the sources observe all */
	struct pem_target *observed; /* else these, root among them, and what they start */
	size_t observed_count, observed_capacity;
	uint64_t next_targets_ns; /* for further ones */
	bool has_searched; /* for those that ran already */
	uint32_t late_targets; /* found some time after they had started, and after that */
	bool searches_elsewhere; /* a target may have processes in further directories */
	/* What the kernel module looks at: see struct pem_source_config. */
	char *counters;
	char *counter_names; /* of these, as they are called in the catalogue, or were asked for */
	uint32_t pages_interval_us;
	uint64_t pages_region_bytes;
	bool no_follow; /* they observe processes, and not what these start */
	/* Those that a source opens for just now, opening_count of them. */
	struct pem_demand **opening;
	size_t opening_count;
	/* A source's descriptor ended the wait; the drain since moved something; it did not, so that the next wait is by time. */
	bool woken, moved, woken_in_vain;
	struct pem_producer *producers;
	struct pem_producer *producers_by_name[PEM_PROCESS_BUCKETS];
	struct pem_producer *producers_by_image[PEM_PROCESS_BUCKETS];
	/* By index in the model: who brought the event. NULL: it is certain (models.c). */
	const struct pem_dir *event_origins[PEM_DEMANDS_MAX];
	struct pem_refusal refusals[8];
	size_t refusal_count;
	uint64_t refusals_more; /* events of processes for which there was no room there */
	/* stall.c. written_ns: time spent writing the trace so far. */
	struct pem_stall_clock stall_clock;
	uint64_t written_ns;
	/* limits.c: what all directories but the session's own have taken together. */
	struct pem_user *users;
	uint64_t used_by_others[PEM_RESOURCE_COUNT];
	uint64_t end_of_others_ns;
	uint64_t turn; /* of draining (run.c) */
	struct pem_predicate *predicates;
	struct pem_statistics *statistics;
	uint32_t distributions_used; /* bit i: index i is some demand's */
	uint16_t distribution_generation;
	struct pem_callback *callbacks;
	struct pem_async *async; /* NULL: no asynchronous callback yet */
	struct pem_log *log;
	struct pem_detail_state *detail; /* of the overhead budget; NULL: none was ever set */
	struct pem_costs costs; /* zero: not measured */
	uint32_t costs_tried; /* kinds that were asked for */
	struct pem_flight *flight; /* of a flight recorder with a log; else NULL */
	char flight_trace[PATH_MAX]; /* of its log */
	int serve_fd, asking_fd; /* its socket, and who asks for a snapshot; -1: none */
	uint64_t asking_since_ns;
	bool has_logged; /* pools and sources count from their beginning: for one trace */
	struct pem_source_plugin *plugins;
	bool plugins_loaded;
	struct pem_instance instances[PEM_INSTANCES_MAX];
	int instance_count;
	struct pem_clock_sync clock;
	pid_t command;
	int command_pidfd;
	bool command_done;
	int command_status;
	uint64_t command_start_clock, command_end_clock; /* 0: not yet */
	struct rusage command_usage;
	volatile int interrupted;
	uint64_t next_scan_ns, next_drain_ns;
	/* Of a process that was attached to: when its other folders are to be looked for; 0: never. */
	uint64_t search_ns;
	uint32_t search_pid;
	uint64_t next_gather_ns; /* of losses that processes of other directories counted */
	/* rights.c: bit i: a process was refused its pool for reason i, and that was said. */
	uint32_t refusals_said;
	/* Events that statistics lack, as last said. */
	uint64_t lost_said;
	uint8_t *
		batch; /* private copies of chunks while they are checked, and until they are written */
	size_t batch_bytes;
};

/* Room for batches of the page's chunks. 0, or -ENOMEM. */
int pem_session__make_batch(struct pem_session *session);
/* A session with nothing in it, for pem_session__open and pem_trace__recover. NULL with errno. */
struct pem_session *pem_session__new_empty(void);
/* Fill a session's model from a trace's. */
int pem_session__load_trace_model(struct pem_session *session, const struct pem_model *model,
				  struct pem_error *error);

void pem_session__lock(struct pem_session *session);
void pem_session__unlock(struct pem_session *session);
void pem_session__say(struct pem_session *session, enum pem_log_level level, const char *format,
		      ...) __attribute__((format(printf, 3, 4)));

/* The demand for an event of the session's model; NULL: out of memory. The pointer stays valid. */
struct pem_demand *pem_session__demand(struct pem_session *session, const struct pem_event *event);
/* Set or check a demand's context. 0, or -EBUSY when another handle has chosen another. */
int pem_demand__set_context(struct pem_demand *demand, const struct pem_context *context,
			    struct pem_error *error);
/* After the last handle that chose it another may be set; not of a source, which was opened with it. */
void pem_demand__release_context(struct pem_demand *demand);
/* The action word of what is enabled now. */
uint64_t pem_demand__action(const struct pem_demand *demand);
/* Join this process to the session, once. 0, or -errno. */
int pem_session__join_self(struct pem_session *session);
/* models.c */
/*
 * The session's event for an event of a producer's table, entered into the session's model if it is new there. NULL: unknown.
 * *refused: what describes it contradicts what is certain, so that what it raises can be measured, and not be recorded; the
 * event is of that description then. Noted for the trace.
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
/* log.c: the session's model has grown: take the new events into the trace's. */
void pem_log__model_grew(struct pem_log *log);
/*
 * The trace speaks of an event of the session's: its model has to have it. A program's own spec may give an event a lower
 * level than the one known here, so that it is logged though nobody here asked for it.
 */
void pem_log__describe(struct pem_log *log, const struct pem_event *event);
/* Is a record the log's? Of what asynchronous callbacks want too, only what was raised while it was enabled. */
bool pem_log__wants(const struct pem_log *log, const struct pem_demand *demand, uint64_t clock);
/* Does the kernel raise the event, at a tracepoint or because pem.ko looks? */
static inline bool pem_event__is_of_kernel(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT ||
	       event->source_kind == PEM_SOURCE_MODULE || event->source_kind == PEM_SOURCE_USDT ||
	       event->source_kind == PEM_SOURCE_PROBE;
}
/* Does the event say which process or thread kernel records belong to, or what that is called? */
bool pem_event__tells_context(const struct pem_event *event);
/* Of these, those that this machine can deliver. Calls function for each one's demand. */
void pem_session__each_context_event(struct pem_session *session,
				     void (*function)(struct pem_session *session,
						      struct pem_demand *demand));
/* Models of this process's own providers. Returns events added, or -errno. */
int pem_session__load_own_models(struct pem_session *session);

/* rules.c: publish the demands to the session page, this process and every known producer. */
void pem_session__publish(struct pem_session *session);
void pem_session__apply_to(struct pem_session *session, struct pem_member *member);
/* The page's index of a context, which it gets if it has none; -1: there are too many. flags: PEM_CONTEXT_TARGET, or 0. */
int pem_session__context(struct pem_session *session, const struct pem_context *context,
			 uint32_t pid, uint32_t flags);
/* The control page of an entry of the member's control file; false: there is none that could be. */
bool pem_member__page(const struct pem_member *member, uint32_t entry,
		      struct pem_member_page *page);

/* dirs.c */
void pem_session__add_session_dir(struct pem_session *session);
/*
 * finders.c: let a helper look for the runtime folders that a process may have. Each is a directory from the scan on that hears of
 * it. *owner: the process's user, whose helpers then have something to tell. False: none can be started.
 */
bool pem_session__find_dirs_of(struct pem_session *session, uint32_t pid, uid_t *owner);
/* The same for every process that can be seen; does it once a second at most. */
void pem_session__search_dirs(struct pem_session *session);
#define PEM_ANY_USER ((uid_t)-1)
/* Have helpers of a user still to tell what is there? Not those that were waited for in vain. */
bool pem_session__awaits_helpers(const struct pem_session *session, uid_t owner);
/* They were waited for in vain: said of finders, which are heard when they answer. */
void pem_session__stop_awaiting(struct pem_session *session, uid_t owner);
/* Take in what keepers have told of since, some of each: never waits. */
void pem_session__scan_dirs(struct pem_session *session);
/*
 * The recording ends: take in all that is there now. Of keepers that have not told by then, of pem_monotonic_ns, it is said
 * that what they had to tell is lost.
 */
void pem_session__settle_dirs(struct pem_session *session, uint64_t deadline_ns);
struct pem_dir_of_session {
	struct pem_session *session;
	struct pem_dir *dir;
};
/* For pem_entry__take; arg: a struct pem_dir_of_session. */
bool pem_dir__has_consumer(void *arg, const char *folder);
/* Remove a file of the directory; of a control file, the one with this inode number. */
void pem_dir__remove_control(struct pem_dir *dir, const char *name, uint64_t inode);
void pem_dir__remove_pool(struct pem_dir *dir, const char *name);
/* Let the pages of all directories say what the session's own does. */
void pem_session__mirror(struct pem_session *session);
/* finders.c: the session ends: say how many folders for all users were not read to their end, if several. */
void pem_session__say_unread(struct pem_session *session);
/* The same, as a gap of a trace. */
void pem_session__note_unread(const struct pem_session *session, struct pem_trace_info *info);
/* Add to the session's own page what was lost in other directories. */
void pem_session__gather_losses(struct pem_session *session);
void pem_session__close_dirs(struct pem_session *session);
/* pids.c: the number here of a thread that has tid in its process's namespace; tid, if it is gone. */
uint32_t pem_producer__tid(const struct pem_producer *producer, uint32_t tid);
/* The number here of a process of a directory that has pid in a namespace; 0: it is not found. */
uint32_t pem_dir__pid(uid_t owner, uint32_t pid, uint32_t pid_namespace);
/* The number in its own pid namespace of a process that /proc lists by this name, and in how many it has one. 0: it has ended. */
uint32_t pem_inner_pid(const char *process, unsigned *namespaces);
/* Is a process there that has nothing of a user? */
bool pem_is_anothers(uint32_t pid, uid_t owner);

/* Ids of the events that it may raise; NULL: it does not say. */
const uint32_t *pem_member__event_ids(const struct pem_member *member);

/*
 * wake.c: shall events that asynchronous callbacks want wake their thread up? Nothing else of the rules changes. False:
 * there are processes whose control pages are out of reach.
 */
bool pem_session__set_wake(struct pem_session *session, bool wake);

/* dirs.c: has the session a log that is to be recovered should this process die? */
void pem_session__note_log(struct pem_session *s, bool has_log);

/* runtime.c */
/*
 * Remove a session's folder, the files in it, and folders in it that are empty; takes fd, which may be -1: nothing happens.
 * False: it is there still, as path or under that name with ".gone" behind.
 */
bool pem_runtime__remove(int fd, const char *path);
/*
 * Take away what processes that are no more left behind: control files and sessions of which nothing is to be recovered
 * at once, others after a day, as pem_trace__recover may still want them.
 */
void pem_runtime__sweep(const char *runtime);

/* run.c: look for new and gone processes; the next time is due some milliseconds after now. */
void pem_session__update_processes(struct pem_session *session, uint64_t now_ns);

/* Is there a trace that records go to? */
bool pem_session__is_logging(const struct pem_session *session);

/*
 * drain.c: move full chunks (final: all committed records) to the log. False: the turn of the producer's directory was over
 * before that.
 */
bool pem_session__drain_producer(struct pem_session *session, struct pem_producer *producer,
				 bool final);
/* Account for a producer that will produce no more, or not for this session. */
void pem_session__account(struct pem_session *session, struct pem_producer *producer);

/* Keep the statistics of a producer that goes away. */
void pem_session__retire(struct pem_session *session, struct pem_producer *producer);

/* log.c: the trace's time begins now. */
void pem_log__start_clock(struct pem_log *log);
/* What is the session's as a whole: lost events, costs, times. In flight the trace begins with its first record. */
void pem_log__close_account(struct pem_session *session, struct pem_trace_info *info);

/* public.c */
/*
 * Make root's session's public folder; nothing where this is not root. -errno: there is none, and programs that the command
 * starts as other users are not observed.
 */
int pem_session__make_public(struct pem_session *session);
/* Of a session whose recorder died: read what lies in its public folder, too, if it has one. */
void pem_session__reopen_public(struct pem_session *session);
/* Is there a pool in the public folder of the session whose own folder is open? False: it may have no public folder. */
bool pem_public__has_pools(int session_fd);
/* Remove it, unless the session's own folder is kept. Takes the folder's descriptors. */
void pem_session__close_public(struct pem_session *session, struct pem_dir *folder);
/* Remove those that dead sessions left, once these can't be recovered any more. */
void pem_public__sweep(struct pem_session *session);
/* One program that fills a public folder costs the others nothing but what comes after so many files. */
#define PEM_PUBLIC_FILES_MAX 4096
/*
 * The directory for what the owner of a file in a public folder has there. NULL: it is no plain file with one name, or there are too
 * many users, which is counted; or there is no memory.
 */
struct pem_dir *pem_public__user(struct pem_session *session, struct pem_dir *folder, int fd);
/*
 * Has nobody a file in there? False where that is not known. Costs one system call, where listing the folder costs some six.
 * True holds until the next file is made.
 */
bool pem_public__is_bare(const struct pem_dir *folder);
/*
 * Take out of the files of programs what they have counted in a public folder since, and remove the files of those that ended.
 * Where there is no room for such files, that is said once.
 */
void pem_public__take_counts(struct pem_session *session, struct pem_dir *folder);
/* Add to the gaps of a trace that there was no room for files in the public folder. */
void pem_public__note_room(const struct pem_session *session, struct pem_trace_info *info);

/* rights.c: what programs could not have recorded for want of memory or of rights that they gave up */
/* Say why processes made no pools, and what would mend it: once for each kind of reason. */
void pem_session__say_refused(struct pem_session *session);
/* The session ends: say how many processes made no pool, if several. */
void pem_session__say_all_refused(struct pem_session *session);
/* Add to the session's page what the page of a further directory has counted. */
void pem_session__gather_rights(struct pem_session *session, struct pem_dir *dir);
/* Add what a file of the public folder has counted: the head of a page, which one process and its children write. */
void pem_session__gather_head(struct pem_session *session, struct pem_session_page *head);
/* One more process could not make its pool; code: an errno. */
void pem_session__count_refusal(struct pem_session *session, uint32_t code);
/* How many seccomp filters a process has; 0 also where the kernel does not count them (before Linux 5.9). */
uint32_t pem_filters_of(uint32_t pid);
void pem_session__note_rights(struct pem_session *session, struct pem_trace_info *info);

/* environment.c */
/*
 * This process's environment, and what makes a program raise events. s: the session that tells which adapters are
 * wanted, NULL: any may be; session: the folder of the one that the program joins, or NULL. program: what is started, looked
 * for in PATH, or NULL; where nothing can be preloaded into it nothing is, and s says so. NULL: out of memory.
 */
struct pem_environment *pem_environment__new(struct pem_session *s, const char *session,
					     const char *program,
					     const struct pem_run_options *options);
char **pem_environment__variables(const struct pem_environment *environment);
void pem_environment__free(struct pem_environment *environment);

/* sources.c */
/* For the target that is known by now: root or whole_machine, or the contexts of demands. */
int pem_session__open_sources(struct pem_session *session, struct pem_error *error);
void pem_session__update_sources(struct pem_session *session);
void pem_session__drain_sources(struct pem_session *session, bool final);
/* counted: by demand, what each has produced and discarded of a source that goes on; NULL: it has stopped, ask it. */
void pem_session__account_sources(struct pem_session *session, const struct pem_balance *counted);
/* For each record of a packet, as far as they fit their descriptions: add to what is counted of its event. */
void pem_session__count_records(struct pem_session *session, const struct pem_packet *packet,
				size_t content, int delivered, int lost);
/* Ask the sources: by demand. */
void pem_session__count_sources(struct pem_session *session, struct pem_balance *counted);
void pem_session__close_sources(struct pem_session *session);
/* Gaps: events whose source can't deliver them, by reason. */
void pem_session__note_gaps(struct pem_session *session, struct pem_trace_info *info);

/* statistics.c */
/* The session ends: say how many events statistics lacked, if more than was said before. */
void pem_session__say_all_lost(struct pem_session *session);
void pem_statistic__add(struct pem_statistic *to, const struct pem_statistic *from);
/* distribution.c: a demand wants no more than its cell from now on. */
void pem_demand__release_distribution(struct pem_session *session, struct pem_demand *demand);
/* distribution.c: all that is known of a demand, which keeps something. 0, or -errno of its source. */
int pem_demand__read_distribution(struct pem_session *session, const struct pem_demand *demand,
				  struct pem_distribution_total *total);
/* distribution.c: a process is gone, and what it had is kept; in retired_epoch, if that is the demand's. */
void pem_demand__retire_distribution(struct pem_demand *demand, struct pem_producer *producer);

/* What follows from count and sum; and no variance unless the demand keeps it. */
void pem_statistic__finish(struct pem_statistic *value, const struct pem_demand *demand);

#endif
