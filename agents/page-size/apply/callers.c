// SPDX-License-Identifier: MIT
/* callers.c - groups of directives by object, and the frames of a call */
#include "callers.h"

#include "object.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unwind.h>

#define GROUPS_MAX (PAGE_APPLY_SITES_MAX * PAGE_FRAMES_MAX)
#define UNWIND_MAX 16 /* frames of this library and of the call */
#define SEEN 64u /* walks that a thread keeps */

/* Since glibc 2.35: finds an object by an address inside of it, without a lock. */
__attribute__((weak)) int _dl_find_object(void *address, struct dl_find_object *result);

/* The directives of heap and map sites whose first frame is in one object. */
struct group {
	uint64_t object;
	uint64_t bias; /* of the object, where it was last seen */
};

uint64_t callers__cache[CALLERS_ENTRIES];

static const struct directives *all;
static struct group groups[GROUPS_MAX];
static uint32_t group_count;
/* Numbers of directives, in order of their first frames' groups and offsets. */
static uint16_t order[PAGE_APPLY_SITES_MAX];
static uint32_t order_count;

static uint32_t group_of(uint64_t object)
{
	uint32_t i;

	for (i = 0; i < group_count && groups[i].object != object;)
		i++;
	return i;
}

static void add_group(uint64_t object)
{
	uint32_t i = group_of(object);

	if (i == group_count)
		groups[group_count++].object = object;
}

static bool has_frames(const struct directive *directive)
{
	return directive->site.kind == PAGE_SITE_HEAP || directive->site.kind == PAGE_SITE_MAP;
}

static bool is_before(const struct page_frame *a, const struct page_frame *b)
{
	return a->object != b->object ? a->object < b->object : a->offset < b->offset;
}

static const struct page_frame *first_frame(uint32_t i)
{
	return &all->list[order[i]].site.frames[0];
}

bool callers__init(const struct directives *directives)
{
	uint32_t i, j, n;

	if (!_dl_find_object)
		return false;
	all = directives;
	for (i = 0; i < directives->count; i++) {
		const struct page_site *site = &directives->list[i].site;

		if (!has_frames(&directives->list[i]))
			continue;
		for (j = 0; j < site->frame_count; j++)
			add_group(site->frames[j].object);
		for (n = order_count++; n; n--) {
			if (!is_before(&site->frames[0], first_frame(n - 1)))
				break;
			order[n] = order[n - 1];
		}
		order[n] = (uint16_t)i;
	}
	return true;
}

/* --- objects --- */

