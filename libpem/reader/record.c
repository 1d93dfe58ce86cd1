/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record.c - the fields of a record that the reader, or the producer, has checked
 *
 * Not here: checking (pem_event__record_bytes in record_bytes.c).
 */
#include "reader.h"
#include "sized.h"
#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A number of any type, as it lies in the record. */
struct number {
	enum { UNSIGNED, SIGNED, FLOATING } kind;
	uint64_t u;
	int64_t i;
	double f;
};

/* Return whether a record was read and has a field of this number. */
static inline bool has_field(const struct pem_record *record, unsigned field)
{
	return record && record->event && field < record->event->field_count;
}

static struct number load(const struct pem_record *record, unsigned field)
{
	struct number n = {.kind = UNSIGNED};
	const struct pem_field *f;
	uint64_t bits = 0;
	size_t bytes;
	float single;

	if (!has_field(record, field))
		return n;
	f = &record->event->fields[field];
	bytes = pem_type__bytes(f->type);
	/* strings, lists and arrays have 0 bytes here */
	memcpy(&bits, record->data + f->offset, bytes);
	switch (f->type) {
	case PEM_TYPE_INT8:
	case PEM_TYPE_INT16:
	case PEM_TYPE_INT32:
	case PEM_TYPE_INT64:
		n.kind = SIGNED;
		n.i = (int64_t)(bits << (64 - bytes * 8)) >> (64 - bytes * 8);
		break;
	case PEM_TYPE_FLOAT32:
		n.kind = FLOATING;
		memcpy(&single, record->data + f->offset, sizeof(single));
		n.f = (double)single;
		break;
	case PEM_TYPE_FLOAT64:
		n.kind = FLOATING;
		memcpy(&n.f, &bits, sizeof(n.f));
		break;
	default:
		n.u = bits;
	}
	return n;
}

uint64_t pem_record__u64(const struct pem_record *record, unsigned field)
{
	struct number n = load(record, field);

	if (n.kind == UNSIGNED)
		return n.u;
	if (n.kind == SIGNED)
		return (uint64_t)n.i;
	if (!(n.f > 0)) /* also true for a NaN */
		return 0;
	return n.f < 18446744073709551616.0 ? (uint64_t)n.f : UINT64_MAX;
}

int64_t pem_record__i64(const struct pem_record *record, unsigned field)
{
	struct number n = load(record, field);

	if (n.kind == UNSIGNED)
		return (int64_t)n.u;
	if (n.kind == SIGNED)
		return n.i;
	if (n.f != n.f)
		return 0;
	if (n.f >= 9223372036854775808.0)
		return INT64_MAX;
	return n.f > -9223372036854775808.0 ? (int64_t)n.f : INT64_MIN;
}

double pem_record__f64(const struct pem_record *record, unsigned field)
{
	struct number n = load(record, field);

	return n.kind == UNSIGNED ? (double)n.u : n.kind == SIGNED ? (double)n.i : n.f;
}

/* Return where the tail of a field begins: behind the tails of the fields before it. */
static const uint8_t *tail(const struct pem_record *record, unsigned field, uint32_t *count)
{
	const struct pem_event *event = record->event;
	size_t at = event->fixed_bytes, size;
	const struct pem_field *f;
	unsigned i;

	for (i = 0;; i++) {
		f = &event->fields[i];
		if (f->type == PEM_TYPE_LIST) {
			size = pem_type__bytes(f->element_type);
			at = (at + size - 1) & ~(size - 1);
			memcpy(count, record->data + f->offset, sizeof(*count));
			if (i == field)
				return record->data + at;
			at += *count * size;
		} else if (f->type == PEM_TYPE_STRING) {
			if (i == field)
				return record->data + at;
			at += strlen((const char *)record->data + at) + 1;
		}
	}
}

const char *pem_record__string(const struct pem_record *record, unsigned field)
{
	uint32_t count;

	if (!has_field(record, field) || record->event->fields[field].type != PEM_TYPE_STRING)
		return "";
	return (const char *)tail(record, field, &count);
}

uint32_t pem_record__list(const struct pem_record *record, unsigned field, const void **elements)
{
	const struct pem_field *f;
	uint32_t count = 0;

	if (!elements)
		return 0;
	*elements = NULL;
	if (!has_field(record, field))
		return 0;
	f = &record->event->fields[field];
	if (f->type == PEM_TYPE_ARRAY) {
		*elements = record->data + f->offset;
		return f->max_count;
	}
	if (f->type != PEM_TYPE_LIST)
		return 0;
	*elements = tail(record, field, &count);
	return count;
}

