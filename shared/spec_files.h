/* SPDX-License-Identifier: MIT */
/*
 * spec_files.h - lists of spec files, by name or by folder
 *
 * Not here: the text of a spec (pem-codegen), the folders that pem searches by itself
 * (cli/specs.c).
 */
#ifndef PEM_SHARED_SPEC_FILES_H
#define PEM_SHARED_SPEC_FILES_H

#include <stddef.h>
#include <stdint.h>

struct pem_spec_file {
	char *path;
	int origin; /* the number that the caller gave it */
	uint64_t device, inode;
};

/* All zero is an empty list. */
struct pem_spec_files {
	struct pem_spec_file *files;
	size_t count;
	size_t capacity;
};

/* Add a file unless the list has it already. Returns 0 or -errno; -E2BIG: the list is full. */
int pem_spec_files__add(struct pem_spec_files *files, const char *path, int origin);

/*
 * Add the specs of a folder, sorted by name: files *.xml whose root element is <spec>. depth:
 * levels of folders below it to search. skip: names to leave out, or NULL. Returns 0, the -errno of
 * opening the folder, -ENOMEM, or -E2BIG if the list is full.
 */
int pem_spec_files__add_folder(struct pem_spec_files *files, const char *folder, unsigned int depth,
			       int origin, const char *const *skip);

/* Free the files. The list is then empty. */
void pem_spec_files__free(struct pem_spec_files *files);

#endif
