/* SPDX-License-Identifier: MIT */
/*
 * folded.c - exporter: samples of the CPU as folded stacks, for tools that draw flame graphs
 *
 * A line for each stack: the program and its functions, outermost first, with a semicolon between
 * them, a space, and the number of samples. Functions of the kernel end in _[k]. It is what
 * stackcollapse-perf.pl of Brendan Gregg's FlameGraph writes, and inferno, speedscope and others
 * read.
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

	return group < 0
		       ? group
		       : pem_samples__record(&folded->samples, record, process, (uint16_t)group, 0);
}

static int read_all(struct folded *folded, struct pem_trace *trace, struct pem_error *error)
{
	struct pem_pass_options options = {.size = sizeof(options), .without = PEM_PASS_BLOCKS};
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

static int write_all(struct folded *folded, struct pem_trace *trace, const char *path,
		     struct pem_error *error)
{
	struct pem_output output;
	int rc = pem_samples__finish(&folded->samples, trace, 0);
	uint32_t i;

	if (!rc && !folded->samples.count) {
		snprintf(error->text, sizeof(error->text),
			 "the trace has no samples of the CPU: record with -g, or name "
			 "HW::HWPerf::HPMsAndPC with -e");
		return -ENODATA;
	}
	if (!rc)
		rc = pem_output__open(&output, path, error);
	if (rc)
		return rc;
	for (i = 0; i < folded->samples.node_count; i++)
		if (folded->samples.nodes[i].own)
			put_stack(output.file, folded, i);
	return pem_output__finish(&output, 0, error);
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
	rc = pem_samples__init(&folded.samples, PEM_SAMPLES_OF_CPU);
	if (!folded.programs)
		rc = -ENOMEM;
	if (!rc)
		rc = read_all(&folded, trace, error);
	if (!rc)
		rc = write_all(&folded, trace, path, error);
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
	.description = "stacks of the CPU's samples, for flame graph tools",
	.suffix = ".folded",
	.run = run,
};
