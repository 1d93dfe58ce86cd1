// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * attach.c - registers the providers of the C library's adapter, and of others that are linked with
 * it (libpem-adapters.so), as the process starts
 *
 * Those of the C library are not unregistered: what is preloaded stays, and destructors that run
 * later have events.
 */
#include "producer/providers.h"

#include "stubs/libc.h"
#include "stubs/libc_io.h"
#include "stubs/libc_lock.h"

#define PART __attribute__((weak, visibility("hidden")))
extern struct pem_provider pem_provider_mpi PART, pem_provider_sqlite PART;

/* Behind find_libpem (silence.c), and before any constructor that has no number. */
__attribute__((constructor(102))) static void attach(void)
{
	struct pem_provider *providers[5] = {&pem_provider_libc, &pem_provider_libc_io,
					     &pem_provider_libc_lock};
	uint32_t count = 3;

	if (&pem_provider_mpi)
		providers[count++] = &pem_provider_mpi;
	if (&pem_provider_sqlite)
		providers[count++] = &pem_provider_sqlite;
	pem_providers__register(providers, count);
}
