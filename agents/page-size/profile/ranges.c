/* SPDX-License-Identifier: MIT */
/* ranges.c - a sorted array of ranges */
#include "profile/ranges.h"

size_t ranges__above(const struct ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (ranges->entries[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void move(struct profile_range *entries, size_t from, size_t to, size_t count)
{
	__builtin_memmove(entries + to, entries + from, count * sizeof(*entries));
}

/* Replace the entries from first to last, without last, by those of pieces. */
static void replace(struct ranges *ranges, size_t first, size_t last,
		    const struct profile_range *pieces, size_t count)
{
	size_t i;

	move(ranges->entries, last, first + count, ranges->count - last);
	ranges->count = ranges->count - (last - first) + count;
	for (i = 0; i < count; i++)
		ranges->entries[first + i] = pieces[i];
}

void ranges__set(struct ranges *ranges, const struct profile_range *range,
		 void (*gone)(const struct profile_range *piece, void *arg), void *arg)
{
	size_t first = ranges__above(ranges, range->start), last = first, count = 0;
	struct profile_range pieces[3], piece;

	if (range->start >= range->end)
		return;
	while (last < ranges->count && ranges->entries[last].start < range->end)
		last++;
	/* What the first and the last of the old ranges have outside of the new one stays. */
	if (first < last && ranges->entries[first].start < range->start) {
		pieces[count] = ranges->entries[first];
		pieces[count++].end = range->start;
	}
	if (range->site != RANGES_NO_SITE)
		pieces[count++] = *range;
	if (first < last && ranges->entries[last - 1].end > range->end) {
		pieces[count] = ranges->entries[last - 1];
		pieces[count++].start = range->end;
	}
	for (size_t i = first; gone && i < last; i++) {
		piece = ranges->entries[i];
		if (piece.start < range->start)
			piece.start = range->start;
		if (piece.end > range->end)
			piece.end = range->end;
		gone(&piece, arg);
	}
	replace(ranges, first, last, pieces, count);
}
