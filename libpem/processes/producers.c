/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * producers.c - find the processes that joined a session, map their pools, notice their end
 *
 * A pool file is hostile: its header is checked by pem_pool__open_ring, ids and counts are checked
 * where used.
 */
#include "core/core.h"
#include "core/fault.h"
#include "core/gate.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "writer/log.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void pem_producer__free(struct pem_producer *p)
{
	if (!p)
		return;
	if (p->ring.header)
		pem_shared_file__unmap(p->ring.header, p->bytes);
	if (p->member)
		p->member->producer = NULL;
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p->tids);
	free(p->next_seq);
	free(p->delivered);
	free(p->lost);
	free(p->callback_only);
	free(p->async);
	free(p->produced);
	free(p->discarded);
	free(p);
}

/*
 * Find the member of a producer. Shared memory names the control file, so the file is only looked
 * for in the producer's own runtime directory.
 */
static void find_member(struct pem_session *s, struct pem_producer *p)
{
	struct pem_member *m = pem_session__member(s, p->dir, p->control_name);

	if (!m || !pem_member__has_made(m, p))
		return;
	if (m->producer)
		m->producer->member = NULL;
	m->producer = p;
	p->member = m;
}

/*
 * May this descriptor stay open? Half of the descriptors that the recorder may open stay free for
 * its own files. False: the recorder watches the process with signal 0 instead.
 */
static bool may_keep(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	       (rlim_t)fd < limit.rlim_cur / 2;
}

/*
 * Find the process of a pool. A container's process has another process id here. If it has ended, a
 * source may know its id. Otherwise it gets one that no process has. Returns false where the pool
 * names a running process of another user.
 */
static bool find_process(struct pem_session *s, struct pem_producer *p)
{
	uint32_t pid = pem_dir__pid(p->dir->owner, p->pid, p->pid_namespace);

	p->inner_pid = p->pid;
	p->is_inner = p->pid_namespace && p->pid_namespace != pem_pid_namespace();
	if (!pid && p->is_inner)
		pid = s->hooks->outer_tid(s, p->pid_namespace, p->inner_pid, p->dir->owner,
					  p->start_clock);
	if (!pid) {
		p->pid = p->is_inner ? pem_session__unknown_pid(s) : p->pid;
		return p->is_inner;
	}
	p->pid = pid;
	p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	p->dead = p->pidfd < 0 && errno == ESRCH;
	p->is_found = true;
	p->started = pem_dir__start(p->dir->owner, pid);
	if (p->pidfd >= 0 && !may_keep(p->pidfd)) {
		close(p->pidfd);
		p->pidfd = -1;
	}
	return true;
}

/* Is this the name of a pool, "pool-<pid>-<k>"? The name selects the stream of its records. */
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

/* --- tables --- */

uint32_t pem_session__hash_name(const struct pem_session *s, const struct pem_dir *dir,
				const char *name)
{
	uint32_t hash = s->id ^ (uint32_t)((uintptr_t)pem_dir__folder(dir) >> 4);

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return (hash ^ hash >> 15) % PEM_PROCESS_BUCKETS;
}

static uint32_t hash_image(const struct pem_producer *p)
{
	return (p->inner_pid * 2654435761u ^ p->pid_namespace) % PEM_PROCESS_BUCKETS;
}

static struct pem_producer *find_producer(struct pem_session *s, const struct pem_dir *dir,
					  const char *file)
{
	struct pem_producer *p =
		s->processes->producers_by_name[pem_session__hash_name(s, dir, file)];

	while (p && (pem_dir__folder(p->dir) != dir || strcmp(p->file, file) != 0))
		p = p->next_by_name;
	return p;
}

static void add_producer(struct pem_session *s, struct pem_producer *p)
{
	struct pem_producer **by_name =
		&s->processes->producers_by_name[pem_session__hash_name(s, p->dir, p->file)];
	struct pem_producer **by_image = &s->processes->producers_by_image[hash_image(p)];

	p->next_by_name = *by_name;
	*by_name = p;
	p->next_by_image = *by_image;
	*by_image = p;
	p->next = s->processes->producers;
	s->processes->producers = p;
}

void pem_session__remove_producer(struct pem_session *s, struct pem_producer **link)
{
	struct pem_producer *p = *link, **at;

	for (at = &s->processes->producers_by_name[pem_session__hash_name(s, p->dir, p->file)];
	     *at != p; at = &(*at)->next_by_name)
		;
	*at = p->next_by_name;
	for (at = &s->processes->producers_by_image[hash_image(p)]; *at != p;
	     at = &(*at)->next_by_image)
		;
	*at = p->next_by_image;
	*link = p->next;
	pem_dir__give_back(s, p->dir, PEM_RESOURCE_POOLS, 1);
	pem_dir__give_back(s, p->dir, PEM_RESOURCE_BYTES, p->bytes);
}

