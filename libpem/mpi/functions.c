// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * functions.c - finding the functions of the program's MPI
 *
 * They are found by their names for tools (PMPI_). A library may have only the usual names, as
 * libraries do that replace MPI in programs of one process: then by these. The loader does not link
 * them: it would end a process that has none.
 */
#include "producer/providers.h"
#include "libc/elf_later.h"
#include "libc/elf_names.h"
#include "mpi/mpi_adapter.h"

/* For libc/attach.c, where both are in one library. */
extern const struct pem_provider_facts pem_known_mpi __attribute__((visibility("hidden")));
const struct pem_provider_facts pem_known_mpi = {PEM_FACTS_mpi, 0};

struct pem_mpi_functions pem_mpi_functions;
int pem_mpi_functions_found;

static const char *const names[][sizeof(struct pem_mpi_functions) / sizeof(void *)] = {
#define X(name) "PMPI_" #name,
	{PEM_MPI_FUNCTIONS(X)},
#undef X
#define X(name) "MPI_" #name,
	{PEM_MPI_FUNCTIONS(X)},
#undef X
};
#define COUNT (sizeof(names[0]) / sizeof(names[0][0]))

typedef void *__attribute__((may_alias)) any_pointer;

/*
 * Takes the part of a function that the MPI does not have. All functions of MPI have this result
 * type.
 */
static int missing(void)
{
	return MPI_ERR_OTHER;
}

static void publish(void *const found[COUNT])
{
	any_pointer *to = (any_pointer *)&pem_mpi_functions;
	int (*stand_in)(void) = missing;
	void *function;
	size_t i;

	for (i = 0; i < COUNT; i++) {
		memcpy(&function, &stand_in, sizeof(function));
		__atomic_store_n(&to[i], found[i] ? found[i] : function, __ATOMIC_RELAXED);
	}
	/* XC */
	__atomic_store_n(&pem_mpi_functions_found, 1, __ATOMIC_RELEASE);
}

/*
 * Search the libraries that the program was started with, before any constructor that could use
 * MPI.
 */
__attribute__((constructor(101))) static void find_at_start(void)
{
	void *found[COUNT];
	int i;

	for (i = 0; i < 2; i++) {
		/* Most programs have none: one name tells. */
		if (!pem_elf__find_next(names[i], found, 1) || !found[0] ||
		    !pem_elf__find_next(names[i], found, COUNT))
			continue;
		publish(found);
		return;
	}
}

void pem_mpi_functions__find(void)
{
	void *found[COUNT] = {NULL};
	int i;

	for (i = 0; i < 2 && !pem_elf__find_later(0, NULL, names[i], found, COUNT); i++)
		;
	publish(found);
}
