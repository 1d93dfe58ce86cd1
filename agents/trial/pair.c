/* SPDX-License-Identifier: MIT */
/*
 * pair.c - two configurations at the same time, so that both find the machine in the same state
 *
 * Each half is a process that makes one run (run.c) on one half of the CPUs. A byte on the socket
 * between them ends a step:
 *
 *	first half			second half
 *	prepare
 *	byte -------------------------> prepare
 *	warm-ups			warm-ups
 *	byte <------------------------> byte
 *	the command, measured		the command, measured
 *	byte <------------------------> byte
 *
 * Both exchange their sides each 100 ms, since other programs may keep one side busier. The half
 * that is through first runs its command again, unmeasured, until the other one's byte
 * comes: the slower configuration has company to its end. A half that failed or was killed closes
 * its socket, and the other one ends.
 */
#include "trial/trial.h"

#include "processes.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 50
#define EXCHANGE_MS 100
#define DEPTH_MAX 64 /* of processes that descend from a half */

/* --- in a half --- */

void trial_half__tell(const struct trial_half *half)
{
	/* If the other half has ended, the next look at the socket finds that. */
	(void)!send(half->other, "", 1, MSG_NOSIGNAL);
}

enum trial_half_state trial_half__look(const struct trial_half *half)
{
	char byte;
	ssize_t got = recv(half->other, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return TRIAL_HALF_RUNS;
	return got == 1 ? TRIAL_HALF_TOLD : TRIAL_HALF_GONE;
}

bool trial_half__wait(const struct trial_half *half, volatile const int *interrupted)
{
	struct pollfd other = {.fd = half->other, .events = POLLIN};
	char byte;

	while (!interrupted || !*interrupted) {
		if (poll(&other, 1, TICK_MS) > 0)
			return recv(half->other, &byte, 1, MSG_DONTWAIT) == 1;
	}
	return false;
}

/* --- CPUs --- */

struct cpu {
	int package, core, number;
};

static int read_topology(int cpu, const char *name)
{
	char path[96];
	int value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
	file = fopen(path, "re");
	if (file && fscanf(file, "%d", &value) != 1)
		value = 0;
	if (file)
		fclose(file);
	return value;
}

static int by_place(const void *a, const void *b)
{
	const struct cpu *x = a, *y = b;

	if (x->package != y->package)
		return x->package < y->package ? -1 : 1;
	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* As many CPUs for each side, and CPUs of one core on one side if that is possible. 0 or -errno. */
static int divide_cpus(cpu_set_t sides[2], struct pem_error *error)
{
	struct cpu cpus[CPU_SETSIZE];
	cpu_set_t allowed;
	int count = 0, i;

	CPU_ZERO(&sides[0]);
	CPU_ZERO(&sides[1]);
	CPU_ZERO(&allowed);
	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		snprintf(error->text, sizeof(error->text),
			 "the CPUs that pem may use are unknown: %s", strerror(errno));
		return -errno;
	}
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &allowed))
			cpus[count++] = (struct cpu){read_topology(i, "physical_package_id"),
						     read_topology(i, "core_id"), i};
	}
	if (count < 2) {
		snprintf(error->text, sizeof(error->text),
			 "pem may use one CPU alone, and a pair needs two");
		return -ENOTSUP;
	}
	qsort(cpus, (size_t)count, sizeof(*cpus), by_place);
	for (i = 0; i < count / 2; i++) {
		CPU_SET(cpus[i].number, &sides[0]);
		CPU_SET(cpus[i + count / 2].number, &sides[1]);
	}
	return 0;
}

int trial_pair__check(struct pem_error *error)
{
	cpu_set_t sides[2];

	return divide_cpus(sides, error);
}

/* From one side to the other. */
struct move {
	const cpu_set_t *from, *to;
};

static bool move_thread(int tid, void *arg)
{
	const struct move *move = arg;
	cpu_set_t now;

	/* A thread that is bound to other CPUs, by the command itself, stays there. */
	if (!sched_getaffinity(tid, sizeof(now), &now) && CPU_EQUAL(&now, move->from))
		sched_setaffinity(tid, sizeof(now), move->to);
	return true;
}

