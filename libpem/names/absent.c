// SPDX-License-Identifier: LGPL-2.1-or-later
/* absent.c - pem/names.h of a pem that was built without libdw: no object has names */
#include "held.h"
#include "probing.h"
#include "segments.h"

#include <pem/names.h>

#include <errno.h>
#include <stdio.h>

struct pem_object *pem_object__open(const struct pem_object_query *query, struct pem_error *error)
{
	(void)query;
	if (error)
		snprintf(error->text, sizeof(error->text),
			 "this pem was built without libdw, which reads names");
	errno = EOPNOTSUPP;
	return NULL;
}

struct pem_object *pem_object__open_held(const struct pem_object_query *query,
					 struct pem_error *error)
{
	return pem_object__open(query, error);
}

void pem_object__close(struct pem_object *object)
{
	(void)object;
}

const char *pem_object__path(const struct pem_object *object)
{
	(void)object;
	return "";
}

uint64_t pem_object__number(const struct pem_object *object)
{
	(void)object;
	return 0;
}

size_t pem_object__build_id(const struct pem_object *object, const uint8_t **build_id)
{
	(void)object;
	*build_id = NULL;
	return 0;
}

unsigned int pem_object__find(struct pem_object *object, uint64_t offset, struct pem_name *names,
			      unsigned int max)
{
	(void)object, (void)offset, (void)names, (void)max;
	return 0;
}

int pem_object__offset(const struct pem_object *object, uint64_t file_offset, uint64_t *offset)
{
	(void)object, (void)file_offset, (void)offset;
	return -ENOENT;
}

int pem_object__data_offset(const struct pem_object *object, uint64_t file_offset, uint64_t *offset)
{
	(void)object, (void)file_offset, (void)offset;
	return -ENOENT;
}

int pem_object__find_variable(struct pem_object *object, uint64_t offset, struct pem_name *name)
{
	(void)object, (void)offset, (void)name;
	return 0;
}

size_t pem_object__segments(const struct pem_object *object, const struct pem_segment **segments)
{
	(void)object;
	*segments = NULL;
	return 0;
}

int pem_object__parameters(struct pem_object *object, uint64_t address, struct pem_parameter *list,
			   unsigned max)
{
	(void)object, (void)address, (void)list, (void)max;
	return -ENOENT;
}

int pem_object__result(struct pem_object *object, uint64_t address, struct pem_parameter *result)
{
	(void)object, (void)address, (void)result;
	return -ENOENT;
}

int pem_object__begins(struct pem_object *object, uint64_t address, bool *is_function)
{
	(void)object, (void)address, (void)is_function;
	return -ENOTSUP;
}

const char *pem_object__debug_path(const struct pem_object *object)
{
	(void)object;
	return NULL;
}
