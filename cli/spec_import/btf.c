// SPDX-License-Identifier: MIT
/*
 * btf.c - arguments of tracepoints from the kernel's type information (BTF), through libbpf
 *
 * The typedef btf_trace_EVENT has the types that BPF programs get. The function __traceiter_EVENT
 * has the same types after one pointer of its own, and the arguments' names.
 */
#include "btf.h"
#include "import.h"
#include "kernel_types.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <stdlib.h>
#include <string.h>

/* With the tracepoint's own pointer 12, the maximum for a BPF program. */
#define ARGUMENTS_MAX 11

struct argument {
	const char *name;
	char generated[24];
	__u32 type;
};

struct import_tracepoint {
	const struct btf *btf;
	struct argument arguments[ARGUMENTS_MAX];
	size_t count;
	char text[301]; /* bytes that spec/pem.xsd allows */
};

struct import_btf {
	struct pem_kernel_btf *kernel;
	struct import_tracepoint tracepoint; /* the tracepoint of the last call */
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

struct import_btf *import_btf__open(void)
{
	struct import_btf *btf = calloc(1, sizeof(*btf));

	if (btf == NULL)
		return NULL;
	libbpf_set_print(quiet);
	btf->kernel = pem_kernel_btf__open(PEM_KERNEL_BTF_FOLDER);
	if (btf->kernel == NULL) {
		free(btf);
		return NULL;
	}
	return btf;
}

void import_btf__free(struct import_btf *btf)
{
	if (btf == NULL)
		return;
	pem_kernel_btf__close(btf->kernel);
	free(btf);
}

static const char *integer_word(const struct btf_type *t)
{
	static const char *const words[2][4] = {
		{"unsigned char", "unsigned short", "unsigned int", "unsigned long"},
		{"signed char", "short", "int", "long"},
	};
	bool is_signed = pem_btf__is_signed(t);

	if (btf_is_int(t) && (btf_int_encoding(t) & BTF_INT_BOOL) != 0)
		return "bool";
	switch (t->size) {
	case 1:
		return words[is_signed][0];
	case 2:
		return words[is_signed][1];
	case 4:
		return words[is_signed][2];
	case 8:
		return words[is_signed][3];
	}
	return NULL;
}

/* Declare an argument in C. False: it does not fit in a register, or C can't express its type. */
static bool declare(const struct import_tracepoint *tp, const struct argument *argument, char *text,
		    size_t bytes)
{
	const struct btf_type *t = pem_btf__plain(tp->btf, argument->type), *to;
	const char *name = argument->name, *word;

	if (pem_btf__is_number(t)) {
		word = integer_word(t);
		return word != NULL && (size_t)snprintf(text, bytes, "%s %s", word, name) < bytes;
	}
	if (t == NULL || !btf_is_ptr(t))
		return false;
	to = pem_btf__plain(tp->btf, t->type);
	if (to != NULL && (btf_is_composite(to)) && to->name_off != 0)
		return (size_t)snprintf(text, bytes, "%s %s *%s",
					btf_is_struct(to) ? "struct" : "union",
					btf__name_by_offset(tp->btf, to->name_off), name) < bytes;
	word = to != NULL && btf_is_int(to) ? integer_word(to) : NULL;
	if (word != NULL && to->size == 1)
		word = "const char";
	return (size_t)snprintf(text, bytes, "%s *%s", word != NULL ? word : "void", name) < bytes;
}

/* Fill in text, and remove the arguments that do not fit in it. */
static void write_arguments(struct import_tracepoint *tp)
{
	size_t i, used = 0;
	char one[200];

	snprintf(tp->text, sizeof(tp->text), "%s", tp->count == 0 ? "void" : "");
	for (i = 0; i < tp->count && declare(tp, &tp->arguments[i], one, sizeof(one)); i++) {
		if (used + strlen(one) + 3 > sizeof(tp->text))
			break;
		used += (size_t)snprintf(tp->text + used, sizeof(tp->text) - used, "%s%s",
					 i != 0 ? ", " : "", one);
	}
	tp->count = i;
}

/*
 * Find the function with a tracepoint's arguments and their names, or else the one without names.
 */
static const struct btf_type *function_of(const struct btf *btf, const char *event, uint32_t proto)
{
	const struct btf_type *t;
	char name[128];
	int id;

	snprintf(name, sizeof(name), "__traceiter_%s", event);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	t = t != NULL ? btf__type_by_id(btf, t->type) : NULL;
	return t != NULL && btf_is_func_proto(t) && btf_vlen(t) > 0 ? t
								    : btf__type_by_id(btf, proto);
}

const struct import_tracepoint *import_btf__tracepoint(struct import_btf *btf, const char *event)
{
	struct import_tracepoint *tp = &btf->tracepoint;
	const struct btf_type *proto;
	const struct btf_param *params;
	uint32_t id;
	size_t i;

	tp->btf = pem_kernel_btf__tracepoint(btf->kernel, event, &id);
	if (tp->btf == NULL)
		return NULL;
	proto = function_of(tp->btf, event, id);
	params = btf_params(proto);
	tp->count = 0;
	for (i = 1; i < btf_vlen(proto) && tp->count < ARGUMENTS_MAX; i++) {
		struct argument *argument = &tp->arguments[tp->count++];

		argument->name = btf__name_by_offset(tp->btf, params[i].name_off);
		argument->type = params[i].type;
		if (argument->name == NULL || *argument->name == '\0') {
			snprintf(argument->generated, sizeof(argument->generated), "arg%zu", i - 1);
			argument->name = argument->generated;
		}
	}
	write_arguments(tp);
	return tp;
}

const char *import_tracepoint__arguments(const struct import_tracepoint *tp)
{
	return tp->text;
}

/* Can a value of this type fill a field of this shape? */
static bool fits(const struct btf *btf, __u32 id, enum import_shape shape, size_t size)
{
	const struct btf_type *t = pem_btf__plain(btf, id), *to;
	const struct btf_array *array;

	if (t == NULL)
		return false;
	switch (shape) {
	case IMPORT_INTEGER:
		return pem_btf__is_number(t) && t->size <= size;
	case IMPORT_ADDRESS:
		return btf_is_ptr(t) || (btf_is_int(t) && t->size == 8);
	case IMPORT_STRING:
	case IMPORT_ARRAY:
		if (btf_is_ptr(t)) {
			to = pem_btf__plain(btf, t->type);
			return shape == IMPORT_STRING && to != NULL && btf_is_int(to) &&
			       to->size == 1;
		}
		if (!btf_is_array(t))
			return false;
		array = btf_array(t);
		to = pem_btf__plain(btf, array->type);
		if (to == NULL || !btf_is_int(to))
			return false;
		return shape == IMPORT_STRING ? to->size == 1 : array->nelems * to->size == size;
	}
	return false;
}

static bool argument_has(const struct import_tracepoint *tp, const struct argument *argument,
			 const char *member, enum import_shape shape, size_t size)
{
	const struct btf_type *t = pem_btf__plain(tp->btf, argument->type);
	struct pem_btf_member found;

	if (t == NULL || !btf_is_ptr(t))
		return false;
	t = pem_btf__plain(tp->btf, t->type);
	return t != NULL && t->name_off != 0 && pem_btf__find_member(tp->btf, t, member, &found) &&
	       !found.is_bitfield && fits(tp->btf, found.type, shape, size);
}

bool import_tracepoint__from(const struct import_tracepoint *tp, const char *field,
			     enum import_shape shape, size_t size, char *text, size_t bytes)
{
	const struct argument *only = NULL;
	size_t i, n;

