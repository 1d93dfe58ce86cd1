/* SPDX-License-Identifier: MIT */
/* model.c - pem page-size model: what a profile comes to */
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *site_object(const struct page_plan *plan, uint32_t at)
{
	const struct page_geometry *geometry = &plan->calibration.geometry;
	const struct plan_site *site = &plan->sites[at];
	struct json_object *object = json_object_new_object();
	char key[PAGE_SITE_TEXT] = "";

	if (at + 1 < plan->site_count)
		page_site__write(&site->site, key);
	cli_json__text(object, "key", key);
	cli_json__text(object, "name", site->name);
	cli_json__count(object, "bytes", site->bytes);
	cli_json__real(object, "references", site->share);
	cli_json__count(object, "blocks", site->calls);
	cli_json__real(object, "chained", site->chained);
	cli_json__real(object, "misses", site->walks);
	cli_json__count(object, "page_size", UINT64_C(1) << geometry->shifts[site->size]);
	cli_json__count(object, "large_bytes", site->large_bytes);
	cli_json__real(object, "saved_alone_ms", site->saved_ns / 1e6);
	cli_json__text(object, "reason", site->reason);
	return object;
}

/* A digit for each site; those that are missing stand for small pages. */
static int read_mapping(const struct page_plan *plan, const char *digits,
			struct page_mapping *mapping)
{
	size_t n = strlen(digits), i;

	memset(mapping, 0, sizeof(*mapping));
	if (n > plan->site_count - 1)
		return cli_error(CLI_WRONG_INPUT, "%.80s has %zu digits, and there are %u sites",
				 digits, n, plan->site_count - 1);
	for (i = 0; i < n; i++) {
		mapping->size[i] = (uint8_t)(digits[i] - '0');
		if (digits[i] < '0' || mapping->size[i] >= plan->calibration.geometry.size_count)
			return cli_error(CLI_WRONG_INPUT,
					 "%.80s: a digit is from 0 to %u, for a page size", digits,
					 plan->calibration.geometry.size_count - 1);
	}
	return CLI_DONE;
}

/* What a mapping that was asked for saves. */
static int weigh(const struct page_plan *plan, const char *digits, struct page_mapping *mapping,
		 double *saved_ns, double *error_ns)
{
	int status = read_mapping(plan, digits, mapping), rc;

	if (status)
		return status;
	rc = plan__saved(plan, mapping, saved_ns, error_ns);
	return rc ? cli_error(CLI_FAILED, "the model fails: %s", strerror(-rc)) : CLI_DONE;
}

static int add_mappings(const struct page_plan *plan, const struct page_request *request,
			struct json_object *array)
{
	struct page_mapping mapping;
	struct json_object *object;
	double saved_ns, error_ns;
	uint32_t i;
	int status;

	for (i = 0; i < request->mapping_count; i++) {
		status = weigh(plan, request->mappings[i], &mapping, &saved_ns, &error_ns);
		if (status)
			return status;
		object = json_object_new_object();
		cli_json__text(object, "mapping", request->mappings[i]);
		cli_json__count(object, "bytes",
				page_mapping__bytes(&plan->calibration.geometry, &plan->model_sites,
						    &mapping));
		cli_json__real(object, "saved_ms", saved_ns / 1e6);
		cli_json__real(object, "error_ms", error_ns / 1e6);
		json_object_array_add(array, object);
	}
	return CLI_DONE;
}

static int print_plan_json(const struct page_plan *plan, const struct page_request *request)
{
	struct json_object *object = json_object_new_object(), *array, *point;
	uint32_t i;
	int status;

	cli_json__text(object, "figures", "simulated");
	cli_json__text(object, "observer", plan_source__word(plan->summary.source));
	cli_json__count(object, "references", plan->summary.references);
	cli_json__count(object, "kept", plan->summary.kept);
	cli_json__count(object, "instructions", plan->summary.instructions);
	cli_json__count(object, "forks", plan->summary.forks);
	cli_json__real(object, "run_ms", plan->run_ns / 1e6);
	cli_json__real(object, "tlb_ms", plan->small_ns / 1e6);
	cli_json__real(object, "saved_ms", plan->saved_ns / 1e6);
	cli_json__real(object, "error_ms", plan->error_ns / 1e6);
	cli_json__real(object, "gain_percent", plan->gain);
	cli_json__real(object, "gain_low_percent", plan->gain_low);
	cli_json__real(object, "gain_high_percent", plan->gain_high);
	cli_json__count(object, "large_bytes", plan->bytes);
	array = json_object_new_array();
	for (i = 0; i < plan->site_count; i++)
		json_object_array_add(array, site_object(plan, i));
	json_object_object_add(object, "sites", array);
	array = json_object_new_array();
	for (i = 0; i < plan->point_count; i++) {
		point = json_object_new_object();
		cli_json__count(point, "bytes", plan->points[i].bytes);
		cli_json__real(point, "saved_ms", plan->points[i].saved_ns / 1e6);
		cli_json__real(point, "error_ms", plan->points[i].error_ns / 1e6);
		json_object_array_add(array, point);
	}
	json_object_object_add(object, "front", array);
	array = json_object_new_array();
	status = add_mappings(plan, request, array);
	json_object_object_add(object, "mappings", array);
	if (status) {
		json_object_put(object);
		return status;
	}
	cli_json__print(object, stdout, false);
	return cli_finish_output(CLI_DONE);
}

