// SPDX-License-Identifier: MIT
/*
 * hook_life.c - refers to memory, then ends, forks, is interrupted or maps memory as its first
 * argument says, for tests of the runtime of compiler hooks
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 131072

static volatile uint64_t sink;
static uint64_t *words;
static sigjmp_buf jump;
static const char *file;
static pthread_key_t key;
static int ready;

static void look(int count)
{
	int i;

	for (i = 0; i < count; i++)
		sink = ((volatile uint64_t *)words)[i * 64 % WORDS];
}

/* --- how it ends --- */

static void end_at_once(void)
{
	_exit(3);
}

static void end_quickly(void)
{
	quick_exit(3);
}

static void become_by_list(void)
{
	execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
}

static void become_by_array(void)
{
	execve("/bin/sh", (char *[]){"sh", "-c", "exit 3", NULL}, environ);
}

static void become_itself(void)
{
	if (!file)
		execl("/proc/self/exe", "life", "again", "more", (char *)NULL);
	look(4000);
}

static void fail_to_become(void)
{
	execl("/nowhere", "x", (char *)NULL);
	look(2000);
}

static void *never_end(void *arg)
{
	look(3000);
	__atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return arg;
}

static void leave_a_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, never_end, NULL);
	while (!__atomic_load_n(&ready, __ATOMIC_SEQ_CST))
		usleep(1000);
}

static void at_end(void *arg)
{
	(void)arg;
	look(100);
}

static void *work(void *arg)
{
	pthread_setspecific(key, arg);
	look(1000);
	return NULL;
}

static void end_threads(void)
{
	pthread_t thread;
	int i;

	pthread_key_create(&key, at_end);
	for (i = 0; i < 200; i++) {
		pthread_create(&thread, NULL, work, &key);
		pthread_join(thread, NULL);
	}
}

static void give_up_rights(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	look(100000);
}

/* --- children --- */

static void start_by_vfork(void)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < 100; i++) {
		pid = vfork();
		if (!pid) {
			look(1);
			if (i % 2)
				_exit(1);
			execl("/bin/true", "true", (char *)NULL);
			_exit(2);
		}
		waitpid(pid, &status, 0);
	}
	look(2000);
}

/* Without the handlers that the C library calls. */
static void fork_barely(void)
{
	pid_t pid = (pid_t)syscall(SYS_fork);

	if (!pid) {
		look(3000000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	look(2000);
}

/* --- signals --- */

static void on_fault(int number)
{
	(void)number;
	siglongjmp(jump, 1);
}

static void jump_out(void)
{
	volatile uint64_t *wall = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int i;

	signal(SIGSEGV, on_fault);
	for (i = 0; i < 100; i++) {
		if (!sigsetjmp(jump, 1))
			sink = *wall;
		else
			look(20);
	}
}

static void on_alarm(int number)
{
	(void)number;
	look(50);
	free(malloc(200000));
}

static void be_interrupted(void)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval often = {{0, 200}, {0, 200}};
	int i;

	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	for (i = 0; i < 2000; i++)
		look(2000);
}

/* --- files, libraries, mappings --- */

static void close_all(void)
{
	int fd, i;

	for (fd = 3; fd < 100; fd++)
		close(fd);
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (i = 0; i < 100; i++) {
		look(2000);
		if (write(fd, "mine\n", 5) != 5)
			abort();
	}
}

static void load(void)
{
	void *plugin = dlopen(file, RTLD_NOW);

	if (!plugin)
		abort();
	((void (*)(void))dlsym(plugin, "plug"))();
	dlclose(plugin);
	look(200000);
}

static void map_often(void)
{
	volatile char *memory;
	int i;

	for (i = 0; i < 300; i++) {
		memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
		memory[5] = 1;
		memory = mremap((void *)memory, 1 << 16, 1 << 18, MREMAP_MAYMOVE);
		memory[1 << 17] = 1;
		munmap((void *)memory, 1 << 18);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {{"exit", end_at_once},     {"quick", end_quickly},
		    {"execl", become_by_list}, {"execve", become_by_array},
		    {"again", become_itself},  {"fails", fail_to_become},
		    {"vfork", start_by_vfork}, {"clone", fork_barely},
		    {"fault", jump_out},       {"alarms", be_interrupted},
		    {"closes", close_all},     {"detached", leave_a_thread},
		    {"keys", end_threads},     {"confined", give_up_rights},
		    {"plugin", load},          {"many", map_often}};
	size_t i;

	words = calloc(WORDS, sizeof(*words));
	look(1000);
	file = argc > 2 ? argv[2] : NULL;
	for (i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]))
			continue;
		ways[i].run();
		return 3;
	}
	return 2;
}
