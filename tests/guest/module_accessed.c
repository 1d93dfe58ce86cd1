/* SPDX-License-Identifier: MIT */
/*
 * module_accessed.c - what the module says of a process's pages is what the process did with them
 *
 * A child touches known pages, round after round, and has the processor look up their translations
 * again before each. It notes when its rounds were: on a busy machine it may have none between two
 * passes, which then say nothing.
 *
 * guest: limit=180
 */
#include "module_fixture.h"

#include <pem/clock.h>

#include <pthread.h>
#include <sys/prctl.h>

#define PAGE 4096ul
#define REGION_BYTES (16 * PAGE)
#define REGIONS 128u
#define HUGE_BYTES (2ul << 20)
#define ROUNDS_KEPT 4096u

/*
 * What parent and child share: the child touches all pages of regions r with r % 4 == turn; 4:
 * none. It writes to those of every other such region, and reads the others.
 */
struct shared {
	volatile uint32_t turn;
	volatile uint32_t begun; /* the turn that it has touched everything of */
	volatile uint32_t rounds;
	uint32_t mapped; /* how often something was mapped and unmapped */
	struct {
		volatile uint64_t from, to; /* clocks */
	} round[ROUNDS_KEPT]; /* the last ones */
};

struct seen {
	const struct shared *shared; /* only passes after a whole round count; NULL: all do */
	struct pem_kmod_accessed *asked;
	/* clocks: when the pass before ended, and this one began to look */
	uint64_t last_pass, walk;
	uint64_t from, size, bytes;
	uint32_t pid, passes, pages, huge;
	uint32_t accessed[REGIONS + 1]; /* of the last pass; the last one: elsewhere */
	uint32_t next[REGIONS + 1];
	uint32_t next_pages, next_huge;
	uint64_t pass_pages, pass_accessed, pass_huge;
	bool any_wrong;
};

static bool holds_a_round(const struct shared *shared, uint64_t from, uint64_t to)
{
	uint32_t rounds = shared->rounds, i = rounds > ROUNDS_KEPT ? rounds - ROUNDS_KEPT : 0;

	for (; i != rounds; i++)
		if (shared->round[i % ROUNDS_KEPT].from > from &&
		    shared->round[i % ROUNDS_KEPT].to < to)
			return true;
	return false;
}

/* The end of a pass. */
static void take_pass(struct seen *seen, uint64_t clock, const uint8_t *record)
{
	bool counts = !seen->shared || holds_a_round(seen->shared, seen->last_pass, seen->walk);

	if (counts) {
		memcpy(seen->accessed, seen->next, sizeof(seen->next));
		seen->pages = seen->next_pages;
		seen->huge = seen->next_huge;
		seen->pass_pages = distribution_of(record, 16);
		seen->pass_accessed = distribution_of(record, 24);
		seen->pass_huge = distribution_of(record, 32);
		seen->passes++;
	}
	memset(seen->next, 0, sizeof(seen->next));
	seen->next_pages = seen->next_huge = 0;
	seen->last_pass = clock;
	seen->walk = 0;
}

static void see(void *arg, unsigned cpu, const struct pem_packet *packet, uint64_t clock,
		uint32_t id, const uint8_t *record)
{
	struct seen *seen = arg;
	uint64_t at;

	(void)cpu, (void)packet;
	if (id == id_of(REGION)) {
		seen->walk = seen->walk ? seen->walk : clock;
		at = distribution_of(record, 16);
		seen->pid = word_of(record, 8);
		seen->any_wrong |= distribution_of(record, 24) != seen->size || at % seen->size;
		seen->any_wrong |= word_of(record, 32) > word_of(record, 12);
		at = at < seen->from || at - seen->from >= seen->bytes
			     ? REGIONS
			     : (at - seen->from) / seen->size;
		seen->next[at] = word_of(record, 32);
		seen->next_pages += word_of(record, 12);
		seen->next_huge += word_of(record, 36);
	} else if (id == id_of(PASS)) {
		take_pass(seen, clock, record);
	}
}

