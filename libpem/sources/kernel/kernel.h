/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel.h - the kernel source: its programs and what they deliver
 *
 *	source.c   the plugin: demands, statistics, balance
 *	load.c     BPF object: opened, sized, loaded, attached, stopped
 *	joint.c    one program for several events of a tracepoint
 *	drain.c    rings -> packets
 *	processes.c  statistics by process
 *	internal.c	   system calls of pem's own in programs
 */
#ifndef PEM_SOURCES_KERNEL_H
#define PEM_SOURCES_KERNEL_H

#include "sources/kernel/attach/attach.h"
#include "sources/kernel/base/base.h"

/*
 * Load the programs that demands and target need, and map the rings. Returns 0, or -errno with
 * error.
 */
int pem_source__load(struct pem_source *source, struct pem_error *error);
/* Observe one more process and its future children. Returns 0 or -errno. */
int pem_source__add_target(const struct pem_source *source, pid_t pid);
void pem_source__each_target(struct pem_source *source, void (*found)(void *arg, uint32_t pid),
			     void *arg);
/* set_gates of struct pem_source_ops. */
int pem_source__set_gates(struct pem_source *source, pid_t pid, uint64_t address);
/* outer_tid of struct pem_source_ops. */
uint32_t pem_source__outer_tid(struct pem_source *source, uint32_t pid_namespace, uint32_t tid,
			       uint32_t *uid, uint64_t *start_ns);
/*
 * Attach the loaded programs. If the program of an event can't be attached, the event is marked and
 * logged. Returns 0, or -errno with error.
 */
int pem_source__attach(struct pem_source *source, struct pem_error *error);
/* Detach all programs. When the function returns, no program runs any more and misses are final. */
void pem_source__detach(struct pem_source *source);
/* Undo pem_source__load. */
void pem_source__unload(struct pem_source *source);

/* Give the records in the rings to the sink. Returns 0, or the first -errno of the sink. */
int pem_source__drain_rings(struct pem_source *source, const struct pem_source_sink *sink);
/* Are all rings read to their end? */
bool pem_source__is_drained(const struct pem_source *source);

/* --- joint.c --- */

/*
 * Of the programs that are chosen, replace those of one tracepoint by one. The first of its events
 * has it as its program. Returns 0, or -errno with error.
 */
int pem_source__join(struct pem_source *source, struct pem_error *error);
/*
 * If this is a program of several events, which the kernel refuses: load one for each of its
 * events, to find which one it is. Returns whether it is such a program.
 */
bool pem_source__refuse_joint(struct pem_source *source, const char *program);
/* The program of the event at this index is refused for good: the others may be joined again. */
void pem_source__rejoin(struct pem_source *source, unsigned index);
/* The program of the event at this index can't be attached: mark those that it serves as well. */
void pem_source__fail_joined(struct pem_source *source, unsigned index, int error);
/* Runs that the kernel refused are those of all events of the program. */
void pem_source__share_misses(struct pem_source *source);

/* --- internal.c --- */

/* Tell programs which calls a loader makes for libraries whose path begins so; "": unknown. */
void pem_source__name_libraries(struct pem_kconfig *config, const char *path);
/* internal_calls of struct pem_source_ops. */
uint64_t pem_source__internal_calls(struct pem_source *source);

/* --- processes.c --- */

/* each_process of struct pem_source_ops. */
int pem_source__each_process(struct pem_source *source, size_t i,
			     void (*function)(const struct pem_statistic *part, uint32_t pid,
					      uint32_t cpu, const char *program, void *arg),
			     void *arg);
void pem_source__free_processes(struct pem_source *source);

/* Count what is still in the rings as discarded. */
void pem_source__give_up_rest(struct pem_source *source);

#endif
