/* SPDX-License-Identifier: MIT */
/*
 * stream_shown.h - a queue of pem/stream.h, and the counters that it shows to observers
 *
 * Programs include pem/stream.h. The memory that is shown is described in pem/stream_page.h. It
 * exists from the first queue of a program, or library, on. Failing to make it changes nothing but
 * that queues are not observed.
 */
#ifndef PEM_STREAM_SHOWN_H
#define PEM_STREAM_SHOWN_H

#include <pem/stream_page.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef PEM_STREAM_UNOBSERVED
#define PEM_STREAM_IS_OBSERVED 0
#else
#define PEM_STREAM_IS_OBSERVED 1
#endif

#define PEM_STREAM_RARE static __attribute__((noinline, unused))
#define PEM_STREAM_LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define PEM_STREAM_STORE(p, value) __atomic_store_n(p, value, __ATOMIC_RELAXED)

/* Strict C declares neither these functions nor these numbers. */
#ifndef __cplusplus
long syscall(long number, ...);
int clock_gettime(int clock, struct timespec *time);
#endif
enum {
	PEM_STREAM_CLOCK = 1, /* CLOCK_MONOTONIC */
	PEM_STREAM_FUTEX_WAIT = 128, /* FUTEX_WAIT_PRIVATE */
	PEM_STREAM_FUTEX_WAKE = 129, /* FUTEX_WAKE_PRIVATE */
	PEM_STREAM_MFD = 3, /* MFD_CLOEXEC | MFD_ALLOW_SEALING */
	PEM_STREAM_DUPLICATE = 1030, /* F_DUPFD_CLOEXEC */
	PEM_STREAM_FD_MIN = 100,
	PEM_STREAM_ADD_SEALS = 1033, /* F_ADD_SEALS */
	PEM_STREAM_SEALS = 7, /* F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW */
	PEM_STREAM_ANONYMOUS = 0x20, /* MAP_ANONYMOUS */
	PEM_STREAM_MOVE = 3, /* MREMAP_MAYMOVE | MREMAP_FIXED */
};

/* The ends of a queue, as the field 'end' of events has them. */
enum { PEM_STREAM_PUSHES, PEM_STREAM_POPS };

/* What one end works with. Its thread alone writes the members before the first gap, and own. */
struct pem_stream_side {
	uint64_t count; /* items pushed or popped */
	uint64_t until; /* the count up to which space or items were found */
	struct pem_stream_end *end; /* in memory that is shown, or own */
	uint32_t tid; /* the thread whose name is shown, and the version of the name */
	uint32_t version;
	uint32_t cost_ns; /* of measuring a block, where that would count as work */
	uint8_t gap[92];
	/* Read by the other end at each operation; rarely written. */
	uint32_t waits; /* futex: 1: the thread sleeps, or is about to */
	uint32_t closed; /* the same in both sides */
	uint64_t wake_at; /* the producer sleeps until the consumer's count is this */
	uint64_t woken_ns; /* time of the last wake-up */
	uint8_t further_gap[104];
	struct pem_stream_end own; /* what end shows, other than items */
};

struct pem_stream {
	struct pem_stream_side side[2];
	uint8_t *ring;
	uint64_t mask; /* capacity - 1 */
	size_t item_bytes;
	struct pem_stream_entry *entry; /* NULL: the queue is not shown */
	uint32_t id;
	char name[PEM_STREAM_NAME_BYTES];
};

struct pem_stream_thread {
	uint32_t tid; /* 0: not known yet */
	uint32_t version; /* of the name */
	char stage[PEM_STREAM_NAME_BYTES];
};
extern __attribute__((weak,
		      visibility("hidden"))) __thread struct pem_stream_thread pem_stream_thread;
__thread struct pem_stream_thread pem_stream_thread = {0, 0, {0}};

