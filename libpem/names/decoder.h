/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* decoder.h - what pem/operand.h has not: how long instructions are (operand.c) */
#ifndef PEM_NAMES_DECODER_H
#define PEM_NAMES_DECODER_H

#include <pem/operand.h>

/* Bytes of each instruction; 0: their length varies, and a decoder tells. */
#if defined(__aarch64__)
#define PEM_INSTRUCTION_BYTES 4u
#else
#define PEM_INSTRUCTION_BYTES 0u
#endif

/* Bytes of the instruction that code begins with. 0: it is not known. */
size_t pem_decoder__length(struct pem_decoder *decoder, const uint8_t *code, size_t bytes);

#endif
