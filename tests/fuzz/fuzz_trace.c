/* SPDX-License-Identifier: MIT */
/*
 * fuzz_trace.c - libFuzzer: any bytes as the files of a trace
 *
 * The input is split at '|' marks of four bytes "|PEM" into .pem/run, .pem/balance, stream files
 * and .pem/names; an empty run stands for a valid one, and empty names for none. A stream that
 * begins with 'Z' is what follows, compressed. Records that are handed out are read in full, and
 * followed by a pass.
 */
#define _GNU_SOURCE
#include "packed.h"
#include "tests/unit/trace_fixture.h"

#include <pem/context.h>

#include <fcntl.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile uint64_t sink;

static void read_record(const struct pem_trace *trace, const struct pem_record *record)
{
	const void *elements;
	const uint8_t *e;
	uint32_t count, k;
	unsigned i;

	if (!record->event || record->bytes < 8)
		abort();
	for (i = 0; i < record->bytes; i++)
		sink += record->data[i];
	for (i = 0; i < record->event->field_count; i++) {
		sink += pem_record__u64(record, i) + (uint64_t)pem_record__i64(record, i) +
			strlen(pem_record__string(record, i));
		sink += pem_record__f64(record, i) > 0;
		count = pem_record__list(record, i, &elements);
		for (k = 0, e = elements; k < count; k++)
			sink += e[k * pem_type__bytes(record->event->fields[i].element_type)];
	}
	sink += strlen(pem_trace__process_name(trace, record->pid));
}

static void read_trace(const char *path)
{
	struct pem_error error;
	struct pem_trace *trace = pem_trace__open(path, &error);
	struct pem_record record = {.size = sizeof(record)};
	uint64_t last = 0, records = 0, again = 0;
	int rc;

	if (!trace)
		return;
	while ((rc = pem_trace__next(trace, &record, &error)) != 0) {
		if (rc < 0)
			continue;
		if (record.clock < last)
			abort();
		last = record.clock;
		read_record(trace, &record);
		records++;
	}
	pem_trace__rewind(trace);
	while ((rc = pem_trace__next(trace, &record, &error)) != 0)
		again += rc > 0;
	if (records != again)
		abort();
	pem_trace__close(trace);
}

/* A pass ends each interval that it began, and says no span that ends before it begins. */
static void walk_trace(const char *path)
{
	struct pem_pass_options options = {.size = sizeof(options), .open_max = 50};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	struct pem_trace *trace = pem_trace__open(path, NULL);
	struct pem_pass *pass = trace ? pem_pass__new(trace, &options, NULL) : NULL;
	uint64_t begun = 0, ended = 0;
	size_t i;
	int rc;

	if (!pass) {
		pem_trace__close(trace);
		return;
	}
	do {
		rc = pem_pass__next(pass, &record, &around, NULL);
		begun += around.begun != NULL;
		ended += around.ended_count;
		for (i = 0; i < around.ended_count; i++)
			sink += strlen(pem_interval__title(around.ended[i].interval));
		for (i = 0; i < around.span_count; i++)
			if (around.spans[i].end_ns < around.spans[i].begin_ns)
				abort();
		if (around.phase)
			sink += strlen(pem_interval__title(around.phase));
		if (around.block)
			sink += around.block->size;
		if (around.partner)
			sink += around.partner->time_ns;
	} while (rc);
	if (begun != ended)
		abort();
	pem_pass__free(pass);
	pem_trace__close(trace);
}

static struct fixture fixture;
static struct pem_packer *packer; /* NULL: libzstd is missing */

/* Write a stream file; two blocks if it is to be compressed and long enough. */
static void write_stream(const char *name, const uint8_t *data, size_t bytes)
{
	size_t half = bytes / 16 * 8;
	char path[512];
	int fd;

	if (!packer || !bytes || data[0] != 'Z') {
		fixture_write(&fixture, name, data, bytes, "w");
		return;
	}
	fixture_write(&fixture, name, data, 0, "w");
	snprintf(path, sizeof(path), "%s/%s", fixture.path, name);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		abort();
	pem_packer__write(packer, fd, data + 1, half);
	pem_packer__write(packer, fd, data + 1 + half, bytes - 1 - half);
	close(fd);
}

static void clean(void)
{
	pem_packer__free(packer);
	fixture_free(&fixture);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fixture_new(&fixture);
	packer = pem_packer__new(NULL);
	return atexit(clean);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char *const names[] = {".pem/run", ".pem/balance", "k_0",       "k_1",
					    "u_1_0",    "u_1_1",        ".pem/names"};
	const uint8_t *mark;
	size_t i, part;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		mark = bytes ? memmem(data, bytes, "|PEM", 4) : NULL;
		part = mark ? (size_t)(mark - data) : bytes;
		if (i == 0 && part == 0)
			fixture_text(&fixture, names[i], "start_clock=5\nclock_hz=1000000000\n");
		else if (names[i][0] == '.')
			fixture_write(&fixture, names[i], data, part, "w");
		else
			write_stream(names[i], data, part);
		data += part + (mark ? 4 : 0);
		bytes -= part + (mark ? 4 : 0);
	}
	read_trace(fixture.path);
	walk_trace(fixture.path);
	return 0;
}
