// SPDX-License-Identifier: MIT
/*
 * module_fuzz.c - hostile users of /dev/pem: threads share sessions and call everything with random
 * and mutated values
 *
 * guest: limit=240
 *
 *	FUZZ_S=SECONDS FUZZ_SEED=NUMBER build/tests/guest/module_fuzz	(5 seconds, a seed of the
 *									clock's, which is printed)
 *
 * Each thread does one random thing after another to a few files that all share: ioctls in every
 * state with values that are right, nearly right or not at all, in memory that is there, half
 * there, read-only or changed meanwhile by another thread; mmap, mprotect, mremap, munmap, poll,
 * dup, close, fork; and raises events. One thread takes CPUs away and brings them back. What must
 * hold all the time: an error is one that pem/kmod.h names, nothing is mapped writable or beyond a
 * pool, and what is mapped can be read. In the end nothing is left, and the device still works.
 * That the kernel has nothing to complain of is whoever runs this to see. A seed repeats each
 * thread's choices, not how threads interleave.
 */
#include <pem/abi.h>
#include <pem/kmod.h>

#include "tests/guest/fuzz_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES 6
#define THREADS 4
#define EVENTS_MAX 1024u
#define HOTPLUG_PAUSE_NS 99000000

static int files[FILES]; /* -1: none; all threads' */
static struct pem_kmod_listed events[EVENTS_MAX];
static uint32_t event_count;
static int is_over; /* __atomic */
#define COMMANDS 13 /* INFO to WORK */
static uint64_t calls[COMMANDS], successes[COMMANDS]; /* of each ioctl */

static int file(struct user *u)
{
	return __atomic_load_n(&files[below(u, FILES)], __ATOMIC_RELAXED);
}

static void check_error(int number)
{
	static const int allowed[] = {EINVAL, EFAULT, ENOTTY,  EBUSY,  ENOMEM,
				      E2BIG,  ENOENT, ENOTSUP, ESRCH,  EINTR,
				      EBADF,  ENOSPC, EPERM,   EACCES, ENODEV};
	size_t i;

	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		if (errno == allowed[i])
			return;
	}
	fprintf(stderr, "ioctl 0x%02x: %s is no error that pem/kmod.h names\n", number,
		strerror(errno));
	abort();
}

static int call(struct user *u, int fd, unsigned long command, void *arg)
{
	int rc = ioctl(fd, disguise(u, command), arg);

	__atomic_fetch_add(&calls[_IOC_NR(command)], 1, __ATOMIC_RELAXED);
	if (rc < 0)
		check_error((int)_IOC_NR(command));
	else
		__atomic_fetch_add(&successes[_IOC_NR(command)], 1, __ATOMIC_RELAXED);
	return rc;
}

/* --- ioctls --- */

static uint32_t some_event(struct user *u)
{
	static const uint32_t none[] = {0, 1, 0xffffffff};

	if (one_in(u, 20) || !event_count)
		return none[below(u, 3)];
	return events[below(u, event_count)].event_id;
}

static void do_info(struct user *u)
{
	struct pem_kmod_info info = {.size = sizeof(info)};

	mutate(u, &info, sizeof(info));
	call(u, file(u), PEM_KMOD_INFO, place(u, &info, sizeof(info), 0));
}

static void do_events(struct user *u)
{
	struct pem_kmod_list list = {
		.size = sizeof(list), .count = below(u, 64), .first = below(u, 300)};
	uint8_t room[64] = {0}, *at;

	at = place(u, room, sizeof(room), PAGE);
	list.entries = (uintptr_t)at;
	mutate(u, &list, sizeof(list));
	list.entries = harmless(list.entries, at);
	/* More than there is room for: as much as there is before the hole. */
	if (list.count > 64)
		list.entries = (uintptr_t)(before_hole + PAGE - 64 * below(u, 64));
	call(u, file(u), PEM_KMOD_EVENTS, place(u, &list, sizeof(list), 0));
}

static void setup_file(struct user *u, int fd)
{
	struct pem_kmod_setup setup = {.size = sizeof(setup), .flags = below(u, 8)};

	setup.chunk_bytes = PEM_KMOD_CHUNK_BYTES_MIN << below(u, 3);
	setup.chunk_count = PEM_KMOD_CHUNKS_MIN << below(u, 4);
	setup.watermark = below(u, 4);
	mutate(u, &setup, sizeof(setup));
	call(u, fd, PEM_KMOD_SETUP, place(u, &setup, sizeof(setup), 0));
}

