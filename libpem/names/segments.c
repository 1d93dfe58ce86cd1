/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* segments.c - places in a file as addresses of the object (contract: segments.h) */
#include "segments.h"

bool pem_segments__offset(const struct pem_segment *segments, size_t count, bool is_data,
			  uint64_t *offset)
{
	const struct pem_segment *found = NULL;
	size_t i;

	for (i = 0; i < count && !found; i++)
		if (*offset >= segments[i].file_offset &&
		    *offset - segments[i].file_offset < segments[i].bytes)
			found = &segments[i];
	for (i = 0; is_data && !found && i < count; i++)
		if (*offset >= segments[i].file_offset &&
		    *offset - segments[i].file_offset < segments[i].memory_bytes)
			found = &segments[i];
	if (!found)
		return false;
	*offset = *offset - found->file_offset + found->address;
	return true;
}
