/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waits.c - what a thread waits for in a futex: which variable, and who holds it
 *
 * A mutex of the C library has its owner beside its word, and one with priority inheritance, or a
 * robust one, in the word itself. Memory is another program's: an owner is believed only if it is a
 * thread of that process and the rest of the mutex makes sense. All else is unknown.
 */
#include "threads.h"
#include "grow.h"

#include <pem/names.h>
#include <pem/trace.h>

#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

#define MAPS_MAX 65536u /* mappings of a process that are looked at: the kernel's own limit */

/* The words of a glibc mutex, from its futex on. That of musl has its owner in the word. */
struct mutex {
	uint32_t word, count, owner, users, kind;
};
#define CONTENDED 2u /* the word of a mutex that is held, and that others wait for */
#define USERS_MAX (1u << 22) /* more threads than a kernel has */
#define KINDS_MAX 0x400u

struct mapping {
	uint64_t begin, end, offset;
	dev_t device;
	ino_t inode;
	char *path; /* "": no file */
};

struct maps {
	struct mapping *mappings;
	size_t count, capacity;
	/* The object that a variable was looked for in last. */
	struct pem_object *object;
	const struct mapping *object_of;
};

/* --- what is mapped where --- */

static bool parse_mapping(const char *line, struct mapping *m)
{
	unsigned high, low;
	uint64_t inode;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %n", &m->begin,
		   &m->end, &m->offset, &high, &low, &inode, &path) != 6 ||
	    !path || m->end <= m->begin)
		return false;
	m->device = makedev(high, low);
	m->inode = (ino_t)inode;
	m->path = line[path] == '/' ? strndup(line + path, strcspn(line + path, "\n")) : strdup("");
	return m->path;
}

static void read_maps(struct maps *maps, uint32_t pid)
{
	char path[32], *line = NULL;
	size_t room = 0;
	struct mapping m;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	f = fopen(path, "re");
	while (f && maps->count < MAPS_MAX && getline(&line, &room, f) > 0) {
		if (!parse_mapping(line, &m))
			continue;
		if (pem_grow(&maps->mappings, sizeof(m), maps->count + 1, &maps->capacity)) {
			free(m.path);
			break;
		}
		maps->mappings[maps->count++] = m;
	}
	free(line);
	if (f)
		fclose(f);
}

static void free_maps(struct maps *maps)
{
	size_t i;

	for (i = 0; i < maps->count; i++)
		free(maps->mappings[i].path);
	free(maps->mappings);
	pem_object__close(maps->object);
}

