/* SPDX-License-Identifier: MIT */
/*
 * compare.h - specs against an older form of themselves: does every event keep its identity?
 */
#ifndef PEM_CODEGEN_COMPARE_H
#define PEM_CODEGEN_COMPARE_H

#include "model.h"

/*
 * Note an error in set for every change since old that would make records of one identity differ:
 * an event that is gone or went back in its version, and, where its version is still the same,
 * fields that came, went, moved, or changed their name, type, number of elements, unit, or the
 * meaning of a label's value. A warning where a deprecated event or a label is gone.
 *
 * Both sets are resolved and laid out, and without errors. whole: set is to hold every provider of
 * old; else providers that set does not have are passed over.
 */
void pem_spec_set__compare(struct pem_spec_set *set, const struct pem_spec_set *old, int whole);

#endif
