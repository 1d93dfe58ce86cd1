/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output.c - the file
 *
 * Objects, sites and ranges are kept here, too, and written just before the next burst: what comes
 * and goes between two bursts that are kept leaves no trace. So the file is bounded.
 *
 * If the file can't be written to, collecting stops, and that is said once.
 */
#include "tool.h"

#include <asm/fcntl.h>
#include <asm/resource.h>

#define RANGES_MAX 131072u
#define CHANGES_MAX 4096u
#define COPY_BYTES 65536u

struct object {
	struct profile_object object;
	HChar *path;
};

static struct object *objects;
static struct page_site *site_table;
static ULong *site_calls;
static UInt object_count, object_capacity, objects_written;
static UInt site_count, site_capacity, sites_written;

static struct ranges live;
/* Changes since the last burst. More than fit: all is written anew. */
static struct profile_range changes[CHANGES_MAX];
static UInt change_count;
static Bool anew;

static HChar *path, *path_given;
static Int fd = -1;
static Bool failed;
static ULong bytes_written, burst_bytes;

static void fail(const HChar *what)
{
	if (!failed)
		VG_(umsg)
	("%s: %s: the profile ends here. A writable folder with free space mends "
	 "it.\n",
	 path, what);
	failed = True;
	if (!stopped)
		bursts__stop();
}

/* What may not grow so far would end the program by SIGXFSZ. */
static Bool may_grow(Int to, ULong count)
{
	struct vki_rlimit limit;
	struct vg_stat file;

	if (VG_(getrlimit)(RLIMIT_FSIZE, &limit) || limit.rlim_cur == ~0ul)
		return True;
	return !VG_(fstat)(to, &file) && (ULong)file.size + count <= limit.rlim_cur;
}

static Bool write_all(Int to, const void *data, ULong count)
{
	const UChar *from = data;
	Int part;

	if (!may_grow(to, count))
		return False;

	while (count) {
		part = VG_(write)(to, from, count < 1 << 20 ? (Int)count : 1 << 20);
		if (part <= 0)
			return False;
		from += part;
		count -= part;
	}
	return True;
}

static void put(const void *data, ULong count)
{
	if (failed)
		return;
	if (!write_all(fd, data, count))
		fail("can't write");
	bytes_written += count;
}

static void put_chunk(UInt kind, const void *first, UInt first_bytes, const void *more,
		      UInt more_bytes)
{
	const struct profile_chunk head = {.kind = kind, .bytes = first_bytes + more_bytes};
	const ULong zero = 0;

	put(&head, sizeof(head));
	put(first, first_bytes);
	if (more_bytes)
		put(more, more_bytes);
	put(&zero, -head.bytes & 7);
}

/* What this process wrote before it became another program. */
static Bool is_own(Int file)
{
	struct profile_head head;

	return options.follow_exec &&
	       sr_Res(VG_(pread)(file, &head, sizeof(head), 0)) == sizeof(head) &&
	       head.magic == PROFILE_MAGIC && head.pid == (UInt)VG_(getpid)();
}

/* An empty file will do. What has anything in it is somebody's profile. */
static Int create(const HChar *name)
{
	Int made = VG_(fd_open)(name, VKI_O_RDWR | VKI_O_CREAT | O_NOFOLLOW, 0600);
	struct vg_stat found;

	if (made >= 0 && is_own(made)) {
		VG_(close)(made);
		VG_(unlink)(name);
		made = VG_(fd_open)(name, VKI_O_RDWR | VKI_O_CREAT | O_NOFOLLOW, 0600);
	}
	if (made >= 0 && (VG_(fstat)(made, &found) || found.size || !VKI_S_ISREG(found.mode))) {
		VG_(close)(made);
		return -1;
	}
	return made;
}

