/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * attach.h - programs for the probes that probes/ found: made of a template, loaded, attached,
 * detached
 *
 *	attach.c        programs loaded, attached, detached
 *	assemble.c      a probe's program: fills the template of kmod/bpf (pem/kprobe.h)
 *	misses.c        events that the kernel did not run programs for
 *	multi.c         all locations of a program in a binary by one link
 *	descriptors.c   how many descriptors probes take
 *	leave_behind.c  closes many perf events and links without waiting
 */
#ifndef PEM_SOURCES_KERNEL_ATTACH_H
#define PEM_SOURCES_KERNEL_ATTACH_H

#include "sources/kernel/base/base.h"
#include "sources/kernel/probes/probes.h"

/* --- attach.c: events outside of the table --- */

/* Add an event's probe to the session. Returns its index, or -errno with error. */
int pem_source__take_probe(struct pem_source *source, const struct pem_event *event,
			   struct pem_error *error);
/* Make and load the programs of all demanded probes, from the template in the loaded object. */
void pem_source__load_probes(struct pem_source *source);
void pem_source__attach_probes(struct pem_source *source);
/* Detach all programs. Misses are not final yet. Returns whether any program was attached. */
bool pem_source__detach_probes(struct pem_source *source);
void pem_source__unload_probes(struct pem_source *source);
void pem_source__free_probes(struct pem_source *source);

/* --- misses.c --- */

/* Log for which probes losses can't be counted, if there are any. */
void pem_source__say_uncounted(const struct pem_source *source);
/*
 * Add up the events for which the kernel did not run the programs. Must be called before the links
 * are closed.
 */
void pem_source__count_probe_misses(struct pem_source *source);

/* --- multi.c --- */

/*
 * Link a program to places of a probe's binary, in this process alone or in all processes. The
 * program must have been loaded for such a link. Returns the link, or -errno.
 */
int pem_kernel__link_uprobes(const struct pem_probe *probe, int program,
			     const struct pem_probe_site *const *sites, size_t count,
			     bool only_here);

/* --- descriptors.c --- */

/* How many descriptors this process may still open, minus those that the recording itself needs. */
size_t pem_kernel__spare_descriptors(void);
/*
 * How many descriptors a probe takes: one for each program, plus one link for each place, or one
 * link for each program if by_multi is set (multi.c).
 */
size_t pem_probe__descriptors(const struct pem_probe *probe, bool by_multi);

/* --- leave_behind.c --- */

/*
 * Hand descriptors of links and perf events to helper processes. A helper closes them when it ends,
 * so the caller does not wait for the kernel (leave_behind.c gives the reason). Returns a
 * descriptor; the helpers wait until it is closed. Close it after everything was handed over,
 * because the process that closes a perf event or link last does the waiting. Returns -1 if there
 * is nothing to close: count is 0, or there was no pipe and the helpers do not wait.
 */
int pem_leave_behind(int *fds, size_t count);

#endif
