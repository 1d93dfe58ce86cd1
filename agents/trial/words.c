/* SPDX-License-Identifier: MIT */
/* words.c - a configuration as text, as arguments, as variables */
#include "trial/trial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int trial_words__text(const struct trial_experiment *e, const uint32_t *levels,
		      char text[TRIAL_TEXT_BYTES])
{
	const char *values[TRIAL_PARAMETERS_MAX];
	size_t used = 0;
	uint32_t i;

	text[0] = '\0';
	trial_experiment__values(e, levels, values);
	for (i = 0; i < e->space->view.parameter_count; i++) {
		if (!values[i])
			continue;
		used += (size_t)snprintf(text + used, TRIAL_TEXT_BYTES - used, "%s%s=%s",
					 used ? " " : "", e->targets[i].name, values[i]);
		if (used >= TRIAL_TEXT_BYTES)
			return -E2BIG;
	}
	return 0;
}

/* One word of the shell. */
static void put_quoted(FILE *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._+,:/=@%-";

	if (*text && !text[strspn(text, plain)]) {
		fputs(text, out);
		return;
	}
	putc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else
			putc(*text, out);
	}
	putc('\'', out);
}

/* An argument's words: {} is the value, and without {} they stand for 'on'. */
static void put_argument(FILE *out, const char *words, const char *value)
{
	const char *place = strstr(words, "{}");

	if (!place) {
		if (strcmp(value, "on") == 0)
			fprintf(out, " %s", words);
		return;
	}
	putc(' ', out);
	for (; place; words = place + 2, place = strstr(words, "{}")) {
		fwrite(words, 1, (size_t)(place - words), out);
		put_quoted(out, value);
	}
	fputs(words, out);
}

static void put_arguments(FILE *out, const struct trial_experiment *e, const char *const *values)
{
	uint32_t i;

	for (i = 0; i < e->space->view.parameter_count; i++) {
		if (values[i] && e->targets[i].way == SETTINGS_ARGUMENT)
			put_argument(out, e->targets[i].key, values[i]);
	}
}

/* Put what {name} stands for; false: it stands for nothing of ours. */
static bool put_place(FILE *out, const struct trial_experiment *e, const uint32_t *levels,
		      const char *name, size_t n, const char *scratch)
{
	uint32_t i;

	if (n == 7 && !memcmp(name, "scratch", n)) {
		put_quoted(out, scratch);
		return true;
	}
	for (i = 0; i < e->space->view.parameter_count; i++) {
		if (strlen(e->targets[i].name) == n && !memcmp(e->targets[i].name, name, n)) {
			put_quoted(out, e->space->parameters[i].values[levels[i]]);
			return true;
		}
	}
	return false;
}

char *trial_words__command(const struct trial_experiment *e, const uint32_t *levels,
			   const char *command, bool is_command, const char *scratch)
{
	static const char all[] = "{arguments}";
	const char *values[TRIAL_PARAMETERS_MAX];
	bool has_place = strstr(e->command, all) || (e->start && strstr(e->start, all));
	char *text = NULL;
	size_t bytes, n = strlen(command);
	FILE *out = open_memstream(&text, &bytes);
	const char *close;
	uint32_t i;

	if (!out)
		return NULL;
	trial_experiment__values(e, levels, values);
	for (i = 0; is_command && i < e->space->view.parameter_count; i++) {
		if (!values[i] || e->targets[i].way != SETTINGS_ENVIRONMENT)
			continue;
		fprintf(out, "export %s=", e->targets[i].key);
		put_quoted(out, values[i]);
		fputs("; ", out);
	}
	/* What is appended stands on the command's last line. */
	while (n && strchr(" \t\r\n", command[n - 1]))
		n--;
	for (i = 0; i < n; i++) {
		close = command[i] == '{' ? strchr(command + i, '}') : NULL;
		if (close && is_command && !strncmp(command + i, all, sizeof(all) - 1))
			put_arguments(out, e, values);
		else if (!close || !put_place(out, e, levels, command + i + 1,
					      (size_t)(close - command) - i - 1, scratch))
			close = NULL;
		if (close)
			i = (uint32_t)(close - command);
		else
			putc(command[i], out);
	}
	if (command == e->command && !has_place)
		put_arguments(out, e, values);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Do both of a pair write the same files by a command that depends on the configuration? */
static const char *shared_by(const struct trial_experiment *e, const char *command)
{
	char place[80];
	uint32_t i;

	for (i = 0; command && i < e->space->view.parameter_count; i++) {
		snprintf(place, sizeof(place), "{%s}", e->targets[i].name);
		if (strstr(command, place) && !strstr(command, "{scratch}"))
			return e->targets[i].name;
	}
	return NULL;
}

int trial_experiment__pairs(const struct trial_experiment *e, struct pem_error *error)
{
	const char *name = shared_by(e, e->prepare);
	uint32_t i;

	if (!name)
		name = shared_by(e, e->end);
	for (i = 0; !name && i < e->space->view.parameter_count; i++) {
		if (e->targets[i].way <= SETTINGS_ENVIRONMENT)
			continue;
		snprintf(error->text, sizeof(error->text),
			 "two runs at the same time would have the same '%s', which is set outside "
			 "of the command",
			 e->targets[i].name);
		return -EINVAL;
	}
	if (name)
		snprintf(error->text, sizeof(error->text),
			 "two runs at the same time would prepare the same files: use {scratch} "
			 "where prepare or end has {%s}",
			 name);
	else if (e->start)
		snprintf(error->text, sizeof(error->text),
			 "two runs at the same time would have one server: begin it in the "
			 "command, with its files and its socket in {scratch}");
	return name || e->start ? -EINVAL : 0;
}
