/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * filters.c - seccomp filters that a process installs while it is observed
 *
 * A filter may end a process that asks for memory in the middle of an event. The consumer allocates
 * the memory of such a process.
 */
#include "core/core.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* bytes of chunks allocated for a process that may not ask for memory itself */
#define READY_BYTES (2u << 20)
#define CHECK_FIRST_NS 20000000u /* programs mostly install filters as they start */
#define CHECK_LAST_NS 1000000000u

/*
 * Allocate the first chunks of a pool for its process. The pool is shared memory, so a page
 * allocated here exists in the process too.
 */
static void ready_chunks(const struct pem_producer *p)
{
	uint32_t *populated = pem_pool__populated(&p->ring);
	uint32_t count = READY_BYTES / p->ring.chunk_bytes, i;

	if (count > p->ring.chunk_count)
		count = p->ring.chunk_count;
	if (madvise(p->ring.chunks, (uint64_t)count * p->ring.chunk_bytes, MADV_POPULATE_WRITE))
		return;
	for (i = 0; i < count; i++)
		__atomic_fetch_or(&populated[i / 16], 3u << (i % 16 * 2), __ATOMIC_RELAXED);
}

static void check_filter(struct pem_session *s, struct pem_producer *p, uint64_t now)
{
	struct pem_pool_header *header = p->ring.header;
	uint32_t known, count;

	if (__atomic_load_n(&header->restricted, __ATOMIC_RELAXED))
		return;
	p->filter_pause_ns = !p->filter_pause_ns                      ? CHECK_FIRST_NS
			     : p->filter_pause_ns < CHECK_LAST_NS / 2 ? 2 * p->filter_pause_ns
								      : CHECK_LAST_NS;
	p->filter_check_ns = now + p->filter_pause_ns;
	count = pem_filters_of(p->pid);
	known = __atomic_load_n(&header->filters, __ATOMIC_RELAXED);
	/*
	 * Nobody told this program how many filters it had at its start. Take the number seen
	 * first.
	 */
	if (known == ~0u && p->filters == ~0u)
		p->filters = count;
	if (known == ~0u)
		known = p->filters;
	if (count <= known)
		return;
	ready_chunks(p);
	/* none: nothing is ordered by this flag */
	__atomic_store_n(&header->restricted, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&s->page->filtered, 1, __ATOMIC_RELAXED);
}

void pem_producer__watch_filter(struct pem_session *s, struct pem_producer *p, uint64_t now)
{
	uint64_t began_ns;

	if (now < p->filter_check_ns || p->pidfd < 0)
		return;
	began_ns = pem_dir__begin(s, p->dir);
	check_filter(s, p, now);
	pem_dir__charge(s, p->dir, began_ns);
}
