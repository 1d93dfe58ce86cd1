/* SPDX-License-Identifier: MIT */
/* hits.c - which timer samples of a run were at the chosen data (apply/apply.h, timer/timer.h) */
#include "program.h"

#include <stdlib.h>
#include <string.h>

/* More than any command reports; those behind them count for nothing. */
#define PLACES_MAX 4096u

struct place {
	pid_t pid;
	uint64_t start, end;
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

/* One that holds nothing, of a process that reached no site. */
static bool is_unused(struct json_object *line, struct place *place)
{
	struct json_object *value;

	place->start = place->end = 0;
	return json_object_object_get_ex(line, "unused", &value);
}

static bool read_place(const char *text, struct place *place)
{
	struct json_object *line = json_tokener_parse(text);
	uint64_t pid;
	bool is_place = json_object_is_type(line, json_type_object) &&
			read_number(line, "pid", &pid) &&
			((read_number(line, "start", &place->start) &&
			  read_number(line, "end", &place->end)) ||
			 is_unused(line, place));

	if (is_place)
		place->pid = (pid_t)pid;
	json_object_put(line);
	return is_place;
}

static size_t read_places(FILE *report, struct place *places)
{
	char line[PAGE_REPORT_LINE_MAX];
	size_t count = 0, bytes = 0;

	rewind(report);
	while (count < PLACES_MAX && bytes < PAGE_REPORT_BYTES_MAX &&
	       fgets(line, sizeof(line), report)) {
		bytes += strlen(line) + 1;
		count += read_place(line, &places[count]);
	}
	return count;
}

/* What a process that reported nothing did, nobody knows. */
static void count_one(const struct place *places, size_t count, const struct timer_address *address,
		      struct page_hits *hits)
{
	bool is_process = false, is_hit = false;
	size_t i;

	for (i = 0; i < count && !is_hit; i++) {
		if (places[i].pid != address->pid)
			continue;
		is_process = true;
		is_hit = places[i].start <= address->at && address->at < places[i].end;
	}
	hits->samples += is_process;
	hits->hits += is_hit;
}

void page_hits__count(FILE *report, const struct timer_result *samples, struct page_hits *hits)
{
	struct place *places = samples->count ? calloc(PLACES_MAX, sizeof(*places)) : NULL;
	size_t i, count = places && report ? read_places(report, places) : 0;

	*hits = (struct page_hits){0};
	for (i = 0; i < samples->count; i++)
		count_one(places, count, &samples->addresses[i], hits);
	free(places);
}
