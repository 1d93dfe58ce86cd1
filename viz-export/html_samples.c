/* SPDX-License-Identifier: MIT */
/*
 * html_samples.c - writes samples, and bytes of allocations, by stack as data of the page
 *
 * "functions" are [name, object, of the kernel], "nodes" [parent, function, bins]: bins has for
 * each bin with samples of the node itself the number of empty ones before it, and their number. A
 * node without a parent (-1) is a process's, and its function is the number of that. Of allocations
 * a node has bins for each amount of enum pem_amount, in that order; unless "knows_ends" is true,
 * those after the first two are not known.
 */
#include "cxx_names.h"
#include "html_data.h"
#include "html_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 256u

/* A name of C++ as people write it. */
static void write_name(FILE *out, const char *function)
{
	char *name = strdup(function);

	if (name)
		pem_cxx__shorten(name);
	pem_json__string(out, name ? name : function, TEXT_BYTES);
	free(name);
}

static void write_functions(FILE *out, const struct pem_samples *samples)
{
	size_t i;

	fputs("\"functions\":[", out);
	for (i = 0; i < samples->function_count; i++) {
		const struct pem_samples_function *function = &samples->functions[i];

		fputs(i ? ",\n[" : "\n[", out);
		write_name(out, function->name);
		fputc(',', out);
		pem_json__string(out, function->object, TEXT_BYTES);
		fprintf(out, ",%d]", function->is_kernel);
	}
	fputs("],\n", out);
}

static void write_bins(FILE *out, const struct pem_samples *samples,
		       const struct pem_samples_entry *entry, const struct pem_samples_entry *end,
		       enum pem_amount amount)
{
	const char *before = "";
	uint32_t next = 0;

	fputs(",[", out);
	for (; entry < end; entry++) {
		uint64_t value = pem_samples__value(samples, entry, amount);

		if (!value)
			continue;
		fprintf(out, "%s%" PRIu32 ",%" PRIu64, before, entry->bin - next, value);
		next = entry->bin + 1u;
		before = ",";
	}
	fputc(']', out);
}

static void write_stacks(FILE *out, const struct pem_html_data *data, const char *name,
			 const struct pem_samples *samples)
{
	unsigned amounts = samples->of == PEM_SAMPLES_OF_ALLOCATIONS ? PEM_AMOUNTS : 1, i;
	const struct pem_samples_entry *entry = samples->entries, *first;
	const struct pem_samples_entry *end = entry + samples->entry_count;
	uint32_t node;

	fprintf(out,
		"\"%s\":{\"count\":%" PRIu64 ",\"bin_ns\":%" PRIu64 ",\"bins\":%" PRIu32
		",\"knows_ends\":%s,",
		name, samples->count, data->coarse_ns, data->coarse_count,
		samples->knows_ends ? "true" : "false");
	write_functions(out, samples);
	fputs("\"nodes\":[", out);
	for (node = 0; node < samples->node_count; node++) {
		const struct pem_samples_node *n = &samples->nodes[node];

		fprintf(out, "%s[%" PRId32 ",%" PRIu32, node ? ",\n" : "\n",
			n->parent == PEM_SAMPLES_NONE ? -1 : (int32_t)n->parent, n->function);
		for (first = entry; entry < end && entry->node == node;)
			entry++;
		for (i = 0; i < amounts; i++)
			write_bins(out, samples, first, entry, i);
		fputc(']', out);
	}
	fputs("]}", out);
}

void pem_html_samples__write(FILE *out, const struct pem_html_data *data)
{
	write_stacks(out, data, "samples", &data->samples);
	fputs(",\n", out);
	write_stacks(out, data, "allocations", &data->allocations);
}
