/* SPDX-License-Identifier: MIT */
/* init.c - init: an experiment to begin with */
#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* template.xml, with "%s" for the experiment's name and for its command. */
static const char template[] =
#include "explore_template.h"
	;

/* An experiment that is installed with pem. NULL: there is none. */
static FILE *open_installed(const char *name)
{
	char path[PATH_MAX];
	size_t used;

	if (strchr(name, '/') || strlen(name) > 64 || cli_program_folder(path, sizeof(path) - 128))
		return NULL;
	used = strlen(path);
	snprintf(path + used, sizeof(path) - used, "/../share/pem/explore/%s.xml", name);
	return fopen(path, "re");
}

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else
			putc(*text, out);
	}
}

static void write_template(FILE *out, const char *name, const char *command)
{
	const char *place = strstr(template, "%s"), *second = strstr(place + 2, "%s");

	fwrite(template, 1, (size_t)(place - template), out);
	fputs(name, out);
	fwrite(place + 2, 1, (size_t)(second - place - 2), out);
	put_escaped(out, command);
	fputs(second + 2, out);
}

/* The last part of the command's first word, as a name. */
static void make_name(const char *command, char *name, size_t bytes)
{
	size_t end = strcspn(command, " \t"), start = end, i;

	while (start && command[start - 1] != '/')
		start--;
	snprintf(name, bytes, "%.*s", (int)(end - start), command + start);
	for (i = 0; name[i]; i++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    name[i]) ||
		    (!i && strchr("0123456789.-", name[i])))
			name[i] = '_';
	}
	if (!*name)
		snprintf(name, bytes, "program");
}

int explore_init(const struct explore_request *request)
{
	char name[48], path[PATH_MAX], bytes[4096];
	FILE *installed, *out;
	size_t got;
	int fd;

	make_name(request->words[0], name, sizeof(name));
	snprintf(path, sizeof(path), "%s.xml", name);
	if (request->output)
		snprintf(path, sizeof(path), "%s", request->output);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!out)
		return cli_error(CLI_WRONG_INPUT, "%s can't be made: %s%s", path, strerror(errno),
				 errno == EEXIST ? "; choose another file with -o" : "");
	installed = open_installed(request->words[0]);
	while (installed && (got = fread(bytes, 1, sizeof(bytes), installed)) > 0)
		fwrite(bytes, 1, got, out);
	if (installed)
		fclose(installed);
	else
		write_template(out, name, request->words[0]);
	if (fclose(out))
		return cli_error(CLI_FAILED, "%s can't be written: %s", path, strerror(errno));
	printf("%s: edit it, then 'pem explore check %s' and 'pem explore run %s'\n", path, path,
	       path);
	return cli_finish_output(CLI_DONE);
}
