/* SPDX-License-Identifier: MIT */
/*
 * wake.h - a handler of SIGURG, which looks (look.h) as the main thread uses processor time
 *
 * SIGURG is ignored by default. It is raised by a timer of the thread's own processor time, which
 * expires once for each time it is set, and the kernel sends it as the thread returns to the
 * program. The handler has a stack of its own, so nothing is written below the program's, which may
 * be a small one of a coroutine.
 *
 * A program that blocks the signal, asks for it, waits for signals, has an alternate stack or gives
 * up rights would find traces of this. So it ends before (signals.c), for good.
 */
#ifndef PAGE_APPLY_WAKE_H
#define PAGE_APPLY_WAKE_H

#include <stdbool.h>
#include <stdint.h>

/* In the main thread, first. */
void wake__init(void);
/* Look after this much processor time of the main thread, which calls this; 0: don't. */
void wake__after(uint64_t ns);
/* Never again: no timer, no handler, no signal pending, no stack. Keeps errno. */
void wake__stop(void);
/* The same for the stack, which only the main thread can put away. */
void wake__drop_stack(void);
bool wake__is_main_thread(void);
void wake__after_fork_child(void);

#endif
