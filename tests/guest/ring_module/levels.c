// SPDX-License-Identifier: MIT
/*
 * levels.c - events in a soft interrupt, an interrupt and an NMI of this CPU, each in the middle of
 * the one before
 *
 * A tasklet, an irq_work and, on x86, the NMI's vector called as a breakpoint is. Interrupts that
 * come at any time are a timer's.
 */
#include "ring_test.h"

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#ifdef CONFIG_X86
#include <asm/nmi.h>
#endif

#define PERIOD_NS 500000 /* of interrupts that come at any time */
#define WAIT_MAX 10000000 /* looks, for an interrupt that was asked for */

static struct trial *trial; /* the one that runs */
static u32 sizes; /* of records, so that they differ */
static u64 seen[LEVELS];

static u32 some_bytes(void)
{
	return 16 + sizes++ * 7 % 200;
}

/* --- the deepest: no writer is left for what it raises --- */

static void one_too_many(struct trial *t)
{
	pem_trial__raise(t, NMI, some_bytes(), NULL);
}

#ifdef CONFIG_X86
static bool has_nmi, is_nmi_ours;

static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	if (!READ_ONCE(is_nmi_ours))
		return NMI_DONE;
	WRITE_ONCE(is_nmi_ours, false);
	seen[NMI]++;
	pem_trial__raise(trial, NMI, some_bytes(), one_too_many);
	return NMI_HANDLED;
}

static const char *begin_nmi(void)
{
	has_nmi = !register_nmi_handler(NMI_LOCAL, on_nmi, 0, "pem_ring_test");
	return has_nmi ? NULL : "no handler could be registered";
}

static void end_nmi(void)
{
	if (has_nmi)
		unregister_nmi_handler(NMI_LOCAL, "pem_ring_test");
}

static void nmi(struct trial *t)
{
	if (!has_nmi)
		return;
	WRITE_ONCE(is_nmi_ours, true);
	asm volatile("int $2" : : : "memory");
}
#else
static const char *begin_nmi(void)
{
	return "this kind of CPU has none that a module could raise";
}

static void end_nmi(void)
{
}

/* As a fault in the interrupt would. */
static void nmi(struct trial *t)
{
	pem_trial__raise(t, INTERRUPT, some_bytes(), one_too_many);
}
#endif

/* --- the levels above --- */

static void on_interrupt(struct irq_work *work)
{
	pem_trial__raise(trial, INTERRUPT, some_bytes(), nmi);
	WRITE_ONCE(seen[INTERRUPT], seen[INTERRUPT] + 1);
}

static DEFINE_IRQ_WORK(interrupt_work, on_interrupt);

static void wait_for(struct trial *t, enum level level, u64 before, const char *what)
{
	u32 i;

	for (i = 0; i < WAIT_MAX && READ_ONCE(seen[level]) == before; i++)
		cpu_relax();
	pem_trial__expect(t, what, READ_ONCE(seen[level]), before + 1);
}

static void interrupt(struct trial *t)
{
	u64 before = READ_ONCE(seen[INTERRUPT]);

	irq_work_queue(&interrupt_work);
	wait_for(t, INTERRUPT, before, "interrupts that came when they were asked for");
}

static void on_soft_interrupt(struct tasklet_struct *tasklet)
{
	pem_trial__raise(trial, SOFT_INTERRUPT, some_bytes(), interrupt);
	seen[SOFT_INTERRUPT]++;
}

static DECLARE_TASKLET(soft_interrupt_work, on_soft_interrupt);

/*
 * Where the kernel has a thread for soft interrupts at work it is that one's turn, and not nested
 * in ours.
 */
static void soft_interrupt(struct trial *t)
{
	tasklet_schedule(&soft_interrupt_work);
	local_bh_disable();
	local_bh_enable();
}

void pem_levels__nest(struct trial *t)
{
	trial = t;
	pem_trial__raise(t, PROCESS, some_bytes(), soft_interrupt);
}

/* --- interrupts at any time --- */

static struct hrtimer timer;

#if PEM_KERNEL_FROM(6, 14)
static void set_up(struct hrtimer *of, enum hrtimer_restart (*function)(struct hrtimer *))
{
	hrtimer_setup(of, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
}
#else
static void set_up(struct hrtimer *of, enum hrtimer_restart (*function)(struct hrtimer *))
{
	hrtimer_init(of, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	of->function = function;
}
#endif

static enum hrtimer_restart on_timer(struct hrtimer *of)
{
	seen[INTERRUPT]++;
	pem_trial__raise(trial, INTERRUPT, some_bytes(), NULL);
	hrtimer_forward_now(of, ns_to_ktime(PERIOD_NS));
	return HRTIMER_RESTART;
}

void pem_levels__start_interrupts(struct trial *t)
{
	trial = t;
	seen[INTERRUPT] = 0;
	set_up(&timer, on_timer);
	hrtimer_start(&timer, ns_to_ktime(PERIOD_NS), HRTIMER_MODE_REL_PINNED_HARD);
}

u64 pem_levels__stop_interrupts(struct trial *t)
{
	hrtimer_cancel(&timer);
	return seen[INTERRUPT];
}

const char *pem_levels__begin(void)
{
	memset(seen, 0, sizeof(seen));
	return begin_nmi();
}

void pem_levels__settle(void)
{
	tasklet_kill(&soft_interrupt_work);
	irq_work_sync(&interrupt_work);
}

void pem_levels__end(void)
{
	end_nmi();
}
