/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby.c - a process that nobody observes makes no files: it is on standby
 *
 * Such a process shares a file with all others of its user (standby_file.h, standby_make.c), which
 * takes the system calls of a library's load and no page of its own. It leaves when a session wakes
 * it, when it joins one, or when it is about to give up rights that its control file needs. Its
 * children are on standby, too. So is a process that was started in a session, until it raises an
 * event that the session wants.
 *
 * Only providers whose facts are known as they are registered (providers.h) can be on standby, and
 * only if they are the first of the process.
 */
#include "producer/standby.h"

#include "producer/producer.h"
#include "producer/rights.h"
#include "early.h"
#include "standby_file.h"
#include "util.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 1 where the process has had one thread so far; glibc from 2.32 on. */
extern char __libc_single_threaded __attribute__((weak));

static bool on_standby PEM_EARLY;
static const uint8_t *first_enable PEM_EARLY; /* of the first provider's page */
/* Of the first providers, in the order in which they were put on the list. */
static const struct pem_provider_facts *facts[PEM_PROVIDERS_MAX] PEM_EARLY;
static uint32_t fact_count PEM_EARLY;
/* While the process starts: PEM_SESSION's value; NULL: it is not to join one. */
static const char *deferred PEM_EARLY;
static struct pem_standby_session session PEM_EARLY;
/* Pid of a child that has its parent's memory, or may have. */
static uint32_t not_ours;

bool pem_process__on_standby(void)
{
	return __atomic_load_n(&on_standby, __ATOMIC_RELAXED);
}

bool pem_process__had_one_thread(void)
{
	return &__libc_single_threaded && __libc_single_threaded;
}

bool pem_standby__is_alone(void)
{
	return pem_process__on_standby() && pem_process__had_one_thread();
}

const struct pem_standby_session *pem_standby__session(void)
{
	return pem_process__on_standby() && session.page ? &session : NULL;
}

void pem_standby__defer(const char *value)
{
	deferred = value;
}

static void drop_page(void)
{
	if (session.page)
		munmap(session.page, sizeof(*session.page));
	session.page = NULL;
}

/* Join the session whose page is mapped already. */
static int join_mapped(void)
{
	int session_index;

	pem_process__begin();
	if (pem_restricted() || !pem_process__lock()) {
		drop_page();
		return -EPERM;
	}
	pem_process__found_runtime();
	session_index = pem_process__join_started(&session);
	pem_process__unlock();
	session.page = NULL; /* else the process would wait for it, should it come on standby */
	return session_index;
}

int pem_standby__join_deferred(void)
{
	const char *value = deferred;

	deferred = NULL;
	if (value && session.page)
		return join_mapped();
	return value ? pem_process__join_given(value) : (int)PEM_SESSIONS_MAX;
}

/* --- coming and leaving --- */

/*
 * Count an event that was raised while the process could not join its session: in a signal handler
 * that interrupted the joining, or under a filter that refuses pem's calls.
 */
static void count_lost(uint32_t event_id)
{
	struct pem_session_page *page = session.page;
	uint32_t count = __atomic_load_n(&page->rule_count, __ATOMIC_RELAXED),
		 flags = pem_rules__may_want(page, count, event_id, 0);

	if (pem_restricted())
		__atomic_fetch_add(&page->lost_filtered, 1, __ATOMIC_RELAXED);
	if (flags & PEM_ACTION_LOG)
		__atomic_fetch_add(&page->lost, 1, __ATOMIC_RELAXED);
	if (flags & PEM_ACTION_STAT)
		__atomic_fetch_add(&page->lost_statistics, 1, __ATOMIC_RELAXED);
}

bool pem_standby__lose(uint32_t event_id)
{
	if (!pem_process__on_standby())
		return false;
	if (session.page)
		count_lost(event_id);
	return true;
}

static void ignore(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	(void)provider;
	(void)index;
	(void)record;
	(void)bytes;
}

static void lose(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	(void)record;
	(void)bytes;
	count_lost(provider->event_ids[index]);
}

/* As pem_notify, of an event of a process on standby: it was enabled to wake the process. */
static void notify_first(struct pem_provider *provider, uint32_t index, void *record,
			 uint32_t bytes)
{
	pem_standby__leave();
	if (!pem_process__on_standby())
		pem_notify(provider, index, record, bytes);
	else if (session.page)
		count_lost(provider->event_ids[index]);
}

void pem_standby__note_facts(const struct pem_known_provider known[], uint32_t count)
{
	uint32_t i;

	if (pem_process.providers || count > PEM_PROVIDERS_MAX)
		return;
	for (i = 0; i < count; i++)
		facts[i] = known[i].facts;
	fact_count = count;
}

