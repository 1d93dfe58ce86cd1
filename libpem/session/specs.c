/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * specs.c - a session learns events from specs, from models in files, and from programs
 *
 * Contradictions between events are found here, where the locations of both are known.
 *
 * Not here: running pem-codegen (codegen.c), finding models in programs (program_needs.c,
 * process_models.c), events that observed processes describe themselves (processes/models.c).
 */
#include "core/core.h"
#include "session/session.h"
#include "model_internal.h"
#include "program_models.h"
#include "spec_files.h"
#include "grow.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_DEPTH 4u /* levels of folders below a folder */
#define REFUSED_MAX 8u /* models of one program */
#define HEAD "pem-model\t"

/* Where an event is described. */
struct pem_spec_location {
	uint32_t id;
	unsigned line, column; /* of a spec; line 0: path is of a program or library */
	char *path;
};

static struct pem_session_specs *specs_of(struct pem_session *s)
{
	if (!s->specs)
		s->specs = calloc(1, sizeof(*s->specs));
	return s->specs;
}

void pem_session__forget_specs(struct pem_session *s)
{
	size_t i;

	if (!s->specs)
		return;
	for (i = 0; i < s->specs->location_count; i++)
		free(s->specs->locations[i].path);
	free(s->specs->locations);
	free(s->specs);
	s->specs = NULL;
}

/* --- locations --- */

/* The first location of an event in specs, or in programs. */
static const struct pem_spec_location *location_of(const struct pem_session_specs *specs,
						   size_t first, size_t end, uint32_t id,
						   bool in_program)
{
	size_t i;

	for (i = first; i < end; i++) {
		if (specs->locations[i].id == id && !specs->locations[i].line == in_program)
			return &specs->locations[i];
	}
	return NULL;
}

/* Copies path. Returns 0 or -ENOMEM. */
static int add_location(struct pem_session_specs *specs, struct pem_spec_location location,
			const char *path)
{
	if (pem_grow(&specs->locations, sizeof(location), specs->location_count + 1,
		     &specs->location_capacity))
		return -ENOMEM;
	location.path = strdup(path);
	if (!location.path)
		return -ENOMEM;
	specs->locations[specs->location_count++] = location;
	return 0;
}

/* Remember the locations that a model text has. Returns 0 or -ENOMEM. */
static int add_locations(struct pem_session_specs *specs, const char *text, const char *path)
{
	struct pem_spec_location location;
	const char *line;
	char start[64]; /* sscanf measures the whole string first */

	for (line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "location\t", 9) != 0)
			continue;
		snprintf(start, sizeof(start), "%.*s", (int)strcspn(line, "\n"), line);
		if (sscanf(start, "location\t%8x\t%u\t%u", &location.id, &location.line,
			   &location.column) != 3 ||
		    !location.line)
			continue;
		if (add_location(specs, location, path))
			return -ENOMEM;
	}
	return 0;
}

static void forget_locations(struct pem_session_specs *specs, size_t count)
{
	while (specs->location_count > count)
		free(specs->locations[--specs->location_count].path);
}

/* "FILE:2:3", "PROGRAM", or words if no file is known. */
static void say_location(const struct pem_spec_location *location, char *text, size_t bytes)
{
	if (location && location->line)
		snprintf(text, bytes, "%.180s:%u:%u", location->path, location->line,
			 location->column);
	else if (location)
		snprintf(text, bytes, "%.180s", location->path);
	else
		snprintf(text, bytes, "the one built into pem");
}

/* --- one model --- */

/*
 * Does an event of the model contradict one that the session is certain of? Returns 0; -EEXIST with
 * error if a program that was described raises the other one; otherwise -EINVAL with error.
 */
static int check(struct pem_session *s, const struct pem_model *model, size_t first,
		 const char *path, struct pem_error *error)
{
	const struct pem_session_specs *specs = s->specs;
	const struct pem_spec_location *here, *there, *described;
	char at[200], of[200];
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);
		const struct pem_event *other = pem_model__by_id(s->model, event->id);

		if (!other || pem_event__equal(other, event))
			continue;
		here = location_of(specs, first, specs->location_count, event->id, false);
		there = location_of(specs, 0, first, event->id, false);
		described = location_of(specs, 0, first, event->id, true);
		if (here)
			say_location(here, at, sizeof(at));
		else
			snprintf(at, sizeof(at), "%.180s", path);
		say_location(there ? there : described, of, sizeof(of));
		return pem_error__set(
			error, !there && described ? -EEXIST : -EINVAL,
			"%s: error: event '%s' is not the '%s' of %s: expected another name, "
			"another version, or the same fields",
			at, event->name, other->name, of);
	}
	return 0;
}

