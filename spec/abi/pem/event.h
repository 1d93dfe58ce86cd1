/* SPDX-License-Identifier: MIT */
/*
 * event.h - what an event is: its fields, their types and roles, its meaning, its source
 *
 * The names here are those of the specs. The end of this file defines the text form of a model,
 * which travels in every trace and in every provider. Not here: XML (codegen), reading records
 * (pem/trace.h).
 */
#ifndef PEM_EVENT_H
#define PEM_EVENT_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Spec names: uint8 ... float64, string, list (of eltType), address, array (of eltType). */
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
	/*
	 * A u32 length at the field's offset. The elements are in the tail, aligned to their size.
	 */
	PEM_TYPE_LIST,
	PEM_TYPE_ADDRESS, /* 8 bytes: an address in the memory of the process, or of the kernel */
	PEM_TYPE_ARRAY, /* max_count elements of element_type at the field's offset */
	PEM_TYPE_COUNT
};

/*
 * What an event means to later stages. Spec: <meaning value='...' group='...' scope='...'/>.
 *
 * Examples of events that belong together: a begin and its end, a block and its release, the two
 * ends of a message. Two events belong together if all of this holds:
 * - they have the same group
 * - they lie in the same instance of their scope
 * - they agree in every field of role 'key'
 * - they agree in 'name' or 'address' where both have it
 *
 * Begins and ends without key or name match by nesting: an end ends the innermost open interval.
 */
enum pem_meaning {
	PEM_MEANS_NOTHING = 0,
	/* 'sets-thread': its cpu now runs the thread and process named by roles */
	PEM_MEANS_SETS_THREAD,
	PEM_MEANS_THREAD_START, /* 'thread-start': names a new thread, its process and its parent */
	PEM_MEANS_THREAD_END, /* 'thread-end' */
	/* 'process-name': the current process is now called what role 'name' says */
	PEM_MEANS_PROCESS_NAME,
	/* 'interval-begin': the interval-end that belongs to it ends it */
	PEM_MEANS_INTERVAL_BEGIN,
	PEM_MEANS_INTERVAL_END, /* 'interval-end' */
	PEM_MEANS_COUNTER, /* 'counter': role 'value' only grows; show its rate */
	PEM_MEANS_GAUGE, /* 'gauge': role 'value' goes up and down; show itself */
	PEM_MEANS_ALLOCATION, /* 'allocation': role 'address', role 'size' */
	PEM_MEANS_RELEASE, /* 'release': role 'address' */
	PEM_MEANS_SAMPLE, /* 'sample': a state, read when a clock says so; it is no occurrence */
	/* 'send': a message, request or wakeup leaves for the receive that belongs to it */
	PEM_MEANS_SEND,
	PEM_MEANS_RECEIVE, /* 'receive' */
	/* 'access': role 'address' was touched; it lies in a block, mapping or data structure */
	PEM_MEANS_ACCESS,
	/* 'thread-name': the thread of role 'thread' is now called what role 'name' says */
	PEM_MEANS_THREAD_NAME,
	/*
	 * 'object': the file of role 'name', a program or library, lies in memory from role
	 * 'address' on, for as many bytes as role 'size' says. Role 'value', if given: the address
	 * of its own address 0. Role 'key', if given: its build id, in hexadecimal.
	 */
	PEM_MEANS_OBJECT,
	/*
	 * 'thread-waking': the record's own thread is about to wake the thread of role 'thread'. It
	 * may be an interrupt that does, while the record's thread runs.
	 */
	PEM_MEANS_THREAD_WAKING,
	/* 'thread-runnable': the thread of role 'thread' no longer sleeps: it waits for a CPU */
	PEM_MEANS_THREAD_RUNNABLE,
	/* 'process-arguments': the process of role 'process' has the arguments of role 'name' */
	PEM_MEANS_PROCESS_ARGUMENTS,
	/*
	 * 'descriptor-name': from now on, the descriptor of role 'descriptor' of the current
	 * process is the file of role 'name'. The record lies at most directly behind the begin of
	 * the system call that it was made for.
	 */
	PEM_MEANS_DESCRIPTOR_NAME,
	/*
	 * 'call-path': the system call of role 'system-call' that the current thread begins takes
	 * the path of role 'name'; "(descriptor)": it is on the file of its descriptor instead;
	 * "?": it is not known. The record lies directly before or behind the call's begin.
	 */
	PEM_MEANS_CALL_PATH,
	/*
	 * 'thread-state': the recorder found the record's thread in the state of role 'state': 0:
	 * it ran, or waited for a CPU; else it slept. What it sleeps on, if that is known: an
	 * object of role 'name', which the thread of role 'holder' holds.
	 */
	PEM_MEANS_THREAD_STATE,
	/*
	 * 'frame': of the current process, the stack of role 'stack' is a call, which returns to
	 * role 'code', from the stack of role 'outer-stack'.
	 */
	PEM_MEANS_FRAME,
	PEM_MEANING_COUNT
};