static void do_setup(struct user *u)
{
	setup_file(u, file(u));
}

static void want_event(struct user *u, int fd, uint32_t id)
{
	struct pem_kmod_event event = {.size = sizeof(event), .event_id = id, .cpu = PEM_NO_CPU};
	struct pem_test tests[PEM_TESTS_MAX];
	uint32_t flags = below(u, 8), i;

	flags = (flags & 1 ? PEM_ACTION_LOG : 0) | (flags & 2 ? PEM_ACTION_STAT : 0) |
		(flags == 7 ? PEM_ACTION_DISTRIBUTION : 0);
	event.action = PEM_ACTION(flags, below(u, 4), below(u, 16), 8 * below(u, 4), below(u, 100));
	event.distribution =
		PEM_DISTRIBUTION(below(u, PEM_DISTRIBUTION_COUNT), below(u, 8), 1 + below(u, 9));
	event.test_count = one_in(u, 3) ? below(u, PEM_TESTS_MAX + 1) : 0;
	for (i = 0; i < event.test_count; i++)
		random_test(u, &tests[i], i, event.test_count);
	event.tests = (uintptr_t)place(u, tests, event.test_count * sizeof(tests[0]), PAGE);
	event.flags = one_in(u, 4) ? below(u, 4) : 0; /* KEEP_TESTS, READ_COUNTERS */
	event.pid = one_in(u, 4) ? (uint32_t)getpid() : 0;
	event.tid = one_in(u, 8) ? (uint32_t)gettid() : 0;
	if (one_in(u, 4))
		event.cpu = below(u, 3);
	mutate(u, &event, sizeof(event));
	call(u, fd, PEM_KMOD_EVENT, place(u, &event, sizeof(event), 0));
}

static void do_event(struct user *u)
{
	want_event(u, file(u), some_event(u));
}

static void do_target(struct user *u)
{
	struct pem_kmod_target target = {.size = sizeof(target), .pid = (uint32_t)getpid()};

	if (one_in(u, 3))
		target.pid = below(u, 200);
	mutate(u, &target, sizeof(target));
	call(u, file(u), PEM_KMOD_TARGET, place(u, &target, sizeof(target), 0));
}

/* Most sessions run most of the time. */
static void do_start(struct user *u)
{
	call(u, file(u), one_in(u, 3) ? PEM_KMOD_STOP : PEM_KMOD_START,
	     (void *)(uintptr_t)(one_in(u, 10) ? odd(u) : 0));
}

static void do_take(struct user *u)
{
	struct pem_kmod_chunks chunks = {
		.size = sizeof(chunks), .cpu = below(u, 3), .count = below(u, 64)};
	struct pem_kmod_chunks *at;
	uint32_t room[64] = {0}, *to;

	to = one_in(u, 4) ? place(u, room, sizeof(room), PAGE) : u->taken;
	chunks.chunks = (uintptr_t)to;
	mutate(u, &chunks, sizeof(chunks));
	chunks.chunks = harmless(chunks.chunks, to);
	if (chunks.count > 64)
		chunks.chunks = (uintptr_t)(before_hole + PAGE - 4 * below(u, 64));
	at = one_in(u, 4) ? place(u, &chunks, sizeof(chunks), 0) : &chunks;
	if (!call(u, file(u), PEM_KMOD_TAKE, at) && at == &chunks &&
	    chunks.chunks == (uintptr_t)u->taken && chunks.count <= 64) {
		u->taken_count = chunks.count;
		u->taken_cpu = chunks.cpu;
	}
}

static void do_free(struct user *u)
{
	struct pem_kmod_chunks chunks = {
		.size = sizeof(chunks), .cpu = u->taken_cpu, .count = u->taken_count};
	uint32_t numbers[64], i;

	chunks.flags = one_in(u, 3) ? PEM_KMOD_PUT_BACK : 0;
	if (one_in(u, 4)) {
		chunks.count = below(u, 65);
		for (i = 0; i < chunks.count; i++)
			numbers[i] = one_in(u, 8) ? (uint32_t)odd(u) : below(u, 16);
		chunks.chunks =
			(uintptr_t)place(u, numbers, chunks.count * sizeof(numbers[0]), PAGE);
	} else {
		chunks.chunks = (uintptr_t)u->taken;
	}
	mutate(u, &chunks, sizeof(chunks));
	call(u, file(u), PEM_KMOD_FREE, place(u, &chunks, sizeof(chunks), 0));
}

