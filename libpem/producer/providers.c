/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * providers.c - registering and unregistering providers
 *
 * Not here: their pages in the control file (control.c), providers on standby (standby.c).
 */
#include "producer/providers.h"

#include "producer/producer.h"
#include "producer/rights.h"
#include "producer/standby.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

static uint64_t page_bytes_needed(uint32_t event_count)
{
	uint64_t capacity = PEM_EVENT_CAPACITY(event_count);

	return sizeof(struct pem_control_header) + capacity +
	       capacity * PEM_SESSIONS_MAX * sizeof(uint64_t);
}

static uint8_t *thread_pointer(void)
{
	uint8_t *tp;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(tp));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
#endif
	return tp;
}

/*
 * Find the place of the provider's events in the cells of a pool. If the library was here before,
 * its events have their old place.
 */
static uint32_t find_base(const struct pem_provider *provider)
{
	uint32_t base;

	/* Those of a process on standby are its first ones. */
	if (pem_process__on_standby())
		return pem_process.event_count;
	for (base = 0; base + provider->event_count <= pem_process.event_count; base++) {
		if (!memcmp(&pem_process.event_id[base], provider->event_ids,
			    provider->event_count * sizeof(provider->event_ids[0])))
			return base;
	}
	return pem_process.event_count;
}

int pem_process__check_provider(const struct pem_provider *provider)
{
	if (provider->abi_version != PEM_ABI_VERSION)
		return -EPROTO;
	if (!provider->event_count || provider->event_count > PEM_EVENTS_PER_PROVIDER_MAX ||
	    strlen(provider->name) >= PEM_NAME_BYTES)
		return -EINVAL;
	if ((uintptr_t)provider->page % PEM_PAGE_ALIGN || provider->page_bytes % PEM_PAGE_ALIGN ||
	    provider->page_bytes < page_bytes_needed(provider->event_count) ||
	    PEM_PAGE_ALIGN % getauxval(AT_PAGESZ))
		return -EINVAL;
	if (find_base(provider) + provider->event_count > PEM_PROCESS_EVENTS_MAX)
		return -ENOSPC;
	return 0;
}

void pem_process__note_events(struct pem_provider *provider, bool came_again,
			      const struct pem_provider_facts *facts)
{
	uint32_t *ids, *models, i;
	unsigned session_index;

	for (i = 0; i < provider->event_count; i++)
		pem_process.event_id[provider->event_base + i] = provider->event_ids[i];
	for (i = 0; (came_again || facts) && i < provider->event_count; i++) {
		pem_process.event_model[provider->event_base + i] = facts ? facts->model_hash : 0;
		pem_process.event_level[provider->event_base + i] = facts ? facts->levels[i] : 0;
	}
	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		if (!pem_process__had_session(session_index) ||
		    pem_process.joined[session_index].state != PEM_JOINED_POOL)
			continue;
		/* The models are written first: a consumer that finds an id looks for its model. */
		pem_process__write_models(&pem_process.joined[session_index].pool_file);
		pem_ring__populate_events(&pem_process.joined[session_index].ring,
					  provider->event_base, provider->event_count);
		ids = pem_pool__event_ids(&pem_process.joined[session_index].ring);
		models = pem_pool__event_models(&pem_process.joined[session_index].ring);
		for (i = 0; i < provider->event_count; i++) {
			__atomic_store_n(&models[provider->event_base + i],
					 pem_process.event_model[provider->event_base + i],
					 __ATOMIC_RELAXED);
			/* PB */
			__atomic_store_n(&ids[provider->event_base + i], provider->event_ids[i],
					 __ATOMIC_RELEASE);
		}
	}
}

bool pem_process__list_provider(struct pem_provider *provider)
{
	bool came_again;

	provider->event_base = find_base(provider);
	came_again = provider->event_base != pem_process.event_count;
	if (!came_again)
		pem_process.event_count += provider->event_count;
	provider->cell_offset = provider->event_base * sizeof(struct pem_cell);
	provider->thread_offset = (intptr_t)((uint8_t *)&pem_thread_current - thread_pointer());
	provider->notify = pem_notify;
	provider->next = pem_process.providers;
	pem_process.providers = provider;
	return came_again;
}

