/* SPDX-License-Identifier: MIT */
/*
 * reader_fixture.h - a trace made by hand for each test of the reader, and opening it
 */
#ifndef READER_FIXTURE_H
#define READER_FIXTURE_H

#include "trace_fixture.h"

#define T(n) (FIXTURE_START + (uint64_t)(n))

static struct fixture fixture;
static __attribute__((unused)) struct packet packet;

static int set_up(void **state)
{
	(void)state;
	fixture_new(&fixture);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(&fixture);
	return 0;
}

static struct pem_trace *open_trace(void)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(fixture.path, &error);

	if (!trace)
		fail_msg("%s", error.text);
	return trace;
}

#endif
