/* SPDX-License-Identifier: MIT */
/*
 * codegen_spec.c - fuzz target: any bytes as a spec, through every stage, and every backend where
 * it has no error
 *
 * Bytes that hold a NUL are two specs, the new one and what it replaces. Seeds are the specs of
 * this tree (tests/fuzz/run). Nothing is written to disk.
 */
#include "backends/backend.h"
#include "compare.h"
#include "tool/report.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_sound(const struct pem_spec_set *set)
{
	return set->error_count == set->warning_count;
}

static void load(struct pem_spec_set *set, const uint8_t *data, size_t size)
{
	pem_spec_set__load_bytes(set, "fuzz.xml", (const char *)data, size);
	pem_spec_set__resolve(set);
	pem_spec_set__check(set);
	pem_spec_set__layout(set);
}

static void run_backends(const struct pem_spec_set *set, FILE *nowhere)
{
	struct pem_output *out = pem_output__new();
	size_t i;

	for (i = 0; pem_backends[i]; i++)
		pem_backends[i]->emit(set, out);
	pem_print_names(set, out, nowhere);
	pem_print_model(set, nowhere);
	pem_output__free(out);
}

/* What is compared with itself has not changed. */
static void compare(struct pem_spec_set *set, struct pem_spec_set *old)
{
	size_t errors = set->error_count;

	pem_spec_set__compare(set, set, 1);
	if (set->error_count != errors)
		abort();
	if (is_sound(old))
		pem_spec_set__compare(set, old, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	size_t first = end ? (size_t)(end - data) : size;
	struct pem_spec_set set = {0}, old = {0};
	FILE *nowhere = fopen("/dev/null", "we");

	if (!nowhere)
		return 0;
	load(&set, data, first);
	if (end)
		load(&old, end + 1, size - first - 1);
	if (is_sound(&set)) {
		run_backends(&set, nowhere);
		compare(&set, &old);
	}
	pem_spec_set__print_errors(&set, 1, nowhere);
	pem_print_json(&set, nowhere);
	pem_spec_set__free(&set);
	pem_spec_set__free(&old);
	fclose(nowhere);
	return 0;
}
