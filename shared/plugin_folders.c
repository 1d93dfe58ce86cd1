// SPDX-License-Identifier: MIT
/* plugin_folders.c - finds the plugins of pem in folders that nobody else can put files into */
#include "plugin_folders.h"
#include "grow.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct names {
	char **names;
	size_t count, capacity;
};

struct walk {
	const struct pem_plugin_search *search;
	uid_t library_owner;
	struct names seen;
};

static int add_name(struct names *names, const char *name)
{
	char *copy = strdup(name);

	if (copy == NULL ||
	    pem_grow(&names->names, sizeof(*names->names), names->count + 1, &names->capacity)) {
		free(copy);
		return -ENOMEM;
	}
	names->names[names->count++] = copy;
	return 0;
}

static void free_names(struct names *names)
{
	while (names->count > 0)
		free(names->names[--names->count]);
	free(names->names);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void __attribute__((format(printf, 2, 3)))
refuse(const struct walk *w, const char *format, ...)
{
	char sentence[PATH_MAX + 256];
	va_list arguments;

	if (w->search->refuse == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	w->search->refuse(sentence, w->search->arg);
}

/* Can nobody but those who are trusted write here? If not, say so of the path. */
static bool is_safe(const struct walk *w, const char *path, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != w->library_owner) {
		refuse(w,
		       "%s is left out: it belongs to user %u, and plugins are loaded only of "
		       "root, "
		       "of yourself and of the owner of libpem (chown, or copy it)",
		       path, (unsigned int)st->st_uid);
		return false;
	}
	if ((st->st_mode & S_IWOTH) != 0) {
		refuse(w, "%s is left out: everybody may write to it (chmod o-w)", path);
		return false;
	}
	if ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0 && st->st_gid != getegid()) {
		refuse(w, "%s is left out: group %u may write to it (chmod g-w)", path,
		       (unsigned int)st->st_gid);
		return false;
	}
	return true;
}

static int list_plugins(DIR *dir, const char *prefix, struct names *names)
{
	struct dirent *entry;
	size_t n, fixed = strlen(prefix) + strlen(".so");
	int rc = 0;

	errno = 0;
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		n = strlen(entry->d_name);
		if (n > fixed && strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    strcmp(entry->d_name + n - strlen(".so"), ".so") == 0)
			rc = add_name(names, entry->d_name);
		errno = 0;
	}
	if (rc == 0 && errno != 0)
		rc = -errno;
	if (names->count > 1)
		qsort(names->names, names->count, sizeof(*names->names), compare_names);
	return rc;
}

static bool is_seen(const struct walk *w, const char *file)
{
	size_t i;

	for (i = 0; i < w->seen.count; i++)
		if (strcmp(w->seen.names[i], file) == 0)
			return true;
	return false;
}

static int visit_file(struct walk *w, const char *folder, const char *file)
{
	const struct pem_plugin_search *search = w->search;
	char path[PATH_MAX], name[NAME_MAX + 1];
	struct stat st;

	if (is_seen(w, file))
		return 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, file) >= sizeof(path)) {
		refuse(w, "%s in %.200s... is left out: its path is too long", file, folder);
		return 0;
	}
	if (stat(path, &st) < 0) {
		refuse(w, "%s is left out: %s", path, strerror(errno));
		return 0;
	}
	if (!is_safe(w, path, &st))
		return 0;
	if (add_name(&w->seen, file) < 0)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%.*s",
		 (int)(strlen(file) - strlen(search->prefix) - strlen(".so")),
		 file + strlen(search->prefix));
	return search->visit(path, name, search->arg);
}

static int visit_folder(struct walk *w, const char *folder)
{
	struct names names = {0};
	struct stat st;
	size_t i;
	DIR *dir = opendir(folder);
	int rc = 0;

	if (dir == NULL) {
		if (errno != ENOENT)
			refuse(w, "plugins in %s are left out: %s", folder, strerror(errno));
		return 0;
	}
	if (fstat(dirfd(dir), &st) == 0 && is_safe(w, folder, &st)) {
		rc = list_plugins(dir, w->search->prefix, &names);
		if (rc != 0 && rc != -ENOMEM) {
			refuse(w, "some plugins in %s are left out: %s", folder, strerror(-rc));
			rc = 0;
		}
	}
	closedir(dir);
	for (i = 0; i < names.count && rc == 0; i++)
		rc = visit_file(w, folder, names.names[i]);
	free_names(&names);
	return rc;
}

static int visit_own(struct walk *w)
{
	char folder[PATH_MAX];

	if ((size_t)snprintf(folder, sizeof(folder), "%s/pem", w->search->library_folder) >=
	    sizeof(folder))
		return 0;
	return visit_folder(w, folder);
}

static int visit_chosen(struct walk *w, const char *folders)
{
	char *copy = strdup(folders), *rest = copy, *folder;
	int rc = 0;

	if (copy == NULL)
		return -ENOMEM;
	while (rc == 0 && (folder = strsep(&rest, ":")) != NULL) {
		/* The current folder may be anybody's. */
		if (*folder == '/')
			rc = visit_folder(w, folder);
		else if (*folder == '\0')
			rc = visit_own(w);
		else
			refuse(w,
			       "plugins in %s are left out: name the folder in PEM_PLUGIN_PATH by "
			       "its path from /",
			       folder);
	}
	free(copy);
	return rc;
}

int pem_plugins__visit(const struct pem_plugin_search *search)
{
	struct walk w = {.search = search};
	const char *chosen = secure_getenv("PEM_PLUGIN_PATH");
	struct stat st;
	int rc;

	if (stat(search->library_folder, &st) == 0)
		w.library_owner = st.st_uid;
	rc = chosen != NULL && *chosen != '\0' ? visit_chosen(&w, chosen) : visit_own(&w);
	free_names(&w.seen);
	return rc;
}
