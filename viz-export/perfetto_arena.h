/* SPDX-License-Identifier: MIT */
/* perfetto_arena.h - memory for the message of one record, reused for the next record */
#ifndef PEM_PERFETTO_ARENA_H
#define PEM_PERFETTO_ARENA_H

#include "text.h"

#include <stdint.h>
#include <string.h>

struct pem_arena {
	uint8_t *memory;
	size_t size;
	size_t used;
};

/* Take bytes from the arena. NULL: no room is left. */
static inline void *pem_arena__take(struct pem_arena *arena, size_t bytes)
{
	void *p = arena->memory + arena->used;

	bytes = (bytes + 15) & ~(size_t)15;
	if (bytes > arena->size - arena->used)
		return NULL;
	arena->used += bytes;
	return p;
}

/*
 * Copy a string. Protobuf wants UTF-8, so if the string is not UTF-8, each byte that is not ASCII
 * becomes '?'.
 */
static inline char *pem_arena__text(struct pem_arena *arena, const char *text)
{
	size_t bytes = strlen(text) + 1, left = bytes - 1, i, n;
	char *copy;

	while (left && (n = pem_utf8_bytes(text + bytes - 1 - left, left)) != 0)
		left -= n;
	if (!left)
		return (char *)text;
	copy = pem_arena__take(arena, bytes);
	for (i = 0; copy && i < bytes; i++)
		copy[i] = (uint8_t)text[i] < 0x80 ? text[i] : '?';
	return copy;
}

#endif
