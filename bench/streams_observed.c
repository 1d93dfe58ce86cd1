/* SPDX-License-Identifier: MIT */
/* streams_observed.c - the queue of streams_item.c, as programs include it */
#define QUEUE bench_queue_observed
#define WORK bench_work_observed
#include "bench/streams_burst.h"