static void live(struct shared *shared, volatile uint8_t *memory, uint64_t bytes, uint64_t region)
{
	uint64_t at, turn, from;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		turn = shared->turn;
		from = pem_clock();
		/*
		 * Other rights, and the old ones again: translations that the processor has are
		 * forgotten.
		 */
		if (mprotect((void *)(uintptr_t)memory, bytes, PROT_READ) ||
		    mprotect((void *)(uintptr_t)memory, bytes, PROT_READ | PROT_WRITE))
			abort();
		for (at = 0; at < bytes; at += PAGE)
			if (at / region % 8 == turn + 4)
				memory[at] = (uint8_t)at;
			else if (at / region % 4 == turn)
				(void)memory[at];
		shared->round[shared->rounds % ROUNDS_KEPT].from = from;
		shared->round[shared->rounds % ROUNDS_KEPT].to = pem_clock();
		shared->rounds++;
		shared->begun = (uint32_t)turn;
		usleep(1000);
	}
}

/* A child with memory of its own, touched all over once. */
static pid_t make_child(struct shared **shared, uint8_t **memory, uint64_t bytes, uint64_t region,
			int advice)
{
	uint8_t *at = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	run_on(0);
	*shared = mmap(NULL, sizeof(**shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_true(at != MAP_FAILED && *shared != MAP_FAILED);
	*memory = (uint8_t *)(((uintptr_t)at + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1));
	madvise(*memory, bytes, advice);
	(*shared)->turn = 4;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		memset(*memory, 1, bytes);
		live(*shared, *memory, bytes, region);
	}
	while ((*shared)->begun != 4)
		usleep(1000);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct pem_kmod_accessed about(pid_t pid, const uint8_t *memory, uint64_t bytes,
				      uint64_t region)
{
	return (struct pem_kmod_accessed){.size = sizeof(struct pem_kmod_accessed),
					  .pid = (uint32_t)pid,
					  .interval_us = 20000,
					  .region_bytes = region,
					  .from = (uintptr_t)memory,
					  .to = memory ? (uintptr_t)memory + bytes : 0};
}

static struct session *sample(struct seen *seen, struct pem_kmod_accessed *asked)
{
	struct session *s = session_open();

	session_setup(s, 0, 8192, 64);
	session_event(s, REGION, PEM_ACTION_LOG);
	session_event(s, PASS, PEM_ACTION_LOG);
	seen->from = asked->from;
	seen->bytes = asked->to - asked->from;
	seen->size = asked->region_bytes;
	seen->asked = asked;
	s->seen = see;
	s->arg = seen;
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, asked), 0);
	session_start(s);
	session_work(s);
	return s;
}

/*
 * Chunks under way are full when it stops. Its first pass then only clears what was accessed
 * before, and is not told.
 */
static void restart(struct session *s, struct seen *seen)
{
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	session_drain(s);
	seen->last_pass = UINT64_MAX;
	if (seen->shared)
		assert_int_equal(ask(s, PEM_KMOD_ACCESSED, seen->asked), 0);
	session_start(s);
}

/*
 * At least so many more passes have been seen, all of them begun since. Where the child takes
 * longer for a round than lies between two passes none would hold one: they come less often then.
 */
static void await_passes(struct session *s, struct seen *seen, uint32_t more)
{
	useconds_t patience = seen->shared ? 3 * seen->asked->interval_us : 60000;
	uint32_t until;

	restart(s, seen);
	for (until = seen->passes + more; seen->passes < until; patience *= 2) {
		usleep(patience);
		if (seen->shared)
			seen->asked->interval_us = 2 * patience / 3;
		restart(s, seen);
	}
}

static void await_turn(const struct shared *shared, uint32_t turn)
{
	while (shared->begun != turn)
		usleep(1000);
}

