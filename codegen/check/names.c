/* SPDX-License-Identifier: MIT */
/*
 * names.c - checks names in programs: of providers (PROVIDER.h, pem_PROVIDER), and of labels
 * (ENUM_LABEL)
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 63u /* the longest name of Fortran */

/*
 * A provider with such a name would have a header that hides one of C's, or a name that pem's own
 * headers and modules have in C, C++ or Fortran.
 */
static const char system_headers[] =
	" aio alloca assert complex ctype dirent dlfcn elf endian errno fcntl features fenv float"
	" glob grp iconv inttypes iso646 jni langinfo libgen limits link locale malloc math memory"
	" netdb poll pthread pwd regex sched search semaphore setjmp signal spawn stdalign stdarg"
	" stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings syscall syslog"
	" termios tgmath threads time uchar unistd utime wchar wctype ";
static const char own_names[] =
	" action char counter detail double enclosed event events float gate hardware int16 int32 "
	"int64 int8 is kmod kprobe kring lane len library lttng packet padded page pem raise "
	"record register "
	"rule session simulated start stream stubs unregister visit ";
/*
 * Macros of gnu11 on some machine, of C headers and of LTTng's. Probes of other tracers take the
 * provider's name as an argument of a macro, which expands it.
 */
static const char macros[] =
	" bool do_tracepoint false hppa i386 linux m68k mips sgi sparc static_assert stderr stdin "
	"stdout sun tracepoint true unix vax ";

struct use {
	char *name; /* enum_label */
	const struct pem_spec_labels *labels;
	const struct pem_spec_label *label;
};

/* Sort by name, then by location. The second of a pair is the wrong one. */
static int compare(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	if (x->label->at.line != y->label->at.line)
		return x->label->at.line < y->label->at.line ? -1 : 1;
	return x->label->at.column < y->label->at.column ? -1 : 1;
}

static char *name_of(const char *labels, const char *label)
{
	char *first = pem_snake_case(labels), *second = pem_snake_case(label);
	char *name = pem_xprintf("%s_%s", first, second);

	free(first);
	free(second);
	return name;
}

static size_t collect(const struct pem_spec *spec, struct use **uses)
{
	const struct pem_spec_labels *labels;
	size_t i, k, count = 0, capacity = 0;

	for (i = 0; i < spec->labels_count; i++)
		capacity += spec->labels[i].count;
	*uses = pem_xrealloc(NULL, capacity + 1, sizeof(**uses));
	for (i = 0; i < spec->labels_count; i++) {
		labels = &spec->labels[i];
		for (k = 0; labels->name && k < labels->count; k++) {
			if (!labels->labels[k].name)
				continue;
			(*uses)[count].name = name_of(labels->name, labels->labels[k].name);
			(*uses)[count].labels = labels;
			(*uses)[count++].label = &labels->labels[k];
		}
	}
	return count;
}

/* Has a program a name of the event that a module or namespace of this name would hide? */
static int is_name_of(const char *provider, const struct pem_spec_event *event)
{
	size_t bytes = strlen(provider);

	if (!event->c_name)
		return 0;
	if (!strncmp(provider, "notify_", 7))
		return !strcmp(provider + 7, event->c_name);
	if (!strncmp(provider, "enabled_", 8))
		return !strcmp(provider + 8, event->c_name);
	/* A class for an interval bears the name of its begin, or a part of it. */
	return bytes > 6 && !strcmp(provider + bytes - 6, "_scope") &&
	       !strncmp(provider, event->c_name, bytes - 6);
}

static void check_event_names(struct pem_spec_set *set, const struct pem_spec *spec)
{
	size_t i;

	for (i = 0; spec->provider && i < spec->event_count; i++) {
		if (is_name_of(spec->provider, &spec->events[i])) {
			pem_spec_set__error(set, spec->path, spec->at,
					    "provider '%s' has the name of a function or class "
					    "that event '%s' becomes: expected another name",
					    spec->provider, spec->events[i].name);
			return;
		}
	}
}

void pem_spec_set__check_provider_name(struct pem_spec_set *set, const struct pem_spec *spec)
{
	char *word = pem_xprintf(" %s ", spec->provider ? spec->provider : "");

	check_event_names(set, spec);
	if (spec->provider && strstr(macros, word))
		pem_spec_set__error(set, spec->path, spec->at,
				    "provider '%s' is a macro of C compilers or headers: "
				    "expected another name",
				    spec->provider);
	else if (spec->provider && strstr(system_headers, word))
		pem_spec_set__error(set, spec->path, spec->at,
				    "the header of provider '%s' would hide <%s.h>: expected "
				    "another name",
				    spec->provider, spec->provider);
	else if (spec->provider && strstr(own_names, word))
		pem_spec_set__error(set, spec->path, spec->at,
				    "provider '%s' would have names that pem's own code has: "
				    "expected another name",
				    spec->provider);
	free(word);
}

void pem_spec_set__check_label_names(struct pem_spec_set *set, const struct pem_spec *spec)
{
	const struct use *earlier;
	struct use *uses;
	size_t count = collect(spec, &uses), i;

	qsort(uses, count, sizeof(*uses), compare);
	for (i = 0; i < count; i++) {
		if (strlen(uses[i].name) > NAME_MAX_BYTES)
			pem_spec_set__error(set, spec->path, uses[i].label->at,
					    "label '%s' of '%s' is called '%s' in programs, and "
					    "Fortran allows %u "
					    "characters: expected a shorter name",
					    uses[i].label->name, uses[i].labels->name, uses[i].name,
					    NAME_MAX_BYTES);
		earlier = i ? &uses[i - 1] : NULL;
		/* Labels of one list that differ only in capitals are already reported. */
		if (earlier && !strcmp(earlier->name, uses[i].name) &&
		    (earlier->labels != uses[i].labels ||
		     strcasecmp(earlier->label->name, uses[i].label->name)))
			pem_spec_set__error(
				set, spec->path, uses[i].label->at,
				"label '%s' of '%s' is called '%s' in programs, like label '%s' of "
				"'%s' in line %d: expected another name",
				uses[i].label->name, uses[i].labels->name, uses[i].name,
				earlier->label->name, earlier->labels->name,
				earlier->label->at.line);
	}
	for (i = 0; i < count; i++)
		free(uses[i].name);
	free(uses);
}
