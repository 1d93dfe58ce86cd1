/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby_file.h - the file that all processes on standby of a user share
 *
 * A process that starts while no session lives makes no control file. It is on standby: it maps a
 * standby file, read-only, in place of its providers' pages (producer/standby.c). A session that
 * may observe processes which run already wakes them: it sets all enable bytes of the file, and
 * removes the file's name. A process on standby finds its next event enabled, and then makes its
 * control file. A process that starts later finds no file of that name. It makes a new one, and
 * finds the session, whose folder is older.
 *
 *	0                   struct pem_standby_file
 *	PEM_PAGE_ALIGN      the providers' pages, as in a control file, with all actions 0
 *
 * The file never changes otherwise. Its name says which providers it is for. It is written before
 * it has a name, so a process finds it whole.
 *
 * Inline: pem-confined wakes the processes of other users, and is linked with nothing of libpem.
 */
#ifndef PEM_STANDBY_FILE_H
#define PEM_STANDBY_FILE_H

#include <pem/abi.h>

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_STANDBY_MAGIC 0x574d4550u /* "PEMW" */
#define PEM_STANDBY_NAME "standby-"
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

static inline bool pem_is_standby_name(const char *name)
{
	return !strncmp(name, PEM_STANDBY_NAME, sizeof(PEM_STANDBY_NAME) - 1) && !strchr(name, '/');
}

/*
 * Set the enable bytes of a standby file. The file is hostile: what is read is checked, and only
 * bytes that the file has are written. Never blocks on a regular file. False: it is none.
 */
static inline bool pem_standby__wake_file(int fd, uid_t owner)
{
	uint8_t awake[PEM_EVENTS_PER_PROVIDER_MAX];
	struct pem_standby_file file;
	uint64_t offset, bytes, size;
	struct stat st;
	uint32_t i;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != owner || st.st_nlink != 1 ||
	    pread(fd, &file, sizeof(file), 0) != sizeof(file) || file.magic != PEM_STANDBY_MAGIC)
		return false;
	size = (uint64_t)st.st_size;
	memset(awake, PEM_STANDBY_AWAKE, sizeof(awake));
	for (i = 0; i < file.provider_count && i < PEM_PROVIDERS_MAX; i++) {
		offset = file.enable[i].offset;
		bytes = file.enable[i].bytes;
		if (bytes > sizeof(awake) || offset < sizeof(file) || offset > size ||
		    bytes > size - offset)
			continue;
		/* A file system without room fails: the page was there when the file was made. */
		(void)!pwrite(fd, awake, bytes, (off_t)offset);
	}
	return true;
}

#endif
