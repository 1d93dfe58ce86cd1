/* SPDX-License-Identifier: MIT */
/*
 * codegen_spec.c - fuzz target: any bytes as a spec, through every stage, and every backend where it has no error
 *
 * Good seeds are spec/app and its neighbours. Nothing is written to disk.
 */
#include "backend.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_backends(const struct pem_spec_set *set)
{
	static const struct pem_backend *const backends[] = {
		&pem_backend_c,
		&pem_backend_model,
		&pem_backend_ctf,
		&pem_backend_bpf,
	};
	struct pem_output *out = pem_output__new();
	size_t i;

	for (i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
		backends[i]->emit(set, out);
	pem_output__free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pem_spec_set set = {0};
	FILE *errors = fopen("/dev/null", "we");

	if (!errors)
		return 0;
	pem_spec_set__load_bytes(&set, "fuzz.xml", (const char *)data, size);
	pem_spec_set__resolve(&set);
	pem_spec_set__check(&set);
	pem_spec_set__layout(&set);
	pem_spec_set__print_errors(&set, 1, errors);
	if (!set.error_count)
		run_backends(&set);
	pem_spec_set__free(&set);
	fclose(errors);
	return 0;
}
