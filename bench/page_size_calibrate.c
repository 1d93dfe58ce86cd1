// SPDX-License-Identifier: MIT
/*
 * page_size_calibrate.c - calibrates this machine, and holds what the model then predicts against
 * what programs measure
 *
 * Use: page_size_calibrate calibrate|check SECONDS. Prints:
 *
 * of calibrate: sentences on the curves and on what was found, the JSON, and the seconds it took;
 *
 * of check: SHAPE MIB WAITS SMALL LARGE PREDICTED, which are a stream of references, its bytes, the
 * share of accesses that wait, measured ns an access with small and with large pages, and what
 * large pages save of that by simulation in the calibrated geometry.
 *
 * Programs of check are not those that the calibration is made of: other loops, other memory.
 */
#include "agents/page-size/calibrate/calibrate.h"
#include "agents/page-size/calibrate/chase.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define MIB_MAX 1024u
#define REFERENCES_MAX 1000000u
#define ROUNDS_MAX 4u
#define PARTS_OF_ROUND 40u

static uint64_t dice = 7;
static size_t references = REFERENCES_MAX;
static uint32_t rounds = ROUNDS_MAX;

static void die(const char *what)
{
	fprintf(stderr, "page_size_calibrate: %s\n", what);
	exit(1);
}

static void say(const char *sentence, void *arg)
{
	(void)arg;
	puts(sentence);
	fflush(stdout);
}

static struct page_calibration calibrate(double seconds,
					 void (*progress)(const char *sentence, void *arg))
{
	struct page_calibration calibration;
	struct pem_error error;

	if (page_calibrate(&calibration, seconds, progress, NULL, &error) < 0)
		die(error.text);
	return calibration;
}

/* --- programs: each visits the offsets that were made before --- */

static double chase(const struct arena *arena, const uint32_t *words, size_t count)
{
	const uint64_t *memory = (const uint64_t *)arena->memory;
	uint64_t none = 0;
	double ns = cpu_ns();
	size_t i;

	/* The next index waits for the word that was read. */
	for (i = 0; i < count; i++) {
		none = *(const volatile uint64_t *)&memory[words[i] + none];
		__asm__ volatile("and $0, %0" : "+r"(none));
	}
	return (cpu_ns() - ns) / (double)count;
}

static double update(const struct arena *arena, const uint32_t *words, size_t count)
{
	uint64_t *memory = (uint64_t *)arena->memory;
	double ns = cpu_ns();
	size_t i;

	for (i = 0; i < count; i++)
		memory[words[i]] += i;
	return (cpu_ns() - ns) / (double)count;
}

/* With instructions between that do nothing but take their room in what the processor looks ahead.
 */