/*
 * The scope in which events that belong together are searched. Spec: <meaning scope='...'/>. An
 * interval of scope 'system' (a block request) may begin and end in an interrupt or a worker. So a
 * recording of some processes contains the system intervals of all processes.
 */
enum pem_scope {
	PEM_SCOPE_NONE = 0, /* the event's meaning matches nothing */
	PEM_SCOPE_THREAD, /* 'thread': the default of intervals */
	PEM_SCOPE_PROCESS, /* 'process': the default of allocation and release in layer APP */
	PEM_SCOPE_CPU, /* 'cpu': interrupt handlers */
	PEM_SCOPE_SYSTEM, /* 'system': the default of all else */
	PEM_SCOPE_COUNT
};

/*
 * How much an event matters. Spec: <event level='...'>. A recording that names no event records
 * those up to 'info'.
 */
enum pem_level {
	PEM_LEVEL_ERROR = 1, /* 'error': something failed */
	PEM_LEVEL_WARNING, /* 'warning': something is about to fail, or a limit was reached */
	PEM_LEVEL_INFO, /* 'info': the default */
	PEM_LEVEL_DETAIL, /* 'detail': recorded when asked for by name or pattern */
	PEM_LEVEL_DEBUG, /* 'debug': for those who build the provider */
	PEM_LEVEL_NAMED, /* 'named': recorded when asked for by its whole name, not by a pattern */
	PEM_LEVEL_COUNT
};

/* What a number's labels are. Spec: <field enum='...'> or <field flags='...'>. */
enum pem_label_kind {
	PEM_LABELS_NONE = 0,
	PEM_LABELS_ENUM, /* 'enum': each value has one name */
	PEM_LABELS_FLAGS, /* 'flags': each label names one or more bits */
	PEM_LABELS_COUNT
};

/*
 * State of an event of meaning 'sets-thread' that reports no switch: it names the thread that its
 * CPU runs, since records of that thread follow and no switch to it was recorded.
 */
#define PEM_NO_SWITCH 0xffffffffu

/* What a metric is made of. Spec: <metric form='...' of='...' to='...'/>. */
enum pem_metric_form {
	PEM_METRIC_NONE = 0,
	PEM_METRIC_RATE, /* 'rate': of in a second */
	PEM_METRIC_RATIO, /* 'ratio': of divided by to */
	PEM_METRIC_DIFFERENCE, /* 'difference': of minus to */
	/* 'between': mean time from a record of one event to the next of the other in its thread */
	PEM_METRIC_BETWEEN,
	PEM_METRIC_QUOTIENT, /* 'quotient': as 'ratio', of and to being sums: see parts */
	PEM_METRIC_FORMS
};

/* What a metric counts. */
struct pem_metric_term {
	const char *event; /* name; "": the form has no second term */
	const char *field; /* its sum, of a counter its growth; "": the number of records */
};

/* A term of a sum. */
struct pem_metric_part {
	struct pem_metric_term term;
	int32_t factor; /* below 0: it is subtracted */
	uint32_t is_divisor; /* 1: of the sum that divides; 0: of the one that is divided */
};
#define PEM_METRIC_PARTS 8u

