/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby.c - a process that nobody observes makes no files: it is on standby
 *
 * Such a process shares a file with all others of its user (standby_file.h), which takes the system
 * calls of a library's load and no page of its own. Where the file is there already, no other calls
 * are made: the process may have begun with a seccomp filter. It leaves when a session wakes it,
 * when it joins one, or when it is about to give up rights that its control file needs. Its
 * children are on standby, too.
 *
 * Only providers whose facts are known as they are registered (providers.h) can be on standby, and
 * only if they are the first of the process.
 */
#include "producer/standby.h"

#include "producer/producer.h"
#include "producer/rights.h"
#include "early.h"
#include "model_hash.h"
#include "runtime_dir.h"
#include "standby_file.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* 1 where the process has had one thread so far; glibc from 2.32 on. */
extern char __libc_single_threaded __attribute__((weak));

static bool on_standby PEM_EARLY;
static const uint8_t *first_enable PEM_EARLY; /* of the first provider's page */
/* Of the providers, in the order in which they were put on the list. */
static const struct pem_provider_facts *facts[PEM_PROVIDERS_MAX] PEM_EARLY;
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

/* --- the file --- */

/* Name the file of these providers. A model has its provider's name and events in it. */
static void name_file(const struct pem_known_provider known[], uint32_t count, char *name,
		      size_t bytes)
{
	uint32_t words[2 * PEM_PROVIDERS_MAX], i;
	size_t used = 0;

	for (i = 0; i < count; i++) {
		words[2 * i] = known[i].facts->model_hash;
		words[2 * i + 1] = (uint32_t)known[i].provider->page_bytes;
	}
	pem_path__append(name, bytes, &used, "/" PEM_STANDBY_NAME);
	pem_path__append_number(name, bytes, &used, PEM_ABI_VERSION, 10, 0);
	pem_path__append(name, bytes, &used, "-");
	pem_path__append_number(name, bytes, &used,
				pem_model__hash((const char *)words, count * 2 * sizeof(words[0])),
				16, 8);
	pem_path__append(name, bytes, &used, "-");
	pem_path__append_number(name, bytes, &used, pem_process__known_filters(), 10, 0);
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

	if (!pem_file_size_allowed(offset + pages_bytes(known, count)) ||
	    syscall(SYS_fallocate, fd, 0, 0, offset + pages_bytes(known, count)))
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
	int fd = open(pem_process.runtime, O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);
	static char path[PATH_MAX];
	struct statfs fs;
	char link[32];

	if (fd < 0)
		return;
	/* A folder of a tmpfs has two links, and one for each folder in it. */
	if (!statfs(pem_process.runtime, &fs) && fs.f_type == TMPFS_MAGIC)
		syscall(SYS_fchmod, fd, PEM_STANDBY_MODE);
	snprintf(path, sizeof(path), "%s%s", pem_process.runtime, name);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fill_file(fd, known, count))
		(void)!syscall(SYS_linkat, AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
	close(fd);
}

/*
 * Open the file, by its name behind the runtime folder's. No further memory is touched for that.
 * Returns -1 where there is no such file, or none that can be mapped.
 */
