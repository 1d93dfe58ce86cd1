/* SPDX-License-Identifier: MIT */
/*
 * site.h - what names a piece of a program's memory in every run: the site that allocates it
 *
 * A site is told by return addresses, each as the object it lies in and the offset there, so that
 * it is the same under address randomization and when another library is built anew:
 *
 *	heap 1b4ae9f0c2d35578+1a2b 77aa01e2c9b1f004+90c	malloc, calloc, realloc, memalign, new, ...
 *	map 1b4ae9f0c2d35578+44f0			mmap of private anonymous memory
 *	data 1b4ae9f0c2d35578				.data and .bss of an object
 *	stack						the main thread's
 *	reserved 1b4ae9f0c2d35578+44f0			mmap of private anonymous memory in a way
 *							that leaves no place for large pages: its
 *							rights come later, it has to lie somewhere,
 *							or no other object's mmap is called
 *
 * The first frame is where the allocating function returns to; the next is where that function's
 * caller returns to, and so on. As many frames are given as tell sites apart: one, but behind
 * wrappers such as xmalloc.
 *
 * This header and site.c need no C library, so that they serve inside Valgrind and before a program
 * is initialized. All functions are thread-safe, async-signal-safe, and do not block.
 */
#ifndef PAGE_SITE_H
#define PAGE_SITE_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_FRAMES_MAX 4u
/* The longest text of a key, with its end. It fits pem_db_directive.subject. */
#define PAGE_SITE_TEXT 128u

enum page_site_kind {
	PAGE_SITE_HEAP,
	PAGE_SITE_MAP,
	PAGE_SITE_DATA,
	PAGE_SITE_STACK,
	PAGE_SITE_RESERVED,
};

struct page_frame {
	/*
	 * The first eight bytes of the object's build id, the first byte the most significant.
	 * Without one, FNV-1a (64 bits) of its ELF header and program headers.
	 */
	uint64_t object;
	uint64_t offset; /* in the object's own addresses, as its symbol table has them */
};

struct page_site {
	uint32_t kind; /* enum page_site_kind */
	uint32_t frame_count; /* 1 and more for heap, map and reserved, 1 (its offset is 0) for
				 data, 0 for the stack */
	struct page_frame frames[PAGE_FRAMES_MAX];
};

/* Write a site's text, ended by NUL. Returns its length. */
size_t page_site__write(const struct page_site *site, char text[PAGE_SITE_TEXT]);
/*
 * Read a text that ends with NUL, a tab or a newline. Returns how many characters were read, or 0:
 * it is not a site's, and *site is unchanged.
 */
size_t page_site__read(const char *text, struct page_site *site);
/* The object number of a build id of count bytes, or of headers without one. */
uint64_t page_object__of_build_id(const unsigned char *build_id, size_t count);
uint64_t page_object__of_headers(const void *elf_header, size_t header_bytes, const void *programs,
				 size_t program_bytes);

#endif
