// SPDX-License-Identifier: MIT
/*
 * allocates.c - allocates and uses memory as its first argument says, for tests of the page-size
 * agent's observers
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1ul << 20)

struct node {
	struct node *next;
	uint64_t rest[7];
};

static volatile uint64_t sink;
static uint64_t table[65536];
static uint64_t random_state = 88172645463325252u;

/* Xorshift of Marsaglia. */
static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static __attribute__((noinline)) void read_words(const volatile uint64_t *words, size_t count,
						 size_t times)
{
	while (times--)
		sink = words[next_random() % count];
}

static void arrays(void)
{
	uint64_t *hot = malloc(8 * MIB);
	uint64_t *cold = calloc(3 * MIB, 1);

	memset(hot, 0, 8 * MIB);
	read_words(hot, MIB, 100000);
	read_words(cold, 3 * MIB / 8, 1000);
	read_words(table, 65536, 5000);
	free(hot);
	free(cold);
}

static void chain(void)
{
	enum { COUNT = 4096 };
	struct node *nodes = malloc(COUNT * sizeof(*nodes)), *node;
	size_t i;

	for (i = 0; i < COUNT; i++)
		nodes[i].next = &nodes[(i + 1021) % COUNT];
	for (i = 0, node = nodes; i < 100000; i++) {
		node = node->next;
		__asm__ volatile("" : "+r"(node));
	}
	sink = (uintptr_t)node;
}

static __attribute__((noinline)) void *allocate(size_t bytes)
{
	void *block = malloc(bytes);

	if (!block)
		abort();
	return block;
}

static void wrapped(void)
{
	uint64_t *first = allocate(MIB);
	uint64_t *second = allocate(2 * MIB);

	read_words(first, MIB / 8, 1000);
	read_words(second, MIB / 4, 1000);
}

static void anonymous(void)
{
	uint64_t *memory =
		mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	read_words(memory, MIB / 2, 1000);
	munmap(memory, 4 * MIB);
}

static pthread_barrier_t both_run;

static void *work(void *memory)
{
	pthread_barrier_wait(&both_run);
	read_words(memory, MIB / 8, 200000);
	return NULL;
}

static void threads(void)
{
	void *memory = allocate(MIB);
	pthread_t thread[2];

	pthread_barrier_init(&both_run, NULL, 2);
	pthread_create(&thread[0], NULL, work, memory);
	pthread_create(&thread[1], NULL, work, memory);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
}

static void forks(void)
{
	uint64_t *memory = allocate(MIB);
	int status;

	read_words(memory, MIB / 8, 1000);
	if (!fork()) {
		read_words(memory, MIB / 8, 7000);
		exit(0);
	}
	wait(&status);
	read_words(memory, MIB / 8, 500);
}

static void forever(void)
{
	uint64_t *memory = allocate(MIB);

	for (;;)
		read_words(memory, MIB / 8, 1000);
}

static void handle(int number)
{
	(void)number;
	read_words(table, 65536, 20);
}

static void signals(void)
{
	uint64_t *memory = allocate(MIB);
	int i;

	signal(SIGUSR1, handle);
	for (i = 0; i < 1000; i++) {
		raise(SIGUSR1);
		read_words(memory, MIB / 8, 10);
	}
}

/* Blocks of all sizes come, grow and go; each is filled with a byte of its own. */
struct block {
	unsigned char *bytes;
	size_t count;
	unsigned char fill;
};

static void check(const struct block *block, size_t count)
{
	size_t i;

	for (i = 0; i < count; i += 1 + count / 64)
		if (block->bytes[i] != block->fill)
			abort();
}

static void renew(struct block *block)
{
	static const size_t limits[] = {100, 3000, 40000, MIB, 5 * MIB};
	size_t count = next_random() % limits[next_random() % 5] + 1, old = block->count;
	size_t align = 16ul << next_random() % 12;
	void *bytes;

	check(block, old);
	switch (next_random() % 4) {
	case 0:
		free(block->bytes);
		block->bytes = malloc(count);
		break;
	case 1:
		free(block->bytes);
		block->bytes = calloc(1, count);
		block->fill = 0;
		check(block, count);
		break;
	case 2:
		free(block->bytes);
		if (posix_memalign(&bytes, align, count) || (uintptr_t)bytes % align)
			abort();
		block->bytes = bytes;
		break;
	default:
		block->bytes = realloc(block->bytes, count);
		check(block, count < old ? count : old);
	}
	block->count = count;
	block->fill = next_random();
	memset(block->bytes, block->fill, count);
}

static void blocks(void)
{
	enum { COUNT = 300, STEPS = 4000 };
	static struct block block[COUNT];
	volatile size_t huge = SIZE_MAX / 2;
	int i;

	for (i = 0; i < STEPS; i++)
		renew(&block[next_random() % COUNT]);
	if (malloc(huge / 2) || calloc(huge, 4))
		abort();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {{"arrays", arrays},       {"chain", chain},     {"wrapped", wrapped},
		    {"anonymous", anonymous}, {"threads", threads}, {"forks", forks},
		    {"forever", forever},     {"signals", signals}, {"blocks", blocks}};
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]))
			continue;
		printf("started\n");
		fflush(stdout);
		ways[i].run();
		printf("done\n");
		return 0;
	}
	return 2;
}
