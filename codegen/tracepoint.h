/* SPDX-License-Identifier: MIT */
/*
 * tracepoint.h - tracepoint events as C: what the BPF and the module backend share
 *
 * Both write functions that take a tracepoint's arguments, ask pem_begin() whether the event is
 * wanted, and then add to its statistic or fill its record. What these call is written by hand:
 * kmod/bpf/pem.bpf.c and kmod/pem_kmod.h. Casts say __force, for sparse: a record holds numbers, of
 * whatever kind the kernel's are.
 */
#ifndef PEM_CODEGEN_TRACEPOINT_H
#define PEM_CODEGEN_TRACEPOINT_H

#include "model.h"

/* One argument of a prototype: text within it. */
struct pem_argument {
	const char *text; /* "struct task_struct *prev" */
	size_t bytes;
	size_t type_bytes; /* of text, up to its name: "struct task_struct *" */
	size_t name_at;
	size_t name_bytes;
};

/* The next argument of a prototype, which is moved past it. 0: there is none left. */
int pem_prototype__next(const char **prototype, struct pem_argument *argument);

/* "sched_switch" of "sched:sched_switch". */
const char *pem_tracepoint__name(const struct pem_spec_source *source);
/* Print "sched" of "sched:sched_switch". */
void pem_tracepoint__put_system(FILE *f, const struct pem_spec_source *source);

/*
 * Events with tracepoint sources, in the specs' order; *index counts them. NULL: no more. Begin
 * with *index 0.
 */
const struct pem_spec_event *pem_tracepoint__next(const struct pem_spec_set *set, size_t *index);

/*
 * What begins in one process may end in an interrupt or a worker of the kernel: which process runs
 * then says nothing of whose it is. Is this such an event?
 */
int pem_tracepoint__is_of_the_system(const struct pem_spec_event *event);

/* As pem_tracepoint__next, of events that the module raises itself, when it looks. */
const struct pem_spec_event *pem_module__next(const struct pem_spec_set *set, size_t *index);

/* The statistic's value and its order-preserving key, of whichever field the action names. */
void pem_tracepoint__put_statistic(FILE *f, const struct pem_spec_event *event, size_t source);
/*
 * A switch that sets pem_word to the field, highest, of the test pem_test; each line after so many
 * tabs.
 */
void pem_tracepoint__put_word(FILE *f, const struct pem_spec_event *event, size_t source,
			      const char *tabs);
/* Has the event any field that could be tested? */
int pem_tracepoint__is_testable(const struct pem_spec_event *event);
/*
 * Stores of the fixed fields, and zeroes for the gaps between them if these are not zero already.
 */
void pem_tracepoint__put_fixed(FILE *f, const struct pem_spec_event *event, size_t source,
			       int zero_gaps);
/* Stores of who leaves a CPU and who comes, by parameters previous_tid, pid and tid. */
void pem_tracepoint__put_switch(FILE *f, const struct pem_spec_event *event);
/* What a field is made from, as C: of a module's event the parameter of its name. */
const char *pem_tracepoint__from(const struct pem_spec_event *event, size_t source,
				 const struct pem_spec_field *field);

#endif
