/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dirs.c - the runtime folders in which a session meets processes: its own, those of other users,
 * those of containers
 *
 * A process in another mount namespace, of another user, or with other variables has its runtime
 * folder elsewhere. The session then has a folder there, too, with a page that says the same as the
 * session's own page. Pools are drained from that folder.
 *
 * This process opens, makes and removes nothing in such a folder. Confined helpers do it with the
 * rights of the folder's user (confined/protocol.h). For each user and mount namespace, a finder
 * tells of runtime folders. In each runtime folder a keeper makes the session's folder and passes
 * the files of programs on. What comes from a helper is checked like anything else that the user
 * could have made.
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/fault.h"
#include "core/shared_file.h"
#include "dirs/confined.h"
#include "dirs/dirs.h"
#include "dirs/helpers.h"
#include "dirs/limits.h"
#include "entry.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TURN_MESSAGES 64 /* of one helper in a turn */
#define ANSWER_NS 100000000u /* for a keeper to answer while the session has other work */
#define SLICE_NS 1000000u /* for one keeper, before the next one's slice */
#define KEPT_MESSAGES_MAX 256u /* each may have a descriptor */
/* For all helpers to remove what they made, when the session ends. */
#define END_NS 1000000000u

void pem_session__add_session_dir(struct pem_session *s)
{
	struct pem_dir *own;
	struct stat st = {0};

	if (s->dirs->first)
		return;
	own = calloc(1, sizeof(*own));
	if (!own)
		return;
	own->directory_fd = s->directory_fd;
	own->runtime_fd = open(s->runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	own->owner = geteuid();
	own->page = s->page;
	pem_copy_text(own->folder, sizeof(own->folder),
		      s->directory[0] ? strrchr(s->directory, '/') + 1 : "");
	if (own->runtime_fd >= 0)
		fstat(own->runtime_fd, &st);
	own->device = (uint64_t)st.st_dev;
	own->inode = (uint64_t)st.st_ino;
	s->dirs->first = own;
}

void pem_session__note_log(struct pem_session *s, bool has_log)
{
	struct pem_dir *dir;

	/* none: nobody orders anything by it */
	__atomic_store_n(&s->page->has_log, has_log, __ATOMIC_RELEASE);
	for (dir = s->dirs->first; dir; dir = dir->next) {
		/* none: nobody orders anything by it */
		if (dir->page)
			__atomic_store_n(&dir->page->has_log, has_log, __ATOMIC_RELEASE);
	}
}

/* --- a keeper's page and files --- */

/*
 * End a directory's keeper and say why. Its user can't be observed in this folder any more. Memory
 * that is mapped from there is still drained.
 */
static void lose_keeper(struct pem_session *s, struct pem_dir *dir, const char *why)
{
	if (!dir->keeper)
		return;
	pem_session__say(
		s, PEM_LOG_WARNING,
		"programs of user %u that meet in another folder are not observed from now "
		"on: %s",
		(unsigned)dir->owner, why);
	pem_confined__end(dir->keeper, 0);
	dir->keeper = NULL;
}

/*
 * End all keepers of a user. A user who stops one helper stops them all, and the session does not
 * wait for them one after the other.
 */
static void lose_user(struct pem_session *s, uid_t owner)
{
	struct pem_dir *dir;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (dir->owner == owner)
			lose_keeper(s, dir, "the helper with that user's rights does not answer");
	}
}

void pem_session__end_keepers(struct pem_session *s, const struct pem_user *user)
{
	struct pem_dir *dir;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (dir->usage.user == user) {
			pem_confined__end(dir->keeper, 0);
			dir->keeper = NULL;
		}
	}
}

static bool is_left_out(struct pem_session *s, struct pem_dir *dir)
{
	const struct pem_user *user = pem_dir__user(s, dir);

	return user && user->is_left_out;
}

/*
 * Map the session's page that the keeper has made, and let it say what the session's own page does.
 * Takes fd. Returns 0; -EINVAL: it is no such page; -ENOSPC: out of memory.
 */
