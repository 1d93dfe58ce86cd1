/* SPDX-License-Identifier: MIT */
/*
 * unwind_fixture.h - samples of this thread's own functions with registers and stack, for tests of
 * the unwinder
 *
 * libpem/sources/counters/build.mk compiles these tests without frame pointers.
 */
#ifndef UNWIND_FIXTURE_H
#define UNWIND_FIXTURE_H

#include "sources/counters/counters.h"
#include "sources/counters/unwind/unwind.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RING_BYTES (256u << 10) /* an ordinary user may lock 512 KiB */
#define STACK_BYTES 16384u
#define REGISTERS_MAX 64u
#define SAMPLES_MAX 60u
#define CALLERS_MAX 100u
#define MAPS_MAX 200u

#ifdef __x86_64__
#define STACK_POINTER PERF_REG_X86_SP
#define FRAME_POINTER PERF_REG_X86_BP
#define PC PERF_REG_X86_IP
#elif defined(__aarch64__)
#define STACK_POINTER PERF_REG_ARM64_SP
#define FRAME_POINTER 29
#define PC PERF_REG_ARM64_PC
#else /* nothing is unwound */
#define STACK_POINTER 0
#define FRAME_POINTER 1
#define PC 2
#endif

/* Each function has a section of its own, so that its end is known. */
#if defined(__clang__)
#define NOT_COPIED noinline /* clang makes no copies of functions */
#else
#define NOT_COPIED noinline, noclone
#endif
#define OWN(name) __attribute__((NOT_COPIED, used, section("unwind_" #name)))
#define RANGE(name)                                                                                \
	extern const char __start_unwind_##name[], __stop_unwind_##name[];                         \
	static inline int is_in_##name(uint64_t address)                                           \
	{                                                                                          \
		return address >= (uintptr_t)__start_unwind_##name &&                              \
		       address < (uintptr_t)__stop_unwind_##name;                                  \
	}

RANGE(spin)
RANGE(compare)
RANGE(handle)
RANGE(tell_time)
RANGE(keep_frame)
RANGE(one)
RANGE(two)
RANGE(three)
RANGE(four)
RANGE(five)
RANGE(main)

struct taken {
	struct unwind_sample sample;
	uint64_t ip;
	uint64_t registers[REGISTERS_MAX];
	uint8_t stack[STACK_BYTES];
};

static struct {
	int fd; /* -1: perf_event_open is not allowed */
	int why;
	struct perf_event_mmap_page *page;
	struct taken *taken;
	unsigned count;
	struct ring_map maps[MAPS_MAX];
	unsigned map_count;
} sampling = {.fd = -1};

static volatile uint64_t work;

/* --- functions that are sampled --- */

OWN(spin) static void spin(unsigned rounds)
{
	while (rounds--)
		work += work ^ rounds;
}

OWN(compare) static int compare(const void *a, const void *b)
{
	spin(200000);
	return *(const int *)a - *(const int *)b;
}

OWN(one) static int one(int value)
{
	int values[] = {5, value, 3, 9, 1};

	qsort(values, 5, sizeof(values[0]), compare);
	return values[0] + (int)work;
}

OWN(two) static int two(int value)
{
	return one(value + 1) ^ 2;
}

OWN(three) static int three(int value)
{
	volatile int room[100];

	room[value % 100] = two(value + 1);
	return room[value % 100] ^ 3;
}

OWN(four) static int four(int value)
{
	return three(value + 1) ^ 4;
}

OWN(five) static int five(int value)
{
	return four(value + 1) ^ 5;
}

OWN(handle) static void handle(int number)
{
	spin(100000000);
	work += (uint64_t)number;
}

/* It has a frame pointer, for its stack is of any size. */
OWN(keep_frame) static void keep_frame(unsigned bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 1;
	spin(100000000);
	work += (uint64_t)room[0];
}

OWN(tell_time) static uint64_t tell_time(unsigned rounds)
{
	struct timespec time = {0};
	uint64_t sum = 0;

	while (rounds--) {
		clock_gettime(CLOCK_MONOTONIC, &time);
		sum += (uint64_t)time.tv_nsec;
	}
	return sum;
}

static inline void sort(void)
{
	work += (uint64_t)five(1);
}

static inline void be_interrupted(void)
{
	struct sigaction action = {.sa_handler = handle};

	sigaction(SIGALRM, &action, NULL);
	raise(SIGALRM);
}

static inline void keep_frames(void)
{
	keep_frame(64 + (unsigned)work % 2);
}

static inline void ask_for_time(void)
{
	work += tell_time(2000000);
}

/* --- sampling of this thread --- */

static inline void open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000, /* ns */
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = unwind__registers(),
		.sample_stack_user = STACK_BYTES,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	sampling.fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (sampling.fd >= 0) {
		sampling.page = mmap(NULL, page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				     sampling.fd, 0);
		if (sampling.page != MAP_FAILED)
			return;
		close(sampling.fd);
	}
	sampling.why = errno;
	sampling.fd = -1;
}

