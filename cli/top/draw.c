// SPDX-License-Identifier: MIT
/*
 * draw.c - draws pem top's screen: a head, a list, and keys at the bottom
 *
 * On a narrow terminal columns are removed, the least important first. The name and the rate stay.
 */
#include "screen.h"

#include <curses.h>
#include <string.h>

#define NAME_LEAST 16
#define HEAD 4 /* lines above the list */

struct column {
	const char *title;
	int width;
	int keep; /* a higher number is removed later */
	enum top_order order; /* TOP_ORDERS: it can't be sorted by */
	const char *(*text)(const struct top *top, const struct top_row *row);
};

/* --- text --- */

/* Bytes of this number of characters from the start. */
static size_t bytes_of(const char *text, size_t characters)
{
	size_t i;

	for (i = 0; text[i] != '\0'; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80 && characters-- == 0)
			break;
	return i;
}

void screen_put(const struct screen *s, int y, int x, int width, enum cli_align align,
		const char *text)
{
	size_t n = cli_columns(text);

	if (width <= 0 || y < 0 || y >= s->height || x >= s->width)
		return;
	if (x + width > s->width)
		width = s->width - x;
	if (n <= (size_t)width) {
		mvaddstr(y, align == CLI_RIGHT ? x + width - (int)n : x, text);
		return;
	}
	mvaddnstr(y, x, text, (int)bytes_of(text, (size_t)width - 1));
	addstr(s->utf8 ? "\xe2\x80\xa6" : "~");
}

static const char *pid_of(const struct top *top, const struct top_row *row)
{
	(void)top;
	return row->pid != 0 && row->pid != TOP_ENDED ? cli_format("%u", row->pid) : "";
}

static const char *tid_of(const struct top *top, const struct top_row *row)
{
	(void)top;
	if (row->tid != 0)
		return cli_format("%u", row->tid);
	return row->pid == 0           ? cli_format("CPU %u", row->cpu)
	       : row->pid == TOP_ENDED ? ""
				       : "ended";
}

static const char *threads_of(const struct top *top, const struct top_row *row)
{
	(void)top;
	return row->threads != 0 ? cli_format("%u", row->threads) : "";
}

static const char *layer_rate(const struct top_row *row, unsigned int layer)
{
	return row->layer_rate[layer] > 0 ? cli_format("%s/s", top_number(row->layer_rate[layer]))
					  : "";
}

static const char *app_rate(const struct top *top, const struct top_row *row)
{
	(void)top;
	return layer_rate(row, 0);
}

static const char *os_rate(const struct top *top, const struct top_row *row)
{
	(void)top;
	return layer_rate(row, 1);
}

static const char *share_of(const struct top *top, const struct top_row *row)
{
	(void)top;
	return row->share > 0 ? cli_percent(row->share) : "";
}

/* --- columns --- */

