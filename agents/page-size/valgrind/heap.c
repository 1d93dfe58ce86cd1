/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * heap.c - malloc: gives each site memory of its own
 *
 * A heap is the memory of one site, or that of all which have asked for little. It has regions,
 * which begin and end at multiples of 2 MiB, and these pages of 4 KiB. A slab is some pages for
 * blocks of one size; what is larger than SMALL_MAX has a run of pages of its own. Nothing of this
 * is written into the program's memory.
 *
 * Invariant: a region's free bits say which of its pages are in no slab and no run.
 */
#include "tool.h"
#include "pub_tool_replacemalloc.h"
#include "pub_tool_vkiscnums.h"

#include <linux/mman.h>

#define CLASS_STEP 16u
#define SMALL_MAX 32768u
#define CLASSES 40u
#define SLAB_BLOCKS 8u /* at least */
#define SLAB_WORDS 4u /* of bits */
#define REGION_MAX (UINT64_C(64) << 20) /* but for one block that needs more */
#define RELEASE_BYTES (UINT64_C(1) << 20)
#define REQUEST_MAX (UINT64_C(1) << 46)
#define TABLE_BITS 13u
#define ADDRESS_BITS 47u
#define RUN 1u /* of a page's entry: the pages of the run above RUN_SHIFT */
#define RUN_SHIFT 1u

extern SysRes VG_(am_mmap_client_heap)(SizeT length, Int prot);

struct slab {
	struct slab *next, **link; /* of those with a free block; link is NULL in none */
	Addr start;
	UInt class, used, capacity;
	ULong free[SLAB_WORDS];
};

struct region {
	struct region *next, *older; /* of its heap; made before it */
	struct heap *heap;
	Addr start;
	ULong page_count, first_free; /* no page before first_free is free */
	ULong live, most; /* bytes of its blocks */
	ULong *free; /* bits */
	UWord *pages; /* a slab, a run where it begins, or 0 */
};

struct heap {
	struct region *regions;
	struct slab *slabs[CLASSES];
	UInt site;
	ULong bytes;
	ULong live, most, told; /* bytes of its blocks; what was told of most */
	ULong calls; /* blocks in all */
};

static struct heap common = {.site = NO_SITE};
static struct region *last_region; /* that was made */
static struct region **table[1u << (ADDRESS_BITS - 21 - TABLE_BITS)];

/* --- regions --- */

static struct region *region_of(Addr address)
{
	struct region **part;

	if (address >> ADDRESS_BITS)
		return NULL;
	part = table[address >> (21 + TABLE_BITS)];
	return part ? part[address >> 21 & ((1u << TABLE_BITS) - 1)] : NULL;
}

static void enter(struct region *region)
{
	ULong granule = region->start >> 21;
	ULong end = granule + region->page_count * SMALL_PAGE / LARGE_PAGE;
	struct region ***part;

	for (; granule < end; granule++) {
		part = &table[granule >> TABLE_BITS];
		if (!*part) {
			*part = NEW(sizeof(**part) << TABLE_BITS);
			VG_(memset)(*part, 0, sizeof(**part) << TABLE_BITS);
		}
		(*part)[granule & ((1u << TABLE_BITS) - 1)] = region;
	}
}

/* Addresses that are taken from the kernel in larger pieces; 0: there is no more memory. */
static Addr take_addresses(ULong bytes)
{
	static Addr next, end;
	ULong piece = bytes + LARGE_PAGE;
	SysRes got;
	Addr start;

	if (end - next < bytes) {
		if (piece < REGION_MAX)
			piece = REGION_MAX;
		got = VG_(am_mmap_client_heap)(piece,
					       VKI_PROT_READ | VKI_PROT_WRITE | VKI_PROT_EXEC);
		if (sr_isError(got))
			return 0;
		next = (sr_Res(got) + LARGE_PAGE - 1) & -LARGE_PAGE;
		end = sr_Res(got) + piece;
	}
	start = next;
	next += bytes;
	return start;
}

static struct region *new_region(struct heap *heap, ULong pages)
{
	ULong bytes = pages * SMALL_PAGE, words;
	struct region *region;
	Addr start;

	while (bytes < heap->bytes / 2 && bytes < REGION_MAX / 4)
		bytes *= 2;
	bytes = (bytes + LARGE_PAGE - 1) & -LARGE_PAGE;
	start = take_addresses(bytes);
	if (!start)
		return NULL;
	region = NEW(sizeof(*region));
	VG_(memset)(region, 0, sizeof(*region));
	region->heap = heap;
	region->start = start;
	region->page_count = bytes / SMALL_PAGE;
	words = region->page_count / 64;
	region->free = NEW(words * sizeof(ULong));
	VG_(memset)(region->free, 0xff, words * sizeof(ULong));
	region->pages = NEW(region->page_count * sizeof(UWord));
	VG_(memset)(region->pages, 0, region->page_count * sizeof(UWord));
	region->next = heap->regions;
	heap->regions = region;
	region->older = last_region;
	last_region = region;
	heap->bytes += bytes;
	enter(region);
	if (heap->site != NO_SITE)
		output__range(start, start + bytes, heap->site, 0);
	return region;
}

