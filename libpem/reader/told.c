/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * told.c - the names that processes and threads have at a position of the trace
 *
 * Names come from before the recording, from the images of programs, and from records (context.c).
 */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static int compare_starts(const void *a, const void *b)
{
	const struct pem_trace_producer *x = *(const struct pem_trace_producer *const *)a;
	const struct pem_trace_producer *y = *(const struct pem_trace_producer *const *)b;

	if (x->start_clock != y->start_clock)
		return x->start_clock < y->start_clock ? -1 : 1;
	return x < y ? -1 : x > y;
}

const struct pem_trace_producer **pem_told__sort_images(const struct pem_balances *balances)
{
	size_t i, count = balances->producer_count;
	const struct pem_trace_producer **images;

	images = calloc(count + 1, sizeof(struct pem_trace_producer *));
	if (!images)
		return NULL;
	for (i = 0; i < count; i++)
		images[i] = &balances->producers[i];
	qsort(images, count, sizeof(struct pem_trace_producer *), compare_starts);
	return images;
}

/*
 * Name an image's process. A producer's name is cut. If the full name is known already, it stays.
 */
static int name_image(struct pem_told *told, const struct pem_trace_producer *image)
{
	const char *known = pem_context_table__name(told->context, image->pid);

	if (!image->name[0] || !strncmp(known, image->name, PEM_NAME_BYTES - 1))
		return 0;
	return pem_context_table__set_name(told->context, image->pid, image->name);
}

int pem_told__images(struct pem_told *told, const struct pem_trace *trace, uint64_t clock)
{
	size_t count = trace->balances.producer_count;
	int rc = 0;

	for (; !rc && told->next_image < count; told->next_image++) {
		if (trace->images[told->next_image]->start_clock > clock)
			break;
		rc = name_image(told, trace->images[told->next_image]);
	}
	told->next_image_clock = told->next_image < count
					 ? trace->images[told->next_image]->start_clock
					 : UINT64_MAX;
	return rc;
}

/* A process that replaced its image has two images: it begins with the name of the first. */
int pem_told__begin(struct pem_told *told, const struct pem_trace *trace)
{
	size_t count = trace->balances.producer_count, i;
	int rc = 0;

	pem_context_table__reset(told->context);
	for (i = 0; !rc && i < trace->names.count; i++)
		rc = trace->names.names[i].tid
			     ? pem_context_table__call_thread(
				       told->context, trace->names.names[i].pid,
				       trace->names.names[i].tid, trace->names.names[i].name)
			     : pem_context_table__call(told->context, trace->names.names[i].pid,
						       trace->names.names[i].name);
	for (i = count; !rc && i-- > 0;)
		rc = name_image(told, trace->images[i]);
	if (!rc && trace->info.command_pid)
		rc = pem_context_table__set_name(told->context, trace->info.command_pid,
						 trace->info.command_name);
	for (i = 0; i < count && !trace->images[i]->start_clock; i++)
		;
	told->next_image = i;
	told->next_image_clock = i < count ? trace->images[i]->start_clock : UINT64_MAX;
	return rc;
}
