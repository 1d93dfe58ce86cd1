// SPDX-License-Identifier: MIT
/* progress.c - reports the progress of long work, only on a terminal */
#include "cli.h"

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

void cli_progress__start(struct cli_progress *progress, const char *what)
{
	progress->what = what;
	progress->start_ns = cli_now_ns();
	progress->shown_ns = 0;
	progress->visible = false;
}

void cli_progress__update(uint64_t done, uint64_t total, void *arg)
{
	struct cli_progress *progress = arg;
	uint64_t now = cli_now_ns();

	if (now - progress->start_ns < PATIENCE_NS || now - progress->shown_ns < REFRESH_NS)
		return;
	if (!isatty(STDERR_FILENO))
		return;
	progress->shown_ns = now;
	progress->visible = true;
	if (total != 0 && done <= total)
		fprintf(stderr, "\r%s: %s of %s (%u %%)\033[K", progress->what, cli_count(done),
			cli_count(total), (unsigned int)((double)done * 100 / (double)total));
	else
		fprintf(stderr, "\r%s: %s\033[K", progress->what, cli_count(done));
	fflush(stderr);
}

void cli_progress__end(struct cli_progress *progress)
{
	if (progress->visible)
		fputs("\r\033[K", stderr);
	progress->visible = false;
}
