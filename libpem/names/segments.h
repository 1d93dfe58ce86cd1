/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* segments.h - where the bytes of an object's file lie in the object's own addresses */
#ifndef PEM_NAMES_SEGMENTS_H
#define PEM_NAMES_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pem_object;

/* Bytes of the file that lie in memory. */
struct pem_segment {
	uint64_t file_offset, bytes, address;
	uint64_t memory_bytes; /* with those after the file's, which are zero at first */
};

/*
 * Turn a place in the file into an address of the object. is_data: also one after the bytes of the
 * file, in memory that is zero at first. Returns false, and leaves it, if no segment has it.
 */
bool pem_segments__offset(const struct pem_segment *segments, size_t count, bool is_data,
			  uint64_t *offset);
/* The segments of an object, which live as long as it. Returns their count. */
size_t pem_object__segments(const struct pem_object *object, const struct pem_segment **segments);

#endif
