/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * held.c - who can exchange what lies at a path (contract: held.h)
 *
 * A path is followed name by name, through links. A name is looked up only after its folder is
 * known to be root's or this user's, so that a file system of another user's program (FUSE), which
 * could let the look-up wait, is never asked.
 */
#include "held.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES (2 * PATH_MAX)
#define LINKS_MAX 40u

struct walk {
	char done[PATH_BYTES]; /* the names that were followed, without links */
	char rest[PATH_BYTES]; /* the names to follow */
	uint32_t holder;
	uint64_t mount; /* of done */
	unsigned int links;
	/* Others may make files in the folder done. */
	bool may_add;
};

enum found { FOUND_NOTHING, FOUND_FOLDER, FOUND_LINK, FOUND_FILE, FOUND_OTHERS };

static enum found others(struct walk *w, uint32_t holder)
{
	w->holder = holder;
	return FOUND_OTHERS;
}

/*
 * The user whose program serves a mount, by the list of mounts: to ask the file system itself may
 * wait. geteuid(): no program does.
 */
static uint32_t server_of(uint64_t mount)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	uint32_t user = mounts != NULL ? geteuid() : PEM_NOBODY;
	char *line = NULL;
	size_t room = 0;

	while (mounts != NULL && getline(&line, &room, mounts) > 0) {
		const char *type = strstr(line, " - fuse"), *options = strrchr(line, ' '), *option;

		if (strtoull(line, NULL, 10) != mount)
			continue;
		/* The word before the options is the user's own: it may look like one. */
		option = type != NULL ? strstr(options, ",user_id=") : NULL;
		if (type != NULL)
			user = option != NULL ? (uint32_t)strtoul(option + 9, NULL, 10)
					      : PEM_NOBODY;
		break;
	}
	free(line);
	if (mounts != NULL)
		fclose(mounts);
	return user;
}

static bool is_trusted(uint32_t user)
{
	return user == 0 || user == geteuid();
}

/* Examine what lies at w->done. */
static enum found examine(struct walk *w)
{
	const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
	struct statx about;
	bool is_open;

	/* The kernel alone answers which mount it is. */
	if (statx(AT_FDCWD, w->done, flags, STATX_MNT_ID, &about) != 0)
		return errno == ENOENT && !w->may_add ? FOUND_NOTHING : others(w, PEM_NOBODY);
	if ((about.stx_mask & STATX_MNT_ID) != 0 && about.stx_mnt_id != w->mount) {
		uint32_t server = server_of(about.stx_mnt_id);

		if (!is_trusted(server))
			return others(w, server);
		w->mount = about.stx_mnt_id;
	}
	if (statx(AT_FDCWD, w->done, flags, STATX_BASIC_STATS, &about) != 0)
		return others(w, PEM_NOBODY);
	if (!is_trusted(about.stx_uid))
		return others(w, about.stx_uid);
	if (S_ISLNK(about.stx_mode))
		return FOUND_LINK;
	is_open = (about.stx_mode & S_IWOTH) != 0 ||
		  ((about.stx_mode & S_IWGRP) != 0 && about.stx_gid != 0 &&
		   about.stx_gid != getegid());
	w->may_add = is_open;
	if (S_ISREG(about.stx_mode) && !is_open)
		return FOUND_FILE;
	if (S_ISDIR(about.stx_mode) && (!is_open || (about.stx_mode & S_ISVTX) != 0))
		return FOUND_FOLDER;
	return others(w, PEM_NOBODY);
}

/* Take the next name off the rest to the end of done. False: there is none, or no space. */
static bool take_name(struct walk *w)
{
	size_t skipped = strspn(w->rest, "/"), bytes = strcspn(w->rest + skipped, "/");
	size_t end = strlen(w->done);
	const char *name = w->rest + skipped;
	char *slash;

	if (bytes == 2 && strncmp(name, "..", 2) == 0) {
		slash = strrchr(w->done, '/');
		if (slash != NULL)
			*slash = '\0';
	} else if (bytes != 0 && (bytes != 1 || *name != '.')) {
		if (end + bytes + 2 > sizeof(w->done))
			return false;
		w->done[end] = '/';
		memcpy(w->done + end + 1, name, bytes);
		w->done[end + 1 + bytes] = '\0';
	}
	memmove(w->rest, name + bytes, strlen(name + bytes) + 1);
	return bytes != 0;
}

/* Put a link's text in front of the rest, and go back to its folder, or to "/". */
static bool follow(struct walk *w)
{
	char text[PATH_BYTES];
	ssize_t bytes = readlink(w->done, text, sizeof(text) - 1);

	if (bytes <= 0 || ++w->links > LINKS_MAX ||
	    (size_t)bytes + strlen(w->rest) + 2 > sizeof(w->rest))
		return false;
	text[bytes] = '\0';
	memmove(w->rest + bytes + 1, w->rest, strlen(w->rest) + 1);
	memcpy(w->rest, text, (size_t)bytes);
	w->rest[bytes] = '/';
	*(*text == '/' ? w->done : strrchr(w->done, '/')) = '\0';
	return true;
}

bool pem_path__is_held(const char *path, uint32_t *holder)
{
	struct walk w = {.holder = PEM_NOBODY, .mount = UINT64_MAX};
	enum found found = FOUND_OTHERS;

	if (*path == '/' && strlen(path) < sizeof(w.rest)) {
		strcpy(w.rest, path);
		found = FOUND_FOLDER;
	}
	while (found == FOUND_FOLDER || found == FOUND_LINK) {
		if (!take_name(&w))
			found = FOUND_OTHERS;
		else
			found = *w.done != '\0' ? examine(&w) : FOUND_FOLDER;
		if (found == FOUND_LINK && !follow(&w))
			found = FOUND_OTHERS;
	}
	/* A file is the end of a path: nothing can follow it. */
	if (found == FOUND_FILE && w.rest[strspn(w.rest, "/")] != '\0')
		found = FOUND_NOTHING;
	if (holder != NULL)
		*holder = w.holder;
	return found == FOUND_FILE || found == FOUND_NOTHING;
}
