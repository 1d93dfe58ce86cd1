/* SPDX-License-Identifier: MIT */
/* hits.c - which timer samples of a run were at the chosen data (apply/apply.h, timer/timer.h) */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* More than any command reports. */
#define EXTENTS_MAX 4096u

struct extent {
	uint64_t start, end;
};

/* What the command's process reported. */
struct extents {
	uint64_t pid; /* 0: it did not */
	bool complete;
	size_t count;
	struct extent list[EXTENTS_MAX];
};

static bool read_number(struct json_object *line, const char *name, uint64_t *number)
{
	struct json_object *value;
	int64_t found;

	if (!json_object_object_get_ex(line, name, &value))
		return false;
	found = json_object_get_int64(value);
	*number = (uint64_t)found;
	return found > 0;
}

static bool is_true(struct json_object *line, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(line, name, &value) && json_object_get_boolean(value);
}

/* false: there are too many. */
static bool take_line(struct json_object *line, struct extents *extents)
{
	struct extent extent;
	uint64_t pid;

	if (!read_number(line, "pid", &pid))
		return true;
	/* What it executes begins anew. */
	if (is_true(line, "command")) {
		extents->pid = pid;
		extents->count = 0;
		extents->complete = !is_true(line, "maps");
	} else if (pid == extents->pid && is_true(line, "complete")) {
		extents->complete = true;
	} else if (pid == extents->pid && read_number(line, "start", &extent.start) &&
		   read_number(line, "end", &extent.end)) {
		if (extents->count == EXTENTS_MAX)
			return false;
		extents->list[extents->count++] = extent;
	}
	return true;
}

/* false: nothing is known. */
static bool read_extents(FILE *report, struct extents *extents)
{
	char text[PAGE_REPORT_LINE_MAX];
	struct json_object *line;
	bool fits = true;
	size_t bytes = 0;

	rewind(report);
	while (fits && fgets(text, sizeof(text), report)) {
		bytes += strlen(text);
		line = json_tokener_parse(text);
		fits = bytes < PAGE_REPORT_BYTES_MAX &&
		       (!json_object_is_type(line, json_type_object) || take_line(line, extents));
		json_object_put(line);
	}
	return fits && extents->pid && extents->complete;
}

static bool is_in(const struct extents *extents, uint64_t at)
{
	size_t i = 0;

	while (i < extents->count && (at < extents->list[i].start || at >= extents->list[i].end))
		i++;
	return i < extents->count;
}

void page_hits__count(FILE *report, const struct timer_result *samples, struct page_hits *hits)
{
	struct extents *extents = samples->count && report ? calloc(1, sizeof(*extents)) : NULL;
	size_t i;

	*hits = (struct page_hits){0};
	if (extents && read_extents(report, extents)) {
		for (i = 0; i < samples->count; i++) {
			const struct timer_address *address = &samples->addresses[i];

			if ((uint64_t)address->pid != extents->pid)
				continue;
			hits->seconds += samples->seconds_each;
			hits->samples += address->at != 0;
			hits->hits += address->at && is_in(extents, address->at);
		}
	}
	free(extents);
}
