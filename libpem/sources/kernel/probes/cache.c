/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cache.c - keeps the probes that a search found in binaries, so that each can later be found by
 * its name
 *
 * A pattern finds hundreds of probes in one walk through a file. Searching for each of them again
 * would take as many walks. A kept probe is used only while its binary's name leads to the file
 * that was read, and the file is unchanged: an offset of another file would put a breakpoint in the
 * middle of an instruction. Any thread may call these functions. The caller owns the copy that it
 * gets.
 */
#include "probes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pem_probe **cache;
/* cache_next: the entry that is replaced next when the cache is full */
static size_t cache_count, cache_capacity, cache_next;

/*
 * At exit a thread may hold the lock, or may have held it when the process was forked. The function
 * does not wait for it, and nothing is then freed.
 */
__attribute__((destructor)) static void forget_all(void)
{
	if (pthread_mutex_trylock(&lock))
		return;
	while (cache_count)
		pem_probe__free(cache[--cache_count]);
	free(cache);
	cache = NULL;
	cache_capacity = cache_next = 0;
	pthread_mutex_unlock(&lock);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Index of the probe with this name. cache_count: there is none. */
static size_t find(const char *name)
{
	size_t i;

	for (i = 0; i < cache_count && strcmp(cache[i]->name, name) != 0; i++)
		;
	return i;
}

/* Make room for one more, or find the oldest entry. False: no memory. */
static bool make_room(size_t *at)
{
	size_t capacity = cache_capacity ? 2 * cache_capacity : 64;
	struct pem_probe **grown;

	if (cache_count == PEM_PROBES_MAX) {
		*at = cache_next++ % PEM_PROBES_MAX;
		pem_probe__free(cache[*at]);
		return true;
	}
	if (cache_count == cache_capacity) {
		grown = realloc(cache, capacity * sizeof(struct pem_probe *));
		if (!grown)
			return false;
		cache = grown;
		cache_capacity = capacity;
	}
	*at = cache_count++;
	return true;
}

void pem_probe_cache__keep(struct pem_probe *probe)
{
	size_t at;

	if (probe->kind < PEM_PROBE_UPROBE || !probe->path || !probe->binary) {
		pem_probe__free(probe);
		return;
	}
	pthread_mutex_lock(&lock);
	at = find(probe->name);
	if (at < cache_count)
		pem_probe__free(cache[at]);
	if (at < cache_count || make_room(&at))
		cache[at] = probe;
	else
		pem_probe__free(probe);
	pthread_mutex_unlock(&lock);
}

static struct pem_probe *copy_of(const struct pem_probe *probe)
{
	struct pem_probe *copy = pem_probe__new(probe->kind, probe->name, probe->layer,
						probe->class_name, probe->specifier);

	if (!copy)
		return NULL;
	memcpy(copy->fields, probe->fields, sizeof(copy->fields));
	copy->field_count = probe->field_count;
	copy->type_id = probe->type_id;
	copy->offset = probe->offset;
	copy->path = strdup(probe->path);
	copy->binary = strdup(probe->binary);
	copy->file = probe->file;
	copy->description = strdup(probe->description);
	copy->trouble = probe->trouble ? strdup(probe->trouble) : NULL;
	copy->is_32bit = probe->is_32bit;
	copy->sites = malloc((probe->site_count + 1) * sizeof(*copy->sites));
	if (!copy->path || !copy->binary || !copy->description || !copy->sites ||
	    (probe->trouble && !copy->trouble)) {
		pem_probe__free(copy);
		return NULL;
	}
	copy->site_count = probe->site_count;
	if (probe->site_count)
		memcpy(copy->sites, probe->sites, probe->site_count * sizeof(*copy->sites));
	return copy;
}

/* Does the binary's name still lead to the file that was read, unchanged? */
static bool holds(const struct pem_probe *probe)
{
	char *path = pem_binary__path(probe->binary);
	struct stat file;
	bool same = path && !strcmp(path, probe->path) && !stat(path, &file) &&
		    is_same_file(&file, &probe->file);

	free(path);
	return same;
}

struct pem_probe *pem_probe_cache__find(const char *name)
{
	struct pem_probe *copy = NULL;
	size_t at;

	pthread_mutex_lock(&lock);
	at = find(name);
	if (at < cache_count && holds(cache[at]))
		copy = copy_of(cache[at]);
	pthread_mutex_unlock(&lock);
	return copy;
}
