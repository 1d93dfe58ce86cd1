// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * code_save.c - names what a trace has and keeps the names with it (format: code_kept.c)
 *
 * Named are the addresses that pem report and the exporters name: of samples and their callers, of
 * whoever called or allocated, and of variables.
 */
#include "code_map.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK_RECORDS 4096u

/* What an event has to be named. */
struct kind {
	bool is_object; /* says what lies in memory */
	bool is_sample; /* of code */
	int code; /* field, or -1 */
	int data; /* field with an address of data, or -1 */
};

static struct kind kind_of(const struct pem_event *event)
{
	struct kind kind = {.code = -1, .data = -1};
	int address;

	kind.is_object =
		event->meaning == PEM_MEANS_OBJECT ||
		(event->source_kind == PEM_SOURCE_SAMPLE && event->meaning == PEM_MEANS_NOTHING);
	kind.code = kind.is_object ? -1 : pem_event__field_by_role(event, PEM_ROLE_CODE);
	kind.is_sample = event->meaning == PEM_MEANS_SAMPLE && kind.code >= 0;
	address = pem_event__field_by_role(event, PEM_ROLE_ADDRESS);
	if (event->source_kind == PEM_SOURCE_SAMPLE && event->meaning == PEM_MEANS_ACCESS)
		kind.data = address;
	/* The lock that an interval is about. */
	if (event->meaning == PEM_MEANS_INTERVAL_BEGIN) {
		int key = pem_event__field_by_role(event, PEM_ROLE_KEY);

		if (key >= 0 && event->fields[key].type == PEM_TYPE_ADDRESS)
			kind.data = key;
	}
	return kind;
}

struct keeping {
	struct pem_code *code, *data;
	const struct pem_model *model;
	struct kind *kinds; /* by the event's index in the model */
	size_t kind_count;
	struct pem_number_map kind_at; /* key: the event's address */
};

/* Does the trace have records with addresses of code or data? */
static bool has_any(const struct keeping *k, const struct pem_trace *trace)
{
	size_t i;

	for (i = 0; i < k->kind_count; i++)
		if ((k->kinds[i].code >= 0 || k->kinds[i].data >= 0) &&
		    pem_trace__event_balance(trace, pem_model__event(k->model, i)).delivered)
			return true;
	return false;
}

