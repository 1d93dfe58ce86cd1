/* SPDX-License-Identifier: MIT */
/*
 * event.h - what an event is: its fields, their types and roles, what it means, where it comes from
 *
 * The names here are those of the specs; the text form of a model, which travels in every trace and in
 * every provider, is defined at the end. Not here: XML (codegen), reading records (pem/trace.h).
 */
#ifndef PEM_EVENT_H
#define PEM_EVENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Spec names: uint8 ... float64, string, list (of eltType). */
enum pem_type {
	PEM_TYPE_NONE = 0,
	PEM_TYPE_UINT8 = 1,
	PEM_TYPE_UINT16,
	PEM_TYPE_UINT32,
	PEM_TYPE_UINT64,
	PEM_TYPE_INT8,
	PEM_TYPE_INT16,
	PEM_TYPE_INT32,
	PEM_TYPE_INT64,
	PEM_TYPE_FLOAT32,
	PEM_TYPE_FLOAT64,
	PEM_TYPE_STRING, /* UTF-8, NUL-terminated, in the tail */
	PEM_TYPE_LIST, /* u32 length at the field's offset, elements in the tail, aligned to their size */
	PEM_TYPE_COUNT
};

/* What an event means to the stages after it. Spec: <meaning value='...'/>. */
enum pem_meaning {
	PEM_MEANS_NOTHING = 0,
	PEM_MEANS_SETS_THREAD, /* 'sets-thread': its cpu now runs the thread and process named by roles */
	PEM_MEANS_THREAD_START, /* 'thread-start': names a new thread, its process and its parent */
	PEM_MEANS_THREAD_END, /* 'thread-end' */
	PEM_MEANS_PROCESS_NAME, /* 'process-name': the current process is now called what role 'name' says */
	PEM_MEANS_INTERVAL_BEGIN, /* 'interval-begin': ended by an interval-end of the same class, thread and name */
	PEM_MEANS_INTERVAL_END, /* 'interval-end' */
	PEM_MEANS_COUNTER, /* 'counter': role 'value' only grows; show its rate */
	PEM_MEANS_GAUGE, /* 'gauge': role 'value' goes up and down; show itself */
	PEM_MEANS_ALLOCATION, /* 'allocation': role 'address', role 'size' */
	PEM_MEANS_RELEASE, /* 'release': role 'address' */
	PEM_MEANS_SAMPLE, /* 'sample': state at a moment of a clock, not an occurrence */
	PEM_MEANING_COUNT
};

/* What a field is to its event's meaning. Spec: <field role='...'>. */
enum pem_role {
	PEM_ROLE_NONE = 0,
	PEM_ROLE_PROCESS, /* 'process': process id the event sets or starts */
	PEM_ROLE_THREAD, /* 'thread' */
	PEM_ROLE_PREVIOUS_THREAD, /* 'previous-thread' */
	PEM_ROLE_PARENT, /* 'parent': parent process id */
	PEM_ROLE_NAME, /* 'name' */
	PEM_ROLE_VALUE, /* 'value' */
	PEM_ROLE_ADDRESS, /* 'address' */
	PEM_ROLE_SIZE, /* 'size' */
	PEM_ROLE_COUNT
};

/* Where an event comes from. Spec: <source type='...' name='...'/>. */
enum pem_source_kind {
	PEM_SOURCE_STUB = 0, /* 'stub': somebody calls the generated stub */
	PEM_SOURCE_TRACEPOINT = 1, /* 'tracepoint': name is 'system:event' */
	PEM_SOURCE_PERF = 2, /* 'perf': name is a libpfm4 event, such as 'perf::TASK-CLOCK' */
	PEM_SOURCE_SAMPLE = 3, /* 'perf-sample': periodic sample with counters; name is its clock */
	PEM_SOURCE_COUNT
};

struct pem_field {
	const char *name;
	const char *description;
	const char *unit; /* "" if none */
	uint8_t type; /* enum pem_type */
	uint8_t element_type; /* of a list */
	uint8_t base; /* 10 or 16: how people read it */
	uint8_t role; /* enum pem_role */
	uint16_t
		offset; /* from the record's first byte; of a list: of its length; of a string: 0 */
	uint16_t max_count; /* most elements of a list, or bytes of a string with its NUL; else 1 */
};

struct pem_event {
	const char *name; /* "LAYER::Class::Specifier" */
	const char *description;
	const char *layer; /* "HW", "OS", "APP" or "CPO" */
	const char *class_name;
	const char *specifier;
	const char *source_name;
	const char *tsdl; /* its CTF declaration */
	const struct pem_field *fields;
	uint32_t id;
	uint16_t field_count;
	uint16_t fixed_bytes; /* header and fixed fields, list lengths included */
	uint16_t max_bytes; /* the longest record, rounded up to 8 */
	uint8_t meaning; /* enum pem_meaning */
	uint8_t source_kind; /* enum pem_source_kind */
};

/*
 * Layout of a record (computed in codegen/layout.c and nowhere else): header; fixed-size fields and, for
 * each list, its u32 length, in the spec's order, each aligned to its size; then the tail: lists and strings
 * in the spec's order, list elements aligned to their size, strings to 1.
 *
 * A model as text: lines ended by \n, cells parted by one tab, no other control character in a cell.
 *
 *	pem-model	1
 *	event	ID	NAME	LAYER	CLASS	SPECIFIER	MEANING	SOURCE	SOURCE-NAME	FIXED	MAX	FIELDS	TSDL-LINES	DESCRIPTION
 *	field	NAME	TYPE	ELEMENT-TYPE	BASE	ROLE	OFFSET	MAX-COUNT	UNIT	DESCRIPTION     (FIELDS of these)
 *	...                                                                                     (TSDL-LINES lines of CTF)
 *
 * ID is 8 hexadecimal digits; MEANING, SOURCE, TYPE, ELEMENT-TYPE and ROLE are the spec's words ('-' for none);
 * the other numbers are decimal; an empty cell is empty.
 */
#define PEM_MODEL_VERSION 1

#ifdef __cplusplus
}
#endif
#endif
