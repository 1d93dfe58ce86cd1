/* SPDX-License-Identifier: MIT */
/*
 * heap.h - what became of the memory that a trace's programs allocated, by the origin that
 * allocated
 *
 * A origin is a number of the caller's: of a call site, of a stack, of a stack in some time. Peaks
 * are those of one run of a program, from its start or exec to its end or exec: so a process that
 * ended holds nothing beside the next one.
 *
 * Not here: by what memory is added up, formats.
 */
#ifndef PEM_SHARED_HEAP_H
#define PEM_SHARED_HEAP_H

#include "number_map.h"

#include <pem/context.h>

#include <stdbool.h>

/* A block has up to two origins. */
#define PEM_HEAP_ORIGINS 2u
#define PEM_HEAP_NO_ORIGIN UINT32_MAX

/* The blocks of an origin in one run of a program. */
struct pem_heap_row {
	uint32_t run, origin;
	uint64_t now; /* bytes; after pem_heap__finish those that were never released */
	uint64_t peak; /* bytes of them when those of the whole run were most */
	uint64_t peaks; /* of the run, as now changed last */
	/*
	 * Blocks that were released at once. As heaptrack has it, a release that comes next after
	 * an allocation is of such a block if that has the allocation's size and stack, of unknown
	 * stacks its call site.
	 */
	uint64_t temporary;
};

/* One run of a program: its bytes, the most so far, and how often there were more than before. */
struct pem_heap_run {
	uint64_t now, most, peaks;
	/* What was allocated last, and nothing was released since. */
	bool has_newest;
	uint64_t size, stack, code;
	uint64_t until; /* clock at which another program of this process joined the recording */
};

struct pem_heap {
	const struct pem_trace *trace; /* set by the caller; all else is 0 at first */
	struct pem_heap_row *rows;
	size_t row_count, row_capacity;
	struct pem_number_map row_at; /* key: run, origin */
	struct pem_heap_run *runs;
	size_t run_count, run_capacity;
	struct pem_number_map run_at; /* key: number of a process */
	/* How many programs recorded with a process id, by that; empty: not counted yet. */
	struct pem_number_map images;
	bool images_counted;
	/* Of the record that was taken last. */
	uint64_t clock;
	uint32_t pid;
};

/*
 * The block that a record ends, as a release and a realloc do, or NULL. around: of the record.
 */
const struct pem_block *pem_heap__ended(const struct pem_event *event,
					const struct pem_around *around);
/*
 * Are the bytes that allocations of a group leave known? They are if all events were recorded that
 * end its blocks: those of catalogue, which has all events there are, and of the trace. One of them
 * has to be a release.
 */
bool pem_heap__sees_ends(const struct pem_trace *trace, const struct pem_model *catalogue,
			 const char *group);
/*
 * Was no record lost, so that peaks and temporary blocks are known where all ends are seen? pass:
 * of the trace, at its end.
 */
bool pem_heap__is_complete(const struct pem_trace *trace, const struct pem_pass *pass);

/*
 * Take a record, and then the block that it allocates or ends, all in the order of the trace. With
 * a record a process may run another program: the kernel tells of an exec, and where it is not
 * recorded, as in a container, another program has joined the recording with the same process id.
 * Returns 0 or -ENOMEM.
 */
int pem_heap__record(struct pem_heap *heap, const struct pem_record *record,
		     const struct pem_pass_process *process);
int pem_heap__begin(struct pem_heap *heap, const struct pem_pass_process *process,
		    const struct pem_block *block, const uint32_t origins[PEM_HEAP_ORIGINS]);
int pem_heap__end(struct pem_heap *heap, const struct pem_pass_process *process,
		  const struct pem_block *block, const uint32_t origins[PEM_HEAP_ORIGINS]);
/* Set what is known at the end. Rows of one origin and several runs stay apart. */
void pem_heap__finish(struct pem_heap *heap);
void pem_heap__free(struct pem_heap *heap);

#endif
