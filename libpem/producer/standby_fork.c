/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby_fork.c - a child of fork begins on standby, if one session alone may want it
 *
 * Such a child makes nothing before its first event that the session wants. Many children have no
 * such event. The child maps the session's standby file (standby_file.h) in place of its parent's
 * control pages. From then on it is like a process that was started in the session: the session and
 * later ones wake it as they wake those. The parent maps the file once, before a fork; the child
 * moves that mapping over its pages. With its first event the child leaves the parent's sessions
 * (pem_standby__start_over), makes a control file, and joins.
 *
 * Every other child gets its own state at once (pem_process__become_child): the child of a process
 * that had another session, has providers of its own or has given up rights, and a child that is
 * forked in the middle of an event.
 */
#include "producer/producer.h"
#include "producer/rights.h"
#include "producer/standby.h"
#include "early.h"
#include "entry.h"
#include "util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The mapping for children. Under the process lock. */
static struct {
	uint8_t *pages; /* of the standby file; NULL: it is not mapped */
	uint64_t bytes;
	void *first_page; /* the control page of the first provider, where a child has the file */
	uint32_t session_index; /* of the session, in this process */
	uint32_t forks;
	struct pem_standby_session session;
} ahead;

/* This process is a child on standby that has its parent's state still. */
static bool is_child PEM_EARLY;
/* Its parent's control file. */
static struct pem_control_file *parents_control PEM_EARLY;

/*
 * Is this thread in the middle of an event? Its child would end that event by what the parent has
 * joined.
 */
static bool is_in_event(void)
{
	return pem_thread_current->depth > PEM_DEPTH_IDLE;
}

/*
 * Return the index of the session that this process was started in. -1: there is none, the process
 * has had another one, or more of the session than its rules holds for a child.
 */
static int only_session(void)
{
	const struct pem_session_entry *table = pem_process__table();
	uint32_t ever = pem_process.ever_joined, index, state, i;
	const struct pem_joined *joined;

	if (!ever || ever & (ever - 1))
		return -1;
	index = (uint32_t)__builtin_ctz(ever);
	joined = &pem_process.joined[index];
	if (joined->state == PEM_JOINED_NOT || !joined->asked || joined->counts != joined->page ||
	    joined->has_gates || joined->callback_count)
		return -1;
	/* A consumer may have offered a session that the process has not joined yet. */
	for (i = 0; i < PEM_SESSIONS_MAX; i++) {
		state = PEM_ENTRY_STATE(__atomic_load_n(&table[i].word, __ATOMIC_RELAXED));
		if (state != PEM_ENTRY_FREE &&
		    (i != index || table[i].incarnation != joined->incarnation))
			return -1;
	}
	return (int)index;
}

/* Has the process the rights that it began with, as far as pem knows? */
static bool has_all_rights(void)
{
	return !pem_restricted() && !pem_rights__given_up() && !pem_process__has_moved() &&
	       !pem_rights__took_filter() && pem_rights__has_clock();
}

/* Name the session for a child. False: its folder is not in the runtime folder. */
static bool name_session(const struct pem_joined *joined)
{
	size_t length = strlen(pem_process.runtime);
	const char *folder = joined->directory + length + 1;

	if (!length || strncmp(joined->directory, pem_process.runtime, length) != 0 ||
	    folder[-1] != '/' || strlen(folder) >= sizeof(ahead.session.folder) ||
	    !pem_is_session_name(folder))
		return false;
	strcpy(ahead.session.folder, folder);
	strcpy(ahead.session.public_directory, joined->public_directory);
	return true;
}

/* Note a session that lives and has targets beside what it starts, or may have. */
static void note_observer(const char *folder, void *found)
{
	struct pem_standby_session other;
	uint32_t count, i;

	if (*(bool *)found || !pem_is_session_name(folder) ||
	    !strcmp(folder, ahead.session.folder) || !pem_process__has_consumer(NULL, folder))
		return;
	*(bool *)found = true;
	if (strlen(folder) >= sizeof(other.folder))
		return;
	strcpy(other.folder, folder);
	if (!pem_process__map_session(&other))
		return;
	/* ud */
	count = __atomic_load_n(&other.page->context_count, __ATOMIC_ACQUIRE);
	*(bool *)found = count > PEM_CONTEXTS_MAX;
	for (i = 1; i < count && i < PEM_CONTEXTS_MAX; i++)
		*(bool *)found |= (other.page->contexts[i].flags & PEM_CONTEXT_TARGET) != 0;
	munmap(other.page, sizeof(*other.page));
}

