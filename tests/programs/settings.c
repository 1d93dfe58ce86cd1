/* SPDX-License-Identifier: MIT */
/*
 * settings.c - agents/settings from a command line
 *
 * Use: settings FOLDER [WAY NAME KEY IN]... A line of input has a value for each, with tabs between
 * them; "?" is none. "apply" is answered by "0", "1 TARGET SENTENCE" or "-ERRNO SENTENCE". The
 * line "restore" restores, "cgroup" prints the group. At the end of input it closes the agent. With
 * LOOP in the environment, lines are repeated without answers until somebody ends the program.
 */
#include "agents/settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 32

static struct settings_target targets[TARGETS_MAX];
static size_t count;

static int way_of(const char *word)
{
	static const char *const words[] = {"place",  "argument", "environment", "file",
					    "pragma", "postgres", "redis",       "sysctl",
					    "cgroup", "program"};
	int i;

	for (i = 0; i < 10 && strcmp(words[i], word); i++)
		;
	return i;
}

static void answer(int rc, const struct settings_refusal *refusal, const struct pem_error *error)
{
	if (getenv("LOOP"))
		return;
	if (rc == 1)
		printf("1 %zu %s\n", refusal->target, refusal->text);
	else
		printf("%d%s%s\n", rc, rc ? " " : "", rc ? error->text : "");
	fflush(stdout);
}

static void obey(struct settings_agent *agent, char *line)
{
	const char *values[TARGETS_MAX] = {NULL}, *group;
	struct settings_refusal refusal = {0};
	struct pem_error error = {0};
	size_t i;
	int rc;

	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "restore")) {
		rc = settings_agent__restore(agent, SETTINGS_BEFORE_START, &error);
		answer(rc, NULL, &error);
		return;
	}
	if (!strcmp(line, "cgroup")) {
		group = settings_agent__cgroup(agent);
		puts(group ? group : "none");
		fflush(stdout);
		return;
	}
	for (i = 0; i < count && line; i++) {
		values[i] = strsep(&line, "\t");
		if (!strcmp(values[i], "?"))
			values[i] = NULL;
	}
	rc = settings_agent__apply(agent, SETTINGS_BEFORE_START, targets, values, count, &refusal,
				   &error);
	if (!rc)
		rc = settings_agent__apply(agent, SETTINGS_AFTER_START, targets, values, count,
					   &refusal, &error);
	answer(rc, &refusal, &error);
}

int main(int argc, char **argv)
{
	struct settings_agent *agent;
	struct pem_error error = {0};
	size_t recovered = 0, bytes = 0;
	char *line = NULL, first[512], second[512];
	int i;

	for (i = 2; i + 4 <= argc && count < TARGETS_MAX; i += 4)
		targets[count++] =
			(struct settings_target){.way = (enum settings_way)way_of(argv[i]),
						 .name = argv[i + 1],
						 .key = argv[i + 2],
						 .in = *argv[i + 3] ? argv[i + 3] : NULL};
	agent = settings_agent__open(argv[1], &recovered, &error);
	if (!agent) {
		printf("closed %d %s\n", errno, error.text);
		return 1;
	}
	printf("open %zu%s%s\n", recovered, *error.text ? " " : "", error.text);
	fflush(stdout);
	if (getenv("LOOP")) {
		if (!fgets(first, sizeof(first), stdin) || !fgets(second, sizeof(second), stdin))
			return 1;
		for (;;) {
			char one[512], other[512];

			strcpy(one, first);
			strcpy(other, second);
			obey(agent, one);
			obey(agent, other);
		}
	}
	while (getline(&line, &bytes, stdin) > 0)
		obey(agent, line);
	free(line);
	settings_agent__close(agent);
	return 0;
}
