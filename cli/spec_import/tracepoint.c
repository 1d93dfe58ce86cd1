// SPDX-License-Identifier: MIT
/*
 * tracepoint.c - pem spec import --tracepoint: the kernel's tracepoints, with their actual fields
 *
 * Fields and their types come from tracefs, arguments from BTF. Neither tells how the kernel fills
 * a field from the arguments. That is guessed from names, and the spec says so.
 */
#include "import.h"
#include "btf.h"
#include "labels.h"
#include "tracepoint_format.h"

#include <pem/model.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define STRING_MAX 64 /* for a string whose length the kernel decides at run time */
#define ELEMENTS_MAX 4096
/* Maximum of tracepoints. More take a second and make a spec that is too large. */
#define TRACEPOINTS_MAX 1000u

static const char *const folders[] = {"/sys/kernel/tracing/events",
				      "/sys/kernel/debug/tracing/events"};

struct import {
	FILE *out;
	const char *folder;
	struct import_btf *btf;
	struct cli_names names;
	struct import_sets sets;
	struct pem_model *catalogue;
	struct cli_names members; /* members of kernel structures that expressions use */
	const char *patterns;
	/* Numbers of events: written; in the catalogue; without arguments. */
	size_t events, known, without;
	const char *known_as; /* the first event found in the catalogue */
	struct cli_names systems;
	char provider[IMPORT_PROVIDER_BYTES];
	bool failed;
};

/* Does the kernel decide the length at run time? */
static bool is_long(const struct pem_format_field *field)
{
	return field->is_data_loc || field->is_rel_loc;
}

/* Print the field's type as attributes, and find its shape. False: specs have no such type. */
static bool describe(const struct pem_format_field *field, char *text, size_t bytes,
		     enum import_shape *shape)
{
	bool is_dynamic = is_long(field), is_signed = false;
	unsigned element = field->is_array ? pem_format_field__element_bytes(field, &is_signed) : 0;

	if (field->is_array && strcmp(field->type, "char") == 0) {
		*shape = IMPORT_STRING;
		if (!is_dynamic && (field->size < 2 || field->size > ELEMENTS_MAX))
			return false;
		snprintf(text, bytes, "type='string' max='%u'",
			 is_dynamic ? STRING_MAX : field->size);
	} else if (element != 0 && !is_signed && !is_dynamic && field->size / element > 0 &&
		   field->size / element <= ELEMENTS_MAX) {
		*shape = IMPORT_ARRAY;
		snprintf(text, bytes, "type='array' eltType='uint%u' count='%u'", element * 8,
			 field->size / element);
	} else if (field->is_array || is_dynamic) {
		return false;
	} else if (pem_format_field__is_pointer(field)) {
		*shape = IMPORT_ADDRESS;
		snprintf(text, bytes, "type='address'");
	} else if (field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8) {
		*shape = IMPORT_INTEGER;
		snprintf(text, bytes, "type='%sint%u'%s", field->is_signed ? "" : "u",
			 field->size * 8, strstr(field->name, "flags") != NULL ? " base='16'" : "");
	} else {
		return false;
	}
	return true;
}

/*
 * Print the field's type and labels as attributes. Returns 1; 0: specs have no such type; -ENOMEM.
 */
static int attributes(struct import *in, const struct pem_format_field *field, const char *print,
		      char *text, size_t bytes, enum import_shape *shape)
{
	char labels[64] = "";
	int rc = 0;

	if (!describe(field, text, bytes, shape))
		return 0;
	if (*shape == IMPORT_INTEGER)
		rc = import_print_labels(&in->sets, in->btf, print, field->name, field->size,
					 field->is_signed, labels, sizeof(labels));
	if (rc < 0)
		return rc;
	if (strncmp(labels, " flags=", 7) == 0 && field->is_signed) {
		struct pem_format_field bits = *field;

		bits.is_signed = false;
		describe(&bits, text, bytes, shape);
	}
	snprintf(text + strlen(text), bytes - strlen(text), "%s", labels);
	return 1;
}

