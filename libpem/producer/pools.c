/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pools.c - making this process's pool for a session, and its memory exist before it is touched
 */
#include "entry.h"
#include "model_internal.h"
#include "producer/producer.h"
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
 * A sparse file's page is allocated when first touched, and on a full file system that touch is SIGBUS: in the
 * middle of somebody's malloc. So ask first. Kernels before 5.14 can't say; there the touch decides.
 */
bool pem_populate(void *start, uint64_t bytes)
{
	uintptr_t page = (uintptr_t)start & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	return !madvise((void *)page, bytes + ((uintptr_t)start - page), MADV_POPULATE_WRITE) ||
	       errno == EINVAL;
}

bool pem_file_size_allowed(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       limit.rlim_cur >= bytes;
}

/* Open a new pool file; its path is left in path. */
/* Its name is not used twice in a session: a process's next image would go on in the streams of the one before. */
static int create_pool_file(struct pem_joined *joined, char *path, size_t bytes)
{
	uint32_t number = __atomic_add_fetch(&joined->page->pools, 1, __ATOMIC_RELAXED);
	int fd;

	snprintf(path, bytes, "%s/pool-%u-%u", joined->directory, pem_process.pid, number);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

/* Each lies under its hash: whoever has written the same is done. */
void pem_process__write_models(const char *directory)
{
	/* Under the lock: stacks are small where a handler has one of its own. */
	static char path[PATH_MAX + 64], temporary[PATH_MAX + 64];
	const struct pem_provider *provider;
	uint32_t hash, i;
	int fd, result;

	for (provider = pem_process.providers; provider; provider = provider->next) {
		hash = pem_process.event_model[provider->event_base];
		if (!hash)
			hash = pem_model__hash(provider->model, strlen(provider->model));
		for (i = 0; i < provider->event_count; i++)
			pem_process.event_model[provider->event_base + i] = hash;
		snprintf(path, sizeof(path), "%s/model-%08x", directory, hash);
		if (!access(path, F_OK) || !pem_file_size_allowed(strlen(provider->model)))
			continue;
		snprintf(temporary, sizeof(temporary), "%s/new-%08x-%u", directory, hash,
			 pem_process.pid);
		fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			continue;
		result = pem_write_all(fd, provider->model, strlen(provider->model));
		close(fd);
		if (result || rename(temporary, path))
			unlink(temporary);
	}
}

/* The name of the process's first thread: a JVM's, say, not that of the pool thread which raises the first event. */
static void get_name(char name[PEM_NAME_BYTES])
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, name, PEM_NAME_BYTES);

	if (fd >= 0)
		close(fd);
	if (n > 0)
		name[n - 1] = 0; /* the line's end */
	else
		prctl(PR_GET_NAME, name);
	name[PEM_NAME_BYTES - 1] = 0;
}

static void fill_header(struct pem_pool_header *h, const struct pem_joined *joined, unsigned slot)
{
	const char *name;

	h->pid = pem_process.pid;
	h->pid_namespace = pem_pid_namespace();
	h->parent_pid = (uint32_t)getppid();
	h->start_clock = pem_clock();
	h->session_slot = slot;
	h->incarnation = joined->incarnation;
	get_name(h->comm);
	name = strrchr(pem_process.control_path, '/');
	if (name && strlen(name + 1) < sizeof(h->control_name))
		strcpy(h->control_name, name + 1);
	memcpy(pem_pool__event_ids(&joined->ring), pem_process.event_id,
	       pem_process.event_count * sizeof(pem_process.event_id[0]));
	memcpy(pem_pool__event_models(&joined->ring), pem_process.event_model,
	       pem_process.event_count * sizeof(pem_process.event_model[0]));
}

