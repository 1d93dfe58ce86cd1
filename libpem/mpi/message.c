// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * message.c - messages between two processes: sends, receives, waits for them
 *
 * A message is shown as sent when its send is called, and as received when the call that completes
 * it is about to return. MPI keeps messages of one sender, communicator and tag in order, so the
 * nth message sent is the nth message received.
 */
#include "mpi/mpi_adapter.h"

#include <stdlib.h>

/* --- what all calls share --- */

static void note_send(struct pem_mpi_communicator *c, int peer, int tag, uint64_t bytes)
{
	int32_t receiver = pem_mpi_communicator__world(c, peer);

	if (receiver >= 0)
		pem_notify_mpi_message_send(pem_mpi__job(), c->id, pem_mpi__rank(), receiver, tag,
					    bytes);
}

static void note_receive(struct pem_mpi_communicator *c, const MPI_Status *status)
{
	int32_t sender = pem_mpi_communicator__world(c, status->MPI_SOURCE);
	int bytes = 0;

	if (sender < 0)
		return;
	PEM_MPI(Get_count)(status, MPI_BYTE, &bytes);
	pem_notify_mpi_message_receive(pem_mpi__job(), c->id, sender, pem_mpi__rank(),
				       status->MPI_TAG, bytes > 0 ? (uint64_t)bytes : 0);
}

static int send_enabled(void)
{
	return pem_enabled_mpi_message_send() | pem_enabled_mpi_send_begin() |
	       pem_enabled_mpi_send_end();
}

static int receive_enabled(void)
{
	return pem_enabled_mpi_message_receive() | pem_enabled_mpi_receive_begin() |
	       pem_enabled_mpi_receive_end();
}

static int send_start_enabled(void)
{
	return pem_enabled_mpi_message_send() | pem_enabled_mpi_send_start();
}

/* --- sends --- */

static int32_t send_begin(MPI_Comm handle, int count, MPI_Datatype type, int peer, int tag,
			  uint8_t mode)
{
	struct pem_mpi_communicator *c = pem_mpi_communicator__get(handle);
	uint64_t bytes = pem_mpi__bytes(count, type);
	int32_t receiver = pem_mpi_communicator__world(c, peer);

	pem_notify_mpi_send_begin(bytes, c ? c->id : 0, receiver, tag, mode);
	note_send(c, peer, tag, bytes);
	pem_mpi_communicator__put(c);
	return receiver;
}

static int send_end(int rc, int32_t receiver)
{
	pem_notify_mpi_send_end(receiver);
	return rc;
}

PEM_MPI_EXPORT int MPI_Send(const void *from, int count, MPI_Datatype type, int peer, int tag,
			    MPI_Comm handle)
{
	int32_t receiver;

	if (!send_enabled())
		return PEM_MPI(Send)(from, count, type, peer, tag, handle);
	receiver = send_begin(handle, count, type, peer, tag, PEM_MPI_MODE_STANDARD);
	return send_end(PEM_MPI(Send)(from, count, type, peer, tag, handle), receiver);
}

PEM_MPI_EXPORT int MPI_Bsend(const void *from, int count, MPI_Datatype type, int peer, int tag,
			     MPI_Comm handle)
{
	int32_t receiver;

	if (!send_enabled())
		return PEM_MPI(Bsend)(from, count, type, peer, tag, handle);
	receiver = send_begin(handle, count, type, peer, tag, PEM_MPI_MODE_BUFFERED);
	return send_end(PEM_MPI(Bsend)(from, count, type, peer, tag, handle), receiver);
}

PEM_MPI_EXPORT int MPI_Ssend(const void *from, int count, MPI_Datatype type, int peer, int tag,
			     MPI_Comm handle)
{
	int32_t receiver;

	if (!send_enabled())
		return PEM_MPI(Ssend)(from, count, type, peer, tag, handle);
	receiver = send_begin(handle, count, type, peer, tag, PEM_MPI_MODE_SYNCHRONOUS);
	return send_end(PEM_MPI(Ssend)(from, count, type, peer, tag, handle), receiver);
}

PEM_MPI_EXPORT int MPI_Rsend(const void *from, int count, MPI_Datatype type, int peer, int tag,
			     MPI_Comm handle)
{
	int32_t receiver;

	if (!send_enabled())
		return PEM_MPI(Rsend)(from, count, type, peer, tag, handle);
	receiver = send_begin(handle, count, type, peer, tag, PEM_MPI_MODE_READY);
	return send_end(PEM_MPI(Rsend)(from, count, type, peer, tag, handle), receiver);
}

