/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * feature.c - what this kernel allows and counts: tried once with programs that do nothing else, or told by its types
 *
 * Not here: what the user may do, and which tracepoints there are (probe.c).
 */
#include "kernel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loads_void;

/* kfree(unsigned long call_site, const void *ptr) is in every kernel. */
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

/* --- probes --- */

static pthread_once_t functions_once = PTHREAD_ONCE_INIT;
static int functions_error; /* of a program on a function's entry */

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

	if (id <= 0)
		return; /* can't be told: who attaches will see */
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

int pem_kernel__can_attach(enum pem_probe_kind kind, struct pem_error *reason)
{
	const char *lacks = NULL;

	switch (kind) {
	case PEM_PROBE_FENTRY:
	case PEM_PROBE_FEXIT:
		pthread_once(&functions_once, try_functions);
		/* Whoever asks may load programs: pem_kernel__can_load was asked first. */
		if (functions_error == -EPERM)
			lacks = "this kernel lets nobody put programs into its functions, root "
				"neither: it is locked down, or a security module forbids it; name "
				"a tracepoint, or boot a kernel that allows it";
		break;
	case PEM_PROBE_KPROBE:
	case PEM_PROBE_KRETPROBE:
		if (pem_kernel__perf_type("kprobe") < 0)
			lacks = "this kernel is built without kprobes (CONFIG_KPROBE_EVENTS); "
				"fentry: and fexit: need none";
		break;
	case PEM_PROBE_UPROBE:
	case PEM_PROBE_URETPROBE:
	case PEM_PROBE_USDT:
		if (pem_kernel__perf_type("uprobe") < 0)
			lacks = "this kernel is built without uprobes (CONFIG_UPROBE_EVENTS)";
		break;
	default:
		break;
	}
	return lacks ? pem_kernel__fail(reason, 0, "%s", lacks) : 1;
}

bool pem_kernel__counts_misses(void)
{
	const struct btf *types = kernel_types();

	return types &&
	       pem_kernel_btf__has_member(types, "bpf_link_info", "perf_event.kprobe.missed");
}
