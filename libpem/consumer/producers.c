/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * producers.c - find the processes that joined a session, map their pools, notice their end
 *
 * A pool file is hostile: its header is checked by pem_pool__open_ring, ids and counts are checked where used.
 */
#include "consumer/async.h"
#include "consumer/detail.h"
#include "consumer/session.h"
#include "consumer/targets.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void pem_producer__free(struct pem_producer *p)
{
	if (!p)
		return;
	if (p->ring.header)
		pem_unmap_file(p->ring.header, p->bytes);
	if (p->member)
		p->member->producer = NULL;
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p->next_seq);
	free(p->delivered);
	free(p->lost);
	free(p->aside);
	pem_async_producer__free(p->async);
	free(p->produced);
	free(p->discarded);
	free(p);
}

/* The control file is named by shared memory: only one of the runtime folder itself will do. */
static void find_member(struct pem_session *s, struct pem_producer *p)
{
	p->member = pem_session__member(s, p->place, p->control_name);
	if (!p->member)
		return;
	if (p->member->producer)
		p->member->producer->member = NULL; /* of an earlier image */
	p->member->producer = p;
}

/* A container's process has another number here, or none that can be found: it may be gone. */
static void find_process(struct pem_producer *p)
{
	uint32_t pid = pem_place__pid(p->place, p->pid, p->pid_namespace);

	p->inner_pid = p->pid;
	if (!pid)
		return;
	p->pid = pid;
	p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	p->dead = p->pidfd < 0 && errno == ESRCH;
}

/* Is this the name that a process gives its pool, "pool-<pid>-<k>"? It says which stream gets its records. */
static bool is_pool_name(const char *name)
{
	const char *c = name + strlen("pool-");
	unsigned numbers, digits;

	if (strncmp(name, "pool-", strlen("pool-")))
		return false;
	for (numbers = 0; numbers < 2; numbers++, c++) {
		for (digits = 0; *c >= '0' && *c <= '9'; c++)
			digits++;
		if (!digits || digits > 10 || *c != (numbers ? 0 : '-'))
			return false;
	}
	return true;
}

/* fd: of its pool, which the caller closes. */
static struct pem_producer *open_producer(struct pem_session *s, struct pem_place *place,
					  const char *name, int fd)
{
	struct pem_producer *p = calloc(1, sizeof(*p));
	const struct pem_pool_header *h;
	uint64_t inode;
	void *mapping;

	if (!p)
		return NULL;
	p->pidfd = -1;
	p->place = place;
	mapping = pem_map_descriptor(fd, place->owner, PEM_POOL_MAGIC,
				     sizeof(struct pem_pool_header), &p->bytes, &inode, &p->cut);
	if (!mapping)
		goto fail; /* not finished yet, or never: the next scan looks again */
	h = mapping;
	if (pem_pool__open_ring(mapping, p->bytes, &p->ring)) {
		pem_unmap_file(mapping, p->bytes);
		p->ring.header = NULL;
		goto fail;
	}
	pem_copy_text(p->file, sizeof(p->file), name);
	snprintf(p->name, sizeof(p->name), place->number ? "%.31sp%u" : "%.31s",
		 name + strlen("pool-"), place->number);
	memcpy(p->comm, h->comm, sizeof(p->comm));
	p->comm[sizeof(p->comm) - 1] = 0;
	memcpy(p->control_name, h->control_name, sizeof(p->control_name));
	p->control_name[sizeof(p->control_name) - 1] = 0;
	p->pid = h->pid;
	p->start_clock = h->start_clock;
	p->incarnation = h->incarnation;
	if (p->ring.chunk_bytes != s->geometry.chunk_bytes)
		goto fail;
	p->next_seq = calloc(p->ring.lane_count, sizeof(*p->next_seq));
	p->delivered = calloc(p->ring.event_capacity, sizeof(*p->delivered));
	p->lost = calloc(p->ring.event_capacity, sizeof(*p->lost));
	p->aside = calloc(p->ring.event_capacity, sizeof(*p->aside));
	p->produced = calloc(p->ring.event_capacity, sizeof(*p->produced));
	p->discarded = calloc(p->ring.event_capacity, sizeof(*p->discarded));
	if (!p->next_seq || !p->delivered || !p->lost || !p->aside || !p->produced || !p->discarded)
		goto fail;
	p->pid_namespace = h->pid_namespace;
	find_process(p);
	if (p->pid != (uint32_t)getpid())
		find_member(s, p);
	pem_producer__refresh_events(s, p);
	return p;
fail:
	pem_producer__free(p);
	return NULL;
}

/*
 * A second image of the same process has a pool of its own, made later: the first one's owner is gone for good. The folder
 * is not read in order of age.
 */
static void bury_earlier_images(struct pem_session *s, struct pem_producer *image)
{
	struct pem_producer *p;

	for (p = s->producers; p; p = p->next) {
		/* Whoever is in another place may say any number. */
		if (p->place != image->place || p->inner_pid != image->inner_pid ||
		    p->pid_namespace != image->pid_namespace)
			continue;
		if (p->start_clock < image->start_clock)
			p->dead = true;
		else if (p->start_clock > image->start_clock)
			image->dead = true;
	}
}

static bool is_met(const struct pem_session *s, const struct pem_place *place, const char *name)
{
	const struct pem_producer *p;

	for (p = s->producers; p; p = p->next) {
		if (p->place == place && !strcmp(p->file, name))
			return true;
	}
	return false;
}

