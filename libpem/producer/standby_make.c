/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby_make.c - find or make the file that a process on standby maps (standby_file.h)
 *
 * Where the file is there already, no calls are made but those of a library's load: the process may
 * have begun with a seccomp filter.
 */
#include "entry.h"
#include "model_hash.h"
#include "producer/producer.h"
#include "producer/rights.h"
#include "producer/standby.h"
#include "runtime_dir.h"
#include "standby_file.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * Name the file of these providers, and of the session that the process was started in; id 0: in
 * none. A model has its provider's name and events in it.
 */
static void name_file(const struct pem_known_provider known[], uint32_t count, uint32_t id,
		      char *name, size_t bytes)
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
	if (id) {
		pem_path__append(name, bytes, &used, "-.");
		pem_path__append_number(name, bytes, &used, id, 16, 8);
	}
	pem_path__append(name, bytes, &used, "-");
	pem_path__append_number(name, bytes, &used, pem_process__known_filters(), 10, 0);
}

uint64_t pem_standby_file__bytes(const struct pem_known_provider known[], uint32_t count)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		bytes += known[i].provider->page_bytes;
	return bytes;
}

/* The enable bytes that a session's rules ask for. Those that are set stay. */
static void set_wanted(const struct pem_session_page *page, const struct pem_known_provider *known,
		       uint8_t *enable)
{
	uint32_t count = __atomic_load_n(&page->rule_count, __ATOMIC_RELAXED), i;

	for (i = 0; i < known->provider->event_count; i++) {
		if (pem_rules__may_want(page, count, known->provider->event_ids[i],
					known->facts->levels[i]))
			enable[i] = PEM_STANDBY_AWAKE;
	}
}

/*
 * Write a new file that has no name yet. All its memory exists then. page: the session's; NULL: the
 * process starts in none.
 */
static bool fill_file(int fd, const struct pem_known_provider known[], uint32_t count,
		      const struct pem_session_page *page)
{
	static struct pem_standby_file file;
	uint64_t offset = PEM_PAGE_ALIGN;
	struct {
		struct pem_control_header head;
		uint8_t enable[PEM_EVENTS_PER_PROVIDER_MAX];
	} start;
	uint32_t events = 0, bytes, i;

	if (!pem_file_size_allowed(offset + pem_standby_file__bytes(known, count)) ||
	    syscall(SYS_fallocate, fd, 0, 0, offset + pem_standby_file__bytes(known, count)))
		return false;
	file = (struct pem_standby_file){.magic = PEM_STANDBY_MAGIC,
					 .abi_version = PEM_ABI_VERSION,
					 .provider_count = count};
	for (i = 0; i < count; i++) {
		memset(&start, 0, sizeof(start));
		pem_process__fill_page_head(&start.head, known[i].provider);
		bytes = known[i].provider->event_count;
		if (page && bytes > PEM_CONTROL_EVENTS - events)
			return false;
		if (page) {
			set_wanted(page, &known[i], start.enable);
			memcpy(&file.event_id[events], known[i].provider->event_ids,
			       bytes * sizeof(file.event_id[0]));
			events += bytes;
		}
		bytes += sizeof(start.head);
		if (syscall(SYS_pwrite64, fd, &start, bytes, offset) != (long)bytes)
			return false;
		file.enable[i].offset = offset + sizeof(start.head);
		file.enable[i].bytes = known[i].provider->event_count;
		offset += known[i].provider->page_bytes;
	}
	return syscall(SYS_pwrite64, fd, &file, sizeof(file), 0) == sizeof(file);
}

/* Only a folder of a tmpfs is sure to have two links, and one for each folder in it. */
static bool is_in_memory(void)
{
	struct statfs fs;

	return !statfs(pem_process.runtime, &fs) && fs.f_type == TMPFS_MAGIC;
}

/*
 * Make the file, unless another process does so meanwhile. Returns a descriptor, or -1: another
 * process made it, or nobody can.
 */
