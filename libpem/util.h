/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * util.h - small things that both sides of libpem need: errors as sentences, whole reads, where
 * files live
 */
#ifndef PEM_UTIL_H
#define PEM_UTIL_H

#include "text.h"

#include <pem/model.h>

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#define PEM_LIKELY(x) __builtin_expect(!!(x), 1)
#define PEM_UNLIKELY(x) __builtin_expect(!!(x), 0)
/*
 * How many seccomp filters a program that is recorded may have, of which it is known that they let
 * pem's calls pass: always so many digits, since they are counted up in place.
 */
#define PEM_FILTERS_VARIABLE "PEM_FILTERS"
#define PEM_FILTERS_DIGITS 6

#define PEM_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Write a sentence into error, if there is one, and return code. */
int pem_error__set(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Copy a text, cut to what fits; always terminated. */
void pem_copy_text(char *to, size_t bytes, const char *from);

/*
 * Is a sequence of so many bytes a control character, or one that ends a line or turns the
 * direction of what follows?
 */
bool pem_is_control(const char *text, unsigned bytes);

/* Numbers of pidfd's requests. */
enum pem_namespace { PEM_NAMESPACE_MOUNT = 3, PEM_NAMESPACE_PID = 5 };

/*
 * Inode number of a namespace of a process; 0: it has ended, or may not be asked. Asks by pidfd,
 * from Linux 6.11 on: /proc waits for an exec of the process, which its user's file system can hold
 * up without end.
 */
uint64_t pem_namespace_of(uint32_t pid, enum pem_namespace kind);

/* Inode number of this process's pid namespace, or 0. Async-signal-safe. */
uint32_t pem_pid_namespace(void);

/*
 * Call a function with the name of each entry of a folder that is open, from its beginning. Unlike
 * readdir it allocates nothing: async-signal-safe if the function is.
 */
void pem_visit_folder(int fd, void (*visit)(const char *name, void *arg), void *arg);

/*
 * List a folder that is open, from its beginning, and leave it open. NULL with errno; the caller
 * closes it.
 */
DIR *pem_list_folder(int directory_fd);

/*
 * Is this how a trace's stream file is called? A letter says whose packets are in it (u: a
 * process's, k: the kernel's, c: counters'), then come numbers: "u_1234_0_1", "k_0", "k2_0_1",
 * "c_0"; what recorders raise themselves is in "recorder". What is called otherwise is not the
 * trace's: it is not written, not read and not touched.
 */
#define PEM_STREAM_NAME_BYTES 48 /* with its end */
bool pem_is_stream_name(const char *name);

/*
 * Read a whole regular file of at most limit bytes; NUL-terminated beyond *bytes. NULL with errno.
 */
char *pem_read_file(int directory_fd, const char *name, size_t limit, size_t *bytes);
/* The same of a file that is open, from its beginning; fd is closed. */
char *pem_read_descriptor(int fd, size_t limit, size_t *bytes);

/* Write all of it, through short writes and EINTR. 0, or -errno. */
int pem_write_all(int fd, const void *data, size_t bytes);

/*
 * Replace directory/name by data: new file, then rename. 0, or -errno, and the old file is as it
 * was.
 */
int pem_replace_file(int directory_fd, const char *name, const void *data, size_t bytes);

#endif
