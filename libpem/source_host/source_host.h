/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_host.h - the sources of a session: loading their plugins, opening them, and what they
 * observe
 *
 * All functions are called with the session's mutex held.
 */
#ifndef PEM_SOURCE_HOST_H
#define PEM_SOURCE_HOST_H

#include "source.h"

#include <pem/internal.h>

#include <stdbool.h>
#include <sys/types.h>

struct pem_demand;
struct pem_session;
struct pem_source;

#define PEM_INSTANCES_MAX 16

struct pem_instance {
	const struct pem_source_ops *ops;
	struct pem_source *source;
	bool refused_said; /* the session has said that it refused a target */
	/* It was opened before any target was known: each of its demands names its process. */
	bool has_no_targets;
	struct pem_source_event *events;
	size_t event_count;
};

/* A process that the sources observe. */
struct pem_target {
	uint32_t pid;
	bool seen; /* the current scan has seen it */
};

struct pem_source_plugin {
	/* The plugin's table. Functions that an older plugin lacks are NULL. */
	struct pem_source_ops whole;
	const struct pem_source_ops *ops;
	void *handle;
	struct pem_source_plugin *next;
};

/* The probes that a search found, by the names of their sources. */
struct pem_found {
	char **names;
	size_t count, capacity;
};

struct pem_session_sources {
	struct pem_source_plugin *plugins;
	bool plugins_loaded;
	char library_path[PEM_LIBRARY_PATH_BYTES + 1]; /* as sources get it */
	struct pem_instance instances[PEM_INSTANCES_MAX];
	int instance_count;
	/* Index of the instance that is being drained. */
	int draining;
	/* The demands for which a source is being opened. */
	struct pem_demand **opening;
	size_t opening_count;
	/*
	 * woken: a source's descriptor ended the wait. moved: the drain after that moved something.
	 * woken_in_vain: it moved nothing, so that the next wait is by time.
	 */
	bool woken, moved, woken_in_vain;

	/*
	 * targets.c: what the sources observe. root: the process whose tree they observe; 0: none
	 * yet.
	 */
	pid_t root;
	/* The session was attached to root: sources do not wait for an exec. */
	bool root_runs;
	bool whole_machine;
	/* The control group that is the session's only target; 0: there is none. */
	uint64_t cgroup;
	/*
	 * If the sources do not observe the whole machine: root and other processes, with what they
	 * start.
	 */
	struct pem_target *observed;
	size_t observed_count, observed_capacity;
	uint64_t next_targets_ns; /* when to look for further targets next */
	bool has_searched; /* the session has searched for processes that ran already */
	/* Number of targets that were found after that search, some time after they had started. */
	uint32_t late_targets;
	bool no_follow; /* sources observe processes, but not what these start */

	/* module_config.c: what the kernel module observes, see struct pem_source_config. */
	char *counters;
	/* Names of the counters, as in the catalogue or as the user asked for them. */
	char *counter_names;
	uint32_t pages_interval_us;
	uint64_t pages_region_bytes;
	/* Why threads can't read counters that were asked for (event_counters.c). */
	char refused_counters[8][232];
	unsigned refused_counter_count;
	/* The counters that threads read at events, as the session's file has them. */
	struct pem_counter thread_counters[PEM_COUNTERS_MAX];
	uint32_t thread_counter_count;
};

/* --- event_counters.c --- */

/* Add the counters that threads can't read to the trace's gaps. */
void pem_session__note_counters(const struct pem_session *session, struct pem_trace_info *info);

/* --- plugins.c --- */

/* Call function for the demand of each context event that this machine can deliver. */
void pem_session__each_context_event(struct pem_session *session,
				     void (*function)(struct pem_session *session,
						      struct pem_demand *demand));

/* Load all plugins, once, into session->sources->plugins, by falling preference. */
void pem_session__load_plugins(struct pem_session *session);

void pem_session__unload_plugins(struct pem_session *session);
/*
 * The event that tells which thread runs on a CPU. A recording has it whenever it has an event of
 * the kernel. NULL: the model has none.
 */
const struct pem_event *pem_session__event_that_sets_thread(const struct pem_session *session);

/*
 * Find the first plugin behind after that delivers an event; after NULL: the first of all. NULL:
 * there is none; error says why, and *name is the source that says so.
 */
const struct pem_source_ops *pem_session__find_plugin(struct pem_session *session,
						      const struct pem_source_plugin *after,
						      const struct pem_event *event,
						      const char **name, struct pem_error *error);

/*
 * Does a source know a counter of this name? Only sources that know counters' names are asked.
 * Returns 1, also if there is no such source; -ENOENT with error.
 */
int pem_session__knows_counter(struct pem_session *session, const char *name,
			       struct pem_error *error);

/* --- account.c --- */

/*
 * The log function of a source; arg is the session. A source returns only a number where it cannot
 * open an event. So its warnings while it opens are kept as the reason.
 */
