/* SPDX-License-Identifier: MIT */
/*
 * predicate_text.c - predicates: what may be written, what it compiles to, what it says of values,
 * what errors say
 *
 * Not here: who evaluates the tests (predicate_same.c), sets and handles (session_where.c).
 */
#include "pool.h"
#include "predicate_reference.h"

#include <errno.h>
#include <math.h>
#include <pem/predicate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct pem_label states[] = {{"sleeping", "", 0}, {"running", "", 7}};
static const struct pem_label modes[] = {{"read", "", 1}, {"create", "", 0x40}};
static const struct pem_label errors[] = {{"again", "", (uint64_t)-11}};

struct record {
	struct pem_record_header header;
	uint8_t state;
	int8_t change;
	uint16_t port;
	uint32_t mode;
	uint64_t size;
	int64_t balance;
	int32_t error;
	float ratio;
	double load;
	uint64_t site;
};

#define FIELD(type, member, name)                                                                  \
	{                                                                                          \
		name, "", "", type, 0, 10, 0, offsetof(struct record, member), 1, 0, 0, NULL       \
	}
static const struct pem_field fields[] = {
	{"state", "", "", PEM_TYPE_UINT8, 0, 10, 0, 8, 1, PEM_LABELS_ENUM, 2, states},
	FIELD(PEM_TYPE_INT8, change, "change"),
	FIELD(PEM_TYPE_UINT16, port, "address.port"),
	{"mode", "", "", PEM_TYPE_UINT32, 0, 16, 0, 12, 1, PEM_LABELS_FLAGS, 2, modes},
	FIELD(PEM_TYPE_UINT64, size, "size"),
	FIELD(PEM_TYPE_INT64, balance, "balance"),
	{"error", "", "", PEM_TYPE_INT32, 0, 10, 0, 32, 1, PEM_LABELS_ENUM, 1, errors},
	FIELD(PEM_TYPE_FLOAT32, ratio, "ratio"),
	FIELD(PEM_TYPE_FLOAT64, load, "load"),
	FIELD(PEM_TYPE_ADDRESS, site, "site"),
	{"name", "", "", PEM_TYPE_STRING, 0, 10, 0, 0, 9, 0, 0, NULL},
};
static const struct pem_event event = {.name = "APP::Test::Event",
				       .fields = fields,
				       .field_count = sizeof(fields) / sizeof(fields[0]),
				       .fixed_bytes = sizeof(struct record)};

static struct pem_expression expression;
static struct pem_test test[PEM_TESTS_MAX];

static int compile(const char *text, struct pem_error *error)
{
	int result = pem_expression__parse(&expression, text, error);

	return result ? result : pem_expression__compile(&expression, &event, test, error);
}

static uint32_t compiled(const char *text)
{
	struct pem_error error = {""};
	int count = compile(text, &error);

	if (count < 1)
		fail_msg("%s", error.text);
	assert_true(pem_tests__valid(test, (uint32_t)count, event.fixed_bytes));
	return (uint32_t)count;
}

static bool passes(const char *text, const struct record *record)
{
	uint32_t count = compiled(text);
	bool answer = pem_tests_pass(test, count, (const uint8_t *)record);

	if (answer != reference_passes(&expression, &event, (const uint8_t *)record))
		fail_msg("%s: tests say %d, the tree does not", text, answer);
	return answer;
}

static const struct record usual = {.state = 7,
				    .change = -3,
				    .port = 443,
				    .mode = 0x41,
				    .size = 5000,
				    .balance = -70000,
				    .error = -11,
				    .ratio = 0.5f,
				    .load = 1.25,
				    .site = 0x7f0000001000};

/* --- meaning --- */

static void and_binds_tighter_than_or(void **state)
{
	(void)state;
	assert_true(passes("size == 5000 || size == 1 && state == 1", &usual));
	assert_false(passes("(size == 5000 || size == 1) && state == 1", &usual));
}

static void fields_of_every_type_compare_by_value(void **state)
{
	static const char *const holds[] = {"size > 4096 && site != 0",
					    "state == running",
					    "state >= 7",
					    "change < 0",
					    "change == -3",
					    "address.port == 0x1bb",
					    "mode & create",
					    "mode & 0x40 == 0x40",
					    "mode & read == 1 && mode & create != 0",
					    "balance < -69999",
					    "balance >= -70000",
					    "error == again",
					    "error != 11",
					    "ratio == 0.5",
					    "ratio < 1",
					    "load > 1",
					    "load <= 1.25",
					    "site >= 0x7f0000000000",
					    "!(size < 10)",
					    "!!size",
					    "size",
					    "change & 0x80 == 128",
					    "state == 1 || state == 2 || state == 7"};
	static const char *const fails[] = {"size > 4096 && site == 0",
					    "state == sleeping",
					    "change > 0",
					    "mode & 2",
					    "balance > 0",
					    "error == 11",
					    "ratio > 0.5",
					    "load == 1",
					    "!size",
					    "state == 1 || state == 2",
					    "(state == 7 || size == 1) && change == 3"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(holds) / sizeof(holds[0]); i++)
		if (!passes(holds[i], &usual))
			fail_msg("%s does not hold", holds[i]);
	for (i = 0; i < sizeof(fails) / sizeof(fails[0]); i++)
		if (passes(fails[i], &usual))
			fail_msg("%s holds", fails[i]);
}