static void touched_regions_are_told_and_no_others(void **state)
{
	uint64_t bytes = REGIONS * REGION_BYTES;
	struct pem_kmod_accessed asked;
	struct seen seen = {.from = 0};
	struct shared *shared;
	struct session *s;
	uint8_t *memory;
	uint32_t turn, r;
	pid_t pid;

	(void)state;
	pid = make_child(&shared, &memory, bytes, REGION_BYTES, MADV_NOHUGEPAGE);
	asked = about(pid, memory, bytes, REGION_BYTES);
	seen.shared = shared;
	s = sample(&seen, &asked);
	for (turn = 0; turn < 4; turn++) {
		shared->turn = turn;
		await_turn(shared, turn);
		await_passes(s, &seen, 1);
		assert_int_equal(seen.pid, pid);
		for (r = 0; r < REGIONS; r++)
			assert_int_equal(seen.accessed[r], r % 4 == turn ? 16 : 0);
		assert_int_equal(seen.pages, REGIONS * 16);
		assert_int_equal(seen.pass_pages, REGIONS * 16);
		assert_int_equal(seen.pass_accessed, REGIONS / 4 * 16);
		assert_int_equal(seen.huge, 0);
	}
	shared->turn = 4;
	await_turn(shared, 4);
	await_passes(s, &seen, 3);
	assert_int_equal(seen.pass_accessed, 0);
	assert_int_equal(seen.pass_pages, REGIONS * 16);
	assert_false(seen.any_wrong);
	assert_int_equal(seen.accessed[REGIONS], 0); /* nothing outside of what was asked for */
	end_child(pid);
	session_finish(s);
	session_close(s);
}

static void memory_that_is_not_there_is_not_told(void **state)
{
	uint64_t bytes = REGIONS * REGION_BYTES;
	struct pem_kmod_accessed asked;
	struct seen seen = {.from = 0};
	struct shared *shared;
	struct session *s;
	uint8_t *memory;
	pid_t pid;

	(void)state;
	pid = make_child(&shared, &memory, bytes, REGION_BYTES, MADV_NOHUGEPAGE);
	/* Behind its memory nothing is mapped, or never touched. */
	asked = about(pid, memory + bytes / 2, bytes / 2, REGION_BYTES);
	s = sample(&seen, &asked);
	await_passes(s, &seen, 1);
	assert_int_equal(seen.pages, REGIONS / 2 * 16);
	/* All of it: the stack, the program and its libraries, too. */
	asked.from = asked.to = 0;
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &asked), 0);
	await_passes(s, &seen, 3);
	assert_true(seen.pass_pages > REGIONS * 16 && seen.pass_pages < REGIONS * 16 + 4096);
	asked = (struct pem_kmod_accessed){.size = sizeof(asked), .pid = (uint32_t)pid};
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &asked), 0);
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &asked), -ESRCH); /* no more */
	end_child(pid);
	session_finish(s);
	session_close(s);
}

static void a_huge_page_is_used_whole(void **state)
{
	struct pem_kmod_accessed asked;
	struct seen seen = {.from = 0};
	struct shared *shared;
	struct session *s;
	uint8_t *memory;
	uint32_t r;
	pid_t pid;

	(void)state;
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK)) {
		print_message("# this kernel has no transparent huge pages\n");
		skip();
	}
	pid = make_child(&shared, &memory, 8 * HUGE_BYTES, HUGE_BYTES, MADV_HUGEPAGE);
	asked = about(pid, memory, 8 * HUGE_BYTES, HUGE_BYTES);
	seen.shared = shared;
	s = sample(&seen, &asked);
	shared->turn = 1;
	await_turn(shared, 1);
	await_passes(s, &seen, 3);
	assert_int_equal(seen.pages, 8 * 512);
	assert_int_equal(seen.huge, 8 * 512);
	assert_int_equal(seen.pass_huge, 8 * 512);
	for (r = 0; r < 8; r++)
		assert_int_equal(seen.accessed[r], r % 4 == 1 ? 512 : 0);
	/* Of smaller regions each gets its part of the one bit. */
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	session_drain(s);
	asked.region_bytes = seen.size = HUGE_BYTES / 8;
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &asked), 0);
	session_start(s);
	await_passes(s, &seen, 3);
	for (r = 0; r < 64; r++)
		assert_int_equal(seen.accessed[r], r / 8 % 4 == 1 ? 64 : 0);
	assert_false(seen.any_wrong);
	end_child(pid);
	session_finish(s);
	session_close(s);
}

