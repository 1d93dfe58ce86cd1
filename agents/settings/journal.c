/* SPDX-License-Identifier: MIT */
/*
 * journal.c - first values, on disk before they are changed; files read and replaced
 *
 * The journal is replaced as a whole before each change.
 */
#include "grow.h"
#include "ways.h"

#include <dirent.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <libgen.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define JOURNAL "journal"

/* --- files --- */

/*
 * Open the folder that a path is in. The path had no symbolic link when it was noted. A link that
 * is there now would lead root out of the folder of another user, who made it.
 */
static int open_folder(const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s/", (int)(strrchr(path, '/') - path), path);
	return (int)syscall(SYS_openat2, AT_FDCWD, folder, &how, sizeof(how));
}

static int open_to_read(const char *path)
{
	int folder = open_folder(path), fd, code;

	if (folder < 0)
		return -1;
	fd = openat(folder, strrchr(path, '/') + 1,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	code = errno;
	close(folder);
	errno = code;
	return fd;
}

int settings_content__read(struct settings_content *content, const char *path,
			   struct pem_error *error)
{
	int fd = open_to_read(path), code = errno;
	size_t room;
	ssize_t got = 0;

	*content = (struct settings_content){0};
	if (fd < 0 || fstat(fd, &content->stat)) {
		if (fd >= 0)
			close(fd);
		return settings_fail(error, -code, "%s can't be read: %s", path, strerror(code));
	}
	room = (size_t)content->stat.st_size;
	if (!S_ISREG(content->stat.st_mode))
		code = settings_fail(error, -EINVAL, "%s is not a regular file", path);
	else if (content->stat.st_size > SETTINGS_FILE_BYTES)
		code = settings_fail(error, -EFBIG, "%s has more than %u MiB", path,
				     SETTINGS_FILE_BYTES >> 20);
	else if (!(content->text = malloc(room + 1)))
		code = -ENOMEM;
	else
		code = 0;
	while (!code && content->bytes < room &&
	       (got = read(fd, content->text + content->bytes, room - content->bytes)) > 0)
		content->bytes += (size_t)got;
	if (!code && got < 0)
		code = settings_fail(error, -errno, "%s can't be read: %m", path);
	close(fd);
	if (!code) {
		content->text[content->bytes] = '\0';
		if (memchr(content->text, '\0', content->bytes))
			code = settings_fail(error, -EINVAL, "%s is not a text file", path);
	}
	if (code) {
		free(content->text);
		content->text = NULL;
	}
	return code;
}

/* FNV-1a. It tells whether somebody changed the file, not whether somebody forged it. */
int64_t settings_content__hash(const struct settings_content *content)
{
	uint64_t hash = 0xcbf29ce484222325u;
	size_t i;

	for (i = 0; i < content->bytes; i++)
		hash = (hash ^ (unsigned char)content->text[i]) * 0x100000001b3u;
	return (int64_t)hash;
}

/* Give a new file the owner, mode and attributes of another one, and its times if dated. */
static int make_alike(int fd, const char *like, bool dated)
{
	char names[4096], value[4096];
	int from = open_to_read(like), rc;
	struct stat stat;
	ssize_t bytes, got, i;

	if (from < 0)
		return -1;
	/* The owner of the folder may have put a program there that runs with other rights. */
	rc = fstat(from, &stat) || fchown(fd, stat.st_uid, stat.st_gid) ||
	     fchmod(fd, stat.st_mode & 0777);
	bytes = flistxattr(from, names, sizeof(names));
	for (i = 0; !rc && i < bytes; i += (ssize_t)strlen(names + i) + 1) {
		got = fgetxattr(from, names + i, value, sizeof(value));
		/* Of another attribute space, which a file system may lack. */
		if (got >= 0 && fsetxattr(fd, names + i, value, (size_t)got, 0))
			rc = errno != ENOTSUP && errno != EPERM;
	}
	if (!rc && dated)
		rc = futimens(fd, (const struct timespec[]){stat.st_atim, stat.st_mtim});
	close(from);
	return rc ? -1 : 0;
}

static int write_all(int fd, const char *text, size_t bytes)
{
	ssize_t put;

	for (; bytes; text += put, bytes -= (size_t)put) {
		put = write(fd, text, bytes);
		if (put <= 0)
			return -1;
	}
	return 0;
}

int settings_content__write(const struct settings_content *content, const char *path,
			    const char *like, bool dated, struct pem_error *error)
{
	const char *name = strrchr(path, '/') + 1;
	int folder = open_folder(path), fd = -1, rc;
	char temporary[NAME_MAX + 1];

	/* One name always, so that what a killed process left is found. */
	snprintf(temporary, sizeof(temporary), ".%.200s.pem-new", name);
	if (folder >= 0) {
		unlinkat(folder, temporary, 0);
		fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	}
	rc = fd < 0 || write_all(fd, content->text, content->bytes) ||
	     (like && make_alike(fd, like, dated)) || fsync(fd) ||
	     renameat(folder, temporary, folder, name) || fsync(folder);
	if (rc)
		rc = settings_fail(
			error, -errno,
			"%s can't be replaced by a file with the same owner and mode: %m", path);
	if (fd >= 0) {
		close(fd);
		unlinkat(folder, temporary, 0);
	}
	if (folder >= 0)
		close(folder);
	return rc;
}

/* --- the journal --- */

void settings_change__free(struct settings_change *change)
{
	free(change->key);
	free(change->in);
	free(change->first);
}

struct settings_change *settings_journal__find(const struct settings_agent *agent,
					       enum settings_way way, const char *key,
					       const char *in)
{
	size_t i;

	for (i = 0; i < agent->count; i++) {
		if (agent->changes[i].way == (int)way && !strcmp(agent->changes[i].key, key) &&
		    !strcmp(agent->changes[i].in, in))
			return &agent->changes[i];
	}
	return NULL;
}

static int append(struct settings_agent *agent, int way, const char *key, const char *in,
		  const char *first)
{
	struct settings_change change = {.way = way, .key = strdup(key), .in = strdup(in)};

	change.first = first ? strdup(first) : NULL;
	if (!change.key || !change.in || (first && !change.first) ||
	    pem_grow(&agent->changes, sizeof(change), agent->count + 1, &agent->capacity)) {
		settings_change__free(&change);
		return -ENOMEM;
	}
	agent->changes[agent->count++] = change;
	return 0;
}

/* Remove first contents and halves of files, which no change needs. */
static void sweep(const struct settings_agent *agent)
{
	DIR *folder = opendir(agent->path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		if (!strncmp(entry->d_name, "first-", 6) || strstr(entry->d_name, ".pem-new"))
			unlinkat(agent->folder, entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
}

int settings_journal__save(struct settings_agent *agent, struct pem_error *error)
{
	json_object *list = json_object_new_array(), *line;
	struct settings_content content = {0};
	char path[PATH_MAX];
	size_t i;
	int rc = 0;

	for (i = 0; i < agent->count; i++) {
		const struct settings_change *change = &agent->changes[i];

		line = json_object_new_array();
		json_object_array_add(line, json_object_new_int(change->way));
		json_object_array_add(line, json_object_new_string(change->key));
		json_object_array_add(line, json_object_new_string(change->in));
		json_object_array_add(line,
				      change->first ? json_object_new_string(change->first) : NULL);
		json_object_array_add(line, json_object_new_int64(change->written[0]));
		json_object_array_add(line, json_object_new_int64(change->written[1]));
		json_object_array_add(list, line);
	}
	snprintf(path, sizeof(path), "%s/" JOURNAL, agent->path);
	content.text = (char *)json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN);
	content.bytes = strlen(content.text);
	if (agent->count)
		rc = settings_content__write(&content, path, NULL, false, error);
	else if (unlink(path) && errno != ENOENT)
		rc = settings_fail(error, -errno, "%s can't be removed: %m", path);
	else
		sweep(agent);
	json_object_put(list);
	return rc;
}

int settings_journal__add(struct settings_agent *agent, enum settings_way way, const char *key,
			  const char *in, const char *first, struct pem_error *error)
{
	int rc = append(agent, (int)way, key, in, first);

	if (rc)
		return rc;
	rc = settings_journal__save(agent, error);
	if (rc)
		settings_change__free(&agent->changes[--agent->count]);
	return rc;
}

/* Take the journal's changes into the list. */
static int take(struct settings_agent *agent, const char *text)
{
	json_object *list = json_tokener_parse(text), *line;
	const char *words[3];
	size_t i, k;
	int rc = json_object_is_type(list, json_type_array) ? 0 : -EBADMSG;

	for (i = 0; !rc && i < json_object_array_length(list); i++) {
		line = json_object_array_get_idx(list, i);
		if (!json_object_is_type(line, json_type_array)) {
			rc = -EBADMSG;
			break;
		}
		for (k = 0; k < 3; k++)
			words[k] = json_object_get_string(json_object_array_get_idx(line, 1 + k));
		rc = words[0] && words[1]
			     ? append(agent,
				      json_object_get_int(json_object_array_get_idx(line, 0)),
				      words[0], words[1], words[2])
			     : -EBADMSG;
		for (k = 0; !rc && k < 2; k++)
			agent->changes[i].written[k] =
				json_object_get_int64(json_object_array_get_idx(line, 4 + k));
	}
	json_object_put(list);
	return rc;
}

int settings_journal__open(struct settings_agent *agent, const char *folder,
			   struct pem_error *error)
{
	struct settings_content journal;
	char path[PATH_MAX];
	struct stat stat;
	int rc;

	agent->path = realpath(folder, NULL);
	agent->folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!agent->path || agent->folder < 0 || fstat(agent->folder, &stat))
		return settings_fail(error, -errno, "the folder %s can't be used: %m", folder);
	if (stat.st_uid != geteuid() || stat.st_mode & 077)
		return settings_fail(error, -EPERM,
				     "%s has to be yours, and closed to others (chmod 700)",
				     folder);
	if (flock(agent->folder, LOCK_EX | LOCK_NB))
		return settings_fail(error, -EBUSY, "another exploration uses %s", folder);
	snprintf(path, sizeof(path), "%s/" JOURNAL, agent->path);
	rc = settings_content__read(&journal, path, error);
	if (rc == -ENOENT)
		return settings_journal__save(agent, error);
	if (!rc)
		rc = take(agent, journal.text);
	if (rc == -EBADMSG)
		settings_fail(error, rc,
			      "%s is damaged, so first values are unknown: restore settings by "
			      "hand, then remove it",
			      path);
	free(journal.text);
	return rc;
}
