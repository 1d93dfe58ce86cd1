// SPDX-License-Identifier: GPL-2.0-only
/*
 * session.c - the life of an open file: made, set up, started, stopped, released
 *
 * Release does the same after a close and after the consumer was killed: it unregisters probes,
 * waits for the last of them, and frees everything.
 */
#include "module.h"

#include <linux/capability.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

static void set_state(struct pem_kmod_session *session, enum pem_kmod_session_state state)
{
	/* MA */
	smp_store_release(&session->state, state);
}

/* Allocate the parts of a session. No CPU has a pool yet. */
static int alloc_parts(struct pem_kmod_session *session)
{
	unsigned int cpu;

	session->probe_data.cpus = alloc_percpu_gfp(struct pem_kmod_cpu, GFP_KERNEL_ACCOUNT);
	session->pools = kcalloc(nr_cpu_ids, sizeof(*session->pools), GFP_KERNEL_ACCOUNT);
	session->events =
		kvcalloc(pem_kmod_probe_count, sizeof(*session->events), GFP_KERNEL_ACCOUNT);
	if (!session->probe_data.cpus || !session->pools || !session->events)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		pem_kmod_pool__make_idle(per_cpu_ptr(session->probe_data.cpus, cpu), cpu);
	return 0;
}

static void free_parts(struct pem_kmod_session *session)
{
	pem_kmod_user__put(session->user);
	kvfree(session->events);
	kfree(session->pools);
	free_percpu(session->probe_data.cpus);
	mutex_destroy(&session->lock);
	kvfree(session);
}

/* Make a session. ERR_PTR: no memory, or the user has too many files. */
struct pem_kmod_session *pem_kmod_session__new(void)
{
	struct pem_kmod_user *user = pem_kmod_user__get();
	struct pem_kmod_session *session;
	int rc;

	if (IS_ERR(user))
		return ERR_CAST(user);
	session = kvzalloc(struct_size(session, probe_data.rule, pem_kmod_probe_count),
			   GFP_KERNEL_ACCOUNT);
	if (!session) {
		pem_kmod_user__put(user);
		return ERR_PTR(-ENOMEM);
	}
	session->user = user;
	mutex_init(&session->lock);
	init_waitqueue_head(&session->wait);
	INIT_HLIST_NODE(&session->hotplug);
	INIT_LIST_HEAD(&session->sampling.accessed);
	pem_tickers__init(&session->sampling.tickers);
	session->sampling.data = &session->probe_data;
	rc = alloc_parts(session);
	if (rc) {
		free_parts(session);
		return ERR_PTR(rc);
	}
	pem_attach__add_session(session);
	return session;
}

static bool is_valid(const struct pem_kmod_setup *setup)
{
	u32 known = PEM_KMOD_OVERWRITE | PEM_KMOD_TREE | PEM_KMOD_ALONE;

	if (setup->reserved || (setup->flags & ~known))
		return false;
	if ((setup->flags & PEM_KMOD_ALONE) && !(setup->flags & PEM_KMOD_TREE))
		return false;
	return is_power_of_2(setup->chunk_bytes) &&
	       setup->chunk_bytes >= PEM_KMOD_CHUNK_BYTES_MIN &&
	       setup->chunk_bytes <= PEM_KMOD_CHUNK_BYTES_MAX &&
	       setup->chunk_count >= PEM_KMOD_CHUNKS_MIN &&
	       setup->chunk_count <= PEM_KMOD_CHUNKS_MAX && setup->watermark <= setup->chunk_count;
}

int pem_kmod_session__setup(struct pem_kmod_session *session, const struct pem_kmod_setup *setup)
{
	int rc;

	if (session->state != PEM_KMOD_SESSION_NEW)
		return -EBUSY;
	if (!is_valid(setup))
		return -EINVAL;
	session->setup = *setup;
	if (!session->setup.watermark)
		session->setup.watermark = setup->chunk_count / 2;
	session->is_exempt = capable(CAP_SYS_RESOURCE);
	rc = pem_target__init(session);
	if (rc)
		return rc;
	rc = pem_kmod_pool__make_all(session);
	if (rc) {
		pem_target__exit(session);
		return rc;
	}
	set_state(session, PEM_KMOD_SESSION_READY);
	return 0;
}

/* Unregister the session's probes. When it returns, no probe of the session runs. */
static void detach(struct pem_kmod_session *session, enum pem_kmod_session_state state)
{
	pem_tickers__run(&session->sampling.tickers, false);
	set_state(session, state);
	pem_kmod_rule__apply_all(session);
	tracepoint_synchronize_unregister();
	pem_kmod_rule__free_retired(session);
}

int pem_kmod_session__start(struct pem_kmod_session *session)
{
	unsigned int cpu;
	int rc;

	if (session->state != PEM_KMOD_SESSION_READY && session->state != PEM_KMOD_SESSION_STOPPED)
		return -EBUSY;
	for_each_possible_cpu(cpu)
		per_cpu_ptr(session->probe_data.cpus, cpu)->logged_thread = PEM_KRING_NO_THREAD;
	set_state(session, PEM_KMOD_SESSION_RUNNING);
	rc = pem_kmod_rule__apply_all(session);
	if (rc) {
		detach(session, PEM_KMOD_SESSION_STOPPED);
		pem_kmod_pool__retire_all(session);
		return rc;
	}
	pem_tickers__run(&session->sampling.tickers, true);
	return 0;
}

int pem_kmod_session__stop(struct pem_kmod_session *session)
{
	if (session->state != PEM_KMOD_SESSION_RUNNING)
		return -EBUSY;
	detach(session, PEM_KMOD_SESSION_STOPPED);
	pem_kmod_pool__retire_all(session);
	wake_up_interruptible_poll(&session->wait, EPOLLIN | EPOLLRDNORM);
	return 0;
}

void pem_kmod_session__free(struct pem_kmod_session *session)
{
	if (session->state == PEM_KMOD_SESSION_RUNNING)
		detach(session, PEM_KMOD_SESSION_STOPPED);
	pem_accessed__free(&session->sampling);
	pem_supply__free(&session->sampling);
	pem_counters__close(&session->probe_data);
	pem_attach__remove_session(session);
	pem_target__exit(session);
	pem_kmod_pool__free_all(session);
	pem_kmod_rule__free_all(session);
	free_parts(session);
}
