/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * streams.c - finds the memory in which a process shows its queues, and reads it
 *
 * It is a memfd, to which the process has a descriptor. A process that has closed all descriptors
 * still maps it: then root finds it among its mappings. The memory is hostile: each value is loaded
 * once, and the copy is checked.
 */
#include "streams/streams.h"

#include "grow.h"
#include "util.h"

#include <pem/sized.h>
#include <pem/stream_page.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How often a part of the memory is read until it holds still. */
#define TRIES 64
#define PARTS_MAX 16u /* of a process: to read more would take too long */
#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define LINK "/memfd:" PEM_STREAM_MEMFD " (deleted)"

/* Memory that a program, or one of its libraries, shows. */
struct part {
	const struct pem_stream_page *page; /* PEM_STREAM_BYTES, mapped read-only */
	int fd; /* -errno: the memory cannot be written */
	dev_t device;
	ino_t inode;
};

struct pem_streams {
	uint32_t pid;
	unsigned long own_pid; /* as the process knows itself */
	struct part *parts;
	size_t part_count, part_capacity, beyond; /* beyond: queues of further parts */
	struct pem_streams_reading now, before;
	/* A descriptor of the program's memory map, by which it shows that it ended; -1: none. */
	int life;
	bool has_ended;
};

_Static_assert(PEM_STREAMS_NAME_BYTES == PEM_STREAM_NAME_BYTES, "names of both fit");

/* Is this memory that a process shows, which cannot shrink while it is mapped? */
static bool is_shown(int fd, struct stat *status)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, status) &&
	       S_ISREG(status->st_mode) && status->st_size == PEM_STREAM_BYTES;
}

static bool is_known(const struct pem_streams *streams, const struct stat *status)
{
	size_t i;

	for (i = 0; i < streams->part_count; i++)
		if (streams->parts[i].device == status->st_dev &&
		    streams->parts[i].inode == status->st_ino)
			return true;
	return false;
}

/* Add what a link of the process leads to, if it is such memory and new. */
static int add(struct pem_streams *streams, const char *path)
{
	int fd = pem_streams__open_memory(path, O_RDONLY), result = 0;
	const struct pem_stream_page *page = MAP_FAILED;
	struct stat status, again;
	uint32_t entry_count;

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
	if (!result && streams->part_count == PARTS_MAX) {
		entry_count = LOAD(&page->entry_count);
		streams->beyond +=
			entry_count < PEM_STREAM_QUEUES_MAX ? entry_count : PEM_STREAM_QUEUES_MAX;
		result = 1;
	}
	if (result) {
		munmap((void *)(uintptr_t)page, PEM_STREAM_BYTES);
		return result < 0 ? result : 0;
	}
	fd = pem_streams__open_memory(path, O_RDWR);
	if (fd >= 0 && (!is_shown(fd, &again) || again.st_dev != status.st_dev ||
			again.st_ino != status.st_ino)) {
		close(fd);
		fd = -1;
		errno = ESTALE;
	}
	streams->parts[streams->part_count++] =
		(struct part){page, fd < 0 ? -errno : fd, status.st_dev, status.st_ino};
	return 0;
}

