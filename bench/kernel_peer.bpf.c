/* SPDX-License-Identifier: MIT */
/*
 * kernel_peer.bpf.c - what a user would write to observe system calls with BPF: an empty program,
 * reading the time, a count, a record in the standard ring buffer
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct record {
	unsigned long long time_ns; /* pem's records have a time, too */
	unsigned long long id;
	unsigned long long argument0;
};

/* The members of struct pt_regs that are read. They are relocated when the program is loaded. */
struct pt_regs {
#if defined(__TARGET_ARCH_x86)
	unsigned long di;
#else
	unsigned long long regs[31];
#endif
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_x86)
#define ARGUMENT0(regs) ((regs)->di)
#else
#define ARGUMENT0(regs) ((regs)->regs[0])
#endif

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20); /* as large as pem's ring of one CPU */
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 8);
	__uint(max_entries, 1);
} counts SEC(".maps");

unsigned long long lost;

SEC("tp_btf/sys_enter")
int empty(unsigned long long *ctx __attribute__((unused)))
{
	return 0;
}

/* Only reads the time. No record with a time can be cheaper. */
SEC("tp_btf/sys_enter")
int clock(unsigned long long *ctx __attribute__((unused)))
{
	volatile unsigned long long now = bpf_ktime_get_ns();

	(void)now;
	return 0;
}

SEC("tp_btf/sys_enter")
int count(unsigned long long *ctx __attribute__((unused)))
{
	unsigned int zero = 0;
	unsigned long long *n = bpf_map_lookup_elem(&counts, &zero);

	if (n)
		(*n)++;
	return 0;
}

static __always_inline int log_record(unsigned long long *ctx, unsigned long long flags)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	r->time_ns = bpf_ktime_get_ns();
	r->id = ctx[1];
	r->argument0 = ARGUMENT0(regs);
	bpf_ringbuf_submit(r, flags);
	return 0;
}

/* The kernel wakes the reader when it has caught up. */
SEC("tp_btf/sys_enter")
int ringbuf(unsigned long long *ctx)
{
	return log_record(ctx, 0);
}

/* The reader polls by the clock, as pem does. */
SEC("tp_btf/sys_enter")
int ringbuf_quiet(unsigned long long *ctx)
{
	return log_record(ctx, BPF_RB_NO_WAKEUP);
}

char peer_license[] SEC("license") = "Dual MIT/GPL";