static int map_page(struct pem_session *s, struct pem_dir *dir, int fd)
{
	struct pem_session_page *page = MAP_FAILED;
	size_t bytes = sizeof(*page);
	struct stat st;

	if (!dir->page && !is_left_out(s, dir) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    st.st_uid == dir->owner && (uint64_t)st.st_size >= bytes)
		page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return -EINVAL;
	if (pem_fault__watch(page, bytes, &dir->cut)) {
		munmap(page, bytes);
		return -ENOSPC;
	}
	memcpy(page, s->page, bytes);
	page->magic = 0;
	/* Nobody advances a clock there: other users' memory is not written all the time. */
	page->pool_flags &= ~PEM_POOL_COARSE;
	page->pools = page->pools_ready = 0;
	page->lost = page->lost_statistics = page->lost_filtered = 0;
	page->refused = page->filtered = 0;
	memset(page->unobserved, 0, sizeof(page->unobserved));
	/* UA */
	__atomic_store_n(&page->magic, PEM_SESSION_MAGIC, __ATOMIC_RELEASE);
	dir->page = page;
	s->hooks->dir_added(s);
	return 0;
}

/* Handle a message of a keeper. Takes fd. Returns 0, or -errno: the keeper is to be given up. */
static int hear_keeper(struct pem_session *s, struct pem_dir *dir,
		       const struct pem_confined_reply *reply, int fd)
{
	switch (reply->kind) {
	case PEM_CONFINED_PAGE:
		return fd < 0 ? -EINVAL : map_page(s, dir, fd);
	case PEM_CONFINED_CONTROL:
		if (fd >= 0)
			s->hooks->found_control(s, dir, reply->name, fd);
		return 0;
	case PEM_CONFINED_POOL:
		if (fd >= 0)
			s->hooks->found_pool(s, dir, reply->name, fd);
		return 0;
	case PEM_CONFINED_MODEL:
		if (fd >= 0)
			s->hooks->found_model(s, dir, reply->name, fd);
		return 0;
	}
	if (fd >= 0)
		close(fd);
	switch (reply->kind) {
	case PEM_CONFINED_GONE:
		s->hooks->lost_control(s, dir, reply->name);
		return 0;
	case PEM_CONFINED_DONE:
		dir->answered = reply->number;
		dir->answer = reply->value;
		return 0;
	case PEM_CONFINED_OVER:
		pem_dir__exceed_to(s, dir, PEM_EXCESS_NAMES, reply->value);
		return 0;
	case PEM_CONFINED_REFUSED:
		pem_dir__exceed_to(s, dir, PEM_EXCESS_LINKS, reply->value);
		return 0;
	case PEM_CONFINED_NOT_WOKEN:
		/* A keeper has its user's rights, and may send more than one. */
		if (!dir->not_woken_said)
			pem_session__say_not_woken(s, dir->owner, (uint32_t)reply->value);
		dir->not_woken_said = true;
		return 0;
	case PEM_CONFINED_FAILED:
		return reply->value < 0 && reply->value > -4096 ? reply->value : -EINVAL;
	}
	return -EINVAL;
}

/* --- messages --- */

/* A message that came while the session waited for an answer. The list is in order. */
struct pem_kept_message {
	struct pem_confined_reply reply;
	int fd;
	struct pem_kept_message *next;
};

/*
 * Take the next message of a keeper. Returns 1, and the caller closes *fd; 0: there is none now;
 * -EPIPE: the keeper has ended.
 */
static int take_message(struct pem_dir *dir, struct pem_confined_reply *reply, int *fd)
{
	struct pem_kept_message *kept = dir->kept;

	if (!kept)
		return dir->keeper ? pem_confined__receive(dir->keeper, reply, fd) : 0;
	*reply = kept->reply;
	*fd = kept->fd;
	dir->kept = kept->next;
	dir->kept_count--;
	free(kept);
	return 1;
}

/* Keep a message for take_message, behind all that are kept. Takes fd. Returns 0, or -ENOMEM. */
static int keep_message(struct pem_dir *dir, const struct pem_confined_reply *reply, int fd)
{
	struct pem_kept_message *kept = calloc(1, sizeof(*kept)), **link = &dir->kept;

	if (!kept) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	kept->reply = *reply;
	kept->fd = fd;
	while (*link)
		link = &(*link)->next;
	*link = kept;
	dir->kept_count++;
	return 0;
}

static void forget_messages(struct pem_dir *dir)
{
	struct pem_confined_reply reply;
	int fd;

	while (dir->kept) {
		take_message(dir, &reply, &fd);
		if (fd >= 0)
			close(fd);
	}
}

static void lose_broken_keeper(struct pem_session *s, struct pem_dir *dir, int code)
{
	lose_keeper(s, dir,
		    code == -EPIPE ? "the helper with that user's rights has ended"
				   : strerror(-code));
}

/*
 * Handle messages of a directory's keeper. in_turn: after the first message, only while the
 * directory has time in this turn.
 */
