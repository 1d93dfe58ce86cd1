/* SPDX-License-Identifier: MIT */
/* condition.h - conditions on the parameters of a space: "threads > 4 and mode = fast" */
#ifndef SETTINGS_CONDITION_H
#define SETTINGS_CONDITION_H

#include <pem/explore.h>
#include <pem/pem.h>

#include <stdbool.h>

struct settings_condition;

/*
 * Read a condition, such as "mode = fast and !verbose or threads > 4": comparisons of a parameter
 * with a value or with another parameter; 'and' binds more tightly than 'or'. A parameter alone
 * holds if its value is not off, no, false, none, 0 or "". NULL with error and *at, the byte where
 * the mistake is.
 */
struct settings_condition *settings_condition__parse(const char *text,
						     const struct pem_explore_space *space,
						     size_t *at, struct pem_error *error);
/*
 * Does it hold? means_something[i]: 0: the parameter has no meaning in this configuration, and no
 * comparison with it holds; NULL: all have one.
 */
bool settings_condition__holds(const struct settings_condition *condition,
			       const struct pem_explore_space *space, const uint32_t *levels,
			       const bool *means_something);
void settings_condition__free(struct settings_condition *condition);

#endif
