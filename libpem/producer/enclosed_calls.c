// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * enclosed_calls.c - enclosing probes as two functions, for languages that cannot use pem/probe.h
 *
 * What that header keeps in variables of the program lies in the thread's memory here: a stack of
 * open probes, and a table of what each kind and id has of its own. The measuring is the header's.
 */
/* The provider is registered at the first call of a process, and never leaves. */
#define PEM_REGISTERS_ITSELF
#include "producer/counters.h"
#include "producer/producer.h"

#include <pem/probe.h>

#include <errno.h>

#define KINDS (PEM_ENCLOSED_BY_PERFCNTR + PEM_ENCLOSED_COUNTER_MAX)

static bool is_wanted(uint32_t by)
{
	const uint32_t last = PEM_ENCLOSED_BY_PERFCNTR;

	return pem_is_enabled(&pem_page_probes.enable[by < last ? by : last]);
}

static bool has_provider(void)
{
	/* RP, rp: the page is the shared one */
	if (__atomic_load_n(&pem_provider_probes.registered, __ATOMIC_ACQUIRE))
		return true;
	pem_probe_functions = (struct pem_probe_functions){pem_probe__begin, pem_probe__end,
							   pem_probe__set_counter};
	return !pem_provider_register(&pem_provider_probes);
}

/* What a probe has of its own in this thread. NULL: there are too many. */
static struct pem_enclosed_site *site_of(struct pem_enclosed_calls *calls, uint32_t by, uint32_t id)
{
	const uint64_t key = (uint64_t)(by + 1) << 32 | id;
	uint32_t at = (id * 31u + by) % PEM_ENCLOSED_SITE_MAX, i;

	for (i = 0; i < PEM_ENCLOSED_SITE_MAX; i++, at = (at + 1) % PEM_ENCLOSED_SITE_MAX) {
		if (!calls->site[at].key)
			calls->site[at].key = key;
		if (calls->site[at].key == key)
			return &calls->site[at];
	}
	return NULL;
}

static uint32_t kind_of(uint32_t by)
{
	switch (by) {
	case PEM_ENCLOSED_BY_FLT:
		return PEM_ENCLOSED_FAULTS;
	case PEM_ENCLOSED_BY_CTXSW:
		return PEM_ENCLOSED_SWITCHES;
	case PEM_ENCLOSED_BY_LLC:
		return PEM_ENCLOSED_LLC;
	default:
		return PEM_ENCLOSED_COUNTER + by - PEM_ENCLOSED_BY_PERFCNTR;
	}
}

/* Begin to measure, as the last thing that is done before the program goes on. */
static void begin(struct pem_enclosed_call *call, struct pem_enclosed_site *kept)
{
	struct pem_probe_site site = {kept->cycles, kept->count};
	bool is_due;

	if (call->by == PEM_ENCLOSED_BY_CNT || call->by == PEM_ENCLOSED_BY_TPT) {
		call->source = call->by == PEM_ENCLOSED_BY_TPT ? pem_probe_clock() : 1;
		return;
	}
	is_due = pem_probe_is_due(&site, call->sc);
	kept->count = site.count;
	if (!is_due)
		call->source = 0;
	else if (call->by == PEM_ENCLOSED_BY_LAT)
		call->source = pem_probe_clock();
	else
		call->source = pem_probe_begin(kind_of(call->by), call->values);
}

void pem_probe__enter(uint32_t by, uint32_t id, uint32_t sc)
{
	struct pem_thread_counters *counters;
	struct pem_thread_full *thread;
	struct pem_enclosed_site *site;
	struct pem_enclosed_call *call;
	int saved_errno = errno;

	if (by >= KINDS || !has_provider() || !is_wanted(by))
		goto out;
	thread = pem_thread__get();
	counters = thread && !pem_restricted() ? pem_counted__make(thread) : NULL;
	site = counters ? site_of(&counters->calls, by, id) : NULL;
	if (!site || counters->calls.open_count >= PEM_ENCLOSED_OPEN_MAX)
		goto out;
	/* A signal handler in the middle of this opens and closes its own above. */
	call = &counters->calls.open[counters->calls.open_count++];
	PEM_BARRIER();
	call->by = by;
	call->id = id;
	call->sc = sc;
	begin(call, site);
out:
	errno = saved_errno;
}

/* Add an execution to those of its probe. */
static void add(struct pem_enclosed_call *call, struct pem_enclosed_site *kept)
{
	struct pem_probe_site site = {kept->cycles, kept->count};
	const struct pem_tally tally = {&site, call->source, call->sc};

	if (call->by == PEM_ENCLOSED_BY_CNT)
		pem_cnt_probe_end(&tally, call->id);
	else
		pem_tpt_probe_end(&tally, call->id);
	kept->cycles = site.cycles;
	kept->count = site.count;
}

static void end(struct pem_enclosed_call *call)
{
	switch (call->by) {
	case PEM_ENCLOSED_BY_LAT:
		pem_lat_probe_end(call->source, call->id);
		break;
	case PEM_ENCLOSED_BY_FLT:
		pem_flt_probe_end(call->source, call->values, call->id);
		break;
	case PEM_ENCLOSED_BY_CTXSW:
		pem_ctxsw_probe_end(call->source, call->values, call->id);
		break;
	case PEM_ENCLOSED_BY_LLC:
		pem_llc_probe_end(call->source, call->values, call->id);
		break;
	default:
		pem_perfcntr_probe_end(call->source, call->values, kind_of(call->by), call->id);
	}
}

void pem_probe__leave(uint32_t by, uint32_t id)
{
	const struct pem_thread_full *thread = (struct pem_thread_full *)pem_thread_current;
	struct pem_enclosed_calls *calls;
	struct pem_enclosed_call call;
	uint32_t i;

	if (!thread->shared.tid || !thread->counters)
		return;
	calls = &thread->counters->calls;
	for (i = calls->open_count; i > 0; i--)
		if (calls->open[i - 1].by == by && calls->open[i - 1].id == id)
			break;
	if (!i)
		return;
	call = calls->open[i - 1];
	PEM_BARRIER();
	calls->open_count = i - 1;
	if (by == PEM_ENCLOSED_BY_CNT || by == PEM_ENCLOSED_BY_TPT)
		add(&call, site_of(calls, by, id));
	else
		end(&call);
}
