/* SPDX-License-Identifier: MIT */
/*
 * streams.c - finds the memory in which a process shows its queues, and reads it
 *
 * It is a memfd, to which the process has a descriptor. A process that has closed all descriptors
 * still maps it: then root finds it among its mappings. The memory is hostile: each value is loaded
 * once, and the copy is checked.
 */
#include "streams/streams.h"

#include "grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How often a part of the memory is read until it holds still. */
#define TRIES 64
#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define LINK "/memfd:" PEM_STREAM_MEMFD " (deleted)"

/* Memory that a program, or one of its libraries, shows. */
struct part {
	const struct pem_stream_page *page; /* PEM_STREAM_BYTES, mapped read-only */
	int fd; /* -errno: the memory cannot be written */
	dev_t device;
	ino_t inode;
};

struct rate_streams {
	pid_t pid;
	unsigned long own_pid; /* as the process knows itself */
	struct part *parts;
	size_t part_count, part_capacity;
	struct rate_stream *list;
	size_t list_capacity;
};

__attribute__((format(printf, 3, 4))) static int fail(struct pem_error *error, int code,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (error)
		vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return code;
}

/* The innermost of the ids that a process or thread has in nested namespaces. 0: unknown. */
static unsigned long own_id(const char *status_path)
{
	unsigned long id = 0;
	char line[256], *next;
	FILE *file = fopen(status_path, "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		next = strrchr(line, '\t');
		id = next ? strtoul(next, NULL, 10) : 0;
		break;
	}
	if (file)
		fclose(file);
	return id;
}

/* Is this memory that a process shows, which cannot shrink while it is mapped? */
static bool is_shown(int fd, struct stat *status)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, status) &&
	       S_ISREG(status->st_mode) && status->st_size == PEM_STREAM_BYTES;
}

static bool is_known(const struct rate_streams *streams, const struct stat *status)
{
	size_t i;

	for (i = 0; i < streams->part_count; i++)
		if (streams->parts[i].device == status->st_dev &&
		    streams->parts[i].inode == status->st_ino)
			return true;
	return false;
}

/* Add what a link of the process leads to, if it is such memory and new. */
static int add(struct rate_streams *streams, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), result = 0;
	const struct pem_stream_page *page = MAP_FAILED;
	struct stat status;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (is_shown(fd, &status) && !is_known(streams, &status)) {
		page = mmap(NULL, PEM_STREAM_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		result = page == MAP_FAILED ? -errno : 0;
	}
	close(fd);
	if (page == MAP_FAILED)
		return result;
	/* Else it is another version's, or a parent's. */
	if (LOAD(&page->magic) == PEM_STREAM_MAGIC && LOAD(&page->version) == PEM_STREAM_VERSION &&
	    LOAD(&page->entry_bytes) == sizeof(struct pem_stream_entry) &&
	    LOAD(&page->pid) == streams->own_pid)
		result = pem_grow(&streams->parts, sizeof(*streams->parts), streams->part_count + 1,
				  &streams->part_capacity);
	else
		result = 1;
	if (result) {
		munmap((void *)(uintptr_t)page, PEM_STREAM_BYTES);
		return result < 0 ? result : 0;
	}
	fd = open(path, O_RDWR | O_CLOEXEC);
	streams->parts[streams->part_count++] =
		(struct part){page, fd < 0 ? -errno : fd, status.st_dev, status.st_ino};
	return 0;
}

/* Add what the links of a folder of the process lead to. */
static int look_in(struct rate_streams *streams, const char *folder)
{
	char directory[64], path[sizeof(directory) + 256], target[sizeof(LINK) + 1];
	struct dirent *entry;
	ssize_t bytes;
	int result = 0;
	DIR *dir;

	snprintf(directory, sizeof(directory), "/proc/%d/%s", (int)streams->pid, folder);
	dir = opendir(directory);
	if (!dir)
		return -errno;
	while (!result && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		bytes = readlink(path, target, sizeof(target));
		if (bytes == sizeof(LINK) - 1 && !memcmp(target, LINK, sizeof(LINK) - 1))
			result = add(streams, path);
	}
	closedir(dir);
	return result;
}

int rate_streams__look(struct rate_streams *streams, struct pem_error *error)
{
	int pid = (int)streams->pid, result = look_in(streams, "fd");

	/* Who may not follow these links finds none. */
	if (!result && !streams->part_count)
		look_in(streams, "map_files");
	if (result == -ENOENT || result == -ESRCH)
		return fail(error, -ESRCH, "there is no process %d", pid);
	if (result == -EACCES || result == -EPERM)
		return fail(error, -EACCES,
			    "process %d can't be inspected: run this as the "
			    "process's user, or as root",
			    pid);
	if (result)
		return fail(error, result, "process %d can't be inspected: %s", pid,
			    strerror(-result));
	if (!streams->part_count)
		return fail(
			error, -ENOENT,
			"process %d shows no queue: it has made none by pem/stream.h, or it has "
			"closed all its descriptors, and then only root can find its queues",
			pid);
	return (int)streams->part_count;
}

