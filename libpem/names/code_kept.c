// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * code_kept.c - reads the names that a trace keeps: its files .pem/code and .pem/data
 *
 * When a recording ends, pem_code__keep (code_save.c) names what was sampled or called while the
 * files are there. The file is text, which may come from anyone. Fields are separated by tabs, and
 * numbers are hexadecimal. Things of one kind are numbered from 0 in the order of their lines:
 *
 *	pem-code 1
 *	object NUMBER BUILD-ID PATH WHY	a program or library, its number as struct pem_object_query
 *					has it; WHY it has no names, or nothing
 *	segment OFFSET BYTES ADDRESS MEMORY	bytes of the last object's file, and in memory
 *	file PATH			a source file
 *	function KERNEL INLINED IDENTITY START LINE FILE NAME
 *	at OWNER OFFSET NAME...		a location, with its names from the innermost outwards
 *
 * OWNER is the number of an object, "k" for the kernel, or "p" and the number of a process; OFFSET
 * is after the instruction (pem/code.h). A NAME is FUNCTION:FILE:LINE. "-" stands for none.
 *
 * A file with an invalid line is not used at all: kept_trouble then says which line it is.
 */
#include "code_map.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kept_object {
	uint64_t number;
	const char *build_id, *path, *trouble;
	size_t first_segment, segment_count;
};

struct kept_name {
	uint32_t function, file, line; /* PEM_CODE_NONE: none */
};

struct kept_location {
	uint64_t owner, offset; /* owner: see kept_owner */
	size_t first_name;
	uint32_t name_count;
};

struct code_kept {
	char *text;
	struct kept_object *objects;
	size_t object_count, object_capacity;
	struct pem_segment *segments;
	size_t segment_count, segment_capacity;
	const char **files;
	size_t file_count, file_capacity;
	struct code_function *functions; /* their texts are of the file; object is not set */
	size_t function_count, function_capacity;
	struct kept_name *names;
	size_t name_count, name_capacity;
	struct kept_location *locations;
	size_t location_count, location_capacity;
	uint64_t multiplier;
	struct pem_number_map object_at; /* key: hash of path and build id */
	struct pem_number_map location_at; /* key: hash of owner and offset */
};

/* --- lines --- */

/* Take the next field off *line, which is NULL after the last one. */
static char *take_field(char **line)
{
	char *field = *line, *tab = field ? strchr(field, '\t') : NULL;

	*line = tab ? tab + 1 : NULL;
	if (tab)
		*tab = '\0';
	return field;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
	uint64_t v = 0;
	const char *c;

	for (c = text; c && *c; c++) {
		int digit = *c >= '0' && *c <= '9'   ? *c - '0'
			    : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10
						     : -1;

		if (digit < 0 || v > (UINT64_MAX >> 4))
			return false;
		v = v << 4 | (unsigned)digit;
	}
	*value = v;
	return c && c > text && v <= most;
}

static bool take_number(char **line, uint64_t most, uint64_t *value)
{
	return parse_number(take_field(line), most, value);
}

/* A number below count, or "-": PEM_CODE_NONE. */
static bool parse_index(const char *text, size_t count, uint32_t *index)
{
	uint64_t value;

	*index = PEM_CODE_NONE;
	if (text && !strcmp(text, "-"))
		return true;
	if (!count || !parse_number(text, count - 1, &value))
		return false;
	*index = (uint32_t)value;
	return true;
}

/* The entry of an object, which is PEM_CODE_NONE if there is none yet. NULL: no memory. */
static uint32_t *object_entry(struct code_kept *k, const char *path, const char *build_id)
{
	uint64_t key = pem_hash__secret_text(0, k->multiplier, path);
	uint32_t *at;

	key = pem_hash__secret_text(key, k->multiplier, build_id);
	/* Another object may have the same hash. */
	while ((at = pem_number_map__at(&k->object_at, key)) && *at != PEM_CODE_NONE &&
	       (strcmp(k->objects[*at].path, path) != 0 ||
		strcmp(k->objects[*at].build_id, build_id) != 0))
		key++;
	return at;
}

static int add_object(struct code_kept *k, char *line)
{
	struct kept_object object = {.first_segment = k->segment_count};
	uint32_t *at;

	if (!take_number(&line, UINT64_MAX, &object.number))
		return -EINVAL;
	object.build_id = take_field(&line);
	object.path = take_field(&line);
	object.trouble = take_field(&line);
	if (!object.trouble || line || k->object_count >= PEM_CODE_NONE)
		return -EINVAL;
	if (pem_grow(&k->objects, sizeof(*k->objects), k->object_count + 1, &k->object_capacity))
		return -ENOMEM;
	at = object_entry(k, object.path, object.build_id);
	if (!at)
		return -ENOMEM;
	if (*at == PEM_CODE_NONE)
		*at = (uint32_t)k->object_count;
	k->objects[k->object_count++] = object;
	return 0;
}