static void constants_that_no_value_has_decide(void **state)
{
	static const char *const always[] = {"state < 256",
					     "state <= 255",
					     "state >= 0",
					     "state > -1",
					     "state != 300",
					     "change < 128",
					     "change >= -128",
					     "size <= 18446744073709551615",
					     "size > -0.5",
					     "balance != 18446744073709551615",
					     "state != 7.5",
					     "!(size < 0)",
					     "mode & 15 <= 4294967295"};
	static const char *const never[] = {"state > 255",
					    "state == 256",
					    "state == -1",
					    "change > 127.5",
					    "size < 0",
					    "size < 0.0",
					    "balance > 9223372036854775807",
					    "state == 7.5",
					    "state > 300 && size",
					    "ratio == 0.1"};
	struct record record = usual;
	size_t i;
	int value;

	(void)state;
	for (value = 0; value < 256; value++) {
		memset(&record, value, sizeof(record));
		for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
			assert_true(passes(always[i], &record));
		for (i = 0; i < sizeof(never) / sizeof(never[0]); i++)
			assert_false(passes(never[i], &record));
		assert_int_equal(compiled("state < 256 && state == 7"), 1);
		assert_int_equal(compiled("state > 255 || state == 7"), 1);
	}
}

static void nan_is_unequal_to_all_and_in_no_order(void **state)
{
	static const float odd[] = {NAN, -NAN};
	struct record record = usual;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		record.ratio = odd[i];
		record.load = (double)odd[i];
		assert_false(passes("ratio < 1 || ratio >= 1 || ratio == 0", &record));
		assert_false(passes("load < 1e308 || load >= -1e308 || load == 0", &record));
		assert_true(passes("ratio != 0 && load != 0 && ratio", &record));
		assert_true(passes("!(ratio < 1) && !(load >= 1)", &record));
	}
}

static void both_zeroes_are_equal(void **state)
{
	struct record record = usual;

	(void)state;
	record.ratio = -0.0f;
	record.load = -0.0;
	assert_true(passes("ratio == 0 && load == 0 && ratio >= 0 && load <= -0.0", &record));
	assert_false(passes("ratio < 0 || load > 0 || load < 0 || ratio", &record));
	record.ratio = 0.0f;
	record.load = 0.0;
	assert_true(passes("ratio == -0.0 && load == 0 && ratio >= 0 && load <= 0", &record));
	assert_false(passes("ratio < 0 || ratio > 0 || load < 0 || load", &record));
}

/* Values at the edges of each type, and constants around them, in all comparisons. */
static const char *const edge_names[] = {"state",
					 "change",
					 "address.port",
					 "mode",
					 "size",
					 "balance",
					 "error",
					 "ratio",
					 "load",
					 "size & 0xf0",
					 "balance & 0x8000000000000001",
					 "change & 0x181"};
static const char *const edge_ops[] = {"==", "!=", "<", "<=", ">", ">="};
static const char *const edge_constants[] = {"0",
					     "1",
					     "-1",
					     "0.5",
					     "-0.5",
					     "127",
					     "128",
					     "-128",
					     "-129",
					     "255",
					     "256",
					     "255.5",
					     "65535",
					     "4294967295",
					     "4294967296",
					     "2147483648",
					     "-2147483648",
					     "-2147483649.5",
					     "9223372036854775807",
					     "9223372036854775808",
					     "-9223372036854775808",
					     "18446744073709551615",
					     "1.8446744073709552e19",
					     "16777217",
					     "0.1",
					     "1e-60",
					     "-1e-60",
					     "1e300",
					     "-1e300",
					     "3.4028234663852886e38",
					     "3.4028235e38",
					     "1e-45"};
