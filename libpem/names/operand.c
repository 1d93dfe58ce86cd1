// SPDX-License-Identifier: LGPL-2.1-or-later
/* operand.c - the address of an instruction's operand in memory, by capstone; x86-64 only */
#include "decoder.h"

#if defined(__x86_64__) && defined(PEM_HAS_CAPSTONE)

#include <asm/perf_regs.h>

#include <capstone/capstone.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct pem_decoder {
	csh capstone;
	cs_insn *instruction;
	/* What was looked for last, and how long the instruction before it is; 0: nobody knows. */
	struct pem_code_bytes code;
	size_t previous;
};

struct pem_decoder *pem_decoder__new(void)
{
	struct pem_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder->capstone)) {
		free(decoder);
		return NULL;
	}
	/* An instruction has room for its details if they are on when it is made. */
	if (!cs_option(decoder->capstone, CS_OPT_DETAIL, CS_OPT_ON))
		decoder->instruction = cs_malloc(decoder->capstone);
	if (decoder->instruction)
		return decoder;
	pem_decoder__free(decoder);
	return NULL;
}

void pem_decoder__free(struct pem_decoder *decoder)
{
	if (!decoder)
		return;
	if (decoder->instruction)
		cs_free(decoder->instruction, 1);
	cs_close(&decoder->capstone);
	free(decoder);
}

/* By enum pem_operand_register: with 64 bits, and the lower 32 of them. */
static const x86_reg names[PEM_OPERAND_REGISTERS][2] = {
	[PEM_OPERAND_AX] = {X86_REG_RAX, X86_REG_EAX},
	[PEM_OPERAND_BX] = {X86_REG_RBX, X86_REG_EBX},
	[PEM_OPERAND_CX] = {X86_REG_RCX, X86_REG_ECX},
	[PEM_OPERAND_DX] = {X86_REG_RDX, X86_REG_EDX},
	[PEM_OPERAND_SI] = {X86_REG_RSI, X86_REG_ESI},
	[PEM_OPERAND_DI] = {X86_REG_RDI, X86_REG_EDI},
	[PEM_OPERAND_BP] = {X86_REG_RBP, X86_REG_EBP},
	[PEM_OPERAND_SP] = {X86_REG_RSP, X86_REG_ESP},
	[PEM_OPERAND_IP] = {X86_REG_RIP, X86_REG_EIP},
	[PEM_OPERAND_R8] = {X86_REG_R8, X86_REG_R8D},
	[PEM_OPERAND_R9] = {X86_REG_R9, X86_REG_R9D},
	[PEM_OPERAND_R10] = {X86_REG_R10, X86_REG_R10D},
	[PEM_OPERAND_R11] = {X86_REG_R11, X86_REG_R11D},
	[PEM_OPERAND_R12] = {X86_REG_R12, X86_REG_R12D},
	[PEM_OPERAND_R13] = {X86_REG_R13, X86_REG_R13D},
	[PEM_OPERAND_R14] = {X86_REG_R14, X86_REG_R14D},
	[PEM_OPERAND_R15] = {X86_REG_R15, X86_REG_R15D}};

/* false: it is none of those that are sampled, such as the vector of a gather. */
static bool value_of(x86_reg name, const uint64_t registers[PEM_OPERAND_REGISTERS], uint64_t *value)
{
	unsigned i;

	*value = 0;
	if (name == X86_REG_INVALID || name == X86_REG_RIZ || name == X86_REG_EIZ)
		return true;
	for (i = 0; i < PEM_OPERAND_REGISTERS; i++) {
		if (names[i][0] == name || names[i][1] == name) {
			*value = registers[i];
			return true;
		}
	}
	return false;
}

/* Computes an address, or has an operand for its length only. */
static bool is_no_access(unsigned id)
{
	return id == X86_INS_LEA || id == X86_INS_NOP;
}

static bool uses_stack(const cs_insn *instruction)
{
	switch (instruction->id) {
	case X86_INS_PUSH:
	case X86_INS_POP:
	case X86_INS_CALL:
	case X86_INS_RET:
	case X86_INS_LEAVE:
		return true;
	default:
		return false;
	}
}

static uint32_t stack_access(const cs_insn *instruction)
{
	return instruction->id == X86_INS_PUSH || instruction->id == X86_INS_CALL ? PEM_ACCESS_STORE
										  : PEM_ACCESS_LOAD;
}

/* Decode one. ip: where it lies. */
static bool decode(struct pem_decoder *decoder, const uint8_t *code, size_t bytes, uint64_t ip)
{
	/* It counts all three up. */
	return cs_disasm_iter(decoder->capstone, &code, &bytes, &ip, decoder->instruction);
}

/*
 * Instructions can't be read backwards. But wherever one begins to read forwards, one is soon in
 * step with the true ones: most of the beginnings, PEM_OPERAND_INSTRUCTION_MAX of them, agree on
 * the last instruction.
 */
