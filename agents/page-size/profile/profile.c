/* SPDX-License-Identifier: MIT */
/*
 * profile.c - reads a profile
 *
 * Chunks are read one after the other; what they tell of ranges holds from there on. The site of an
 * address is looked up by its granule of 2 MiB, then by its page: a table keeps what was found for
 * each, until a range changes.
 */
#include "profile/profile.h"
#include "profile/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES (1u << 18)
#define PATH_BYTES_MAX 4096u
#define RANGES_MAX 131072u
#define SEVERAL (RANGES_NO_SITE - 1) /* sites in one granule or page */
#define GRANULE_SHIFT 21u
#define GRANULES 1024u
#define PAGE_SHIFT 12u
#define PAGES 4096u

struct object {
	uint64_t number;
	char *path;
};

/* What is known of a granule or page. */
struct known {
	uint64_t number;
	uint32_t site;
};

struct page_profile {
	char *path;
	int fd;
	struct page_profile_summary summary;

	struct object *objects;
	size_t object_count;
	struct page_profile_site *sites;
	struct {
		uint64_t bytes, requested;
	} * now; /* of each site */
	uint32_t site_count;
	bool surveyed; /* the file was read to its end: sites and objects are complete */

	struct ranges ranges;
	struct known granules[GRANULES], pages[PAGES];

	/* Where the reader is. */
	uint64_t size, at; /* of the file; of the next byte that is not in the block */
	unsigned char *block;
	size_t block_used, block_taken;
	uint64_t burst_left, next; /* references; the number of the next one */
	uint32_t thread, starts;
	uint32_t sites_seen;
	bool started, ended;
};

static int fail(struct page_profile *profile, struct pem_error *error, int code, const char *format,
		...)
{
	uint64_t at = profile->at - (profile->block_used - profile->block_taken);
	char sentence[200];
	va_list args;

	if (!error)
		return code;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	snprintf(error->text, sizeof(error->text), "profile %.200s, at byte %llu: %s",
		 profile->path, (unsigned long long)at, sentence);
	pem_printable(error->text);
	return code;
}

static int damaged(struct page_profile *profile, struct pem_error *error, const char *what)
{
	return fail(profile, error, -EBADMSG, "%s: the file is damaged; profile the program again",
		    what);
}

/* --- bytes --- */

/* Bytes from the reader's place to the end of the file. */
static uint64_t left(const struct page_profile *profile)
{
	return profile->size - profile->at + (profile->block_used - profile->block_taken);
}

/*
 * Have up to count bytes at hand, fewer only at the end of the file. Returns how many there are, or
 * -errno.
 */
