/* SPDX-License-Identifier: MIT */
/* rank_test.h - are values below others, by their ranks? */
#ifndef PEM_SHARED_RANK_TEST_H
#define PEM_SHARED_RANK_TEST_H

#include <stddef.h>

#define PEM_RANK_TEST_VALUES 24u /* of each side; those after them are left out */

/*
 * The probability that count values are, by their ranks, at least this far below other_count values
 * by chance (Mann and Whitney, Ann. Math. Stat. 18, 1947): exact, also if values are equal. No
 * value is NAN. Returns 1 if there is no memory for it.
 */
double pem_rank_test(const double *values, size_t count, const double *others, size_t other_count);

#endif