/* --- pages --- */

static Bool is_free(const struct region *region, ULong page)
{
	return region->free[page / 64] >> page % 64 & 1;
}

static void mark(struct region *region, ULong page, ULong count, Bool free)
{
	ULong end = page + count;

	if (free && page < region->first_free)
		region->first_free = page;
	for (; page < end; page++) {
		if (free)
			region->free[page / 64] |= 1ull << page % 64;
		else
			region->free[page / 64] &= ~(1ull << page % 64);
	}
}

static ULong align_page(const struct region *region, ULong page, ULong align)
{
	Addr address = region->start + page * SMALL_PAGE;

	return (((address + align - 1) & -align) - region->start) / SMALL_PAGE;
}

/* The first of count free pages that begin at a multiple of align; page_count: there are none. */
static ULong find_pages(struct region *region, ULong count, ULong align)
{
	ULong page = region->first_free, end;

	while (page < region->page_count && !is_free(region, page))
		page = region->free[page / 64] ? page + 1 : (page | 63) + 1;
	region->first_free = page;
	for (;;) {
		page = align_page(region, page, align);
		if (page + count > region->page_count)
			return region->page_count;
		for (end = page; end < page + count && is_free(region, end);)
			end++;
		if (end == page + count)
			return page;
		page = end + 1;
	}
}

static Addr take_pages(struct heap *heap, ULong count, ULong align, struct region **region)
{
	ULong page;

	for (*region = heap->regions; *region; *region = (*region)->next) {
		page = find_pages(*region, count, align);
		if (page < (*region)->page_count)
			break;
	}
	if (!*region) {
		*region = new_region(heap, count + (align > LARGE_PAGE ? align / SMALL_PAGE : 0));
		if (!*region)
			return 0;
		page = find_pages(*region, count, align);
	}
	mark(*region, page, count, False);
	return (*region)->start + page * SMALL_PAGE;
}

/* Memory that is not needed now goes back to the kernel, and is zero when it is used again. */
static void release(Addr start, ULong bytes)
{
	Word result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((Word)__NR_madvise), "D"(start), "S"(bytes), "d"((Word)MADV_DONTNEED)
			 : "rcx", "r11", "memory");
}

static void give_pages(struct region *region, Addr start, ULong count)
{
	ULong page = (start - region->start) / SMALL_PAGE;

	region->pages[page] = 0;
	mark(region, page, count, True);
	if (count * SMALL_PAGE >= RELEASE_BYTES)
		release(start, count * SMALL_PAGE);
}

static void count_live(struct region *region, Long bytes)
{
	struct heap *heap = region->heap;

	region->live += bytes;
	if (region->live > region->most)
		region->most = region->live;
	heap->live += bytes;
	if (heap->live > heap->most)
		heap->most = heap->live;
}

/* --- slabs --- */

static UInt class_of(ULong bytes)
{
	UInt shift;

	if (bytes <= 8 * CLASS_STEP)
		return bytes ? (bytes - 1) / CLASS_STEP : 0;
	/* Four classes between two powers of two. */
	shift = 63 - __builtin_clzll(bytes - 1);
	return 8 + 4 * (shift - 7) + ((bytes - 1) >> (shift - 2) & 3);
}

static ULong class_bytes(UInt class)
{
	if (class < 8)
		return (class + 1) * CLASS_STEP;
	return (ULong)(5 + (class - 8) % 4) << ((class - 8) / 4 + 5);
}

static ULong slab_pages(UInt class)
{
	ULong bytes = class_bytes(class);

	return bytes <= SMALL_PAGE / SLAB_BLOCKS
		       ? 1
		       : (SLAB_BLOCKS * bytes + SMALL_PAGE - 1) / SMALL_PAGE;
}

static void link_slab(struct heap *heap, struct slab *slab)
{
	slab->link = &heap->slabs[slab->class];
	slab->next = *slab->link;
	if (slab->next)
		slab->next->link = &slab->next;
	*slab->link = slab;
}

static void unlink_slab(struct slab *slab)
{
	*slab->link = slab->next;
	if (slab->next)
		slab->next->link = slab->link;
	slab->link = NULL;
}

static struct slab *new_slab(struct heap *heap, UInt class)
{
	ULong pages = slab_pages(class), page, i;
	struct region *region;
	Addr start = take_pages(heap, pages, SMALL_PAGE, &region);
	struct slab *slab;

