/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * misses.c - counts the events of probes that the kernel skipped, as far as the kernel counts them
 *
 * The kernel skips a program if its place is run inside another, or inside itself, on one CPU. With
 * trampolines (fentry, fexit) each program counts these. Programs on perf events (tracepoints,
 * kprobes) share one guard for each CPU. Since Linux 6.7 each program counts the runs that the
 * guard prevented. A link also tells what its kprobe missed before the guard. For a kretprobe it
 * tells the misses for lack of room, when a function runs more often at a time than there are
 * instances. Before Linux 6.7 neither is counted. Uprobes do not run inside each other.
 */
#include "attach.h"

#include <bpf/bpf.h>
#include <stddef.h>
#include <string.h>

#define BY_KPROBE 3u /* enum bpf_perf_event_type */
#define BY_KRETPROBE 4u

/*
 * The head of struct bpf_link_info for a link of a perf event, as it is since Linux 6.7. Installed
 * headers may be older.
 */
struct link_info {
	uint32_t type, id, program, reserved0;
	uint32_t by, reserved1;
	uint64_t function;
	uint32_t function_bytes, offset;
	uint64_t address, missed;
};
PEM_STATIC_ASSERT(offsetof(struct link_info, missed) == 48, "the kernel's layout");

static bool is_guarded(enum pem_probe_kind kind)
{
	return kind == PEM_PROBE_TRACEPOINT || kind == PEM_PROBE_KPROBE ||
	       kind == PEM_PROBE_KRETPROBE;
}

void pem_source__say_uncounted(const struct pem_source *source)
{
	const char *first = NULL;
	size_t count = 0, i;

	for (i = 0; i < source->probe_count; i++) {
		if (!is_guarded(source->probes[i].probe->kind))
			continue;
		if (!count++)
			first = source->probes[i].probe->name;
	}
	if (count && !pem_kernel__counts_misses())
		pem_source__log(
			source, PEM_LOG_WARNING,
			"%s%s: this kernel does not count the events that it passes over, "
			"within another of them on the same CPU: they are in no balance (Linux "
			"counts them since 6.7)",
			first, count > 1 ? " and others" : "");
}

static uint64_t missed_by_link(int fd)
{
	struct link_info info;
	uint32_t bytes = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(fd, &info, &bytes) || bytes < sizeof(info) ||
	    (info.by != BY_KPROBE && info.by != BY_KRETPROBE))
		return 0;
	return info.missed;
}

static uint64_t missed_by_program(const struct pem_probe_program *program)
{
	struct bpf_prog_info info;
	uint32_t bytes = sizeof(info);

	memset(&info, 0, sizeof(info));
	return bpf_obj_get_info_by_fd(program->fd, &info, &bytes) ? 0 : info.recursion_misses;
}

void pem_source__count_probe_misses(struct pem_source *source)
{
	bool by_link = source->probe_count && pem_kernel__counts_misses();
	const struct pem_probe_program *program;
	struct pem_kernel_probe *probe;
	size_t i, k, n;

	for (i = 0; i < source->probe_count; i++) {
		probe = &source->probes[i];
		probe->misses = 0;
		for (k = 0; k < probe->program_count; k++) {
			program = &probe->programs[k];
			probe->misses += missed_by_program(program);
			for (n = 0; by_link && n < program->attached; n++) {
				if (program->link_fds[n] >= 0)
					probe->misses += missed_by_link(program->link_fds[n]);
			}
		}
	}
}
