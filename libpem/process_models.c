/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * process_models.c - the models in the files of a running process: its program, and the libraries
 * that it has loaded
 *
 * The process may be hostile, and so may its files: each number of /proc/PID/maps and of a file is
 * checked, and each kind of reading has a limit. Only regular files are opened.
 */
#include "program_models.h"
#include "util.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 1024u
#define LINES_MAX 65536u
/* As in program_needs.c: bytes of models and of tables, of all files. */
#define MODELS_MAX (16u << 20)
#define TABLES_MAX (256u << 20)

struct seen {
	dev_t device;
	ino_t inode;
};

struct search {
	uint32_t pid;
	struct seen seen[FILES_MAX];
	size_t count;
	uint64_t models_left, tables_left;
	pem_model_visit visit;
	void *arg;
	int models;
};

/* Was the file read before? If not, remember it. */
static bool is_seen(struct search *s, const struct pem_elf_file *f)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		if (s->seen[i].device == f->device && s->seen[i].inode == f->inode)
			return true;
	}
	if (s->count == FILES_MAX)
		return true;
	s->seen[s->count++] = (struct seen){f->device, f->inode};
	return false;
}

/*
 * Read one file. Returns 0, also for a file that has no models or is damaged: the process runs, so
 * what it runs is known by its other files. Otherwise what ends the search.
 */
static int read_file(struct search *s, const char *path, const char *origin)
{
	struct pem_elf_file f;
	int result = pem_elf_file__open(&f, path, &s->tables_left);

	if (result)
		return result == -EFBIG || result == -ENOMEM ? result : 0;
	if (!is_seen(s, &f)) {
		result = pem_elf_file__each_model(&f, origin, &s->models_left, s->visit, s->arg);
		if (result > 0)
			s->models += result;
	}
	pem_elf_file__close(&f);
	return result == -EFBIG || result == -ENOMEM || result == -ECANCELED ? result : 0;
}

/*
 * The path of a line of /proc/PID/maps whose memory has code, and where the memory lies. NULL: it
 * has none.
 */
static char *mapped_path(char *line, unsigned long *start, unsigned long *end)
{
	char rights[5], *path;

	if (sscanf(line, "%lx-%lx %4s", start, end, rights) != 3 || rights[2] != 'x')
		return NULL;
	path = strchr(line, '/');
	if (path)
		path[strcspn(path, "\n")] = '\0';
	return path;
}

static bool belongs_to_caller(const char *folder)
{
	struct stat st;

	return !stat(folder, &st) && st.st_uid == geteuid();
}

static int read_mapped(struct search *s, FILE *maps)
{
	char path[PATH_MAX + 32], *line = NULL, *mapped, last[PATH_MAX] = "";
	size_t capacity = 0, lines = 0;
	unsigned long start, end;
	bool is_own;
	int result = 0;

	snprintf(path, sizeof(path), "/proc/%u", s->pid);
	is_own = belongs_to_caller(path);

	while (!result && ++lines <= LINES_MAX && getline(&line, &capacity, maps) > 0) {
		mapped = mapped_path(line, &start, &end);
		if (!mapped || strlen(mapped) >= sizeof(last) || !strcmp(mapped, last))
			continue;
		strcpy(last, mapped);
		/*
		 * The process may have another root. Another user's is not walked: it may lead
		 * anywhere. The kernel lets those who may read such a process open the mapped file.
		 */
		if (is_own)
			snprintf(path, sizeof(path), "/proc/%u/root%s", s->pid, mapped);
		else
			snprintf(path, sizeof(path), "/proc/%u/map_files/%lx-%lx", s->pid, start,
				 end);
		result = read_file(s, path, mapped);
	}
	free(line);
	return result;
}

/* The program's file by its link, which leads to it even if its name is gone. */
static int read_program(struct search *s)
{
	char link[48], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/exe", s->pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return 0;
	path[n] = '\0';
	return read_file(s, link, path);
}

int pem_process__models(uint32_t pid, pem_model_visit visit, void *arg, struct pem_error *error)
{
	struct search *s = calloc(1, sizeof(*s));
	char name[48], comm[PEM_NAME_BYTES];
	FILE *maps;
	int result;

	if (!s)
		return pem_error__set(error, -ENOMEM, "out of memory");
	s->pid = pid;
	s->models_left = MODELS_MAX;
	s->tables_left = TABLES_MAX;
	s->visit = visit;
	s->arg = arg;
	snprintf(name, sizeof(name), "/proc/%u/maps", pid);
	maps = fopen(name, "re");
	if (!maps) {
		result = errno == ENOENT ? -ESRCH : -errno;
		goto fail;
	}
	result = read_program(s);
	if (!result)
		result = read_mapped(s, maps);
	fclose(maps);
	if (!result)
		result = s->models;
fail:
	free(s);
	if (result >= 0 || result == -ECANCELED)
		return result;
	if (result == -ESRCH)
		return pem_error__set(error, result, "there is no process %u", pid);
	pem_process_name(pid, comm);
	if (result == -EFBIG)
		return pem_error__set(error, -E2BIG,
				      "process %u (%s) has more than %u MiB of models or %u MiB of "
				      "tables in its files",
				      pid, comm, MODELS_MAX >> 20, TABLES_MAX >> 20);
	return pem_error__set(error, result,
			      "cannot read the files that process %u (%s) has loaded: %s; describe "
			      "its program's file",
			      pid, comm, strerror(-result));
}
