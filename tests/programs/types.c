// SPDX-License-Identifier: MIT
/*
 * types.c - raises events with fields of every type, with values that the test
 * (e2e/trace_babeltrace.py) knows
 */
#include <float.h>
#include <stdint.h>

#include "programs/types.h"

static void integers(void)
{
	pem_notify_types_integers(0, 0, 0, 0, 0, 0, 0, 0);
	pem_notify_types_integers(UINT8_MAX, INT16_MIN, UINT16_MAX, INT8_MIN, UINT32_MAX, INT64_MIN,
				  INT32_MIN, UINT64_MAX);
	pem_notify_types_integers(1, -2, 3, -4, 5, -6, -7, 8);
	pem_notify_types_hexadecimal(0xab, 0xabcd, 0xdeadbeef, 0x0123456789abcdef);
	pem_notify_types_hexadecimal(0, 0, 0, UINT64_MAX);
}

static void floats(void)
{
	pem_notify_types_floats(0, 0);
	pem_notify_types_floats(-1.5f, 0.1);
	pem_notify_types_floats(FLT_MAX, DBL_MAX);
	pem_notify_types_floats(FLT_MIN, -DBL_MIN);
}

static void strings(void)
{
	pem_notify_types_strings("", 1, "", "");
	pem_notify_types_strings("plain", 2, NULL, "with, comma");
	pem_notify_types_strings("she said \"no\"", 3, "back\\slash 'single'", "tab\there");
	pem_notify_types_strings("gr\xc3\xbc\xc3\x9f", 4, "\xe6\x97\xa5\xe6\x9c\xac",
				 "\xf0\x9f\x99\x82");
	pem_notify_types_strings(
		"0123456789012345678901234567890123456789012345678901234567890123456789", 5,
		"line\nbreak", "{ brace = 1 }");
}

static void lists(void)
{
	static const uint8_t l8[] = {0, 1, 255};
	static const uint64_t l64[] = {UINT64_MAX, 0, 1, 2, 3, 4, 5, 6};
	static const int16_t li16[] = {-1};
	static const int32_t li32[] = {INT32_MIN, INT32_MAX};
	static const double ld[] = {-0.5, 1e300};

	pem_notify_types_lists(0, NULL, 0, NULL, 0, NULL, "", 0, NULL, 0, NULL);
	pem_notify_types_lists(3, l8, 8, l64, 1, li16, "odd", 2, li32, 2, ld);
	pem_notify_types_lists(1, l8, 0, NULL, 1, li16, "evenly", 0, NULL, 1, ld);
}

int main(void)
{
	integers();
	floats();
	strings();
	lists();
	return 0;
}
