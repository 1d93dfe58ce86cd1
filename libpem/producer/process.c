/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * process.c - providers and their control pages, joining sessions, fork
 *
 * Not here: what rules say of events (apply.c), making pools (pools.c), threads (thread.c), events (notify.c).
 */
#include "producer/producer.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

struct pem_process pem_process;
static __thread int cancel_state __attribute__((tls_model("initial-exec")));
static sigset_t signal_mask; /* of the lock's holder, before it took it */

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/*
 * No handler runs while the lock is held: one that forks would leave a child in the middle of making its parent's
 * pool, as whose owner it then appears. Signals that the thread raises by what it does can't wait.
 */
static void hold_signals(sigset_t *before)
{
	static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t held;
	size_t i;

	sigfillset(&held);
	for (i = 0; i < PEM_ARRAY_SIZE(synchronous); i++)
		sigdelset(&held, synchronous[i]);
	pthread_sigmask(SIG_BLOCK, &held, before);
}

bool pem_process__lock(void)
{
	const struct timespec pause = {0, 50000};
	uint32_t self = thread_id(), holder = 0;
	unsigned tries = 0;
	sigset_t mask;
	int state;

	hold_signals(&mask);
	/* Opening and closing files are cancellation points, and a program is not cancelled inside its malloc. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	while (!__atomic_compare_exchange_n(&pem_process.lock, &holder, self, 0, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (holder == self) {
			pthread_setcancelstate(state, NULL);
			pthread_sigmask(SIG_SETMASK, &mask, NULL);
			return false;
		}
		holder = 0;
		/* Yielding alone would starve a holder of lower real-time priority. */
		if (++tries % 64)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
	cancel_state = state;
	signal_mask = mask;
	return true;
}

