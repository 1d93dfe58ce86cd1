// SPDX-License-Identifier: MIT
/*
 * asked.c - raises ticks when it is asked to, one line of standard input after the other, and tells
 * when it has
 *
 *	tick N		raise N ticks
 *	fork N		a child raises N ticks
 *	spawn N		a new image of this program does, by posix_spawn
 *	vfork N		the same by vfork and exec
 *	daemon N	an orphan of a session of its own does
 *	exec		this process goes on as a new image
 *	thread N	a thread does
 */
#include "probe.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static void raise_and_tell(uint64_t count)
{
	static uint64_t raised;

	probe_raise(0, raised + 1, raised + count);
	raised += count;
	probe_tell(0, count);
}

static void *in_thread(void *count)
{
	raise_and_tell((uintptr_t)count);
	return NULL;
}

/*
 * The daemon's parents are gone before it raises anything; whoever asked waits for the pipe's end.
 */
static void run_daemon(uint64_t count)
{
	int fds[2];
	char c;

	if (pipe(fds))
		return;
	if (!fork()) {
		setsid();
		if (fork())
			_exit(0);
		while (getppid() != 1 && usleep(1000) == 0)
			;
		raise_and_tell(count);
		_exit(0);
	}
	wait(NULL);
	close(fds[1]);
	while (read(fds[0], &c, 1) > 0)
		;
	close(fds[0]);
}

static void run_child(const char *how, uint64_t count, char **argv)
{
	char number[24], *child_argv[] = {argv[0], number, NULL};
	pid_t child = -1;

	snprintf(number, sizeof(number), "%" PRIu64, count);
	if (!strcmp(how, "spawn")) {
		if (posix_spawn(&child, argv[0], NULL, NULL, child_argv, environ))
			return;
	} else if (!strcmp(how, "vfork")) {
		child = vfork();
		if (!child) {
			execv(argv[0], child_argv);
			_exit(127);
		}
	} else {
		child = fork();
		if (!child) {
			raise_and_tell(count);
			_exit(0);
		}
	}
	waitpid(child, NULL, 0);
}

static void obey(const char *word, uint64_t count, char **argv)
{
	pthread_t thread;

	if (!strcmp(word, "tick")) {
		raise_and_tell(count);
	} else if (!strcmp(word, "thread")) {
		if (!pthread_create(&thread, NULL, in_thread, (void *)(uintptr_t)count))
			pthread_join(thread, NULL);
	} else if (!strcmp(word, "daemon")) {
		run_daemon(count);
	} else if (!strcmp(word, "exec")) {
		char *self[] = {argv[0], NULL};

		execv(argv[0], self);
	} else {
		run_child(word, count, argv);
	}
}

int main(int argc, char **argv)
{
	char line[80], word[16];
	uint64_t count;

	if (argc > 1) {
		raise_and_tell(strtoul(argv[1], NULL, 10));
		return 0;
	}
	setvbuf(stdin, NULL, _IONBF, 0); /* what a new image is asked is not read by the old one */
	while (printf("ready\n"), fflush(stdout), fgets(line, sizeof(line), stdin)) {
		count = 0;
		if (sscanf(line, "%15s %" SCNu64, word, &count) >= 1)
			obey(word, count, argv);
	}
	return 0;
}
