// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * collective.c - operations of all processes of a communicator, and accesses to another one's
 * memory
 *
 * bytes is what this process contributes. For operations with a count for each process the counts
 * are not summed up: bytes is 0.
 */
#include "mpi/mpi_adapter.h"

static int enabled(void)
{
	return pem_enabled_mpi_collective_begin() | pem_enabled_mpi_collective_end();
}

static struct pem_mpi_communicator *begin(MPI_Comm handle, uint64_t bytes, int root,
					  uint8_t operation)
{
	struct pem_mpi_communicator *c = pem_mpi_communicator__get(handle);

	pem_notify_mpi_collective_begin(bytes, c ? c->id : 0, pem_mpi_communicator__world(c, root),
					operation);
	return c;
}

static int end(int rc, struct pem_mpi_communicator *c, uint8_t operation)
{
	pem_notify_mpi_collective_end(c ? c->id : 0, operation);
	pem_mpi_communicator__put(c);
	return rc;
}

/* Return the bytes that this process contributes. With MPI_IN_PLACE count and type mean nothing. */
static uint64_t given(const void *from, int count, MPI_Datatype type)
{
	return from == MPI_IN_PLACE ? 0 : pem_mpi__bytes(count, type);
}

/*
 * Return the bytes that this process contributes. Count and type have a meaning only at the root.
 */
static uint64_t scattered(MPI_Comm handle, int root, int count, MPI_Datatype type)
{
	int rank = -1;

	PEM_MPI(Comm_rank)(handle, &rank);
	return rank == root ? pem_mpi__bytes(count, type) : 0;
}

PEM_MPI_EXPORT int MPI_Barrier(MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Barrier)(handle);
	c = begin(handle, 0, MPI_PROC_NULL, PEM_MPI_OPERATION_BARRIER);
	return end(PEM_MPI(Barrier)(handle), c, PEM_MPI_OPERATION_BARRIER);
}

PEM_MPI_EXPORT int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Bcast)(data, count, type, root, handle);
	c = begin(handle, pem_mpi__bytes(count, type), root, PEM_MPI_OPERATION_BROADCAST);
	return end(PEM_MPI(Bcast)(data, count, type, root, handle), c, PEM_MPI_OPERATION_BROADCAST);
}

PEM_MPI_EXPORT int MPI_Reduce(const void *from, void *to, int count, MPI_Datatype type,
			      MPI_Op operator, int root, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Reduce)(from, to, count, type, operator, root, handle);
	c = begin(handle, pem_mpi__bytes(count, type), root, PEM_MPI_OPERATION_REDUCE);
	return end(PEM_MPI(Reduce)(from, to, count, type, operator, root, handle), c,
		   PEM_MPI_OPERATION_REDUCE);
}

PEM_MPI_EXPORT int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type,
				 MPI_Op operator, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Allreduce)(from, to, count, type, operator, handle);
	c = begin(handle, pem_mpi__bytes(count, type), MPI_PROC_NULL, PEM_MPI_OPERATION_ALLREDUCE);
	return end(PEM_MPI(Allreduce)(from, to, count, type, operator, handle), c,
		   PEM_MPI_OPERATION_ALLREDUCE);
}

PEM_MPI_EXPORT int MPI_Gather(const void *from, int send_count, MPI_Datatype send_type, void *to,
			      int receive_count, MPI_Datatype receive_type, int root,
			      MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Gather)(from, send_count, send_type, to, receive_count, receive_type,
				       root, handle);
	c = begin(handle, given(from, send_count, send_type), root, PEM_MPI_OPERATION_GATHER);
	return end(PEM_MPI(Gather)(from, send_count, send_type, to, receive_count, receive_type,
				   root, handle),
		   c, PEM_MPI_OPERATION_GATHER);
}

PEM_MPI_EXPORT int MPI_Gatherv(const void *from, int send_count, MPI_Datatype send_type, void *to,
			       const int receive_counts[], const int locations[],
			       MPI_Datatype receive_type, int root, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Gatherv)(from, send_count, send_type, to, receive_counts, locations,
					receive_type, root, handle);
	c = begin(handle, given(from, send_count, send_type), root, PEM_MPI_OPERATION_GATHER);
	return end(PEM_MPI(Gatherv)(from, send_count, send_type, to, receive_counts, locations,
				    receive_type, root, handle),
		   c, PEM_MPI_OPERATION_GATHER);
}

PEM_MPI_EXPORT int MPI_Allgather(const void *from, int send_count, MPI_Datatype send_type, void *to,
				 int receive_count, MPI_Datatype receive_type, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Allgather)(from, send_count, send_type, to, receive_count,
					  receive_type, handle);
	c = begin(handle, given(from, send_count, send_type), MPI_PROC_NULL,
		  PEM_MPI_OPERATION_ALLGATHER);
	return end(PEM_MPI(Allgather)(from, send_count, send_type, to, receive_count, receive_type,
				      handle),
		   c, PEM_MPI_OPERATION_ALLGATHER);
}

