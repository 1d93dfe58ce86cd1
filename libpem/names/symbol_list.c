// SPDX-License-Identifier: LGPL-2.1-or-later
/* symbol_list.c - functions by the addresses where they lie (contract: symbol_list.h) */
#include "symbol_list.h"
#include "code_map.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Data lies between functions, too: what is further behind a function's begin is not of it. */
#define FUNCTION_BYTES_MAX (1u << 18)
#define TEXT_BYTES_MAX (1u << 30)

int symbol_list__add(struct symbol_list *l, uint64_t start, uint64_t bytes, const char *name)
{
	size_t name_bytes = strlen(name) + 1;

	if (l->text_bytes + name_bytes > TEXT_BYTES_MAX ||
	    pem_grow(&l->list, sizeof(*l->list), l->count + 1, &l->capacity) < 0 ||
	    pem_grow(&l->text, 1, l->text_bytes + name_bytes, &l->text_capacity) < 0)
		return -ENOMEM;
	l->list[l->count] = (struct symbol){.start = start,
					    .bytes = bytes,
					    .order = (uint32_t)l->count,
					    .name = (uint32_t)l->text_bytes};
	l->count++;
	memcpy(l->text + l->text_bytes, name, name_bytes);
	l->text_bytes += name_bytes;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

void symbol_list__sort(struct symbol_list *l)
{
	if (l->count != 0)
		qsort(l->list, l->count, sizeof(*l->list), by_start);
}

const struct symbol *symbol_list__at(const struct symbol_list *l, uint64_t address)
{
	size_t low = 0, high = l->count, middle;
	const struct symbol *found;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (l->list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return NULL;
	found = &l->list[low - 1];
	if (address - found->start >=
	    (found->bytes < FUNCTION_BYTES_MAX ? found->bytes : FUNCTION_BYTES_MAX))
		return NULL;
	return found;
}

int symbol_list__name(const struct symbol_list *l, struct pem_code *code,
		      struct code_location *location)
{
	/* The offset is behind the instruction. */
	const struct symbol *symbol = symbol_list__at(l, location->told.offset - 1);
	struct code_function like = {.object = PEM_CODE_NONE, .is_kernel = true};
	struct code_name *names;

	if (!symbol)
		return 0;
	names = code__make_names(location, 1);
	if (!names)
		return -ENOMEM;
	if (!location->told.is_kernel)
		return code__name_text(code, names, l->text + symbol->name);
	like.start = like.identity = symbol->start;
	return code__name_function(code, names, &like, l->text + symbol->name, NULL);
}

void symbol_list__free(struct symbol_list *l)
{
	free(l->list);
	free(l->text);
	*l = (struct symbol_list){0};
}
