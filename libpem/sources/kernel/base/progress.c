/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * progress.c - reports the progress of loading many programs, some milliseconds each, once it has
 * taken two seconds
 */
#include "base.h"

#include <time.h>

#define PATIENCE_NS 2000000000u
#define PAUSE_NS 200000000u

uint64_t pem_kernel__now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pem_progress__start(struct pem_progress *progress)
{
	*progress = (struct pem_progress){.start_ns = pem_kernel__now_ns()};
}

void pem_progress__update(struct pem_progress *progress, const struct pem_source *source,
			  size_t done, size_t total)
{
	uint64_t now = pem_kernel__now_ns();

	if (now - progress->start_ns < PATIENCE_NS || now - progress->said_ns < PAUSE_NS)
		return;
	progress->said_ns = now;
	pem_source__log(source, PEM_LOG_PROGRESS, "making probes ready: %zu of %zu", done, total);
}

void pem_progress__end(const struct pem_progress *progress, const struct pem_source *source)
{
	if (progress->said_ns)
		pem_source__log(source, PEM_LOG_PROGRESS, "%s", "");
}
