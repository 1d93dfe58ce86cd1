/* SPDX-License-Identifier: MIT */
/*
 * signals.h - functions by which a program would find that the library uses SIGURG (wake.h): it
 * stops before they are called
 */
#ifndef PAGE_APPLY_SIGNALS_H
#define PAGE_APPLY_SIGNALS_H

struct sigaction;

/* Find the next definitions now: later calls may come from handlers of signals. */
void signals__find(void);
/* The next definition of sigaction. */
int signals__action(int number, const struct sigaction *action, struct sigaction *was);

#endif
