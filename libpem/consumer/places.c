/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * places.c - the runtime folders that a session reaches processes in: its own, those of other users, those of containers
 *
 * A process in another mount namespace, of another user, or with other variables has its runtime folder elsewhere. Such a
 * folder gets a session's folder too, with a page that says the same as the session's own; pools are drained from there.
 * Paths of others are opened below their root and nowhere else, whatever links they have laid.
 */
#include "consumer/async.h"
#include "consumer/session.h"
#include "entry.h"
#include "util.h"

#include <pem/clock.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS 1000000000u /* for processes elsewhere that have come since */
#define ENVIRONMENT_BYTES (64u << 10)

void pem_session__own_place(struct pem_session *s)
{
	struct pem_place *own = &s->places[0];
	struct stat st = {0};

	if (s->place_count)
		return;
	own->directory_fd = s->directory_fd;
	own->runtime_fd = open(s->runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	own->alive_fd = -1;
	own->owner = geteuid();
	own->page = s->page;
	pem_copy_text(own->runtime, sizeof(own->runtime), s->runtime);
	pem_copy_text(own->folder, sizeof(own->folder),
		      s->directory[0] ? strrchr(s->directory, '/') + 1 : "");
	if (own->runtime_fd >= 0)
		fstat(own->runtime_fd, &st);
	own->device = (uint64_t)st.st_dev;
	own->inode = (uint64_t)st.st_ino;
	s->place_count = 1;
}

/* --- another's folder --- */

/* A folder below another process's root; its links lead nowhere else. */
static int open_below(int root_fd, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

static bool is_known(const struct pem_session *s, const struct stat *st)
{
	uint32_t i;

	for (i = 0; i < s->place_count; i++) {
		if (s->places[i].device == (uint64_t)st->st_dev &&
		    s->places[i].inode == (uint64_t)st->st_ino)
			return true;
	}
	return false;
}

/* The session's folder and page in a runtime folder of somebody; what can't be made there is told by errno. */
static int make_session(struct pem_session *s, struct pem_place *place, gid_t group)
{
	size_t bytes = sizeof(*place->page);
	struct pem_session_page *page;
	struct stat st;
	int fd, result;

	pem_copy_text(place->folder, sizeof(place->folder), strrchr(s->directory, '/') + 1);
	if (mkdirat(place->runtime_fd, place->folder, 0700))
		return -errno;
	place->directory_fd = openat(place->runtime_fd, place->folder,
				     O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (place->directory_fd < 0)
		return -errno;
	/* What was made is what was opened, and not what its folder's owner has put there since. */
	if (fstat(place->directory_fd, &st) || st.st_uid != geteuid())
		return -EPERM;
	/* Before it is the owner's, who could hold the lock. */
	place->alive_fd = pem_alive__hold(place->directory_fd);
	if (place->alive_fd < 0)
		return place->alive_fd;
	fd = openat(place->directory_fd, "config", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	result = -posix_fallocate(fd, 0, (off_t)bytes);
	page = result ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!result && page == MAP_FAILED)
		result = -errno;
	if (!result && pem_fault__watch(page, bytes, &place->cut)) {
		munmap(page, bytes);
		result = -ENOSPC;
	}
	if (!result) {
		place->page = page;
		memcpy(page, s->page, bytes);
		page->magic = 0;
		page->pools = (uint32_t)(place - s->places) * PEM_PLACE_POOLS;
		page->lost = page->lost_statistics = page->refused = 0;
		__atomic_store_n(&page->magic, PEM_SESSION_MAGIC, __ATOMIC_RELEASE);
		if (place->owner != geteuid() && (fchown(fd, place->owner, group) ||
						  fchown(place->directory_fd, place->owner, group)))
			result = -errno;
	}
	close(fd);
	return result;
}

void pem_session__note_log(struct pem_session *s, bool has_log)
{
	uint32_t i;

	__atomic_store_n(&s->page->has_log, has_log, __ATOMIC_RELEASE);
	for (i = 0; i < s->place_count; i++) {
		if (s->places[i].page)
			__atomic_store_n(&s->places[i].page->has_log, has_log, __ATOMIC_RELEASE);
	}
}

static void close_place(struct pem_place *place)
{
	char path[sizeof(place->runtime) + sizeof(place->folder)];

	snprintf(path, sizeof(path), "%s/%s", place->runtime, place->folder);
	if (place->page) {
		__atomic_store_n(&place->page->closed, 1, __ATOMIC_RELEASE);
		pem_fault__forget(place->page);
		munmap(place->page, sizeof(*place->page));
	}
	pem_alive__release(place->alive_fd);
	if (place->folder[0])
		pem_runtime__remove(place->directory_fd, path);
	close(place->runtime_fd);
}

void pem_session__close_places(struct pem_session *s)
{
	while (s->place_count > 1)
		close_place(&s->places[--s->place_count]);
	if (s->place_count && s->places[0].runtime_fd >= 0)
		close(s->places[0].runtime_fd);
	s->place_count = 0;
}

/* A runtime folder of a user's, open as fd, which is taken. */
static void add_place(struct pem_session *s, int fd, uid_t owner)
{
	struct pem_place *place = &s->places[s->place_count];
	struct stat st;
	int result;

	if (fd < 0)
		return;
	if (fstat(fd, &st) || st.st_uid != owner || st.st_mode & 022 || is_known(s, &st) ||
	    s->place_count == PEM_PLACES_MAX) {
		close(fd);
		return;
	}
	*place = (struct pem_place){.runtime_fd = fd,
				    .directory_fd = -1,
				    .alive_fd = -1,
				    .owner = owner,
				    .device = (uint64_t)st.st_dev,
				    .inode = (uint64_t)st.st_ino};
	snprintf(place->runtime, sizeof(place->runtime), "/proc/self/fd/%d", fd);
	result = make_session(s, place, st.st_gid);
	if (result) {
		pem_session__say(
			s, PEM_LOG_WARNING,
			"programs of user %u that meet in another folder are not observed: no "
			"session can be made there: %s",
			(unsigned)owner, strerror(-result));
		close_place(place);
		return;
	}
	s->place_count++;
	if (s->async)
		pem_async__kick(s); /* it waits by the clock from now on */
}

/* The value of a variable in a process's environment, or NULL. */
static const char *variable(const char *environment, size_t bytes, const char *name)
{
	size_t length = strlen(name), at;

	for (at = 0; at < bytes; at += strlen(environment + at) + 1) {
		if (!strncmp(environment + at, name, length) && environment[at + length] == '=')
			return environment + at + length + 1;
	}
	return NULL;
}

/*
 * Whose a process is. *own_words: by nothing else than that user, who then also chose its variables; a program that its file
 * gave another user's rights has been started by somebody who may say anything there, and it does not listen either.
 */
static bool owner_of(int process_fd, uid_t *owner, bool *own_words)
{
	unsigned real, effective, saved;
	char text[2048];
	const char *line;
	ssize_t n;
	int fd = openat(process_fd, "status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	line = strstr(text, "\nUid:");
	if (!line || sscanf(line, "\nUid: %u %u %u", &real, &effective, &saved) != 3)
		return false;
	*owner = effective;
	*own_words = real == effective && saved == effective;
	return true;
}

/* Where a process's variables put it. */
static void add_chosen_folders(struct pem_session *s, int root_fd, int process_fd, uid_t owner)
{
	char *environment = malloc(ENVIRONMENT_BYTES + 1), path[PATH_MAX];
	int fd = openat(process_fd, "environ", O_RDONLY | O_CLOEXEC);
	const char *value;
	ssize_t bytes = 0;

	if (environment && fd >= 0)
		bytes = read(fd, environment, ENVIRONMENT_BYTES);
	if (fd >= 0)
		close(fd);
	if (bytes > 0) {
		environment[bytes] = 0;
		value = variable(environment, (size_t)bytes, "PEM_RUNTIME_DIR");
		if (value && *value == '/')
			add_place(s, open_below(root_fd, value), owner);
		value = variable(environment, (size_t)bytes, "XDG_RUNTIME_DIR");
		if (value && *value == '/' &&
		    snprintf(path, sizeof(path), "%s/pem", value) < (int)sizeof(path))
			add_place(s, open_below(root_fd, path), owner);
	}
	free(environment);
}

/* Where pem_runtime_dir puts it without. */
static void add_usual_folders(struct pem_session *s, int root_fd, uid_t owner)
{
	static const char *const forms[] = {"/run/user/%u/pem", "/dev/shm/pem-%u", "/tmp/pem-%u"};
	char path[64];
	size_t i;

	for (i = 0; i < PEM_ARRAY_SIZE(forms); i++) {
		/* Inside of a user namespace the user has another number, mostly that of root. */
		snprintf(path, sizeof(path), forms[i], (unsigned)owner);
		add_place(s, open_below(root_fd, path), owner);
		snprintf(path, sizeof(path), forms[i], 0u);
		add_place(s, open_below(root_fd, path), owner);
	}
}

void pem_session__add_places_of(struct pem_session *s, uint32_t pid)
{
	int process, root;
	char path[32];
	bool own_words;
	uid_t owner;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return;
	root = openat(process, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0 && owner_of(process, &owner, &own_words)) {
		if (own_words)
			add_chosen_folders(s, root, process, owner);
		add_usual_folders(s, root, owner);
	}
	if (root >= 0)
		close(root);
	close(process);
}

/* Of each user and mount namespace one process is asked, and of ours those of other users. */
void pem_session__look_for_places(struct pem_session *s)
{
	struct seen {
		uint64_t mounts;
		uid_t owner;
	} seen[256];
	uint64_t now = pem_monotonic_ns();
	struct dirent *entry;
	size_t count = 0, i;
	struct stat st, ns;
	DIR *proc;

	if (now < s->next_look_ns)
		return;
	s->next_look_ns = now + LOOK_NS;
	proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		char path[300];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/ns/mnt", entry->d_name);
		if (stat(path, &ns))
			continue;
		*strrchr(path, '/') = 0;
		*strrchr(path, '/') = 0;
		if (stat(path, &st) || (geteuid() && st.st_uid != geteuid()))
			continue;
		for (i = 0; i < count; i++) {
			if (seen[i].mounts == (uint64_t)ns.st_ino && seen[i].owner == st.st_uid)
				break;
		}
		if (i < count || count == PEM_ARRAY_SIZE(seen))
			continue;
		seen[count++] = (struct seen){(uint64_t)ns.st_ino, st.st_uid};
		pem_session__add_places_of(s, (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	if (proc)
		closedir(proc);
}

/* --- pages that say the same --- */

static void mirror(const struct pem_session *s, struct pem_session_page *to)
{
	const struct pem_session_page *from = s->page;
	uint32_t generation = to->generation & ~1u;

	__atomic_store_n(&to->generation, generation + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(to->contexts, from->contexts, s->context_count * sizeof(from->contexts[0]));
	memcpy(to->rules, from->rules, s->rule_count * sizeof(from->rules[0]));
	memcpy(to->tests, from->tests, s->test_count * sizeof(from->tests[0]));
	__atomic_store_n(&to->context_count, s->context_count, __ATOMIC_RELEASE);
	to->rule_count = s->rule_count;
	to->test_count = s->test_count;
	__atomic_store_n(&to->closed, from->closed, __ATOMIC_RELAXED);
	__atomic_store_n(&to->generation, generation + 2, __ATOMIC_RELEASE);
}

void pem_session__mirror(struct pem_session *s)
{
	uint32_t i;

	for (i = 1; i < s->place_count; i++)
		mirror(s, s->places[i].page);
}

void pem_session__gather_losses(struct pem_session *s)
{
	struct pem_session_page *page;
	uint32_t i, refused;

	for (i = 1; i < s->place_count; i++) {
		page = s->places[i].page;
		__atomic_fetch_add(&s->page->lost,
				   __atomic_exchange_n(&page->lost, 0, __ATOMIC_RELAXED),
				   __ATOMIC_RELAXED);
		__atomic_fetch_add(&s->page->lost_statistics,
				   __atomic_exchange_n(&page->lost_statistics, 0, __ATOMIC_RELAXED),
				   __ATOMIC_RELAXED);
		refused = __atomic_exchange_n(&page->refused, 0, __ATOMIC_RELAXED);
		if (refused)
			__atomic_store_n(&s->page->last_errno, page->last_errno, __ATOMIC_RELAXED);
		__atomic_fetch_add(&s->page->refused, refused, __ATOMIC_RELAXED);
	}
}

/* --- process and thread ids --- */

/* The last number of a line 'NSpid:'; 0: none. */
static uint32_t inner_pid(const char *process)
{
	char path[300], line[256];
	uint32_t pid = 0;
	const char *last;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/status", process);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		line[strcspn(line, "\n")] = 0;
		last = strrchr(line, '\t');
		pid = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
		break;
	}
	if (file)
		fclose(file);
	return pid;
}

uint32_t pem_producer__tid(const struct pem_producer *p, uint32_t tid)
{
	char path[300], name[300];
	struct dirent *entry;
	uint32_t found = 0;
	DIR *tasks;

	if (p->pid == p->inner_pid)
		return tid;
	if (tid == p->inner_pid)
		return p->pid;
	snprintf(path, sizeof(path), "/proc/%u/task", p->pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks))) {
		snprintf(name, sizeof(name), "%u/task/%.200s", p->pid, entry->d_name);
		if (entry->d_name[0] != '.' && inner_pid(name) == tid)
			found = (uint32_t)strtoul(entry->d_name, NULL, 10);
	}
	if (tasks)
		closedir(tasks);
	return found ? found : tid;
}

uint32_t pem_place__pid(const struct pem_place *place, uint32_t pid, uint32_t pid_namespace)
{
	struct dirent *entry;
	uint32_t found = 0;
	struct stat st;
	char path[300];
	DIR *proc;

	if (!pid_namespace || pid_namespace == pem_pid_namespace()) {
		/* Nobody passes for a process of another user's; one that is gone may have been anybody's. */
		snprintf(path, sizeof(path), "/proc/%u", pid);
		return place->owner != geteuid() && !stat(path, &st) && st.st_uid != place->owner
			       ? 0
			       : pid;
	}
	proc = opendir("/proc");
	while (proc && !found && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/ns/pid", entry->d_name);
		if (stat(path, &st) || (uint32_t)st.st_ino != pid_namespace)
			continue;
		snprintf(path, sizeof(path), "/proc/%s", entry->d_name);
		if (!stat(path, &st) && st.st_uid == place->owner &&
		    inner_pid(entry->d_name) == pid)
			found = (uint32_t)strtoul(entry->d_name, NULL, 10);
	}
	if (proc)
		closedir(proc);
	return found;
}
