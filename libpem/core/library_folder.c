/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * library_folder.c - where the libraries lie that are preloaded or loaded as plugins
 */
#include "core/core.h"
#include "util.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pem_library_folder(char *path, size_t bytes)
{
	const char *chosen = secure_getenv("PEM_LIBRARY_PATH"), *slash;
	Dl_info info;

	if (chosen && chosen[0] == '/' && strlen(chosen) < bytes)
		return strcpy(path, chosen);
	if (!dladdr((void *)(uintptr_t)pem_library_folder, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (!slash || snprintf(path, bytes, "%.*s", (int)(slash - info.dli_fname),
			       info.dli_fname) >= (int)bytes)
		return NULL;
	return path;
}
