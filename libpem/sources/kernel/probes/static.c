/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * static.c - events of specs that come from static probes and functions of binaries: finds the
 * place in a binary here, and makes its arguments the fields
 *
 * A spec names a binary by its path. It uses the name alone if distributions install it in
 * different folders. Such a binary is searched first among running programs, then where programs
 * and libraries are, then in folders that servers are installed into. The first one that has the
 * probe is used. So of several versions of a server, one that runs is used.
 */
#define _GNU_SOURCE
#include "probes.h"

#include "sources/kernel/base/base.h"
#include "util.h"

#include <pem/record_layout.h>

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOUND_HOLDS_NS 100000000

/*
 * Does the path lead to the file that the process runs? In another mount namespace it does not, nor
 * after the file was replaced. And does the file belong to root or the caller? Any user may run a
 * program of any name, but must not decide thereby what is recorded.
 */
static bool is_trusted(const char *link, const char *path)
{
	struct stat runs, here;

	return !stat(link, &runs) && !stat(path, &here) && runs.st_dev == here.st_dev &&
	       runs.st_ino == here.st_ino && (here.st_uid == 0 || here.st_uid == geteuid()) &&
	       !access(path, R_OK);
}

/* The executable of a process that runs a program of this name. NULL: there is none. */
static char *running(const char *name)
{
	DIR *processes = opendir("/proc");
	char link[300], path[PATH_MAX], *slash, *found = NULL;
	struct dirent *entry;
	ssize_t bytes;

	while (processes && !found && (entry = readdir(processes))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		snprintf(link, sizeof(link), "/proc/%s/exe", entry->d_name);
		bytes = readlink(link, path, sizeof(path) - 1);
		if (bytes <= 0)
			continue;
		path[bytes] = '\0';
		slash = strrchr(path, '/');
		if (slash && !strcmp(slash + 1, name) && is_trusted(link, path))
			found = strdup(path);
	}
	if (processes)
		closedir(processes);
	return found;
}

/* The newest version, by its name, of those installed in folders of their own. */
static char *installed(const char *name)
{
	static const char *const folders[] = {"/usr/lib/*/*/bin", "/usr/local/*/bin", "/opt/*/bin"};
	char pattern[PATH_MAX], *found = NULL;
	glob_t matches;
	size_t i;

	for (i = 0; i < PEM_ARRAY_SIZE(folders) && !found; i++) {
		snprintf(pattern, sizeof(pattern), "%s/%s", folders[i], name);
		if (glob(pattern, 0, NULL, &matches))
			continue;
		if (matches.gl_pathc)
			found = strdup(matches.gl_pathv[matches.gl_pathc - 1]);
		globfree(&matches);
	}
	return found;
}

static char *search(const char *name)
{
	char *path = running(name);

	if (!path)
		path = pem_binary__path(name);
	return path ? path : installed(name);
}

/*
 * What was found of a name a moment ago: pem list asks for the same server once for each of its
 * probes. Without it, each would walk /proc.
 */
static struct {
	char name[64], path[PATH_MAX]; /* path "": there was none */
	uint64_t until_ns;
} last;
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;

static char *binary_of(const char *name)
{
	uint64_t now_ns = pem_kernel__now_ns();
	char *path;

	if (strchr(name, '/'))
		return realpath(name, NULL);
	/* At exit, or after a fork, another thread may hold the lock for good. */
	if (strlen(name) >= sizeof(last.name) || pthread_mutex_trylock(&last_lock))
		return search(name);
	if (strcmp(last.name, name) != 0 || now_ns >= last.until_ns) {
		path = search(name);
		pem_copy_text(last.path, sizeof(last.path), path ? path : "");
		free(path);
		strcpy(last.name, name);
		last.until_ns = pem_kernel__now_ns() + FOUND_HOLDS_NS;
	}
	path = *last.path ? strdup(last.path) : NULL;
	pthread_mutex_unlock(&last_lock);
	return path;
}

static int keep(void *arg, struct pem_probe *probe)
{
	struct pem_probe **kept = arg;

	pem_probe__free(*kept);
	*kept = probe;
	return 0;
}

/* Find the probe of one alternative. NULL: it is not here, with a sentence in reason. */
static struct pem_probe *find_source(enum pem_probe_kind kind, const char *binary, const char *name,
				     struct pem_error *reason)
{
	char *path = binary_of(binary), *rest = NULL;
	struct pem_probe *probe = NULL;

