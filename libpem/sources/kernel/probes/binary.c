/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * binary.c - functions and static probes of programs and libraries as probes: uprobe, uretprobe,
 * usdt
 *
 *	uprobe:PATH:FUNCTION[+OFFSET]   uretprobe:PATH:FUNCTION   usdt:PATH:[PROVIDER:]NAME
 *	uprobe:PATH:0xADDRESS           uretprobe:PATH:0xADDRESS
 *
 * A static probe may be at many places, each with other argument locations. All of its places
 * together are one event.
 *
 * Not here: functions, and instructions by their address (code.c).
 */
#define _GNU_SOURCE
#include "search.h"

#include "names/probing.h"
#include "sources/kernel/base/base.h"
#include "util.h"

#include <pem/names.h>

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- finding a binary --- */

static char *in_folders(const char *name, const char *folders)
{
	char path[PATH_MAX], *real = NULL;
	size_t n;

	for (; !real && *folders; folders += n + (folders[n] == ':')) {
		n = strcspn(folders, ":");
		if (n && snprintf(path, sizeof(path), "%.*s/%s", (int)n, folders, name) <
				 (int)sizeof(path))
			real = realpath(path, NULL);
	}
	return real;
}

char *pem_binary__path(const char *name)
{
	static const char libraries[] =
#if defined(__x86_64__)
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
#elif defined(__aarch64__)
		"/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
#endif
		"/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib";
	const char *path = getenv("PATH");
	char *found;

	if (strchr(name, '/'))
		return realpath(name, NULL);
	if (strstr(name, ".so")) {
		found = in_folders(name, secure_getenv("LD_LIBRARY_PATH") ?: "");
		return found ? found : in_folders(name, libraries);
	}
	return in_folders(name, path ? path : "/usr/bin:/bin");
}

/* --- probes --- */

