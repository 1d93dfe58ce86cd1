/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * predicate.h - what people write about fields ('size > 4096 && site != 0'), as a tree, and
 * compiled to tests for an event
 *
 *	predicate:	or
 *	or:		and { '||' and }
 *	and:		not { '&&' not }
 *	not:		{ '!' } ( '(' or ')' | comparison )
 *	comparison:	FIELD [ '&' BITS ] [ OP VALUE ]
 *
 * Not here: evaluating tests (pem/predicate.h), who asks for them (pem_event_set__where).
 */
#ifndef PEM_LIBPEM_PREDICATE_H
#define PEM_LIBPEM_PREDICATE_H

#include <pem/abi.h>
#include <pem/model.h>

#include <stdbool.h>

enum pem_operator { PEM_EQ, PEM_NE, PEM_LT, PEM_LE, PEM_GT, PEM_GE };

/* What a value is compared with, as written. */
struct pem_operand {
	enum { PEM_OPERAND_INTEGER, PEM_OPERAND_REAL, PEM_OPERAND_WORD } kind;
	bool negative; /* of an integer */
	uint64_t magnitude; /* of an integer */
	double real;
	uint16_t at, bytes; /* in the text */
};

enum pem_node_kind { PEM_NODE_COMPARISON, PEM_NODE_AND, PEM_NODE_OR };

struct pem_node {
	uint8_t kind; /* enum pem_node_kind */
	bool negated; /* what the node says, turned round */
	uint8_t left, right; /* of AND and OR: indexes of nodes before this one */
	/* of a comparison */
	uint8_t op; /* enum pem_operator */
	bool has_bits;
	uint16_t field_at, field_bytes; /* in the text */
	struct pem_operand bits, value;
};

#define PEM_PREDICATE_TEXT_MAX 4095u
#define PEM_PREDICATE_DEPTH_MAX 64u /* of parentheses */

struct pem_expression {
	char text[PEM_PREDICATE_TEXT_MAX + 1];
	uint32_t node_count; /* the last one is the root */
	struct pem_node node[2 * PEM_TESTS_MAX];
};

/*
 * Parse a text. 0; -EINVAL with error: the column and what may stand there; -E2BIG: more than
 * PEM_TESTS_MAX comparisons, nested too deep, or too long a text.
 */
int pem_expression__parse(struct pem_expression *expression, const char *text,
			  struct pem_error *error);

/*
 * What a comparison asks of an event's field: of the bits that mask leaves of its eight highest
 * bytes, made a key that orders as the values do, whether it lies in lo to hi. empty: no value
 * does; full: each does.
 */
struct pem_range {
	uint64_t mask, flip, lo, hi;
	uint16_t end;
	bool is_float;
	bool outside; /* holds where the range does not */
	bool empty, full;
};
/* Of a comparison node. 0, or -EINVAL with error. */
int pem_expression__range(const struct pem_expression *expression, const struct pem_node *node,
			  const struct pem_event *event, struct pem_range *range,
			  struct pem_error *error);

/*
 * Compile for an event into test[PEM_TESTS_MAX]. Returns how many tests, at least one; or -EINVAL
 * with error: a field that the event lacks or that can't be tested, a value that means nothing to
 * it.
 */
int pem_expression__compile(const struct pem_expression *expression, const struct pem_event *event,
			    struct pem_test *test, struct pem_error *error);

/* A sentence about a place in the text: "predicate, column 8: ...". Returns -EINVAL. */
int pem_expression__fail(const struct pem_expression *expression, size_t at,
			 struct pem_error *error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
