/* SPDX-License-Identifier: MIT */
/*
 * model_hash.h - the hash that names the file of a model text in a session's folder
 *
 * The producer names the file by it, and the consumer checks it. It tells texts apart that differ
 * by accident. It is no cryptographic hash: an attacker can make two texts of one hash. So a
 * consumer trusts it among the files of one user, and never across users. pem-codegen computes it
 * for providers that do not want to.
 */
#ifndef PEM_SHARED_MODEL_HASH_H
#define PEM_SHARED_MODEL_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PEM_HASH_WORDS = 4, PEM_HASH_BLOCK_BYTES = PEM_HASH_WORDS * sizeof(uint64_t) };

static inline void pem_model__mix(uint64_t hash[PEM_HASH_WORDS],
				  const char block[PEM_HASH_BLOCK_BYTES])
{
	uint64_t word[PEM_HASH_WORDS];
	size_t i;

	memcpy(word, block, sizeof(word));
	for (i = 0; i < PEM_HASH_WORDS; i++) {
		hash[i] = (hash[i] ^ word[i]) * 0x100000001b3u;
		hash[i] ^= hash[i] >> 32;
	}
}

/*
 * Return the hash of a text, never 0. Async-signal-safe. Each recorded process hashes some 100 KiB
 * of text, so the loop takes four words at a time, and the last ones with zeroes behind the text.
 * Each step is a step of FNV-1a, to 64 bits.
 */
static inline uint32_t pem_model__hash(const char *text, size_t bytes)
{
	uint64_t hash[PEM_HASH_WORDS] = {1, 2, 3, 4};
	char rest[PEM_HASH_BLOCK_BYTES] = {0};
	size_t i;

	for (; bytes >= PEM_HASH_BLOCK_BYTES;
	     bytes -= PEM_HASH_BLOCK_BYTES, text += PEM_HASH_BLOCK_BYTES)
		pem_model__mix(hash, text);
	if (bytes) {
		memcpy(rest, text, bytes);
		pem_model__mix(hash, rest);
	}
	for (i = 1; i < PEM_HASH_WORDS; i++)
		hash[0] = (hash[0] ^ hash[i]) * 0x100000001b3u;
	hash[0] ^= hash[0] >> 32;
	return (uint32_t)hash[0] ? (uint32_t)hash[0] : 1;
}

#endif