static int add_segment(struct code_kept *k, char *line)
{
	struct pem_segment s;

	if (!k->object_count || !take_number(&line, UINT64_MAX, &s.file_offset) ||
	    !take_number(&line, UINT64_MAX, &s.bytes) ||
	    !take_number(&line, UINT64_MAX, &s.address) ||
	    !take_number(&line, UINT64_MAX, &s.memory_bytes) || line)
		return -EINVAL;
	if (pem_grow(&k->segments, sizeof(*k->segments), k->segment_count + 1,
		     &k->segment_capacity))
		return -ENOMEM;
	k->segments[k->segment_count++] = s;
	k->objects[k->object_count - 1].segment_count++;
	return 0;
}

static int add_file(struct code_kept *k, char *line)
{
	if (!line || strchr(line, '\t'))
		return -EINVAL;
	if (pem_grow(&k->files, sizeof(*k->files), k->file_count + 1, &k->file_capacity))
		return -ENOMEM;
	k->files[k->file_count++] = line;
	return 0;
}

static int add_function(struct code_kept *k, char *line)
{
	struct code_function f = {.is_kernel = false};
	uint64_t is_kernel, is_inlined, number;
	uint32_t file;

	if (!take_number(&line, 1, &is_kernel) || !take_number(&line, 1, &is_inlined) ||
	    !take_number(&line, UINT64_MAX, &f.identity) ||
	    !take_number(&line, UINT64_MAX, &f.start) || !take_number(&line, UINT32_MAX, &number) ||
	    !parse_index(take_field(&line), k->file_count, &file) || !line || strchr(line, '\t'))
		return -EINVAL;
	if (k->function_count >= PEM_CODE_NONE ||
	    pem_grow(&k->functions, sizeof(*k->functions), k->function_count + 1,
		     &k->function_capacity))
		return -ENOMEM;
	f.is_kernel = is_kernel != 0;
	f.is_inlined = is_inlined != 0;
	f.line = (uint32_t)number;
	f.file = file != PEM_CODE_NONE ? (char *)k->files[file] : NULL;
	f.name = line;
	k->functions[k->function_count++] = f;
	return 0;
}

static bool parse_owner(const struct code_kept *k, const char *text, uint64_t *owner)
{
	uint64_t number = 0;
	enum kept_owner_kind kind = KEPT_OBJECT;

	if (text && !strcmp(text, "k")) {
		*owner = kept_owner(KEPT_KERNEL, 0);
		return true;
	}
	if (text && *text == 'p') {
		kind = KEPT_PROCESS;
		text++;
	}
	if (!parse_number(text, UINT32_MAX, &number) ||
	    (kind == KEPT_OBJECT && number >= k->object_count))
		return false;
	*owner = kept_owner(kind, (uint32_t)number);
	return true;
}

static int add_name(struct code_kept *k, char *text)
{
	char *file = strchr(text, ':'), *line = file ? strchr(file + 1, ':') : NULL;
	struct kept_name name;
	uint64_t number;

	if (!line)
		return -EINVAL;
	*file++ = '\0';
	*line++ = '\0';
	if (!parse_index(text, k->function_count, &name.function) ||
	    !parse_index(file, k->file_count, &name.file) ||
	    !parse_number(line, UINT32_MAX, &number))
		return -EINVAL;
	name.line = (uint32_t)number;
	if (pem_grow(&k->names, sizeof(*k->names), k->name_count + 1, &k->name_capacity))
		return -ENOMEM;
	k->names[k->name_count++] = name;
	return 0;
}

static uint32_t *entry_of(struct code_kept *k, uint64_t owner, uint64_t offset)
{
	uint64_t key =
		pem_hash__join(pem_hash__join(0, k->multiplier, owner), k->multiplier, offset);
	uint32_t *at;

	while ((at = pem_number_map__at(&k->location_at, key)) && *at != PEM_CODE_NONE &&
	       (k->locations[*at].owner != owner || k->locations[*at].offset != offset))
		key++;
	return at;
}

static int add_location(struct code_kept *k, char *line)
{
	struct kept_location location = {.first_name = k->name_count};
	uint32_t *at;
	int rc = 0;

	if (!parse_owner(k, take_field(&line), &location.owner) ||
	    !take_number(&line, UINT64_MAX, &location.offset) || !line)
		return -EINVAL;
	while (!rc && line && location.name_count++ < CODE_NAMES_MAX)
		rc = add_name(k, take_field(&line));
	if (rc || line)
		return rc ? rc : -EINVAL;
	if (k->location_count >= PEM_CODE_NONE ||
	    pem_grow(&k->locations, sizeof(*k->locations), k->location_count + 1,
		     &k->location_capacity))
		return -ENOMEM;
	at = entry_of(k, location.owner, location.offset);
	if (!at)
		return -ENOMEM;
	*at = (uint32_t)k->location_count;
	k->locations[k->location_count++] = location;
	return 0;
}

