/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * entry.c - a process's table of sessions, and whether a session's consumer is alive
 *
 * A process id says nothing across pid namespaces. So a consumer holds a lock on its session's
 * folder. The kernel releases the lock when the consumer dies, whatever kills it.
 */
#include "entry.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* --- liveness --- */

#define HELD_MAX 256

static int held[HELD_MAX]; /* descriptor + 1; 0: none */

/* A lock belongs to the open file, and a child of fork has that too. So the child closes it. */
static void drop_in_child(void)
{
	size_t i;

	for (i = 0; i < HELD_MAX; i++) {
		if (held[i])
			close(held[i] - 1);
		held[i] = 0;
	}
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, drop_in_child);
}

/* Tries of 0.1 ms each. pem_alive__check holds the lock for a short time. */
#define LOCK_TRIES 1000

static int lock(int fd)
{
	const struct timespec pause = {0, 100000};
	unsigned tries;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&pause, NULL);
	}
	return -errno;
}

/*
 * Lock what fd is open on. The function owns fd from here on, also on failure. Returns fd, or
 * -errno; a negative fd means that errno is set.
 */
static int hold(int fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int none, result;
	size_t i;

	if (fd < 0)
		return -errno;
	result = lock(fd);
	if (result) {
		close(fd);
		return result;
	}
	pthread_once(&once, watch_forks);
	for (i = 0; i < HELD_MAX; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&held[i], &none, fd + 1, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return fd;
	}
	close(fd);
	return -EMFILE;
}

