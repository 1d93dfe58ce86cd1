/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * database.h - the CPO database: what agents learnt of programs, for the next run, for other agents
 * and other machines
 *
 *	application <-- run <-- metric		what was measured of a program, on which machine
 *	machine     <--/   <-- evidence --\
 *	application, machine <-- directive <-/<-- validation
 *	lease					who observes or changes what now
 *
 * A database is a file of SQLite, or a schema "pem" of a PostgreSQL server; both have the same
 * tables. Link with libpem-agent.
 *
 * Rows are structs that begin with their size (pem/sized.h) and with the row's number. A row is put
 * by its key, which the comment of its struct names: a row with this key that is there already is
 * replaced and keeps its number. Numbers are of one database; keys mean the same in all.
 *
 * Texts are UTF-8 without control characters; a text that is longer than its member is refused, as
 * are numbers that are not finite. What a database holds is not trusted: a row that does not keep
 * to this is left out, and the log function is told which.
 *
 * A database is for one thread at a time, and not for a child after fork. Functions may block: for
 * a disk, for a server, and up to five seconds for another process that writes. All but the first
 * return -errno with error:
 *	-EINVAL		a row breaks the rules above
 *	-ENOENT		a row that another one refers to is not there
 *	-EBADMSG	the database is damaged, or not one of pem's
 *	-EBUSY		others wrote for five seconds
 *	-ENOSPC, -EIO	no room on the disk, or it fails
 *	-EROFS, -EACCES	it may not be written, or not be read
 *	-ECONNREFUSED	the server can't be reached, or does not answer
 *	-EPROTO		the server refused a statement
 *	-EDEADLK	a transaction is open that this can't be in
 *	-ENOMEM
 * After an error nothing of the call is in the database.
 */
#ifndef PEM_DATABASE_H
#define PEM_DATABASE_H

#include <pem/model.h>
#include <pem/pem.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct pem_database;

enum pem_db_table {
	PEM_DB_APPLICATION = 1,
	PEM_DB_MACHINE,
	PEM_DB_RUN,
	PEM_DB_METRIC,
	PEM_DB_DIRECTIVE,
	PEM_DB_EVIDENCE,
	PEM_DB_VALIDATION,
	PEM_DB_LEASE,
};
#define PEM_DB_TABLES 8

/* A program as it was built. Key: build_id. */
struct pem_db_application {
	size_t size;
	int64_t id;
	char build_id[72]; /* hexadecimal, of its ELF note; without one "content:" and a hash of it
			    */
	char name[96];
	char path[512]; /* where it was last run */
};

/* A kind of machine. Key: fingerprint. */
struct pem_db_machine {
	size_t size;
	int64_t id;
	char fingerprint[72]; /* a hash of the members below */
	char processor[128];
	char kernel[128];
	char hypervisor[64]; /* or the maker of the machine; "": unknown */
	char facts[2048]; /* what was measured, such as TLB geometry: a JSON object, or "" */
};

/* A run of an application that an agent had a part in. Key: uuid. */
struct pem_db_run {
	size_t size;
	int64_t id;
	char uuid[40]; /* 32 hexadecimal digits: pem_database__uuid */
	int64_t application, machine;
	char agent[32];
	char workload[72]; /* equal texts: the same arguments and inputs, as far as the agent knows
			    */
	int64_t began_ns; /* since 1970, UTC */
	int64_t wall_ns; /* 0: it has not ended, or nobody saw its end */
	int64_t status; /* the application's exit status; 128 + n: ended by signal n */
};

enum pem_db_origin {
	PEM_DB_MEASURED, /* on the machine that the run names */
	PEM_DB_SAMPLED, /* from a sample of what happened */
	PEM_DB_SIMULATED, /* by a model or an emulator */
};

/* A number that a run is described by. Key: run, name. */
struct pem_db_metric {
	size_t size;
	int64_t id;
	int64_t run;
	char name[64];
	char unit[24];
	int64_t count; /* of values behind the mean */
	double mean;
	double spread; /* standard deviation of the values */
	double minimum, maximum;
	int64_t origin; /* enum pem_db_origin */
};

enum pem_db_state {
	PEM_DB_PROPOSED, /* a model chose it */
	PEM_DB_ON_TRIAL, /* it is applied in some runs, and compared */
	PEM_DB_KEPT, /* it has proved itself */
	PEM_DB_WITHDRAWN, /* it did harm, or nothing; it is remembered so as not to be tried again
			   */
};

/* What an agent would do to an application on a machine. Key: application, machine, agent, subject.
 */
struct pem_db_directive {
	size_t size;
	int64_t id;
	int64_t application, machine;
	char agent[32];
	char subject[192]; /* what it is about, such as an allocation site */
	char text[1024]; /* what to do, in the agent's own words */
	int64_t state; /* enum pem_db_state */
	int64_t rank; /* 1: the best */
	double predicted, predicted_low, predicted_high; /* gain in % of the time, 95 % interval */
	double gain; /* measured, in % of the time; 0 before a validation */
	int64_t cost_bytes; /* memory that it needs */
	int64_t began_ns; /* when it was first proposed, since 1970 */
	char reason[160]; /* of its state */
};

enum pem_db_role {
	PEM_DB_BASIS, /* the directive was made from this run */
	PEM_DB_TREATED, /* it was applied in this run */
	PEM_DB_CONTROL, /* it could have been applied, and was not, by chance */
	PEM_DB_EXCLUDED, /* it was on trial, and what happened then makes the run no evidence */
};

/* A run that speaks for or against a directive. Key: directive, run. */
struct pem_db_evidence {
	size_t size;
	int64_t id;
	int64_t directive, run;
	int64_t role; /* enum pem_db_role */
	double value; /* what is compared, such as seconds */
};

