/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * control_file.c - a member's control file: opening it, and finding its parts
 *
 * The file belongs to the member's process and is hostile. Each number is loaded once and checked.
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "util.h"

#include <pem/stub.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTROL_BYTES_MAX (16u << 20) /* a control file has some 0.7 MiB */

/*
 * Map a control file. Returns 0. Returns -EAGAIN where the file may become a control file later.
 * With any other error the file is refused, and *excess is the reason.
 */
static int map_control(struct pem_session *s, struct pem_member *m, int fd, struct stat *st,
		       enum pem_excess *excess)
{
	struct pem_shared_file file;
	int result = pem_shared_file__check(fd, m->dir->owner, st);

	*excess = PEM_EXCESS_LINKS;
	if (result)
		return result == -ENOENT ? -EAGAIN : result;
	result = pem_shared_file__map(fd, st, PEM_CONTROL_MAGIC, sizeof(*m->control),
				      CONTROL_BYTES_MAX, &m->cut, &file);
	if (result == -EINVAL && (uint64_t)st->st_size < sizeof(*m->control))
		return -EAGAIN;
	*excess = result == -EINVAL ? PEM_EXCESS_GEOMETRY : PEM_EXCESS_MAPPING;
	if (result)
		return result;
	if (__atomic_load_n(&((struct pem_control_file *)file.memory)->abi_version,
			    __ATOMIC_RELAXED) != PEM_ABI_VERSION ||
	    !pem_dir__take(s, m->dir, PEM_RESOURCE_BYTES, file.bytes)) {
		pem_shared_file__unmap(file.memory, file.bytes);
		return -EAGAIN;
	}
	m->control = file.memory;
	m->control_bytes = file.bytes;
	m->inode = file.inode;
	return 0;
}

void pem_member__close(struct pem_session *s, struct pem_member *m)
{
	pem_dir__give_back(s, m->dir, PEM_RESOURCE_BYTES, m->control_bytes);
	pem_shared_file__unmap(m->control, m->control_bytes);
	free(m);
}

struct pem_member *pem_member__open(struct pem_session *s, struct pem_dir *dir, const char *name,
				    int fd)
{
	struct pem_member *m = calloc(1, sizeof(*m));
	enum pem_excess excess = PEM_EXCESS_MAPPING;
	struct stat st = {0};
	int result = -ENOMEM;

	if (m) {
		m->session_index = -1;
		m->dir = dir;
		pem_copy_text(m->name, sizeof(m->name), name);
		result = map_control(s, m, fd, &st, &excess);
	}
	if (result) {
		if (result != -EAGAIN)
			pem_dir__exceed_in_list(s, dir, PEM_LIST_MEMBERS, excess);
		if (result != -EAGAIN && result != -ENOMEM)
			pem_dir__refuse_file(dir, &st, excess);
		free(m);
		return NULL;
	}
	m->pid = pem_dir__pid(dir->owner, __atomic_load_n(&m->control->pid, __ATOMIC_RELAXED),
			      __atomic_load_n(&m->control->pid_namespace, __ATOMIC_RELAXED));
	m->started = m->pid ? pem_dir__start(dir->owner, m->pid) : 0;
	if (m->pid == (uint32_t)getpid()) {
		pem_member__close(s, m);
		return NULL;
	}
	return m;
}

/* Returns NULL where the event ids do not fit the file. */
const uint32_t *pem_member__event_ids(const struct pem_member *m)
{
	uint64_t offset = __atomic_load_n(&m->control->event_id_offset, __ATOMIC_RELAXED);

	if (offset % sizeof(uint32_t) || offset > m->control_bytes ||
	    m->control_bytes - offset < PEM_CONTROL_EVENTS * sizeof(uint32_t))
		return NULL;
	return (const uint32_t *)((const uint8_t *)m->control + offset);
}

bool pem_member__page(const struct pem_member *p, uint32_t entry, struct pem_member_page *found)
{
	struct pem_control_header *header;
	uint64_t offset, bytes, capacity;
	uint32_t count, first;

	/* cb */
	if (entry >= PEM_PROVIDERS_MAX ||
	    entry >= __atomic_load_n(&p->control->provider_count, __ATOMIC_ACQUIRE))
		return false;
	offset = __atomic_load_n(&p->control->provider[entry].offset, __ATOMIC_RELAXED);
	bytes = __atomic_load_n(&p->control->provider[entry].bytes, __ATOMIC_RELAXED);
	if (offset % 64 || offset >= p->control_bytes || bytes > p->control_bytes - offset ||
	    bytes < sizeof(*header))
		return false;
	header = (struct pem_control_header *)((uint8_t *)p->control + offset);
	count = __atomic_load_n(&header->event_count, __ATOMIC_RELAXED);
	first = __atomic_load_n(&header->event_base, __ATOMIC_RELAXED);
	capacity = PEM_EVENT_CAPACITY(count);
	if (count > PEM_EVENTS_PER_PROVIDER_MAX || first > PEM_CONTROL_EVENTS ||
	    count > PEM_CONTROL_EVENTS - first ||
	    bytes < sizeof(*header) + capacity + capacity * PEM_SESSIONS_MAX * sizeof(uint64_t))
		return false;
	*found = (struct pem_member_page){header, count, first};
	return true;
}
