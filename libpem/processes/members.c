/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * members.c - find members by their control files, find those that the session observes, and offer
 * the session to them
 *
 * A control file is hostile: a process may change it at any time. Each value is loaded once and
 * checked. The session keeps its own copy of each value that it relies on.
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "entry.h"
#include "membership.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The pause between two checks of a member. Its name and control group may change, and it may die.
 */
#define ASK_AGAIN_NS 1000000000u
#define SEARCH_LATER_NS 20000000u /* a process joins within this time after an attach */

bool pem_is_control_name(const char *name)
{
	return !strncmp(name, "control-", 8) && !strchr(name, '/') &&
	       strlen(name) < sizeof(((struct pem_member *)0)->name);
}

static struct pem_member **bucket_of(struct pem_session *s, const struct pem_dir *dir,
				     const char *name)
{
	return &s->processes->members_by_name[pem_session__hash_name(s, dir, name)];
}

static struct pem_member *find(struct pem_session *s, const struct pem_dir *dir, const char *name)
{
	struct pem_member *m = *bucket_of(s, dir, name);

	while (m && (m->dir != dir || strcmp(m->name, name) != 0))
		m = m->next_by_name;
	return m;
}

static void add_member(struct pem_session *s, struct pem_member *m)
{
	struct pem_member **bucket = bucket_of(s, m->dir, m->name);

	m->next_by_name = *bucket;
	*bucket = m;
	m->next = s->processes->members;
	if (m->next)
		m->next->link = &m->next;
	m->link = &s->processes->members;
	s->processes->members = m;
}

void pem_session__forget_member(struct pem_session *s, struct pem_member *m)
{
	struct pem_member **at;

	for (at = bucket_of(s, m->dir, m->name); *at != m; at = &(*at)->next_by_name)
		;
	*at = m->next_by_name;
	*m->link = m->next;
	if (m->next)
		m->next->link = m->link;
	if (m->producer) {
		m->producer->contexts = m->contexts;
		m->producer->member = NULL;
	}
	pem_dir__give_back(s, m->dir, PEM_RESOURCE_MEMBERS, 1);
	pem_member__close(s, m);
}

/*
 * Open a control file, if the directory may have one more member. Returns NULL where the limit is
 * reached, and as pem_member__open does.
 */
static struct pem_member *take_member(struct pem_session *s, struct pem_dir *dir, const char *name,
				      int fd)
{
	struct pem_member *m;

	if (!pem_dir__take(s, dir, PEM_RESOURCE_MEMBERS, 1)) {
		pem_dir__exceed_in_list(s, dir, PEM_LIST_MEMBERS, PEM_EXCESS_MEMBERS);
		return NULL;
	}
	m = pem_member__open(s, dir, name, fd);
	if (m)
		add_member(s, m);
	else
		pem_dir__give_back(s, dir, PEM_RESOURCE_MEMBERS, 1);
	return m;
}

/* Open a control file of the session's own directory. Returns NULL as take_member does. */
static struct pem_member *open_own(struct pem_session *s, struct pem_dir *dir, const char *name)
{
	int fd = pem_dir__open(s, dir, PEM_LIST_MEMBERS, dir->runtime_fd, name);
	struct pem_member *m = fd < 0 ? NULL : take_member(s, dir, name, fd);

	if (fd >= 0)
		close(fd);
	return m;
}

struct pem_member *pem_session__member(struct pem_session *s, struct pem_dir *dir, const char *name)
{
	struct pem_member *m;
	struct stat st;

