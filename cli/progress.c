// SPDX-License-Identifier: MIT
/* progress.c - reports the progress of long work, only on a terminal */
#include "cli.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 2000000000ull
#define REFRESH_NS 200000000ull

uint64_t cli_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* Threads of libpem show lines and say sentences, too. */
static atomic_bool is_shown;

/* Is it a byte of a character in UTF-8, but not the first? */
static bool is_inside(char byte)
{
	return (byte & 0xc0) == 0x80;
}

void cli_progress__show(const char *text)
{
	const char *term = getenv("TERM");
	unsigned int columns = cli_width(stderr) - 1;
	int bytes = 0;

	if (!isatty(STDERR_FILENO) || term == NULL || strcmp(term, "dumb") == 0)
		return;
	for (; text[bytes] != '\0' && (columns != 0 || is_inside(text[bytes])); bytes++)
		columns -= !is_inside(text[bytes]);
	fprintf(stderr, "\r%.*s\033[K", bytes, text);
	atomic_store(&is_shown, *text != '\0');
}

void cli_progress__clear(void)
{
	if (atomic_exchange(&is_shown, false))
		fputs("\r\033[K", stderr);
}

void cli_progress__start(struct cli_progress *progress, const char *what)
{
	progress->what = what;
	progress->start_ns = cli_now_ns();
	progress->shown_ns = 0;
}

void cli_progress__update(uint64_t done, uint64_t total, void *arg)
{
	struct cli_progress *progress = arg;
	uint64_t now = cli_now_ns();

	if (now - progress->start_ns < PATIENCE_NS || now - progress->shown_ns < REFRESH_NS)
		return;
	progress->shown_ns = now;
	if (total != 0 && done <= total)
		cli_progress__show(cli_format("%s: %s of %s (%u %%)", progress->what,
					      cli_count(done), cli_count(total),
					      (unsigned int)((double)done * 100 / (double)total)));
	else
		cli_progress__show(cli_format("%s: %s", progress->what, cli_count(done)));
}

void cli_progress__end(struct cli_progress *progress)
{
	(void)progress;
	cli_progress__clear();
}
