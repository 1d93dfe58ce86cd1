/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * grow.c - pools of the default size grow while the session can't keep up
 *
 * A pool's file is sparse, and has chunks that nobody uses at first (pem_pool_header.chunk_limit).
 * If a quarter of those in use is full when the session looks, the session doubles their number.
 * The memory is the observed process's, which owes pem nothing. So a pool grows only while all
 * pools of the session together may take an eighth at most of what is free in the machine's memory,
 * in the file system of the pool, and in each memory control group that the process is in. It never
 * shrinks; chunks of low numbers are used first.
 *
 * Pools of other users stay as they are, since their memory is accounted for by pools of the first
 * size, and so do those of flight recorders, and of a size that was asked for.
 *
 * Not here: what is free (free_memory.c).
 */
#include "chunks/chunks.h"
#include "chunks/free_memory.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "util.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define FULL_SHARE 4u /* grow if one of so many chunks is full */
#define RETRY_NS 1000000000u /* after a growth that memory did not allow */

/*
 * Allocate the states of chunks from 'from' on, as their owner did for the first ones. Kernels
 * before 5.14 can't, and a pool does not grow there.
 */
static bool populate_states(const struct pem_ring *ring, uint32_t from, uint32_t to)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)&ring->chunk_state[from] & ~(page - 1);
	uintptr_t end = (uintptr_t)&ring->chunk_state[to];

	return !madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

static bool may_grow(const struct pem_session *s, const struct pem_producer *p)
{
	return p->chunk_limit < p->ring.chunk_count && !p->ring.overwrite && !p->dir->number &&
	       !p->dead && !p->recovering && !p->is_copy && s->geometry.chunk_limit;
}

/*
 * Bytes that all pools may take, whether they have taken them yet or not. Those of other groups and
 * file systems are counted as well, so that no limit is reached by pools that were allowed to grow
 * at once.
 */
static uint64_t promised_bytes(const struct pem_session *s)
{
	const struct pem_producer *p;
	uint64_t chunks = 0;

	for (p = s->processes->producers; p; p = p->next)
		chunks += p->chunk_limit;
	return chunks * s->geometry.chunk_bytes;
}

/* Does what belongs to the process allow so many bytes? */
static bool process_allows(const struct pem_producer *p, uint64_t bytes)
{
	return pem_file_system__allows(p->dir->directory_fd, bytes) &&
	       pem_process_groups__allow(p->pid, bytes);
}

void pem_producer__grow(struct pem_session *s, struct pem_producer *p, size_t full)
{
	uint64_t now = pem_monotonic_ns(), bytes;
	uint32_t limit = p->chunk_limit, more = limit;

	if (!may_grow(s, p) || full < limit / FULL_SHARE || now < s->chunks->next_growth_ns ||
	    now < p->next_growth_ns)
		return;
	if (more > p->ring.chunk_count - limit)
		more = p->ring.chunk_count - limit;
	bytes = promised_bytes(s) + (uint64_t)more * p->ring.chunk_bytes;
	if (!pem_memory__allows(bytes)) {
		s->chunks->next_growth_ns = now + RETRY_NS;
		return;
	}
	if (!process_allows(p, bytes) || !populate_states(&p->ring, limit, limit + more)) {
		p->next_growth_ns = now + RETRY_NS;
		return;
	}
	p->chunk_limit = limit + more;
	__atomic_store_n(&p->ring.header->chunk_limit, p->chunk_limit, __ATOMIC_RELAXED);
	/* RH: a producer whose pool was full searches it again */
	__atomic_fetch_add(&p->ring.header->freed, 1, __ATOMIC_RELEASE);
}
