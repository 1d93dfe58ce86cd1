/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stacks.c - the stacks of calls that allocations name
 *
 * All stacks are a tree: a stack is a call, made from an outer stack. The number of a stack is a
 * sum over its return addresses, so that two threads, or a process and the one that it forked, have
 * one number for one stack without a word about it. An allocation's record has the number. What it
 * means is raised as APP::Stack::Frame, a record for each call, before the first allocation that
 * needs it: of a stack that differs from known ones in its innermost call, that is one record.
 *
 * A table without a lock remembers what was raised. It is a word for each stack: of its number and
 * of where it was raised, which is a stretch of chunks of the thread's lane. So a stretch explains
 * itself, and of a flight recorder whose oldest chunks are gone at most a stretch of each thread
 * has stacks that are unknown. A stack that lost its place in the table is raised once more.
 *
 * Not here: how a caller is found (frames.c).
 */
#include "libc/stacks.h"

#include "libc/frames.h"
#include "libc/libc.h"

#include "stubs/libc.h"

#include <pem/trace.h>

#include <link.h>

#define CALLS_MAX 127u /* as of a sample (HW::HWPerf::HPMsAndPC) */
#define OWN_FRAMES 8u /* between this file and the program's call */
#define STRETCH 32u /* chunks */
#define RAISED 16384u

static uint64_t raised[RAISED];
static uint32_t changes; /* how often code was loaded */

/* Powers of a number: what a call counts in its stack's number, by the calls further out. */
static uint64_t weights[CALLS_MAX + 1];

/* The linker's name for the first byte of this library. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
static uintptr_t own_bytes;

__attribute__((constructor(101))) static void prepare(void)
{
	const ElfW(Phdr) *segment = (const void *)((uintptr_t)&__ehdr_start + __ehdr_start.e_phoff);
	uint64_t power = 1;
	unsigned i;

	for (i = 0; i <= CALLS_MAX; i++)
		weights[i] = power *= 0x9e3779b97f4a7c15u;
	for (i = 0; i < __ehdr_start.e_phnum; i++, segment++)
		if (segment->p_type == PT_LOAD && segment->p_vaddr + segment->p_memsz > own_bytes)
			own_bytes = segment->p_vaddr + segment->p_memsz;
}

/* The stack whose calls are not known: what stands for the outer ones of a stack that is cut. */
#define CUT 0xd6e8feb86659fd93u

void pem_libc_stacks__forget(void)
{
	__atomic_fetch_add(&changes, 1, __ATOMIC_RELAXED);
}

/* --- where a stack was raised --- */

static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0xd6e8feb86659fd93u;
	return sum ^ sum >> 32;
}

/* The index of APP::Stack::Frame in its provider. */
static uint32_t frame_index(void)
{
	static uint32_t known;
	uint32_t index = __atomic_load_n(&known, __ATOMIC_RELAXED);

	while (pem_provider_libc.event_ids[index] != PEM_EVENT_STACK_FRAME_ID)
		index++;
	__atomic_store_n(&known, index, __ATOMIC_RELAXED);
	return index;
}

/*
 * The stretch that the thread's next record lies in, in each session that wants frames. 0: it is
 * not known yet. A chunk that a pool's owner has left stays mapped (producer/pools.c).
 */
static uint64_t stretch_now(void)
{
	const struct pem_thread *thread = pem_thread_self(&pem_provider_libc);
	uint32_t sessions = __atomic_load_n(&pem_page_libc.enable[frame_index()], __ATOMIC_RELAXED);
	uint64_t stretch = __atomic_load_n(&changes, __ATOMIC_RELAXED);

	for (; sessions; sessions &= sessions - 1) {
		const struct pem_writer *writer = &thread->writer[__builtin_ctz(sessions)];
		const struct pem_packet *packet = writer->packet;

		if (!packet)
			return 0;
		stretch = mix(stretch, (uint64_t)writer->incarnation << 32 | packet->pid);
		stretch = mix(stretch, (uint64_t)writer->lane_index << 32 |
					       packet->packet_seq_num / STRETCH);
	}
	return stretch | 1;
}

static uint64_t *entry_of(uint64_t stack, uint64_t stretch)
{
	return &raised[mix(stack, stretch) % RAISED];
}

static bool was_raised(uint64_t stack, uint64_t stretch)
{
	return stretch &&
	       __atomic_load_n(entry_of(stack, stretch), __ATOMIC_RELAXED) == (stack ^ stretch);
}

/* A chunk that is full is followed by another one: the stretch of now is where the record lies. */
static void raise_frame(uintptr_t call, uint64_t stack, uint64_t outer)
{
	uint64_t stretch;

	pem_notify_stack_frame(call, stack, outer);
	stretch = stretch_now(); /* 0: it was lost, as there was no chunk; no entry has that */
	__atomic_store_n(entry_of(stack, stretch), stack ^ stretch, __ATOMIC_RELAXED);
}

/* --- stacks --- */

struct calls {
	uint32_t count;
	bool is_cut; /* there are others further out */
	uintptr_t to[CALLS_MAX]; /* return addresses, innermost first */
};

/* pem's own functions are no calls of the program's: pthread_create, dlopen. */
static bool is_own(uintptr_t call)
{
	return call - (uintptr_t)&__ehdr_start < own_bytes;
}

/* Not inlined: its frame is the first. */
static __attribute__((noinline)) void find_calls(struct calls *calls, uintptr_t site)
{
	struct pem_libc_frame frame = pem_libc_frame__own();
	unsigned i = 0;

	while (frame.pc != site && i++ < OWN_FRAMES)
		if (!pem_libc_frame__step(&frame))
			break;
	calls->to[0] = site;
	calls->count = 1;
	calls->is_cut = true;
	if (frame.pc != site)
		return;
	while (calls->count < CALLS_MAX && pem_libc_frame__step(&frame))
		if (!is_own(frame.pc))
			calls->to[calls->count++] = frame.pc;
	calls->is_cut = !pem_libc_frame__is_outermost(&frame);
}

/* What a call counts in its stack's number. i: as in calls->to. */
static uint64_t weight_of(const struct calls *calls, uint32_t i)
{
	return calls->to[i] * weights[calls->count - i];
}

/* Raise what the stretch lacks of a stack, the outermost call first. */
static __attribute__((noinline)) void raise_missing(const struct calls *calls, uint64_t stack,
						    uint64_t stretch)
{
	uint32_t missing = 0;
	uint64_t outer;

	while (missing < calls->count && !was_raised(stack, stretch))
		stack -= weight_of(calls, missing++);
	if (missing == calls->count && calls->is_cut && !was_raised(stack, stretch))
		raise_frame(PEM_CALLERS_CUT, stack, 0);
	while (missing--) {
		outer = stack;
		stack += weight_of(calls, missing);
		raise_frame(calls->to[missing], stack, outer);
	}
}

uint64_t pem_libc_stack(uintptr_t site)
{
	struct calls calls;
	uint64_t stack, stretch;
	uint32_t i;

	find_calls(&calls, site);
	pem_notify_stack_walk(calls.count);
	stack = calls.is_cut ? CUT : 0;
	for (i = 0; i < calls.count; i++)
		stack += weight_of(&calls, i);
	stretch = stretch_now();
	if (!was_raised(stack, stretch))
		raise_missing(&calls, stack, stretch);
	return stack;
}
