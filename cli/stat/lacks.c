// SPDX-License-Identifier: MIT
/*
 * lacks.c - pem stat: which events could not be counted here, and why, in the words of pem record
 */
#include "stat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stat_lacks {
	size_t asked, lacking; /* numbers of events */
	struct pem_error last; /* reason of the last missing event */
	struct pem_trace_info info; /* reasons, as gaps */
};

/* Is the event available? If not, reason says why. An event that was counted is available. */
static bool can_count(const struct stat *s, struct pem_session *session,
		      const struct pem_statistic *v, struct pem_error *reason)
{
	/* Nothing is opened for processes of other users, so nothing can have failed. */
	bool unasked = s->attach.all && geteuid() != 0;

	if (v->event == NULL || v->count != 0 || (v->unavailable == 0 && !unasked))
		return true;
	if (pem_session__can_deliver(session, v->event, reason) == 1)
		return v->unavailable == 0;
	return false;
}

/*
 * Add each reason once, as far as there is room. The reasons are gaps of a trace, because few
 * sentences can describe these.
 */
static void add_gap(struct pem_trace_info *info, const struct pem_error *reason)
{
	const uint32_t max = sizeof(info->gaps) / sizeof(info->gaps[0]);
	uint32_t i;

	for (i = 0; i < info->gap_count; i++)
		if (strncmp(info->gaps[i].reason, reason->text, sizeof(info->gaps[i].reason) - 1) ==
		    0)
			return;
	if (info->gap_count == max)
		return;
	snprintf(info->gaps[info->gap_count++].reason, sizeof(info->gaps[0].reason), "%.*s",
		 (int)sizeof(info->gaps[0].reason) - 1, reason->text);
}

static void say(const struct pem_trace_info *info)
{
	static const char said[] = "can't be counted: ";
	char text[4096];
	uint32_t i;

	for (i = 0; i < info->gap_count; i++)
		if (cli_gap__sentence(info, i, text, sizeof(text)))
			cli_say("not counted: %s",
				text + (strncmp(text, said, sizeof(said) - 1) == 0
						? sizeof(said) - 1
						: 0));
}

struct stat_lacks *stat_lacks__find(struct stat *s, struct pem_session *session)
{
	struct stat_lacks *lacks = calloc(1, sizeof(*lacks));
	unsigned int g;
	size_t i;

	for (g = 0; lacks != NULL && g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++) {
			struct pem_statistic *v = &s->groups[g].now[i];
			struct pem_error reason = {{0}};

			lacks->asked++;
			if (can_count(s, session, v, &reason))
				continue;
			v->unavailable = v->unavailable != 0 ? v->unavailable : -ENOTSUP;
			lacks->lacking++;
			lacks->last = reason;
			add_gap(&lacks->info, &reason);
		}
	return lacks;
}

int stat_lacks__say(const struct stat *s, struct stat_lacks *lacks)
{
	bool all = lacks != NULL && !cli_patterns__has_usual(&s->patterns) && lacks->asked != 0 &&
		   lacks->lacking == lacks->asked;
	int status = CLI_DONE;

	if (all)
		status = cli_error(CLI_NOT_HERE, "none of the events of -e can be had here: %s",
				   lacks->last.text);
	else if (lacks != NULL && !s->quiet)
		say(&lacks->info);
	free(lacks);
	return status;
}
