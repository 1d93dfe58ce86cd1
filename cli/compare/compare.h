/* SPDX-License-Identifier: MIT */
/*
 * compare.h - what goes with what in a trace, and what differs between traces
 *
 * Other rooms include this header alone. The verb pem diff is cli_diff of cli.h.
 */
#ifndef PEM_COMPARE_H
#define PEM_COMPARE_H

#include "cli.h"

/*
 * Read a trace and print which metrics rise and fall with others: with cycles per instruction, with
 * the duration of phases and of other intervals; or with those metrics whose name contains the text
 * with (NULL: those named). json: as an object. Returns a status; an error was printed.
 */
int compare__print_correlation(const char *directory, const char *with, bool json);

#endif