/* Note the member that an expression uses. Returns 0 or -ENOMEM. */
static int note_member(struct import *in, const struct import_tracepoint *tp, const char *from)
{
	char structure[80], member[200], text[300];
	int rc;

	if (!import_tracepoint__member(tp, from, structure, sizeof(structure), member,
				       sizeof(member)))
		return 0;
	snprintf(text, sizeof(text), "%s\t%s", structure, member);
	rc = import_take(&in->members, text);
	return rc < 0 ? rc : 0;
}

static int put_field(struct import *in, const struct import_tracepoint *tp,
		     const struct pem_format_field *field, const char *print,
		     struct cli_names *taken)
{
	char name[IMPORT_NAME_BYTES], type[160], from[160];
	enum import_shape shape;
	int rc = attributes(in, field, print, type, sizeof(type), &shape);

	if (rc == 0)
		import_put_comment(in->out, "      ",
				   "%s: the kernel has a '%s%s' of %u bytes, for which specs have "
				   "no type",
				   field->name, field->type, field->is_array ? "[]" : "",
				   field->size);
	if (rc <= 0)
		return rc;
	if (!import_tracepoint__from(tp, field->name, shape, field->size, from, sizeof(from))) {
		import_put_comment(
			in->out, "      ",
			"%s: %s (the kernel's '%s%s'); from='' is to be found: no argument "
			"or member of one has its name",
			field->name, type, field->type, field->is_array ? "[]" : "");
		return 0;
	}
	rc = note_member(in, tp, from);
	if (rc == 0)
		rc = import_field_name(name, sizeof(name), field->name, taken);
	if (rc == 0)
		fprintf(in->out, "      <field name='%s' %s from='%s'/>\n", name, type, from);
	return rc;
}

/* Write the event of one format file, with the data of BTF. */
static int put_event(struct import *in, const char *system, const char *event, FILE *format,
		     const struct import_tracepoint *tp)
{
	struct cli_names taken = {0};
	struct pem_format_field field;
	char *text = NULL, *print;
	unsigned int count = 0;
	const char *line;
	size_t bytes = 0;
	int rc, found;

	if (getdelim(&text, &bytes, '\0', format) < 0 ||
	    (print = strstr(text, "\nprint fmt:")) == NULL) {
		free(text);
		return -EIO;
	}
	*print++ = '\0';
	rc = import_event_begin(in->out, "OS", "detail", system, event, &in->names);
	fprintf(in->out,
		"    <source type='tracepoint' name='%s:%s' arguments='%s'/>\n    <fields>\n",
		system, event, import_tracepoint__arguments(tp));
	line = text;
	while (rc == 0 && count++ < IMPORT_FIELDS_MAX &&
	       (found = pem_format__next(&line, &field)) != 0) {
		if (found > 0)
			rc = put_field(in, tp, &field, print, &taken);
		else
			import_put_comment(in->out, "      ",
					   "a field is left out, whose line in the kernel's format "
					   "file can't be read: %s",
					   field.type);
	}
	fprintf(in->out, "    </fields>\n  </event>\n");
	free(text);
	cli_names__free(&taken);
	in->events++;
	return rc;
}

/*
 * Does the catalogue have the event? If so, this is printed. Returns true if the event is left out:
 * the user did not ask for it by its name.
 */
static bool is_known(struct import *in, const char *system, const char *event)
{
	char tracepoint[256];
	const char *known;
	bool named;

	snprintf(tracepoint, sizeof(tracepoint), "%s:%s", system, event);
	known = import_select__known(in->catalogue, tracepoint);
	if (known == NULL)
		return false;
	named = import_select__match(in->patterns, tracepoint) == IMPORT_NAMED;
	import_put_comment(in->out, "  ", "%s %s: pem has it already, as %s", tracepoint,
			   named ? "follows" : "is left out", known);
	if (named)
		return false;
	if (in->known++ == 0)
		in->known_as = known;
	return true;
}

