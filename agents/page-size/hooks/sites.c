// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sites.c - who allocates: callers.h of ../apply, where each call is under a context of its own
 *
 * A context is the callers of an allocating function as addresses; a site is the same as objects
 * and offsets. The stack is walked once for each context and depth. After that a call with the same
 * first caller and frame is known again by its return addresses, which still stand where they were
 * found. Each is read only if those before it stand: then the functions that left them are the
 * same, and the next one's place is on this thread's stack.
 */
#include "hooks.h"

#include "apply/callers.h"

#include <unwind.h>

#define WALK_MAX 16u /* frames of this library and of the call */
#define CONTEXTS_MAX 131072u
#define CONTEXT_BUCKETS 65536u
#define SITE_BUCKETS 4096u
#define SEEN (BURSTS_ROOM / sizeof(struct seen))
#define CHUNK_BYTES (1u << 20)

/* What a thread knows of a call. */
struct seen {
	uintptr_t site, frame;
	uint32_t number, count, age;
	uint32_t reserved;
	uintptr_t places[PAGE_FRAMES_MAX], callers[PAGE_FRAMES_MAX];
};

struct site {
	struct site *next;
	struct page_site site;
	uint32_t number;
};

/* No page of code is without a context. */
uint64_t callers__cache[CALLERS_ENTRIES];

static struct context *contexts[CONTEXT_BUCKETS];
static struct context *numbered[CONTEXTS_MAX];
static uint32_t context_count;
static struct site *sites[SITE_BUCKETS];
static uint32_t age; /* grows when objects go */
static char *chunk;
static size_t chunk_left;

