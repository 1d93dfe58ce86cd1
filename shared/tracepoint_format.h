/* SPDX-License-Identifier: MIT */
/*
 * tracepoint_format.h - the fields of a tracepoint, from the text of its format file in tracefs
 *
 *	ID: 362
 *	format:
 *		field:__data_loc char[] comm;	offset:8;	size:4;	signed:0;
 *
 *	print fmt: "comm=%s", __get_str(comm)
 *
 * The kernel writes it. It is checked like hostile input all the same, since a BPF program reads
 * what it names. Not here: what a field becomes in an event.
 */
#ifndef PEM_SHARED_TRACEPOINT_FORMAT_H
#define PEM_SHARED_TRACEPOINT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* No perf event's entry is longer. */
#define PEM_FORMAT_ENTRY_BYTES_MAX 8192u

struct pem_format_field {
	char type[96]; /* without __data_loc, brackets and what is in them */
	char name[64];
	bool is_array;
	bool is_data_loc, is_rel_loc; /* its length is known at run time only */
	bool is_signed;
	uint16_t offset, size; /* both together are at most PEM_FORMAT_ENTRY_BYTES_MAX */
};

/* The tracepoint's number. 0; -EINVAL: the text has none. */
int pem_format__id(const char *text, uint32_t *id);

/*
 * The next field, but for those that all tracepoints have ("common_..."). Moves *text behind its
 * line. 1; 0: there is none left; -EINVAL: the line of a field can't be read, field->type has its
 * beginning, and the next call goes on behind it.
 */
int pem_format__next(const char **text, struct pem_format_field *field);

/* Is it an address of the kernel's? */
bool pem_format_field__is_pointer(const struct pem_format_field *field);
/* Bytes of an array's elements, by their type. 0: they are no numbers, or not known. */
unsigned pem_format_field__element_bytes(const struct pem_format_field *field, bool *is_signed);

#endif
