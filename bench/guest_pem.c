// SPDX-License-Identifier: MIT
/*
 * guest_pem.c - holds a session of pem.ko open while a command runs, in a guest
 *
 *	guest_pem EVENT,... COMMAND...		logs these events, by name: OS::Syscall::Enter
 *
 * The pools are not drained meanwhile, so only the module's own instructions are added. The pools
 * must be large enough. Prints how many events were raised for the log, and how many of these were
 * lost. Not here: measuring.
 */
#include "event_id.h"

#include <pem/abi.h>
#include <pem/kmod.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK_BYTES (64u << 10)
#define CHUNKS 128u

static int checked(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static void log_event(int device, const char *name)
{
	struct pem_kmod_event event = {
		.size = sizeof(event), .event_id = pem_event_id(name, 1), .cpu = PEM_NO_CPU};

	event.action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	checked(ioctl(device, PEM_KMOD_EVENT, &event), name);
}

/* Add up the counts of the lanes of a CPU's pool. */
static void count(int device, uint32_t cpu, uint64_t *produced, uint64_t *lost)
{
	const struct pem_pool_header *pool;
	const struct pem_cell *cell;
	uint64_t bytes;
	uint32_t i;

	pool = mmap(NULL, 4096, PROT_READ, MAP_SHARED, device, (off_t)PEM_KMOD_MAP_OFFSET(cpu));
	/* the CPU was never online */
	if (pool == MAP_FAILED)
		return;
	bytes = pool->total_bytes;
	munmap((void *)pool, 4096);
	pool = mmap(NULL, bytes, PROT_READ, MAP_SHARED, device, (off_t)PEM_KMOD_MAP_OFFSET(cpu));
	checked(pool == MAP_FAILED ? -1 : 0, "mmap");
	cell = (const struct pem_cell *)((const uint8_t *)pool + pool->cells_offset);
	for (i = 0; i < pool->lane_count * pool->event_capacity; i++) {
		*produced += cell[i].produced;
		*lost += cell[i].discarded;
	}
	munmap((void *)pool, bytes);
}

int main(int argc, char **argv)
{
	struct pem_kmod_info info = {.size = sizeof(info)};
	struct pem_kmod_setup setup = {
		.size = sizeof(setup), .chunk_bytes = CHUNK_BYTES, .chunk_count = CHUNKS};
	uint64_t produced = 0, lost = 0;
	char *name, *rest = NULL;
	int device, status;
	uint32_t cpu;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "Use: guest_pem EVENT,... COMMAND...\n");
		return 1;
	}
	device = checked(open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC), PEM_KMOD_DEVICE);
	checked(ioctl(device, PEM_KMOD_INFO, &info), "info");
	checked(ioctl(device, PEM_KMOD_SETUP, &setup), "setup");
	for (name = strtok_r(argv[1], ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		log_event(device, name);
	checked(ioctl(device, PEM_KMOD_START, 0), "start");

	child = checked(fork(), "fork");
	if (!child) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	checked(waitpid(child, &status, 0), "wait");
	checked(ioctl(device, PEM_KMOD_STOP, 0), "stop");
	for (cpu = 0; cpu < info.cpu_count; cpu++)
		count(device, cpu, &produced, &lost);
	printf("held %" PRIu64 " %" PRIu64 "\n", produced, lost);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
