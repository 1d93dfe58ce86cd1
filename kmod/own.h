/* SPDX-License-Identifier: GPL-2.0 */
/*
 * own.h - what the module finds out itself, beside what tracepoints tell
 *
 *	counters.c	what counters of a CPU hold when another event is raised there
 *	accessed.c	which pages of a process were used, by the accessed bits of its page tables
 *	supply.c	how many free blocks of memory there are
 *	ticker.c	a thread that looks now and then
 *
 * All write by the emitters that codegen makes of the specs (pem_kmod_own.h), which are probes that the module calls
 * itself: what holds for probes (pem_kmod.h) holds for them.
 *
 * Everything here but what says otherwise is called under the session's lock. Tickers never take it, so that it can be held
 * while one is stopped.
 */
#ifndef PEM_KMOD_OWN_H
#define PEM_KMOD_OWN_H

#include "pem_kmod.h"

#ifdef __KERNEL__
#include <linux/list.h>
#endif

#include <pem/kmod.h>

struct cred;
struct pem_ticker;

/* --- ticker.c --- */

/* Calls tick every interval_ns until it returns false, in a thread of its own. */
struct pem_ticker {
	struct task_struct *thread; /* NULL: none */
	bool (*tick)(struct pem_ticker *ticker);
	u64 interval_ns;
};

/* 0, or -errno: there is none then. The first tick comes at once. */
int pem_ticker__start(struct pem_ticker *ticker, const char *name);
/* Is somebody waiting for the tick that runs to end? */
bool pem_ticker__is_stopping(void);
/* No tick runs when it returns. Nothing if there is no thread. */
void pem_ticker__stop(struct pem_ticker *ticker);

/* What a session has of all that. */
struct pem_own {
	struct list_head accessed;
	u32 accessed_count;
	struct {
		struct pem_ticker ticker; /* interval_ns 0: not wanted */
		struct pem_kmod_session *session;
	} supply;
};

/* --- counters.c --- */

int pem_counters__init(void);
void pem_counters__exit(void);
/*
 * Open counters on all CPUs, now and when they come online. 0; or -errno, and asked->failed says which one could not be
 * had: none is then. They are the session's until it ends: EBUSY if it has some.
 */
int pem_counters__open(struct pem_kmod_session *session, struct pem_kmod_counters *asked);
/* No probe of the session runs. */
void pem_counters__close(struct pem_kmod_session *session);

/* --- accessed.c --- */

/* Sample a process, differently if it is already, or no more; from start on, or at once in a session that runs. */
int pem_accessed__set(struct pem_kmod_session *session, struct pem_own *own,
		      const struct pem_kmod_accessed *asked, bool runs);
int pem_accessed__start(struct pem_own *own);
void pem_accessed__stop(struct pem_own *own);
void pem_accessed__free(struct pem_own *own);

/* --- supply.c --- */

int pem_supply__set(struct pem_own *own, const struct pem_kmod_supply *asked, bool runs);
int pem_supply__start(struct pem_own *own);
void pem_supply__stop(struct pem_own *own);

#endif
