/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * function.c - functions of the kernel as probes: fentry, fexit, kprobe, kretprobe
 *
 * The functions and their parameters come from the kernel's types (BTF). A kprobe may be at any
 * instruction, and in functions without a type. Only registers are known there.
 */
#define _GNU_SOURCE
#include "probes.h"

#include "sources/kernel/base/base.h"
#include "util.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum of functions that a pattern may find. The kernel patches its code for each of them. */
#define FUNCTIONS_MAX 500u

struct search {
	enum pem_probe_kind kind;
	const char *pattern;
	bool literal;
	pem_probe_found found;
	void *arg;
	struct pem_error *error;
	struct pem_probe_near near;
	unsigned count;
};

/* How many words of the context a parameter takes. */
static unsigned words_of(const struct btf_type *type)
{
	return type && (btf_is_composite(type) || pem_btf__is_number(type)) ? (type->size + 7) / 8
									    : 1;
}

/*
 * How many registers a parameter takes. A parameter longer than two registers is in memory: on the
 * stack, or on arm64 where one register points.
 */
static unsigned registers_of(const struct btf_type *type)
{
	if (type && btf_is_composite(type) && type->size > 16)
#if defined(__aarch64__)
		return 1;
#else
		return 0;
#endif
	return words_of(type);
}

/* Set the field's type from the parameter's. False: a field can't have such a value. */
static bool set_type(struct pem_probe_field *field, const struct btf_type *type)
{
	if (type && btf_is_ptr(type)) {
		pem_probe_field__set_number(field, 8, false);
		field->type = PEM_TYPE_ADDRESS;
		field->base = 16;
		return true;
	}
	if (!pem_btf__is_number(type) ||
	    (type->size != 1 && type->size != 2 && type->size != 4 && type->size != 8))
		return false;
	pem_probe_field__set_number(field, type->size, pem_btf__is_signed(type));
	return true;
}

/* Add a value in the context as a field. A value that is not a number there is left out. */
static int add_value(struct pem_probe *probe, const struct btf *btf, const char *name,
		     uint32_t type_id, uint8_t location, unsigned offset)
{
	const struct btf_type *type = pem_btf__plain(btf, type_id);
	struct pem_probe_field *field = pem_probe__add_field(probe, name);

	if (!field)
		return -E2BIG;
	if (!set_type(field, type)) {
		probe->field_count--;
		return 0;
	}
	field->location = (struct pem_argument_location){
		.kind = location, .load_bytes = 8, .offset = (uint16_t)offset};
	return 0;
}

/* Add the parameters as fields, and for a return the result. */
static int add_values(struct pem_probe *probe, const struct btf *btf,
		      const struct btf_type *prototype)
{
	const struct btf_param *params = btf_params(prototype);
	bool by_register = probe->kind >= PEM_PROBE_KPROBE;
	const struct btf_type *type;
	unsigned i, word = 0, at;
	char unnamed[16];
	const char *name;
	int rc = 0;

	for (i = 0; i < btf_vlen(prototype) && !rc; i++) {
		name = btf__name_by_offset(btf, params[i].name_off);
		snprintf(unnamed, sizeof(unnamed), "arg%u", i);
		at = by_register ? pem_register__argument(word) : 8 * word;
		if (!params[i].type) /* "..." */
			break;
		if (probe->kind != PEM_PROBE_KRETPROBE && at != PEM_LOCATION_NO_REGISTER)
			rc = add_value(probe, btf, name && *name ? name : unnamed, params[i].type,
				       by_register ? PEM_LOCATION_CONTEXT : PEM_LOCATION_POINTER,
				       at);
		type = pem_btf__plain(btf, params[i].type);
		word += by_register ? registers_of(type) : words_of(type);
	}
	if (rc || !prototype->type)
		return rc;
	if (probe->kind == PEM_PROBE_FEXIT)
		rc = add_value(probe, btf, "ret", prototype->type, PEM_LOCATION_POINTER, 8 * word);
	else if (probe->kind == PEM_PROBE_KRETPROBE)
		rc = add_value(probe, btf, "ret", prototype->type, PEM_LOCATION_CONTEXT,
			       pem_register__result());
	return rc;
}

