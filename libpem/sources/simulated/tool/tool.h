/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tool.h - what the files of the tool for Valgrind share
 *
 *	main.c		options, threads, and the entry in the file (pem/hardware.h)
 *	instrument.c	makes each superblock call the simulation
 *	hierarchy.c	the simulation
 *
 * One thread of the program runs at a time, with all of the tool: nothing here is locked.
 */
#ifndef PEM_SIMULATED_TOOL_H
#define PEM_SIMULATED_TOOL_H

#include "hierarchy.h"

#include "pub_tool_basics.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"

extern struct hierarchy hierarchy;
extern ULong instruction_count; /* of this process */

IRSB *instrument(VgCallbackClosure *closure, IRSB *sb, const VexGuestLayout *layout,
		 const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word,
		 IRType host_word);

#endif
