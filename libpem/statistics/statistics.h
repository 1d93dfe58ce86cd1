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
	/* Bit i: index i of distributions is some demand's. */
	uint32_t distributions_used;
	uint16_t distribution_generation;
	/* Events that statistics lack, as last said. */
	uint64_t lost_said;
};

/* --- merge.c --- */

void pem_statistic__add(struct pem_statistic *to, const struct pem_statistic *from);
/* What follows from count and sum; and no variance unless the demand keeps it. */
void pem_statistic__finish(struct pem_statistic *value, const struct pem_demand *demand);

/* --- distribution.c --- */

/* A demand wants no more than its cell from now on. */
void pem_demand__release_distribution(struct pem_session *session, struct pem_demand *demand);

/* All that is known of a demand, which keeps something. 0, or -errno of its source. */
int pem_demand__read_distribution(struct pem_session *session, const struct pem_demand *demand,
				  struct pem_distribution_total *total);

/* A process is gone, and what it had is kept; in retired_epoch, if that is the demand's. */
void pem_demand__retire_distribution(struct pem_demand *demand, struct pem_producer *producer);

/* What a distribution keeps, added to what there is. */
void pem_producer__distribution(struct pem_producer *producer, const struct pem_demand *demand,
				struct pem_distribution_total *total);

/* --- parts.c --- */

/* Add an event's cells over all lanes to a statistic; in the demand's epoch only. */
void pem_producer__statistic(struct pem_producer *producer, const struct pem_demand *demand,
			     struct pem_statistic *s);

/*
 * Read lanes of one moment, as far as lanes that change hands go: calls read with the event's
 * index, again if one did meanwhile; not if the producer does not know the event. Returns what read
 * did last, or 0. May wait for a tenth of a second, once where the producer died in the middle.
 */
int pem_producer__steady(struct pem_producer *producer, const struct pem_demand *demand,
			 int (*read)(struct pem_producer *producer, uint32_t event_index,
				     void *arg),
			 void *arg);

/* A statistic by thread: calls function for each that has any, and returns how many; or -ENOMEM. */
int pem_producer__parts(struct pem_producer *producer, const struct pem_demand *demand,
			void (*function)(const struct pem_statistic *part, uint32_t tid, void *arg),
			void *arg);

#endif