	if (!path) {
		pem_error__set(
			reason, 0,
			"there is no %s here, whose %s %s it is: start it, or put it into PATH",
			binary, kind == PEM_PROBE_USDT ? "static probe" : "function", name);
		return NULL;
	}
	if (asprintf(&rest, "%s:%s", path, name) < 0)
		rest = NULL;
	if (rest)
		pem_probe__find_in_binary(kind, rest, keep, &probe, reason);
	free(rest);
	free(path);
	return probe;
}

/* Can this argument be read at each place of the probe? */
static bool is_told(const struct pem_probe *probe, unsigned argument)
{
	size_t i;

	for (i = 0; i < probe->site_count; i++) {
		if (argument >= PEM_USDT_ARGUMENTS_MAX ||
		    probe->sites[i].arguments[argument].kind == PEM_LOCATION_NONE)
			return false;
	}
	return true;
}

/* Add a field of the event, without its location. NULL with reason. */
static struct pem_probe_field *add_field(struct pem_probe *probe, const struct pem_field *from,
					 struct pem_error *reason)
{
	unsigned bytes =
		from->type == PEM_TYPE_STRING ? 8 : (unsigned)pem_layout_type_bytes(from->type);
	struct pem_probe_field *to = bytes ? pem_probe__add_field(probe, from->name) : NULL;

	if (!to) {
		pem_error__set(reason, -1, "%s has no room for field %s", probe->name, from->name);
		return NULL;
	}
	pem_probe_field__set_number(to, bytes,
				    from->type >= PEM_TYPE_INT8 && from->type <= PEM_TYPE_INT64);
	to->type = from->type;
	to->element_type = from->element_type;
	to->max_count = from->max_count;
	to->is_user_string = from->type == PEM_TYPE_STRING;
	return to;
}

/* Replace the probe's fields by those of the event. Returns 0, or -errno with reason. */
static int set_fields(struct pem_probe *probe, const struct pem_event *event,
		      const uint8_t *arguments, struct pem_error *reason)
{
	const struct pem_field *from;
	struct pem_probe_field *to;
	unsigned i;

	if (event->field_count > PEM_PROBE_FIELDS_MAX)
		return pem_error__set(reason, -1, "%s has more than %u fields", event->name,
				      PEM_PROBE_FIELDS_MAX);
	probe->field_count = 0;
	for (i = 0; i < event->field_count; i++) {
		from = &event->fields[i];
		if (!is_told(probe, arguments[i]))
			return pem_error__set(reason, -1,
					      "%s does not tell field %s where pem could read it",
					      probe->name, from->name);
		to = add_field(probe, from, reason);
		if (!to)
			return -1;
		to->argument = arguments[i];
	}
	return 0;
}

struct pem_probe *pem_probe__of_static(const struct pem_event *event, struct pem_error *reason)
{
	const struct pem_kernel_static *row = pem_kernel__static(event->id);
	struct pem_probe *probe = NULL;
	unsigned i;

	if (!row)
		pem_error__set(
			reason, 0,
			"%s: this build does not know its arguments: add its spec to spec/app "
			"and build anew, or name the probe itself, usdt:PATH:%.100s",
			event->name, event->source_name);
	for (i = 0; row && i < row->source_count && !probe; i++) {
		probe = find_source(PEM_PROBE_USDT, row->sources[i].binary, row->sources[i].probe,
				    reason);
		if (probe && set_fields(probe, event, row->sources[i].arguments, reason)) {
			pem_probe__free(probe);
			probe = NULL;
		}
	}
	return probe;
}

/* --- functions --- */

static const struct pem_probe_field *field_named(const struct pem_probe *probe, const char *name)
{
	unsigned i;

	for (i = 0; i < probe->field_count; i++) {
		if (!strcmp(probe->fields[i].name, name))
			return &probe->fields[i];
	}
	return NULL;
}

/* The number of the register that "arg0" and so on names. PEM_PROBE_REGISTERS: it names none. */
static unsigned register_named(const char *name)
{
	bool is_one = !strncmp(name, "arg", 3) && name[3] >= '0' && !name[4];

	return is_one && name[3] < '0' + (int)PEM_PROBE_REGISTERS ? (unsigned)(name[3] - '0')
								  : PEM_PROBE_REGISTERS;
}

