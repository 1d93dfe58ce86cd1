// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * operands.c - where the data of a timer's samples lie: reads the code around them from the process
 *
 * Not here: what an instruction does with registers (pem/operand.h).
 *
 * A timer rings again and again in the same few loops. So what was read of them is kept until the
 * rings are drained the next time. A process that ends before its samples are drained takes its
 * code with it: these samples have no address.
 */
#include "data.h"

#include <pem/operand.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define KEPT 256u /* codes; a power of two */

/* Whether a process may be read, as one of its threads was sampled last. */
struct permission {
	uint32_t pid;
	int is_given;
};

struct kept {
	uint64_t ip; /* 0: nothing is kept */
	uint32_t pid;
	struct pem_code_bytes code;
};

struct operands {
	struct pem_decoder *decoder;
	size_t page_bytes;
	struct permission permission;
	struct kept kept[KEPT];
};

struct operands *operands__open(void)
{
	struct operands *operands;

	if (!pem_operand__registers()) {
		errno = ENOTSUP;
		return NULL;
	}
	operands = calloc(1, sizeof(*operands));
	if (!operands)
		return NULL;
	operands->decoder = pem_decoder__new();
	if (!operands->decoder) {
		free(operands);
		errno = ENOMEM;
		return NULL;
	}
	operands->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	return operands;
}

void operands__close(struct operands *operands)
{
	if (!operands)
		return;
	pem_decoder__free(operands->decoder);
	free(operands);
}

void operands__forget(struct operands *operands)
{
	memset(operands->kept, 0, sizeof(operands->kept));
	operands->permission = (struct permission){0};
}

static int may_read(struct operands *operands, uint32_t pid)
{
	if (operands->permission.pid != pid)
		operands->permission = (struct permission){pid, maps__is_own((pid_t)pid)};
	return operands->permission.is_given;
}

/* Read so many bytes of a process, or as many as are there. */
static size_t read_bytes(uint32_t pid, uint64_t at, void *bytes, size_t count)
{
	struct iovec to = {bytes, count}, from = {(void *)(uintptr_t)at, count};
	ssize_t got = count ? process_vm_readv((pid_t)pid, &to, 1, &from, 1, 0) : 0;

	return got > 0 ? (size_t)got : 0;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Read the code around an address. The pages beside that of the address may be missing. */
static void read_code(const struct operands *operands, uint32_t pid, uint64_t at,
		      struct pem_code_bytes *code)
{
	size_t in_page = at & (operands->page_bytes - 1);
	size_t before = least(in_page, PEM_OPERAND_CODE_BEFORE);
	size_t after = least(operands->page_bytes - in_page, PEM_OPERAND_INSTRUCTION_MAX);
	uint8_t *here = code->bytes + PEM_OPERAND_CODE_BEFORE;

	memset(code, 0, sizeof(*code));
	if (read_bytes(pid, at - before, here - before, before + after) != before + after)
		return;
	after += read_bytes(pid, at + after, here + after, PEM_OPERAND_INSTRUCTION_MAX - after);
	code->before = (uint8_t)before;
	code->after = (uint8_t)after;
}

static const struct pem_code_bytes *code_at(struct operands *operands, uint32_t pid, uint64_t ip)
{
	uint64_t hash = (ip ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15ull;
	struct kept *kept = &operands->kept[hash >> 32 & (KEPT - 1)];

	if (kept->ip == ip && kept->pid == pid)
		return &kept->code;
	kept->ip = ip;
	kept->pid = pid;
	read_code(operands, pid, ip, &kept->code);
	return &kept->code;
}

void operands__find(struct operands *operands, struct ring_sample *sample)
{
	uint64_t registers[PEM_OPERAND_REGISTERS];
	const struct pem_code_bytes *code;
	struct pem_operand operand;

	/* A process of 32 bits has registers of its own kind. */
	if (sample->abi != PERF_SAMPLE_REGS_ABI_64)
		return;
	memcpy(registers, sample->registers, sizeof(registers));
	sample->data.stack_pointer = registers[PEM_OPERAND_SP];
	if (!may_read(operands, sample->pid))
		return;
	code = code_at(operands, sample->pid, registers[PEM_OPERAND_IP]);
	if (!code->after || !pem_decoder__operand(operands->decoder, code, registers, &operand) ||
	    !operand.address)
		return;
	sample->data.address = operand.address;
	sample->data.access = (uint8_t)operand.access;
	sample->data.origin = DATA_ORIGIN_COMPUTED;
}
