// SPDX-License-Identifier: MIT
/*
 * btf.c - tracepoints' arguments by the kernel's type information (BTF), through libbpf
 *
 * The typedef btf_trace_EVENT has the types, which is what BPF programs get; the function __traceiter_EVENT has the
 * same, behind one pointer of its own, and their names.
 */
#include "import.h"
#include "btf.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX                                                                              \
	11 /* with the tracepoint's own pointer, 12: what a BPF program can be given */
#define DEPTH_MAX 8 /* of structures without a name inside each other */

struct argument {
	const char *name;
	char generated[24];
	__u32 type;
};

struct import_tracepoint {
	const struct btf *btf;
	struct argument arguments[ARGUMENTS_MAX];
	size_t count;
	char text[301]; /* as spec/pem.xsd limits it */
};

/* One per set of types: the kernel's, and each module's. */
struct import_btf {
	struct btf **sets;
	size_t count, capacity;
	struct import_tracepoint tracepoint; /* the last asked for */
};

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

static int add(struct import_btf *btf, struct btf *set)
{
	if (set == NULL)
		return -errno;
	if (cli_grow((void **)&btf->sets, sizeof(struct btf *), btf->count, &btf->capacity) < 0) {
		btf__free(set);
		return -ENOMEM;
	}
	btf->sets[btf->count++] = set;
	return 0;
}

static void add_modules(struct import_btf *btf)
{
	DIR *dir = opendir("/sys/kernel/btf");
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "vmlinux") != 0)
			add(btf, btf__load_module_btf(entry->d_name, btf->sets[0]));
	if (dir != NULL)
		closedir(dir);
}

struct import_btf *import_btf__open(void)
{
	struct import_btf *btf = calloc(1, sizeof(*btf));
	int rc;

	if (btf == NULL)
		return NULL;
	libbpf_set_print(quiet);
	rc = add(btf, btf__load_vmlinux_btf());
	if (rc < 0) {
		import_btf__free(btf);
		errno = -rc;
		return NULL;
	}
	add_modules(btf);
	return btf;
}

void import_btf__free(struct import_btf *btf)
{
	if (btf == NULL)
		return;
	while (btf->count > 0) /* modules' stand on the kernel's */
		btf__free(btf->sets[--btf->count]);
	free(btf->sets);
	free(btf);
}

/* What stands behind const, volatile, and typedef. */
static const struct btf_type *plain(const struct btf *btf, __u32 id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	int i;

	for (i = 0; t != NULL && i < 64; i++) {
		if (!btf_is_mod(t) && !btf_is_typedef(t) && !btf_is_type_tag(t))
			return t;
		t = btf__type_by_id(btf, t->type);
	}
	return NULL;
}

/* The function's prototype, if it looks as it should. */
static const struct btf_type *prototype(const struct btf *btf, const char *prefix,
					const char *event, __u32 kind)
{
	const struct btf_type *t;
	char name[128];
	int id;

	snprintf(name, sizeof(name), "%s%s", prefix, event);
	id = btf__find_by_name_kind(btf, name, kind);
	if (id < 0)
		return NULL;
	t = btf__type_by_id(btf, (__u32)id);
	if (kind == BTF_KIND_TYPEDEF) {
		t = plain(btf, t->type);
		if (t == NULL || !btf_is_ptr(t))
			return NULL;
	}
	t = btf__type_by_id(btf, t->type);
	return t != NULL && btf_is_func_proto(t) && btf_vlen(t) > 0 ? t : NULL;
}