/* --- pools --- */

static uint64_t pool_bytes(const struct pem_pool_geometry *g)
{
	struct pem_pool_header h = {.flags = g->flags,
				    .chunk_bytes = g->chunk_bytes,
				    .chunk_count = g->chunk_count,
				    .lane_count = g->lane_count,
				    .event_capacity = g->event_capacity};

	pem_pool__layout(&h);
	return h.total_bytes;
}

/* The bytes of the smallest pool that a process may make. */
static uint64_t least_pool_bytes(const struct pem_pool_geometry *g)
{
	struct pem_pool_geometry least = *g;

	least.chunk_count = pem_pool_geometry__first_chunks(g);
	return pool_bytes(&least);
}

static bool has_geometry(const struct pem_ring *ring, const struct pem_pool_geometry *g)
{
	return ring->chunk_bytes == g->chunk_bytes &&
	       (ring->chunk_count == g->chunk_count || ring->chunk_count == g->chunk_limit) &&
	       ring->lane_count == g->lane_count && ring->event_capacity == g->event_capacity &&
	       ring->overwrite == (g->flags & PEM_POOL_OVERWRITE) &&
	       !ring->further == !(g->flags & PEM_POOL_FURTHER);
}

/*
 * Map a pool that has the session's geometry. Returns 0. Returns -EAGAIN where the file may become
 * a pool later. With any other error the file is refused, and *excess is the reason.
 */
static int map_pool(struct pem_session *s, struct pem_producer *p, int fd, struct stat *st,
		    enum pem_excess *excess)
{
	uint64_t least = least_pool_bytes(&s->geometry), most = pool_bytes(&s->geometry);
	struct pem_shared_file file;
	int result = pem_shared_file__check(fd, p->dir->owner, st);

	*excess = PEM_EXCESS_LINKS;
	if (result)
		return result == -ENOENT ? -EAGAIN : result;
	result = pem_shared_file__map(fd, st, PEM_POOL_MAGIC, least, most, &p->cut, &file);
	*excess = result == -EINVAL ? PEM_EXCESS_GEOMETRY : PEM_EXCESS_MAPPING;
	if (result)
		return result;
	if (!pem_pool__open_ring(file.memory, file.bytes, &p->ring) &&
	    has_geometry(&p->ring, &s->geometry) &&
	    file.bytes == (p->ring.chunk_count == s->geometry.chunk_count ? most : least)) {
		p->bytes = file.bytes;
		p->chunk_limit = pem_ring_limit(&p->ring);
		return 0;
	}
	pem_shared_file__unmap(file.memory, file.bytes);
	p->ring.header = NULL;
	*excess = PEM_EXCESS_GEOMETRY;
	return -EINVAL;
}

static bool make_counts(struct pem_producer *p)
{
	p->next_seq = calloc(p->ring.lane_count, sizeof(*p->next_seq));
	p->delivered = calloc(p->ring.event_capacity, sizeof(*p->delivered));
	p->lost = calloc(p->ring.event_capacity, sizeof(*p->lost));
	p->callback_only = calloc(p->ring.event_capacity, sizeof(*p->callback_only));
	p->produced = calloc(p->ring.event_capacity, sizeof(*p->produced));
	p->discarded = calloc(p->ring.event_capacity, sizeof(*p->discarded));
	p->tids = calloc(p->ring.lane_count, sizeof(*p->tids));
	return p->tids && p->next_seq && p->delivered && p->lost && p->callback_only &&
	       p->produced && p->discarded;
}

static void read_header(struct pem_producer *p, const char *name)
{
	const struct pem_pool_header *h = p->ring.header;

	pem_copy_text(p->file, sizeof(p->file), name);
	/*
	 * The number is the folder's, not the user's: a recovery meets the users in another order.
	 */
	snprintf(p->name, sizeof(p->name), p->dir->number ? "%.31sp%u" : "%.31s",
		 name + strlen("pool-"), pem_dir__folder(p->dir)->number);
	memcpy(p->comm, h->comm, sizeof(p->comm));
	p->comm[sizeof(p->comm) - 1] = 0;
	memcpy(p->control_name, h->control_name, sizeof(p->control_name));
	p->control_name[sizeof(p->control_name) - 1] = 0;
	p->pid = h->pid;
	p->start_clock = h->start_clock;
	p->incarnation = h->incarnation;
	p->pid_namespace = h->pid_namespace;
	p->gates = h->gates;
	if (p->gates)
		p->gates += (h->session_index % PEM_SESSIONS_MAX) * sizeof(struct pem_gate_states);
}

