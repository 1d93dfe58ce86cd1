/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capabilities.c - drop the capabilities that were given to pem for itself, so that the programs it
 * starts do not get them
 *
 * An ambient capability survives every exec. docs/record.md gives pem CAP_BPF and CAP_PERFMON as
 * ambient capabilities, so a started program would have them as well. Which capabilities the
 * kernel's events need is not decided here, but in sources/kernel/base/available.c.
 */
#include <pem/pem.h>

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS _LINUX_CAPABILITY_U32S_3

/*
 * The capabilities that pem itself uses. All others, such as CAP_NET_BIND_SERVICE, are meant for
 * the program.
 */
static const uint8_t own[] = {CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYS_ADMIN};

int pem_run__drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[WORDS];
	uint32_t before[WORDS], i;
	bool changed = false;

	if (syscall(SYS_capget, &header, data))
		return errno == ENOSYS ? 0 : -errno;
	for (i = 0; i < WORDS; i++)
		before[i] = data[i].inheritable;
	for (i = 0; i < sizeof(own); i++)
		data[CAP_TO_INDEX(own[i])].inheritable &= ~CAP_TO_MASK(own[i]);
	for (i = 0; i < WORDS; i++)
		changed |= data[i].inheritable != before[i];
	/*
	 * The kernel removes a capability from the ambient set when it leaves the inheritable set.
	 */
	return changed && syscall(SYS_capset, &header, data) ? -errno : 0;
}
