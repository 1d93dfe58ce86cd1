/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kprobe.h - the template of BPF programs that libpem completes at run time
 *
 * kmod/bpf leaves parts of the template open, and libpem fills them in. The template serves events
 * that no spec describes: a tracepoint outside the catalogue, a function, a probe of a binary. Each
 * event has its own number, record length, and code to fetch, test and store its fields. All else
 * is the same. The template has constants and blocks in the open parts. The object is loaded as it
 * is, so that its maps are known. Then libpem copies the template's instructions for each event,
 * completes them, and loads them.
 *
 *	constant   rX = MAGIC                        rX = the value
 *	block      rOUT = MAGIC                      rOUT = any number
 *	           rOUT = rA; rOUT = rB; rOUT = rC   the block's inputs: it changes neither these
 *						     nor other registers but r0 to r5
 *	           MAGIC's count of instructions     instructions; the template's own jump over the
 *						     others
 *
 *	FETCH   A: the program's context, B: words, C: 8 bytes of the ring that only this event
 *		uses. words[i] = field i, extended to 64 bits by its sign
 *	TEST    A: words. rOUT = 1: the event's predicate holds, or it has none; 0: the event is not
 *		wanted
 *	FILL    A: the context, B: words, C: the record, zeroed. Stores all fields, in the tail's
 *		fixed places
 */
#ifndef PEM_KPROBE_H
#define PEM_KPROBE_H

#define PEM_KPROBE_PROGRAM "pem_probe"
/* Predicates and statistics can use so many fields: the first ones. */
#define PEM_KPROBE_WORDS 28

#define PEM_KPROBE_INDEX 0x70650001 /* The event's index */
#define PEM_KPROBE_ID 0x70650002
#define PEM_KPROBE_BYTES 0x70650003 /* Bytes that a record takes in the ring */
/* 1: another run of the program on its CPU may preempt it. */
#define PEM_KPROBE_SHARED 0x70650004

#define PEM_KPROBE_FETCH 0x70650101
#define PEM_KPROBE_FETCH_ROOM 384
#define PEM_KPROBE_TEST 0x70650102
#define PEM_KPROBE_TEST_ROOM 512
#define PEM_KPROBE_FILL 0x70650103
#define PEM_KPROBE_FILL_ROOM 1024

#endif
