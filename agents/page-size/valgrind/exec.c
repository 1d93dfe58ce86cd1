/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec.c - a program that can't be observed: Valgrind, which lies where this one does */
#include "tool.h"
#include "pub_tool_vkiscnums.h"

/* valgrind is a script of the distribution's, valgrind.bin what starts the tools. */
static Bool is_valgrind(const HChar *path)
{
	const HChar *slash = VG_(strrchr)(path, '/'), *name = slash ? slash + 1 : path;

	return !VG_(strcmp)(name, "valgrind") || !VG_(strcmp)(name, "valgrind.bin");
}

void exec__before(UInt number, const UWord *arguments)
{
	struct vg_stat found;

	/* Nobody else has looked at the program's pointer yet: stat fails if it is none. */
	if (options.follow_exec && number == __NR_execve &&
	    !sr_isError(VG_(stat)((const HChar *)arguments[0], &found)) &&
	    is_valgrind((const HChar *)arguments[0]))
		VG_(clo_trace_children) = False;
}
