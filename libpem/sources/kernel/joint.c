/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * joint.c - one program for several events of a tracepoint (contract: kernel.h)
 *
 * Measured on Linux 6.18: a second program on the entry of system calls takes 100 ns, and 20 of
 * these are its own work. So what is wanted of one tracepoint is one program, if it is more than
 * one event.
 */
#include "kernel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

/* Returns how many of the joint program's events are wanted. */
static unsigned wanted_of(const struct pem_source *source, const struct pem_kernel_joint *joint)
{
	unsigned i, count = 0;

	for (i = 0; joint->events[i] != UINT16_MAX; i++)
		count += source->programs[joint->events[i]].program != NULL;
	return count;
}

static int join(struct pem_source *source, const struct pem_kernel_joint *joint,
		struct bpf_program *program)
{
	struct pem_kernel_program *first = NULL, *p;
	const char *tracepoint = pem_kernel__event(joint->events[0])->alternatives[0].tracepoint;
	const char *colon = strchr(tracepoint, ':');
	unsigned i;

	for (i = 0; joint->events[i] != UINT16_MAX; i++) {
		p = &source->programs[joint->events[i]];
		if (!p->program)
			continue;
		bpf_program__set_autoload(p->program, false);
		p->is_joined = true;
		p->program = first ? NULL : program;
		first = first ? first : p;
	}
	bpf_program__set_autoload(program, true);
	return bpf_program__set_attach_target(program, 0, colon ? colon + 1 : tracepoint);
}

int pem_source__join(struct pem_source *source, struct pem_error *error)
{
	const struct pem_kernel_joint *joint;
	struct bpf_program *program;
	uint32_t bit = 1;
	int rc = 0;

	for (joint = pem_kernel__joints(); !rc && joint->program; joint++, bit <<= 1) {
		program = bpf_object__find_program_by_name(source->object, joint->program);
		if (!program)
			return pem_error__set(error, -EINVAL,
					      "the BPF object has no program %s: build pem anew",
					      joint->program);
		bpf_program__set_autoload(program, false);
		if (bit && !(source->joints_refused & bit) && wanted_of(source, joint) > 1)
			rc = join(source, joint, program);
	}
	return rc ? pem_error__set(error, rc, "a tracepoint can't be looked up: %s", strerror(-rc))
		  : 0;
}

bool pem_source__refuse_joint(struct pem_source *source, const char *program)
{
	const struct pem_kernel_joint *joint;
	uint32_t bit = 1;

	for (joint = pem_kernel__joints(); joint->program; joint++, bit <<= 1) {
		if (strcmp(joint->program, program) != 0)
			continue;
		source->joints_refused |= bit;
		pem_source__log(source, PEM_LOG_INFO,
				"%s: the kernel refuses one program for all of its events; each "
				"gets its own",
				pem_kernel__event(joint->events[0])->alternatives[0].tracepoint);
		return true;
	}
	return false;
}

void pem_source__rejoin(struct pem_source *source, unsigned index)
{
	const struct pem_kernel_joint *joint;
	uint32_t bit = 1;
	unsigned i;

	for (joint = pem_kernel__joints(); joint->program; joint++, bit <<= 1)
		for (i = 0; joint->events[i] != UINT16_MAX; i++)
			if (joint->events[i] == index)
				source->joints_refused &= ~bit;
}

/* The joint program that serves the event at this index. NULL: none does. */
static const struct pem_kernel_joint *joint_of(const struct pem_source *source, unsigned index)
{
	const struct pem_kernel_joint *joint = pem_kernel__joints();
	unsigned i;

	for (; source->programs[index].is_joined && joint->program; joint++)
		for (i = 0; joint->events[i] != UINT16_MAX; i++)
			if (joint->events[i] == index)
				return joint;
	return NULL;
}

void pem_source__fail_joined(struct pem_source *source, unsigned index, int error)
{
	const struct pem_kernel_joint *joint = joint_of(source, index);
	struct pem_source_demand *demand;
	unsigned i;

	for (i = 0; joint && joint->events[i] != UINT16_MAX; i++) {
		demand = pem_source__demand_of(source, joint->events[i]);
		if (demand && source->programs[joint->events[i]].is_joined)
			demand->error = error;
	}
}

void pem_source__share_misses(struct pem_source *source)
{
	const struct pem_kernel_joint *joint;
	struct pem_kernel_program *p;
	uint64_t misses;
	unsigned i;

	for (joint = pem_kernel__joints(); joint->program; joint++) {
		misses = 0;
		for (i = 0; joint->events[i] != UINT16_MAX; i++) {
			p = &source->programs[joint->events[i]];
			if (p->is_joined && p->program)
				misses = p->misses;
			else if (p->is_joined)
				p->misses = misses;
		}
	}
}