static const struct column by_event[] = {
	{"RATE", 10, 9, TOP_RATE, top_rate},   {"SHARE", 8, 3, TOP_ORDERS, share_of},
	{"TOTAL", 9, 6, TOP_TOTAL, top_total}, {"SUM/S", 12, 5, TOP_SUM, top_sum_rate},
	{"MEAN", 9, 4, TOP_MEAN, top_mean},    {NULL, 0, 0, TOP_ORDERS, NULL},
};
static const struct column by_process[] = {
	{"PID", 8, 8, TOP_ORDERS, pid_of},    {"THREADS", 7, 3, TOP_ORDERS, threads_of},
	{"RATE", 10, 9, TOP_RATE, top_rate},  {"TOTAL", 9, 6, TOP_TOTAL, top_total},
	{"APP", 10, 5, TOP_ORDERS, app_rate}, {"OS", 10, 4, TOP_ORDERS, os_rate},
	{NULL, 0, 0, TOP_ORDERS, NULL},
};
static const struct column by_thread[] = {
	{"PID", 8, 7, TOP_ORDERS, pid_of},    {"TID", 8, 8, TOP_ORDERS, tid_of},
	{"RATE", 10, 9, TOP_RATE, top_rate},  {"TOTAL", 9, 6, TOP_TOTAL, top_total},
	{"APP", 10, 5, TOP_ORDERS, app_rate}, {"OS", 10, 4, TOP_ORDERS, os_rate},
	{NULL, 0, 0, TOP_ORDERS, NULL},
};
/* For one event. */
static const struct column one_by_process[] = {
	{"PID", 8, 8, TOP_ORDERS, pid_of},       {"THREADS", 7, 3, TOP_ORDERS, threads_of},
	{"RATE", 10, 9, TOP_RATE, top_rate},     {"TOTAL", 9, 6, TOP_TOTAL, top_total},
	{"SUM/S", 12, 5, TOP_SUM, top_sum_rate}, {"MEAN", 9, 4, TOP_MEAN, top_mean},
	{NULL, 0, 0, TOP_ORDERS, NULL},
};
static const struct column one_by_thread[] = {
	{"PID", 8, 7, TOP_ORDERS, pid_of},       {"TID", 8, 8, TOP_ORDERS, tid_of},
	{"RATE", 10, 9, TOP_RATE, top_rate},     {"TOTAL", 9, 6, TOP_TOTAL, top_total},
	{"SUM/S", 12, 5, TOP_SUM, top_sum_rate}, {"MEAN", 9, 4, TOP_MEAN, top_mean},
	{NULL, 0, 0, TOP_ORDERS, NULL},
};

static const struct column *columns_of(const struct top_view *view)
{
	if (view->by == TOP_BY_EVENT)
		return by_event;
	if (view->event != TOP_NONE)
		return view->by == TOP_BY_PROCESS ? one_by_process : one_by_thread;
	return view->by == TOP_BY_PROCESS ? by_process : by_thread;
}

/* Find the columns that fit: bit i of the result. *name is the width left for the name. */
static unsigned int fitting(const struct column *columns, int width, int *name)
{
	unsigned int i, set = 0, least;

	*name = width;
	for (i = 0; columns[i].title != NULL; i++) {
		set |= 1u << i;
		*name -= columns[i].width + 1;
	}
	while (*name < NAME_LEAST && set != 0) {
		least = UINT32_MAX;
		for (i = 0; columns[i].title != NULL; i++)
			if ((set & 1u << i) != 0 &&
			    (least == UINT32_MAX || columns[i].keep < columns[least].keep))
				least = i;
		if (columns[least].keep == 9)
			break;
		set &= ~(1u << least);
		*name += columns[least].width + 1;
	}
	return set;
}

/* --- parts of the screen --- */

static const char *view_name(const struct screen *s, const struct top_view *view)
{
	static const char *const names[] = {"events", "processes", "threads"};
	const struct top *top = s->top;
	const char *of = "";

	if (view->event != TOP_NONE)
		of = cli_format(" of %s", cli_event_name(top->events[view->event].event));
	if (view->tid != TOP_NONE)
		return cli_format("%s%s of thread %u", names[view->by], of, view->tid);
	if (view->pid == TOP_ENDED || view->pid == 0)
		return cli_format("%s%s of %s", names[view->by], of,
				  view->pid == 0 ? "the kernel" : "processes that ended");
	if (view->pid != TOP_NONE)
		return cli_format("%s%s of process %u", names[view->by], of, view->pid);
	return cli_format("%s%s", names[view->by], of);
}

