/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probe_cache.c - probes of binaries that a search has found, kept for those who look for each by its name afterwards
 *
 * A pattern finds hundreds in one walk through a file, and to look for each of them anew is as many walks. What was found
 * holds as long as the file is the same one, unchanged. Any thread may come; what is handed out is the caller's copy.
 */
#include "probes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct kept {
	struct pem_probe *probe;
	struct stat file;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *cache;
static size_t cache_count, cache_capacity,
	cache_next; /* the next one to make room when it is full */

__attribute__((destructor)) static void forget_all(void)
{
	while (cache_count)
		pem_probe__free(cache[--cache_count].probe);
	free(cache);
	cache = NULL;
	cache_capacity = 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Place of a probe of that name; cache_count: it is not there. */
static size_t find(const char *name)
{
	size_t i;

	for (i = 0; i < cache_count && strcmp(cache[i].probe->name, name) != 0; i++)
		;
	return i;
}

/* Room for one more, or the place of the one that has been there longest; false: no memory. */
static bool make_room(size_t *at)
{
	size_t capacity = cache_capacity ? 2 * cache_capacity : 64;
	struct kept *grown;

	if (cache_count == PEM_PROBES_MAX) {
		*at = cache_next++ % PEM_PROBES_MAX;
		pem_probe__free(cache[*at].probe);
		return true;
	}
	if (cache_count == cache_capacity) {
		grown = realloc(cache, capacity * sizeof(*cache));
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
	struct stat file;
	size_t at;

	if (probe->kind < PEM_PROBE_UPROBE || !probe->path || stat(probe->path, &file)) {
		pem_probe__free(probe);
		return;
	}
	pthread_mutex_lock(&lock);
	at = find(probe->name);
	if (at < cache_count)
		pem_probe__free(cache[at].probe);
	if (at < cache_count || make_room(&at))
		cache[at] = (struct kept){probe, file};
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
	copy->description = strdup(probe->description);
	copy->sites = malloc((probe->site_count + 1) * sizeof(*copy->sites));
	if (!copy->path || !copy->description || !copy->sites) {
		pem_probe__free(copy);
		return NULL;
	}
	copy->site_count = probe->site_count;
	if (probe->site_count)
		memcpy(copy->sites, probe->sites, probe->site_count * sizeof(*copy->sites));
	return copy;
}

struct pem_probe *pem_probe_cache__find(const char *name)
{
	struct pem_probe *copy = NULL;
	struct stat file;
	size_t at;

	pthread_mutex_lock(&lock);
	at = find(name);
	if (at < cache_count && !stat(cache[at].probe->path, &file) &&
	    is_same_file(&file, &cache[at].file))
		copy = copy_of(cache[at].probe);
	pthread_mutex_unlock(&lock);
	return copy;
}