/*
 * A child that is killed, one that executes something else, and a session that is closed, all in
 * the middle of it.
 */
static void a_process_may_go_meanwhile(void **state)
{
	/* A pass of it takes long: on a slow machine less of it does, too. */
	uint64_t bytes = (getenv("PEM_TEST_EMULATED") ? 16ul : 64ul) << 20;
	struct pem_kmod_accessed asked;
	struct seen seen = {.from = 0};
	struct shared *shared;
	struct session *s;
	uint8_t *memory;
	uint32_t before, i;
	pid_t pid;

	(void)state;
	for (i = 0; i < 8; i++) {
		pid = make_child(&shared, &memory, bytes, bytes, MADV_NOHUGEPAGE);
		asked = about(pid, NULL, 0, HUGE_BYTES);
		asked.interval_us = 1000;
		s = sample(&seen, &asked);
		usleep(1000 * i);
		if (i % 2)
			end_child(pid);
		else
			await_passes(s, &seen, 1);
		if (i % 4 < 2)
			session_finish(s);
		session_close(s);
		if (!(i % 2))
			end_child(pid);
		munmap(memory, bytes);
	}
	pid = make_child(&shared, &memory, bytes, bytes, MADV_NOHUGEPAGE);
	asked = about(pid, NULL, 0, HUGE_BYTES);
	s = sample(&seen, &asked);
	await_passes(s, &seen, 1);
	end_child(pid);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	session_drain(s);
	before = seen.passes;
	session_start(s);
	usleep(100000);
	session_finish(s);
	assert_int_equal(seen.passes, before);
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &asked), -ESRCH);
	session_close(s);
}

struct passes_of {
	uint32_t once, often; /* processes */
	uint64_t of_once, of_often;
};

static void count_passes(void *arg, unsigned cpu, const struct pem_packet *packet, uint64_t clock,
			 uint32_t id, const uint8_t *record)
{
	struct passes_of *passes = arg;

	(void)cpu, (void)packet, (void)clock;
	if (id != id_of(PASS))
		return;
	passes->of_once += word_of(record, 8) == passes->once;
	passes->of_often += word_of(record, 8) == passes->often;
}

/*
 * What was accessed before START, nobody knows when. A process that has one pass in an hour is the
 * first to have one.
 */
static void the_first_pass_only_clears(void **state)
{
	struct shared *shared;
	uint8_t *memory;
	pid_t pid = make_child(&shared, &memory, HUGE_BYTES, HUGE_BYTES, MADV_NOHUGEPAGE);
	struct passes_of passes = {.once = (uint32_t)pid, .often = (uint32_t)getpid()};
	struct pem_kmod_accessed once = about(pid, NULL, 0, HUGE_BYTES),
				 often = about(getpid(), NULL, 0, HUGE_BYTES);
	struct session *s = session_open();

	(void)state;
	once.interval_us = 3600000000u;
	often.interval_us = 1000;
	session_setup(s, 0, 8192, 64);
	session_event(s, PASS, PEM_ACTION_LOG);
	s->seen = count_passes;
	s->arg = &passes;
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &once), 0);
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &often), 0);
	session_work(s);
	session_run_until(s, &passes.of_often, 0);
	assert_int_equal(passes.of_once, 0);
	end_child(pid);
	session_close(s);
	munmap(memory, HUGE_BYTES);
}

#define MAPPERS 16

