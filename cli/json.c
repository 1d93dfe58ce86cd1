// SPDX-License-Identifier: MIT
/* json.c - JSON for other programs: plain numbers, valid UTF-8 */
#include "cli.h"
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Make a copy that is valid UTF-8, with '?' for each byte that is not. NULL: no memory. */
static char *valid_copy(const char *text)
{
	char *copy = strdup(text != NULL ? text : "");
	unsigned char *p;

	for (p = (unsigned char *)copy; p != NULL && *p != '\0';) {
		unsigned int n = pem_utf8_bytes(p, PEM_UTF8_BYTES_MAX);

		if (n == 0)
			*p = '?';
		p += n != 0 ? n : 1;
	}
	return copy;
}

/* Add a member, whose name may be of a trace or a table. */
static void add(struct json_object *object, const char *key, struct json_object *value)
{
	char *name = valid_copy(key);

	if (name != NULL)
		json_object_object_add(object, name, value);
	free(name);
}

void cli_json__text(struct json_object *object, const char *key, const char *value)
{
	char *copy = valid_copy(value);

	if (copy != NULL)
		add(object, key, json_object_new_string(copy));
	free(copy);
}

void cli_json__count(struct json_object *object, const char *key, uint64_t value)
{
	add(object, key, json_object_new_uint64(value));
}

void cli_json__real(struct json_object *object, const char *key, double value)
{
	/* JSON has no infinity. Leave the value out, because readers refuse a file with it. */
	add(object, key, isfinite(value) ? json_object_new_double(value) : NULL);
}

void cli_json__flag(struct json_object *object, const char *key, bool value)
{
	add(object, key, json_object_new_boolean(value));
}

#define INDENT 2 /* as json-c */

static void put_line(unsigned int depth, FILE *out)
{
	fprintf(out, "\n%*s", (int)(depth * INDENT), "");
}

/*
 * Write JSON, indented to a depth, with escapes for what a terminal would obey. json-c itself
 * escapes no DEL and nothing beyond ASCII. Such characters occur only in strings, where an escape
 * has the same meaning.
 */
static void put_escaped(const char *json, unsigned int depth, FILE *out)
{
	const unsigned char *p = (const unsigned char *)json;
	unsigned int n, i, c;

	for (; *p != '\0'; p += n) {
		if (*p == '\n') {
			/* Strings have escapes for it, so it ends a line of the text. */
			n = 1;
			put_line(depth, out);
			continue;
		}
		n = pem_utf8_bytes(p, PEM_UTF8_BYTES_MAX);
		n += n == 0;
		c = pem_utf8_point(p, n);
		/* Of C0 only json-c's own ends of lines are left. */
		if (c >= 0x20 && pem_is_control(c))
			fprintf(out, "\\u%04x", c);
		else
			for (i = 0; i < n; i++)
				fputc(p[i], out);
	}
}

void cli_json__print(struct json_object *object, FILE *out, bool one_line)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= one_line ? JSON_C_TO_STRING_PLAIN : JSON_C_TO_STRING_PRETTY;
	put_escaped(json_object_to_json_string_ext(object, flags), 0, out);
	fputc('\n', out);
	json_object_put(object);
}

/* Begin the line of a member. */
static void begin_member(struct cli_json_stream *json, const char *key)
{
	if (json->has_member)
		putc(',', json->out);
	if (json->depth != 0)
		put_line(json->depth, json->out);
	if (key != NULL)
		fprintf(json->out, "\"%s\":", key);
	json->has_member = true;
}

void cli_json_stream__open(struct cli_json_stream *json, const char *key, char bracket)
{
	begin_member(json, key);
	putc(bracket, json->out);
	json->depth++;
	json->has_member = false;
}

void cli_json_stream__add(struct cli_json_stream *json, const char *key, struct json_object *value)
{
	begin_member(json, key);
	put_escaped(json_object_to_json_string_ext(value, JSON_C_TO_STRING_NOSLASHESCAPE |
								  JSON_C_TO_STRING_PRETTY),
		    json->depth, json->out);
	json_object_put(value);
}

void cli_json_stream__add_members(struct cli_json_stream *json, struct json_object *object)
{
	json_object_object_foreach(object, key, value)
		cli_json_stream__add(json, key, json_object_get(value));
	json_object_put(object);
}

void cli_json_stream__close(struct cli_json_stream *json, char bracket)
{
	json->depth--;
	if (json->has_member)
		put_line(json->depth, json->out);
	putc(bracket, json->out);
	if (json->depth == 0)
		putc('\n', json->out);
	json->has_member = true;
}

int cli_finish_output(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error(CLI_FAILED, "cannot write standard output: %s", strerror(errno));
	return status;
}

int cli_output__open(const char **path, bool is_result, FILE **out)
{
	*out = is_result ? stdout : stderr;
	if (*path != NULL && strcmp(*path, "-") == 0) {
		*out = stdout;
		*path = NULL;
	}
	if (*path != NULL)
		*out = fopen(*path, "we");
	return *out != NULL ? CLI_DONE
			    : cli_error(cli_status_of_errno(errno), "cannot write %s: %s", *path,
					strerror(errno));
}

int cli_output__close(const char *path, FILE *out, int status)
{
	bool bad;

	if (out == NULL)
		return status;
	bad = fflush(out) != 0 || ferror(out);
	if (path != NULL)
		bad |= fclose(out) != 0;
	if (bad) /* an error of the command itself is more important */
		status = cli_error(status != CLI_DONE ? status : CLI_FAILED,
				   "cannot write the result: %s", strerror(errno));
	return status;
}
