// SPDX-License-Identifier: MIT
/* counts.c - what smaps finds in large pages */
#include "counts.h"

#include "fixed.h"
#include "heap.h"
#include "maps.h"
#include "middle.h"
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct found {
	uint64_t large; /* bytes */
	uint64_t small; /* bytes that are there, where large pages were granted */
};

struct counts counts__all[PAGE_APPLY_SITES_MAX];

struct smaps {
	struct found *found; /* by directive */
	int site; /* of the mapping that is read; -1: none */
	uint64_t rss, large; /* of it, in KiB */
};

/* One thread at a time reads smaps. Not on the stack, which may be small. */
static struct {
	bool busy;
	struct found found[PAGE_APPLY_SITES_MAX];
	char text[4096];
} measuring;

/* Which directive a mapping is of. */
static int site_of(uintptr_t start, uintptr_t end)
{
	int site;

	if (heap__owns((const void *)start))
		return (int)((start - heap__base) >> heap__slot_shift);
	site = maps__directive(start, end);
	return site < 0 ? fixed__directive(start, end) : site;
}

static uint64_t number_behind(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) ? 0 : strtoull(line + strlen(word), NULL, 10);
}

static void read_line(struct smaps *smaps, const char *line)
{
	uintptr_t start;
	char *end;

	if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f')) {
		start = strtoul(line, &end, 16);
		smaps->site = *end == '-' ? site_of(start, strtoul(end + 1, NULL, 16)) : -1;
		return;
	}
	if (smaps->site < 0)
		return;
	if (!strncmp(line, "Rss:", 4)) {
		smaps->rss = number_behind(line, "Rss:");
	} else if (!strncmp(line, "AnonHugePages:", 14)) {
		smaps->large = number_behind(line, "AnonHugePages:");
		smaps->found[smaps->site].large += smaps->large * 1024;
	} else if (strncmp(line, "VmFlags:", 8) || !strstr(line, " hg")) {
		return;
	} else if (apply__directives.list[smaps->site].page_size == MIDDLE_PAGE) {
		smaps->found[smaps->site].large += smaps->rss * 1024;
	} else {
		smaps->found[smaps->site].small += (smaps->rss - smaps->large) * 1024;
	}
}

/* Lines that are longer than the buffer name files, which are not ours. */
static void read_smaps(struct found *found)
{
	struct smaps smaps = {.found = found, .site = -1};
	char *text = measuring.text, *line, *next;
	size_t length = 0;
	ssize_t got;
	int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	while ((got = read(fd, text + length, sizeof(measuring.text) - 1 - length)) > 0) {
		length += (size_t)got;
		text[length] = '\0';
		for (line = text; (next = strchr(line, '\n')); line = next + 1) {
			*next = '\0';
			read_line(&smaps, line);
		}
		length -= (size_t)(line - text);
		if (length == sizeof(measuring.text) - 1)
			length = 0;
		memmove(text, line, length);
	}
	close(fd);
}

static bool is_any_granted(void)
{
	uint32_t i = 0;

	while (i < apply__directives.count && !counts__all[i].granted)
		i++;
	return i < apply__directives.count;
}

static void take(struct counts *counts, const struct found *found)
{
	/* What a child has beyond its grants is its parent's. */
	uint64_t large = found->large < counts->granted ? found->large : counts->granted;

	if (large > counts->large)
		counts->large = large;
	counts->small = found->small;
}

void counts__measure(void)
{
	struct found *found = measuring.found;
	int saved = errno, state;
	uint32_t i;

	/* Who reads it meanwhile notes the same. The acquire pairs with the release below. */
	if (apply__confined || !is_any_granted() ||
	    __atomic_test_and_set(&measuring.busy, __ATOMIC_ACQUIRE))
		return;
	state = lock__begin_files();
	memset(found, 0, sizeof(measuring.found));
	read_smaps(found);
	lock__end_files(state);
	for (i = 0; i < apply__directives.count; i++)
		take(&counts__all[i], &found[i]);
	__atomic_clear(&measuring.busy, __ATOMIC_RELEASE);
	errno = saved;
}

void counts__after_fork_child(void)
{
	uint32_t i;

	for (i = 0; i < apply__directives.count; i++) {
		uint64_t bytes = counts__all[i].bytes;

		counts__all[i] = (struct counts){.bytes = bytes, .peak = bytes};
	}
	measuring.busy = false;
}
