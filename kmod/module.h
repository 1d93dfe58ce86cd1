/* SPDX-License-Identifier: GPL-2.0 */
/*
 * module.h - what the module's files know of each other
 *
 * Not here: what probes see (pem_kmod.h).
 *
 * Locks, outermost first:
 *	session->lock       one ioctl at a time: state, rules, what is taken and freed
 *	module list         the kernel's (tracepoint_module_list_mutex): held when it tells of
 *			    modules that come and go
 *	attach lock         (attach.c) which probes are registered, of all sessions
 *	tracepoints_mutex   the kernel's, when a probe is registered; takes cpus_read_lock() within
 *	cpus_read_lock()    the kernel's: no CPU comes or goes. Nothing above is taken under it, nor
 *			    by a CPU that comes.
 *	user lock           (limit.c) a spinlock
 *	tickers' lock       (ticker.c) a spinlock; a thread in PEM_KMOD_WORK takes nothing else of
 *			    these
 * mmap() and poll() take none of them: they read pools, which are published once and live until the
 * file is released. A CPU that comes online takes none of the session's: it makes a pool where
 * there is none.
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
	struct pem_kmod_rule *rule; /* what the user asked for last; NULL: nothing yet */
	/* what probes see: the rule, or a copy with more flags; NULL: none */
	struct pem_kmod_rule *live;
	bool is_attached; /* under the attach lock */
};

/* A chunk that was full when it was found. */
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
	atomic_t full; /* chunks; in an overwrite pool at least so many */
	struct pem_full_chunk *found; /* as many as chunks; which of them are what: take.c */
	u32 found_count;
	struct irq_work wake;
};

/* An open file. */
struct pem_kmod_session {
	struct mutex lock; /* one ioctl at a time */
	/* released when pools are there; poll and mmap acquire it */
	enum pem_kmod_session_state state;
	struct pem_kmod_setup setup;
	struct pem_kmod_user *user;
	bool is_exempt; /* from the user's limit */
	struct hlist_node hotplug;
	struct list_head all; /* under the attach lock */
	wait_queue_head_t wait;
	/* of who called SETUP: CPUs' pools that come later are his, too */
	struct mem_cgroup *memcg;
	struct pem_kmod_pool **pools; /* by CPU; released when complete, never changed again */
	struct pem_kmod_session_event *events; /* by the event's index */
	struct pem_kmod_rule *retired; /* rules that probes may still see */
	unsigned int retired_count;
	struct pem_kmod_sampling sampling;
	bool is_logging; /* some event is logged: then context switches are, too */
	struct pem_kmod_probe_data probe_data;
};

/* session.c: an open file's life. All but new and free under the session's lock. */
struct pem_kmod_session *pem_kmod_session__new(void);
void pem_kmod_session__free(struct pem_kmod_session *session);
int pem_kmod_session__setup(struct pem_kmod_session *session, const struct pem_kmod_setup *setup);
int pem_kmod_session__start(struct pem_kmod_session *session);
int pem_kmod_session__stop(struct pem_kmod_session *session);

/* rule.c: what is wanted of events. Under the session's lock. */
int pem_kmod_rule__set(struct pem_kmod_session *session, const struct pem_kmod_event *wanted);
int pem_kmod_rule__apply_all(struct pem_kmod_session *session);
/* No probe sees them any more: its caller has waited. */
void pem_kmod_rule__free_retired(struct pem_kmod_session *session);
void pem_kmod_rule__free_all(struct pem_kmod_session *session);

/* pool.c: memory of CPUs, mapped, waited for, taken and freed. */
int pem_kmod_pool__init(void);
void pem_kmod_pool__exit(void);
int pem_kmod_pool__make_all(struct pem_kmod_session *session);
void pem_kmod_pool__free_all(struct pem_kmod_session *session);
/* Nothing of the CPU is anybody's: what its probes raise is counted elsewhere. */
void pem_kmod_pool__make_idle(struct pem_kmod_cpu *mine, unsigned int cpu);
struct pem_kmod_pool *pem_kmod_pool__of(struct pem_kmod_session *session, u32 cpu);
int pem_kmod_pool__map(struct pem_kmod_session *session, struct vm_area_struct *vma);
__poll_t pem_kmod_pool__poll(struct pem_kmod_session *session);
/* Give writers' chunks to the consumer. No probe runs. */
void pem_kmod_pool__retire_all(struct pem_kmod_session *session);

/* take.c: full chunks to the consumer, and back. Under the session's lock. */
int pem_kmod_pool__take(struct pem_kmod_session *session, struct pem_kmod_chunks *chunks);
/*
 * Put back the first count that the last call of take, which was of that CPU, gave: its caller
 * could not be told.
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
/* A tracepoint of the kernel itself, or NULL. */
struct tracepoint *pem_attach__find(const char *name);

/* target.c: which processes a session is about. Under the session's lock. */
int pem_target__init(struct pem_kmod_session *session);
void pem_target__exit(struct pem_kmod_session *session);
int pem_target__add(struct pem_kmod_session *session, u32 pid);
u32 pem_target__lost(const struct pem_kmod_session *session);

/* limit.c: a user's memory in all of his sessions. get: ERR_PTR on failure. */
struct pem_kmod_user *pem_kmod_user__get(void);
void pem_kmod_user__put(struct pem_kmod_user *user);
int pem_kmod_user__charge(struct pem_kmod_user *user, u64 bytes, bool is_exempt);
void pem_kmod_user__uncharge(struct pem_kmod_user *user, u64 bytes);
u64 pem_kmod_user__used(struct pem_kmod_user *user);
u64 pem_kmod_user__limit(void);

#endif
