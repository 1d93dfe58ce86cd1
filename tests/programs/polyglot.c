// SPDX-License-Identifier: MIT
/*
 * polyglot.c - raises every type of field N times; the same in each language, see
 * tests/e2e/polyglot.py
 */
#include "programs/polyglot.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define L PEM_POLYGLOT_LANGUAGE_C

static void numbers(uint32_t i)
{
	int64_t big = (int64_t)i * 1000000007;

	pem_notify_polyglot_numbers(L, (int8_t) - (int32_t)(i % 100), (uint8_t)(i % 256),
				    (int16_t) - (int32_t)(i % 30000), (uint16_t)(i % 65536),
				    -(int32_t)(i % 1000000) * 2, i * 3, -big, (uint64_t)big,
				    (float)i / 4, i / 8.0, 0x1000 + (uint64_t)i * 16,
				    (uint16_t)(i % 8));
}

static void texts(uint32_t i)
{
	char name[32], tail[16];
	int32_t samples[8];
	uint32_t k;

	snprintf(name, sizeof(name), "näme-%u", i);
	snprintf(tail, sizeof(tail), "t%u", i % 10);
	for (k = 0; k < i % 9; k++)
		samples[k] = (int32_t)(k * i) - 4;
	pem_notify_polyglot_texts(L, name, i % 9, samples, tail);
}

static void shapes(uint32_t i)
{
	uint16_t weight = (uint16_t)(i % 1000);
	const uint16_t weights[3] = {weight, (uint16_t)(weight + 1), (uint16_t)(weight + 2)};

	pem_notify_polyglot_shapes(L, (uint8_t)(i % 256), i * 0.5, i * 0.25, i * 1.5, i * 1.25,
				   weights, i);
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0, i;

	for (i = 0; i < n; i++) {
		pem_notify_polyglot_work_begin(L, i);
		numbers(i);
		texts(i);
		shapes(i);
		pem_notify_polyglot_work_end(L, i);
	}
	return 0;
}
