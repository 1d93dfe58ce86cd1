/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * join.c - joining and leaving sessions: the one that the process was started in, those that it
 * opens itself, those that consumers offer to it, and those that have it as a target
 *
 * An entry of the process's table says which session it belongs to. joined[session_index] says
 * which session the process has joined there so far. The two differ when a consumer from outside
 * gives its entry back and another consumer takes it. The action words then have an incarnation
 * other than joined[session_index]'s, and an event that finds such a word comes here.
 */
#include "entry.h"
#include "membership.h"
#include "producer/producer.h"
#include "producer/standby.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Device and inode of the page that was mapped last. Under the process lock. */
static uint64_t mapped_device, mapped_inode;
static bool mapped_writable, mapped_whole;
/* A page that threads without the lock may use: it stays mapped, also where it is not joined. */
static const struct pem_session_page *kept_page;

/*
 * A consumer of version 0.2.0 makes pages without the last members. What is mapped of it then lies
 * in the file's last memory page and reads as zeroes.
 */
#define PEM_SESSION_PAGE_LEAST offsetof(struct pem_session_page, coarse_clock)
PEM_STATIC_ASSERT((PEM_SESSION_PAGE_LEAST - 1) / 4096 ==
			  (sizeof(struct pem_session_page) - 1) / 4096,
		  "no access to the page of a session raises SIGBUS");

/* The kernel shows this id for users that a user namespace has no id for. */
#define OVERFLOW_UID 65534u

/*
 * Is this process in a user namespace that has no id for some users? There the kernel may show
 * root's files as nobody's.
 */
static bool lacks_users(void)
{
	static const char all[] = "         0          0 4294967295\n";
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	char text[sizeof(all)];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 && (n != sizeof(all) - 1 || memcmp(text, all, sizeof(all) - 1));
}

/*
 * May this user own a session's page? The process's own user and root may. In a user namespace root
 * cannot be told from other users who have no id there: see security.md.
 */
static bool may_own_page(uid_t owner)
{
	return owner == geteuid() || !owner || (owner == OVERFLOW_UID && lacks_users());
}

/*
 * Map the page of a session, or return NULL. Lock held.
 */
static struct pem_session_page *map_session_page(const char *directory)
{
	char *path = pem_process__path;
	struct pem_session_page *page;
	size_t length = strlen(directory);
	struct stat st;
	int fd;

	memcpy(path, directory, length);
	memcpy(path + length, "/config", sizeof("/config"));
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	mapped_writable = fd >= 0;
	if (fd < 0 && errno == EACCES) /* root's public folder */
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	page = MAP_FAILED;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && may_own_page(st.st_uid) &&
	    (uint64_t)st.st_size >= PEM_SESSION_PAGE_LEAST)
		page = mmap(NULL, sizeof(*page), PROT_READ | (mapped_writable ? PROT_WRITE : 0),
			    MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return NULL;
	mapped_device = (uint64_t)st.st_dev;
	mapped_inode = (uint64_t)st.st_ino;
	mapped_whole = (uint64_t)st.st_size >= sizeof(*page);
	/* ua */
	if (__atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) == PEM_SESSION_MAGIC &&
	    page->abi_version == PEM_ABI_VERSION && !page->closed)
		return page;
	munmap(page, sizeof(*page));
	return NULL;
}

