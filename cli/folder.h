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
/* Copy the name of a folder that the user gave. A link to a folder is resolved. */
void cli_folder__given(const char *given, char *path, size_t bytes);
/* A folder as it was found, with everything in it. */
struct cli_folder {
	uint64_t device, inode;
	struct timespec changed; /* the last change of anything in it */
	uint64_t bytes;
};

/* Look at a folder. Returns 0, or -errno: it can't be read, or is a link. */
int cli_folder__measure(const char *path, struct cli_folder *folder);
/* Remove a folder with everything in it, through no link. */
void cli_folder__remove(const char *path);
/* The same, if it is the folder that was looked at and nothing in it has changed. Was it? */
bool cli_folder__remove_same(const char *path, const struct cli_folder *folder);

#endif
