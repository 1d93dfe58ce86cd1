/* SPDX-License-Identifier: MIT */
/*
 * elf_probes.h - where probes can be put in a program or library, from its ELF file
 *
 * Functions come from its symbols, static probes from its notes (.note.stapsdt). The file is
 * hostile input, and may change while it is read.
 */
#ifndef PEM_SHARED_ELF_PROBES_H
#define PEM_SHARED_ELF_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pem_elf_symbol {
	const char *name;
	uint64_t offset; /* in the file */
	uint64_t bytes;
	bool is_indirect; /* its code chooses another function and is not that */
	bool is_32bit; /* its arguments are elsewhere than in a program of 64 bits */
};

/* One location of a static probe. */
struct pem_elf_note {
	const char *provider, *name, *arguments;
	uint64_t offset, semaphore; /* in the file; 0: none */
	uint64_t address; /* of its instruction, as linked */
};

/*
 * All functions return 0 or -errno: -ENOEXEC: it is no ELF file, or it is damaged. fd: the file,
 * open for reading. Texts are valid until visit returns.
 */

/* Is it a program for this machine's kind of CPU? -EXDEV: for another kind. */
int pem_elf__is_for_here(int fd);
/*
 * Hands functions to visit until it returns other than 0, which is then returned. only: those of
 * this name; NULL: all. A name may come twice: what is exported, then what the program has for
 * itself.
 */
int pem_elf__each_function(int fd, const char *only,
			   int (*visit)(void *arg, const struct pem_elf_symbol *symbol), void *arg);
/*
 * Hands the locations of static probes to visit in the same way. Those where no probe could work
 * are passed over: elsewhere than in code, or whose count of users is not in the program's data.
 */
int pem_elf__each_note(int fd, int (*visit)(void *arg, const struct pem_elf_note *note), void *arg);
/*
 * Where a variable lies, as linked. -ENOENT: there is none of that name; -ENOTUNIQ: several files
 * of the program have one each, and which one is meant can't be told.
 */
int pem_elf__address(int fd, const char *name, size_t name_bytes, uint64_t *address);

/* An argument in the text of a note, such as "-4@%eax": its size, and where it lies. */
struct pem_usdt_value {
	uint8_t bytes; /* 1 to 8; 0: that can't be told */
	bool is_signed, is_float;
	const char *location, *end; /* "%eax", not terminated */
};

/* Takes the next argument off *text. 1; 0: there is none left. */
int pem_usdt_value__next(const char **text, struct pem_usdt_value *value);

#endif
