/* SPDX-License-Identifier: MIT */
/*
 * record_words.c - numbers in the words of their labels: an enum's name, the names of bits
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pem/trace.h>

#include <string.h>

/* clang-format off */
static const char text[] = "pem-model\t2\n"
	"event\t00000101\tAPP::Words::Said\tAPP\tWords\tSaid\t1\tinfo\t-\t\t-\tstub\t\t12\t16\t3\t0"
	"\t\t\t\n"
	"field\tsign\tint8\t-\t10\t-\t8\t1\t\tenum\t2\t\n"
	"label\tffffffffffffffff\tminus\t\n"
	"label\t0000000000000001\tplus\t\n"
	"field\tbits\tuint8\t-\t16\t-\t9\t1\t\tflags\t4\t\n"
	"label\t0000000000000000\tnone\t\n"
	"label\t0000000000000001\tread\t\n"
	"label\t0000000000000002\twrite\t\n"
	"label\t0000000000000003\tboth\t\n"
	"field\tplain\tuint16\t-\t10\t-\t10\t1\t\t-\t0\t\n";
/* clang-format on */

static struct pem_model *model;
static uint8_t data[16] __attribute__((aligned(8)));
static struct pem_record record;

static int set_up(void **state)
{
	struct pem_error error;

	(void)state;
	model = pem_model__new();
	if (pem_model__add_text(model, text, strlen(text), "test", &error) != 1)
		fail_msg("%s", error.text);
	record.event = pem_model__event(model, 0);
	record.data = data;
	record.bytes = 12;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pem_model__free(model);
	return 0;
}

/* What is said of a byte in a field, in full and in just so much room. */
static void says(unsigned field, uint8_t byte, const char *expected)
{
	char words[64], *tight = words + 40;

	data[8 + field] = byte;
	assert_int_equal(pem_record__words(&record, field, words, 32), strlen(expected));
	assert_string_equal(words, expected);
	memset(tight, 'x', 8);
	assert_int_equal(pem_record__words(&record, field, tight, 3), strlen(expected));
	assert_true(strlen(tight) < 3 && !strncmp(tight, expected, strlen(tight)));
	assert_int_equal(tight[3], 'x');
}

static void an_enum_says_its_name_signed_too(void **state)
{
	(void)state;
	says(0, 1, "plus");
	says(0, 0xff, "minus");
	says(0, 2, "");
}

static void flags_say_the_names_of_their_bits_and_the_rest(void **state)
{
	(void)state;
	says(1, 0, "none");
	says(1, 2, "write");
	says(1, 3, "both");
	says(1, 0x81, "read|0x80");
	says(1, 0x80, "");
}

static void a_plain_number_says_nothing(void **state)
{
	(void)state;
	says(2, 7, "");
}

static void a_field_that_is_none_says_nothing(void **state)
{
	char words[8] = "x";

	(void)state;
	assert_int_equal(pem_record__words(&record, 1000, words, sizeof(words)), 0);
	assert_string_equal(words, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_enum_says_its_name_signed_too),
		cmocka_unit_test(flags_say_the_names_of_their_bits_and_the_rest),
		cmocka_unit_test(a_plain_number_says_nothing),
		cmocka_unit_test(a_field_that_is_none_says_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
