/* SPDX-License-Identifier: MIT */
/*
 * kernel_peer.c - runs a command while one program of kernel_peer.bpf.c observes all system calls
 *
 *	kernel_peer empty|clock|count|ringbuf|ringbuf_quiet COMMAND...
 *
 * Reads the records as they come, bound to the first CPU. Prints to standard error how many records
 * came and how many found no room.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 10

static unsigned long long taken;

static int take(void *arg, void *data, size_t bytes)
{
	(void)arg;
	(void)data;
	taken += bytes != 0;
	return 0;
}

static void bind_to_first(void)
{
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (cpu = 0; cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &set); cpu++)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Open the object and keep only one of its programs. */
static struct bpf_object *load(const char *wanted)
{
	struct bpf_program *program;
	struct bpf_object *object;
	char path[4096];
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof(path) - 8);

	if (bytes <= 0)
		return NULL;
	strcpy(path + bytes, ".bpf.o");
	object = bpf_object__open_file(path, NULL);
	if (!object)
		return NULL;
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), wanted));
	if (bpf_object__load(object)) {
		bpf_object__close(object);
		return NULL;
	}
	return object;
}

static int run(char **command, struct ring_buffer *ring, int quiet)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		execvp(command[0], command);
		_exit(127);
	}
	bind_to_first();
	while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
		if (quiet || !ring)
			usleep(POLL_MS * 1000);
		else
			ring_buffer__poll(ring, POLL_MS);
		if (quiet && ring)
			ring_buffer__consume(ring);
	}
	if (ring)
		ring_buffer__consume(ring);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	struct ring_buffer *ring = NULL;
	struct bpf_program *program;
	struct bpf_object *object;
	struct bpf_map *bss;
	unsigned long long lost = 0;
	unsigned int zero = 0;
	int status;

	if (argc < 3)
		return 64;
	object = load(argv[1]);
	program = object ? bpf_object__find_program_by_name(object, argv[1]) : NULL;
	if (!program || !bpf_program__attach(program)) {
		fprintf(stderr, "kernel_peer: %s: %s\n", argv[1], strerror(errno));
		return 2;
	}
	if (!strncmp(argv[1], "ringbuf", 7))
		ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "records"), take,
					NULL, NULL);
	status = run(argv + 2, ring, !strcmp(argv[1], "ringbuf_quiet"));
	bss = bpf_object__find_map_by_name(object, ".bss");
	if (bss)
		bpf_map_lookup_elem(bpf_map__fd(bss), &zero, &lost);
	fprintf(stderr, "kernel_peer: %llu taken, %llu lost\n", taken, lost);
	return status;
}
