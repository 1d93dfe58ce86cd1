// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * attach.c - registers the providers of the C library's adapter, and of others that are linked with
 * it (libpem-adapters.so), as the process starts
 *
 * Those of the C library are not unregistered: what is preloaded stays, and destructors that run
 * later have events.
 */
#include "libc/libc.h"
#include "producer/providers.h"

#include "stubs/libc.h"
#include "stubs/libc_io.h"
#include "stubs/libc_lock.h"

#define PART __attribute__((weak, visibility("hidden")))
extern struct pem_provider pem_provider_mpi PART, pem_provider_sqlite PART;
extern const struct pem_provider_facts pem_known_mpi PART, pem_known_sqlite PART;

static const struct pem_provider_facts libc_facts = {PEM_FACTS_libc, PEM_EVENT_LOADER_OBJECT_ID};
static const struct pem_provider_facts io_facts = {PEM_FACTS_libc_io, 0};
static const struct pem_provider_facts lock_facts = {PEM_FACTS_libc_lock, 0};

/* Behind find_libpem (silence.c), and before any constructor that has no number. */
__attribute__((constructor(102))) static void attach(void)
{
	struct pem_known_provider known[5] = {{&pem_provider_libc, &libc_facts},
					      {&pem_provider_libc_io, &io_facts},
					      {&pem_provider_libc_lock, &lock_facts}};
	uint32_t count = 3;

	if (&pem_provider_mpi)
		known[count++] = (struct pem_known_provider){&pem_provider_mpi, &pem_known_mpi};
	if (&pem_provider_sqlite)
		known[count++] =
			(struct pem_known_provider){&pem_provider_sqlite, &pem_known_sqlite};
	pem_providers__register(known, count);
}

#define EARLY(name, event) [PEM_LIBC_REAL_INDEX(name)] = PEM_EVENT_LIBC_##event##_ID

/* Behind join (producer/process.c). */
__attribute__((constructor(104))) static void lose_early(void)
{
	static const uint32_t events[PEM_LIBC_REAL_COUNT] = {
		EARLY(malloc, MALLOC),         EARLY(calloc, CALLOC),
		EARLY(realloc, REALLOC),       EARLY(free, FREE),
		EARLY(posix_memalign, MALLOC), EARLY(aligned_alloc, MALLOC),
		EARLY(memalign, MALLOC),       EARLY(valloc, MALLOC),
		EARLY(pvalloc, MALLOC),        EARLY(mmap, MMAP),
		EARLY(munmap, MUNMAP),         EARLY(pthread_create, THREAD_START),
	};
	size_t i;

	for (i = 0; i < PEM_LIBC_REAL_COUNT; i++)
		if (pem_libc_real__early[i])
			pem_providers__lose(&pem_provider_libc, events[i], pem_libc_real__early[i]);
}
