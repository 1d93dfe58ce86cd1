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
 * A file of no session never changes otherwise. It is written before it has a name, so a process
 * finds it whole. The name is standby-ABI-HASH-FILTERS: the hash says which providers the file is
 * for, and its processes began with so many seccomp filters that pem knows of (a number;
 * PEM_STANDBY_ANY: they were not told).
 *
 * A process that is started in a session (PEM_SESSION) is on standby, too, while no other session
 * lives. Its file has the session's id in its name, standby-ABI-HASH-.ID-FILTERS, and the events
 * that the session wants are enabled from the beginning. So a process joins the session at the
 * first of these. When the session wants more events, it enables them in the file, and never fewer.
 * When it ends, it disables all: the processes that are left wait for a session that wakes them. A
 * file that no process maps any more is removed by the next session.
 *
 *	maker:    add 1 to standby_files, give the file its name, read the rules' generation again
 *	session:  change the rules and their generation, read standby_files, look for files
 *
 * Both are ordered sequentially: either the session finds the file, or its maker the new rules.
 *
 * The mode is 0400, or PEM_STANDBY_MODE where its folder's count of links tells how many folders
 * are in it. Nobody may write, so that no mistake cuts the file off, which would end its processes.
 */
#ifndef PEM_STANDBY_FILE_H
#define PEM_STANDBY_FILE_H

#include <pem/abi.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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
	/* Of a session's file: the ids of the events, in the order of the enable bytes. */
	uint32_t event_id[PEM_CONTROL_EVENTS];
};
PEM_STATIC_ASSERT(sizeof(struct pem_standby_file) <= 4096, "the head of a standby file is a page");

/* Is this the name of a file whose processes were started in a session? */
static inline bool pem_standby_name__has_session(const char *name)
{
	return !strncmp(name, PEM_STANDBY_NAME, sizeof(PEM_STANDBY_NAME) - 1) &&
	       strstr(name, "-.") != NULL;
}

/* The same of the session of this id. */
static inline bool pem_standby_name__is_of(const char *name, uint32_t id)
{
	char tag[16];

	snprintf(tag, sizeof(tag), "-.%08x-", id);
	return pem_standby_name__has_session(name) && strstr(name, tag);
}

#endif
