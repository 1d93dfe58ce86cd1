/* SPDX-License-Identifier: MIT */
/*
 * internal.h - system calls that pem makes in a program, told apart from the program's own
 *
 * libpem and its adapters make their system calls by pem_internal_syscall(). A register that calls
 * leave alone then holds the address after the call's instruction, combined with
 * PEM_INTERNAL_CALL. The kernel sees both. So a mark is of this one call: a signal handler that
 * interrupts it, or a function that gets the register as it is, makes calls at other addresses.
 *
 * Before any code of pem runs, the program's loader maps the preloaded libraries. These calls are
 * the loader's, and are recognized by what they are on. A process whose loader opens a file of
 * pem's has a struct pem_start until pem's first call there. A BPF program or the module passes
 * each of its calls to pem_start_owns():
 *
 *	openat(pem's library)                                LOADS
 *	read, fstat, mmap of the file, ...                   LOADS
 *	close                                                CLOSES
 *	any other call                                       LOADED
 *	mprotect, munmap of the library's memory             LOADED
 *
 * The answer for a call is the same when it begins and when it ends, and for each event of it.
 */
#ifndef PEM_INTERNAL_H
#define PEM_INTERNAL_H

#include <pem/abi.h>

#define PEM_INTERNAL_CALL 0x6c6c61632e6d6570ull /* "pem.call" */

/* The longest beginning of the path by which a loader opens pem's libraries. */
#define PEM_LIBRARY_PATH_BYTES 256u
#define PEM_START_CALLS_MAX 512u

/* Numbers of system calls on this machine. */
struct pem_start_calls {
	uint32_t openat, mmap, mprotect, munmap, close, execve;
	uint64_t loads[PEM_START_CALLS_MAX / 64]; /* a bit for each call that maps a library */
};
PEM_STATIC_ASSERT(sizeof(struct pem_start_calls) == 24 + PEM_START_CALLS_MAX / 8, "no gaps");

#define PEM_START_LOADED 0u
#define PEM_START_LOADS 1u
#define PEM_START_CLOSES 2u

struct pem_start {
	uint32_t state; /* PEM_START_* */
	uint32_t reserved;
	/* What mmap was told to map of pem's libraries at fixed addresses: their data. */
	uint64_t begin, end;
};

/*
 * Is this call of a loader for pem's libraries? number: of the call; first to fifth: its arguments.
 * An anonymous mapping is the loader's own memory.
 */
PEM_INLINE int pem_start_owns(struct pem_start *start, const volatile struct pem_start_calls *calls,
			      uint64_t number, const uint64_t argument[5])
{
	if (start->state == PEM_START_CLOSES && number != calls->close)
		start->state = PEM_START_LOADED;
	if (start->state == PEM_START_LOADS && number == calls->close)
		start->state = PEM_START_CLOSES;
	if (start->state == PEM_START_LOADS &&
	    !(number < PEM_START_CALLS_MAX &&
	      calls->loads[number / 64 & (PEM_START_CALLS_MAX / 64 - 1)] >> (number & 63) & 1))
		start->state = PEM_START_LOADED;
	if (start->state == PEM_START_LOADED)
		return (number == calls->mprotect || number == calls->munmap) &&
		       argument[0] >= start->begin && argument[0] < start->end;
	if (number == calls->mmap && !argument[0] && (int32_t)argument[4] < 0)
		return 0;
	if (number == calls->mmap && argument[0]) {
		if (!start->end || argument[0] < start->begin)
			start->begin = argument[0];
		if (argument[0] + argument[1] > start->end)
			start->end = argument[0] + argument[1];
	}
	return 1;
}

#endif
