/* SPDX-License-Identifier: MIT */
/* show.c - what is known of programs: show, forget */
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- show --- */

struct listing {
	struct pem_database *database;
	struct cli_table *table;
	struct json_object *array;
	struct pem_db_application application; /* of the directives that are shown now */
	uint32_t shown;
	uint32_t sources; /* bits of enum profile_source: who observed what is shown */
	uint32_t excluded; /* runs of the last one that is on trial or kept, that are no evidence */
	struct pem_error error;
};

static const char *state_name(int64_t state)
{
	static const char *const names[] = {"proposed", "on trial", "kept", "not used"};

	return state >= 0 && state < 4 ? names[state] : "?";
}

static int count_run(const void *row, void *counts)
{
	const struct pem_db_evidence *evidence = row;

	if (evidence->role >= PEM_DB_BASIS && evidence->role <= PEM_DB_EXCLUDED)
		((uint32_t *)counts)[evidence->role]++;
	return 0;
}

/* How many runs speak for or against a directive, by their role. */
static int64_t count_runs(struct listing *listing, int64_t directive,
			  uint32_t counts[PEM_DB_EXCLUDED + 1])
{
	struct pem_db_evidence like = {.size = sizeof(like), .directive = directive};

	memset(counts, 0, (PEM_DB_EXCLUDED + 1) * sizeof(*counts));
	return pem_database__each(listing->database, PEM_DB_EVIDENCE, &like, count_run, counts,
				  &listing->error);
}

static int show_directive(const void *row, void *arg)
{
	const struct pem_db_directive *d = row;
	struct listing *listing = arg;
	uint32_t runs[PEM_DB_EXCLUDED + 1];
	struct plan_directive text;
	struct json_object *object;
	int64_t rc;

	if (plan_directive__read(&text, d->text))
		return 0;
	rc = count_runs(listing, d->id, runs);
	if (rc < 0)
		return (int)rc;
	listing->shown++;
	listing->sources |= 1u << text.source;
	if (runs[PEM_DB_EXCLUDED] > listing->excluded)
		listing->excluded = runs[PEM_DB_EXCLUDED];
	if (listing->array) {
		object = json_object_new_object();
		cli_json__count(object, "directive", (uint64_t)d->id);
		cli_json__text(object, "program", listing->application.name);
		cli_json__text(object, "build_id", listing->application.build_id);
		cli_json__text(object, "key", d->subject);
		cli_json__text(object, "name", text.name);
		cli_json__count(object, "bytes", text.bytes);
		cli_json__real(object, "references", text.share);
		cli_json__count(object, "page_size", text.page_size);
		cli_json__real(object, "predicted", d->predicted);
		cli_json__real(object, "predicted_low", d->predicted_low);
		cli_json__real(object, "predicted_high", d->predicted_high);
		cli_json__real(object, "measured", d->gain);
		cli_json__count(object, "large_bytes", (uint64_t)d->cost_bytes);
		cli_json__text(object, "state", state_name(d->state));
		cli_json__text(object, "reason", d->reason);
		cli_json__text(object, "observer", plan_source__word(text.source));
		cli_json__count(object, "treated", runs[PEM_DB_TREATED]);
		cli_json__count(object, "controls", runs[PEM_DB_CONTROL]);
		cli_json__count(object, "excluded", runs[PEM_DB_EXCLUDED]);
		json_object_array_add(listing->array, object);
		return 0;
	}
	cli_table__row(listing->table, d->state == PEM_DB_KEPT ? CLI_GREEN : CLI_PLAIN);
	cli_table__cell(listing->table, listing->application.name);
	cli_table__cell(listing->table, cli_bytes(text.bytes));
	cli_table__cell(listing->table, cli_percent(text.share));
	cli_table__cell(listing->table, cli_bytes(text.page_size));
	/* What a site would lose that gets no large pages is nobody's question. */
	if (d->predicted < 0.05 && !d->cost_bytes)
		cli_table__cell(listing->table, "none");
	else
		cli_table__cell(listing->table, cli_format("%.1f %% (%.1f to %.1f)", d->predicted,
							   d->predicted_low, d->predicted_high));
	cli_table__cell(listing->table, state_name(d->state));
	cli_table__cell(listing->table, d->reason);
	cli_table__cell(listing->table, text.name);
	return 0;
}

static int show_application(const void *row, void *arg)
{
	struct pem_db_directive like = {.size = sizeof(like), .agent = PAGE_AGENT};
	struct listing *listing = arg;
	int64_t rc;

	listing->application = *(const struct pem_db_application *)row;
	like.application = listing->application.id;
	rc = pem_database__each(listing->database, PEM_DB_DIRECTIVE, &like, show_directive, listing,
				&listing->error);
	return rc < 0 ? (int)rc : 0;
}

/* The application that a command is, as a row to look for. */
static int find_application(const struct page_request *request, struct pem_db_application *like,
			    struct pem_error *error)
{
	struct pem_db_application application = {.size = sizeof(application)};
	struct pem_db_machine machine = {.size = sizeof(machine)};
	int rc = pem_agent__identify(request->words[0], &application, &machine, error);

	memcpy(like->build_id, application.build_id, sizeof(like->build_id));
	return rc;
}

/* Who observed the programs. */
static void print_sources(uint32_t sources)
{
	const char *before = "";
	uint32_t source;

	if (!(sources & ~1u))
		return;
	printf("Observed with ");
	for (source = PROFILE_VALGRIND; source <= PROFILE_SAMPLES; source++) {
		if (!(sources >> source & 1))
			continue;
		printf("%s%s", before, page_observer__name(source));
		before = " or ";
	}
	printf(".\n");
}

