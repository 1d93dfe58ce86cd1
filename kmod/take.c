// SPDX-License-Identifier: GPL-2.0-only
/*
 * take.c - gives full chunks to the consumer, the oldest first, and takes them back
 *
 * Callers hold the session's lock, so only the caller that took a chunk sees it READING. Producers
 * run meanwhile. In an overwrite pool they may reclaim a chunk until it is READING. Letters:
 * docs/architecture.md, Barriers.
 */
#include "module.h"

#include <linux/nospec.h>

#define AT_ONCE 64 /* indices that are copied from user space at once */
#define SEARCH_AT_ONCE 1024 /* chunks searched before cond_resched() */

static struct pem_packet *packet_at(const struct pem_ring *ring, u32 index)
{
	return (struct pem_packet *)(ring->chunks + (u64)index * ring->chunk_bytes);
}

/* --- full chunks found and not taken yet: a heap (Williams, CACM 7(6), 1964), oldest on top --- */

static bool is_older(const struct pem_full_chunk *a, const struct pem_full_chunk *b)
{
	return a->begin != b->begin ? a->begin < b->begin : a->index < b->index;
}

static void put_found(struct pem_kmod_pool *pool, u32 index)
{
	struct pem_full_chunk chunk = {
		.index = index, .begin = READ_ONCE(packet_at(&pool->ring, index)->timestamp_begin)};
	u32 at = pool->found_count, parent;

	/* A search finds each chunk once, so there is room. */
	if (WARN_ON_ONCE(at == pool->ring.chunk_count))
		return;
	pool->found_count++;
	for (; at; at = parent) {
		parent = (at - 1) / 2;
		if (!is_older(&chunk, &pool->found[parent]))
			break;
		pool->found[at] = pool->found[parent];
	}
	pool->found[at] = chunk;
}

static struct pem_full_chunk oldest_found(struct pem_kmod_pool *pool)
{
	struct pem_full_chunk *found = pool->found, oldest = found[0];
	struct pem_full_chunk last = found[--pool->found_count];
	u32 at = 0, child;

	for (; (child = 2 * at + 1) < pool->found_count; at = child) {
		if (child + 1 < pool->found_count && is_older(&found[child + 1], &found[child]))
			child++;
		if (!is_older(&found[child], &last))
			break;
		found[at] = found[child];
	}
	found[at] = last;
	return oldest;
}

/*
 * The chunks that the current or last call has taken. They are kept in pool->found, too, from its
 * end down. A chunk was either taken, or found, or neither, so there is room for both.
 */
static u32 *taken_at(struct pem_kmod_pool *pool, u32 i)
{
	return &pool->found[pool->ring.chunk_count - 1 - i].index;
}

/* Search for full chunks. The heap must be empty. */
static void find_full(struct pem_kmod_pool *pool)
{
	const struct pem_ring *ring = &pool->ring;
	u32 before = atomic_read(&pool->full), i, word;

	for (i = 0; i < ring->chunk_count; i++) {
		if (i % SEARCH_AT_ONCE == 0)
			cond_resched();
		/* rb, rd */
		word = smp_load_acquire(&ring->chunk_state[i]);
		if (PEM_CHUNK_STATE(word) == PEM_CHUNK_FULL)
			put_found(pool, i);
	}
	/*
	 * The full chunks that producers have reclaimed since are still in the count. Subtract
	 * them.
	 */
	if (ring->overwrite && before > pool->found_count)
		atomic_sub(before - pool->found_count, &pool->full);
}

/*
 * Give a READING chunk this state word. A producer that found no chunk then searches again,
 * whatever kind of chunk it wants.
 */
static void give_up(const struct pem_ring *ring, u32 index, u32 word)
{
	/* RC, RD */
	smp_store_release(&ring->chunk_state[index], word);
	/* RH */
	smp_store_release(&ring->header->freed, ring->header->freed + 1);
}

/* Take a chunk for the consumer. True if it was taken and is still the chunk that was found. */
static bool take_one(const struct pem_ring *ring, const struct pem_full_chunk *chunk)
{
	u32 *state = &ring->chunk_state[chunk->index], word = READ_ONCE(*state);

	/* rb, rd */
	if (PEM_CHUNK_STATE(word) != PEM_CHUNK_FULL ||
	    READ_ONCE(packet_at(ring, chunk->index)->timestamp_begin) != chunk->begin ||
	    cmpxchg_acquire(state, word, PEM_CHUNK_WORD(PEM_CHUNK_READING, PEM_CHUNK_LANE(word))) !=
		    word)
		return false;
	if (packet_at(ring, chunk->index)->timestamp_begin == chunk->begin)
		return true;
	/* Producers have reclaimed and filled it again meanwhile. So other chunks are older now. */
	give_up(ring, chunk->index, word); /* H */
	return false;
}