/* FILE, or FILE.PID where there is one; a process that executes itself again adds a number. */
static Int create_free(void)
{
	UInt room = VG_(strlen)(path_given) + 32, number;
	Int made = create(path_given);

	path = RENEW(path, room);
	VG_(strcpy)(path, path_given);
	if (made >= 0)
		return made;
	VG_(sprintf)(path, "%s.%d", path_given, VG_(getpid)());
	made = create(path);
	for (number = 1; made < 0 && number < 1000; number++) {
		VG_(sprintf)(path, "%s.%d.%u", path_given, VG_(getpid)(), number);
		made = create(path);
	}
	return made;
}

static void start_file(void)
{
	const struct profile_head head = {
		.magic = PROFILE_MAGIC,
		.source = PROFILE_VALGRIND,
		.pid = VG_(getpid)(),
	};
	Int made = create_free();

	if (made < 0) {
		VG_(strcpy)(path, path_given);
		fail("can't create a file of this name, or with the process's number behind it");
		return;
	}
	fd = VG_(safe_fd)(made);
	put(&head, sizeof(head));
}

void output__init(const HChar *name)
{
	const HChar *folder = VG_(get_startup_wd)();
	UInt room = VG_(strlen)(name) + (folder ? VG_(strlen)(folder) : 0) + 2;

	path_given = NEW(room);
	VG_(sprintf)
	(path_given, "%s%s%s", name[0] != '/' && folder ? folder : "",
	 name[0] != '/' && folder ? "/" : "", name);
	live.capacity = 1024;
	live.entries = NEW(live.capacity * sizeof(*live.entries));
	start_file();
}

void output__forked(void)
{
	if (fd >= 0)
		VG_(close)(fd);
	fd = -1;
	failed = False;
	objects_written = sites_written = 0;
	bytes_written = burst_bytes = 0;
	anew = True;
}

void output__object(const struct profile_object *object, const HChar *name)
{
	if (object_count == object_capacity) {
		object_capacity = 2 * object_capacity + 64;
		objects = RENEW(objects, object_capacity * sizeof(*objects));
	}
	objects[object_count].object = *object;
	objects[object_count].path = NEW(VG_(strlen)(name) + 1);
	VG_(strcpy)(objects[object_count++].path, name);
}

UInt output__site(const struct page_site *site)
{
	if (site_count == PROFILE_SITES_MAX)
		return NO_SITE;
	if (site_count == site_capacity) {
		site_capacity = 2 * site_capacity + 64;
		site_table = RENEW(site_table, site_capacity * sizeof(*site_table));
		site_calls = RENEW(site_calls, site_capacity * sizeof(*site_calls));
	}
	site_table[site_count] = *site;
	site_calls[site_count] = 0;
	return site_count++;
}

void output__calls(UInt site, ULong calls)
{
	site_calls[site] = calls;
}

void output__range(Addr start, Addr end, UInt site, ULong requested)
{
	const struct profile_range range = {
		.start = start, .end = end, .site = site, .requested = requested};

	if (live.count + RANGES_SPARE > RANGES_MAX && site != NO_SITE) {
		sites__lost++;
		return;
	}
	if (live.count + RANGES_SPARE > live.capacity) {
		live.capacity *= 2;
		live.entries = RENEW(live.entries, live.capacity * sizeof(*live.entries));
	}
	bursts__settle();
	ranges__set(&live, &range, NULL, NULL);
	if (change_count < CHANGES_MAX)
		changes[change_count++] = range;
	else
		anew = True;
}

UInt output__site_at(Addr address)
{
	SizeT at = ranges__above(&live, address);

	return at < live.count && live.entries[at].start <= address ? live.entries[at].site
								    : NO_SITE;
}

static void put_ranges(void)
{
	const struct profile_range all = {.end = PROFILE_ADDRESS, .site = NO_SITE};
	SizeT i;

	if (anew) {
		put_chunk(PROFILE_RANGE, &all, sizeof(all), NULL, 0);
		for (i = 0; i < live.count; i++)
			put_chunk(PROFILE_RANGE, &live.entries[i], sizeof(all), NULL, 0);
	}
	for (i = 0; !anew && i < change_count; i++)
		put_chunk(PROFILE_RANGE, &changes[i], sizeof(all), NULL, 0);
	change_count = 0;
	anew = False;
}

