/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby.c - a process that nobody observes makes no files: it is on standby
 *
 * Such a process shares a file with all others of its user (standby_file.h), which takes the system
 * calls of a library's load, and no page of its own. It leaves when a session wakes it, when it
 * joins one, or when it is about to give up rights that its control file needs. A child of fork is
 * on standby, too. A child of _Fork or clone stays there: it cannot be told from a child of vfork,
 * whose memory is its parent's.
 *
 * Only providers whose facts are known as they are registered (providers.h) can be on standby, and
 * only if they are the first of the process.
 */
#include "producer/standby.h"

#include "producer/producer.h"
#include "producer/rights.h"
#include "runtime_dir.h"
#include "standby_file.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_TRIES 3

static bool on_standby;

bool pem_process__on_standby(void)
{
	return __atomic_load_n(&on_standby, __ATOMIC_RELAXED);
}

/* --- the file --- */

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;
	size_t i;

	for (i = 0; i < count; i++)
		hash = (hash ^ at[i]) * 16777619u; /* FNV-1a */
	return hash;
}

/* Name the file of these providers. */
static void name_file(const struct pem_known_provider known[], uint32_t count, char *name,
		      size_t bytes)
{
	uint32_t hash = 2166136261u, i;
	const struct pem_provider *p;
	size_t used = 0;

	for (i = 0; i < count; i++) {
		p = known[i].provider;
		hash = hash_bytes(hash, p->name, strlen(p->name));
		hash = hash_bytes(hash, &p->event_count, sizeof(p->event_count));
		hash = hash_bytes(hash, &p->page_bytes, sizeof(p->page_bytes));
		hash = hash_bytes(hash, &known[i].facts->model_hash, sizeof(uint32_t));
	}
	pem_path__append(name, bytes, &used, "/" PEM_STANDBY_NAME);
	pem_path__append_number(name, bytes, &used, PEM_ABI_VERSION, 10, 0);
	pem_path__append(name, bytes, &used, "-");
	pem_path__append_number(name, bytes, &used, hash, 16, 8);
}

static uint64_t pages_bytes(const struct pem_known_provider known[], uint32_t count)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		bytes += known[i].provider->page_bytes;
	return bytes;
}

/* Write a new file that has no name yet. All its memory exists then. */
static bool fill_file(int fd, const struct pem_known_provider known[], uint32_t count)
{
	struct pem_standby_file file = {.magic = PEM_STANDBY_MAGIC,
					.abi_version = PEM_ABI_VERSION,
					.provider_count = count};
	uint64_t offset = PEM_PAGE_ALIGN;
	struct pem_control_header head;
	uint32_t i;

	if (syscall(SYS_fallocate, fd, 0, 0, offset + pages_bytes(known, count)))
		return false;
	for (i = 0; i < count; i++) {
		memset(&head, 0, sizeof(head));
		pem_process__fill_page_head(&head, known[i].provider);
		if (syscall(SYS_pwrite64, fd, &head, sizeof(head), offset) != sizeof(head))
			return false;
		file.enable[i].offset = offset + sizeof(head);
		file.enable[i].bytes = known[i].provider->event_count;
		offset += known[i].provider->page_bytes;
	}
	return syscall(SYS_pwrite64, fd, &file, sizeof(file), 0) == sizeof(file);
}

/* Make the file, unless another process does so meanwhile. */
static void make_file(const char *name, const struct pem_known_provider known[], uint32_t count)
{
	int fd = open(pem_process.runtime, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	static char path[PATH_MAX];
	char link[32];

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "%s%s", pem_process.runtime, name);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fill_file(fd, known, count))
		(void)!syscall(SYS_linkat, AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
	close(fd);
}