static void listen_to_keeper(struct pem_session *s, struct pem_dir *dir, bool in_turn)
{
	struct pem_confined_reply reply;
	uint64_t began_ns;
	unsigned i;
	int fd, result;

	for (i = 0; i < TURN_MESSAGES; i++) {
		if (i && in_turn && pem_dir__had_turn(dir))
			return;
		began_ns = pem_dir__begin(s, dir);
		result = take_message(dir, &reply, &fd);
		if (!result)
			return;
		if (result > 0)
			result = hear_keeper(s, dir, &reply, fd);
		pem_dir__charge(s, dir, began_ns);
		if (result < 0)
			lose_broken_keeper(s, dir, result);
	}
}

static bool has_answered(const struct pem_dir *dir, uint32_t number)
{
	return (int32_t)(dir->answered - number) >= 0;
}

/*
 * Wait for the answer to a request. Returns 0, 1 or -errno. -ETIMEDOUT: no answer in time; -EPIPE:
 * there is no keeper; -ENOBUFS: too many other messages came first. Other messages are kept and not
 * handled: the caller is in the middle of taking a file in, and a message may say that this file is
 * gone.
 */
static int await(struct pem_session *s, struct pem_dir *dir, uint32_t number, uint64_t deadline_ns)
{
	struct pem_confined_reply reply;
	int fd, result;

	while (dir->keeper && !has_answered(dir, number)) {
		if (dir->kept_count >= KEPT_MESSAGES_MAX)
			return -ENOBUFS;
		if (!pem_confined__wait(dir->keeper, deadline_ns))
			return -ETIMEDOUT;
		result = pem_confined__receive(dir->keeper, &reply, &fd);
		if (result > 0)
			result = reply.kind == PEM_CONFINED_DONE ? hear_keeper(s, dir, &reply, fd)
								 : keep_message(dir, &reply, fd);
		if (result < 0)
			lose_broken_keeper(s, dir, result);
	}
	return dir->keeper ? dir->answer : -EPIPE;
}

bool pem_dir__has_consumer(void *arg, const char *folder)
{
	struct pem_dir_of_session *of = arg;
	char path[PATH_MAX];
	int answer;

	if (!of->dir->number)
		return snprintf(path, sizeof(path), "%s/%s", of->session->runtime, folder) >=
			       (int)sizeof(path) ||
		       pem_alive__check(path);
	if (!of->dir->keeper ||
	    pem_confined__send(of->dir->keeper, PEM_CONFINED_IS_ALIVE, folder, 0, true))
		return true;
	answer = await(of->session, of->dir, of->dir->keeper->number,
		       pem_monotonic_ns() + ANSWER_NS);
	if (answer == -ETIMEDOUT)
		lose_user(of->session, of->dir->owner);
	return answer != 0;
}

void pem_dir__remove_control(struct pem_dir *dir, const char *name, uint64_t inode)
{
	struct stat st;

	if (dir->keeper)
		pem_confined__send(dir->keeper, PEM_CONFINED_REMOVE_CONTROL, name, inode, false);
	else if (!dir->number && !fstatat(dir->runtime_fd, name, &st, AT_SYMLINK_NOFOLLOW) &&
		 (uint64_t)st.st_ino == inode)
		unlinkat(dir->runtime_fd, name, 0);
}

void pem_dir__remove_pool(struct pem_dir *dir, const char *name)
{
	if (dir->keeper)
		pem_confined__send(dir->keeper, PEM_CONFINED_REMOVE_POOL, name, 0, false);
	else if (pem_dir__opens_files(dir))
		unlinkat(dir->directory_fd, name, 0);
}

/* --- all of them --- */

void pem_session__scan_dirs(struct pem_session *s)
{
	struct pem_dir *dir;

	pem_session__listen_to_finders(s);
	for (dir = s->dirs->first; dir; dir = dir->next)
		listen_to_keeper(s, dir, true);
}

void pem_dir__ask(struct pem_dir *dir)
{
	dir->asked = 0;
	if (dir->keeper && !pem_confined__send(dir->keeper, PEM_CONFINED_SCAN, "", 0, true))
		dir->asked = dir->keeper->number;
}

static bool is_of(const struct pem_dir *dir, uid_t owner)
{
	return owner == PEM_ANY_USER || dir->owner == owner;
}

void pem_session__ask_keepers(struct pem_session *s, uid_t owner)
{
	struct pem_dir *dir;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (is_of(dir, owner))
			pem_dir__ask(dir);
	}
}

/* Is the answer of a keeper still to come, or still to be handled? */
static bool is_awaited(const struct pem_dir *dir)
{
	return dir->keeper && dir->asked && (!has_answered(dir, dir->asked) || dir->kept);
}

