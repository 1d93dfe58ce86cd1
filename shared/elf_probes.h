/* SPDX-License-Identifier: MIT */
/*
 * elf_probes.h - finds the places for probes in a program or library, from its ELF file
 *
 * Functions come from the symbols, static probes from the notes (.note.stapsdt). The file is
 * hostile input and may change while it is read.
 */
#ifndef PEM_SHARED_ELF_PROBES_H
#define PEM_SHARED_ELF_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pem_elf_symbol {
	const char *name;
	uint64_t address; /* as linked */
	uint64_t offset; /* in the file */
	uint64_t bytes;
	/*
	 * The function's code chooses another function at load time and does not contain the
	 * function itself.
	 */
	bool is_indirect;
	bool is_32bit; /* Arguments lie elsewhere than in a program of 64 bits. */
};

/* One location of a static probe. */
struct pem_elf_note {
	const char *provider, *name, *arguments;
	uint64_t offset, semaphore; /* file offsets; semaphore 0: none */
	uint64_t address; /* address of the instruction, as linked */
};

/*
 * All functions return 0 or -errno. -ENOEXEC: the file is not an ELF file, or it is damaged. fd:
 * the file, open for reading. Texts are valid until visit returns.
 */

/* Is the program for this machine's kind of CPU? -EXDEV: it is for another kind. */
int pem_elf__is_for_here(int fd);
/*
 * Call visit for each function until visit returns other than 0, and return this value. debug_fd: a
 * debug file of the program, which has symbols besides the program's own, or -1. only: functions of
 * this name; NULL: all. A name may come several times: first the exported function, then a local
 * one, then each again from the debug file.
 */
int pem_elf__each_function(int fd, int debug_fd, const char *only,
			   int (*visit)(void *arg, const struct pem_elf_symbol *symbol), void *arg);
/*
 * Find the place in the file of an address in the program's code; is_32bit: as in struct
 * pem_elf_symbol. -ENOENT: no code is there.
 */
int pem_elf__code(int fd, uint64_t address, uint64_t *offset, bool *is_32bit);
/*
 * Call visit for each location of a static probe, as pem_elf__each_function does. Locations where a
 * probe can't work are skipped: those outside of code, and those whose count of users is not in the
 * program's data.
 */
int pem_elf__each_note(int fd, int (*visit)(void *arg, const struct pem_elf_note *note), void *arg);
/*
 * Find the address of a variable, as linked. -ENOENT: there is no variable of this name. -ENOTUNIQ:
 * several source files of the program have one each, and the right one is unknown.
 */
int pem_elf__address(int fd, const char *name, size_t name_bytes, uint64_t *address);

/* An argument in the text of a note, such as "-4@%eax": its size and location. */
struct pem_usdt_value {
	uint8_t bytes; /* 1 to 8; 0: unknown */
	bool is_signed, is_float;
	const char *location, *end; /* "%eax", not terminated */
};

/* Parse the next argument and move *text past it. Returns 1, or 0 if none is left. */
int pem_usdt_value__next(const char **text, struct pem_usdt_value *value);

#endif