/*
 * Open a pool by its descriptor. Returns NULL where there is no pool yet, or where it is refused. A
 * refused file is remembered as such.
 */
static struct pem_producer *open_producer(struct pem_session *s, struct pem_dir *dir,
					  const char *name, int fd)
{
	struct pem_producer *p = calloc(1, sizeof(*p));
	enum pem_excess excess = PEM_EXCESS_MAPPING;
	struct stat st = {0};
	int result = -ENOMEM;

	if (p) {
		p->pidfd = -1;
		p->filters = ~0u;
		p->dir = dir;
		result = map_pool(s, p, fd, &st, &excess);
	}
	if (!result && !make_counts(p)) {
		result = -ENOMEM;
		excess = PEM_EXCESS_MAPPING;
	}
	if (!result) {
		read_header(p, name);
		if (find_process(s, p))
			return p;
		result = -EPERM;
		excess = PEM_EXCESS_PROCESS;
	}
	if (result != -EAGAIN)
		pem_dir__exceed_in_list(s, dir, PEM_LIST_POOLS, excess);
	if (result != -EAGAIN && result != -ENOMEM)
		pem_dir__refuse_file(dir, &st, excess);
	pem_producer__free(p);
	return NULL;
}

/*
 * Mark the pools of a process's earlier programs as dead. After an exec the process makes a new
 * pool, and nothing writes to the old one any more. Folders are not read in order of age, so the
 * new image itself may be an earlier one.
 */
static void retire_earlier_images(struct pem_session *s, struct pem_producer *image)
{
	struct pem_producer *p;

	for (p = s->processes->producers_by_image[hash_image(image)]; p; p = p->next_by_image) {
		/* A pool in another directory may claim any process id. */
		if (p->dir != image->dir || p->inner_pid != image->inner_pid ||
		    p->pid_namespace != image->pid_namespace)
			continue;
		if (p->start_clock < image->start_clock)
			p->dead = true;
		else if (p->start_clock > image->start_clock)
			image->dead = true;
	}
}

/*
 * Take a pool that is open as fd. The caller closes fd. Returns NULL where it is no pool, or the
 * directory may have no more.
 */
static struct pem_producer *take_pool(struct pem_session *s, struct pem_dir *dir, const char *name,
				      int fd)
{
	uint64_t bytes = pool_bytes(&s->geometry);
	struct pem_producer *p;

	if (!pem_dir__take(s, dir, PEM_RESOURCE_POOLS, 1)) {
		pem_dir__exceed_in_list(s, dir, PEM_LIST_POOLS, PEM_EXCESS_POOLS);
		return NULL;
	}
	if (!pem_dir__take(s, dir, PEM_RESOURCE_BYTES, bytes)) {
		pem_dir__exceed_in_list(s, dir, PEM_LIST_POOLS, PEM_EXCESS_POOLS);
		pem_dir__give_back(s, dir, PEM_RESOURCE_POOLS, 1);
		return NULL;
	}
	p = open_producer(s, dir, name, fd);
	if (!p) {
		pem_dir__give_back(s, dir, PEM_RESOURCE_BYTES, bytes);
		pem_dir__give_back(s, dir, PEM_RESOURCE_POOLS, 1);
		return NULL;
	}
	pem_dir__give_back(s, dir, PEM_RESOURCE_BYTES, bytes - p->bytes);
	return p;
}

static void note_gates(struct pem_session *s, const struct pem_producer *p)
{
	if (p->gates && p->started)
		s->hooks->gates_found(s, p->pid, p->gates);
	else if (!p->gates && pem_session__used_gates(s))
		pem_session__say(s, PEM_LOG_WARNING,
				 "process %u (%s) has an older libpem that does not know 'inside' "
				 "and 'from': its events are missing from such statistics; rebuild "
				 "or restart it with this libpem",
				 p->pid, p->comm);
}

void pem_session__found_pool(struct pem_session *s, struct pem_dir *dir, const char *name, int fd)
{
	struct pem_producer *p = NULL;

	if (is_pool_name(name) && !find_producer(s, pem_dir__folder(dir), name))
		p = take_pool(s, dir, name, fd);
	close(fd);
	if (!p)
		return;
	add_producer(s, p);
	if (p->pid != (uint32_t)getpid())
		find_member(s, p);
	pem_producer__refresh_events(s, p);
	retire_earlier_images(s, p);
	s->hooks->process_found(s, p->pid);
	note_gates(s, p);
	/* The rules may have changed since the process joined. */
	if (p->member)
		pem_member__ask(s, p->member);
}

