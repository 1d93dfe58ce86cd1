/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * coarse_clock.h - a thread that writes the cycle counter to memory each microsecond
 *
 * Events that take their time from there need not read the counter.
 */
#ifndef PEM_COARSE_CLOCK_H
#define PEM_COARSE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define PEM_COARSE_STEP_NS 1000u
#define PEM_COARSE_LATE_STEPS 10u

struct pem_coarse_clock {
	pthread_t thread;
	bool is_running, ends;
	bool begins_anew; /* the thread is to forget the times below */
	uint64_t *word;
	uint64_t step_cycles;
	uint64_t greatest_cycles; /* the longest time for which the word stood still */
	uint64_t
		late_cycles; /* the sum of such times that were longer than PEM_COARSE_LATE_STEPS */
};

/*
 * Start the thread, which takes all of a CPU. hz: rate of the counter. The word is advanced until
 * __stop. 0, or -errno.
 */
int pem_coarse_clock__start(struct pem_coarse_clock *clock, uint64_t *word, uint64_t hz);
/* Forget for how long the word stood still until now. */
void pem_coarse_clock__begin(struct pem_coarse_clock *clock);
/* End the thread, if there is one. */
void pem_coarse_clock__stop(struct pem_coarse_clock *clock);
/* Return for how long in all the word was behind by more than PEM_COARSE_LATE_STEPS. */
uint64_t pem_coarse_clock__late_cycles(const struct pem_coarse_clock *clock);
/* Return by how much the word was behind at most; 0: it never ran. */
uint64_t pem_coarse_clock__error_cycles(const struct pem_coarse_clock *clock);

#endif