	if (!start)
		return NULL;
	slab = NEW(sizeof(*slab));
	VG_(memset)(slab, 0, sizeof(*slab));
	slab->start = start;
	slab->class = class;
	slab->capacity = pages * SMALL_PAGE / class_bytes(class);
	for (i = 0; i < slab->capacity; i++)
		slab->free[i / 64] |= 1ull << i % 64;
	page = (start - region->start) / SMALL_PAGE;
	for (i = 0; i < pages; i++)
		region->pages[page + i] = (UWord)slab;
	link_slab(heap, slab);
	return slab;
}

static Addr take_small(struct heap *heap, UInt class)
{
	struct slab *slab = heap->slabs[class];
	UInt word = 0, bit;

	if (!slab)
		slab = new_slab(heap, class);
	if (!slab)
		return 0;
	while (!slab->free[word])
		word++;
	bit = __builtin_ctzll(slab->free[word]);
	slab->free[word] &= slab->free[word] - 1;
	if (++slab->used == slab->capacity)
		unlink_slab(slab);
	count_live(region_of(slab->start), class_bytes(class));
	return slab->start + (64 * word + bit) * class_bytes(class);
}

/* The block that begins there; False: none does. */
static Bool slab_block(const struct slab *slab, Addr address, ULong *index)
{
	ULong bytes = class_bytes(slab->class);

	*index = (address - slab->start) / bytes;
	return slab->start + *index * bytes == address && *index < slab->capacity &&
	       !(slab->free[*index / 64] >> *index % 64 & 1);
}

static void give_small(struct region *region, struct slab *slab, ULong index)
{
	ULong page = (slab->start - region->start) / SMALL_PAGE, i;

	slab->free[index / 64] |= 1ull << index % 64;
	if (slab->used-- == slab->capacity)
		link_slab(region->heap, slab);
	count_live(region, -(Long)class_bytes(slab->class));
	if (slab->used || region->heap->slabs[slab->class] == slab)
		return;
	unlink_slab(slab);
	for (i = 0; i < slab_pages(slab->class); i++)
		region->pages[page + i] = 0;
	give_pages(region, slab->start, slab_pages(slab->class));
	VG_(free)(slab);
}

/* --- blocks --- */

static void *take_run(struct heap *heap, ULong bytes, ULong align)
{
	ULong pages = (bytes + SMALL_PAGE - 1) / SMALL_PAGE;
	struct region *region;
	Addr start = take_pages(heap, pages, align, &region);

	if (!start)
		return NULL;
	region->pages[(start - region->start) / SMALL_PAGE] = pages << RUN_SHIFT | RUN;
	count_live(region, pages * SMALL_PAGE);
	return (void *)start;
}

/* The heap for a request of a context that is in all this large. */
static struct heap *heap_of(struct context *context, ULong bytes)
{
	if (context->heap)
		return context->heap;
	context->requested += bytes;
	if (context->requested < OWN_MEMORY_BYTES || sites__number(context) == NO_SITE)
		return &common;
	context->heap = NEW(sizeof(*context->heap));
	VG_(memset)(context->heap, 0, sizeof(*context->heap));
	context->heap->site = context->site;
	return context->heap;
}

static void *take(struct heap *heap, ULong bytes, ULong align)
{
	if (bytes > REQUEST_MAX || align > REQUEST_MAX)
		return NULL;
	if (heap->site != NO_SITE)
		output__calls(heap->site, ++heap->calls);
	if (align > CLASS_STEP) {
		/* A block of a power of two lies at a multiple of it, up to the size of a page. */
		if (bytes < align)
			bytes = align;
		if (bytes > SMALL_PAGE)
			return take_run(heap, bytes, align > SMALL_PAGE ? align : SMALL_PAGE);
		bytes = 1ull << (64 - __builtin_clzll(bytes - 1));
	}
	if (bytes > SMALL_MAX)
		return take_run(heap, bytes, SMALL_PAGE);
	return (void *)take_small(heap, class_of(bytes));
}

/* What a block has room for; 0: there is none at this address. */
static ULong block_bytes(Addr address)
{
	const struct region *region = region_of(address);
	UWord entry;
	ULong index;

	if (!region)
		return 0;
	entry = region->pages[(address - region->start) / SMALL_PAGE];
	if (entry & RUN)
		return address % SMALL_PAGE ? 0 : (entry >> RUN_SHIFT) * SMALL_PAGE;
	if (!entry || !slab_block((const struct slab *)entry, address, &index))
		return 0;
	return class_bytes(((const struct slab *)entry)->class);
}

