/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record_bytes.c - the length of a record, by its event's description
 *
 * libpem and sources that walk records share this file.
 */
#include <pem/model.h>

#include <errno.h>
#include <string.h>

size_t pem_type__bytes(enum pem_type type)
{
	static const uint8_t bytes[PEM_TYPE_COUNT] = {
		[PEM_TYPE_UINT8] = 1,   [PEM_TYPE_UINT16] = 2,  [PEM_TYPE_UINT32] = 4,
		[PEM_TYPE_UINT64] = 8,  [PEM_TYPE_INT8] = 1,    [PEM_TYPE_INT16] = 2,
		[PEM_TYPE_INT32] = 4,   [PEM_TYPE_INT64] = 8,   [PEM_TYPE_FLOAT32] = 4,
		[PEM_TYPE_FLOAT64] = 8, [PEM_TYPE_ADDRESS] = 8,
	};

	return (unsigned)type < PEM_TYPE_COUNT ? bytes[type] : 0;
}

int pem_event__record_bytes(const struct pem_event *event, const uint8_t *data, size_t available)
{
	size_t at = event ? event->fixed_bytes : 0, size;
	const struct pem_field *field;
	const uint8_t *nul;
	uint32_t count, i;

	if (!event || !data || at > available)
		return -EINVAL;
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING) {
			nul = memchr(data + at, 0, available - at);
			if (!nul)
				return -EINVAL;
			at = (size_t)(nul - data) + 1;
		} else if (field->type == PEM_TYPE_LIST) {
			memcpy(&count, data + field->offset, sizeof(count));
			size = pem_type__bytes(field->element_type);
			at = (at + size - 1) & ~(size - 1);
			if (at > available || count > (available - at) / size)
				return -EINVAL;
			at += count * size;
		}
	}
	return at <= INT32_MAX ? (int)at : -EINVAL;
}
