/* SPDX-License-Identifier: MIT */
/* hardware.h - a machine that is simulated, from XML to what the simulation reads */
#ifndef PEM_CODEGEN_HARDWARE_H
#define PEM_CODEGEN_HARDWARE_H

#include "model.h"

#include <pem/hardware.h>

/* Read a file of the form of hardware.xsd. Errors are noted in the set. */
void pem_hardware__read(struct pem_spec_set *set, const char *path, struct pem_hardware *hardware);

#endif
