// SPDX-License-Identifier: MIT
/*
 * program_events.c - loads the events that a program carries into a session before the program runs
 *
 * Not here: finding them in files (pem_program__models).
 */
#include "cli.h"

#include <string.h>

struct loading {
	struct pem_session *session;
	struct pem_model *carried;
	bool quiet;
};

static int add(void *arg, const char *text, size_t bytes, const char *origin)
{
	struct loading *l = arg;
	struct pem_error error = {{0}};
	int rc = pem_model__add_text(l->carried, text, bytes, origin, &error);

	if (rc >= 0)
		rc = pem_session__add_model(l->session, text, bytes, origin, &error);
	if (rc < 0 && !l->quiet)
		cli_say("events that %s brings along are left out: %s", origin,
			*error.text != '\0' ? error.text : strerror(-rc));
	return 0;
}

int cli_program_events__load(struct pem_session *session, const char *path,
			     struct pem_model *carried, bool quiet, struct pem_error *error)
{
	struct loading l = {.session = session, .carried = carried, .quiet = quiet};

	return pem_program__models(path, add, &l, error);
}