static void *map_and_unmap(void *arg)
{
	struct shared *shared = arg;
	volatile uint8_t *at;

	for (;;) {
		at = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
		if (at == MAP_FAILED)
			abort();
		at[0] = 1;
		munmap((void *)(uintptr_t)at, 16 * PAGE);
		__atomic_fetch_add(&shared->mapped, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * A child like make_child's, with threads that want its mappings for themselves all the time, on
 * all CPUs.
 */
static pid_t make_mapping_child(struct shared *shared, uint8_t *memory, uint64_t bytes)
{
	pthread_t thread;
	cpu_set_t all;
	pid_t pid = fork();
	int i;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	memset(memory, 1, bytes);
	for (i = 0; i < MAPPERS; i++)
		if (pthread_create(&thread, NULL, map_and_unmap, shared))
			abort();
	for (;;)
		pause();
}

/* Whoever waits for the process's mappings does not keep a pass from its end. */
static void passes_go_on_while_threads_map(void **state)
{
	uint64_t bytes = REGIONS * REGION_BYTES;
	struct pem_kmod_accessed asked;
	struct seen seen = {.from = 0};
	struct shared *shared;
	struct session *s;
	uint8_t *memory;
	uint32_t before;
	pid_t pid;

	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED && memory != MAP_FAILED);
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	pid = make_mapping_child(shared, memory, bytes);
	while (__atomic_load_n(&shared->mapped, __ATOMIC_RELAXED) < 100)
		usleep(1000);
	asked = about(pid, memory, bytes, REGION_BYTES);
	asked.interval_us = 1000;
	s = sample(&seen, &asked);
	before = __atomic_load_n(&shared->mapped, __ATOMIC_RELAXED);
	await_passes(s, &seen, 3);
	assert_true(__atomic_load_n(&shared->mapped, __ATOMIC_RELAXED) > before);
	assert_int_equal(seen.pass_pages, bytes / PAGE);
	end_child(pid);
	session_finish(s);
	session_close(s);
	munmap(memory, bytes);
	munmap(shared, sizeof(*shared));
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct pem_kmod_accessed fine = about(getpid(), NULL, 0, HUGE_BYTES), bad;
	struct session *s = session_open();
	pid_t children[17];
	unsigned i;

	(void)state;
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &fine), -EBUSY);
	session_setup(s, 0, 8192, 8);
#define REFUSED(code, member, value)                                                               \
	do {                                                                                       \
		bad = fine;                                                                        \
		bad.member = value;                                                                \
		assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &bad), code);                           \
	} while (0)
	REFUSED(-EINVAL, pid, 0);
	REFUSED(-ESRCH, pid, 0x7fffffff);
	REFUSED(-ESRCH, pid, 0xffffffff);
	REFUSED(-ESRCH, pid, 2); /* a thread of the kernel */
	REFUSED(-EINVAL, interval_us, 999);
	REFUSED(-EINVAL, interval_us, 0); /* with a region */
	REFUSED(-EINVAL, reserved, 1);
	REFUSED(-EINVAL, region_bytes, 0);
	REFUSED(-EINVAL, region_bytes, 2048);
	REFUSED(-EINVAL, region_bytes, 3 * PAGE);
	REFUSED(-EINVAL, region_bytes, 1ull << 41);
	REFUSED(-EINVAL, from, PAGE); /* behind to */
	REFUSED(-EINVAL, to, 1);
	REFUSED(-EINVAL, to, ~0ull);
	REFUSED(-EINVAL, size, 3);
	/* Addresses above all: nothing is there. */
	fine.from = ~0ull << 12;
	fine.to = ~0ull << 12;
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &fine), 0);
	session_start(s);
	session_work(s);
	usleep(10000);
	for (i = 0; i < 17; i++) {
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (!children[i])
			for (;;)
				pause();
		fine = about(children[i], NULL, 0, 1ull << 40);
		assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &fine), i < 15 ? 0 : -ENOSPC);
	}
	session_close(s);
	for (i = 0; i < 17; i++)
		end_child(children[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(touched_regions_are_told_and_no_others),
		cmocka_unit_test(memory_that_is_not_there_is_not_told),
		cmocka_unit_test(a_huge_page_is_used_whole),
		cmocka_unit_test(a_process_may_go_meanwhile),
		cmocka_unit_test(the_first_pass_only_clears),
		cmocka_unit_test(passes_go_on_while_threads_map),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
