/* SPDX-License-Identifier: MIT */
/* compare.h - compares specs with an older version of them: does every event keep its identity? */
#ifndef PEM_CODEGEN_COMPARE_H
#define PEM_CODEGEN_COMPARE_H

#include "model.h"

/*
 * Note an error in set for each change since old that would make records of one identity differ.
 * Such changes are: an event is gone; its version is lower; or, with the same version, fields were
 * added, removed or moved, or a field changed its name, type, number of elements, unit, or the
 * meaning of a label's value. A deprecated event or a label that is gone is a warning.
 *
 * Both sets are resolved, laid out, and without errors. whole: set must have every provider of old.
 * Else providers that set lacks are skipped.
 */
void pem_spec_set__compare(struct pem_spec_set *set, const struct pem_spec_set *old, int whole);
/*
 * Note an error for each event of set that pem's catalogue also has: always if another provider
 * has it there, else if the two would make records of one identity differ. The set is resolved,
 * checked and laid out. If it has errors, only names and providers are compared.
 */
void pem_spec_set__compare_catalogue(struct pem_spec_set *set);

#endif