/*
 * Before the call the message is shown, because it may arrive before the call returns. The thread
 * that receives it may then free the type and the communicator, so both are looked at before. The
 * request is shown after the call, because it has no number before.
 */
static struct pem_mpi_communicator *start_send(MPI_Comm handle, uint64_t bytes, int peer, int tag)
{
	struct pem_mpi_communicator *c = pem_mpi_communicator__get(handle);

	note_send(c, peer, tag, bytes);
	return c;
}

static int started_send(int rc, struct pem_mpi_communicator *c, const MPI_Request *request,
			uint64_t bytes, int peer, int tag, uint8_t mode)
{
	if (!rc)
		pem_notify_mpi_send_start(PEM_MPI_NUMBER(*request), bytes, c ? c->id : 0,
					  pem_mpi_communicator__world(c, peer), tag, mode);
	pem_mpi_communicator__put(c);
	return rc;
}

PEM_MPI_EXPORT int MPI_Isend(const void *from, int count, MPI_Datatype type, int peer, int tag,
			     MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c;
	uint64_t bytes;
	int rc;

	if (!send_start_enabled())
		return PEM_MPI(Isend)(from, count, type, peer, tag, handle, request);
	bytes = pem_mpi__bytes(count, type);
	c = start_send(handle, bytes, peer, tag);
	rc = PEM_MPI(Isend)(from, count, type, peer, tag, handle, request);
	return started_send(rc, c, request, bytes, peer, tag, PEM_MPI_MODE_STANDARD);
}

PEM_MPI_EXPORT int MPI_Ibsend(const void *from, int count, MPI_Datatype type, int peer, int tag,
			      MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c;
	uint64_t bytes;
	int rc;

	if (!send_start_enabled())
		return PEM_MPI(Ibsend)(from, count, type, peer, tag, handle, request);
	bytes = pem_mpi__bytes(count, type);
	c = start_send(handle, bytes, peer, tag);
	rc = PEM_MPI(Ibsend)(from, count, type, peer, tag, handle, request);
	return started_send(rc, c, request, bytes, peer, tag, PEM_MPI_MODE_BUFFERED);
}

PEM_MPI_EXPORT int MPI_Issend(const void *from, int count, MPI_Datatype type, int peer, int tag,
			      MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c;
	uint64_t bytes;
	int rc;

	if (!send_start_enabled())
		return PEM_MPI(Issend)(from, count, type, peer, tag, handle, request);
	bytes = pem_mpi__bytes(count, type);
	c = start_send(handle, bytes, peer, tag);
	rc = PEM_MPI(Issend)(from, count, type, peer, tag, handle, request);
	return started_send(rc, c, request, bytes, peer, tag, PEM_MPI_MODE_SYNCHRONOUS);
}

/* --- receives --- */

PEM_MPI_EXPORT int MPI_Recv(void *to, int count, MPI_Datatype type, int peer, int tag,
			    MPI_Comm handle, MPI_Status *status)
{
	struct pem_mpi_communicator *c;
	MPI_Status own;
	int32_t sender;
	int rc;

	if (!receive_enabled())
		return PEM_MPI(Recv)(to, count, type, peer, tag, handle, status);
	c = pem_mpi_communicator__get(handle);
	sender = pem_mpi_communicator__world(c, peer);
	pem_notify_mpi_receive_begin(pem_mpi__bytes(count, type), c ? c->id : 0, sender,
				     tag == MPI_ANY_TAG ? -1 : tag);
	if (status == MPI_STATUS_IGNORE)
		status = &own;
	rc = PEM_MPI(Recv)(to, count, type, peer, tag, handle, status);
	if (!rc && c) {
		sender = pem_mpi_communicator__world(c, status->MPI_SOURCE);
		note_receive(c, status);
	}
	pem_notify_mpi_receive_end(sender);
	pem_mpi_communicator__put(c);
	return rc;
}

PEM_MPI_EXPORT int MPI_Irecv(void *to, int count, MPI_Datatype type, int peer, int tag,
			     MPI_Comm handle, MPI_Request *request)
{
	struct pem_mpi_communicator *c;
	uint64_t bytes;
	int rc;

	if (!(pem_enabled_mpi_message_receive() | pem_enabled_mpi_receive_start()))
		return PEM_MPI(Irecv)(to, count, type, peer, tag, handle, request);
	bytes = pem_mpi__bytes(count, type);
	c = pem_mpi_communicator__get(handle);
	rc = PEM_MPI(Irecv)(to, count, type, peer, tag, handle, request);
	if (rc) {
		pem_mpi_communicator__put(c);
		return rc;
	}
	pem_notify_mpi_receive_start(PEM_MPI_NUMBER(*request), bytes, c ? c->id : 0,
				     pem_mpi_communicator__world(c, peer),
				     tag == MPI_ANY_TAG ? -1 : tag);
	pem_mpi_request__add(*request, c);
	return rc;
}

