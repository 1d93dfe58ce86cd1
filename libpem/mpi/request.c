// SPDX-License-Identifier: LGPL-2.1-or-later
/* request.c - the communicator of each receive under way, until the request is done */
#include "mpi/mpi_adapter.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 1024u

struct entry {
	struct entry *next;
	uint64_t request;
	struct pem_mpi_communicator *communicator;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *buckets[BUCKETS];
static uint32_t entries;

static struct entry **bucket(uint64_t request)
{
	return &buckets[(request * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

void pem_mpi_request__add(MPI_Request request, struct pem_mpi_communicator *communicator)
{
	struct entry *entry = malloc(sizeof(*entry)), **head;

	if (!entry || !communicator) {
		pem_mpi_communicator__put(communicator);
		free(entry);
		return;
	}
	*entry = (struct entry){NULL, PEM_MPI_NUMBER(request), communicator};
	pthread_mutex_lock(&lock);
	head = bucket(entry->request);
	entry->next = *head;
	*head = entry;
	__atomic_add_fetch(&entries, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

int pem_mpi_request__any(void)
{
	return __atomic_load_n(&entries, __ATOMIC_RELAXED) != 0;
}

struct pem_mpi_communicator *pem_mpi_request__take(uint64_t request)
{
	struct pem_mpi_communicator *communicator = NULL;
	struct entry **at, *found;

	if (!pem_mpi_request__any())
		return NULL;
	pthread_mutex_lock(&lock);
	for (at = bucket(request); *at && (*at)->request != request; at = &(*at)->next)
		;
	found = *at;
	if (found) {
		*at = found->next;
		__atomic_sub_fetch(&entries, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	if (found)
		communicator = found->communicator;
	free(found);
	return communicator;
}
