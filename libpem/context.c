/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * context.c - see context.h
 */
#include "context.h"
#include "sized.h"
#include "util.h"

#include <errno.h>
#include <string.h>

int pem_context__copy(struct pem_context *copy, const struct pem_context *given,
		      struct pem_error *error)
{
	static const struct pem_context any = {0};
	struct pem_context c;
	int result = PEM_READ_SIZED(pem_context, &c, given ? given : &any, program, error);

	if (result)
		return result;
	if (c.one_cpu > 1)
		return pem_error__set(error, -EINVAL,
				      "a context's one_cpu is %u: it is 1 for the CPU that 'cpu' "
				      "names alone, and 0 for all",
				      c.one_cpu);
	if (c.cpu && !c.one_cpu)
		return pem_error__set(error, -EINVAL,
				      "a context names CPU %u, and its one_cpu is 0: set it to 1 "
				      "for that CPU alone",
				      c.cpu);
	if (c.follow > 1)
		return pem_error__set(error, -EINVAL,
				      "a context's follow is %u: it is 1 for processes that 'pid' "
				      "starts, and 0 for that one alone",
				      c.follow);
	if (c.follow && !c.pid)
		return pem_error__set(error, -EINVAL,
				      "a context follows a process, and its pid is 0: name the "
				      "process, or set follow to 0 for all processes");
	if (!memchr(c.program, 0, sizeof(c.program)))
		return pem_error__set(
			error, -EINVAL,
			"a context's program has no end: a name has at most %zu bytes",
			sizeof(c.program) - 1);
	/* Bytes behind the name's end mean nothing, so they become 0. */
	memset(c.program + strlen(c.program), 0, sizeof(c.program) - strlen(c.program));
	*copy = c;
	return 0;
}
