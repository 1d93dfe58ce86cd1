/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * control.c - the control file: consumers find this process by it, its providers' pages and its
 * table of sessions
 *
 * Joining the sessions of the table is in join.c.
 */
#include "entry.h"
#include "producer/producer.h"
#include "producer/rights.h"
#include "producer/standby.h"
#include "runtime_dir.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVENT_ID_BYTES (PEM_CONTROL_EVENTS * sizeof(uint32_t))
/* The ids are in the page of the head: each page takes a process that joins some microseconds. */
#define EVENT_IDS_OFFSET 2048u
#define PROVIDERS_OFFSET ((uint64_t)PEM_PAGE_ALIGN)

PEM_STATIC_ASSERT(PEM_CONTROL_EVENTS == PEM_PROCESS_EVENTS_MAX, "each event has its id there");
PEM_STATIC_ASSERT(sizeof(struct pem_control_file) <= EVENT_IDS_OFFSET,
		  "the head ends before the ids");
PEM_STATIC_ASSERT(EVENT_IDS_OFFSET + EVENT_ID_BYTES <= 4096, "one page holds head and ids");

static struct pem_session_entry private_table[PEM_SESSIONS_MAX];
/*
 * The entries of the control file, as this process made them: a consumer can write to the file. Two
 * providers may have the same events.
 */
static struct {
	const struct pem_provider *owner; /* NULL: its library is gone */
	uint64_t offset, bytes;
} entries[PEM_PROVIDERS_MAX];
static uint32_t entry_count;

struct pem_session_entry *pem_process__table(void)
{
	return pem_process.control ? pem_process.control->session : private_table;
}

uint32_t pem_process__pid_namespace(void)
{
	if (!pem_process.pid_namespace)
		pem_process.pid_namespace = pem_pid_namespace();
	return pem_process.pid_namespace;
}

/* The folder was found for this user as the process joined a session, and was not used since. */
static uid_t runtime_user;
static bool runtime_is_fresh;

void pem_process__found_runtime(void)
{
	runtime_user = geteuid();
	runtime_is_fresh = true;
}

bool pem_process__find_runtime(void)
{
	if (pem_runtime_dir(pem_process.runtime, sizeof(pem_process.runtime)))
		pem_process.runtime[0] = 0;
	else
		pem_process__found_runtime();
	return pem_process.runtime[0] != 0;
}

/*
 * Remove a control file of this process's name if an earlier program of this process has left it. A
 * file of a process in another pid namespace stays. Returns whether it was removed.
 */
static bool remove_own(const char *path)
{
	struct pem_control_file head;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool own;

	if (fd < 0)
		return false;
	own = read(fd, &head, offsetof(struct pem_control_file, reserved0)) ==
		      (ssize_t)offsetof(struct pem_control_file, reserved0) &&
	      head.pid == pem_process.pid && head.pid_namespace == pem_process__pid_namespace();
	close(fd);
	if (!own)
		return false;
	/* A loader does not make the next calls. */
	pem_process__begin();
	return !pem_restricted() && (uint32_t)getpid() == head.pid && !unlink(path);
}

/*
 * A control file has this name, unless a process of another pid namespace has it. A file that has
 * another name is removed by a consumer, once its process has ended.
 */
void pem_process__remove_former(void)
{
	size_t length = strlen(pem_process.runtime), used = length;

	if (pem_path__append(pem_process.runtime, sizeof(pem_process.runtime), &used,
			     "/control-") &&
	    pem_path__append_number(pem_process.runtime, sizeof(pem_process.runtime), &used,
				    pem_process.pid, 10, 0) &&
	    pem_path__append(pem_process.runtime, sizeof(pem_process.runtime), &used, "-0"))
		remove_own(pem_process.runtime);
	pem_process.runtime[length] = 0;
}

