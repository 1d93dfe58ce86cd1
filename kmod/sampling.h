/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sampling.h - what the module samples itself, in addition to tracepoints
 *
 *	counters.c	values of a CPU's counters when another event is raised there
 *	accessed.c	which pages of a process were used, by the accessed bits of its page tables
 *	supply.c	how many free blocks of memory there are
 *	ticker.c	when samples are taken: in a thread that the user lends
 *
 * All of them write through the emitters that codegen generates from the specs (pem_kmod_emit.h).
 * An emitter is a probe that the module calls itself. The rules for probes (pem_kmod.h) hold for
 * it.
 *
 * Callers hold the session's lock unless a comment says otherwise. A tick never takes it.
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

/* --- ticker.c: called from any thread, also without the session's lock --- */

/*
 * A periodic task: tick() is called every interval_ns until it returns false. The owner sets the
 * first three members. The rest is 0 at first.
 */
struct pem_ticker {
	bool (*tick)(struct pem_ticker *ticker);
	void (*free)(struct pem_ticker *ticker);
	u64 interval_ns;
	/* Only ticker.c uses the members below. */
	struct pem_tickers *all;
	struct list_head list;
	refcount_t refs;
	/* pem_tickers.run at the last tick. next_ns and is_done hold for this run only. */
	unsigned int run;
	u64 next_ns; /* when the next tick is due; 0: at once */
	bool is_done; /* tick() returned false */
	bool is_removed;
};

/* The tickers of a session. */
struct pem_tickers {
	/* Protects all members below and the tickers in the list. */
	spinlock_t lock;
	struct list_head list;
	wait_queue_head_t wait;
	/* Number of changes that the working thread must notice. */
	unsigned int changes;
	/* Number of START and STOP so far. */
	unsigned int run;
	bool is_running;
	/* A thread runs pem_tickers__work(). */
	bool is_worked;
};

void pem_tickers__init(struct pem_tickers *all);
/*
 * Add a ticker. Its first tick comes at once if the session runs, else after START. ticker->free()
 * frees it after it is removed.
 */
void pem_tickers__add(struct pem_tickers *all, struct pem_ticker *ticker);
/*
 * Remove a ticker. One of its ticks may still run, but pem_ticker__is_over() is already true for
 * it.
 */
void pem_tickers__remove(struct pem_ticker *ticker);
/*
 * Note START or STOP. After STOP a tick may still run, but pem_ticker__is_over() is already true
 * for it.
 */
void pem_tickers__run(struct pem_tickers *all, bool on);
/*
 * Run ticks in this thread until STOP or a signal. Blocks. Returns 0 after STOP, -ERESTARTSYS on a
 * signal, -EBUSY if the session does not run or another thread does this already.
 */
int pem_tickers__work(struct pem_tickers *all);
/* A tick() asks this. True: the tick must write no record any more, and must end soon. */
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
 * Open counters on all CPUs, and on CPUs that come online later. Returns 0 or -errno. On failure no
 * counter is open, and asked->failed says which one failed. -EBUSY: the session has counters
 * already. The counters stay open until pem_counters__close().
 */
int pem_counters__open(struct pem_kmod_probe_data *data, struct pem_kmod_counters *asked);
/* Close the counters. No probe of the session may run. */
void pem_counters__close(struct pem_kmod_probe_data *data);

/* --- accessed.c --- */

/* Sample a process, change how it is sampled, or stop sampling it. */
int pem_accessed__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_accessed *asked);
void pem_accessed__free(struct pem_kmod_sampling *sampling);

/* --- supply.c --- */

int pem_supply__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_supply *asked,
		    bool runs);
void pem_supply__free(struct pem_kmod_sampling *sampling);

#endif
