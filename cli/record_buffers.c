// SPDX-License-Identifier: MIT
/* record_buffers.c - pem record: the buffers of recorded processes, the clock of records, and the
 * threads that move them */
#include "record.h"

#include <getopt.h>
#include <string.h>

#define CHUNK_BYTES 8192u
#define BUFFER_LEAST (8 * CHUNK_BYTES)
#define CHUNKS_MOST (1ull << 20) /* see struct pem_session_options */
#define THREADS_MOST 64u /* see there */
#define BUFFER_MOST (2 * CHUNKS_MOST * CHUNK_BYTES)

static int parse_size(const struct cli_verb *verb, struct pem_session_options *session)
{
	uint64_t bytes;

	if (cli_parse_bytes(optarg, &bytes) < 0 || bytes < BUFFER_LEAST || bytes > BUFFER_MOST)
		return cli_usage_error(verb, "--buffer %s is no size from 64K to 16G", optarg);
	session->chunk_bytes = bytes > CHUNKS_MOST * CHUNK_BYTES ? 2 * CHUNK_BYTES : CHUNK_BYTES;
	session->chunk_count = (uint32_t)(bytes / session->chunk_bytes);
	return 0;
}

static int parse_clock(const struct cli_verb *verb, struct pem_session_options *session)
{
	if (strcmp(optarg, "coarse") && strcmp(optarg, "cycles"))
		return cli_usage_error(verb, "--clock %s is neither cycles nor coarse", optarg);
	session->coarse_clock = !strcmp(optarg, "coarse");
	return 0;
}

static int parse_threads(const struct cli_verb *verb, struct pem_session_options *session)
{
	uint64_t count;

	if (cli_parse_number(optarg, THREADS_MOST, &count) || !count)
		return cli_usage_error(verb, "--drain-threads %s is no number from 1 to 64",
				       optarg);
	session->drain_threads = (uint32_t)count;
	return 0;
}

int record_buffers__parse(const struct cli_verb *verb, int option,
			  struct pem_session_options *session)
{
	switch (option) {
	case RECORD_BUFFER:
		return parse_size(verb, session);
	case RECORD_CLOCK:
		return parse_clock(verb, session);
	case RECORD_COMPRESS:
		session->compress = 1;
		return 0;
	default:
		return parse_threads(verb, session);
	}
}