/* A number that is made of what events say. */
struct pem_metric {
	const char *name; /* as that of an event */
	const char *unit; /* "": a plain number */
	const char *description; /* "" if none */
	uint32_t form; /* enum pem_metric_form */
	struct pem_metric_term of, to; /* of a quotient: the first terms of its sums */
	/* Of a quotient: all terms of both sums. Else there is none. */
	uint32_t part_count;
	uint32_t reserved; /* 0 */
	struct pem_metric_part parts[PEM_METRIC_PARTS];
};

struct pem_label {
	const char *name;
	const char *description;
	uint64_t value; /* of a signed field: sign-extended */
};

#define PEM_INTERRUPT_UNKNOWN 255u

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
	/*
	 * 'key': events that belong together agree in it. Only this role may be given to several
	 * fields.
	 */
	PEM_ROLE_KEY,
	PEM_ROLE_CPU, /* 'cpu': a CPU the event speaks of */
	PEM_ROLE_CODE, /* 'code': address of an instruction */
	/* 'old-address': the block that an allocation ends, as realloc does; 0: none */
	PEM_ROLE_OLD_ADDRESS,
	/*
	 * 'state': 0: the thread of role 'previous-thread' stays runnable;
	 * PEM_NO_SWITCH; other values: it sleeps. Without that role: the record's thread
	 */
	PEM_ROLE_STATE,
	/*
	 * 'system-call': number of a system call of the recording machine. Models of its catalogue
	 * name the numbers by labels. An interval that it begins has that name.
	 */
	PEM_ROLE_SYSTEM_CALL,
	/*
	 * 'descriptor': a file descriptor of the process. Beside a system call's number: what it is
	 * of calls whose first argument is a descriptor.
	 */
	PEM_ROLE_DESCRIPTOR,
	/*
	 * 'interrupt': 0: the thread that runs raises the event; 1: an interrupt does that came
	 * while it ran; PEM_INTERRUPT_UNKNOWN
	 */
	PEM_ROLE_INTERRUPT,
	/* 'holder': the thread that holds the object of role 'name'; 0: unknown */
	PEM_ROLE_HOLDER,
	/* 'stack': number of a stack of calls, which events of meaning 'frame' tell; 0: unknown */
	PEM_ROLE_STACK,
	/* 'outer-stack': the stack that a call of meaning 'frame' was made from; 0: none */
	PEM_ROLE_OUTER_STACK,
	/* 'file-kind': kind of a file: st_mode of stat(2), shifted right by 12; 0: unknown */
	PEM_ROLE_FILE_KIND,
	PEM_ROLE_COUNT
};

/*
 * Where an event comes from. Spec: <source type='...' name='...'/>. Several sources of one type are
 * alternatives, best first, because kernels, processors and libraries differ. The first one that
 * the machine has is taken.
 */
enum pem_source_kind {
	/* 'stub': a program or library calls the generated stub; name, if given, is that library */
	PEM_SOURCE_STUB = 0,
	PEM_SOURCE_TRACEPOINT = 1, /* 'tracepoint': name is 'system:event' */
	PEM_SOURCE_PERF = 2, /* 'perf': name is a libpfm4 event, such as 'perf::TASK-CLOCK' */
	PEM_SOURCE_SAMPLE = 3, /* 'perf-sample': periodic sample with counters; name is its clock */
	PEM_SOURCE_USDT = 4, /* 'usdt': a static probe in a binary; name is 'provider:probe' */
	/* 'module': pem.ko samples; name is the sampler: 'counters', 'accessed' or 'supply' */
	PEM_SOURCE_MODULE = 5,
	/* no spec has it: an ad-hoc probe of the kernel or a binary (pem_session__add_probes) */
	PEM_SOURCE_PROBE = 6,
	/* 'simulated': a machine that a recorder simulates (pem/hardware.h) counts it */
	PEM_SOURCE_SIMULATED = 7,
	/*
	 * 'proc': the recorder reads in /proc how things stand; name: 'thread' or 'call'. An
	 * interval that began before the recording begins with such an event. It may be one whose
	 * begin is recorded, too: then it is the same.
	 */
	PEM_SOURCE_PROC = 8,
	/*
	 * 'uprobe': a function of a binary begins, or its code comes to an address. Spec: name is
	 * the function, or 0xADDRESS as linked. Here it is 'uprobe:BINARY:FUNCTION(PARAMETER,...)',
	 * with the parameter, or register, that each field is.
	 */
	PEM_SOURCE_UPROBE = 9,
	PEM_SOURCE_COUNT
};

