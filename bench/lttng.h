/* SPDX-License-Identifier: MIT */
/*
 * lttng.h - LTTng-UST beside us: a session daemon of our own, with the peer's loops loaded
 */
#ifndef BENCH_LTTNG_H
#define BENCH_LTTNG_H

#include "bench/lttng_peer.h"

#include <stdint.h>
#include <sys/types.h>

struct lttng {
	pid_t daemon;
	char directory[64]; /* its home and its session's output; removed at the end */
	struct lttng_peer peer; /* NULLs: not here */
	char reason[256]; /* why it is not here */
};

/*
 * Start a daemon, a snapshot session with buffers of buffer_bytes per CPU in overwrite mode, and
 * the event; load the peer. 0, or -1 with reason: nothing is left running. As root it first moves
 * this process to a mount namespace where /run is empty, so that it meets no other daemon; call it
 * before anything opens files there.
 */
int lttng__start(struct lttng *lttng, uint64_t buffer_bytes);
/* End the daemon, by its pid, and remove the directory. */
void lttng__stop(struct lttng *lttng);

#endif
