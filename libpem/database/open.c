/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* open.c - which database, and may it be used */
#include "connection.h"

#include <pem/sized.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_server(const char *url)
{
	return !strncmp(url, "postgresql://", 13) || !strncmp(url, "postgres://", 11);
}

/* The path of the database that is used without PEM_DB. */
static int default_path(char *path, size_t bytes, struct pem_error *error)
{
	const char *data = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
	struct passwd *user;
	int n;

	if (data && data[0] == '/') {
		n = snprintf(path, bytes, "%s/pem/cpo.db", data);
	} else {
		if (!home || home[0] != '/') {
			user = getpwuid(geteuid());
			home = user ? user->pw_dir : NULL;
		}
		if (!home)
			return pem_db__fail(error, -ENOENT,
					    "where the database is is unknown: this user has no "
					    "home folder; name a file in PEM_DB");
		n = snprintf(path, bytes, "%s/.local/share/pem/cpo.db", home);
	}
	if (n < 0 || (size_t)n >= bytes)
		return pem_db__fail(error, -ENAMETOOLONG, "the path of the database is too long");
	return 0;
}

/*
 * May others change a file or a folder? A folder that is the database's own is not even one where
 * all may add, such as /tmp: a journal beside the database becomes part of it. Above it (is_above),
 * a folder where nobody may rename what is another one's (sticky) will do.
 */
static int check_owner(const char *path, const struct stat *st, bool is_above,
		       struct pem_error *error)
{
	bool of_group = (st->st_mode & S_IWGRP) && st->st_gid != getegid();
	bool sticky = is_above && (st->st_mode & S_ISVTX);

	if (st->st_uid != geteuid() && !(S_ISDIR(st->st_mode) && st->st_uid == 0))
		return pem_db__fail(error, -EACCES,
				    "%s belongs to user %u, and pem uses only your own database: "
				    "run as that user, or name another file in PEM_DB",
				    path, (unsigned)st->st_uid);
	if ((of_group || (st->st_mode & S_IWOTH)) && !sticky)
		return pem_db__fail(error, -EACCES,
				    "others may write to %s, and what an agent does must not come "
				    "from them: chmod go-w, or name a file in a folder of your own",
				    path);
	return 0;
}

/*
 * Check each folder from the root to a folder whose path has no symbolic link. Whoever may write to
 * one of them can exchange what is below it, also after it was checked. all: the last one as well.
 */
static int check_folders(const char *folder, bool all, struct pem_error *error)
{
	const char *end = folder;
	char part[PATH_MAX];
	struct stat st;
	int rc = 0;

	while (end && !rc) {
		end = strchr(end + 1, '/');
		snprintf(part, sizeof(part), "%.*s", end ? (int)(end - folder) : PATH_MAX, folder);
		if (stat(part, &st))
			rc = pem_db__fail(error, -errno, "%s can't be read: %s", part,
					  strerror(errno));
		else
			rc = check_owner(part, &st, end || !all, error);
	}
	if (!rc && !stat("/", &st))
		rc = check_owner("/", &st, true, error);
	return rc;
}

/* Make a folder and those above it that are missing, for this user alone. */
static int make_folders(char *folder, struct pem_error *error)
{
	char real[PATH_MAX], *slash;
	int rc = 0;

	if (access(folder, F_OK) == 0 || errno != ENOENT)
		return 0;
	slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = '\0';
		rc = make_folders(folder, error);
		/* Nothing is made where others decide on what. */
		if (!rc && realpath(folder, real))
			rc = check_folders(real, false, error);
		*slash = '/';
	}
	if (!rc && mkdir(folder, 0700) && errno != EEXIST)
		return pem_db__fail(error, -errno, "%s can't be made: %s", folder, strerror(errno));
	return rc;
}

/*
 * The path of a file with its folder's true name, in a folder that nobody else can change or
 * exchange. make: missing folders are made.
 */
static int resolve(const char *path, bool make, char *resolved, size_t bytes,
		   struct pem_error *error)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX], real[PATH_MAX];
	int rc = 0;

	snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (make)
		rc = make_folders(folder, error);
	if (!rc && !realpath(folder, real))
		rc = errno == ENOENT
			     ? pem_db__fail(error, -ENOENT,
					    "there is no database %s yet, and no folder for it",
					    path)
			     : pem_db__fail(error, -errno, "%s can't be read: %s", folder,
					    strerror(errno));
	if (!rc)
		rc = check_folders(real, true, error);
	if (!rc &&
	    snprintf(resolved, bytes, "%s%s", strcmp(real, "/") ? real : "", slash) >= (int)bytes)
		rc = pem_db__fail(error, -ENAMETOOLONG, "the path %s is too long", path);
	return rc;
}