	if (!pem_is_control_name(name))
		return NULL;
	m = find(s, dir, name);
	/* After an exec the process may have made a new control file by the same name. */
	if (m && !dir->number &&
	    (fstatat(dir->runtime_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	     (uint64_t)st.st_ino != m->inode)) {
		pem_session__forget_member(s, m);
		m = NULL;
	}
	/* Keepers send the control files of other users' directories. */
	if (!m && !dir->number)
		m = open_own(s, dir, name);
	if (m)
		pem_member__find_index(s, m);
	return m;
}

/* --- the table --- */

void pem_member__find_index(struct pem_session *s, struct pem_member *m)
{
	struct pem_session_entry entry;
	int session_index;

	if (m->session_index >= 0)
		return;
	session_index = pem_entry__find(m->control->session, s->id);
	if (session_index < 0 || !pem_entry__read(&m->control->session[session_index], &entry) ||
	    entry.session_id != s->id)
		return;
	m->word = entry.word;
	m->incarnation = entry.incarnation;
	m->session_index = session_index;
}

bool pem_member__has_made(const struct pem_member *m, const struct pem_producer *p)
{
	return __atomic_load_n(&m->control->start_clock, __ATOMIC_RELAXED) <= p->start_clock;
}

bool pem_member__is_served(struct pem_member *m)
{
	/* cc: the member has left the session, or has given the entry to another session */
	if (m->session_index >= 0 && __atomic_load_n(&m->control->session[m->session_index].word,
						     __ATOMIC_ACQUIRE) != m->word)
		m->session_index = -1;
	return m->session_index >= 0;
}

/* Is the process in any target of the session? The caller has found its contexts. */
static bool is_target(const struct pem_session *s, const struct pem_member *m)
{
	uint32_t i;

	for (i = 1; i < s->context_count; i++) {
		if (m->contexts >> i & 1 && s->page->contexts[i].flags & PEM_CONTEXT_TARGET)
			return true;
	}
	return false;
}

/*
 * Does the process that the file was found for still have the member's pid? Another user's file may
 * name a pid that nobody has yet, or no longer. A file of the session's own user is believed.
 */
static bool has_pid(const struct pem_member *m)
{
	if (m->dir->owner == geteuid())
		return m->pid && (!kill((pid_t)m->pid, 0) || errno != ESRCH);
	return m->pid && m->started && pem_start_of(m->pid) == m->started;
}

/* Is this process still its owner's, too? Only then may the file speak of it. */
static bool may_speak(const struct pem_member *m)
{
	return m->started && pem_dir__start(m->dir->owner, m->pid) == m->started;
}

void pem_member__find_contexts(struct pem_session *s, struct pem_member *m)
{
	uint64_t holding = pem_contexts__holding(s->page, s->context_count, m->pid, m->contexts);

	if (holding != m->contexts && m->dir->owner != geteuid() && !may_speak(m))
		holding = pem_contexts__holding(s->page, s->context_count, 0, m->contexts);
	m->contexts = holding;
	if (pem_member__is_served(m))
		__atomic_store_n(&m->control->session[m->session_index].contexts, m->contexts,
				 __ATOMIC_RELAXED);
}

/*
 * Take an entry of the member's table for the session. The session's stores to the entry come after
 * the member's stores for an earlier session. Returns 0 or -errno. Also returns 0 where the member
 * is about to join by itself: it has no entry yet, and the session soon asks it again.
 */
static int offer(struct pem_session *s, struct pem_member *m)
{
	struct pem_dir_of_session where = {s, m->dir};
	struct pem_session_entry *table = m->control->session;
	struct pem_session_entry wanted = {.consumer_pid = s->page->consumer_pid,
					   .session_id = s->id,
					   .contexts = m->contexts};
	uint32_t incarnation;
	uint64_t word;
	int session_index =
		pem_entry__take(table, pem_dir__has_consumer, &where, m->dir->folder, &word);

	if (session_index < 0)
		return session_index;
	if (strlen(m->dir->folder) < sizeof(wanted.folder))
		strcpy(wanted.folder, m->dir->folder);
	incarnation = __atomic_load_n(&table[session_index].incarnation, __ATOMIC_RELAXED) & 0xff;
	m->joins = pem_entry__offer(table, session_index, &word, &wanted, false) != session_index;
	if (m->joins) {
		m->asked_ns = 0;
		return 0;
	}
	m->incarnation = incarnation;
	m->word = word;
	m->session_index = session_index;
	/* CF, cf */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

/*
 * A process that became another user after it made its control file can't open the session's page:
 * it does not learn what is wanted. Said once, since a server has many such processes.
 */
static void say_given_up(struct pem_session *s, const struct pem_member *m)
{
	char name[PEM_NAME_BYTES];

	if (s->processes->given_up_said || !has_pid(m) || !pem_is_anothers(m->pid, m->dir->owner))
		return;
	s->processes->given_up_said = true;
	pem_process_name(m->pid, name);
	pem_session__say(
		s, PEM_LOG_WARNING,
		"process %u (%s) raises no application events here, nor do others like it: "
		"it became another user before anybody observed it; start it with "
		"'pem record --' or 'pem stat --'",
		m->pid, name);
}

/*
 * A process that has a seccomp filter may not be able to join: joining opens files. Whether it had
 * events to join for is not known here. Said once, since a browser has many such processes.
 */
static void say_filtered(struct pem_session *s, const struct pem_member *m)
{
	if (s->processes->filtered_said || !m->has_filter || m->session_index < 0 ||
	    __atomic_load_n(&m->control->session[m->session_index].joined, __ATOMIC_RELAXED) ==
		    m->incarnation ||
	    !m->was_wanted)
		return;
	s->processes->filtered_said = true;
	pem_session__say(
		s, PEM_LOG_WARNING,
		"process %u (%s) has not joined this session, and has a seccomp filter: if it "
		"raised application events, the filter forbids the calls that joining takes, and "
		"these events are missing, as are those of others like it; start it with 'pem "
		"record --' or 'pem stat --', which make all ready before it takes the filter",
		m->pid, m->comm);
}

/*
 * The process keeps its gates from its next event on, but its memory for them is there already. So
 * sources can be told of it before.
 */
static void note_gates(struct pem_session *s, struct pem_member *m)
{
	uint64_t gates = __atomic_load_n(&m->control->gates, __ATOMIC_RELAXED);

	if (m->session_index < 0 || !gates)
		return;
	gates += (uint64_t)m->session_index * sizeof(struct pem_gate_states);
	if (m->gates == gates || !may_speak(m))
		return;
	m->gates = gates;
	s->hooks->gates_found(s, m->pid, gates);
}

int pem_member__ask(struct pem_session *s, struct pem_member *m)
{
	int result;

	m->asked_ns = pem_monotonic_ns();
	m->joins = false;
	pem_member__find_index(s, m);
	pem_member__find_contexts(s, m);
	if (m->session_index < 0) {
		if (!is_target(s, m))
			return 0;
		result = offer(s, m);
		if (result)
			return result;
		say_given_up(s, m);
		m->has_filter = m->session_index >= 0 && m->pid && pem_has_filter(m->pid);
		if (m->has_filter)
			pem_process_name(m->pid, m->comm);
	}
	pem_session__apply_to(s, m);
	note_gates(s, m);
	return 0;
}

void pem_session__leave_members(struct pem_session *s)
{
	struct pem_member *m;

	for (m = s->processes->members; m; m = m->next) {
		if (pem_member__is_served(m)) {
			say_filtered(s, m);
			pem_entry__give_back(&m->control->session[m->session_index], m->word);
		}
		m->session_index = -1;
	}
	while (s->processes->members)
		pem_session__forget_member(s, s->processes->members);
}

/* --- searching --- */

/*
 * Has the process ended? A process that could not tell its pid namespace may be in any namespace.
 * Its process id then shows nothing, and the answer is false.
 */
static bool is_dead(const struct pem_member *m)
{
	return m->pid && __atomic_load_n(&m->control->pid_namespace, __ATOMIC_RELAXED) &&
	       !has_pid(m);
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

/* Check again whether the member is in a target. Returns false where its process is dead. */
static bool ask_again(struct pem_session *s, struct pem_member *m, uint64_t now)
{
	m->asked_ns = now;
	if (is_dead(m)) {
		pem_dir__remove_control(m->dir, m->name, m->inode);
		return false;
	}
	/* The file does not tell its pid namespace: its process may live in another one. */
	if (m->dir->owner != geteuid() && !has_pid(m))
		m->pid = 0;
	if (!pem_member__is_served(m) && pem_member__ask(s, m))
		say_full(s, m);
	say_filtered(s, m);
	return true;
}

/* Forget members whose control files are gone. Check the other members again. */
static void check_members(struct pem_session *s)
{
	uint64_t now = pem_monotonic_ns(), began;
	struct pem_member *m, *next;
	bool stays;

	for (m = s->processes->members; m; m = next) {
		next = m->next;
		/* fb */
		stays = m->seen && !__atomic_load_n(&m->cut, __ATOMIC_ACQUIRE);
		if (stays && now - m->asked_ns >= ASK_AGAIN_NS && !pem_dir__had_turn(m->dir)) {
			began = pem_dir__begin(s, m->dir);
			stays = ask_again(s, m, now);
			pem_dir__charge(s, m->dir, began);
		}
		if (!stays)
			pem_session__forget_member(s, m);
	}
}

/*
 * Is this directory entry still the member's file? On overlayfs an inode number in a directory
 * differs from the one that fstatat() gives, so the second is compared too.
 */
static bool is_still(const struct pem_member *m, const struct dirent *entry)
{
	struct stat st;

	return m->inode == (uint64_t)entry->d_ino ||
	       (!fstatat(m->dir->runtime_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		m->inode == (uint64_t)st.st_ino);
}

/* Handle a control file that the session sees for the first time. */
static void note(struct pem_session *s, struct pem_member *m)
{
	m->seen = true;
	if (pem_member__ask(s, m))
		say_full(s, m);
}

void pem_session__found_control(struct pem_session *s, struct pem_dir *dir, const char *name,
				int fd)
{
	struct pem_member *m = find(s, dir, name);
	struct pem_producer *p;

	/* After an exec the process has made a new control file by the same name. */
	if (m)
		pem_session__forget_member(s, m);
	m = pem_is_control_name(name) ? take_member(s, dir, name, fd) : NULL;
	close(fd);
	if (!m)
		return;
	note(s, m);
	for (p = s->processes->producers; p; p = p->next) {
		if (p->dir != dir || p->member || strcmp(p->control_name, name) ||
		    !pem_member__has_made(m, p))
			continue;
		p->member = m;
		m->producer = p;
		return;
	}
}

void pem_session__lost_control(struct pem_session *s, struct pem_dir *dir, const char *name)
{
	struct pem_member *m = find(s, dir, name);

	if (m)
		pem_session__forget_member(s, m);
}

static void scan_own(struct pem_session *s, struct pem_dir *dir)
{
	DIR *directory = pem_list_folder(dir->runtime_fd);
	struct pem_member *m;
	struct dirent *entry;

	pem_dir__begin_list(dir, PEM_LIST_MEMBERS);
	while (directory && (entry = readdir(directory))) {
		if (!pem_is_control_name(entry->d_name))
			continue;
		m = find(s, dir, entry->d_name);
		if (m && is_still(m, entry)) {
			m->seen = true;
			continue;
		}
		if (m)
			pem_session__forget_member(s, m);
		m = open_own(s, dir, entry->d_name);
		if (m)
			note(s, m);
	}
	if (directory)
		closedir(directory);
}

bool pem_session__search_later(struct pem_session *s, uint32_t pid)
{
	struct pem_member *m;

	for (m = s->processes->members; m && (m->pid != pid || m->dir->number); m = m->next)
		;
	if (!m || s->processes->search_ns)
		return false;
	s->processes->search_pid = pid;
	s->processes->search_ns = pem_monotonic_ns() + SEARCH_LATER_NS;
	return true;
}

/*
 * Search the other directories of a process that was attached to. Its file in the session's
 * directory does not show that its events go there: a program that the process ran before an exec
 * may have left the file.
 */
static void search_now(struct pem_session *s)
{
	uid_t owner;

	if (!s->processes->search_ns || pem_monotonic_ns() < s->processes->search_ns)
		return;
	s->processes->search_ns = 0;
	pem_session__find_dirs_of(s, s->processes->search_pid, &owner);
}

void pem_session__scan_members(struct pem_session *s)
{
	struct pem_member *m;

	if (!s->command.pid && !s->processes->target_count)
		return;
	if (s->processes->searches_elsewhere)
		pem_session__search_dirs(s);
	search_now(s);
	s->hooks->members_scanned(s);
	/* Keepers report the files of other directories that are gone. */
	for (m = s->processes->members; m; m = m->next)
		m->seen = m->dir->number != 0;
	if (s->dirs->first)
		scan_own(s, s->dirs->first);
	check_members(s);
}
