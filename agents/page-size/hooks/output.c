// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * output.c - the file
 *
 * Objects, sites and ranges are kept here, too, and written just before the next burst: what comes
 * and goes between two bursts that are kept leaves no trace. So the file is bounded.
 *
 * The file is opened for each burst and closed behind it. A program may close descriptors that it
 * did not open, and get the same number for a file of its own: that is never written to.
 *
 * If the file can't be written to, collecting stops, and that is said once.
 */
#include "hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RANGES_MAX 131072u
#define CHANGES_MAX 4096u
#define STAGE_BYTES 65536u
#define PATH_BYTES 4096u

/* Memory that grows, and then moves. */
struct table {
	void *at;
	size_t bytes;
};

struct object {
	struct profile_object object;
	char path[PATH_BYTES];
};

static struct lock lock;
static HOOKS_TLS bool inside;

static struct table object_table, site_table, call_table, window_table, range_table;
static uint32_t object_count, site_count, objects_written, sites_written;
static uint32_t objects_before_end, sites_before_end;
static uint64_t window_count; /* chunks of bursts in the file */
static struct ranges live;
/* Changes since the last burst. More than fit: all is written anew. */
static struct profile_range changes[CHANGES_MAX];
static uint32_t change_count;
static bool anew;

static char path[PATH_BYTES], path_thin[PATH_BYTES + 8];
static int fd = -1; /* while the file is written to */
static uint64_t dev, ino;
static bool failed;
static uint64_t bytes_written, burst_bytes, bytes_before_end, lost;
static unsigned char stage[STAGE_BYTES];
static size_t staged;

bool output__lock(void)
{
	if (inside)
		return false;
	inside = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (lock__take(&lock))
		return true;
	inside = false;
	return false;
}

void output__unlock(void)
{
	lock__release(&lock);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	inside = false;
}

void output__before_fork(void)
{
	lock__before_fork(&lock);
}

void output__after_fork(bool is_child)
{
	lock__after_fork(&lock, is_child);
}

void output__lose(void)
{
	lost++;
}

/* False: there is no memory; what was there is. */
static bool grow(struct table *table, size_t bytes)
{
	size_t size = table->bytes ? table->bytes : STAGE_BYTES;
	void *at;

	if (bytes <= table->bytes)
		return true;
	while (size < bytes)
		size *= 2;
	at = table->at ? (void *)syscall(SYS_mremap, table->at, table->bytes, size, MREMAP_MAYMOVE)
		       : hooks__memory(size);
	if (!at || at == MAP_FAILED)
		return false;
	table->at = at;
	table->bytes = size;
	return true;
}

/* --- writing --- */

static void fail(const char *what)
{
	if (!failed)
		hooks__say(path, what);
	failed = true;
}