static void do_counters(struct user *u)
{
	struct pem_kmod_counters counters = {.size = sizeof(counters), .count = below(u, 4)};
	struct pem_kmod_counter counter[PEM_KMOD_COUNTERS_MAX + 1] = {0};
	uint32_t i;

	/* An emulated machine has those of software only. */
	for (i = 0; i < PEM_KMOD_COUNTERS_MAX; i++) {
		counter[i].type = one_in(u, 4) ? below(u, 8) : PERF_TYPE_SOFTWARE;
		counter[i].config = below(u, 12);
		counter[i].flags = below(u, 4);
		if (one_in(u, 8))
			mutate(u, &counter[i], sizeof(counter[i]));
	}
	counters.counters = (uintptr_t)place(u, counter, sizeof(counter), PAGE);
	mutate(u, &counters, sizeof(counters));
	call(u, file(u), PEM_KMOD_COUNTERS, place(u, &counters, sizeof(counters), 0));
}

static void do_accessed(struct user *u)
{
	struct pem_kmod_accessed accessed = {.size = sizeof(accessed), .pid = (uint32_t)getpid()};

	if (one_in(u, 3))
		accessed.pid = below(u, 200);
	accessed.interval_us = one_in(u, 3) ? 0 : 1000 + below(u, 5000);
	if (accessed.interval_us) {
		accessed.region_bytes = (uint64_t)PAGE << below(u, 29);
		accessed.from = one_in(u, 2) ? 0 : (uintptr_t)u->memory;
		accessed.to = one_in(u, 2) ? 0 : accessed.from + ((uint64_t)PAGE << below(u, 36));
	}
	mutate(u, &accessed, sizeof(accessed));
	call(u, file(u), PEM_KMOD_ACCESSED, place(u, &accessed, sizeof(accessed), 0));
}

static void do_supply(struct user *u)
{
	struct pem_kmod_supply supply = {.size = sizeof(supply), .flags = below(u, 2)};

	if (!supply.flags && !one_in(u, 3))
		supply.interval_us = 1000 + below(u, 5000);
	mutate(u, &supply, sizeof(supply));
	call(u, file(u), PEM_KMOD_SUPPLY, place(u, &supply, sizeof(supply), 0));
}

/* In a child that is killed after a while, since it may take as long as the session runs. */
static void do_work(struct user *u)
{
	int fd = file(u), status;
	pid_t child = fork();

	if (!child)
		_exit(call(u, fd, PEM_KMOD_WORK, NULL) ? 1 : 0);
	if (child < 0)
		return;
	usleep(below(u, 30000));
	kill(child, SIGKILL);
	if (waitpid(child, &status, 0) != child)
		return;
	__atomic_fetch_add(&calls[_IOC_NR(PEM_KMOD_WORK)], 1, __ATOMIC_RELAXED);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		__atomic_fetch_add(&successes[_IOC_NR(PEM_KMOD_WORK)], 1, __ATOMIC_RELAXED);
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		abort();
}

/* --- files and mappings --- */

static void replace(struct user *u, int fd)
{
	int old = __atomic_exchange_n(&files[below(u, FILES)], fd, __ATOMIC_RELAXED);

	if (old >= 0)
		close(old);
}

/* A new file, which mostly gets as far as recording. */
static void do_open(struct user *u)
{
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC | (one_in(u, 2) ? O_NONBLOCK : 0));
	uint32_t i;

	if (fd < 0)
		return;
	if (!one_in(u, 4))
		setup_file(u, fd);
	for (i = below(u, 12); i; i--)
		want_event(u, fd, some_event(u));
	if (!one_in(u, 4))
		call(u, fd, PEM_KMOD_START, NULL);
	replace(u, fd);
}

/* A duplicate, or none. */
static void do_dup(struct user *u)
{
	replace(u, one_in(u, 2) ? -1 : dup(file(u)));
}