/* Add the events of a text, of the spec or file at path. Returns events added, or -errno. */
static int add_text(struct pem_session *s, const char *text, size_t bytes, const char *path,
		    struct pem_error *error)
{
	struct pem_model *model = pem_model__new();
	struct pem_session_specs *specs;
	int result = -ENOMEM;
	size_t first;

	if (!model)
		return pem_error__set(error, -ENOMEM, "out of memory");
	result = pem_model__add_text(model, text, bytes, path, error);
	if (result < 0)
		goto out;
	pem_session__lock(s);
	specs = specs_of(s);
	first = specs ? specs->location_count : 0;
	result = specs ? add_locations(specs, text, path) : -ENOMEM;
	if (result)
		pem_error__set(error, 0, "out of memory");
	else
		result = check(s, model, first, path, error);
	if (!result)
		result = pem_session__add_model(s, text, bytes, path, error);
	if (specs && result < 0)
		forget_locations(specs, first);
	pem_session__unlock(s);
out:
	pem_model__free(model);
	return result;
}

/* --- one file --- */

/* Take the first error of pem-codegen's, and count the others. */
static int say_errors(const char *errors, const char *path, struct pem_error *error)
{
	const char *line, *first = NULL;
	unsigned count = 0;
	size_t length;

	for (line = errors; *line; line += length + (line[length] != 0)) {
		length = strcspn(line, "\n");
		if (memmem(line, length, ": error: ", 9) && !count++)
			first = line;
	}
	if (!first)
		return pem_error__set(error, -EINVAL,
				      "pem-codegen found no events in '%.200s'%s%.200s", path,
				      *errors ? ": " : "", errors);
	length = strcspn(first, "\n");
	if (count == 1)
		return pem_error__set(error, -EINVAL, "%.*s", (int)length, first);
	return pem_error__set(error, -EINVAL, "%.*s; and %u more",
			      (int)(length < 460 ? length : 460), first, count - 1);
}

static int add_xml(struct pem_session *s, const char *path, struct pem_error *error)
{
	char *models, *errors;
	size_t bytes = 0;
	int result = pem_codegen__models(path, &models, &bytes, &errors, error);

	if (result)
		return result;
	result = bytes ? add_text(s, models, bytes, path, error) : say_errors(errors, path, error);
	free(models);
	free(errors);
	return result;
}

static int add_file(struct pem_session *s, const char *path, struct pem_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), result;
	char head[sizeof(HEAD) - 1], *text;
	struct stat st;
	size_t bytes;

	if (fd < 0 || fstat(fd, &st)) {
		result = pem_error__cannot_read(error, -errno, path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		result = pem_error__set(error, -EINVAL, "'%.300s' is not a file of events", path);
		goto out;
	}
	if (pread(fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, HEAD, sizeof(head))) {
		result = add_xml(s, path, error);
		goto out;
	}
	text = pem_codegen__read_file(fd, &bytes);
	result = text ? add_text(s, text, bytes, path, error)
		      : pem_error__cannot_read(error, -errno, path);
	free(text);
out:
	if (fd >= 0)
		close(fd);
	return result;
}

static int add_folder(struct pem_session *s, const char *path, struct pem_error *error)
{
	struct pem_spec_files files = {0};
	int added = 0, failed = 0,
	    result = pem_spec_files__add_folder(&files, path, FOLDER_DEPTH, 0, NULL);
	struct pem_error why;
	size_t i;

	if (result == -E2BIG)
		pem_error__set(error, result, "there are too many specs in '%.300s'", path);
	else if (result)
		pem_error__cannot_read(error, result, path);
	else if (!files.count)
		result = pem_error__set(error, -ENOENT,
					"there is no spec in '%.300s': no file *.xml whose root "
					"element is <spec>",
					path);
	for (i = 0; i < files.count && !result; i++) {
		int one = add_file(s, files.files[i].path, failed ? &why : error);

		if (one < 0 && !failed)
			failed = one;
		added += one > 0 ? one : 0;
	}
	pem_spec_files__free(&files);
	return result ? result : failed ? failed : added;
}