static bool write_all(int to, const void *data, size_t count)
{
	const char *from = data;
	long n;

	for (; count; count -= (size_t)n, from += n) {
		n = syscall(SYS_write, to, from, count);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

static bool flush(void)
{
	bool done = write_all(fd, stage, staged);

	staged = 0;
	return done;
}

static void put(const void *data, size_t count)
{
	if (failed)
		return;
	if ((staged + count > sizeof(stage) && !flush()) ||
	    (count > sizeof(stage) && !write_all(fd, data, count))) {
		fail("can't write: the profile ends here. A writable folder with free space mends "
		     "it");
		return;
	}
	if (count <= sizeof(stage)) {
		memcpy(stage + staged, data, count);
		staged += count;
	}
	bytes_written += count;
}

static void put_chunk(uint32_t kind, const void *first, size_t first_bytes, const void *more,
		      size_t more_bytes)
{
	const struct profile_chunk head = {.kind = kind,
					   .bytes = (uint32_t)(first_bytes + more_bytes)};
	const uint64_t zero = 0;

	put(&head, sizeof(head));
	put(first, first_bytes);
	if (more_bytes)
		put(more, more_bytes);
	put(&zero, -head.bytes & 7);
}

static int open_raw(const char *name, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
			    0600);
}

/* The file is what was written last. */
static bool open_again(void)
{
	struct stat found;

	if (failed)
		return false;
	fd = open_raw(path, O_RDWR | O_APPEND);
	if (fd >= 0 && !fstat(fd, &found) && found.st_dev == dev && found.st_ino == ino &&
	    (uint64_t)found.st_size == bytes_written)
		return true;
	if (fd >= 0)
		syscall(SYS_close, fd);
	fd = -1;
	fail("the profile can't be opened again, or was changed: it ends here. Leave it alone "
	     "until "
	     "the program ends");
	return false;
}

static void close_again(void)
{
	if (!failed && !flush())
		fail("can't write: the profile ends here. A writable folder with free space mends "
		     "it");
	staged = 0;
	if (fd >= 0)
		syscall(SYS_close, fd);
	fd = -1;
}

/* --- the beginning --- */

/* What this process wrote before it became another program. */
static bool is_own(const struct profile_head *head)
{
	return head->magic == PROFILE_MAGIC && head->pid == hooks__pid;
}

/* Does the process run that wrote it? Then this one is a child of it, or near enough. */
static bool is_running(const struct profile_head *head)
{
	return head->magic == PROFILE_MAGIC && head->pid && head->pid <= INT_MAX &&
	       (!kill((pid_t)head->pid, 0) || errno != ESRCH);
}

static bool take_file(const struct stat *found)
{
	struct profile_head head = {0};

	if (!S_ISREG(found->st_mode)) {
		fail("is no file: no profile is written");
		return false;
	}
	if (!found->st_size)
		return true;
	if (pread(fd, &head, sizeof(head), 0) == sizeof(head) && is_own(&head) && !ftruncate(fd, 0))
		return true;
	if (!is_running(&head))
		fail("exists: no profile is written. Remove it, or name another file");
	failed = true;
	return false;
}

bool output__init(const char *name)
{
	struct profile_head head = {
		.magic = PROFILE_MAGIC, .source = PROFILE_COMPILER, .pid = hooks__pid};
	size_t used = 0;
	struct stat found;

	if (name[0] != '/') {
		if (syscall(SYS_getcwd, path, sizeof(path) - 1) < 0)
			path[0] = '\0';
		used = strlen(path);
		path[used++] = '/';
	}
	if (used + strlen(name) >= sizeof(path)) {
		hooks__say(name, "this name is too long: no profile is written");
		return false;
	}
	strcpy(path + used, name);
	snprintf(path_thin, sizeof(path_thin), "%s.thin", path);
	fd = open_raw(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &found)) {
		fail("can't be written: there is no profile. Name a file in a writable folder");
	} else if (take_file(&found)) {
		dev = found.st_dev;
		ino = found.st_ino;
		put(&head, sizeof(head));
	}
	close_again();
	return !failed;
}

/* --- what is told --- */

void output__object(const struct profile_object *object, const char *name)
{
	struct object *entry;

	if (!grow(&object_table, (object_count + 1) * sizeof(*entry))) {
		lost++;
		return;
	}
	entry = (struct object *)object_table.at + object_count++;
	entry->object = *object;
	snprintf(entry->path, sizeof(entry->path), "%s", name);
}

uint32_t output__site(const struct page_site *site)
{
	if (site_count == PROFILE_SITES_MAX ||
	    !grow(&site_table, (site_count + 1) * sizeof(*site)) ||
	    !grow(&call_table, (site_count + 1) * sizeof(uint64_t)))
		return NO_SITE;
	((struct page_site *)site_table.at)[site_count] = *site;
	return site_count++;
}

void output__calls(uint32_t site, uint64_t calls)
{
	((uint64_t *)call_table.at)[site] += calls;
}

void output__range(uintptr_t start, uintptr_t end, uint32_t site, uint64_t requested)
{
	const struct profile_range range = {
		.start = start, .end = end, .site = site, .requested = requested};

	if ((live.count + RANGES_SPARE > RANGES_MAX && site != NO_SITE) ||
	    !grow(&range_table, (live.count + RANGES_SPARE) * sizeof(range))) {
		lost++;
		return;
	}
	live.entries = range_table.at;
	live.capacity = range_table.bytes / sizeof(range);
	ranges__set(&live, &range, NULL, NULL);
	if (change_count < CHANGES_MAX)
		changes[change_count++] = range;
	else
		anew = true;
}

static void put_ranges(void)
{
	const struct profile_range all = {.end = PROFILE_ADDRESS, .site = NO_SITE};
	size_t i;

	if (anew) {
		put_chunk(PROFILE_RANGE, &all, sizeof(all), NULL, 0);
		for (i = 0; i < live.count; i++)
			put_chunk(PROFILE_RANGE, &live.entries[i], sizeof(all), NULL, 0);
	}
	for (i = 0; !anew && i < change_count; i++)
		put_chunk(PROFILE_RANGE, &changes[i], sizeof(all), NULL, 0);
	change_count = 0;
	anew = false;
}

