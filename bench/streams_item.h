/* SPDX-License-Identifier: MIT */
/* streams_item.h - n items through a queue, each pushed and popped */
#ifndef BENCH_STREAMS_ITEM_H
#define BENCH_STREAMS_ITEM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_BURST 512u

void bench_queue_observed(uint64_t n);
void bench_queue_unobserved(uint64_t n);
void bench_work_observed(uint64_t n);
void bench_work_unobserved(uint64_t n);
void bench_queue_moodycamel(uint64_t n);
void bench_queue_boost(uint64_t n);

#ifdef __cplusplus
}
#endif
#endif
