/* SPDX-License-Identifier: MIT */
/*
 * folded.c - exporter: samples of the CPU, or allocations, as folded stacks, for tools that draw
 * flame graphs
 *
 * A line for each stack: the program and its functions, outermost first, with a semicolon between
 * them, a space, and the number of samples, or an amount of allocations (samples.h). Functions of
 * the kernel end in _[k]. It is what stackcollapse-perf.pl of Brendan Gregg's FlameGraph writes,
 * and inferno, speedscope and others read.
 *
 * Not here: what a stack is called (samples.c), files (output.c).
 */
#include "hash.h"
#include "output.h"
#include "samples.h"

#include <pem/export.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_RECORDS 65536u
#define GROUPS_MAX 65535u /* programs by name; all others are one */
#define DEPTH_MAX 4096u

/* Programs by name, which are the groups of samples. */
struct programs {
	char names[GROUPS_MAX + 1][64];
	uint32_t count;
	struct pem_number_map at; /* key: hash of the name */
};

struct folded {
	struct pem_samples samples;
	struct programs *programs;
	struct pem_export_options options;
};

/* Returns the group of a name, or -ENOMEM. */
static int group_of(struct programs *programs, const char *name)
{
	uint64_t key = pem_hash__text(PEM_HASH_START, name);
	uint32_t *at;

	/* Another name may have the same hash. */
	for (; (at = pem_number_map__at(&programs->at, key)) && *at != UINT32_MAX; key++)
		if (!strcmp(programs->names[*at], name))
			return (int)*at;
	if (!at)
		return -ENOMEM;
	*at = programs->count < GROUPS_MAX ? programs->count++ : GROUPS_MAX;
	snprintf(programs->names[*at], sizeof(programs->names[*at]), "%s",
		 *at < GROUPS_MAX ? name : "others");
	return (int)*at;
}

static int take(struct folded *folded, const struct pem_record *record,
		const struct pem_around *around)
{
	const struct pem_pass_process *process = around->process;
	int group =
		group_of(folded->programs, process && process->name[0] ? process->name : "unknown");

	return group < 0 ? group
			 : pem_samples__record(&folded->samples, record, around, (uint16_t)group);
}

static int read_all(struct folded *folded, struct pem_trace *trace, struct pem_error *error)
{
	struct pem_pass_options options = {
		.size = sizeof(options),
		.without = folded->samples.of == PEM_SAMPLES_OF_CPU ? PEM_PASS_BLOCKS : 0};
	struct pem_pass *pass = pem_pass__new(trace, &options, error);
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	uint64_t total = pem_trace__total_balance(trace).delivered, done = 0;
	struct pem_error damage = {""};
	int rc = 0, got;

	if (!pass)
		return -errno;
	while (!rc && (got = pem_pass__next(pass, &record, &around, &damage)) != 0) {
		if (got < 0 && got != -EINVAL) {
			*error = damage;
			rc = got;
		} else if (got == 1 && pem_samples__wants(&folded->samples, record.event)) {
			rc = take(folded, &record, &around);
		}
		if (++done % PROGRESS_RECORDS == 0 && folded->options.progress)
			folded->options.progress(done, total, folded->options.progress_arg);
	}
	if (!rc)
		rc = pem_samples__finish(&folded->samples, trace, pass, 0);
	pem_pass__free(pass);
	return rc;
}

/* A frame's name, in which separators would be taken for such. */
static void put_name(FILE *out, const char *name)
{
	for (; *name; name++)
		putc(*name == ';' ? ':' : (unsigned char)*name < ' ' ? '?' : *name, out);
}

static void put_stack(FILE *out, const struct folded *folded, uint32_t node)
{
	const struct pem_samples *s = &folded->samples;
	uint32_t path[DEPTH_MAX], depth = 0, at = node;

	for (; s->nodes[at].parent != PEM_SAMPLES_NONE && depth < DEPTH_MAX;
	     at = s->nodes[at].parent)
		path[depth++] = at;
	while (s->nodes[at].parent != PEM_SAMPLES_NONE)
		at = s->nodes[at].parent;
	put_name(out, folded->programs->names[s->nodes[at].function]);
	while (depth-- > 0) {
		const struct pem_samples_function *function =
			&s->functions[s->nodes[path[depth]].function];

		putc(';', out);
		put_name(out, function->name);
		if (function->is_kernel)
			fputs("_[k]", out);
	}
	fprintf(out, " %" PRIu64 "\n", s->nodes[node].own);
}

