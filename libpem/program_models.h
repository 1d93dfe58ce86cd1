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
	uint64_t *tables_left; /* the caller's; see pem_elf_file__open */
};

/*
 * Open an ELF file. tables_left: the bytes of tables that may be read, also by
 * pem_elf_file__each_needed; those that are read are taken from it, also on failure. It must live
 * as long as the file is open. Returns 0. -ENOEXEC: it is no 64-bit program or library. -EINVAL: it
 * is damaged. -EFBIG: its tables have more than tables_left. Or another -errno. On failure nothing
 * is open.
 */
int pem_elf_file__open(struct pem_elf_file *file, const char *path, uint64_t *tables_left);
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
 * than 0, the function ends and returns that. -EINVAL: the file is damaged. -EFBIG: its tables have
 * more than tables_left.
 */
int pem_elf_file__each_needed(const struct pem_elf_file *file,
			      int (*visit)(void *arg, int64_t tag, const char *text), void *arg);

/*
 * Call visit with each model in the files that a process has mapped as code, its program first, as
 * pem_program__models() does for a program that does not run. Returns how many models there were.
 * -ECANCELED: visit ended it. With error: -ESRCH: no such process; -EACCES: another user's, or
 * protected; -E2BIG: more models or tables than are read; -ENOMEM.
 */
int pem_process__models(uint32_t pid, pem_model_visit visit, void *arg, struct pem_error *error);

#endif