static int64_t fill(struct page_profile *profile, size_t count, struct pem_error *error)
{
	size_t have = profile->block_used - profile->block_taken, room;
	ssize_t n;

	if (have >= count)
		return have;
	memmove(profile->block, profile->block + profile->block_taken, have);
	profile->block_taken = 0;
	profile->block_used = have;
	while (have < count && profile->at < profile->size) {
		room = BLOCK_BYTES - have;
		if (room > profile->size - profile->at)
			room = profile->size - profile->at;
		n = pread(profile->fd, profile->block + have, room, profile->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(profile, error, -errno, "can't read: %s", strerror(errno));
		if (!n)
			return damaged(profile, error, "it became shorter while it was read");
		have += n;
		profile->at += n;
		profile->block_used = have;
	}
	return have;
}

static const void *take(struct page_profile *profile, size_t count)
{
	const void *bytes = profile->block + profile->block_taken;

	profile->block_taken += count;
	return bytes;
}

/* --- sites of addresses --- */

static void forget_known(struct page_profile *profile)
{
	memset(profile->granules, 0xff, sizeof(profile->granules));
	memset(profile->pages, 0xff, sizeof(profile->pages));
}

/* Of all addresses from start to end; SEVERAL: they differ. */
static uint32_t site_between(const struct page_profile *profile, uint64_t start, uint64_t end)
{
	size_t i = ranges__above(&profile->ranges, start);
	const struct profile_range *range;

	if (i == profile->ranges.count || profile->ranges.entries[i].start >= end)
		return RANGES_NO_SITE;
	range = &profile->ranges.entries[i];
	return range->start <= start && range->end >= end ? range->site : SEVERAL;
}

static uint32_t find_page(struct page_profile *profile, uint64_t address)
{
	uint64_t page = address >> PAGE_SHIFT;
	struct known *known = &profile->pages[page % PAGES];

	if (known->number != page) {
		known->number = page;
		known->site = site_between(profile, page << PAGE_SHIFT, (page + 1) << PAGE_SHIFT);
	}
	return known->site != SEVERAL ? known->site : site_between(profile, address, address + 1);
}

static inline uint32_t find_site(struct page_profile *profile, uint64_t address)
{
	uint64_t granule = address >> GRANULE_SHIFT;
	struct known *known = &profile->granules[granule % GRANULES];

	if (known->number != granule) {
		known->number = granule;
		known->site = site_between(profile, granule << GRANULE_SHIFT,
					   (granule + 1) << GRANULE_SHIFT);
	}
	return known->site != SEVERAL ? known->site : find_page(profile, address);
}

/* --- chunks --- */

static uint64_t at_most(uint64_t number, uint64_t most)
{
	return number < most ? number : most;
}

static int add_object(struct page_profile *profile, uint32_t bytes, struct pem_error *error)
{
	const struct profile_object *object = take(profile, bytes);
	const char *path = (const char *)(object + 1);
	size_t path_bytes = bytes - sizeof(*object);
	struct object *more;

	if (!path_bytes || memchr(path, '\0', path_bytes) != path + path_bytes - 1)
		return damaged(profile, error, "the path of an object has no end");
	if (profile->surveyed)
		return 0;
	more = realloc(profile->objects, (profile->object_count + 1) * sizeof(*more));
	if (!more)
		return fail(profile, error, -ENOMEM, "no memory");
	profile->objects = more;
	more += profile->object_count;
	more->number = object->object;
	more->path = strdup(path);
	if (!more->path)
		return fail(profile, error, -ENOMEM, "no memory");
	profile->object_count++;
	return 0;
}

static bool site_is_sound(const struct page_site *site)
{
	switch (site->kind) {
	case PAGE_SITE_HEAP:
	case PAGE_SITE_MAP:
	case PAGE_SITE_RESERVED:
		return site->frame_count > 0 && site->frame_count <= PAGE_FRAMES_MAX;
	case PAGE_SITE_DATA:
		return site->frame_count == 1;
	case PAGE_SITE_STACK:
		return !site->frame_count;
	default:
		return false;
	}
}

static int grow_sites(struct page_profile *profile)
{
	uint32_t room = profile->site_count ? 2 * profile->site_count : 64;
	void *sites, *now;

	if (profile->site_count & (profile->site_count - 1) ||
	    (profile->site_count && profile->site_count < 64))
		return 0;
	sites = realloc(profile->sites, room * sizeof(*profile->sites));
	if (sites)
		profile->sites = sites;
	now = realloc(profile->now, room * sizeof(*profile->now));
	if (now)
		profile->now = now;
	return sites && now ? 0 : -ENOMEM;
}

static int add_site(struct page_profile *profile, uint32_t bytes, struct pem_error *error)
{
	const struct profile_site *site = take(profile, bytes);

	if (!site_is_sound(&site->site))
		return damaged(profile, error, "a site of no known kind, or with too many frames");
	if (profile->sites_seen == PROFILE_SITES_MAX)
		return damaged(profile, error, "too many sites");
	profile->sites_seen++;
	if (profile->surveyed)
		return 0;
	if (grow_sites(profile))
		return fail(profile, error, -ENOMEM, "no memory");
	memset(&profile->sites[profile->site_count], 0, sizeof(*profile->sites));
	memset(&profile->now[profile->site_count], 0, sizeof(*profile->now));
	profile->sites[profile->site_count].site = site->site;
	profile->site_count++;
	return 0;
}

/* A piece of a range whose site has it no more. */
static void range_gone(const struct profile_range *piece, void *arg)
{
	struct page_profile *profile = arg;
	uint64_t bytes = piece->end - piece->start;

	profile->now[piece->site].bytes -= bytes;
	profile->now[piece->site].requested -=
		at_most(piece->requested, at_most(bytes, profile->now[piece->site].requested));
}

static void count_range(struct page_profile *profile, const struct profile_range *range)
{
	struct page_profile_site *site = &profile->sites[range->site];

	profile->now[range->site].bytes += range->end - range->start;
	profile->now[range->site].requested += at_most(range->requested, range->end - range->start);
	if (site->bytes < profile->now[range->site].bytes)
		site->bytes = profile->now[range->site].bytes;
	if (site->requested < profile->now[range->site].requested)
		site->requested = profile->now[range->site].requested;
	if (site->longest < range->end - range->start)
		site->longest = range->end - range->start;
}

static int grow_ranges(struct ranges *ranges)
{
	size_t capacity = ranges->capacity ? 2 * ranges->capacity : 64;
	void *entries;

	if (ranges->count + RANGES_SPARE <= ranges->capacity)
		return 0;
	entries = realloc(ranges->entries, capacity * sizeof(*ranges->entries));
	if (!entries)
		return -ENOMEM;
	ranges->entries = entries;
	ranges->capacity = capacity;
	return 0;
}

static int set_range(struct page_profile *profile, uint32_t bytes, struct pem_error *error)
{
	struct profile_range range = *(const struct profile_range *)take(profile, bytes);

	if (range.start >= range.end || range.end > PROFILE_ADDRESS)
		return damaged(profile, error, "a range that ends before it begins");
	if (range.site != RANGES_NO_SITE && range.site >= profile->sites_seen)
		return damaged(profile, error, "a range of a site that was not told of");
	if (profile->ranges.count >= RANGES_MAX)
		return damaged(profile, error, "too many ranges");
	if (grow_ranges(&profile->ranges))
		return fail(profile, error, -ENOMEM, "no memory");
	ranges__set(&profile->ranges, &range, range_gone, profile);
	if (range.site != RANGES_NO_SITE)
		count_range(profile, &range);
	forget_known(profile);
	return 0;
}

static int start_burst(struct page_profile *profile, uint32_t bytes, struct pem_error *error)
{
	const struct profile_burst *burst = take(profile, sizeof(*burst));
	uint64_t count = (bytes - sizeof(*burst)) / sizeof(uint64_t);

	if (bytes % sizeof(uint64_t) || count > PROFILE_BURST_MAX)
		return damaged(profile, error, "a burst of no possible length");
	if (burst->at < profile->next || burst->at + count < burst->at)
		return damaged(profile, error, "a burst that came before the one before it");
	/* A burst that goes on where the last one ended is the same one. */
	profile->starts =
		!profile->started || burst->at != profile->next || burst->thread != profile->thread;
	profile->started = true;
	profile->thread = burst->thread;
	profile->next = burst->at;
	profile->burst_left = count;
	return 0;
}

static int count_calls(struct page_profile *profile, uint32_t bytes, struct pem_error *error)
{
	const struct profile_calls *calls = take(profile, bytes);

	if (calls->site >= profile->sites_seen)
		return damaged(profile, error, "calls of a site that there is not");
	profile->sites[calls->site].calls = calls->calls;
	return 0;
}

static int end_profile(struct page_profile *profile, uint32_t bytes, struct pem_error *error)
{
	const struct profile_end *end = take(profile, bytes);

	if (end->references < profile->next)
		return damaged(profile, error, "fewer references in all than were kept");
	profile->ended = true;
	profile->summary.references = end->references;
	profile->summary.instructions = end->instructions;
	profile->summary.lost = end->lost;
	profile->summary.stopped_at = end->stopped_at;
	profile->summary.forks = end->forks;
	return 0;
}

/* The least and most bytes of a payload, by its kind. */
static const struct {
	uint32_t least, most;
	int (*read)(struct page_profile *profile, uint32_t bytes, struct pem_error *error);
} kinds[] = {
	[PROFILE_OBJECT] = {sizeof(struct profile_object) + 1,
			    sizeof(struct profile_object) + PATH_BYTES_MAX, add_object},
	[PROFILE_SITE] = {sizeof(struct profile_site), sizeof(struct profile_site), add_site},
	[PROFILE_RANGE] = {sizeof(struct profile_range), sizeof(struct profile_range), set_range},
	[PROFILE_BURST] = {sizeof(struct profile_burst),
			   sizeof(struct profile_burst) + 8 * PROFILE_BURST_MAX, start_burst},
	[PROFILE_CALLS] = {sizeof(struct profile_calls), sizeof(struct profile_calls), count_calls},
	[PROFILE_END] = {sizeof(struct profile_end), sizeof(struct profile_end), end_profile},
};

/* 1: a chunk was read; 0: there is none, because the profile ends or was cut here; or -errno. */
static int next_chunk(struct page_profile *profile, struct pem_error *error)
{
	struct profile_chunk head;
	uint64_t padded;
	int64_t n;
	int rc;

	if (profile->ended)
		return left(profile) ? damaged(profile, error, "more behind its end") : 0;
	n = fill(profile, sizeof(head), error);
	if (n < (int64_t)sizeof(head))
		return n < 0 ? (int)n : 0;
	head = *(const struct profile_chunk *)take(profile, sizeof(head));
	if (head.kind < PROFILE_OBJECT || head.kind > PROFILE_CALLS ||
	    head.bytes < kinds[head.kind].least || head.bytes > kinds[head.kind].most)
		return damaged(profile, error, "a chunk of no known kind and length");
	padded = ((uint64_t)head.bytes + 7) & ~UINT64_C(7);
	if (padded > left(profile)) {
		profile->block_taken = profile->block_used;
		profile->at = profile->size;
		return 0;
	}
	/* The references of a burst are read as they are asked for. */
	n = fill(profile, head.kind == PROFILE_BURST ? sizeof(struct profile_burst) : padded,
		 error);
	if (n < 0)
		return (int)n;
	rc = kinds[head.kind].read(profile, head.bytes, error);
	if (rc)
		return rc;
	if (head.kind != PROFILE_BURST)
		take(profile, padded - head.bytes);
	return 1;
}

static size_t read_references(struct page_profile *profile, struct page_profile_reference *room,
			      size_t count)
{
	const uint64_t *references = take(profile, count * sizeof(*references));
	size_t i;

	for (i = 0; i < count; i++) {
		room[i].address = references[i] & PROFILE_ADDRESS;
		room[i].site = find_site(profile, room[i].address);
		room[i].thread = profile->thread;
		room[i].flags = references[i] >> 63 | (references[i] >> 61 & 2);
		room[i].starts = 0;
	}
	room[0].starts = profile->starts;
	profile->starts = 0;
	profile->burst_left -= count;
	profile->next += count;
	return count;
}

int64_t page_profile__read(struct page_profile *profile, struct page_profile_reference *room,
			   size_t count, struct pem_error *error)
{
	size_t done = 0, part;
	int64_t n;

	while (done < count) {
		if (!profile->burst_left) {
			n = next_chunk(profile, error);
			if (n <= 0)
				return n < 0 ? n : (int64_t)done;
			continue;
		}
		n = fill(profile, sizeof(uint64_t), error);
		if (n < 0)
			return n;
		part = at_most(n / sizeof(uint64_t), profile->burst_left);
		part = at_most(part, count - done);
		done += read_references(profile, room + done, part);
	}
	return done;
}

void page_profile__rewind(struct page_profile *profile)
{
	profile->at = sizeof(struct profile_head);
	profile->block_used = profile->block_taken = 0;
	profile->burst_left = profile->next = 0;
	profile->sites_seen = 0;
	profile->started = profile->ended = false;
	profile->ranges.count = 0;
	if (profile->now)
		memset(profile->now, 0, profile->site_count * sizeof(*profile->now));
	forget_known(profile);
}

/* --- opening --- */

/* Read it through for sites and totals. */
static int survey(struct page_profile *profile, struct pem_error *error)
{
	enum { BATCH = 4096 };
	struct page_profile_reference *room = calloc(BATCH, sizeof(*room));
	struct page_profile_site *site;
	int64_t n = -ENOMEM, i;

	if (!room)
		return fail(profile, error, -ENOMEM, "no memory");
	while ((n = page_profile__read(profile, room, BATCH, error)) > 0) {
		profile->summary.kept += n;
		for (i = 0; i < n; i++) {
			if (room[i].site == RANGES_NO_SITE)
				continue;
			site = &profile->sites[room[i].site];
			site->references++;
			site->chained += room[i].flags >> 1;
		}
	}
	free(room);
	if (n < 0)
		return (int)n;
	profile->summary.cut = !profile->ended;
	if (!profile->ended)
		profile->summary.references = profile->next;
	profile->surveyed = true;
	return 0;
}

static int open_file(struct page_profile *profile, struct pem_error *error)
{
	struct profile_head head;
	struct stat found;
	ssize_t n;

	/* A pipe would keep the reader waiting. */
	profile->fd = open(profile->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (profile->fd < 0 || fstat(profile->fd, &found))
		return fail(profile, error, -errno, "can't open it: %s", strerror(errno));
	if (!S_ISREG(found.st_mode))
		return fail(profile, error, -EBADMSG, "it is no file");
	n = pread(profile->fd, &head, sizeof(head), 0);
	if (n != sizeof(head) || head.magic != PROFILE_MAGIC || head.source < PROFILE_VALGRIND ||
	    head.source > PROFILE_SAMPLES)
		return fail(profile, error, -EBADMSG, "it is no profile of this version of pem");
	profile->size = found.st_size;
	profile->summary.source = head.source;
	return 0;
}

struct page_profile *page_profile__open(const char *path, struct pem_error *error)
{
	struct page_profile *profile = calloc(1, sizeof(*profile));
	int rc = -ENOMEM;

	if (!profile)
		goto out;
	profile->fd = -1;
	profile->path = strdup(path);
	profile->block = malloc(BLOCK_BYTES);
	if (!profile->path || !profile->block)
		goto out;
	rc = open_file(profile, error);
	if (rc)
		goto out;
	page_profile__rewind(profile);
	rc = survey(profile, error);
	if (rc)
		goto out;
	page_profile__rewind(profile);
	return profile;
out:
	if (rc == -ENOMEM && error)
		snprintf(error->text, sizeof(error->text), "no memory to read a profile");
	page_profile__close(profile);
	errno = -rc;
	return NULL;
}

void page_profile__close(struct page_profile *profile)
{
	size_t i;

	if (!profile)
		return;
	for (i = 0; i < profile->object_count; i++)
		free(profile->objects[i].path);
	free(profile->objects);
	free(profile->sites);
	free(profile->now);
	free(profile->ranges.entries);
	free(profile->block);
	free(profile->path);
	if (profile->fd >= 0)
		close(profile->fd);
	free(profile);
}

const struct page_profile_summary *page_profile__summary(const struct page_profile *profile)
{
	return &profile->summary;
}

const struct page_profile_site *page_profile__sites(const struct page_profile *profile,
						    uint32_t *count)
{
	*count = profile->site_count;
	return profile->sites;
}

const char *page_profile__path(const struct page_profile *profile, uint64_t object)
{
	size_t i;

	for (i = 0; i < profile->object_count; i++)
		if (profile->objects[i].number == object)
			return profile->objects[i].path;
	return NULL;
}
