/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source_host.h - the sources of a session: loading their plugins, opening them, and what they
 * observe
 *
 * All is called with the session's mutex held.
 */
#ifndef PEM_SOURCE_HOST_H
#define PEM_SOURCE_HOST_H

#include "source.h"

#include <stdbool.h>
#include <sys/types.h>

struct pem_demand;
struct pem_session;
struct pem_source;

#define PEM_INSTANCES_MAX 16

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

struct pem_source_plugin {
	struct pem_source_ops whole; /* the plugin's table, with NULL for what an older one lacks */
	const struct pem_source_ops *ops;
	void *handle;
	struct pem_source_plugin *next;
};

/* What a search for probes found, by their sources' names. */
struct pem_found {
	char **names;
	size_t count, capacity;
};

struct pem_session_sources {
	struct pem_source_plugin *plugins;
	bool plugins_loaded;
	struct pem_instance instances[PEM_INSTANCES_MAX];
	int instance_count;
	/* Demands that a source is being opened for, opening_count of them. */
	struct pem_demand **opening;
	size_t opening_count;
	/*
	 * A source's descriptor ended the wait; the drain since moved something; it did not, so
	 * that the next wait is by time.
	 */
	bool woken, moved, woken_in_vain;

	/* targets.c: what they observe. Root: the process whose tree it is; 0: none yet. */
	pid_t root;
	bool root_runs; /* it was attached to: no exec of it is to be waited for */
	bool whole_machine;
	/* unless the whole machine is: root and others, with what they start */
	struct pem_target *observed;
	size_t observed_count, observed_capacity;
	uint64_t next_targets_ns; /* for further ones */
	bool has_searched; /* for those that ran already */
	uint32_t late_targets; /* found some time after they had started, and after that */
	bool no_follow; /* they observe processes, and not what these start */

	/* module_config.c: what the kernel module observes, see struct pem_source_config. */
	char *counters;
	char *counter_names; /* of these, as they are called in the catalogue, or were asked for */
	uint32_t pages_interval_us;
	uint64_t pages_region_bytes;
};

/* --- plugins.c --- */

/* Of these, those that this machine can deliver. Calls function for each one's demand. */
void pem_session__each_context_event(struct pem_session *session,
				     void (*function)(struct pem_session *session,
						      struct pem_demand *demand));

/* Once; into session->sources->plugins, by falling preference. */
void pem_session__load_plugins(struct pem_session *session);

void pem_session__unload_plugins(struct pem_session *session);
/*
 * The first behind one, NULL: of all, that delivers an event; NULL: none, and error says why, and
 * *name whose word it is.
 */
const struct pem_source_ops *pem_session__find_plugin(struct pem_session *session,
						      const struct pem_source_plugin *after,
						      const struct pem_event *event,
						      const char **name, struct pem_error *error);

/*
 * Does a source, of those that know counters' names, know this one? 1, also if there is no such
 * source; -ENOENT with error.
 */
int pem_session__knows_counter(struct pem_session *session, const char *name,
			       struct pem_error *error);

/* --- sources.c --- */

/* For the target that is known by now: root or whole_machine, or the contexts of demands. */
int pem_session__open_sources(struct pem_session *session, struct pem_error *error);

void pem_session__update_sources(struct pem_session *session);
void pem_session__drain_sources(struct pem_session *session, bool final);
/*
 * Counted: by demand, what each has produced and discarded of a source that goes on; NULL: it has
 * stopped, ask it.
 */
void pem_session__account_sources(struct pem_session *session, const struct pem_balance *counted);

/*
 * For each record of a packet, as far as they fit their descriptions: add to what is counted of its
 * event.
 */
void pem_session__count_records(struct pem_session *session, const struct pem_packet *packet,
				size_t content, int delivered, int lost);

/* Ask the sources: by demand. */
void pem_session__count_sources(struct pem_session *session, struct pem_balance *counted);

void pem_session__close_sources(struct pem_session *session);
/* Gaps: events whose source can't deliver them, by reason. */
void pem_session__note_gaps(struct pem_session *session, struct pem_trace_info *info);

/* Has the session tried to have an event, and can't? True: reason says why. */
bool pem_session__refusal(const struct pem_session *session, const struct pem_event *event,
			  struct pem_error *reason);

/* --- targets.c --- */

/*
 * Let the sources observe a process, which runs already or is about to exec, and its descendants to
 * come.
 */
void pem_session__set_root(struct pem_session *session, pid_t pid, bool runs);

/* Let a source that was opened for the root observe all others, too. */
void pem_session__add_targets_to(struct pem_session *session, struct pem_instance *instance);

/*
 * Let them observe who runs already: descendants of targets, programs, control groups and
 * namespaces.
 */
void pem_session__find_targets(struct pem_session *session);

/*
 * One that raises events itself has come: is it one of them? Then it is not waited for the next
 * look.
 */
void pem_session__note_target(struct pem_session *session, uint32_t pid);

/* The same once a second, if others may come; opens the sources for the first one. */
void pem_session__update_targets(struct pem_session *session);

bool pem_session__observes_kernel(const struct pem_session *session);

/* --- probes.c --- */

void pem_found__free(struct pem_found *found);
/* Is one of them a source of the event? */
bool pem_found__has(const struct pem_found *found, const struct pem_event *event);

/*
 * Pem_session__add_probes, with what was found, which is to be freed either way; NULL: never mind.
 */
int pem_session__find_probes(struct pem_session *session, const char *pattern,
			     struct pem_found *found, struct pem_error *error);

#endif
