// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * communicator.c - start and end of MPI, ranks in the world, communicators and their numbers
 *
 * A communicator's number is a hash of two things: its members' ranks in the world, and how many
 * communicators of the same members this process has made before. All members make their
 * communicators in the same order, so the number is equal in all of them, without a message. The
 * number is kept as an attribute of the communicator.
 */
#include "mpi/mpi_adapter.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define WORLD_ID 1u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pem_mpi_communicator *world;
static int32_t world_rank = -1;
static int key = MPI_KEYVAL_INVALID;

/* How many communicators with these members this process has made. */
struct members {
	struct members *next;
	uint32_t hash, count;
};
static struct members *seen;

static uint32_t hash(uint32_t value, const void *bytes, size_t count)
{
	const uint8_t *b = bytes;
	size_t i;

	for (i = 0; i < count; i++)
		value = (value ^ b[i]) * 16777619u;
	return value;
}

/*
 * Return a number of the run: a hash of the name that the launcher gave it, or else of this
 * process's parent. All ranks of the run on this machine have one parent.
 */
uint32_t pem_mpi__job(void)
{
	static const char *const variables[] = {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_STEP_ID"};
	static uint32_t job;
	const char *name;
	pid_t parent = getppid();
	uint32_t value = 2166136261u;
	size_t i;

	if (__atomic_load_n(&job, __ATOMIC_RELAXED))
		return job;
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		name = getenv(variables[i]);
		if (name)
			value = hash(value, name, strlen(name));
	}
	if (value == 2166136261u)
		value = hash(value, &parent, sizeof(parent));
	__atomic_store_n(&job, value | 1u, __ATOMIC_RELAXED);
	return job;
}

int32_t pem_mpi__rank(void)
{
	return world_rank;
}

uint64_t pem_mpi__bytes(int count, MPI_Datatype type)
{
	int size = 0;

	if (count <= 0 || type == MPI_DATATYPE_NULL || PEM_MPI(Type_size)(type, &size) || size <= 0)
		return 0;
	return (uint64_t)count * (uint64_t)size;
}

/* --- their numbers --- */

static uint32_t count_alike(uint32_t members_hash)
{
	struct members *m;

	for (m = seen; m && m->hash != members_hash; m = m->next)
		;
	if (m)
		return ++m->count;
	m = malloc(sizeof(*m));
	if (m) {
		*m = (struct members){seen, members_hash, 0};
		seen = m;
	}
	return 0;
}

/* Return a hash of a group's ranks in the world, and write these to ranks, if it is not NULL. */
static uint32_t read_group(MPI_Group group, int count, int *ranks)
{
	MPI_Group all;
	int *own, *numbers = calloc((size_t)count * 2 + 1, sizeof(int)), i;
	uint32_t value = 2166136261u;

	if (!numbers)
		return 0;
	own = numbers + count;
	for (i = 0; i < count; i++)
		own[i] = i;
	if (!PEM_MPI(Comm_group)(MPI_COMM_WORLD, &all)) {
		PEM_MPI(Group_translate_ranks)(group, count, own, all, numbers);
		PEM_MPI(Group_free)(&all);
	}
	for (i = 0; i < count; i++) {
		value = hash(value, &numbers[i], sizeof(int));
		if (ranks)
			ranks[i] = numbers[i];
	}
	free(numbers);
	return value;
}

static struct pem_mpi_communicator *make(MPI_Comm handle)
{
	struct pem_mpi_communicator *c = NULL;
	MPI_Group local, remote;
	int is_inter = 0, members = 0, peers = 0;
	uint32_t value, alike;

	if (PEM_MPI(Comm_test_inter)(handle, &is_inter) || PEM_MPI(Comm_size)(handle, &members) ||
	    PEM_MPI(Comm_group)(handle, &local))
		return NULL;
	peers = members;
	remote = local;
	if (is_inter && (PEM_MPI(Comm_remote_size)(handle, &peers) ||
			 PEM_MPI(Comm_remote_group)(handle, &remote)))
		goto out;
	c = malloc(sizeof(*c) + (size_t)peers * sizeof(int));
	if (!c)
		goto out;
	c->references = 1;
	c->peers = peers;
	value = read_group(remote, peers, c->world);
	if (is_inter) /* a sum, because both groups have to get the same value */
		value += read_group(local, members, NULL);
	alike = count_alike(value);
	c->id = handle == MPI_COMM_WORLD ? WORLD_ID : hash(value, &alike, sizeof(alike)) | 2u;
out:
	PEM_MPI(Group_free)(&local);
	if (is_inter && remote != local)
		PEM_MPI(Group_free)(&remote);
	return c;
}