static int make_file(const char *name, const struct pem_known_provider known[], uint32_t count,
		     const struct pem_session_page *page)
{
	int fd = open(pem_process.runtime, O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);
	static char path[PATH_MAX];
	char link[32];

	if (fd < 0)
		return -1;
	if (is_in_memory())
		syscall(SYS_fchmod, fd, PEM_STANDBY_MODE);
	snprintf(path, sizeof(path), "%s%s", pem_process.runtime, name);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fill_file(fd, known, count, page) &&
	    !syscall(SYS_linkat, AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
		return fd;
	close(fd);
	return -1;
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

/*
 * Has the runtime folder exactly this number of folders in it? A session has one each. The file's
 * mode says whether the folder's links count them; where they do not, the answer is false.
 */
static bool has_folders(const struct stat *file, unsigned count)
{
	struct stat folder;

	return (file->st_mode & 0777) == PEM_STANDBY_MODE && !lstat(pem_process.runtime, &folder) &&
	       folder.st_nlink == 2 + count;
}

/*
 * Open the file, or make it, if no session lives. It is opened before sessions are looked for: see
 * standby_file.h. Returns -1 where the process can't be on standby.
 */
int pem_standby_file__open(const struct pem_known_provider known[], uint32_t count)
{
	uint64_t bytes = PEM_PAGE_ALIGN + pem_standby_file__bytes(known, count);
	struct stat st;
	char name[64];
	int fd = -1;

	name_file(known, count, 0, name, sizeof(name));
	if (pem_runtime_dir__is_there(pem_process.runtime, sizeof(pem_process.runtime)))
		fd = open_file(name, bytes, &st);
	if (fd >= 0 && has_folders(&st, 0))
		return fd;
	pem_process__begin();
	if (fd < 0 && !pem_restricted() && pem_process__find_runtime() &&
	    !pem_process__finds_session()) {
		fd = open_file(name, bytes, &st);
		if (fd < 0) {
			fd = make_file(name, known, count, NULL);
			if (fd >= 0)
				close(fd);
			fd = open_file(name, bytes, &st);
		}
	}
	if (fd >= 0 && (pem_restricted() || pem_process__finds_session())) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* --- the file of a session that the process was started in --- */

/*
 * Take the session from PEM_SESSION's value (see pem_process__join_given). False: its folder is not
 * in the runtime folder, or a name is too long.
 */
static bool take_session(const char *given, struct pem_standby_session *session)
{
	const char *colon = strrchr(given, ':'), *end = given + strlen(given), *folder;
	size_t length;

	session->public_directory[0] = 0;
	if (colon && colon[1] == '/') {
		if (strlen(colon + 1) >= sizeof(session->public_directory))
			return false;
		strcpy(session->public_directory, colon + 1);
		end = colon;
	}
	if (!pem_runtime_dir__is_there(pem_process.runtime, sizeof(pem_process.runtime)))
		return false;
	length = strlen(pem_process.runtime);
	folder = given + length + 1;
	if (strncmp(given, pem_process.runtime, length) != 0 || folder >= end ||
	    folder[-1] != '/' || (size_t)(end - folder) >= sizeof(session->folder))
		return false;
	memcpy(session->folder, folder, (size_t)(end - folder));
	session->folder[end - folder] = 0;
	return pem_is_session_name(session->folder);
}

/* If a context follows children, a process has to find its ancestors while they live. */
static bool follows_children(const struct pem_session_page *page)
{
	uint32_t contexts = __atomic_load_n(&page->context_count, __ATOMIC_RELAXED), i;

	for (i = 0; i < contexts && i < PEM_CONTEXTS_MAX; i++) {
		if (page->contexts[i].flags & PEM_CONTEXT_FOLLOW)
			return true;
	}
	return false;
}

/*
 * Can processes join this session later than they start, and does it save them anything? If the
 * session wants an event of each start, all join at once.
 */
static bool may_wait(const struct pem_session_page *page, const struct pem_known_provider known[],
		     uint32_t count)
{
	uint32_t rules = __atomic_load_n(&page->rule_count, __ATOMIC_RELAXED), i;

	for (i = 0; i < count; i++) {
		if (known[i].facts->at_start &&
		    pem_rules__may_want(page, rules, known[i].facts->at_start, 0))
			return false;
	}
	return !follows_children(page);
}

/* Write the enable bytes that are set, and no others: the session may set some at the same time. */
static void write_awake(int fd, const struct pem_known_provider known[], uint32_t count,
			const struct pem_session_page *page)
{
	static const uint8_t awake = PEM_STANDBY_AWAKE;
	uint64_t offset = PEM_PAGE_ALIGN + sizeof(struct pem_control_header);
	uint8_t enable[PEM_EVENTS_PER_PROVIDER_MAX];
	uint32_t i, k;

	for (i = 0; i < count; i++) {
		memset(enable, page ? 0 : awake, sizeof(enable));
		if (page)
			set_wanted(page, &known[i], enable);
		for (k = 0; k < known[i].provider->event_count; k++) {
			if (enable[k])
				(void)!syscall(SYS_pwrite64, fd, &awake, 1, offset + k);
		}
		offset += known[i].provider->page_bytes;
	}
}

/*
 * The rules may have changed, or the session may have ended, before it could find the file. fd: the
 * file's. Returns whether the rules came to rest. If not, the processes of the file join at any
 * event, and it must not keep its name.
 */
static bool follow_rules(int fd, const struct pem_known_provider known[], uint32_t count,
			 const struct pem_session_page *page, uint32_t generation)
{
	uint32_t now, tries;

	for (tries = 0; tries < 1000; tries++) {
		/* SF, sf: the file has its name before the generation is read again */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		/* uc */
		now = __atomic_load_n(&page->generation, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&page->closed, __ATOMIC_RELAXED))
			break;
		if (now == generation)
			return true;
		if (now & 1) {
			sched_yield();
			continue;
		}
		write_awake(fd, known, count, page);
		generation = now;
	}
	write_awake(fd, known, count, NULL);
	return false;
}

static void remove_file(const char *name)
{
	size_t length = strlen(pem_process.runtime), used = length;

	if (pem_path__append(pem_process.runtime, sizeof(pem_process.runtime), &used, name))
		unlink(pem_process.runtime);
	pem_process.runtime[length] = 0;
}

/* Make the session's file. */
static void make_session_file(struct pem_session_page *page, const char *name,
			      const struct pem_known_provider known[], uint32_t count)
{
	/* uc */
	uint32_t generation = __atomic_load_n(&page->generation, __ATOMIC_ACQUIRE);
	int fd;

	if (generation & 1 || !is_in_memory())
		return;
	__atomic_fetch_add(&page->standby_files, 1, __ATOMIC_RELAXED);
	fd = make_file(name, known, count, page);
	if (fd < 0)
		return;
	if (!follow_rules(fd, known, count, page, generation))
		remove_file(name);
	close(fd);
}

/* Open the session's file, or make it. Returns -1 where there is none. */
static int open_session_file(struct pem_session_page *page, const struct pem_known_provider known[],
			     uint32_t count, struct stat *st)
{
	uint64_t bytes = PEM_PAGE_ALIGN + pem_standby_file__bytes(known, count);
	char name[64];
	int fd;

	name_file(known, count, page->id, name, sizeof(name));
	fd = open_file(name, bytes, st);
	if (fd >= 0)
		return fd;
	/* A loader does not make the next calls. */
	pem_process__begin();
	if (!pem_restricted())
		make_session_file(page, name, known, count);
	return open_file(name, bytes, st);
}

int pem_standby_file__open_of(const char *given, const struct pem_known_provider known[],
			      uint32_t count, struct pem_standby_session *session)
{
	struct stat st;
	int fd;

	if (!take_session(given, session) || !pem_process__map_session(session))
		return -1;
	if (!may_wait(session->page, known, count))
		return -1;
	fd = open_session_file(session->page, known, count, &st);
	if (fd >= 0 && !has_folders(&st, 1)) { /* another session may want the process */
		close(fd);
		fd = -1;
	}
	return fd;
}

int pem_standby_file__open_for_child(struct pem_session_page *page,
				     const struct pem_known_provider known[], uint32_t count)
{
	struct stat st;

	return follows_children(page) ? -1 : open_session_file(page, known, count, &st);
}