struct rate_streams *rate_streams__open(pid_t pid, struct pem_error *error)
{
	struct rate_streams *streams = calloc(1, sizeof(*streams));
	char path[64];
	int result;

	if (!streams) {
		fail(error, 0, "no memory to observe process %d", (int)pid);
		errno = ENOMEM;
		return NULL;
	}
	streams->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	streams->own_pid = own_id(path);
	result = rate_streams__look(streams, error);
	if (result > 0)
		return streams;
	rate_streams__close(streams);
	errno = -result;
	return NULL;
}

void rate_streams__close(struct rate_streams *streams)
{
	size_t i;

	if (!streams)
		return;
	for (i = 0; i < streams->part_count; i++) {
		munmap((void *)(uintptr_t)streams->parts[i].page, PEM_STREAM_BYTES);
		if (streams->parts[i].fd >= 0)
			close(streams->parts[i].fd);
	}
	free(streams->parts);
	free(streams->list);
	free(streams);
}

int rate_streams__limit(struct rate_streams *streams, const struct rate_stream *stream,
			uint64_t limit, struct pem_error *error)
{
	const struct part *part;
	struct pem_stream_entry *entry;
	void *memory;
	int result;

	if (stream->part >= streams->part_count || stream->entry >= PEM_STREAM_QUEUES_MAX ||
	    !limit || limit > stream->capacity)
		return fail(error, -EINVAL, "queue '%s': expected a limit of 1 to %llu items",
			    stream->name, (unsigned long long)stream->capacity);
	part = &streams->parts[stream->part];
	memory = mmap(NULL, PEM_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, part->fd, 0);
	result = part->fd < 0 ? part->fd : memory == MAP_FAILED ? -errno : 0;
	if (result)
		return fail(error, result, "queue '%s' of process %d can't be limited: %s",
			    stream->name, (int)streams->pid, strerror(-result));
	entry = (struct pem_stream_entry *)((struct pem_stream_page *)memory + 1) + stream->entry;
	if (__atomic_load_n(&entry->id, __ATOMIC_ACQUIRE) == stream->id)
		__atomic_store_n(&entry->limit, limit, __ATOMIC_RELAXED);
	else
		result = fail(error, -ESTALE, "queue '%s' of process %d is gone", stream->name,
			      (int)streams->pid);
	munmap(memory, PEM_STREAM_BYTES);
	return result;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void copy_name(char *to, const char *from)
{
	size_t i;
	char c;

	for (i = 0; i < PEM_STREAM_NAME_BYTES - 1; i++) {
		c = LOAD(&from[i]);
		if (!c)
			break;
		to[i] = c < ' ' || c > '~' ? '?' : c;
	}
	memset(to + i, 0, PEM_STREAM_NAME_BYTES - i);
}

/* Read all of an end but its items. Returns false: it did not hold still. */
static bool read_end(struct rate_stream_end *to, const struct pem_stream_end *from)
{
	uint32_t sequence;
	int i;

	for (i = 0; i < TRIES; i++) {
		sequence = LOAD(&from->sequence);
		to->tid = (pid_t)LOAD(&from->tid);
		to->blocks = LOAD(&from->blocks);
		to->blocked_ns = LOAD(&from->blocked_ns);
		to->since_ns = LOAD(&from->since_ns);
		to->sleeps = LOAD(&from->sleeps);
		to->late_ns = LOAD(&from->late_ns);
		to->refused = LOAD(&from->refused);
		to->stamp_ns = LOAD(&from->stamp_ns);
		to->stamp_items = LOAD(&from->stamp_items);
		to->stamp_blocked_ns = LOAD(&from->thread_blocked_ns);
		to->stamp_late_ns = LOAD(&from->thread_late_ns);
		copy_name(to->stage, from->stage);
		if (!(sequence & 1) && LOAD(&from->sequence) == sequence)
			return true;
	}
	return false;
}

/*
 * Read the items of both ends as they were at one moment: between two equal counts of the consumer,
 * or else the consumer's count nearest to that.
 */
static void read_items(struct rate_stream *to, const struct pem_stream_entry *from)
{
	uint64_t first = LOAD(&from->consumer.items), pushed, second;
	int i;

	for (i = 0; i < TRIES; i++) {
		pushed = LOAD(&from->producer.items);
		second = LOAD(&from->consumer.items);
		if (first == second)
			break;
		first = second;
	}
	to->push.items = pushed;
	to->pop.items = (int64_t)(pushed - second) < 0 ? pushed : second;
	to->queued = to->push.items - to->pop.items;
}

static bool read_entry(struct rate_stream *to, const struct pem_stream_entry *from, uint32_t id)
{
	uint64_t limit;

	to->id = id;
	to->item_bytes = LOAD(&from->item_bytes);
	to->capacity = LOAD(&from->capacity);
	limit = LOAD(&from->limit);
	to->limit = limit && limit < to->capacity ? limit : to->capacity;
	copy_name(to->name, from->name);
	if (!read_end(&to->push, &from->producer) || !read_end(&to->pop, &from->consumer))
		return false;
	read_items(to, from);
	to->at_ns = now_ns();
	return LOAD(&from->id) == id && to->item_bytes && to->capacity &&
	       to->capacity <= PEM_STREAM_CAPACITY_MAX && !(to->capacity & (to->capacity - 1)) &&
	       to->queued <= to->capacity;
}

/* The thread that the process knows by an id, as it is known here. 0: there is none. */
static pid_t thread_of(const struct rate_streams *streams, pid_t own)
{
	char path[64 + 256];
	struct dirent *entry;
	pid_t found = 0;
	DIR *dir;

	if (own <= 0 || streams->own_pid == (unsigned long)streams->pid)
		return own > 0 ? own : 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)streams->pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)streams->pid,
			 entry->d_name);
		if (own_id(path) == (unsigned long)own)
			found = (pid_t)strtol(entry->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return found;
}

