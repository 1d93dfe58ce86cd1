// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * silence.c - when libpem-libc raises no events
 *
 * It raises none for calls that libpem makes, in threads without the C library's memory, and in
 * programs built with a sanitizer. A sanitizer brings its own malloc and checks its callers. In
 * such a program the providers are unregistered, and the wrappers only pass calls on. This file is
 * linked behind those that register the providers, so its constructor runs after theirs.
 */
#include "libc/elf_names.h"
#include "libc/libc.h"

#include "early.h"

#include "stubs/libc.h"
#include "stubs/libc_io.h"
#include "stubs/libc_lock.h"

#include <link.h>

static uintptr_t own_start PEM_EARLY, own_bytes PEM_EARLY;

int pem_libc_call__is_silent(uintptr_t site)
{
	return site - own_start < own_bytes || !pem_thread_self(&pem_provider_libc);
}

/*
 * Remember the address range of this object if it contains the address in arg. The program itself
 * is never our own object.
 */
static int find_own(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t wanted = (uintptr_t)arg, low = UINTPTR_MAX, high = 0, start, end;
	int i, holds = 0;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		end = start + info->dlpi_phdr[i].p_memsz;
		holds |= wanted >= start && wanted < end;
		low = start < low ? start : low;
		high = end > high ? end : high;
	}
	if (!holds)
		return 0;
	if (info->dlpi_name && info->dlpi_name[0]) {
		own_start = low;
		own_bytes = high - low;
	}
	return 1;
}

/*
 * This runs before the first provider registers. For each further provider libpem maps a page, and
 * sessions may want the mapping's event then.
 */
__attribute__((constructor(101))) static void find_libpem(void)
{
	dl_iterate_phdr(find_own, (void *)(uintptr_t)&pem_provider_register);
}

__attribute__((constructor)) static void find_libraries(void)
{
	static const char *const sanitizers[] = {"__asan_init", "__tsan_init", "__msan_init"};

	if (!pem_elf__is_defined(sanitizers, sizeof(sanitizers) / sizeof(sanitizers[0])))
		return;
	pem_provider_unregister(&pem_provider_libc);
	pem_provider_unregister(&pem_provider_libc_io);
	pem_provider_unregister(&pem_provider_libc_lock);
}
