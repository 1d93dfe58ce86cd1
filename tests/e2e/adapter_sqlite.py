#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs with SQLite under libpem-sqlite.so: statements, transactions, rows, locks and the cache.

Not here: programs with SQLite linked in statically.
"""
import collections
import json
import os

from preload import compile_program, count, record
from tap import PEM, BUILD, equal, need, run, run_all, skip, test, tmp

SCRIPT = """
pragma journal_mode=wal;
create table t(a integer primary key, b);
begin; insert into t(b) values ('x'), ('y'), ('z'); commit;
begin; delete from t; rollback;
select a from t;
insert into t(a, b) with recursive c(x) as (select 10 union all select x + 1 from c where x < 3000)
  select x, hex(zeroblob(500)) from c;
select count(*) from t where b like '%Q';
"""


def need_adapter():
    if not os.path.exists(BUILD + "/lib/libpem-sqlite.so"):
        skip("libpem-sqlite.so is not built: libsqlite3-dev is missing")


def kinds(events):
    return collections.Counter(e["event"].split("::")[2] for e in events)


@test
def shell():
    "the sqlite3 shell answers the same and shows its statements, rows, transactions and cache"
    need_adapter()
    need("sqlite3")
    folder = tmp()
    with open(folder + "/script", "w") as file:
        file.write(SCRIPT)
    alone = run(["sqlite3", folder + "/one.db", ".read " + folder + "/script"])
    out, events = record(["sqlite3", folder + "/two.db", ".read " + folder + "/script"], "APP::Sqlite::*")
    equal((0, out, ""), alone, "what it answers")
    k = kinds(events)
    if not k:
        skip("this sqlite3 does not use the shared library libsqlite3")
    equal((k["Open"], count(events, "APP::Sqlite::Open", path=folder + "/two.db")), (1, 1), "databases")
    equal(k["StatementBegin"], k["StatementEnd"], "statements that began and ended")
    equal((k["TransactionBegin"], k["TransactionCommit"], k["TransactionRollback"]), (2, 1, 1), "transactions")
    selected = [e for e in events if e.get("text", "").startswith("select a from t")]
    equal(len(selected), 1, "the select")
    rows = [e for e in events if e["event"].endswith("RowFetch") and e["statement"] == selected[0]["statement"]]
    assert len(rows) >= 3, rows
    scans = [int(e["scanned"]) for e in events if e["event"].endswith("StatementEnd")]
    assert max(scans) > 2900, scans
    for name, field in (("CacheHits", "hits"), ("CacheMisses", "misses"), ("CacheWrites", "writes")):
        values = [int(e[field]) for e in events if e["event"].endswith(name)]
        equal(values, sorted(values), name + ", which only grow")
    assert values[-1] > 100, values


@test
def all_adapters_in_one():
    "where the events of all adapters are wanted, one library raises them"
    need_adapter()
    need("sqlite3")
    if not os.path.exists(BUILD + "/lib/libpem-mpi.so"):
        skip("libpem-mpi.so is not built: mpicc is missing (libopenmpi-dev)")
    out, events = record(["sh", "-c", "echo $LD_PRELOAD; sqlite3 :memory: 'select 6 * 7'"], "APP::*")
    equal([os.path.basename(path) for path in out.split("\n")[0].split(":")], ["libpem-adapters.so"], "preloaded")
    equal(out.split("\n")[1], "42", "what it answers")
    k = kinds(events)
    if not k["Open"]:
        skip("this sqlite3 does not use the shared library libsqlite3")
    equal(count(events, "APP::Sqlite::StatementBegin", text="select 6 * 7"), 1, "statements")
    assert k["Malloc"] > 100 and k["Object"] > 4, k


@test
def one_libpem():
    "a program that is linked with libpem finds it in the library that is preloaded: it has one libpem"
    need_adapter()
    if not os.path.exists(BUILD + "/lib/libpem-mpi.so"):
        skip("libpem-mpi.so is not built: mpicc is missing (libopenmpi-dev)")
    rc, out, err = run([PEM, "run", "--", "sh", "-c", "LD_TRACE_LOADED_OBJECTS=1 exec " + PEM])
    equal(rc, 0, "status, with " + err)
    names = [line.split()[0].split("/")[-1] for line in out.splitlines()]
    equal([name for name in names if name.startswith(("libpem.so", "libpem-adapters"))], ["libpem-adapters.so"], "loaded: " + out)
    rc, out, err = run([PEM, "record", "-q", "-e", "Malloc", "-o", tmp() + "/t", "--", "sh", "-c", "LD_TRACE_LOADED_OBJECTS=1 exec " + PEM])
    equal(rc, 0, "status, with " + err)
    names = [line.split()[0].split("/")[-1] for line in out.splitlines()]
    equal([name for name in names if name.startswith(("libpem.so", "libpem-preload"))], ["libpem-preload.so"], "loaded: " + out)


@test
def a_pem_under_another_one():
    "each wants other adapters: a process has what both want, once, and counts each event once"
    need_adapter()
    need("python3")
    program = "import os, sqlite3; print(os.environ['LD_PRELOAD']); print(sqlite3.connect(':memory:').execute('select 1').fetchall())"
    for outer in (["run", "--"], ["record", "-q", "-e", "APP::Sqlite::*,Malloc", "-o", tmp() + "/outer", "--"]):
        trace = tmp() + "/inner"
        rc, out, err = run([PEM, *outer, PEM, "record", "-q", "-e", "APP::Sqlite::Open", "-o", trace, "--", "python3", "-c", program])
        equal((rc, out.split("\n")[1]), (0, "[(1,)]"), "status and output, with " + err)
        names = [os.path.basename(path) for path in out.split("\n")[0].split(":")]
        equal(len(names), len(set(names)), "preloaded: %s" % names)
        equal(sum(name in ("libpem-preload.so", "libpem-adapters.so") for name in names), 1, "preloaded: %s" % names)
        opened = json.loads(run([PEM, "report", "--json", trace])[1])
        equal([e["count"] for e in opened["per_event"] if e["name"] == "APP::Sqlite::Open"], [1], "databases opened")


@test
def python_module():
    "python3's module, which loads SQLite for itself alone, works the same and shows locks of others"
    need_adapter()
    need("python3")
    path = tmp() + "/db"
    program = ("import sqlite3, sys\n"
               "a = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None); b = sqlite3.connect(sys.argv[1], timeout=0)\n"
               "a.execute('create table t(x)'); a.execute('begin immediate'); a.execute('insert into t values (?)', (42,))\n"
               "try: b.execute('insert into t values (1)')\n"
               "except sqlite3.OperationalError as e: print(e)\n"
               "a.execute('commit'); print(b.execute('select x from t').fetchall()); a.close(); b.close()")
    out, events = record(["python3", "-c", program, path], "APP::Sqlite::*")
    equal(out, "database is locked\n[(42,)]\n", "what it prints")
    k = kinds(events)
    if not k:
        skip("this python3 does not use the shared library libsqlite3")
    equal((k["Open"], k["Close"]), (2, 2), "connections")
    equal(count(events, "APP::Sqlite::Busy", status=5), 1, "locked")
    equal((k["TransactionBegin"], k["TransactionCommit"]) >= (1, 1), True, "transactions")
    equal(k["StatementBegin"], k["StatementEnd"], "statements that began and ended")


MODULE = """int sqlite3_step(void *s) { return s ? 1 : 101; }
int sqlite3_close(void *database) { (void)database; return 0; }
int use(void) { return sqlite3_step(0) + sqlite3_close(0); }
"""


@test
def sqlite_of_its_own():
    "a module that holds SQLite itself, and is loaded for itself alone, gets its own functions"
    need_adapter()
    need("cc")
    folder = tmp()
    with open(folder + "/module.c", "w", encoding="utf-8") as f:
        f.write(MODULE)
    rc, _, err = run(["cc", "-shared", "-fPIC", folder + "/module.c", "-o", folder + "/module.so"])
    equal((rc, err), (0, ""), "cc")
    out, _ = record(["python3", "-c", "import ctypes; print(ctypes.CDLL('%s/module.so').use())" % folder],
                    "APP::Sqlite::*")
    equal(out, "101\n", "what it answers")


# Opens a database while an error of the loader's waits to be read; LATE: loads and unloads a library that does so.
DLERROR = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int sqlite3_open(const char *path, void **database);
int sqlite3_close(void *database);

#ifndef LATE
int use(void)
{
	void *database = NULL;
	const char *text;
	int rc;

	dlsym(RTLD_DEFAULT, "no_such_name");
	errno = 77;
	rc = sqlite3_open(":memory:", &database);
	rc += sqlite3_close(database);
	text = dlerror();
	printf("%d %d %s\n", rc, errno, text && strstr(text, "no_such_name") ? "kept" : "lost");
	return rc;
}
#else
int main(int argc, char **argv)
{
	void *library, *at = NULL;
	Dl_info info;
	int i, (*use)(void);

	for (i = 0; i < 3; i++) {
		library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		use = (int (*)(void))dlsym(library, "use");
		use();
		at = dlsym(library, "sqlite3_close");
		dladdr(at, &info);
		at = info.dli_fbase;
		dlclose(library);
		/* The next one cannot lie where this one lay. */
		if (mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
			return 1;
	}
	return 0;
}
#endif

#ifdef START
int main(void)
{
	return use();
}
#endif
"""