static inline void copy_out(uint64_t at, void *to, size_t bytes)
{
	const uint8_t *data = (const uint8_t *)sampling.page + sysconf(_SC_PAGESIZE);
	size_t i;

	for (i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = data[(at + i) % RING_BYTES];
}

/* Header, ip, ids, time; abi and registers; size, stack and its used size. */
static inline void take_sample(uint64_t at, struct taken *taken)
{
	unsigned registers = (unsigned)__builtin_popcountll(unwind__registers());
	uint64_t abi, bytes, used = 0;

	memset(taken, 0, sizeof(*taken));
	copy_out(at + 8, &taken->ip, 8);
	copy_out(at + 16, &taken->sample.pid, 4);
	copy_out(at + 32, &abi, 8);
	at += 40;
	taken->sample.abi = (uint32_t)abi;
	if (abi) {
		copy_out(at, taken->registers, registers * 8);
		at += (uint64_t)registers * 8;
	}
	copy_out(at, &bytes, 8);
	if (bytes)
		copy_out(at + 8 + bytes, &used, 8);
	assert_true(used <= STACK_BYTES);
	copy_out(at + 8, taken->stack, used);
	taken->sample.registers = taken->registers;
	taken->sample.stack = taken->stack;
	taken->sample.stack_bytes = used;
}

/* Sample a function until there are enough samples, or it seems that there will be none. */
static inline void sample(void (*function)(void))
{
	unsigned tries;

	sampling.count = 0;
	if (sampling.fd < 0)
		return;
	for (tries = 0; tries < 20 && sampling.count < SAMPLES_MAX; tries++) {
		uint64_t head, tail = sampling.page->data_tail;

		ioctl(sampling.fd, PERF_EVENT_IOC_ENABLE, 0);
		function();
		ioctl(sampling.fd, PERF_EVENT_IOC_DISABLE, 0);
		head = __atomic_load_n(&sampling.page->data_head, __ATOMIC_ACQUIRE);
		while (tail < head) {
			struct perf_event_header header;

			copy_out(tail, &header, sizeof(header));
			if (header.type == PERF_RECORD_SAMPLE && sampling.count < SAMPLES_MAX)
				take_sample(tail, &sampling.taken[sampling.count++]);
			tail += header.size;
		}
		__atomic_store_n(&sampling.page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

static inline void take_map(void *arg, const struct ring_map *map)
{
	(void)arg;
	assert_true(sampling.map_count < MAPS_MAX);
	sampling.maps[sampling.map_count++] = *map;
}

/* The kernel tells of it beside samples; maps__each, of files alone, does not. */
static inline void take_vdso(void)
{
	struct ring_map map = {.pid = (uint32_t)getpid(), .path = "[vdso]"};
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[500];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		map.address = from;
		map.length = to - from;
		take_map(NULL, &map);
	}
	fclose(maps);
}

static inline int set_up(void **state)
{
	(void)state;
	sampling.taken = calloc(SAMPLES_MAX, sizeof(*sampling.taken));
	maps__each(getpid(), 0, take_map, NULL);
	take_vdso();
	open_event();
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	free(sampling.taken);
	if (sampling.fd >= 0)
		close(sampling.fd);
	return 0;
}

static inline void need_unwinding(void)
{
	if (!unwind__registers()) {
		print_message("this build can't unwind\n");
		skip();
	}
}

static inline void need_samples(void (*function)(void))
{
	need_unwinding();
	if (sampling.fd < 0) {
		print_message("perf_event_open: %s\n", strerror(sampling.why));
		skip();
	}
	sample(function);
	if (sampling.count < SAMPLES_MAX / 2) {
		print_message("the kernel made only %u samples\n", sampling.count);
		skip();
	}
}

static inline struct unwinder *open_unwinder(struct unwinder_options options)
{
	struct unwinder *unwinder;
	unsigned i;

	need_unwinding();
	unwinder = unwinder__open(&options);
	assert_non_null(unwinder);
	for (i = 0; i < sampling.map_count; i++)
		assert_int_equal(unwinder__map(unwinder, &sampling.maps[i]), 0);
	return unwinder;
}

static inline struct unwinder *open_trusting(void)
{
	return open_unwinder((struct unwinder_options){.trusts_files = true});
}

/* A sample whose own instruction is in spin. */
static inline struct taken *spinning(unsigned *from)
{
	while (*from < sampling.count) {
		struct taken *taken = &sampling.taken[(*from)++];

		if (is_in_spin(taken->ip))
			return taken;
	}
	return NULL;
}

/* A sample with callers. */
static inline struct taken *need_one(void)
{
	unsigned from = 0;
	struct taken *taken;

	need_samples(sort);
	taken = spinning(&from);
	assert_non_null(taken);
	return taken;
}

static inline unsigned callers_of(struct unwinder *unwinder, const struct taken *taken,
				  uint32_t pid)
{
	struct unwind_sample sample = taken->sample;
	uint64_t callers[CALLERS_MAX];

	sample.pid = pid;
	return unwinder__unwind(unwinder, &sample, callers, CALLERS_MAX);
}

/* The mapping of this program's code. */
static inline const struct ring_map *own_code(void)
{
	unsigned i;

	for (i = 0; i < sampling.map_count; i++)
		if ((uintptr_t)__start_unwind_main - sampling.maps[i].address <
		    sampling.maps[i].length)
			return &sampling.maps[i];
	fail_msg("no mapping of this program's code");
	return NULL;
}

#endif
