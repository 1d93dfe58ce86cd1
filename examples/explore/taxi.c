/* SPDX-License-Identifier: MIT */
/*
 * taxi.c - the program of taxi.xml: threads that ask a table of taxi trips in SQLite
 *
 *	cc -O2 taxi.c -o taxi -lsqlite3 -lpthread
 *	./taxi make taxi.db 200000
 *	./taxi page taxi.db BYTES
 *	./taxi ask taxi.db CACHE_PAGES THREADS SECONDS
 *
 * The experiment is that of "Enabling Performance Exploration and Analysis for Multi-parametric
 * Systems" (Go and Colmenares, EWiLi 2016), with a smaller table: the mean number of passengers of
 * trips that begin in a square, each thread with a connection of its own to one shared cache.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS_MAX 64

struct asker {
	pthread_t thread;
	const char *file;
	const char *cache_pages;
	double until_s;
	long queries;
};

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check(sqlite3 *db, int rc)
{
	if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE)
		return;
	fprintf(stderr, "taxi: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static void make(const char *file, const char *rows)
{
	char text[512];
	sqlite3 *db;

	check(NULL, sqlite3_open(file, &db));
	snprintf(text, sizeof(text),
		 "CREATE TABLE trip(longitude REAL, latitude REAL, passengers INT, fare REAL);"
		 "INSERT INTO trip SELECT -74 + (value * 7919 %% 1000) / 1000.0,"
		 " 40 + (value * 104729 %% 1000) / 1000.0, 1 + value %% 6, value %% 80"
		 " FROM generate_series(1, %ld)",
		 atol(rows));
	if (sqlite3_exec(db, text, NULL, NULL, NULL)) {
		/* generate_series is not in each build of the library. */
		snprintf(text, sizeof(text),
			 "INSERT INTO trip WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL"
			 " SELECT value + 1 FROM n WHERE value < %ld)"
			 " SELECT -74 + (value * 7919 %% 1000) / 1000.0,"
			 " 40 + (value * 104729 %% 1000) / 1000.0, 1 + value %% 6, value %% 80 "
			 "FROM n",
			 atol(rows));
		check(db, sqlite3_exec(db, text, NULL, NULL, NULL));
	}
	check(db, sqlite3_exec(db, "CREATE INDEX place ON trip(longitude)", NULL, NULL, NULL));
	sqlite3_close(db);
}

/* As pem explore does it for pragma="page_size". */
static void set_page_size(const char *file, const char *bytes)
{
	char text[64];
	sqlite3 *db;

	check(NULL, sqlite3_open(file, &db));
	snprintf(text, sizeof(text), "PRAGMA page_size = %ld; VACUUM", atol(bytes));
	check(db, sqlite3_exec(db, text, NULL, NULL, NULL));
	sqlite3_close(db);
}

static void *ask(void *arg)
{
	struct asker *asker = arg;
	sqlite3_stmt *query;
	char pragma[64];
	sqlite3 *db;

	check(NULL,
	      sqlite3_open_v2(asker->file, &db,
			      SQLITE_OPEN_READONLY | SQLITE_OPEN_SHAREDCACHE | SQLITE_OPEN_NOMUTEX,
			      NULL));
	snprintf(pragma, sizeof(pragma), "PRAGMA cache_size = %s", asker->cache_pages);
	check(db, sqlite3_exec(db, pragma, NULL, NULL, NULL));
	check(db,
	      sqlite3_prepare_v2(db,
				 "SELECT avg(passengers) FROM trip WHERE longitude BETWEEN ? AND"
				 " ? AND latitude BETWEEN 40.4 AND 40.5",
				 -1, &query, NULL));
	while (now_s() < asker->until_s) {
		double west = -74 + (double)(asker->queries % 9) / 10;

		sqlite3_bind_double(query, 1, west);
		sqlite3_bind_double(query, 2, west + 0.01);
		check(db, sqlite3_step(query));
		sqlite3_reset(query);
		__atomic_fetch_add(&asker->queries, 1, __ATOMIC_RELAXED);
	}
	sqlite3_finalize(query);
	sqlite3_close(db);
	return NULL;
}

static void ask_all(const char *file, const char *cache_pages, int threads, double seconds)
{
	struct asker askers[THREADS_MAX] = {0};
	double began_s = now_s();
	long queries = 0;
	int i;

	for (i = 0; i < threads; i++) {
		askers[i] = (struct asker){
			.file = file, .cache_pages = cache_pages, .until_s = began_s + seconds};
		if (pthread_create(&askers[i].thread, NULL, ask, &askers[i]))
			exit(1);
	}
	for (i = 0; i < threads; i++) {
		pthread_join(askers[i].thread, NULL);
		queries += askers[i].queries;
	}
	printf("queries per minute: %.0f\n", (double)queries / (now_s() - began_s) * 60);
}

int main(int argc, char **argv)
{
	int threads = argc == 6 ? atoi(argv[4]) : 0;

	if (argc == 4 && !strcmp(argv[1], "make")) {
		make(argv[2], argv[3]);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "page")) {
		set_page_size(argv[2], argv[3]);
		return 0;
	}
	if (argc != 6 || strcmp(argv[1], "ask") || threads < 1 || threads > THREADS_MAX) {
		fprintf(stderr, "taxi make FILE ROWS; taxi page FILE BYTES; "
				"taxi ask FILE CACHE_PAGES THREADS SECONDS\n");
		return 1;
	}
	sqlite3_enable_shared_cache(1);
	ask_all(argv[2], argv[3], threads, atof(argv[5]));
	return 0;
}