static int map_pool(int fd, struct pem_joined *joined, const struct pem_session_page *page,
		    unsigned slot)
{
	struct pem_pool_geometry geometry = {
		__atomic_load_n(&page->pool_flags, __ATOMIC_RELAXED),
		__atomic_load_n(&page->chunk_bytes, __ATOMIC_RELAXED),
		__atomic_load_n(&page->chunk_count, __ATOMIC_RELAXED),
		__atomic_load_n(&page->lane_count, __ATOMIC_RELAXED),
		__atomic_load_n(&page->event_capacity, __ATOMIC_RELAXED)};
	struct pem_pool_header layout = {.abi_version = PEM_ABI_VERSION,
					 .flags = geometry.flags,
					 .chunk_bytes = geometry.chunk_bytes,
					 .chunk_count = geometry.chunk_count,
					 .lane_count = geometry.lane_count,
					 .event_capacity = geometry.event_capacity};
	struct pem_pool_header *h;
	struct pem_ring ring;
	int result = -ENOSPC;

	if (!pem_pool_geometry__valid(&geometry) ||
	    geometry.event_capacity < PEM_PROCESS_EVENTS_MAX)
		return -EINVAL;
	pem_pool__layout(&layout);
	if (!pem_file_size_allowed(layout.total_bytes))
		return -EFBIG;
	if (ftruncate(fd, (off_t)layout.total_bytes))
		return -errno;
	h = mmap(NULL, layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (h == MAP_FAILED)
		return -errno;
	if (!pem_populate(h, layout.lanes_offset + sizeof(struct pem_lane)) ||
	    !pem_populate((uint8_t *)h + layout.slots_offset,
			  PEM_PROCESS_EVENTS_MAX * sizeof(struct pem_slot)))
		goto unmap;
	*h = layout; /* without its magic */
	pem_pool__point(h, &layout, &ring);
	pem_joined__begin_change(joined);
	pem_joined__set_ring(joined, &ring);
	joined->pool_bytes = layout.total_bytes;
	pem_joined__end_change(joined);
	fill_header(h, joined, slot);
	__atomic_store_n(&h->magic, PEM_POOL_MAGIC,
			 __ATOMIC_RELEASE); /* consumers look from here on */
	return 0;
unmap:
	munmap(h, layout.total_bytes);
	return result;
}

static int make_pool_file(struct pem_joined *joined, unsigned slot)
{
	static char path[PATH_MAX + 64];
	int fd = create_pool_file(joined, path, sizeof(path)), result;

	if (fd < 0)
		return fd;
	result = map_pool(fd, joined, joined->page, slot);
	if (result)
		unlink(path);
	close(fd);
	return result;
}

int pem_process__make_pool(unsigned slot)
{
	struct pem_joined *joined = &pem_process.joined[slot];
	struct pem_session_page *page = joined->page;
	int result = -ECANCELED;

	if (joined->state != PEM_JOINED_RULES)
		return joined->state == PEM_JOINED_POOL ? 0 : -ECANCELED;
	if (__atomic_load_n(&page->closed, __ATOMIC_RELAXED))
		goto fail;
	/* Nobody would drain it, nor take it away when this process ends. */
	if (!pem_alive__check(joined->directory)) {
		joined->state = PEM_JOINED_FAILED;
		pem_process__switch_off(slot);
		return result;
	}
	pem_process__publish();
	pem_process__write_models(joined->directory);
	result = make_pool_file(joined, slot);
	if (result)
		goto fail;
	joined->full = joined->crowded = 0;
	__atomic_store_n(&joined->state, PEM_JOINED_POOL, __ATOMIC_RELEASE);
	/* The consumer reaches in from here on. What it changed before has to be looked up. */
	if (__atomic_load_n(&page->generation, __ATOMIC_ACQUIRE) != joined->filter_generation)
		pem_process__apply(slot);
	__atomic_fetch_add(&page->pools_ready, 1, __ATOMIC_RELEASE);
	pem_process__wake(page); /* its rules may be older than the consumer's sleep */
	return 0;
fail:
	joined->state = PEM_JOINED_FAILED;
	if (result == -ECANCELED)
		pem_process__apply(
			slot); /* a closed session wants nothing: its events cost nothing */
	__atomic_store_n(&page->last_errno, (uint32_t)-result, __ATOMIC_RELAXED);
	__atomic_fetch_add(&page->refused, 1, __ATOMIC_RELAXED);
	return result;
}
