/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pools.c - each CPU's pool: maps it, and reads statistics and counts from it (contract: module.h)
 */
#include "module.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int pem_module__use_pool(struct pem_module_cpu *cpu, void *mapping, size_t bytes,
			 uint32_t chunk_bytes)
{
	struct pem_ring ring;
	int rc = pem_pool__open_ring(mapping, bytes, &ring);

	if (rc)
		return rc;
	if (ring.lane_count > PEM_KMOD_LANES || ring.chunk_bytes > chunk_bytes)
		return -EINVAL;
	cpu->ring = ring;
	cpu->bytes = bytes;
	/* ME: threads that read statistics acquire it */
	__atomic_store_n(&cpu->mapping, mapping, __ATOMIC_RELEASE);
	return 0;
}

/* Read the pool's length from its header. */
static int pool_bytes(const struct pem_source *source, off_t at, size_t *bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const struct pem_pool_header *header;
	uint64_t total;

	header = mmap(NULL, page, PROT_READ, MAP_SHARED, source->fd, at);
	if (header == MAP_FAILED)
		return -errno;
	total = __atomic_load_n(&header->total_bytes, __ATOMIC_RELAXED);
	munmap((void *)(uintptr_t)header, page);
	if (total < page || total >= 1ull << PEM_KMOD_MAP_SHIFT)
		return -EINVAL;
	*bytes = (size_t)total;
	return 0;
}

static int map_pool(struct pem_source *source, uint32_t cpu)
{
	off_t at = (off_t)PEM_KMOD_MAP_OFFSET(cpu);
	size_t bytes = 0;
	void *mapping;
	int rc = pool_bytes(source, at, &bytes);

	if (rc)
		return rc;
	mapping = mmap(NULL, bytes, PROT_READ, MAP_SHARED, source->fd, at);
	if (mapping == MAP_FAILED)
		return -errno;
	rc = pem_module__use_pool(&source->cpus[cpu], mapping, bytes, source->chunk_bytes);
	if (rc)
		munmap(mapping, bytes);
	return rc;
}

int pem_module__map_pools(struct pem_source *source)
{
	struct pem_module_cpu *cpu;
	int rc, first = 0, count = 0;
	uint32_t i;

	for (i = 0; i < source->common.cpu_count; i++) {
		cpu = &source->cpus[i];
		if (cpu->mapping) {
			count++;
			continue;
		}
		if (cpu->broken)
			continue;
		rc = map_pool(source, i);
		count += !rc;
		first = first ? first : rc;
		if (rc == -EINVAL || rc == -ENOMEM || rc == -EAGAIN) {
			cpu->broken = true;
			pem_source__log(source, PEM_LOG_ERROR,
					"module: the pool of CPU %u can't be used (%s): its events "
					"are lost",
					i, strerror(-rc));
		}
	}
	return count ? count : first;
}

void pem_module__unmap_pools(struct pem_source *source)
{
	uint32_t i;

	for (i = 0; source->cpus && i < source->common.cpu_count; i++) {
		if (source->cpus[i].mapping)
			munmap(source->cpus[i].mapping, source->cpus[i].bytes);
		source->cpus[i].mapping = NULL;
	}
}

uint32_t pem_module__index_of(const struct pem_source *source, uint32_t event_id)
{
	const struct pem_module_cpu *cpu;
	const uint32_t *ids;
	uint32_t i, k, id;

	for (i = 0; i < source->common.cpu_count; i++) {
		cpu = &source->cpus[i];
		/* me */
		if (!__atomic_load_n(&cpu->mapping, __ATOMIC_ACQUIRE))
			continue;
		ids = pem_pool__event_ids(&cpu->ring);
		for (k = 0; k < cpu->ring.event_capacity; k++) {
			id = __atomic_load_n(&ids[k], __ATOMIC_RELAXED);
			if (!id)
				break;
			if (id == event_id)
				return k;
		}
		break; /* the index is equal in all pools */
	}
	return PEM_NO_INDEX;
}

uint32_t pem_module__index(struct pem_source *source, struct pem_source_demand *demand)
{
	uint32_t index = atomic_load_explicit(&demand->index, memory_order_relaxed);

	if (index == PEM_NO_INDEX) {
		index = pem_module__index_of(source, demand->event->id);
		atomic_store_explicit(&demand->index, index, memory_order_relaxed);
	}
	return index;
}

const struct pem_cell *pem_module__cell(const struct pem_module_cpu *cpu, uint32_t lane,
					uint32_t index)
{
	/* me */
	if (!__atomic_load_n(&cpu->mapping, __ATOMIC_ACQUIRE) || lane >= cpu->ring.lane_count ||
	    index >= cpu->ring.event_capacity)
		return NULL;
	return &cpu->ring.cells[(size_t)lane * cpu->ring.event_capacity + index];
}

void pem_module__count(const struct pem_source *source, uint32_t index, struct pem_balance *balance)
{
	const struct pem_cell *cell;
	uint32_t i, lane;

	for (i = 0; i < source->common.cpu_count; i++) {
		for (lane = 0; lane < PEM_KMOD_LANES; lane++) {
			cell = pem_module__cell(&source->cpus[i], lane, index);
			if (!cell)
				continue;
			/*
			 * ri: In this order: the module counts what it discards before what it
			 * produces.
			 */
			balance->produced += __atomic_load_n(&cell->produced, __ATOMIC_ACQUIRE);
			balance->discarded += __atomic_load_n(&cell->discarded, __ATOMIC_RELAXED);
		}
	}
}
