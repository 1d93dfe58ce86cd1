// SPDX-License-Identifier: MIT
/*
 * keys.c - what the keys of pem top do
 */
#include "screen.h"

#include <curses.h>
#include <string.h>

#define ESCAPE 27

static bool same(const struct top_row *a, const struct top_row *b)
{
	return a->event == b->event && a->pid == b->pid && a->tid == b->tid && a->cpu == b->cpu &&
	       a->is_layer == b->is_layer && a->layer == b->layer;
}

void screen_refresh(struct screen *s)
{
	struct top_row marked;
	bool had = s->moved && s->selected < s->rows.count;
	size_t i;

	if (had)
		marked = s->rows.rows[s->selected];
	top_rows__make(s->top, screen_view(s), &s->rows);
	for (i = 0; had && i < s->rows.count; i++)
		if (same(&marked, &s->rows.rows[i])) {
			s->selected = i;
			break;
		}
}

static struct top_row *marked_row(struct screen *s)
{
	return s->selected < s->rows.count ? &s->rows.rows[s->selected] : NULL;
}

static void go_to(struct screen *s, size_t row)
{
	s->selected = row;
	s->moved = row != 0;
}

static void move_by(struct screen *s, int by)
{
	size_t last = s->rows.count != 0 ? s->rows.count - 1 : 0;

	if (by < 0)
		go_to(s, s->selected > (size_t)-by ? s->selected - (size_t)-by : 0);
	else
		go_to(s, s->selected + (size_t)by < last ? s->selected + (size_t)by : last);
}

/* --- views --- */

static void open_view(struct screen *s, struct top_view view)
{
	if (s->depth + 1 == SCREEN_VIEWS)
		return;
	s->views[++s->depth] = view;
	*s->top->filter = '\0';
	s->first = 0;
	go_to(s, 0);
	screen_refresh(s);
}

/* A histogram costs the program time, so it is kept only while it is shown. */
static void measure(struct screen *s, uint32_t event, int field, bool distribution)
{
	struct pem_error error = {{0}};
	int rc = top_event__measure(s->top, event, field, distribution, &error);

	if (rc < 0)
		snprintf(s->message, sizeof(s->message), "no histogram: %.140s",
			 *error.text != '\0' ? error.text : strerror(-rc));
}

static void open_event(struct screen *s, const struct top_row *row)
{
	const struct top_view *view = screen_view(s);
	const struct top_event *e = &s->top->events[row->event];
	struct top_view next = {TOP_BY_PROCESS, row->event, view->pid, view->tid};
	int field = e->field;

	if (row->unavailable)
		return;
	if (view->pid != TOP_NONE)
		next.by = TOP_BY_THREAD;
	if (field < 0 && !e->is_counter)
		field = top_event__next_field(e->event, -1);
	if (field >= 0)
		measure(s, row->event, field, true);
	open_view(s, next);
}

static void enter(struct screen *s)
{
	const struct top_view *view = screen_view(s);
	const struct top_row *row = marked_row(s);

	if (row == NULL)
		return;
	if (row->is_layer) {
		s->top->folded[row->layer] ^= true;
		screen_refresh(s);
	} else if (view->by == TOP_BY_EVENT) {
		open_event(s, row);
	} else if (view->event == TOP_NONE) {
		open_view(s, (struct top_view){TOP_BY_EVENT, TOP_NONE, row->pid,
					       view->by == TOP_BY_THREAD ? row->tid : TOP_NONE});
	}
}

static void back(struct screen *s)
{
	const struct top_view *view = screen_view(s);

	if (*s->top->filter != '\0') {
		*s->top->filter = '\0';
	} else if (s->depth != 0) {
		if (view->event != TOP_NONE)
			measure(s, view->event,
				top_event__natural_field(s->top->events[view->event].event), false);
		s->depth--;
		s->first = 0;
		go_to(s, 0);
	}
	screen_refresh(s);
}

