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
#include "runtime_dir.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u
#define EVENT_ID_BYTES (PEM_CONTROL_EVENTS * sizeof(uint32_t))
#define PROVIDERS_OFFSET (2 * (uint64_t)PEM_PAGE_ALIGN)

PEM_STATIC_ASSERT(PEM_CONTROL_EVENTS == PEM_PROCESS_EVENTS_MAX, "each event has its id there");
PEM_STATIC_ASSERT(EVENT_ID_BYTES <= PEM_PAGE_ALIGN, "ids end before the providers' pages");

static struct pem_session_entry private_table[PEM_SESSIONS_MAX];
/* Whose page each entry of the control file is. Two providers may have the same events. */
static const struct pem_provider *owner_of_entry[PEM_PROVIDERS_MAX];

struct pem_session_entry *pem_process__table(void)
{
	return pem_process.control ? pem_process.control->session : private_table;
}

bool pem_process__find_runtime(void)
{
	if (pem_runtime_dir(pem_process.runtime, sizeof(pem_process.runtime)))
		pem_process.runtime[0] = 0;
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
	      head.pid == pem_process.pid && head.pid_namespace == pem_pid_namespace();
	close(fd);
	return own && !unlink(path);
}

/*
 * Open a new control file of the process, or return -1. Its path is stored in
 * pem_process.control_path.
 */
