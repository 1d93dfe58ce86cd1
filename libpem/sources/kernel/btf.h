/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * btf.h - which tracepoints a kernel has, and with which parameters, from the types it describes (BTF)
 *
 * Not here: what BPF programs exist for (table.c), which of them to load (choose.c).
 */
#ifndef PEM_SOURCES_KERNEL_BTF_H
#define PEM_SOURCES_KERNEL_BTF_H

#include <stddef.h>

#define PEM_KERNEL_BTF_FOLDER "/sys/kernel/btf"

/* A kernel's tracepoints. Read-only once open, so usable by several threads. */
struct pem_kernel_btf;

/*
 * Read a kernel's types. folder: as /sys/kernel/btf: a file 'vmlinux', and a file for each module. path may also name
 * one file: raw BTF, or an ELF file with a section .BTF. NULL, and errno. Takes some 10 ms.
 */
struct pem_kernel_btf *pem_kernel_btf__open(const char *path);
void pem_kernel_btf__close(struct pem_kernel_btf *btf);

enum pem_kernel_match {
	PEM_KERNEL_ABSENT, /* there is no such tracepoint */
	PEM_KERNEL_DIFFERS, /* there is, with other parameters */
	PEM_KERNEL_FITS, /* it has the parameters and more after them, or integers of the other sign */
	PEM_KERNEL_EQUAL,
};

/*
 * Compare a tracepoint, "system:event" or "event", with a prototype, such as "struct task_struct *task, int cpu";
 * NULL or "" compares nothing. Structures and enumerations are compared by name, type names by name or by what they stand
 * for in this kernel, integers by size. A prototype that is no list of C parameters differs from all.
 */
enum pem_kernel_match pem_kernel_btf__match(const struct pem_kernel_btf *btf,
					    const char *tracepoint, const char *prototype);
/* Write a tracepoint's parameter types as C; "" if there is none. Cut at bytes. */
void pem_kernel_btf__describe(const struct pem_kernel_btf *btf, const char *tracepoint, char *text,
			      size_t bytes);
/* The types of the kernel proper (part 0), or of a module's file, whose name is set; NULL: there is no such part. */
struct btf;
const struct btf *pem_kernel_btf__part(const struct pem_kernel_btf *btf, unsigned part,
				       const char **name);
/* The first of a part's types that is not the kernel proper's. */
unsigned pem_kernel_btf__first_type(const struct pem_kernel_btf *btf, unsigned part);
/* Has a structure a member of this path, "perf_event.kprobe.missed"? Members without names count as their own members. */
int pem_kernel_btf__has_member(const struct btf *btf, const char *structure, const char *path);
/* The file that the tracepoint's types come from, "vmlinux" or a module's name; NULL: no such tracepoint. */
const char *pem_kernel_btf__home(const struct pem_kernel_btf *btf, const char *tracepoint);

#endif
