/* SPDX-License-Identifier: MIT */
/*
 * predicate_reference.h - what a predicate says of a record, by walking its tree and comparing
 * values as C does
 *
 * Slow and plain, so that compiled tests can be held against it. Included by unit tests and a fuzz
 * target.
 */
#ifndef PREDICATE_REFERENCE_H
#define PREDICATE_REFERENCE_H

#include "predicate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Wide enough for each number of 64 bits, with its sign, to be one of its own; and so is what
 * doubles are.
 */
PEM_STATIC_ASSERT(__LDBL_MANT_DIG__ >= 64, "long double holds 64 bits");

static inline long double reference_field(const struct pem_field *field, const uint8_t *record)
{
	const uint8_t *at = record + field->offset;
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		int8_t i8;
		int16_t i16;
		int32_t i32;
		int64_t i64;
		float f32;
		double f64;
	} v = {.u64 = 0};

	memcpy(&v, at, pem_type__bytes((enum pem_type)field->type));
	switch (field->type) {
	case PEM_TYPE_UINT8:
		return v.u8;
	case PEM_TYPE_UINT16:
		return v.u16;
	case PEM_TYPE_UINT32:
		return v.u32;
	case PEM_TYPE_INT8:
		return v.i8;
	case PEM_TYPE_INT16:
		return v.i16;
	case PEM_TYPE_INT32:
		return v.i32;
	case PEM_TYPE_INT64:
		return v.i64;
	case PEM_TYPE_FLOAT32:
		return v.f32;
	case PEM_TYPE_FLOAT64:
		return v.f64;
	default:
		return v.u64;
	}
}

static inline uint64_t reference_bits(const struct pem_field *field, const uint8_t *record)
{
	uint64_t bits = 0;

	memcpy(&bits, record + field->offset, pem_type__bytes((enum pem_type)field->type));
	return bits;
}

static inline long double reference_operand(const struct pem_expression *e,
					    const struct pem_operand *operand,
					    const struct pem_field *field)
{
	uint16_t i;

	if (operand->kind == PEM_OPERAND_REAL)
		return operand->real;
	if (operand->kind == PEM_OPERAND_INTEGER)
		return operand->negative ? -(long double)operand->magnitude : operand->magnitude;
	for (i = 0; i < field->label_count; i++) {
		if (strlen(field->labels[i].name) == operand->bytes &&
		    !memcmp(field->labels[i].name, e->text + operand->at, operand->bytes))
			return field->type >= PEM_TYPE_INT8 && field->type <= PEM_TYPE_INT64
				       ? (long double)(int64_t)field->labels[i].value
				       : (long double)field->labels[i].value;
	}
	abort(); /* it was compiled */
}

static inline bool reference_comparison(const struct pem_expression *e, const struct pem_node *node,
					const struct pem_event *event, const uint8_t *record)
{
	const struct pem_field *field;
	long double value, constant;
	char name[128];
	int i;

	snprintf(name, sizeof(name), "%.*s", node->field_bytes, e->text + node->field_at);
	i = pem_event__field(event, name);
	if (i < 0)
		abort();
	field = &event->fields[i];
	value = reference_field(field, record);
	if (node->has_bits)
		value = reference_bits(field, record) &
			(uint64_t)reference_operand(e, &node->bits, field);
	constant = reference_operand(e, &node->value, field);
	switch (node->op) {
	case PEM_EQ:
		return value == constant;
	case PEM_NE:
		return value != constant;
	case PEM_LT:
		return value < constant;
	case PEM_LE:
		return value <= constant;
	case PEM_GT:
		return value > constant;
	default:
		return value >= constant;
	}
}

static inline bool reference_holds(const struct pem_expression *e, uint32_t i,
				   const struct pem_event *event, const uint8_t *record)
{
	const struct pem_node *node = &e->node[i];
	bool holds;

	if (node->kind == PEM_NODE_COMPARISON)
		holds = reference_comparison(e, node, event, record);
	else if (node->kind == PEM_NODE_AND)
		holds = reference_holds(e, node->left, event, record) &&
			reference_holds(e, node->right, event, record);
	else
		holds = reference_holds(e, node->left, event, record) ||
			reference_holds(e, node->right, event, record);
	return holds != node->negated;
}

static inline bool reference_passes(const struct pem_expression *e, const struct pem_event *event,
				    const uint8_t *record)
{
	return reference_holds(e, e->node_count - 1, event, record);
}

#endif