void pem_session__say_from_source(enum pem_log_level level, const char *text, void *arg);

/* --- sources.c --- */

/*
 * Open the sources for the targets that are known by now: root, whole_machine, or the contexts of
 * demands.
 */
int pem_session__open_sources(struct pem_session *session, struct pem_error *error);

/* Does a demand want a source that can be opened now, and has none? */
bool pem_session__awaits_source(const struct pem_session *session);

void pem_session__update_sources(struct pem_session *session);

enum pem_drain_stage {
	PEM_DRAIN_NOW, /* write what has accumulated */
	PEM_DRAIN_END, /* the log is about to be disabled: write how things stand */
	PEM_DRAIN_FINAL, /* stop, and write the rest */
};
void pem_session__drain_sources(struct pem_session *session, enum pem_drain_stage how);
/*
 * Account for the sources. counted: by demand, what each source that goes on has produced and
 * discarded. NULL: the sources have stopped and are asked here.
 */
void pem_session__account_sources(struct pem_session *session, const struct pem_balance *counted);

/*
 * Add delivered and lost to the counts of the event of each record in a packet. Stops at the first
 * record that does not fit its description.
 */
void pem_session__count_records(struct pem_session *session, const struct pem_packet *packet,
				size_t content, int delivered, int lost);

/* Ask the sources for what they have produced and discarded; counted is by demand. */
void pem_session__count_sources(struct pem_session *session, struct pem_balance *counted);
/* System calls of pem's own in observed programs, so far. */
uint64_t pem_session__internal_calls(const struct pem_session *session);

void pem_session__close_sources(struct pem_session *session);
/* Add gaps to a trace: events that their source can't deliver, by reason. */
void pem_session__note_gaps(struct pem_session *session, struct pem_trace_info *info);

/* Add to a trace which counters were estimated, and as gaps those that never counted. */
void pem_session__note_estimates(struct pem_session *session, struct pem_trace_info *info);

/* Did the session fail to get an event, so far? True: reason says why. */
bool pem_session__refusal(const struct pem_session *session, const struct pem_event *event,
			  struct pem_error *reason);

/* --- targets.c --- */

/*
 * Add a gap to a trace: the processes that the session's command started, and that go on after it
 * has ended.
 */
void pem_session__note_left(struct pem_session *session, struct pem_trace_info *info);
/* As pem_session__note_left, of a session without a trace: tell the log function. */
void pem_session__say_left(struct pem_session *session);

/*
 * Let the sources observe a process and its future descendants. The process runs already or is
 * about to exec.
 */
void pem_session__set_root(struct pem_session *session, pid_t pid, bool runs);

/*
 * Let a source that was opened for the root observe all other targets, and know where programs keep
 * their gates.
 */
void pem_session__add_targets_to(struct pem_session *session, struct pem_instance *instance);

/* The number outside of a thread of an inner pid namespace: struct pem_session_hooks. */
uint32_t pem_session__outer_tid(struct pem_session *session, uint32_t pid_namespace, uint32_t tid,
				uid_t owner, uint64_t clock);

/* --- gates.c --- */

/* Let sources know where a process keeps its gates: struct pem_session_hooks. */
void pem_session__note_gates(struct pem_session *session, uint32_t pid, uint64_t address);
/* Let a source know that of all processes. */
void pem_session__tell_gates(const struct pem_session *session,
			     const struct pem_instance *instance);

/*
 * Let the sources observe processes that run already: descendants of targets, and processes of
 * programs, control groups and namespaces.
 */
void pem_session__find_targets(struct pem_session *session);

/*
 * A process that raises events itself was found. If it is a target, let the sources observe it now,
 * without waiting for the next scan.
 */
void pem_session__note_target(struct pem_session *session, uint32_t pid);

/* Look for targets once a second, if more may come. Opens the sources for the first one. */
void pem_session__update_targets(struct pem_session *session);

bool pem_session__observes_kernel(const struct pem_session *session);

/* --- probes.c --- */

void pem_found__free(struct pem_found *found);
/* Is one of the probes found a source of the event? */
bool pem_found__has(const struct pem_found *found, const struct pem_event *event);

/*
 * Do what pem_session__add_probes does, and fill found; NULL: the caller does not need it. The
 * caller frees found also after an error.
 */
int pem_session__find_probes(struct pem_session *session, const char *pattern,
			     struct pem_found *found, struct pem_error *error);
/*
 * Take a counter that no spec describes into the session's model, if a source knows its name on
 * this machine. Returns 1; -ENOENT if none does; another -errno with error: it can't be one.
 */
int pem_session__find_counter(struct pem_session *session, const char *name,
			      struct pem_error *error);

/* --- module_config.c --- */

/* Return 0; -EBUSY with error: a handle was enabled before function, a setting, was called. */
int pem_session__is_too_late(const struct pem_session *session, const char *function,
			     struct pem_error *error);

#endif
