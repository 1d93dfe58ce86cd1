// SPDX-License-Identifier: MIT
/*
 * program_events.c - loads the events that a program carries into a session before the program runs
 *
 * Not here: finding them in files (pem_program__models).
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define REFUSED_MAX 8u /* models of one file */

struct loading {
	struct pem_session *session;
	struct pem_model *carried;
	bool quiet;
	char origin[PATH_MAX]; /* the file that the last refused model is of */
	unsigned refused;
	int result; /* -ENOMEM: the search was ended, and error has the sentence */
	struct pem_error error;
};

/* Say why a model is left out, and whether its file's other ones are. */
static void refuse(struct loading *l, const char *origin, bool is_bad, const char *why)
{
	if (strcmp(l->origin, origin) != 0) {
		snprintf(l->origin, sizeof(l->origin), "%s", origin);
		l->refused = 0;
	}
	l->refused = is_bad ? REFUSED_MAX : l->refused + 1;
	if (l->quiet)
		return;
	cli_say("events that %s brings along are left out: %s", origin, why);
	if (l->refused == REFUSED_MAX)
		cli_say("what %s brings along besides is left out, too", origin);
}

static int add(void *arg, const char *text, size_t bytes, const char *origin)
{
	struct loading *l = arg;
	bool is_bad;
	int rc;

	if (l->refused == REFUSED_MAX && strcmp(l->origin, origin) == 0)
		return 0;
	l->error.text[0] = '\0';
	rc = pem_model__add_text(l->carried, text, bytes, origin, &l->error);
	is_bad = rc < 0;
	if (!is_bad)
		rc = pem_session__add_model(l->session, text, bytes, origin, &l->error);
	/* Nothing is wrong with the model. */
	if (rc == -ENOMEM) {
		l->result = rc;
		return rc;
	}
	if (rc < 0)
		refuse(l, origin, is_bad, *l->error.text != '\0' ? l->error.text : strerror(-rc));
	return 0;
}

int cli_program_events__load(struct pem_session *session, const char *path,
			     struct pem_model *carried, bool quiet, struct pem_error *error)
{
	struct loading l = {.session = session, .carried = carried, .quiet = quiet};
	int found = pem_program__models(path, add, &l, error);

	if (l.result == 0)
		return found;
	*error = l.error;
	return l.result;
}
