// SPDX-License-Identifier: GPL-2.0-only
/*
 * counters.c - totals of a CPU's counters, read when another event is raised there. A total counts
 * from when its counter was opened.
 *
 * The counters are perf's own. Each is opened on each CPU and pinned, so it is never multiplexed.
 * Opening fails if the hardware has no room for it, or if the user may not observe CPUs (perf
 * checks this itself: perf_allow_cpu()). A counter may lose its hardware later, because perf stops
 * a pinned counter that it can't place again. It then has no value any more, and records say so.
 * They also say so for a CPU that has just come online and has no counter yet. The threads of a CPU
 * share its counters. If counters are read at every context switch, the difference between two
 * successive readings on a CPU is what the thread of the later reading used, because a switch reads
 * in the thread that leaves.
 *
 * The kernel exports perf_event_create_kernel_counter() and its opposite, but not
 * perf_event_read_local(). On the counter's own CPU, with interrupts off, this file does what that
 * function does: ask the PMU, then read the count. This is also allowed in an NMI, except for
 * software clocks and except for an NMI that interrupts a read. So a CPU that reads sets a mark,
 * and an NMI that finds the mark has no values. Values of other CPUs are never read.
 *
 * When a CPU goes offline its counters lose their hardware, and perf does not restore it when the
 * CPU returns. The counters are then opened again in a worker. Opening takes the lock on CPUs
 * (static keys), which the caller of the hotplug callback holds. They begin at zero.
 *
 * Synchronization: a probe reads its own CPU's pointers, with preemption off. The worker replaces
 * the pointers and releases the old counters after an RCU grace period. The lock excludes the
 * worker and close from each other.
 */
#include "pem_kmod_tried.h"

#if PEM_KMOD_HAS_counters
#include "sampling.h"

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "pem_kmod_emit.h"

struct counters_cpu {
	struct perf_event *event[PEM_KMOD_COUNTERS_MAX];
	bool is_reading;
};

struct pem_counters {
	struct counters_cpu __percpu *cpus;
	struct hlist_node hotplug;
	struct work_struct work;
	struct mutex lock; /* Held while counters are opened or closed. */
	u32 count;
	struct perf_event_attr attr[PEM_KMOD_COUNTERS_MAX];
};

static int hotplug_state;

/* --- reading: in probes --- */

/*
 * Read a counter. False: it does not count on this CPU. Interrupts are off, so this can't change
 * meanwhile.
 */
static bool read_one(struct perf_event *event, u64 *value)
{
	if (!event || READ_ONCE(event->oncpu) != smp_processor_id())
		return false;
	event->pmu->read(event);
	*value = local64_read(&event->count);
	return true;
}

/*
 * The address where the thread entered the kernel. It stays at the top of the stack while
 * interrupts nest.
 */
static u64 user_pc(void)
{
	return current->flags & PF_KTHREAD ? 0 : instruction_pointer(task_pt_regs(current));
}

void pem_counters_read(struct pem_kmod_probe_data *data, uint32_t event_id)
{
	struct pem_counters *counters = data->counters;
	u64 values[PEM_KMOD_COUNTERS_MAX] = {0};
	struct counters_cpu *mine;
	unsigned long flags;
	u8 missing = 0;
	u32 i;

	local_irq_save(flags);
	mine = this_cpu_ptr(counters->cpus);
	if (READ_ONCE(mine->is_reading)) {
		missing = (1u << counters->count) - 1;
	} else {
		WRITE_ONCE(mine->is_reading, true);
		barrier();
		for (i = 0; i < counters->count; i++) {
			if (!read_one(READ_ONCE(mine->event[i]), &values[i]))
				missing |= 1u << i;
		}
		barrier();
		WRITE_ONCE(mine->is_reading, false);
	}
	local_irq_restore(flags);
	pem_emit_hw_perf_hpms_at_event(data, event_id, missing, user_pc(), values, counters->count);
}

/* --- opening --- */

static int fill(struct perf_event_attr *attr, const struct pem_kmod_counter *asked)
{
	if (asked->flags & ~(PEM_KMOD_EXCLUDE_USER | PEM_KMOD_EXCLUDE_KERNEL))
		return -EINVAL;
	/*
	 * To count them the kernel changes its own code. ftrace:function changes each of its
	 * functions.
	 */
	if (asked->type == PERF_TYPE_TRACEPOINT || asked->type == PERF_TYPE_BREAKPOINT)
		return -EOPNOTSUPP;
	*attr = (struct perf_event_attr){
		.type = asked->type,
		.size = sizeof(*attr),
		.config = asked->config,
		.config1 = asked->config1,
		.config2 = asked->config2,
		.pinned = 1,
		.exclude_user = !!(asked->flags & PEM_KMOD_EXCLUDE_USER),
		.exclude_kernel = !!(asked->flags & PEM_KMOD_EXCLUDE_KERNEL),
	};
	return 0;
}

/*
 * perf's own PMUs that put breakpoints into the kernel or into programs. Their type numbers are
 * assigned at boot.
 */
static bool is_probe(const struct pmu *pmu)
{
	return pmu->name && (!strcmp(pmu->name, "kprobe") || !strcmp(pmu->name, "uprobe"));
}

/* Open an event that counts on this CPU. Returns NULL if the CPU is offline, or ERR_PTR. */
static struct perf_event *open_event(struct perf_event_attr *attr, unsigned int cpu)
{
	struct perf_event *event;
	int rc = 0;