int pem_search__add_site(struct pem_probe *probe, const struct pem_probe_site *site)
{
	struct pem_probe_site *grown;

	if (probe->site_count == PEM_PROBE_SITES_MAX)
		return -E2BIG;
	grown = realloc(probe->sites, (probe->site_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	probe->sites = grown;
	grown[probe->site_count++] = *site;
	return 0;
}

struct pem_probe *pem_search__add_probe(struct pem_search *s, const char *name,
					const char *specifier, const char *description)
{
	struct pem_probe **grown, *probe;

	if (s->count == PEM_SEARCH_PROBES_MAX) {
		errno = E2BIG;
		return NULL;
	}
	errno = ENOMEM;
	grown = realloc(s->probes, (s->count + 1) * sizeof(struct pem_probe *));
	if (!grown)
		return NULL;
	s->probes = grown;
	probe = pem_probe__new(s->kind, name, "APP", s->class_name, specifier);
	if (!probe)
		return NULL;
	probe->path = strdup(s->path);
	probe->binary = strdup(s->shown);
	probe->file = s->file;
	probe->description = strdup(description);
	if (!probe->path || !probe->binary || !probe->description) {
		pem_probe__free(probe);
		return NULL;
	}
	return grown[s->count++] = probe;
}

struct pem_probe *pem_search__find_probe(const struct pem_search *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		if (!strcmp(s->probes[i]->name, name))
			return s->probes[i];
	}
	return NULL;
}

/* --- static probes --- */

/*
 * Merge what one place tells of argument i into its field. The widest size counts. An argument that
 * can't be read is not a field.
 */
static void merge_argument(struct pem_probe_field *field, int known,
			   const struct pem_usdt_argument *argument)
{
	if (known < 0 || !field->bytes) {
		field->bytes = 0;
	} else if (argument->bytes > field->bytes ||
		   (argument->bytes == field->bytes && argument->is_signed)) {
		pem_probe_field__set_number(field, argument->bytes, argument->is_signed);
	}
}

/*
 * For an argument that is a variable: compute its distance from the instruction, which does not
 * depend on where the binary is in memory.
 */
static int find_variable(const struct pem_search *s, const struct pem_elf_note *note,
			 struct pem_usdt_argument *argument)
{
	uint64_t address;

	if (!argument->symbol)
		return 1;
	if (pem_elf__address(s->fd, argument->symbol, argument->symbol_bytes, &address))
		return -EINVAL;
	argument->location.constant =
		(int64_t)((uint64_t)argument->location.constant + address - note->address);
	return 1;
}

/* Add a field for argument i. The first place of a probe has this argument. */
static int add_argument(struct pem_probe *probe, unsigned i, int known,
			const struct pem_usdt_argument *argument)
{
	struct pem_probe_field *field;
	char name[16];

	snprintf(name, sizeof(name), "arg%u", i);
	field = pem_probe__add_field(probe, name);
	if (!field)
		return -ENOMEM;
	field->argument = (uint8_t)i;
	if (known > 0)
		pem_probe_field__set_number(field, argument->bytes, argument->is_signed);
	return 0;
}

/*
 * Read all arguments of a place. An argument that only some places have is not a field, because it
 * would read as 0 at the others.
 */
static int take_arguments(const struct pem_search *s, struct pem_probe *probe,
			  struct pem_probe_site *site, const struct pem_elf_note *note)
{
	const char *text = note->arguments;
	bool first = !probe->site_count;
	struct pem_usdt_argument argument;
	int known = 1, rc = 0;
	unsigned i;

	for (i = 0; i < PEM_USDT_ARGUMENTS_MAX && !rc; i++) {
		known = pem_usdt_argument__next(&text, &argument);
		if (!known)
			break;
		if (known > 0)
			known = find_variable(s, note, &argument);
		if (known > 0)
			site->arguments[i] = argument.location;
		if (first)
			rc = add_argument(probe, i, known, &argument);
		else if (i < probe->field_count)
			merge_argument(&probe->fields[i], known, &argument);
	}
	for (; i < probe->field_count; i++)
		probe->fields[i].bytes = 0;
	return rc;
}

static int found_note(void *arg, const struct pem_elf_note *note)
{
	struct pem_probe_site site = {.offset = note->offset, .semaphore = note->semaphore};
	char name[PATH_MAX + 256], specifier[300], description[500];
	struct pem_search *s = arg;
	struct pem_probe *probe;
	int rc;

	if (s->offering) {
		pem_probe_near__offer(&s->near, note->name);
		return 0;
	}
	if ((*s->provider && fnmatch(s->provider, note->provider, FNM_NOESCAPE) != 0) ||
	    fnmatch(s->name, note->name, FNM_NOESCAPE) != 0)
		return 0;
	snprintf(name, sizeof(name), "usdt:%s:%.100s:%.100s", s->shown, note->provider, note->name);
	snprintf(specifier, sizeof(specifier), "%.100s__%.100s", note->provider, note->name);
	snprintf(description, sizeof(description), "the static probe %.100s of %.100s in %.100s",
		 note->name, note->provider, s->shown);
	probe = pem_search__find_probe(s, name);
	if (!probe)
		probe = pem_search__add_probe(s, name, specifier, description);
	if (!probe)
		return -errno;
	rc = take_arguments(s, probe, &site, note);
	return rc ? rc : pem_search__add_site(probe, &site);
}

/* Remove fields that can't be read at every place. */
static void drop_unreadable(struct pem_probe *probe)
{
	unsigned i, kept = 0;

	for (i = 0; i < probe->field_count; i++) {
		if (probe->fields[i].bytes)
			probe->fields[kept++] = probe->fields[i];
	}
	probe->field_count = kept;
}

/* --- searching --- */

/*
 * Parse "PATH:PROVIDER:NAME", "PATH:NAME", "PATH:FUNCTION+OFFSET", "PATH:0xADDRESS". A path can't
 * have colons.
 */
static int parse(struct pem_search *s, char *rest)
{
	char *colon = strrchr(rest, ':'), *plus, *end;

	s->provider = "";
	if (!colon || colon == rest || !colon[1])
		return -EINVAL;
	*colon = '\0';
	s->name = colon + 1;
	if (s->kind == PEM_PROBE_USDT) {
		colon = strchr(rest, ':');
		if (colon) {
			*colon = '\0';
			s->provider = colon + 1;
		}
		return *rest ? 0 : -EINVAL;
	}
	s->by_address = !strncmp(s->name, "0x", 2);
	if (s->by_address) {
		errno = 0;
		s->address = strtoull(s->name, &end, 16);
		return errno || *end || end - s->name > 18 ? -EINVAL : 0;
	}
	plus = strchr(s->name, '+');
	if (plus) {
		pem_copy_text(s->plus, sizeof(s->plus), plus);
		*plus = '\0';
		s->offset = strtoull(plus + 1, &end, 0);
		if (*end || end == plus + 1 || s->kind != PEM_PROBE_UPROBE)
			return -EINVAL;
	}
	return 0;
}

/* Report that nothing was found. There are too many functions to list them. */
static int say_none(struct pem_search *s)
{
	char did_you[160];
	const char *near = pem_probe_near__say(&s->near, did_you, sizeof(did_you));

	if (s->kind != PEM_PROBE_USDT)
		return pem_error__set(s->error, -ENOENT, "%s has no function '%.100s'%s", s->shown,
				      s->name, near);
	if (!s->near.edits) /* no similar name was found */
		return pem_error__set(s->error, -ENOENT, "%s has no static probes", s->shown);
	if (*near)
		return pem_error__set(s->error, -ENOENT, "%s has no static probe '%.100s'%s",
				      s->shown, s->name, near);
	return pem_error__set(s->error, -ENOENT,
			      "%.120s has no static probe '%.100s'; pem list 'usdt:%.120s:*' "
			      "shows what it has",
			      s->shown, s->name, s->shown);
}

static int say_why(struct pem_search *s, int rc)
{

	switch (rc) {
	case -ENOEXEC:
		return pem_error__set(s->error, -EINVAL,
				      "%s is no program or library, or is damaged: expected an ELF "
				      "file",
				      s->shown);
	case -EXDEV:
		return pem_error__set(s->error, -EINVAL, "%s is a program for another kind of CPU",
				      s->shown);
	case -E2BIG:
		return pem_error__set(s->error, rc,
				      "that names more than %u probes of %s, or more than %u "
				      "places of one: expected fewer",
				      PEM_SEARCH_PROBES_MAX, s->shown, PEM_PROBE_SITES_MAX);
	case -ENOENT:
		return say_none(s);
	case -ENOTSUP:
	case -EINVAL:
		return rc; /* the error has a sentence already */
	default:
		return pem_error__set(s->error, rc, "can't read %s: %s", s->shown, strerror(-rc));
	}
}

static int walk(struct pem_search *s, const char *only)
{
	int rc = pem_elf__is_for_here(s->fd);

	if (rc)
		return rc;
	if (s->kind == PEM_PROBE_USDT)
		return pem_elf__each_note(s->fd, found_note, s);
	return s->by_address ? pem_search__find_address(s)
			     : pem_elf__each_function(s->fd, s->debug_fd, only,
						      pem_search__found_function, s);
}

/* Open what is known of the file besides. Without it functions are found by the file alone. */
static void open_object(struct pem_search *s)
{
	const struct pem_object_query query = {.size = sizeof(query), .path = s->path};
	struct pem_error ignored;
	const char *debug;

	s->object = pem_object__open(&query, &ignored);
	debug = s->object ? pem_object__debug_path(s->object) : NULL;
	s->debug_fd = debug ? open(debug, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
}

static int search(struct pem_search *s)
{
	int rc;

	s->literal = !strpbrk(s->name, "*?[");
	s->near.wanted = s->name;
	s->debug_fd = -1;
	s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
	/*
	 * fstat comes before the file is read: if the file is changed meanwhile, it counts as
	 * another file.
	 */
	rc = s->fd < 0 || fstat(s->fd, &s->file) ? -errno : 0;
	if (!rc && s->kind != PEM_PROBE_USDT)
		open_object(s);
	rc = rc ? rc : walk(s, s->literal ? s->name : NULL);
	if (!rc && !s->count) {
		s->offering = true;
		rc = walk(s, NULL);
		rc = rc ? rc : -ENOENT;
	}
	if (s->fd >= 0)
		close(s->fd);
	if (s->debug_fd >= 0)
		close(s->debug_fd);
	pem_object__close(s->object);
	return rc ? say_why(s, rc) : 0;
}

int pem_probe__find_in_binary(enum pem_probe_kind kind, const char *rest, pem_probe_found found,
			      void *arg, struct pem_error *error)
{
	struct pem_search s = {.kind = kind, .error = error};
	char *copy = strdup(rest), *path = NULL;
	const char *slash;
	size_t i;
	int rc = copy ? parse(&s, copy) : -ENOMEM;

	if (rc) {
		pem_error__set(error, rc,
			       "'%.100s': expected %s:PATH:%s, PATH being a program or library",
			       rest, pem_probe_kind__word(kind),
			       kind == PEM_PROBE_USDT     ? "[PROVIDER:]NAME"
			       : kind == PEM_PROBE_UPROBE ? "FUNCTION[+OFFSET] or 0xADDRESS"
							  : "FUNCTION or 0xADDRESS");
		goto out;
	}
	path = pem_binary__path(copy);
	if (!path) {
		rc = pem_error__set(error, -ENOENT, "there is no program or library '%.200s'",
				    copy);
		goto out;
	}
	slash = strrchr(copy, '/');
	s.path = path;
	s.shown = copy;
	/*
	 * The class is the written path's name, because a link may lead to a file of another name.
	 */
	s.class_name = slash ? slash + 1 : copy;
	rc = search(&s);
	for (i = 0; i < s.count; i++) {
		drop_unreadable(s.probes[i]);
		if (rc)
			pem_probe__free(s.probes[i]);
		else
			rc = found(arg, s.probes[i]);
	}
	if (!rc)
		rc = (int)s.count;
out:
	free(s.probes);
	free(path);
	free(copy);
	return rc;
}