PEM_MPI_EXPORT int MPI_Sendrecv(const void *from, int send_count, MPI_Datatype send_type,
				int receiver, int send_tag, void *to, int receive_count,
				MPI_Datatype receive_type, int sender, int receive_tag,
				MPI_Comm handle, MPI_Status *status)
{
	struct pem_mpi_communicator *c;
	MPI_Status own;
	int32_t world;
	int rc;

	if (!(send_enabled() | receive_enabled()))
		return PEM_MPI(Sendrecv)(from, send_count, send_type, receiver, send_tag, to,
					 receive_count, receive_type, sender, receive_tag, handle,
					 status);
	world = send_begin(handle, send_count, send_type, receiver, send_tag,
			   PEM_MPI_MODE_EXCHANGE);
	c = pem_mpi_communicator__get(handle);
	if (status == MPI_STATUS_IGNORE)
		status = &own;
	rc = PEM_MPI(Sendrecv)(from, send_count, send_type, receiver, send_tag, to, receive_count,
			       receive_type, sender, receive_tag, handle, status);
	if (!rc && c)
		note_receive(c, status);
	pem_mpi_communicator__put(c);
	return send_end(rc, world);
}

PEM_MPI_EXPORT int MPI_Probe(int peer, int tag, MPI_Comm handle, MPI_Status *status)
{
	struct pem_mpi_communicator *c;
	MPI_Status own;
	int rc;

	if (!(pem_enabled_mpi_probe_begin() | pem_enabled_mpi_probe_end()))
		return PEM_MPI(Probe)(peer, tag, handle, status);
	c = pem_mpi_communicator__get(handle);
	pem_notify_mpi_probe_begin(c ? c->id : 0, pem_mpi_communicator__world(c, peer),
				   tag == MPI_ANY_TAG ? -1 : tag);
	if (status == MPI_STATUS_IGNORE)
		status = &own;
	rc = PEM_MPI(Probe)(peer, tag, handle, status);
	pem_notify_mpi_probe_end(rc ? -1 : pem_mpi_communicator__world(c, status->MPI_SOURCE),
				 rc ? -1 : status->MPI_TAG);
	pem_mpi_communicator__put(c);
	return rc;
}

/* --- completion --- */

/*
 * The requests that the program waits for or tests. Their numbers are kept here, because MPI
 * removes them when the requests are done.
 */
struct watched {
	uint64_t few[8];
	uint64_t *numbers; /* NULL: no session wants the events */
	MPI_Status own_few[8];
	MPI_Status *own; /* used if the program ignores statuses */
};

static void watch(struct watched *w, int count, const MPI_Request requests[], int has_statuses)
{
	int i;

	w->numbers = NULL;
	w->own = NULL;
	if (count <= 0 || !pem_mpi_request__any())
		return;
	w->numbers = count <= 8 ? w->few : malloc((size_t)count * sizeof(*w->numbers));
	if (!has_statuses)
		w->own = count <= 8 ? w->own_few : malloc((size_t)count * sizeof(*w->own));
	for (i = 0; w->numbers && i < count; i++)
		w->numbers[i] = PEM_MPI_NUMBER(requests[i]);
}

/* The request at index is done. status: its status; NULL: unknown, for lack of memory. */
static void done(struct watched *w, int index, const MPI_Status *status)
{
	struct pem_mpi_communicator *c;
	int is_cancelled = 0;

	c = w->numbers ? pem_mpi_request__take(w->numbers[index]) : NULL;
	if (!c)
		return;
	if (status && !PEM_MPI(Test_cancelled)(status, &is_cancelled) && !is_cancelled)
		note_receive(c, status);
	pem_mpi_communicator__put(c);
}

static void unwatch(struct watched *w)
{
	if (w->numbers != w->few)
		free(w->numbers);
	if (w->own != w->own_few)
		free(w->own);
}

PEM_MPI_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	struct watched w;
	int rc;

	pem_notify_mpi_wait_begin(1);
	watch(&w, 1, request, status != MPI_STATUS_IGNORE);
	rc = PEM_MPI(Wait)(request, w.own ? w.own : status);
	if (!rc)
		done(&w, 0, w.own ? w.own : status);
	unwatch(&w);
	pem_notify_mpi_wait_end(1);
	return rc;
}