int pem_session__add_specs(struct pem_session *session, const char *path, struct pem_error *error)
{
	struct stat st;

	if (!session || !path || !*path)
		return pem_error__set(error, -EINVAL, "no %s was given",
				      session ? "file or folder of specs" : "session");
	return !stat(path, &st) && S_ISDIR(st.st_mode) ? add_folder(session, path, error)
						       : add_file(session, path, error);
}

/* --- programs --- */

struct describing {
	struct pem_session *session;
	struct pem_model *found; /* the events described, whether they were known or not */
	char origin[PATH_MAX]; /* the file that the last refused model is of */
	unsigned refused;
	int result; /* -ENOMEM: the search was ended */
};

/* Say why a model is left out, and whether its file's other ones are. */
static void refuse(struct describing *d, const char *origin, bool is_bad, const char *why)
{
	if (strcmp(d->origin, origin)) {
		pem_copy_text(d->origin, sizeof(d->origin), origin);
		d->refused = 0;
	}
	d->refused = is_bad ? REFUSED_MAX : d->refused + 1;
	pem_session__say(d->session, PEM_LOG_WARNING, "events that %s describes are left out: %s%s",
			 origin, why,
			 d->refused == REFUSED_MAX ? "; its further events are left out" : "");
}

/* Remember that a file of a program describes the events of a text. Returns 0 or -ENOMEM. */
static int add_programs_locations(struct pem_session *s, const char *text, size_t bytes,
				  const char *origin)
{
	struct pem_session_specs *specs = specs_of(s);
	struct pem_model *model = pem_model__new();
	int result =
		specs && model ? pem_model__add_text(model, text, bytes, origin, NULL) : -ENOMEM;
	size_t i;

	for (i = 0; result >= 0 && i < pem_model__count(model); i++) {
		struct pem_spec_location location = {.id = pem_model__event(model, i)->id};

		if (!location_of(specs, 0, specs->location_count, location.id, true))
			result = add_location(specs, location, origin);
	}
	pem_model__free(model);
	return result < 0 ? result : 0;
}

static int add_described(void *arg, const char *text, size_t bytes, const char *origin)
{
	struct describing *d = arg;
	struct pem_error why = {{0}};
	bool is_bad;
	int result;

	if (d->refused == REFUSED_MAX && !strcmp(d->origin, origin))
		return 0;
	result = pem_model__add_text(d->found, text, bytes, origin, &why);
	is_bad = result < 0;
	if (!is_bad)
		result = pem_session__add_model(d->session, text, bytes, origin, &why);
	if (result >= 0) {
		pem_session__lock(d->session);
		result = add_programs_locations(d->session, text, bytes, origin);
		pem_session__unlock(d->session);
	}
	if (result == -ENOMEM) { /* nothing is wrong with the model */
		d->result = result;
		return result;
	}
	if (result < 0)
		refuse(d, origin, is_bad, *why.text ? why.text : strerror(-result));
	return 0;
}

int pem_session__describe(struct pem_session *session, uint32_t pid, const char *program,
			  struct pem_error *error)
{
	struct describing d = {.session = session};
	int result;

	if (!session)
		return pem_error__set(error, -EINVAL, "no session was given");
	if ((pid == PEM_ANY) == !(program && *program))
		return pem_error__set(
			error, -EINVAL,
			"either a process is described, or a program's file: give one "
			"of both");
	d.found = pem_model__new();
	if (!d.found)
		return pem_error__set(error, -ENOMEM, "out of memory");
	result = pid ? pem_process__models(pid, add_described, &d, error)
		     : pem_program__models(program, add_described, &d, error);
	if (d.result)
		result = pem_error__set(error, d.result, "out of memory for the events of %s",
					program ? program : "a process");
	else if (result >= 0)
		result = (int)pem_model__count(d.found);
	pem_model__free(d.found);
	return result;
}
