// SPDX-License-Identifier: MIT
/*
 * btf.h - the kernel's own description of a tracepoint's arguments, and where in them a field may
 * lie
 */
#ifndef PEM_CLI_SPEC_IMPORT_BTF_H
#define PEM_CLI_SPEC_IMPORT_BTF_H

#include <stdbool.h>
#include <stddef.h>

struct import_btf;
struct import_tracepoint;

/*
 * Read the running kernel's types. NULL with errno; ENOENT: the kernel has no description of them.
 */
struct import_btf *import_btf__open(void);
void import_btf__free(struct import_btf *btf);

/*
 * Find the function that is called for a tracepoint. Valid until import_btf__free. NULL: there is
 * no such tracepoint.
 */
const struct import_tracepoint *import_btf__tracepoint(struct import_btf *btf, const char *event);
/*
 * The tracepoint's parameters as C, with plain integers and pointers so that no header is needed.
 * Parameters after the first one that can't be written are left out. "": none can be written.
 */
const char *import_tracepoint__arguments(const struct import_tracepoint *tp);

/* Find the value of an enumerator of the kernel. False: there is none of this name. */
bool import_btf__enumerator(struct import_btf *btf, const char *name, long long *value);

enum import_shape { IMPORT_INTEGER, IMPORT_ADDRESS, IMPORT_STRING, IMPORT_ARRAY };
/*
 * Find an expression over the arguments for a field of this name. Only names and shapes are
 * compared. The expression is an argument; or a member of an argument, if the field's name has both
 * names (prev_pid: prev->pid); or a member that only one argument has. size: bytes of the field.
 * False: there is no such expression.
 */
bool import_tracepoint__from(const struct import_tracepoint *tp, const char *field,
			     enum import_shape shape, size_t size, char *text, size_t bytes);

/*
 * Find the declarations that C needs for such an expression: the structure of "argument->member",
 * and the member. False: the expression has no member, or C can't declare it.
 */
bool import_tracepoint__member(const struct import_tracepoint *tp, const char *from,
			       char *structure, size_t structure_bytes, char *member,
			       size_t member_bytes);

#endif
