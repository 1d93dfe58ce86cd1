/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * operand.h - which data an instruction touches, told from its bytes and the thread's registers
 *
 * A processor takes an interrupt when the oldest instruction that it works on has finished, so the
 * one before the sampled address is the one that it waited for. Where its operand in memory lies is
 * computed from the sampled registers, as the processor does. So the address is approximate: the
 * instruction may have changed the registers since. Link with libpem-names.
 *
 * Instructions are hostile input. A decoder is for one thread at a time. Nothing here is
 * async-signal-safe, and nothing blocks.
 */
#ifndef PEM_OPERAND_H
#define PEM_OPERAND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Registers of a sample, in the order of the kernel's numbers. */
enum pem_operand_register {
	PEM_OPERAND_AX,
	PEM_OPERAND_BX,
	PEM_OPERAND_CX,
	PEM_OPERAND_DX,
	PEM_OPERAND_SI,
	PEM_OPERAND_DI,
	PEM_OPERAND_BP,
	PEM_OPERAND_SP,
	PEM_OPERAND_IP,
	PEM_OPERAND_R8,
	PEM_OPERAND_R9,
	PEM_OPERAND_R10,
	PEM_OPERAND_R11,
	PEM_OPERAND_R12,
	PEM_OPERAND_R13,
	PEM_OPERAND_R14,
	PEM_OPERAND_R15,
	PEM_OPERAND_REGISTERS
};

#define PEM_OPERAND_INSTRUCTION_MAX 15u /* bytes of the longest */
#define PEM_OPERAND_CODE_BEFORE 64u

/* The code around an address: bytes[PEM_OPERAND_CODE_BEFORE] is the first there. */
struct pem_code_bytes {
	uint8_t before, after; /* so many bytes could be read on each side */
	uint8_t bytes[PEM_OPERAND_CODE_BEFORE + PEM_OPERAND_INSTRUCTION_MAX];
};

/* What an instruction does with its operand. */
enum pem_access {
	PEM_ACCESS_UNKNOWN,
	PEM_ACCESS_LOAD,
	PEM_ACCESS_STORE, /* or it reads and writes */
};

struct pem_operand {
	uint64_t address;
	uint32_t access; /* enum pem_access */
};

struct pem_decoder;

/* Returns NULL without memory, and where instructions can't be decoded: see pem_operand__registers.
 */
struct pem_decoder *pem_decoder__new(void);
/* NULL does nothing. */
void pem_decoder__free(struct pem_decoder *decoder);
/*
 * Where in memory the instruction before registers[PEM_OPERAND_IP] read or wrote first, or if it
 * did nowhere, where the one there is about to. Of one that has loaded its own address register, it
 * is where that leads now: who follows a chain stays in its data, mostly. Returns 1 with operand
 * filled, or 0: nowhere, or the registers don't tell (operands behind fs and gs, gathers). The code
 * may be anything. Samples of one address, one after the other, cost less.
 */
int pem_decoder__operand(struct pem_decoder *decoder, const struct pem_code_bytes *code,
			 const uint64_t registers[PEM_OPERAND_REGISTERS],
			 struct pem_operand *operand);
/*
 * perf_event_attr.sample_regs_user that gives registers in the order of enum pem_operand_register.
 * 0: instructions can't be decoded here. It is another processor than x86-64, or the build lacked
 * capstone.
 */
uint64_t pem_operand__registers(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
