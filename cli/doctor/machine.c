// SPDX-License-Identifier: MIT
/* machine.c - pem doctor for the machine and the kernel: clock, buffers, BPF, counters */
#include "doctor.h"

#include <errno.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a small file, or NULL. */
static const char *read_line(const char *path, char *line, size_t bytes)
{
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return NULL;
	if (fgets(line, (int)bytes, file) == NULL)
		line[0] = '\0';
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* --- the machine --- */

/* Is a word among the CPU's flags? */
static bool cpu_flag(const char *flag)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	size_t n = strlen(flag), capacity = 0;
	char *line = NULL, *at;
	bool found = false;

	if (file == NULL)
		return false;
	while (!found && getline(&line, &capacity, file) > 0)
		if (strncmp(line, "flags", 5) == 0)
			for (at = line; !found && (at = strstr(at, flag)) != NULL; at += n)
				found = at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n');
	free(line);
	fclose(file);
	return found;
}

static void check_clock(struct doctor *doctor)
{
	char source[64] = "unknown";
	double mhz = (double)pem_clock__hz() / 1e6;

	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		  sizeof(source));
#if defined(__x86_64__)
	bool constant = cpu_flag("constant_tsc"), nonstop = cpu_flag("nonstop_tsc");

	if (constant && nonstop)
		doctor__add(doctor, "clock", DOCTOR_OK, NULL,
			    "cycle counter at %.3f MHz, constant and never stopping; the kernel's "
			    "clock source is %s",
			    mhz, source);
	else
		doctor__add(
			doctor, "clock", DOCTOR_LIMITED,
			"times across CPUs and sleeps may be wrong: trust order within a thread",
			"cycle counter at %.3f MHz, the CPU does not claim that it is %s; the "
			"kernel's clock source is %s",
			mhz, constant ? "never stopping" : "constant", source);
#else
	(void)cpu_flag;
	doctor__add(doctor, "clock", DOCTOR_OK, NULL,
		    "counter at %.3f MHz; the kernel's clock source is %s", mhz, source);
#endif
}

static void check_runtime(struct doctor *doctor)
{
	char path[PATH_MAX];
	struct statvfs fs;
	struct stat st;
	uint64_t room;
	int rc = pem_runtime_dir(path, sizeof(path));

	if (rc < 0) {
		bool exists = lstat(path, &st) == 0;

		doctor__add(doctor, "runtime folder", DOCTOR_NO,
			    exists ? "remove it, or name another in PEM_RUNTIME_DIR"
				   : "name a folder of your own in PEM_RUNTIME_DIR",
			    "%s: %s", path,
			    rc == -EPERM ? "no folder that this user alone may write to"
					 : strerror(-rc));
		return;
	}
	doctor__add(doctor, "runtime folder", DOCTOR_OK, NULL, "%s", path);
	if (statvfs(path, &fs) < 0)
		return;
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	/* Room for eight processes at the default of 8 MiB each. */
	doctor__add(doctor, "room for buffers", room >= 64ull << 20 ? DOCTOR_OK : DOCTOR_LIMITED,
		    room >= 64ull << 20
			    ? NULL
			    : "each recorded process takes 8 MiB: use a smaller --buffer",
		    "%s free in %s", cli_bytes(room), path);
}

void doctor__machine(struct doctor *doctor)
{
	check_clock(doctor);
	check_runtime(doctor);
}

/* --- the kernel --- */

/* Load a program that does nothing. Returns 0, or the -errno of the kernel's refusal. */
static int try_bpf(void)
{
	/* r0 = 0; exit */
	static const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr attr = {0};
	long fd;

	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = 2;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

/* Open a counter of this process. Returns 0 or -errno. */
static int try_counter(uint32_t type, uint64_t config, bool kernel)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .type = type, .config = config};
	long fd;

	attr.disabled = 1;
	attr.exclude_kernel = !kernel;
	attr.exclude_hv = 1;
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

