/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtime_dir.c - finding, or making, this user's runtime directory
 *
 * Signal handlers call this, and so do programs whose malloc may not be called: there is no
 * snprintf and no readdir.
 *
 * In /dev/shm and /tmp every user can make folders, and so take another user's name first. So the
 * usual name, pem-UID, is not the only one. If it is taken, the user's folder has 64 random bits in
 * its name, and is found by its owner. In a user namespace the user mostly has root's number, and
 * the usual name is then root's. The user's number outside the namespace is tried next. If a user
 * has several folders, the first by name counts. Processes that start at the same moment, when
 * there is none, may choose different folders. Later processes choose the same one, and a consumer
 * that searches a user's folders finds all.
 */
#include "runtime_dir.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANDOM_DIGITS 16u
#define MAKE_TRIES 8u
/* Owner of files of users outside the user namespace, in a kernel's default configuration. */
#define OVERFLOW_UID 65534u

bool pem_path__append(char *path, size_t bytes, size_t *used, const char *text)
{
	size_t length = strlen(text);

	if (length >= bytes - *used)
		return false;
	memcpy(path + *used, text, length + 1);
	*used += length;
	return true;
}

bool pem_path__append_number(char *path, size_t bytes, size_t *used, uint64_t number, unsigned base,
			     unsigned digits)
{
	char text[24];
	size_t i = sizeof(text);

	text[--i] = 0;
	do {
		text[--i] = "0123456789abcdef"[number % base];
		number /= base;
	} while (digits ? sizeof(text) - 1 - i < digits : number != 0);
	return pem_path__append(path, bytes, used, text + i);
}

uint64_t pem_take_number(const char **at)
{
	uint64_t number = 0;

	while (**at == ' ' || **at == '\t' || **at == '\n')
		++*at;
	for (; **at >= '0' && **at <= '9'; ++*at)
		number = number * 10 + (uint64_t)(**at - '0');
	return number;
}

bool pem_is_runtime_name(const char *name, uid_t uid)
{
	char usual[24];
	size_t length = 0;

	pem_path__append(usual, sizeof(usual), &length, "pem-");
	pem_path__append_number(usual, sizeof(usual), &length, uid, 10, 0);
	if (strncmp(name, usual, length))
		return false;
	name += length;
	return !*name || (*name == '-' && strspn(name + 1, "0123456789abcdef") == RANDOM_DIGITS &&
			  !name[1 + RANDOM_DIGITS]);
}

static bool parent_is_trusted(char *path, uid_t uid)
{
	char *slash = strrchr(path, '/');
	struct stat st;
	int result;

	if (!slash)
		return false;
	*slash = 0;
	result = stat(slash == path ? "/" : path, &st);
	*slash = '/';
	return !result && (st.st_uid == uid || !st.st_uid ||
			   (st.st_uid == OVERFLOW_UID && st.st_mode & S_ISVTX));
}

bool pem_parent_is_trusted(char *path)
{
	return parent_is_trusted(path, geteuid());
}

static bool is_private(const struct stat *st, uid_t uid)
{
	return S_ISDIR(st->st_mode) && st->st_uid == uid && !(st->st_mode & 022);
}

/*
 * This process's user. Who only looks for a folder asks the kernel for files alone. A process that
 * began as one user still is that user, or began as root: then it trusts root's files, which it can
 * open no more. One that began with another effective user may have gone back to the real one.
 */
static uid_t own_uid(bool only_find)
{
	const uid_t first = (uid_t)getauxval(AT_EUID);

	return only_find && first == (uid_t)getauxval(AT_UID) ? first : geteuid();
}

/* only_find: return -ENODATA where the folder would have to be made. */
static int make_private_folder(const char *path, bool only_find)
{
	struct stat st;

	/* Mostly it is there: looking takes no lock of its parent, which all processes share. */
	if (only_find && lstat(path, &st))
		return errno == ENOENT ? -ENODATA : -errno;
	if (!only_find && lstat(path, &st) &&
	    (errno != ENOENT || (mkdir(path, 0700) && errno != EEXIST) || lstat(path, &st)))
		return -errno;
	return is_private(&st, own_uid(only_find)) ? 0 : -EPERM;
}

struct search {
	int fd;
	char name[48]; /* The user's first folder by name; "": none */
};

static void consider(const char *name, void *arg)
{
	struct search *search = arg;
	struct stat st;

	if (pem_is_runtime_name(name, geteuid()) &&
	    (!search->name[0] || strcmp(name, search->name) < 0) &&
	    !fstatat(search->fd, name, &st, AT_SYMLINK_NOFOLLOW) && is_private(&st, geteuid()))
		memcpy(search->name, name, strlen(name) + 1);
}

static bool find(struct search *search)
{
	search->name[0] = 0;
	pem_visit_folder(search->fd, consider, search);
	return search->name[0] != 0;
}

