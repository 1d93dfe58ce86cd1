/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model_hash.c - the hash that names the file of a model text in a session's folder
 *
 * The producer names the file by it, and the consumer checks it. It tells texts apart that differ
 * by accident. It is no cryptographic hash: an attacker can make two texts of one hash. So a
 * consumer trusts it among the files of one user, and never across users.
 */
#include "model_internal.h"

#include <string.h>

/*
 * Each recorded process hashes some 100 KiB of text, so the loop takes four words at a time. Each
 * step is a step of FNV-1a, to 64 bits.
 */
uint32_t pem_model__hash(const char *text, size_t bytes)
{
	const uint64_t prime = 0x100000001b3u;
	uint64_t hash[4] = {1, 2, 3, 4}, word[4];
	size_t part, i;

	for (; bytes; bytes -= part, text += part) {
		part = bytes < sizeof(word) ? bytes : sizeof(word);
		memset(word, 0, sizeof(word));
		memcpy(word, text, part);
		for (i = 0; i < 4; i++) {
			hash[i] = (hash[i] ^ word[i]) * prime;
			hash[i] ^= hash[i] >> 32;
		}
	}
	for (i = 1; i < 4; i++)
		hash[0] = (hash[0] ^ hash[i]) * prime;
	hash[0] ^= hash[0] >> 32;
	return (uint32_t)hash[0] ? (uint32_t)hash[0] : 1;
}
