/* SPDX-License-Identifier: MIT */
/*
 * streams.c - stages in threads that know their own service, with queues of pem/stream.h between
 *
 * Use: streams [-f] COUNT MICROSECONDS MICROSECONDS...: COUNT items pass a stage for each number,
 * which works so long for an item, by its CPU time; or sleeps: s300. -f: the process forks when its
 * queues are made, and parent and child both pass the items. -x: it runs itself again, at its end.
 * -o: when the second stage has popped all, it frees its queue, and makes three times as many items
 * itself. The third one then frees its queue as well, and is a stage named again, with a queue of
 * its own for as many items. -t: the last stage's thread ends after half of the items, and another
 * one takes its place.
 *
 * At its end it prints to standard error, for each stage: NAME PID TID ITEMS CPU_NS, the CPU time
 * of its work alone.
 */
#include <pem/stream.h>

#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAGES 8
#define CAPACITY 64

static struct stage {
	uint64_t ns, items, cpu_ns;
	int sleeps, is_joined;
	char name[16];
	struct pem_stream *from, *to;
	pthread_t thread;
} stages[STAGES];
static uint64_t count;
static int is_alone, takes_turns;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void work(struct stage *stage)
{
	struct timespec pause = {0, (long)stage->ns};
	uint64_t begin = cpu_ns();

	if (stage->sleeps)
		nanosleep(&pause, NULL);
	while (!stage->sleeps && cpu_ns() - begin < stage->ns)
		;
	stage->cpu_ns += cpu_ns() - begin;
	stage->items++;
}

/* A thread that pushes and pops. */
static void *run_alone(struct stage *stage)
{
	struct pem_stream *own = pem_stream__make("own", CAPACITY, sizeof(uint64_t));
	uint64_t item, made;

	pem_stream_stage("again");
	for (made = 0; made < count; made++) {
		work(stage);
		pem_stream__push(own, &made);
		pem_stream__pop(own, &item);
	}
	return NULL;
}

static void *run(void *arg)
{
	struct stage *stage = arg;
	pthread_t other;
	uint64_t item = 0;

	pem_stream_stage(stage->name);
	while (stage->from ? !pem_stream__pop(stage->from, &item) : item++ < count) {
		work(stage);
		if (stage->to && pem_stream__push(stage->to, &item))
			break;
		if (takes_turns && !stage->to && stage->items == count / 2) {
			takes_turns = 0;
			pthread_create(&other, NULL, run, stage);
			pthread_join(other, NULL);
			return NULL;
		}
	}
	if (is_alone && stage->from) {
		pthread_join(stage[-1].thread, NULL);
		stage[-1].is_joined = 1;
		pem_stream__free(stage->from);
		stage->from = NULL;
		count *= stage->to ? 3 : 1;
		return stage->to ? run(stage) : run_alone(stage);
	}
	if (stage->to)
		pem_stream__close(stage->to);
	flockfile(stderr);
	fprintf(stderr, "%s %d %d %llu %llu\n", stage->name, (int)getpid(), (int)gettid(),
		(unsigned long long)stage->items, (unsigned long long)stage->cpu_ns);
	funlockfile(stderr);
	return NULL;
}

int main(int argc, char **argv)
{
	int option, forks = 0, again = 0, i, n;
	char name[8];

	while ((option = getopt(argc, argv, "+fxot")) != -1) {
		forks |= option == 'f';
		again |= option == 'x';
		is_alone |= option == 'o';
		takes_turns |= option == 't';
	}
	n = argc - optind - 1;
	if (n < 2 || n > STAGES)
		return 1;
	count = strtoull(argv[optind], NULL, 10);
	for (i = 0; i < n; i++) {
		const char *word = argv[optind + 1 + i];

		stages[i].sleeps = *word == 's';
		stages[i].ns = 1000 * strtoull(word + stages[i].sleeps, NULL, 10);
		snprintf(stages[i].name, sizeof(stages[i].name), "s%d", i + 1);
		snprintf(name, sizeof(name), "q%d", i + 1);
		if (i + 1 < n)
			stages[i].to = stages[i + 1].from =
				pem_stream__make(name, CAPACITY, sizeof(uint64_t));
	}
	if (forks)
		forks = fork() > 0;
	for (i = 0; i < n; i++)
		if (pthread_create(&stages[i].thread, NULL, run, &stages[i]))
			return 1;
	for (i = n; i-- > 0;)
		if (!stages[i].is_joined)
			pthread_join(stages[i].thread, NULL);
	if (forks)
		wait(NULL);
	if (again) {
		argv[optind - 1] = argv[0];
		execv("/proc/self/exe", argv + optind - 1);
	}
	return 0;
}