	for (i = 0; i < tp->count; i++)
		if (strcmp(tp->arguments[i].name, field) == 0 &&
		    fits(tp->btf, tp->arguments[i].type, shape, size))
			return (size_t)snprintf(text, bytes, "%s", field) < bytes;
	for (i = 0; i < tp->count; i++) {
		n = strlen(tp->arguments[i].name);
		if (strncmp(field, tp->arguments[i].name, n) == 0 && field[n] == '_' &&
		    argument_has(tp, &tp->arguments[i], field + n + 1, shape, size))
			return (size_t)snprintf(text, bytes, "%s->%s", tp->arguments[i].name,
						field + n + 1) < bytes;
	}
	for (i = 0; i < tp->count; i++) {
		if (!argument_has(tp, &tp->arguments[i], field, shape, size))
			continue;
		if (only != NULL)
			return false;
		only = &tp->arguments[i];
	}
	return only != NULL && (size_t)snprintf(text, bytes, "%s->%s", only->name, field) < bytes;
}

bool import_tracepoint__member(const struct import_tracepoint *tp, const char *from,
			       char *structure, size_t structure_bytes, char *member,
			       size_t member_bytes)
{
	const char *arrow = strstr(from, "->");
	struct argument as_argument = {0};
	struct pem_btf_member found;
	const struct btf_type *t, *element;
	size_t i, n;

	for (i = 0; arrow != NULL && i < tp->count; i++)
		if (strncmp(tp->arguments[i].name, from, (size_t)(arrow - from)) == 0 &&
		    tp->arguments[i].name[arrow - from] == '\0')
			break;
	if (arrow == NULL || i == tp->count)
		return false;
	t = pem_btf__plain(tp->btf, tp->arguments[i].type);
	t = t != NULL && btf_is_ptr(t) ? pem_btf__plain(tp->btf, t->type) : NULL;
	if (t == NULL || !btf_is_composite(t))
		return false;
	snprintf(structure, structure_bytes, "%s %s", btf_is_struct(t) ? "struct" : "union",
		 btf__name_by_offset(tp->btf, t->name_off));
	as_argument.name = arrow + 2;
	if (!pem_btf__find_member(tp->btf, t, arrow + 2, &found))
		return false;
	as_argument.type = found.type;
	t = pem_btf__plain(tp->btf, as_argument.type);
	if (t == NULL || !btf_is_array(t))
		return t != NULL && declare(tp, &as_argument, member, member_bytes);
	n = btf_array(t)->nelems;
	as_argument.type = btf_array(t)->type;
	element = pem_btf__plain(tp->btf, as_argument.type);
	if (element != NULL && btf_is_int(element) && element->size == 1)
		return (size_t)snprintf(member, member_bytes, "char %s[%zu]", arrow + 2, n) <
		       member_bytes;
	if (!declare(tp, &as_argument, member, member_bytes))
		return false;
	i = strlen(member);
	return (size_t)snprintf(member + i, member_bytes - i, "[%zu]", n) < member_bytes - i;
}

static bool find_enumerator(const struct btf *btf, const struct btf_type *t, const char *name,
			    long long *value)
{
	__u32 i;

	for (i = 0; i < btf_vlen(t); i++) {
		bool is_64 = btf_is_enum64(t);
		__u32 name_off = is_64 ? btf_enum64(t)[i].name_off : btf_enum(t)[i].name_off;
		const char *its = btf__name_by_offset(btf, name_off);

		if (its == NULL || strcmp(its, name) != 0)
			continue;
		*value =
			is_64 ? (long long)btf_enum64_value(&btf_enum64(t)[i]) : btf_enum(t)[i].val;
		return true;
	}
	return false;
}

bool import_btf__enumerator(struct import_btf *btf, const char *name, long long *value)
{
	const struct btf_type *t;
	const struct btf *types;
	const char *part;
	unsigned int i;
	__u32 id;

	for (i = 0; (types = pem_kernel_btf__part(btf->kernel, i, &part)) != NULL; i++) {
		for (id = pem_kernel_btf__first_type(btf->kernel, i); id < btf__type_cnt(types);
		     id++) {
			t = btf__type_by_id(types, id);
			if (t != NULL && btf_is_any_enum(t) &&
			    find_enumerator(types, t, name, value))
				return true;
		}
	}
	return false;
}