/* Open a new control file in the runtime folder, or return -1. */
static int create_in_runtime(void)
{
	char *path = pem_process.control_path;
	unsigned k;
	int fd;

	for (k = 0; k < 1000; k++) {
		if (!pem_process__name_file(path, sizeof(pem_process.control_path),
					    pem_process.runtime, "control", k))
			return -1;
		do
			fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		while (fd < 0 && errno == EEXIST && remove_own(path));
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

/*
 * Open a new control file of the process, or return -1. Its path is stored in
 * pem_process.control_path. A process on standby stays where it was found, whatever its variables
 * are now.
 */
static int create_control_file(void)
{
	if (!pem_process__on_standby() && !(runtime_is_fresh && runtime_user == geteuid()) &&
	    !pem_process__find_runtime())
		return -1;
	runtime_is_fresh = false;
	return create_in_runtime();
}

void pem_process__fill_page_head(struct pem_control_header *head,
				 const struct pem_provider *provider)
{
	head->abi_version = PEM_ABI_VERSION;
	head->event_count = provider->event_count;
	head->event_capacity = PEM_EVENT_CAPACITY(provider->event_count);
	head->event_base = provider->event_base;
	strcpy(head->provider, provider->name);
}

/* How many of these providers, from the first on, have pages that lie one behind the other. */
static uint32_t length_of_run(struct pem_provider *const run[], uint32_t count)
{
	uint32_t i;

	for (i = 1; i < count; i++) {
		if ((uint8_t *)run[i]->page != (uint8_t *)run[i - 1]->page + run[i - 1]->page_bytes)
			break;
	}
	return i;
}

static uint64_t bytes_of_run(struct pem_provider *const run[], uint32_t count)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		bytes += run[i]->page_bytes;
	return bytes;
}

/* Sort providers by the addresses of their pages. */
static void sort_by_page(struct pem_provider *providers[], uint32_t count)
{
	struct pem_provider *moved;
	uint32_t i, k;

	for (i = 1; i < count; i++) {
		moved = providers[i];
		for (k = i; k && (uintptr_t)providers[k - 1]->page > (uintptr_t)moved->page; k--)
			providers[k] = providers[k - 1];
		providers[k] = moved;
	}
}

/*
 * Bytes of a provider's page that stubs and consumers use: head, enable bytes, and the actions of
 * the events that there are. Often that is one memory page of two.
 */
static uint64_t used_bytes(const struct pem_provider *provider)
{
	return sizeof(struct pem_control_header) + PEM_EVENT_CAPACITY(provider->event_count) +
	       provider->event_count * PEM_SESSIONS_MAX * sizeof(uint64_t);
}

/*
 * Make the memory of a page of the control file exist, as far as it is used. A page that was in use
 * keeps its contents. A new one is not touched, which would copy the library's; of a process that
 * leaves standby, it begins with the enable bytes of the standby file: no event passes by
 * meanwhile.
 */
static bool prepare_page(uint8_t *shared, const struct pem_provider *provider, bool is_used_again)
{
	uint64_t bytes = is_used_again ? provider->page_bytes : used_bytes(provider);

	if (!pem_populate(shared, bytes))
		return false;
	if (provider->registered)
		memcpy(shared, provider->page, used_bytes(provider));
	else if (is_used_again) /* by a library that is gone */
		memset(shared, 0, bytes);
	if (pem_process__on_standby())
		memcpy(shared + sizeof(struct pem_control_header),
		       (const uint8_t *)provider->page + sizeof(struct pem_control_header),
		       provider->event_count);
	return true;
}

/*
 * Map the control file in place of the pages of a run of providers, which lie one behind the other.
 * A consumer finds no events in them before that. Returns whether they were mapped.
 */
static bool map_run(int fd, struct pem_provider *const run[], uint32_t count, uint64_t offset,
		    uint32_t entry)
{
	struct pem_control_file *control = pem_process.control;
	uint8_t *shared = (uint8_t *)control + offset;
	uint64_t bytes = bytes_of_run(run, count);
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!prepare_page(shared, run[i], entry < entry_count))
			return false;
		shared += run[i]->page_bytes;
	}
	if (mmap(run[0]->page, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)offset) == MAP_FAILED)
		return false;
	for (i = 0; i < count; i++) {
		shared = (uint8_t *)control + offset;
		if (!run[i]->registered)
			pem_process__fill_page_head((struct pem_control_header *)shared, run[i]);
		entries[entry + i].owner = run[i];
		entries[entry + i].offset = offset;
		entries[entry + i].bytes = run[i]->page_bytes;
		control->provider[entry + i].offset = offset;
		control->provider[entry + i].bytes = run[i]->page_bytes;
		offset += run[i]->page_bytes;
	}
	if (entry < entry_count)
		return true;
	entry_count += count;
	/* CB */
	__atomic_store_n(&control->provider_count, entry_count, __ATOMIC_RELEASE);
	return true;
}

