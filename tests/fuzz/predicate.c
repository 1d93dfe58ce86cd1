// SPDX-License-Identifier: MIT
/*
 * predicate.c - fuzz target: any text as a predicate of an event that has all kinds of fields, on
 * any record of it
 *
 * The input is a text, a NUL, and a record's bytes behind its header. What is refused is refused
 * with a sentence; what is taken compiles to tests that stay inside of the record and end, and say
 * what walking the tree says.
 */
#include "pool.h"
#include "tests/unit/predicate_reference.h"

#include <pem/predicate.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const struct pem_label labels[] = {
	{"sleeping", "", 0}, {"running", "", 7}, {"top", "", 128}};

#define FIELD(name, type, offset)                                                                  \
	{                                                                                          \
		name, "", "", type, 0, 10, 0, offset, 1, 0, 0, NULL                                \
	}
static const struct pem_field fields[] = {
	{"a", "", "", PEM_TYPE_UINT8, 0, 10, 0, 8, 1, PEM_LABELS_ENUM, 3, labels},
	FIELD("b", PEM_TYPE_INT8, 9),
	FIELD("c", PEM_TYPE_UINT16, 10),
	FIELD("d", PEM_TYPE_INT32, 12),
	FIELD("e", PEM_TYPE_UINT64, 16),
	FIELD("f", PEM_TYPE_INT64, 24),
	FIELD("g", PEM_TYPE_FLOAT32, 32),
	FIELD("h", PEM_TYPE_UINT32, 36),
	FIELD("i", PEM_TYPE_FLOAT64, 40),
	FIELD("j.k", PEM_TYPE_INT16, 48),
	FIELD("l", PEM_TYPE_ADDRESS, 56),
	FIELD("m", PEM_TYPE_STRING, 0),
};
#define FIXED_BYTES 64u
static const struct pem_event event = {.name = "APP::Fuzz::Event",
				       .fields = fields,
				       .field_count = sizeof(fields) / sizeof(fields[0]),
				       .fixed_bytes = FIXED_BYTES};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct pem_expression expression;
	struct pem_test test[PEM_TESTS_MAX];
	const uint8_t *end = memchr(data, 0, bytes);
	uint8_t record[FIXED_BYTES] = {0};
	struct pem_error error = {""};
	size_t rest;
	int count;

	if (!end)
		return 0;
	rest = bytes - (size_t)(end + 1 - data);
	memcpy(record + 8, end + 1, rest < FIXED_BYTES - 8 ? rest : FIXED_BYTES - 8);
	if (pem_expression__parse(&expression, (const char *)data, &error)) {
		if (!error.text[0])
			abort();
		return 0;
	}
	count = pem_expression__compile(&expression, &event, test, &error);
	if (count < 0) {
		if (!error.text[0])
			abort();
		return 0;
	}
	if (count == 0 && expression.gate_count) /* there are gates alone */
		return 0;
	if (count == 0 || !pem_tests__valid(test, (uint32_t)count, FIXED_BYTES))
		abort();
	if (pem_tests_pass(test, (uint32_t)count, record) !=
	    reference_passes(&expression, &event, record))
		abort();
	return 0;
}