static size_t find_previous(struct pem_decoder *decoder, const struct pem_code_bytes *code)
{
	const uint8_t *end = code->bytes + PEM_OPERAND_CODE_BEFORE, *start = end - code->before,
		      *at;
	unsigned votes[PEM_OPERAND_INSTRUCTION_MAX + 1] = {0}, i, best = 0; /* by its bytes */

	cs_option(decoder->capstone, CS_OPT_DETAIL, CS_OPT_OFF);
	for (i = 0; i < PEM_OPERAND_INSTRUCTION_MAX && start + i < end; i++) {
		size_t length = 0;

		/* A byte that begins none is passed over, and is none at the end. */
		for (at = start + i; at < end; at += length ? length : 1)
			length = decode(decoder, at, (size_t)(end - at), 0)
					 ? decoder->instruction->size
					 : 0;
		votes[length]++;
	}
	cs_option(decoder->capstone, CS_OPT_DETAIL, CS_OPT_ON);
	for (i = 1; i <= PEM_OPERAND_INSTRUCTION_MAX; i++) {
		if (votes[i] > votes[best])
			best = i;
	}
	return best;
}

static size_t previous_of(struct pem_decoder *decoder, const struct pem_code_bytes *code)
{
	if (memcmp(&decoder->code, code, sizeof(*code))) {
		decoder->code = *code;
		decoder->previous = find_previous(decoder, code);
	}
	return decoder->previous;
}

static uint32_t access_of(const cs_x86_op *operand)
{
	if (operand->access & CS_AC_WRITE)
		return PEM_ACCESS_STORE;
	return operand->access & CS_AC_READ ? PEM_ACCESS_LOAD : PEM_ACCESS_UNKNOWN;
}

/* Does it always go somewhere else, so that the one behind it was not executed after it? */
static bool goes_elsewhere(const struct pem_decoder *decoder)
{
	const cs_insn *instruction = decoder->instruction;

	return instruction->id == X86_INS_JMP || instruction->id == X86_INS_RET;
}

/* Of the decoded instruction. next: where the one behind it lies. */
static int find_address(const struct pem_decoder *decoder, uint64_t next,
			const uint64_t registers[PEM_OPERAND_REGISTERS],
			struct pem_operand *operand)
{
	const cs_x86 *x86 = &decoder->instruction->detail->x86;
	uint64_t base, index;
	unsigned i;

	for (i = 0; i < x86->op_count && !is_no_access(decoder->instruction->id); i++) {
		const x86_op_mem *memory = &x86->operands[i].mem;

		if (x86->operands[i].type != X86_OP_MEM)
			continue;
		if (memory->segment == X86_REG_FS || memory->segment == X86_REG_GS ||
		    !value_of(memory->base, registers, &base) ||
		    !value_of(memory->index, registers, &index))
			return 0;
		if (memory->base == X86_REG_RIP || memory->base == X86_REG_EIP)
			base = next;
		operand->address = base + index * (uint64_t)memory->scale + (uint64_t)memory->disp;
		if (x86->addr_size == 4)
			operand->address = (uint32_t)operand->address;
		operand->access = access_of(&x86->operands[i]);
		return 1;
	}
	operand->address = registers[PEM_OPERAND_SP];
	operand->access = stack_access(decoder->instruction);
	return uses_stack(decoder->instruction);
}

int pem_decoder__operand(struct pem_decoder *decoder, const struct pem_code_bytes *code,
			 const uint64_t registers[PEM_OPERAND_REGISTERS],
			 struct pem_operand *operand)
{
	const uint8_t *here = code->bytes + PEM_OPERAND_CODE_BEFORE;
	size_t previous = previous_of(decoder, code);
	uint64_t ip = registers[PEM_OPERAND_IP];

	if (previous && decode(decoder, here - previous, previous, ip - previous) &&
	    !goes_elsewhere(decoder) && find_address(decoder, ip, registers, operand))
		return 1;
	return decode(decoder, here, code->after, ip) &&
	       find_address(decoder, ip + decoder->instruction->size, registers, operand);
}

size_t pem_decoder__length(struct pem_decoder *decoder, const uint8_t *code, size_t bytes)
{
	return decode(decoder, code, bytes, 0) ? decoder->instruction->size : 0;
}

uint64_t pem_operand__registers(void)
{
	return 0xffull << PERF_REG_X86_AX | 1ull << PERF_REG_X86_IP | 0xffull << PERF_REG_X86_R8;
}

#else

struct pem_decoder *pem_decoder__new(void)
{
	return NULL;
}

void pem_decoder__free(struct pem_decoder *decoder)
{
	(void)decoder;
}

int pem_decoder__operand(struct pem_decoder *decoder, const struct pem_code_bytes *code,
			 const uint64_t registers[PEM_OPERAND_REGISTERS],
			 struct pem_operand *operand)
{
	(void)decoder, (void)code, (void)registers, (void)operand;
	return 0;
}

size_t pem_decoder__length(struct pem_decoder *decoder, const uint8_t *code, size_t bytes)
{
	(void)decoder, (void)code, (void)bytes;
	return 0;
}

uint64_t pem_operand__registers(void)
{
	return 0;
}

#endif
