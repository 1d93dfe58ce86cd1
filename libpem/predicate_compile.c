/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * predicate_compile.c - compiling a predicate's tree to tests for one event
 *
 * A comparison becomes a range of keys (pem/predicate.h says what a key is). A constant that the
 * field's type can't hold is rounded into the range. The range may then contain no value, or all
 * values. && and || become jumps, as a C compiler makes them of conditions: each test has a next
 * test for either answer, always a later one.
 *
 * Floating values order as in IEEE 754. -0 equals 0. The keys of NaNs lie beyond those of the
 * infinities, so a NaN is in no range. A NaN is unequal to all values, and a negation inverts that
 * answer, as in C.
 */
#include "predicate.h"
#include "util.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SIGN (1ull << 63)

typedef __int128 int128; /* 128 bits, which hold every 64-bit number with its sign */

/*
 * The two neighbouring numbers of a type that enclose a constant. low == high if the type has the
 * constant itself.
 */
struct between {
	uint64_t low, high; /* keys */
	/*
	 * The constant is less than the type's least value, or more than its greatest. low and high
	 * then mean nothing.
	 */
	bool below, above;
};

/* --- fields and labels --- */

static bool is_testable(const struct pem_field *field)
{
	return pem_type__bytes((enum pem_type)field->type) > 0;
}

/* Return the field with the most similar name; NULL: none is similar. */
static const char *near_field(const struct pem_event *event, const char *name)
{
	unsigned best = 3, edits; /* more than two edits are no misspelling */
	const char *found = NULL;
	uint16_t i;

	for (i = 0; i < event->field_count; i++) {
		edits = is_testable(&event->fields[i])
				? pem_edit_distance(name, event->fields[i].name)
				: best;
		if (edits < best) {
			best = edits;
			found = event->fields[i].name;
		}
	}
	return found;
}

/* Append ", NAME" or "NAME" to a list. A name that does not fit becomes "...". */
static void append_name(char *list, size_t bytes, const char *name)
{
	size_t used = strlen(list), length = strlen(name);

	if (used + length + 8 < bytes) {
		if (used)
			strcat(list, ", ");
		strcat(list, name);
	} else if (used >= 3 && strcmp(list + used - 3, "...")) {
		strcat(list, ", ...");
	}
}

static int lacks_field(const struct pem_expression *e, const struct pem_node *node,
		       const struct pem_event *event, const char *name, struct pem_error *error)
{
	const char *near = near_field(event, name);
	/* The description of a function lists the parameters that are no fields. */
	bool is_probe = event->source_kind == PEM_SOURCE_PROBE;
	char list[160] = "";
	uint16_t i;

	if (near)
		return pem_expression__fail(e, node->field_at, error,
					    "%s has no field '%.60s'; did you mean '%s'?",
					    event->name, name, near);
	for (i = 0; i < event->field_count; i++) {
		if (is_testable(&event->fields[i]))
			append_name(list, sizeof(list), event->fields[i].name);
	}
	return pem_expression__fail(e, node->field_at, error,
				    "%s has no field '%.60s'; it has %s%s%s%s", event->name, name,
				    *list ? "" : "none that could be tested", list,
				    is_probe ? ": " : "", is_probe ? event->description : "");
}

static int find_field(const struct pem_expression *e, const struct pem_node *node,
		      const struct pem_event *event, const struct pem_field **field,
		      struct pem_error *error)
{
	char name[128];
	int index;

	snprintf(name, sizeof(name), "%.*s", node->field_bytes, e->text + node->field_at);
	index = pem_event__field(event, name);
	if (index < 0)
		return lacks_field(e, node, event, name, error);
	*field = &event->fields[index];
	if (!is_testable(*field))
		return pem_expression__fail(
			e, node->field_at, error, "%s of %s is a %s: only numbers can be tested",
			name, event->name, pem_type__name((enum pem_type)(*field)->type));
	if ((*field)->offset < sizeof(struct pem_record_header) ||
	    (*field)->offset + pem_type__bytes((enum pem_type)(*field)->type) > event->fixed_bytes)
		return pem_expression__fail(e, node->field_at, error,
					    "%s of %s lies outside of its record", name,
					    event->name);
	return 0;
}