/* --- what belongs together --- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
	const uint8_t *p = bytes;

	while (count--)
		hash = (hash ^ *p++) * 1099511628211ull;
	return hash;
}

/*
 * A number has the same hash in every width, because the event at the other end may store it in
 * another width.
 */
static uint64_t hash_field(uint64_t hash, const struct pem_record *record, unsigned field)
{
	const char *text;
	uint64_t value;

	if (record->event->fields[field].type == PEM_TYPE_STRING) {
		text = pem_record__string(record, field);
		return hash_bytes(hash, text, strlen(text) + 1);
	}
	value = (uint64_t)pem_record__i64(record, field);
	return hash_bytes(hash, &value, sizeof(value));
}

uint64_t pem_record__key(const struct pem_record *record, enum pem_role address)
{
	const struct pem_event *event = record ? record->event : NULL;
	uint64_t hash = 14695981039346656037ull;
	uint32_t index[2] = {0, 0};
	unsigned i, role;
	int is_block;

	if (!event || event->scope == PEM_SCOPE_NONE)
		return 0;
	is_block = event->meaning == PEM_MEANS_ALLOCATION || event->meaning == PEM_MEANS_RELEASE;
	hash = hash_bytes(hash, event->group, strlen(event->group) + 1);
	if (event->scope == PEM_SCOPE_THREAD || event->scope == PEM_SCOPE_PROCESS)
		index[0] = record->pid;
	if (event->scope == PEM_SCOPE_THREAD)
		index[1] = record->tid;
	else if (event->scope == PEM_SCOPE_CPU)
		index[1] = record->cpu;
	hash = hash_bytes(hash, index, sizeof(index));
	for (i = 0; i < event->field_count; i++) {
		role = event->fields[i].role;
		if (role == PEM_ROLE_KEY || (is_block && role == (unsigned)address))
			hash = hash_field(hash, record, i);
	}
	return hash ? hash : 1;
}

/*
 * Append to a text that has used bytes, or would have them if it were not full. Returns the new
 * used.
 */
static size_t append(char *text, size_t bytes, size_t used, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static size_t append(char *text, size_t bytes, size_t used, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(used < bytes ? text + used : NULL, used < bytes ? bytes - used : 0, format,
		      args);
	va_end(args);
	return n > 0 ? used + (size_t)n : used;
}

int pem_record__is_marker(const struct pem_record *record)
{
	int field = record && record->event && record->event->meaning == PEM_MEANS_SETS_THREAD
			    ? pem_event__field_by_role(record->event, PEM_ROLE_STATE)
			    : -1;

	return field >= 0 && pem_record__u64(record, (unsigned)field) == PEM_NO_SWITCH;
}

size_t pem_record__words(const struct pem_record *record, unsigned field, char *text, size_t bytes)
{
	const struct pem_field *f;
	uint64_t value, rest, bits;
	size_t used = 0;
	unsigned i;

	if (!text)
		bytes = 0;
	if (bytes)
		*text = 0;
	if (!has_field(record, field))
		return 0;
	f = &record->event->fields[field];
	/* labels of signed fields are sign-extended */
	value = (uint64_t)pem_record__i64(record, field);
	rest = value;
	for (i = 0; i < f->label_count; i++) {
		bits = f->labels[i].value;
		if (bits == value)
			return append(text, bytes, 0, "%s", f->labels[i].name);
	}
	for (i = 0; f->label_kind == PEM_LABELS_FLAGS && i < f->label_count; i++) {
		bits = f->labels[i].value;
		if (!bits || (value & bits) != bits || !(rest & bits))
			continue;
		used = append(text, bytes, used, "%s%s", used ? "|" : "", f->labels[i].name);
		rest &= ~bits;
	}
	if (used && rest)
		used = append(text, bytes, used, "|0x%llx", (unsigned long long)rest);
	return used;
}

int pem_trace__next_resized(struct pem_trace *trace, struct pem_record *record,
			    struct pem_error *error)
{
	struct pem_record whole = {.size = sizeof(whole)};
	int result;

	if (!trace || !record)
		return pem_error__lacks(error, trace ? "record" : "trace");
	result = pem_sized__check(record);
	if (result)
		return pem_error__set(error, result,
				      "the record's size is not set: set it to sizeof(struct "
				      "pem_record)");
	result = pem_trace__next(trace, &whole, error);
	if (result == 1)
		pem_sized__write(record, 0, &whole, sizeof(whole));
	return result;
}