static void give(Addr address)
{
	ULong bytes = block_bytes(address), index;
	struct region *region = region_of(address);
	UWord entry;

	/* What is no block of ours is a mistake of the program's: nothing to do. */
	if (!bytes)
		return;
	entry = region->pages[(address - region->start) / SMALL_PAGE];
	if (entry & RUN) {
		count_live(region, -(Long)bytes);
		give_pages(region, address, bytes / SMALL_PAGE);
	} else if (slab_block((struct slab *)entry, address, &index)) {
		give_small(region, (struct slab *)entry, index);
	}
}

/* Make a run longer where it is, if the pages behind it are free. */
static Bool extend(Addr address, ULong bytes)
{
	struct region *region = region_of(address);
	ULong page = (address - region->start) / SMALL_PAGE, i;
	ULong pages = region->pages[page] >> RUN_SHIFT;
	ULong wanted = (bytes + SMALL_PAGE - 1) / SMALL_PAGE;

	if (!(region->pages[page] & RUN) || page + wanted > region->page_count)
		return False;
	for (i = page + pages; i < page + wanted; i++)
		if (!is_free(region, i))
			return False;
	mark(region, page + pages, wanted - pages, False);
	region->pages[page] = wanted << RUN_SHIFT | RUN;
	count_live(region, (wanted - pages) * SMALL_PAGE);
	return True;
}

/* --- what replaces the program's functions --- */

static struct heap *heap_for(ThreadId thread, ULong bytes)
{
	return heap_of(sites__context(thread, PAGE_SITE_HEAP), bytes);
}

static void *replace_malloc(ThreadId thread, SizeT bytes)
{
	return take(heap_for(thread, bytes), bytes, CLASS_STEP);
}

static void *replace_memalign(ThreadId thread, SizeT align, SizeT bytes)
{
	if (align & (align - 1))
		return NULL;
	return take(heap_for(thread, bytes), bytes, align);
}

static void *replace_new_aligned(ThreadId thread, SizeT bytes, SizeT align)
{
	return replace_memalign(thread, align, bytes);
}

static void *replace_calloc(ThreadId thread, SizeT count, SizeT each)
{
	SizeT bytes;
	void *block;

	if (__builtin_mul_overflow(count, each, &bytes))
		return NULL;
	block = replace_malloc(thread, bytes);
	/* Fresh pages are zero, and cost no memory until the program touches them. */
	if (block && bytes >= RELEASE_BYTES)
		release((Addr)block, (bytes + SMALL_PAGE - 1) & -SMALL_PAGE);
	else if (block)
		VG_(memset)(block, 0, bytes);
	return block;
}

static void replace_free(ThreadId thread, void *block)
{
	(void)thread;
	give((Addr)block);
}

static void replace_delete_aligned(ThreadId thread, void *block, SizeT align)
{
	(void)align;
	replace_free(thread, block);
}

static void *replace_realloc(ThreadId thread, void *block, SizeT bytes)
{
	ULong old = block_bytes((Addr)block);
	struct heap *heap;
	void *moved;

	if (!old)
		return block ? NULL : replace_malloc(thread, bytes);
	heap = heap_for(thread, bytes);
	if (region_of((Addr)block)->heap == heap && bytes <= old && bytes > old / 2)
		return block;
	if (region_of((Addr)block)->heap == heap && bytes > old && extend((Addr)block, bytes))
		return block;
	/* Other allocators move pages: there are not two blocks at a time. */
	region_of((Addr)block)->heap->live -= old;
	moved = take(heap, bytes, CLASS_STEP);
	region_of((Addr)block)->heap->live += old;
	if (!moved)
		return NULL;
	VG_(memcpy)(moved, block, old < bytes ? old : bytes);
	give((Addr)block);
	return moved;
}

static SizeT replace_usable_size(ThreadId thread, void *block)
{
	(void)thread;
	return block_bytes((Addr)block);
}

void heap__init(void)
{
	VG_(needs_malloc_replacement)
	(replace_malloc, replace_malloc, replace_new_aligned, replace_malloc, replace_new_aligned,
	 replace_memalign, replace_calloc, replace_free, replace_free, replace_delete_aligned,
	 replace_free, replace_delete_aligned, replace_realloc, replace_usable_size, 0);
}

/* Its regions have had their most at different times: the heap's is told of the latest ones. */
void heap__tell(void)
{
	struct region *region;
	struct heap *heap;
	ULong part;

	for (region = last_region; region; region = region->older) {
		heap = region->heap;
		part = heap->most - heap->told;
		if (part > region->most)
			part = region->most;
		if (part && heap->site != NO_SITE)
			output__range(region->start,
				      region->start + region->page_count * SMALL_PAGE, heap->site,
				      part);
		heap->told += part;
	}
}
