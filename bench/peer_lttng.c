// SPDX-License-Identifier: MIT
/*
 * peer_lttng.c - the benchmark's loops through LTTng-UST, as a shared object that is loaded while a
 * session daemon waits for it
 *
 * Not here: starting the daemon (lttng.c), loading this object (lttng_peer.c).
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench/peer_lttng_events.h"

#include "bench/bench.h"
#include "bench/lttng_peer.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void peer_lttng_disabled(uint64_t n);
EXPORT void peer_lttng_log(uint64_t n);
EXPORT void peer_lttng_log_ids(uint64_t n);
EXPORT void peer_lttng_filtered(uint64_t n);
EXPORT unsigned peer_lttng_enabled(void);

void peer_lttng_disabled(uint64_t n)
{
	BENCH_LOOP(n, lttng_ust_tracepoint(pem_bench, disabled, i, ~i))
}

void peer_lttng_log(uint64_t n)
{
	BENCH_LOOP(n, lttng_ust_tracepoint(pem_bench, log, i, ~i))
}

void peer_lttng_log_ids(uint64_t n)
{
	BENCH_LOOP(n, lttng_ust_tracepoint(pem_bench, log_ids, i, ~i))
}

/* The filter wants b != 0, so its second test rejects these events. */
void peer_lttng_filtered(uint64_t n)
{
	BENCH_LOOP(n, lttng_ust_tracepoint(pem_bench, filtered, i + 4097, 0))
}

unsigned peer_lttng_enabled(void)
{
	return (lttng_ust_tracepoint_enabled(pem_bench, log) ? LTTNG_PEER_LOG : 0) |
	       (lttng_ust_tracepoint_enabled(pem_bench, log_ids) ? LTTNG_PEER_LOG_IDS : 0) |
	       (lttng_ust_tracepoint_enabled(pem_bench, filtered) ? LTTNG_PEER_FILTERED : 0) |
	       (lttng_ust_tracepoint_enabled(pem_bench, disabled) ? LTTNG_PEER_DISABLED : 0);
}
