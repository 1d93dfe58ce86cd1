/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* trace_end.c - what a trace says of the session as a whole, at its end or in a snapshot */
#include "core/clock_sync.h"
#include "core/core.h"
#include "cost/cost.h"
#include "flight/flight.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <pem/clock.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t cpu_ns(const struct rusage *usage)
{
	return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000000u +
	       ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000u;
}

/* Account for events that were raised without a pool to count them in. Their kind is unknown. */
static void account_lost(struct pem_session *s)
{
	uint64_t lost = __atomic_load_n(&s->page->lost, __ATOMIC_RELAXED);
	struct pem_balance_entry entry = {0, {lost, 0, lost, 0}};

	if (lost)
		pem_trace_writer__balance(s->log->writer, 0, "lost", 0, &entry, 1);
}

static uint64_t clock_to_ns(uint64_t ticks, uint64_t hz)
{
	return (uint64_t)((unsigned __int128)ticks * 1000000000u / hz);
}

/*
 * A flight recorder that overwrote records holds only the end of the flight: let the trace's time
 * begin with the first record that is left.
 */
static void narrow(struct pem_session *s, struct pem_trace_info *info)
{
	uint64_t first = pem_trace_writer__span_clock(s->log->writer), before_ns;

	if (!s->flight->store ||
	    (!s->log->overwritten && !pem_flight__has_overwritten(s->flight->store)) ||
	    first <= info->start_clock)
		return;
	before_ns = clock_to_ns(first - info->start_clock, info->clock_hz);
	info->ran_ns = info->duration_ns;
	info->start_clock = first;
	info->start_time_ns += before_ns;
	info->duration_ns -= before_ns < info->duration_ns ? before_ns : info->duration_ns;
}

/*
 * Return the CPU time of all that ran on the machine during the recording. The machine's time is
 * counted in ticks, and up to now, which is later than the recording's end. So the result is at
 * least the time that programs are known to have run, and at most the time that the CPUs had. 0:
 * the machine's time could not be read, then or now.
 */
static uint64_t machine_cpu_ns(const struct pem_log *log, const struct pem_trace_info *info)
{
	uint64_t now_ns = pem_machine_cpu_ns(), ran_ns = now_ns - log->machine_cpu_ns;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t most_ns = cpus > 0 ? info->duration_ns * (uint64_t)cpus : UINT64_MAX;

	if (!log->machine_cpu_ns || !now_ns)
		return 0;
	if (now_ns < log->machine_cpu_ns || ran_ns < info->program_cpu_ns)
		ran_ns = info->program_cpu_ns;
	return ran_ns < most_ns ? ran_ns : most_ns;
}

static void finish_info(struct pem_session *s, struct pem_trace_info *info)
{
	struct rusage self;
	uint64_t end;

	info->clock_hz = pem_clock_sync__hz(&s->clock);
	end = s->command.end_clock ? s->command.end_clock : pem_clock();
	info->duration_ns = clock_to_ns(end - info->start_clock, info->clock_hz);
	info->clock_error_ns = pem_session__clock_error_ns(s);
	if (s->options.coarse_clock)
		info->coarse_late_ns =
			clock_to_ns(pem_coarse_clock__late_cycles(&s->coarse), info->clock_hz) + 1;
	info->internal_calls = pem_session__internal_calls(s);
	getrusage(RUSAGE_SELF, &self);
	info->recorder_cpu_ns = cpu_ns(&self);
	if (s->command.done) {
		info->program_cpu_ns = cpu_ns(&s->command.usage);
		info->exit_status = WIFEXITED(s->command.status)
					    ? WEXITSTATUS(s->command.status)
					    : 128 + WTERMSIG(s->command.status);
	}
	if (!s->command.done && !s->command.failed && s->command.pid) /* a snapshot */
		info->program_cpu_ns = pem_session__program_cpu_ns(s);
	if (s->sources->whole_machine)
		info->machine_cpu_ns = machine_cpu_ns(s->log, info);
	narrow(s, info);
	pem_session__note_gaps(s, info);
	pem_session__note_left(s, info);
	pem_session__note_estimates(s, info);
	info->complete = 1;
}

void pem_log__close_account(struct pem_session *s, struct pem_trace_info *info)
{
	account_lost(s);
	finish_info(s, info);
	pem_session__count_costs(s, info);
	pem_session__account_detail(s, info);
}
