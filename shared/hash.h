/* SPDX-License-Identifier: MIT */
/*
 * hash.h - hash tables whose keys come from a trace
 *
 * Who writes a trace chooses its numbers. If the hash function were known, they could be chosen so
 * that all have one hash, and a look-up would walk through all of them. So each table draws a
 * multiplier when it is made: multiply-shift hashing (Dietzfelbinger, Hagerup, Katajainen,
 * Penttonen, A Reliable Randomized Algorithm for the Closest-Pair Problem, 1997). Two different
 * keys share one of n entries with a probability of at most 2/n. With linear probing, runs of keys
 * may then be expected to be as long as the square root of their number at most (Patrascu and
 * Thorup, On the k-Independence Required by Linear Probing and Minwise Independence, 2010). Nothing
 * that a user sees may depend on the order of a table.
 */
#ifndef PEM_SHARED_HASH_H
#define PEM_SHARED_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define PEM_HASH_START 14695981039346656037ull

/*
 * Add a text to a hash, which is PEM_HASH_START at first: eight bytes at a time, each a round of a
 * multiplicative hash (Knuth, The Art of Computer Programming 3, 6.4). The text's length is in it,
 * so that "ab" and "c" are not "a" and "bc". Texts may be chosen to have one hash.
 */
static inline uint64_t pem_hash__text(uint64_t hash, const char *text)
{
	size_t left = strlen(text);
	uint64_t word;

	for (; left >= sizeof(word); left -= sizeof(word), text += sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	word = (uint64_t)left << 56;
	memcpy(&word, text, left);
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

/*
 * As above, for a table of texts of a trace. Rounds are of the folded product of 128 bits (Wang Yi
 * and others, wyhash): who does not know the multiplier can't choose texts of one hash, as he can
 * for any start or multiplier where a round keeps 64 bits of the product.
 */
static inline uint64_t pem_hash__secret_text(uint64_t hash, uint64_t multiplier, const char *text)
{
	size_t left = strlen(text) + 1, bytes;
	uint64_t word;

	for (; left; left -= bytes, text += bytes) {
		__extension__ unsigned __int128 product;

		bytes = left < sizeof(word) ? left : sizeof(word);
		word = 0;
		memcpy(&word, text, bytes);
		product = (unsigned __int128)(hash ^ word ^ multiplier) * multiplier;
		hash = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return hash;
}

/* A random odd number for one table. */
static inline uint64_t pem_hash__multiplier(void)
{
	struct timespec now;
	uint64_t random;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		/* So early after the machine's start, or in a sandbox, a guess must do. */
		clock_gettime(CLOCK_MONOTONIC, &now);
		random = ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^
			  (uint64_t)(uintptr_t)&now) *
			 0x9e3779b97f4a7c15ull;
	}
	return random | 1;
}

/* Index of a key in a table. entries: a power of two, at least 2. */
static inline size_t pem_hash__index(uint64_t key, uint64_t multiplier, size_t entries)
{
	return (size_t)(key * multiplier >> (__builtin_clzll(entries) + 1));
}

/* Join one more number to a key, which is 0 at first. */
static inline uint64_t pem_hash__join(uint64_t key, uint64_t multiplier, uint64_t number)
{
	key = (key ^ number) * multiplier;
	return key ^ key >> 32;
}

#endif
