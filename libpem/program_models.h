/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* program_models.h - what program_models.c reads of one ELF file and program_needs.c uses */
#ifndef PEM_PROGRAM_MODELS_H
#define PEM_PROGRAM_MODELS_H

#include <pem/model.h>

#include <elf.h>
#include <sys/types.h>

/* A program or library that is open. */
struct pem_elf_file {
	int fd;
	uint64_t bytes;
	dev_t device;
	ino_t inode;
	uint16_t machine; /* EM_... */
	Elf64_Shdr *sections;
	size_t section_count;
	char *names; /* Names of sections, with a NUL behind them */
	uint64_t names_bytes;
};

/*
 * Open an ELF file. Returns 0. -ENOEXEC: it is no 64-bit program or library. -EINVAL: it is
 * damaged. Or another -errno. On failure nothing is open.
 */
int pem_elf_file__open(struct pem_elf_file *file, const char *path);
void pem_elf_file__close(struct pem_elf_file *file);

/*
 * Call visit with each model. left: the bytes of models that may be read; those that are read are
 * taken from it. Returns the number of models, or -errno. -EINVAL: the file is damaged. -EFBIG: it
 * has more than left.
 */
int pem_elf_file__each_model(const struct pem_elf_file *file, const char *origin, uint64_t *left,
			     pem_model_visit visit, void *arg);

/*
 * Call visit with the text of each entry DT_NEEDED, DT_RUNPATH and DT_RPATH. If visit returns other
 * than 0, the function ends and returns that. -EINVAL: the file is damaged.
 */
int pem_elf_file__each_needed(const struct pem_elf_file *file,
			      int (*visit)(void *arg, int64_t tag, const char *text), void *arg);

#endif
