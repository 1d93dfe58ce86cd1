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
	/* For a static probe: where its arguments are. Else NULL. */
	const struct pem_probe_site *site;
	/* Its offsets are computed. Its fields are the probe's. */
	const struct pem_event *event;
	const struct pem_test *tests; /* of its predicate; NULL: none */
	uint32_t test_count;
	/* The event's index in cells, control words and filters. */
	uint32_t index;
};

/*
 * Fill the gaps in a copy of the template, which has count instructions. Returns how many
 * instructions are left. Errors: -EINVAL: insns is not the template; -E2BIG: a gap is too small;
 * -EDOM: the predicate tests a field that can't be tested. error then has a sentence.
 */
ssize_t pem_assemble(const struct pem_assembly *assembly, struct bpf_insn *insns, size_t count,
		     struct pem_error *error);

#endif
