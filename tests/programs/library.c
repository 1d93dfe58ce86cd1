// SPDX-License-Identifier: MIT
/*
 * library.c - an instrumented shared library, to be loaded and unloaded
 */
#include "probe.h"

__attribute__((visibility("default"))) void library_raise(uint64_t who, uint64_t first,
							  uint64_t last);

void library_raise(uint64_t who, uint64_t first, uint64_t last)
{
	probe_raise(who, first, last);
}
