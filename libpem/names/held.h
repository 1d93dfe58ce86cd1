/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* held.h - who can exchange what lies at a path (held.c) */
#ifndef PEM_NAMES_HELD_H
#define PEM_NAMES_HELD_H

#include <pem/names.h>

#include <stdbool.h>
#include <stdint.h>

/* The user "nobody", who stands for any user. */
#define PEM_NOBODY 65534u

/*
 * Can root and this user alone change what lies at an absolute path: a regular file, or nothing?
 * If not, *holder is set to a user who can, PEM_NOBODY if it may be anyone; holder may be NULL.
 * Nothing is opened, and no file system that another user's program serves is asked.
 */
bool pem_path__is_held(const char *path, uint32_t *holder);

/* As pem_object__open, without debug files that another user can exchange. */
struct pem_object *pem_object__open_held(const struct pem_object_query *query,
					 struct pem_error *error);

#endif
