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
 * The kernel writes the file. It is still checked like hostile input, because a BPF program reads
 * at the offsets that it names. Not here: what a field becomes in an event.
 */
#ifndef PEM_SHARED_TRACEPOINT_FORMAT_H
#define PEM_SHARED_TRACEPOINT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum bytes of a perf event's entry. */
#define PEM_FORMAT_ENTRY_BYTES_MAX 8192u

struct pem_format_field {
	char type[96]; /* without __data_loc and without brackets and their content */
	char name[64];
	bool is_array;
	bool is_data_loc, is_rel_loc; /* The length is known at run time only. */
	bool is_signed;
	uint16_t offset, size; /* their sum is at most PEM_FORMAT_ENTRY_BYTES_MAX */
};

/* Read the tracepoint's number. Returns 0, or -EINVAL if the text has none. */
int pem_format__id(const char *text, uint32_t *id);

/*
 * Read the next field and move *text past its line. The fields that all tracepoints have
 * ("common_...") are skipped. Returns 1, or 0 if none is left. Returns -EINVAL if the line of a
 * field can't be read; field->type then has the beginning of the line, and the next call continues
 * after it.
 */
int pem_format__next(const char **text, struct pem_format_field *field);

/* Is the field an address in the kernel? */
bool pem_format_field__is_pointer(const struct pem_format_field *field);
/* Bytes of an array's elements, by their type. 0: the elements are not numbers, or unknown. */
unsigned pem_format_field__element_bytes(const struct pem_format_field *field, bool *is_signed);

#endif
