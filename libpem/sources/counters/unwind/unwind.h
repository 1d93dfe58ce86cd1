/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind.h - the callers of a sampled instruction, told from the thread's registers and the top of
 * its stack
 *
 *	unwind.c	the processes that are sampled, and what they have mapped
 *	stack.c	walks up the copied stack with libdwfl
 *	files.c	opens files of code, and shares them among processes
 *	frames.c	whether libdw may follow what a file says of its calls
 *	none.c	in their stead where elfutils is missing
 *
 * Not here: opening perf events, parsing their ring (ring.c).
 *
 * The kernel copies registers (PERF_SAMPLE_REGS_USER) and stack (PERF_SAMPLE_STACK_USER) into a
 * sample. libdwfl unwinds this copy by the call frame information (.eh_frame) of the files that the
 * process has mapped, or by frame pointers where code has none. Nothing is read from the process.
 *
 * An unwinder belongs to one thread. Its calls block on files.
 */
#ifndef UNWIND_H
#define UNWIND_H

#include "mapping.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- unwind.c --- */

/* No sample has more callers. */
#define UNWIND_CALLERS_MAX 127u

struct unwinder_options {
	/*
	 * Processes whose mappings are kept. If one more maps a file, that which was sampled or
	 * mapped a file least recently is forgotten. 0: 1024.
	 */
	unsigned process_max;
	/*
	 * Processes, among them, that can be unwound without preparation. Preparation takes less
	 * than a millisecond for ten files. Each process takes 10 to 100 KiB. 0: 64.
	 */
	unsigned ready_max;
	/*
	 * true: all files of sampled processes may be read, as those of processes that the user
	 * named. false: the processes are others' as well. A file is read only if root or the
	 * recorder's user owns it, if no FUSE server has it, and if opening it need not wait for a
	 * file system.
	 */
	bool trusts_files;
};

/* Since unwinder__open. */
struct unwinder_counts {
	uint64_t unwound; /* samples with a caller */
	uint64_t failed; /* samples without one */
	uint64_t prepared; /* preparations of a process, also after it had mapped more files */
	uint64_t forgotten; /* processes forgotten for lack of room */
	uint64_t refused_maps; /* mappings beyond the limit of a process */
	uint64_t refused_files; /* files that can't be used, once for each mapping */
	uint64_t slow; /* samples given up since they took too long */
};

struct unwind_sample {
	uint32_t pid;
	/* PERF_SAMPLE_REGS_ABI_64, or there are no callers. */
	uint32_t abi;
	/* One value for each bit of unwind__registers(), lowest bit first. */
	const uint64_t *registers;
	/* What lies from the stack pointer upwards: as many bytes as the kernel copied (dyn_size).
	 */
	const uint8_t *stack;
	size_t stack_bytes;
	bool is_partial; /* there was more of the stack than the kernel copies */
};

struct unwinder;

/*
 * perf_event_attr.sample_regs_user for samples to unwind. 0: the build can't unwind on this
 * machine.
 */
uint64_t unwind__registers(void);
/* The program counter of a sample's registers. */
uint64_t unwind__pc(const uint64_t *registers);
/*
 * Returns an unwinder, to be closed with unwinder__close; or NULL with errno ENOMEM, or ENOTSUP
 * where the build can't unwind. options NULL means those of zeros.
 */
struct unwinder *unwinder__open(const struct unwinder_options *options);
void unwinder__close(struct unwinder *unwinder);
/*
 * Memory of a process was mapped: a file's code; the kernel's "[vdso]"; or, with another path that
 * does not begin with '/', something that has no call frame information. What was mapped there
 * before is gone. The file is opened at the next sample of the process. Returns 0; -ENOSPC: the
 * process has too many mappings; -ENOMEM.
 */
int unwinder__map(struct unwinder *unwinder, const struct ring_map *map);
/* A child has the mappings of its parent. Returns 0 or -ENOMEM. */
int unwinder__fork(struct unwinder *unwinder, uint32_t child, uint32_t parent);
/* A process has ended, or an exec has replaced its memory. */
void unwinder__forget(struct unwinder *unwinder, uint32_t pid);
/*
 * Write the return addresses of a sampled thread to callers, innermost first: at most max, and at
 * most UNWIND_CALLERS_MAX. The sampled instruction's own address is not among them. The byte before
 * each address belongs to the calling instruction. Where a signal interrupted a function, the
 * address is one more than that of the instruction to be executed next. So each address minus 1
 * lies in the function and the line to be named. Returns their number. It is 0 if no caller can be
 * told. Callers further out are missing if they lie beyond the copied stack.
 */
unsigned unwinder__unwind(struct unwinder *unwinder, const struct unwind_sample *sample,
			  uint64_t *callers, unsigned max);
/*
 * Are callers of the last sample missing, since they lie beyond the part of the stack that was
 * copied, or are more than max?
 */
bool unwinder__was_cut(const struct unwinder *unwinder);
const struct unwinder_counts *unwinder__counts(const struct unwinder *unwinder);

struct Elf;
struct Dwfl;

/* --- stack.c: for unwind.c alone --- */

/* A sample being unwound. libdwfl's questions about a process are answered from it. */
struct unwind_stack {
	const struct unwind_sample *sample;
	uint64_t *callers;
	unsigned max, count, frames;
	unsigned reads;
	bool is_cut; /* there are callers further out */
	uint64_t top; /* the highest address read so far */
	uint64_t last_top; /* and when the last frame came */
	uint64_t cpu_ns_end;
};

/* Returns an ELF object of this machine, or NULL. The caller ends it with elf_end. */
struct Elf *unwind_stack__machine(void);
/* Let dwfl ask stack for registers and memory. machine and stack outlive it. Returns 0 or -errno.
 */
int unwind_stack__attach(struct unwind_stack *stack, struct Dwfl *dwfl, struct Elf *machine,
			 uint32_t pid);
/*
 * As unwinder__unwind. is_slow: it took more CPU time than a sample may. stack->is_cut tells
 * whether there are further callers.
 */
unsigned unwind_stack__walk(struct unwind_stack *stack, struct Dwfl *dwfl,
			    const struct unwind_sample *sample, uint64_t *callers, unsigned max,
			    bool *is_slow);

/* --- files.c: for unwind.c alone --- */

/* --- frames.c: for files.c alone --- */

/* Returns 0; -ENOEXEC: libdw could take all memory or time over it; -ENOMEM. */
int unwind_frames__check(struct Elf *elf);

struct unwind_files;
/* An open file of code. */
struct unwind_file;

/* trusts_files as in struct unwinder_options. Returns NULL with errno. */
struct unwind_files *unwind_files__open(bool trusts_files);
/* All files have been put back. */
void unwind_files__close(struct unwind_files *files);
/*
 * Find the file of a mapping, which may be open already. Returns NULL if it can't be used. The
 * caller puts it back.
 */
struct unwind_file *unwind_files__get(struct unwind_files *files, const struct ring_map *map);
void unwind_files__put(struct unwind_files *files, struct unwind_file *file);
/* Differs from the number of every other file that was open before. */
uint64_t unwind_file__number(const struct unwind_file *file);
/* Returns a reference that the caller ends with elf_end. Reading it takes no descriptor. */
struct Elf *unwind_file__elf(const struct unwind_file *file);
/*
 * The addresses that the file's segments take in the process. Returns 0, or -EINVAL if the file has
 * no such code.
 */
int unwind_file__extent(const struct unwind_file *file, const struct ring_map *map, uint64_t *low,
			uint64_t *high);

#endif
