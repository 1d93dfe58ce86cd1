// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * stack.c - walks up the copied stack of a sample with libdwfl
 *
 * Not here: which modules libdwfl knows (unwind.c). Nor an unwinder: that is libdwfl's.
 *
 * What a hostile program may do with its registers, stack and files, and the limit of it:
 *
 *	frames without end	the number of callers. Each frame must have read of the stack
 *				further up than the one before.
 *	expressions		libdwfl's limit of steps, a limit of reads, and of CPU time
 *
 * unwind.c has limits of mappings and processes, files.c those of files.
 */
#include "unwind.h"

#include <asm/perf_regs.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <time.h>

/* Words read of the stack. A frame reads one for each register that it saved. */
#define READS_MAX 4096u
#define CPU_NS_MAX 20000000ull /* a thousand times what a sample takes */
#define FRAMES_TO_CLOCK 8u

/* --- what depends on the machine --- */

#if defined(__x86_64__)

#define MACHINE EM_X86_64
#define REGISTERS 17u
/* The program counter is one of DWARF's: the linker's tables of its stubs (.plt) ask for it. */
#define GIVEN_REGISTERS REGISTERS
/*
 * All integer registers, for frames may be counted from any: code that aligns its stack uses r10,
 * and that of OpenSSL rax and r11.
 */
#define REGISTER_MASK (0x1ffull | 0xffull << PERF_REG_X86_R8)
#define STACK_POINTER PERF_REG_X86_SP
/* The kernel's numbers of DWARF's first eight registers. Its r8 and so on lie behind ip. */
static const uint8_t first[] = {PERF_REG_X86_AX, PERF_REG_X86_DX, PERF_REG_X86_CX, PERF_REG_X86_BX,
				PERF_REG_X86_SI, PERF_REG_X86_DI, PERF_REG_X86_BP, PERF_REG_X86_SP};

/* Where unwind_sample.registers has DWARF's register. The last one is the program counter. */
static unsigned index_of(unsigned dwarf)
{
	if (dwarf < sizeof(first))
		return first[dwarf];
	return dwarf == REGISTERS - 1 ? PERF_REG_X86_IP : dwarf + 1;
}

static uint64_t strip(uint64_t word)
{
	return word;
}

#elif defined(__aarch64__)

#define MACHINE EM_AARCH64
#define REGISTERS 33u
#define GIVEN_REGISTERS (REGISTERS - 1)
#define REGISTER_MASK (((uint64_t)1 << REGISTERS) - 1)
#define STACK_POINTER PERF_REG_ARM64_SP

/* The kernel has DWARF's order. */
static unsigned index_of(unsigned dwarf)
{
	return dwarf;
}

/*
 * A return address may be signed (pointer authentication), and a pointer may have a tag: both are
 * in the bits above the address. Frames are found by addresses alone, so all words lose these bits.
 */
static uint64_t strip(uint64_t word)
{
	return word & (uint64_t)1 << 55 ? word : word & (((uint64_t)1 << 48) - 1);
}

#else
#error "none.c is for this machine"
#endif

/* Where give_registers() has the program counter: behind DWARF's others. */
#define DWARF_REGISTERS (REGISTERS - 1)

/* Of no file: says which machine's registers libdwfl shall restore. */
static Elf64_Ehdr head = {
	.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	.e_type = ET_EXEC,
	.e_machine = MACHINE,
	.e_version = EV_CURRENT,
	.e_ehsize = sizeof(head),
};

uint64_t unwind__registers(void)
{
	return REGISTER_MASK;
}

uint64_t unwind__pc(const uint64_t *registers)
{
	return registers[index_of(REGISTERS - 1)];
}

struct Elf *unwind_stack__machine(void)
{
	return elf_memory((char *)&head, sizeof(head));
}

#define STACK_BYTES_MOST (64u << 20) /* more than stacks usually are */

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	if (*thread)
		return 0;
	*thread = arg;
	return dwfl_pid(dwfl);
}

/* All threads of a process are one here, with the registers of the sample. */
static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	*thread = arg;
	return tid == dwfl_pid(dwfl);
}

static bool read_stack(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *arg)
{
	struct unwind_stack *stack = arg;
	const struct unwind_sample *sample = stack->sample;
	uint64_t from = address - sample->registers[STACK_POINTER];

	(void)dwfl;
	if (stack->reads >= READS_MAX)
		return false;
	if (sample->stack_bytes < sizeof(*word) || from > sample->stack_bytes - sizeof(*word)) {
		/* Damaged tables may lead anywhere. */
		stack->is_cut |= sample->is_partial && from < STACK_BYTES_MOST;
		return false;
	}
	stack->reads++;
	if (address > stack->top)
		stack->top = address;
	memcpy(word, sample->stack + from, sizeof(*word));
	*word = strip(*word);
	return true;
}

static bool give_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwind_stack *stack = arg;
	Dwarf_Word words[REGISTERS];
	unsigned i;

	for (i = 0; i < REGISTERS; i++)
		words[i] = strip(stack->sample->registers[index_of(i)]);
	dwfl_thread_state_register_pc(thread, words[DWARF_REGISTERS]);
	return dwfl_thread_state_registers(thread, 0, GIVEN_REGISTERS, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_stack,
	.set_initial_registers = give_registers,
};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwind_stack *stack = arg;
	bool was_interrupted = false;
	/* Asking whether it was interrupted reads of the next frame already. */
	uint64_t top = stack->top;
	Dwarf_Addr pc;

	if (stack->frames++ == 0)
		return DWARF_CB_OK;
	if (stack->frames % FRAMES_TO_CLOCK == 0 && cpu_ns() > stack->cpu_ns_end) {
		stack->is_cut = true;
		return DWARF_CB_ABORT;
	}
	/* A leaf function of aarch64 has its return address in a register. */
	if (top <= stack->last_top && stack->frames > 2)
		return DWARF_CB_ABORT;
	stack->last_top = top;
	if (!dwfl_frame_pc(frame, &pc, &was_interrupted))
		return DWARF_CB_ABORT;
	/* Neither the first page nor the kernel's half holds code of a process. */
	if (pc < 4096 || pc >> 56)
		return DWARF_CB_ABORT;
	if (stack->count == stack->max) {
		stack->is_cut = true;
		return DWARF_CB_ABORT;
	}
	stack->callers[stack->count++] = pc + was_interrupted;
	return DWARF_CB_OK;
}

int unwind_stack__attach(struct unwind_stack *stack, struct Dwfl *dwfl, struct Elf *machine,
			 uint32_t pid)
{
	return dwfl_attach_state(dwfl, machine, (pid_t)pid, &thread_callbacks, stack) ? 0
										      : -ENOTSUP;
}

unsigned unwind_stack__walk(struct unwind_stack *stack, struct Dwfl *dwfl,
			    const struct unwind_sample *sample, uint64_t *callers, unsigned max,
			    bool *is_slow)
{
	*stack = (struct unwind_stack){.sample = sample,
				       .callers = callers,
				       .max = max,
				       .cpu_ns_end = cpu_ns() + CPU_NS_MAX};
	/* It fails where the stack ends, too. */
	(void)dwfl_getthread_frames(dwfl, dwfl_pid(dwfl), take_frame, stack);
	*is_slow = cpu_ns() > stack->cpu_ns_end;
	stack->sample = NULL;
	return stack->count;
}