/* Draw how many processes and threads raised events. */
static void draw_counts(const struct screen *s, int y)
{
	static const struct top_view all = {TOP_BY_PROCESS, TOP_NONE, TOP_NONE, TOP_NONE};
	struct top unfiltered = *s->top;
	struct top_rows rows = {0};
	double layers[TOP_LAYERS] = {0};
	uint32_t processes = 0, threads = 0;
	unsigned int layer;
	const char *text;
	int x = 0;
	size_t i;

	*unfiltered.filter = '\0';
	top_rows__make(&unfiltered, &all, &rows);
	for (i = 0; i < rows.count; i++) {
		processes += rows.rows[i].pid != 0 && rows.rows[i].pid != TOP_ENDED;
		threads += rows.rows[i].threads;
		for (layer = 0; layer < TOP_LAYERS; layer++)
			layers[layer] += rows.rows[i].layer_rate[layer];
	}
	top_rows__free(&rows);
	for (layer = 0; layer < TOP_LAYERS; layer++) {
		if (layer > 1 && layers[layer] <= 0)
			continue;
		text = cli_format("%s %s/s   ", top_layers[layer], top_number(layers[layer]));
		screen_put(s, y, x, s->width - x, CLI_LEFT, text);
		x += (int)cli_columns(text);
	}
	text = cli_format("%u process%s, %u thread%s", processes, processes == 1 ? "" : "es",
			  threads, threads == 1 ? "" : "s");
	if (s->top->unavailable != 0)
		text = cli_format("%s; %zu events can't be had here", text, s->top->unavailable);
	screen_put(s, y, x, s->width - x, CLI_LEFT, text);
}

static void draw_head(const struct screen *s)
{
	const struct top *top = s->top;
	const char *state = s->ended ? "ended" : s->paused ? "paused" : "", *when;

	attron(A_BOLD);
	screen_put(s, 0, 0, s->width, CLI_LEFT, cli_format("pem top: %s", top->target));
	attroff(A_BOLD);
	when = cli_format(" %s%s%s", state, *state != '\0' ? ", " : "",
			  cli_duration(top->now.time_ns > top->start_ns
					       ? top->now.time_ns - top->start_ns
					       : 0));
	screen_put(s, 0, s->width - (int)cli_columns(when), (int)cli_columns(when), CLI_RIGHT,
		   when);
	draw_counts(s, 1);
	if (s->colour)
		attron(COLOR_PAIR(1));
	screen_put(s, 2, 0, s->width, CLI_LEFT,
		   cli_format("%s%s%s%s", view_name(s, &s->views[s->depth]),
			      *top->filter != '\0' ? ", with '" : "", top->filter,
			      *top->filter != '\0' ? "' in the name" : ""));
	if (s->colour)
		attroff(COLOR_PAIR(1));
}

static void draw_titles(const struct screen *s, const struct column *columns, unsigned int set,
			int name)
{
	static const char *const titles[] = {"EVENT", "PROCESS", "PROCESS"};
	const char *mark = s->top->reverse ? (s->utf8 ? "\xe2\x96\xb4" : "^")
					   : (s->utf8 ? "\xe2\x96\xbe" : "v");
	unsigned int i;
	int x = name;

	attron(s->colour ? (int)COLOR_PAIR(2) : (int)A_REVERSE);
	mvhline(HEAD - 1, 0, ' ', s->width);
	screen_put(s, HEAD - 1, 0, name, CLI_LEFT,
		   cli_format("%s%s", titles[s->views[s->depth].by],
			      s->top->order == TOP_NAME ? mark : ""));
	for (i = 0; columns[i].title != NULL; i++) {
		if ((set & 1u << i) == 0)
			continue;
		screen_put(s, HEAD - 1, x + 1, columns[i].width, CLI_RIGHT,
			   cli_format("%s%s", columns[i].title,
				      columns[i].order == s->top->order ? mark : ""));
		x += columns[i].width + 1;
	}
	attroff(s->colour ? (int)COLOR_PAIR(2) : (int)A_REVERSE);
}