PEM_MPI_EXPORT int MPI_Allgatherv(const void *from, int send_count, MPI_Datatype send_type,
				  void *to, const int receive_counts[], const int locations[],
				  MPI_Datatype receive_type, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Allgatherv)(from, send_count, send_type, to, receive_counts,
					   locations, receive_type, handle);
	c = begin(handle, given(from, send_count, send_type), MPI_PROC_NULL,
		  PEM_MPI_OPERATION_ALLGATHER);
	return end(PEM_MPI(Allgatherv)(from, send_count, send_type, to, receive_counts, locations,
				       receive_type, handle),
		   c, PEM_MPI_OPERATION_ALLGATHER);
}

PEM_MPI_EXPORT int MPI_Scatter(const void *from, int send_count, MPI_Datatype send_type, void *to,
			       int receive_count, MPI_Datatype receive_type, int root,
			       MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Scatter)(from, send_count, send_type, to, receive_count,
					receive_type, root, handle);
	c = begin(handle, scattered(handle, root, send_count, send_type), root,
		  PEM_MPI_OPERATION_SCATTER);
	return end(PEM_MPI(Scatter)(from, send_count, send_type, to, receive_count, receive_type,
				    root, handle),
		   c, PEM_MPI_OPERATION_SCATTER);
}

PEM_MPI_EXPORT int MPI_Scatterv(const void *from, const int send_counts[], const int locations[],
				MPI_Datatype send_type, void *to, int receive_count,
				MPI_Datatype receive_type, int root, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Scatterv)(from, send_counts, locations, send_type, to, receive_count,
					 receive_type, root, handle);
	c = begin(handle, 0, root, PEM_MPI_OPERATION_SCATTER);
	return end(PEM_MPI(Scatterv)(from, send_counts, locations, send_type, to, receive_count,
				     receive_type, root, handle),
		   c, PEM_MPI_OPERATION_SCATTER);
}

PEM_MPI_EXPORT int MPI_Alltoall(const void *from, int send_count, MPI_Datatype send_type, void *to,
				int receive_count, MPI_Datatype receive_type, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Alltoall)(from, send_count, send_type, to, receive_count,
					 receive_type, handle);
	c = begin(handle, given(from, send_count, send_type), MPI_PROC_NULL,
		  PEM_MPI_OPERATION_ALLTOALL);
	return end(PEM_MPI(Alltoall)(from, send_count, send_type, to, receive_count, receive_type,
				     handle),
		   c, PEM_MPI_OPERATION_ALLTOALL);
}

PEM_MPI_EXPORT int MPI_Alltoallv(const void *from, const int send_counts[],
				 const int send_locations[], MPI_Datatype send_type, void *to,
				 const int receive_counts[], const int receive_locations[],
				 MPI_Datatype receive_type, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Alltoallv)(from, send_counts, send_locations, send_type, to,
					  receive_counts, receive_locations, receive_type, handle);
	c = begin(handle, 0, MPI_PROC_NULL, PEM_MPI_OPERATION_ALLTOALL);
	return end(PEM_MPI(Alltoallv)(from, send_counts, send_locations, send_type, to,
				      receive_counts, receive_locations, receive_type, handle),
		   c, PEM_MPI_OPERATION_ALLTOALL);
}

PEM_MPI_EXPORT int MPI_Reduce_scatter(const void *from, void *to, const int counts[],
				      MPI_Datatype type, MPI_Op operator, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Reduce_scatter)(from, to, counts, type, operator, handle);
	c = begin(handle, 0, MPI_PROC_NULL, PEM_MPI_OPERATION_REDUCE_SCATTER);
	return end(PEM_MPI(Reduce_scatter)(from, to, counts, type, operator, handle), c,
		   PEM_MPI_OPERATION_REDUCE_SCATTER);
}

PEM_MPI_EXPORT int MPI_Reduce_scatter_block(const void *from, void *to, int count,
					    MPI_Datatype type, MPI_Op operator, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Reduce_scatter_block)(from, to, count, type, operator, handle);
	c = begin(handle, pem_mpi__bytes(count, type), MPI_PROC_NULL,
		  PEM_MPI_OPERATION_REDUCE_SCATTER);
	return end(PEM_MPI(Reduce_scatter_block)(from, to, count, type, operator, handle), c,
		   PEM_MPI_OPERATION_REDUCE_SCATTER);
}

PEM_MPI_EXPORT int MPI_Scan(const void *from, void *to, int count, MPI_Datatype type,
			    MPI_Op operator, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Scan)(from, to, count, type, operator, handle);
	c = begin(handle, pem_mpi__bytes(count, type), MPI_PROC_NULL, PEM_MPI_OPERATION_SCAN);
	return end(PEM_MPI(Scan)(from, to, count, type, operator, handle), c,
		   PEM_MPI_OPERATION_SCAN);
}