static void check_bpf(struct doctor *doctor)
{
	int rc = try_bpf();

	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		doctor__add(doctor, "BTF", DOCTOR_OK, NULL,
			    "the kernel describes its types in /sys/kernel/btf/vmlinux");
	else
		doctor__add(
			doctor, "BTF", DOCTOR_NO,
			"a kernel built with CONFIG_DEBUG_INFO_BTF (distributions' kernels are)",
			"/sys/kernel/btf/vmlinux: %s; without it no kernel events through BPF",
			strerror(errno));
	if (rc == 0)
		doctor__add(doctor, "BPF", DOCTOR_OK, NULL, "this user may load tracing programs");
	else if (rc == -EPERM || rc == -EACCES)
		doctor__add(doctor, "BPF", DOCTOR_NO,
			    "run as root, or give pem CAP_BPF and CAP_PERFMON, as ambient "
			    "capabilities (setpriv: see pem-record(1)) or, where it is installed "
			    "(make install, ldconfig), by setcap cap_bpf,cap_perfmon+ep",
			    "this user may not load tracing programs");
	else
		doctor__add(doctor, "BPF", DOCTOR_NO,
			    rc == -ENOSYS ? "a kernel built with CONFIG_BPF_SYSCALL" : NULL,
			    "the kernel loads no tracing program: %s", strerror(-rc));
	if (access("/sys/kernel/tracing/events", R_OK | X_OK) == 0)
		doctor__add(doctor, "tracepoints", DOCTOR_OK, NULL,
			    "listed in /sys/kernel/tracing/events");
	else if (geteuid() == 0)
		doctor__add(doctor, "tracepoints", DOCTOR_LIMITED,
			    "pem spec import needs it: mount -t tracefs none /sys/kernel/tracing",
			    "tracefs is not mounted on /sys/kernel/tracing (%s); to record, pem "
			    "mounts it for itself",
			    strerror(errno));
	else
		doctor__add(doctor, "tracepoints", DOCTOR_LIMITED,
			    "run as root, or mount -t tracefs -o gid=GROUP,mode=750 none "
			    "/sys/kernel/tracing, GROUP being one of this user's",
			    "/sys/kernel/tracing/events: %s", strerror(errno));
}

static void check_counters(struct doctor *doctor)
{
	int hardware = try_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
	int software = try_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false);
	int kernel = try_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true);
	char line[32] = "unknown";

	if (hardware == 0)
		doctor__add(doctor, "hardware counters", DOCTOR_OK, NULL, "cycles can be counted");
	else if (hardware == -ENOENT || hardware == -EOPNOTSUPP || hardware == -ENODEV)
		doctor__add(doctor, "hardware counters", DOCTOR_NO,
			    "a virtual machine needs its host to pass the PMU on",
			    "this machine shows no performance counters");
	else
		doctor__add(doctor, "hardware counters", DOCTOR_NO,
			    hardware == -EACCES
				    ? "sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON"
				    : NULL,
			    "cannot count cycles: %s", strerror(-hardware));
	if (software == 0)
		doctor__add(doctor, "software counters", DOCTOR_OK, NULL,
			    "the kernel counts for this user's processes");
	else
		doctor__add(doctor, "software counters", DOCTOR_NO,
			    software == -EACCES
				    ? "sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON"
				    : NULL,
			    "cannot count task time: %s", strerror(-software));
	read_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	if (kernel == 0)
		doctor__add(doctor, "perf_event_paranoid", DOCTOR_OK, NULL,
			    "%s; this user may count in the kernel too", line);
	else
		doctor__add(doctor, "perf_event_paranoid", DOCTOR_LIMITED,
			    "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON",
			    "%s; this user may count outside the kernel only", line);
}

static void check_ptrace(struct doctor *doctor)
{
	char line[32];

	if (read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line)) == NULL)
		doctor__add(doctor, "ptrace", DOCTOR_OK, NULL, "not restricted");
	else if (geteuid() == 0 ? *line != '3' : *line == '0')
		doctor__add(doctor, "ptrace", DOCTOR_OK, NULL, "ptrace_scope %s", line);
	else
		doctor__add(doctor, "ptrace", DOCTOR_LIMITED,
			    *line == '3' ? "a reboot only" : "sysctl kernel.yama.ptrace_scope=0",
			    "ptrace_scope %s: only a process's own children may be inspected",
			    line);
}

void doctor__kernel(struct doctor *doctor)
{
	struct utsname name;

	if (uname(&name) == 0)
		doctor__add(doctor, "kernel", DOCTOR_OK, NULL, "%s %s %s", name.sysname,
			    name.release, name.machine);
	check_bpf(doctor);
	check_counters(doctor);
	check_ptrace(doctor);
}
