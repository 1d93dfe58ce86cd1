/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* search.h - a search in a program or library: what binary.c and code.c share */
#ifndef PEM_PROBES_SEARCH_H
#define PEM_PROBES_SEARCH_H

#include "elf_probes.h"
#include "probes.h"

#define PEM_SEARCH_PROBES_MAX 500u

struct pem_search {
	enum pem_probe_kind kind;
	const char *path; /* the real path */
	int fd; /* an open descriptor of path */
	struct stat file; /* fstat of fd */
	const char *shown; /* the path as the user wrote it */
	const char *class_name;
	char *provider, *name; /* patterns; provider "": any provider */
	uint64_t offset; /* bytes after the function's begin */
	char plus[32]; /* the offset as the user wrote it, "+0x10"; "": none */
	bool by_address; /* name is this address, as linked */
	uint64_t address;
	/* What else is known of the file: debug information, symbols. NULL: nothing. */
	struct pem_object *object;
	int debug_fd; /* its debug file; -1: none */
	bool literal;
	bool offering; /* nothing was found; similar names are being offered */
	struct pem_probe **probes;
	size_t count;
	struct pem_probe_near near;
	struct pem_error *error;
};

/* Add a place to a probe. Returns 0; -E2BIG: it has too many; or -ENOMEM. */
int pem_search__add_site(struct pem_probe *probe, const struct pem_probe_site *site);
/* Add a probe of the search's binary to the search. NULL: no memory, or too many probes (E2BIG). */
struct pem_probe *pem_search__add_probe(struct pem_search *s, const char *name,
					const char *specifier, const char *description);
/* The probe of this name that was found. NULL: none was. */
struct pem_probe *pem_search__find_probe(const struct pem_search *s, const char *name);

/* Add a function of the binary if the search, arg, is for it. Returns 0, or -errno with error. */
int pem_search__found_function(void *arg, const struct pem_elf_symbol *symbol);
/* Add the place at the address that the search is for. Returns 0, or -errno with error. */
int pem_search__find_address(struct pem_search *s);

#endif
