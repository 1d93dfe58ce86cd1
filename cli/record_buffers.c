// SPDX-License-Identifier: MIT
/* record_buffers.c - pem record: the buffers of recorded processes, and the clock of records */
#include "record.h"

#include <getopt.h>
#include <string.h>

#define CHUNK_BYTES 8192u
#define BUFFER_LEAST (8 * CHUNK_BYTES)
#define CHUNKS_MOST (1ull << 20) /* see struct pem_session_options */
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

int record_buffers__parse(const struct cli_verb *verb, bool is_clock,
			  struct pem_session_options *session)
{
	return is_clock ? parse_clock(verb, session) : parse_size(verb, session);
}
