/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * context.h - the context of a handle, as the caller gave it and as libpem keeps it
 *
 * Not here: which processes are in a context (membership.h).
 */
#ifndef PEM_CONTEXT_H
#define PEM_CONTEXT_H

#include <pem/pem.h>

/*
 * Copy a caller's context. given NULL: the copy restricts nothing. If two contexts mean the same,
 * their copies are equal byte by byte. Returns 0, or -errno with error. -EINVAL: the context
 * contradicts itself, or names a CPU that this machine can't have. -ESRCH: no process or thread can
 * have its number. -E2BIG: it sets members that this version does not know.
 */
int pem_context__copy(struct pem_context *copy, const struct pem_context *given,
		      struct pem_error *error);

/* Return the CPU that a context names, or PEM_NO_CPU. */
static inline uint32_t pem_context__cpu(const struct pem_context *context)
{
	return context->one_cpu ? context->cpu : PEM_NO_CPU;
}

#endif
