/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby_file.h - the file that all processes on standby of a user share
 *
 * A process that starts while no session lives makes no control file. It is on standby: it maps a
 * standby file, read-only, in place of its providers' pages (producer/standby.c). A session that
 * may observe processes which run already wakes them (standby_wake.h): it sets all enable bytes of
 * the file, and removes the file's name. A process on standby finds its next event enabled, and
 * then makes its control file. A process that starts later finds no file of that name. It makes a
 * new one, and finds the session, whose folder is older.
 *
 *	0                   struct pem_standby_file
 *	PEM_PAGE_ALIGN      the providers' pages, as in a control file, with all actions 0
 *
 * The file never changes otherwise. It is written before it has a name, so a process finds it
 * whole. The name is standby-ABI-HASH-FILTERS: the hash says which providers the file is for, and
 * its processes began with so many seccomp filters that pem knows of (a number; PEM_STANDBY_ANY:
 * they were not told).
 *
 * The mode is 0400, or PEM_STANDBY_MODE where its folder's count of links tells how many folders
 * are in it. Nobody may write, so that no mistake cuts the file off, which would end its processes.
 */
#ifndef PEM_STANDBY_FILE_H
#define PEM_STANDBY_FILE_H

#include <pem/abi.h>

#define PEM_STANDBY_MAGIC 0x574d4550u /* "PEMW" */
#define PEM_STANDBY_NAME "standby-"
#define PEM_STANDBY_ANY (~0u)
#define PEM_STANDBY_MODE 0500
/*
 * What a session calls a file, at the moment of its removal, whose processes it has woken: their
 * mapping then has this name.
 */
#define PEM_WOKEN_NAME "woken-"
/*
 * An enable byte of a file whose processes are woken: the bit of the last session. No stub takes a
 * short way for it, and it has no action in the file.
 */
#define PEM_STANDBY_AWAKE 0x80

struct pem_standby_file {
	uint32_t magic, abi_version;
	uint32_t provider_count;
	uint32_t reserved;
	/* Where the providers' enable bytes are in the file. */
	struct {
		uint64_t offset, bytes;
	} enable[PEM_PROVIDERS_MAX];
};
PEM_STATIC_ASSERT(sizeof(struct pem_standby_file) <= 4096, "the head of a standby file is a page");

#endif
