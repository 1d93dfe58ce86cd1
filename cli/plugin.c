// SPDX-License-Identifier: MIT
/*
 * plugin.c - finds what is installed beside this program: plugins and libraries
 *
 * The build tree and an installation have one layout: PREFIX/bin/pem, PREFIX/lib/libpem.so.1,
 * PREFIX/lib/pem/NAME.so. If the library folder is elsewhere (LIBDIR), it is found through libpem,
 * which the loader has already found.
 */
#include "cli.h"
#include "plugin_folders.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_program_folder(char *path, size_t bytes)
{
	ssize_t n = readlink("/proc/self/exe", path, bytes - 1);
	char *slash;

	if (n < 0)
		return -errno;
	if ((size_t)n == bytes - 1)
		return -ENAMETOOLONG;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

int cli_library_folder(char *path, size_t bytes)
{
	char resolved[PATH_MAX], *slash;
	Dl_info info;

	if (dladdr((void *)(uintptr_t)pem_version, &info) == 0 || info.dli_fname == NULL)
		return -ENOENT;
	if (realpath(info.dli_fname, resolved) == NULL)
		return -errno;
	slash = strrchr(resolved, '/');
	if (slash == NULL ||
	    (size_t)snprintf(path, bytes, "%.*s", (int)(slash - resolved), resolved) >= bytes)
		return -ENOENT;
	return 0;
}

int cli_library_file(const char *name, char *path, size_t bytes)
{
	char folder[PATH_MAX];

	/* Never the current folder: anyone's plugins may lie there. */
	if (cli_library_folder(folder, sizeof(folder)) < 0)
		return -ENOENT;
	if ((size_t)snprintf(path, bytes, "%s/%s", folder, name) >= bytes)
		return -ENAMETOOLONG;
	return access(path, R_OK) == 0 ? 0 : -ENOENT;
}

int cli_exporters__visit(int (*visit)(const char *path, const char *name, void *arg),
			 void (*refuse)(const char *sentence, void *arg), void *arg)
{
	char folder[PATH_MAX];
	const struct pem_plugin_search search = {.prefix = "export-",
						 .library_folder = folder,
						 .visit = visit,
						 .refuse = refuse,
						 .arg = arg};

	if (cli_library_folder(folder, sizeof(folder)) < 0) {
		refuse("no exporters were found: the folder of libpem is not known; name theirs in "
		       "PEM_PLUGIN_PATH",
		       arg);
		return 0;
	}
	return pem_plugins__visit(&search);
}

void *cli_plugin__load(const char *path, const char *kind, const char *symbol, uint32_t version,
		       void *table, size_t bytes, struct pem_error *error)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const void *found;
	uint32_t own = 0;

	if (handle == NULL) {
		snprintf(error->text, sizeof(error->text), "cannot load the %s %.200s: %.250s",
			 kind, path, dlerror());
		return NULL;
	}
	found = dlsym(handle, symbol);
	if (found != NULL && pem_sized__read(table, bytes, found, bytes) == 0)
		memcpy(&own, (const char *)table + sizeof(size_t), sizeof(own));
	if (found != NULL && own == version)
		return handle;
	if (found == NULL)
		snprintf(error->text, sizeof(error->text),
			 "%.300s has no %s: it defines no symbol %s", path, kind, symbol);
	else
		snprintf(error->text, sizeof(error->text),
			 "%.300s was built for another version of the %s interface than %u: build "
			 "it again",
			 path, kind, version);
	dlclose(handle);
	return NULL;
}

bool cli_exporter__load(const char *path, struct pem_exporter *exporter, void **handle,
			struct pem_error *error)
{
	*handle = cli_plugin__load(path, "exporter", "pem_exporter", PEM_EXPORT_ABI_VERSION,
				   exporter, sizeof(*exporter), error);
	if (*handle == NULL || (exporter->name != NULL && exporter->run != NULL))
		return *handle != NULL;
	snprintf(error->text, sizeof(error->text),
		 "%.300s has no exporter: its table has no name or nothing to run", path);
	dlclose(*handle);
	*handle = NULL;
	return false;
}