PEM_MPI_EXPORT int MPI_Test(MPI_Request *request, int *is_done, MPI_Status *status)
{
	struct watched w;
	int rc;

	watch(&w, 1, request, status != MPI_STATUS_IGNORE);
	rc = PEM_MPI(Test)(request, is_done, w.own ? w.own : status);
	if (!rc && *is_done)
		done(&w, 0, w.own ? w.own : status);
	unwatch(&w);
	return rc;
}

PEM_MPI_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
	MPI_Status *told;
	struct watched w;
	int rc, i;

	pem_notify_mpi_wait_begin(count);
	watch(&w, count, requests, statuses != MPI_STATUSES_IGNORE);
	told = w.own ? w.own : statuses;
	rc = PEM_MPI(Waitall)(count, requests, told);
	for (i = 0; w.numbers && !rc && i < count; i++)
		done(&w, i, told == MPI_STATUSES_IGNORE ? NULL : &told[i]);
	unwatch(&w);
	pem_notify_mpi_wait_end(count);
	return rc;
}

PEM_MPI_EXPORT int MPI_Testall(int count, MPI_Request requests[], int *are_done,
			       MPI_Status statuses[])
{
	MPI_Status *told;
	struct watched w;
	int rc, i;

	watch(&w, count, requests, statuses != MPI_STATUSES_IGNORE);
	told = w.own ? w.own : statuses;
	rc = PEM_MPI(Testall)(count, requests, are_done, told);
	for (i = 0; w.numbers && !rc && *are_done && i < count; i++)
		done(&w, i, told == MPI_STATUSES_IGNORE ? NULL : &told[i]);
	unwatch(&w);
	return rc;
}

PEM_MPI_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
	struct watched w;
	int rc;

	pem_notify_mpi_wait_begin(count);
	watch(&w, count, requests, status != MPI_STATUS_IGNORE);
	rc = PEM_MPI(Waitany)(count, requests, index, w.own ? w.own : status);
	if (!rc && *index != MPI_UNDEFINED)
		done(&w, *index, w.own ? w.own : status);
	unwatch(&w);
	pem_notify_mpi_wait_end(rc || *index == MPI_UNDEFINED ? 0 : 1);
	return rc;
}

PEM_MPI_EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *is_done,
			       MPI_Status *status)
{
	struct watched w;
	int rc;

	watch(&w, count, requests, status != MPI_STATUS_IGNORE);
	rc = PEM_MPI(Testany)(count, requests, index, is_done, w.own ? w.own : status);
	if (!rc && *is_done && *index != MPI_UNDEFINED)
		done(&w, *index, w.own ? w.own : status);
	unwatch(&w);
	return rc;
}

PEM_MPI_EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *done_count, int indices[],
				MPI_Status statuses[])
{
	MPI_Status *told;
	struct watched w;
	int rc, i;

	pem_notify_mpi_wait_begin(count);
	watch(&w, count, requests, statuses != MPI_STATUSES_IGNORE);
	told = w.own ? w.own : statuses;
	rc = PEM_MPI(Waitsome)(count, requests, done_count, indices, told);
	for (i = 0; !rc && *done_count != MPI_UNDEFINED && i < *done_count; i++)
		done(&w, indices[i], told == MPI_STATUSES_IGNORE ? NULL : &told[i]);
	unwatch(&w);
	pem_notify_mpi_wait_end(rc || *done_count == MPI_UNDEFINED ? 0 : *done_count);
	return rc;
}

PEM_MPI_EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *done_count, int indices[],
				MPI_Status statuses[])
{
	MPI_Status *told;
	struct watched w;
	int rc, i;

	watch(&w, count, requests, statuses != MPI_STATUSES_IGNORE);
	told = w.own ? w.own : statuses;
	rc = PEM_MPI(Testsome)(count, requests, done_count, indices, told);
	for (i = 0; !rc && *done_count != MPI_UNDEFINED && i < *done_count; i++)
		done(&w, indices[i], told == MPI_STATUSES_IGNORE ? NULL : &told[i]);
	unwatch(&w);
	return rc;
}

PEM_MPI_EXPORT int MPI_Request_free(MPI_Request *request)
{
	pem_mpi_communicator__put(pem_mpi_request__take(PEM_MPI_NUMBER(*request)));
	return PEM_MPI(Request_free)(request);
}