static void sort_by_page(struct pem_known_provider known[], uint32_t count)
{
	struct pem_known_provider moved;
	uint32_t i, k;

	for (i = 1; i < count; i++) {
		moved = known[i];
		for (k = i; k && known[k - 1].provider->page > moved.provider->page; k--)
			known[k] = known[k - 1];
		known[k] = moved;
	}
}

static bool are_in_one_piece(const struct pem_known_provider known[], uint32_t count)
{
	uint32_t i;

	for (i = 1; i < count; i++)
		if ((uint8_t *)known[i].provider->page !=
		    (uint8_t *)known[i - 1].provider->page + known[i - 1].provider->page_bytes)
			return false;
	return count > 0;
}

uint32_t pem_standby__providers(struct pem_known_provider known[PEM_PROVIDERS_MAX])
{
	struct pem_provider *provider;
	uint32_t count = 0, i;

	for (provider = pem_process.providers; provider; provider = provider->next)
		count++;
	if (count != fact_count)
		return 0;
	/* The list begins with the provider that was put on it last. */
	for (provider = pem_process.providers, i = count; provider; provider = provider->next) {
		i--;
		known[i] = (struct pem_known_provider){provider, facts[i]};
		if (!facts[i] || !provider->registered)
			return 0;
	}
	sort_by_page(known, count);
	return are_in_one_piece(known, count) ? count : 0;
}

/* Can these providers be on standby? Their pages lie one behind the other. */
static bool can_share(const struct pem_known_provider known[], uint32_t count)
{
	uint32_t i;

	if (!count || count > PEM_PROVIDERS_MAX)
		return false;
	for (i = 0; i < count; i++) {
		if (!known[i].facts || known[i].provider->registered ||
		    pem_process__check_provider(known[i].provider))
			return false;
	}
	return are_in_one_piece(known, count);
}

/* first: the provider whose page is the first one. none: no other thread runs yet */
static void begin(const struct pem_provider *first)
{
	first_enable = (const uint8_t *)first->page + sizeof(struct pem_control_header);
	__atomic_store_n(&on_standby, true, __ATOMIC_RELAXED);
}

static void add_all(const struct pem_known_provider known[], uint32_t count)
{
	uint32_t i;

	begin(known[0].provider);
	for (i = 0; i < count; i++) {
		/* Their events are noted later: few processes leave. */
		pem_process__list_provider(known[i].provider);
		facts[i] = known[i].facts;
		known[i].provider->notify = notify_first;
		known[i].provider->registered = 1;
	}
}

bool pem_standby__enter(const struct pem_known_provider providers[], uint32_t count)
{
	struct pem_known_provider known[PEM_PROVIDERS_MAX];
	bool enters = false;
	int fd;

	if (pem_process.providers || pem_process.ever_joined || count > PEM_PROVIDERS_MAX ||
	    (&__libc_single_threaded && !__libc_single_threaded))
		return false;
	memcpy(known, providers, count * sizeof(known[0]));
	sort_by_page(known, count);
	if (!can_share(known, count))
		return false;
	fd = deferred ? pem_standby_file__open_of(deferred, known, count, &session)
		      : pem_standby_file__open(known, count);
	if (fd < 0)
		return false;
	if (mmap(known[0].provider->page, pem_standby_file__bytes(known, count), PROT_READ,
		 MAP_SHARED | MAP_FIXED, fd, PEM_PAGE_ALIGN) != MAP_FAILED) {
		pem_process__remove_former();
		add_all(known, count);
		enters = true;
		deferred = NULL;
	}
	if (!enters)
		drop_page();
	close(fd);
	return enters;
}

void pem_standby__enter_again(const struct pem_standby_session *given)
{
	struct pem_provider *provider, *first = pem_process.providers;

	session = *given;
	for (provider = first; provider; provider = provider->next) {
		provider->notify = notify_first;
		if (provider->page < first->page)
			first = provider;
	}
	begin(first);
}

bool pem_standby__is_woken(void)
{
	return pem_process__on_standby() &&
	       __atomic_load_n(first_enable, __ATOMIC_RELAXED) == PEM_STANDBY_AWAKE;
}

bool pem_standby__forget(struct pem_provider *provider)
{
	if (!pem_process__on_standby())
		return false;
	__atomic_store_n(&provider->registered, 0, __ATOMIC_RELAXED);
	if (session.page) /* its events are enabled already */
		__atomic_store_n(&provider->notify, ignore, __ATOMIC_RELAXED);
	return true;
}

/* The process can't leave: its woken events are counted as lost, or do nothing. Lock held. */
static void stay(void)
{
	struct pem_provider *provider;

	for (provider = pem_process.providers; provider; provider = provider->next)
		provider->notify = session.page ? lose : ignore;
}

/*
 * Put private pages in place of the file's, which nobody may write, where the control file's could
 * not be put there. Lock held.
 */
static bool take_pages(void)
{
	struct pem_provider *provider = pem_process.providers;

	while (provider &&
	       (pem_process__is_published(provider) || pem_process__keep_private(provider)))
		provider = provider->next;
	return !provider;
}

