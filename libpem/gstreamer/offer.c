/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * offer.c - lets programs that are started from here load the tracer of this folder, if they use
 * GStreamer (contract: pem/streams.h)
 */
#include "core/core.h"

#include <pem/streams.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Put a word before those of a variable, unless it is one of them. */
static int add_word(const char *variable, const char *word, char separator)
{
	const char *old = getenv(variable), *next;
	size_t length = strlen(word);
	char *joined;
	int rc;

	for (next = old; next; next = next ? next + 1 : next) {
		if (!strncmp(next, word, length) && (!next[length] || next[length] == separator))
			return 0;
		next = strchr(next, separator);
	}
	if (!old || !*old)
		return setenv(variable, word, 1) ? -errno : 0;
	if (asprintf(&joined, "%s%c%s", word, separator, old) < 0)
		return -ENOMEM;
	rc = setenv(variable, joined, 1) ? -errno : 0;
	free(joined);
	return rc;
}

/*
 * A registry of plugins of its own. In the user's, GStreamer would add and remove the tracer with
 * each change between programs with it and without it, by a process with pipes to the program.
 */
static int choose_registry(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool has_cache = cache && *cache == '/';
	struct utsname machine;
	char path[PATH_MAX];

	if (getenv("GST_REGISTRY") || getenv("GST_REGISTRY_1_0") || (!has_cache && !home) ||
	    uname(&machine))
		return 0;
	if (snprintf(path, sizeof(path), "%s%s/gstreamer-1.0/registry.pem.%s.bin",
		     has_cache ? cache : home, has_cache ? "" : "/.cache",
		     machine.machine) >= (int)sizeof(path))
		return 0;
	return setenv("GST_REGISTRY", path, 1) ? -errno : 0;
}

int pem_streams__offer(void)
{
	const char *paths =
		getenv("GST_PLUGIN_PATH_1_0") ? "GST_PLUGIN_PATH_1_0" : "GST_PLUGIN_PATH";
	char library[PATH_MAX], folder[PATH_MAX + 16], file[PATH_MAX + 32];
	int rc;

	if (!pem_library_folder(library, sizeof(library)))
		return -ENOENT;
	snprintf(folder, sizeof(folder), "%s/pem/gstreamer", library);
	snprintf(file, sizeof(file), "%s/libgstpem.so", folder);
	if (access(file, R_OK))
		return -ENOENT;
	rc = choose_registry();
	if (!rc)
		rc = add_word(paths, folder, ':');
	return rc ? rc : add_word("GST_TRACERS", "pem", ';');
}