/* The provider's entry; entry_count: it has none. */
static uint32_t entry_of(const struct pem_provider *provider)
{
	uint32_t i = 0;

	while (i < entry_count && entries[i].owner != provider)
		i++;
	return i;
}

/* The provider's page in the control file, or its own where it is not there. */
static struct pem_control_header *page_of(const struct pem_provider *provider)
{
	uint32_t i = entry_of(provider);

	return pem_process.control && i < entry_count
		       ? (void *)((uint8_t *)pem_process.control + entries[i].offset)
		       : provider->page;
}

bool pem_process__is_published(const struct pem_provider *provider)
{
	return page_of(provider) != provider->page;
}

void pem_process__give_up_page(const struct pem_provider *provider)
{
	struct pem_control_header *head = page_of(provider);
	uint32_t i = entry_of(provider);

	/* The library's own mapping may not have been touched yet, and need not be. */
	memset(head + 1, 0, provider->event_count);
	/* Another provider may get the entry. */
	head->event_count = 0;
	if (i < entry_count)
		entries[i].owner = NULL;
}

void pem_process__note_ids(void)
{
	uint32_t *ids, i;

	if (!pem_process.control)
		return;
	ids = (uint32_t *)((uint8_t *)pem_process.control + EVENT_IDS_OFFSET);
	/* PB */
	for (i = 0; i < pem_process.event_count; i++)
		__atomic_store_n(&ids[i], pem_process.event_id[i], __ATOMIC_RELEASE);
}

static void fill_head(struct pem_control_file *control)
{
	control->abi_version = PEM_ABI_VERSION;
	control->pid = pem_process.pid;
	control->pid_namespace = pem_process__pid_namespace();
	control->start_clock = pem_rights__has_clock() ? pem_clock() : 0;
	control->event_id_offset = EVENT_IDS_OFFSET;
	control->gates = (uintptr_t)pem_process_gates;
	memcpy(control->session, private_table, sizeof(private_table));
}

/*
 * Is the folder of any session still at its path? A process that has moved (another root, say) must
 * leave no files in the place where it is now.
 */
static bool is_at_home(void)
{
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX && pem_process__has_moved();
	     session_index++) {
		if (pem_process.joined[session_index].state != PEM_JOINED_NOT &&
		    pem_joined__in_reach(&pem_process.joined[session_index]))
			return true;
	}
	return !pem_process__has_moved();
}

/*
 * Make the control file. It is as large as all providers' pages may become. It is sparse, so a
 * provider that comes later (dlopen) needs no second mapping.
 */
void pem_process__publish(void)
{
	uint64_t bytes = PROVIDERS_OFFSET + PEM_PROVIDERS_MAX * (uint64_t)PEM_PAGE_ALIGN * 5,
		 offset = PROVIDERS_OFFSET;
	struct pem_provider *all[PEM_PROVIDERS_MAX], *provider;
	struct pem_control_file *control;
	uint32_t count = 0, i, length;
	int fd;

	if (pem_restricted() || pem_process.control || !is_at_home() || !pem_process.providers ||
	    !pem_file_size_allowed(bytes))
		return;
	fd = create_control_file();
	if (fd < 0)
		goto none;
	if (ftruncate(fd, (off_t)bytes))
		goto unlink;
	control = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		goto unlink;
	if (!pem_populate(control, EVENT_IDS_OFFSET + EVENT_ID_BYTES)) {
		munmap(control, bytes);
		goto unlink;
	}
	fill_head(control);
	pem_process.control = control;
	pem_process.control_bytes = bytes;
	entry_count = 0;
	pem_process__note_ids();
	for (provider = pem_process.providers; provider && count < PEM_PROVIDERS_MAX;
	     provider = provider->next)
		all[count++] = provider;
	sort_by_page(all, count);
	for (i = 0; i < count; i += length) {
		length = length_of_run(&all[i], count - i);
		if (offset + bytes_of_run(&all[i], length) > bytes ||
		    !map_run(fd, &all[i], length, offset, i))
			break;
		offset += bytes_of_run(&all[i], length);
	}
	/* none: readers use only parts of the file that CB and PB publish */
	__atomic_store_n(&control->magic, PEM_CONTROL_MAGIC, __ATOMIC_RELEASE);
	close(fd);
	return;
unlink:
	unlink(pem_process.control_path);
	close(fd);
none:
	pem_process.control_path[0] = 0;
}

