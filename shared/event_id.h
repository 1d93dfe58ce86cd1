/* SPDX-License-Identifier: MIT */
/* event_id.h - the id of an event, which its name and version give it (pem_event.id) */
#ifndef PEM_SHARED_EVENT_ID_H
#define PEM_SHARED_EVENT_ID_H

#include <stdint.h>

#define PEM_HASH32_START 2166136261u

/*
 * Returns the 32-bit FNV-1a of a text that goes on from one whose hash is before; PEM_HASH32_START:
 * from none (draft-eastlake-fnv, section 5).
 */
static inline uint32_t pem_hash32_on(uint32_t before, const char *text)
{
	for (; *text; text++)
		before = (before ^ (uint8_t)*text) * 16777619u;
	return before;
}

/* Returns the 32-bit FNV-1a of a text. */
static inline uint32_t pem_hash32(const char *text)
{
	return pem_hash32_on(PEM_HASH32_START, text);
}

/*
 * Returns the id of an event: the hash of its name, and of "NAME@VERSION" from version 2 on. It may
 * be one that is reserved, or another event's: the caller checks that.
 */
static inline uint32_t pem_event_id(const char *name, uint16_t version)
{
	char digits[6], *first = digits + sizeof(digits) - 1;

	if (version < 2)
		return pem_hash32(name);
	*first = '\0';
	for (; version; version /= 10)
		*--first = (char)('0' + version % 10);
	return pem_hash32_on(pem_hash32_on(pem_hash32(name), "@"), first);
}

#endif
