/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * attach.h - programs for what the probes room found: made of a template, loaded, attached,
 * detached
 *
 *	attach.c        programs loaded, attached, detached
 *	assemble.c      a probe's program: the template of kmod/bpf completed (pem/kprobe.h)
 *	misses.c        events that the kernel passed over
 *	multi.c         all locations of a program in a binary by one link
 *	descriptors.c   how many descriptors that takes
 *	leave_behind.c  many perf events ended without waiting
 */
#ifndef PEM_SOURCES_KERNEL_ATTACH_H
#define PEM_SOURCES_KERNEL_ATTACH_H

#include "sources/kernel/base/base.h"
#include "sources/kernel/probes/probes.h"

/* --- attach.c: events outside of the table --- */

/* Take an event's probe into the session. Its index, or -errno with error. */
int pem_source__take_probe(struct pem_source *source, const struct pem_event *event,
			   struct pem_error *error);
/*
 * Make and load the programs of all probes that are demanded, from the template in the loaded
 * object.
 */
void pem_source__load_probes(struct pem_source *source);
void pem_source__attach_probes(struct pem_source *source);
/* Detach; misses are not final yet. Returns whether any was attached. */
bool pem_source__detach_probes(struct pem_source *source);
void pem_source__unload_probes(struct pem_source *source);
void pem_source__free_probes(struct pem_source *source);

/* --- misses.c --- */

/* Say of which probes losses can't be counted, if there are any. */
void pem_source__say_uncounted(const struct pem_source *source);
/* Add up what the kernel did not run, before the links are closed. */
void pem_source__count_probe_misses(struct pem_source *source);

/* --- multi.c --- */

/*
 * Put a program, loaded for that, to places of a probe's binary, in this process alone or in all.
 * The link, or -errno.
 */
int pem_kernel__link_uprobes(const struct pem_probe *probe, int program,
			     const struct pem_probe_site *const *sites, size_t count,
			     bool only_here);

/* --- descriptors.c --- */

/* What this process may still open, less what its recording needs for itself. */
size_t pem_kernel__spare_descriptors(void);
/*
 * What a probe takes: its programs, and a link for each of its places, or for each program if
 * by_multi (multi.c).
 */
size_t pem_probe__descriptors(const struct pem_probe *probe, bool by_multi);

/* --- leave_behind.c --- */

/*
 * Hand what links programs to probes to processes of their own, which end it by ending: whoever
 * closes it need not wait. leave_behind.c says why. They wait until what is returned is closed, -1:
 * nothing is, which is to be done when everything handed over has been: the last to close it is who
 * waits.
 */
int pem_leave_behind(int *fds, size_t count);

#endif
