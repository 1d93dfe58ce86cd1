// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sqlite.c - libpem-sqlite.so: the events of spec/app/sqlite.xml, from programs that use the shared library libsqlite3
 *
 * Preloaded, it stands in front of the calls that open databases and run statements. SQLite's own hooks (trace, commit,
 * rollback) are left to the program, which may have set them. SQLite calls some of these functions itself, for
 * sqlite3_exec and for the tables of extensions: these statements show too.
 *
 * It does not link with libsqlite3, so that a process without it can be preloaded: the real functions are found in
 * the first call, which only a process that has them can make. A module of an interpreter may have loaded them for
 * itself alone, or hold them itself; then they are asked of the library that calls, or of libsqlite3 by its name.
 *
 * Not here: programs with SQLite linked in statically, or with two copies of it; checkpoints by PRAGMA, which SQLite carries out inside.
 */
#include <sqlite3.h>

#include "stubs/sqlite.h"

#include <dlfcn.h>
#include <string.h>
#include <strings.h>

#define EXPORT __attribute__((visibility("default")))
#define SITE __builtin_return_address(0)

/* The real functions; NULL until found. All are found before the flag says so. */
static struct {
	__typeof__(&sqlite3_open) open;
	__typeof__(&sqlite3_open_v2) open_v2;
	__typeof__(&sqlite3_close) close;
	__typeof__(&sqlite3_close_v2) close_v2;
	__typeof__(&sqlite3_step) step;
	__typeof__(&sqlite3_reset) reset;
	__typeof__(&sqlite3_finalize) finalize;
	__typeof__(&sqlite3_wal_checkpoint_v2) checkpoint;
	__typeof__(&sqlite3_sql) sql;
	__typeof__(&sqlite3_db_handle) database;
	__typeof__(&sqlite3_stmt_busy) is_running;
	__typeof__(&sqlite3_stmt_status) statement_status;
	__typeof__(&sqlite3_db_status) database_status;
	__typeof__(&sqlite3_get_autocommit) is_autocommit;
} real;
static int is_found;

#define FIND(member, name)                                                                         \
	do {                                                                                       \
		void *found_ = library ? dlsym(library, name) : NULL;                              \
		memcpy(&real.member, &found_, sizeof(found_));                                     \
	} while (0)

/* What a library that was loaded for itself alone, or one that it needs, has; NULL: it is not known. */
static void *library_of(const void *site)
{
	Dl_info info;

	return dladdr(site, &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* Threads that come here at once find the same. Never in the default order: that would find us. */
static void find(const void *site)
{
	void *library = RTLD_NEXT;

	if (__builtin_expect(__atomic_load_n(&is_found, __ATOMIC_ACQUIRE), 1))
		return;
	if (!dlsym(library, "sqlite3_step"))
		library = library_of(site);
	if (!library || !dlsym(library, "sqlite3_step"))
		library = dlopen("libsqlite3.so.0", RTLD_LAZY | RTLD_NOLOAD);
	FIND(open, "sqlite3_open");
	FIND(open_v2, "sqlite3_open_v2");
	FIND(close, "sqlite3_close");
	FIND(close_v2, "sqlite3_close_v2");
	FIND(step, "sqlite3_step");
	FIND(reset, "sqlite3_reset");
	FIND(finalize, "sqlite3_finalize");
	FIND(checkpoint, "sqlite3_wal_checkpoint_v2");
	FIND(sql, "sqlite3_sql");
	FIND(database, "sqlite3_db_handle");
	FIND(is_running, "sqlite3_stmt_busy");
	FIND(statement_status, "sqlite3_stmt_status");
	FIND(database_status, "sqlite3_db_status");
	FIND(is_autocommit, "sqlite3_get_autocommit");
	__atomic_store_n(&is_found, 1, __ATOMIC_RELEASE);
}

/* --- connections --- */

static int opened(int rc, const char *path, sqlite3 **database)
{
	if (!rc && pem_enabled_sqlite_open())
		pem_notify_sqlite_open((uintptr_t)*database, path);
	return rc;
}

EXPORT int sqlite3_open(const char *path, sqlite3 **database)
{
	find(SITE);
	return opened(real.open(path, database), path, database);
}

EXPORT int sqlite3_open_v2(const char *path, sqlite3 **database, int flags, const char *vfs)
{
	find(SITE);
	return opened(real.open_v2(path, database, flags, vfs), path, database);
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

/* A transaction ended in this step. SQLite rolls back by itself after some errors. */
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

EXPORT int sqlite3_step(sqlite3_stmt *statement)
{
	sqlite3 *database;
	int rc, was_autocommit, is_autocommit;

	find(SITE);
	if (!statement || !step_enabled())
		return real.step(statement);
	database = real.database(statement);
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
