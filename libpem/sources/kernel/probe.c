/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe.c - what this kernel and this user can deliver, and what would mend it
 *
 * Features are probed, never guessed from a version.
 */
#include "kernel.h"

#include <bpf/btf.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BTF_FILE "/sys/kernel/btf/vmlinux"
#define INIT_PID_NAMESPACE                                                                         \
	0xeffffffcu /* the inode number of the first pid namespace, fixed by the kernel */

int pem_kernel__fail(struct pem_error *error, int code, const char *format, ...)
{
	va_list args;

	if (error) {
		va_start(args, format);
		vsnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
	}
	return code;
}

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
		return pem_kernel__fail(reason, 0,
					"this kernel does not describe its types (%s: %s): boot "
					"one built with CONFIG_DEBUG_INFO_BTF",
					BTF_FILE, strerror(errno));
	if (!has_capabilities())
		return pem_kernel__fail(reason, 0,
					"needs root or CAP_BPF and CAP_PERFMON: run as root, or "
					"give pem both (setcap cap_bpf,cap_perfmon+ep)");
	if (!stat("/proc/self/ns/pid", &status) && status.st_ino != INIT_PID_NAMESPACE)
		return pem_kernel__fail(
			reason, 0,
			"runs in a container whose process ids are not the kernel's: run it "
			"outside, or start the container with the host's pid namespace");
	return 1;
}

/* The kernel's own types, read once: 5 MB, some 20 ms. */
static pthread_mutex_t btf_lock = PTHREAD_MUTEX_INITIALIZER;
static struct btf *btf;

__attribute__((destructor)) static void forget_btf(void)
{
	btf__free(btf);
	btf = NULL;
}

int pem_kernel__has_tracepoint(const char *tracepoint, struct pem_error *reason)
{
	char name[128];
	int id = -ENOENT, rc = 0;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	pthread_mutex_lock(&btf_lock);
	if (!btf) {
		btf = btf__parse(BTF_FILE, NULL);
		rc = btf ? 0 : -errno;
	}
	if (btf)
		id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	pthread_mutex_unlock(&btf_lock);
	if (rc)
		return pem_kernel__fail(reason, 0, "the kernel's types can't be read (%s): %s",
					BTF_FILE, strerror(-rc));
	if (id <= 0)
		return pem_kernel__fail(reason, 0,
					"this kernel has no tracepoint %s: it is of another "
					"version or architecture, or was built without it",
					tracepoint);
	return 1;
}
