// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sqlite.c - libpem-sqlite.so: the events of spec/app/sqlite.xml, from programs that use the shared
 * library libsqlite3
 *
 * The library is preloaded, and stands in front of the calls that open databases and run
 * statements. It does not use SQLite's own hooks (trace, commit, rollback), because the program may
 * have set them. SQLite calls some of these functions itself, for sqlite3_exec and for the tables
 * of extensions. These statements are shown too.
 *
 * It does not link with libsqlite3, so a process without that library can preload it. The real
 * functions are found before main, in the libraries that the program was started with. A module of
 * an interpreter may load them later for itself alone, or contain them. Then they are found when it
 * opens a database: in the module, in the libraries that it needs, or in libsqlite3 by its name.
 * Only this search takes the loader's lock. It keeps the loader's errors and errno.
 *
 * Not here: programs with SQLite linked in statically, or with two copies of it; checkpoints by
 * PRAGMA, which SQLite does inside itself.
 */
#include "producer/providers.h"
#include <sqlite3.h>

#include "libc/elf_later.h"
#include "libc/elf_names.h"

#include "stubs/sqlite.h"

#include <string.h>
#include <strings.h>

/* For libc/attach.c, where both are in one library. */
extern const struct pem_provider_facts pem_known_sqlite __attribute__((visibility("hidden")));
const struct pem_provider_facts pem_known_sqlite = {PEM_FACTS_sqlite, 0};

#define EXPORT __attribute__((visibility("default")))
#define SITE ((uintptr_t)__builtin_return_address(0))

/* The real functions, in the order of names; NULL: not found. */
static struct {
	__typeof__(&sqlite3_step) step;
	__typeof__(&sqlite3_open) open;
	__typeof__(&sqlite3_open_v2) open_v2;
	__typeof__(&sqlite3_close) close;
	__typeof__(&sqlite3_close_v2) close_v2;
	__typeof__(&sqlite3_reset) reset;
	__typeof__(&sqlite3_finalize) finalize;
	__typeof__(&sqlite3_wal_checkpoint_v2) checkpoint;
	__typeof__(&sqlite3_sql) sql;
	__typeof__(&sqlite3_db_handle) database;
	__typeof__(&sqlite3_stmt_busy) is_running;
	__typeof__(&sqlite3_stmt_status) statement_status;
	__typeof__(&sqlite3_db_status) database_status;
	__typeof__(&sqlite3_get_autocommit) is_autocommit;
	__typeof__(&sqlite3_db_mutex) mutex;
	__typeof__(&sqlite3_mutex_enter) enter; /* SQLite for one thread has no mutexes */
	__typeof__(&sqlite3_mutex_leave) leave;
} real;

static const char *const names[] = {
	"sqlite3_step", /* every SQLite has this one */
	"sqlite3_open",
	"sqlite3_open_v2",
	"sqlite3_close",
	"sqlite3_close_v2",
	"sqlite3_reset",
	"sqlite3_finalize",
	"sqlite3_wal_checkpoint_v2",
	"sqlite3_sql",
	"sqlite3_db_handle",
	"sqlite3_stmt_busy",
	"sqlite3_stmt_status",
	"sqlite3_db_status",
	"sqlite3_get_autocommit",
	"sqlite3_db_mutex",
	"sqlite3_mutex_enter",
	"sqlite3_mutex_leave",
};
#define COUNT (sizeof(names) / sizeof(names[0]))
_Static_assert(sizeof(real) == COUNT * sizeof(void *), "a name for each");

typedef void *__attribute__((may_alias)) any_pointer;

enum {
	NOT_FOUND,
	FOUND_AT_START, /* in a library that stays until the process ends */
	FOUND_LATER, /* in a library that may be unloaded, and loaded again at another address */
};
static int state;

static void publish(void *const found[COUNT], int how)
{
	any_pointer *to = (any_pointer *)&real;
	size_t i;

	for (i = 0; i < COUNT; i++)
		__atomic_store_n(&to[i], found[i], __ATOMIC_RELAXED);
	/* XD */
	__atomic_store_n(&state, how, __ATOMIC_RELEASE);
}