static void import_event(struct import *in, const char *system, const char *event)
{
	const struct import_tracepoint *tp;
	char path[512];
	FILE *format;
	int rc;

	if (is_known(in, system, event))
		return;
	tp = import_btf__tracepoint(in->btf, event);

	if (tp == NULL || *import_tracepoint__arguments(tp) == '\0') {
		import_put_comment(
			in->out, "  ", "%s:%s is left out: %s", system, event,
			strcmp(system, "syscalls") == 0
				? "it is made of raw_syscalls:sys_enter or sys_exit; take "
				  "those"
				: "the kernel's type information has no arguments of it, "
				  "so no BPF program can be attached");
		in->without++;
		return;
	}
	snprintf(path, sizeof(path), "%s/%s/%s/format", in->folder, system, event);
	format = fopen(path, "re");
	if (format == NULL) {
		in->failed = true;
		cli_error(0, "cannot read %s: %s", path, strerror(errno));
		return;
	}
	rc = put_event(in, system, event, format, tp);
	if (rc < 0) {
		in->failed = true;
		cli_error(0, "cannot import %s: %s", path, strerror(-rc));
	}
	fclose(format);
}

/* List the folders in a folder, sorted. */
static struct cli_names list(const char *path)
{
	struct cli_names names = {0};
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
			continue;
		if (cli_names__add(&names, entry->d_name) < 0)
			break;
	}
	if (dir != NULL)
		closedir(dir);
	cli_names__sort(&names);
	return names;
}

/* Visit each tracepoint that the pattern names. Returns how many. */
static size_t each(struct import *in,
		   void (*visit)(struct import *in, const char *system, const char *event))
{
	struct cli_names events;
	size_t i, k, count = 0;
	const char *system;
	char path[512];

	for (i = 0; i < in->systems.count; i++) {
		system = in->systems.names[i];
		snprintf(path, sizeof(path), "%s/%s", in->folder, system);
		events = list(path);
		for (k = 0; k < events.count; k++) {
			snprintf(path, sizeof(path), "%s:%s", system, events.names[k]);
			if (import_select__match(in->patterns, path) == IMPORT_NO_MATCH)
				continue;
			count++;
			visit(in, system, events.names[k]);
		}
		cli_names__free(&events);
	}
	return count;
}

/* The spec has the name of the tracepoints' system, if they have one in common. */
static void note_system(struct import *in, const char *system, const char *event)
{
	char provider[IMPORT_PROVIDER_BYTES];

	(void)event;
	import_provider(provider, system);
	if (*in->provider == '\0')
		memcpy(in->provider, provider, sizeof(provider));
	else if (strcmp(in->provider, provider) != 0)
		snprintf(in->provider, sizeof(in->provider), "tracepoints");
}

static int open_catalogue(struct import *in)
{
	struct pem_error error = {""};

	in->catalogue = pem_model__new();
	if (in->catalogue == NULL || pem_model__add_catalogue(in->catalogue, &error) < 0)
		return cli_error(CLI_FAILED, "cannot read the catalogue: %s",
				 *error.text != '\0' ? error.text : "no memory");
	return CLI_DONE;
}

static int open_kernel(struct import *in)
{
	size_t i;

	for (i = 0; i < 2 && in->systems.count == 0; i++) {
		in->folder = folders[i];
		in->systems = list(folders[i]);
	}
	if (in->systems.count == 0)
		return cli_error(CLI_NOT_HERE,
				 geteuid() == 0
					 ? "cannot read %s: tracefs, which describes the kernel's "
					   "tracepoints, is not mounted; mount -t tracefs none "
					   "/sys/kernel/tracing"
					 : "cannot read %s: tracefs, which describes the kernel's "
					   "tracepoints, is not mounted, or for root only; run as "
					   "root (sudo), or have it mounted with -o gid=GROUP, "
					   "GROUP being one of yours",
				 folders[0]);
	in->btf = import_btf__open();
	if (in->btf == NULL)
		return cli_error(
			CLI_NOT_HERE,
			"cannot read the kernel's type information, /sys/kernel/btf/vmlinux: "
			"%s; a kernel with CONFIG_DEBUG_INFO_BTF has it",
			strerror(errno));
	return CLI_DONE;
}