/* Add what the links of a folder of the process lead to. */
static int search_in(struct pem_streams *streams, const char *folder)
{
	char directory[64], path[sizeof(directory) + 256], target[sizeof(LINK) + 1];
	struct dirent *entry;
	ssize_t bytes;
	int result = 0;
	DIR *dir;

	snprintf(directory, sizeof(directory), "/proc/%" PRIu32 "/%s", streams->pid, folder);
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

/* The memory map is gone: the program ended, or called exec. */
static bool has_ended(const struct pem_streams *streams)
{
	uint64_t entry;

	return streams->life >= 0 && pread(streams->life, &entry, sizeof(entry), 0) == 0;
}

int pem_streams__search(struct pem_streams *streams, struct pem_error *error)
{
	uint32_t pid;
	int result;

	if (!streams)
		return pem_error__lacks(error, "observed process");
	pid = streams->pid;
	if (has_ended(streams))
		return pem_error__set(error, -ESRCH,
				      "process %" PRIu32 " has ended, or runs another program",
				      pid);
	streams->beyond = 0;
	result = search_in(streams, "fd");
	/* Who may not follow these links finds none. */
	if (!result && !streams->part_count)
		search_in(streams, "map_files");
	if (result == -ENOENT || result == -ESRCH)
		return pem_error__set(error, -ESRCH, "there is no process %" PRIu32, pid);
	if (result == -EACCES || result == -EPERM)
		return pem_error__set(error, -EACCES,
				      "process %" PRIu32 " can't be inspected: run this as the "
				      "process's user, or as root",
				      pid);
	if (result)
		return pem_error__set(error, result, "process %" PRIu32 " can't be inspected: %s",
				      pid, strerror(-result));
	if (!streams->part_count && pem_streams__uses_gstreamer(pid))
		return pem_error__set(error, -ENODATA,
				      "process %" PRIu32
				      " uses GStreamer without pem's tracer: start it by pem rates "
				      "-- COMMAND, or with GST_TRACERS=pem and the folder of "
				      "libgstpem.so in GST_PLUGIN_PATH",
				      pid);
	if (!streams->part_count)
		return pem_error__set(
			error, -ENOENT,
			"process %" PRIu32
			" shows no queue: it has made none by pem/stream.h, or it has "
			"closed all its descriptors, and then only root can find its queues",
			pid);
	return (int)streams->part_count;
}

struct pem_streams *pem_streams__open(uint32_t pid, struct pem_error *error)
{
	struct pem_streams *streams;
	char path[64];
	int result;

	if (!pid) {
		errno = -pem_error__lacks(error, "process");
		return NULL;
	}
	streams = calloc(1, sizeof(*streams));
	if (!streams) {
		pem_error__set(error, 0, "no memory to observe process %" PRIu32, pid);
		errno = ENOMEM;
		return NULL;
	}
	streams->pid = pid;
	/* Opened first: all that is found later is of this program. */
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/pagemap", pid);
	streams->life = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	streams->own_pid = pem_streams__own_id(path);
	result = pem_streams__search(streams, error);
	if (result > 0)
		return streams;
	pem_streams__close(streams);
	errno = -result;
	return NULL;
}

void pem_streams__close(struct pem_streams *streams)
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
	if (streams->life >= 0)
		close(streams->life);
	free(streams->now.list);
	free(streams->before.list);
	free(streams);
}

