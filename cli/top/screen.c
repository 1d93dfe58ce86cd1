// SPDX-License-Identifier: MIT
/*
 * screen.c - pem top's screen: begins and ends it, and its main loop
 *
 * Not here: drawing (draw.c), keys (keys.c). ncurses sends to the terminal only what has changed.
 */
#include "screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#define WORK_MS 100 /* longest wait before the session's work */

static volatile sig_atomic_t stopped_by;

static void stop(int number)
{
	stopped_by = number;
}

int top_screen__check(void)
{
	const char *term = getenv("TERM");
	int found;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return cli_error(
			CLI_NOT_HERE,
			"pem top draws on a terminal, and standard %s is none; 'pem stat -i "
			"1000' prints lines, 'pem top --once' a table",
			isatty(STDIN_FILENO) ? "output" : "input");
	if (setupterm(NULL, STDOUT_FILENO, &found) == ERR || cursor_address == NULL)
		return cli_error(
			CLI_NOT_HERE,
			"TERM=%s can't place text on the screen, which pem top needs; 'pem stat "
			"-i 1000' prints lines",
			term != NULL ? term : "");
	del_curterm(cur_term);
	return CLI_DONE;
}

static void catch_signals(void (*handler)(int))
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = handler};
	size_t i;

	sigemptyset(&action.sa_mask);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

/* False: no memory, or the terminal type is unknown after all. */
static bool begin(struct screen *s, SCREEN **made)
{
	setlocale(LC_CTYPE, "");
	s->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	*made = newterm(NULL, stdout, stdin);
	if (*made == NULL)
		return false;
	set_term(*made);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	s->colour = has_colors() && (getenv("NO_COLOR") == NULL || *getenv("NO_COLOR") == '\0');
	if (s->colour) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_CYAN, -1);
		init_pair(2, COLOR_BLACK, COLOR_CYAN);
	}
	catch_signals(stop);
	return true;
}

static bool read_keys(struct screen *s)
{
	int key;
	bool any = false;

	while (!s->quit && (key = getch()) != ERR) {
		any = true;
		screen_key(s, key);
	}
	return any;
}

/* Wait for a key or for work. False: the terminal is gone. */
static bool wait_for_key(uint64_t until_ns)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now = cli_now_ns();
	int ms = now >= until_ns ? 0 : (int)((until_ns - now + 999999) / 1000000);

	if (poll(&in, 1, ms < WORK_MS ? ms : WORK_MS) < 0)
		return errno == EINTR;
	return (in.revents & POLLIN) != 0 || (in.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static void loop(struct screen *s, bool (*tick)(void *arg), void *arg)
{
	uint64_t next = cli_now_ns() + s->interval_ns / 4; /* show the first screen soon */
	bool dirty = true;

	while (!s->quit && stopped_by == 0) {
		uint64_t now = cli_now_ns();

		if (!s->ended && !tick(arg)) {
			s->ended = true;
			next = now;
		}
		if (now >= next) {
			if (!s->paused) {
				top__sample(s->top);
				screen_refresh(s);
				s->paused |= s->ended; /* the last screen stays */
				dirty = true;
			}
			next += (now - next) / s->interval_ns * s->interval_ns + s->interval_ns;
		}
		if (dirty)
			screen_draw(s);
		if (!wait_for_key(next))
			stop(SIGHUP);
		dirty = read_keys(s);
	}
}

int top_screen__run(struct top *top, uint64_t interval_ns, bool (*tick)(void *arg), void *arg)
{
	struct screen s = {.top = top, .interval_ns = interval_ns};
	SCREEN *screen;

	s.views[0] = (struct top_view){TOP_BY_EVENT, TOP_NONE, TOP_NONE, TOP_NONE};
	if (!begin(&s, &screen))
		return cli_error(CLI_NOT_HERE, "this terminal can't be used");
	loop(&s, tick, arg);
	endwin();
	delscreen(screen);
	catch_signals(SIG_DFL);
	top_rows__free(&s.rows);
	return stopped_by != 0 ? 128 + stopped_by : CLI_DONE;
}