/* Show the view's records summed in another way. */
static void turn(struct screen *s, enum top_by by)
{
	struct top_view *view = screen_view(s);

	if (view->event != TOP_NONE && by == TOP_BY_EVENT)
		by = TOP_BY_PROCESS;
	/* events of one process can only be shown by event */
	if (view->event == TOP_NONE && s->depth != 0)
		return;
	view->by = by;
	go_to(s, 0);
	screen_refresh(s);
}

static void another_field(struct screen *s)
{
	const struct top_view *view = screen_view(s);
	const struct top_event *e;
	int field;

	if (view->event == TOP_NONE || s->top->events[view->event].is_counter)
		return;
	e = &s->top->events[view->event];
	field = top_event__next_field(e->event, e->field);
	if (field < 0 || field == e->field)
		snprintf(s->message, sizeof(s->message), "%s has no other field that is a number",
			 cli_event_name(e->event));
	else
		measure(s, view->event, field, true);
	screen_refresh(s);
}

/* --- what is shown --- */

static void sort_next(struct screen *s, int step)
{
	s->top->order = (enum top_order)(((int)s->top->order + step + TOP_ORDERS) % TOP_ORDERS);
	go_to(s, 0);
	screen_refresh(s);
}

static void fold(struct screen *s, bool all)
{
	const struct top_row *row = marked_row(s);
	unsigned int layer;
	bool open = false;

	if (row == NULL || screen_view(s)->by != TOP_BY_EVENT)
		return;
	if (!all) {
		s->top->folded[row->layer] ^= true;
	} else {
		for (layer = 0; layer < TOP_LAYERS; layer++)
			open |= !s->top->folded[layer];
		for (layer = 0; layer < TOP_LAYERS; layer++)
			s->top->folded[layer] = open;
	}
	screen_refresh(s);
}

static void type_filter(struct screen *s, int key)
{
	char *filter = s->top->filter;
	size_t n = strlen(filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		s->filtering = false;
	} else if (key == ESCAPE) {
		*filter = '\0';
		s->filtering = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		if (n != 0)
			filter[n - 1] = '\0';
	} else if (key >= ' ' && key < 127 && n + 1 < sizeof(s->top->filter)) {
		filter[n] = (char)key;
		filter[n + 1] = '\0';
	}
	go_to(s, 0);
	screen_refresh(s);
}

static bool movement(struct screen *s, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		move_by(s, -1);
		return true;
	case KEY_DOWN:
	case 'j':
		move_by(s, 1);
		return true;
	case KEY_PPAGE:
		move_by(s, -s->list_height);
		return true;
	case KEY_NPAGE:
		move_by(s, s->list_height);
		return true;
	case KEY_HOME:
		go_to(s, 0);
		return true;
	case KEY_END:
		move_by(s, INT32_MAX);
		return true;
	default:
		return false;
	}
}

static void command(struct screen *s, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		s->quit = true;
		break;
	case '?':
	case 'h':
		s->helping = true;
		break;
	case ' ':
		s->paused = !s->paused || s->ended;
		break;
	case '/':
		s->filtering = true;
		break;
	case 's':
	case '>':
		sort_next(s, 1);
		break;
	case '<':
		sort_next(s, -1);
		break;
	case 'r':
		s->top->reverse = !s->top->reverse;
		screen_refresh(s);
		break;
	case 'z':
		s->top->show_zero = !s->top->show_zero;
		screen_refresh(s);
		break;
	case 'f':
	case 'F':
		fold(s, key == 'F');
		break;
	case 'a':
		another_field(s);
		break;
	case '\t':
		turn(s, (enum top_by)((screen_view(s)->by + 1) % TOP_BYS));
		break;
	case '1':
	case '2':
	case '3':
		turn(s, (enum top_by)(key - '1'));
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		enter(s);
		break;
	case ESCAPE:
	case KEY_BACKSPACE:
	case 127:
	case '\b':
	case KEY_LEFT:
		back(s);
		break;
	default:
		break;
	}
}

void screen_key(struct screen *s, int key)
{
	*s->message = '\0';
	if (key == KEY_RESIZE)
		return;
	if (s->helping)
		s->helping = false;
	else if (s->filtering)
		type_filter(s, key);
	else if (!movement(s, key))
		command(s, key);
}