static void draw_row(const struct screen *s, const struct top_row *row, int y,
		     const struct column *columns, unsigned int set, int name, bool marked)
{
	/* Rows without a present rate are dim. */
	attr_t attribute = (row->is_layer    ? A_BOLD
			    : row->rate <= 0 ? A_DIM
					     : 0) |
			   (marked ? A_REVERSE : 0);
	bool tree = s->views[s->depth].by == TOP_BY_EVENT && s->views[s->depth].pid == TOP_NONE;
	unsigned int i;
	int x = name;

	attron(attribute);
	if (marked)
		mvhline(y, 0, ' ', s->width);
	if (row->is_layer)
		screen_put(s, y, 0, name, CLI_LEFT,
			   cli_format("%s %s", s->top->folded[row->layer] ? "+" : "-",
				      top_name(s->top, row)));
	else
		screen_put(s, y, tree ? 2 : 0, name - (tree ? 2 : 0), CLI_LEFT,
			   top_name(s->top, row));
	for (i = 0; columns[i].title != NULL; i++) {
		if ((set & 1u << i) == 0)
			continue;
		screen_put(s, y, x + 1, columns[i].width, CLI_RIGHT, columns[i].text(s->top, row));
		x += columns[i].width + 1;
	}
	attroff(attribute);
}

static void draw_foot(const struct screen *s)
{
	const struct top_view *view = &s->views[s->depth];
	const char *text =
		"q quit  ? help  / filter  s sort  r reverse  Tab view  Enter more  Space "
		"pause";

	if (s->filtering) {
		screen_put(s, s->height - 1, 0, s->width, CLI_LEFT,
			   cli_format("filter: %s_   (Enter keeps it, Esc clears it)",
				      s->top->filter));
		return;
	}
	if (*s->message != '\0')
		text = s->message;
	else if (view->event != TOP_NONE)
		text = "q quit  ? help  Esc back  Tab by thread  a another field  s sort  Space "
		       "pause";
	else if (s->depth != 0)
		text = "q quit  ? help  Esc back  / filter  s sort  Enter more  Space pause";
	attron(A_DIM);
	screen_put(s, s->height - 1, 0, s->width, CLI_LEFT, text);
	attroff(A_DIM);
}

static void draw_list(struct screen *s)
{
	const struct column *columns = columns_of(screen_view(s));
	unsigned int set;
	int name, i;

	set = fitting(columns, s->width, &name);
	draw_titles(s, columns, set, name);
	for (i = 0; i < s->list_height && s->first + (size_t)i < s->rows.count; i++)
		draw_row(s, &s->rows.rows[s->first + (size_t)i], s->list_top + i, columns, set,
			 name, s->first + (size_t)i == s->selected);
	if (s->rows.count == 0) {
		const char *why = top_why_empty(s->top);

		screen_put(s, s->list_top, 0, s->width, CLI_LEFT,
			   *s->top->filter != '\0'  ? "nothing passes the filter"
			   : s->top->now.count == 0 ? "no event came yet; z shows all there are"
						    : "none came");
		if (why != NULL && *s->top->filter == '\0')
			screen_put(s, s->list_top + 1, 0, s->width, CLI_LEFT, why);
	}
}

/* Scroll so that the marked row is visible. */
static void scroll_to_mark(struct screen *s)
{
	size_t room = s->list_height > 0 ? (size_t)s->list_height : 1;

	if (s->selected >= s->rows.count)
		s->selected = s->rows.count != 0 ? s->rows.count - 1 : 0;
	if (s->selected < s->first)
		s->first = s->selected;
	if (s->selected >= s->first + room)
		s->first = s->selected - room + 1;
	if (s->first + room > s->rows.count)
		s->first = s->rows.count > room ? s->rows.count - room : 0;
}

void screen_draw(struct screen *s)
{
	int histogram = 0;

	getmaxyx(stdscr, s->height, s->width);
	erase();
	s->list_top = HEAD;
	s->list_height = s->height - HEAD - 1;
	if (screen_view(s)->event != TOP_NONE && s->list_height >= 8) {
		/* The list takes only what it needs. The histogram can use the rest. */
		int most = s->list_height / 2;

		if (s->rows.count + 1 < (size_t)most)
			most = (int)s->rows.count + 1;
		histogram = s->list_height - (most > 3 ? most : 3);
		s->list_height -= histogram;
	}
	scroll_to_mark(s);
	if (s->helping) {
		screen_help(s);
	} else {
		draw_head(s);
		draw_list(s);
		if (histogram != 0)
			screen_histogram(s, s->list_top + s->list_height, histogram);
		draw_foot(s);
	}
	refresh();
}
