// SPDX-License-Identifier: MIT
/*
 * histogram.c - a log2 histogram of an event's attribute, and the page of keys
 */
#include "screen.h"

#include <curses.h>
#include <errno.h>
#include <string.h>

#define BUCKETS 65
#define LABEL 22 /* "1023 KiB to  64.0 MiB" */

/* The least value of a bucket. */
static const char *bound(const struct top_event *e, unsigned int bucket)
{
	const char *unit = top_unit(e);
	double value = bucket == 0 ? 0 : 1;
	unsigned int i;

	for (i = 1; i < bucket; i++)
		value *= 2;
	if (bucket < 64 && (strcmp(unit, "bytes") == 0 || strcmp(unit, "ns") == 0))
		return cli_quantity((uint64_t)value, unit);
	return top_number(value);
}

/* Draw a bar of this many eighths of a column. */
static void draw_bar(const struct screen *s, int y, int x, unsigned int eighths)
{
	static const char *const parts[] = {"",
					    "\xe2\x96\x8f",
					    "\xe2\x96\x8e",
					    "\xe2\x96\x8d",
					    "\xe2\x96\x8c",
					    "\xe2\x96\x8b",
					    "\xe2\x96\x8a",
					    "\xe2\x96\x89"};
	unsigned int i;

	move(y, x);
	if (s->colour)
		attron(COLOR_PAIR(1));
	for (i = 0; i < eighths / 8; i++)
		addstr(s->utf8 ? "\xe2\x96\x88" : "#");
	if (s->utf8)
		addstr(parts[eighths % 8]);
	else if (eighths % 8 >= 4 || (eighths != 0 && eighths < 8))
		addstr("#");
	if (s->colour)
		attroff(COLOR_PAIR(1));
}

static void draw_buckets(const struct screen *s, const struct top_event *e,
			 const struct pem_histogram *h, int y, int height)
{
	unsigned int first = 0, last = BUCKETS - 1, step, i, j;
	uint64_t most = 0, sums[BUCKETS] = {0};
	int room = s->width - LABEL - 11;

	while (first < last && h->bucket[first] == 0)
		first++;
	while (last > first && h->bucket[last] == 0)
		last--;
	/* Each line holds as many powers of two as needed to show all. */
	step = (last - first) / (unsigned int)height + 1;
	for (i = first; i <= last; i += step) {
		for (j = i; j < i + step && j <= last; j++)
			sums[i] += h->bucket[j];
		if (sums[i] > most)
			most = sums[i];
	}
	for (i = first; i <= last; i += step, y++) {
		const char *label = i == 0 && step == 1 ? "0 or less"
							: cli_format("%9s to %9s", bound(e, i),
								     bound(e, i + step));

		screen_put(s, y, 0, LABEL, CLI_RIGHT, label);
		screen_put(s, y, LABEL, 8, CLI_RIGHT, top_number((double)sums[i]));
		if (room > 0 && most != 0)
			draw_bar(s, y, LABEL + 10,
				 (unsigned int)((double)sums[i] / (double)most * room * 8 + 0.5));
	}
}

void screen_histogram(const struct screen *s, int y, int height)
{
	const struct top_view *view = &s->views[s->depth];
	const struct top_event *e = &s->top->events[view->event];
	struct pem_histogram h = {.size = sizeof(h)};
	uint64_t count = 0;
	unsigned int i;
	int rc;

	if (e->field < 0 || !e->distribution) {
		screen_put(s, y + 1, 0, s->width, CLI_LEFT,
			   "no field of it is a number that a histogram could be made of");
		return;
	}
	rc = pem_statistics__histogram(e->statistics, 0, &h);
	for (i = 0; i < BUCKETS; i++)
		count += h.bucket[i];
	attron(A_BOLD);
	screen_put(s, y + 1, 0, s->width, CLI_LEFT,
		   cli_format("%s of %s%s%s, in all processes, since this was opened",
			      e->event->fields[e->field].name, cli_event_name(e->event),
			      *top_unit(e) != '\0' ? " in " : "", top_unit(e)));
	attroff(A_BOLD);
	if (rc < 0)
		screen_put(s, y + 2, 0, s->width, CLI_LEFT,
			   cli_format("no histogram: %s", strerror(-rc)));
	else if (count == 0)
		screen_put(s, y + 2, 0, s->width, CLI_LEFT, "none came yet");
	else if (height > 2)
		draw_buckets(s, e, &h, y + 2, height - 2);
}

void screen_help(const struct screen *s)
{
	static const char *const lines[] = {
		"Up, Down, PgUp, PgDn  move; Home and End: to the first and last row",
		"Enter                 on an event: who raises it, and a histogram of its",
		"                      sizes; on a process or thread: its events",
		"Esc, Backspace        back",
		"Tab, 1 2 3            by event, by process, by thread",
		"s, <, >               sort by the next column; r: the other way around",
		"/                     only names that contain what you type; Esc clears it",
		"f, F                  fold or unfold this layer; all layers",
		"a                     in an event: the histogram of another field of it",
		"z                     also events that did not come",
		"Space                 pause, and go on",
		"q, Ctrl-C             quit",
		"",
		"RATE is of the last interval, TOTAL since the start. SUM/S and MEAN are of",
		"the event's size or value. A counter's RATE is how fast it grows: of CPU",
		"time, the share of a CPU. Events of no thread are by CPU, or 'ended'.",
	};
	size_t i;

	attron(A_BOLD);
	screen_put(s, 0, 0, s->width, CLI_LEFT, "pem top: keys");
	attroff(A_BOLD);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		screen_put(s, (int)i + 2, 0, s->width, CLI_LEFT, lines[i]);
	attron(A_DIM);
	screen_put(s, s->height - 1, 0, s->width, CLI_LEFT, "any key goes back");
	attroff(A_DIM);
}
