/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * match.h - is a kernel's tracepoint the one that a spec's prototype describes?
 *
 * Not here: which BPF programs exist (table.c), which of them to load (available.c).
 */
#ifndef PEM_SOURCES_KERNEL_MATCH_H
#define PEM_SOURCES_KERNEL_MATCH_H

#include "kernel_types.h"

enum pem_kernel_match {
	PEM_KERNEL_ABSENT, /* there is no such tracepoint */
	PEM_KERNEL_DIFFERS, /* the tracepoint exists, with other parameters */
	/*
	 * The tracepoint has these parameters and more after them, or an integer has the other
	 * sign.
	 */
	PEM_KERNEL_FITS,
	PEM_KERNEL_EQUAL,
};

/*
 * Compare a tracepoint, "system:event" or "event", with a prototype, such as "struct task_struct
 * *task, int cpu". NULL or "" as prototype compares nothing. Structures and enumerations are
 * compared by name. Type names are compared by name, or by the type that they stand for in this
 * kernel. Integers are compared by size. A prototype that is not a list of C parameters matches no
 * tracepoint.
 */
enum pem_kernel_match pem_kernel_btf__match(const struct pem_kernel_btf *btf,
					    const char *tracepoint, const char *prototype);
/*
 * Write a tracepoint's parameter types as C, truncated to bytes. "" if there is no such tracepoint.
 */
void pem_kernel_btf__describe(const struct pem_kernel_btf *btf, const char *tracepoint, char *text,
			      size_t bytes);

#endif
