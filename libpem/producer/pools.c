/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pools.c - make this process's pool for a session, and allocate its memory before it is used */
#include "entry.h"
#include "model_internal.h"
#include "producer/producer.h"
#include "producer/rights.h"
#include "producer/standby.h"
#include "runtime_dir.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * Allocate memory before it is touched. A page of a sparse file is allocated when it is first
 * touched. On a full file system this touch raises SIGBUS, perhaps in the middle of the program's
 * malloc. Kernels before 5.14 do not know this request (EINVAL). There the result is true, and the
 * touch decides.
 */
bool pem_populate(void *start, uint64_t bytes)
{
	uintptr_t page = (uintptr_t)start & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	if (pem_restricted())
		return false;
	return !madvise((void *)page, bytes + ((uintptr_t)start - page), MADV_POPULATE_WRITE) ||
	       errno == EINVAL;
}

static bool is_unlimited(int resource)
{
	struct rlimit limit;

	return getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY;
}

bool pem_file_size_allowed(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       limit.rlim_cur >= bytes;
}

char pem_process__path[PATH_MAX + 64];

bool pem_process__name_file(char *path, size_t bytes, const char *directory, const char *kind,
			    uint32_t number)
{
	size_t used = 0;

	return pem_path__append(path, bytes, &used, directory) &&
	       pem_path__append(path, bytes, &used, "/") &&
	       pem_path__append(path, bytes, &used, kind) &&
	       pem_path__append(path, bytes, &used, "-") &&
	       pem_path__append_number(path, bytes, &used, pem_process.pid, 10, 0) &&
	       pem_path__append(path, bytes, &used, "-") &&
	       pem_path__append_number(path, bytes, &used, number, 10, 0);
}