/* The list begins with the provider that was put on it last. Lock held. */
static void note_all(void)
{
	struct pem_provider *provider;
	uint32_t i = 0;

	for (provider = pem_process.providers; provider; provider = provider->next)
		i++;
	for (provider = pem_process.providers; provider; provider = provider->next)
		pem_process__note_events(provider, false,
					 --i < PEM_PROVIDERS_MAX ? facts[i] : NULL);
}

/* Take those off the list that were unregistered meanwhile. Lock held. */
static void drop_forgotten(void)
{
	struct pem_provider **link = &pem_process.providers;

	while (*link) {
		if (__atomic_load_n(&(*link)->registered, __ATOMIC_RELAXED))
			link = &(*link)->next;
		else
			*link = (*link)->next;
	}
}

static void set_registered(uint32_t value)
{
	struct pem_provider *provider;

	for (provider = pem_process.providers; provider; provider = provider->next)
		/* RP */
		__atomic_store_n(&provider->registered, value, __ATOMIC_RELEASE);
}

/*
 * Events are enabled for no session any more, but for those that the process has joined. The
 * library has all of them by then.
 */
static void end_waking(void)
{
	struct pem_provider *provider;
	uint8_t *enable;
	uint32_t i;

	for (provider = pem_process.providers; provider; provider = provider->next) {
		enable = (uint8_t *)provider->page + sizeof(struct pem_control_header);
		for (i = 0; i < provider->event_count; i++)
			/* none: an event that still sees it finds no session there */
			__atomic_fetch_and(&enable[i], (uint8_t)~PEM_STANDBY_AWAKE,
					   __ATOMIC_RELAXED);
	}
}

/*
 * Until all is done, events of other threads wait for the lock: their enable bytes stay as they are
 * in the standby file, and lead to notify_first. Where no control file can be made, a private page
 * begins with none enabled, and such events pass by. Lock held.
 */
static void publish_all(void)
{
	struct pem_provider *provider;

	note_all();
	drop_forgotten();
	/* Its page is made as that of a new provider: the file's actions are no session's. */
	set_registered(0);
	pem_process__publish();
	set_registered(1);
	if (!take_pages()) {
		stay();
		return;
	}
	if (session.page)
		pem_process__join_started(&session);
	pem_process__search_sessions();
	for (provider = pem_process.providers; provider; provider = provider->next)
		provider->notify = pem_notify;
	__atomic_store_n(&on_standby, false, __ATOMIC_RELAXED);
	/* The last session's bit is the same. */
	if (!pem_process__had_session(PEM_SESSIONS_MAX - 1))
		end_waking();
}

/*
 * Whose memory is this? A child of vfork has its parent's. A child of _Fork or clone, of which no
 * handler of fork was told, has its own. The kernel is asked before the lock is taken: a filter of
 * which nobody told pem may end the child, and the parent would find its lock held for ever.
 */
enum memory { OWN_MEMORY, CHILDS_MEMORY, PARENTS_MEMORY };

static enum memory whose_memory(void)
{
	uint32_t pid;
	long order;

	if (pem_restricted())
		return OWN_MEMORY;
	pid = (uint32_t)getpid();
	if (pid == pem_process.pid)
		return OWN_MEMORY;
	order = syscall(SYS_kcmp, pid, pem_process.pid, KCMP_VM, 0, 0);
	/* A parent that is not there any more is none of vfork, but in another pid namespace. */
	if (order >= 0 || errno == ESRCH)
		return order > 0 || (order < 0 && getppid()) ? CHILDS_MEMORY : PARENTS_MEMORY;
	/* The kernel may not be asked. A child of _Fork has its own id in the C library's memory.
	 */
	return pem_process__first_id() == pid ? CHILDS_MEMORY : PARENTS_MEMORY;
}

/*
 * A child of vfork changes nothing in its parent's memory, unless the parent waits for a session:
 * then it joins for the parent, or its own event would be lost.
 */
void pem_standby__leave(void)
{
	int saved_errno = errno;
	enum memory memory;

	if (!pem_process__on_standby())
		return;
	pem_process__begin();
	if (not_ours && !pem_restricted() && (uint32_t)getpid() == not_ours)
		goto out;
	memory = whose_memory();
	if (memory == PARENTS_MEMORY && !session.page) {
		not_ours = (uint32_t)getpid();
		goto out;
	}
	if (!pem_process__lock())
		goto out;
	if (pem_process__on_standby()) {
		if (memory == CHILDS_MEMORY && (uint32_t)getpid() != pem_process.pid)
			pem_process__become_child();
		publish_all();
	}
	pem_process__unlock();
out:
	errno = saved_errno;
}

void pem_standby__leave_now(void)
{
	if (pem_process__on_standby())
		publish_all();
}