static int write_all(const struct folded *folded, const char *path, struct pem_error *error)
{
	struct pem_output output;
	uint32_t i;
	int rc;

	if (!folded->samples.count) {
		snprintf(error->text, sizeof(error->text),
			 folded->samples.of == PEM_SAMPLES_OF_CPU
				 ? "the trace has no samples of the CPU: record with -g, or name "
				   "HW::HWPerf::HPMsAndPC with -e"
				 : "the trace has no stacks of allocations: record with -g and -e "
				   "'APP::Libc::*'");
		return -ENODATA;
	}
	if (folded->samples.amount >= PEM_AMOUNT_PEAK && !folded->samples.knows_ends) {
		snprintf(error->text, sizeof(error->text),
			 "not all releases of memory are known: events were lost, or some that "
			 "release memory were not recorded (-e 'APP::Libc::*')");
		return -ENODATA;
	}
	rc = pem_output__open(&output, path, error);
	if (rc)
		return rc;
	for (i = 0; i < folded->samples.node_count; i++)
		if (folded->samples.nodes[i].own)
			put_stack(output.file, folded, i);
	return pem_output__finish(&output, 0, error);
}

/* Begin with the amount that the user chose. Returns 0, -EINVAL or -ENOMEM. */
static int choose(struct folded *folded, const struct pem_trace *trace, struct pem_error *error)
{
	static const char *const names[PEM_AMOUNTS] = {
		[PEM_AMOUNT_BYTES] = "bytes",         [PEM_AMOUNT_CALLS] = "calls",
		[PEM_AMOUNT_PEAK] = "peak",           [PEM_AMOUNT_LEAKED] = "leaked",
		[PEM_AMOUNT_TEMPORARY] = "temporary",
	};
	const char *wanted = folded->options.amount;
	unsigned i = 0;
	int rc;

	if (!wanted || !strcmp(wanted, "samples"))
		return pem_samples__init(&folded->samples, PEM_SAMPLES_OF_CPU, trace);
	while (i < PEM_AMOUNTS && strcmp(wanted, names[i]) != 0)
		i++;
	if (i == PEM_AMOUNTS) {
		snprintf(error->text, sizeof(error->text),
			 "'%.64s' is none of samples, calls, bytes, peak, leaked and temporary",
			 wanted);
		return -EINVAL;
	}
	rc = pem_samples__init(&folded->samples, PEM_SAMPLES_OF_ALLOCATIONS, trace);
	folded->samples.amount = i;
	return rc;
}

static int run(struct pem_trace *trace, const char *path, const struct pem_export_options *options,
	       struct pem_error *error)
{
	struct folded folded = {.programs = calloc(1, sizeof(*folded.programs))};
	struct pem_error unused;
	int rc = pem_export__options(&folded.options, options, error);

	error = error ? error : &unused;
	if (rc) {
		free(folded.programs);
		return rc;
	}
	error->text[0] = '\0';
	rc = choose(&folded, trace, error);
	if (!rc && !folded.programs)
		rc = -ENOMEM;
	if (!rc)
		rc = read_all(&folded, trace, error);
	if (!rc)
		rc = write_all(&folded, path, error);
	if (rc == -ENOMEM && !error->text[0])
		snprintf(error->text, sizeof(error->text), "no memory for the trace's stacks");
	pem_samples__free(&folded.samples);
	if (folded.programs)
		pem_number_map__free(&folded.programs->at);
	free(folded.programs);
	return rc;
}

__attribute__((visibility("default"))) extern const struct pem_exporter pem_exporter;
const struct pem_exporter pem_exporter = {
	.size = sizeof(struct pem_exporter),
	.abi_version = PEM_EXPORT_ABI_VERSION,
	.name = "folded",
	.description = "stacks of the CPU's samples, or of allocations, for flame graph tools",
	.suffix = ".folded",
	.run = run,
	.takes_amount = 1,
};
