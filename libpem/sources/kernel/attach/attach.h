/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * attach.h - programs for the probes that probes/ found: made of a template, loaded, attached,
 * detached
 *
 *	attach.c        programs loaded, attached, detached
 *	assemble.c      a probe's program: fills the template of kmod/bpf (pem/kprobe.h)
 *	misses.c        events that the kernel did not run programs for
 *	left_out.c      parameters that are no fields
 *	multi.c         all locations of a program in a binary by one link
 *	descriptors.c   how many descriptors probes take
 *	leave_behind.c  closes many perf events and links without waiting
 *
 * All functions are called in the thread that calls the source (source.h), in the order
 * take_probe, load_probes, attach_probes, detach_probes, unload_probes, free_probes.
 */
#ifndef PEM_SOURCES_KERNEL_ATTACH_H
#define PEM_SOURCES_KERNEL_ATTACH_H

#include "sources/kernel/base/base.h"
#include "sources/kernel/probes/probes.h"

/* --- attach.c: events outside of the table --- */

/*
 * Add an event's probe to the session. The source owns it until pem_source__free_probes. Returns
 * the event's index in the session; one that was added before has the same index. -ENOENT: the
 * probe cannot be found or attached here. -ESTALE: it has other fields than the event. -E2BIG: its
 * records are too long. -ENOSPC: the session's table is full. -ENOMEM. Errors come with error.
 * Reads files, and may block on them.
 */
int pem_source__take_probe(struct pem_source *source, const struct pem_event *event,
			   struct pem_error *error);
/*
 * Make and load the programs of all demanded probes, from the template in the loaded object. A
 * failure is its probe's alone: it is in the demand's error, and a refused program is logged.
 * -EMFILE: descriptors ran short. Blocks while the kernel verifies each program; logs the progress.
 */
void pem_source__load_probes(struct pem_source *source);
/*
 * Attach the loaded programs. A failure is its probe's alone: it is in the demand's error, and is
 * logged, except -EMFILE, which the caller logs once for all. That probe is then attached nowhere.
 * Blocks while the kernel changes its code or that of the binaries.
 */
void pem_source__attach_probes(struct pem_source *source);
/*
 * Detach the programs that the kernel detaches at once. Others stay attached until
 * pem_source__unload_probes; without a demand they return at once. Misses are not final yet.
 * Returns whether any program was attached. Blocks while the kernel changes its code.
 */
bool pem_source__detach_probes(struct pem_source *source);
/*
 * Close all programs and links. Those that the kernel detaches slowly are left to helper processes
 * (pem_leave_behind), so the caller does not wait for them. The probes can be loaded again.
 */
void pem_source__unload_probes(struct pem_source *source);
/* Free all probes. They must be unloaded. Indexes are then invalid. */
void pem_source__free_probes(struct pem_source *source);

/* --- misses.c --- */

/* Log for which probes losses can't be counted, if there are any. */
void pem_source__say_uncounted(const struct pem_source *source);
/*
 * Set each probe's misses to the number of events for which the kernel did not run its programs; 0
 * where the kernel does not count them. Must be called before the links are closed. The links of
 * fentry and fexit do not count: their programs do.
 */
void pem_source__count_probe_misses(struct pem_source *source);

/* --- left_out.c --- */

/* Log which functions are recorded without some of their parameters, if any are. */
void pem_source__say_left_out(const struct pem_source *source);

/* --- multi.c --- */

/*
 * Link a program to count sites of a probe's binary, in this process alone or in all processes. The
 * program must have been loaded for such a link (PEM_UPROBE_MULTI). Returns the link, a descriptor
 * that the caller closes, or -errno. Nothing is linked on failure.
 */
int pem_kernel__link_uprobes(const struct pem_probe *probe, int program,
			     const struct pem_probe_site *const *sites, size_t count,
			     bool only_here);

/* --- descriptors.c --- */

/*
 * How many descriptors this process may still open, minus those that the recording itself needs: a
 * quarter of its limit (RLIMIT_NOFILE), at most 256. An estimate: other threads may open some.
 */
size_t pem_kernel__spare_descriptors(void);
/*
 * How many descriptors a probe takes: one for each program, plus one link for each site, or one
 * link for each program if by_multi is set (multi.c). A probe without sites has one location.
 */
size_t pem_probe__descriptors(const struct pem_probe *probe, bool by_multi);

/* --- leave_behind.c --- */

/*
 * Hand descriptors of links and perf events to helper processes. A helper closes them when it ends,
 * so the caller does not wait for the kernel (leave_behind.c gives the reason). Sorts fds. They
 * stay open in the caller, which closes them next.
 *
 * Returns a descriptor that the helpers wait for; the caller closes it after fds, because the
 * process that closes a perf event or link last does the waiting. -1: there is nothing to close,
 * because count is 0, or there was no pipe and the helpers do not wait. If no helper can be
 * started, the caller waits when it closes fds. Blocks until the helpers run, some 20 ms in a
 * program of a gigabyte. Signals of the calling thread are blocked meanwhile.
 */
int pem_leave_behind(int *fds, size_t count);

#endif
