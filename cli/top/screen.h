/* SPDX-License-Identifier: MIT */
/* screen.h - what the parts of pem top's screen share. It is built only with ncurses. */
#ifndef PEM_CLI_TOP_SCREEN_H
#define PEM_CLI_TOP_SCREEN_H

#include "top.h"

#define SCREEN_VIEWS 4 /* nested views */

struct screen {
	struct top *top;
	struct top_view views[SCREEN_VIEWS];
	unsigned int depth; /* of the current view */
	struct top_rows rows;
	size_t selected, first; /* rows: the marked one, and the first visible one */
	/* The user moved the mark. It then stays on its row, not at its position. */
	bool moved;
	bool paused, ended, helping, filtering, quit;
	bool utf8, colour;
	char message[160]; /* shown until the next key */
	uint64_t interval_ns;
	int height, width, list_top, list_height;
};

static inline struct top_view *screen_view(struct screen *s)
{
	return &s->views[s->depth];
}

/*
 * Print text at a position in width columns. Longer text is cut with a visible mark. Attributes are
 * those of ncurses.
 */
void screen_put(const struct screen *s, int y, int x, int width, enum cli_align align,
		const char *text);
void screen_draw(struct screen *s);
/* Make the rows from the samples again. The mark stays on its row. */
void screen_refresh(struct screen *s);
void screen_help(const struct screen *s);
/* Draw the histogram of the view's event in lines y to y + height - 1. */
void screen_histogram(const struct screen *s, int y, int height);

/* Handle a key. */
void screen_key(struct screen *s, int key);

#endif