static const struct mapping *mapping_at(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (maps->mappings[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < maps->count && maps->mappings[low].begin <= address ? &maps->mappings[low]
									 : NULL;
}

/*
 * The mapping of the file that an address belongs to. Variables that are zero at first may lie
 * directly behind it, in memory of no file.
 */
static const struct mapping *file_at(const struct maps *maps, uint64_t address)
{
	const struct mapping *m = mapping_at(maps, address);

	if (m && !*m->path && m > maps->mappings && m[-1].end == m->begin)
		m--;
	return m && *m->path ? m : NULL;
}

/* --- names --- */

/* The object of a mapping, if its path still leads to that file. */
static struct pem_object *object_of(struct maps *maps, const struct mapping *m)
{
	const struct pem_object_query query = {.size = sizeof(query), .path = m->path};
	struct stat st;

	if (maps->object_of == m)
		return maps->object;
	pem_object__close(maps->object);
	maps->object = NULL;
	maps->object_of = m;
	if (!stat(m->path, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode &&
	    st.st_dev == m->device)
		maps->object = pem_object__open(&query, NULL);
	return maps->object;
}

/* Name what lies at the address of a glimpse. */
static void name_object(struct maps *maps, const struct glimpses *glimpses, struct glimpse *glimpse)
{
	const struct mapping *m = file_at(maps, glimpse->address);
	struct pem_object *object = m && glimpses->is_own ? object_of(maps, m) : NULL;
	uint64_t offset = m ? glimpse->address - m->begin + m->offset : 0, spot;
	const char *slash = m ? strrchr(m->path, '/') : NULL;
	const char *file = slash ? slash + 1 : "";
	struct pem_name name = {0};
	char inside[24] = "";

	if (object && !pem_object__data_offset(object, offset, &spot) &&
	    pem_object__find_variable(object, spot, &name) == 1) {
		if (name.start && spot > name.start)
			snprintf(inside, sizeof(inside), "+0x%" PRIx64, spot - name.start);
		snprintf(glimpse->object, OBJECT_BYTES, "%.60s%s (%.32s)", name.function, inside,
			 file);
	} else if (m) {
		snprintf(glimpse->object, OBJECT_BYTES, "%.80s+0x%" PRIx64, file, offset);
	} else {
		snprintf(glimpse->object, OBJECT_BYTES, "0x%" PRIx64, glimpse->address);
	}
	pem_printable(glimpse->object);
}

/* --- who holds it --- */

/* The thread that has a number in its own namespace; NULL: the process has no such thread. */
static const struct glimpse *thread_of(const struct glimpses *glimpses, uint32_t inner_tid)
{
	size_t i;

	for (i = 0; inner_tid && i < glimpses->count; i++)
		if (glimpses->threads[i].inner_tid == inner_tid)
			return &glimpses->threads[i];
	return NULL;
}

static bool read_memory(uint32_t pid, uint64_t address, void *to, size_t bytes)
{
	const struct iovec own = {.iov_base = to, .iov_len = bytes};
	const struct iovec other = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};

	return process_vm_readv((pid_t)pid, &own, 1, &other, 1, 0) == (ssize_t)bytes;
}

/*
 * Does the thread wait for the end of another one? Its library waits for the number in the head of
 * that thread, which lies in the other's stack, to become 0.
 */
static bool is_end_of(const struct maps *maps, const struct glimpse *thread, uint64_t address)
{
	const struct mapping *m = mapping_at(maps, address);

	return m && thread->stack >= m->begin && thread->stack < address;
}

/* The thread that a mutex names as its owner; NULL: it is none, or names none. */
static const struct glimpse *owner_of(const struct glimpses *glimpses, const struct mutex *mutex,
				      bool inherits)
{
	if (inherits || mutex->word & FUTEX_WAITERS)
		return thread_of(glimpses, mutex->word & FUTEX_TID_MASK);
	if (mutex->word != CONTENDED || !mutex->users || mutex->users > USERS_MAX ||
	    mutex->kind > KINDS_MAX)
		return NULL;
	return thread_of(glimpses, mutex->owner);
}

static void explain(struct maps *maps, const struct glimpses *glimpses, struct glimpse *glimpse)
{
	unsigned command = (unsigned)glimpse->arguments[1] & FUTEX_CMD_MASK;
	bool inherits = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2;
	const struct glimpse *other;
	struct mutex mutex = {0};

	glimpse->address = glimpse->arguments[0];
	if (!maps->count)
		read_maps(maps, glimpses->pid);
	name_object(maps, glimpses, glimpse);
	if (!read_memory(glimpses->pid, glimpse->address, &mutex, sizeof(mutex)) &&
	    !read_memory(glimpses->pid, glimpse->address, &mutex.word, sizeof(mutex.word)))
		return;
	/* Another value: who waits is about to be woken. */
	if (!inherits && mutex.word != (uint32_t)glimpse->arguments[2])
		return;
	other = owner_of(glimpses, &mutex, inherits);
	glimpse->holder = other ? other->tid : 0;
	if (other || inherits)
		return;
	other = thread_of(glimpses, mutex.word);
	if (other && other != glimpse && is_end_of(maps, other, glimpse->address))
		snprintf(glimpse->object, OBJECT_BYTES, "end of thread %u", other->tid);
}

static bool waits_for_word(const struct glimpse *glimpse)
{
	unsigned command = (unsigned)glimpse->arguments[1] & FUTEX_CMD_MASK;

	return glimpse->call == SYS_futex &&
	       (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
		command == FUTEX_LOCK_PI2 || command == FUTEX_WAIT_REQUEUE_PI);
}

void glimpses__explain(struct glimpses *glimpses)
{
	struct maps maps = {0};
	size_t i;

	for (i = 0; glimpses->may_read && i < glimpses->count; i++)
		if (waits_for_word(&glimpses->threads[i]))
			explain(&maps, glimpses, &glimpses->threads[i]);
	free_maps(&maps);
}
