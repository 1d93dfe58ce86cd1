/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * context.h - the context that a handle is registered in, as the caller gave it and as libpem keeps
 * it
 *
 * Not here: which processes are in a context (membership.h).
 */
#ifndef PEM_CONTEXT_H
#define PEM_CONTEXT_H

#include <pem/pem.h>

/*
 * Copy a caller's context; given NULL: the copy restricts nothing. The copies of two contexts that
 * mean the same are equal byte by byte. 0, or -errno with error: -EINVAL, it contradicts itself;
 * -E2BIG, it sets what this version does not know.
 */
int pem_context__copy(struct pem_context *copy, const struct pem_context *given,
		      struct pem_error *error);

/* The CPU that a context names, or PEM_NO_CPU. */
static inline uint32_t pem_context__cpu(const struct pem_context *context)
{
	return context->one_cpu ? context->cpu : PEM_NO_CPU;
}

#endif
