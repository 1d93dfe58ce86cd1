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

/* The kernel's types. NULL with errno: ENOENT, the kernel shows none. */
struct import_btf *import_btf__open(void);
void import_btf__free(struct import_btf *btf);

/*
 * The function that is called for a tracepoint, or NULL: there is none. Valid until
 * import_btf__free.
 */
const struct import_tracepoint *import_btf__tracepoint(struct import_btf *btf, const char *event);
/*
 * Its parameters as C: plain integers and pointers, so that no header has to be known; "" if none
 * can be written down. Parameters behind one that can't be are left out.
 */
const char *import_tracepoint__arguments(const struct import_tracepoint *tp);

/* The value of one of the kernel's enumerators. false: there is none of that name. */
bool import_btf__enumerator(struct import_btf *btf, const char *name, long long *value);

enum import_shape { IMPORT_INTEGER, IMPORT_ADDRESS, IMPORT_STRING, IMPORT_ARRAY };
/*
 * An expression over the arguments for a field of that name, judged by names and shapes alone: an
 * argument; a member of an argument that names both (prev_pid: prev->pid); a member that only one
 * argument has. size: of the field. false: none.
 */
bool import_tracepoint__from(const struct import_tracepoint *tp, const char *field,
			     enum import_shape shape, size_t size, char *text, size_t bytes);

/*
 * What C must know to follow such an expression: the structure of "argument->member", and the
 * member's declaration. false: it follows none, or one that C can't declare.
 */
bool import_tracepoint__member(const struct import_tracepoint *tp, const char *from,
			       char *structure, size_t structure_bytes, char *member,
			       size_t member_bytes);

#endif