void pem_session__found_pool(struct pem_session *s, struct pem_place *place, const char *name,
			     int fd)
{
	struct pem_producer *p = NULL;

	if (is_pool_name(name) && !is_met(s, place, name))
		p = open_producer(s, place, name, fd);
	close(fd);
	if (!p)
		return;
	p->next = s->producers;
	s->producers = p;
	bury_earlier_images(s, p);
	pem_session__meet_target(s, p->pid);
	if (p->member)
		pem_member__ask(s, p->member); /* rules may have changed since it joined */
}

static void scan_own(struct pem_session *s, struct pem_place *place)
{
	DIR *directory = pem_list_folder(place->directory_fd);
	struct dirent *entry;
	int fd;

	while (directory && (entry = readdir(directory))) {
		if (!is_pool_name(entry->d_name) || is_met(s, place, entry->d_name))
			continue;
		fd = openat(place->directory_fd, entry->d_name,
			    O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0)
			pem_session__found_pool(s, place, entry->d_name, fd);
	}
	if (directory)
		closedir(directory);
}

void pem_session__scan_producers(struct pem_session *s)
{
	pem_session__own_place(s);
	pem_session__scan_members(s);
	if (s->places)
		scan_own(s, s->places);
	pem_session__scan_places(s);
	pem_session__gather_losses(s);
}

/* Its owner can't any more: killed, or replaced by another image, which has another file. */
static void remove_control(struct pem_session *s, const struct pem_producer *p)
{
	if (!p->member)
		return;
	pem_place__remove_control(p->place, p->member->name, p->member->inode);
	pem_session__forget_member(s, p->member);
}

static void say_cut(struct pem_session *s, const struct pem_producer *p)
{
	pem_session__say(
		s, PEM_LOG_WARNING,
		"process %u (%s) has cut off its shared memory: what was still in there is "
		"lost, and it is observed no more",
		p->pid, p->comm);
}

void pem_session__check_producers(struct pem_session *s)
{
	struct pem_producer **link = &s->producers, *p;
	struct pollfd pollfd;

	if (__atomic_load_n(&s->page_cut, __ATOMIC_ACQUIRE) && !s->page_cut_said) {
		s->page_cut_said = 1;
		pem_session__say(s, PEM_LOG_WARNING,
				 "'%s/config' was cut off: processes that start now are not "
				 "observed",
				 s->directory);
	}
	while ((p = *link)) {
		pollfd = (struct pollfd){.fd = p->pidfd, .events = POLLIN};
		if (p->pidfd >= 0 && poll(&pollfd, 1, 0) == 1)
			p->dead = true;
		if (__atomic_load_n(&p->cut, __ATOMIC_ACQUIRE)) {
			say_cut(s, p);
			p->dead = true;
		}
		if (!p->dead) {
			link = &p->next;
			continue;
		}
		pem_session__count_producer(s, p);
		pem_session__drain_producer(s, p, true);
		pem_session__account(s, p);
		pem_session__retire(s, p);
		remove_control(s, p);
		pem_place__remove_pool(p->place, p->file);
		*link = p->next;
		pem_producer__free(p);
	}
}

/* --- events --- */

struct pem_event_entry *pem_producer__event(struct pem_producer *p, uint32_t id)
{
	uint32_t i = id * 2654435761u >> 22;

	for (; p->table[i].id; i = (i + 1) % PEM_EVENT_TABLE) {
		if (p->table[i].id == id)
			return &p->table[i];
	}
	return NULL;
}

static void fill_entry(struct pem_event_entry *entry, uint32_t id, uint32_t slot,
		       const struct pem_event *event, bool refused)
{
	size_t i;

	*entry = (struct pem_event_entry){
		.id = id, .slot = slot, .event = event, .refused = refused};
	for (i = 0; event && i < event->field_count; i++) {
		if (!pem_type__bytes((enum pem_type)event->fields[i].type))
			return;
	}
	entry->fixed_bytes = event ? event->fixed_bytes : 0;
}

void pem_producer__refresh_events(struct pem_session *s, struct pem_producer *p)
{
	const uint32_t *ids = pem_pool__event_ids(&p->ring);
	uint32_t limit = p->ring.event_capacity, id, i;
	const struct pem_model *misfit;
	bool loaded = false;

	if (limit > PEM_EVENT_TABLE / 2)
		limit = PEM_EVENT_TABLE / 2;
	for (; p->table_events < limit; p->table_events++) {
		id = __atomic_load_n(&ids[p->table_events], __ATOMIC_ACQUIRE);
		if (!id)
			break;
		if (pem_producer__event(p, id))
			continue;
		misfit = pem_session__misfit(s, p, p->table_events);
		if (!misfit && !pem_model__by_id(s->model, id) && !loaded) {
			loaded = true;
			pem_session__load_models(s);
		}
		for (i = id * 2654435761u >> 22; p->table[i].id; i = (i + 1) % PEM_EVENT_TABLE)
			;
		fill_entry(&p->table[i], id, p->table_events,
			   pem_model__by_id(misfit ? misfit : s->model, id), misfit != NULL);
	}
}

/* --- lanes --- */

uint32_t pem_producer__next_lane(const struct pem_producer *p, uint32_t lane)
{
	const struct pem_lane *l;
	uint32_t tid;

	while (++lane < p->ring.lane_count) {
		l = &p->ring.lanes[lane];
		tid = __atomic_load_n(&l->tid, __ATOMIC_ACQUIRE);
		if (tid && tid != PEM_LANE_NO_MEMORY)
			return lane;
		if (!tid && __atomic_load_n(&l->state, __ATOMIC_RELAXED) == PEM_LANE_FREE)
			break;
	}
	return p->ring.lane_count;
}
