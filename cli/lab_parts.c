// SPDX-License-Identifier: MIT
/*
 * lab_parts.c - finds the machine that pem lab boots: its kernel, its file system, the emulator
 *
 * Not here: booting it (lab/).
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "pem/lab/aarch64"
#define LIST_MOST (1u << 20)

/* Is a program of this name in PATH? */
static bool in_path(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];
	size_t n;

	for (; path != NULL && *path != '\0'; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		if ((size_t)snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, name) <
			    sizeof(file) &&
		    access(file, X_OK) == 0)
			return true;
	}
	return false;
}

/* Read the list of files, with a newline in front of it. Returns NULL with errno. */
static char *read_list(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = malloc(LIST_MOST + 2);
	ssize_t got = -1;

	if (fd >= 0 && text != NULL)
		got = read(fd, text + 1, LIST_MOST);
	if (fd >= 0)
		close(fd);
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[0] = '\n';
	text[got + 1] = '\0';
	return text;
}

/* Set the paths of the files. False: a path is too long. */
static bool set_paths(struct cli_lab_parts *parts)
{
	const char *folder = parts->folder;
	const size_t bytes = sizeof(parts->kernel);

	return (size_t)snprintf(parts->kernel, bytes, "%s/vmlinuz", folder) < bytes &&
	       (size_t)snprintf(parts->image, bytes, "%s/initramfs.cpio", folder) < bytes;
}

int cli_lab_parts__find(struct cli_lab_parts *parts, struct pem_error *error)
{
	const char *own = getenv("PEM_LAB");
	char list[PATH_MAX];

	memset(parts, 0, sizeof(*parts));
	if (own != NULL && *own != '\0')
		snprintf(parts->folder, sizeof(parts->folder), "%s", own);
	else
		cli_library_file(FOLDER, parts->folder, sizeof(parts->folder));
	if (!set_paths(parts) || access(parts->kernel, R_OK) < 0 ||
	    access(parts->image, R_OK) < 0 ||
	    (size_t)snprintf(list, sizeof(list), "%s/files", parts->folder) >= sizeof(list)) {
		snprintf(error->text, sizeof(error->text),
			 "the lab's machine is not in %.300s: 'make lab' in pem's sources makes "
			 "it, 'make install-lab' puts it beside an installed pem, and PEM_LAB "
			 "names another folder",
			 parts->folder);
		return -ENOENT;
	}
	if (!in_path(CLI_LAB_EMULATOR)) {
		snprintf(error->text, sizeof(error->text),
			 CLI_LAB_EMULATOR " is not installed: it is in the package "
					  "qemu-system-arm");
		return -ENOENT;
	}
	parts->list = read_list(list);
	if (parts->list != NULL)
		return 0;
	snprintf(error->text, sizeof(error->text), "cannot read %.300s: %s", list, strerror(errno));
	return -ENOENT;
}

bool cli_lab_parts__has(const struct cli_lab_parts *parts, const char *path)
{
	const char *line = cli_format("\n%s\n", path);

	return strstr(parts->list, line) != NULL;
}

void cli_lab_parts__free(struct cli_lab_parts *parts)
{
	free(parts->list);
	parts->list = NULL;
}
