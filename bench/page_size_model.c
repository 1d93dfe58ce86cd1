// SPDX-License-Identifier: MIT
/*
 * page_size_model.c - runs the page-size model on streams of known shapes, and prints figures
 *
 * Use: page_size_model rate|error|burst|regret REFERENCES. Prints one line for each program and
 * geometry:
 *
 *	rate	PROGRAM GEOMETRY: millions of references a second of the exact simulator (its mean
 *		over mappings) and of the model, in CPU time; bytes of the model for each touched
 *		small page, and these pages
 *	error	PROGRAM GEOMETRY: the greatest difference of the miss ratio in percentage points
 *		over mappings, and the greatest miss ratio in percent
 *	burst	PROGRAM GEOMETRY: the same of a model that reads bursts, a quarter of the references
 *	regret	PROGRAM GEOMETRY BUDGET: what the choice by the model lacks of the best gain among
 *		all mappings, in percent of that gain, both simulated exactly; BUDGET is in percent
 *		of all large pages
 *
 * Everything is simulated, nothing is measured but CPU time.
 */
#include "page_size_streams.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- what is done with each --- */

struct task {
	const char *program, *machine;
	const struct page_geometry *geometry;
	struct page_reference *references;
	size_t count;
	struct page_sites sites;
	struct page_model *model;
	double model_s;
};

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
	fprintf(stderr, "page_size_model: %s\n", what);
	exit(1);
}

static void fill(struct task *task, const struct program *program, uint32_t sites)
{
	task->program = program->name;
	program__fill(program, sites, task->references, task->count);
}

static void read_references(struct task *task, uint32_t sites)
{
	double start = cpu_s();
	uint32_t i;

	task->model = page_model__new(task->geometry, sites, 1);
	if (!task->model || page_model__add(task->model, task->references, task->count) < 0)
		fail("the model failed");
	task->model_s = cpu_s() - start;
	memset(&task->sites, 0, sizeof(task->sites));
	page_model__pages(task->model, &task->sites);
	for (i = 0; i < sites; i++)
		task->sites.latency_share[i] = i % 3 * 0.5;
}

static struct page_result simulate(const struct task *task, const struct page_mapping *mapping)
{
	struct page_result result;

	if (page_simulate(task->geometry, &task->sites, mapping, task->references, task->count,
			  &result) < 0)
		fail("the simulation failed");
	return result;
}

/* None, all, half, and then others. */
static struct page_mapping mapping_number(uint32_t i, uint32_t sites)
{
	uint64_t large = i == 0 ? 0 : i == 1 ? ~0ull : i == 2 ? 0x5555555555555555 : dice(~0ull);
	struct page_mapping mapping;
	uint32_t site;

	memset(&mapping, 0, sizeof(mapping));
	for (site = 0; site < sites; site++)
		mapping.size[site] = large >> site & 1;
	return mapping;
}

static void rate(struct task *task)
{
	const uint32_t mappings = 4;
	double start = cpu_s(), pages = 0, exact;
	struct page_mapping mapping;
	uint32_t i;

	for (i = 0; i < mappings; i++) {
		mapping = mapping_number(i, task->sites.count);
		simulate(task, &mapping);
	}
	exact = (double)task->count * mappings / (cpu_s() - start) / 1e6;
	for (i = 0; i < task->sites.count; i++)
		pages += (double)task->sites.pages[i][0];
	printf("%s %s %.2f %.2f %.1f %.0f\n", task->program, task->machine, exact,
	       (double)task->count / task->model_s / 1e6,
	       (double)page_model__bytes(task->model) / pages, pages);
}

static void compare(struct task *task, const struct page_model *model)
{
	double worst = 0, most = 0, exact, difference;
	struct page_mapping mapping;
	struct page_result result;
	uint32_t i;

	for (i = 0; i < 16; i++) {
		mapping = mapping_number(i, task->sites.count);
		exact = simulate(task, &mapping).walks;
		if (page_model__cost(model, &task->sites, &mapping, &result) < 0)
			fail("the model gave no cost");
		difference = fabs(result.walks / (double)result.references -
				  exact / (double)task->count) *
			     100;
		worst = fmax(worst, difference);
		most = fmax(most, exact / (double)task->count * 100);
	}
	printf("%s %s %.4f %.2f\n", task->program, task->machine, worst, most);
}

