/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mpi_adapter.h - libpem-mpi.so: what its files share
 *
 * Preloaded into the processes of an MPI program, it stands in front of MPI_ functions, raises the events of
 * spec/app/mpi.xml and calls the PMPI_ ones of the program's own MPI. It sends no message of its own and needs no
 * agreement with other processes, which may run without it.
 *
 *	communicator.c	start and end, ranks in the world, communicators and their numbers
 *	message.c	sends, receives, waits
 *	request.c	receives under way
 *	collective.c	collective operations, accesses to the memory of other processes
 *
 * It does not link with an MPI library: symbols are the program's, and weak, so that a process without MPI can be
 * preloaded too. A build serves the MPI whose mpi.h it was compiled with, and others of the same binary interface.
 *
 * Not here: persistent requests, Fortran's calls (most MPIs implement them by PMPI_ calls, past the profiling
 * interface of C), matched probes, neighbourhood collectives.
 */
#ifndef PEM_MPI_ADAPTER_H
#define PEM_MPI_ADAPTER_H

/* Their handles are addresses of variables in the library: a process without MPI has none. */
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_byte
#pragma weak ompi_request_null

#include <mpi.h>

#include "stubs/mpi.h"

#include <stdint.h>
#include <string.h>

#define PEM_MPI_EXPORT __attribute__((visibility("default")))

/* A communicator, while it or a receive in it lives. */
struct pem_mpi_communicator {
	uint32_t id; /* the same in all its processes */
	uint32_t references;
	int peers; /* processes that messages can name: of an intercommunicator those of the other group */
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
/* Rank in the world of a rank in the communicator; -1: MPI_PROC_NULL, MPI_ANY_SOURCE, MPI_ROOT or unknown. */
int32_t pem_mpi_communicator__world(const struct pem_mpi_communicator *communicator, int rank);

/* Bytes of count elements; 0 of what is no type. */
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
