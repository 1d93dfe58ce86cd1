/* SPDX-License-Identifier: MIT */
/*
 * patched_code.c - the machine under the guest runs what the kernel patches: nothing of pem is in
 * it
 *
 * Counting page faults switches a branch in their way, on which another CPU is meanwhile. An
 * emulator that loses the new instructions counts too few, or the kernel meets a breakpoint that it
 * took away (machine.py). No emulator is free of that: what it lost is a reason to skip and no
 * failure, and tells the reader of a report why another test may have missed events.
 *
 * guest: kernels=*-6.12
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096ul
#define PAGES 64u
#define ROUNDS 40

static void run_on(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void fault(volatile uint8_t *memory)
{
	uint32_t i;

	for (i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
	assert_int_equal(madvise((void *)(uintptr_t)memory, PAGES * PAGE, MADV_DONTNEED), 0);
}

static uint64_t faults_counted(uint8_t *memory)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_PAGE_FAULTS};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	uint64_t count = 0;

	assert_true(fd >= 0);
	fault(memory);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	close(fd);
	return count;
}

static void a_branch_that_is_switched_is_taken_at_once(void **state)
{
	uint8_t *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i, lost = 0;
	pid_t rival;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE), 0);
	rival = fork();
	assert_true(rival >= 0);
	run_on(rival ? 0 : 1);
	if (!rival) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			fault(memory);
	}
	for (i = 0; i < ROUNDS; i++)
		lost += faults_counted(memory) < PAGES;
	kill(rival, SIGKILL);
	assert_int_equal(waitpid(rival, NULL, 0), rival);
	munmap(memory, PAGES * PAGE);
	assert_in_range(lost, 0, ROUNDS / 2);
	if (lost) {
		print_message("# the emulator lost %d of %d branches that the kernel switched\n",
			      lost, ROUNDS);
		skip();
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_branch_that_is_switched_is_taken_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