int pem_streams__limit(struct pem_streams *streams, const struct pem_streams_queue *queue,
		       uint64_t limit, struct pem_error *error)
{
	const struct part *part;
	struct pem_stream_entry *entry;
	void *memory;
	int result;

	if (!streams || !queue)
		return pem_error__lacks(error, streams ? "queue" : "observed process");
	if (!queue->item_bytes)
		return pem_error__set(error, -ENOTSUP,
				      "queue '%s' is not of pem/stream.h: its library limits it",
				      queue->name);
	if (queue->part >= streams->part_count || queue->entry >= PEM_STREAM_QUEUES_MAX || !limit ||
	    limit > queue->capacity)
		return pem_error__set(error, -EINVAL,
				      "queue '%s': expected a limit of 1 to %llu items",
				      queue->name, (unsigned long long)queue->capacity);
	part = &streams->parts[queue->part];
	memory = mmap(NULL, PEM_STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, part->fd, 0);
	result = part->fd < 0 ? part->fd : memory == MAP_FAILED ? -errno : 0;
	if (result)
		return pem_error__set(error, result,
				      "queue '%s' of process %" PRIu32 " can't be limited: %s",
				      queue->name, streams->pid, strerror(-result));
	entry = (struct pem_stream_entry *)((struct pem_stream_page *)memory + 1) + queue->entry;
	if (__atomic_load_n(&entry->id, __ATOMIC_RELAXED) == queue->id)
		__atomic_store_n(&entry->limit, limit, __ATOMIC_RELAXED);
	else
		result = pem_error__set(error, -ESTALE, "queue '%s' of process %" PRIu32 " is gone",
					queue->name, streams->pid);
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
static bool read_end(struct pem_streams_end *to, const struct pem_stream_end *from)
{
	uint32_t sequence;
	int i;

	for (i = 0; i < TRIES; i++) {
		sequence = LOAD(&from->sequence);
		to->tid = LOAD(&from->tid);
		to->blocks = LOAD(&from->blocks);
		to->blocked_ns = LOAD(&from->blocked_ns);
		to->since_ns = LOAD(&from->since_ns);
		to->sleeps = LOAD(&from->sleeps);
		to->late_ns = LOAD(&from->late_ns);
		to->expired = LOAD(&from->expired);
		to->refused = LOAD(&from->refused);
		to->before = LOAD(&from->before);
		to->threads = LOAD(&from->threads);
		copy_name(to->stage, from->stage);
		if (!(sequence & 1) && LOAD(&from->sequence) == sequence)
			break;
	}
	if (to->threads & PEM_STREAM_SHARED)
		to->threads = to->tid = 0;
	return i < TRIES;
}

/*
 * Read the items of both ends as they were at one moment: between two equal counts of the consumer,
 * or else the consumer's count nearest to that.
 */
static void read_items(struct pem_streams_queue *to, const struct pem_stream_entry *from)
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

/* number: the entry's, by which it is of this queue. */
static bool read_entry(struct pem_streams_queue *to, const struct pem_stream_entry *from,
		       const uint32_t *number, uint32_t id)
{
	uint64_t limit, dropped;

	to->at_ns = now_ns();
	to->id = id;
	to->is_gone = number == &from->gone;
	to->item_bytes = LOAD(&from->item_bytes);
	to->capacity = LOAD(&from->capacity);
	limit = LOAD(&from->limit);
	dropped = to->item_bytes ? 0 : LOAD(&from->dropped);
	to->limit = !to->item_bytes ? 0 : limit && limit < to->capacity ? limit : to->capacity;
	copy_name(to->name, from->name);
	if (!read_end(&to->push, &from->producer) || !read_end(&to->pop, &from->consumer))
		return false;
	read_items(to, from);
	to->queued -= dropped < to->queued ? dropped : to->queued;
	if (!to->item_bytes)
		return LOAD(number) == id && to->capacity <= PEM_STREAM_CAPACITY_MAX;
	return LOAD(number) == id && to->capacity && to->capacity <= PEM_STREAM_CAPACITY_MAX &&
	       !(to->capacity & (to->capacity - 1)) && to->queued <= to->capacity;
}

/* The thread that the process knows by an id, as it is known here. 0: there is none. */
static uint32_t thread_of(const struct pem_streams *streams, uint32_t own)
{
	char path[64 + 256];
	struct dirent *entry;
	uint32_t found = 0;
	DIR *dir;

	if (!own || streams->own_pid == streams->pid)
		return own;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", streams->pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%s/status", streams->pid,
			 entry->d_name);
		if (pem_streams__own_id(path) == own)
			found = (uint32_t)strtoul(entry->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return found;
}

static FILE *open_of_thread(const struct pem_streams *streams, uint32_t tid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/%s", streams->pid, tid,
		 file);
	return fopen(path, "re");
}

/* Is the thread ready to run, and how often did it go to sleep? */
static void read_status(const struct pem_streams *streams, struct pem_streams_end *end)
{
	static const char switches[] = "voluntary_ctxt_switches:";
	FILE *file = end->tid ? open_of_thread(streams, end->tid, "status") : NULL;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "State:\tR", 8))
			end->is_ready = 1;
		else if (!strncmp(line, switches, sizeof(switches) - 1))
			end->switches = (uint32_t)strtoull(line + sizeof(switches), NULL, 10);
	}
	if (file)
		fclose(file);
}