static void put_head(struct import *in, const char *pattern, FILE *out)
{
	struct utsname kernel;
	char how[256];

	uname(&kernel);
	snprintf(how, sizeof(how), "Tracepoints %.150s of Linux %s.", pattern, kernel.release);
	import_begin(out, in->provider, how);
	import_put_comment(
		out, "",
		"Each from='' is guessed from names: compare it with what the tracepoint's "
		"TP_fast_assign in the kernel's include/trace/events does.");
	import_put_comment(
		out, "",
		"To record these events, put this file into spec/os of pem's source tree "
		"and run make: kernel programs are compiled from specs there.");
	import_put_members(out, &in->members);
}

static int import_all(struct import *in, const char *pattern)
{
	size_t count = each(in, note_system);

	if (count > TRACEPOINTS_MAX)
		return cli_error(
			CLI_WRONG_INPUT,
			"'%.150s' names %zu tracepoints: expected at most %u in one spec, such "
			"as those of one system, 'sched:*'",
			pattern, count, TRACEPOINTS_MAX);
	if (count == 0)
		return cli_error(CLI_WRONG_INPUT,
				 "no tracepoint is named '%.150s': ls %s shows the systems, and a "
				 "pattern is SYSTEM:EVENT, such as 'sched:*'",
				 pattern, in->folder);
	if (import_select__take_names(in->catalogue, &in->names) < 0)
		return cli_error(CLI_FAILED, "no memory");
	each(in, import_event);
	if (in->failed)
		return CLI_FAILED;
	if (in->events == 0 && in->known > 0)
		return cli_error(
			CLI_WRONG_INPUT,
			"pem has all that can be attached to of '%.150s' already, such as %s: pem "
			"list shows its events; a tracepoint named without wildcards is "
			"imported all the same",
			pattern, in->known_as);
	if (in->events == 0)
		return cli_error(
			CLI_NOT_HERE,
			"none of the %zu tracepoints that '%.150s' names has arguments in the "
			"kernel's type information (BTF): %s",
			in->without, pattern,
			strncmp(pattern, "syscalls", 8) == 0
				? "system calls are seen by 'raw_syscalls:*'"
				: "no BPF program can be attached to them");
	return CLI_DONE;
}

/* Events name their labels, which come before them. So both are kept until all are known. */
int cli_import_tracepoint(const char *pattern, FILE *out)
{
	char *labels = NULL, *events = NULL;
	size_t label_bytes, event_bytes;
	struct import in = {.out = open_memstream(&events, &event_bytes),
			    .sets.out = open_memstream(&labels, &label_bytes),
			    .patterns = pattern};
	int status = CLI_FAILED;

	if (in.out != NULL && in.sets.out != NULL) {
		status = open_catalogue(&in);
		if (status == CLI_DONE)
			status = open_kernel(&in);
		if (status == CLI_DONE)
			status = import_all(&in, pattern);
	}
	if ((in.out != NULL && fclose(in.out) != 0) ||
	    (in.sets.out != NULL && fclose(in.sets.out) != 0) || events == NULL || labels == NULL)
		status = cli_error(CLI_FAILED, "no memory");
	if (status == CLI_DONE) {
		put_head(&in, pattern, out);
		fprintf(out, "%s%s</spec>\n", labels, events);
	}
	free(labels);
	free(events);
	import_sets__free(&in.sets);
	import_btf__free(in.btf);
	cli_names__free(&in.names);
	cli_names__free(&in.members);
	pem_model__free(in.catalogue);
	cli_names__free(&in.systems);
	return status;
}