static void print_sites(const struct page_plan *plan)
{
	const struct page_geometry *geometry = &plan->calibration.geometry;
	struct cli_table *table = cli_table__new(stdout);
	uint32_t i;

	cli_table__column(table, "size", CLI_RIGHT);
	cli_table__column(table, "references", CLI_RIGHT);
	cli_table__column(table, "saves alone", CLI_RIGHT);
	cli_table__column(table, "pages", CLI_RIGHT);
	cli_table__column(table, "why", CLI_LEFT);
	cli_table__column(table, "site", CLI_LEFT);
	for (i = 0; i < plan->site_count; i++) {
		const struct plan_site *site = &plan->sites[i];
		bool rest = i + 1 == plan->site_count;

		cli_table__row(table, site->size ? CLI_GREEN : CLI_PLAIN);
		cli_table__cell(table, cli_bytes(site->bytes));
		cli_table__cell(table, cli_percent(site->share));
		cli_table__cell(table,
				rest ? ""
				     : cli_format("%.1f %%", plan__percent(plan, site->saved_ns)));
		cli_table__cell(table, cli_bytes(UINT64_C(1) << geometry->shifts[site->size]));
		cli_table__cell(table, site->reason);
		cli_table__cell(table, site->name);
	}
	cli_table__print(table);
}

/* What the mappings that were asked for would save. */
static int print_mappings(const struct page_plan *plan, const struct page_request *request)
{
	struct page_mapping mapping;
	double saved_ns, error_ns;
	uint32_t i;
	int status = CLI_DONE;

	if (request->mapping_count)
		printf("\nMappings that were asked for (simulated):\n");
	for (i = 0; i < request->mapping_count; i++) {
		status = weigh(plan, request->mappings[i], &mapping, &saved_ns, &error_ns);
		if (status)
			break;
		printf("  ");
		cli_put_text(stdout, request->mappings[i]);
		printf("  %5.1f %%\n", plan__percent(plan, saved_ns));
	}
	return status;
}

static int print_plan(const struct page_plan *plan, const struct page_request *request)
{
	uint32_t i;
	int status;

	print_sites(plan);
	printf("\nChosen: %s of large pages save %.1f %% of the run (%.1f to %.1f; simulated from "
	       "%s of %s references that %s saw).\n",
	       cli_bytes(plan->bytes), plan->gain, plan->gain_low, plan->gain_high,
	       cli_count(plan->summary.kept), cli_count(plan->summary.references),
	       page_observer__name(plan->summary.source));
	if (plan->summary.cut)
		printf("The profile was cut: the program was killed, or the disk was full.\n");
	if (plan->point_count > 1)
		printf("\nThe best for less, or more (simulated):\n");
	for (i = 1; i < plan->point_count; i++)
		printf("  %10s  %5.1f %%\n", cli_bytes(plan->points[i].bytes),
		       plan__percent(plan, plan->points[i].saved_ns));
	status = print_mappings(plan, request);
	return cli_finish_output(status);
}

/* This machine's calibration, through the user's database; without one it is measured anew. */
static int calibration_here(const struct page_request *request,
			    struct page_calibration *calibration, struct pem_error *error)
{
	struct pem_database_options how = {.size = sizeof(how), .log = page_log};
	struct pem_db_application self = {.size = sizeof(self)};
	struct pem_db_machine machine = {.size = sizeof(machine)}, like = machine;
	struct pem_database *database;
	int rc;

	if (request->machine)
		return page_machine__calibration(request, NULL, NULL, calibration, error);
	rc = pem_agent__identify("/proc/self/exe", &self, &machine, error);
	if (rc)
		return rc;
	database = pem_database__open(NULL, &how, error);
	if (!database)
		cli_say("%s; this machine is measured without it", error->text);
	memcpy(like.fingerprint, machine.fingerprint, sizeof(like.fingerprint));
	if (database)
		pem_database__find(database, PEM_DB_MACHINE, &like, &machine, error);
	rc = page_machine__calibration(request, database, &machine, calibration, error);
	pem_database__close(database);
	return rc;
}

int page_model_verb(const struct page_request *request)
{
	struct page_plan *plan = calloc(1, sizeof(*plan));
	struct page_calibration calibration;
	struct page_profile *profile = NULL;
	struct cli_progress progress;
	struct pem_error error;
	int rc, status;

	if (!request->words[0] || request->words[1]) {
		free(plan);
		return cli_usage_error(&page_help, "which profile? pem page-size model FILE");
	}
	if (!plan)
		return cli_error(CLI_FAILED, "no memory");
	profile = page_profile__open(request->words[0], &error);
	rc = profile ? calibration_here(request, &calibration, &error) : -errno;
	if (!rc) {
		cli_progress__start(&progress, "modelling");
		rc = plan__make(plan, profile, &calibration, request->budget_bytes,
				cli_progress__update, &progress, &error);
		cli_progress__end(&progress);
	}
	if (!rc)
		page_names__fill(plan, profile);
	status = rc              ? cli_fail(rc, &error)
		 : request->json ? print_plan_json(plan, request)
				 : print_plan(plan, request);
	page_profile__close(profile);
	plan__free(plan);
	free(plan);
	return status;
}