/* All that a reader must know before the next burst. */
static void put_news(void)
{
	const struct object *object;

	if (fd < 0 && !failed)
		start_file();
	for (; objects_written < object_count; objects_written++) {
		object = &objects[objects_written];
		put_chunk(PROFILE_OBJECT, &object->object, sizeof(object->object), object->path,
			  VG_(strlen)(object->path) + 1);
	}
	for (; sites_written < site_count; sites_written++)
		put_chunk(PROFILE_SITE, &site_table[sites_written], sizeof(struct profile_site),
			  NULL, 0);
	put_ranges();
}

void output__burst(ULong at, ThreadId thread, const ULong *references, UInt count)
{
	const struct profile_burst burst = {.at = at, .thread = thread};

	put_news();
	put_chunk(PROFILE_BURST, &burst, sizeof(burst), references, count * sizeof(ULong));
	burst_bytes += count * sizeof(ULong);
}

ULong output__burst_bytes(void)
{
	return burst_bytes;
}

void output__end(const struct profile_end *end)
{
	struct profile_calls calls = {.site = 0};

	/* A child that kept nothing has no file. */
	if (fd < 0)
		return;
	put_news();
	for (calls.site = 0; calls.site < site_count; calls.site++) {
		calls.calls = site_calls[calls.site];
		if (calls.calls)
			put_chunk(PROFILE_CALLS, &calls, sizeof(calls), NULL, 0);
	}
	put_chunk(PROFILE_END, end, sizeof(*end), NULL, 0);
	if (fd >= 0)
		VG_(close)(fd);
	fd = -1;
}

/* --- thinning --- */

static Bool read_all(ULong from, void *data, ULong count)
{
	SysRes part;
	UChar *to = data;

	for (; count; count -= sr_Res(part), from += sr_Res(part), to += sr_Res(part)) {
		part = VG_(pread)(fd, to, count, from);
		if (sr_isError(part) || !sr_Res(part))
			return False;
	}
	return True;
}

static Bool copy(Int to, ULong from, ULong count)
{
	static UChar part[COPY_BYTES];
	ULong n;

	for (; count; count -= n, from += n) {
		n = count < COPY_BYTES ? count : COPY_BYTES;
		if (!read_all(from, part, n) || !write_all(to, part, n))
			return False;
	}
	return True;
}

static Bool copy_kept(Int to, ULong window_references, ULong stride, ULong *kept, ULong *bursts)
{
	ULong at = sizeof(struct profile_head), bytes, end = bytes_written;
	struct profile_chunk head;
	struct profile_burst burst;

	*bursts = 0;
	if (!copy(to, 0, at))
		return False;
	for (*kept = at; at < end; at += bytes) {
		if (!read_all(at, &head, sizeof(head)))
			return False;
		bytes = sizeof(head) + ((head.bytes + 7) & ~7ull);
		if (head.kind == PROFILE_BURST) {
			if (!read_all(at + sizeof(head), &burst, sizeof(burst)))
				return False;
			if (burst.at / window_references % stride)
				continue;
			*bursts += head.bytes - sizeof(burst);
		}
		if (!copy(to, at, bytes))
			return False;
		*kept += bytes;
	}
	return True;
}

Bool output__thin(ULong window_references, ULong stride)
{
	HChar *name = NEW(VG_(strlen)(path) + 8);
	ULong kept, bursts;
	Int to;

	if (failed)
		return False;
	VG_(sprintf)(name, "%s.thin", path);
	VG_(unlink)(name);
	to = create(name);
	if (to >= 0)
		to = VG_(safe_fd)(to);
	if (to < 0 || !copy_kept(to, window_references, stride, &kept, &bursts) ||
	    VG_(rename)(name, path)) {
		fail("can't be written anew with fewer bursts");
		if (to >= 0) {
			VG_(close)(to);
			VG_(unlink)(name);
		}
		VG_(free)(name);
		return False;
	}
	VG_(close)(fd);
	VG_(free)(name);
	fd = to;
	bytes_written = kept;
	burst_bytes = bursts;
	return True;
}