static int take(struct keeping *k, const struct kind *kind, const struct pem_record *record,
		const struct pem_pass_process *process)
{
	int64_t rc = 0;

	if (kind->is_object) {
		if (record->event->meaning == PEM_MEANS_OBJECT)
			rc = pem_code__map(k->code, record);
		return rc ? (int)rc : pem_code__map(k->data, record);
	}
	if (kind->is_sample)
		rc = pem_code__sample(k->code, record, process);
	else if (kind->code >= 0)
		rc = pem_code__locate(k->code, record->pid, process,
				      pem_record__u64(record, (unsigned)kind->code));
	if (rc >= 0 && kind->data >= 0)
		rc = pem_code__locate(k->data, record->pid, process,
				      pem_record__u64(record, (unsigned)kind->data) + 1);
	return rc < 0 ? (int)rc : 0;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int read_all(struct keeping *k, struct pem_trace *trace, uint64_t limit_ns,
		    struct pem_error *error)
{
	struct pem_pass_options options = {.size = sizeof(options),
					   .without = PEM_PASS_BLOCKS | PEM_PASS_MESSAGES |
						      PEM_PASS_INTERVALS};
	struct pem_pass *pass = pem_pass__new(trace, &options, error);
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	uint64_t end = now_ns() + limit_ns, records = 0;
	struct pem_error damage = {""};
	int rc = 0, got;

	if (!pass)
		return -errno;
	while (!rc && (got = pem_pass__next(pass, &record, &around, &damage)) != 0) {
		uint32_t i = got == 1 ? pem_number_map__value(&k->kind_at, (uintptr_t)record.event)
				      : PEM_CODE_NONE;

		if (got < 0 && got != -EINVAL)
			rc = got;
		else if (i < k->kind_count)
			rc = take(k, &k->kinds[i], &record, around.process);
		if (++records % CHECK_RECORDS == 0 && now_ns() > end)
			break;
	}
	pem_pass__free(pass);
	return rc;
}

/* --- writing --- */

/* While a file is written: which objects and functions it has, and under which number. */
struct saving {
	const struct pem_code *code;
	FILE *out;
	uint32_t only; /* write what is of objects of this one's file; PEM_CODE_NONE: all */
	uint32_t *objects, object_count; /* by the code's number; PEM_CODE_NONE: it is not kept */
	uint32_t *functions, function_count; /* the same; PEM_CODE_NONE: no location is in it */
	const char **files;
	size_t file_count, file_capacity;
	struct pem_number_map file_at;
};

/* A path from the trace may hold anything. One with control characters is not kept. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void put_objects(struct saving *s)
{
	const struct pem_code *code = s->code;
	uint32_t i, n;

	for (i = 0; i < code->object_count; i++) {
		const struct code_object *object = &code->objects[i];

		s->objects[i] = PEM_CODE_NONE;
		if (!object->is_named || !is_plain(object->path) || !is_plain(object->build_id) ||
		    (s->only != PEM_CODE_NONE && object->same != code->objects[s->only].same))
			continue;
		s->objects[i] = s->object_count++;
		fprintf(s->out, "object\t%" PRIx64 "\t%s\t%s\t%s\n", object->told.number,
			object->build_id, object->path,
			object->trouble && is_plain(object->trouble) ? object->trouble : "");
		for (n = 0; n < object->segment_count; n++)
			fprintf(s->out,
				"segment\t%" PRIx64 "\t%" PRIx64 "\t%" PRIx64 "\t%" PRIx64 "\n",
				object->segments[n].file_offset, object->segments[n].bytes,
				object->segments[n].address, object->segments[n].memory_bytes);
	}
}

/* Put the line of a source file, once. Returns its number, PEM_CODE_NONE, or -ENOMEM. */
static int64_t put_file(struct saving *s, const char *path)
{
	uint64_t key = path ? pem_hash__text(PEM_HASH_START, path) : 0;
	uint32_t *at;

	if (!path)
		return PEM_CODE_NONE;
	while ((at = pem_number_map__at(&s->file_at, key)) && *at != PEM_CODE_NONE &&
	       strcmp(s->files[*at], path) != 0)
		key++;
	if (!at)
		return -ENOMEM;
	if (*at != PEM_CODE_NONE)
		return *at;
	if (pem_grow(&s->files, sizeof(*s->files), s->file_count + 1, &s->file_capacity))
		return -ENOMEM;
	fprintf(s->out, "file\t%s\n", path);
	s->files[s->file_count] = path;
	*at = (uint32_t)s->file_count++;
	return *at;
}

static void put_index(FILE *out, int64_t index, const char *end)
{
	if (index == PEM_CODE_NONE)
		fprintf(out, "-%s", end);
	else
		fprintf(out, "%" PRIx64 "%s", (uint64_t)index, end);
}

/* Is the location one to write? */
static bool is_wanted(const struct saving *s, size_t i)
{
	const struct code_location *location = &s->code->locations[i];
	uint32_t object = location->told.object;

	if (location->same != i || !location->told.name_count)
		return false;
	return object == PEM_CODE_NONE ? s->only == PEM_CODE_NONE
				       : s->objects[object] != PEM_CODE_NONE;
}

/* Find the functions that locations are in. */
static void mark_functions(struct saving *s)
{
	const struct pem_code *code = s->code;
	size_t i, k;

	memset(s->functions, 0xff, code->function_count * sizeof(*s->functions));
	for (i = 0; i < code->location_count; i++) {
		const struct pem_code_location *told = &code->locations[i].told;
		const struct code_name *names = (const struct code_name *)told->names;

		for (k = 0; is_wanted(s, i) && k < told->name_count; k++)
			if (names[k].number != PEM_CODE_NONE)
				s->functions[names[k].number] = 0;
	}
}

static int put_functions(struct saving *s)
{
	size_t i;

	mark_functions(s);
	for (i = 0; i < s->code->function_count; i++) {
		const struct code_function *f = &s->code->functions[i];
		int64_t file;

		if (s->functions[i] == PEM_CODE_NONE)
			continue;
		s->functions[i] = s->function_count++;
		file = put_file(s, f->file);
		if (file < 0)
			return -ENOMEM;
		fprintf(s->out, "function\t%d\t%d\t%" PRIx64 "\t%" PRIx64 "\t%" PRIx32 "\t",
			f->is_kernel, f->is_inlined, f->identity, f->start, f->line);
		put_index(s->out, file, "\t");
		fprintf(s->out, "%s\n", f->name);
	}
	return 0;
}

static int put_location(struct saving *s, const struct code_location *location)
{
	const struct code_name *names = (const struct code_name *)location->told.names;
	int64_t files[CODE_NAMES_MAX];
	uint32_t i;

	for (i = 0; i < location->told.name_count; i++) {
		files[i] = put_file(s, names[i].file);
		if (files[i] < 0)
			return -ENOMEM;
	}
	if (location->told.is_kernel)
		fputs("at\tk", s->out);
	else if (location->told.object == PEM_CODE_NONE)
		fprintf(s->out, "at\tp%" PRIx32, location->told.pid);
	else
		fprintf(s->out, "at\t%" PRIx32, s->objects[location->told.object]);
	fprintf(s->out, "\t%" PRIx64, location->told.offset);
	for (i = 0; i < location->told.name_count; i++) {
		fputc('\t', s->out);
		put_index(s->out,
			  names[i].number != PEM_CODE_NONE ? s->functions[names[i].number]
							   : PEM_CODE_NONE,
			  ":");
		put_index(s->out, files[i], ":");
		fprintf(s->out, "%" PRIx32, names[i].line);
	}
	fputc('\n', s->out);
	return 0;
}

static int put_all(struct saving *s)
{
	size_t i;
	int rc;

	fputs("pem-code 1\n", s->out);
	put_objects(s);
	rc = put_functions(s);
	for (i = 0; !rc && i < s->code->location_count; i++)
		if (is_wanted(s, i))
			rc = put_location(s, &s->code->locations[i]);
	return rc;
}

int code__write(const struct pem_code *code, FILE *out, uint32_t object)
{
	struct saving s = {.code = code, .out = out, .only = object};
	int rc = -ENOMEM;

	s.objects = calloc(code->object_count + 1, sizeof(*s.objects));
	s.functions = calloc(code->function_count + 1, sizeof(*s.functions));
	if (s.objects && s.functions)
		rc = put_all(&s);
	free(s.objects);
	free(s.functions);
	free(s.files);
	pem_number_map__free(&s.file_at);
	return rc;
}

/* Write a file of the trace. Returns 0 or -errno. */
static int save(const struct pem_code *code, struct pem_trace *trace, const char *name)
{
	size_t bytes = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);
	int rc = out ? code__write(code, out, PEM_CODE_NONE) : -ENOMEM;

	if (out && fclose(out))
		rc = -ENOMEM;
	if (!rc)
		rc = pem_trace__write_kept(trace, name, text, bytes);
	free(text);
	return rc;
}

