/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sampling.h - what the module samples itself, beside what tracepoints tell
 *
 *	counters.c	what counters of a CPU hold when another event is raised there
 *	accessed.c	which pages of a process were used, by the accessed bits of its page tables
 *	supply.c	how many free blocks of memory there are
 *	ticker.c	when samples are taken: in a thread of the user's
 *
 * All write by the emitters that codegen makes of the specs (pem_kmod_emit.h), which are probes
 * that the module calls itself: what holds for probes (pem_kmod.h) holds for them.
 *
 * Everything here but what says otherwise is called under the session's lock. Ticks never take it.
 */
#ifndef PEM_KMOD_SAMPLING_H
#define PEM_KMOD_SAMPLING_H

#include "pem_kmod.h"

#ifdef __KERNEL__
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#endif

#include <pem/kmod.h>

struct cred;
struct pem_supply;
struct pem_tickers;

/* --- ticker.c: any thread, without the session's lock, too --- */

/*
 * Something that tick() does every interval_ns until it returns false. Its owner sets these, and
 * the rest is 0.
 */
struct pem_ticker {
	bool (*tick)(struct pem_ticker *ticker);
	void (*free)(struct pem_ticker *ticker);
	u64 interval_ns;
	/* Of ticker.c alone: */
	struct pem_tickers *all;
	struct list_head list;
	refcount_t refs;
	unsigned int run; /* of the session, that the members below are about */
	u64 next_ns; /* when the next tick is due; 0: at once */
	bool is_done; /* tick() returned false */
	bool is_removed;
};

/* Those of a session. */
struct pem_tickers {
	spinlock_t lock; /* of all that follows, and of its tickers */
	struct list_head list;
	wait_queue_head_t wait;
	unsigned int changes; /* counts what the thread that works has to know of */
	unsigned int run; /* counts START and STOP */
	bool is_running;
	bool is_worked; /* a thread works */
};

void pem_tickers__init(struct pem_tickers *all);
/*
 * Its first tick comes at once if the session runs, else after START. It is freed, by free(), after
 * it is removed.
 */
void pem_tickers__add(struct pem_tickers *all, struct pem_ticker *ticker);
/* A tick of it may still run, but pem_ticker__is_over() of it is true. */
void pem_tickers__remove(struct pem_ticker *ticker);
/* START and STOP. The same holds for a tick that runs. */
void pem_tickers__run(struct pem_tickers *all, bool on);
/*
 * Tick in this thread until STOP (0), or a signal (-ERESTARTSYS). -EBUSY: the session does not run,
 * or another thread does it.
 */
int pem_tickers__work(struct pem_tickers *all);
/* For tick(): it is to write no record any more, and to end soon. */
bool pem_ticker__is_over(const struct pem_ticker *ticker);

/* What a session samples. */
struct pem_kmod_sampling {
	struct pem_kmod_probe_data *data;
	struct pem_tickers tickers;
	struct list_head accessed;
	u32 accessed_count;
	struct pem_supply *supply; /* NULL: not wanted */
};

/* --- counters.c --- */

int pem_counters__init(void);
void pem_counters__exit(void);
/*
 * Open counters on all CPUs, now and when they come online. 0; or -errno, and asked->failed says
 * which one could not be had: none is then. They are the session's until it ends: EBUSY if it has
 * some.
 */
int pem_counters__open(struct pem_kmod_probe_data *data, struct pem_kmod_counters *asked);
/* No probe of the session runs. */
void pem_counters__close(struct pem_kmod_probe_data *data);

/* --- accessed.c --- */

/* Sample a process, differently if it is already, or no more. */
int pem_accessed__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_accessed *asked);
void pem_accessed__free(struct pem_kmod_sampling *sampling);

/* --- supply.c --- */

int pem_supply__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_supply *asked,
		    bool runs);
void pem_supply__free(struct pem_kmod_sampling *sampling);

#endif