static void say_over(struct pem_session *s, struct pem_dir *dir)
{
	if (!dir->over_said)
		pem_session__say(s, PEM_LOG_WARNING,
				 "there are more than %d files in '%s', of programs that were "
				 "started as other users: not all of these are observed",
				 PEM_PUBLIC_FILES_MAX, s->dirs->public_directory);
	dir->over_said = true;
}

static void scan_own(struct pem_session *s, struct pem_dir *dir)
{
	struct pem_dir *user, *owner;
	DIR *directory = NULL;
	struct dirent *entry;
	unsigned files = 0;
	int fd;

	for (user = dir; user; user = user->next) {
		if (pem_dir__folder(user) == dir)
			pem_dir__begin_list(user, PEM_LIST_POOLS);
	}
	if (!dir->is_public || !pem_public__is_bare(dir))
		directory = pem_list_folder(dir->directory_fd);
	while (directory && (entry = readdir(directory))) {
		if (dir->is_public && ++files > PEM_PUBLIC_FILES_MAX) {
			say_over(s, dir);
			break;
		}
		if (!is_pool_name(entry->d_name) || find_producer(s, dir, entry->d_name))
			continue;
		fd = pem_dir__open(s, dir, PEM_LIST_POOLS, dir->directory_fd, entry->d_name);
		owner = fd >= 0 && dir->is_public ? pem_public__user(s, dir, fd) : dir;
		if (fd >= 0 && owner)
			pem_session__found_pool(s, owner, entry->d_name, fd);
		else if (fd >= 0)
			close(fd);
	}
	if (directory)
		closedir(directory);
}

void pem_session__find_producers(struct pem_session *s)
{
	struct pem_dir *dir;

	pem_session__add_session_dir(s);
	pem_session__begin_turn(s);
	pem_session__scan_members(s);
	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (pem_dir__opens_files(dir) && !dir->public_folder)
			scan_own(s, dir);
	}
	pem_session__scan_dirs(s);
}

void pem_session__scan_producers(struct pem_session *s)
{
	pem_session__find_producers(s);
	pem_session__gather_losses(s);
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

static void fill_entry(struct pem_event_entry *entry, uint32_t id, uint32_t event_index,
		       const struct pem_event *event, bool refused)
{
	size_t i;

	*entry = (struct pem_event_entry){
		.id = id, .event_index = event_index, .event = event, .refused = refused};
	for (i = 0; event && i < event->field_count; i++) {
		if (!pem_type__bytes((enum pem_type)event->fields[i].type))
			return;
	}
	entry->fixed_bytes = event ? event->fixed_bytes : 0;
}

bool pem_producer__refresh_events(struct pem_session *s, struct pem_producer *p)
{
	bool all = true;
	const uint32_t *ids = pem_pool__event_ids(&p->ring);
	uint32_t limit = p->ring.event_capacity, id, i;
	size_t known = pem_model__count(s->model);
	const struct pem_event *event;
	bool refused;

	if (limit > PEM_EVENT_TABLE / 2)
		limit = PEM_EVENT_TABLE / 2;
	for (; p->table_events < limit; p->table_events++) {
		/* pb */
		id = __atomic_load_n(&ids[p->table_events], __ATOMIC_ACQUIRE);
		if (!id)
			break;
		if (pem_producer__event(p, id))
			continue;
		all = !pem_producer__awaits_model(s, p, p->table_events);
		if (!all)
			break;
		event = pem_producer__describe(s, p, p->table_events, id, &refused);
		for (i = id * 2654435761u >> 22; p->table[i].id; i = (i + 1) % PEM_EVENT_TABLE)
			;
		fill_entry(&p->table[i], id, p->table_events, event, refused);
	}
	if (s->log && pem_model__count(s->model) != known)
		pem_log__model_grew(s->log);
	return all;
}

/* --- users whose files are cut --- */

uint64_t pem_session__cut_user(struct pem_session *s, const struct pem_user *user)
{
	struct pem_producer *p;
	struct pem_member *m;
	uint64_t count = 0;

	for (p = s->processes->producers; p; p = p->next) {
		if (p->dir->usage.user != user)
			continue;
		count++;
		pem_fault__cut(p->ring.header);
		p->cut_said = p->dead = true;
	}
	for (m = s->processes->members; m; m = m->next) {
		if (m->dir->usage.user != user)
			continue;
		count += !m->producer;
		pem_fault__cut(m->control);
	}
	return count;
}
