/* SPDX-License-Identifier: MIT */
/*
 * kept_names.c - libFuzzer: any bytes as the names that a trace keeps (libpem/names/code_kept.c)
 *
 * The first byte chooses between names of code and of data. Names of all small offsets are asked
 * for, of each kind of owner.
 */
#include "libpem/names/code_map.h"
#include "tests/unit/trace_fixture.h"

#include <pem/code.h>

#define OFFSETS 64u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile uint64_t sink;
static struct fixture fixture;

static void clean(void)
{
	fixture_free(&fixture);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fixture_new(&fixture);
	return atexit(clean);
}

static void name(struct pem_code *code, enum kept_owner_kind kind, uint32_t number, uint64_t offset)
{
	struct code_location location = {.told = {.object = PEM_CODE_NONE, .offset = offset}};
	uint32_t i;

	if (code__name_kept(code, &location, kept_owner(kind, number)) < 0)
		abort();
	for (i = 0; i < location.told.name_count; i++) {
		const struct pem_code_name *found = &location.told.names[i];

		if (found->number != PEM_CODE_NONE)
			sink += strlen(code->functions[found->number].name);
		sink += found->file ? strlen(found->file) : 0;
	}
	code__free_names(&location);
}

static void look_up(struct pem_code *code)
{
	struct code_object object = {.path = (char *)"/bin/p"};
	uint32_t kept = (uint32_t)code__kept_object(code, &object);
	uint64_t offset, file_offset;

	for (offset = 0; offset < OFFSETS; offset++) {
		name(code, KEPT_KERNEL, 0, offset);
		name(code, KEPT_PROCESS, 1, offset);
		if (kept == PEM_CODE_NONE)
			continue;
		name(code, KEPT_OBJECT, kept, offset);
		file_offset = offset;
		sink += code__kept_offset(code, kept, &file_offset) ? file_offset : 0;
	}
	if (kept != PEM_CODE_NONE && code__kept_trouble(code, kept))
		sink += strlen(code__kept_trouble(code, kept));
	if (code__finish_functions(code) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	bool is_data = bytes && data[0] & 1;
	struct pem_code *code = is_data ? pem_code__new_data() : pem_code__new();
	struct pem_trace *trace;

	fixture_text(&fixture, ".pem/run", "start_clock=5\nclock_hz=1000000000\n");
	fixture_write(&fixture, is_data ? ".pem/data" : ".pem/code", data + !!bytes,
		      bytes - !!bytes, "w");
	trace = pem_trace__open(fixture.path, NULL);
	if (!trace || !code || code__read_kept(code, trace) < 0)
		abort();
	look_up(code);
	pem_code__free(code);
	pem_trace__close(trace);
	return 0;
}