/* What a comparison of treated runs and controls found. Key: directive, at_ns. */
struct pem_db_validation {
	size_t size;
	int64_t id;
	int64_t directive;
	int64_t at_ns; /* since 1970, UTC */
	int64_t verdict; /* the enum Verdict of share/pem/spec/agent.xml */
	double gain, gain_low, gain_high; /* in % of the time, 95 % interval */
	int64_t treated, controls; /* how many runs were compared */
};

/* Who has a resource, and till when. Key: resource, holder. */
struct pem_db_lease {
	size_t size;
	int64_t id;
	char resource[128]; /* such as "huge pages" with the machine's name */
	char holder[128]; /* host, process and agent */
	int64_t access; /* 0: observes, which many may do; 1: changes, which one may do alone */
	int64_t until_ns; /* since 1970, UTC; a lease that is over counts no more */
};

struct pem_database_options {
	size_t size;
	/*
	 * Called with sentences about rows that are left out. Their level is PEM_LOG_WARNING. NULL:
	 * nothing is said. Called in functions of this header only, by their thread.
	 */
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *arg;
	uint32_t read_only; /* 1: the database is neither made nor changed */
	uint32_t reserved; /* zero */
};

/*
 * Open a database, made if it is not there. url: "postgresql://..." or "postgres://...", as libpq
 * takes it, or the path of a file, with or without "file:". NULL: PEM_DB, or without this variable
 * pem/cpo.db in XDG_DATA_HOME (~/.local/share). A process with rights beyond its user's ignores
 * these variables. options may be NULL.
 *
 * A file has to belong to this user, and nobody else may write to it or to its folder, but members
 * of this process's group; so root does not use another user's database (-EACCES). The folders
 * above belong to this user or to root, and who else may write to one can't rename what is there
 * (sticky). The way there may have symbolic links; the file may not be one. A file of an older
 * version is brought up to date; one of a newer version is refused with -EPROTONOSUPPORT. NULL with
 * errno and error.
 */
struct pem_database *pem_database__open(const char *url, const struct pem_database_options *options,
					struct pem_error *error);
/* Close a database. NULL does nothing. */
void pem_database__close(struct pem_database *database);

/*
 * Where the database is, without a password: a path, or "postgresql://host/name". It lives as long
 * as the database.
 */
const char *pem_database__location(const struct pem_database *database);

/* Put a row of a table by its key; its id is ignored. Returns the row's number. */
int64_t pem_database__put(struct pem_database *database, enum pem_db_table table, const void *row,
			  struct pem_error *error);

/*
 * Visit the rows of a table that are like a given row, by rising number. All members of like that
 * are not zero or "" have to be equal; members of type double do not count; NULL: all rows. The
 * rows are read before the first is visited, so that visit may put and remove. visit returns 0 to
 * go on; a negative number ends the walk and is returned, a positive one ends it. Returns how many
 * were visited.
 */
int64_t pem_database__each(struct pem_database *database, enum pem_db_table table, const void *like,
			   int (*visit)(const void *row, void *arg), void *arg,
			   struct pem_error *error);

/*
 * Copy the first row that is like a given row into room, which may be the same struct. Returns 1,
 * or 0: there is none, and room is unchanged.
 */
int pem_database__find(struct pem_database *database, enum pem_db_table table, const void *like,
		       void *room, struct pem_error *error);

/* Remove a row, and those that refer to it. Returns 1, or 0: there was none. */
int pem_database__remove(struct pem_database *database, enum pem_db_table table, int64_t id,
			 struct pem_error *error);

/*
 * Do several things or none: what body does with this database is there after body has returned 0
 * or more, and else undone. Meanwhile others wait who write. Of a database that was opened
 * read-only, body sees one moment. If a function of this header failed in it at the database, all
 * is undone, whatever body returns. Not inside of itself, as are leases and vacuum (-EDEADLK).
 * Returns what body returned, or that error.
 */
int64_t pem_database__together(struct pem_database *database,
			       int64_t (*body)(struct pem_database *database, void *arg), void *arg,
			       struct pem_error *error);

/*
 * Take a lease, or make one's own last longer. Returns 1, or 0: it can't be had, and *lease is one
 * that is in the way. Whoever changes a resource alone has it; observers have it together. End it
 * with pem_database__remove.
 */
int pem_database__lease(struct pem_database *database, struct pem_db_lease *lease,
			struct pem_error *error);

/* Remove leases that are over, give back unused room, and check the whole file (-EBADMSG). */
int pem_database__vacuum(struct pem_database *database, struct pem_error *error);

/* Write 32 random hexadecimal digits. Returns 0 or -errno. */
int pem_database__uuid(char text[40]);

/* --- tables, for programs that copy or print any of them --- */

enum pem_db_type { PEM_DB_INTEGER, PEM_DB_REAL, PEM_DB_TEXT };

struct pem_db_column {
	const char *name; /* of the column and of the struct's member */
	uint32_t type; /* enum pem_db_type */
	uint32_t offset; /* of the member in the row's struct */
	uint32_t bytes; /* of the member */
	uint32_t references; /* enum pem_db_table of the row whose number it is; 0: none */
	uint32_t is_key; /* 1: part of the key */
	uint32_t labels; /* number of values that have a name; 0: a plain number */
	const char *const *label; /* their names, from 0 */
};

struct pem_db_layout {
	const char *name;
	size_t row_bytes; /* of the row's struct */
	const struct pem_db_column *columns; /* id is not among them */
	size_t column_count;
};

/* Describe a table. NULL: there is no such table. */
const struct pem_db_layout *pem_database__layout(enum pem_db_table table);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
