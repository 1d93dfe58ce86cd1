// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * code_functions.c - the functions that locations are in: one of an object by its identity
 * (pem/names.h), the kernel's by where it begins, and code that is in no file by its name
 */
#include "code_map.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const struct code_function *a, const struct code_function *b)
{
	return a->object == b->object && a->is_kernel == b->is_kernel && a->identity == b->identity;
}

/* Keep a function with copies of its texts. Returns its number, or -ENOMEM. */
static int64_t add(struct pem_code *code, const struct code_function *like, const char *name,
		   const char *file)
{
	struct code_function function = *like;

	if (code->function_count >= PEM_CODE_NONE ||
	    pem_grow(&code->functions, sizeof(*code->functions), code->function_count + 1,
		     &code->function_capacity) < 0)
		return -ENOMEM;
	function.name = NULL;
	function.file = NULL;
	if (code__copy(name, &function.name) < 0 || code__copy(file, &function.file) < 0) {
		free(function.name);
		return -ENOMEM;
	}
	code->functions[code->function_count] = function;
	return (int64_t)code->function_count++;
}

/* The name of a function's own code is more exact than one of its inlined copies. */
static int improve(struct code_function *function, const struct code_function *like,
		   const char *name)
{
	char *copy;

	if (like->is_inlined || !function->is_inlined)
		return 0;
	if (code__copy(name, &copy) < 0)
		return -ENOMEM;
	free(function->name);
	function->name = copy;
	function->start = like->start;
	function->is_inlined = false;
	return 0;
}

int code__name_function(struct pem_code *code, struct code_name *in,
			const struct code_function *like, const char *name, const char *file)
{
	uint64_t key = pem_hash__join(like->is_kernel, code->multiplier, like->object);
	int64_t number;
	uint32_t *at;

	key = pem_hash__join(key, code->multiplier, like->identity);
	while ((at = pem_number_map__at(&code->function_at, key)) && *at != PEM_CODE_NONE &&
	       !is_same(&code->functions[*at], like))
		key++;
	if (!at)
		return -ENOMEM;
	if (*at == PEM_CODE_NONE) {
		number = add(code, like, name, file);
		if (number < 0)
			return -ENOMEM;
		*at = (uint32_t)number;
	}
	in->number = *at;
	return improve(&code->functions[*at], like, name);
}

int code__name_text(struct pem_code *code, struct code_name *in, const char *name)
{
	struct code_function like = {.object = PEM_CODE_NONE,
				     .identity = pem_hash__text(PEM_HASH_START, name)};

	return code__name_function(code, in, &like, name, NULL);
}

/* --- two functions of one object that have one name get their files' --- */

static int by_name(const void *a, const void *b)
{
	const struct code_function *x = *(struct code_function *const *)a;
	const struct code_function *y = *(struct code_function *const *)b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool is_alike(struct code_function *const *sorted, size_t count, size_t i)
{
	return (i > 0 && !by_name(&sorted[i - 1], &sorted[i])) ||
	       (i + 1 < count && !by_name(&sorted[i + 1], &sorted[i]));
}

/* Add to a name where its function is. Returns 0 or -ENOMEM. */
static int tell_apart(struct code_function *function, bool with_line)
{
	const char *slash = function->file ? strrchr(function->file, '/') : NULL;
	char *name;
	int bytes;

	if (!function->file)
		bytes = asprintf(&name, "%s (at 0x%llx)", function->name,
				 (unsigned long long)function->start);
	else if (with_line)
		bytes = asprintf(&name, "%s:%u)", function->name, function->line);
	else
		bytes = asprintf(&name, "%s (%s)", function->name,
				 slash ? slash + 1 : function->file);
	if (bytes < 0)
		return -ENOMEM;
	/* The line goes into the parentheses of the file. */
	if (function->file && with_line)
		memmove(strrchr(name, ':') - 1, strrchr(name, ':'), strlen(strrchr(name, ':')) + 1);
	free(function->name);
	function->name = name;
	return 0;
}

/* Returns how many names were changed, or -ENOMEM. */
static int64_t tell_all_apart(struct code_function **sorted, size_t count, bool with_line)
{
	bool *alike = calloc(count + 1, sizeof(*alike));
	int64_t changed = 0;
	size_t i;

	qsort(sorted, count, sizeof(struct code_function *), by_name);
	for (i = 0; alike && i < count; i++)
		alike[i] = is_alike(sorted, count, i) && (!with_line || sorted[i]->file);
	for (i = 0; alike && i < count && changed >= 0; i++) {
		if (alike[i])
			changed = tell_apart(sorted[i], with_line) < 0 ? -ENOMEM : changed + 1;
	}
	i = alike != NULL;
	free(alike);
	return i ? changed : -ENOMEM;
}

int code__finish_functions(struct pem_code *code)
{
	struct code_function **sorted = calloc(code->function_count + 1, sizeof(*sorted));
	size_t i, k, count = 0;
	int64_t changed;

	if (!sorted)
		return -ENOMEM;
	for (i = 0; i < code->function_count; i++)
		if (code->functions[i].object != PEM_CODE_NONE)
			sorted[count++] = &code->functions[i];
	changed = tell_all_apart(sorted, count, false);
	if (changed > 0)
		changed = tell_all_apart(sorted, count, true);
	free(sorted);
	for (i = 0; i < code->location_count; i++) {
		struct code_location *location = &code->locations[i];
		struct code_name *names = (struct code_name *)location->told.names;

		for (k = 0; k < location->told.name_count; k++) {
			if (names[k].number == PEM_CODE_NONE)
				continue;
			names[k].function = code->functions[names[k].number].name;
			names[k].start = code->functions[names[k].number].start;
		}
	}
	return changed < 0 ? -ENOMEM : 0;
}

void code__free_functions(struct pem_code *code)
{
	size_t i;

	for (i = 0; i < code->function_count; i++) {
		free(code->functions[i].name);
		free(code->functions[i].file);
	}
	free(code->functions);
	pem_number_map__free(&code->function_at);
}
