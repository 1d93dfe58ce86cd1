/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bursts.c - which references are kept
 *
 * The references of the program are divided into windows of options.burst. Every stride-th window
 * is kept, at first each one. When what is kept is more than options.keep, stride doubles, and the
 * file is thinned. So the kept windows are spread evenly over the time of the program, however
 * long.
 */
#include "tool.h"

/* Of one chunk of the file: as much as a killed program can lose. */
#define CHUNK_COUNT 65536u

ULong buffer[BUFFER_COUNT + BUFFER_SPARE];
ULong *position = buffer;
ThreadId running_thread = VG_INVALID_THREADID;
ULong instruction_count;
Bool stopped;

static ULong total; /* references that were taken */
static ULong stride = 1;
static ULong stopped_at;

static ULong chunk[CHUNK_COUNT];
static ULong chunk_at; /* total before the first of it */
static UInt chunk_used;
static ThreadId chunk_thread;

static void write_chunk(void)
{
	if (chunk_used)
		output__burst(chunk_at, chunk_thread, chunk, chunk_used);
	chunk_used = 0;
}

static void keep(const ULong *references, ULong count)
{
	ULong i, value;

	if (chunk_used && (running_thread != chunk_thread || chunk_at + chunk_used != total ||
			   total % options.burst == 0))
		write_chunk();
	for (i = 0; i < count; i++) {
		if (chunk_used == CHUNK_COUNT)
			write_chunk();
		if (!chunk_used) {
			chunk_at = total + i;
			chunk_thread = running_thread;
		}
		value = references[i];
		/* A store is inverted; an address has no highest bit. */
		chunk[chunk_used++] = value & PROFILE_STORE ? ~value | PROFILE_STORE : value;
	}
}

static void thin(void)
{
	while (!stopped && output__burst_bytes() > (ULong)options.keep) {
		stride *= 2;
		if (!output__thin(options.burst, stride))
			bursts__stop();
	}
}

void bursts__take(void)
{
	ULong count = position - buffer, done = 0, part;

	position = buffer;
	while (!stopped && done < count) {
		part = options.burst - total % options.burst;
		if (part > count - done)
			part = count - done;
		if (total / options.burst % stride == 0)
			keep(buffer + done, part);
		total += part;
		done += part;
		if (total % options.burst == 0) {
			write_chunk();
			thin();
		}
	}
	if (!stopped && options.limit && VG_(read_millisecond_timer)() / 1000 >= options.limit)
		bursts__stop();
}

void bursts__settle(void)
{
	bursts__take();
	write_chunk();
}

void bursts__stop(void)
{
	write_chunk();
	stopped = True;
	stopped_at = total;
}

void bursts__restart(void)
{
	position = buffer;
	chunk_used = 0;
	total = 0;
	instruction_count = 0;
	stride = 1;
	stopped = False;
}

void bursts__leave(void)
{
	position = buffer;
	chunk_used = 0;
	stopped = True;
}

void bursts__end(void)
{
	const struct profile_end end = {
		.references = total,
		.instructions = instruction_count,
		.lost = sites__lost,
		.stopped_at = stopped_at,
		.forks = fork_count,
	};

	write_chunk();
	output__end(&end);
}