def compile_with_sqlite(flags):
    folder = tmp()
    with open(folder + "/source.c", "w", encoding="utf-8") as f:
        f.write(DLERROR)
    rc, _, err = run(["cc", "-w", folder + "/source.c", "-o", folder + "/out", "-ldl"] + flags)
    if "libsqlite3" in err:
        skip("libsqlite3.so.0 is not installed")
    equal((rc, err), (0, ""), "cc")
    return folder + "/out"


@test
def error_of_the_loader_waits():
    "what dlerror is about to say, and errno, outlive a program's first call of SQLite"
    need_adapter()
    need("cc")
    out, events = record([compile_with_sqlite(["-DSTART", "-l:libsqlite3.so.0"])], "APP::Sqlite::*")
    equal(out, "0 77 kept\n", "what it says")
    equal(kinds(events)["Open"], 1, "databases")


@test
def library_loaded_again():
    "a library with SQLite that is loaded, unloaded and loaded elsewhere finds the SQLite that is there then"
    need_adapter()
    need("cc")
    library = compile_with_sqlite(["-shared", "-fPIC", "-l:libsqlite3.so.0"])
    out, events = record([compile_with_sqlite(["-DLATE"]), library],
                         "APP::Sqlite::*")
    equal(out, "0 77 kept\n" * 3, "what it says")
    equal(kinds(events)["Open"], 3, "databases")


