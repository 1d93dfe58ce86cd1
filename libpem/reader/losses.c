/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * losses.c - the times in which streams lost records, as a trace is read
 *
 * Not here: how a stream finds that it lost some (stream.c).
 */
#include "reader.h"
#include "grow.h"

#include <pem/sized.h>

#include <errno.h>
#include <stdlib.h>

void pem_losses__note(struct pem_losses *losses, const struct pem_stream *s, uint64_t begin_clock)
{
	struct pem_loss *loss;

	if (pem_grow(&losses->windows, sizeof(*losses->windows), losses->count + 1,
		     &losses->capacity)) {
		losses->failed = true;
		return;
	}
	loss = &losses->windows[losses->count++];
	loss->begin_clock = begin_clock;
	loss->end_clock = s->head != PEM_HEAD_END ? s->clock : UINT64_MAX;
	loss->source = s->source;
	loss->pid = s->pid;
	loss->tid = s->tid;
	loss->cpu = s->cpu;
}

void pem_losses__reset(struct pem_losses *losses)
{
	losses->count = 0;
	losses->failed = false;
}

void pem_losses__free(struct pem_losses *losses)
{
	free(losses->windows);
}

size_t pem_trace__loss_count(const struct pem_trace *trace)
{
	return trace ? pem_trace__losses(trace, NULL) : 0;
}

uint64_t pem_trace__ns(const struct pem_trace *trace, uint64_t clock)
{
	const struct pem_trace_info *info = pem_trace__info(trace);

	if (clock < info->start_clock)
		return 0;
	return (uint64_t)((unsigned __int128)(clock - info->start_clock) * 1000000000u /
			  info->clock_hz);
}

int pem_trace__loss(const struct pem_trace *trace, size_t i, struct pem_trace_loss *loss)
{
	struct pem_trace_loss found = {.size = sizeof(found)};
	const struct pem_loss *losses;

	if (!trace || pem_sized__check(loss))
		return -EINVAL;
	if (i >= pem_trace__losses(trace, &losses))
		return -ENOENT;
	found.begin_ns = pem_trace__ns(trace, losses[i].begin_clock);
	found.end_ns = losses[i].end_clock != UINT64_MAX ? pem_trace__ns(trace, losses[i].end_clock)
							 : UINT64_MAX;
	found.pid = losses[i].pid;
	found.tid = losses[i].tid;
	found.cpu = losses[i].cpu;
	found.source =
		losses[i].source == PEM_PACKET_KERNEL_THREAD ? PEM_PACKET_KERNEL : losses[i].source;
	pem_sized__write(loss, 0, &found, sizeof(found));
	return 0;
}