/* Lock held. Returns 0 or -errno. */
static int add_provider(struct pem_provider *provider, const struct pem_provider_facts *facts)
{
	int result = pem_process__check_provider(provider);

	if (!result)
		pem_process__note_events(provider, pem_process__list_provider(provider), facts);
	return result;
}

/* Let the process's sessions, and those that are offered now, have the providers' events. */
static void apply_sessions(struct pem_provider *const providers[], uint32_t count)
{
	unsigned session_index;
	uint32_t i;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		pem_process__join_offered(session_index);
		if (!pem_process__had_session(session_index))
			continue;
		for (i = 0; i < count && pem_process.joined[session_index].state != PEM_JOINED_NOT;
		     i++)
			pem_process__apply_to(providers[i], session_index);
		pem_process__join_offered(session_index);
	}
}

/* Lock held. Returns 0, or -errno of the first one that can't be registered. */
static int register_all(const struct pem_known_provider known[], uint32_t count)
{
	struct pem_provider *added[PEM_PROVIDERS_MAX], *provider;
	bool first = !pem_process.control;
	int result = 0, rc;
	uint32_t i, n = 0;

	/* It may be another: a child of _Fork by a process that had never had the lock. */
	pem_process.pid = pem_process__id();
	pem_standby__leave_now();
	for (i = 0; i < count && n < PEM_PROVIDERS_MAX; i++) {
		provider = known[i].provider;
		rc = provider->registered ? 0 : add_provider(provider, known[i].facts);
		if (!rc && !provider->registered)
			added[n++] = provider;
		result = result ? result : rc;
	}
	if (!n)
		return result;
	pem_process__publish_providers(added, n);
	for (i = 0; i < n; i++)
		/* RP */
		__atomic_store_n(&added[i]->registered, 1, __ATOMIC_RELEASE);
	apply_sessions(added, n);
	/*
	 * A consumer can find this process from now on. So the process searches the earlier
	 * sessions now.
	 */
	if (first)
		pem_process__search_sessions();
	return result;
}

int pem_providers__register(const struct pem_known_provider providers[], uint32_t count)
{
	int result = -EDEADLK, saved_errno = errno;
	unsigned session_index;

	pem_standby__note_facts(providers, count);
	/* A library that does not link with this one may have its constructor run first. */
	if (!pem_process.pid)
		pem_process__read_known_filters();
	else if (pem_standby__enter(providers, count) ||
		 (pem_standby__join_deferred() < 0 && pem_standby__enter(providers, count))) {
		errno = saved_errno;
		return 0;
	}
	pem_standby__leave();
	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++)
		if (pem_process__had_session(session_index) && pem_rights__has_clock())
			pem_process__check_consumer(session_index, pem_clock());
	if (pem_process__lock()) {
		pem_process.begins = !pem_process.control && !pem_process.providers;
		result = register_all(providers, count);
		pem_process.begins = false;
		pem_process__unlock();
	}
	errno = saved_errno;
	return result;
}

int pem_provider_register(struct pem_provider *provider)
{
	const struct pem_known_provider known = {provider, NULL};

	return pem_providers__register(&known, 1);
}

void pem_provider_unregister(struct pem_provider *provider)
{
	struct pem_provider **link;
	int saved_errno = errno;

	if (!provider->registered || pem_standby__forget(provider) || !pem_process__lock()) {
		errno = saved_errno;
		return;
	}
	for (link = &pem_process.providers; *link && *link != provider;)
		link = &(*link)->next;
	/* The provider of another libpem in this process has its page from there. */
	if (*link) {
		*link = provider->next;
		if (!pem_process.borrows_pages)
			pem_process__give_up_page(provider);
		provider->registered = 0;
	}
	pem_process__unlock();
	errno = saved_errno;
}