/* plus: the offset as the user wrote it, "+0x10"; "": none. */
static struct pem_probe *new_probe(enum pem_probe_kind kind, const char *function, const char *plus,
				   uint64_t offset)
{
	const char *word = pem_probe_kind__word(kind);
	struct pem_probe *probe = NULL;
	char *name = NULL, *specifier = NULL;

	if (asprintf(&name, "%s:%s%s", word, function, plus) < 0)
		return NULL;
	if (asprintf(&specifier, "%s%s", function, plus) >= 0)
		probe = pem_probe__new(kind, name, "OS", word, specifier);
	if (probe && asprintf(&probe->description, "%s of the kernel's function %s",
			      kind == PEM_PROBE_FEXIT || kind == PEM_PROBE_KRETPROBE ? "return"
			      : offset ? "an instruction"
				       : "entry",
			      function) < 0)
		probe->description = NULL;
	if (probe && probe->description && kind >= PEM_PROBE_KPROBE) {
		probe->path = strdup(function);
		probe->offset = offset;
	}
	if (probe && (!probe->description || (kind >= PEM_PROBE_KPROBE && !probe->path))) {
		pem_probe__free(probe);
		probe = NULL;
	}
	free(specifier);
	free(name);
	return probe;
}

static int found_function(struct search *s, const struct btf *btf, uint32_t id, const char *module)
{
	const struct btf_type *function = btf__type_by_id(btf, id);
	const struct btf_type *prototype = btf__type_by_id(btf, function->type);
	const char *name = btf__name_by_offset(btf, function->name_off);
	struct pem_probe *probe;

	if (!prototype || !btf_is_func_proto(prototype))
		return 0;
	if (s->count == FUNCTIONS_MAX)
		return pem_error__set(s->error, -E2BIG,
				      "'%.100s' names more than %u functions: expected fewer",
				      s->pattern, FUNCTIONS_MAX);
	probe = new_probe(s->kind, name, "", 0);
	if (probe && module)
		probe->module = strdup(module);
	if (!probe || (module && !probe->module) || add_values(probe, btf, prototype)) {
		pem_probe__free(probe);
		return pem_error__set(s->error, -ENOMEM, "%.100s: out of memory", name);
	}
	probe->type_id = id;
	s->count++;
	return s->found(s->arg, probe);
}

static int search_part(struct search *s, const struct pem_kernel_btf *kernel, unsigned part)
{
	const char *module, *name;
	const struct btf *btf = pem_kernel_btf__part(kernel, part, &module);
	uint32_t id = pem_kernel_btf__first_type(kernel, part);
	const struct btf_type *type;
	int rc = 0;

	for (; id < btf__type_cnt(btf) && !rc; id++) {
		type = btf__type_by_id(btf, id);
		if (!btf_is_func(type))
			continue;
		name = btf__name_by_offset(btf, type->name_off);
		if (s->literal ? strcmp(s->pattern, name) != 0
			       : fnmatch(s->pattern, name, FNM_NOESCAPE) != 0)
			continue;
		rc = found_function(s, btf, id, part ? module : NULL);
		/* if several have one name, take the first, as the kernel does */
		if (s->literal)
			break;
	}
	return rc;
}

static void offer_names(struct search *s, const struct pem_kernel_btf *kernel)
{
	const char *module;
	const struct btf *btf = pem_kernel_btf__part(kernel, 0, &module);
	const struct btf_type *type;
	uint32_t id;

	for (id = 1; id < btf__type_cnt(btf); id++) {
		type = btf__type_by_id(btf, id);
		if (btf_is_func(type))
			pem_probe_near__offer(&s->near, btf__name_by_offset(btf, type->name_off));
	}
}