void pem_make_private(void *mapping, uint64_t bytes)
{
	if (pem_restricted())
		return;
	/*
	 * Threads that are still in an event read the old memory or zeros. To ThreadSanitizer a
	 * call of mmap is a write that races with them.
	 */
	syscall(SYS_mmap, mapping, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

bool pem_joined__in_reach(const struct pem_joined *joined)
{
	static char path[sizeof(joined->directory) + sizeof("/config")];
	size_t length = strlen(joined->directory);
	struct stat st;

	if (pem_restricted())
		return false;
	if (!pem_process__has_moved())
		return true;
	memcpy(path, joined->directory, length);
	memcpy(path + length, "/config", sizeof("/config"));
	return !stat(path, &st) && (uint64_t)st.st_dev == joined->device &&
	       (uint64_t)st.st_ino == joined->inode;
}

void pem_joined__make_pool_private(struct pem_joined *joined)
{
	if (joined->pool_bytes)
		pem_make_private(joined->ring.header, joined->pool_bytes);
	joined->pool_bytes = 0;
}

/*
 * Make the entry another session's. Threads that are still in an event of the earlier session find
 * nothing of it any more. Lock held.
 */
static void replace(struct pem_joined *joined, struct pem_session_page *page, const char *directory,
		    uint32_t incarnation)
{
	__atomic_store_n(&pem_process.ever_joined,
			 pem_process.ever_joined | 1u << (joined - pem_process.joined),
			 __ATOMIC_RELAXED);
	pem_joined__begin_change(joined);
	/* JA */
	__atomic_store_n(&joined->state, PEM_JOINED_NOT, __ATOMIC_RELEASE);
	pem_joined__make_pool_private(joined);
	if (joined->counts != joined->page)
		pem_counts__give_up(joined->counts);
	if (joined->page)
		pem_make_private(joined->page, sizeof(*joined->page));
	/* JB */
	__atomic_store_n(&joined->counts,
			 page && !mapped_writable ? pem_counts__make(directory) : page,
			 __ATOMIC_RELEASE);
	/* JB */
	__atomic_store_n(&joined->page, page, __ATOMIC_RELEASE);
	strcpy(joined->directory, directory);
	joined->public_directory[0] = 0;
	joined->device = mapped_device;
	joined->inode = mapped_inode;
	/* none: threads of the earlier session's events may read these two meanwhile */
	__atomic_store_n(&joined->callback_count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&joined->full, 0, __ATOMIC_RELAXED);
	joined->inherited = 0;
	joined->asked = false;
	/* uk */
	joined->first_gates =
		page && pem_process.begins ? __atomic_load_n(&page->gates, __ATOMIC_ACQUIRE) : 0;
	/* JC */
	__atomic_store_n(&joined->incarnation, incarnation, __ATOMIC_RELEASE);
	pem_joined__end_change(joined);
	pem_gates__begin((unsigned)(joined - pem_process.joined));
	/* CE */
	__atomic_store_n(&pem_process__table()[joined - pem_process.joined].joined, incarnation,
			 __ATOMIC_RELEASE);
	pem_thread__forget((unsigned)(joined - pem_process.joined), incarnation);
	/* JA */
	if (page)
		__atomic_store_n(&joined->state, PEM_JOINED_RULES, __ATOMIC_RELEASE);
}

static bool session_path(char *path, size_t bytes, const char *folder)
{
	size_t length = strlen(pem_process.runtime), more = strlen(folder);

	if (!length || !more || length + 1 + more >= bytes)
		return false;
	memcpy(path, pem_process.runtime, length);
	path[length] = '/';
	memcpy(path + length + 1, folder, more + 1);
	return true;
}

/*
 * Join the session that is offered in an entry, if it is not the one joined there. Returns whether
 * another one was offered. Lock held.
 */
static bool join_offered(unsigned session_index)
{
	const struct pem_session_entry *entry = &pem_process__table()[session_index];
	struct pem_joined *joined = &pem_process.joined[session_index];
	static char path[sizeof(joined->directory)];
	struct pem_session_page *page = NULL;
	struct pem_session_entry offered;

	if (!pem_entry__read(entry, &offered) || offered.incarnation == joined->incarnation)
		return false;
	if (session_path(path, sizeof(path), offered.folder))
		page = map_session_page(path);
	else
		path[0] = 0;
	replace(joined, page, path, offered.incarnation);
	if (page)
		pem_process__apply_rules(session_index);
	else
		pem_process__switch_off(session_index);
	return true;
}

void pem_process__join_offered(unsigned session_index)
{
	unsigned tries;

	if (pem_restricted())
		return;
	/*
	 * A store of this process for an earlier session must not outlive the offer: see
	 * pem_entry__offer.
	 */
	for (tries = 0; tries < 8; tries++) {
		/* CF, cf */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!join_offered(session_index))
			return;
	}
}

/*
 * The last part of a session's path if the session is in this process's runtime directory, else "".
 */
static const char *folder_in_runtime(const char *directory)
{
	const char *slash = strrchr(directory, '/');
	size_t length = strlen(pem_process.runtime);

	if (!slash || !length || (size_t)(slash - directory) != length ||
	    memcmp(directory, pem_process.runtime, length))
		return "";
	return slash + 1;
}

bool pem_process__has_consumer(void *arg, const char *folder)
{
	static char path[sizeof(pem_process.joined[0].directory)];

	(void)arg;
	return !session_path(path, sizeof(path), folder) || pem_alive__check(path);
}

/*
 * Join the session that is offered in an entry. Returns the entry's index, or -EAGAIN where the
 * session cannot be joined now.
 */
static int join_there(int session_index, uint32_t id, bool asked)
{
	struct pem_joined *joined = &pem_process.joined[session_index];

	pem_process__join_offered((unsigned)session_index);
	if (joined->state == PEM_JOINED_NOT || joined->state == PEM_JOINED_FAILED ||
	    joined->page->id != id)
		return -EAGAIN;
	if (asked && !joined->asked) {
		joined->asked = true;
		pem_process__apply_rules((unsigned)session_index);
	}
	return session_index;
}

static void drop_page(struct pem_session_page *page)
{
	if (page != kept_page)
		munmap(page, sizeof(*page));
}

/*
 * Take an entry of the table and join the page's session there. If the consumer has offered the
 * session meanwhile, join it in the consumer's entry. Lock held. The page belongs to this function.
 * Returns the session index, or -errno.
 */
static int join_page(struct pem_session_page *page, const char *directory, bool asked)
{
	struct pem_session_entry *table = pem_process__table();
	struct pem_session_entry wanted = {.consumer_pid = page->consumer_pid,
					   .session_id = page->id};
	const char *folder = folder_in_runtime(directory);
	struct pem_joined *joined;
	int session_index, taken;
	uint64_t word;

	taken = pem_entry__take(table, pem_process__has_consumer, NULL, "", &word);
	if (taken < 0) {
		drop_page(page);
		return taken;
	}
	if (strlen(folder) < sizeof(wanted.folder))
		strcpy(wanted.folder, folder);
	session_index = pem_entry__offer(table, taken, &word, &wanted, true);
	if (session_index != taken) {
		drop_page(page);
		return session_index < 0 ? -EAGAIN
					 : join_there(session_index, wanted.session_id, asked);
	}
	joined = &pem_process.joined[session_index];
	replace(joined, page, directory, table[session_index].incarnation);
	joined->asked = asked;
	joined->word = word;
	pem_process__apply_rules((unsigned)session_index);
	return session_index;
}

bool pem_process__map_session(struct pem_standby_session *session)
{
	static char path[sizeof(pem_process.joined[0].directory)];
	struct pem_session_page *page =
		session_path(path, sizeof(path), session->folder) ? map_session_page(path) : NULL;

	if (page && !(mapped_writable && mapped_whole)) {
		munmap(page, sizeof(*page));
		page = NULL;
	}
	session->page = page;
	session->device = mapped_device;
	session->inode = mapped_inode;
	return page != NULL;
}

int pem_process__join_started(const struct pem_standby_session *session)
{
	static char path[sizeof(pem_process.joined[0].directory)];
	int session_index;

	if (__atomic_load_n(&session->page->closed, __ATOMIC_RELAXED) ||
	    !session_path(path, sizeof(path), session->folder))
		return -ENOENT;
	mapped_device = session->device;
	mapped_inode = session->inode;
	mapped_writable = true;
	kept_page = session->page;
	session_index = join_page(session->page, path, true);
	if (session_index >= 0)
		strcpy(pem_process.joined[session_index].public_directory,
		       session->public_directory);
	return session_index;
}

int pem_process__join(const char *directory)
{
	struct pem_session_page *page;
	int session_index;

	if (strlen(directory) >= sizeof(pem_process.joined[0].directory))
		return -ENAMETOOLONG;
	pem_process__begin();
	pem_standby__leave();
	if (pem_restricted())
		return -EPERM;
	if (!pem_process__lock())
		return -EDEADLK;
	if (!pem_process.control)
		pem_process__find_runtime();
	page = map_session_page(directory);
	session_index = page ? join_page(page, directory, true) : -ENOENT;
	pem_process__unlock();
	return session_index;
}

/*
 * The value is one path, or two paths with a colon between them. A path may have a colon too. So
 * the value is first split at its last colon, and taken as one path where no session is found by
 * that.
 */
int pem_process__join_given(const char *value)
{
	char own[sizeof(pem_process.joined[0].directory)];
	const char *colon = strrchr(value, ':');
	size_t length = colon ? (size_t)(colon - value) : 0;
	int session_index;

	if (!colon || colon[1] != '/' || length >= sizeof(own))
		return pem_process__join(value);
	memcpy(own, value, length);
	own[length] = 0;
	session_index = pem_process__join(own);
	if (session_index < 0)
		session_index = pem_process__join(value);
	else if (strlen(colon + 1) < sizeof(pem_process.joined[session_index].public_directory))
		strcpy(pem_process.joined[session_index].public_directory, colon + 1);
	return session_index < 0 ? pem_process__join(colon + 1) : session_index;
}

void pem_process__leave(unsigned session_index)
{
	struct pem_joined *joined = &pem_process.joined[session_index];

	if (!pem_process__lock())
		return;
	pem_process__switch_off(session_index);
	replace(joined, NULL, "", joined->incarnation);
	pem_entry__give_back(&pem_process__table()[session_index], joined->word);
	pem_process__join_offered(session_index);
	pem_process__unlock();
}

#define CONSUMER_CHECK_TICKS (1ull << 31) /* ticks of the clock, about a second */

void pem_process__check_consumer(unsigned session_index, uint64_t now)
{
	struct pem_joined *joined = &pem_process.joined[session_index];

	if (__atomic_load_n(&joined->state, __ATOMIC_RELAXED) != PEM_JOINED_POOL ||
	    now - __atomic_load_n(&joined->checked_at, __ATOMIC_RELAXED) < CONSUMER_CHECK_TICKS ||
	    !pem_process__lock())
		return;
	if (now - joined->checked_at >= CONSUMER_CHECK_TICKS && joined->state == PEM_JOINED_POOL &&
	    pem_joined__in_reach(joined) && !pem_alive__check(joined->directory)) {
		pem_process__switch_off(session_index);
		if (joined->asked)
			pem_entry__give_back(&pem_process__table()[session_index], joined->word);
		joined->state = PEM_JOINED_FAILED;
		pem_process__join_offered(session_index);
	}
	__atomic_store_n(&joined->checked_at, now, __ATOMIC_RELAXED);
	pem_process__unlock();
}

/* --- sessions whose target this process is --- */

/* Is this process in a target of the session? */
static bool is_target(const struct pem_session_page *page)
{
	/* ud */
	uint32_t count = __atomic_load_n(&page->context_count, __ATOMIC_ACQUIRE), i;

	for (i = 1; i < count && i < PEM_CONTEXTS_MAX; i++) {
		if (page->contexts[i].flags & PEM_CONTEXT_TARGET &&
		    pem_context__holds(&page->contexts[i], pem_process.pid))
			return true;
	}
	return false;
}

static bool is_joined(const char *path)
{
	unsigned i;

	for (i = 0; i < PEM_SESSIONS_MAX; i++) {
		if (pem_process__had_session(i) && pem_process.joined[i].state != PEM_JOINED_NOT &&
		    !strcmp(pem_process.joined[i].directory, path))
			return true;
	}
	return false;
}

/* Lock held: in the middle of an event a stack may be too small for a path. */
static void check_session(const char *folder, void *unused)
{
	static char path[sizeof(pem_process.joined[0].directory)];
	struct pem_session_page *page;
	int found;

	(void)unused;
	/*
	 * The cheapest checks come first. Folders of dead sessions stay for a day, since a killed
	 * recorder's trace can be recovered.
	 */
	if (!pem_is_session_name(folder) || !session_path(path, sizeof(path), folder) ||
	    is_joined(path) || !pem_alive__check(path))
		return;
	page = map_session_page(path);
	if (!page)
		return;
	found = pem_entry__find(pem_process__table(), page->id);
	if (found < 0 && is_target(page)) {
		join_page(page, path, false);
		return;
	}
	munmap(page, sizeof(*page));
	/* The consumer was first. Join now: see first_gates. */
	if (found >= 0)
		pem_process__join_offered((unsigned)found);
}

/* This does not use readdir, which allocates: in libpem-libc's constructor that is an event. */
void pem_process__search_sessions(void)
{
	int fd = pem_restricted() ? -1
				  : open(pem_process.runtime,
					 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	pem_visit_folder(fd, check_session, NULL);
	close(fd);
}

static void note_live(const char *folder, void *found)
{
	char path[sizeof(pem_process.joined[0].directory)];

	if (!*(bool *)found && pem_is_session_name(folder) &&
	    session_path(path, sizeof(path), folder))
		*(bool *)found = pem_alive__check(path);
}

bool pem_process__finds_session(void)
{
	bool found = false;
	int fd = open(pem_process.runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return true;
	pem_visit_folder(fd, note_live, &found);
	close(fd);
	return found;
}

/* --- fork --- */

/* The contexts of a parent that its child inherits. */
static uint64_t inherited(const struct pem_joined *joined)
{
	uint64_t contexts = 0;
	uint32_t i;

	for (i = 1; i < PEM_CONTEXTS_MAX; i++) {
		if (joined->page->contexts[i].flags & PEM_CONTEXT_FOLLOW)
			contexts |= joined->contexts & 1ull << i;
	}
	return contexts;
}

static void inherit(unsigned session_index)
{
	struct pem_session_entry *entry = &pem_process__table()[session_index];
	struct pem_joined *joined = &pem_process.joined[session_index];

	/* A session was offered to the parent: its contexts say whether it wants the child. */
	pem_process__join_offered(session_index);
	if (!pem_process__had_session(session_index)) {
		entry->contexts = 0;
		return;
	}
	joined->changes &= ~1u; /* a thread of the parent was about to end the change */
	pem_joined__begin_change(joined);
	/*
	 * A signal handler or a callback may have forked. Then the child returns into an event of
	 * the parent and finishes its stores. They must not reach the parent's pool.
	 */
	pem_joined__make_pool_private(joined);
	pem_joined__end_change(joined);
	joined->callback_count = 0; /* the callbacks are the parent's */
	joined->full = 0;
	entry->contexts = 0;
	pem_gates__inherit(session_index);
	if (joined->state == PEM_JOINED_NOT)
		return;
	joined->state = PEM_JOINED_RULES;
	joined->inherited = inherited(joined);
	entry->contexts = joined->inherited;
	if (joined->incarnation != entry->incarnation)
		return;
	/*
	 * The parent's contexts and rules are not the child's. If a consumer observes the parent
	 * from outside, the child may not be observed at all.
	 */
	pem_process__apply_rules(session_index);
	if (joined->asked || pem_joined__is_member(joined))
		return;
	joined->state = PEM_JOINED_NOT;
	pem_entry__give_back(entry, entry->word);
}

void pem_process__inherit(void)
{
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++)
		inherit(session_index);
}
