/* SPDX-License-Identifier: MIT */
/*
 * counted.h - counters that a program's threads read at events: what a session tells its programs
 *
 * If a rule of the session's page has PEM_RULE_COUNTERS, the file "counters" of the session
 * directory is an array of struct pem_counter.
 */
#ifndef PEM_COUNTED_H
#define PEM_COUNTED_H

#include <pem/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a rule: before each record that is logged the thread logs what its counters hold. */
#define PEM_RULE_COUNTERS 4u
/*
 * Of an action word with PEM_ACTION_MORE and PEM_ACTION_LOG alone, in place of the field's type:
 * the event has one rule, with PEM_RULE_COUNTERS, and no filter.
 */
#define PEM_ACTION_COUNTED 1u

#define PEM_COUNTERS_MAX 8u
/* A counter, as perf_event_open takes it. */
struct pem_counter {
	uint32_t type;
	uint32_t flags; /* PEM_COUNTER_NO_KERNEL, PEM_COUNTER_NO_USER */
	uint64_t config, config1, config2;
};
#define PEM_COUNTER_NONE 0xffffffffu /* a type: threads can't read this one */
/* A type: config is enum pem_simulated, and the tool of pem/hardware.h counts it. */
#define PEM_COUNTER_SIMULATED 0xfffffffeu
#define PEM_COUNTER_NO_KERNEL 1u /* of the program's own code alone */
#define PEM_COUNTER_NO_USER 2u /* of the kernel's alone */
PEM_STATIC_ASSERT(sizeof(struct pem_counter) == 32, "a counter is 32 bytes");

#ifdef __cplusplus
}
#endif
#endif
