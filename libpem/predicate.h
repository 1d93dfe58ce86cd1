/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * predicate.h - predicates as text ('size > 4096 && site != 0'), as a tree, and as tests
 *
 *	predicate:	or
 *	or:		and { '||' and }
 *	and:		not { '&&' not }
 *	not:		{ '!' } ( '(' or ')' | comparison )
 *	comparison:	FIELD [ '&' BITS ] [ OP VALUE ] | gate
 *	gate:		( 'inside' NAME | 'from' NAME 'to' NAME ) [ 'per' ( 'thread' | 'process' ) ]
 *
 * The tests are compiled for one event. A gate is no test of the event's fields: gates are taken
 * out of the tree, and all of them have to hold beside the tests. So they may be joined to the rest
 * by && alone. Not here: evaluating tests (pem/predicate.h), the events of gates (core/gate.h), the
 * callers (pem_event_set__where).
 */
#ifndef PEM_LIBPEM_PREDICATE_H
#define PEM_LIBPEM_PREDICATE_H

#include <pem/gate.h>
#include <pem/model.h>

#include <stdbool.h>

enum pem_operator { PEM_EQ, PEM_NE, PEM_LT, PEM_LE, PEM_GT, PEM_GE };

/* The right side of a comparison, as written. */
struct pem_operand {
	enum { PEM_OPERAND_INTEGER, PEM_OPERAND_REAL, PEM_OPERAND_WORD } kind;
	bool negative; /* of an integer */
	uint64_t magnitude; /* of an integer */
	double real;
	uint16_t at, bytes; /* offset and length in the text */
};

enum pem_node_kind { PEM_NODE_COMPARISON, PEM_NODE_AND, PEM_NODE_OR, PEM_NODE_GATE };

/* A gate as written: offsets and lengths of names in the text. */
struct pem_gate_term {
	bool is_from; /* 'from A to B', else 'inside A' */
	bool negated;
	uint8_t scope; /* enum pem_scope; PEM_SCOPE_NONE: that of the events */
	uint16_t at, bytes, to_at, to_bytes;
};

struct pem_node {
	uint8_t kind; /* enum pem_node_kind */
	bool negated; /* the node's answer is inverted */
	uint8_t left, right; /* AND and OR: indexes of nodes before this one */
	/* the members of a comparison */
	uint8_t op; /* enum pem_operator */
	uint8_t gate; /* of a gate: its index */
	bool has_bits;
	uint16_t field_at, field_bytes; /* offset and length in the text */
	struct pem_operand bits, value;
};

#define PEM_PREDICATE_TEXT_MAX 4095u
#define PEM_PREDICATE_DEPTH_MAX 64u /* of parentheses */

struct pem_expression {
	char text[PEM_PREDICATE_TEXT_MAX + 1];
	uint32_t node_count; /* the last one is the root; 0: there are gates alone */
	struct pem_node node[2 * (PEM_TESTS_MAX + PEM_GATES_MAX)];
	uint32_t gate_count;
	struct pem_gate_term gate[PEM_GATES_MAX];
};

/*
 * Parse a text. Returns 0. -EINVAL with error, which says the column and what may stand there.
 * -E2BIG: more than PEM_TESTS_MAX comparisons or PEM_GATES_MAX gates, nested too deep, or too long
 * a text.
 */
int pem_expression__parse(struct pem_expression *expression, const char *text,
			  struct pem_error *error);

/*
 * A comparison of an event's field as a range. The field's bytes are the highest of a word of eight
 * bytes. The bits of mask make a key, which orders as the values do. The comparison holds if the
 * key lies in lo to hi. empty: no value lies there. full: every value does.
 */
struct pem_range {
	uint64_t mask, flip, lo, hi;
	uint16_t end;
	bool is_float;
	bool outside; /* the comparison holds outside the range */
	bool empty, full;
};
/* Compute the range of a comparison node. Returns 0, or -EINVAL with error. */
int pem_expression__range(const struct pem_expression *expression, const struct pem_node *node,
			  const struct pem_event *event, struct pem_range *range,
			  struct pem_error *error);

/*
 * Compile for an event into test[PEM_TESTS_MAX]. Returns the number of tests; 0: there are gates
 * alone. -EINVAL
 * with error: the event has no such field, the field can't be tested, or a value means nothing for
 * it.
 */
int pem_expression__compile(const struct pem_expression *expression, const struct pem_event *event,
			    struct pem_test *test, struct pem_error *error);

/*
 * Set error to a sentence about a position in the text: "predicate, column 8: ...". Returns
 * -EINVAL.
 */
int pem_expression__fail(const struct pem_expression *expression, size_t at,
			 struct pem_error *error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
