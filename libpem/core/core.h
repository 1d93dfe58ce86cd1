/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * core.h - the state of a session that every room knows
 *
 * struct pem_session holds the state that all rooms share, and a pointer to each room's own state.
 * The room's header defines that state. Rooms have an order (docs/architecture.md): a room includes
 * and calls those below it. A lower room tells a higher room something through struct
 * pem_session_hooks.
 *
 * Every function of the public interface takes the session's mutex. The mutex is recursive, because
 * a synchronous callback may come from the session's own thread. Threads of a producer take it only
 * inside a callback that uses the interface.
 */
#ifndef PEM_CORE_H
#define PEM_CORE_H

#include "core/clock_sync.h"
#include "core/coarse_clock.h"
#include "context.h"
#include "pool.h"
#include "sized.h"

#include <pem/pem.h>

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct pem_model;
struct pem_session_chunks;
struct pem_session_cost;
struct pem_session_dirs;
struct pem_session_flight;
struct pem_session_gates;
struct pem_session_processes;
struct pem_session_sources;
struct pem_session_specs;
struct pem_session_statistics;
struct pem_session_turn;

/*
 * One demand for each event that a model may hold. The array never moves, so that pointers to
 * demands stay valid.
 */
#define PEM_DEMANDS_MAX 4096u

struct pem_async;
struct pem_callback;
struct pem_demand;
struct pem_dir;
struct pem_log;
struct pem_predicate;
struct pem_user;

/*
 * Functions by which lower rooms tell higher rooms something. session/session.c fills them in. They
 * are called with the session's mutex held.
 */
struct pem_session_hooks {
	/*
	 * dirs: the directory has a pool, a control file or a model's text of this name. It is open
	 * as fd, and the function takes fd.
	 */
	void (*found_pool)(struct pem_session *session, struct pem_dir *dir, const char *name,
			   int fd);
	void (*found_control)(struct pem_session *session, struct pem_dir *dir, const char *name,
			      int fd);
	void (*found_model)(struct pem_session *session, struct pem_dir *dir, const char *name,
			    int fd);
	/* dirs: a control file has been removed. */
	void (*lost_control)(struct pem_session *session, struct pem_dir *dir, const char *name);
	/* dirs: the directory is about to be freed; no producer of it is left. */
	void (*dir_closes)(struct pem_session *session, struct pem_dir *dir);
	/*
	 * dirs: a user's files keep the session waiting. Cut off all memory mapped from that user
	 * (pem_fault__cut). Returns the number of processes that were cut off.
	 */
	uint64_t (*cut_user)(struct pem_session *session, const struct pem_user *user);
	/*
	 * dirs: there is another directory. Its processes can't wake the thread of asynchronous
	 * callbacks.
	 */
	void (*dir_added)(struct pem_session *session);
	/*
	 * core: a handle is about to be bound to the event of a first demand. Returns 0, or -errno
	 * with error.
	 */
	int (*handle_comes)(struct pem_session *session, struct pem_demand *first,
			    struct pem_error *error);
	/* processes: a process that raises events itself was found. */
	void (*process_found)(struct pem_session *session, uint32_t pid);
	/*
	 * processes: a process keeps its gates for the session at this address (struct
	 * pem_gate_states). pid: as this process sees it.
	 */
	void (*gates_found)(struct pem_session *session, uint32_t pid, uint64_t address);
	/*
	 * processes: return the number, in this process's pid namespace, that a thread of an inner
	 * one had at a clock; 0: it is unknown. tid: as the thread sees it. owner: its user.
	 */
	uint32_t (*outer_tid)(struct pem_session *session, uint32_t pid_namespace, uint32_t tid,
			      uid_t owner, uint64_t clock);
	/* processes: the session has looked for members. It is time to look for targets, too. */
	void (*members_scanned)(struct pem_session *session);
	/* source_host: a source is about to start that records what happens from then on. */
	void (*source_starts)(struct pem_session *session);
};

/* The program that the session runs or was attached to. */
struct pem_command {
	pid_t pid; /* 0: none */
	int pidfd;
	bool done;
	bool failed; /* it could not be started: pid is that of a child which has ended */
	int status;
	uint64_t start_clock, end_clock; /* 0: not yet */
	struct rusage usage;
};

struct pem_session {
	pthread_mutex_t mutex;
	const struct pem_session_hooks *hooks;
	struct pem_session_options options;
	struct pem_model *model;
	char runtime[PATH_MAX - 128];
	char directory[PATH_MAX - 64];
	int directory_fd;
	/* This descriptor holds the lock that tells producers that the consumer lives. */
	int alive_fd;
	struct pem_clock_sync clock;
	struct pem_coarse_clock coarse; /* only with options.coarse_clock */
	struct pem_command command;
	volatile int interrupted;
	/* A handle was enabled: settings that sources read when they open are fixed. */
	bool was_enabled;

	/*
	 * The session page. page_cut: it was truncated, so that no process can join any more.
	 * page_cut_said: the session has said so.
	 */
	struct pem_session_page *page;
	int page_cut, page_cut_said;
	/*
	 * Numbers that the page was made with or has now. The session reads them here and not from
	 * the page, because every process that joins may write there.
	 */
	struct pem_pool_geometry geometry;
	uint32_t id, generation, context_count, rule_count, test_count;
	/* The session index in this process's own table; -1: this process has not joined it. */
	int self_index;

	/*
	 * The first demand for each event that any handle wants. demand_of gives its index by the
	 * event's index in the model.
	 */
	struct pem_demand *demands;
	size_t demand_count;
	uint16_t demand_of[PEM_DEMANDS_MAX];
	/* Further ones, by their cell: PEM_FURTHER_CELLS of them. NULL: there was none yet. */
	struct pem_demand *further;
	struct pem_predicate *predicates;
	struct pem_session_gates *gates; /* NULL: there was none yet */

	/*
	 * Handles. A session has one log at most, because pools and sources count from their
	 * beginning.
	 */
	struct pem_log *log;
	bool has_logged;
	struct pem_callback *callbacks;
	struct pem_async *async; /* asynchronous callbacks; NULL: there was none yet */

	/* Each room's own state. */
	struct pem_session_dirs *dirs;
	struct pem_session_processes *processes;
	struct pem_session_sources *sources;
	struct pem_session_statistics *statistics;
	struct pem_session_cost *cost;
	struct pem_session_chunks *chunks;
	struct pem_session_flight *flight;
	struct pem_session_turn *turn;
	struct pem_session_specs *specs; /* NULL: no specs and programs were given */
	struct pem_packer *packer; /* NULL: traces are not compressed */
};

void pem_session__lock(struct pem_session *session);
void pem_session__unlock(struct pem_session *session);
void pem_session__say(struct pem_session *session, enum pem_log_level level, const char *format,
		      ...) __attribute__((format(printf, 3, 4)));

/* Return a bound on the error of the clocks that the session's records have, so far. */
uint64_t pem_session__clock_error_ns(const struct pem_session *session);

/*
 * Join this process to the session, unless it has joined already. Returns 0, or -errno with error,
 * which may be NULL. -EUSERS: eight sessions observe the process.
 */
int pem_session__join_self(struct pem_session *session, struct pem_error *error);
/* Does a context name this process: by its pid, or by one of its threads? */
bool pem_context__names_self(const struct pem_context *context);

/*
 * Find the folder of the libraries that are preloaded or loaded as plugins: PEM_LIBRARY_PATH, else
 * the folder that libpem was loaded from. Writes it to path and returns path, or NULL if it was not
 * found.
 */
const char *pem_library_folder(char *path, size_t bytes);

#endif
