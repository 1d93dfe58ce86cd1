/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sites.c - who allocates
 *
 * A context is the callers of an allocating function as addresses; a site is the same as objects
 * and offsets. The stack is unwound once for each context and depth: after that, a call with the
 * same instruction and stack pointer is known again by the return addresses, which still stand
 * where they were found.
 */
#include "tool.h"

#define FRAMES (PAGE_FRAMES_MAX + 2)
#define SEEN 4096u
#define CONTEXT_BUCKETS 65536u
#define SITE_BUCKETS 4096u

struct seen {
	Addr ip, sp;
	struct context *context;
	Addr places[FRAMES], callers[FRAMES];
	UInt count, kind;
};

struct site {
	struct site *next;
	struct page_site site;
	UInt number;
};

static struct seen seen[SEEN];
static Addr seen_lowest = ~0ul, seen_highest;
static struct context *contexts[CONTEXT_BUCKETS];
static struct site *sites[SITE_BUCKETS];
static UInt age;
ULong sites__lost;

static ULong mix(ULong hash, ULong value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

UInt sites__add(const struct page_site *site)
{
	struct site *entry;
	ULong hash = site->kind;
	UInt i, number;

	for (i = 0; i < site->frame_count; i++)
		hash = mix(mix(hash, site->frames[i].object), site->frames[i].offset);
	for (entry = sites[hash % SITE_BUCKETS]; entry; entry = entry->next)
		if (!VG_(memcmp)(&entry->site, site, sizeof(*site)))
			return entry->number;
	number = output__site(site);
	if (number == NO_SITE) {
		sites__lost++;
		return NO_SITE;
	}
	entry = NEW(sizeof(*entry));
	entry->site = *site;
	entry->number = number;
	entry->next = sites[hash % SITE_BUCKETS];
	sites[hash % SITE_BUCKETS] = entry;
	return number;
}

UInt sites__number(struct context *context)
{
	struct page_site site;
	UInt i;

	if (context->site != NO_SITE)
		return context->site;
	VG_(memset)(&site, 0, sizeof(site));
	site.kind = context->kind;
	for (i = 0; i < context->count; i++) {
		if (!objects__find(context->callers[i], &site.frames[i]))
			break;
	}
	site.frame_count = i;
	if (i)
		context->site = sites__add(&site);
	return context->site;
}

Bool sites__is_inner(ThreadId thread, const struct context *context)
{
	struct page_frame here, caller;

	return context->count && objects__find(VG_(get_IP)(thread), &here) &&
	       objects__find(context->callers[0], &caller) && here.object == caller.object;
}

static struct context *context_of(const Addr *callers, UInt count, UInt kind)
{
	struct context *context;
	ULong hash = kind;
	UInt i;

	for (i = 0; i < count; i++)
		hash = mix(hash, callers[i]);
	for (context = contexts[hash % CONTEXT_BUCKETS]; context; context = context->next) {
		if (context->hash == hash && context->count == count && context->kind == kind &&
		    !VG_(memcmp)(context->callers, callers, count * sizeof(*callers)))
			return context;
	}
	context = NEW(sizeof(*context));
	VG_(memset)(context, 0, sizeof(*context));
	VG_(memcpy)(context->callers, callers, count * sizeof(*callers));
	context->hash = hash;
	context->count = count;
	context->kind = kind;
	context->site = NO_SITE;
	context->next = contexts[hash % CONTEXT_BUCKETS];
	contexts[hash % CONTEXT_BUCKETS] = context;
	return context;
}

/* Addresses have other meanings since an object went. Its contexts stay with their memory. */
static void forget(void)
{
	VG_(memset)(seen, 0, sizeof(seen));
	VG_(memset)(contexts, 0, sizeof(contexts));
	seen_lowest = ~0ul;
	seen_highest = 0;
	age = objects__age;
}

void sites__unmapped(Addr start, SizeT bytes)
{
	if (start <= seen_highest && seen_lowest < start + bytes) {
		VG_(memset)(seen, 0, sizeof(seen));
		seen_lowest = ~0ul;
		seen_highest = 0;
	}
}

/* Do the return addresses still stand where they stood? */
static Bool stands(const struct seen *known)
{
	UInt i;

	for (i = 0; i < known->count; i++)
		if (*(const Addr *)known->places[i] != known->callers[i])
			return False;
	return True;
}

static void remember(struct seen *known, const Addr *ips, const Addr *sps, UInt count)
{
	UInt i;

	known->count = 0;
	for (i = 1; i < count; i++) {
		known->places[i - 1] = sps[i] - sizeof(Addr);
		known->callers[i - 1] = ips[i] + 1;
		if (sps[i] <= known->sp || *(const Addr *)known->places[i - 1] != ips[i] + 1) {
			known->context = NULL;
			return;
		}
	}
	known->count = count - 1;
	if (known->sp < seen_lowest)
		seen_lowest = known->sp;
	if (known->count && known->places[known->count - 1] > seen_highest)
		seen_highest = known->places[known->count - 1];
}

struct context *sites__context(ThreadId thread, UInt kind)
{
	Addr ip = VG_(get_IP)(thread), sp = VG_(get_SP)(thread), ips[FRAMES], sps[FRAMES];
	Addr callers[PAGE_FRAMES_MAX];
	struct seen *known = &seen[mix(mix(0, ip), sp) % SEEN];
	struct context *context;
	UInt count, first, i;

	if (age != objects__age)
		forget();
	if (known->context && known->ip == ip && known->sp == sp && known->kind == kind &&
	    stands(known))
		return known->context;
	count = VG_(get_StackTrace)(thread, ips, FRAMES, sps, NULL, 0);
	for (first = 1; first < count && objects__own(ips[first]);)
		first++;
	for (i = 0; i < PAGE_FRAMES_MAX && first + i < count; i++)
		callers[i] = ips[first + i] + 1;
	known->ip = ip;
	known->sp = sp;
	known->kind = kind;
	known->context = context = context_of(callers, i, kind);
	remember(known, ips, sps, count);
	return context;
}
