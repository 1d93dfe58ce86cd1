/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mapping.h - code that a process has mapped, as the kernel tells it */
#ifndef PEM_MAPPING_H
#define PEM_MAPPING_H

#include <stdint.h>

struct ring_map {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t address, length, offset;
	int is_file; /* 0: the kernel's vdso, or memory without a file */
	uint8_t build_id_bytes; /* 0: unknown */
	uint8_t build_id[20];
	char path[256]; /* the beginning of one that is too long. The last member. */
};

#endif