/* Set *value to a label's value, or write an error that names the field's labels. */
static int find_label(const struct pem_expression *e, const struct pem_operand *operand,
		      const struct pem_field *field, uint64_t *value, struct pem_error *error)
{
	char name[128], list[160] = "";
	const char *near = NULL;
	unsigned best = 3, edits;
	uint16_t i;

	snprintf(name, sizeof(name), "%.*s", operand->bytes, e->text + operand->at);
	for (i = 0; i < field->label_count; i++) {
		if (!strcmp(field->labels[i].name, name)) {
			*value = field->labels[i].value;
			return 0;
		}
		edits = pem_edit_distance(name, field->labels[i].name);
		near = edits < best ? field->labels[i].name : near;
		best = edits < best ? edits : best;
		append_name(list, sizeof(list), field->labels[i].name);
	}
	if (!field->label_count)
		return pem_expression__fail(
			e, operand->at, error,
			"field '%s' has no labels: a number belongs here, and not '%.60s'",
			field->name, name);
	if (near)
		return pem_expression__fail(e, operand->at, error,
					    "'%.60s' is no label of '%s'; did you mean '%s'?", name,
					    field->name, near);
	return pem_expression__fail(e, operand->at, error,
				    "'%.60s' is no label of '%s'; there are %s", name, field->name,
				    list);
}

/* --- constants as keys --- */

static bool is_signed(unsigned type)
{
	return type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;
}

static bool is_float(unsigned type)
{
	return type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64;
}

/*
 * Return the key of a float's bits, which are the highest of the word, as pem_test_holds makes it.
 */
static uint64_t float_key(uint64_t bits)
{
	bits ^= (uint64_t)((int64_t)bits >> 63) >> 1;
	return bits ^ SIGN;
}

static uint64_t key_of_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return float_key(bits);
}

static uint64_t key_of_float(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return float_key((uint64_t)bits << 32);
}

/* Compare a finite or infinite float with a constant, exactly. Returns -1, 0 or 1. */
static int compare(double value, const struct pem_operand *c)
{
	int128 integer, constant;

	if (c->kind == PEM_OPERAND_REAL)
		return (value > c->real) - (value < c->real);
	constant = c->negative ? -(int128)c->magnitude : (int128)c->magnitude;
	if (value > 3e19 || value < -3e19) /* beyond 64 bits, or infinite */
		return value > 0 ? 1 : -1;
	integer = (int128)value;
	if (integer != constant)
		return integer > constant ? 1 : -1;
	return (value > (double)integer) - (value < (double)integer);
}

static double nearest_double(const struct pem_operand *c)
{
	if (c->kind == PEM_OPERAND_REAL)
		return c->real;
	return c->negative ? -(double)c->magnitude : (double)c->magnitude;
}

/*
 * Enclose a constant by two floats. Keys of neighbours differ by step. Only 0 has two keys, one
 * next to the other.
 */
static struct between between_floats(const struct pem_operand *c, bool single)
{
	uint64_t step = single ? 1ull << 32 : 1;
	double nearest = nearest_double(c);
	struct between b = {0};
	int order;

	nearest = single ? (double)(float)nearest : nearest;
	order = compare(nearest, c);
	if (nearest == 0) /* -0 if the constant is below 0 */
		nearest = order > 0 ? -0.0 : 0.0;
	b.low = b.high = single ? key_of_float((float)nearest) : key_of_double(nearest);
	b.low -= order > 0 ? step : 0;
	b.high += order < 0 ? step : 0;
	return b;
}

/*
 * Compute floor and ceiling of a constant, after limiting it to a range that the type int128
 * holds.
 */
static void round_real(double real, int128 *floor_of, int128 *ceiling_of)
{
	real = real > 1e30 ? 1e30 : real < -1e30 ? -1e30 : real;
	*floor_of = (int128)real - (real < (double)(int128)real);
	*ceiling_of = *floor_of + (real != (double)*floor_of);
}

/* Enclose a constant by two integers of this many bits. The bits are the highest of their keys. */
static struct between between_integers(const struct pem_operand *c, unsigned bits, bool has_sign)
{
	int128 least = has_sign ? -((int128)1 << (bits - 1)) : 0;
	int128 most = ((int128)1 << (has_sign ? bits - 1 : bits)) - 1, low, high;
	struct between b = {0};

	low = high = c->negative ? -(int128)c->magnitude : (int128)c->magnitude;
	if (c->kind == PEM_OPERAND_REAL)
		round_real(c->real, &low, &high);
	b.below = high < least || (low != high && high == least);
	b.above = low > most || (low != high && low == most);
	b.low = ((uint64_t)low << (64 - bits)) ^ (has_sign ? SIGN : 0);
	b.high = ((uint64_t)high << (64 - bits)) ^ (has_sign ? SIGN : 0);
	return b;
}

/* --- a comparison as a range --- */

