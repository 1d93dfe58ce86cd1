// SPDX-License-Identifier: MIT
/*
 * storm.c - a program that does everything at once to the library inside it, for so long or until
 * it is killed
 *
 * storm MS LETTERS [LIBRARY]; MS 0: for ever. Letters, each for a thread or what it stands for:
 *	t	raises ticks
 *	c	makes threads that raise some, and cancels every third, at once or at its next
 *		cancellation point
 *	f	forks children that raise some and end, or become another program that does
 *	s	a timer whose handler raises a tick, and another signal in the middle of it, three
 *		deep
 *	l	loads a library, has it raise some, and unloads it
 *	p	pauses less: ticks come as fast as they can
 * Says at its end how many threads, children and libraries there were: 'threads N children N
 * libraries N'.
 */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define SHORT 20u /* ticks of who does not live long */

extern char **environ;
static const char *program, *library;
static int stop, hurry;
static uint64_t threads, children, libraries, in_signal;

static int going_on(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *raise_ticks(void *who)
{
	uint64_t n = 0;

	while (going_on()) {
		pem_notify_probe_tick((uintptr_t)who, ++n);
		if (!hurry && n % 200 == 0)
			usleep(300);
	}
	return NULL;
}

static void *live_shortly(void *arg)
{
	int type;

	if (arg)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	probe_raise(20, 1, arg ? 100 * SHORT : SHORT);
	pthread_testcancel();
	return NULL;
}

static void *make_threads(void *who)
{
	pthread_t four[4];
	unsigned i;

	(void)who;
	while (going_on()) {
		for (i = 0; i < 4; i++) {
			if (pthread_create(&four[i], NULL, live_shortly,
					   (void *)(uintptr_t)(i == 3)))
				abort();
		}
		pthread_cancel(four[2]);
		pthread_cancel(four[3]);
		for (i = 0; i < 4; i++)
			pthread_join(four[i], NULL);
		threads += 4;
		if (!hurry)
			usleep(500);
	}
	return NULL;
}

static void *make_children(void *who)
{
	char *argv[] = {(char *)program, (char *)"-1", (char *)"t", NULL};
	volatile unsigned i; /* vfork returns twice */
	pid_t child;

	(void)who;
	for (i = 0; going_on(); i++) {
		if (i % 4 == 3) {
			if (posix_spawn(&child, program, NULL, NULL, argv, environ))
				abort();
		} else if (i % 4 == 2) {
			child = vfork();
			if (!child) {
				execv(program, argv);
				_exit(1);
			}
		} else {
			child = fork();
			if (!child) {
				probe_raise(30, 1, SHORT);
				if (i % 4)
					execv(program, argv);
				_exit(0);
			}
		}
		while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		children++;
		usleep(hurry ? 200 : 3000);
	}
	return NULL;
}

static void on_signal(int number)
{
	int saved = errno;

	pem_notify_probe_tick(40, __atomic_add_fetch(&in_signal, 1, __ATOMIC_RELAXED));
	if (number == SIGALRM)
		raise(SIGUSR1);
	else if (number == SIGUSR1)
		raise(SIGUSR2);
	errno = saved;
}

static void start_timer(void)
{
	struct itimerval timer = {{0, hurry ? 100 : 1000}, {0, 1000}};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void *load_libraries(void *who)
{
	void (*raise_some)(uint64_t, uint64_t, uint64_t);
	void *handle, *symbol;

	while (library && going_on()) {
		handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		symbol = handle ? dlsym(handle, "library_raise") : NULL;
		if (!symbol)
			abort();
		memcpy(&raise_some, &symbol, sizeof(symbol));
		raise_some((uintptr_t)who, 1, SHORT);
		dlclose(handle);
		libraries++;
		if (!hurry)
			usleep(500);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static void *(*const by_letter[128])(void *) = {['t'] = raise_ticks,
							['c'] = make_threads,
							['f'] = make_children,
							['l'] = load_libraries};
	long duration_ms = argc > 2 ? strtol(argv[1], NULL, 10) : -2;
	struct timespec pause = {duration_ms / 1000, duration_ms % 1000 * 1000000};
	pthread_t thread[16];
	uintptr_t i, count = 0;
	void *(*function)(void *);

	if (duration_ms < -1)
		return 64;
	program = argv[0];
	library = argc > 3 ? argv[3] : NULL;
	if (duration_ms < 0) { /* a child of one of these */
		probe_raise(31, 1, SHORT);
		return 0;
	}
	hurry = strchr(argv[2], 'p') != NULL;
	if (strchr(argv[2], 's'))
		start_timer();
	for (i = 0; argv[2][i] && count < 16; i++) {
		function = by_letter[argv[2][i] & 127];
		if (function && pthread_create(&thread[count++], NULL, function, (void *)(i + 1)))
			return 1;
	}
	if (!duration_ms)
		pause.tv_sec = 1000000;
	while (nanosleep(&pause, &pause) && errno == EINTR)
		;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < count; i++)
		pthread_join(thread[i], NULL);
	printf("threads %" PRIu64 " children %" PRIu64 " libraries %" PRIu64 "\n", threads,
	       children, libraries);
	return 0;
}