/*
 * This runs before any constructor that could use SQLite: only constructors with reserved numbers
 * run earlier.
 */
__attribute__((constructor(101))) static void find_at_start(void)
{
	void *found[COUNT];

	/* Most programs have none: one name tells. */
	if (pem_elf__find_next(names, found, 1) && found[0] &&
	    pem_elf__find_next(names, found, COUNT))
		publish(found, FOUND_AT_START);
}

static void find_later(uintptr_t site)
{
	void *found[COUNT];

	if (pem_elf__find_later(site, "libsqlite3.so.0", names, found, COUNT))
		publish(found, FOUND_LATER);
}

/* Several threads may search at once: all find the same. */
static void find(uintptr_t site)
{
	/* xd */
	if (__builtin_expect(!__atomic_load_n(&state, __ATOMIC_ACQUIRE), 0))
		find_later(site);
}

/*
 * A library that was unloaded has no open database. So its new address is needed only when the next
 * database is opened.
 */
static void find_for_open(uintptr_t site)
{
	/* xd */
	if (__builtin_expect(__atomic_load_n(&state, __ATOMIC_ACQUIRE) != FOUND_AT_START, 0))
		find_later(site);
}

/* --- connections --- */

#define PATH_BYTES 136u /* more than an event keeps: it tells that the path is cut */

/*
 * Open a database, with its event. As soon as the caller's variable has the database, another
 * thread may free the variable and the path, so neither is read afterwards.
 */
static int open_database(const char *path, sqlite3 **database, int flags, const char *vfs,
			 int has_flags)
{
	sqlite3 *made = NULL;
	size_t length = path ? strnlen(path, PATH_BYTES - 1) : 0;
	char text[PATH_BYTES];
	int rc;

	if (length)
		memcpy(text, path, length);
	text[length] = '\0';
	rc = has_flags ? real.open_v2(path, &made, flags, vfs) : real.open(path, &made);
	if (!rc)
		pem_notify_sqlite_open((uintptr_t)made, text);
	*database = made;
	return rc;
}

EXPORT int sqlite3_open(const char *path, sqlite3 **database)
{
	find_for_open(SITE);
	return database && pem_enabled_sqlite_open() ? open_database(path, database, 0, NULL, 0)
						     : real.open(path, database);
}

EXPORT int sqlite3_open_v2(const char *path, sqlite3 **database, int flags, const char *vfs)
{
	find_for_open(SITE);
	return database && pem_enabled_sqlite_open() ? open_database(path, database, flags, vfs, 1)
						     : real.open_v2(path, database, flags, vfs);
}

EXPORT int sqlite3_close(sqlite3 *database)
{
	find(SITE);
	if (database)
		pem_notify_sqlite_close((uintptr_t)database);
	return real.close(database);
}

EXPORT int sqlite3_close_v2(sqlite3 *database)
{
	find(SITE);
	if (database)
		pem_notify_sqlite_close((uintptr_t)database);
	return real.close_v2(database);
}

EXPORT int sqlite3_wal_checkpoint_v2(sqlite3 *database, const char *name, int mode, int *log_pages,
				     int *moved_pages)
{
	int rc, in_log = -1, moved = -1;

	find(SITE);
	pem_notify_sqlite_checkpoint_begin((uintptr_t)database);
	rc = real.checkpoint(database, name, mode, &in_log, &moved);
	pem_notify_sqlite_checkpoint_end((uintptr_t)database, in_log, moved, rc);
	if (log_pages)
		*log_pages = in_log;
	if (moved_pages)
		*moved_pages = moved;
	return rc;
}

/* --- statements --- */

static int step_enabled(void)
{
	return pem_enabled_sqlite_statement_begin() | pem_enabled_sqlite_statement_end() |
	       pem_enabled_sqlite_row_fetch() | pem_enabled_sqlite_busy() |
	       pem_enabled_sqlite_transaction_begin() | pem_enabled_sqlite_transaction_commit() |
	       pem_enabled_sqlite_transaction_rollback() | pem_enabled_sqlite_cache_hits() |
	       pem_enabled_sqlite_cache_misses() | pem_enabled_sqlite_cache_writes();
}

