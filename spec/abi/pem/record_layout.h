/* SPDX-License-Identifier: MIT */
/*
 * record_layout.h - where each field of a record lies: the only code that computes offsets
 *
 *	header (8) | numbers, arrays, and each list's u32 length, in the spec's order, aligned to
 *	their size | tail
 *
 * The tail holds lists and strings in the spec's order. A list's elements start at the next
 * multiple of their size, even if there are none: CTF readers align before an empty sequence too. A
 * string starts at the next byte.
 *
 * Codegen lays out events of specs with it. libpem lays out events that a kernel or binary
 * describes at run time. Not here: what fields mean (event.h), reading records (libpem).
 */
#ifndef PEM_RECORD_LAYOUT_H
#define PEM_RECORD_LAYOUT_H

#include <pem/abi.h>
#include <pem/event.h>

#include <string.h>

/* The properties of a field that decide its offset. */
struct pem_layout_field {
	/* A structure's member: 'structure.member'. NULL: a member of no structure. */
	const char *name;
	uint32_t type, element_type; /* enum pem_type */
	uint32_t max_count; /* as pem_field.max_count */
	uint32_t offset; /* result: as pem_field.offset */
	uint32_t padding; /* result: zero bytes in front of it */
};

struct pem_layout {
	uint64_t fixed_bytes; /* header, fixed fields, list lengths */
	uint64_t max_bytes; /* the longest record, rounded up to 8 */
	int has_tail; /* There is a list or string, so records' lengths vary */
};

/* Return the bytes of a number of this type; 0: the type is no number. */
static inline uint32_t pem_layout_type_bytes(uint32_t type)
{
	switch (type) {
	case PEM_TYPE_UINT8:
	case PEM_TYPE_INT8:
		return 1;
	case PEM_TYPE_UINT16:
	case PEM_TYPE_INT16:
		return 2;
	case PEM_TYPE_UINT32:
	case PEM_TYPE_INT32:
	case PEM_TYPE_FLOAT32:
		return 4;
	case PEM_TYPE_UINT64:
	case PEM_TYPE_INT64:
	case PEM_TYPE_FLOAT64:
	case PEM_TYPE_ADDRESS:
		return 8;
	default:
		return 0;
	}
}

static inline uint64_t pem_layout_align(uint64_t n, uint32_t align)
{
	return (n + align - 1) / align * align;
}

/*
 * Return the bytes that a field takes in the fixed part, 0 for none. A list takes its length there.
 * Set align to the multiple at which the field starts.
 */
static inline uint32_t pem_layout_fixed(const struct pem_layout_field *field, uint32_t *align)
{
	*align = field->type == PEM_TYPE_LIST    ? (uint32_t)sizeof(uint32_t)
		 : field->type == PEM_TYPE_ARRAY ? pem_layout_type_bytes(field->element_type)
						 : pem_layout_type_bytes(field->type);
	return field->type == PEM_TYPE_ARRAY ? *align * field->max_count : *align;
}

/*
 * Return the bytes of the name up to and with its nth dot. They name the n outermost structures of
 * the field. 0: the field lies in fewer structures.
 */
static inline size_t pem_layout_prefix(const char *name, unsigned n)
{
	const char *p = name;

	while (n && (p = strchr(p, '.')) != NULL) {
		p++;
		n--;
	}
	return n ? 0 : (size_t)(p - name);
}

/*
 * Return the alignment of the structures that begin with this field. As in CTF, a structure is
 * aligned like its widest member.
 */
static inline uint32_t pem_layout_structure_align(const struct pem_layout_field *fields,
						  size_t count, size_t index)
{
	const char *name = fields[index].name;
	uint32_t align = 1, member;
	unsigned depth;
	size_t bytes, i;

	for (depth = 1; name && (bytes = pem_layout_prefix(name, depth)) != 0; depth++) {
		if (index && fields[index - 1].name &&
		    !strncmp(fields[index - 1].name, name, bytes))
			continue;
		for (i = index;
		     i < count && fields[i].name && !strncmp(fields[i].name, name, bytes); i++) {
			if (pem_layout_fixed(&fields[i], &member) && member > align)
				align = member;
		}
	}
	return align;
}

/*
 * Compute the offsets of all fields of a record. Sizes are not limited here: the caller checks the
 * result.
 */
static inline void pem_layout_append(struct pem_layout_field *fields, size_t count,
				     struct pem_layout *layout)
{
	uint64_t end = sizeof(struct pem_record_header), offset;
	uint32_t size, align, structure;
	size_t i;

	layout->has_tail = 0;
	for (i = 0; i < count; i++) {
		fields[i].offset = fields[i].padding = 0;
		layout->has_tail |=
			fields[i].type == PEM_TYPE_LIST || fields[i].type == PEM_TYPE_STRING;
		size = pem_layout_fixed(&fields[i], &align);
		if (!size)
			continue;
		structure = pem_layout_structure_align(fields, count, i);
		offset = pem_layout_align(end, structure > align ? structure : align);
		fields[i].padding = (uint32_t)(offset - end);
		fields[i].offset = (uint32_t)offset;
		end = offset + size;
	}
	layout->fixed_bytes = end;
	/*
	 * The end never moves back when a part grows, so the longest parts give the longest record.
	 */
	for (i = 0; i < count; i++) {
		if (fields[i].type == PEM_TYPE_STRING)
			end += fields[i].max_count;
		size = pem_layout_type_bytes(fields[i].element_type);
		if (fields[i].type == PEM_TYPE_LIST && size)
			end = pem_layout_align(end, size) + (uint64_t)size * fields[i].max_count;
	}
	layout->max_bytes = pem_layout_align(end, PEM_RECORD_ALIGN);
}

#endif
