// SPDX-License-Identifier: MIT
/*
 * plugin.c - finds what is installed beside this program: plugins and libraries
 *
 * The build tree and an installation have one layout: PREFIX/bin/pem, PREFIX/lib/libpem.so.1,
 * PREFIX/lib/pem/NAME.so. If the library folder is elsewhere (LIBDIR), it is found through libpem,
 * which the loader has already found.
 */
#include "cli.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_program_folder(char *path, size_t bytes)
{
	ssize_t n = readlink("/proc/self/exe", path, bytes - 1);
	char *slash;

	if (n < 0)
		return -errno;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

/* Find the folder that libpem was loaded from. */
static int library_folder(char *path, size_t bytes)
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
	if (library_folder(folder, sizeof(folder)) < 0)
		return -ENOENT;
	if ((size_t)snprintf(path, bytes, "%s/%s", folder, name) >= bytes)
		return -ENAMETOOLONG;
	return access(path, R_OK) == 0 ? 0 : -ENOENT;
}

/* List the files of a folder with a prefix and ".so", sorted. */
static struct cli_names list_folder(DIR *dir, const char *prefix)
{
	struct cli_names names = {0};
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		size_t n = strlen(entry->d_name);

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    n <= strlen(prefix) + 3 || strcmp(entry->d_name + n - 3, ".so") != 0)
			continue;
		if (cli_names__add(&names, entry->d_name) < 0)
			break;
	}
	cli_names__sort(&names);
	return names;
}

struct visit {
	const char *prefix;
	int (*visit)(const char *path, const char *name, void *arg);
	void (*refuse)(const char *sentence, void *arg);
	void *arg;
	struct cli_names seen;
};

static bool seen_before(struct visit *v, const char *file)
{
	size_t i;

	for (i = 0; i < v->seen.count; i++)
		if (strcmp(v->seen.names[i], file) == 0)
			return true;
	return cli_names__add(&v->seen, file) < 0;
}

static int visit_file(struct visit *v, const char *folder, const char *file)
{
	char path[PATH_MAX], name[NAME_MAX + 1];

	if (seen_before(v, file) ||
	    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, file) >= sizeof(path))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(file) - strlen(v->prefix) - 3),
		 file + strlen(v->prefix));
	return v->visit(path, name, v->arg);
}

static int visit_folder(struct visit *v, const char *folder)
{
	struct cli_names names;
	struct stat st;
	size_t i;
	DIR *dir;
	int rc = 0;

	dir = opendir(folder);
	if (dir == NULL)
		return 0;
	if (fstat(dirfd(dir), &st) < 0 || (st.st_mode & S_IWOTH) != 0) {
		if (v->refuse != NULL)
			v->refuse(cli_format("plugins in %s are left out: everybody may write to "
					     "this folder (chmod o-w)",
					     folder),
				  v->arg);
		closedir(dir);
		return 0;
	}
	names = list_folder(dir, v->prefix);
	closedir(dir);
	for (i = 0; i < names.count && rc == 0; i++)
		rc = visit_file(v, folder, names.names[i]);
	cli_names__free(&names);
	return rc;
}

int cli_plugins__visit(const char *prefix,
		       int (*visit)(const char *path, const char *name, void *arg),
		       void (*refuse)(const char *sentence, void *arg), void *arg)
{
	struct visit v = {.prefix = prefix, .visit = visit, .refuse = refuse, .arg = arg};
	const char *env = secure_getenv("PEM_PLUGIN_PATH");
	char folder[PATH_MAX];
	int rc = 0;

	if (env != NULL && *env != '\0') {
		char *copy = strdup(env), *rest = copy, *part;

		while (rc == 0 && (part = strsep(&rest, ":")) != NULL)
			if (*part != '\0')
				rc = visit_folder(&v, part);
		free(copy);
	} else {
		if (cli_library_file("pem", folder, sizeof(folder)) == 0)
			rc = visit_folder(&v, folder);
		/*
		 * A user who may link a privileged pem into an own folder could otherwise make it
		 * load own plugins.
		 */
		if (rc == 0 && !getauxval(AT_SECURE) &&
		    cli_program_folder(folder, sizeof(folder) - 16) == 0) {
			strcat(folder, "/../lib/pem");
			rc = visit_folder(&v, folder);
		}
	}
	cli_names__free(&v.seen);
	return rc;
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
