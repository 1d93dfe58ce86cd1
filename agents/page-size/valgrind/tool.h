/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tool.h - what the files of the tool for Valgrind share
 *
 * The tool observes an unmodified program and writes a profile (../profile/format.h):
 *
 *	main.c		options, threads, and the events of Valgrind's core
 *	instrument.c	makes each superblock store the addresses that it refers to
 *	bursts.c	which of these are kept
 *	objects.c	the objects that are mapped, for names of addresses
 *	sites.c		who allocates
 *	heap.c		malloc: gives each site memory of its own
 *	output.c	the file
 *
 * One thread of the program runs at a time, with all of the tool: nothing here is locked.
 */
#ifndef PEM_PAGE_SIZE_TOOL_H
#define PEM_PAGE_SIZE_TOOL_H

#include "profile/format.h"
#include "profile/ranges.h"

#include "pub_tool_basics.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_guest.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"

#define NO_SITE RANGES_NO_SITE
#define LARGE_PAGE (UINT64_C(1) << 21)
#define SMALL_PAGE UINT64_C(4096)
/* A context that asks for less has its memory among that of others, of no site. */
#define OWN_MEMORY_BYTES (64u << 10)

/* --- main.c --- */

struct options {
	const HChar *profile;
	/* Signed, as Valgrind reads numbers; never below 0. */
	Long burst; /* references */
	Long keep; /* bytes of references */
	Long limit; /* seconds; 0: none */
	Bool follow_exec; /* what the first process becomes, and none of its children */
	Bool follow_fork;
};
extern struct options options;
extern ULong fork_count; /* children that share memory with this process until somebody writes */

/*
 * What the core has, and does not tell tools of: a descriptor out of the program's reach, pread, and
 * the option that is asked when a process executes a program.
 */
extern Int VG_(safe_fd)(Int fd);
extern SysRes VG_(pread)(Int fd, void *to, Int count, OffT offset);
extern Bool VG_(clo_trace_children);

/* --- exec.c --- */

/*
 * Before a system call: if the process is about to become Valgrind, it is not followed, and becomes
 * that without an observer.
 */
void exec__before(UInt number, const UWord *arguments);

/* --- instrument.c --- */

/* Where the superblocks store: in the first shadow registers of the thread that runs. */
#define POSITION_REGISTER offsetof(VexGuestArchState, guest_RAX)
#define COUNT_REGISTER offsetof(VexGuestArchState, guest_RCX)

IRSB *instrument(VgCallbackClosure *closure, IRSB *sb, const VexGuestLayout *layout,
		 const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word,
		 IRType host_word);

/* --- bursts.c --- */

/* The place of the next reference, and the instructions of the program so far. */
extern ULong *position;
extern ULong instruction_count;
extern Bool stopped; /* no more references are looked at */

/* A reference as the superblocks store it: its address with PROFILE_CHAINED; of a store inverted.
 */
#define BUFFER_COUNT 8192u
/* Of one superblock between two checks of the buffer. */
#define BUFFER_SPARE 256u
extern ULong buffer[BUFFER_COUNT + BUFFER_SPARE];

/* The thread whose references are in the buffer; VG_INVALID_THREADID before the first. */
extern ThreadId running_thread;
/* Take what is in the buffer, and empty it. */
void bursts__take(void);
/* What was referred to so far stands in the file before what comes now. */
void bursts__settle(void);
void bursts__stop(void);
/* The references that are kept follow no others: after fork. */
void bursts__restart(void);
/* No reference is kept any more, and what was not written is the parent's: after fork. */
void bursts__leave(void);
void bursts__end(void);

/* --- objects.c --- */

/* A mapping of a file, or of parts of it: its object, if it is one, becomes known. */
void objects__mapped(Addr address, SizeT bytes);
void objects__unmapped(Addr address, SizeT bytes);
/* Is the address in an object? Then *frame is where. */
Bool objects__find(Addr address, struct page_frame *frame);
Bool objects__hold(Addr address);
/* Is it code of the tool's own library in the program? */
Bool objects__own(Addr address);
/* Grows when an object goes: what was known of addresses is stale. */
extern UInt objects__age;

/* --- sites.c --- */

struct context {
	struct context *next;
	ULong hash;
	Addr callers[PAGE_FRAMES_MAX];
	ULong requested;
	UInt count, kind;
	UInt site; /* NO_SITE: none yet */
	struct heap *heap;
};

/* Who calls: the callers of the function that the thread is in. Never NULL. */
struct context *sites__context(ThreadId thread, UInt kind);
/* Is the thread in a function of the object that its caller is in, too? */
Bool sites__is_inner(ThreadId thread, const struct context *context);
/* The number of a context's site, which is made on the first call; NO_SITE: it can't have one. */
UInt sites__number(struct context *context);
UInt sites__add(const struct page_site *site);
/* Stacks may be gone that contexts were known again by. */
void sites__unmapped(Addr start, SizeT bytes);
extern ULong sites__lost;

/* --- heap.c --- */

void heap__init(void);
/* Tell of the most bytes that were asked for in each range. */
void heap__tell(void);

/* --- output.c --- */

void output__init(const HChar *path);
/* The child of fork goes on with a file of its own. */
void output__forked(void);
void output__object(const struct profile_object *object, const HChar *path);
UInt output__site(const struct page_site *site); /* NO_SITE: too many */
/* So many blocks were had of a site up to now. */
void output__calls(UInt site, ULong calls);
void output__range(Addr start, Addr end, UInt site, ULong requested);
/* The site of the range that holds an address; NO_SITE: none does. */
UInt output__site_at(Addr address);
void output__burst(ULong at, ThreadId thread, const ULong *references, UInt count);
/* Drop the bursts whose windows are no multiple of stride. False: it failed, and was said. */
Bool output__thin(ULong window_references, ULong stride);
ULong output__burst_bytes(void);
void output__end(const struct profile_end *end);

/* malloc of the tool with a fixed cost centre; never fails. */
#define NEW(bytes) VG_(malloc)("pem", bytes)
#define RENEW(old, bytes) VG_(realloc)("pem", old, bytes)

#endif
