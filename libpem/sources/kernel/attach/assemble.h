/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * assemble.h - a probe's program: the template of kmod/bpf (pem/kprobe.h) with its gaps filled
 */
#ifndef PEM_SOURCES_KERNEL_ASSEMBLE_H
#define PEM_SOURCES_KERNEL_ASSEMBLE_H

#include "sources/kernel/probes/probes.h"

#include <pem/abi.h>

#include <linux/bpf.h>
#include <sys/types.h>

/* What one program is to do. */
struct pem_assembly {
	const struct pem_probe *probe;
	/* of a static probe: where its arguments are; else NULL */
	const struct pem_probe_site *site;
	const struct pem_event *event; /* laid out; its fields are the probe's */
	const struct pem_test *tests; /* of its predicate; NULL: none */
	uint32_t test_count;
	uint32_t index; /* in cells, control words and filters */
};

/*
 * Complete a copy of the template's count instructions. Returns how many are left of them; -EINVAL:
 * that is no template; -E2BIG: a gap is too small; -EDOM: the predicate is of a field that can't be
 * tested; with error.
 */
ssize_t pem_assemble(const struct pem_assembly *assembly, struct bpf_insn *insns, size_t count,
		     struct pem_error *error);

#endif
