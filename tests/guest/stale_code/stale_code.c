// SPDX-License-Identifier: MIT
/*
 * stale_code.c - a guest's CPU that runs a breakpoint which memory does not hold any more goes on
 * with what memory holds
 *
 * Linux on x86 puts a breakpoint in the first byte of code that it patches, then writes the rest,
 * then the first byte. QEMU, 10.0 included, throws away what it translated from those bytes, lets
 * go of the page, and only then stores to it. A host that takes the CPU away in between gives
 * another emulated CPU the time to translate the old byte once more, and QEMU never looks at it
 * again. Of the last store that byte is the breakpoint: the CPU traps after the kernel has
 * forgotten it, and the guest dies of an int3 oops. The bytes that the oops prints hold no
 * breakpoint, which no processor could say.
 *
 * Shown without pem.ko, on QEMU 10.0.2 and Linux 6.12 with a thread for each of two CPUs, by
 * switching sched:sched_switch on and off while the other CPU switches threads: an oops in
 * __schedule() after 240 rounds if the CPU of the one that switches is taken away 5,000 times a
 * second, for 100 us each; none in 2,700 rounds without that. With one thread for all CPUs: none in
 * 94 rounds, which is as far as it comes in a minute. With this module the guest came to its end,
 * past 799 such traps.
 *
 * So the trap is ended here, as the kernel does for breakpoints that it knows of. All else that
 * traps stays as it is.
 */
#include <linux/kdebug.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/notifier.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/text-patching.h>

#define LONGEST 5

static int passed;
module_param(passed, int, 0444);
MODULE_PARM_DESC(passed, "how many breakpoints that memory did not hold were passed");

/*
 * Do the instruction, which is one of those that the kernel patches, in the place of the
 * breakpoint.
 */
static bool go_on(struct pt_regs *regs, unsigned long at, const u8 *code)
{
	static const u8 nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00},
			zero[] = {0x2e, 0x2e, 0x2e, 0x31, 0xc0};
	s32 distance;

	memcpy(&distance, code + 1, sizeof(distance));
	if (code[0] == CALL_INSN_OPCODE) {
		/* The kernel's function for a call has different parameters in different kernels.
		 */
		int3_emulate_push(regs, at + CALL_INSN_SIZE);
		int3_emulate_jmp(regs, at + CALL_INSN_SIZE + distance);
	} else if (code[0] == JMP32_INSN_OPCODE)
		int3_emulate_jmp(regs, at + JMP32_INSN_SIZE + distance);
	else if (code[0] == JMP8_INSN_OPCODE)
		int3_emulate_jmp(regs, at + JMP8_INSN_SIZE + (s8)code[1]);
	else if (code[0] == RET_INSN_OPCODE)
		int3_emulate_ret(regs);
	else if (code[0] == 0x66 && code[1] == 0x90)
		regs->ip = at + 2;
	else if (!memcmp(code, nop5, sizeof(nop5)))
		regs->ip = at + sizeof(nop5);
	else if (!memcmp(code, zero, sizeof(zero))) {
		regs->ax = 0;
		regs->ip = at + sizeof(zero);
	} else
		return false;
	return true;
}

static int on_trap(struct notifier_block *block, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;
	unsigned long at = regs->ip - INT3_INSN_SIZE;
	u8 code[LONGEST];

	if (event != DIE_INT3 || user_mode(regs) ||
	    copy_from_kernel_nofault(code, (const void *)at, sizeof(code)) ||
	    !go_on(regs, at, code))
		return NOTIFY_DONE;
	WRITE_ONCE(passed, READ_ONCE(passed) + 1);
	return NOTIFY_STOP;
}

static struct notifier_block block = {.notifier_call = on_trap, .priority = INT_MAX};

static int __init begin(void)
{
	return register_die_notifier(&block);
}

static void __exit end(void)
{
	unregister_die_notifier(&block);
}

module_init(begin);
module_exit(end);

MODULE_DESCRIPTION("For emulated machines: pass breakpoints that memory does not hold");
MODULE_LICENSE("Dual MIT/GPL");