# A library between pem and SQLite: another thread takes what it may take, as soon as SQLite's function has returned.
TAKES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/mman.h>
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
void *given; /* a page; NULL: none */
pthread_t taker;
static sem_t tried;
int sqlite3_open(const char *path, sqlite3 **to)
{
	int rc = NEXT(sqlite3_open)(path, to);

	if (given)
		munmap(given, 4096);
	given = NULL;
	return rc;
}
static void *take(void *statement)
{
	sqlite3_mutex *mutex = sqlite3_db_mutex(sqlite3_db_handle(statement));

	if (sqlite3_mutex_try(mutex) == SQLITE_OK) {
		NEXT(sqlite3_finalize)(statement);
		sqlite3_mutex_leave(mutex);
		sem_post(&tried);
	} else {
		sem_post(&tried);
		NEXT(sqlite3_finalize)(statement);
	}
	return NULL;
}
int sqlite3_step(sqlite3_stmt *statement)
{
	int rc = NEXT(sqlite3_step)(statement);

	sem_init(&tried, 0, 0);
	pthread_create(&taker, NULL, take, statement);
	sem_wait(&tried);
	return rc;
}
"""

# Each block of SQLite's memory has pages of its own, which are gone when it is freed.
OTHERS_TAKE = r"""
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
extern void *given;
extern pthread_t taker;
static size_t *head(void *memory) { return (size_t *)((char *)memory - 64); }
static void *get(int bytes)
{
	size_t *block = mmap(NULL, bytes + 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*block = bytes;
	return (char *)block + 64;
}
static void drop(void *memory) { munmap(head(memory), *head(memory) + 64); }
static int size(void *memory) { return *head(memory); }
static int round_up(int bytes) { return (bytes + 7) & ~7; }
static void *change(void *memory, int bytes)
{
	void *other = get(bytes);

	memcpy(other, memory, bytes < size(memory) ? bytes : size(memory));
	drop(memory);
	return other;
}
static int begin(void *unused) { return 0; }
static void end(void *unused) {}
int main(void)
{
	sqlite3_mem_methods pages = {get, drop, change, size, round_up, begin, end, NULL};
	sqlite3_stmt *statement;
	sqlite3 *database;

	sqlite3_config(SQLITE_CONFIG_MALLOC, &pages);
	sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
	given = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(given, ":memory:");
	if (sqlite3_open(given, &database) || sqlite3_prepare_v2(database, "select 1", -1, &statement, NULL))
		return 1;
	printf("%d\n", sqlite3_step(statement));
	pthread_join(taker, NULL);
	return sqlite3_close(database);
}
"""


@test
def taken_by_another_thread():
    "a program lives whose other thread finalizes a statement, or frees a path, as soon as SQLite lets it"
    need_adapter()
    library = compile_program(TAKES, "libtakes.so", ["-shared", "-fPIC", "-ldl"])
    folder, name = os.path.split(library)
    program = compile_program(OTHERS_TAKE, flags=["-L" + folder, "-l:" + name, "-Wl,-rpath," + folder, "-l:libsqlite3.so.0"])
    equal(run([program])[:2], (0, "100\n"), "status and output alone")
    out, events = record([program], "APP::Sqlite::*")
    equal(out, "100\n", "output")
    k = kinds(events)
    equal((k["StatementBegin"], k["RowFetch"]), (1, 1), "statements and rows")
    equal(count(events, "APP::Sqlite::Open", path=":memory:"), 1, "databases")


@test
def without_sqlite():
    "a process without SQLite that the adapter is preloaded into runs as ever"
    need_adapter()
    out, events = record(["sh", "-c", "echo hello | cat"], "APP::Sqlite::*")
    equal((out, len(events)), ("hello\n", 0), "what it does")


run_all()
