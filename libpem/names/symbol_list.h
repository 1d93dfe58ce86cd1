/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol_list.h - functions by the addresses where they lie, for code that is in no object: the
 * kernel's (kernel_names.c), and what programs make as they run (jit_names.c)
 */
#ifndef PEM_SYMBOL_LIST_H
#define PEM_SYMBOL_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct code_location;
struct pem_code;

struct symbol {
	uint64_t start;
	uint64_t bytes;
	uint32_t order; /* of two that begin at one address the later one counts */
	uint32_t name; /* offset in symbol_list.text */
};

/* Zero is an empty list. */
struct symbol_list {
	struct symbol *list;
	size_t count, capacity;
	char *text;
	size_t text_bytes, text_capacity;
};

/* Returns 0 or -ENOMEM. */
int symbol_list__add(struct symbol_list *list, uint64_t start, uint64_t bytes, const char *name);
/* After the last symbol was added. */
void symbol_list__sort(struct symbol_list *list);
/* The symbol that an address is in; NULL: none. The list is sorted, and keeps it. */
const struct symbol *symbol_list__at(const struct symbol_list *list, uint64_t address);
/*
 * Name a location by the symbol that its address is in, if there is one. The list is sorted.
 * Returns 0 or -ENOMEM.
 */
int symbol_list__name(const struct symbol_list *list, struct pem_code *code,
		      struct code_location *location);
void symbol_list__free(struct symbol_list *list);

/* Read what /proc/kallsyms has; list is empty (kernel_names.c). Returns 0 or -ENOMEM. */
int kernel_names__read(FILE *f, struct symbol_list *list);

#endif
