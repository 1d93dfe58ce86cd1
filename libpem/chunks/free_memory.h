/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * free_memory.h - may an observed process take more memory for pem?
 *
 * Each function says whether so many bytes are an eighth at most of what is free. What can't be
 * found out allows nothing. All block on files of /proc and /sys.
 */
#ifndef PEM_FREE_MEMORY_H
#define PEM_FREE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* In the machine. */
bool pem_memory__allows(uint64_t bytes);
/* In the file system that a folder is in. */
bool pem_file_system__allows(int folder_fd, uint64_t bytes);
/* In the memory control groups that a process is in. */
bool pem_process_groups__allow(uint32_t pid, uint64_t bytes);

/*
 * The same for the text of a /proc/PID/cgroup, which is changed, and a folder in which control
 * groups are mounted as in /sys/fs/cgroup.
 */
bool pem_groups__allow(char *text, const char *mounted, uint64_t bytes);

#endif