/* Set the range to all keys of the field, and its mask, flip, end and is_float. */
static void whole_range(const struct pem_field *field, struct pem_range *r)
{
	unsigned bytes = (unsigned)pem_type__bytes((enum pem_type)field->type);

	memset(r, 0, sizeof(*r));
	r->end = (uint16_t)(field->offset + bytes);
	r->mask = ~0ull << (64 - 8 * bytes);
	r->hi = r->mask;
	r->is_float = is_float(field->type);
	r->flip = is_signed(field->type) || r->is_float ? SIGN : 0;
	if (field->type == PEM_TYPE_FLOAT32) {
		r->lo = key_of_float(-INFINITY);
		r->hi = key_of_float(INFINITY);
	} else if (r->is_float) {
		r->lo = key_of_double(-INFINITY);
		r->hi = key_of_double(INFINITY);
	}
}

static void narrow(struct pem_range *r, enum pem_operator op, const struct between *b)
{
	uint64_t least = r->lo, most = r->hi;
	/* 0.0 equals -0.0. The key of -0.0 is one less. */
	uint64_t zero = key_of_double(0.0);
	bool exact = b->low == b->high;
	uint64_t first = r->is_float && exact && b->high == zero ? zero - 1 : b->high;

	r->outside = op == PEM_NE;
	if (op == PEM_EQ || op == PEM_NE) {
		r->lo = first;
		r->hi = b->low;
		r->empty = b->below || b->above || !exact;
	} else if (op == PEM_LT || op == PEM_LE) {
		r->hi = op == PEM_LT && exact ? first - 1 : b->low;
		r->empty = b->below || (!b->above && op == PEM_LT && exact && first == least);
		r->hi = b->above ? most : r->hi;
	} else {
		r->lo = op == PEM_GT && exact ? b->low + 1 : first;
		r->empty = b->above || (!b->below && op == PEM_GT && exact && b->low == most);
		r->lo = b->below ? least : r->lo;
	}
	/* A range of floats is never full, because a NaN lies outside every range. */
	r->full = !r->empty && !r->is_float && r->lo == least && r->hi == most;
}

static int apply_bits(const struct pem_expression *e, const struct pem_node *node,
		      const struct pem_field *field, struct pem_range *r, struct pem_error *error)
{
	unsigned bits = 8 * (unsigned)pem_type__bytes((enum pem_type)field->type);
	uint64_t mask = node->bits.magnitude;
	int result = 0;

	if (r->is_float)
		return pem_expression__fail(
			e, node->bits.at, error,
			"'%s' is a floating number, which has no bits to choose", field->name);
	if (node->bits.kind == PEM_OPERAND_REAL ||
	    (node->bits.kind == PEM_OPERAND_INTEGER && node->bits.negative))
		return pem_expression__fail(
			e, node->bits.at, error,
			"'&' takes bits: a whole number from 0 on, or a label of the field");
	if (node->bits.kind == PEM_OPERAND_WORD)
		result = find_label(e, &node->bits, field, &mask, error);
	r->mask &= mask << (64 - bits);
	r->flip = 0;
	return result;
}

/*
 * The bits that '&' leaves are an unsigned number. A range of such numbers ends at the greatest
 * unsigned number of the field, whatever bits '&' leaves.
 */
int pem_expression__range(const struct pem_expression *e, const struct pem_node *node,
			  const struct pem_event *event, struct pem_range *r,
			  struct pem_error *error)
{
	struct pem_operand value = node->value;
	const struct pem_field *field = NULL;
	struct between b;
	int result = find_field(e, node, event, &field, error);

	if (result)
		return result;
	whole_range(field, r);
	if (node->has_bits)
		result = apply_bits(e, node, field, r, error);
	if (!result && value.kind == PEM_OPERAND_WORD) {
		result = find_label(e, &value, field, &value.magnitude, error);
		value.negative = is_signed(field->type) && (int64_t)value.magnitude < 0;
		value.magnitude = value.negative ? 0 - value.magnitude : value.magnitude;
		value.kind = PEM_OPERAND_INTEGER;
	}
	if (result)
		return result;
	b = r->is_float
		    ? between_floats(&value, field->type == PEM_TYPE_FLOAT32)
		    : between_integers(&value,
				       8 * (unsigned)pem_type__bytes((enum pem_type)field->type),
				       r->flip != 0);
	narrow(r, (enum pem_operator)node->op, &b);
	return 0;
}

/* --- code --- */

enum verdict { DEPENDS, ALWAYS, NEVER };

struct compiler {
	const struct pem_expression *e;
	struct pem_range range[2 * (PEM_TESTS_MAX + PEM_GATES_MAX)]; /* ranges of the nodes */
	uint8_t verdict[2 * (PEM_TESTS_MAX + PEM_GATES_MAX)]; /* negation included */
	uint8_t size[2 * (PEM_TESTS_MAX + PEM_GATES_MAX)]; /* tests */
	struct pem_test *test;
};