/* Memory that is never given back. With the output locked. */
static void *take_memory(size_t bytes)
{
	if (chunk_left < bytes) {
		chunk = hooks__memory(CHUNK_BYTES);
		chunk_left = chunk ? CHUNK_BYTES : 0;
	}
	if (!chunk)
		return NULL;
	chunk_left -= bytes;
	chunk += bytes;
	return chunk - bytes;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static bool is_same(const struct page_site *a, const struct page_site *b)
{
	uint32_t i;

	if (a->kind != b->kind || a->frame_count != b->frame_count)
		return false;
	for (i = 0; i < a->frame_count; i++)
		if (a->frames[i].object != b->frames[i].object ||
		    a->frames[i].offset != b->frames[i].offset)
			return false;
	return true;
}

uint32_t sites__add(const struct page_site *site)
{
	struct site **bucket, *entry;
	uint64_t hash = site->kind;
	uint32_t i, number;

	for (i = 0; i < site->frame_count; i++)
		hash = mix(mix(hash, site->frames[i].object), site->frames[i].offset);
	bucket = &sites[hash % SITE_BUCKETS];
	for (entry = *bucket; entry; entry = entry->next)
		if (is_same(&entry->site, site))
			return entry->number;
	entry = take_memory(sizeof(*entry));
	number = entry ? output__site(site) : NO_SITE;
	if (number == NO_SITE) {
		output__lose();
		return NO_SITE;
	}
	entry->site = *site;
	entry->number = number;
	entry->next = *bucket;
	*bucket = entry;
	return number;
}

uint32_t sites__number(struct context *context)
{
	struct page_site site = {.kind = context->kind};
	uint32_t i;

	if (context->site != NO_SITE || !output__lock())
		return context->site;
	for (i = 0; i < context->count; i++)
		if (!objects__find(context->callers[i], &site.frames[i]))
			break;
	site.frame_count = i;
	if (i)
		context->site = sites__add(&site);
	output__unlock();
	return context->site;
}

struct context *sites__context(uint32_t number)
{
	return numbered[number];
}

void sites__forget(void)
{
	__atomic_fetch_add(&age, 1, __ATOMIC_RELAXED);
}

/* --- contexts --- */

static struct context *find_context(const struct context *like)
{
	struct context *context;
	uint32_t i;

	/* The acquire pairs with the release in add_context. */
	context = __atomic_load_n(&contexts[like->hash % CONTEXT_BUCKETS], __ATOMIC_ACQUIRE);
	for (; context; context = context->next) {
		if (context->hash != like->hash || context->count != like->count ||
		    context->kind != like->kind || context->age != like->age)
			continue;
		for (i = 0; i < like->count && context->callers[i] == like->callers[i];)
			i++;
		if (i == like->count)
			return context;
	}
	return NULL;
}

static struct context *add_context(const struct context *like)
{
	struct context **bucket = &contexts[like->hash % CONTEXT_BUCKETS], *found;
	struct context *entry = NULL;

	if (!output__lock())
		return NULL;
	found = find_context(like);
	if (!found && context_count < CONTEXTS_MAX)
		entry = take_memory(sizeof(*entry));
	if (entry) {
		*entry = *like;
		entry->next = *bucket;
		entry->number = context_count;
		numbered[context_count++] = entry;
		__atomic_store_n(bucket, entry, __ATOMIC_RELEASE);
		found = entry;
	} else if (!found) {
		output__lose();
	}
	output__unlock();
	return found;
}

/* --- frames --- */

struct walk {
	uintptr_t site; /* of the first frame */
	uintptr_t callers[PAGE_FRAMES_MAX], places[PAGE_FRAMES_MAX];
	uint32_t count, looked;
};

static _Unwind_Reason_Code walk_step(struct _Unwind_Context *unwind, void *data)
{
	struct walk *walk = data;
	uintptr_t at = _Unwind_GetIP(unwind);

	/* Frames of this library come first. */
	if (walk->count || at == walk->site) {
		if (!at)
			return _URC_END_OF_STACK;
		walk->callers[walk->count] = at;
		walk->places[walk->count++] = _Unwind_GetCFA(unwind) - sizeof(uintptr_t);
	}
	return walk->count == PAGE_FRAMES_MAX || ++walk->looked == WALK_MAX ? _URC_END_OF_STACK
									    : _URC_NO_REASON;
}

static uintptr_t value_at(uintptr_t place)
{
	return *(const volatile uintptr_t *)place;
}

static bool stands(const struct seen *seen)
{
	uint32_t i;

	for (i = 0; i < seen->count; i++)
		if (value_at(seen->places[i]) != seen->callers[i])
			return false;
	return true;
}

/* Calls whose return addresses are not where the unwinder says are walked each time. */
static void remember(struct seen *seen, const struct walk *walk, uintptr_t frame, uint32_t number)
{
	uint32_t i;

	seen->site = 0;
	for (i = 0; i < walk->count; i++) {
		if (walk->places[i] <= (i ? walk->places[i - 1] : frame) ||
		    value_at(walk->places[i]) != walk->callers[i])
			return;
		seen->places[i] = walk->places[i];
		seen->callers[i] = walk->callers[i];
	}
	seen->count = walk->count;
	seen->frame = frame;
	seen->number = number;
	seen->age = age;
	seen->site = walk->site;
}

uint32_t callers__resolve(uintptr_t site)
{
	uint64_t page = site >> 12;

	__atomic_store_n(&callers__cache[page % CALLERS_ENTRIES], page << 16 | 1, __ATOMIC_RELAXED);
	return 1;
}

int callers__find(uint32_t kind, uint32_t group, uintptr_t site)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	struct context like = {.hash = kind, .kind = kind, .site = NO_SITE, .age = age}, *found;
	struct walk walk = {.site = site};
	struct seen *seen = bursts__room();
	uint32_t i, number;

	(void)group;
	if (!bursts__are_on())
		return -1;
	if (seen) {
		seen += mix(mix(kind, site), frame) % SEEN;
		if (seen->site == site && seen->frame == frame && seen->age == age &&
		    numbered[seen->number]->kind == kind && stands(seen))
			return (int)seen->number;
	}
	_Unwind_Backtrace(walk_step, &walk);
	if (!walk.count)
		walk.callers[walk.count++] = site;
	like.count = walk.count;
	for (i = 0; i < walk.count; i++) {
		like.callers[i] = walk.callers[i];
		like.hash = mix(like.hash, walk.callers[i]);
	}
	found = find_context(&like);
	if (!found)
		found = add_context(&like);
	if (!found)
		return -1;
	number = found->number;
	if (seen && walk.places[0])
		remember(seen, &walk, frame, number);
	return (int)number;
}