/* Memory that this program, or library, shows to observers. */
struct pem_stream_process {
	struct pem_stream_page *page; /* NULL: none */
	pthread_once_t once;
	int fd;
	uint64_t device; /* of the memfd, since the program may have closed fd */
	uint64_t inode;
	uint32_t ids;
	uint32_t unlisted;
	uint8_t used[PEM_STREAM_QUEUES_MAX];
};
extern __attribute__((weak, visibility("hidden"))) struct pem_stream_process pem_stream_process;
struct pem_stream_process pem_stream_process = {0, PTHREAD_ONCE_INIT, -1, 0, 0, 0, 0, {0}};

PEM_INLINE uint64_t pem_stream_clock(void)
{
	struct timespec now;

	clock_gettime(PEM_STREAM_CLOCK, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Copy a name, cut to fit. name: NULL: "". */
PEM_STREAM_RARE void pem_stream_copy_name(char *to, const char *name)
{
	size_t i;

	for (i = 0; name && name[i] && i < PEM_STREAM_NAME_BYTES - 1; i++)
		to[i] = name[i];
	memset(to + i, 0, PEM_STREAM_NAME_BYTES - i);
}

/* --- memory that is shown --- */

/*
 * Map a new memfd. Its descriptor is a high number, since programs count on the low ones. Returns
 * NULL if there is none.
 */
PEM_STREAM_RARE struct pem_stream_page *pem_stream_map(struct pem_stream_process *process)
{
	int first = (int)syscall(SYS_memfd_create, PEM_STREAM_MEMFD, PEM_STREAM_MFD), fd;
	struct stat status;
	void *memory;

	process->fd = -1;
	if (first < 0)
		return NULL;
	fd = (int)syscall(SYS_fcntl, first, PEM_STREAM_DUPLICATE, PEM_STREAM_FD_MIN);
	close(first);
	if (fd < 0)
		return NULL;
	if (!syscall(SYS_ftruncate, fd, (long)PEM_STREAM_BYTES) &&
	    !syscall(SYS_fcntl, fd, PEM_STREAM_ADD_SEALS, PEM_STREAM_SEALS) &&
	    !fstat(fd, &status)) {
		memory = mmap(NULL, PEM_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (memory != MAP_FAILED) {
			process->fd = fd;
			process->device = (uint64_t)status.st_dev;
			process->inode = (uint64_t)status.st_ino;
			return (struct pem_stream_page *)memory;
		}
	}
	close(fd);
	return NULL;
}

PEM_STREAM_RARE void pem_stream_begin_page(struct pem_stream_page *page, uint32_t entry_count)
{
	page->version = PEM_STREAM_VERSION;
	page->entry_bytes = sizeof(struct pem_stream_entry);
	page->pid = (uint32_t)getpid();
	page->unlisted = pem_stream_process.unlisted;
	page->entry_count = entry_count;
	/* none: observers load it first */
	__atomic_store_n(&page->magic, PEM_STREAM_MAGIC, __ATOMIC_RELEASE);
}

PEM_INLINE struct pem_stream_entry *pem_stream_entry_at(struct pem_stream_page *page, uint32_t i)
{
	return (struct pem_stream_entry *)(void *)(page + 1) + i;
}

/* A child's queues, of which no thread has used an end yet. Returns how many entries there are. */
PEM_STREAM_RARE uint32_t pem_stream_inherit(struct pem_stream_page *page)
{
	struct pem_stream_entry *to, *from;
	uint32_t i, count = 0;

	for (i = 0; i < PEM_STREAM_QUEUES_MAX; i++) {
		if (!pem_stream_process.used[i])
			continue;
		count = i + 1;
		to = pem_stream_entry_at(page, i);
		from = pem_stream_entry_at(pem_stream_process.page, i);
		to->id = PEM_STREAM_LOAD(&from->id);
		to->item_bytes = from->item_bytes;
		to->capacity = from->capacity;
		memcpy(to->name, from->name, sizeof(to->name));
		to->producer.items = PEM_STREAM_LOAD(&from->producer.items);
		to->consumer.items = PEM_STREAM_LOAD(&from->consumer.items);
	}
	return count;
}

/*
 * In a child of fork: put memory of its own where its parent's is mapped. If it gets no memfd, its
 * queues are not observed.
 */
PEM_STREAM_RARE void pem_stream_forked(void)
{
	struct pem_stream_process *process = &pem_stream_process;
	int error = errno, old = process->fd;
	struct pem_stream_page *page;
	struct stat status;
	void *memory;

	pem_stream_thread.tid = 0;
	/* The program may have another file at this descriptor by now. */
	if (old >= 0 && !fstat(old, &status) && (uint64_t)status.st_dev == process->device &&
	    (uint64_t)status.st_ino == process->inode)
		close(old);
	page = pem_stream_map(process);
	if (!page) {
		memory = mmap(NULL, PEM_STREAM_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | PEM_STREAM_ANONYMOUS, -1, 0);
		page = memory == MAP_FAILED ? NULL : (struct pem_stream_page *)memory;
	}
	if (page) {
		pem_stream_begin_page(page, pem_stream_inherit(page));
		syscall(SYS_mremap, page, (long)PEM_STREAM_BYTES, (long)PEM_STREAM_BYTES,
			(long)PEM_STREAM_MOVE, process->page);
	}
	errno = error;
}

PEM_STREAM_RARE void pem_stream_begin_process(void)
{
	struct pem_stream_process *process = &pem_stream_process;
	struct pem_stream_page *page = pem_stream_map(process);

	if (!page)
		return;
	if (pthread_atfork(NULL, NULL, pem_stream_forked)) {
		munmap(page, PEM_STREAM_BYTES);
		close(process->fd);
		return;
	}
	pem_stream_begin_page(page, 0);
	process->page = page;
}

/* Make the memory that is shown, unless it is there. */
PEM_STREAM_RARE void pem_stream_show_process(void)
{
	pthread_once(&pem_stream_process.once, pem_stream_begin_process);
}

/* A queue without a ring, which is not shown yet. Returns NULL: errno is ENOMEM. */
PEM_STREAM_RARE struct pem_stream *pem_stream_new(const char *name)
{
	struct pem_stream *stream =
		(struct pem_stream *)aligned_alloc(128, (sizeof(*stream) + 127) / 128 * 128);
	int i;

	if (!stream)
		return NULL;
	memset(stream, 0, sizeof(*stream));
	stream->id = __atomic_add_fetch(&pem_stream_process.ids, 1, __ATOMIC_RELAXED);
	pem_stream_copy_name(stream->name, name);
	for (i = 0; i < 2; i++)
		stream->side[i].end = &stream->side[i].own;
	return stream;
}

/* Show a queue to observers, if there is space. */
PEM_STREAM_RARE void pem_stream_show_queue(struct pem_stream *stream)
{
	struct pem_stream_process *process = &pem_stream_process;
	struct pem_stream_entry *entry;
	uint32_t i, count;

	pem_stream_show_process();
	if (!process->page)
		return;
	/* qd */
	for (i = 0; i < PEM_STREAM_QUEUES_MAX; i++)
		if (!PEM_STREAM_LOAD(&process->used[i]) &&
		    !__atomic_exchange_n(&process->used[i], 1, __ATOMIC_ACQUIRE))
			break;
	if (i == PEM_STREAM_QUEUES_MAX) {
		PEM_STREAM_STORE(&process->page->unlisted,
				 __atomic_add_fetch(&process->unlisted, 1, __ATOMIC_RELAXED));
		return;
	}
	entry = pem_stream_entry_at(process->page, i);
	PEM_STREAM_STORE(&entry->gone, 0);
	/* none: observers load gone again, after numbers */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memset((char *)entry + sizeof(entry->id), 0, sizeof(*entry) - sizeof(entry->id));
	entry->item_bytes = (uint32_t)stream->item_bytes;
	entry->capacity = stream->mask + 1;
	memcpy(entry->name, stream->name, sizeof(entry->name));
	stream->entry = entry;
	stream->side[PEM_STREAM_PUSHES].end = &entry->producer;
	stream->side[PEM_STREAM_POPS].end = &entry->consumer;
	/* none: observers load it */
	__atomic_store_n(&entry->id, stream->id, __ATOMIC_RELEASE);
	count = PEM_STREAM_LOAD(&process->page->entry_count);
	/* none: observers load it */
	while (count <= i &&
	       !__atomic_compare_exchange_n(&process->page->entry_count, &count, i + 1, 0,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* Free the entry of a queue that no thread uses any more. Its numbers stay until it is used again.
 */
PEM_STREAM_RARE void pem_stream_hide_queue(struct pem_stream *stream)
{
	struct pem_stream_process *process = &pem_stream_process;

	if (!stream->entry)
		return;
	PEM_STREAM_STORE(&stream->entry->gone, stream->id);
	/* none: observers load it first */
	__atomic_store_n(&stream->entry->id, 0, __ATOMIC_RELEASE);
	/* QD */
	__atomic_store_n(&process->used[stream->entry - pem_stream_entry_at(process->page, 0)], 0,
			 __ATOMIC_RELEASE);
}

/*
 * Show members of own, between two calls of pem_stream_turn, which change the sequence. Each store
 * is ordered after that of the odd sequence.
 */
#define PEM_STREAM_SHOW(member)                                                                    \
	__atomic_store_n(&side->end->member, side->own.member, __ATOMIC_RELEASE)
PEM_INLINE void pem_stream_turn(struct pem_stream_side *side)
{
	side->own.sequence++;
	PEM_STREAM_SHOW(sequence);
}

PEM_STREAM_RARE uint32_t pem_stream_tid(void)
{
	if (!pem_stream_thread.tid)
		pem_stream_thread.tid = (uint32_t)syscall(SYS_gettid);
	return pem_stream_thread.tid;
}

/*
 * Show which thread uses an end, if it is another one or has another name than the last. before:
 * items that passed the end before the thread came, or PEM_STREAM_BEFORE_UNKNOWN.
 */
PEM_STREAM_RARE void pem_stream_show_thread(struct pem_stream_side *side, uint64_t before)
{
	struct pem_stream_thread *self = &pem_stream_thread;
	int is_new;
	size_t i;

	is_new = side->tid != pem_stream_tid();
	if (!is_new && side->version == self->version)
		return;
	side->tid = self->tid;
	side->version = self->version;
	side->own.tid = self->tid;
	side->own.before = is_new ? before : side->own.before;
	memcpy(side->own.stage, self->stage, sizeof(self->stage));
	pem_stream_turn(side);
	PEM_STREAM_SHOW(tid);
	PEM_STREAM_SHOW(before);
	/* none: observers load it */
	__atomic_fetch_add(&side->end->threads, (uint64_t)is_new, __ATOMIC_RELEASE);
	for (i = 0; i < PEM_STREAM_NAME_BYTES; i++)
		PEM_STREAM_SHOW(stage[i]);
	pem_stream_turn(side);
}

/* Show that an end is blocked, perhaps, since a time. own.blocks is set. */
PEM_STREAM_RARE void pem_stream_show_begin(struct pem_stream_side *side, uint64_t begin_ns)
{
	side->own.since_ns = begin_ns;
	pem_stream_turn(side);
	PEM_STREAM_SHOW(blocks);
	PEM_STREAM_SHOW(since_ns);
	pem_stream_turn(side);
}

/* Show that an end is no longer blocked. own.blocks, own.sleeps and own.expired are set; the
 * sequence is odd. */
PEM_STREAM_RARE void pem_stream_show_end(struct pem_stream_side *side, uint64_t blocked_ns,
					 uint64_t late_ns)
{
	side->own.since_ns = 0;
	side->own.blocked_ns += blocked_ns;
	side->own.late_ns += late_ns;
	PEM_STREAM_SHOW(blocks);
	PEM_STREAM_SHOW(blocked_ns);
	PEM_STREAM_SHOW(since_ns);
	PEM_STREAM_SHOW(sleeps);
	PEM_STREAM_SHOW(expired);
	PEM_STREAM_SHOW(late_ns);
	pem_stream_turn(side);
}

#ifdef __cplusplus
}
#endif
#endif
