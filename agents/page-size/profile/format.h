/* SPDX-License-Identifier: MIT */
/*
 * format.h - a profile: what a program's references to memory were, and which site each address is
 * of
 *
 * A file: struct profile_head, then chunks in the order in which things happened, each a struct
 * profile_chunk with its payload behind it, padded to 8 bytes. Numbers are in this machine's order
 * of bytes. A file that lacks its PROFILE_END was cut: what is there is good.
 *
 * The observer (the tool for Valgrind, or the runtime of compiler hooks) gives each allocation site
 * ranges of addresses of its own, which begin and end at multiples of 2 MiB, as the allocator that
 * applies directives does. So an address alone tells the site, and no single allocation is written.
 *
 * A window of references that a thread made without a gap is one burst, or several that go on where
 * the last one ended. Of threads that run at once, the bursts stand in the order in which they end.
 *
 * For writers inside Valgrind, too: nothing here needs the C library.
 */
#ifndef PAGE_PROFILE_FORMAT_H
#define PAGE_PROFILE_FORMAT_H

#include "sites/site.h"

#include <stdint.h>

#define PROFILE_MAGIC UINT64_C(0x31464f52504d4550) /* "PEMPROF1" */
#define PROFILE_SITES_MAX 65536u
#define PROFILE_BURST_MAX (1u << 20) /* references of one chunk */

enum profile_source { PROFILE_VALGRIND = 1, PROFILE_COMPILER, PROFILE_SAMPLES };

struct profile_head {
	uint64_t magic;
	uint32_t source; /* enum profile_source */
	uint32_t pid;
};

enum profile_kind {
	PROFILE_OBJECT = 1, /* struct profile_object, then its path with NUL */
	PROFILE_SITE, /* struct profile_site */
	PROFILE_RANGE, /* struct profile_range */
	PROFILE_BURST, /* struct profile_burst, then the references: uint64_t each */
	PROFILE_END, /* struct profile_end */
	PROFILE_CALLS, /* struct profile_calls; before the end, once for a site at most */
};

struct profile_chunk {
	uint32_t kind;
	uint32_t bytes; /* of the payload, without its padding */
};

struct profile_object {
	uint64_t object; /* as in struct page_frame */
	uint64_t start, end; /* where it is mapped */
	uint64_t bias; /* address minus bias is the offset in the object */
};

/* Sites are numbered from 0, in the order of their chunks. */
struct profile_site {
	struct page_site site; /* with as many frames as the observer saw, up to PAGE_FRAMES_MAX */
};

/* From here on the addresses are of this site. UINT32_MAX: of none (they were unmapped). */
struct profile_range {
	uint64_t start, end;
	uint32_t site;
	uint32_t reserved;
	uint64_t requested; /* most bytes that the program had of it at one time, as known now */
};

/* How many blocks the program had of a site in all: each costs a call of the allocator. */
struct profile_calls {
	uint32_t site;
	uint32_t reserved;
	uint64_t calls;
};

/*
 * References that followed each other in one thread, without a gap. Not among them, and counted
 * nowhere: references to the stack near one that the same basic block made just before; with
 * compiler hooks, all that the compiler did not write into the program's code.
 */
struct profile_burst {
	uint64_t at; /* number of references of the whole program before the first of these */
	uint32_t thread;
	uint32_t reserved;
};

/* A reference: an address with these bits. */
#define PROFILE_ADDRESS ((UINT64_C(1) << 56) - 1)
#define PROFILE_STORE (UINT64_C(1) << 63)
/* The address comes from what this same instruction loaded before: the program waits for it. */
#define PROFILE_CHAINED (UINT64_C(1) << 62)

struct profile_end {
	uint64_t references; /* of the program, seen or not */
	uint64_t instructions; /* 0: unknown */
	uint64_t lost; /* sites or ranges that did not fit: their addresses are of no site */
	uint64_t stopped_at; /* the references after this one were not looked at; 0: all were */
	uint64_t forks; /* children that share memory until somebody writes; not those of vfork */
};

#endif
