// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * coarse_clock.c - a thread that writes the cycle counter to memory each microsecond
 *
 * The thread never sleeps: a timer comes some 50 microseconds late, and waking costs more than
 * waiting. While the kernel gives its CPU to another thread, the clock stands still. The trace says
 * for how long.
 */
#include "core/coarse_clock.h"

#include <pem/clock.h>

#include <signal.h>
#include <sys/prctl.h>

static void pause_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* Only this thread writes these. */
static void note(struct pem_coarse_clock *clock, uint64_t still)
{
	if (still > clock->greatest_cycles)
		__atomic_store_n(&clock->greatest_cycles, still, __ATOMIC_RELAXED);
	if (still > PEM_COARSE_LATE_STEPS * clock->step_cycles)
		__atomic_store_n(&clock->late_cycles, clock->late_cycles + still, __ATOMIC_RELAXED);
}

static void *advance(void *arg)
{
	struct pem_coarse_clock *clock = arg;
	uint64_t last = *clock->word, now;

	prctl(PR_SET_NAME, "pem-clock");
	while (!__atomic_load_n(&clock->ends, __ATOMIC_RELAXED)) {
		now = pem_clock();
		if (now - last < clock->step_cycles) {
			pause_cpu();
			continue;
		}
		if (__atomic_exchange_n(&clock->begins_anew, false, __ATOMIC_RELAXED)) {
			__atomic_store_n(&clock->greatest_cycles, 0, __ATOMIC_RELAXED);
			__atomic_store_n(&clock->late_cycles, 0, __ATOMIC_RELAXED);
		}
		__atomic_store_n(clock->word, now, __ATOMIC_RELAXED);
		note(clock, now - last);
		last = now;
	}
	return NULL;
}

int pem_coarse_clock__start(struct pem_coarse_clock *clock, uint64_t *word, uint64_t hz)
{
	sigset_t all, before;
	int result;

	clock->word = word;
	clock->ends = false;
	clock->step_cycles = hz * PEM_COARSE_STEP_NS / 1000000000u;
	clock->greatest_cycles = clock->step_cycles;
	clock->late_cycles = 0;
	__atomic_store_n(word, pem_clock(), __ATOMIC_RELAXED);
	sigfillset(&all);
	/* Another process may truncate the word's file: see fault.c. */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = -pthread_create(&clock->thread, NULL, advance, clock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	clock->is_running = !result;
	return result;
}

void pem_coarse_clock__stop(struct pem_coarse_clock *clock)
{
	if (!clock->is_running)
		return;
	__atomic_store_n(&clock->ends, true, __ATOMIC_RELAXED);
	pthread_join(clock->thread, NULL);
	clock->is_running = false;
}

void pem_coarse_clock__begin(struct pem_coarse_clock *clock)
{
	__atomic_store_n(&clock->begins_anew, true, __ATOMIC_RELAXED);
}

/* For how long the word stands still now; 0: it never ran. */
static uint64_t still_cycles(const struct pem_coarse_clock *clock)
{
	uint64_t last = clock->word ? __atomic_load_n(clock->word, __ATOMIC_RELAXED) : 0;
	uint64_t now = pem_clock();

	/* Counters of two CPUs may differ by a few ticks. */
	return last && now > last ? now - last : 0;
}

uint64_t pem_coarse_clock__late_cycles(const struct pem_coarse_clock *clock)
{
	uint64_t still = still_cycles(clock);

	return __atomic_load_n(&clock->late_cycles, __ATOMIC_RELAXED) +
	       (still > PEM_COARSE_LATE_STEPS * clock->step_cycles ? still : 0);
}

uint64_t pem_coarse_clock__error_cycles(const struct pem_coarse_clock *clock)
{
	uint64_t greatest = __atomic_load_n(&clock->greatest_cycles, __ATOMIC_RELAXED);
	uint64_t still = still_cycles(clock);

	return still > greatest ? still : greatest;
}
