/* SPDX-License-Identifier: MIT */
/* html_lanes_write.c - writes lanes of threads as JSON for the page (page/lanes.js reads it) */
#include "html_json.h"
#include "html_lanes.h"

#include <inttypes.h>
#include <stdlib.h>

#define PATH_BYTES 128u
#define PATH_SUMS_MAX 8u /* threads of the critical path */

/* A thread's number becomes its lane on the page, in a copy of the row. */
static uint32_t lane_index(const struct pem_html_lanes *lanes, uint32_t number)
{
	if (number >= lanes->count || !lanes->lane[number])
		return PEM_HTML_NOTHING;
	return lanes->lane[number]->index;
}

static void name_lanes(const struct pem_html_lanes *lanes, struct pem_html_row *row, int both)
{
	size_t i;

	for (i = 0; i < row->count; i++) {
		if (both)
			row->slice[i].what = lane_index(lanes, row->slice[i].what);
		row->slice[i].extra = lane_index(lanes, row->slice[i].extra);
	}
}

static void write_thread(FILE *out, const struct pem_pass_thread *thread)
{
	const struct pem_pass_process *process = thread->process;

	pem_json__key_u64(out, "tid", thread->tid);
	fputc(',', out);
	pem_json__key_string(out, "name", thread->name, sizeof(thread->name));
	fputc(',', out);
	pem_json__key_u64(out, "pid", process ? process->pid : 0);
	fprintf(out, ",\"process\":%" PRId64 ",", process ? (int64_t)process->number : -1);
	pem_json__key_string(out, "process_name", process ? process->name : "",
			     process ? sizeof(process->name) : 1);
	fputc(',', out);
	pem_json__key_string(out, "arguments",
			     process && process->arguments ? process->arguments : "", 256);
}

static void write_lane(FILE *out, const struct pem_html_lanes *lanes, struct pem_html_lane *lane)
{
	unsigned i;
	int more = 0;

	name_lanes(lanes, &lane->states, 0);
	fputc('{', out);
	write_thread(out, lane->thread);
	fprintf(out,
		",\"too_deep\":%" PRIu64 ",\"running_ns\":%" PRIu64 ",\"runnable_ns\":%" PRIu64
		",\"blocked_ns\":%" PRIu64 ",\n\"states\":",
		lane->too_deep, lane->state_ns[PEM_THREAD_RUNNING],
		lane->state_ns[PEM_THREAD_RUNNABLE], lane->state_ns[PEM_THREAD_BLOCKED]);
	pem_html_row__write(out, &lane->states, &lanes->rows);
	fputs(",\n\"depths\":[", out);
	for (i = 0; i < PEM_HTML_LANE_DEPTH; i++) {
		if (!lane->depth[i])
			continue;
		fprintf(out, "%s{\"depth\":%u,\"row\":", more++ ? "," : "", i);
		pem_html_row__write(out, lane->depth[i], &lanes->rows);
		fputc('}', out);
	}
	fputs("]}", out);
}

/* Of the files, those that a slice of the page is on: in the order of the first use. */
static void write_files(FILE *out, const struct pem_html_lanes *lanes, const struct pem_pass *pass)
{
	size_t files = pem_pass__file_count(pass), j;
	uint32_t *written_at = calloc(files + 1, sizeof(*written_at));
	uint32_t i, used = 0;
	unsigned depth;

	fputs("\"files\":[", out);
	for (i = 0; i < lanes->chosen_count; i++) {
		for (depth = 0; depth < PEM_HTML_LANE_DEPTH; depth++) {
			struct pem_html_row *row = lanes->chosen[i]->depth[depth];

			for (j = 0; row && j < row->count; j++) {
				uint32_t *extra = &row->slice[j].extra;

				if (!written_at || *extra >= files) {
					*extra = PEM_HTML_NOTHING;
					continue;
				}
				if (!written_at[*extra]) {
					const struct pem_pass_file *file =
						pem_pass__file(pass, *extra);

					fputs(used ? "," : "", out);
					pem_json__string(out, file->path, PATH_BYTES);
					written_at[*extra] = ++used;
				}
				*extra = written_at[*extra] - 1;
			}
		}
	}
	fputs("],\n", out);
	free(written_at);
}

/* "path":{"ns":n,"known_ns":n,"row":{...},"sums":[{thread, running_ns, ...},...]} */
static void write_path(FILE *out, const struct pem_html_lanes *lanes)
{
	struct pem_html_row row = lanes->path;
	size_t i;

	for (i = 0; i < row.count; i++)
		row.slice[i].what = lane_index(lanes, row.slice[i].what);
	fprintf(out,
		"\"path\":{\"ns\":%" PRIu64 ",\"known_ns\":%" PRIu64 ",\"row\":", lanes->path_ns,
		lanes->path_known_ns);
	pem_html_row__write(out, &row, &lanes->rows);
	fputs(",\n\"sums\":[", out);
	for (i = 0; i < lanes->path_sum_count && i < PATH_SUMS_MAX; i++) {
		const struct pem_html_path_sum *sum = &lanes->path_sums[i];

		fputs(i ? ",{" : "{", out);
		write_thread(out, sum->thread);
		fprintf(out,
			",\"running_ns\":%" PRIu64 ",\"runnable_ns\":%" PRIu64
			",\"blocked_ns\":%" PRIu64 ",\"unknown_ns\":%" PRIu64 "}",
			sum->ns[PEM_THREAD_RUNNING], sum->ns[PEM_THREAD_RUNNABLE],
			sum->ns[PEM_THREAD_BLOCKED], sum->ns[PEM_THREAD_UNKNOWN]);
	}
	fputs("]},\n", out);
}

void pem_html_lanes__write(FILE *out, const struct pem_html_lanes *lanes,
			   const struct pem_pass *pass)
{
	struct pem_html_row messages = lanes->messages;
	uint32_t i;

	fprintf(out,
		"\"lanes\":{\"bin_ns\":%" PRIu64 ",\"bins\":%" PRIu32 ",\"left_out\":%" PRIu32 ",",
		lanes->rows.bin_ns, lanes->rows.bins, lanes->left_out);
	write_files(out, lanes, pass);
	write_path(out, lanes);
	fputs("\"list\":[", out);
	for (i = 0; i < lanes->chosen_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_lane(out, lanes, lanes->chosen[i]);
	}
	name_lanes(lanes, &messages, 1);
	fputs("],\n\"messages\":", out);
	pem_html_row__write(out, &messages, &lanes->rows);
	fputs("}", out);
}
