// SPDX-License-Identifier: MIT
/*
 * doctor.c - pem doctor: what works here, what does not, and what would change that
 *
 * Features are tested by using them, never derived from a version. The checks are in machine.c and
 * pem.c.
 */
#include "doctor.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {
	{'j', "json", NULL, "Print an array of objects instead of lines."},
	{0},
};

void doctor__add(struct doctor *doctor, const char *check, enum doctor_state state,
		 const char *advice, const char *format, ...)
{
	struct doctor_line *line;
	va_list args;

	if (doctor->count == DOCTOR_LINES_MAX)
		return;
	line = &doctor->lines[doctor->count++];
	snprintf(line->check, sizeof(line->check), "%s", check);
	snprintf(line->advice, sizeof(line->advice), "%s", advice != NULL ? advice : "");
	line->state = state;
	va_start(args, format);
	vsnprintf(line->detail, sizeof(line->detail), format, args);
	va_end(args);
}

static const char *const state_names[] = {"ok", "limited", "no"};

static void print_json(const struct doctor *doctor)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < doctor->count; i++) {
		const struct doctor_line *line = &doctor->lines[i];
		struct json_object *object = json_object_new_object();

		cli_json__text(object, "check", line->check);
		cli_json__text(object, "state", state_names[line->state]);
		cli_json__text(object, "detail", line->detail);
		cli_json__text(object, "advice", line->advice);
		if (line->cost_ns > 0)
			json_object_object_add(object, "cost_ns",
					       json_object_new_double(line->cost_ns));
		json_object_array_add(array, object);
	}
	cli_json__print(array, stdout, false);
}

static void print_lines(struct doctor *doctor)
{
	static const enum cli_colour colours[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};
	size_t i;

	for (i = 0; i < doctor->count; i++) {
		struct doctor_line *line = &doctor->lines[i];
		char text[sizeof(line->detail) + sizeof(line->advice) + 8];

		snprintf(text, sizeof(text), "%s%s%s", pem_printable(line->detail),
			 *line->advice != '\0' ? "; " : "", pem_printable(line->advice));
		printf("%s%-8s%s %-19s ", cli_colour(stdout, colours[line->state]),
		       state_names[line->state], cli_colour(stdout, CLI_PLAIN), line->check);
		cli_wrap(stdout, text, 29, 29, cli_width(stdout));
	}
}

/* The state of a check. DOCTOR_NO: there is no such line. */
static enum doctor_state state_of(const struct doctor *doctor, const char *check)
{
	size_t i;

	for (i = 0; i < doctor->count; i++)
		if (strcmp(doctor->lines[i].check, check) == 0)
			return doctor->lines[i].state;
	return DOCTOR_NO;
}

/*
 * Add a row about everything: which events can be recorded. The rows above it tell why, and the
 * remedy. It fits in one line of 80 columns, so its text has 51 characters at most.
 */
static void add_verdict(struct doctor *doctor)
{
	static const char *const words[] = {"all", "some", "none"};
	enum doctor_state programs = state_of(doctor, "stub events"),
			  kernel = state_of(doctor, "kernel events"),
			  counters = state_of(doctor, "counter events");
	bool full = programs == DOCTOR_OK && kernel == DOCTOR_OK && counters == DOCTOR_OK;

	if (state_of(doctor, "runtime folder") == DOCTOR_NO ||
	    state_of(doctor, "room for buffers") == DOCTOR_NO)
		doctor__add(doctor, "verdict", DOCTOR_NO, NULL,
			    "can't record: no folder or no memory for buffers");
	else
		doctor__add(doctor, "verdict", full ? DOCTOR_OK : DOCTOR_LIMITED, NULL,
			    "program events: %s; kernel: %s; counters: %s", words[programs],
			    words[kernel], words[counters]);
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct doctor *doctor;
	bool json = false;
	int code;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		json = true;
	}
	if (optind != argc)
		return cli_usage_error(verb, "pem doctor takes no words, not '%s'", argv[optind]);
	doctor = calloc(1, sizeof(*doctor));
	if (doctor == NULL)
		return cli_error(CLI_FAILED, "no memory");
	doctor__machine(doctor);
	doctor__kernel(doctor);
	doctor__pem(doctor);
	add_verdict(doctor);
	if (json)
		print_json(doctor);
	else
		print_lines(doctor);
	free(doctor);
	return cli_finish_output(CLI_DONE);
}

const struct cli_verb cli_doctor = {
	.name = "doctor",
	.summary = "what works on this machine, and what would change the rest",
	.usage = "doctor [--json]",
	.text = "Looks at what pem builds on: the clock, what the kernel lets you see, counters, "
		"memory for "
		"buffers, what an event costs here, what is installed. One line each: ok, limited "
		"or no, "
		"and the next step. The last line is the verdict. Nothing is changed.",
	.examples = "pem doctor                  the whole list\n"
		    "sudo pem doctor             the same with privilege, to compare\n"
		    "pem doctor --json | jq -r '.[] | select(.state != \"ok\") | .advice'\n"
		    "                            what to do next",
	.options = options,
	.status = "0  looked, whatever was found\n"
		  "1  wrong usage\n"
		  "3  failed while looking",
	.run = run,
};
