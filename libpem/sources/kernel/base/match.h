/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * match.h - is a kernel's tracepoint the one that a spec's prototype describes?
 *
 * Not here: what BPF programs exist for (table.c), which of them to load (available.c).
 */
#ifndef PEM_SOURCES_KERNEL_MATCH_H
#define PEM_SOURCES_KERNEL_MATCH_H

#include "kernel_types.h"

enum pem_kernel_match {
	PEM_KERNEL_ABSENT, /* there is no such tracepoint */
	PEM_KERNEL_DIFFERS, /* there is, with other parameters */
	/* it has the parameters and more after them, or integers of the other sign */
	PEM_KERNEL_FITS,
	PEM_KERNEL_EQUAL,
};

/*
 * Compare a tracepoint, "system:event" or "event", with a prototype, such as
 * "struct task_struct *task, int cpu"; NULL or "" compares nothing. Structures and enumerations are
 * compared by name, type names by name or by what they stand for in this kernel, integers by size.
 * A prototype that is no list of C parameters differs from all.
 */
enum pem_kernel_match pem_kernel_btf__match(const struct pem_kernel_btf *btf,
					    const char *tracepoint, const char *prototype);
/* Write a tracepoint's parameter types as C; "" if there is none. Cut at bytes. */
void pem_kernel_btf__describe(const struct pem_kernel_btf *btf, const char *tracepoint, char *text,
			      size_t bytes);

#endif