int pem_alive__hold(int directory_fd)
{
	return hold(openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int pem_alive__hold_file(int directory_fd, const char *name)
{
	return hold(openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

void pem_alive__release(int fd)
{
	size_t i;

	for (i = 0; fd >= 0 && i < HELD_MAX; i++) {
		if (held[i] == fd + 1) {
			__atomic_store_n(&held[i], 0, __ATOMIC_RELAXED);
			close(fd);
			return;
		}
	}
}

bool pem_is_session_name(const char *name)
{
	return !strncmp(name, "session-", 8) && !strchr(name, '/');
}

/*
 * Return whether another process holds a lock on fd, and close fd. A negative fd means that errno
 * is set.
 */
static bool is_held(int fd)
{
	bool alive;

	if (fd < 0)
		return errno != ENOENT;
	alive = flock(fd, LOCK_SH | LOCK_NB) != 0;
	close(fd);
	return alive;
}

/*
 * A process that may not open the folder tests the lock on the page in it. The consumer locks the
 * page where everybody may open it. A function of its own: few callers need its stack.
 */
static __attribute__((noinline)) bool check_config(const char *directory)
{
	char path[PATH_MAX];
	size_t length;

	length = strlen(directory);
	if (length + sizeof("/config") > sizeof(path))
		return true;
	memcpy(path, directory, length);
	memcpy(path + length, "/config", sizeof("/config"));
	return is_held(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

bool pem_alive__check(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 || errno != EACCES ? is_held(fd) : check_config(directory);
}

bool pem_alive__check_file(int directory_fd, const char *name)
{
	return is_held(openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

/* --- the table --- */

/* Return the consumer's number that belongs to a session's folder; 0: none. */
static uint32_t consumer_of(const char *folder)
{
	uint32_t part[2] = {0, 0};
	const char *c, *first;
	int i;

	if (!pem_is_session_name(folder))
		return 0;
	c = folder + strlen("session-");
	for (i = 0; i < 2; i++) {
		first = c;
		for (; *c >= '0' && *c <= '9' && part[i] < 1u << 22; c++)
			part[i] = part[i] * 10 + (uint32_t)(*c - '0');
		if (c == first || *c != "-"[i])
			return 0;
		c += !i;
	}
	if (part[0] > PEM_CONSUMER_PID(~0u) || part[1] > PEM_CONSUMER_NUMBER(~0u))
		return 0;
	return PEM_CONSUMER(part[0], part[1]);
}

static bool move(struct pem_session_entry *entry, uint64_t *word, uint32_t state, uint32_t consumer)
{
	uint64_t next = PEM_ENTRY_WORD(state, PEM_ENTRY_SERIAL(*word) + 1, consumer);

	/* CC, cc */
	if (!__atomic_compare_exchange_n(&entry->word, word, next, 0, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return false;
	*word = next;
	return true;
}

bool pem_entry__read(const struct pem_session_entry *entry, struct pem_session_entry *copy)
{
	/* cc */
	uint64_t word = __atomic_load_n(&entry->word, __ATOMIC_SEQ_CST);

	if (PEM_ENTRY_STATE(word) != PEM_ENTRY_OFFERED)
		return false;
	*copy = *(const volatile struct pem_session_entry *)entry;
	copy->word = word;
	copy->folder[sizeof(copy->folder) - 1] = 0;
	/* cd */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&entry->word, __ATOMIC_RELAXED) == word && copy->incarnation >= 1 &&
	       copy->incarnation <= 255 && (!copy->folder[0] || pem_is_session_name(copy->folder));
}

static char *append(char *to, const char *text)
{
	size_t length = strlen(text);

	memcpy(to, text, length + 1);
	return to + length;
}

static char *append_number(char *to, uint32_t number)
{
	char digits[12], *first = digits + sizeof(digits) - 1;

	*first = 0;
	do
		*--first = (char)('0' + number % 10);
	while (number /= 10);
	return append(to, first);
}

/*
 * Return whether the consumer that took or offered an entry has died. A living one may be stopped
 * while it fills the entry in.
 */
static bool is_abandoned(uint64_t word, pem_has_consumer_t *has_consumer, void *arg)
{
	uint32_t consumer = PEM_ENTRY_CONSUMER(word);
	char folder[48], *end;

	if (!consumer)
		return false;
	end = append_number(append(folder, "session-"), PEM_CONSUMER_PID(consumer));
	append_number(append(end, "-"), PEM_CONSUMER_NUMBER(consumer));
	return !has_consumer(arg, folder);
}

/*
 * Give the entry a new incarnation. It has to differ from the incarnation that the process joined
 * here last, or the process would not notice the new session.
 */
static void set_incarnation(struct pem_session_entry *entry)
{
	uint32_t next = entry->incarnation % 255 + 1;

	if (next == entry->joined)
		next = next % 255 + 1;
	entry->incarnation = next;
}

int pem_entry__take(struct pem_session_entry *table, pem_has_consumer_t *has_consumer, void *arg,
		    const char *folder, uint64_t *word)
{
	uint32_t consumer = consumer_of(folder), i, pass;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < PEM_SESSIONS_MAX; i++) {
			*word = __atomic_load_n(&table[i].word, __ATOMIC_RELAXED);
			if (PEM_ENTRY_STATE(*word) != PEM_ENTRY_FREE &&
			    (!pass || !is_abandoned(*word, has_consumer, arg)))
				continue;
			if (!move(&table[i], word, PEM_ENTRY_TAKEN, consumer))
				continue;
			set_incarnation(&table[i]);
			return (int)i;
		}
	}
	return -EUSERS;
}

/* Tries at a word that changes each time: a hostile table must not hold a consumer up. */
#define WORD_TRIES 100

/* Return whether an entry has the session, offered or filled. Set *word to the entry's word. */
static bool has_session(const struct pem_session_entry *entry, uint32_t id, uint64_t *word)
{
	uint32_t found, tries;

	for (tries = 0; tries < WORD_TRIES; tries++) {
		/* cc */
		*word = __atomic_load_n(&entry->word, __ATOMIC_SEQ_CST);
		if (PEM_ENTRY_STATE(*word) != PEM_ENTRY_OFFERED &&
		    PEM_ENTRY_STATE(*word) != PEM_ENTRY_FILLED)
			return false;
		found = __atomic_load_n(&entry->session_id, __ATOMIC_RELAXED);
		/* cd */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&entry->word, __ATOMIC_RELAXED) == *word)
			return found == id;
	}
	return false;
}

/*
 * Return the index of another entry that is to keep the session, or -1. The process's own entry
 * goes first: for it, entries that consumers have filled are set back to free.
 */
static int find_other(struct pem_session_entry *table, int index, uint32_t id, bool is_own)
{
	uint32_t tries;
	uint64_t word;
	int i;

	for (i = 0; i < (int)PEM_SESSIONS_MAX; i++) {
		for (tries = 0; i != index && has_session(&table[i], id, &word); tries++) {
			if (!is_own || PEM_ENTRY_STATE(word) == PEM_ENTRY_OFFERED ||
			    tries == WORD_TRIES)
				return i;
			move(&table[i], &word, PEM_ENTRY_FREE, 0);
		}
	}
	return -1;
}

int pem_entry__offer(struct pem_session_entry *table, int index, uint64_t *word,
		     const struct pem_session_entry *wanted, bool is_own)
{
	struct pem_session_entry *entry = &table[index];
	uint32_t consumer = consumer_of(wanted->folder);
	uint64_t now = *word;
	int other;

	entry->consumer_pid = wanted->consumer_pid;
	/*
	 * CD: The store comes after the store of the word that says TAKEN: has_session pairs it
	 * with the word before.
	 */
	__atomic_store_n(&entry->session_id, wanted->session_id, __ATOMIC_RELEASE);
	entry->contexts = wanted->contexts;
	memcpy(entry->folder, wanted->folder, sizeof(entry->folder));
	/*
	 * This store comes before the loads of the other entries. A process or consumer that is
	 * about to offer the same session does it in this order too.
	 */
	if (!move(entry, &now, PEM_ENTRY_FILLED, consumer))
		return -1;
	other = find_other(table, index, wanted->session_id, is_own);
	if (other >= 0) {
		pem_entry__give_back(entry, now);
		return other;
	}
	if (!move(entry, &now, PEM_ENTRY_OFFERED, consumer))
		return -1;
	*word = now;
	return index;
}

void pem_entry__give_back(struct pem_session_entry *entry, uint64_t word)
{
	move(entry, &word, PEM_ENTRY_FREE, 0);
}

int pem_entry__find(const struct pem_session_entry *table, uint32_t session_id)
{
	struct pem_session_entry copy;
	int i;

	for (i = 0; i < (int)PEM_SESSIONS_MAX; i++) {
		if (pem_entry__read(&table[i], &copy) && copy.session_id == session_id)
			return i;
	}
	return -1;
}
