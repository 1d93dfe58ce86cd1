/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * members.c - processes by their control files: which there are, which of them are the session's, offering it to them
 *
 * A control file is hostile: whoever made it may change it at any time. What is read there is loaded once and checked; what
 * the session relies on it remembers itself.
 */
#include "consumer/session.h"
#include "consumer/targets.h"
#include "entry.h"
#include "membership.h"
#include "util.h"

#include <pem/clock.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASK_AGAIN_NS 1000000000u /* a process's name and control group may change, and it may die */

void *pem_map_file(int directory_fd, uid_t owner, const char *name, uint32_t magic, size_t least,
		   uint64_t *bytes, uint64_t *inode, int *cut)
{
	int fd = openat(directory_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	void *mapping;

	if (fd < 0)
		return NULL;
	mapping = pem_map_descriptor(fd, owner, magic, least, bytes, inode, cut);
	close(fd);
	return mapping;
}

void *pem_map_descriptor(int fd, uid_t owner, uint32_t magic, size_t least, uint64_t *bytes,
			 uint64_t *inode, int *cut)
{
	void *mapping = MAP_FAILED;
	struct stat st;
	uint32_t word;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == owner &&
	    (uint64_t)st.st_size >= least && (uint64_t)st.st_size < 1ull << 40 &&
	    pread(fd, &word, sizeof(word), 0) == sizeof(word) && word == magic) {
		*bytes = (uint64_t)st.st_size;
		*inode = (uint64_t)st.st_ino;
		mapping = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (mapping != MAP_FAILED && pem_fault__watch(mapping, *bytes, cut)) {
		munmap(mapping, *bytes);
		mapping = MAP_FAILED;
	}
	return mapping == MAP_FAILED ? NULL : mapping;
}

void pem_unmap_file(void *mapping, uint64_t bytes)
{
	pem_fault__forget(mapping);
	munmap(mapping, bytes);
}

bool pem_is_control_name(const char *name)
{
	return !strncmp(name, "control-", 8) && !strchr(name, '/') &&
	       strlen(name) < sizeof(((struct pem_member *)0)->name);
}

static void free_member(struct pem_session *s, struct pem_member *m)
{
	struct pem_producer *p;

	for (p = s->producers; p; p = p->next) {
		if (p->member == m)
			p->member = NULL;
	}
	pem_unmap_file(m->control, m->control_bytes);
	free(m);
}

/* fd: of its control file, which the caller closes. */
static struct pem_member *open_member(struct pem_session *s, struct pem_place *place,
				      const char *name, int fd)
{
	struct pem_member *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->slot = -1;
	m->place = place;
	m->control = pem_map_descriptor(fd, place->owner, PEM_CONTROL_MAGIC, sizeof(*m->control),
					&m->control_bytes, &m->inode, &m->cut);
	if (!m->control) {
		free(m);
		return NULL;
	}
	pem_copy_text(m->name, sizeof(m->name), name);
	m->pid = pem_place__pid(place, __atomic_load_n(&m->control->pid, __ATOMIC_RELAXED),
				__atomic_load_n(&m->control->pid_namespace, __ATOMIC_RELAXED));
	if (__atomic_load_n(&m->control->magic, __ATOMIC_ACQUIRE) != PEM_CONTROL_MAGIC ||
	    __atomic_load_n(&m->control->abi_version, __ATOMIC_RELAXED) != PEM_ABI_VERSION ||
	    m->pid == (uint32_t)getpid()) {
		free_member(s, m);
		return NULL;
	}
	m->next = s->members;
	s->members = m;
	return m;
}

static struct pem_member *find(struct pem_session *s, const struct pem_place *place,
			       const char *name)
{
	struct pem_member *m;

	for (m = s->members; m; m = m->next) {
		if (m->place == place && !strcmp(m->name, name))
			return m;
	}
	return NULL;
}

/* The same of a file in the session's own place. */
static struct pem_member *open_own(struct pem_session *s, struct pem_place *place, const char *name)
{
	int fd = openat(place->runtime_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct pem_member *m = fd < 0 ? NULL : open_member(s, place, name, fd);

	if (fd >= 0)
		close(fd);
	return m;
}

struct pem_member *pem_session__member(struct pem_session *s, struct pem_place *place,
				       const char *name)
{
	struct pem_member *m;
	struct stat st;

	if (!pem_is_control_name(name))
		return NULL;
	m = find(s, place, name);
	/* A process's next image may have made its file by the same name. */
	if (m && !place->number &&
	    (fstatat(place->runtime_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	     (uint64_t)st.st_ino != m->inode)) {
		pem_session__forget_member(s, m);
		m = NULL;
	}
	if (!m && !place->number) /* those of others come from their keepers */
		m = open_own(s, place, name);
	if (m)
		pem_member__find_slot(s, m);
	return m;
}

void pem_session__forget_member(struct pem_session *s, struct pem_member *m)
{
	struct pem_member **link;

	for (link = &s->members; *link; link = &(*link)->next) {
		if (*link != m)
			continue;
		*link = m->next;
		free_member(s, m);
		return;
	}
}

/* --- the table --- */

void pem_member__find_slot(struct pem_session *s, struct pem_member *m)
{
	struct pem_session_entry entry;
	int slot;

	if (m->slot >= 0)
		return;
	slot = pem_entry__find(m->control->session, s->id);
	if (slot < 0 || !pem_entry__read(&m->control->session[slot], &entry) ||
	    entry.session_id != s->id)
		return;
	m->word = entry.word;
	m->incarnation = entry.incarnation;
	m->slot = slot;
}

bool pem_member__is_served(struct pem_member *m)
{
	if (m->slot >= 0 &&
	    __atomic_load_n(&m->control->session[m->slot].word, __ATOMIC_ACQUIRE) != m->word)
		m->slot = -1; /* it has left the session, or took what is not its own */
	return m->slot >= 0;
}

/* Is the process in any target of the session? Its contexts are known. */
static bool is_target(const struct pem_session *s, const struct pem_member *m)
{
	uint32_t i;

	for (i = 1; i < s->context_count; i++) {
		if (m->contexts >> i & 1 && s->page->contexts[i].flags & PEM_CONTEXT_TARGET)
			return true;
	}
	return false;
}

void pem_member__find_contexts(struct pem_session *s, struct pem_member *m)
{
	m->contexts = pem_contexts__holding(s->page, s->context_count, m->pid, m->contexts);
	if (pem_member__is_served(m))
		__atomic_store_n(&m->control->session[m->slot].contexts, m->contexts,
				 __ATOMIC_RELAXED);
}

/* Take an entry for the session. What the member stored there for an earlier one comes before what the session stores. */
static int offer(struct pem_session *s, struct pem_member *m)
{
	struct pem_place_of_session where = {s, m->place};
	struct pem_session_entry *entry;
	uint64_t word;
	int slot = pem_entry__take(m->control->session, pem_place__has_consumer, &where,
				   m->place->folder, &word);

	if (slot < 0)
		return slot;
	entry = &m->control->session[slot];
	m->incarnation = __atomic_load_n(&entry->incarnation, __ATOMIC_RELAXED) & 0xff;
	m->word = pem_entry__offer(entry, word, s->page, m->place->folder, m->contexts);
	m->slot = slot;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

int pem_member__ask(struct pem_session *s, struct pem_member *m)
{
	int result;

	m->asked_ns = pem_monotonic_ns();
	pem_member__find_slot(s, m);
	pem_member__find_contexts(s, m);
	if (m->slot < 0) {
		if (!is_target(s, m))
			return 0;
		result = offer(s, m);
		if (result)
			return result;
	}
	pem_session__apply_to(s, m);
	return 0;
}

void pem_session__leave_members(struct pem_session *s)
{
	struct pem_member *m;

	for (m = s->members; m; m = m->next) {
		if (pem_member__is_served(m))
			pem_entry__give_back(&m->control->session[m->slot], m->word);
		m->slot = -1;
	}
	while ((m = s->members)) {
		s->members = m->next;
		free_member(s, m);
	}
}

/* --- looking --- */

/* A process that could not tell its pid namespace may be of any: its number says nothing. */
static bool is_dead(const struct pem_member *m)
{
	return m->pid && __atomic_load_n(&m->control->pid_namespace, __ATOMIC_RELAXED) &&
	       kill((pid_t)m->pid, 0) && errno == ESRCH;
}

static void say_full(struct pem_session *s, struct pem_member *m)
{
	if (m->full_said)
		return;
	m->full_said = true;
	pem_session__say(s, PEM_LOG_WARNING,
			 "process %u is not observed: eight sessions observe it already; end one",
			 m->pid);
}

/* Those whose files are no more go; others are asked again whether they are in a target. */
static void look_after(struct pem_session *s)
{
	uint64_t now = pem_monotonic_ns();
	struct pem_member **link = &s->members, *m;

	while ((m = *link)) {
		m->seen &= !__atomic_load_n(&m->cut, __ATOMIC_ACQUIRE);
		if (m->seen && now - m->asked_ns >= ASK_AGAIN_NS) {
			if (is_dead(m)) {
				pem_place__remove_control(m->place, m->name, m->inode);
				m->seen = false;
			} else if (!pem_member__is_served(m) && pem_member__ask(s, m)) {
				say_full(s, m);
			}
			m->asked_ns = now;
		}
		if (m->seen) {
			link = &m->next;
			continue;
		}
		*link = m->next;
		free_member(s, m);
	}
}

/* Is the file that one of its name is of? What a folder says of inodes is, on overlayfs, not what files say. */
static bool is_still(const struct pem_member *m, const struct dirent *entry)
{
	struct stat st;

	return m->inode == (uint64_t)entry->d_ino ||
	       (!fstatat(m->place->runtime_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		m->inode == (uint64_t)st.st_ino);
}

/* A control file that the session has not met. */
static void meet(struct pem_session *s, struct pem_member *m)
{
	m->seen = true;
	if (pem_member__ask(s, m))
		say_full(s, m);
}

void pem_session__found_control(struct pem_session *s, struct pem_place *place, const char *name,
				int fd)
{
	struct pem_member *m = find(s, place, name);
	struct pem_producer *p;

	if (m) /* a process's next image has made its file by the same name */
		pem_session__forget_member(s, m);
	m = pem_is_control_name(name) ? open_member(s, place, name, fd) : NULL;
	close(fd);
	if (!m)
		return;
	meet(s, m);
	for (p = s->producers; p; p = p->next) {
		if (p->place != place || p->member || strcmp(p->control_name, name))
			continue;
		p->member = m;
		m->producer = p;
		return;
	}
}

void pem_session__lost_control(struct pem_session *s, struct pem_place *place, const char *name)
{
	struct pem_member *m = find(s, place, name);

	if (m)
		pem_session__forget_member(s, m);
}

static void scan_own(struct pem_session *s, struct pem_place *place)
{
	DIR *directory = pem_list_folder(place->runtime_fd);
	struct pem_member *m;
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (!pem_is_control_name(entry->d_name))
			continue;
		m = find(s, place, entry->d_name);
		if (m && is_still(m, entry)) {
			m->seen = true;
			continue;
		}
		if (m)
			pem_session__forget_member(s, m);
		m = open_own(s, place, entry->d_name);
		if (m)
			meet(s, m);
	}
	if (directory)
		closedir(directory);
}

void pem_session__scan_members(struct pem_session *s)
{
	struct pem_member *m;

	if (!s->command && !s->target_count)
		return;
	if (s->looks_elsewhere)
		pem_session__look_for_places(s);
	pem_session__tend_targets(s);
	for (m = s->members; m; m = m->next)
		m->seen = m->place->number != 0; /* keepers tell of those that are gone */
	if (s->places)
		scan_own(s, s->places);
	look_after(s);
}