/* Is there a calibration of this machine? It comes before the first observation. */
static bool is_machine_known(struct pem_database *database)
{
	struct pem_db_application self = {.size = sizeof(self)};
	struct pem_db_machine machine = {.size = sizeof(machine)}, like = {.size = sizeof(like)};
	struct pem_error error;

	if (pem_agent__identify("/proc/self/exe", &self, &machine, &error))
		return false;
	memcpy(like.fingerprint, machine.fingerprint, sizeof(like.fingerprint));
	return pem_database__find(database, PEM_DB_MACHINE, &like, &machine, &error) > 0 &&
	       *machine.facts;
}

/* command: NULL: any */
static void print_nothing_known(struct pem_database *database, const char *command)
{
	printf("Nothing is known%s", command ? " of " : "");
	cli_put_text(stdout, command ? command : "");
	printf(". Begin with: pem page-size run -- ");
	cli_put_word(stdout, command ? command : "COMMAND");
	printf("\n");
	if (!is_machine_known(database))
		printf("This machine is not measured yet, which comes first. If it was too busy "
		       "for that, "
		       "measure it when it has less to do: pem page-size calibrate\n");
}

static int print_listing(struct listing *listing, const struct page_request *request)
{
	if (request->html && !listing->shown) {
		json_object_put(listing->array);
		return cli_error(CLI_WRONG_INPUT,
				 "Nothing is known of %s. Begin with: pem page-size run -- %s",
				 request->words[0], request->words[0]);
	} else if (request->html) {
		return page_write_html(listing->database, &listing->application, listing->array,
				       request->html);
	} else if (listing->array) {
		cli_json__print(listing->array, stdout, false);
	} else {
		cli_table__print(listing->table);
		if (listing->shown) {
			printf("\nPredicted gains are simulated. That of kept sites, under 'why', "
			       "is measured, of all of them together.\n");
		} else {
			print_nothing_known(listing->database, request->words[0]);
		}
		print_sources(listing->sources);
		if (listing->excluded)
			printf("%s run%s not count: interrupted, or with less than half of the "
			       "large pages.\n",
			       cli_count(listing->excluded),
			       listing->excluded == 1 ? " does" : "s do");
	}
	return cli_finish_output(CLI_DONE);
}

int page_show(const struct page_request *request)
{
	struct pem_database_options how = {.size = sizeof(how), .log = page_log, .read_only = 1};
	struct pem_db_application like = {.size = sizeof(like)};
	struct listing listing = {0};
	struct pem_error error;
	int64_t rc = 0;
	int status;

	if (request->words[0] && request->words[1])
		return cli_usage_error(&page_help, "show takes one command");
	if (request->html && request->json)
		return cli_usage_error(&page_help,
				       "--json prints, --html writes a page: one of them");
	if (request->html && !request->words[0])
		return cli_usage_error(&page_help,
				       "a page is of one command: pem page-size show COMMAND "
				       "--html FILE");
	if (request->words[0])
		rc = find_application(request, &like, &error);
	if (rc)
		return cli_fail((int)rc, &error);
	listing.database = pem_database__open(NULL, &how, &error);
	if (!listing.database)
		return cli_fail(-errno, &error);
	if (request->json || request->html) {
		listing.array = json_object_new_array();
	} else {
		static const char *const titles[] = {"program",   "size",  "references", "pages",
						     "predicted", "state", "why",        "site"};
		size_t i;

		listing.table = cli_table__new(stdout);
		for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
			cli_table__column(listing.table, titles[i],
					  i > 0 && i < 5 ? CLI_RIGHT : CLI_LEFT);
	}
	rc = pem_database__each(listing.database, PEM_DB_APPLICATION,
				request->words[0] ? &like : NULL, show_application, &listing,
				&listing.error);
	status = print_listing(&listing, request);
	pem_database__close(listing.database);
	return rc < 0 ? cli_fail((int)rc, &listing.error) : status;
}

/* --- forget --- */

static int forget_directive(const void *row, void *arg)
{
	const struct pem_db_directive *d = row;
	struct pem_error error;
	int rc = pem_database__remove(arg, PEM_DB_DIRECTIVE, d->id, &error);

	return rc < 0 ? rc : 0;
}

int page_forget(const struct page_request *request)
{
	struct pem_database_options how = {.size = sizeof(how), .log = page_log};
	struct pem_db_application application = {.size = sizeof(application)};
	struct pem_db_directive like = {.size = sizeof(like), .agent = PAGE_AGENT};
	struct pem_database *database;
	struct pem_error error;
	int64_t rc;

	if (!request->words[0] || request->words[1])
		return cli_usage_error(&page_help, "which command? pem page-size forget COMMAND");
	rc = find_application(request, &application, &error);
	if (rc)
		return cli_fail((int)rc, &error);
	database = pem_database__open(NULL, &how, &error);
	if (!database)
		return cli_fail(-errno, &error);
	rc = pem_database__find(database, PEM_DB_APPLICATION, &application, &application, &error);
	if (rc > 0) {
		like.application = application.id;
		rc = pem_database__each(database, PEM_DB_DIRECTIVE, &like, forget_directive,
					database, &error);
	}
	pem_database__close(database);
	if (rc < 0)
		return cli_fail((int)rc, &error);
	printf("%s directive%s of ", cli_count((uint64_t)rc), rc == 1 ? "" : "s");
	cli_put_text(stdout, request->words[0]);
	printf(" forgotten; the next run observes it anew.\n");
	return cli_finish_output(CLI_DONE);
}
