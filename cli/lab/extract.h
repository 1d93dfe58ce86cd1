/* SPDX-License-Identifier: MIT */
/* extract.h - unpacks what comes out of the lab; needs nothing else of pem */
#ifndef PEM_CLI_LAB_EXTRACT_H
#define PEM_CLI_LAB_EXTRACT_H

#include <stddef.h>
#include <stdint.h>

struct lab_limits {
	uint64_t bytes; /* of all files together */
	uint32_t members;
};
/*
 * Unpack a tar archive, a hostile one, into an empty folder of the caller's, given by descriptors.
 * Only files and folders, at most four deep, whose names have letters, digits, "_", "-" and "."
 * are accepted, and nothing is overwritten. Returns the number of files, or -errno with a sentence
 * in why; the folder then has part of them. -EPERM: the archive has what no trace has.
 */
int lab_extract(int archive, int folder, const struct lab_limits *limits, char *why, size_t bytes);

#endif