/* The processes that it starts from then on follow it. */
static bool move_process(int pid, void *arg)
{
	pem_proc__threads(pid, move_thread, arg);
	return true;
}

/* --- a pair --- */

/* What a half leaves in memory that it shares with the explorer. */
struct result {
	struct trial_outcome outcome;
	struct pem_error error;
	int rc;
	bool is_done;
};

struct pair {
	const struct trial *trial;
	const uint32_t *const *levels; /* of both */
	struct result *results; /* the same */
	cpu_set_t sides[2];
	int exchanged; /* 1: the first half has the second side now */
	int ends[2]; /* of the socket between them */
	pid_t pids[2]; /* 0: it does not run */
	char scratch[2][PATH_MAX];
};

/* The life of a half's process. */
static void run_half(const struct pair *pair, int which, pid_t explorer) __attribute__((noreturn));

static void run_half(const struct pair *pair, int which, pid_t explorer)
{
	const struct trial_half half = {.other = pair->ends[which], .is_second = which};
	struct result *result = &pair->results[which];
	struct trial trial = *pair->trial;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* The explorer may have died before this process asked to be told. */
	if (getppid() != explorer)
		_exit(1);
	close(pair->ends[!which]);
	trial.scratch = pair->scratch[which];
	trial.half = &half;
	/* A race's runs are not ended by the policy. */
	trial.record = NULL;
	result->rc = trial__run(&trial, pair->levels[which], &result->outcome, &result->error);
	result->is_done = true;
	_exit(0);
}

static int start(struct pair *pair, struct pem_error *error)
{
	const pid_t explorer = getpid();
	cpu_set_t all;
	int which, rc = 0;

	if (sched_getaffinity(0, sizeof(all), &all) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair->ends))
		rc = -errno;
	/* What is buffered is written once. */
	fflush(NULL);
	for (which = 0; which < 2 && !rc; which++) {
		/* Whatever a half starts has its side. */
		if (sched_setaffinity(0, sizeof(all), &pair->sides[which])) {
			rc = -errno;
			break;
		}
		pair->pids[which] = fork();
		if (!pair->pids[which])
			run_half(pair, which, explorer);
		if (pair->pids[which] < 0) {
			rc = -errno;
			pair->pids[which] = 0;
		}
	}
	if (which)
		sched_setaffinity(0, sizeof(all), &all);
	/* A half that has no other one finds its socket closed. */
	for (which = 0; which < 2; which++) {
		if (pair->ends[which] >= 0)
			close(pair->ends[which]);
	}
	if (rc)
		snprintf(error->text, sizeof(error->text), "no processes for a pair: %s",
			 strerror(-rc));
	return rc;
}

static void exchange(struct pair *pair)
{
	int which;

	for (which = 0; which < 2; which++) {
		int side = which ^ pair->exchanged;
		struct move move = {&pair->sides[side], &pair->sides[!side]};

		if (pair->pids[which])
			pem_proc__walk(&pair->pids[which], 1, DEPTH_MAX, move_process, &move);
	}
	pair->exchanged = !pair->exchanged;
}

/* Wait for both, and pass on that a person wants the end. */
static void wait_for_both(struct pair *pair)
{
	volatile const int *interrupted = pair->trial->interrupted;
	double exchanged_s = trial_now_s();
	struct pollfd fds[2];
	bool passed = false;
	int which, status;

	for (which = 0; which < 2; which++)
		fds[which] = (struct pollfd){
			.fd = pair->pids[which] ? (int)syscall(SYS_pidfd_open, pair->pids[which], 0)
						: -1,
			.events = POLLIN};
	while (pair->pids[0] || pair->pids[1]) {
		poll(fds, 2, TICK_MS);
		for (which = 0; which < 2; which++) {
			if (!pair->pids[which])
				continue;
			if (interrupted && *interrupted && !passed)
				kill(pair->pids[which], *interrupted);
			if (waitpid(pair->pids[which], &status, WNOHANG) != pair->pids[which])
				continue;
			if (!pair->results[which].is_done)
				snprintf(pair->results[which].outcome.reason, 64,
					 "its half of a pair was ended by a signal");
			pair->pids[which] = 0;
			if (fds[which].fd >= 0)
				close(fds[which].fd);
			fds[which].fd = -1;
		}
		passed = interrupted && *interrupted;
		if (trial_now_s() - exchanged_s >= EXCHANGE_MS / 1e3) {
			exchange(pair);
			exchanged_s = trial_now_s();
		}
	}
}

