/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * statistics.h - reading statistics and distributions out of pools, by thread or together
 */
#ifndef PEM_STATISTICS_H
#define PEM_STATISTICS_H

#include "distribution.h"

#include <pem/pem.h>

#include <stdbool.h>

struct pem_demand;
struct pem_producer;
struct pem_session;

struct pem_statistics {
	struct pem_session *session;
	struct pem_statistics *next;
	char attribute[64];
	bool enabled, was_enabled, keeps;
	size_t count;
	struct pem_demand *demands[];
};

struct pem_session_statistics {
	struct pem_statistics *handles;
	/* Bit i: some demand uses distribution index i. */
	uint32_t distributions_used;
	uint16_t distribution_generation;
	/* How many events statistics lacked when the session last said so. */
	uint64_t lost_said;
};

/* --- merge.c --- */

void pem_statistic__add(struct pem_statistic *to, const struct pem_statistic *from);
/* May the sum of count values from min to max have wrapped? */
bool pem_statistic__may_overflow(const struct pem_statistic *statistic, uint64_t min, uint64_t max);
/* Fill in what follows from count and sum. The variance is set to 0 unless the demand keeps it. */
void pem_statistic__finish(struct pem_statistic *value, const struct pem_demand *demand);

/* --- distribution.c --- */

/* Release a demand's distribution: the demand wants no more than its cell from now on. */
void pem_demand__release_distribution(struct pem_session *session, struct pem_demand *demand);

/* Read the whole distribution of a demand, which keeps one. Returns 0, or -errno of its source. */
int pem_demand__read_distribution(struct pem_session *session, const struct pem_demand *demand,
				  struct pem_distribution_total *total);

/*
 * A process is gone: add its distribution to the demand's retired_distribution. It is cleared first
 * if retired_epoch is not the demand's epoch.
 */
void pem_demand__retire_distribution(struct pem_demand *demand, struct pem_producer *producer);

/* Add a producer's part of a demand's distribution to total. */
void pem_producer__distribution(struct pem_producer *producer, const struct pem_demand *demand,
				struct pem_distribution_total *total);

/* --- parts.c --- */

/* Add an event's cells of all lanes to a statistic. Only cells of the demand's epoch count. */
void pem_producer__statistic(struct pem_producer *producer, const struct pem_demand *demand,
			     struct pem_statistic *s);

/*
 * Call read with the event's index, such that no lane changes hands while read runs: if one does,
 * read is called again, a limited number of times. read is not called if the producer does not know
 * the event. Returns what the last call of read returned, or 0. May wait for 0.1 s; if the producer
 * died in the middle of a fold, only the first call waits.
 */
int pem_producer__steady(struct pem_producer *producer, const struct pem_demand *demand,
			 int (*read)(struct pem_producer *producer, uint32_t event_index,
				     void *arg),
			 void *arg);

/*
 * Call function with the statistic of each thread that has one. tid 0 is for threads that are gone.
 * Returns how often function was called, or -ENOMEM.
 */
int pem_producer__parts(struct pem_producer *producer, const struct pem_demand *demand,
			void (*function)(const struct pem_statistic *part, uint32_t tid, void *arg),
			void *arg);

#endif
