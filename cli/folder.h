/* SPDX-License-Identifier: MIT */
/* folder.h - folders for traces: making them, and removing them again (folder.c) */
#ifndef PEM_CLI_FOLDER_H
#define PEM_CLI_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * Make the first free folder PREFIX-COMMAND-N in the current folder. COMMAND is the command's name
 * without its path. Returns CLI_DONE, or a status after printing a sentence.
 */
int cli_folder__make(const char *prefix, const char *command, char *path, size_t bytes);
/*
 * Copy the name of a folder that the user gave. A link to a folder is resolved. Returns CLI_DONE,
 * or a status after printing a sentence.
 */
int cli_folder__given(const char *given, char *path, size_t bytes);
/* A folder that this program made, as it was found, with everything in it. */
struct cli_folder {
	uint64_t device, inode;
	struct timespec changed; /* the last change of anything in it */
	uint64_t bytes;
};

/*
 * Note which folder has this name. Call it right after mkdir. Returns 0, or -errno: it can't be
 * read, is a link, or belongs to another user.
 */
int cli_folder__made(const char *path, struct cli_folder *folder);
/*
 * Look at a folder that was noted. Returns 0, or -errno: as above, another folder has its name
 * (-ESTALE), or something is mounted in it.
 */
int cli_folder__measure(const char *path, struct cli_folder *folder);
/*
 * Remove a folder that was noted with everything in it, through no link and across no mount.
 * Returns 0, or -errno as above.
 */
int cli_folder__remove(const char *path, const struct cli_folder *folder);
/* The same, if nothing in it has changed since it was looked at; else -ESTALE. */
int cli_folder__remove_same(const char *path, const struct cli_folder *folder);

#endif