/* Can the field hold each value of the parameter? */
static bool can_hold(const struct pem_probe_field *field, const struct pem_probe_field *parameter)
{
	bool is_pointer = parameter->type == PEM_TYPE_STRING || parameter->type == PEM_TYPE_ADDRESS;

	if (field->type == PEM_TYPE_STRING)
		return is_pointer;
	if (field->is_signed == parameter->is_signed)
		return field->bytes >= parameter->bytes;
	return field->is_signed && field->bytes > parameter->bytes;
}

/* Set where a field is: in a parameter, or else a register, of this name. 0, or -1 with reason. */
static int set_parameter(struct pem_probe_field *field, const struct pem_probe *found,
			 const char *name, struct pem_error *reason)
{
	const struct pem_probe_field *parameter = field_named(found, name);
	unsigned number = register_named(name);

	/* Registers as fields have no type: that of the event's field counts. */
	if (parameter && parameter->location.bytes) {
		field->location = parameter->location;
		return can_hold(field, parameter)
			       ? 0
			       : pem_error__set(reason, -1,
						"%s: field %s can't hold each value of parameter "
						"%s, which has %u bytes and %s sign",
						found->name, field->name, name, parameter->bytes,
						parameter->is_signed ? "a" : "no");
	}
	if (number < PEM_PROBE_REGISTERS && !found->is_32bit) {
		field->location =
			(struct pem_argument_location){.kind = PEM_LOCATION_CONTEXT,
						       .load_bytes = 8,
						       .offset = pem_register__argument(number)};
		return 0;
	}
	return pem_error__set(reason, -1,
			      "%s has no parameter '%s' that can be read, for field %s%s%s",
			      found->name, name, field->name, found->trouble ? ": without " : "",
			      found->trouble ? found->trouble : "");
}

/* Replace the probe's fields by those of the event; names: of their parameters, parted by ','. */
static int set_parameters(struct pem_probe *probe, const struct pem_event *event, char *names,
			  struct pem_error *reason)
{
	struct pem_probe *found = malloc(sizeof(*found));
	struct pem_probe_field *to = NULL;
	char *name;
	unsigned i;
	int rc = found ? 0 : pem_error__set(reason, -1, "out of memory");

	if (!rc)
		*found = *probe;
	probe->field_count = 0;
	for (i = 0; i < event->field_count && !rc; i++) {
		name = strsep(&names, ",");
		if (!name)
			rc = pem_error__set(reason, -1, "%s has more fields than '%.100s' names",
					    event->name, event->source_name);
		to = rc ? NULL : add_field(probe, &event->fields[i], reason);
		rc = to ? set_parameter(to, found, name, reason) : -1;
	}
	free(found);
	/* All that the event has was found. */
	free(probe->trouble);
	probe->trouble = NULL;
	return rc;
}

/* Find one alternative, "uprobe:BINARY:FUNCTION(PARAMETER,...)". NULL with reason. */
static struct pem_probe *find_alternative(char *text, const struct pem_event *event,
					  struct pem_error *reason)
{
	char *binary = strchr(text, ':'), *names = strchr(text, '('), *name = NULL, *end;
	struct pem_probe *probe;

	if (binary && names)
		name = strchr(binary + 1, ':');
	end = names ? strchr(names, ')') : NULL;
	if (!name || name > names || !end) {
		pem_error__set(reason, -1, "%s: '%.100s' does not name a function", event->name,
			       text);
		return NULL;
	}
	*name = *names = *end = '\0';
	probe = find_source(PEM_PROBE_UPROBE, binary + 1, name + 1, reason);
	if (probe && set_parameters(probe, event, names + 1, reason)) {
		pem_probe__free(probe);
		probe = NULL;
	}
	return probe;
}

struct pem_probe *pem_probe__of_function(const struct pem_event *event, struct pem_error *reason)
{
	char *copy = strdup(event->source_name), *rest = copy, *text;
	struct pem_probe *probe = NULL;

	pem_error__set(reason, -1, "out of memory");
	while (!probe && (text = strsep(&rest, "|")) != NULL)
		probe = find_alternative(text, event, reason);
	free(copy);
	return probe;
}
