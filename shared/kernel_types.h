/* SPDX-License-Identifier: MIT */
/*
 * kernel_types.h - the types that a kernel describes (BTF), and the tracepoints among them
 */
#ifndef PEM_SHARED_KERNEL_TYPES_H
#define PEM_SHARED_KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEM_KERNEL_BTF_FOLDER "/sys/kernel/btf"

struct btf;
struct btf_type;

/* A kernel's types and its modules'. Read-only once open, so usable by several threads. */
struct pem_kernel_btf;

/*
 * Read a kernel's types. path: a folder such as /sys/kernel/btf, with a file 'vmlinux' and one for
 * each module; or one file: raw BTF, or an ELF file with a section .BTF. A module whose types can't
 * be read is left out. NULL, and errno. Takes some 10 ms.
 */
struct pem_kernel_btf *pem_kernel_btf__open(const char *path);
void pem_kernel_btf__close(struct pem_kernel_btf *btf);

/* The types of the kernel proper (part 0), or of a module, with its name. NULL: no such part. */
const struct btf *pem_kernel_btf__part(const struct pem_kernel_btf *btf, unsigned part,
				       const char **name);
/* The first of a part's types that is not the kernel proper's. */
unsigned pem_kernel_btf__first_type(const struct pem_kernel_btf *btf, unsigned part);
/*
 * The types that a tracepoint, "system:event" or "event", is described by, and its function's type
 * among them (BTF_KIND_FUNC_PROTO), whose first parameter is not the tracepoint's. NULL: there is
 * no such tracepoint.
 */
const struct btf *pem_kernel_btf__tracepoint(const struct pem_kernel_btf *btf,
					     const char *tracepoint, uint32_t *proto);
/* The part that has a tracepoint, "vmlinux" or a module's name. NULL: no such tracepoint. */
const char *pem_kernel_btf__home(const struct pem_kernel_btf *btf, const char *tracepoint);

/* What stands behind const, volatile, restrict, and typedef. NULL: there is no such type. */
const struct btf_type *pem_btf__plain(const struct btf *btf, uint32_t id);
/* Is it an integer or an enumeration? type may be NULL. */
bool pem_btf__is_number(const struct btf_type *type);
/* Has such a number a sign? */
bool pem_btf__is_signed(const struct btf_type *type);

struct pem_btf_member {
	uint32_t type;
	bool is_bitfield;
};
/*
 * A member of a structure or union by its name. Members of members without a name count as its own.
 * False: there is none; type is no structure or union, or NULL.
 */
bool pem_btf__find_member(const struct btf *btf, const struct btf_type *type, const char *name,
			  struct pem_btf_member *found);
/* Has a structure a member of this path, "perf_event.kprobe.missed"? */
bool pem_kernel_btf__has_member(const struct btf *btf, const char *structure, const char *path);

#endif
