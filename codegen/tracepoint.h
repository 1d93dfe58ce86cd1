/* SPDX-License-Identifier: MIT */
/*
 * tracepoint.h - tracepoint events as C, for the BPF backend and the module backend
 *
 * Both backends write functions that take a tracepoint's arguments, ask pem_begin() whether the
 * event is wanted, and then add to its statistic or fill its record. The functions that these call
 * are written by hand: kmod/bpf/pem.bpf.c and kmod/pem_kmod.h. Casts have __force for sparse,
 * because a record holds plain numbers for all kinds of numbers in the kernel.
 */
#ifndef PEM_CODEGEN_TRACEPOINT_H
#define PEM_CODEGEN_TRACEPOINT_H

#include "model.h"

/* One argument of a prototype. Its text points into the prototype. */
struct pem_argument {
	const char *text; /* "struct task_struct *prev" */
	size_t bytes;
	/* Length of the type at the beginning of text, up to the name: "struct task_struct *". */
	size_t type_bytes;
	size_t name_at;
	size_t name_bytes;
};

/*
 * Read the next argument of a prototype and move *prototype past it. Returns 0 if no argument is
 * left.
 */
int pem_prototype__next(const char **prototype, struct pem_argument *argument);

/* The event's name: "sched_switch" of "sched:sched_switch". */
const char *pem_tracepoint__name(const struct pem_spec_source *source);
/* Print "sched" of "sched:sched_switch". */
void pem_tracepoint__put_system(FILE *f, const struct pem_spec_source *source);

/*
 * Find events with tracepoint sources, in the specs' order. *index counts them and begins at 0.
 * NULL: there are no more.
 */
const struct pem_spec_event *pem_tracepoint__next(const struct pem_spec_set *set, size_t *index);

/*
 * Is the event an interval of scope 'system'? It begins in one process and may end in an interrupt
 * or a kernel worker. The process that runs then says nothing about the interval.
 */
int pem_tracepoint__is_of_the_system(const struct pem_spec_event *event);

/* The position, from 0 on, of the argument that an alternative with of='' is of. */
unsigned pem_tracepoint__of(const struct pem_spec_source *source);

/*
 * Is the alternative of a system call that begins or ends, so that it may be pem's own? Its first
 * argument is 'struct pt_regs *regs'.
 */
int pem_tracepoint__is_of_a_call(const struct pem_spec_source *source);
/* Print the condition, for BPF and the module: the call is pem's own. */
void pem_tracepoint__put_internal(FILE *f, const struct pem_spec_event *event);

/* As pem_tracepoint__next, for events that a sampler of the module raises. */
const struct pem_spec_event *pem_module__next(const struct pem_spec_set *set, size_t *index);

/*
 * Print the statistic's value and its order-preserving key, for each field that the action may
 * name.
 */
void pem_tracepoint__put_statistic(FILE *f, const struct pem_spec_event *event, size_t source);
/*
 * Print a switch that sets pem_word to the field, highest, of the test pem_test. Each line begins
 * with this number of tabs.
 */
void pem_tracepoint__put_word(FILE *f, const struct pem_spec_event *event, size_t source,
			      const char *tabs);
/* Does the event have a field that predicates can test? */
int pem_tracepoint__is_testable(const struct pem_spec_event *event);
/*
 * Print stores of the fixed fields. Prints zeroes for the gaps between them, too, unless the gaps
 * are zero already.
 */
void pem_tracepoint__put_fixed(FILE *f, const struct pem_spec_event *event, size_t source,
			       int zero_gaps);
/*
 * Print stores of the thread that leaves a CPU and the thread that comes, from parameters
 * previous_tid, pid and tid.
 */
void pem_tracepoint__put_switch(FILE *f, const struct pem_spec_event *event);
/*
 * The C expression that a field is made from. For a module's event it is the parameter of the
 * field's name.
 */
const char *pem_tracepoint__from(const struct pem_spec_event *event, size_t source,
				 const struct pem_spec_field *field);
/*
 * Print that expression as a value of this type, or as a pointer if type is NULL. If it follows an
 * argument, it is 0 where PEM_HAS(argument) is false.
 */
void pem_tracepoint__put_from(FILE *f, const struct pem_spec_event *event, size_t source,
			      const struct pem_spec_field *field, const char *type);

#endif
