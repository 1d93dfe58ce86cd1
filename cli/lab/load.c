// SPDX-License-Identifier: MIT
/* load.c - the user's files that go along into the lab, and where they lie there */
#include "lab.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int lab_path(const char *cwd, const char *name, char *path, size_t bytes)
{
	char joined[2 * PATH_MAX];
	size_t used = 0, n;
	const char *at;

	if ((size_t)snprintf(joined, sizeof(joined), "%s/%s", name[0] == '/' ? "" : cwd, name) >=
	    sizeof(joined))
		return -ENAMETOOLONG;
	path[0] = '\0';
	for (at = joined; *at != '\0'; at += n) {
		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (n == 0 || (n == 1 && at[0] == '.'))
			continue;
		if (n == 2 && at[0] == '.' && at[1] == '.') {
			while (used != 0 && path[--used] != '/')
				;
			path[used] = '\0';
			continue;
		}
		if (used + n + 2 > bytes)
			return -ENAMETOOLONG;
		used += (size_t)snprintf(path + used, bytes - used, "/%.*s", (int)n, at);
	}
	if (used == 0 && bytes > 1)
		snprintf(path, bytes, "/");
	return 0;
}

static bool is_below(const char *path, const char *folder)
{
	const size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

bool lab_path__is_hidden(const char *path)
{
	return is_below(path, "/proc") || is_below(path, "/sys") || is_below(path, "/lab") ||
	       (is_below(path, "/dev") && !is_below(path, "/dev/shm"));
}

struct lab_file *lab_load__add(struct lab_load *load, const char *source, int *status)
{
	struct lab_file *file = &load->files[load->count];
	struct stat st;

	*status = CLI_WRONG_INPUT;
	if (load->count == LAB_FILES_MAX) {
		cli_error(0, "at most %d files go along", LAB_FILES_MAX);
		return NULL;
	}
	if (stat(source, &st) < 0) {
		*status = errno == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
		cli_error(0, "%s: %s", source, strerror(errno));
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		cli_error(0, "%s is no file, and only files go along", source);
		return NULL;
	}
	if (lab_path(load->cwd, source, file->path, sizeof(file->path)) < 0) {
		cli_error(0, "the path of %s is too long", source);
		return NULL;
	}
	if (lab_path__is_hidden(file->path) || cli_lab_parts__has(&load->parts, file->path)) {
		cli_error(0, "the lab has a %s of its own: put yours elsewhere", file->path);
		return NULL;
	}
	file->source = source;
	load->count++;
	load->bytes += (uint64_t)st.st_size;
	*status = CLI_DONE;
	return file;
}
