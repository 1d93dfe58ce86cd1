/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * types_task.h - threads, signals, interrupts, timers, deferred work, power (see kernel_types.h)
 */
#ifndef PEM_TYPES_TASK_H
#define PEM_TYPES_TASK_H

#include "types_base.h"

/* Only the size of these types matters here. It is an int's. */
enum error_detector { PEM_ERROR_DETECTOR };
enum hrtimer_mode { PEM_HRTIMER_MODE };
enum numa_vmaskip_reason { PEM_NUMA_VMASKIP_REASON };
enum pm_qos_req_action { PEM_PM_QOS_REQ_ACTION };
enum thermal_trip_type { PEM_THERMAL_TRIP_TYPE };

/* --- threads --- */

struct signal_struct {
	atomic_t live; /* number of threads that have not ended */
	int nr_threads; /* number of threads whose descriptions still exist */
	short oom_score_adj;
};

struct thread_info {
	unsigned int cpu;
};

/* The thread pointer of a program's thread. */
struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#elif defined(__TARGET_ARCH_arm64)
	struct {
		unsigned long tp_value;
	} uw;
#endif
};

struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int flags; /* PF_... in the kernel's sched.h */
	unsigned int __state;
	int exit_state; /* not 0: the thread has almost ended */
	int exit_code;
	int prio;
	pid_t pid;
	pid_t tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct files_struct *files;
	char comm[16];
	struct thread_struct thread;
	struct pid *thread_pid;
	const struct cred *real_cred;
};

struct cred {
	struct {
		unsigned int val;
	} uid;
};

struct pid_namespace {
	struct {
		unsigned int inum;
	} ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level; /* the last of numbers, which is that of the innermost namespace */
	struct upid numbers[1];
};

struct linux_binprm {
	const char *filename;
	const char *interp;
};

struct sigaction {
	void (*sa_handler)(int);
	unsigned long sa_flags;
};

struct k_sigaction {
	struct sigaction sa;
};

/* --- registers --- */

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	unsigned long long regs[31];
	unsigned long long sp;
	unsigned long long pc;
	unsigned long long pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			unsigned long long regs[31];
			unsigned long long sp;
			unsigned long long pc;
			unsigned long long pstate;
		};
	};
	unsigned long long orig_x0;
};
#endif

/* --- interrupts and calls between CPUs --- */

struct irqaction {
	int (*handler)(int, void *);
	const char *name;
};

struct cpumask {
	unsigned long bits[1];
};

typedef void (*smp_call_func_t)(void *info);

struct __call_single_data {
	smp_call_func_t func;
};
typedef struct __call_single_data call_single_data_t;

/* --- timers --- */

struct timer_list {
	unsigned long expires;
	void (*function)(struct timer_list *);
};

struct timerqueue_node {
	ktime_t expires;
};

struct hrtimer {
	struct timerqueue_node node;
	int (*function)(struct hrtimer *);
};

struct alarm {
	struct timerqueue_node node;
};

/* --- deferred work --- */

struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);
struct work_struct {
	work_func_t func;
};

struct kthread_work;
typedef void (*kthread_work_func_t)(struct kthread_work *work);
struct kthread_work {
	kthread_work_func_t func;
};

/* --- cgroups and modules --- */

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
	int level;
};

struct module {
	char name[56];
};

/* --- power --- */

struct cpufreq_policy {
	unsigned int cpu;
	unsigned int min;
	unsigned int max;
};

struct dev_pm_info {
	atomic_t usage_count;
};

struct device {
	struct dev_pm_info power;
};

struct thermal_cooling_device {
	const char *type;
};

#endif
