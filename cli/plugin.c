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

bool cli_exporter__load(const char *path, struct pem_exporter *exporter, void **handle,
			struct pem_error *error)
{
	const struct pem_exporter *table;

	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (*handle == NULL) {
		snprintf(error->text, sizeof(error->text), "cannot load %.200s: %.250s", path,
			 dlerror());
		return false;
	}
	table = dlsym(*handle, "pem_exporter");
	if (table == NULL)
		snprintf(error->text, sizeof(error->text),
			 "%.400s is no exporter: it defines no symbol pem_exporter", path);
	else if (pem_sized__read(exporter, sizeof(*exporter), table, sizeof(*exporter)) != 0 ||
		 exporter->abi_version != PEM_EXPORT_ABI_VERSION)
		snprintf(error->text, sizeof(error->text),
			 "%.300s was built for another version of the exporter interface than %u: "
			 "build it again",
			 path, PEM_EXPORT_ABI_VERSION);
	else if (exporter->name == NULL || exporter->run == NULL)
		snprintf(error->text, sizeof(error->text),
			 "%.400s is no exporter: it has no name or nothing to run", path);
	else
		return true;
	dlclose(*handle);
	*handle = NULL;
	return false;
}
