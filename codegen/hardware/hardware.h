/* SPDX-License-Identifier: MIT */
/* hardware.h - a machine that is simulated, from XML to what the simulation reads */
#ifndef PEM_CODEGEN_HARDWARE_H
#define PEM_CODEGEN_HARDWARE_H

#include "model.h"

#include <pem/hardware.h>

/*
 * Read XML of the form of hardware.xsd. Errors are noted in the set; without one, hardware passes
 * pem_hardware__check. path: for errors.
 */
void pem_hardware__read_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			      size_t count, struct pem_hardware *hardware);
/* The same of a file. */
void pem_hardware__read(struct pem_spec_set *set, const char *path, struct pem_hardware *hardware);

#endif
