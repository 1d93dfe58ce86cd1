/* SPDX-License-Identifier: MIT */
/*
 * lab.h - pem lab in its parts: what goes into the machine, the machine, what comes out of it
 *
 * Everything that comes out is untrusted: the machine ran a program of the user's as root.
 */
#ifndef PEM_CLI_LAB_H
#define PEM_CLI_LAB_H

#include "cli.h"

#include <limits.h>
#include <sys/types.h>

#define LAB_FILES_MAX 256

/* A file of this machine, and where it lies in the lab. */
struct lab_file {
	const char *source; /* as the user wrote it */
	char path[PATH_MAX]; /* absolute, without "." and ".." */
};

/* What goes along into the lab. */
struct lab_load {
	struct cli_lab_parts parts;
	char cwd[PATH_MAX]; /* of pem, and of the command in the lab */
	struct lab_file files[LAB_FILES_MAX];
	size_t count;
	uint64_t bytes; /* of all files */
};

/* --- files that go along (load.c) --- */

/*
 * Take a file along. Returns its entry; or NULL with *status set, after printing a sentence: it is
 * no file, or cannot lie at its path in the lab.
 */
struct lab_file *lab_load__add(struct lab_load *load, const char *source, int *status);
/* The path of a file of this machine in the lab: absolute, without "." and "..". Returns 0 or
 * -ENAMETOOLONG. */
int lab_path(const char *cwd, const char *name, char *path, size_t bytes);
/* Is a path in the lab hidden by one of its own file systems? */
bool lab_path__is_hidden(const char *path);

/* --- programs (program.c) --- */

/*
 * Can the lab run this command? A command with a slash is a file of this machine and is taken
 * along. Another one has to be in the lab. Returns CLI_DONE, or a status after printing a sentence.
 */
int lab_program__take(struct lab_load *load, const char *command);
/*
 * Has the lab what each file of the load needs: libraries, interpreters? Returns CLI_DONE, or a
 * status after printing a sentence.
 */
int lab_program__check_all(const struct lab_load *load);
/* Is it the name of a shared library: NAME.so or NAME.so.N? */
bool lab_is_library(const char *path);

/* --- the archive that the machine unpacks (archive.c) --- */

/*
 * An archive of cpio's format newc. Its calls note the first error, which lab_archive__end returns.
 * The same content makes the same bytes: no times, owner root.
 */
struct lab_archive {
	FILE *out;
	int error; /* -errno, or 0 */
};
/* Append to out, whose position must be a multiple of 4. */
void lab_archive__begin(struct lab_archive *archive, FILE *out);
/* Add a folder with those above it. */
void lab_archive__folder(struct lab_archive *archive, const char *path);
/* Add a file, a link, a text. The folder must have been added before. */
void lab_archive__file(struct lab_archive *archive, const char *path, const char *source);
void lab_archive__link(struct lab_archive *archive, const char *path, const char *target);
void lab_archive__text(struct lab_archive *archive, const char *path, const char *text);
/* Complete it. Returns 0 or the -errno of the first error. */
int lab_archive__end(struct lab_archive *archive);

/* --- the machine (machine.c) --- */

struct lab_machine {
	/* What it is made of. */
	uint64_t cpus, memory_mib, shift, limit_s;
	const char *kernel;
	int image; /* descriptor of the file system */
	/* What came of it. */
	bool has_ended; /* The script ran to its end, and all was sent. */
	int status; /* of the script */
	int stopped_by; /* a signal to pem, which ended the machine */
	bool is_over_limit;
	int back; /* descriptor of what it sent back: the trace as a tar archive. The caller closes
		     it. */
};

/*
 * A file of its own, of which nothing is left when its descriptor is closed. Returns a descriptor
 * or -errno.
 */
int lab_temporary(void);
/*
 * Boot, and pass on the standard output and error of the script until the machine is off. Signals
 * that end pem end the machine. They stay blocked afterwards. Returns CLI_DONE, or a status after
 * printing a sentence.
 */
int lab_machine__run(struct lab_machine *machine);

#endif
