/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby.c - processes on standby: waking those that nobody observed so far (standby_wake.h), and
 * saying why they were not; the files of those that were started in a session
 */
#include "core/core.h"
#include "dirs/dirs.h"
#include "pool.h"
#include "standby_wake.h"
#include "util.h"

#include <signal.h>

/* Is a process making this control file? Consumers take the file once it has its magic number. */
static bool is_incomplete(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct pem_control_file head;
	bool is_it = fd >= 0 && pread(fd, &head, sizeof(head), 0) == sizeof(head) && !head.magic;

	if (fd >= 0)
		close(fd);
	return is_it;
}

bool pem_standby__has(uint32_t pid)
{
	char path[64], line[512], *slash;
	bool found = false;
	size_t bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(path, "re");
	while (file && !found && bytes < PEM_WAKE_MAPS && pem_wake_line(file, line, sizeof(line))) {
		bytes += strlen(line);
		slash = strrchr(line, '/');
		/* A file that was removed otherwise wakes nobody. */
		found = slash &&
			(!strncmp(slash + 1, PEM_WOKEN_NAME, sizeof(PEM_WOKEN_NAME) - 1) ||
			 (!strncmp(slash + 1, PEM_STANDBY_NAME, sizeof(PEM_STANDBY_NAME) - 1) &&
			  !strstr(slash, " (deleted)")) ||
			 (!strncmp(slash + 1, "control-", 8) && is_incomplete(strchr(line, '/'))));
	}
	if (file)
		fclose(file);
	return found;
}

void pem_session__say_not_woken(struct pem_session *s, uid_t owner, uint32_t pid)
{
	char name[PEM_NAME_BYTES];

	if (pid == PEM_WAKE_UNKNOWN) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "programs of user %u that nobody observed so far are not "
				 "observed: there are too many processes to tell whether that "
				 "would harm one; programs that are started now are observed",
				 (unsigned)owner);
		return;
	}
	pem_process_name(pid, name);
	pem_session__say(
		s, PEM_LOG_WARNING,
		"programs of user %u that nobody observed so far are not observed: "
		"process %u (%s) among them has a seccomp filter that pem was not told of, "
		"and which might end it; programs that are started now are observed",
		(unsigned)owner, pid, name);
}

void pem_session__wake_standby(struct pem_session *s)
{
	struct pem_dir *own = s->dirs->first;
	uint32_t pid =
		own && own->runtime_fd >= 0 ? pem_standby__wake(own->runtime_fd, own->owner) : 0;

	if (pid)
		pem_session__say_not_woken(s, own->owner, pid);
}

/* --- processes that were started in a session --- */

static bool follows_children(const struct pem_session *s)
{
	uint32_t i;

	for (i = 0; i < s->context_count; i++) {
		if (s->page->contexts[i].flags & PEM_CONTEXT_FOLLOW)
			return true;
	}
	return false;
}

/* Enable those events of an open file that a session wants now. The file is hostile: see
 * pem_wake_file. */
static void enable_wanted(struct pem_session *s, int fd)
{
	static const uint8_t awake = PEM_STANDBY_AWAKE;
	uint32_t first = 0, count, i, k;
	struct pem_standby_file file;
	uint64_t offset, size;
	struct stat st;

	if (fstat(fd, &st) || pread(fd, &file, sizeof(file), 0) != sizeof(file) ||
	    file.magic != PEM_STANDBY_MAGIC)
		return;
	/* They have to find their ancestors while these live, and join by any event. */
	if (follows_children(s)) {
		pem_wake_file(fd, PEM_STANDBY_AWAKE);
		return;
	}
	size = (uint64_t)st.st_size;
	for (i = 0; i < file.provider_count && i < PEM_PROVIDERS_MAX; i++) {
		offset = file.enable[i].offset;
		if (file.enable[i].bytes > PEM_CONTROL_EVENTS - first || offset < sizeof(file) ||
		    offset > size || file.enable[i].bytes > size - offset)
			return;
		count = (uint32_t)file.enable[i].bytes;
		for (k = 0; k < count; k++) {
			if (pem_rules__may_want(s->page, s->rule_count, file.event_id[first + k],
						0))
				(void)!pwrite(fd, &awake, 1, (off_t)(offset + k));
		}
		first += count;
	}
}

/* Call visit for each file of the session. */
static void visit_files(struct pem_session *s, void (*visit)(struct pem_session *s, int fd))
{
	struct pem_dir *own;
	struct dirent *entry;
	DIR *folder;
	int fd;

	if (!__atomic_load_n(&s->page->standby_files, __ATOMIC_RELAXED))
		return;
	pem_session__add_session_dir(s);
	own = s->dirs->first;
	if (!own || own->runtime_fd < 0)
		return;
	folder = pem_list_folder(own->runtime_fd);
	while (folder && (entry = readdir(folder))) {
		if (!pem_standby_name__is_of(entry->d_name, s->page->id))
			continue;
		fd = pem_wake_open(own->runtime_fd, entry->d_name, own->owner);
		if (fd < 0)
			continue;
		visit(s, fd);
		/* A session's file is made in memory alone, so it had this mode before. */
		fchmod(fd, PEM_STANDBY_MODE);
		close(fd);
	}
	if (folder)
		closedir(folder);
}

void pem_session__update_standby(struct pem_session *s)
{
	/* SF, sf: the rules and their generation are stored before this is read (standby_file.h) */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	visit_files(s, enable_wanted);
}

static void disable(struct pem_session *s, int fd)
{
	(void)s;
	pem_wake_file(fd, 0);
}

void pem_session__retire_standby(struct pem_session *s)
{
	if (s->page) /* else it was never open */
		visit_files(s, disable);
}

void pem_standby__sweep(int runtime_fd, const char *name)
{
	int fd = pem_standby_name__has_session(name)
			 ? openat(runtime_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
			 : -1;
	struct stat st;

	if (fd < 0)
		return;
	/*
	 * A file that no process maps can be leased. A process that opens the leased file does not
	 * wait: it opens without blocking. The kernel then sends SIGURG here, which does nothing
	 * unless the program handles it.
	 */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    !fcntl(fd, F_SETSIG, SIGURG) && !fcntl(fd, F_SETLEASE, F_WRLCK))
		unlinkat(runtime_fd, name, 0);
	close(fd);
}