/* If one of two failed, no figure of the pair counts. Returns 0 or -errno with error. */
static int conclude(const struct pair *pair, struct trial_outcome outcomes[2],
		    struct pem_error *error)
{
	volatile const int *interrupted = pair->trial->interrupted;
	bool is_void = false;
	int which;

	for (which = 0; which < 2; which++) {
		const struct result *result = &pair->results[which];

		outcomes[which] = result->outcome;
		if (result->is_done && result->rc) {
			*error = result->error;
			return result->rc;
		}
		if (!result->is_done)
			outcomes[which].outcome = PEM_EXPLORE_FAILED;
		is_void |= outcomes[which].outcome != PEM_EXPLORE_MEASURED;
	}
	for (which = 0; which < 2; which++) {
		char *reason = outcomes[which].reason, other[sizeof(outcomes[which].reason)];

		if (is_void)
			outcomes[which].outcome = PEM_EXPLORE_FAILED;
		/* A copy: compilers can't tell that the halves do not overlap. */
		memcpy(other, outcomes[!which].reason, sizeof(other));
		if (!strcmp(reason, TRIAL_HALF_LOST))
			snprintf(reason, sizeof(outcomes[which].reason), "%s: %.110s",
				 TRIAL_HALF_LOST, other);
		outcomes[which].interrupted = interrupted && *interrupted;
	}
	return 0;
}

static int make_scratch(struct pair *pair, struct pem_error *error)
{
	int which;

	for (which = 0; which < 2; which++) {
		snprintf(pair->scratch[which], sizeof(pair->scratch[which]), "%.4000s/half%d",
			 pair->trial->scratch, which);
		if (!mkdir(pair->scratch[which], 0700))
			continue;
		snprintf(error->text, sizeof(error->text),
			 "no folder for a run can be made, %.200s: %s", pair->scratch[which],
			 strerror(errno));
		return -errno;
	}
	return 0;
}

int trial_pair__run(const struct trial *trial, const uint32_t *const levels[2],
		    struct trial_outcome outcomes[2], struct pem_error *error)
{
	const uint64_t began_ticks = trial_launch__now_ticks();
	const uint32_t *sides[2];
	struct trial_outcome ended[2];
	struct pair pair = {.trial = trial, .levels = sides, .ends = {-1, -1}};
	uint8_t chance = 0;
	int rc = divide_cpus(pair.sides, error), which;

	memset(outcomes, 0, 2 * sizeof(*outcomes));
	if (rc)
		return rc;
	if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		chance = (uint8_t)began_ticks;
	chance &= 1;
	for (which = 0; which < 2; which++)
		sides[which] = levels[which ^ chance];
	pair.results = mmap(NULL, 2 * sizeof(*pair.results), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pair.results == MAP_FAILED) {
		snprintf(error->text, sizeof(error->text), "out of memory");
		return -ENOMEM;
	}
	rc = make_scratch(&pair, error);
	if (!rc) {
		rc = start(&pair, error);
		wait_for_both(&pair);
		/* A half that was killed left its command. */
		trial_launch__end_all(began_ticks, NULL, 0);
	}
	if (!rc)
		rc = conclude(&pair, ended, error);
	for (which = 0; which < 2; which++) {
		if (pair.scratch[which][0])
			trial__remove(pair.scratch[which]);
		if (!rc)
			outcomes[which ^ chance] = ended[which];
	}
	munmap(pair.results, 2 * sizeof(*pair.results));
	return rc;
}
