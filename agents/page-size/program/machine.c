/* SPDX-License-Identifier: MIT */
/* machine.c - this machine's calibration: measured once, kept in the database */
#include "program.h"

#include <errno.h>
#include <string.h>

#define LIMIT_S 30u

static void progress(const char *sentence, void *arg)
{
	char text[256];

	(void)arg;
	snprintf(text, sizeof(text), "measuring this machine: %s", sentence);
	cli_progress__show(text);
}

/* The calibration that a machine's row holds, if it has one. */
static bool known(const struct pem_db_machine *machine, struct page_calibration *calibration)
{
	/* An earlier version also measured pages of 64 KiB, which are not used. */
	return machine && *machine->facts && !page_calibration__read(calibration, machine->facts) &&
	       calibration->geometry.size_count <= 2;
}

static int read_file(const char *path, struct page_calibration *calibration,
		     struct pem_error *error)
{
	char text[sizeof(((struct pem_db_machine *)0)->facts)];
	FILE *file = fopen(path, "re");
	size_t n = 0;
	int code = errno;

	if (file) {
		n = fread(text, 1, sizeof(text) - 1, file);
		code = ferror(file) ? EIO : 0;
		fclose(file);
	}
	text[n] = '\0';
	if (code)
		snprintf(error->text, sizeof(error->text), "%.300s can't be read: %s", path,
			 strerror(code));
	else if (page_calibration__read(calibration, text))
		snprintf(error->text, sizeof(error->text),
			 "%.300s holds no calibration: pem page-size calibrate --json writes one",
			 path);
	else
		return 0;
	return code ? -code : -EBADMSG;
}

/* Measure this machine, and keep what was found. */
static int measure(uint32_t limit_s, struct pem_database *database,
		   const struct pem_db_machine *machine, struct page_calibration *calibration,
		   struct pem_error *error)
{
	struct pem_db_machine row;
	int64_t id;
	int rc;

	cli_say("measuring this machine's TLBs, for %u s at most", limit_s);
	rc = page_calibrate(calibration, limit_s, progress, NULL, error);
	cli_progress__clear();
	if (rc || !database || !machine)
		return rc;
	row = *machine;
	rc = page_calibration__write(calibration, row.facts, sizeof(row.facts));
	if (rc < 0) {
		snprintf(error->text, sizeof(error->text), "the calibration is too long to keep");
		return rc;
	}
	id = pem_database__put(database, PEM_DB_MACHINE, &row, error);
	/* It serves this time, at least. */
	if (id < 0)
		cli_say("the calibration is not kept, and made anew next time: %s", error->text);
	return 0;
}

int page_machine__calibration(const struct page_request *request, struct pem_database *database,
			      const struct pem_db_machine *machine,
			      struct page_calibration *calibration, struct pem_error *error)
{
	if (request->machine)
		return read_file(request->machine, calibration, error);
	if (known(machine, calibration)) {
		page_calibration__update_supply(calibration);
		return 0;
	}
	return measure(LIMIT_S, database, machine, calibration, error);
}

/* --- the verb --- */

static void print_levels(const struct page_geometry *g)
{
	struct cli_table *table = cli_table__new(stdout);
	uint32_t level, pool, size;
	char sizes[64];

	cli_table__column(table, "level", CLI_RIGHT);
	cli_table__column(table, "pages of", CLI_LEFT);
	cli_table__column(table, "entries", CLI_RIGHT);
	cli_table__column(table, "ways", CLI_RIGHT);
	cli_table__column(table, "a hit costs", CLI_RIGHT);
	for (level = 0; level < g->level_count; level++) {
		for (pool = 0; pool < g->levels[level].pool_count; pool++) {
			const struct page_pool *p = &g->levels[level].pools[pool];

			sizes[0] = '\0';
			for (size = 0; size < g->size_count; size++) {
				if (p->sizes >> size & 1)
					snprintf(sizes + strlen(sizes),
						 sizeof(sizes) - strlen(sizes), "%s%s",
						 *sizes ? ", " : "",
						 cli_bytes(UINT64_C(1) << g->shifts[size]));
			}
			cli_table__row(table, CLI_PLAIN);
			cli_table__cell(table, cli_count(level + 1));
			cli_table__cell(table, sizes);
			cli_table__cell(table, cli_count(p->entries));
			cli_table__cell(table, p->ways == p->entries ? "all" : cli_count(p->ways));
			cli_table__cell(table, cli_format("%.1f ns", g->levels[level].hit_ns));
		}
	}
	cli_table__print(table);
}

