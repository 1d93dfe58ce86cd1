/* SPDX-License-Identifier: MIT */
/*
 * timer.h - which data a command is at when a timer of its processor time rings
 *
 * A processor takes an interrupt when the oldest instruction that it works on has finished, so the
 * one before the sampled address is the one that it waited for. The code around the address is read
 * from the process while that lives, and decoded after the end of the command. Where the operand in
 * memory lies is computed from the sampled registers, as the processor does. So data are found by
 * the time that they cost, not by how often they are used.
 *
 * Samples cost too little to be felt and are too few to model with: they tell whether a run is
 * still at the data that were observed. Not here: whose data an address is of.
 */
#ifndef PAGE_TIMER_H
#define PAGE_TIMER_H

#include <pem/pem.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A prime, so that no program keeps step with it. A sample costs up to 20 us on a virtual machine:
 * 0.2 % of the time.
 */
#define TIMER_RATE_HZ 101u
/* That are kept: of a longer command each second, fourth, ... one. */
#define TIMER_SAMPLES_MAX 2048u

struct timer;

/* One sample that was kept. */
struct timer_address {
	pid_t pid;
	uint64_t at; /* of the operand; 0: there is none in memory, or it is not known */
};

struct timer_result {
	struct timer_address *addresses; /* by process and code */
	size_t count;
	/* Time of a processor that each of them stands for. Lost ones stand for none. */
	double seconds_each;
};

/*
 * Sample the program that the calling thread starts next by fork or spawn and exec, with all that
 * descends from it, at rate_hz samples for each second that a processor spends in one of them. A
 * thread of this process, which takes no signals, collects them until timer__stop.
 *
 * Returns the timer, for timer__stop, or NULL with errno and error: EOPNOTSUPP this machine's
 * instructions can't be decoded, EACCES or EPERM the kernel does not allow it, ENOBUFS nor so much
 * locked memory, E2BIG it has more processors than are worth one event each at every fork.
 */
struct timer *timer__start(uint32_t rate_hz, struct pem_error *error);
/*
 * End, decode, and free the timer. NULL does nothing and finds nothing. The caller frees
 * result->addresses; without memory there are none. A process may have its code where reading waits
 * for somebody, such as a file system of its own: after a second nothing is found, and thread and
 * memory are left behind.
 */
void timer__stop(struct timer *timer, struct timer_result *result);

#endif