struct pem_field {
	const char *name; /* A structure's member has the name 'structure.member' */
	const char *description;
	const char *unit; /* "" if none */
	uint8_t type; /* enum pem_type */
	uint8_t element_type; /* of a list */
	uint8_t base; /* 10 or 16: how people read it */
	uint8_t role; /* enum pem_role */
	/* In bytes from the record's first byte. A list: the offset of its length. A string: 0. */
	uint16_t offset;
	/* List: most elements. Array: elements. String: most bytes, with its NUL. Else 1. */
	uint16_t max_count;
	uint8_t label_kind; /* enum pem_label_kind */
	uint16_t label_count;
	const struct pem_label *labels;
};

struct pem_event {
	const char *name; /* "LAYER::Class::Specifier" */
	const char *description;
	const char *layer; /* "HW", "OS", "APP" or "CPO" */
	const char *class_name;
	const char *specifier;
	const char *source_name; /* Alternatives are separated by '|' */
	const char *group; /* of the meaning; "" if it matches nothing */
	const char *since; /* First version of the provider that has this event; "": not stated */
	const char *deprecated; /* what to use instead; "" if it is not */
	const char *tsdl; /* its CTF declaration */
	const struct pem_field *fields;
	uint32_t id; /* 32-bit FNV-1a of the name, and of "NAME@VERSION" from version 2 on */
	uint16_t field_count;
	uint16_t fixed_bytes; /* header and fixed fields, list lengths included */
	uint16_t max_bytes; /* the longest record, rounded up to 8 */
	uint8_t meaning; /* enum pem_meaning */
	uint8_t source_kind; /* enum pem_source_kind */
	uint8_t level; /* enum pem_level */
	uint8_t scope; /* enum pem_scope */
	uint16_t version; /* from 1; see pem_event.id */
};

/*
 * Layout of a record (only pem/record_layout.h computes it):
 * - the header
 * - in the spec's order: fixed-size fields, and for each list its u32 length. Each is aligned to
 *   its size, an array to its elements' size, a structure to the size of its widest member.
 * - the tail: lists and strings in the spec's order. List elements are aligned to their size,
 *   strings to 1.
 *
 * A model as text has lines ended by \n. Cells are separated by one tab, and have no other control
 * character.
 *
 *	pem-model	2
 *	event	ID	NAME	LAYER	CLASS	SPECIFIER	VERSION	LEVEL	MEANING	GROUP
 *		SCOPE	SOURCE	SOURCE-NAME	FIXED	MAX	FIELDS	TSDL-LINES	SINCE
 *		DEPRECATED	DESCRIPTION                                     (one line)
 *	field	NAME	TYPE	ELEMENT-TYPE	BASE	ROLE	OFFSET	MAX-COUNT	UNIT
 *		LABEL-KIND	LABELS	DESCRIPTION                (one line; FIELDS of these)
 *	label	VALUE	NAME	DESCRIPTION                      (after its field, LABELS of these)
 *	...                                                               (TSDL-LINES lines of CTF)
 *	metric	...                                          (after the events, in any number)
 *	location	ID	LINE	COLUMN  (after the metrics: where an event is in its spec)
 *
 * One text may have several models, each with its first line. pem-codegen --models writes
 * locations; only messages need them.
 *
 * ID has 8 hexadecimal digits, VALUE 16. LEVEL, MEANING, SCOPE, SOURCE, TYPE, ELEMENT-TYPE,
 * LABEL-KIND and ROLE are the spec's words ('-' for none). The other numbers are decimal. An empty
 * cell is empty.
 */
#define PEM_MODEL_VERSION 2

#ifdef __cplusplus
}
#endif
#endif