void pem_mpi_communicator__put(struct pem_mpi_communicator *c)
{
	/* XB, xb */
	if (c && __atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(c);
}

/*
 * A duplicate is another communicator with its own number, so the attribute is not copied. MPI's
 * own function for this can't be used: a process without MPI does not have it.
 */
static int on_copy(MPI_Comm handle, int which, void *extra, void *value, void *copy, int *is_copied)
{
	(void)handle, (void)which, (void)extra, (void)value, (void)copy;
	*is_copied = 0;
	return MPI_SUCCESS;
}

static int on_delete(MPI_Comm handle, int which, void *value, void *extra)
{
	(void)handle, (void)which, (void)extra;
	pem_mpi_communicator__put(value);
	return MPI_SUCCESS;
}

struct pem_mpi_communicator *pem_mpi_communicator__get(MPI_Comm handle)
{
	struct pem_mpi_communicator *c = world;
	int has = 0;

	if (!c || handle == MPI_COMM_NULL)
		return NULL;
	if (handle != MPI_COMM_WORLD) {
		pthread_mutex_lock(&lock);
		if (PEM_MPI(Comm_get_attr)(handle, key, &c, &has) || !has) {
			c = make(handle);
			if (c && PEM_MPI(Comm_set_attr)(handle, key, c)) {
				free(c);
				c = NULL;
			}
		}
		pthread_mutex_unlock(&lock);
	}
	if (c)
		__atomic_add_fetch(&c->references, 1, __ATOMIC_RELAXED);
	return c;
}

int32_t pem_mpi_communicator__world(const struct pem_mpi_communicator *c, int rank)
{
	return c && rank >= 0 && rank < c->peers ? c->world[rank] : -1;
}

/* --- start and end --- */

static void start(void)
{
	int rank, size;

	if (MPI_COMM_WORLD == (MPI_Comm)0) /* MPI was loaded after the program's start */
		return;
	if (PEM_MPI(Comm_create_keyval)(on_copy, on_delete, &key, NULL) ||
	    PEM_MPI(Comm_rank)(MPI_COMM_WORLD, &rank) || PEM_MPI(Comm_size)(MPI_COMM_WORLD, &size))
		return;
	world_rank = rank;
	world = make(MPI_COMM_WORLD);
	pem_notify_mpi_init_end(rank, size);
}

PEM_MPI_EXPORT int MPI_Init(int *argc, char ***argv)
{
	int rc;

	pem_notify_mpi_init_begin();
	rc = PEM_MPI(Init)(argc, argv);
	if (!rc)
		start();
	return rc;
}

PEM_MPI_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int rc;

	pem_notify_mpi_init_begin();
	rc = PEM_MPI(Init_thread)(argc, argv, required, provided);
	if (!rc)
		start();
	return rc;
}

PEM_MPI_EXPORT int MPI_Finalize(void)
{
	int rc;

	pem_notify_mpi_finalize_begin();
	rc = PEM_MPI(Finalize)();
	pem_notify_mpi_finalize_end();
	return rc;
}

PEM_MPI_EXPORT int MPI_Abort(MPI_Comm handle, int error)
{
	pem_notify_mpi_abort(error);
	return PEM_MPI(Abort)(handle, error);
}

/* --- making and freeing: numbered at once, so that all members count alike --- */

static int created(int rc, const MPI_Comm *handle)
{
	struct pem_mpi_communicator *c;
	int rank = -1, members = 0;

	if (rc || *handle == MPI_COMM_NULL)
		return rc;
	c = pem_mpi_communicator__get(*handle);
	if (c && pem_enabled_mpi_communicator_create()) {
		PEM_MPI(Comm_rank)(*handle, &rank);
		PEM_MPI(Comm_size)(*handle, &members);
		pem_notify_mpi_communicator_create(c->id, members, rank);
	}
	pem_mpi_communicator__put(c);
	return rc;
}

PEM_MPI_EXPORT int MPI_Comm_dup(MPI_Comm old, MPI_Comm *handle)
{
	return created(PEM_MPI(Comm_dup)(old, handle), handle);
}

PEM_MPI_EXPORT int MPI_Comm_dup_with_info(MPI_Comm old, MPI_Info info, MPI_Comm *handle)
{
	return created(PEM_MPI(Comm_dup_with_info)(old, info, handle), handle);
}

PEM_MPI_EXPORT int MPI_Comm_split(MPI_Comm old, int color, int order, MPI_Comm *handle)
{
	return created(PEM_MPI(Comm_split)(old, color, order, handle), handle);
}

PEM_MPI_EXPORT int MPI_Comm_split_type(MPI_Comm old, int kind, int order, MPI_Info info,
				       MPI_Comm *handle)
{
	return created(PEM_MPI(Comm_split_type)(old, kind, order, info, handle), handle);
}

PEM_MPI_EXPORT int MPI_Comm_create(MPI_Comm old, MPI_Group group, MPI_Comm *handle)
{
	return created(PEM_MPI(Comm_create)(old, group, handle), handle);
}

PEM_MPI_EXPORT int MPI_Comm_create_group(MPI_Comm old, MPI_Group group, int tag, MPI_Comm *handle)
{
	return created(PEM_MPI(Comm_create_group)(old, group, tag, handle), handle);
}

PEM_MPI_EXPORT int MPI_Cart_create(MPI_Comm old, int dimensions, const int sizes[],
				   const int periods[], int reorder, MPI_Comm *handle)
{
	return created(PEM_MPI(Cart_create)(old, dimensions, sizes, periods, reorder, handle),
		       handle);
}

PEM_MPI_EXPORT int MPI_Comm_free(MPI_Comm *handle)
{
	struct pem_mpi_communicator *c;

	if (pem_enabled_mpi_communicator_free()) {
		c = pem_mpi_communicator__get(*handle);
		if (c)
			pem_notify_mpi_communicator_free(c->id);
		pem_mpi_communicator__put(c);
	}
	return PEM_MPI(Comm_free)(handle);
}