int pem_create_file(const char *directory, const char *kind, uint32_t *numbers, char *path,
		    size_t bytes)
{
	uint32_t number;
	int fd, tries;

	for (tries = 0; tries < 100; tries++) {
		number = numbers ? __atomic_add_fetch(numbers, 1, __ATOMIC_RELAXED)
				 : (uint32_t)pem_clock();
		if (!pem_process__name_file(path, bytes, directory, kind, number))
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

/*
 * Create a pool file. A pool's name is not used twice in a session: a process's next program would
 * continue the streams of the one before. The number comes from a counter of the session's page. In
 * a public folder it comes from the clock: processes of several users share no counter there, and
 * another user could take a name that can be guessed.
 */
static int create_pool_file(const struct pem_joined *joined, const char *directory,
			    struct pem_pool_file *pool, char *path, size_t bytes)
{
	const char *slash = strrchr(directory, '/');
	int fd;

	pool->directory = directory;
	pool->is_public = !slash || !pem_is_session_name(slash + 1);
	fd = pem_create_file(directory, "pool", pool->is_public ? NULL : &joined->counts->pools,
			     path, bytes);
	if (fd >= 0)
		pem_copy_text(pool->name, sizeof(pool->name),
			      path + strlen(directory) + strlen("/pool-"));
	return fd;
}

/* Is this file a model that a process of this user has written? */
static bool is_own_model(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       st.st_nlink == 1;
}

/*
 * Write a model to the session's folder. Its file name has its hash, so an existing file has the
 * same text and is left alone. In a public folder the name has the user too. If another user has
 * taken that name, the model's name has the pool's name, which no other process could guess.
 */
static void write_model(const struct pem_pool_file *pool, const char *text, uint32_t hash)
{
	/*
	 * Static, under the lock: a stack is too small for paths where a signal handler has one of
	 * its own.
	 */
	static char second[PATH_MAX + 64], temporary[PATH_MAX + 64];
	const size_t bytes = sizeof(pem_process__path);
	char *path = pem_process__path;
	size_t used = 0;
	int fd, result;

	if (!pem_path__append(path, bytes, &used, pool->directory) ||
	    !pem_path__append(path, bytes, &used, "/model-") ||
	    !pem_path__append_number(path, bytes, &used, hash, 16, 8) ||
	    (pool->is_public && (!pem_path__append(path, bytes, &used, "-") ||
				 !pem_path__append_number(path, bytes, &used, geteuid(), 10, 0))))
		return;
	if (is_own_model(path) || !pem_file_size_allowed(strlen(text)))
		return;
	snprintf(second, sizeof(second), "%s/model-%08x-%s", pool->directory, hash, pool->name);
	snprintf(temporary, sizeof(temporary), "%s/new-%08x-%s", pool->directory, hash, pool->name);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	result = pem_write_all(fd, text, strlen(text));
	close(fd);
	if (result || (rename(temporary, path) && (!pool->is_public || rename(temporary, second))))
		unlink(temporary);
}

void pem_process__write_models(const struct pem_pool_file *pool)
{
	const struct pem_provider *provider;
	uint32_t hash, i;

	if (pem_restricted() || !pool->directory)
		return;
	for (provider = pem_process.providers; provider; provider = provider->next) {
		hash = pem_process.event_model[provider->event_base];
		if (!hash)
			hash = pem_model__hash(provider->model, strlen(provider->model));
		for (i = 0; i < provider->event_count; i++)
			pem_process.event_model[provider->event_base + i] = hash;
		write_model(pool, provider->model, hash);
	}
}

/*
 * Get the name of the process's first thread. This is a JVM's name, for example, and not the name
 * of the pool thread which raises the first event.
 */
static void get_name(char name[PEM_NAME_BYTES])
{
	ssize_t n;
	int fd;

	if (pem_process__had_one_thread() && !prctl(PR_GET_NAME, name))
		return;
	fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, name, PEM_NAME_BYTES);
	if (fd >= 0)
		close(fd);
	/* remove the line end */
	if (n > 0)
		name[n - 1] = 0;
	else
		prctl(PR_GET_NAME, name);
	name[PEM_NAME_BYTES - 1] = 0;
}

/* Fill the members that are equal in this process and in its children. */
static void fill_common(struct pem_pool_header *h, const struct pem_joined *joined)
{
	h->pid_namespace = pem_process__pid_namespace();
	h->session_index = (uint32_t)(joined - pem_process.joined);
	h->incarnation = joined->incarnation;
	get_name(h->comm);
}

static void fill_header(const struct pem_ring *ring)
{
	const char *name = strrchr(pem_process.control_path, '/');
	struct pem_pool_header *h = ring->header;

	h->pid = pem_process.pid;
	if (!pem_restricted())
		h->pid_namespace = pem_process__pid_namespace();
	h->parent_pid = pem_process.parent_pid ? pem_process.parent_pid : (uint32_t)getppid();
	if (h->parent_pid == h->pid) /* a child of vfork makes its parent's pool */
		h->parent_pid = 0;
	h->contexts = pem_process.joined[h->session_index].contexts;
	h->gates = (uintptr_t)pem_process_gates;
	h->start_clock = pem_clock();
	h->filters = pem_process__known_filters();
	if (name && strlen(name + 1) < sizeof(h->control_name))
		strcpy(h->control_name, name + 1);
	memcpy(pem_pool__event_ids(ring), pem_process.event_id,
	       pem_process.event_count * sizeof(pem_process.event_id[0]));
	memcpy(pem_pool__event_models(ring), pem_process.event_model,
	       pem_process.event_count * sizeof(pem_process.event_model[0]));
}

static bool choose_geometry(const struct pem_session_page *page, struct pem_pool_header *layout)
{
	struct pem_pool_geometry geometry = pem_pool_geometry__of_page(page);

	if (!pem_pool_geometry__valid(&geometry) ||
	    geometry.event_capacity < PEM_PROCESS_EVENTS_MAX)
		return false;
	/*
	 * A pool that could grow would take what the program may need. Where there are seccomp
	 * filters, or may be, no system call is made beyond those that filters are tried with.
	 */
	if (geometry.chunk_limit && (pem_process__known_filters() || !is_unlimited(RLIMIT_AS) ||
				     !is_unlimited(RLIMIT_FSIZE)))
		geometry.chunk_count = geometry.chunk_limit;
	*layout = (struct pem_pool_header){.abi_version = PEM_ABI_VERSION,
					   .flags = geometry.flags,
					   .chunk_bytes = geometry.chunk_bytes,
					   .chunk_count = geometry.chunk_count,
					   .lane_count = geometry.lane_count,
					   .event_capacity = geometry.event_capacity,
					   .chunk_limit = geometry.chunk_limit};
	pem_pool__layout(layout);
	return true;
}

/*
 * Allocate a pool's first bytes: what all threads use, and the states of the chunks that are in
 * use. The consumer allocates further states (grow.c).
 */
static bool populate_head(uint8_t *pool, const struct pem_pool_header *layout)
{
	uint32_t used = layout->chunk_limit ? layout->chunk_limit : layout->chunk_count;
	uint64_t end = layout->lanes_offset + sizeof(struct pem_lane);

	if (used == layout->chunk_count)
		return pem_populate(pool, end);
	return pem_populate(pool, layout->chunk_state_offset + used * sizeof(uint32_t)) &&
	       pem_populate(pool + layout->event_id_offset, end - layout->event_id_offset);
}

/*
 * Take access to chunks that are not in use yet: mlockall(2) then gives them no memory. See
 * pem_joined__open_chunk.
 */
static bool close_chunks(uint8_t *pool, const struct pem_pool_header *layout)
{
	uint64_t used = layout->chunks_offset + (uint64_t)layout->chunk_limit * layout->chunk_bytes;

	return !layout->chunk_limit || layout->chunk_limit == layout->chunk_count ||
	       !mprotect(pool + used, layout->total_bytes - used, PROT_NONE);
}

bool pem_joined__open_chunk(struct pem_joined *joined, const struct pem_ring *ring, uint32_t index)
{
	uint32_t open = __atomic_load_n(&joined->open_chunks, __ATOMIC_RELAXED), limit;

	if (index < open)
		return true;
	limit = pem_ring_limit(ring);
	if (limit <= open || pem_process__known_filters() ||
	    mprotect(ring->chunks + (uint64_t)open * ring->chunk_bytes,
		     (uint64_t)(limit - open) * ring->chunk_bytes, PROT_READ | PROT_WRITE))
		return false;
	__atomic_store_n(&joined->open_chunks, limit, __ATOMIC_RELAXED);
	return index < limit;
}

/* Map a new pool file and lay it out, without its magic. Returns 0 or -errno. */
static int map_pool(int fd, const struct pem_joined *joined, struct pem_ring *ring, uint64_t *bytes)
{
	struct pem_pool_header layout, *h;

	if (!choose_geometry(joined->page, &layout))
		return -EINVAL;
	if (!pem_file_size_allowed(layout.total_bytes))
		return -EFBIG;
	if (ftruncate(fd, (off_t)layout.total_bytes))
		return -errno;
	h = mmap(NULL, layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return -errno;
	if (!close_chunks((uint8_t *)h, &layout) || !populate_head((uint8_t *)h, &layout) ||
	    !pem_populate((uint8_t *)h + layout.cells_offset,
			  PEM_PROCESS_EVENTS_MAX * sizeof(struct pem_cell))) {
		munmap(h, layout.total_bytes);
		return -ENOSPC;
	}
	*h = layout;
	pem_pool__point(h, &layout, ring);
	fill_common(h, joined);
	*bytes = layout.total_bytes;
	return 0;
}

void pem_ring__populate_events(const struct pem_ring *ring, uint32_t first, uint32_t count)
{
	const struct pem_lane *lane;
	uint32_t i;

	for (i = 1; i < ring->lane_count; i++) {
		lane = &ring->lanes[i];
		if (!__atomic_load_n(&lane->tid, __ATOMIC_RELAXED) &&
		    __atomic_load_n(&lane->state, __ATOMIC_RELAXED) == PEM_LANE_FREE)
			break; /* no thread has had this one yet, nor one behind it */
		if (!pem_populate(ring->cells + (uint64_t)i * ring->event_capacity + first,
				  count * sizeof(struct pem_cell)))
			break;
	}
}

/* Make a pool the pool of this process. */
static void adopt(struct pem_joined *joined, const struct pem_ring *ring, uint64_t bytes)
{
	pem_joined__begin_change(joined);
	pem_joined__set_ring(joined, ring);
	joined->pool_bytes = bytes;
	joined->ready_lanes = 0;
	__atomic_store_n(&joined->open_chunks, pem_ring_limit(ring), __ATOMIC_RELAXED);
	pem_joined__end_change(joined);
	fill_header(ring);
	/* PA: consumers read the pool from here on */
	__atomic_store_n(&ring->header->magic, PEM_POOL_MAGIC, __ATOMIC_RELEASE);
}

static int make_pool_file(const struct pem_joined *joined, struct pem_pool_file *pool,
			  struct pem_ring *ring, uint64_t *bytes)
{
	const size_t path_bytes = sizeof(pem_process__path);
	char *path = pem_process__path;
	int fd = create_pool_file(joined, joined->directory, pool, path, path_bytes), result;

	/*
	 * A process that has given up its user has no right to the session's folder any more; nor
	 * has a child of it.
	 */
	if (fd == -EACCES && joined->public_directory[0])
		fd = create_pool_file(joined, joined->public_directory, pool, path, path_bytes);
	if (fd < 0)
		return fd;
	result = map_pool(fd, joined, ring, bytes);
	close(fd);
	if (result) {
		unlink(path);
		return result;
	}
	/*
	 * The models are written before the pool is complete, since a consumer that finds the pool
	 * looks for them. They are written after the close, since only one descriptor may be left.
	 */
	pem_process__write_models(pool);
	return 0;
}

/* --- memory made ready while the process may still allocate --- */

/* Lanes made ready for threads. A thread in an event inside another one counts once more. */
#define READY_LANES 16u
/* Bytes of chunks that are made ready. Threads fill them while the consumer does not drain. */
#define READY_BYTES (2u << 20)
#define SPARES                                                                                     \
	4u /* spare pools in each session, for children of a process that can make no files any    \
	      more */
#define SPARE_LANES 2u
#define SPARE_BYTES (256u << 10)

/*
 * Pools for children. They are mapped shared, and a taken pool has its process's id in its header,
 * so all processes see which ones are taken.
 */
static struct spare {
	struct pem_ring ring;
	struct pem_pool_file file;
	uint64_t bytes; /* 0: no pool was made */
	uint32_t incarnation;
} spares[PEM_SESSIONS_MAX][SPARES];

/* Allocate memory for this many lanes. Returns how many lanes have memory now. */
static uint32_t ready_lanes(const struct pem_ring *ring, uint32_t wanted)
{
	uint64_t stride = (uint64_t)ring->event_capacity * sizeof(struct pem_cell);

	if (wanted > ring->lane_count - 1)
		wanted = ring->lane_count - 1;
	/* Consumers read one lane further than those in use. */
	return pem_populate(ring->lanes, (wanted + 2) * sizeof(struct pem_lane)) &&
			       pem_populate(ring->cells + ring->event_capacity, wanted * stride)
		       ? wanted
		       : 0;
}

static void ready_chunks(const struct pem_ring *ring, uint32_t bytes)
{
	uint32_t *populated = pem_pool__populated(ring), count = bytes / ring->chunk_bytes, i;

	if (count < 2)
		count = 2;
	if (count > ring->chunk_count)
		count = ring->chunk_count;
	if (!pem_populate(ring->chunks, (uint64_t)count * ring->chunk_bytes))
		return;
	for (i = 0; i < count; i++)
		__atomic_fetch_or(&populated[i / 16], 3u << (i % 16 * 2), __ATOMIC_RELAXED);
}

static void make_spare(const struct pem_joined *joined, struct spare *spare)
{
	uint32_t lanes;

	if (spare->bytes && spare->incarnation == joined->incarnation &&
	    !__atomic_load_n(&spare->ring.header->pid, __ATOMIC_RELAXED))
		return;
	if (spare->bytes)
		munmap(spare->ring.header, spare->bytes);
	spare->bytes = 0;
	if (make_pool_file(joined, &spare->file, &spare->ring, &spare->bytes))
		return;
	spare->incarnation = joined->incarnation;
	lanes = ready_lanes(&spare->ring, SPARE_LANES);
	if (lanes)
		ready_chunks(&spare->ring, SPARE_BYTES);
}

void pem_process__reserve(unsigned session_index, bool for_children, bool ready)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	uint32_t i;

	if (joined->state != PEM_JOINED_POOL)
		return;
	if (ready) {
		joined->ready_lanes = ready_lanes(&joined->ring, READY_LANES);
		ready_chunks(&joined->ring, READY_BYTES);
	}
	/* A process that has moved would make files where no consumer finds them. */
	if (!for_children || !pem_joined__in_reach(joined))
		return;
	for (i = 0; i < SPARES; i++)
		make_spare(joined, &spares[session_index][i]);
}

int pem_process__take_spare(unsigned session_index)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	struct spare *spare;
	uint32_t none, i;

	for (i = 0; i < SPARES; i++) {
		spare = &spares[session_index][i];
		none = 0;
		/* none: the pool was made before the fork that shares it */
		if (!spare->bytes || spare->incarnation != joined->incarnation ||
		    !__atomic_compare_exchange_n(&spare->ring.header->pid, &none, pem_process.pid,
						 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		joined->pool_file = spare->file;
		adopt(joined, &spare->ring, spare->bytes);
		joined->ready_lanes = SPARE_LANES;
		/*
		 * A child of this process must not unmap the pool or take it again; it puts private
		 * pages in the pool's place.
		 */
		spare->bytes = 0;
		return 0;
	}
	return -EACCES;
}

/* --- the pool --- */

/* Make a pool file, or take a spare pool that the parent has made. Returns 0 or -errno. */
static int get_pool(struct pem_joined *joined, unsigned session_index, bool in_reach)
{
	struct pem_ring ring;
	uint64_t bytes;
	int result = -EACCES;

	if (in_reach)
		result = make_pool_file(joined, &joined->pool_file, &ring, &bytes);
	if (!result)
		adopt(joined, &ring, bytes);
	else if (!pem_process__take_spare(session_index))
		result = 0;
	return result;
}

int pem_process__make_pool(unsigned session_index)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	const struct pem_session_page *page = joined->page;
	/*
	 * Applying rules may make the entry another session's. This page stays mapped all the same:
	 * see pem_make_private.
	 */
	struct pem_session_page *counts = joined->counts;
	int result = -ECANCELED;
	bool in_reach;

	if (joined->state != PEM_JOINED_RULES)
		return joined->state == PEM_JOINED_POOL ? 0 : -ECANCELED;
	if (__atomic_load_n(&page->closed, __ATOMIC_RELAXED))
		goto fail;
	in_reach = pem_joined__in_reach(joined);
	/* Without its consumer nobody would drain the pool, or remove it when this process ends. */
	if (in_reach && !pem_alive__check(joined->directory)) {
		joined->state = PEM_JOINED_FAILED;
		pem_process__switch_off(session_index);
		return result;
	}
	if (in_reach)
		pem_process__publish();
	result = get_pool(joined, session_index, in_reach);
	/* Do not give up: other threads may not be restricted, and the filter is reported. */
	if (result && (pem_restricted() || pem_rights__notice_filter()))
		return result;
	if (result)
		goto fail;
	/* none: threads that still claim chunks of the earlier session's pool may read both */
	__atomic_store_n(&joined->full, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&joined->crowded, 0, __ATOMIC_RELAXED);
	/* JA */
	__atomic_store_n(&joined->state, PEM_JOINED_POOL, __ATOMIC_RELEASE);
	/*
	 * uc: from here on the consumer changes actions itself; its earlier changes are looked up
	 * here
	 */
	if (__atomic_load_n(&page->generation, __ATOMIC_ACQUIRE) != joined->filter_generation)
		pem_process__apply(session_index);
	/* PE */
	__atomic_fetch_add(&counts->pools_ready, 1, __ATOMIC_RELEASE);
	pem_process__wake(counts); /* its rules may be older than the consumer's sleep */
	return 0;
fail:
	joined->state = PEM_JOINED_FAILED;
	/* A closed session wants nothing. Applying its rules makes its events cost nothing. */
	if (result == -ECANCELED)
		pem_process__apply(session_index);
	__atomic_store_n(&counts->last_errno, (uint32_t)-result, __ATOMIC_RELAXED);
	__atomic_fetch_add(&counts->refused, 1, __ATOMIC_RELAXED);
	return result;
}