bool pem_session__awaits_keepers(const struct pem_session *s, uid_t owner)
{
	const struct pem_dir *dir;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (is_of(dir, owner) && is_awaited(dir))
			return true;
	}
	return false;
}

void pem_session__forget_asked(struct pem_session *s, uid_t owner)
{
	struct pem_dir *dir;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (is_of(dir, owner))
			dir->asked = 0;
	}
}

void pem_session__settle_dirs(struct pem_session *s, uint64_t deadline_ns)
{
	struct pem_dir *dir;
	bool is_late, waits;

	pem_session__ask_keepers(s, PEM_ANY_USER);
	/*
	 * Wait for each keeper in turn, for a short time: a keeper that does not answer takes no
	 * time of others.
	 */
	do {
		is_late = pem_monotonic_ns() >= deadline_ns;
		waits = false;
		for (dir = s->dirs->first; dir; dir = dir->next) {
			if (!is_awaited(dir))
				continue;
			if (!dir->kept)
				pem_confined__wait(dir->keeper, pem_monotonic_ns() + SLICE_NS);
			listen_to_keeper(s, dir, false);
			if (is_awaited(dir) && is_late)
				lose_user(s, dir->owner);
			waits |= is_awaited(dir);
		}
	} while (waits && !is_late);
}

static void free_dir(struct pem_session *s, struct pem_dir *dir, uint64_t deadline_ns)
{
	pem_confined__end(dir->keeper, deadline_ns);
	forget_messages(dir);
	if (dir->number && dir->page)
		pem_shared_file__unmap(dir->page, sizeof(*dir->page));
	s->hooks->dir_closes(s, dir);
	pem_dir__close_account(s, dir);
	if (dir->is_public)
		pem_session__close_public(s, dir);
	if (dir->runtime_fd >= 0)
		close(dir->runtime_fd);
	free(dir);
}

void pem_session__close_dirs(struct pem_session *s)
{
	uint64_t deadline = pem_monotonic_ns() + END_NS;
	struct pem_dir *dir;

	/* End all keepers at once, because each has something to remove. */
	for (dir = s->dirs->first; dir; dir = dir->next) {
		/* none: nobody orders anything by it */
		if (dir->number && dir->page)
			__atomic_store_n(&dir->page->closed, 1, __ATOMIC_RELEASE);
		if (dir->keeper)
			shutdown(dir->keeper->socket, SHUT_WR);
	}
	pem_session__end_finders(s, deadline);
	while ((dir = s->dirs->first)) {
		s->dirs->first = dir->next;
		free_dir(s, dir, deadline);
	}
	pem_session__forget_users(s);
	pem_session__close_stall_clock(s);
}

/* --- pages that say the same --- */

static void mirror(const struct pem_session *s, struct pem_session_page *to)
{
	const struct pem_session_page *from = s->page;
	uint32_t generation = to->generation & ~1u;

	__atomic_store_n(&to->generation, generation + 1, __ATOMIC_RELAXED);
	/* UB */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(to->contexts, from->contexts, s->context_count * sizeof(from->contexts[0]));
	memcpy(to->rules, from->rules, s->rule_count * sizeof(from->rules[0]));
	memcpy(to->tests, from->tests, s->test_count * sizeof(from->tests[0]));
	/* UD */
	__atomic_store_n(&to->context_count, s->context_count, __ATOMIC_RELEASE);
	to->rule_count = s->rule_count;
	to->test_count = s->test_count;
	__atomic_store_n(&to->closed, from->closed, __ATOMIC_RELAXED);
	/* UC */
	__atomic_store_n(&to->generation, generation + 2, __ATOMIC_RELEASE);
}

void pem_session__mirror(struct pem_session *s)
{
	struct pem_dir *dir;

	uint64_t began_ns;

	for (dir = s->dirs->first ? s->dirs->first->next : NULL; dir; dir = dir->next) {
		if (!dir->page)
			continue;
		began_ns = pem_dir__begin(s, dir);
		mirror(s, dir->page);
		pem_dir__charge(s, dir, began_ns);
	}
}

void pem_session__gather_losses(struct pem_session *s)
{
	struct pem_dir *dir;
	uint64_t began_ns;

	for (dir = s->dirs->first ? s->dirs->first->next : NULL; dir; dir = dir->next) {
		began_ns = pem_dir__begin(s, dir);
		if (dir->page)
			pem_session__gather_rights(s, dir);
		if (dir->is_public)
			pem_public__take_counts(s, dir);
		pem_dir__charge(s, dir, began_ns);
	}
}
