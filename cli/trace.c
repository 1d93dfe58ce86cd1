// SPDX-License-Identifier: MIT
/*
 * trace.c - opens a trace for a verb that reads it, and completes the trace of a killed recorder
 * first; what the meaning of a record says; and has names kept with a trace
 */
#include "record.h"

#include <pem/code.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Reading a trace for addresses to name ends after this long. */
#define NAMING_MOST_NS 2000000000u
#define NAMING_STACK_BYTES (8u << 20)

/* Report what the recorder could not write, before anything that was read. */
static void say_unwritten(const char *directory, const struct pem_trace_info *info)
{
	uint32_t i;

	for (i = 0; i < info->gap_count; i++)
		if (strcmp(info->gaps[i].source, "trace") == 0)
			cli_say("%s: %s", directory, info->gaps[i].reason);
}

static void *keep_names(void *directory)
{
	struct pem_error error = {{0}};

	if (pem_code__keep(directory, NAMING_MOST_NS, &error) < 0)
		cli_say("names of functions are not kept with the trace: %s", error.text);
	return NULL;
}

/* libdw puts tables of lines on the stack, and pem works with one of 128 KiB. */
void cli_trace__keep_names(const char *directory)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc = pthread_attr_init(&attributes);

	/* A server of debug files may take minutes: pem report asks it. */
	unsetenv("DEBUGINFOD_URLS");
	if (rc == 0) {
		rc = pthread_attr_setstacksize(&attributes, NAMING_STACK_BYTES);
		if (rc == 0)
			rc = pthread_create(&thread, &attributes, keep_names,
					    (void *)(uintptr_t)directory);
		pthread_attr_destroy(&attributes);
	}
	if (rc == 0)
		pthread_join(thread, NULL);
	else
		cli_say("names of functions are not kept with the trace: %s", strerror(rc));
}

struct pem_trace *cli_trace__read_back(const char *directory, struct pem_error *error)
{
	cli_trace__keep_names(directory);
	return pem_trace__open(directory, error);
}

struct pem_trace *cli_trace__open(const char *directory, int *status)
{
	struct pem_error error = {{0}};
	struct pem_trace *trace = pem_trace__open(directory, &error);
	int rc;

	if (trace != NULL && !pem_trace__info(trace)->complete) {
		pem_trace__close(trace);
		rc = pem_trace__recover(directory, &error);
		if (rc == 0)
			cli_trace__keep_names(directory);
		if (rc == 0)
			cli_say("%s: its recorder did not finish; what programs had logged was "
				"recovered from shared memory",
				directory);
		else
			cli_say("%s", error.text);
		trace = pem_trace__open(directory, &error);
	}
	if (trace != NULL) {
		say_unwritten(directory, pem_trace__info(trace));
		pem_trace__read_ahead(trace); /* An error leaves the trace as it was. */
	} else
		*status = cli_error(cli_status_of_errno(errno), "%s",
				    *error.text != '\0' ? error.text : strerror(errno));
	return trace;
}

int cli_allocation__result(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_ALLOCATION
		       ? pem_event__field_by_role(event, PEM_ROLE_ADDRESS)
		       : -1;
}

bool cli_allocation__failed(const struct pem_record *record, int result, int size)
{
	return result >= 0 && pem_record__u64(record, (unsigned int)result) == 0 &&
	       pem_record__u64(record, (unsigned int)size) != 0;
}