/* Open or make the file, to see whose it is. SQLite opens it by its path then. */
static int check_file(const char *path, bool read_only, struct pem_error *error)
{
	int flags = read_only ? O_RDONLY : O_RDWR | O_CREAT, fd, rc;
	struct stat st;

	fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 && errno == ENOENT && read_only)
		return pem_db__fail(error, -ENOENT, "there is no database %s yet", path);
	if (fd < 0 && errno == ELOOP)
		return pem_db__fail(error, -EACCES,
				    "%s is a symbolic link, which may lead anywhere: name the file",
				    path);
	if (fd < 0)
		return pem_db__fail(error, -errno, "%s can't be opened: %s", path, strerror(errno));
	if (fstat(fd, &st))
		rc = pem_db__fail(error, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = pem_db__fail(error, -EBADMSG, "%s is no file", path);
	else
		rc = check_owner(path, &st, false, error);
	close(fd);
	return rc;
}

static int open_file(struct pem_database *db, const char *given, struct pem_error *error)
{
	const char *path = given && !strncmp(given, "file:", 5) ? given + 5 : given;
	char own[PATH_MAX], whole[PATH_MAX];
	int rc = 0;

	if (!path) {
		rc = default_path(own, sizeof(own), error);
		path = own;
	} else if (path[0] != '/') {
		if (!getcwd(whole, sizeof(whole)))
			return pem_db__fail(error, -errno, "this folder: %s", strerror(errno));
		if (snprintf(own, sizeof(own), "%s/%s", whole, path) >= (int)sizeof(own))
			return pem_db__fail(error, -ENAMETOOLONG, "the path %s is too long", path);
		path = own;
	} else if (strlen(path) >= PATH_MAX) {
		return pem_db__fail(error, -ENAMETOOLONG, "the path %s is too long", path);
	}
	if (!rc)
		rc = resolve(path, !given && !db->options.read_only, db->location,
			     sizeof(db->location), error);
	if (!rc)
		rc = check_file(db->location, db->options.read_only, error);
	if (rc)
		return rc;
	db->driver = &pem_db_sqlite;
	db->connection = db->driver->open(db->location, db->options.read_only, error);
	return db->connection ? 0 : -errno;
}

/* A URL without its user, password and options: they stand before '@' and behind '?'. */
static void location_of(const char *url, char *location, size_t bytes)
{
	const char *authority = strstr(url, "//") + 2, *at;
	size_t n = strcspn(authority, "/?");

	at = memrchr(authority, '@', n);
	if (at)
		authority = at + 1;
	snprintf(location, bytes, "postgresql://%.*s", (int)strcspn(authority, "?"), authority);
}

/* The plugin lies in the folder 'pem' beside libpem. */
static int load_driver(struct pem_database *db, struct pem_error *error)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)pem_version, &info) || !info.dli_fname)
		return pem_db__fail(error, -ENOENT, "libpem's folder is unknown");
	slash = strrchr(info.dli_fname, '/');
	if (!slash || snprintf(path, sizeof(path), "%.*s/pem/database-postgresql.so",
			       (int)(slash - info.dli_fname), info.dli_fname) >= (int)sizeof(path))
		return pem_db__fail(error, -ENOENT, "libpem's folder is unknown");
	db->plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	db->driver = db->plugin ? dlsym(db->plugin, "pem_db_postgresql") : NULL;
	if (!db->driver)
		return pem_db__fail(error, -ENOTSUP,
				    "databases on servers need %s, which is built if libpq is "
				    "installed: %s",
				    path, dlerror());
	return 0;
}

static int open_server(struct pem_database *db, const char *url, struct pem_error *error)
{
	int rc = load_driver(db, error);

	if (rc)
		return rc;
	location_of(url, db->location, sizeof(db->location));
	db->connection = db->driver->open(url, db->options.read_only, error);
	return db->connection ? 0 : -errno;
}

struct pem_database *pem_database__open(const char *url, const struct pem_database_options *options,
					struct pem_error *error)
{
	struct pem_database *db = calloc(1, sizeof(*db));
	int rc = 0;

	if (!db) {
		errno = -pem_db__fail(error, -ENOMEM, "out of memory");
		return NULL;
	}
	if (options)
		rc = pem_sized__read(&db->options, sizeof(db->options), options,
				     sizeof(db->options));
	if (rc)
		pem_db__fail(error, rc, "the options have a size that no version of them has");
	if (!url)
		url = secure_getenv("PEM_DB");
	if (url && *url == '\0')
		url = NULL;
	if (!rc)
		rc = url && is_server(url) ? open_server(db, url, error)
					   : open_file(db, url, error);
	if (!rc)
		rc = pem_db__upgrade(db, error);
	if (!rc)
		return db;
	pem_database__close(db);
	errno = -rc;
	return NULL;
}

void pem_database__close(struct pem_database *db)
{
	if (!db)
		return;
	if (db->connection)
		db->driver->close(db->connection);
	if (db->plugin)
		dlclose(db->plugin);
	free(db);
}

const char *pem_database__location(const struct pem_database *db)
{
	return db->location;
}

int pem_database__uuid(char text[40])
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	snprintf(text, 40, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	return 0;
}