uint32_t callers__resolve(uintptr_t site)
{
	uint64_t page = site >> 12, object;
	struct dl_find_object found;
	uint32_t group = 0, i;

	if (!_dl_find_object((void *)site, &found) &&
	    object__number((uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end,
			   found.dlfo_link_map->l_addr, &object)) {
		i = group_of(object);
		if (i < group_count) {
			__atomic_store_n(&groups[i].bias, found.dlfo_link_map->l_addr,
					 __ATOMIC_RELAXED);
			group = i + 1;
		}
	}
	__atomic_store_n(&callers__cache[page % CALLERS_ENTRIES], page << 16 | group,
			 __ATOMIC_RELAXED);
	return group;
}

void callers__forget(void)
{
	uint32_t i;

	for (i = 0; i < CALLERS_ENTRIES; i++)
		__atomic_store_n(&callers__cache[i], 0, __ATOMIC_RELAXED);
}

/* --- frames --- */

struct walk {
	uintptr_t site; /* of the first frame */
	uintptr_t sites[PAGE_FRAMES_MAX];
	uintptr_t places[PAGE_FRAMES_MAX]; /* where a return address lies on the stack */
	uint32_t count;
	uint32_t looked;
};

static uintptr_t value_at(uintptr_t place)
{
	return *(const volatile uintptr_t *)place;
}

static _Unwind_Reason_Code walk_step(struct _Unwind_Context *context, void *data)
{
	uintptr_t at = _Unwind_GetIP(context), place;
	struct walk *walk = data;

	/* Frames of this library come first. */
	if (walk->count || at == walk->site) {
		place = _Unwind_GetCFA(context) - sizeof(at);
		walk->places[walk->count] = value_at(place) == at ? place : 0;
		walk->sites[walk->count++] = at;
	}
	return walk->count == PAGE_FRAMES_MAX || ++walk->looked == UNWIND_MAX ? _URC_END_OF_STACK
									      : _URC_NO_REASON;
}

/*
 * Walks take a microsecond a frame, and a wrapper of malloc has one for each block. So a thread
 * keeps some. A call that returns to the same site, with the same frame, comes from the same
 * callers if their return addresses lie where they lay. An old one may lie there in a frame of
 * variable size: then a block is in another site's arena, and as good.
 */
static __thread struct walk seen[SEEN] __attribute__((tls_model("initial-exec")));
static __thread uintptr_t seen_frames[SEEN] __attribute__((tls_model("initial-exec")));

static bool stands(const struct walk *walk)
{
	uint32_t i;

	for (i = 0; i < walk->count; i++) {
		if (value_at(walk->places[i]) != walk->sites[i])
			return false;
	}
	return true;
}

static bool is_kept(const struct walk *walk)
{
	uint32_t i;

	for (i = 0; i < walk->count; i++) {
		if (!walk->places[i])
			return false;
	}
	return walk->count > 0;
}

static void walk_frames(struct walk *walk, uintptr_t frame)
{
	uint32_t i = (uint32_t)((walk->site ^ frame >> 4 ^ frame >> 10) % SEEN);
	struct walk *old = &seen[i];

	if (seen_frames[i] == frame && old->site == walk->site && stands(old)) {
		*walk = *old;
		return;
	}
	_Unwind_Backtrace(walk_step, walk);
	if (!is_kept(walk))
		return;
	/* A signal handler may come between: it finds a whole entry, or none. */
	seen_frames[i] = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*old = *walk;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	seen_frames[i] = frame;
}

static bool is_frame(uintptr_t site, const struct page_frame *frame)
{
	uint32_t group = callers__group(site);

	return group && groups[group - 1].object == frame->object &&
	       site - __atomic_load_n(&groups[group - 1].bias, __ATOMIC_RELAXED) == frame->offset;
}

/* The frames are walked only if a directive has more than one. */
static bool are_frames(struct walk *walk, const struct page_site *site, uintptr_t frame)
{
	uint32_t i;

	if (site->frame_count > 1 && !walk->looked)
		walk_frames(walk, frame);
	for (i = 1; i < site->frame_count; i++) {
		if (i >= walk->count || !is_frame(walk->sites[i], &site->frames[i]))
			return false;
	}
	return true;
}

/* The first of the directives in order whose first frame is not before this one. */
static uint32_t find_first(const struct page_frame *frame)
{
	uint32_t low = 0, high = order_count, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (is_before(first_frame(middle), frame))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int callers__find(uint32_t kind, uint32_t group, uintptr_t site)
{
	struct page_frame frame = {
		groups[group - 1].object,
		site - __atomic_load_n(&groups[group - 1].bias, __ATOMIC_RELAXED)};
	uintptr_t caller = (uintptr_t)__builtin_frame_address(0);
	struct walk walk = {.site = site};
	uint32_t i, frames = 0;
	int found = -1;

	for (i = find_first(&frame); i < order_count && !is_before(&frame, first_frame(i)); i++) {
		const struct page_site *listed = &all->list[order[i]].site;

		/* Of several that hold, the one that says most. */
		if (listed->kind == kind && listed->frame_count > frames &&
		    are_frames(&walk, listed, caller)) {
			found = order[i];
			frames = listed->frame_count;
		}
	}
	return found;
}