static int create_control_file(void)
{
	unsigned k;
	int fd;

	if (!pem_process__find_runtime())
		return -1;
	for (k = 0; k < 1000; k++) {
		snprintf(pem_process.control_path, sizeof(pem_process.control_path),
			 "%s/control-%u-%u", pem_process.runtime, pem_process.pid, k);
		do
			fd = open(pem_process.control_path,
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		while (fd < 0 && errno == EEXIST && remove_own(pem_process.control_path));
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	return -1;
}

static void fill_page_head(struct pem_control_header *head, const struct pem_provider *provider)
{
	head->abi_version = PEM_ABI_VERSION;
	head->event_count = provider->event_count;
	head->event_capacity = PEM_EVENT_CAPACITY(provider->event_count);
	head->event_base = provider->event_base;
	strcpy(head->provider, provider->name);
}

/*
 * Map the control file in place of the provider's page. A page that was in use keeps its contents.
 * A new one is not touched, which would copy the library's: its head is written to the file. A
 * mapping of no length is copied, if it is shared (mremap(2)): so the file need not be opened
 * again. Returns whether it was mapped.
 */
static bool map_provider_page(struct pem_provider *provider, uint64_t offset, uint32_t entry)
{
	struct pem_control_file *control = pem_process.control;
	uint8_t *shared = (uint8_t *)control + offset;

	if (!pem_populate(shared, provider->page_bytes))
		return false;
	if (provider->registered) {
		memcpy(shared, provider->page, provider->page_bytes);
	} else {
		/* A library that is gone may have had it. */
		if (entry < control->provider_count)
			memset(shared, 0, provider->page_bytes);
		fill_page_head((struct pem_control_header *)shared, provider);
	}
	if (syscall(SYS_mremap, shared, 0, provider->page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		    provider->page) == -1)
		return false;
	owner_of_entry[entry] = provider;
	control->provider[entry].offset = offset;
	control->provider[entry].bytes = provider->page_bytes;
	/* CB */
	if (entry == control->provider_count)
		__atomic_store_n(&control->provider_count, entry + 1, __ATOMIC_RELEASE);
	return true;
}

/* The provider's page in the control file, or the page where it is not there. */
struct pem_control_header *pem_process__page_of(const struct pem_provider *provider)
{
	const struct pem_control_file *control = pem_process.control;
	struct pem_control_header *head;
	uint32_t i;

	for (i = 0; control && i < control->provider_count; i++) {
		head = (void *)((uint8_t *)control + control->provider[i].offset);
		/* Without events: of a library that was at this address before. */
		if (owner_of_entry[i] == provider && head->event_count)
			return head;
	}
	return provider->page;
}

void pem_process__note_ids(void)
{
	uint32_t *ids, i;

	if (!pem_process.control)
		return;
	ids = (uint32_t *)((uint8_t *)pem_process.control + PEM_PAGE_ALIGN);
	/* PB */
	for (i = 0; i < pem_process.event_count; i++)
		__atomic_store_n(&ids[i], pem_process.event_id[i], __ATOMIC_RELEASE);
}

static void fill_head(struct pem_control_file *control)
{
	control->abi_version = PEM_ABI_VERSION;
	control->pid = pem_process.pid;
	control->pid_namespace = pem_pid_namespace();
	control->start_clock = pem_rights__has_clock() ? pem_clock() : 0;
	control->event_id_offset = PEM_PAGE_ALIGN;
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
	struct pem_control_file *control;
	struct pem_provider *provider;
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
	if (!pem_populate(control, PEM_PAGE_ALIGN + EVENT_ID_BYTES)) {
		munmap(control, bytes);
		goto unlink;
	}
	fill_head(control);
	pem_process.control = control;
	pem_process.control_bytes = bytes;
	pem_process__note_ids();
	for (provider = pem_process.providers; provider; provider = provider->next) {
		if (control->provider_count == PEM_PROVIDERS_MAX ||
		    offset + provider->page_bytes > bytes)
			break;
		if (!map_provider_page(provider, offset, control->provider_count))
			break;
		offset += provider->page_bytes;
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
 * Find a place for a provider's page: an entry of the right size whose library is gone, else the
 * next entry. Returns -1 where the file is full.
 */
static int find_control_entry(const struct pem_provider *provider, uint64_t *offset)
{
	const struct pem_control_file *control = pem_process.control;
	uint64_t end = PROVIDERS_OFFSET;
	uint32_t i;

	for (i = 0; i < control->provider_count; i++) {
		const struct pem_control_header *header =
			(const void *)((const uint8_t *)control + control->provider[i].offset);

		*offset = control->provider[i].offset;
		if (!header->event_count && control->provider[i].bytes == provider->page_bytes)
			return (int)i;
		if (*offset + control->provider[i].bytes > end)
			end = *offset + control->provider[i].bytes;
	}
	*offset = end;
	return i < PEM_PROVIDERS_MAX && end + provider->page_bytes <= pem_process.control_bytes
		       ? (int)i
		       : -1;
}

/* Returns whether the provider's page is in the control file. */
static bool publish_provider(struct pem_provider *provider)
{
	uint64_t offset;
	int entry;

	if (pem_restricted())
		return false;
	if (!pem_process.control) {
		pem_process__publish();
		return pem_process__page_of(provider) != provider->page;
	}
	pem_process__note_ids();
	entry = find_control_entry(provider, &offset);
	return entry >= 0 && map_provider_page(provider, offset, (uint32_t)entry);
}

void pem_process__publish_provider(struct pem_provider *provider)
{
	if (!publish_provider(provider))
		fill_page_head(provider->page, provider);
}

/* Give the child a private page with the contents of the parent's shared page. */
static void unshare_page(struct pem_provider *provider, const struct pem_control_file *control)
{
	uint32_t i;

	for (i = 0; i < control->provider_count; i++) {
		const struct pem_control_header *shared =
			(const void *)((const uint8_t *)control + control->provider[i].offset);

		if (!shared->event_count || shared->event_base != provider->event_base)
			continue;
		if (mmap(provider->page, provider->page_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
			memcpy(provider->page, shared, provider->page_bytes);
		return;
	}
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

void pem_process__unshare_control(void)
{
	struct pem_control_file *control = pem_process.control;
	struct pem_provider *provider;

	if (!control) {
		free_taken(private_table);
		return;
	}
	pem_process.borrows_pages = pem_restricted();
	for (provider = pem_process.providers; provider && !pem_process.borrows_pages;
	     provider = provider->next)
		unshare_page(provider, control);
	memcpy(private_table, control->session, sizeof(private_table));
	free_taken(private_table);
	if (!pem_process.borrows_pages)
		munmap(control, pem_process.control_bytes);
	pem_process.control = NULL;
	pem_process.control_path[0] = 0;
}
