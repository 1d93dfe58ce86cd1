/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * membership.h - which of a session's contexts a process is in
 *
 * Both sides ask: a process about itself, inside of an event, and a consumer about the processes
 * that it finds.
 */
#ifndef PEM_MEMBERSHIP_H
#define PEM_MEMBERSHIP_H

#include <pem/abi.h>

#include <stdbool.h>

/*
 * Is the process that this one knows as pid in the context, its thread and CPU not asked? Reads
 * /proc, allocates nothing, async-signal-safe. What can't be found out is no.
 */
bool pem_context__holds(const struct pem_session_context *context, uint32_t pid);
/*
 * Bit i: the process is in context i of the page, of which count are valid. Bit 0 always. known:
 * bits found before, of contexts that never cease to hold; they are not asked for again.
 */
uint64_t pem_contexts__holding(const struct pem_session_page *page, uint32_t count, uint32_t pid,
			       uint64_t known);

/* The parent of a process, as /proc has it; 0: none, or unknown. */
uint32_t pem_parent_of(uint32_t pid);

#endif
