/* SPDX-License-Identifier: MIT */
/*
 * screen.h - what the parts of pem top's screen share; none of it is built without ncurses
 */
#ifndef PEM_CLI_TOP_SCREEN_H
#define PEM_CLI_TOP_SCREEN_H

#include "top.h"

#define SCREEN_VIEWS 4 /* one inside of another */

struct screen {
	struct top *top;
	struct top_view views[SCREEN_VIEWS];
	unsigned int depth; /* of the view that is shown */
	struct top_rows rows;
	size_t selected, first; /* rows: the marked one, and the one at the top of the list */
	bool moved; /* the mark follows its row, not the place on the screen */
	bool paused, ended, helping, filtering, quit;
	bool utf8, colour;
	char message[160]; /* until the next key */
	uint64_t interval_ns;
	int height, width, list_top, list_height;
};

static inline struct top_view *screen_view(struct screen *s)
{
	return &s->views[s->depth];
}

/*
 * Text at a place, in so many columns; what exceeds them is cut, and one sees that. Attributes as
 * ncurses has them.
 */
void screen_put(const struct screen *s, int y, int x, int width, enum cli_align align,
		const char *text);
void screen_draw(struct screen *s);
/* Rows anew from the samples; the mark stays on its row. */
void screen_refresh(struct screen *s);
void screen_help(const struct screen *s);
/* The histogram of the event that the view is of, in lines y to y + height - 1. */
void screen_histogram(const struct screen *s, int y, int height);

/* Do what a key asks for. */
void screen_key(struct screen *s, int key);

#endif
