/* SPDX-License-Identifier: MIT */
/*
 * cost_exercise.c - that programs whose costs are measured are compared in turns, and that one
 * which hangs is not waited for
 */
#include "cost/cost.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- a program of known speed on a machine whose load changes --- */

#define STEPS 3
#define TIME_VARIABLE "PEM_TEST_TIME"
#define PERIOD_NS 2e7
#define BURST_NS 2e6
#define BURST_FACTOR 5
#define TURN_NS 50000

/* By their first letters. */
static const char *const names[STEPS] = {"0", "1", "2"};
static const double plain_ns = 10, longer_ns[STEPS] = {0, 30, 5};

/* The simulated time, which all programs share. */
static double *map_time(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *memory = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, sizeof(double)))
		memory = mmap(NULL, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		abort();
	close(fd);
	return memory;
}

/* This program in place of pem-exercise. */
static int be_exercise(const char *path)
{
	unsigned step = (unsigned)(getenv("PEM_TEST_STEP")[0] - '0');
	double *time = map_time(path), at, ns;
	struct pem_exercise_word word;
	struct pem_exercised done;

	while (read(STDIN_FILENO, &word, sizeof(word)) == sizeof(word)) {
		at = *time - PERIOD_NS * (uint64_t)(*time / PERIOD_NS);
		ns = (plain_ns + longer_ns[step]) * (at < BURST_NS ? BURST_FACTOR : 1);
		*time += TURN_NS;
		done = (struct pem_exercised){
			.step = {plain_ns, plain_ns, plain_ns}, .ns = ns, .count = word.what};
		if (write(STDOUT_FILENO, &done, sizeof(done)) != sizeof(done))
			return 1;
	}
	return 0;
}

/* --- tests --- */

static char folder[] = "/tmp/pem-cost-exercise-XXXXXX";

static void path_of(char *path, size_t bytes, const char *name)
{
	snprintf(path, bytes, "%s%s", folder, name);
}

static int make_folder(void **state)
{
	char path[128];

	(void)state;
	strcpy(strrchr(folder, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(folder));
	path_of(path, sizeof(path), "/pem");
	assert_int_equal(mkdir(path, 0700), 0);
	return setenv("PEM_LIBRARY_PATH", folder, 1);
}

/* Install a program in place of pem-exercise that neither reads nor writes. */
static void install_one_that_hangs(void)
{
	char path[128];
	FILE *program;

	path_of(path, sizeof(path), "/pem/pem-exercise");
	program = fopen(path, "we");
	assert_non_null(program);
	fputs("#!/bin/sh\nexec sleep 100000\n", program);
	fclose(program);
	assert_int_equal(chmod(path, 0700), 0);
}

static int remove_folder(void **state)
{
	static const char *const entries[] = {"/pem/pem-exercise", "/pem", ""};
	char path[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		path_of(path, sizeof(path), entries[i]);
		assert_int_equal(remove(path), 0);
	}
	return 0;
}

static void a_program_that_hangs_is_ended(void **state)
{
	struct pem_exercised done;
	struct pem_exercise run;
	int status;
	pid_t pid;

	(void)state;
	install_one_that_hangs();
	assert_true(pem_exercise__begin(&run, -1, environ));
	assert_true(run.limit_ms > 0);
	run.limit_ms = 1;
	pid = run.pid;
	assert_false(pem_exercise__do(&run, PEM_EXERCISE_CALL, &done));
	pem_exercise__end(&run);
	assert_int_equal(run.pid, 0);
	assert_int_equal(waitpid(pid, &status, 0), -1);
	assert_int_not_equal(kill(pid, 0), 0);
}

static void programs_are_compared_while_load_comes_and_goes(void **state)
{
	struct pem_exercise_step steps[STEPS];
	struct pem_exercise runs[STEPS];
	struct pem_step taken[STEPS];
	char time_path[128], path[128];
	unsigned s;

	(void)state;
	path_of(path, sizeof(path), "/pem/pem-exercise");
	assert_int_equal(symlink("/proc/self/exe", path), 0);
	path_of(time_path, sizeof(time_path), "/time");
	setenv(TIME_VARIABLE, time_path, 1);
	for (s = 0; s < STEPS; s++) {
		setenv("PEM_TEST_STEP", names[s], 1);
		assert_true(pem_exercise__begin(&runs[s], -1, environ));
		steps[s] = (struct pem_exercise_step){&runs[s], (char)('a' + s), 0};
	}
	assert_true(pem_exercise__compare(steps, STEPS, taken));
	for (s = 0; s < STEPS; s++) {
		assert_float_equal(taken[s].warm, plain_ns + longer_ns[s], 1e-6);
		assert_float_equal(taken[s].cooler, plain_ns + longer_ns[s], 1e-6);
		assert_float_equal(taken[s].cold, plain_ns + longer_ns[s], 1e-6);
		assert_int_equal(steps[s].count, 'a' + s);
	}
	for (s = STEPS; s-- > 0;)
		pem_exercise__end(&runs[s]);
	assert_int_equal(remove(time_path), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(programs_are_compared_while_load_comes_and_goes,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(a_program_that_hangs_is_ended, make_folder,
						remove_folder),
	};

	if (argc && !strcmp(argv[0], "pem-exercise"))
		return be_exercise(getenv(TIME_VARIABLE));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