/*
 * Find a place for the pages of a run: of one page an entry of the right size whose library is
 * gone, else the next entries. Returns -1 where the file is full.
 */
static int find_control_entry(struct pem_provider *const run[], uint32_t count, uint64_t *offset)
{
	uint64_t end = PROVIDERS_OFFSET;
	uint32_t i;

	for (i = 0; i < entry_count; i++) {
		*offset = entries[i].offset;
		if (!entries[i].owner && count == 1 && entries[i].bytes == run[0]->page_bytes)
			return (int)i;
		if (*offset + entries[i].bytes > end)
			end = *offset + entries[i].bytes;
	}
	*offset = end;
	return i + count <= PEM_PROVIDERS_MAX &&
			       end + bytes_of_run(run, count) <= pem_process.control_bytes
		       ? (int)i
		       : -1;
}

/* In the control file that there is already. */
static void publish_more(struct pem_provider *providers[], uint32_t count)
{
	int fd = open(pem_process.control_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW), entry;
	uint32_t i, length;
	uint64_t offset;

	pem_process__note_ids();
	if (fd < 0)
		return;
	sort_by_page(providers, count);
	for (i = 0; i < count; i += length) {
		length = length_of_run(&providers[i], count - i);
		entry = find_control_entry(&providers[i], length, &offset);
		if (entry >= 0)
			map_run(fd, &providers[i], length, offset, (uint32_t)entry);
	}
	close(fd);
}

bool pem_process__keep_private(const struct pem_provider *provider)
{
	if (pem_restricted() || mmap(provider->page, provider->page_bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return false;
	pem_process__fill_page_head(provider->page, provider);
	return true;
}

void pem_process__publish_providers(struct pem_provider *providers[], uint32_t count)
{
	uint32_t i;

	if (pem_restricted() || !pem_process.control)
		pem_process__publish();
	else
		publish_more(providers, count);
	for (i = 0; i < count; i++) {
		if (page_of(providers[i]) == providers[i]->page)
			pem_process__fill_page_head(providers[i]->page, providers[i]);
	}
}

/* Give the child a private page with the contents of the parent's shared page. */
static void unshare_page(struct pem_provider *provider)
{
	const struct pem_control_header *shared = page_of(provider);

	if (shared == provider->page)
		return;
	if (mmap(provider->page, provider->page_bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		memcpy(provider->page, shared, used_bytes(provider));
}

/*
 * Free the entries that a consumer has taken and not yet offered. The consumer goes on in the
 * parent's table: nobody would offer or give back the child's copy.
 */
static void free_taken(struct pem_session_entry *table)
{
	uint32_t i;

	for (i = 0; i < PEM_SESSIONS_MAX; i++) {
		if (PEM_ENTRY_STATE(table[i].word) == PEM_ENTRY_TAKEN ||
		    PEM_ENTRY_STATE(table[i].word) == PEM_ENTRY_FILLED)
			pem_entry__give_back(&table[i], table[i].word);
	}
}

void pem_process__forget_control(struct pem_control_file *parents)
{
	runtime_is_fresh = false;
	memset(private_table, 0, sizeof(private_table));
	if (!pem_restricted())
		munmap(parents, pem_process.control_bytes);
	pem_process.control_path[0] = 0;
}

void pem_process__unshare_control(void)
{
	struct pem_control_file *control = pem_process.control;
	struct pem_provider *provider;

	runtime_is_fresh = false;
	if (!control) {
		free_taken(private_table);
		return;
	}
	pem_process.borrows_pages = pem_restricted();
	for (provider = pem_process.providers; provider && !pem_process.borrows_pages;
	     provider = provider->next)
		unshare_page(provider);
	memcpy(private_table, control->session, sizeof(private_table));
	free_taken(private_table);
	if (!pem_process.borrows_pages)
		munmap(control, pem_process.control_bytes);
	pem_process.control = NULL;
	pem_process.control_path[0] = 0;
}