void pem_process__unlock(void)
{
	sigset_t mask = signal_mask;
	int state = cancel_state;

	__atomic_store_n(&pem_process.lock, 0, __ATOMIC_RELEASE);
	pthread_setcancelstate(state, NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* --- control pages --- */

static uint8_t *page_enable(const struct pem_provider *provider)
{
	return (uint8_t *)provider->page + sizeof(struct pem_control_header);
}

static uint64_t page_bytes_needed(uint32_t event_count)
{
	uint64_t capacity = PEM_EVENT_CAPACITY(event_count);

	return sizeof(struct pem_control_header) + capacity +
	       capacity * PEM_SESSIONS_MAX * sizeof(uint64_t);
}

/* Open a new control file of the process; its path is left in pem_process.control_path. */
static int create_control_file(void)
{
	char directory[PATH_MAX - 64];
	unsigned k;
	int fd;

	if (pem_runtime_dir(directory, sizeof(directory)))
		return -1;
	for (k = 0; k < 1000; k++) {
		snprintf(pem_process.control_path, sizeof(pem_process.control_path),
			 "%s/control-%u-%u", directory, pem_process.pid, k);
		fd = open(pem_process.control_path,
			  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

/* Lay the provider's page over the control file, keeping what it says. */
static void map_provider_page(int fd, struct pem_provider *provider, uint64_t offset,
			      uint32_t entry)
{
	struct pem_control_file *control = pem_process.control;

	memcpy((uint8_t *)control + offset, provider->page, provider->page_bytes);
	if (mmap(provider->page, provider->page_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, (off_t)offset) == MAP_FAILED)
		return;
	control->provider[entry].offset = offset;
	control->provider[entry].bytes = provider->page_bytes;
	if (entry == control->provider_count)
		__atomic_store_n(&control->provider_count, entry + 1, __ATOMIC_RELEASE);
}

/*
 * The control file is as large as all providers' pages may become: it is sparse, so that a provider that comes
 * later (dlopen) needs no second mapping.
 */
void pem_process__publish(void)
{
	uint64_t bytes = PAGE + PEM_PROVIDERS_MAX * (uint64_t)PEM_PAGE_ALIGN * 5,
		 offset = PEM_PAGE_ALIGN;
	struct pem_provider *provider;
	int fd;

	if (pem_process.control || !pem_process.providers || !pem_file_size_allowed(bytes))
		return;
	fd = create_control_file();
	if (fd < 0)
		goto none;
	if (ftruncate(fd, (off_t)bytes))
		goto unlink;
	pem_process.control = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pem_process.control == MAP_FAILED || !pem_populate(pem_process.control, PAGE)) {
		if (pem_process.control != MAP_FAILED)
			munmap(pem_process.control, bytes);
		pem_process.control = NULL;
		goto unlink;
	}
	pem_process.control_bytes = bytes;
	pem_process.control->abi_version = PEM_ABI_VERSION;
	pem_process.control->pid = pem_process.pid;
	pem_process.control->start_clock = pem_clock();
	for (provider = pem_process.providers; provider; provider = provider->next) {
		if (pem_process.control->provider_count == PEM_PROVIDERS_MAX ||
		    offset + provider->page_bytes > bytes ||
		    !pem_populate((uint8_t *)pem_process.control + offset, provider->page_bytes))
			break;
		map_provider_page(fd, provider, offset, pem_process.control->provider_count);
		offset += provider->page_bytes;
	}
	__atomic_store_n(&pem_process.control->magic, PEM_CONTROL_MAGIC, __ATOMIC_RELEASE);
	close(fd);
	return;
unlink:
	unlink(pem_process.control_path);
	close(fd);
none:
	pem_process.control_path[0] = 0;
}

/* --- joining --- */

static struct pem_session_page *map_session_page(const char *directory)
{
	struct pem_session_page *page;
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (snprintf(path, sizeof(path), "%s/config", directory) >= (int)sizeof(path))
		return NULL;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	page = MAP_FAILED;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    (uint64_t)st.st_size >= sizeof(*page))
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return NULL;
	if (__atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) == PEM_SESSION_MAGIC &&
	    page->abi_version == PEM_ABI_VERSION && !page->closed)
		return page;
	munmap(page, sizeof(*page));
	return NULL;
}

int pem_process__join(const char *directory)
{
	struct pem_joined *joined;
	int slot;

	if (!pem_process__lock())
		return -EDEADLK;
	for (slot = 0; slot < (int)PEM_SESSIONS_MAX; slot++) {
		if (pem_process.joined[slot].state == PEM_JOINED_NOT)
			break;
	}
	if (slot == (int)PEM_SESSIONS_MAX) {
		slot = -EUSERS;
		goto unlock;
	}
	joined = &pem_process.joined[slot];
	if (strlen(directory) >= sizeof(joined->directory)) {
		slot = -ENAMETOOLONG;
		goto unlock;
	}
	joined->page = map_session_page(directory);
	if (!joined->page) {
		slot = -ENOENT;
		goto unlock;
	}
	strcpy(joined->directory, directory);
	joined->callback_count = 0;
	joined->inherited = 0;
	joined->incarnation = joined->incarnation % 255 + 1;
	__atomic_store_n(&joined->state, PEM_JOINED_RULES, __ATOMIC_RELEASE);
	pem_process__apply((unsigned)slot);
unlock:
	pem_process__unlock();
	return slot;
}

/* Private pages in the place of shared ones, for threads that are late; the shared memory itself is given up. */
static void bury(void *mapping, uint64_t bytes)
{
	if (mmap(mapping, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		munmap(mapping, bytes);
}

void pem_process__leave(unsigned slot)
{
	struct pem_joined *joined = &pem_process.joined[slot];
	uint32_t state;

	if (!pem_process__lock())
		return;
	pem_process__switch_off(slot);
	state = joined->state;
	__atomic_store_n(&joined->state, PEM_JOINED_NOT, __ATOMIC_RELEASE);
	if (state == PEM_JOINED_POOL)
		bury(joined->ring.header, joined->pool_bytes);
	if (state != PEM_JOINED_NOT)
		bury(joined->page, sizeof(*joined->page));
	pem_process__unlock();
}

/* --- providers --- */

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

/* Where the provider's events lie in a pool's slots: where they lay before, if its library was here already. */
static uint32_t find_base(const struct pem_provider *provider)
{
	uint32_t base;

	for (base = 0; base + provider->event_count <= pem_process.event_count; base++) {
		if (!memcmp(&pem_process.event_id[base], provider->event_ids,
			    provider->event_count * sizeof(provider->event_ids[0])))
			return base;
	}
	return pem_process.event_count;
}

static int check_provider(const struct pem_provider *provider)
{
	if (provider->abi_version != PEM_ABI_VERSION)
		return -EPROTO;
	if (!provider->event_count || provider->event_count > PEM_EVENTS_PER_PROVIDER_MAX ||
	    strlen(provider->name) >= PEM_NAME_BYTES)
		return -EINVAL;
	if ((uintptr_t)provider->page % PEM_PAGE_ALIGN || provider->page_bytes % PEM_PAGE_ALIGN ||
	    provider->page_bytes < page_bytes_needed(provider->event_count) ||
	    PEM_PAGE_ALIGN % sysconf(_SC_PAGESIZE))
		return -EINVAL;
	if (find_base(provider) + provider->event_count > PEM_PROCESS_EVENTS_MAX)
		return -ENOSPC;
	return 0;
}

/* An entry of the control file whose library is gone, of the right size; else the next one; -1: full. */
static int find_control_entry(const struct pem_provider *provider, uint64_t *offset)
{
	const struct pem_control_file *control = pem_process.control;
	uint64_t end = PEM_PAGE_ALIGN;
	uint32_t i;

	for (i = 0; i < control->provider_count; i++) {
		const struct pem_control_header *header =
			(const void *)((const uint8_t *)control + control->provider[i].offset);

		*offset = control->provider[i].offset;
		if (!header->event_count && control->provider[i].bytes == provider->page_bytes)
			return (int)i;
		if (*offset + control->provider[i].bytes > end)
			end = *offset + control->provider[i].bytes;
	}
	*offset = end;
	return i < PEM_PROVIDERS_MAX && end + provider->page_bytes <= pem_process.control_bytes
		       ? (int)i
		       : -1;
}

static void extend_control(struct pem_provider *provider)
{
	uint64_t offset;
	int fd, entry = find_control_entry(provider, &offset);

	if (entry < 0)
		return;
	fd = open(pem_process.control_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (pem_populate((uint8_t *)pem_process.control + offset, provider->page_bytes))
		map_provider_page(fd, provider, offset, (uint32_t)entry);
	close(fd);
}

static void note_events(struct pem_provider *provider)
{
	uint32_t *ids, *models, i;
	unsigned slot;

	for (i = 0; i < provider->event_count; i++) {
		pem_process.event_id[provider->event_base + i] = provider->event_ids[i];
		/* Where a library that has gone had them, too: this one's text may be another. */
		pem_process.event_model[provider->event_base + i] = 0;
		pem_process.event_level[provider->event_base + i] = 0;
	}
	for (slot = 0; slot < PEM_SESSIONS_MAX; slot++) {
		if (pem_process.joined[slot].state != PEM_JOINED_POOL)
			continue;
		/* The model first: who finds an id looks for it. */
		pem_process__write_models(pem_process.joined[slot].directory);
		ids = pem_pool__event_ids(&pem_process.joined[slot].ring);
		models = pem_pool__event_models(&pem_process.joined[slot].ring);
		for (i = 0; i < provider->event_count; i++) {
			__atomic_store_n(&models[provider->event_base + i],
					 pem_process.event_model[provider->event_base + i],
					 __ATOMIC_RELAXED);
			__atomic_store_n(&ids[provider->event_base + i], provider->event_ids[i],
					 __ATOMIC_RELEASE);
		}
	}
}

int pem_provider_register(struct pem_provider *provider)
{
	struct pem_control_header *header = provider->page;
	unsigned slot;
	int result;

	if (!pem_process__lock())
		return -EDEADLK;
	result = 0;
	if (provider->registered)
		goto unlock;
	result = check_provider(provider);
	if (result)
		goto unlock;
	provider->event_base = find_base(provider);
	if (provider->event_base == pem_process.event_count)
		pem_process.event_count += provider->event_count;
	provider->slot_offset = provider->event_base * sizeof(struct pem_slot);
	header->abi_version = PEM_ABI_VERSION;
	header->event_count = provider->event_count;
	header->event_capacity = PEM_EVENT_CAPACITY(provider->event_count);
	header->event_base = provider->event_base;
	strcpy(header->provider, provider->name);
	provider->thread_offset = (intptr_t)((uint8_t *)&pem_thread_current - thread_pointer());
	provider->notify = pem_notify;
	provider->next = pem_process.providers;
	pem_process.providers = provider;
	note_events(provider); /* which is on the list by now */
	if (pem_process.control)
		extend_control(provider);
	else
		pem_process__publish();
	provider->registered = 1;
	for (slot = 0; slot < PEM_SESSIONS_MAX; slot++) {
		if (pem_process.joined[slot].state != PEM_JOINED_NOT)
			pem_process__apply_to(provider, slot);
	}
unlock:
	pem_process__unlock();
	return result;
}

void pem_provider_unregister(struct pem_provider *provider)
{
	struct pem_provider **link;

	if (!provider->registered || !pem_process__lock())
		return;
	for (link = &pem_process.providers; *link; link = &(*link)->next) {
		if (*link == provider) {
			*link = provider->next;
			break;
		}
	}
	memset(page_enable(provider), 0, provider->event_count);
	((struct pem_control_header *)provider->page)->event_count =
		0; /* its place may be given anew */
	provider->registered = 0;
	pem_process__unlock();
}

/* --- process life --- */

static bool locked_for_fork; /* false when a signal handler forks in the middle of the library */

static void before_fork(void)
{
	locked_for_fork = pem_process__lock();
}

static void after_fork_in_parent(void)
{
	if (locked_for_fork)
		pem_process__unlock();
}

/* The contexts of a parent that its child is in. */
static uint64_t inherited(const struct pem_joined *joined)
{
	uint64_t contexts = 0;
	uint32_t i;

	for (i = 1; joined->state != PEM_JOINED_NOT && i < PEM_CONTEXTS_MAX; i++) {
		if (joined->page->contexts[i].flags & PEM_CONTEXT_FOLLOW)
			contexts |= joined->contexts & 1ull << i;
	}
	return contexts;
}

/*
 * The child has its own address space but the parent's shared mappings: give it private control pages that say
 * the same, and let its first event make its own pool and control file.
 */
static void after_fork_in_child(void)
{
	struct pem_control_file *control = pem_process.control;
	struct pem_provider *provider;
	struct pem_joined *joined;
	unsigned i;

	pem_process.pid = (uint32_t)getpid();
	pem_thread__after_fork();
	for (provider = pem_process.providers; control && provider; provider = provider->next) {
		for (i = 0; i < control->provider_count; i++) {
			const struct pem_control_header *shared =
				(const void *)((uint8_t *)control + control->provider[i].offset);

			if (shared->event_base != provider->event_base)
				continue;
			if (mmap(provider->page, provider->page_bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
				memcpy(provider->page, shared, provider->page_bytes);
			break;
		}
	}
	if (control)
		munmap(control, pem_process.control_bytes);
	pem_process.control = NULL;
	pem_process.control_path[0] = 0;
	for (i = 0; i < PEM_SESSIONS_MAX; i++) {
		joined = &pem_process.joined[i];
		/* A handler or a callback may have forked: the child returns into an event, and stores what it would have. */
		if (joined->state == PEM_JOINED_POOL)
			bury(joined->ring.header, joined->pool_bytes);
		if (joined->state != PEM_JOINED_NOT)
			joined->state = PEM_JOINED_RULES;
		joined->callback_count = 0; /* they are the parent's */
		joined->inherited = inherited(joined);
		joined->full = 0;
	}
	pem_process.lock = 0;
	if (locked_for_fork) {
		pthread_setcancelstate(cancel_state, NULL);
		pthread_sigmask(SIG_SETMASK, &signal_mask, NULL);
	}
}

__attribute__((constructor(101))) static void start(void)
{
	const char *session = secure_getenv("PEM_SESSION");

	pem_process.pid = (uint32_t)getpid();
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	if (session && session[0] == '/')
		pem_process__join(session);
}

__attribute__((destructor(101))) static void finish(void)
{
	if (pem_process.control_path[0] && pem_process.pid == (uint32_t)getpid())
		unlink(pem_process.control_path);
}
