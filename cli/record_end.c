// SPDX-License-Identifier: MIT
/*
 * record_end.c - what pem record prints at the end: what is missing, what was lost, what was never
 * raised
 */
#include "record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what is missing or was lost --- */

static void say_gaps(const struct pem_trace_info *info)
{
	char text[4096];
	uint32_t i;

	for (i = 0; i < info->gap_count; i++)
		if (cli_gap__sentence(info, i, text, sizeof(text)))
			cli_say("not recorded: %s events: %s", info->gaps[i].source, text);
	if (cli_gaps__rest(info) != NULL)
		cli_say("%s", cli_gaps__rest(info));
}

/*
 * Count events that were discarded because their programs were built with other fields. A gap about
 * them begins with the event's name.
 */
static uint64_t count_misfits(const struct pem_trace *trace)
{
	const struct pem_model *model = pem_trace__model(trace);
	const struct pem_trace_info *info = pem_trace__info(trace);
	uint64_t lost = 0;
	size_t i;
	uint32_t g;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);
		size_t n = strlen(event->name);

		for (g = 0; g < info->gap_count; g++)
			if (strcmp(info->gaps[g].source, "stub") == 0 &&
			    strncmp(info->gaps[g].reason, event->name, n) == 0 &&
			    info->gaps[g].reason[n] == ' ')
				break;
		if (g < info->gap_count)
			lost += pem_trace__event_balance(trace, event).discarded;
	}
	return lost;
}

/*
 * Count the lost events that a gap reports with these words. The gap's sentence begins with their
 * number.
 */
static uint64_t count_told(const struct pem_trace *trace, const char *words)
{
	const struct pem_trace_info *info = pem_trace__info(trace);
	const char *reason;
	uint32_t g;

	for (g = 0; g < info->gap_count; g++) {
		reason = info->gaps[g].reason;
		if (strcmp(info->gaps[g].source, "stubs") == 0 && strstr(reason, words) != NULL)
			return strtoull(reason, NULL, 10);
	}
	return 0;
}

#define BUFFER "a larger --buffer or fewer events (-e) would keep them"

/* Advice to prevent losses. A larger buffer does not help if there was no pool. */
static const char *loss_advice(const struct pem_trace *trace, uint64_t lost)
{
	const struct {
		uint64_t count;
		const char *all, *some;
	} kinds[] = {
		{count_misfits(trace), "build the program again", "need the program built again"},
		{count_told(trace, "were lost in programs with a seccomp filter"),
		 "a seccomp filter refuses what that takes", "a seccomp filter loses"},
		{count_told(trace, "events were lost: "), "their processes had no shared memory",
		 "processes without shared memory raised"},
	};
	const char *all = NULL, *some = NULL;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].count == 0)
			continue;
		all = sum == 0 ? kinds[i].all : "for several reasons";
		some = sum == 0 ? kinds[i].some : "have other reasons";
		sum += kinds[i].count;
	}
	if (sum == 0)
		return BUFFER;
	if (sum >= lost)
		return cli_format("no buffer would keep them, %s (see above)", all);
	return cli_format(BUFFER ", but for %s that %s (see above)", cli_count(sum), some);
}

static void say_losses(const struct pem_trace *trace, bool not_written)
{
	struct pem_balance b = pem_trace__total_balance(trace);

	/* A flight recorder does what it is for. */
	if (b.overwritten != 0)
		cli_say("the last events are kept: %s of %s, older ones, were overwritten",
			cli_count(b.overwritten), cli_count(b.produced));
	if (b.discarded == 0)
		return;
	/* A larger buffer does not help if the disk fails. */
	cli_say("%s of %s events were lost%s%s", cli_count(b.discarded), cli_count(b.produced),
		not_written ? "" : ": ", not_written ? "" : loss_advice(trace, b.discarded));
}

/* --- what was named and never raised --- */

static uint64_t produced(const struct pem_trace *trace, const struct pem_event *event)
{
	return pem_trace__event_balance(trace, event).produced;
}

/* Did the event's source deliver anything at all? If not, a gap tells of it. */
static bool source_gave(const struct pem_trace *trace, const struct pem_event *event)
{
	const struct pem_model *model = pem_trace__model(trace);
	size_t i;

	if (event->source_kind == PEM_SOURCE_STUB)
		return true;
	for (i = 0; i < pem_model__count(model); i++)
		if (pem_model__event(model, i)->source_kind == event->source_kind &&
		    produced(trace, pem_model__event(model, i)) != 0)
			return true;
	return pem_trace__info(trace)->gap_count == 0;
}

