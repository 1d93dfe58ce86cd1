/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * feature.c - what this kernel allows and counts. It is tried once with programs made for the
 * trial, or read from the kernel's types.
 *
 * Not here: what the user may do, and which tracepoints exist (available.c).
 */
#include "base.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loads_void;

/* kfree(unsigned long call_site, const void *ptr) exists in every kernel. */
static void try_void(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_RAW_TP);
	const struct bpf_insn program[] = {
		{.code = BPF_LDX | BPF_DW | BPF_MEM, .dst_reg = 0, .src_reg = 1, .off = 8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int id = libbpf_find_vmlinux_btf_id("kfree", BPF_TRACE_RAW_TP);
	int fd;

	if (id <= 0)
		return;
	options.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "pem_try_void", "GPL", program,
			   sizeof(program) / sizeof(program[0]), &options);
	if (fd < 0)
		return;
	close(fd);
	loads_void = true;
}

bool pem_kernel__loads_void(void)
{
	pthread_once(&once, try_void);
	return loads_void;
}

static pthread_once_t reading_once = PTHREAD_ONCE_INIT;
static bool no_reading;

/*
 * libbpf 1.1 does not understand how newer kernels report that a helper is not allowed. So this
 * program is really loaded.
 */
static void try_reading(void)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = -8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 8},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_kernel},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "pem_try_reading", "GPL", program,
			       sizeof(program) / sizeof(program[0]), NULL);

	no_reading = fd < 0 && errno == EINVAL;
	if (fd >= 0)
		close(fd);
}

bool pem_kernel__no_reading(void)
{
	pthread_once(&reading_once, try_reading);
	return no_reading;
}

const char *pem_kernel__refusal(const char *log)
{
	if (strstr(log, "unknown func") && pem_kernel__no_reading())
		return "the kernel is locked down (man kernel_lockdown), so that no program reads "
		       "its memory, where this event's values are";
	return log;
}

/* --- probes --- */

static pthread_once_t functions_once = PTHREAD_ONCE_INIT;
static int functions_error; /* errno of loading a program for a function's entry */

static const struct btf *kernel_types(void)
{
	const struct pem_kernel_btf *kernel = pem_kernel__running(NULL);
	const char *name;

	return kernel ? pem_kernel_btf__part(kernel, 0, &name) : NULL;
}

static void try_functions(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FENTRY);
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	const struct btf *types = kernel_types();
	int id = types ? btf__find_by_name_kind(types, "vfs_read", BTF_KIND_FUNC) : 0;
	int fd;

	/* unknown; attaching will show it */
	if (id <= 0)
		return;
	options.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "pem_try_entry", "GPL", program,
			   sizeof(program) / sizeof(program[0]), &options);
	functions_error = fd < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
}

int pem_kernel__perf_type(const char *name)
{
	char path[96], text[32];
	FILE *file;
	int type;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", name);
	file = fopen(path, "re");
	if (!file)
		return -ENOENT;
	type = fgets(text, sizeof(text), file) ? atoi(text) : -ENOENT;
	fclose(file);
	return type;
}

/*
 * May this user attach to a place of this kind? Kernels differ in the rights that they want. So the
 * function tries a place that can't exist: a user with the rights gets the error about the place, a
 * user without them the error about rights.
 */
static bool is_allowed(const char *kind, const char *location)
{
	struct perf_event_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = (uint32_t)pem_kernel__perf_type(kind);
	attr.config1 = (uint64_t)(uintptr_t)location;
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close((int)fd);
	return fd >= 0 || (errno != EACCES && errno != EPERM);
}

static pthread_once_t allowed_once = PTHREAD_ONCE_INIT;
static bool allows_kprobes, allows_uprobes;

static void try_allowed(void)
{
	allows_kprobes = is_allowed("kprobe", "no.such.function");
	allows_uprobes = is_allowed("uprobe", "/");
}

static const char *lack_of_functions(void)
{
	pthread_once(&functions_once, try_functions);
	/* The caller has asked pem_kernel__can_load first, so this user may load programs. */
	if (functions_error != -EPERM)
		return NULL;
	return "this kernel lets nobody put programs into its functions, root neither: it is "
	       "locked down, or a security module forbids it; name a tracepoint, or boot a kernel "
	       "that allows it";
}

static const char *lack_of_kprobes(void)
{
	if (pem_kernel__perf_type("kprobe") < 0)
		return lack_of_functions()
			       ? "this kernel is built without kprobes (CONFIG_KPROBE_EVENTS), "
				 "and allows no fentry: or fexit: either; name a tracepoint, or "
				 "boot a kernel that has kprobes"
			       : "this kernel is built without kprobes (CONFIG_KPROBE_EVENTS); "
				 "fentry: and fexit: need none";
	pthread_once(&allowed_once, try_allowed);
	return allows_kprobes ? NULL
			      : "this kernel wants more than CAP_BPF and CAP_PERFMON for a kprobe: "
				"run as root, or give pem CAP_SYS_ADMIN";
}

static const char *lack_of_uprobes(void)
{
	if (pem_kernel__perf_type("uprobe") < 0)
		return "this kernel is built without uprobes (CONFIG_UPROBE_EVENTS)";
	if (pem_kernel__has_uprobe_multi())
		return NULL;
	pthread_once(&allowed_once, try_allowed);
	return allows_uprobes
		       ? NULL
		       : "this kernel wants more than CAP_BPF and CAP_PERFMON for a probe in "
			 "a program: run as root, or give pem CAP_SYS_ADMIN";
}

int pem_kernel__can_attach(enum pem_probe_kind kind, struct pem_error *reason)
{
	const char *lacks = NULL;

	switch (kind) {
	case PEM_PROBE_FENTRY:
	case PEM_PROBE_FEXIT:
		lacks = lack_of_functions();
		break;
	case PEM_PROBE_KPROBE:
	case PEM_PROBE_KRETPROBE:
		lacks = lack_of_kprobes();
		break;
	case PEM_PROBE_UPROBE:
	case PEM_PROBE_URETPROBE:
	case PEM_PROBE_USDT:
		lacks = lack_of_uprobes();
		break;
	default:
		break;
	}
	return lacks ? pem_error__set(reason, 0, "%s", lacks) : 1;
}

bool pem_kernel__counts_misses(void)
{
	const struct btf *types = kernel_types();

	return types &&
	       pem_kernel_btf__has_member(types, "bpf_link_info", "perf_event.kprobe.missed");
}
