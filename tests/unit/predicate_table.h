/* SPDX-License-Identifier: MIT */
/*
 * predicate_table.h - predicates and inputs that every producer has to judge alike, and how they
 * are to be judged
 *
 * n stands for a signed field with values of 32 bits, a for an unsigned one of 64. Included by the
 * tests of stubs (predicate_same.c), of BPF programs (kernel_where.c) and of the module's probes
 * (kmod_probes.c).
 */
#ifndef PREDICATE_TABLE_H
#define PREDICATE_TABLE_H

#include "predicate_reference.h"

struct table_input {
	int32_t n;
	uint64_t a;
};

#define TABLE_COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const table_predicates[] = {
	"a > 4096 && n != 0",
	"n == -7",
	"n != -7",
	"n < 0",
	"n <= -1",
	"n > 0 || a == 0",
	"n >= 0 && n < 1000",
	"n & 1",
	"n & 0x80000000",
	"n & 0xff == 0xf9",
	"!(n & 3) && !(a & 3)",
	"a == 18446744073709551615",
	"a >= 0x8000000000000000",
	"a < 4097",
	"a <= 4096 || a > 1e19",
	"a & 0xff00 == 0x1000",
	"a != 4096",
	"a > 4095.5",
	"n > -7.5 && n < -6.5",
	"n > 5000000000",
	"n < 5000000000",
	"a > -1",
	"a == -1",
	"!(a > 4096 && n != 0)",
	"!!n",
	"(n == 1 || n == 2 || n == 1000) && (a == 0 || a > 1)",
	"n == 1 && a == 1 || n == 2 && a == 0 || n == -7 && a > 4000",
	"!(n == 1 || !(a > 4096) || n < 0 && a & 1)",
	"((((((n))))))",
	"n >= -2147483648 && n <= 2147483647 && a >= 0",
	"a==1||a==2||a==3||a==4||a==5||a==6||a==7||a==8||a==9||a==10||a==11||a==12||a==13||a==14||"
	"a==15||"
	"a==16||n==1||n==2||n==3||n==4||n==5||n==6||n==7||n==8||n==9||n==10||n==11||n==12||n==13||"
	"n==14||"
	"n==15||n==-7",
};

/*
 * No system call of any Linux has one of these numbers above 1000; -1 is told apart from none by
 * some.
 */
static const struct table_input table_inputs[] = {
	{100000, 0},         {100001, 1},     {100002, 4096},           {-7, 4097},
	{-7, 4095},          {-8, ~0ull},     {100003, 1ull << 63},     {100004, (1ull << 63) - 1},
	{INT32_MAX, 0x10ff}, {INT32_MIN, 16}, {-2, 0xfffffffffffff000}, {1000000, 0x123456789a},
};

/* A predicate with the fields' names for n and a. */
static inline const char *table_text(const char *predicate, const char *n, const char *a)
{
	static char text[4096];
	size_t used = 0;

	for (; *predicate; predicate++) {
		if (*predicate == 'n' || *predicate == 'a')
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s",
						 *predicate == 'n' ? n : a);
		else if (used < sizeof(text) - 1)
			text[used++] = *predicate;
	}
	text[used] = 0;
	return text;
}

/*
 * What is right for an input, by walking the tree; n and a lie in the record of an event made for
 * it.
 */
static inline bool table_answer(const char *predicate, const struct table_input *input)
{
	static const struct pem_field fields[] = {
		{"n", "", "", PEM_TYPE_INT32, 0, 10, 0, 8, 1, 0, 0, NULL},
		{"a", "", "", PEM_TYPE_UINT64, 0, 10, 0, 16, 1, 0, 0, NULL},
	};
	static const struct pem_event event = {
		.name = "APP::Table::Row", .fields = fields, .field_count = 2, .fixed_bytes = 24};
	static struct pem_expression expression;
	struct pem_error error = {""};
	uint8_t record[24] = {0};

	if (pem_expression__parse(&expression, predicate, &error))
		abort();
	memcpy(record + 8, &input->n, sizeof(input->n));
	memcpy(record + 16, &input->a, sizeof(input->a));
	return reference_passes(&expression, &event, record);
}

#endif