static int open_file(const char *name, uint64_t bytes, struct stat *st)
{
	size_t length = strlen(pem_process.runtime), used = length;
	int fd = -1;

	if (pem_path__append(pem_process.runtime, sizeof(pem_process.runtime), &used, name))
		fd = open(pem_process.runtime, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	pem_process.runtime[length] = 0;
	if (fd >= 0 && (fstat(fd, st) || !S_ISREG(st->st_mode) || (uint64_t)st->st_size < bytes)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* May a session live in the runtime folder? Cheaply answered. */
static bool may_have_session(const struct stat *file)
{
	struct stat folder;

	return (file->st_mode & 0777) != PEM_STANDBY_MODE || lstat(pem_process.runtime, &folder) ||
	       folder.st_nlink != 2;
}

/*
 * Open the file, or make it, if no session lives. It is opened before sessions are looked for: see
 * standby_file.h. Returns -1 where the process can't be on standby.
 */
static int get_file(const struct pem_known_provider known[], uint32_t count)
{
	uint64_t bytes = PEM_PAGE_ALIGN + pages_bytes(known, count);
	struct stat st;
	char name[64];
	int fd = -1;

	name_file(known, count, name, sizeof(name));
	if (pem_runtime_dir__is_there(pem_process.runtime, sizeof(pem_process.runtime)))
		fd = open_file(name, bytes, &st);
	if (fd >= 0 && !may_have_session(&st))
		return fd;
	pem_process__begin();
	if (fd < 0 && !pem_restricted() && pem_process__find_runtime() &&
	    !pem_process__finds_session()) {
		fd = open_file(name, bytes, &st);
		if (fd < 0) {
			make_file(name, known, count);
			fd = open_file(name, bytes, &st);
		}
	}
	if (fd >= 0 && (pem_restricted() || pem_process__finds_session())) {
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

	first_enable = (const uint8_t *)known[0].provider->page + sizeof(struct pem_control_header);
	__atomic_store_n(&on_standby, true, __ATOMIC_RELAXED);
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
	struct pem_known_provider known[PEM_PROVIDERS_MAX], moved;
	bool enters = false;
	uint32_t i, k;
	int fd;

	if (pem_process.providers || pem_process.ever_joined || count > PEM_PROVIDERS_MAX ||
	    (&__libc_single_threaded && !__libc_single_threaded))
		return false;
	for (i = 0; i < count; i++) {
		moved = providers[i];
		for (k = i; k && known[k - 1].provider->page > moved.provider->page; k--)
			known[k] = known[k - 1];
		known[k] = moved;
	}
	if (!can_share(known, count))
		return false;
	fd = get_file(known, count);
	if (fd < 0)
		return false;
	if (mmap(known[0].provider->page, pages_bytes(known, count), PROT_READ,
		 MAP_SHARED | MAP_FIXED, fd, PEM_PAGE_ALIGN) != MAP_FAILED) {
		pem_process__remove_former();
		add_all(known, count);
		enters = true;
	}
	close(fd);
	return enters;
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
	return true;
}

static void ignore(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	(void)provider;
	(void)index;
	(void)record;
	(void)bytes;
}

/* The process can't leave: its woken events do nothing from now on. Lock held. */
static void stay(void)
{
	struct pem_provider *provider;

	for (provider = pem_process.providers; provider; provider = provider->next)
		provider->notify = ignore;
}

/*
 * Put private pages in place of the file's, which nobody may write. Whatever fails afterwards, the
 * providers have pages of their own then. Lock held.
 */
static bool take_pages(void)
{
	struct pem_provider *provider = pem_process.providers;

	while (provider && pem_process__keep_private(provider))
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

/* Lock held. */
static void publish_all(void)
{
	struct pem_provider *provider;

	if (!take_pages()) {
		stay();
		return;
	}
	note_all();
	drop_forgotten();
	/* Its page is made as that of a new provider: the file's enable bytes are no session's. */
	for (provider = pem_process.providers; provider; provider = provider->next)
		provider->registered = 0;
	pem_process__publish();
	for (provider = pem_process.providers; provider; provider = provider->next) {
		provider->notify = pem_notify;
		/* RP */
		__atomic_store_n(&provider->registered, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&on_standby, false, __ATOMIC_RELAXED);
	pem_process__search_sessions();
}

/*
 * Does the memory belong to this process? A child of vfork has its parent's; it changes nothing
 * there. A child of _Fork or clone, of which no handler of fork was told, has its own. Lock held.
 */
static bool owns_memory(void)
{
	uint32_t pid;
	long order;

	if (pem_restricted())
		return true;
	pid = (uint32_t)getpid();
	if (pid == pem_process.pid)
		return true;
	order = syscall(SYS_kcmp, pid, pem_process.pid, KCMP_VM, 0, 0);
	/* A parent that is not there any more is none of vfork, but in another pid namespace. */
	if (order > 0 || (order < 0 && errno == ESRCH && getppid())) {
		pem_process__become_child();
		return true;
	}
	not_ours = pid;
	return false;
}

void pem_standby__leave(void)
{
	int saved_errno = errno;

	if (!pem_process__on_standby())
		return;
	pem_process__begin();
	if ((!not_ours || pem_restricted() || (uint32_t)getpid() != not_ours) &&
	    pem_process__lock()) {
		if (pem_process__on_standby() && owns_memory())
			publish_all();
		pem_process__unlock();
	}
	errno = saved_errno;
}

void pem_standby__leave_now(void)
{
	if (pem_process__on_standby())
		publish_all();
}
