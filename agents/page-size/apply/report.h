/* SPDX-License-Identifier: MIT */
/* report.h - the lines of apply.h's report */
#ifndef PAGE_APPLY_REPORT_H
#define PAGE_APPLY_REPORT_H

#include <stdbool.h>

/* The process that reports. A child of vfork has its parent's memory, and says nothing. */
void report__set_process(void);
/* Say that the directives are not followed, and why. */
void report__error(const char *sentence);
/* If this is the command that the agent has started, say so, and where data of its sites will be.
 */
void report__begin(void);
/*
 * Say of each site that was used what it had, and what smaps finds; and where mappings were, unless
 * the process goes on with more of them, which it may not report. Keeps errno.
 */
void report__sites(bool goes_on);
/* Is this the process that reports? Not so a child of vfork. */
bool report__is_process(void);

#endif
