// SPDX-License-Identifier: MIT
/*
 * import.c - pem spec import: makes a spec to edit from what this machine has, and writes its XML
 */
#include "import.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The name of what a kind needs, if pem was built without it. See cli/build.mk. */
#ifndef PEM_IMPORT_HAS_BPF
#define cli_import_tracepoint NULL
#endif
#ifndef PEM_IMPORT_HAS_ELF
#define cli_import_usdt NULL
#endif
#ifndef PEM_IMPORT_HAS_PFM
#define cli_import_pfm NULL
#endif

/* Codes of the options. A kind without a function lacked something when pem was built. */
enum { OPT_TRACEPOINT = 256, OPT_USDT, OPT_LTTNG, OPT_PFM };

static const struct {
	int option;
	int (*print)(const char *pattern, FILE *out);
	const char *needs;
} kinds[] = {
	{OPT_TRACEPOINT, cli_import_tracepoint, "libbpf 1.0 or newer (libbpf-dev)"},
	{OPT_USDT, cli_import_usdt, "libelf (libelf-dev)"},
	{OPT_LTTNG, cli_import_lttng, ""},
	{OPT_PFM, cli_import_pfm, "libpfm4 (libpfm4-dev)"},
};
#define SPEC_BYTES_MAX (1u << 20) /* as in pem-codegen */
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct cli_option options[] = {
	{OPT_TRACEPOINT, "tracepoint", "GLOB[,GLOB]...",
	 "Kernel tracepoints, such as 'sched:*', but those that pem has already only by their "
	 "whole name. Needs root, and to be recorded the spec is built into pem: put it into "
	 "spec/os and run make."},
	{OPT_USDT, "usdt", "BINARY",
	 "Static probes (systemtap-sdt) of a program or library. To be recorded by these names the "
	 "spec is built into pem: put it into spec/app and run make. 'pem record -e "
	 "usdt:BINARY:NAME' needs no spec."},
	{OPT_PFM, "pfm", "GLOB",
	 "Counters that libpfm4 names, such as 'perf::*FAULT*', of any processor."},
	{OPT_LTTNG, "lttng", "PROVIDER",
	 "Tracepoints of a running program with LTTng-UST. Needs lttng-tools."},
	{'o', "output", "FILE", "File to write. Default: standard output."},
	{0},
};

static const struct cli_verb verb = {
	.name = "spec import",
	.summary = "a spec to edit, from what this machine has",
	.usage = "spec import --tracepoint GLOB[,GLOB]... [-o FILE]\n"
		 "spec import --usdt BINARY [-o FILE]\n"
		 "spec import --lttng PROVIDER [-o FILE]\n"
		 "spec import --pfm GLOB [-o FILE]",
	.text = "Prints a spec with the events that this machine has, with their fields and types. "
		"It is "
		"valid as it is, and meant to be edited: descriptions and units are missing, and "
		"pem spec "
		"check lists them. What could not be found out is in comments.",
	.examples = "pem spec import --tracepoint 'block:*' -o block.xml\n"
		    "pem spec import --usdt /usr/bin/python3.11\n"
		    "pem spec import --pfm 'amd64_fam19h_zen3::RETIRED_*'",
	.options = options,
};

static int write_file(const char *file, const char *text, size_t bytes)
{
	FILE *f = file != NULL ? fopen(file, "we") : stdout;

	if (f == NULL)
		return cli_error(CLI_WRONG_INPUT, "cannot write %s: %s", file, strerror(errno));
	fwrite(text, 1, bytes, f);
	if (file == NULL)
		return cli_finish_output(CLI_DONE);
	if (fclose(f) != 0)
		return cli_error(CLI_FAILED, "cannot write %s: %s", file, strerror(errno));
	return CLI_DONE;
}

static int import(size_t kind, const char *pattern, const char *file)
{
	char *text = NULL;
	size_t bytes;
	FILE *out;
	int status;

	if (kinds[kind].print == NULL)
		return cli_error(
			CLI_NOT_HERE,
			"this pem was built without %s, which this import needs: install it "
			"and build pem again",
			kinds[kind].needs);
	out = open_memstream(&text, &bytes);
	if (out == NULL)
		return cli_error(CLI_FAILED, "no memory");
	status = kinds[kind].print(pattern, out);
	if (fclose(out) != 0 && status == CLI_DONE)
		status = cli_error(CLI_FAILED, "no memory");
	if (status == CLI_DONE && bytes > SPEC_BYTES_MAX)
		status =
			cli_error(CLI_WRONG_INPUT,
				  "what '%s' names makes a spec of %zu bytes, and one may have %u: "
				  "import it in parts",
				  pattern, bytes, SPEC_BYTES_MAX);
	if (status == CLI_DONE)
		status = write_file(file, text, bytes);
	free(text);
	return status;
}

