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

/* The types of a kernel and its modules. Read-only once open, so several threads may use it. */
struct pem_kernel_btf;

/*
 * Read a kernel's types. path is a folder such as /sys/kernel/btf, with a file 'vmlinux' and one
 * for each module; or one file with raw BTF; or an ELF file with a section .BTF. A module whose
 * types can't be read is left out. Takes some 10 ms. NULL with errno on failure.
 */
struct pem_kernel_btf *pem_kernel_btf__open(const char *path);
void pem_kernel_btf__close(struct pem_kernel_btf *btf);

/* The types of the kernel itself (part 0) or of a module, and its name. NULL: no such part. */
const struct btf *pem_kernel_btf__part(const struct pem_kernel_btf *btf, unsigned part,
				       const char **name);
/* The first type id of a part that does not belong to the kernel itself. */
unsigned pem_kernel_btf__first_type(const struct pem_kernel_btf *btf, unsigned part);
/*
 * Find the types that describe a tracepoint, "system:event" or "event", and its function's type in
 * them (BTF_KIND_FUNC_PROTO). The first parameter of that function does not belong to the
 * tracepoint. NULL: there is no such tracepoint.
 */
const struct btf *pem_kernel_btf__tracepoint(const struct pem_kernel_btf *btf,
					     const char *tracepoint, uint32_t *proto);
/* The part with a tracepoint: "vmlinux" or a module's name. NULL: there is no such tracepoint. */
const char *pem_kernel_btf__home(const struct pem_kernel_btf *btf, const char *tracepoint);

/* The type without const, volatile, restrict and typedef. NULL: there is no such type. */
const struct btf_type *pem_btf__plain(const struct btf *btf, uint32_t id);
/* Is the type an integer or an enumeration? type may be NULL. */
bool pem_btf__is_number(const struct btf_type *type);
/* Is a number of this type signed? */
bool pem_btf__is_signed(const struct btf_type *type);

struct pem_btf_member {
	uint32_t type;
	bool is_bitfield;
};
/*
 * Find a member of a structure or union by name. Members of unnamed members count as its own.
 * False: there is no such member, or type is NULL or not a structure or union.
 */
bool pem_btf__find_member(const struct btf *btf, const struct btf_type *type, const char *name,
			  struct pem_btf_member *found);
/* Does a structure have a member of this path, such as "perf_event.kprobe.missed"? */
bool pem_kernel_btf__has_member(const struct btf *btf, const char *structure, const char *path);

#endif
