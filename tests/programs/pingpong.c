/* SPDX-License-Identifier: MIT */
/*
 * pingpong.c - two threads on two CPUs, of which always one runs, that raise events and make system
 * calls in turn
 *
 *	pingpong spin COUNT    the turn is handed over through memory: nothing but the caches lies
 *			       between two steps
 *	pingpong pipe COUNT    through pipes: the kernel wakes the other
 *
 * A turn is four steps: a tick, a call, a tick, a call (close(SIGNATURE | step), which fails). All
 * steps of both threads are numbered from 1 in the one order in which they can have happened.
 */
#define _GNU_SOURCE
#include "probe.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define SIGNATURE 0x40000000u
#define STEPS 4

static struct {
	uint64_t turns;
	bool by_pipe;
	int pipes[2][2];
	_Alignas(64) atomic_ullong turn;
} game;

static void wait_for(unsigned who, uint64_t turn)
{
	char byte;

	if (game.by_pipe) {
		if (turn && read(game.pipes[who][0], &byte, 1) != 1)
			abort();
		return;
	}
	while (atomic_load_explicit(&game.turn, memory_order_acquire) != turn)
		;
}

static void hand_over(unsigned who, uint64_t turn)
{
	if (game.by_pipe && write(game.pipes[!who][1], "", 1) != 1)
		abort();
	atomic_store_explicit(&game.turn, turn + 1, memory_order_release);
}

static void *play(void *arg)
{
	unsigned who = (unsigned)(uintptr_t)arg;
	uint64_t turn, step;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(who, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		exit(77);
	for (turn = who; turn < game.turns; turn += 2) {
		wait_for(who, turn);
		for (step = turn * STEPS + 1; step <= (turn + 1) * STEPS; step += 2) {
			pem_notify_probe_tick(who, step);
			syscall(SYS_close, SIGNATURE | (unsigned)(step + 1));
		}
		hand_over(who, turn);
	}
	return NULL;
}

static int run(uint64_t count, bool by_pipe)
{
	pthread_t threads[2];
	uintptr_t i;

	game.turns = count;
	game.by_pipe = by_pipe;
	if (pipe(game.pipes[0]) || pipe(game.pipes[1]))
		abort();
	for (i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, play, (void *)i))
			abort();
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int run_spin(uint64_t count, char **argv)
{
	(void)argv;
	return run(count, false);
}

static int run_pipe(uint64_t count, char **argv)
{
	(void)argv;
	return run(count, true);
}

int main(int argc, char **argv)
{
	static const struct probe_mode modes[] = {
		{"spin", run_spin}, {"pipe", run_pipe}, {NULL, NULL}};

	return probe_main(modes, argc, argv);
}