static const char *integer_word(const struct btf_type *t)
{
	static const char *const words[2][4] = {
		{"unsigned char", "unsigned short", "unsigned int", "unsigned long"},
		{"signed char", "short", "int", "long"},
	};
	bool is_signed = btf_is_int(t) ? (btf_int_encoding(t) & BTF_INT_SIGNED) != 0 : btf_kflag(t);

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

static bool is_number(const struct btf_type *t)
{
	return t != NULL && (btf_is_int(t) || btf_is_any_enum(t));
}

/* An argument as C declares it; false: it is none that a register holds, or has no name C could say. */
static bool declare(const struct import_tracepoint *tp, const struct argument *argument, char *text,
		    size_t bytes)
{
	const struct btf_type *t = plain(tp->btf, argument->type), *to;
	const char *name = argument->name, *word;

	if (is_number(t)) {
		word = integer_word(t);
		return word != NULL && (size_t)snprintf(text, bytes, "%s %s", word, name) < bytes;
	}
	if (t == NULL || !btf_is_ptr(t))
		return false;
	to = plain(tp->btf, t->type);
	if (to != NULL && (btf_is_composite(to)) && to->name_off != 0)
		return (size_t)snprintf(text, bytes, "%s %s *%s",
					btf_is_struct(to) ? "struct" : "union",
					btf__name_by_offset(tp->btf, to->name_off), name) < bytes;
	word = to != NULL && btf_is_int(to) ? integer_word(to) : NULL;
	if (word != NULL && to->size == 1)
		word = "const char";
	return (size_t)snprintf(text, bytes, "%s *%s", word != NULL ? word : "void", name) < bytes;
}

/* Fill in text, and forget the arguments that are not in it. */
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

const struct import_tracepoint *import_btf__tracepoint(struct import_btf *btf, const char *event)
{
	struct import_tracepoint *tp = &btf->tracepoint;
	const struct btf_type *proto = NULL;
	const struct btf_param *params;
	size_t i;

	for (i = 0; i < btf->count && proto == NULL; i++) {
		tp->btf = btf->sets[i];
		proto = prototype(tp->btf, "__traceiter_", event, BTF_KIND_FUNC);
		if (proto == NULL)
			proto = prototype(tp->btf, "btf_trace_", event, BTF_KIND_TYPEDEF);
	}
	if (proto == NULL)
		return NULL;
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

/* Can a value of this type fill a field of that shape? */
static bool fits(const struct btf *btf, __u32 id, enum import_shape shape, size_t size)
{
	const struct btf_type *t = plain(btf, id), *to;
	const struct btf_array *array;

	if (t == NULL)
		return false;
	switch (shape) {
	case IMPORT_INTEGER:
		return is_number(t) && t->size <= size;
	case IMPORT_ADDRESS:
		return btf_is_ptr(t) || (btf_is_int(t) && t->size == 8);
	case IMPORT_STRING:
	case IMPORT_ARRAY:
		if (btf_is_ptr(t)) {
			to = plain(btf, t->type);
			return shape == IMPORT_STRING && to != NULL && btf_is_int(to) &&
			       to->size == 1;
		}
		if (!btf_is_array(t))
			return false;
		array = btf_array(t);
		to = plain(btf, array->type);
		if (to == NULL || !btf_is_int(to))
			return false;
		return shape == IMPORT_STRING ? to->size == 1 : array->nelems * to->size == size;
	}
	return false;
}

/* Has the structure, or one without a name inside it, a fitting member of that name? */
static bool has_member(const struct btf *btf, const struct btf_type *t, const char *name,
		       enum import_shape shape, size_t size, int depth)
{
	const struct btf_member *m = btf_members(t);
	const struct btf_type *inner;
	__u32 i;

	for (i = 0; i < btf_vlen(t); i++) {
		const char *member = btf__name_by_offset(btf, m[i].name_off);

		inner = plain(btf, m[i].type);
		if (m[i].name_off == 0 && inner != NULL && btf_is_composite(inner) &&
		    depth < DEPTH_MAX && has_member(btf, inner, name, shape, size, depth + 1))
			return true;
		if (member != NULL && strcmp(member, name) == 0)
			return btf_member_bitfield_size(t, i) == 0 &&
			       fits(btf, m[i].type, shape, size);
	}
	return false;
}

static bool argument_has(const struct import_tracepoint *tp, const struct argument *argument,
			 const char *member, enum import_shape shape, size_t size)
{
	const struct btf_type *t = plain(tp->btf, argument->type);

	if (t == NULL || !btf_is_ptr(t))
		return false;
	t = plain(tp->btf, t->type);
	return t != NULL && btf_is_composite(t) && t->name_off != 0 &&
	       has_member(tp->btf, t, member, shape, size, 0);
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

/* The type of a member, also of one in a structure without name; 0: there is none. */
static __u32 member_type(const struct btf *btf, const struct btf_type *t, const char *name,
			 int depth)
{
	const struct btf_member *m = btf_members(t);
	const struct btf_type *inner;
	__u32 i, id = 0;

	for (i = 0; i < btf_vlen(t) && id == 0; i++) {
		const char *member = btf__name_by_offset(btf, m[i].name_off);

		inner = plain(btf, m[i].type);
		if (member != NULL && strcmp(member, name) == 0)
			id = m[i].type;
		else if (m[i].name_off == 0 && inner != NULL && btf_is_composite(inner) &&
			 depth < DEPTH_MAX)
			id = member_type(btf, inner, name, depth + 1);
	}
	return id;
}

bool import_tracepoint__member(const struct import_tracepoint *tp, const char *from,
			       char *structure, size_t structure_bytes, char *member,
			       size_t member_bytes)
{
	const char *arrow = strstr(from, "->");
	struct argument as_argument = {0};
	const struct btf_type *t, *element;
	size_t i, n;

	for (i = 0; arrow != NULL && i < tp->count; i++)
		if (strncmp(tp->arguments[i].name, from, (size_t)(arrow - from)) == 0 &&
		    tp->arguments[i].name[arrow - from] == '\0')
			break;
	if (arrow == NULL || i == tp->count)
		return false;
	t = plain(tp->btf, tp->arguments[i].type);
	t = t != NULL && btf_is_ptr(t) ? plain(tp->btf, t->type) : NULL;
	if (t == NULL || !btf_is_composite(t))
		return false;
	snprintf(structure, structure_bytes, "%s %s", btf_is_struct(t) ? "struct" : "union",
		 btf__name_by_offset(tp->btf, t->name_off));
	as_argument.name = arrow + 2;
	as_argument.type = member_type(tp->btf, t, arrow + 2, 0);
	t = plain(tp->btf, as_argument.type);
	if (t == NULL || !btf_is_array(t))
		return t != NULL && declare(tp, &as_argument, member, member_bytes);
	n = btf_array(t)->nelems;
	as_argument.type = btf_array(t)->type;
	element = plain(tp->btf, as_argument.type);
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
	__u32 id, first = 1;
	size_t i;

	for (i = 0; i < btf->count; i++) {
		for (id = first; id < btf__type_cnt(btf->sets[i]); id++) {
			t = btf__type_by_id(btf->sets[i], id);
			if (t != NULL && btf_is_any_enum(t) &&
			    find_enumerator(btf->sets[i], t, name, value))
				return true;
		}
		first = btf__type_cnt(btf->sets[0]); /* a module's own come behind the kernel's */
	}
	return false;
}