/* All that a reader must know before the next burst. */
static void put_news(void)
{
	const struct object *object;

	for (; objects_written < object_count; objects_written++) {
		object = (struct object *)object_table.at + objects_written;
		put_chunk(PROFILE_OBJECT, &object->object, sizeof(object->object), object->path,
			  strlen(object->path) + 1);
	}
	for (; sites_written < site_count; sites_written++)
		put_chunk(PROFILE_SITE, (struct page_site *)site_table.at + sites_written,
			  sizeof(struct profile_site), NULL, 0);
	put_ranges();
}

bool output__burst(const struct profile_burst *burst, uint64_t window, const uint64_t *references,
		   uint64_t count)
{
	if (!open_again())
		return false;
	if (!grow(&window_table, (window_count + 1) * sizeof(window)))
		fail("there is no memory: the profile ends here");
	put_news();
	put_chunk(PROFILE_BURST, burst, sizeof(*burst), references, count * sizeof(*references));
	close_again();
	if (failed)
		return false;
	((uint64_t *)window_table.at)[window_count++] = window;
	burst_bytes += count * sizeof(*references);
	return true;
}

uint64_t output__burst_bytes(void)
{
	return burst_bytes;
}

void output__end(struct profile_end *end)
{
	const uint64_t *calls = call_table.at;
	struct profile_calls chunk = {.site = 0};

	if (!open_again())
		return;
	bytes_before_end = bytes_written;
	objects_before_end = objects_written;
	sites_before_end = sites_written;
	end->lost = lost;
	put_news();
	for (; chunk.site < site_count; chunk.site++) {
		chunk.calls = calls[chunk.site];
		if (chunk.calls)
			put_chunk(PROFILE_CALLS, &chunk, sizeof(chunk), NULL, 0);
	}
	put_chunk(PROFILE_END, end, sizeof(*end), NULL, 0);
	close_again();
}

void output__reopen(void)
{
	if (!open_again())
		return;
	if (ftruncate(fd, (off_t)bytes_before_end))
		fail("can't be cut");
	bytes_written = bytes_before_end;
	if (site_count)
		memset(call_table.at, 0, site_count * sizeof(uint64_t));
	/* What was written with the end is written again with the next burst. */
	objects_written = objects_before_end;
	sites_written = sites_before_end;
	anew = true;
	close_again();
}

/* --- thinning --- */

static bool read_at(int from, uint64_t at, void *data, size_t count)
{
	return pread(from, data, count, (off_t)at) == (ssize_t)count;
}

static bool copy(int from, uint64_t at, uint64_t count)
{
	size_t n;

	for (; count; count -= n, at += n) {
		if (staged == sizeof(stage) && !flush())
			return false;
		n = sizeof(stage) - staged;
		if (n > count)
			n = count;
		if (!read_at(from, at, stage + staged, n))
			return false;
		staged += n;
	}
	return true;
}

/* From one file into fd. */
static bool copy_kept(int from, uint64_t stride, uint64_t *kept_bytes, uint64_t *kept_bursts)
{
	uint64_t at = sizeof(struct profile_head), bytes, seen = 0, kept = 0;
	uint64_t *windows = window_table.at;
	struct profile_chunk head;

	*kept_bursts = 0;
	if (!copy(from, 0, at))
		return false;
	for (*kept_bytes = at; at < bytes_written; at += bytes) {
		if (!read_at(from, at, &head, sizeof(head)))
			return false;
		bytes = sizeof(head) + ((head.bytes + 7) & ~UINT64_C(7));
		if (head.kind == PROFILE_BURST) {
			if (windows[seen++] % stride)
				continue;
			windows[kept++] = windows[seen - 1];
			*kept_bursts += head.bytes - sizeof(struct profile_burst);
		}
		if (!copy(from, at, bytes))
			return false;
		*kept_bytes += bytes;
	}
	window_count = kept;
	return flush();
}

bool output__thin(uint64_t stride)
{
	uint64_t kept = 0, bursts = 0;
	struct stat found;
	bool done;
	int from;

	if (!open_again())
		return false;
	from = fd;
	syscall(SYS_unlinkat, AT_FDCWD, path_thin, 0);
	fd = open_raw(path_thin, O_RDWR | O_CREAT | O_EXCL | O_APPEND);
	done = fd >= 0 && copy_kept(from, stride, &kept, &bursts) && !fstat(fd, &found) &&
	       !rename(path_thin, path);
	staged = 0;
	if (done) {
		dev = found.st_dev;
		ino = found.st_ino;
		bytes_written = kept;
		burst_bytes = bursts;
	} else {
		fail("can't be written anew with fewer bursts: the profile ends here");
		syscall(SYS_unlinkat, AT_FDCWD, path_thin, 0);
	}
	syscall(SYS_close, from);
	close_again();
	return done;
}