static int add_line(struct code_kept *k, char *line, unsigned number)
{
	static const struct {
		const char *word;
		int (*add)(struct code_kept *k, char *line);
	} kinds[] = {{"object", add_object},
		     {"segment", add_segment},
		     {"file", add_file},
		     {"function", add_function},
		     {"at", add_location}};
	size_t i;

	if (number == 1)
		return strcmp(line, "pem-code 1") ? -EINVAL : 0;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t bytes = strlen(kinds[i].word);

		if (!strncmp(line, kinds[i].word, bytes) && line[bytes] == '\t')
			return kinds[i].add(k, line + bytes + 1);
	}
	return -EINVAL;
}

void code__free_kept(struct code_kept *k)
{
	if (!k)
		return;
	free(k->text);
	free(k->objects);
	free(k->segments);
	free(k->files);
	free(k->functions);
	free(k->names);
	free(k->locations);
	pem_number_map__free(&k->object_at);
	pem_number_map__free(&k->location_at);
	free(k);
}

int code__parse_kept(char *text, struct code_kept **kept, unsigned *number)
{
	struct code_kept *k = calloc(1, sizeof(*k));
	char *line, *end;
	int rc = 0;

	*number = 0;
	if (!k) {
		free(text);
		return -ENOMEM;
	}
	k->multiplier = pem_hash__multiplier();
	k->text = text;
	for (line = text; line && !rc && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		rc = add_line(k, line, ++*number);
	}
	if (rc || !*number) {
		code__free_kept(k);
		k = NULL;
	}
	*kept = k;
	return rc;
}

int code__read_kept(struct pem_code *code, const struct pem_trace *trace)
{
	char *text = NULL;
	unsigned number;
	int rc = pem_trace__read_kept(trace, code->is_data ? "data" : "code", &text);

	if (rc) {
		free(text);
		return rc == -ENOMEM ? rc : 0;
	}
	/* Without them names are looked for in files, as of older traces. */
	rc = code__parse_kept(text, &code->kept, &number);
	if (rc == -EINVAL)
		snprintf(code->kept_trouble, sizeof(code->kept_trouble),
			 "the names that the trace keeps (.pem/%s) are damaged in line %u",
			 code->is_data ? "data" : "code", number);
	return rc == -ENOMEM ? rc : 0;
}

/* --- look-up --- */

int64_t code__kept_object(struct pem_code *code, struct code_object *object)
{
	uint32_t *at;

	if (!code->kept)
		return PEM_CODE_NONE;
	at = object_entry(code->kept, object->path, object->build_id);
	if (!at)
		return -ENOMEM;
	if (*at != PEM_CODE_NONE && !object->told.number)
		object->told.number = code->kept->objects[*at].number;
	return *at;
}

const char *code__kept_trouble(const struct pem_code *code, uint32_t object)
{
	const char *trouble = code->kept->objects[object].trouble;

	return *trouble ? trouble : NULL;
}

/* NULL: it has none, as all objects may have none. */
static const struct pem_segment *segments_of(const struct pem_code *code,
					     const struct kept_object *object)
{
	return object->segment_count ? code->kept->segments + object->first_segment : NULL;
}

int code__take_segments(const struct pem_code *code, struct code_object *object, uint32_t kept)
{
	const struct kept_object *o = &code->kept->objects[kept];

	return code__keep_segments(object, segments_of(code, o), o->segment_count);
}

bool code__kept_offset(const struct pem_code *code, uint32_t object, uint64_t *offset)
{
	const struct kept_object *o = &code->kept->objects[object];

	return pem_segments__offset(segments_of(code, o), o->segment_count, code->is_data, offset);
}

int code__name_kept(struct pem_code *code, struct code_location *location, uint64_t owner)
{
	struct code_kept *k = code->kept;
	const struct kept_location *kept;
	struct code_name *names;
	uint32_t *at, i;
	int rc = 0;

	if (!k)
		return 0;
	at = entry_of(k, owner, location->told.offset);
	if (!at)
		return -ENOMEM;
	if (*at == PEM_CODE_NONE)
		return 0;
	kept = &k->locations[*at];
	names = code__make_names(location, kept->name_count);
	for (i = 0; names && !rc && i < kept->name_count; i++) {
		const struct kept_name *name = &k->names[kept->first_name + i];
		const struct code_function *f =
			name->function != PEM_CODE_NONE ? &k->functions[name->function] : NULL;
		struct code_function like = f ? *f : (struct code_function){0};

		names[i].line = name->line;
		if (name->file != PEM_CODE_NONE)
			rc = code__copy(k->files[name->file], &names[i].file);
		like.object = location->told.object != PEM_CODE_NONE
				      ? code->objects[location->told.object].same
				      : PEM_CODE_NONE;
		if (!rc && f)
			rc = code__name_function(code, &names[i], &like, like.name, like.file);
	}
	return names && !rc ? 1 : -ENOMEM;
}

bool code__keeps_kernel(const struct pem_code *code)
{
	const struct code_kept *k = code->kept;
	size_t i;

	for (i = 0; k && i < k->location_count; i++)
		if (k->locations[i].owner == kept_owner(KEPT_KERNEL, 0))
			return true;
	return false;
}
