/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * available.c - what this kernel and this user can deliver, and what would help if not
 *
 * Features are tried, never derived from a version.
 */
#include "base.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BTF_FILE PEM_KERNEL_BTF_FOLDER "/vmlinux"
/* the inode number of the first pid namespace, fixed by the kernel */
#define INIT_PID_NAMESPACE 0xeffffffcu

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	uint64_t effective;

	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &header, data))
		return geteuid() == 0;
	effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	return effective >> CAP_SYS_ADMIN & 1 ||
	       (effective >> CAP_BPF & 1 && effective >> CAP_PERFMON & 1);
}

int pem_kernel__can_load(struct pem_error *reason)
{
	struct stat status;

	if (access(BTF_FILE, R_OK))
		return pem_error__set(reason, 0,
				      "this kernel does not describe its types (%s: %s): boot "
				      "one built with CONFIG_DEBUG_INFO_BTF",
				      BTF_FILE, strerror(errno));
	if (!has_capabilities())
		return pem_error__set(reason, 0,
				      "needs root or CAP_BPF and CAP_PERFMON: run as root, or "
				      "give pem both (setpriv, or setcap where pem is installed)");
	if (!stat("/proc/self/ns/pid", &status) && status.st_ino != INIT_PID_NAMESPACE)
		return pem_error__set(
			reason, 0,
			"runs in a container whose process ids are not the kernel's: run it "
			"outside, or start the container with the host's pid namespace");
	return 1;
}

/* The kernel's own types. They are read once, which takes some 10 ms and 5 MB. */
static pthread_mutex_t btf_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pem_kernel_btf *btf;

__attribute__((destructor)) static void forget_btf(void)
{
	pem_kernel_btf__close(btf);
	btf = NULL;
}

const struct pem_kernel_btf *pem_kernel__running(struct pem_error *reason)
{
	int rc = 0;

	pthread_mutex_lock(&btf_lock);
	if (!btf) {
		btf = pem_kernel_btf__open(PEM_KERNEL_BTF_FOLDER);
		rc = btf ? 0 : errno;
	}
	pthread_mutex_unlock(&btf_lock);
	if (rc)
		pem_error__set(reason, 0, "the kernel's types can't be read (%s): %s", BTF_FILE,
			       strerror(rc));
	return btf;
}

/*
 * Would a program at this tracepoint be called again by its own end, until the kernel's stack is
 * used up and the kernel panics? A kernel with preemptible RCU asks for a switch when a program
 * leaves its RCU section. Linux 7.3 was seen to die of it. The module's probes have no such
 * section.
 */
static bool is_endless(const struct pem_kernel_btf *kernel, const char *tracepoint)
{
	const char *name;

	return !strcmp(tracepoint, "sched:sched_set_need_resched_tp") &&
	       pem_kernel_btf__has_member(pem_kernel_btf__part(kernel, 0, &name), "task_struct",
					  "rcu_read_lock_nesting");
}

/*
 * Write why no alternative of an event fits: none of its tracepoints exists, or an existing one has
 * other parameters or is not safe.
 */
static void say_why(const struct pem_kernel_btf *kernel, const struct pem_kernel_event *event,
		    struct pem_error *reason)
{
	const struct pem_kernel_alternative *alternative;
	char has[200], names[160] = "";
	size_t used = 0;
	unsigned i;

	for (i = 0; i < event->alternative_count; i++) {
		alternative = &event->alternatives[i];
		if (is_endless(kernel, alternative->tracepoint) &&
		    pem_kernel_btf__home(kernel, alternative->tracepoint)) {
			pem_error__set(reason, 0,
				       "a BPF program at %s would call itself without end, and "
				       "this kernel would panic: load pem.ko, which can observe it",
				       alternative->tracepoint);
			return;
		}
		if (pem_kernel_btf__match(kernel, alternative->tracepoint,
					  alternative->arguments) == PEM_KERNEL_DIFFERS) {
			pem_kernel_btf__describe(kernel, alternative->tracepoint, has, sizeof(has));
			pem_error__set(reason, 0,
				       "this kernel's tracepoint %s has other parameters than "
				       "pem knows: write an alternative <source> for (%s); the "
				       "spec has (%.180s)",
				       alternative->tracepoint, has, alternative->arguments);
			return;
		}
		if (used < sizeof(names) && !strstr(names, alternative->tracepoint))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? " or " : "", alternative->tracepoint);
	}
	pem_error__set(reason, 0,
		       "this kernel has no tracepoint %s: it is of another version or "
		       "architecture, was built without it, or has its module not loaded",
		       names);
}

int pem_kernel__choose_in(const struct pem_kernel_btf *kernel, const struct pem_kernel_event *event,
			  uint32_t refused, struct pem_error *reason)
{
	enum pem_kernel_match match, best = PEM_KERNEL_DIFFERS;
	int chosen = -ENOENT;
	unsigned i;

	for (i = 0; i < event->alternative_count; i++) {
		if (refused >> i & 1 || is_endless(kernel, event->alternatives[i].tracepoint))
			continue;
		match = pem_kernel_btf__match(kernel, event->alternatives[i].tracepoint,
					      event->alternatives[i].arguments);
		if (match > best) {
			best = match;
			chosen = (int)i;
		}
	}
	if (chosen < 0)
		say_why(kernel, event, reason);
	return chosen;
}

int pem_kernel__choose(unsigned index, uint32_t refused, struct pem_error *reason)
{
	const struct pem_kernel_btf *kernel = pem_kernel__running(reason);

	return kernel ? pem_kernel__choose_in(kernel, pem_kernel__event(index), refused, reason)
		      : -ENOENT;
}
