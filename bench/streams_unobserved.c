/* SPDX-License-Identifier: MIT */
/* streams_unobserved.c - the queue of streams_item.c, without counters and events */
#define PEM_STREAM_UNOBSERVED
#define QUEUE bench_queue_unobserved
#define WORK bench_work_unobserved
#include "bench/streams_burst.h"