static void do_map(struct user *u)
{
	uint32_t i = below(u, MAPS);
	uint64_t offset = PEM_KMOD_MAP_OFFSET(below(u, 3)) + PAGE * below(u, 40);
	size_t bytes = PAGE * (1 + below(u, 40));
	int protection = PROT_READ, type = MAP_SHARED;
	void *at;

	if (one_in(u, 6))
		offset = odd(u) << 12;
	if (one_in(u, 6))
		protection = (int)below(u, 8);
	if (one_in(u, 6))
		type = MAP_PRIVATE;
	if (one_in(u, 8))
		bytes = (size_t)(1 + below(u, 64)) << 20;
	at = mmap(NULL, bytes, protection, type, file(u), (off_t)offset);
	if (at == MAP_FAILED)
		return;
	if (protection & PROT_WRITE) {
		fprintf(stderr, "a pool is mapped writable\n");
		abort();
	}
	if (u->map[i].at)
		munmap(u->map[i].at, u->map[i].bytes);
	u->map[i].at = protection ? at : NULL;
	u->map[i].bytes = bytes;
	if (!protection)
		munmap(at, bytes);
}

static void do_read(struct user *u)
{
	uint32_t i = below(u, MAPS), n;

	for (n = 0; u->map[i].at && n < 20; n++)
		__atomic_load_n(u->map[i].at + next(u) % u->map[i].bytes, __ATOMIC_RELAXED);
}

static void do_change_map(struct user *u)
{
	uint32_t i = below(u, MAPS);
	uint8_t *at = u->map[i].at;
	size_t bytes = u->map[i].bytes;
	void *moved;

	if (!at)
		return;
	switch (below(u, 5)) {
	case 0:
		if (!mprotect(at, bytes, PROT_READ | PROT_WRITE) ||
		    !mprotect(at, bytes, PROT_READ | PROT_EXEC)) {
			fprintf(stderr, "a pool became writable\n");
			abort();
		}
		break;
	case 1:
		moved = mremap(at, bytes, bytes + PAGE, MREMAP_MAYMOVE);
		if (moved != MAP_FAILED) {
			fprintf(stderr, "a mapping grew\n");
			abort();
		}
		break;
	case 2: /* the first page alone, out of the middle */
		munmap(at, PAGE);
		u->map[i].at = bytes > PAGE ? at + PAGE : NULL;
		u->map[i].bytes = bytes - PAGE;
		break;
	case 3: /* some advice takes its pages away */
		madvise(at, bytes, (int)below(u, 26));
		/* fallthrough */
	default:
		munmap(at, bytes);
		u->map[i].at = NULL;
	}
}

static void do_poll(struct user *u)
{
	struct pollfd polled[3] = {
		{.events = POLLIN}, {.events = POLLIN}, {.events = (short)next(u)}};
	uint32_t i;

	for (i = 0; i < 3; i++)
		polled[i].fd = file(u);
	poll(polled, 3, (int)below(u, 3));
}

/* A child has the same files and mappings, and may die with them at any moment. */
static void do_fork(struct user *u)
{
	pid_t child = fork();
	int status;

	if (!child) {
		do_read(u);
		do_take(u);
		do_free(u);
		do_change_map(u);
		do_event(u);
		_exit(0);
	}
	if (child < 0)
		return;
	if (one_in(u, 2))
		kill(child, SIGKILL);
	if (waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	    WTERMSIG(status) != SIGKILL) {
		fprintf(stderr, "a child ended by signal %d\n", WTERMSIG(status));
		abort();
	}
}

static void do_raise(struct user *u)
{
	uint32_t i;
	void *at;

	for (i = 0; i < 100; i++)
		syscall(SYS_getppid);
	at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at != MAP_FAILED) {
		memset(at, (int)next(u), 16 * PAGE);
		munmap(at, 16 * PAGE);
	}
	sched_yield();
}

static void do_scribble(struct user *u)
{
	uint64_t value = odd(u);

	memcpy(shared_bytes + (next(u) & (PAGE - 8)), &value, sizeof(value));
}

/* --- threads --- */

