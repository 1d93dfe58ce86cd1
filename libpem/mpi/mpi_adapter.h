/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mpi_adapter.h - libpem-mpi.so: what its files share
 *
 * Preloaded into the processes of an MPI program, it stands in front of MPI_ functions, raises the
 * events of spec/app/mpi.xml and calls the PMPI_ ones of the program's own MPI. It sends no message
 * of its own and needs no agreement with other processes, which may run without it.
 *
 *	functions.c	finding MPI's own functions
 *	communicator.c	start and end, ranks in the world, communicators and their numbers
 *	message.c	sends, receives, waits
 *	request.c	receives under way
 *	collective.c	collective operations, accesses to the memory of other processes
 *
 * It does not link with an MPI library, so that a process without MPI can be preloaded, too:
 * handles are weak symbols, and functions are found where they are. A build serves the MPI whose
 * mpi.h it was compiled with, and others of the same binary interface. Of an MPI that is loaded
 * after the program's start the handles are not known: calls are passed on, and show without ranks.
 *
 * Not here: persistent requests, Fortran's calls (most MPIs implement them by PMPI_ calls, past the
 * profiling interface of C), matched probes, neighbourhood collectives.
 */
#ifndef PEM_MPI_ADAPTER_H
#define PEM_MPI_ADAPTER_H

/* Their handles are addresses of variables in the library: a process without MPI has none. */
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_request_null

#include <mpi.h>

#include "stubs/mpi.h"

#include <stdint.h>
#include <string.h>

#define PEM_MPI_EXPORT __attribute__((visibility("default")))

/* What this library calls. The first is one that whatever is MPI has. */
/* clang-format off */
#define PEM_MPI_FUNCTIONS(X) \
	X(Init) X(Abort) X(Accumulate) X(Allgather) X(Allgatherv) X(Allreduce) \
	X(Alltoall) X(Alltoallv) X(Barrier) X(Bcast) X(Bsend) X(Cart_create) \
	X(Comm_create) X(Comm_create_group) X(Comm_create_keyval) X(Comm_dup) \
	X(Comm_dup_with_info) X(Comm_free) X(Comm_get_attr) X(Comm_group) X(Comm_rank) \
	X(Comm_remote_group) X(Comm_remote_size) X(Comm_set_attr) X(Comm_size) \
	X(Comm_split) X(Comm_split_type) X(Comm_test_inter) X(Exscan) X(Finalize) \
	X(Gather) X(Gatherv) X(Get) X(Get_count) X(Group_free) X(Group_translate_ranks) \
	X(Iallgather) X(Iallreduce) X(Ialltoall) X(Ibarrier) X(Ibcast) X(Ibsend) \
	X(Init_thread) X(Irecv) X(Ireduce) X(Isend) X(Issend) X(Probe) X(Put) X(Recv) \
	X(Reduce) X(Reduce_scatter) X(Reduce_scatter_block) X(Request_free) X(Rsend) \
	X(Scan) X(Scatter) X(Scatterv) X(Send) X(Sendrecv) X(Ssend) X(Test) \
	X(Test_cancelled) X(Testall) X(Testany) X(Testsome) X(Type_size) X(Wait) \
	X(Waitall) X(Waitany) X(Waitsome) X(Win_fence)
/* clang-format on */

struct pem_mpi_functions {
#define X(name) __typeof__(&PMPI_##name) name;
	PEM_MPI_FUNCTIONS(X)
#undef X
};
extern struct pem_mpi_functions pem_mpi_functions;
extern int pem_mpi_functions_found;

/* For an MPI that was loaded after the program's start. Takes the loader's lock, once. */
void pem_mpi_functions__find(void);

static inline const struct pem_mpi_functions *pem_mpi_functions__get(void)
{
	/* xc: ACQUIRE pairs with RELEASE in functions.c */
	if (__builtin_expect(!__atomic_load_n(&pem_mpi_functions_found, __ATOMIC_ACQUIRE), 0))
		pem_mpi_functions__find();
	return &pem_mpi_functions;
}

/* MPI's own function behind this library's. One that this MPI does not have fails. */
#define PEM_MPI(name) (pem_mpi_functions__get()->name)

/* A communicator, while it or a receive in it lives. */
struct pem_mpi_communicator {
	uint32_t id; /* the same in all its processes */
	uint32_t references;
	/* processes that messages can name: of an intercommunicator those of the other group */
	int peers;
	int world[]; /* their ranks in the world */
};

/* 32 bits that are the same in all processes of this run on this machine. */
uint32_t pem_mpi__job(void);
/* This process's rank in the world. */
int32_t pem_mpi__rank(void);

/*
 * What is known of a communicator, made on its first use. The caller holds a reference until
 * pem_mpi_communicator__put; NULL: not a communicator, or out of memory.
 */
struct pem_mpi_communicator *pem_mpi_communicator__get(MPI_Comm handle);
void pem_mpi_communicator__put(struct pem_mpi_communicator *communicator);
/*
 * Rank in the world of a rank in the communicator; -1: MPI_PROC_NULL, MPI_ANY_SOURCE, MPI_ROOT or
 * unknown.
 */
int32_t pem_mpi_communicator__world(const struct pem_mpi_communicator *communicator, int rank);

/*
 * Bytes of count elements; 0 for MPI_DATATYPE_NULL. For another invalid type MPI calls the error
 * handler of MPI_COMM_WORLD, which usually ends the program.
 */
uint64_t pem_mpi__bytes(int count, MPI_Datatype type);

/* Any handle as a number. */
#define PEM_MPI_NUMBER(handle)                                                                     \
	({                                                                                         \
		uint64_t number_ = 0;                                                              \
		memcpy(&number_, &(handle), sizeof(handle));                                       \
		number_;                                                                           \
	})

/* Remember that a request is a receive. Takes over the reference. */
void pem_mpi_request__add(MPI_Request request, struct pem_mpi_communicator *communicator);
/* Is any receive remembered? */
int pem_mpi_request__any(void);
/* Forget it: its communicator, with the reference; NULL: no receive that is known. */
struct pem_mpi_communicator *pem_mpi_request__take(uint64_t request);

#endif
