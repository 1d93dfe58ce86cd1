/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * membership.h - which of a session's contexts a process is in
 *
 * Two sides call it: a process about itself, inside of an event, and a consumer about the processes
 * that it finds.
 */
#ifndef PEM_MEMBERSHIP_H
#define PEM_MEMBERSHIP_H

#include <pem/abi.h>

#include <stdbool.h>

/*
 * Return whether a process is in the context. pid: its number in this process's pid namespace.
 * Thread and CPU of the context are not tested. Reads /proc, allocates nothing, async-signal-safe.
 * Unknown counts as false.
 */
bool pem_context__holds(const struct pem_session_context *context, uint32_t pid);
/*
 * Return a word whose bit i says that the process is in context i of the page. Bit 0 is always set.
 * The page has count valid contexts. known: bits found before, of contexts that never cease to
 * hold; these contexts are not tested again.
 */
uint64_t pem_contexts__holding(const struct pem_session_page *page, uint32_t count, uint32_t pid,
			       uint64_t known);

/* Return the parent of a process, as /proc has it; 0: none, or unknown. */
uint32_t pem_parent_of(uint32_t pid);

#endif
