/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * kprobe.h - the template of programs that are completed at run time: what kmod/bpf leaves open,
 * libpem fills in
 *
 * An event that no spec describes (a tracepoint outside the catalogue, a function, a probe of a
 * binary) has one program for all of what it does but for what is its own: its number, its record's
 * length, how its fields are fetched, tested and stored. The template has constants and blocks in
 * these places. The object is loaded as it is, so that its maps are known; then the template's
 * instructions are copied for each event, completed, and loaded.
 *
 *	constant   rX = MAGIC                        rX = the value
 *	block      rOUT = MAGIC                      rOUT = any number
 *	           rOUT = rA; rOUT = rB; rOUT = rC   what the block may use: unchanged by it, as is
 *						     all but r0 to r5
 *	           MAGIC's count of instructions     instructions; the template's own jump over the
 *						     others
 *
 *	FETCH   A: the program's context, B: words, C: 8 bytes of the ring's that are this event's
 *		alone words[i] = field i, extended to 64 bits by its sign
 *	TEST    A: words. rOUT = 1: the event's predicate holds, or it has none; 0: the event is not
 *		wanted
 *	FILL    A: the context, B: words, C: the record, zeroed. Stores all fields, in the tail's
 *		fixed places
 */
#ifndef PEM_KPROBE_H
#define PEM_KPROBE_H

#define PEM_KPROBE_PROGRAM "pem_probe"
/* fields that predicates and statistics can be of: the first ones */
#define PEM_KPROBE_WORDS 28

#define PEM_KPROBE_INDEX 0x70650001 /* of the event */
#define PEM_KPROBE_ID 0x70650002
#define PEM_KPROBE_BYTES 0x70650003 /* that a record takes in the ring */
/* 1: may be preempted by another run of itself on its CPU */
#define PEM_KPROBE_SHARED 0x70650004

#define PEM_KPROBE_FETCH 0x70650101
#define PEM_KPROBE_FETCH_ROOM 384
#define PEM_KPROBE_TEST 0x70650102
#define PEM_KPROBE_TEST_ROOM 512
#define PEM_KPROBE_FILL 0x70650103
#define PEM_KPROBE_FILL_ROOM 1024

#endif
