/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * team.c - several threads that move chunks to the log
 *
 * Where programs raise events on more CPUs than one thread can follow, further threads help. The
 * thread that has the session's lock cuts what it found into shares of whole lanes, wakes the
 * others, takes shares as they do, and waits until all are done. So nothing else of the session
 * happens meanwhile, and order within a lane is kept. The threads are started at the first moment
 * with much to move, and end with the session.
 *
 * What the threads have in common while they run:
 *   - the producer's table of events and each event's demand: fixed before they start;
 *   - counts of the producer and the log: added up with atomic additions;
 *   - the producer's next_seq, and the pool's chunks: by lanes, each of which is one thread's;
 *   - the log's model: session->chunks->describing;
 *   - the writer: by its lock, and by streams that are one thread's each.
 * Not shared out are producers that asynchronous callbacks read, those of other users' directories,
 * whose time is accounted for chunk by chunk, those that may bring new events meanwhile, and those
 * of flight recorders, whose packets go to one memory.
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "writer/log.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_BY_CHOICE 8u
/* Fewer chunks are moved sooner by one thread: others have to wake up first. */
#define CHUNKS_LEAST 64u
#define SHARE_CHUNKS 16u
#define RETRY_NS 1000000000u /* after threads could not be started */

struct share {
	struct pem_drain *drain;
	size_t from, to;
};

struct pem_drain_team {
	struct pem_session *session;
	pid_t pid; /* of the process whose threads they are */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Protected by lock. */
	uint64_t round; /* rounds begun so far */
	uint32_t running; /* threads that have not finished the round */
	bool quits;
	/* The shares of the round; 'next' is taken by atomic addition. */
	struct share *shares;
	size_t count, capacity, next;
	uint32_t thread_count; /* without the one that has the session's lock */
	struct pem_drain_thread threads[];
};

static int make_batch(const struct pem_session *s, struct pem_batch *batch)
{
	batch->bytes = s->geometry.chunk_bytes > PEM_BATCH_BYTES ? s->geometry.chunk_bytes
								 : PEM_BATCH_BYTES;
	batch->memory = malloc(batch->bytes);
	batch->counts = calloc(s->geometry.event_capacity, sizeof(*batch->counts));
	return batch->memory && batch->counts ? 0 : -ENOMEM;
}

static void free_batch(struct pem_batch *batch)
{
	free(batch->memory);
	free(batch->counts);
}

int pem_chunks__begin(struct pem_session *s)
{
	return make_batch(s, &s->chunks->own.batch);
}

static void run_shares(struct pem_drain_team *team, struct pem_drain_thread *thread)
{
	const struct share *share;
	size_t i;

	for (;;) {
		i = __atomic_fetch_add(&team->next, 1, __ATOMIC_RELAXED);
		if (i >= team->count)
			return;
		share = &team->shares[i];
		pem_drain__run(team->session, share->drain, share->from, share->to, thread);
	}
}

static void *run(void *arg)
{
	struct pem_drain_thread *thread = arg;
	struct pem_drain_team *team = thread->team;
	uint64_t done = 0;

	pthread_mutex_lock(&team->lock);
	for (;;) {
		while (team->round == done && !team->quits)
			pthread_cond_wait(&team->changed, &team->lock);
		if (team->quits)
			break;
		done = team->round;
		pthread_mutex_unlock(&team->lock);
		run_shares(team, thread);
		pthread_mutex_lock(&team->lock);
		if (!--team->running)
			pthread_cond_broadcast(&team->changed);
	}
	pthread_mutex_unlock(&team->lock);
	return NULL;
}

static void end_team(struct pem_drain_team *team)
{
	uint32_t i;

	if (!team)
		return;
	/* A child of fork has no such threads, and one of them may have held the lock. */
	if (team->pid == getpid()) {
		pthread_mutex_lock(&team->lock);
		team->quits = true;
		pthread_cond_broadcast(&team->changed);
		pthread_mutex_unlock(&team->lock);
		for (i = 0; i < team->thread_count; i++)
			pthread_join(team->threads[i].thread, NULL);
		pthread_cond_destroy(&team->changed);
		pthread_mutex_destroy(&team->lock);
	}
	for (i = 0; i < team->thread_count; i++)
		free_batch(&team->threads[i].batch);
	free(team->shares);
	free(team);
}

void pem_chunks__end(struct pem_session *s)
{
	end_team(s->chunks->team);
	free_batch(&s->chunks->own.batch);
}