#define SPARSE(name, between)                                                                      \
	static double name(const struct arena *arena, const uint32_t *words, size_t count)         \
	{                                                                                          \
		uint64_t *memory = (uint64_t *)arena->memory;                                      \
		double ns = cpu_ns();                                                              \
		size_t i;                                                                          \
                                                                                                   \
		for (i = 0; i < count; i++) {                                                      \
			memory[words[i]] += i;                                                     \
			__asm__ volatile(".rept " #between "\n nop\n .endr");                      \
		}                                                                                  \
		return (cpu_ns() - ns) / (double)count;                                            \
	}
SPARSE(update_60, 60)
SPARSE(update_240, 240)
SPARSE(update_960, 960)

static uint64_t uniform(uint64_t words)
{
	return dice_roll(&dice, words);
}

/* Half of the accesses to a sixteenth of the memory. */
static uint64_t skewed(uint64_t words)
{
	return dice_roll(&dice, dice_roll(&dice, 2) ? words / 16 : words);
}

/* Low numbers are frequent: about as Zipf's law has it; neighbours are spread. */
static uint64_t zipf(uint64_t words)
{
	uint64_t rank = (uint64_t)pow((double)words, (double)dice_roll(&dice, 1 << 24) / (1 << 24));

	return (rank * 0x9e3779b97f4a7c15ull >> 20) % words;
}

static const struct program {
	const char *name;
	uint64_t (*next)(uint64_t words);
	double share; /* of accesses that wait */
	double instructions; /* for each access; of the loops about five */
	double (*run)(const struct arena *arena, const uint32_t *words, size_t count);
} programs[] = {
	{"chase", uniform, 1, 5, chase},
	{"updates", uniform, 0, 5, update},
	{"chase_skewed", skewed, 1, 5, chase},
	{"updates_skewed", skewed, 0, 5, update},
	{"chase_zipf", zipf, 1, 5, chase},
	{"updates_zipf", zipf, 0, 5, update},
	{"updates_60", uniform, 0, 65, update_60},
	{"updates_240", uniform, 0, 245, update_240},
	{"updates_960", uniform, 0, 965, update_960},
};

static double predict(const struct page_geometry *geometry, uint32_t size, const uint32_t *words,
		      size_t count, const struct program *program)
{
	struct page_reference *stream = malloc(count * sizeof(*stream));
	struct page_sites sites = {.count = 1,
				   .latency_share = {program->share},
				   .instructions_per_reference = program->instructions};
	struct page_result results[2];
	struct page_mapping mapping = {{0}};
	size_t i;

	if (!stream)
		die("out of memory");
	for (i = 0; i < count; i++)
		stream[i] = (struct page_reference){(uint64_t)words[i] * 8, 0, 0};
	for (i = 0; i < 2; i++) {
		mapping.size[0] = (uint8_t)(i ? size : 0);
		if (page_simulate(geometry, &sites, &mapping, stream, count, &results[i]) < 0)
			die("the simulation failed");
	}
	free(stream);
	return (results[0].time_ns - results[1].time_ns) / (double)count;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A fifth of the values is below: what a machine takes that nobody disturbs. */
static double quiet(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 5];
}

/* Of one program and size. */
struct series {
	const struct program *program;
	size_t mib;
	double predicted;
	double times[2][ROUNDS_MAX * PARTS_OF_ROUND];
};

static void measure(struct series *series, const struct arena arenas[2], uint32_t *words,
		    uint32_t round)
{
	size_t size = references / PARTS_OF_ROUND, i, part, large;

	for (i = 0; i < references; i++)
		words[i] = (uint32_t)series->program->next(series->mib * MIB / 8);
	/* Which comes first changes, and caches hold what they would in a long run. */
	for (i = 0; i < 2; i++) {
		large = (i + round) % 2;
		update(&arenas[large], words, references);
		for (part = 0; part < PARTS_OF_ROUND; part++)
			series->times[large][round * PARTS_OF_ROUND + part] =
				series->program->run(&arenas[large], words + part * size, size);
	}
}

static void check_all(const struct page_geometry *geometry, uint32_t large,
		      const struct arena arenas[2])
{
	const size_t sizes = 5, count = sizes * sizeof(programs) / sizeof(programs[0]);
	struct series *series = calloc(count, sizeof(*series));
	uint32_t *words = malloc(references * sizeof(*words)), round;
	size_t i;

	if (!series || !words)
		die("out of memory");
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < count; i++) {
			series[i].program = &programs[i / sizes];
			series[i].mib = MIB_MAX >> (sizes - 1 - i % sizes);
			measure(&series[i], arenas, words, round);
			if (!round)
				series[i].predicted = predict(geometry, large, words, references,
							      series[i].program);
		}
	}
	for (i = 0; i < count; i++)
		printf("%s %zu %.2f %.3f %.3f %.3f\n", series[i].program->name, series[i].mib,
		       series[i].program->share, quiet(series[i].times[0], rounds * PARTS_OF_ROUND),
		       quiet(series[i].times[1], rounds * PARTS_OF_ROUND), series[i].predicted);
	free(series);
	free(words);
}

static void check(double seconds)
{
	struct page_calibration calibration = calibrate(seconds, NULL);
	uint32_t size = calibration.geometry.size_count - 1;
	struct arena arenas[2];

	if (!size)
		die("this kernel gives no such pages");
	if (arena__init(&arenas[0], MIB_MAX * MIB, SMALL_SHIFT) < 0 ||
	    arena__init(&arenas[1], MIB_MAX * MIB, calibration.geometry.shifts[size]) < 0)
		die("no memory to check in");
	check_all(&calibration.geometry, size, arenas);
	arena__free(&arenas[0]);
	arena__free(&arenas[1]);
}

int main(int argc, char **argv)
{
	struct page_calibration calibration;
	char text[2048];

	if (getenv("BENCH_QUICK")) {
		references = REFERENCES_MAX / 20;
		rounds = 1;
	}
	if (argc == 3 && !strcmp(argv[1], "check")) {
		check(atof(argv[2]));
	} else if (argc == 3 && !strcmp(argv[1], "calibrate")) {
		calibration = calibrate(atof(argv[2]), say);
		if (page_calibration__write(&calibration, text, sizeof(text)) < 0)
			die("the calibration does not fit");
		printf("%s\n%.1f s\n", text, calibration.seconds);
	} else {
		die("use: page_size_calibrate calibrate|check SECONDS");
	}
	return 0;
}
