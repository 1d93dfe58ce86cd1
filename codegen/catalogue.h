/* SPDX-License-Identifier: MIT */
/*
 * catalogue.h - finds events of pem's catalogue, for specs that refer to them or repeat them
 *
 * The catalogue's specs travel inside the program. Each is read when one of its events is first
 * asked for. Not thread-safe.
 */
#ifndef PEM_CODEGEN_CATALOGUE_H
#define PEM_CODEGEN_CATALOGUE_H

#include "model.h"
#include "suggest.h"

/*
 * The catalogue's event of this name, which has this number of bytes. The event is resolved and
 * laid out. It is valid until pem_catalogue__cleanup. NULL: the catalogue has none.
 */
const struct pem_spec_event *pem_catalogue__find(const char *name, size_t bytes);
/* Try the names of all events of the catalogue. */
void pem_catalogue__suggest(struct pem_suggestion *near);
/* Is the spec a file of the catalogue, byte by byte? */
int pem_catalogue__has_file(const struct pem_spec *spec);
/* Free all that was read. */
void pem_catalogue__cleanup(void);

#endif