/* How many threads move chunks at most: half of the CPUs, since the programs need some, too. */
static uint32_t thread_limit(const struct pem_session *s)
{
	cpu_set_t cpus;
	long count;

	if (s->options.drain_threads)
		return s->options.drain_threads;
	/* The set has room for 1,024 CPUs. */
	count = sched_getaffinity(0, sizeof(cpus), &cpus) ? sysconf(_SC_NPROCESSORS_ONLN)
							  : CPU_COUNT(&cpus);
	return count / 2 < (long)THREADS_BY_CHOICE ? (uint32_t)(count / 2) : THREADS_BY_CHOICE;
}

/*
 * Start the further threads. Signals are not theirs, but for those of a touch of shared memory
 * whose owner cut it off. NULL: there is to be none, or none can be started.
 */
static struct pem_drain_team *start_team(struct pem_session *s)
{
	uint32_t limit = thread_limit(s);
	struct pem_drain_team *team;
	struct pem_drain_thread *t;
	sigset_t held, before;

	s->chunks->alone = limit < 2;
	team = limit < 2 ? NULL : calloc(1, sizeof(*team) + (limit - 1) * sizeof(*t));
	if (!team)
		return NULL;
	team->session = s;
	team->pid = getpid();
	pthread_mutex_init(&team->lock, NULL);
	pthread_cond_init(&team->changed, NULL);
	sigfillset(&held);
	sigdelset(&held, SIGBUS);
	sigdelset(&held, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &held, &before);
	while (team->thread_count < limit - 1) {
		t = &team->threads[team->thread_count];
		t->team = team;
		if (make_batch(s, &t->batch) || pthread_create(&t->thread, NULL, run, t)) {
			free_batch(&t->batch);
			break;
		}
		team->thread_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (team->thread_count)
		return team;
	end_team(team);
	return NULL;
}

/* Cut drains into shares of whole lanes. False: out of memory. */
static bool share_out(struct pem_drain_team *team, struct pem_drain *drains, size_t count)
{
	struct pem_drain *d;
	struct share *larger;
	size_t from, to;

	team->count = team->next = 0;
	for (d = drains; d < drains + count; d++) {
		for (from = 0; from < d->count; from = to) {
			for (to = from + 1;
			     to < d->count && (to - from < SHARE_CHUNKS ||
					       d->found[to].lane == d->found[to - 1].lane);
			     to++)
				;
			if (team->count == team->capacity) {
				larger = realloc(team->shares,
						 (team->capacity * 2 + 64) * sizeof(*larger));
				if (!larger)
					return false;
				team->shares = larger;
				team->capacity = team->capacity * 2 + 64;
			}
			team->shares[team->count++] = (struct share){d, from, to};
		}
	}
	return true;
}

static void fix_events(struct pem_session *s, struct pem_drain *drains, size_t count, bool fixed)
{
	size_t i;

	for (i = 0; i < count; i++)
		pem_producer__fix_events(s, drains[i].producer, fixed);
}

static void run_round(struct pem_drain_team *team, struct pem_drain_thread *own)
{
	pthread_mutex_lock(&team->lock);
	team->round++;
	team->running = team->thread_count;
	pthread_cond_broadcast(&team->changed);
	pthread_mutex_unlock(&team->lock);
	run_shares(team, own);
	pthread_mutex_lock(&team->lock);
	while (team->running)
		pthread_cond_wait(&team->changed, &team->lock);
	pthread_mutex_unlock(&team->lock);
}

/* The session's team, if several threads are worth it for so many chunks; else NULL. */
static struct pem_drain_team *team_for(struct pem_session *s, size_t chunks)
{
	struct pem_session_chunks *c = s->chunks;

	if (chunks < CHUNKS_LEAST || c->alone)
		return NULL;
	if (!c->team && pem_monotonic_ns() >= c->next_start_ns) {
		c->team = start_team(s);
		c->next_start_ns = pem_monotonic_ns() + RETRY_NS;
	}
	return c->team && c->team->pid == getpid() ? c->team : NULL;
}

bool pem_session__run_drains(struct pem_session *s, struct pem_drain *drains, size_t count)
{
	struct pem_drain_thread *own = &s->chunks->own;
	struct pem_drain_team *team = NULL;
	size_t chunks = 0, i;
	bool all = true;

	for (i = 0; i < count; i++)
		chunks += drains[i].count;
	if (count && drains[0].is_shared_out)
		team = team_for(s, chunks);
	if (team && share_out(team, drains, count) && team->count > 1) {
		fix_events(s, drains, count, true);
		run_round(team, own);
		fix_events(s, drains, count, false);
	} else {
		for (i = 0; i < count; i++)
			all &= pem_drain__run(s, &drains[i], 0, drains[i].count, own);
	}
	return all;
}