static void *be_user(void *arg)
{
	/* The slow ones, which take a while in an emulated machine, come less often. */
	static void (*const deeds[])(struct user *) = {
		do_info,   do_events, do_setup,  do_setup,    do_event,      do_event,
		do_event,  do_event,  do_target, do_counters, do_accessed,   do_accessed,
		do_supply, do_start,  do_start,  do_start,    do_take,       do_take,
		do_take,   do_take,   do_free,   do_free,     do_free,       do_map,
		do_map,    do_read,   do_read,   do_poll,     do_change_map, do_scribble,
		do_raise,  do_raise,  do_raise,
	};
	static void (*const slow[])(struct user *) = {do_open, do_open, do_open, do_open, do_dup,
						      do_dup,  do_fork, do_work, do_work};
	struct user *u = arg;
	uint32_t i;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		(one_in(u, 8) ? slow[below(u, sizeof(slow) / sizeof(slow[0]))]
			      : deeds[below(u, sizeof(deeds) / sizeof(deeds[0]))])(u);
	for (i = 0; i < MAPS; i++) {
		if (u->map[i].at)
			munmap(u->map[i].at, u->map[i].bytes);
	}
	return NULL;
}

static void set_online(int is_online)
{
	int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);

	/* one CPU, or one that can't go */
	if (fd < 0)
		return;
	(void)!write(fd, is_online ? "1" : "0", 1);
	close(fd);
}

static void *be_hotplug(void *arg)
{
	struct user *u = arg;
	struct timespec pause = {0, 0};

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		pause.tv_nsec = below(u, HOTPLUG_PAUSE_NS);
		set_online(0);
		nanosleep(&pause, NULL);
		set_online(1);
		pause.tv_nsec = below(u, 10 * HOTPLUG_PAUSE_NS);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void list_events(void)
{
	struct pem_kmod_list list = {
		.size = sizeof(list), .count = EVENTS_MAX, .entries = (uintptr_t)events};
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, PEM_KMOD_EVENTS, &list), 0);
	event_count = list.count;
	assert_true(event_count > 0);
	close(fd);
}

/*
 * Nobody has a file open: nothing is charged to anybody, and a session comes as far as its events.
 */
static void device_is_as_new(void)
{
	struct pem_kmod_info info = {.size = sizeof(info)};
	struct pem_kmod_setup setup = {.size = sizeof(setup),
				       .chunk_bytes = PEM_KMOD_CHUNK_BYTES_MIN,
				       .chunk_count = PEM_KMOD_CHUNKS_MIN};
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, PEM_KMOD_INFO, &info), 0);
	assert_int_equal(info.used_bytes, 0);
	assert_int_equal(ioctl(fd, PEM_KMOD_SETUP, &setup), 0);
	assert_int_equal(ioctl(fd, PEM_KMOD_START, NULL), 0);
	assert_int_equal(ioctl(fd, PEM_KMOD_STOP, NULL), 0);
	close(fd);
}

static void no_user_breaks_it(void **state)
{
	static struct user users[THREADS + 1];
	const char *text = getenv("FUZZ_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	unsigned int seconds = getenv("FUZZ_S") ? (unsigned int)atoi(getenv("FUZZ_S")) : 5, i;
	pthread_t threads[THREADS + 1];

	(void)state;
	printf("# FUZZ_SEED=%" PRIu64 " FUZZ_S=%u\n", seed, seconds);
	fflush(stdout);
	list_events();
	assert_true(make_memory());
	memset(files, -1, sizeof(files));
	for (i = 0; i <= THREADS; i++) {
		users[i].seed = seed + i;
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < THREADS ? be_user : be_hotplug, &users[i]),
				 0);
	}
	sleep(seconds);
	/* A slow machine comes that far later. */
	while (!__atomic_load_n(&successes[_IOC_NR(PEM_KMOD_START)], __ATOMIC_RELAXED))
		sleep(1);
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	for (i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < FILES; i++) {
		if (files[i] >= 0)
			close(files[i]);
	}
	for (i = 0; i < COMMANDS; i++)
		printf("# ioctl %u: %" PRIu64 ", of them successful %" PRIu64 "\n", i, calls[i],
		       successes[i]);
	device_is_as_new();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_user_breaks_it)};

	if (access(PEM_KMOD_DEVICE, F_OK) != 0) {
		printf("1..0 # skip %s is not there: pem.ko is not loaded\n", PEM_KMOD_DEVICE);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