struct version_search {
	const struct pem_event *wanted;
	unsigned int found; /* another version than the wanted one; 0: none */
	bool is_there; /* the wanted version is */
};

static int compare_versions(void *arg, const char *text, size_t bytes, const char *origin)
{
	struct version_search *search = arg;
	struct pem_model *model = pem_model__new();
	const struct pem_event *event;
	size_t i;

	if (model == NULL)
		return -ENOMEM;
	if (pem_model__add_text(model, text, bytes, origin, NULL) >= 0) {
		for (i = 0; i < pem_model__count(model); i++) {
			event = pem_model__event(model, i);
			if (strcmp(event->name, search->wanted->name) != 0)
				continue;
			if (event->version == search->wanted->version)
				search->is_there = true;
			else
				search->found = event->version;
		}
	}
	pem_model__free(model);
	return 0;
}

/*
 * The version of an event that a program's file carries. 0: none, or the version that was asked
 * for. A process without wanted events leaves no data, so its file is asked, which may be another
 * user's.
 */
static unsigned int version_in_file(const char *path, const struct pem_event *event)
{
	struct version_search search = {.wanted = event};

	pem_program__models(path, compare_versions, &search, NULL);
	return search.is_there ? 0 : search.found;
}

/* The recorded version of an event if it differs from the version that was asked for. Else 0. */
static unsigned int other_version(const struct record_end *end, const struct pem_event *event)
{
	const struct pem_model *model = pem_session__model(end->session);
	size_t i;

	if (event->source_kind != PEM_SOURCE_STUB || *event->source_name != '\0')
		return 0;
	/* Events that were added after the recording began came with a program. */
	for (i = end->known; i < pem_model__count(model); i++)
		if (strcmp(pem_model__event(model, i)->name, event->name) == 0)
			return pem_model__event(model, i)->version;
	return version_in_file(end->program, event);
}

/*
 * Was none of a pattern's events raised although it was possible? Prints other versions found in
 * programs.
 */
static bool is_unraised(const struct record_end *end, const struct pem_trace *trace,
			const char *pattern)
{
	const struct pem_model *model = pem_session__model(end->session);
	bool possible = false, raised = false, said = false;
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);
		unsigned int version;

		if (pem_event__matches(event, pattern) != 1)
			continue;
		if (produced(trace, event) != 0) {
			raised = true;
			continue;
		}
		if (i >= end->known) /* the event came with a program */
			continue;
		version = other_version(end, event);
		if (version != 0) {
			cli_say("'%s' is version %u of %s, but the program has version %u of it: "
				"build it again with the same spec",
				pattern, event->version, event->name, version);
			said = true;
		}
		if (source_gave(trace, event) &&
		    pem_session__can_deliver(end->session, event, NULL) == 1)
			possible = true;
	}
	return possible && !raised && !said;
}

/* Patterns of which nothing was raised, for one sentence. */
struct unraised {
	char text[1024];
	size_t used;
};

static void say_names(struct unraised *names)
{
	if (names->used != 0)
		cli_say("nothing was raised of %s; pem list -v tells what raises an event",
			names->text);
	names->used = 0;
}

/* A name that does not fit goes into a sentence of its own. */
static void add_name(struct unraised *names, const char *name)
{
	if (names->used + strlen(name) + sizeof(" or ''") > sizeof(names->text))
		say_names(names);
	names->used +=
		(size_t)snprintf(names->text + names->used, sizeof(names->text) - names->used,
				 "%s'%.1000s'", names->used != 0 ? " or " : "", name);
}

static void say_unraised(const struct record_end *end, const struct pem_trace *trace)
{
	struct unraised names = {.used = 0};
	size_t i;

	for (i = 0; i < end->patterns->count; i++) {
		if (!is_unraised(end, trace, end->patterns->text[i]))
			continue;
		/*
		 * Events that do not pass the predicate are not counted, so there may have been
		 * some.
		 */
		if (cli_patterns__predicate(end->patterns, i) != NULL)
			cli_say("nothing was raised of '%s' that passed '%s'",
				end->patterns->text[i], cli_patterns__predicate(end->patterns, i));
		else
			add_name(&names, end->patterns->text[i]);
	}
	say_names(&names);
}

void record_end__say(const struct record_end *end, const struct pem_trace *trace)
{
	say_gaps(pem_trace__info(trace));
	say_losses(trace, end->not_written);
	say_unraised(end, trace);
}
