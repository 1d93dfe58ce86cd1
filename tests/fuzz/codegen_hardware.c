/* SPDX-License-Identifier: MIT */
/*
 * codegen_hardware.c - fuzz target: any bytes as the description of a machine
 */
#include "hardware/hardware.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pem_spec_set set = {0};
	struct pem_hardware hardware;

	pem_hardware__read_bytes(&set, "fuzz.xml", (const char *)data, size, &hardware);
	/* What has no error is a machine that the simulation takes. */
	if (set.error_count == 0 && !pem_hardware__check(&hardware))
		abort();
	pem_spec_set__free(&set);
	return 0;
}
