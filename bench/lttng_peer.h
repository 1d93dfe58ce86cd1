/* SPDX-License-Identifier: MIT */
/*
 * lttng_peer.h - the same loops through LTTng-UST: what peer-lttng.so exports, and loading it
 *
 * Not here: a session daemon to serve them (lttng.h, measure.py).
 */
#ifndef BENCH_LTTNG_PEER_H
#define BENCH_LTTNG_PEER_H

#include <stddef.h>
#include <stdint.h>

/* The events that a session daemon may have enabled: bits of what peer_lttng_enabled returns. */
enum {
	LTTNG_PEER_LOG = 1,
	LTTNG_PEER_FILTERED = 2,
	LTTNG_PEER_DISABLED = 4, /* nobody enables it */
	LTTNG_PEER_LOG_IDS = 8,
};

struct lttng_peer {
	void (*run_disabled)(uint64_t n);
	void (*run_log)(uint64_t n);
	void (*run_log_ids)(uint64_t n); /* with the contexts vpid and vtid */
	void (*run_filtered)(uint64_t n); /* 'a > 4096 && b != 0' rejects all */
};

/*
 * Load peer-lttng.so, which lies beside this program, and wait until exactly these events are
 * enabled, 30 s at most. 0; or -1, with a sentence in reason and *peer as it was.
 */
int lttng_peer__load(struct lttng_peer *peer, unsigned events, char *reason, size_t size);

#endif
