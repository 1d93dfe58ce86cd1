/* SPDX-License-Identifier: MIT */
/*
 * settings.h - the settings of a program: how each is given to it, and which value it took
 *
 *	apply.c		targets in groups: set, read back; everything back to its first value
 *	journal.c	first values, on disk before they are changed
 *	files.c		configuration files: lines.c and tree.c find a value in their text
 *	pragma.c	SQLite; postgres.c and redis.c: servers; kernel.c: sysctl and control groups
 *	program.c	a program of the user's that sets and gets
 *	pipes.h		sizes of pipes of processes that run, which nothing restores
 *
 * Nothing here prints. An agent is used by one thread at a time; no function may be called from a
 * signal handler. Each may block: on disks, on a database for 10 s, on a server for 5 s an answer,
 * on a program for 10 s.
 */
#ifndef PEM_SETTINGS_H
#define PEM_SETTINGS_H

#include <pem/pem.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a parameter's value is given to the program. {} in a key stands for the value. */
enum settings_way {
	SETTINGS_PLACE, /* only where the commands' words have {name} */
	SETTINGS_ARGUMENT, /* argument="-c {}": words added to the command */
	SETTINGS_ENVIRONMENT, /* environment="OMP_NUM_THREADS" */
	/*
	 * file="app.ini" key="net.threads". NAME.json, NAME.yaml and NAME.yml are trees; other
	 * files have lines "key value" or "key = value" with [sections], or "key value;" with
	 * blocks. A key is the path of names with dots, or its last name if only one setting has
	 * that. A key that a file of lines does not have is appended to its section; elsewhere it
	 * is an error.
	 */
	SETTINGS_FILE,
	/*
	 * pragma="page_size" in="taxi.db". One that SQLite stores in the database is applied, with
	 * VACUUM if it needs that, and read from a new connection. One of a connection (cache_size)
	 * is only tried: the program gets it by {name} in its command.
	 */
	SETTINGS_PRAGMA,
	/* postgres="work_mem" in="postgresql://...": ALTER SYSTEM, for sessions that begin then. */
	SETTINGS_POSTGRES,
	SETTINGS_REDIS, /* redis="maxmemory" in="127.0.0.1:6379", or the path of a socket */
	SETTINGS_SYSCTL, /* sysctl="vm.swappiness" */
	SETTINGS_CGROUP, /* cgroup="memory.max", of a group of its own: control groups of version 2
			  */
	SETTINGS_PROGRAM, /* program="./set.sh": run as ./set.sh set NAME VALUE; ./set.sh get NAME
			   */
};

/* The word for a way. NULL: the value is given with the command. */
const char *settings_way__name(enum settings_way way);
/*
 * Can a value last when the command and what was started for it (own_server: the server) have
 * ended? A control group's does not.
 */
bool settings_way__lasts(enum settings_way way, bool own_server);

struct settings_target {
	const char *name; /* of the parameter */
	enum settings_way way;
	const char *key; /* by the way: see above */
	const char *in; /* file, database or server; NULL: the way has none */
};

/* A value that the system did not take as it was given. */
struct settings_refusal {
	size_t target; /* its index in the list */
	char text[256]; /* "page_size: 1048576 was given; taxi.db has 4096" */
};

/* When a way applies: servers' settings after the server has started, all others before. */
enum settings_phase { SETTINGS_BEFORE_START, SETTINGS_AFTER_START };

struct settings_agent;

/*
 * folder: an existing folder of the caller's own, closed to other users (0700), in which first
 * values and a journal of changes are kept until they are restored. Changes that an earlier process
 * did not restore (kill -9, power) are restored first; *recovered, which may be NULL, is their
 * number. If one can't be restored now (its server does not run), error says so, and apply and
 * restore know its first value. Otherwise error is empty. Returns NULL with errno and error: EBUSY
 * another process uses the folder, EPERM others can write to it, EBADMSG the journal is damaged,
 * and those of files.
 */
struct settings_agent *settings_agent__open(const char *folder, size_t *recovered,
					    struct pem_error *error);
/*
 * Give values[i] to targets[i] and read each back. A value of NULL has no meaning in this
 * configuration: the setting gets its first value. Targets of another phase, and those that are
 * only words of a command, are left alone. Pass the same targets each time.
 *
 * Returns 0. 1: a value was refused or taken differently, and refusal says which; other values may
 * have been applied. -errno with error: nothing can be applied there: -ENOENT the file or setting
 * is not there, -ECONNREFUSED or -ETIMEDOUT the server does not answer, -ESTALE another program
 * changed the file, -EFBIG it has more than 16 MiB, -ENOTSUP pem was built without the library.
 */
int settings_agent__apply(struct settings_agent *agent, enum settings_phase phase,
			  const struct settings_target *targets, const char *const *values,
			  size_t count, struct settings_refusal *refusal, struct pem_error *error);
/*
 * Is the file, database, server or setting there that a target names? Returns 0 or -errno with
 * error, as settings_agent__apply. A program of the user's is not run, and a control group not
 * made: their settings are taken to be there.
 */
int settings_target__check(const struct settings_target *target, struct pem_error *error);
/* The control group that the command has to be put into (its cgroup.procs), or NULL. */
const char *settings_agent__cgroup(const struct settings_agent *agent);
/*
 * Give back their first values, while servers run: to the settings of servers
 * (SETTINGS_AFTER_START), or to all (SETTINGS_BEFORE_START). Returns 0, or -errno with error; the
 * rest was restored all the same, and what was not is tried again by the next call or the next
 * open. A file that another program changed (-ESTALE) stays as it is: its first content stays in
 * the folder, and error names it.
 */
int settings_agent__restore(struct settings_agent *agent, enum settings_phase from,
			    struct pem_error *error);
/*
 * Leave everything as it is now, for good: first values are forgotten. Returns 0, or -errno with
 * error: the journal can't be written, and still has them.
 */
int settings_agent__keep(struct settings_agent *agent, struct pem_error *error);
/* Without restoring. NULL does nothing. */
void settings_agent__close(struct settings_agent *agent);

#endif