int cli_spec_import(int argc, char **argv)
{
	const char *pattern = NULL, *file = NULL;
	size_t kind = 0, i;
	int code;

	while ((code = cli_option__next(&verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == 'o') {
			file = optarg;
			continue;
		}
		if (pattern != NULL)
			return cli_usage_error(&verb, "one thing at a time can be imported");
		pattern = optarg;
		for (i = 0; i < KINDS; i++)
			kind = kinds[i].option == code ? i : kind;
	}
	if (optind < argc)
		return cli_usage_error(&verb, "nothing is known to do with '%s'", argv[optind]);
	if (pattern == NULL)
		return cli_usage_error(&verb, "what is to be imported?");
	return import(kind, pattern, file);
}

int import_take(struct cli_names *names, const char *name)
{
	size_t i;

	for (i = 0; i < names->count; i++)
		if (strcasecmp(names->names[i], name) == 0)
			return 0;
	return cli_names__add(names, name) < 0 ? -ENOMEM : 1;
}

void import_camel(char *name, size_t bytes, const char *text, bool upper_first)
{
	bool upper = upper_first, first = true;
	size_t n = 0;

	for (; *text != '\0' && n + 1 < bytes; text++) {
		if (!isalnum((unsigned char)*text)) {
			upper = upper || n > 0;
			continue;
		}
		if (n == 0 && isdigit((unsigned char)*text)) {
			name[n++] = upper_first ? 'N' : 'n'; /* a name begins with a letter */
			if (n + 1 == bytes)
				break;
		}
		if (upper)
			name[n++] = (char)toupper((unsigned char)*text);
		else
			name[n++] =
				first && !upper_first ? (char)tolower((unsigned char)*text) : *text;
		first = upper = false;
	}
	if (n == 0)
		name[n++] = upper_first ? 'X' : 'x';
	name[n] = '\0';
}

int import_unique_name(char *name, size_t bytes, struct cli_names *names)
{
	size_t length = strlen(name), room = bytes - 6;
	unsigned int number = 2;
	int rc = import_take(names, name);

	if (length > room)
		length = room;
	for (; rc == 0 && number < 10000; number++) {
		snprintf(name + length, bytes - length, "%u", number);
		rc = import_take(names, name);
	}
	return rc < 0 ? rc : 0;
}

/* Names that a field can't have (from codegen/keywords.c, by cli/build.mk). */
static const char *const keywords[] = {
#include "keywords.inc"
};

int import_field_name(char *name, size_t bytes, const char *text, struct cli_names *names)
{
	size_t i;

	import_camel(name, bytes - sizeof("Value"), text, false);
	for (i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strcmp(keywords[i], name) == 0) {
			strcat(name, "Value");
			break;
		}
	return import_unique_name(name, bytes, names);
}

/*
 * Ensure a '_' in the provider's name. No header of C and no name of pem has one. Without it
 * provider 'sched' would hide <sched.h>.
 */
void import_provider(char provider[IMPORT_PROVIDER_BYTES], const char *text)
{
	static const char suffix[] = "_tp";
	size_t n = 0;

	if (!isalpha((unsigned char)*text))
		provider[n++] = 'x';
	for (; *text != '\0' && n + sizeof(suffix) < IMPORT_PROVIDER_BYTES; text++)
		provider[n++] =
			isalnum((unsigned char)*text) ? (char)tolower((unsigned char)*text) : '_';
	provider[n] = '\0';
	if (memchr(provider, '_', n) == NULL)
		memcpy(provider + n, suffix, sizeof(suffix));
}

void import_put_text(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '&')
			fputs("&amp;", out);
		else if (c == '<')
			fputs("&lt;", out);
		else if (c == '\'')
			fputs("&apos;", out);
		else if (c < 0x20 || c >= 0x7f)
			fputc('?', out);
		else
			fputc(c, out);
	}
}

void import_put_comment(FILE *out, const char *indent, const char *format, ...)
{
	char text[2048];
	va_list args;
	char *p;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* In an XML comment two hyphens, or one at the end, would end it. */
	for (p = text; *p != '\0'; p++)
		if ((p[0] == '-' && p[1] == '-') || (unsigned char)*p >= 0x7f ||
		    (unsigned char)*p < 0x20)
			*p = p[0] == '-' ? '_' : '?';
	fprintf(out, "%s<!-- %s -->\n", indent, text);
}

void import_begin(FILE *out, const char *provider, const char *how)
{
	fprintf(out, "<?xml version='1.0' encoding='UTF-8'?>\n");
	import_put_comment(out, "", "%s", how);
	import_put_comment(out, "",
			   "To be edited: keep what you need, say what each event and field means, "
			   "and in which unit; pem spec check says what is missing.");
	fprintf(out, "<spec provider='%s'>\n", provider);
}

/* Maximum of characters that Class::Specifier takes in a C name. */
static size_t c_length(const char *name)
{
	size_t n = 0;

	for (; *name != '\0'; name++)
		n += isupper((unsigned char)*name) || isdigit((unsigned char)*name) ? 2 : 1;
	return n;
}

int import_event_begin(FILE *out, const char *layer, const char *level, const char *group,
		       const char *event, struct cli_names *names)
{
	char class_name[IMPORT_NAME_BYTES - 20], specifier[IMPORT_NAME_BYTES], whole[160];
	size_t prefix = strlen(group);
	const char *tries[2] = {event, event};
	int i, rc = 0;

	import_camel(class_name, sizeof(class_name), group, true);
	if (strncasecmp(event, group, prefix) == 0 && event[prefix] == '_' &&
	    event[prefix + 1] != '\0')
		tries[0] = event + prefix + 1;
	for (i = 0; i < 2 && rc == 0; i++) {
		import_camel(specifier, sizeof(specifier), tries[i], true);
		while (strlen(specifier) > 8 &&
		       c_length(class_name) + c_length(specifier) > IMPORT_C_NAME_MAX)
			specifier[strlen(specifier) - 1] = '\0';
		snprintf(whole, sizeof(whole), "%s::%s", class_name, specifier);
		rc = import_take(names, whole);
	}
	if (rc == 0) {
		rc = import_unique_name(whole, sizeof(whole), names);
		snprintf(specifier, sizeof(specifier), "%.48s", strstr(whole, "::") + 2);
	}
	if (rc < 0)
		return rc;
	fprintf(out,
		"\n  <event name='%s::%s::%s' level='%s'>\n"
		"    <layerId value='%s'/><classId value='%s'/><specifier value='%s'/>\n",
		layer, class_name, specifier, level, layer, class_name, specifier);
	return 0;
}