static void put_back_one(struct pem_kmod_pool *pool, u32 index, u32 state)
{
	u32 lane = PEM_CHUNK_LANE(READ_ONCE(pool->ring.chunk_state[index]));

	/*
	 * Add it to the heap before a producer may reclaim it. It may be older than those in the
	 * heap.
	 */
	if (state == PEM_CHUNK_FULL)
		put_found(pool, index);
	give_up(&pool->ring, index, PEM_CHUNK_WORD(state, state == PEM_CHUNK_FULL ? lane : 0));
	if (state == PEM_CHUNK_FULL)
		atomic_inc(&pool->full);
}

/*
 * Chunks that were found and not taken stay in the heap for the next call. Chunks that are put back
 * go into the heap, too. Otherwise a consumer that drains a large pool, few chunks at a time, would
 * wait for a search of the whole pool at each call. In an overwrite pool many of the chunks in the
 * heap may have been reclaimed meanwhile.
 */
int pem_kmod_pool__take(struct pem_kmod_session *session, struct pem_kmod_chunks *chunks)
{
	struct pem_kmod_pool *pool = pem_kmod_pool__of(session, chunks->cpu);
	u32 __user *to = u64_to_user_ptr(chunks->chunks);
	u32 taken = 0, searched = 0;
	struct pem_full_chunk chunk;
	bool is_fresh = false, is_told = true;

	if (chunks->cpu >= nr_cpu_ids || chunks->flags)
		return -EINVAL;
	while (pool && is_told && taken < chunks->count) {
		if (!pool->found_count) {
			if (is_fresh || !atomic_read(&pool->full))
				break;
			find_full(pool);
			is_fresh = true;
			continue;
		}
		if (++searched % SEARCH_AT_ONCE == 0)
			cond_resched();
		chunk = oldest_found(pool);
		if (!take_one(&pool->ring, &chunk))
			continue;
		*taken_at(pool, taken) = chunk.index;
		atomic_dec(&pool->full);
		is_told = !put_user(chunk.index, to + taken++);
	}
	if (!is_told)
		pem_kmod_pool__untake(session, chunks->cpu, taken);
	chunks->count = taken;
	return is_told ? 0 : -EFAULT;
}

void pem_kmod_pool__untake(struct pem_kmod_session *session, u32 cpu, u32 count)
{
	struct pem_kmod_pool *pool = pem_kmod_pool__of(session, cpu);

	/* The last chunk goes first, because the heap grows towards it. */
	while (pool && count--) {
		put_back_one(pool, *taken_at(pool, count), PEM_CHUNK_FULL);
		if (count % SEARCH_AT_ONCE == 0)
			cond_resched();
	}
}

int pem_kmod_pool__free(struct pem_kmod_session *session, const struct pem_kmod_chunks *chunks)
{
	struct pem_kmod_pool *pool = pem_kmod_pool__of(session, chunks->cpu);
	const u32 __user *from = u64_to_user_ptr(chunks->chunks);
	u32 index[AT_ONCE], done, n, i;
	bool put_back = chunks->flags & PEM_KMOD_PUT_BACK;

	if (!pool || (chunks->flags & ~PEM_KMOD_PUT_BACK) || chunks->count > pool->ring.chunk_count)
		return -EINVAL;
	for (done = 0; done < chunks->count; done += n) {
		n = min_t(u32, chunks->count - done, AT_ONCE);
		if (copy_from_user(index, from + done, n * sizeof(index[0])))
			return -EFAULT;
		for (i = 0; i < n; i++) {
			if (index[i] >= pool->ring.chunk_count)
				return -EINVAL;
			index[i] = array_index_nospec(index[i], pool->ring.chunk_count);
			/* Only the session makes and ends READING, under its lock. */
			if (PEM_CHUNK_STATE(READ_ONCE(pool->ring.chunk_state[index[i]])) !=
			    PEM_CHUNK_READING)
				return -EINVAL;
			put_back_one(pool, index[i], put_back ? PEM_CHUNK_FULL : PEM_CHUNK_FREE);
		}
		cond_resched();
	}
	return 0;
}
