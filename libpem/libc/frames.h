/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frames.h - from a function to its caller, by the unwind tables of loaded objects
 *
 * It keeps no lock, allocates nothing and makes no system call, so that an event in any place may
 * use it. It knows the stack pointer and the frame pointer, which is enough for what compilers make
 * of C and C++. At another frame, such as that of a signal or of code without tables, it ends.
 *
 * The tables are those of the loader's own list, which C++ exceptions use. They are trusted as far
 * as the program's own exceptions trust them, but nothing outside of their object is read.
 *
 * x86-64 with a C library that has _dl_find_object (glibc 2.35); elsewhere there is no step.
 */
#ifndef PEM_LIBC_FRAMES_H
#define PEM_LIBC_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct pem_libc_frame {
	uintptr_t pc; /* a return address: the function's next instruction */
	uintptr_t sp, bp; /* as they are when the call has returned */
};

/* The frame of the caller of the function that uses the macro, which must not be inlined. */
#define pem_libc_frame__own()                                                                      \
	((struct pem_libc_frame){(uintptr_t)__builtin_return_address(0),                           \
				 (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uintptr_t),    \
				 *(const uintptr_t *)__builtin_frame_address(0)})

/* Go to the caller. False: it is unknown, and the frame is unchanged. Async-signal-safe. */
bool pem_libc_frame__step(struct pem_libc_frame *frame);
/* Is it known that the frame has no caller? It is the program's first, or a thread's. As safe. */
bool pem_libc_frame__is_outermost(const struct pem_libc_frame *frame);

struct link_map;

/* The object that has an address; NULL: unknown. Async-signal-safe. */
const struct link_map *pem_libc_frame__object(uintptr_t pc);

#endif