static uint64_t counter(sqlite3 *database, int which)
{
	int now = 0, most = 0;

	real.database_status(database, which, &now, &most, 0);
	return (uint64_t)(uint32_t)now;
}

static void statement_end(sqlite3_stmt *statement, int rc)
{
	sqlite3 *database = real.database(statement);

	if (pem_enabled_sqlite_statement_end())
		pem_notify_sqlite_statement_end(
			(uintptr_t)statement,
			(uint64_t)(uint32_t)real.statement_status(
				statement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0),
			rc);
	if (pem_enabled_sqlite_cache_hits())
		pem_notify_sqlite_cache_hits((uintptr_t)database,
					     counter(database, SQLITE_DBSTATUS_CACHE_HIT));
	if (pem_enabled_sqlite_cache_misses())
		pem_notify_sqlite_cache_misses((uintptr_t)database,
					       counter(database, SQLITE_DBSTATUS_CACHE_MISS));
	if (pem_enabled_sqlite_cache_writes())
		pem_notify_sqlite_cache_writes((uintptr_t)database,
					       counter(database, SQLITE_DBSTATUS_CACHE_WRITE));
}

/*
 * Raise the end of a transaction that ended in this step. SQLite rolls back by itself after some
 * errors.
 */
static void transaction_end(sqlite3_stmt *statement, uintptr_t database, int rc)
{
	const char *text = real.sql(statement);

	while (text && (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r'))
		text++;
	if ((rc != SQLITE_ROW && rc != SQLITE_DONE) || (text && !strncasecmp(text, "ROLLBACK", 8)))
		pem_notify_sqlite_transaction_rollback(database);
	else
		pem_notify_sqlite_transaction_commit(database);
}

static int step(sqlite3_stmt *statement, sqlite3 *database)
{
	int rc, was_autocommit, is_autocommit;

	was_autocommit = real.is_autocommit(database);
	if (!real.is_running(statement))
		pem_notify_sqlite_statement_begin((uintptr_t)statement, (uintptr_t)database,
						  real.sql(statement));
	rc = real.step(statement);
	if (rc == SQLITE_ROW)
		pem_notify_sqlite_row_fetch((uintptr_t)statement);
	if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
		pem_notify_sqlite_busy((uintptr_t)database, (uintptr_t)statement, rc & 0xff);
	if (!real.is_running(statement))
		statement_end(statement, rc);
	is_autocommit = real.is_autocommit(database);
	if (was_autocommit && !is_autocommit)
		pem_notify_sqlite_transaction_begin((uintptr_t)database);
	else if (!was_autocommit && is_autocommit)
		transaction_end(statement, (uintptr_t)database, rc);
	return rc;
}

/*
 * Another thread may finalize the statement as soon as it gets the database's mutex. So the mutex,
 * which a thread can take several times, is held until all events are raised.
 */
EXPORT int sqlite3_step(sqlite3_stmt *statement)
{
	sqlite3_mutex *mutex = NULL;
	sqlite3 *database;
	int rc;

	find(SITE);
	if (!statement || !step_enabled())
		return real.step(statement);
	database = real.database(statement);
	if (real.mutex && real.enter && real.leave)
		mutex = real.mutex(database);
	if (mutex)
		real.enter(mutex);
	rc = step(statement, database);
	if (mutex)
		real.leave(mutex);
	return rc;
}

EXPORT int sqlite3_reset(sqlite3_stmt *statement)
{
	find(SITE);
	if (statement && step_enabled() && real.is_running(statement))
		statement_end(statement, SQLITE_ROW);
	return real.reset(statement);
}

EXPORT int sqlite3_finalize(sqlite3_stmt *statement)
{
	find(SITE);
	if (statement && step_enabled() && real.is_running(statement))
		statement_end(statement, SQLITE_ROW);
	return real.finalize(statement);
}