	event = perf_event_create_kernel_counter(attr, cpu, NULL, NULL, NULL);
	if (IS_ERR(event))
		return PTR_ERR(event) == -ENODEV && !cpu_online(cpu) ? NULL : event;
	/* One counter counts for many CPUs, such as that of a memory controller. */
	if (event->cpu != cpu)
		rc = -EOPNOTSUPP;
	else if (is_probe(event->pmu))
		rc = -EOPNOTSUPP;
	else if (READ_ONCE(event->state) != PERF_EVENT_STATE_ACTIVE && cpu_online(cpu))
		rc = -ENOSPC;
	if (!rc)
		return event;
	perf_event_release_kernel(event);
	return ERR_PTR(rc);
}

static bool is_dead(const struct perf_event *event)
{
	return !event || READ_ONCE(event->state) < PERF_EVENT_STATE_INACTIVE;
}

/* Open the counters that a CPU lacks. Returns 0; or -errno, and *failed is the counter's index. */
static int open_cpu(struct pem_counters *counters, unsigned int cpu, u32 *failed)
{
	struct counters_cpu *mine = per_cpu_ptr(counters->cpus, cpu);
	struct perf_event *event, *old;
	u32 i;

	for (i = 0; i < counters->count; i++) {
		old = mine->event[i];
		if (!is_dead(old))
			continue;
		event = open_event(&counters->attr[i], cpu);
		*failed = i;
		if (IS_ERR(event))
			return PTR_ERR(event);
		WRITE_ONCE(mine->event[i], event);
		if (!old)
			continue;
		synchronize_rcu();
		perf_event_release_kernel(old);
	}
	return 0;
}

static int open_all(struct pem_counters *counters, u32 *failed)
{
	unsigned int cpu;
	int rc = 0;

	mutex_lock(&counters->lock);
	for_each_online_cpu(cpu) {
		rc = open_cpu(counters, cpu, failed);
		if (rc)
			break;
	}
	mutex_unlock(&counters->lock);
	return rc;
}

/*
 * Open counters of a CPU that returned. Counters that can't be opened again are missing in the
 * records.
 */
static void open_later(struct work_struct *work)
{
	u32 failed;

	open_all(container_of(work, struct pem_counters, work), &failed);
}

static int comes_online(unsigned int cpu, struct hlist_node *node)
{
	schedule_work(&hlist_entry(node, struct pem_counters, hotplug)->work);
	return 0;
}

static void release_all(struct pem_counters *counters)
{
	struct counters_cpu *mine;
	unsigned int cpu;
	u32 i;

	for_each_possible_cpu(cpu) {
		mine = per_cpu_ptr(counters->cpus, cpu);
		for (i = 0; i < counters->count; i++) {
			if (mine->event[i])
				perf_event_release_kernel(mine->event[i]);
		}
	}
}

static void free_counters(struct pem_counters *counters)
{
	free_percpu(counters->cpus);
	mutex_destroy(&counters->lock);
	kfree(counters);
}

/* Check and copy what was asked for. Nothing is opened yet. */
static struct pem_counters *new_counters(struct pem_kmod_counters *asked)
{
	struct pem_counters *counters;
	struct pem_kmod_counter one;
	int rc = 0;

	if (!asked->count || asked->count > PEM_KMOD_COUNTERS_MAX || asked->reserved)
		return ERR_PTR(-EINVAL);
	counters = kzalloc(sizeof(*counters), GFP_KERNEL_ACCOUNT);
	if (!counters)
		return ERR_PTR(-ENOMEM);
	mutex_init(&counters->lock);
	INIT_WORK(&counters->work, open_later);
	counters->cpus = alloc_percpu_gfp(struct counters_cpu, GFP_KERNEL_ACCOUNT);
	if (!counters->cpus)
		rc = -ENOMEM;
	for (; !rc && counters->count < asked->count; counters->count += !rc) {
		asked->failed = counters->count;
		if (copy_from_user(&one,
				   u64_to_user_ptr(asked->counters + counters->count * sizeof(one)),
				   sizeof(one)))
			rc = -EFAULT;
		else
			rc = fill(&counters->attr[counters->count], &one);
	}
	if (!rc)
		return counters;
	free_counters(counters);
	return ERR_PTR(rc);
}

int pem_counters__open(struct pem_kmod_probe_data *data, struct pem_kmod_counters *asked)
{
	struct pem_counters *counters;
	int rc;

	if (data->counters)
		return -EBUSY;
	asked->failed = 0;
	counters = new_counters(asked);
	if (IS_ERR(counters))
		return PTR_ERR(counters);
	/* The notifier is added first, so that no CPU is missed. */
	rc = cpuhp_state_add_instance_nocalls(hotplug_state, &counters->hotplug);
	if (rc)
		goto fail;
	rc = open_all(counters, &asked->failed);
	if (!rc) {
		data->counters = counters;
		return 0;
	}
	cpuhp_state_remove_instance_nocalls(hotplug_state, &counters->hotplug);
	cancel_work_sync(&counters->work);
	release_all(counters);
fail:
	free_counters(counters);
	return rc;
}

void pem_counters__close(struct pem_kmod_probe_data *data)
{
	struct pem_counters *counters = data->counters;

	if (!counters)
		return;
	data->counters = NULL;
	cpuhp_state_remove_instance_nocalls(hotplug_state, &counters->hotplug);
	cancel_work_sync(&counters->work);
	release_all(counters);
	free_counters(counters);
}

int pem_counters__init(void)
{
	int rc = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "pem/counters:online", comes_online,
					 NULL);

	if (rc < 0)
		return rc;
	hotplug_state = rc;
	return 0;
}

void pem_counters__exit(void)
{
	cpuhp_remove_multi_state(hotplug_state);
}
#endif
