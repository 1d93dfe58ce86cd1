/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run.c - .pem/run: what is known of a trace's run, one fact a line
 *
 * Not here: where it is read (libpem/reader).
 */
#include "core/core.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "util.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The error is rounded up. One that is unknown, or greater than any count, is written as such. */
static void put_estimate(FILE *f, const struct pem_trace_estimate *e)
{
	fprintf(f, "estimate=%s\t%llu\t%llu\t%u\t", e->event, (unsigned long long)e->enabled_ns,
		(unsigned long long)e->running_ns, e->together);
	if (e->error >= 0 && e->error < 0x1p63)
		/* Rounded up, without the library of mathematics. */
		fprintf(f, "%llu\n",
			(unsigned long long)e->error +
				(e->error > (double)(unsigned long long)e->error));
	else
		fprintf(f, "unknown\n");
}

int pem_trace_writer__write_run(struct pem_trace_writer *w, const struct pem_trace_info *info)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	uint32_t i;
	int result;

	if (!f)
		return -errno;
	fprintf(f, "command=%s\nhost=%s\nversion=%s\n", info->command, info->host, info->version);
	if (info->boot_id[0])
		fprintf(f, "boot_id=%s\n", info->boot_id);
	if (info->command_pid)
		fprintf(f, "command_process=%u\t%s\n", info->command_pid, info->command_name);
	if (info->context_events[0])
		fprintf(f, "context_events=%s\n", info->context_events);
	if (info->snapshot[0])
		fprintf(f, "snapshot=%s\n", info->snapshot);
	if (info->ran_ns)
		fprintf(f, "ran_ns=%llu\n", (unsigned long long)info->ran_ns);
	fprintf(f, "start_time_ns=%llu\nstart_clock=%llu\nduration_ns=%llu\n",
		(unsigned long long)info->start_time_ns, (unsigned long long)info->start_clock,
		(unsigned long long)info->duration_ns);
	fprintf(f,
		"clock_hz=%llu\nclock_error_ns=%llu\nrecorder_cpu_ns=%llu\nprogram_cpu_ns=%llu\n",
		(unsigned long long)info->clock_hz, (unsigned long long)info->clock_error_ns,
		(unsigned long long)info->recorder_cpu_ns,
		(unsigned long long)info->program_cpu_ns);
	if (info->coarse_late_ns)
		fprintf(f, "coarse_late_ns=%llu\n", (unsigned long long)info->coarse_late_ns);
	if (info->internal_calls)
		fprintf(f, "internal_calls=%llu\n", (unsigned long long)info->internal_calls);
	if (info->counters[0])
		fprintf(f, "counters=%s\n", info->counters);
	if (info->machine_cpu_ns)
		fprintf(f, "machine_cpu_ns=%llu\n", (unsigned long long)info->machine_cpu_ns);
	fprintf(f, "exit_status=%d\ncomplete=%u\n", info->exit_status, info->complete);
	for (i = 0; i < info->cost_count; i++)
		fprintf(f, "cost=%s\t%.3f\t%llu\t%.3f\t%.3f\n", info->costs[i].kind,
			info->costs[i].ns_each, (unsigned long long)info->costs[i].count,
			info->cost_ranges[i].least_ns, info->cost_ranges[i].most_ns);
	for (i = 0; i < info->gap_count; i++)
		fprintf(f, "gap=%s\t%s\n", info->gaps[i].source, info->gaps[i].reason);
	for (i = 0; i < info->reduced_count; i++)
		fprintf(f, "reduced=%s\t%u\t%llu\n", info->reduced[i].event,
			info->reduced[i].detail, (unsigned long long)info->reduced[i].counted);
	for (i = 0; i < info->predicate_count; i++)
		fprintf(f, "predicate=%s\t%s\n", info->predicates[i].event,
			info->predicates[i].text);
	for (i = 0; i < info->estimate_count; i++)
		put_estimate(f, &info->estimates[i]);
	if (info->predicates_more)
		fprintf(f, "predicates_more=%u\n", info->predicates_more);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	result = pem_replace_file(w->private_fd, "run", text, bytes);
	free(text);
	return result;
}