static int prepare(struct keeping *k, struct pem_trace *trace)
{
	size_t i;

	k->model = pem_trace__model(trace);
	k->kind_count = pem_model__count(k->model);
	k->code = pem_code__new();
	k->data = pem_code__new_data();
	k->kinds = calloc(k->kind_count + 1, sizeof(*k->kinds));
	if (!k->code || !k->data || !k->kinds)
		return -ENOMEM;
	for (i = 0; i < k->kind_count; i++) {
		const struct pem_event *event = pem_model__event(k->model, i);
		uint32_t *at;

		k->kinds[i] = kind_of(event);
		if (!k->kinds[i].is_object && k->kinds[i].code < 0 && k->kinds[i].data < 0)
			continue;
		at = pem_number_map__at(&k->kind_at, (uintptr_t)event);
		if (!at)
			return -ENOMEM;
		*at = (uint32_t)i;
	}
	return 0;
}

int pem_code__keep(const char *directory, uint64_t limit_ns, struct pem_error *error)
{
	struct pem_trace *trace = pem_trace__open(directory, error);
	struct keeping k = {.data = NULL};
	int rc;

	if (!trace)
		return -errno;
	rc = prepare(&k, trace);
	if (!rc && has_any(&k, trace)) {
		rc = read_all(&k, trace, limit_ns, error);
		if (!rc)
			rc = code__name_anew(k.code, trace);
		if (!rc)
			rc = code__name_anew(k.data, trace);
		if (!rc && k.code->location_count)
			rc = save(k.code, trace, "code");
		if (!rc && k.data->location_count)
			rc = save(k.data, trace, "data");
	}
	if (rc && error && !error->text[0])
		snprintf(error->text, sizeof(error->text), "names are not kept with the trace: %s",
			 strerror(-rc));
	(void)pem_trace__drop_kept(trace);
	pem_code__free(k.code);
	pem_code__free(k.data);
	free(k.kinds);
	pem_number_map__free(&k.kind_at);
	pem_trace__close(trace);
	return rc;
}
