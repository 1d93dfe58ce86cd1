/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* util.h - small functions for both sides of libpem: errors as sentences, whole reads, folders */
#ifndef PEM_UTIL_H
#define PEM_UTIL_H

#include "text.h"

#include <pem/abi.h>
#include <pem/model.h>

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#define PEM_LIKELY(x) __builtin_expect(!!(x), 1)
#define PEM_UNLIKELY(x) __builtin_expect(!!(x), 0)
/*
 * Variable with the number of a recorded program's seccomp filters that are known to let pem's
 * calls pass. It always has PEM_FILTERS_DIGITS digits, because it is counted up in place.
 */
#define PEM_FILTERS_VARIABLE "PEM_FILTERS"
#define PEM_FILTERS_DIGITS 6

#define PEM_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Write a sentence into error, if there is one, and return code. */
int pem_error__set(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Fail a call that was not given what it needs. what: a noun, such as "session". Returns -EINVAL.
 */
int pem_error__lacks(struct pem_error *error, const char *what);

/* Fail to read the file that the caller named. Returns code. */
int pem_error__cannot_read(struct pem_error *error, int code, const char *path);

/*
 * Fail with errno, which the opening of a folder left. what: a noun, such as "trace directory".
 * Returns -errno.
 */
int pem_error__no_folder(struct pem_error *error, const char *what, const char *path);
/*
 * Check that the folder that fd is open on belongs to the user who records. Another user could put
 * other files in the place of those that are written there. Returns 0, or -errno with error.
 */
int pem_check_owner(int fd, uid_t user, const char *path, struct pem_error *error);

/*
 * Append to the sentence of a failed write, whose result is code, how to make space and then rest.
 * Nothing is appended if the failure had another cause.
 */
void pem_error__advise_space(struct pem_error *error, int code, const char *rest);

/* Copy a text, cut to what fits; always terminated. */
void pem_copy_text(char *to, size_t bytes, const char *from);

/*
 * Read the name in a file 'comm' of /proc, or that of a process. If there is none, the name is "?"
 * and the result is false.
 */
bool pem_read_name(const char *path, char name[PEM_NAME_BYTES]);
bool pem_process_name(uint32_t pid, char name[PEM_NAME_BYTES]);

/* The numbers of the requests to a pidfd. */
enum pem_namespace { PEM_NAMESPACE_MOUNT = 3, PEM_NAMESPACE_PID = 5 };

/*
 * Return the inode number of a process's namespace; 0: the process has ended, or may not be asked.
 * From Linux 6.11 on it asks by pidfd: /proc waits for an exec of the process, which the user's
 * file system can delay without end.
 */
uint64_t pem_namespace_of(uint32_t pid, enum pem_namespace kind);

/* Return the inode number of this process's pid namespace, or 0. Async-signal-safe. */
uint32_t pem_pid_namespace(void);

/*
 * Call visit with the name of each entry of an open folder, from its beginning. Unlike readdir it
 * allocates nothing: async-signal-safe if visit is.
 */
void pem_visit_folder(int fd, void (*visit)(const char *name, void *arg), void *arg);

/*
 * List an open folder from its beginning. The descriptor stays open. NULL with errno. The caller
 * closes the list.
 */
DIR *pem_list_folder(int directory_fd);

/*
 * Return whether name is that of a trace's stream file. The first letter says whose packets the
 * file has (u: a process's, k: the kernel's, c: counters'). Numbers follow: "u_1234_0_1", "k_0",
 * "k2_0_1", "c_0". Events that recorders raise themselves are in "recorder". A file with another
 * name does not belong to the trace: it is not written, read or changed.
 */
#define PEM_STREAM_FILE_BYTES 48 /* with its NUL */
bool pem_is_stream_name(const char *name);

/*
 * Read a whole regular file of at most limit bytes. The data has a NUL behind its *bytes bytes, and
 * the caller frees it. NULL with errno.
 */
char *pem_read_file(int directory_fd, const char *name, size_t limit, size_t *bytes);
/* As pem_read_file, for an open file, from its beginning. fd is closed. */
char *pem_read_descriptor(int fd, size_t limit, size_t *bytes);

/* The kernel's name of this boot, of 36 characters. Returns whether it is known; else text is "".
 */
/* Folder in '.pem', while a trace is recorded: copies of files (writer/kept_files.c). */
#define PEM_KEPT_FILES "files"
#define PEM_BOOT_ID_BYTES 40 /* with its NUL */
bool pem_boot_id(char *text);

/* Write all bytes, through short writes and EINTR. Returns 0, or -errno. */
int pem_write_all(int fd, const void *data, size_t bytes);

/*
 * Replace directory/name by data: write a new file, then rename it. Returns 0. On -errno the old
 * file is unchanged.
 */
int pem_replace_file(int directory_fd, const char *name, const void *data, size_t bytes);

#endif
