/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sampler.h - what the sampler's files share
 *
 *	sampler.c		opens one perf ring per CPU
 *	sampler_threads.c	other threads of a process that runs already
 *	sampler_records.c	writes records into packets
 *	sampler_drain.c		moves what the rings have into packets, in the order of time
 */
#ifndef SAMPLER_H
#define SAMPLER_H

#include "counters.h"

#include "data.h"
#include "unwind/unwind.h"

#define PACKET_BYTES 8192u
#define MEMBERS_MAX (RING_VALUES_MAX - 1)

/* A packet being filled. */
struct builder {
	uint64_t bytes[PACKET_BYTES / 8]; /* aligned for struct pem_packet */
	uint32_t at, end; /* at: where the next record begins; end: where the last one ended */
};

struct cpu_ring {
	int fd;
	struct perf_event_attr attr; /* as fd was opened */
	int members[MEMBERS_MAX];
	unsigned member_count;
	int beside[PRECISE_BESIDE]; /* of a processor that samples data; -1: none */
	uint32_t cpu;
	struct perf_event_mmap_page *page; /* MAP_FAILED: not mapped */
	size_t map_bytes;
	struct ring ring;
	uint64_t head; /* of what is being drained */
	uint64_t next_ns; /* time of what comes next in it; UINT64_MAX: nothing */
	uint64_t last_clock;
	/* Records in packets that the sink refused; packets report them as discarded. */
	uint64_t refused;
	char stream[16];
	struct builder builder;
};

/* A perf event of a thread that ran before. With a group there are several (sampler_threads.c). */
struct sampled_thread {
	pid_t tid;
	int fd;
};

struct sampler {
	const struct pem_event *event;
	struct sample_layout layout;
	const struct pem_event *map_event; /* NULL: what is mapped is not told */
	struct map_layout map_layout;
	pid_t pid;
	struct mapped_files *files; /* NULL: there was no memory */
	int tells_present; /* what is mapped already is still to be told, and to be unwound by */
	unsigned values;
	struct unwinder *unwinder; /* NULL: stacks are not unwound here */
	struct operands *operands; /* NULL: samples are of no data, or the processor tells them */
	struct precise precise; /* zeroes: a timer samples */
	int is_precise;
	int no_precise; /* sampler__no_precise */
	struct sampled_thread *threads; /* of each thread and CPU */
	size_t thread_count;
	uint64_t start_ns; /* when it was started; 0: by an exec */
	uint64_t samples, maps; /* records made */
	struct ring_sample sample; /* the last one */
	unsigned ring_count;
	struct cpu_ring rings[];
};

/* --- sampler_threads.c --- */

/* Let what precise__open had beside an event write into the ring. Returns 0 or -errno. */
int sampler__join_ring(const struct cpu_ring *ring, const int beside[PRECISE_BESIDE]);

/* Sample all threads of the process, too. Returns 0 or -errno. */
int sampler__add_threads(struct sampler *sampler);

/* --- sampler_records.c --- */

/* Give a filled packet to the sink and empty it. Returns 0 or -errno. */
int sampler__flush(struct cpu_ring *ring, const struct pem_source_sink *sink);
/* Write records. The sink gets packets that are full. Returns 0 or -errno of the sink. */
int sampler__put_sample(struct sampler *sampler, struct cpu_ring *ring,
			const struct pem_source_sink *sink, const struct ring_sample *sample);
int sampler__put_map(struct sampler *sampler, struct cpu_ring *ring,
		     const struct pem_source_sink *sink, const struct ring_map *map);

#endif
