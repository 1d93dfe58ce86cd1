/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * module.h - what the files of the module share
 *
 * Not here: what probes use (pem_kmod.h).
 *
 * Locks, outermost first:
 *	session->lock       one ioctl at a time: state, rules, chunks taken and freed
 *	module list         the kernel's tracepoint_module_list_mutex. The kernel holds it while it
 *			    calls the notifier of modules that come and go.
 *	attach lock         (attach.c) which probes are registered, of all sessions
 *	tracepoints_mutex   the kernel's. Registering a probe takes it, and cpus_read_lock() inside.
 *	cpus_read_lock()    the kernel's: no CPU comes or goes. No lock above is taken under it. The
 *			    callback of a CPU that comes takes no lock above either.
 *	user lock           (limit.c) a spinlock
 *	tickers' lock       (ticker.c) a spinlock. A thread in PEM_KMOD_WORK takes no other lock of
 *			    this list.
 *
 * mmap() and poll() take none of these locks. They read pools. A pool is published once and lives
 * until the file is released. The callback of a CPU that comes takes no lock of the session. It
 * makes a pool only for a CPU that has none.
 */
#ifndef PEM_KMOD_MODULE_H
#define PEM_KMOD_MODULE_H

#include "sampling.h"
#include "pem_kmod.h"

#ifdef __KERNEL__
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/wait.h>
#endif

#include <pem/kmod.h>

struct pem_kmod_user;
struct tracepoint;

enum pem_kmod_session_state {
	PEM_KMOD_SESSION_NEW,
	PEM_KMOD_SESSION_READY,
	PEM_KMOD_SESSION_RUNNING,
	PEM_KMOD_SESSION_STOPPED
};

struct pem_kmod_session_event {
	/* The rule that the user asked for last. NULL: the user asked for none yet. */
	struct pem_kmod_rule *rule;
	/* The rule that probes see: the user's rule, or a copy with more flags. NULL: none. */
	struct pem_kmod_rule *live;
	bool is_attached; /* under the attach lock */
};

/* A full chunk as the search of take.c found it. */
struct pem_full_chunk {
	u64 begin;
	u32 index;
};

struct pem_kmod_pool {
	struct pem_kmod_session *session;
	struct page **pages;
	unsigned long page_count;
	void *memory; /* the pages, one after another */
	struct pem_ring ring;
	/* Number of full chunks. An overwrite pool has at least this number. */
	atomic_t full;
	/* As many entries as the pool has chunks. take.c describes how it divides them. */
	struct pem_full_chunk *found;
	u32 found_count;
	struct irq_work wake;
};

/* An open file. */
struct pem_kmod_session {
	struct mutex lock;
	/*
	 * SETUP stores it with release after it has stored the pools. poll and mmap load it with
	 * acquire.
	 */
	enum pem_kmod_session_state state;
	struct pem_kmod_setup setup;
	struct pem_kmod_user *user;
	/* The limit of the user does not apply. */
	bool is_exempt;
	struct hlist_node hotplug;
	struct list_head all; /* under the attach lock */
	wait_queue_head_t wait;
	/*
	 * Memory control group of the caller of SETUP. It is charged for pools of CPUs that come
	 * later, too.
	 */
	struct mem_cgroup *memcg;
	/*
	 * Indexed by CPU. A complete pool is stored with release, and the entry does not change
	 * afterwards.
	 */
	struct pem_kmod_pool **pools;
	struct pem_kmod_session_event *events; /* indexed by the event's index */
	struct pem_kmod_rule *retired; /* rules that probes may still see */
	unsigned int retired_count;
	struct pem_kmod_sampling sampling;
	/* An event is logged. Context switches are then logged, too. */
	bool is_logging;
	struct pem_kmod_probe_data probe_data;
};

/* session.c: the life of an open file. Callers hold the session's lock, except for new and free. */
struct pem_kmod_session *pem_kmod_session__new(void);
void pem_kmod_session__free(struct pem_kmod_session *session);
int pem_kmod_session__setup(struct pem_kmod_session *session, const struct pem_kmod_setup *setup);
int pem_kmod_session__start(struct pem_kmod_session *session);
int pem_kmod_session__stop(struct pem_kmod_session *session);

/* rule.c: the rules of events. Callers hold the session's lock. */
int pem_kmod_rule__set(struct pem_kmod_session *session, const struct pem_kmod_event *wanted);
int pem_kmod_rule__apply_all(struct pem_kmod_session *session);
/* Free the retired rules. The caller has waited until no probe sees them. */
void pem_kmod_rule__free_retired(struct pem_kmod_session *session);
void pem_kmod_rule__free_all(struct pem_kmod_session *session);

/* pool.c: the pools of CPUs: made, mapped, polled. */
int pem_kmod_pool__init(void);
void pem_kmod_pool__exit(void);
int pem_kmod_pool__make_all(struct pem_kmod_session *session);
void pem_kmod_pool__free_all(struct pem_kmod_session *session);
/* Initialize a CPU's state without a pool. Events of its probes are counted in the spare ring. */
void pem_kmod_pool__make_idle(struct pem_kmod_cpu *mine, unsigned int cpu);
struct pem_kmod_pool *pem_kmod_pool__of(struct pem_kmod_session *session, u32 cpu);
int pem_kmod_pool__map(struct pem_kmod_session *session, struct vm_area_struct *vma);
__poll_t pem_kmod_pool__poll(struct pem_kmod_session *session);
/* Give the chunks of all writers to the consumer. No probe may run. */
void pem_kmod_pool__retire_all(struct pem_kmod_session *session);

/*
 * take.c: gives full chunks to the consumer and takes them back. Callers hold the session's lock.
 */
int pem_kmod_pool__take(struct pem_kmod_session *session, struct pem_kmod_chunks *chunks);
/*
 * Put back the first count chunks that the last call of pem_kmod_pool__take returned. That call
 * must have been for this CPU. The ioctl uses it if it could not copy the chunks to its caller.
 */
void pem_kmod_pool__untake(struct pem_kmod_session *session, u32 cpu, u32 count);
int pem_kmod_pool__free(struct pem_kmod_session *session, const struct pem_kmod_chunks *chunks);

/* attach.c: tracepoints and probes. */
int pem_attach__init(void);
void pem_attach__exit(void);
void pem_attach__add_session(struct pem_kmod_session *session);
void pem_attach__remove_session(struct pem_kmod_session *session);
bool pem_attach__has(unsigned int index);
int pem_attach__set(struct pem_kmod_session *session, unsigned int index, bool on);
/* Find a tracepoint of the kernel itself, not of a module. NULL: there is none of this name. */
struct tracepoint *pem_attach__find(const char *name);

/* target.c: the processes that a session observes. Callers hold the session's lock. */
int pem_target__init(struct pem_kmod_session *session);
void pem_target__exit(struct pem_kmod_session *session);
int pem_target__add(struct pem_kmod_session *session, u32 pid);
u32 pem_target__lost(const struct pem_kmod_session *session);

/*
 * limit.c: the memory of one user in all of the user's sessions. pem_kmod_user__get returns ERR_PTR
 * on failure.
 */
struct pem_kmod_user *pem_kmod_user__get(void);
void pem_kmod_user__put(struct pem_kmod_user *user);
int pem_kmod_user__charge(struct pem_kmod_user *user, u64 bytes, bool is_exempt);
void pem_kmod_user__uncharge(struct pem_kmod_user *user, u64 bytes);
u64 pem_kmod_user__used(struct pem_kmod_user *user);
u64 pem_kmod_user__limit(void);

#endif