static void error(struct task *task)
{
	compare(task, task->model);
}

/* Where a burst begins in its part of the references is random, as phases may be as long. */
static void burst(struct task *task)
{
	const size_t length = 65536, part = 4 * length;
	struct page_model *model = page_model__new(task->geometry, task->sites.count, 1);
	size_t from, start;

	if (!model)
		fail("out of memory");
	for (from = 0; from < task->count; from += part) {
		start = from ? from + dice(part - length) : 0;
		if (start)
			page_model__gap(model);
		if (start < task->count &&
		    page_model__add(model, task->references + start,
				    task->count - start < length ? task->count - start : length) <
			    0)
			fail("the model failed");
	}
	compare(task, model);
	page_model__free(model);
}

static double model_ns(void *data, const struct page_mapping *mapping)
{
	const struct task *task = data;
	struct page_result result;
	int rc = page_model__estimate(task->model, &task->sites, mapping, &result);

	return rc < 0 ? rc : result.time_ns;
}

static double exact_ns(void *data, const struct page_mapping *mapping)
{
	return simulate(data, mapping).time_ns;
}

/* The number of a mapping: bit i is set if site i is large. */
static uint32_t number_of(const struct page_mapping *mapping, uint32_t sites)
{
	uint32_t i, n = 0;

	for (i = 0; i < sites; i++)
		n |= (uint32_t)mapping->size[i] << i;
	return n;
}

static void regret(struct task *task)
{
	uint32_t sites = task->sites.count, m, all = 1u << sites, percent;
	struct page_mapping *mappings = calloc(all, sizeof(*mappings)), chosen;
	double *ns = calloc(all, sizeof(*ns)), best, share;
	struct page_costs costs = {.quick = model_ns, .exact = exact_ns, .data = task};
	struct page_budget budget = {0, 0};
	uint64_t bytes;

	if (!mappings || !ns)
		fail("out of memory");
	for (m = 0; m < all; m++) {
		for (uint32_t i = 0; i < sites; i++)
			mappings[m].size[i] = m >> i & 1;
		ns[m] = simulate(task, &mappings[m]).time_ns;
	}
	bytes = page_mapping__bytes(task->geometry, &task->sites, &mappings[all - 1]);
	for (percent = 1; percent <= 32; percent *= 2) {
		budget.bytes = bytes / 100 * percent;
		for (best = ns[0], m = 0; m < all; m++) {
			if (ns[m] < best && page_mapping__bytes(task->geometry, &task->sites,
								&mappings[m]) <= budget.bytes)
				best = ns[m];
		}
		if (page_choose(task->geometry, &task->sites, &budget, &costs, &chosen) < 0)
			fail("nothing was chosen");
		/* A gain below one in a thousand is none. */
		share = ns[0] - best > ns[0] / 1000
				? (ns[number_of(&chosen, sites)] - best) / (ns[0] - best)
				: 0;
		printf("%s %s %u %.4f\n", task->program, task->machine, percent, share * 100);
	}
	free(mappings);
	free(ns);
}

int main(int argc, char **argv)
{
	void (*run)(struct task *) = NULL;
	struct task task = {0};
	uint32_t sites;
	size_t i, j;

	if (argc == 3)
		run = !strcmp(argv[1], "rate")     ? rate
		      : !strcmp(argv[1], "error")  ? error
		      : !strcmp(argv[1], "burst")  ? burst
		      : !strcmp(argv[1], "regret") ? regret
						   : NULL;
	if (!run)
		fail("use: page_size_model rate|error|burst|regret REFERENCES");
	sites = run == regret ? 6 : 16;
	task.count = strtoull(argv[2], NULL, 10);
	task.references = malloc((task.count + 1) * sizeof(*task.references));
	if (!task.references)
		fail("out of memory");
	for (i = 0; i < COUNT(programs); i++) {
		fill(&task, &programs[i], sites);
		for (j = 0; j < COUNT(machines); j++) {
			task.geometry = &machines[j].geometry;
			task.machine = machines[j].name;
			read_references(&task, sites);
			run(&task);
			page_model__free(task.model);
			fflush(stdout);
		}
	}
	free(task.references);
	return 0;
}