static enum verdict opposite(enum verdict v)
{
	return v == ALWAYS ? NEVER : v == NEVER ? ALWAYS : DEPENDS;
}

static void judge_comparison(struct compiler *c, uint32_t i)
{
	const struct pem_range *r = &c->range[i];
	enum verdict v = r->empty ? NEVER : r->full ? ALWAYS : DEPENDS;

	c->verdict[i] = (uint8_t)(r->outside ? opposite(v) : v);
	c->size[i] = v == DEPENDS;
}

/* Judge && or ||. One side alone can decide the answer 'decided': NEVER for &&, ALWAYS for ||. */
static void judge_pair(struct compiler *c, uint32_t i, enum verdict decided)
{
	uint32_t left = c->e->node[i].left, right = c->e->node[i].right;

	if (c->verdict[left] == decided || c->verdict[right] == decided) {
		c->verdict[i] = (uint8_t)decided;
	} else if (c->verdict[left] == DEPENDS || c->verdict[right] == DEPENDS) {
		c->verdict[i] = DEPENDS;
		c->size[i] = (uint8_t)(c->size[left] + c->size[right]);
	} else {
		c->verdict[i] = (uint8_t)opposite(decided);
	}
}

/* Judge all nodes. Children come before their parents in the array. */
static int judge(struct compiler *c, const struct pem_event *event, struct pem_error *error)
{
	const struct pem_node *node;
	uint32_t i;
	int result;

	for (i = 0; i < c->e->node_count; i++) {
		node = &c->e->node[i];
		if (node->kind == PEM_NODE_GATE)
			continue; /* taken out of the tree */
		if (node->kind == PEM_NODE_COMPARISON) {
			result = pem_expression__range(c->e, node, event, &c->range[i], error);
			if (result)
				return result;
			judge_comparison(c, i);
		} else {
			judge_pair(c, i, node->kind == PEM_NODE_AND ? NEVER : ALWAYS);
		}
		if (node->negated)
			c->verdict[i] = (uint8_t)opposite((enum verdict)c->verdict[i]);
	}
	return 0;
}

static void emit_test(const struct pem_range *r, struct pem_test *test, uint32_t on_true,
		      uint32_t on_false)
{
	memset(test, 0, sizeof(*test));
	test->mask = r->mask;
	test->flip = r->flip;
	test->lo = r->lo;
	test->span = r->hi - r->lo;
	test->end = r->end;
	test->is_float = r->is_float;
	test->on_true = (uint8_t)(r->outside ? on_false : on_true);
	test->on_false = (uint8_t)(r->outside ? on_true : on_false);
}

/* Write the tests of a node whose verdict is DEPENDS, from index at on. */
static void emit(struct compiler *c, uint32_t i, uint32_t at, uint32_t on_true, uint32_t on_false)
{
	const struct pem_node *node = &c->e->node[i];
	uint32_t then;

	if (node->negated) {
		then = on_true;
		on_true = on_false;
		on_false = then;
	}
	if (node->kind == PEM_NODE_COMPARISON) {
		emit_test(&c->range[i], &c->test[at], on_true, on_false);
		return;
	}
	/* If one side is decided, and did not decide the node, only the other side is tested. */
	if (c->verdict[node->left] != DEPENDS || c->verdict[node->right] != DEPENDS) {
		emit(c, c->verdict[node->left] == DEPENDS ? node->left : node->right, at, on_true,
		     on_false);
		return;
	}
	then = at + c->size[node->left];
	if (node->kind == PEM_NODE_AND)
		emit(c, node->left, at, then, on_false);
	else
		emit(c, node->left, at, on_true, then);
	emit(c, node->right, then, on_true, on_false);
}

int pem_expression__compile(const struct pem_expression *expression, const struct pem_event *event,
			    struct pem_test *test, struct pem_error *error)
{
	struct compiler c = {.e = expression, .test = test};
	uint32_t root = expression->node_count - 1, i, answer;
	int result = judge(&c, event, error);

	if (result || !expression->node_count)
		return result;
	if (c.verdict[root] == DEPENDS) {
		emit(&c, root, 0, PEM_TEST_PASS, PEM_TEST_FAIL);
		return c.size[root];
	}
	/*
	 * The answer is the same for every record: write one test, of an existing field, that
	 * always gives it.
	 */
	for (i = 0; expression->node[i].kind != PEM_NODE_COMPARISON;)
		i++;
	answer = c.verdict[root] == ALWAYS ? PEM_TEST_PASS : PEM_TEST_FAIL;
	emit_test(&c.range[i], &test[0], answer, answer);
	test[0].lo = test[0].span = 0;
	return 1;
}
