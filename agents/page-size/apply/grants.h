/* SPDX-License-Identifier: MIT */
/*
 * grants.h - how many large pages this process may have: by the budget of the run, by the memory
 * that is free, and by the limits of its control groups
 *
 * A large page takes the place of small ones (large.h), so a grant is not more memory. But making
 * one needs its memory for a moment, and large pages are scarce: both are asked for.
 */
#ifndef PAGE_APPLY_GRANTS_H
#define PAGE_APPLY_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

/* path: of the file of directives; the account lies beside it (account.h). It is copied. */
void grants__init(uint64_t budget, const char *path);
/*
 * How many of so many bytes may be large pages: a multiple of unit. *reason is a word of apply.h if
 * it is less. Calls no allocator. Changes errno.
 */
uint64_t grants__ask(uint64_t bytes, uint64_t unit, const char **reason);
/*
 * What was granted last has been made. Under a limit of a control group that leaves little, one
 * process at a time makes one large page, of all that the limit holds for, and the limit is read
 * for each: none counts on memory that another takes for a moment.
 */
void grants__made(void);
/* Free memory and limits are asked again before the next grant. */
void grants__look_again(void);
void grants__give_back(uint64_t bytes);
/* Around fork: no other thread may change anything between. */
void grants__before_fork(void);
void grants__after_fork(bool is_child);

#endif