/* What the kernel knows of an end's thread. A block that goes on counts up to at_ns. */
static void finish_end(const struct pem_streams *streams, struct pem_streams_end *end,
		       uint64_t at_ns)
{
	unsigned long long run_ns, wait_ns;
	char name[PEM_STREAM_NAME_BYTES];
	FILE *file;

	if (end->since_ns && end->since_ns < at_ns)
		end->blocked_ns += at_ns - end->since_ns;
	end->tid = thread_of(streams, end->tid);
	read_status(streams, end);
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

/* Was this queue there at the last reading? *k: where to search on. */
static bool was_there(const struct pem_streams_reading *before, uint32_t part, uint32_t entry,
		      uint32_t id, size_t *k)
{
	const struct pem_streams_queue *old = before->list + *k;

	for (; *k < before->count; ++*k, old++)
		if (old->part > part || (old->part == part && old->entry >= entry))
			break;
	return *k < before->count && old->part == part && old->id == id && !old->is_gone;
}

/* Add one part's queues. Returns 0 or -ENOMEM. */
static int read_part(struct pem_streams *streams, uint32_t part, size_t *skipped)
{
	const struct pem_stream_page *page = streams->parts[part].page;
	const struct pem_stream_entry *entries = (const struct pem_stream_entry *)(page + 1);
	uint32_t i, id, entry_count = LOAD(&page->entry_count);
	struct pem_streams_reading *now = &streams->now;
	struct pem_streams_queue *to;
	const uint32_t *number;
	size_t k = 0;

	*skipped += LOAD(&page->unlisted);
	for (i = 0; i < entry_count && i < PEM_STREAM_QUEUES_MAX; i++) {
		number = &entries[i].id;
		id = LOAD(number);
		if (!id) {
			number = &entries[i].gone;
			id = LOAD(number);
			if (!id || !was_there(&streams->before, part, i, id, &k))
				continue;
		}
		if (pem_grow(&now->list, sizeof(*now->list), now->count + 1, &now->capacity) < 0)
			return -ENOMEM;
		to = &now->list[now->count];
		memset(to, 0, sizeof(*to));
		to->part = part;
		to->entry = i;
		if (!read_entry(to, &entries[i], number, id)) {
			*skipped += !to->is_gone;
			continue;
		}
		if (to->is_gone)
			to->push.tid = to->pop.tid = 0;
		finish_end(streams, &to->push, to->at_ns);
		finish_end(streams, &to->pop, to->at_ns);
		now->count++;
	}
	return 0;
}

/* A process of the same number may have given the times of threads: another program did. */
static void forget_threads(struct pem_streams_reading *reading)
{
	size_t i;

	for (i = 0; i < reading->count; i++) {
		reading->list[i].push.tid = reading->list[i].pop.tid = 0;
		reading->list[i].push.has_times = reading->list[i].pop.has_times = 0;
	}
}

ptrdiff_t pem_streams__read(struct pem_streams *streams, size_t *skipped)
{
	struct pem_streams_reading last;
	size_t unread = streams ? streams->beyond : 0;
	uint32_t i;
	int rc = 0;

	if (!streams)
		return -EINVAL;
	last = streams->before;
	streams->before = streams->now;
	streams->now = last;
	streams->now.count = 0;
	/* Numbers that are read after the end are the last ones. */
	streams->has_ended = has_ended(streams);
	for (i = 0; i < streams->part_count && !rc; i++)
		rc = read_part(streams, i, &unread);
	if (has_ended(streams))
		forget_threads(&streams->now);
	if (skipped)
		*skipped = unread;
	return rc ? rc : (ptrdiff_t)streams->now.count;
}

const struct pem_streams_queue *pem_streams__queue(const struct pem_streams *streams, size_t i)
{
	return streams && i < streams->now.count ? &streams->now.list[i] : NULL;
}

int pem_streams__has_ended(const struct pem_streams *streams)
{
	return streams && streams->has_ended;
}

int pem_streams__service(const struct pem_streams *streams, size_t i, int pops,
			 struct pem_streams_service *service)
{
	struct pem_streams_service found;
	int rc;

	if (!streams || i >= streams->now.count || pem_sized__check(service) ||
	    pem_sized__read(&found, sizeof(found), service, sizeof(found)))
		return -EINVAL;
	rc = pem_streams__between(&streams->before, &streams->now, i, pops, &found);
	if (rc)
		pem_sized__write(service, 0, &found, sizeof(found));
	return rc;
}
