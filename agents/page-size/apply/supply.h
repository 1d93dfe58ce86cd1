/* SPDX-License-Identifier: MIT */
/*
 * supply.h - how much memory large pages may take now, whoever asks: the agent, and the library
 *
 * Nothing here allocates. One thread at a time.
 */
#ifndef PAGE_APPLY_SUPPLY_H
#define PAGE_APPLY_SUPPLY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of memory that nobody uses, but for a share that stays free. */
uint64_t supply__memory(void);
/* Bytes that the control groups of this process leave; UINT64_MAX: they have no limit. */
uint64_t supply__limit(void);
/*
 * The turn of one process among those below the topmost limit that supply__limit() read last: a
 * descriptor, until it is closed. -1: another process has it, or the group's folder can't be
 * opened.
 */
int supply__begin_turn(void);
/*
 * Read the first number behind a word in the first 511 bytes of a file, such as of /proc. In a file
 * of several lines the word begins a line. false: there is none.
 */
bool supply__read_number(const char *path, const char *word, uint64_t *number);
/* When a process was started, in ticks since boot: numbers come again. 0: it has ended. */
uint64_t supply__started(uint32_t pid);

#endif
