/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * uprobe_multi.c - attaches a program to all its locations in a binary by one link, which Linux can
 * since 6.6
 *
 * Without such a link each place takes a perf event. On some kernels only CAP_SYS_ADMIN may make
 * these. The kernel ends them one after the other under one lock, some tens of milliseconds each,
 * and another process that attaches meanwhile waits for that. Installed headers and libbpf may be
 * older than the kernel, so the layout of the call is defined here.
 */
#include "base.h"

#include <pem/abi.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UPROBE_MULTI_RETURN 1u /* BPF_F_UPROBE_MULTI_RETURN */

/* The members of union bpf_attr that BPF_LINK_CREATE uses for such a link. */
struct link_attr {
	uint32_t program, target, attach_type, flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t count, multi_flags, pid, reserved;
};
PEM_STATIC_ASSERT(offsetof(struct link_attr, path) == 16, "the kernel's layout");
PEM_STATIC_ASSERT(offsetof(struct link_attr, count) == 48, "the kernel's layout");

int pem_kernel__create_uprobe_link(int program, const char *path, const uint64_t *offsets,
				   const uint64_t *semaphores, size_t count, bool returns,
				   bool only_here)
{
	struct link_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.program = (uint32_t)program;
	attr.attach_type = PEM_UPROBE_MULTI;
	attr.path = (uint64_t)(uintptr_t)path;
	attr.offsets = (uint64_t)(uintptr_t)offsets;
	attr.semaphores = (uint64_t)(uintptr_t)semaphores;
	attr.count = (uint32_t)count;
	attr.multi_flags = returns ? UPROBE_MULTI_RETURN : 0;
	attr.pid = only_here ? (uint32_t)getpid() : 0;
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_multi;

/*
 * Tries a link to a place in no file. A kernel with such links reports that the file is missing.
 * Any other kernel reports that the link type is unknown.
 */
static void try_multi(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = PEM_UPROBE_MULTI);
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	uint64_t offset = 1;
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "pem_try_multi", "GPL", program,
			       sizeof(program) / sizeof(program[0]), &options);
	int link;

	if (fd < 0)
		return;
	link = pem_kernel__create_uprobe_link(fd, "/", &offset, NULL, 1, false, false);
	has_multi = link == -EBADF;
	if (link >= 0)
		close(link);
	close(fd);
}

bool pem_kernel__has_uprobe_multi(void)
{
	pthread_once(&once, try_multi);
	return has_multi;
}