static const uint64_t edge_bits[] = {0,
				     1,
				     ~0ull,
				     0x7f,
				     0x80,
				     0xff,
				     0x7fff,
				     0x7fffffff,
				     0x80000000,
				     1ull << 63,
				     (1ull << 63) - 1,
				     0x3f800000,
				     0x3dcccccd,
				     0x7f800000,
				     0xff800000,
				     0x7f7fffff,
				     0x3fb999999999999a,
				     0x7ff0000000000000,
				     0xfff0000000000000,
				     0x4b800000,
				     0x43f0000000000000,
				     0xc3e0000000000000,
				     0x8000000080000000};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct record filled_with(uint64_t bits)
{
	struct record record;

	memset(&record, 0, sizeof(record));
	record.state = (uint8_t)bits;
	record.change = (int8_t)bits;
	record.port = (uint16_t)bits;
	record.mode = (uint32_t)bits;
	record.size = bits;
	record.balance = (int64_t)bits;
	record.error = (int32_t)bits;
	memcpy(&record.ratio, &bits, sizeof(record.ratio));
	memcpy(&record.load, &bits, sizeof(record.load));
	return record;
}

static void at_the_edges_tests_and_tree_agree(void **state)
{
	struct record record;
	size_t n, o, c, b;
	char text[96];

	(void)state;
	for (n = 0; n < COUNT(edge_names); n++)
		for (o = 0; o < COUNT(edge_ops); o++)
			for (c = 0; c < COUNT(edge_constants); c++) {
				snprintf(text, sizeof(text), "%s %s %s", edge_names[n], edge_ops[o],
					 edge_constants[c]);
				for (b = 0; b < COUNT(edge_bits); b++) {
					record = filled_with(edge_bits[b]);
					passes(text, &record);
				}
			}
}

static void a_full_predicate_has_32_tests(void **state)
{
	char text[1024] = "size == 0";
	struct pem_error error = {""};
	struct record record = usual;
	int i;

	(void)state;
	for (i = 1; i < 32; i++)
		sprintf(text + strlen(text), " || size == %d", i);
	assert_int_equal(compiled(text), 32);
	record.size = 31;
	assert_true(passes(text, &record));
	record.size = 32;
	assert_false(passes(text, &record));
	strcat(text, " || size == 32");
	assert_int_equal(compile(text, &error), -E2BIG);
	assert_non_null(strstr(error.text, "at most 32 comparisons"));
}

static void deep_nesting_and_long_texts_are_refused(void **state)
{
	struct pem_error error = {""};
	char *text = malloc(100001);

	(void)state;
	assert_non_null(text);
	memset(text, '(', 4000);
	strcpy(text + 4000, "size");
	assert_int_equal(compile(text, &error), -E2BIG);
	memset(text, '!', 4000);
	assert_true(passes(text, &usual));
	memset(text, ' ', 100000);
	text[100000] = 0;
	assert_int_equal(compile(text, &error), -E2BIG);
	free(text);
}

/* --- errors --- */

static void errors_name_the_column_and_what_may_stand_there(void **state)
{
	static const struct {
		const char *text, *column, *says;
	} wrong[] = {
		{"", "column 1:", "a field's name"},
		{"size >",
		 "column 7:", "a number or a label of the field belongs here, and not the end"},
		{"size > > 3", "column 8:", "and not '>'"},
		{"size = 3", "column 6:", "'==' compares"},
		{"size > 3 & 4", "column 10:", "'&&'"},
		{"size > 3 &&", "column 12:", "a field's name, '!' or '('"},
		{"(size > 3", "column 10:", "')'"},
		{"size > 3)", "column 9:", "the end belongs here, and not ')'"},
		{"4096 < size", "column 1:", "a field's name"},
		{"size > 12kb", "column 8:", "such as 4096"},
		{"size > 99999999999999999999", "column 8:", "64 bits"},
		{"size > 1e999", "column 8:", "not too large"},
		{"sise > 3", "column 1:", "did you mean 'size'?"},
		{"colour == 3", "column 1:", "it has state, change"},
		{"name == 3", "column 1:", "only numbers can be tested"},
		{"size && state == runing", "column 18:", "did you mean 'running'?"},
		{"state == asleep_or_so", "column 10:", "there are sleeping, running"},
		{"size == running", "column 9:", "has no labels"},
		{"ratio & 1", "column 9:", "no bits to choose"},
		{"mode & -1", "column 8:", "a whole number from 0 on"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pem_error error = {""};

		assert_int_equal(compile(wrong[i].text, &error), -EINVAL);
		if (!strstr(error.text, wrong[i].column) || !strstr(error.text, wrong[i].says))
			fail_msg("'%s': %s", wrong[i].text, error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(and_binds_tighter_than_or),
		cmocka_unit_test(fields_of_every_type_compare_by_value),
		cmocka_unit_test(constants_that_no_value_has_decide),
		cmocka_unit_test(nan_is_unequal_to_all_and_in_no_order),
		cmocka_unit_test(both_zeroes_are_equal),
		cmocka_unit_test(at_the_edges_tests_and_tree_agree),
		cmocka_unit_test(a_full_predicate_has_32_tests),
		cmocka_unit_test(deep_nesting_and_long_texts_are_refused),
		cmocka_unit_test(errors_name_the_column_and_what_may_stand_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