/* Add a kprobe at a place without type information. Its fields are registers. */
static int add_location(struct search *s, const char *function, uint64_t offset)
{
	struct pem_probe *probe = new_probe(s->kind, function, strchr(s->pattern, '+'), offset);
	struct pem_probe_field *field;
	char name[16];
	unsigned i;

	if (!probe)
		return pem_error__set(s->error, -ENOMEM, "out of memory");
	for (i = 0; pem_register__argument(i) != PEM_LOCATION_NO_REGISTER; i++) {
		snprintf(name, sizeof(name), "arg%u", i);
		field = pem_probe__add_field(probe, name);
		if (!field)
			break;
		pem_probe_field__set_number(field, 8, false);
		field->base = 16;
		field->location =
			(struct pem_argument_location){.kind = PEM_LOCATION_CONTEXT,
						       .load_bytes = 8,
						       .offset = pem_register__argument(i)};
	}
	s->count++;
	return s->found(s->arg, probe);
}

/*
 * Is this a function in the kernel's list of symbols? The list also has functions without types. If
 * the list can't be read, it may be one.
 */
static bool is_function(const char *name)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[1024], symbol[512], kind;
	bool found = !file;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*s %c %511s", &kind, symbol) == 2 && strchr("tTwW", kind) &&
			!strcmp(symbol, name);
	if (file)
		fclose(file);
	return found;
}

static int say_no_function(struct search *s, const char *function)
{
	const struct pem_kernel_btf *kernel = pem_kernel__running(NULL);
	char did_you[160];

	s->near.wanted = function;
	if (kernel)
		offer_names(s, kernel);
	return pem_error__set(s->error, -ENOENT, "this kernel has no function '%.100s'%s", function,
			      pem_probe_near__say(&s->near, did_you, sizeof(did_you)));
}

/* "FUNC+0x10" */
static int find_location(struct search *s)
{
	const char *plus = strchr(s->pattern, '+');
	char *function, *end;
	uint64_t offset;
	int rc;

	errno = 0;
	offset = strtoull(plus + 1, &end, 0);
	if (errno || *end || end == plus + 1 || plus == s->pattern || !s->literal ||
	    s->kind != PEM_PROBE_KPROBE)
		return pem_error__set(s->error, -EINVAL,
				      "'%.100s': expected kprobe:FUNCTION+OFFSET", s->pattern);
	function = strndup(s->pattern, (size_t)(plus - s->pattern));
	if (!function)
		return pem_error__set(s->error, -ENOMEM, "out of memory");
	rc = is_function(function) ? add_location(s, function, offset)
				   : say_no_function(s, function);
	free(function);
	return rc;
}

int pem_probe__find_functions(enum pem_probe_kind kind, const char *rest, pem_probe_found found,
			      void *arg, struct pem_error *error)
{
	struct search s = {.kind = kind,
			   .pattern = rest,
			   .literal = !strpbrk(rest, "*?["),
			   .found = found,
			   .arg = arg,
			   .error = error,
			   .near = {.wanted = rest}};
	const struct pem_kernel_btf *kernel = pem_kernel__running(error);
	const char *module;
	char did_you[160];
	unsigned part;
	int rc = 0;

	if (!kernel)
		return -ENOTSUP;
	if (strchr(rest, '+'))
		rc = find_location(&s);
	for (part = 0; !strchr(rest, '+') && pem_kernel_btf__part(kernel, part, &module) && !rc;
	     part++) {
		if (!s.literal || !s.count)
			rc = search_part(&s, kernel, part);
	}
	if (rc)
		return rc;
	if (s.count)
		return (int)s.count;
	offer_names(&s, kernel);
	return pem_error__set(error, -ENOENT, "this kernel's types have no function '%.100s'%s",
			      rest, pem_probe_near__say(&s.near, did_you, sizeof(did_you)));
}