static const char *ns(double value)
{
	return value > 0 ? cli_format("%.1f ns", value) : "";
}

static void print_sizes(const struct page_calibration *c)
{
	const struct page_geometry *g = &c->geometry;
	struct cli_table *table = cli_table__new(stdout);
	uint32_t k;

	cli_table__column(table, "page", CLI_RIGHT);
	cli_table__column(table, "walk, waited for", CLI_RIGHT);
	cli_table__column(table, "walk, overlapped", CLI_RIGHT);
	cli_table__column(table, "first touch", CLI_RIGHT);
	cli_table__column(table, "collapse", CLI_RIGHT);
	cli_table__column(table, "copy after fork", CLI_RIGHT);
	cli_table__column(table, "supply", CLI_RIGHT);
	for (k = 0; k < g->size_count; k++) {
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_bytes(UINT64_C(1) << g->shifts[k]));
		cli_table__cell(table, ns(g->walk_latency_ns[k]));
		cli_table__cell(table, ns(g->walk_throughput_ns[k]));
		cli_table__cell(table, ns(g->first_touch_ns[k]));
		cli_table__cell(table, ns(c->collapse_ns[k]));
		cli_table__cell(table, ns(c->copy_ns[k]));
		cli_table__cell(table, c->supply_bytes[k] ? cli_bytes(c->supply_bytes[k]) : "");
	}
	cli_table__print(table);
}

static void print_notes(void)
{
	printf("\n");
	printf("Pages of 1 GiB and those of hugetlbfs (MAP_HUGETLB) are never used: with them a "
	       "fork can end a program by SIGBUS.\n");
}

int page_calibrate_verb(const struct page_request *request)
{
	struct pem_database_options how = {.size = sizeof(how), .log = page_log};
	struct pem_db_application self = {.size = sizeof(self)};
	struct pem_db_machine machine = {.size = sizeof(machine)};
	struct page_calibration calibration;
	struct pem_database *database;
	struct pem_error error;
	char text[sizeof(machine.facts)];
	int rc;

	if (request->words[0])
		return cli_usage_error(&page_help, "calibrate takes no words");
	rc = pem_agent__identify("/proc/self/exe", &self, &machine, &error);
	if (rc)
		return cli_fail(rc, &error);
	database = pem_database__open(NULL, &how, &error);
	if (!database)
		return cli_fail(-errno, &error);
	rc = measure(request->limit_s < LIMIT_S ? request->limit_s : LIMIT_S, database, &machine,
		     &calibration, &error);
	pem_database__close(database);
	if (rc)
		return cli_fail(rc, &error);
	if (request->json) {
		page_calibration__write(&calibration, text, sizeof(text));
		printf("%s\n", text);
		return cli_finish_output(CLI_DONE);
	}
	printf("Measured in %.1f s, with a spread of %.1f %%.\n\n", calibration.seconds,
	       100 * calibration.noise);
	print_levels(&calibration.geometry);
	printf("\n");
	print_sizes(&calibration);
	if (calibration.geometry.window_instructions > 0)
		printf("\nWalks overlap within %.0f instructions.\n",
		       calibration.geometry.window_instructions);
	print_notes();
	return cli_finish_output(CLI_DONE);
}
