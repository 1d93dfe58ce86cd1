/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * format.c - the fields of a tracepoint's probe, from its format file (tracepoint_format.h)
 */
#include "probes.h"
#include "tracepoint_format.h"

#include <errno.h>
#include <string.h>

static bool is_character(const char *type)
{
	return !strcmp(type, "char") || !strcmp(type, "const char");
}

/* Bytes of an array's elements. Unknown elements are delivered as bytes. */
static unsigned element_bytes(const struct pem_format_field *d)
{
	bool is_signed;
	unsigned bytes = pem_format_field__element_bytes(d, &is_signed);

	return bytes ? bytes : 1;
}

static uint8_t unsigned_type(unsigned bytes)
{
	return bytes == 8   ? PEM_TYPE_UINT64
	       : bytes == 4 ? PEM_TYPE_UINT32
	       : bytes == 2 ? PEM_TYPE_UINT16
			    : PEM_TYPE_UINT8;
}

static void set_dynamic(struct pem_probe_field *field, const struct pem_format_field *d)
{
	unsigned bytes = element_bytes(d);

	field->location.kind = d->is_rel_loc ? PEM_LOCATION_REL_LOC : PEM_LOCATION_DATA_LOC;
	if (is_character(d->type)) {
		field->type = PEM_TYPE_STRING;
		field->max_count = PEM_PROBE_STRING_BYTES;
		return;
	}
	field->type = PEM_TYPE_LIST;
	field->element_type = unsigned_type(bytes);
	field->max_count = (uint16_t)(PEM_PROBE_LIST_BYTES / bytes);
	field->base = 16;
}

static void set_bytes(struct pem_probe_field *field, const struct pem_format_field *d)
{
	unsigned bytes = d->is_array ? element_bytes(d) : 1;

	field->location.kind = PEM_LOCATION_BYTES;
	if (d->is_array && is_character(d->type) && d->size > 1) {
		field->type = PEM_TYPE_STRING;
		field->max_count = d->size;
		return;
	}
	if (d->size % bytes || d->offset % bytes)
		bytes = 1;
	field->type = PEM_TYPE_ARRAY;
	field->element_type = unsigned_type(bytes);
	field->max_count = (uint16_t)(d->size / bytes);
	field->base = 16;
}

static void set_number(struct pem_probe_field *field, const struct pem_format_field *d)
{
	pem_probe_field__set_number(field, d->size, d->is_signed);
	field->location.kind = PEM_LOCATION_CONTEXT;
	field->location.load_bytes = (uint8_t)d->size;
	if (pem_format_field__is_pointer(d)) {
		field->type = PEM_TYPE_ADDRESS;
		field->is_signed = false;
		field->base = 16;
	} else if (!d->is_signed && strstr(d->name, "flags")) {
		field->base = 16;
	}
}

static int add(struct pem_probe *probe, const struct pem_format_field *d)
{
	bool is_dynamic = d->is_data_loc || d->is_rel_loc;
	struct pem_probe_field *field;

	if (!d->size || (is_dynamic && (d->size != 4 || d->offset % 4)))
		return is_dynamic ? -EINVAL : 0;
	field = pem_probe__add_field(probe, d->name);
	if (!field)
		return -E2BIG;
	if (is_dynamic)
		set_dynamic(field, d);
	else if (d->is_array || (d->size != 1 && d->size != 2 && d->size != 4 && d->size != 8))
		set_bytes(field, d);
	else
		set_number(field, d);
	field->location.offset = d->offset;
	return 0;
}

int pem_format__parse(struct pem_probe *probe, const char *text)
{
	struct pem_format_field field;
	int rc = pem_format__id(text, &probe->type_id);

	while (!rc && (rc = pem_format__next(&text, &field)) > 0)
		rc = add(probe, &field);
	if (!rc)
		pem_probe__rename_lists(probe);
	return rc;
}
