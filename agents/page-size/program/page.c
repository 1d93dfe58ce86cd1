/* SPDX-License-Identifier: MIT */
/* page.c - pem page-size show --html: what is known of a program, as one page (page/) */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* The page, with a line "@data@" where the data belong (page/build.mk). */
extern const char page_size_html[] __attribute__((weak));
extern const char page_size_html_end[] __attribute__((weak));

struct gathering {
	struct pem_database *database;
	struct json_object *runs, *front;
	struct json_object *metrics; /* of the run that is read now */
	int64_t basis; /* the run that the plan was made from */
	const char *role;
	struct pem_error error;
};

/* --- the points of the front, from the metrics of the observed run --- */

static struct json_object *point_at(struct json_object *front, size_t at)
{
	struct json_object *point = json_object_array_get_idx(front, at);

	if (!point) {
		point = json_object_new_object();
		cli_json__real(point, "bytes", 0);
		cli_json__real(point, "gain", 0);
		cli_json__real(point, "error", 0);
		json_object_array_put_idx(front, at, point);
	}
	return point;
}

static int take_point(const void *row, void *arg)
{
	const struct pem_db_metric *metric = row;
	struct gathering *g = arg;
	unsigned at;
	char what[16];

	if (sscanf(metric->name, "front %2u: %15[a-z ]", &at, what) != 2 || at >= PLAN_POINTS_MAX)
		return 0;
	if (!strcmp(what, "large pages"))
		cli_json__real(point_at(g->front, at), "bytes", metric->mean);
	else if (!strcmp(what, "gain") || !strcmp(what, "error"))
		cli_json__real(point_at(g->front, at), what, metric->mean);
	return 0;
}

/* --- runs --- */

static int take_metric(const void *row, void *arg)
{
	const struct pem_db_metric *metric = row;
	struct gathering *g = arg;

	if (strncmp(metric->name, "front ", 6))
		cli_json__real(g->metrics, metric->name, metric->mean);
	return 0;
}

static int take_run(const void *row, void *arg)
{
	static const char *const roles[] = {"basis", "treated", "control"};
	const struct pem_db_evidence *evidence = row;
	struct pem_db_metric like = {.size = sizeof(like), .run = evidence->run};
	struct gathering *g = arg;
	struct json_object *run;
	int64_t rc;

	if (evidence->role < 0 || evidence->role > PEM_DB_CONTROL)
		return 0;
	if (evidence->role == PEM_DB_BASIS)
		g->basis = evidence->run;
	run = json_object_new_object();
	g->metrics = json_object_new_object();
	cli_json__count(run, "run", (uint64_t)evidence->run);
	cli_json__text(run, "role", roles[evidence->role]);
	json_object_object_add(run, "metrics", g->metrics);
	json_object_array_add(g->runs, run);
	rc = pem_database__each(g->database, PEM_DB_METRIC, &like, take_metric, g, &g->error);
	return rc < 0 ? (int)rc : 0;
}

/* The first directive that was tried has all runs as its evidence; else the first that there is. */
static int64_t pick_directive(struct json_object *sites)
{
	struct json_object *site, *value;
	int64_t first = 0, id;
	size_t i;

	for (i = 0; i < json_object_array_length(sites); i++) {
		site = json_object_array_get_idx(sites, i);
		json_object_object_get_ex(site, "directive", &value);
		id = json_object_get_int64(value);
		json_object_object_get_ex(site, "large_bytes", &value);
		if (json_object_get_int64(value) > 0)
			return id;
		first = first ? first : id;
	}
	return first;
}

int page_write_html(struct pem_database *database, const struct pem_db_application *application,
		    struct json_object *sites, const char *path)
{
	struct gathering g = {.database = database,
			      .runs = json_object_new_array(),
			      .front = json_object_new_array()};
	struct pem_db_evidence evidence = {.size = sizeof(evidence)};
	struct pem_db_directive directive = {.size = sizeof(directive),
					     .id = pick_directive(sites)};
	struct pem_db_machine machine = {.size = sizeof(machine)};
	struct pem_db_metric metric = {.size = sizeof(metric)};
	struct json_object *data = json_object_new_object();
	int64_t rc = 0;

	json_object_object_add(data, "sites", sites);
	json_object_object_add(data, "front", g.front);
	json_object_object_add(data, "runs", g.runs);
	if (!page_size_html_end) {
		json_object_put(data);
		return cli_error(CLI_NOT_HERE, "the page is not built in: pem was built without "
					       "dygraphs (package libjs-dygraphs)");
	}
	if (directive.id)
		rc = pem_database__find(database, PEM_DB_DIRECTIVE, &directive, &directive,
					&g.error);
	evidence.directive = directive.id;
	machine.id = directive.machine;
	if (rc > 0)
		rc = pem_database__find(database, PEM_DB_MACHINE, &machine, &machine, &g.error);
	if (rc > 0)
		rc = pem_database__each(database, PEM_DB_EVIDENCE, &evidence, take_run, &g,
					&g.error);
	metric.run = g.basis;
	if (rc >= 0 && g.basis)
		rc = pem_database__each(database, PEM_DB_METRIC, &metric, take_point, &g, &g.error);
	cli_json__text(data, "program", application->path);
	cli_json__text(data, "build_id", application->build_id);
	cli_json__text(data, "processor", machine.processor);
	cli_json__text(data, "kernel", machine.kernel);
	rc = rc < 0 ? cli_fail((int)rc, &g.error)
		    : cli_page__write(path, page_size_html, page_size_html_end, data);
	json_object_put(data);
	return (int)rc;
}
