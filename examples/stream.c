// SPDX-License-Identifier: MIT
/*
 * stream.c - a program of three stages, in a thread each, with queues between them
 *
 *	stream [NUMBERS]		prints how many numbers below NUMBERS are prime
 *	pem record -e Stream -- stream		also records when its stages were blocked
 *
 * docs/rates.md describes what an observer sees of such queues.
 */
#include <pem/stream.h>

#include <stdint.h>
#include <stdio.h>

#define BATCH 64

struct candidate {
	uint32_t number;
	uint32_t is_prime;
};

static struct pem_stream *numbers, *tested;
static uint32_t end = 20000;

static void *generate(void *unused)
{
	uint32_t number;

	pem_stream_stage("generate");
	for (number = 2; number < end; number++)
		if (pem_stream__push(numbers, &number))
			break;
	pem_stream__close(numbers);
	return unused;
}

static void *test(void *unused)
{
	struct candidate candidate;
	uint32_t divisor;

	pem_stream_stage("test");
	while (!pem_stream__pop(numbers, &candidate.number)) {
		divisor = 2;
		while (divisor * divisor <= candidate.number && candidate.number % divisor)
			divisor++;
		candidate.is_prime = divisor * divisor > candidate.number;
		if (pem_stream__push(tested, &candidate))
			break;
	}
	pem_stream__close(tested);
	return unused;
}

int main(int argc, char **argv)
{
	struct candidate batch[BATCH];
	pthread_t threads[2];
	ptrdiff_t count, i;
	unsigned primes = 0;

	if (argc > 1)
		end = (uint32_t)strtoul(argv[1], NULL, 10);
	numbers = pem_stream__make("numbers", 256, sizeof(uint32_t));
	tested = pem_stream__make("tested", 1024, sizeof(struct candidate));
	if (!numbers || !tested || pthread_create(&threads[0], NULL, generate, NULL) ||
	    pthread_create(&threads[1], NULL, test, NULL))
		return 1;
	pem_stream_stage("count");
	while ((count = pem_stream__pop_many(tested, batch, BATCH)) > 0)
		for (i = 0; i < count; i++)
			primes += batch[i].is_prime;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("%u\n", primes);
	pem_stream__free(numbers);
	pem_stream__free(tested);
	return 0;
}
