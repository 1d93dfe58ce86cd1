/* SPDX-License-Identifier: MIT */
/*
 * lttng_peer.h - loads peer-lttng.so, which exports the benchmark's loops through LTTng-UST
 *
 * Not here: the session daemon (lttng.h, measure.py).
 */
#ifndef BENCH_LTTNG_PEER_H
#define BENCH_LTTNG_PEER_H

#include <stddef.h>
#include <stdint.h>

/*
 * The events that a session daemon may have enabled, as bits of the result of peer_lttng_enabled.
 */
enum {
	LTTNG_PEER_LOG = 1,
	LTTNG_PEER_FILTERED = 2,
	LTTNG_PEER_DISABLED = 4, /* no session enables it */
	LTTNG_PEER_LOG_IDS = 8,
};

struct lttng_peer {
	void (*run_disabled)(uint64_t n);
	void (*run_log)(uint64_t n);
	void (*run_log_ids)(uint64_t n); /* with the contexts vpid and vtid */
	/* With the filter 'a > 4096 && b != 0', which rejects all events. */
	void (*run_filtered)(uint64_t n);
};

/*
 * Load peer-lttng.so from the folder of this program, and wait until exactly these events are
 * enabled, 30 s at most. Returns 0; or -1 with a sentence in reason, and *peer is unchanged.
 */
int lttng_peer__load(struct lttng_peer *peer, unsigned events, char *reason, size_t size);

#endif