static bool has_observer(void)
{
	bool found = false;
	int fd = open(pem_process.runtime, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return true;
	pem_visit_folder(fd, note_observer, &found);
	close(fd);
	return found;
}

/*
 * Map the session's standby file for children. The file is open before other sessions are looked
 * for: a session that gets targets later finds the file, and wakes its processes.
 */
static void map_ahead(uint32_t session_index, const struct pem_known_provider known[],
		      uint32_t count)
{
	uint64_t bytes = pem_standby_file__bytes(known, count);
	void *pages = MAP_FAILED;
	int fd = -1;

	ahead.session.page = NULL;
	if (name_session(&pem_process.joined[session_index]) &&
	    pem_process__map_session(&ahead.session))
		fd = pem_standby_file__open_for_child(ahead.session.page, known, count);
	if (fd >= 0 && !has_observer())
		pages = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, PEM_PAGE_ALIGN);
	if (fd >= 0)
		close(fd);
	if (pages != MAP_FAILED) {
		ahead.session_index = session_index;
		ahead.first_page = known[0].provider->page;
		ahead.bytes = bytes;
		ahead.pages = pages;
	} else if (ahead.session.page) {
		munmap(ahead.session.page, sizeof(*ahead.session.page));
	}
}

bool pem_standby__before_fork(void)
{
	struct pem_known_provider known[PEM_PROVIDERS_MAX];
	uint32_t count;
	int index;

	if (pem_process__on_standby() || !pem_process.control || is_in_event() || !has_all_rights())
		return false;
	count = pem_standby__providers(known);
	index = only_session();
	if (!count || index < 0)
		return false;
	/* Sessions that prevent it come to an end: it is tried before fork 1, 2, 4, 8 and so on. */
	if (!ahead.pages && !(ahead.forks & (ahead.forks + 1)))
		map_ahead((uint32_t)index, known, count);
	ahead.forks++;
	return ahead.pages && ahead.session_index == (uint32_t)index;
}

void pem_standby__end_children(void)
{
	if (!pem_process__lock())
		return;
	if (ahead.pages)
		munmap(ahead.pages, ahead.bytes);
	ahead.pages = NULL;
	pem_process__unlock();
}

bool pem_standby__begin_child(uint32_t pid)
{
	struct pem_joined *joined = &pem_process.joined[ahead.session_index];

	/* The kernel changes nothing where it refuses this. mremap itself may be the program's. */
	if (syscall(SYS_mremap, ahead.pages, ahead.bytes, ahead.bytes,
		    MREMAP_MAYMOVE | MREMAP_FIXED, ahead.first_page) == -1)
		return false;
	__atomic_store_n(&pem_process.pid, pid, __ATOMIC_RELAXED);
	__atomic_store_n(&pem_process.ever_joined, 0, __ATOMIC_RELAXED);
	/*
	 * A signal handler may have forked in the middle of counting an event, which marks nothing.
	 * The child's stores must not reach the parent's pool.
	 */
	pem_joined__make_pool_private(joined);
	parents_control = pem_process.control;
	pem_process.control = NULL;
	is_child = true;
	pem_standby__enter_again(&ahead.session);
	return true;
}

bool pem_standby__start_over(void)
{
	struct pem_joined *joined = &pem_process.joined[ahead.session_index];

	if (!is_child)
		return false;
	is_child = false;
	pem_process.parent_pid = pem_restricted() ? pem_process.pid : 0;
	pem_process.pid_namespace = 0; /* it may have one of its own */
	pem_thread__after_fork();
	/* Its page stays mapped; the child joins by the session's second mapping. */
	joined->state = PEM_JOINED_NOT;
	joined->changes &= ~1u; /* a thread of the parent was about to end the change */
	joined->page = joined->counts = NULL;
	pem_process__forget_control(parents_control);
	ahead.pages = NULL; /* they are the providers' */
	ahead.session.page = NULL;
	ahead.forks = 0;
	return true;
}