PEM_MPI_EXPORT int MPI_Exscan(const void *from, void *to, int count, MPI_Datatype type,
			      MPI_Op operator, MPI_Comm handle)
{
	struct pem_mpi_communicator *c;

	if (!enabled())
		return PEM_MPI(Exscan)(from, to, count, type, operator, handle);
	c = begin(handle, pem_mpi__bytes(count, type), MPI_PROC_NULL, PEM_MPI_OPERATION_SCAN);
	return end(PEM_MPI(Exscan)(from, to, count, type, operator, handle), c,
		   PEM_MPI_OPERATION_SCAN);
}

/* --- without waiting --- */

/* Another thread may free the communicator as soon as the operation is under way. */
static struct pem_mpi_communicator *start(MPI_Comm handle)
{
	return pem_enabled_mpi_collective_start() ? pem_mpi_communicator__get(handle) : NULL;
}

static int started(int rc, struct pem_mpi_communicator *c, const MPI_Request *request,
		   uint8_t operation)
{
	if (!rc && pem_enabled_mpi_collective_start())
		pem_notify_mpi_collective_start(PEM_MPI_NUMBER(*request), c ? c->id : 0, operation);
	pem_mpi_communicator__put(c);
	return rc;
}

PEM_MPI_EXPORT int MPI_Ibarrier(MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c = start(handle);

	return started(PEM_MPI(Ibarrier)(handle, request), c, request, PEM_MPI_OPERATION_BARRIER);
}

PEM_MPI_EXPORT int MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm handle,
			      MPI_Request *request)
{
	struct pem_mpi_communicator *c = start(handle);

	return started(PEM_MPI(Ibcast)(data, count, type, root, handle, request), c, request,
		       PEM_MPI_OPERATION_BROADCAST);
}

PEM_MPI_EXPORT int MPI_Ireduce(const void *from, void *to, int count, MPI_Datatype type,
			       MPI_Op operator, int root, MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c = start(handle);

	return started(PEM_MPI(Ireduce)(from, to, count, type, operator, root, handle, request), c,
		       request, PEM_MPI_OPERATION_REDUCE);
}

PEM_MPI_EXPORT int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type,
				  MPI_Op operator, MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c = start(handle);

	return started(PEM_MPI(Iallreduce)(from, to, count, type, operator, handle, request), c,
		       request, PEM_MPI_OPERATION_ALLREDUCE);
}

PEM_MPI_EXPORT int MPI_Iallgather(const void *from, int send_count, MPI_Datatype send_type,
				  void *to, int receive_count, MPI_Datatype receive_type,
				  MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c = start(handle);

	return started(PEM_MPI(Iallgather)(from, send_count, send_type, to, receive_count,
					   receive_type, handle, request),
		       c, request, PEM_MPI_OPERATION_ALLGATHER);
}

PEM_MPI_EXPORT int MPI_Ialltoall(const void *from, int send_count, MPI_Datatype send_type, void *to,
				 int receive_count, MPI_Datatype receive_type, MPI_Comm handle,
				 MPI_Request *request)
{
	struct pem_mpi_communicator *c = start(handle);

	return started(PEM_MPI(Ialltoall)(from, send_count, send_type, to, receive_count,
					  receive_type, handle, request),
		       c, request, PEM_MPI_OPERATION_ALLTOALL);
}

/* --- memory of others --- */

PEM_MPI_EXPORT int MPI_Put(const void *from, int count, MPI_Datatype type, int peer,
			   MPI_Aint location, int peer_count, MPI_Datatype peer_type,
			   MPI_Win window)
{
	if (pem_enabled_mpi_put_start())
		pem_notify_mpi_put_start(pem_mpi__bytes(count, type), peer);
	return PEM_MPI(Put)(from, count, type, peer, location, peer_count, peer_type, window);
}

PEM_MPI_EXPORT int MPI_Get(void *to, int count, MPI_Datatype type, int peer, MPI_Aint location,
			   int peer_count, MPI_Datatype peer_type, MPI_Win window)
{
	if (pem_enabled_mpi_get_start())
		pem_notify_mpi_get_start(pem_mpi__bytes(count, type), peer);
	return PEM_MPI(Get)(to, count, type, peer, location, peer_count, peer_type, window);
}

PEM_MPI_EXPORT int MPI_Accumulate(const void *from, int count, MPI_Datatype type, int peer,
				  MPI_Aint location, int peer_count, MPI_Datatype peer_type,
				  MPI_Op operator, MPI_Win window)
{
	if (pem_enabled_mpi_accumulate_start())
		pem_notify_mpi_accumulate_start(pem_mpi__bytes(count, type), peer);
	return PEM_MPI(Accumulate)(from, count, type, peer, location, peer_count,
				   peer_type, operator, window);
}

PEM_MPI_EXPORT int MPI_Win_fence(int assert, MPI_Win window)
{
	int rc;

	pem_notify_mpi_fence_begin();
	rc = PEM_MPI(Win_fence)(assert, window);
	pem_notify_mpi_fence_end();
	return rc;
}
