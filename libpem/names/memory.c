// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * memory.c - what lies in memory of each process: mappings of objects
 *
 * A forked process shares its parent's until either changes. So a trace's size bounds what it takes
 * in memory: without changes a fork takes none, and with them ALL_MAPPINGS_MAX does.
 *
 * Not here: processes, and which records tell of mappings (code.c).
 */
#include "code_map.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Programs have some hundreds at most. */
#define MAPPINGS_MAX 4096u
/* Of all processes, 128 MiB. A shell script's 10,000 programs have some 200,000. */
#define ALL_MAPPINGS_MAX (4u << 20)

/* How many mappings end at an address or before it. */
static size_t first_behind(const struct code_memory *memory, uint64_t address)
{
	size_t low = 0, high = memory->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (memory->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct code_mapping *code__mapping_at(const struct code_space *space, uint64_t address)
{
	const struct code_memory *memory = space->memory;
	size_t i = memory ? first_behind(memory, address) : 0;

	return memory && i < memory->count && memory->mappings[i].start <= address
		       ? &memory->mappings[i]
		       : NULL;
}

void code__share_memory(struct pem_code *code, struct code_space *space,
			const struct code_space *from)
{
	struct code_memory *memory = space->memory;

	if (from && from->memory)
		from->memory->users++;
	space->memory = from ? from->memory : NULL;
	if (!memory || --memory->users)
		return;
	code->mapping_count -= memory->count;
	free(memory->mappings);
	free(memory);
}

/* Give a process memory that no other one shares. Returns 0, -ENOMEM, or -ENOSPC: left out. */
static int own_memory(struct pem_code *code, struct code_space *space)
{
	const struct code_memory *shared = space->memory;
	size_t count = shared ? shared->count : 0;
	struct code_memory *own;

	if (shared && shared->users == 1)
		return 0;
	if (count > ALL_MAPPINGS_MAX - code->mapping_count)
		return -ENOSPC;
	own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	if (pem_grow(&own->mappings, sizeof(*own->mappings), count + 1, &own->capacity) < 0) {
		free(own);
		return -ENOMEM;
	}
	if (count)
		memcpy(own->mappings, shared->mappings, count * sizeof(*own->mappings));
	own->count = count;
	own->users = 1;
	code->mapping_count += count;
	code__share_memory(code, space, NULL);
	space->memory = own;
	return 0;
}

/* Move the mappings from one place to another one. Returns 0, -ENOMEM, or -ENOSPC: too many. */
static int move_mappings(struct pem_code *code, struct code_memory *memory, size_t from, size_t to)
{
	size_t count = memory->count - from + to;

	if (to > from && (count > MAPPINGS_MAX || code->mapping_count >= ALL_MAPPINGS_MAX))
		return -ENOSPC;
	if (pem_grow(&memory->mappings, sizeof(*memory->mappings), count, &memory->capacity) < 0)
		return -ENOMEM;
	memmove(memory->mappings + to, memory->mappings + from,
		(memory->count - from) * sizeof(*memory->mappings));
	code->mapping_count += count - memory->count;
	memory->count = count;
	return 0;
}

/*
 * Cut a mapping in two at an address within. A part of data may be mapped again: with other rights,
 * or with memory of zeros. Where there is no room it stays whole. Returns 0 or -ENOMEM.
 */
static int cut_mapping(struct pem_code *code, struct code_memory *memory, uint64_t address)
{
	size_t i = first_behind(memory, address);
	int rc;

	if (i == memory->count || memory->mappings[i].start >= address)
		return 0;
	rc = move_mappings(code, memory, i, i + 1);
	if (rc)
		return rc == -ENOSPC ? 0 : rc;
	memory->mappings[i] = memory->mappings[i + 1];
	memory->mappings[i].end = memory->mappings[i + 1].start = address;
	return 0;
}

static int put_mapping(struct pem_code *code, struct code_memory *memory,
		       const struct code_mapping *mapping)
{
	size_t from, to;
	int rc;

	if (code->is_data &&
	    (cut_mapping(code, memory, mapping->start) || cut_mapping(code, memory, mapping->end)))
		return -ENOMEM;
	from = to = first_behind(memory, mapping->start);
	while (to < memory->count && memory->mappings[to].start < mapping->end)
		to++;
	rc = move_mappings(code, memory, to, from + 1);
	if (rc)
		return rc;
	memory->mappings[from] = *mapping;
	code->generation++;
	return 0;
}

int code__map_object(struct pem_code *code, struct code_space *space,
		     const struct code_mapping *mapping)
{
	int rc = own_memory(code, space);

	if (!rc)
		rc = put_mapping(code, space->memory, mapping);
	if (rc != -ENOSPC)
		return rc;
	code->left_out++;
	return 0;
}
