/* SPDX-License-Identifier: MIT */
/*
 * account.h - the large pages of all processes of a run, added up in a file that they share
 *
 * The file is opened, locked, read, written and closed for each change: a descriptor that were kept
 * might be closed and used by the program, and a mapping would end it by SIGBUS if somebody cut the
 * file. An entry whose process has ended counts no more.
 *
 * A forked child has the large pages of its parent, as long as neither writes to them; whoever
 * writes gets small ones. So the two together have no more than the parent had, and the child's
 * entry names them as inherited: of a family, they count once.
 */
#ifndef PAGE_APPLY_ACCOUNT_H
#define PAGE_APPLY_ACCOUNT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define ACCOUNT_ENTRIES 256u /* processes at one time; further ones have no large pages */

struct account_entry {
	uint32_t pid; /* 0: not in use */
	uint32_t reserved;
	uint64_t started; /* of the process, since boot, in ticks: numbers come again */
	uint64_t family; /* which processes share what is inherited */
	uint64_t own; /* bytes */
	uint64_t inherited; /* bytes that all of the family have at most */
};

struct account {
	char path[PATH_MAX];
	struct account_entry self;
	struct account_entry
		table[ACCOUNT_ENTRIES]; /* as read last: a thread's stack may be small */
};

/*
 * Have own bytes more, as far as all together stay within the budget: bytes that may be had, a
 * multiple of unit. own below 0: fewer, always done, and 0 is returned. -1: the file can't be used.
 * One thread at a time. Changes errno.
 */
int64_t account__change(struct account *account, int64_t own, uint64_t unit, uint64_t budget);
/* Before a fork: what this process has is shared with the child from now on. */
void account__share(struct account *account);
/* In the child, which has an entry of its own. */
void account__fork(struct account *account);

#endif