static FILE *open_of_thread(const struct rate_streams *streams, pid_t tid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)streams->pid, (int)tid, file);
	return fopen(path, "re");
}

/* What the kernel knows of an end's thread. A block that goes on counts up to at_ns. */
static void finish_end(const struct rate_streams *streams, struct rate_stream_end *end,
		       uint64_t at_ns)
{
	unsigned long long run_ns, wait_ns;
	char name[PEM_STREAM_NAME_BYTES];
	FILE *file;

	if (end->since_ns && end->since_ns < at_ns)
		end->blocked_ns += at_ns - end->since_ns;
	end->tid = thread_of(streams, end->tid);
	file = end->tid ? open_of_thread(streams, end->tid, "schedstat") : NULL;
	end->has_times = file && fscanf(file, "%llu %llu", &run_ns, &wait_ns) == 2;
	if (file)
		fclose(file);
	if (!end->has_times && errno == ENOENT)
		end->tid = 0;
	end->run_ns = end->has_times ? run_ns : 0;
	end->wait_ns = end->has_times ? wait_ns : 0;
	if (end->stage[0] || !end->tid)
		return;
	file = open_of_thread(streams, end->tid, "comm");
	if (!file)
		return;
	memset(name, 0, sizeof(name));
	if (fgets(name, sizeof(name), file)) {
		name[strcspn(name, "\n")] = 0;
		copy_name(end->stage, name);
	}
	fclose(file);
}

/* Read one part's queues behind those in the list. Returns how many there are now, or -ENOMEM. */
static ptrdiff_t read_part(struct rate_streams *streams, uint32_t part, size_t count,
			   size_t *skipped)
{
	const struct pem_stream_page *page = streams->parts[part].page;
	const struct pem_stream_entry *entries = (const struct pem_stream_entry *)(page + 1);
	uint32_t i, id, entry_count = LOAD(&page->entry_count);
	struct rate_stream *to;

	*skipped += LOAD(&page->unlisted);
	for (i = 0; i < entry_count && i < PEM_STREAM_QUEUES_MAX; i++) {
		id = LOAD(&entries[i].id);
		if (!id)
			continue;
		if (pem_grow(&streams->list, sizeof(*streams->list), count + 1,
			     &streams->list_capacity) < 0)
			return -ENOMEM;
		to = &streams->list[count];
		memset(to, 0, sizeof(*to));
		to->part = part;
		to->entry = i;
		if (!read_entry(to, &entries[i], id)) {
			++*skipped;
			continue;
		}
		finish_end(streams, &to->push, to->at_ns);
		finish_end(streams, &to->pop, to->at_ns);
		count++;
	}
	return (ptrdiff_t)count;
}

ptrdiff_t rate_streams__read(struct rate_streams *streams, const struct rate_stream **list,
			     size_t *skipped)
{
	ptrdiff_t count = 0;
	uint32_t i;

	*skipped = 0;
	for (i = 0; i < streams->part_count && count >= 0; i++)
		count = read_part(streams, i, (size_t)count, skipped);
	*list = streams->list;
	return count;
}