/* Make a folder whose name nobody can have guessed. Returns 0, or -errno. */
static int make_random(int fd, char *name, size_t bytes)
{
	uint64_t random;
	size_t used;
	unsigned i;

	for (i = 0; i < MAKE_TRIES; i++) {
		if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
			return -EAGAIN;
		used = 0;
		if (!pem_path__append(name, bytes, &used, "pem-") ||
		    !pem_path__append_number(name, bytes, &used, geteuid(), 10, 0) ||
		    !pem_path__append(name, bytes, &used, "-") ||
		    !pem_path__append_number(name, bytes, &used, random, 16, RANDOM_DIGITS))
			return -ENAMETOOLONG;
		if (!mkdirat(fd, name, 0700))
			return 0;
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

/*
 * Find, or make, this user's folder in base, where the usual name is taken. Returns 0, or -errno.
 */
static int take_other(const char *base, char *path, size_t bytes)
{
	struct search search = {.fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	char made[sizeof(search.name)];
	int result = 0;
	size_t used = 0;

	if (search.fd < 0)
		return -errno;
	if (!find(&search)) {
		result = make_random(search.fd, made, sizeof(made));
		/* Another process may have made a folder meanwhile. The first by name counts. */
		if (!result && find(&search) && strcmp(search.name, made))
			unlinkat(search.fd, made, AT_REMOVEDIR);
	}
	if (!result && !search.name[0])
		result = -ENOENT;
	if (!result && (!pem_path__append(path, bytes, &used, base) ||
			!pem_path__append(path, bytes, &used, "/") ||
			!pem_path__append(path, bytes, &used, search.name)))
		result = -ENAMETOOLONG;
	close(search.fd);
	return result;
}

/* Make the folder 'pem' in a folder that belongs to this user alone, such as XDG_RUNTIME_DIR. */
static int take_in(char *path, size_t bytes, size_t used, bool only_find)
{
	if (!pem_path__append(path, bytes, &used, "/pem"))
		return -ENAMETOOLONG;
	return pem_parent_is_trusted(path) ? make_private_folder(path, only_find) : -EPERM;
}

/* Make it in /run/user/UID. Programs that cron or su starts have no variable that names it. */
static int take_in_login(char *path, size_t bytes, bool only_find)
{
	const uid_t uid = own_uid(only_find);
	size_t used = 0;
	struct stat st;

	if (!pem_path__append(path, bytes, &used, "/run/user/") ||
	    !pem_path__append_number(path, bytes, &used, uid, 10, 0))
		return -ENAMETOOLONG;
	if (lstat(path, &st))
		return -errno;
	return is_private(&st, uid) ? take_in(path, bytes, used, only_find) : -EPERM;
}

/* Return this user's number outside the user namespace. If that is not known: the number inside. */
static uid_t outer_uid(void)
{
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	uint64_t inside, outside, count;
	uid_t uid = geteuid();
	char text[1024];
	const char *at = text;
	ssize_t n;

	if (fd < 0)
		return uid;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	do {
		inside = pem_take_number(&at);
		outside = pem_take_number(&at);
		count = pem_take_number(&at);
		if (uid >= inside && uid - inside < count)
			return (uid_t)(outside + uid - inside);
	} while (count);
	return uid;
}

/* Make the folder with a user's usual name. */
static int take_usual(const char *base, uid_t uid, char *path, size_t bytes, bool only_find)
{
	size_t used = 0;

	if (!pem_path__append(path, bytes, &used, base) ||
	    !pem_path__append(path, bytes, &used, "/pem-") ||
	    !pem_path__append_number(path, bytes, &used, uid, 10, 0))
		return -ENAMETOOLONG;
	return make_private_folder(path, only_find);
}

static int take_shared(const char *base, char *path, size_t bytes, bool only_find)
{
	int result = take_usual(base, own_uid(only_find), path, bytes, only_find);
	uid_t outer;

	if (result != -EPERM)
		return result;
	if (only_find)
		return -ENODATA;
	outer = outer_uid();
	if (outer != geteuid())
		result = take_usual(base, outer, path, bytes, false);
	return result == -EPERM ? take_other(base, path, bytes) : result;
}

static int runtime_dir(char *path, size_t bytes, bool only_find)
{
	static const char *const bases[] = {"/dev/shm", "/tmp"};
	const char *chosen = pem_variable("PEM_RUNTIME_DIR"),
		   *xdg = pem_variable("XDG_RUNTIME_DIR");
	int result = -ENOENT;
	size_t used = 0, i;

	if (chosen && chosen[0] == '/') {
		if (!pem_path__append(path, bytes, &used, chosen))
			return -ENAMETOOLONG;
		return parent_is_trusted(path, own_uid(only_find))
			       ? make_private_folder(path, only_find)
			       : -EPERM;
	}
	if (xdg && xdg[0] == '/' && pem_path__append(path, bytes, &used, xdg))
		result = take_in(path, bytes, used, only_find);
	if (result && result != -ENODATA)
		result = take_in_login(path, bytes, only_find);
	for (i = 0; result && result != -ENODATA && i < PEM_ARRAY_SIZE(bases); i++)
		result = take_shared(bases[i], path, bytes, only_find);
	return result;
}

int pem_runtime_dir(char *path, size_t bytes)
{
	return path && bytes ? runtime_dir(path, bytes, false) : -EINVAL;
}

bool pem_runtime_dir__is_there(char *path, size_t bytes)
{
	return !runtime_dir(path, bytes, true);
}
