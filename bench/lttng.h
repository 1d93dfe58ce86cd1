/* SPDX-License-Identifier: MIT */
/* lttng.h - LTTng-UST as the peer: an own session daemon, with the peer's loops loaded */
#ifndef BENCH_LTTNG_H
#define BENCH_LTTNG_H

#include "bench/lttng_peer.h"

#include <stdint.h>
#include <sys/types.h>

struct lttng {
	pid_t daemon;
	char directory[64]; /* home of the daemon and output of its session; removed at the end */
	struct lttng_peer peer; /* all NULL: LTTng is not available */
	char reason[256]; /* why it is not available */
};

/*
 * Start a daemon and a snapshot session with buffers of buffer_bytes per CPU in overwrite mode,
 * enable the event, and load the peer. Returns 0, or -1 with reason; nothing is then left running.
 * If the user is root, the function first moves this process to a mount namespace where /run is
 * empty, so that it meets no other daemon. So call it before anything opens files there.
 */
int lttng__start(struct lttng *lttng, uint64_t buffer_bytes);
/* End the daemon by its pid, and remove the directory. */
void lttng__stop(struct lttng *lttng);

#endif