/* Open the file, by its name behind the runtime folder's. No further memory is touched for that. */
static int try_to_open(const char *name)
{
	size_t length = strlen(pem_process.runtime), used = length;
	int fd = -1;

	if (pem_path__append(pem_process.runtime, sizeof(pem_process.runtime), &used, name))
		fd = open(pem_process.runtime, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	pem_process.runtime[length] = 0;
	return fd;
}

/* Open the file, or make it. Returns -1 where there is none. */
static int open_file(const struct pem_known_provider known[], uint32_t count)
{
	uint64_t bytes = PEM_PAGE_ALIGN + pages_bytes(known, count);
	char name[48];
	struct stat st;
	unsigned tries;
	int fd = -1;

	name_file(known, count, name, sizeof(name));
	for (tries = 0; fd < 0 && tries < OPEN_TRIES; tries++) {
		if (tries)
			make_file(name, known, count);
		fd = try_to_open(name);
	}
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < bytes)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* --- coming and leaving --- */

/* As pem_notify, of an event of a process on standby: it was enabled to wake the process. */
static void notify_first(struct pem_provider *provider, uint32_t index, void *record,
			 uint32_t bytes)
{
	pem_standby__leave();
	if (!pem_process__on_standby())
		pem_notify(provider, index, record, bytes);
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
		if (i &&
		    (uint8_t *)known[i].provider->page != (uint8_t *)known[i - 1].provider->page +
								  known[i - 1].provider->page_bytes)
			return false;
	}
	return true;
}

/* none: no other thread runs yet */
static void add_all(const struct pem_known_provider known[], uint32_t count)
{
	uint32_t i;

	__atomic_store_n(&on_standby, true, __ATOMIC_RELAXED);
	for (i = 0; i < count; i++) {
		pem_process__add_provider(known[i].provider, known[i].facts);
		known[i].provider->notify = notify_first;
		known[i].provider->registered = 1;
	}
}

bool pem_standby__enter(const struct pem_known_provider providers[], uint32_t count)
{
	struct pem_known_provider known[PEM_PROVIDERS_MAX], moved;
	bool enters = false;
	uint32_t i, k;
	int fd;

	if (pem_process.providers || pem_process.ever_joined || count > PEM_PROVIDERS_MAX)
		return false;
	for (i = 0; i < count; i++) {
		moved = providers[i];
		for (k = i; k && known[k - 1].provider->page > moved.provider->page; k--)
			known[k] = known[k - 1];
		known[k] = moved;
	}
	if (!can_share(known, count) || !pem_process__find_runtime())
		return false;
	/* The file is opened before sessions are looked for: see standby_file.h. */
	fd = open_file(known, count);
	if (fd < 0)
		return false;
	if (!pem_process__finds_session() &&
	    mmap(known[0].provider->page, pages_bytes(known, count), PROT_READ,
		 MAP_SHARED | MAP_FIXED, fd, PEM_PAGE_ALIGN) != MAP_FAILED) {
		add_all(known, count);
		enters = true;
	}
	close(fd);
	return enters;
}

bool pem_standby__forget(struct pem_provider *provider)
{
	if (!pem_process__on_standby())
		return false;
	__atomic_store_n(&provider->registered, 0, __ATOMIC_RELAXED);
	return true;
}

/* Take those off the list that were unregistered meanwhile. Lock held. */
static void drop_forgotten(void)
{
	struct pem_provider **link = &pem_process.providers;

	while (*link) {
		if (__atomic_load_n(&(*link)->registered, __ATOMIC_RELAXED)) {
			link = &(*link)->next;
			continue;
		}
		pem_process__keep_private(*link);
		*link = (*link)->next;
	}
}

/* Lock held. */
static void publish_all(void)
{
	struct pem_provider *provider;

	drop_forgotten();
	/* Its page is made as that of a new provider: the file's enable bytes are no session's. */
	for (provider = pem_process.providers; provider; provider = provider->next)
		provider->registered = 0;
	pem_process__publish();
	for (provider = pem_process.providers; provider; provider = provider->next) {
		if (!pem_process.control)
			pem_process__keep_private(provider);
		provider->notify = pem_notify;
		/* RP */
		__atomic_store_n(&provider->registered, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&on_standby, false, __ATOMIC_RELAXED);
	pem_process__search_sessions();
}

void pem_standby__leave(void)
{
	int saved_errno = errno;

	if (!pem_process__on_standby())
		return;
	if (pem_process__lock()) {
		/* A child of vfork changes nothing in its parent's memory. */
		if (pem_process__on_standby() &&
		    (pem_restricted() || (uint32_t)getpid() == pem_process.pid))
			publish_all();
		pem_process__unlock();
	}
	errno = saved_errno;
}
