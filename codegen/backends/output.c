/* SPDX-License-Identifier: MIT */
/*
 * output.c - generated files: kept in memory until all are complete, then written only if they
 * differ
 */
#include "backends/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output_file {
	char *name;
	char *text;
	size_t bytes;
	FILE *stream;
	int is_starter; /* A file of this name is never written over. */
};

struct pem_output {
	/* Each is allocated by itself, because a stream keeps the addresses of text and bytes. */
	struct output_file **files;
	size_t count;
};

struct pem_output *pem_output__new(void)
{
	struct pem_output *out = pem_xrealloc(NULL, 1, sizeof(*out));

	memset(out, 0, sizeof(*out));
	return out;
}

FILE *pem_output__file(struct pem_output *out, const char *name)
{
	struct output_file *file = pem_xrealloc(NULL, 1, sizeof(*file));

	memset(file, 0, sizeof(*file));
	file->name = pem_xstrdup(name);
	file->stream = open_memstream(&file->text, &file->bytes);
	if (!file->stream) {
		pem_complain(stderr, "out of memory");
		exit(1);
	}
	out->files = pem_xgrow(out->files, out->count, sizeof(struct output_file *));
	out->files[out->count++] = file;
	return file->stream;
}

FILE *pem_output__starter(struct pem_output *out, const char *name)
{
	FILE *stream = pem_output__file(out, name);

	out->files[out->count - 1]->is_starter = 1;
	return stream;
}

const char *pem_output__name(const struct pem_output *out, size_t i)
{
	return i < out->count ? out->files[i]->name : NULL;
}

/* Does the file at path have exactly these bytes? */
static int is_unchanged(const char *path, const char *text, size_t bytes)
{
	FILE *f = fopen(path, "re");
	char buffer[8192];
	size_t n, at = 0;
	int same = 1;

	if (!f)
		return 0;
	while (same && (n = fread(buffer, 1, sizeof(buffer), f)) > 0) {
		same = n <= bytes - at && !memcmp(buffer, text + at, n);
		at += n;
	}
	same = same && !ferror(f) && at == bytes;
	fclose(f);
	return same;
}

static int write_all(int fd, const char *text, size_t bytes)
{
	ssize_t n;

	while (bytes) {
		n = write(fd, text, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/*
 * The rename makes the file appear. So a reader sees either the complete old file or the complete
 * new one.
 */
static int replace(const char *path, const char *text, size_t bytes)
{
	char *temporary = pem_xprintf("%s.XXXXXX", path);
	mode_t mask = umask(0);
	int fd, r;

	umask(mask);
	fd = mkostemp(temporary, O_CLOEXEC);
	r = fd < 0 ? -errno : write_all(fd, text, bytes);
	if (fd >= 0) {
		if (!r && fchmod(fd, 0666 & ~mask))
			r = -errno;
		if (close(fd) && !r)
			r = -errno;
		if (!r && rename(temporary, path))
			r = -errno;
		if (r)
			unlink(temporary);
	}
	free(temporary);
	return r;
}

static int make_folders(const char *directory)
{
	char *path = pem_xstrdup(directory), *p;
	int r = 0;

	for (p = path + 1; *p && !r; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0777) && errno != EEXIST)
			r = -errno;
		*p = '/';
	}
	if (!r && mkdir(path, 0777) && errno != EEXIST)
		r = -errno;
	free(path);
	return r;
}

/* Make the folders in a file's name below an existing directory. */
static int make_parents(const char *path)
{
	char *folder = pem_xstrdup(path);
	int r;

	*strrchr(folder, '/') = '\0';
	r = make_folders(folder);
	free(folder);
	return r;
}

int pem_output__commit(struct pem_output *out, const char *directory, FILE *errors)
{
	struct output_file *file;
	int r = make_folders(directory);
	char *path;
	size_t i;

	if (r)
		pem_complain(errors,
			     "folder '%s' can't be made: %s; expected one that may "
			     "be "
			     "written, after -o",
			     directory, strerror(-r));
	for (i = 0; i < out->count && !r; i++) {
		file = out->files[i];
		path = pem_xprintf("%s/%s", directory, file->name);
		r = fflush(file->stream) ? -ENOMEM : 0;
		if (!r && strchr(file->name, '/'))
			r = make_parents(path);
		if (!r && file->is_starter && !access(path, F_OK)) {
			free(path);
			continue;
		}
		if (!r && !is_unchanged(path, file->text, file->bytes))
			r = replace(path, file->text, file->bytes);
		if (r)
			pem_complain(errors,
				     "'%s' can't be written: %s; expected a folder "
				     "that "
				     "may be written and has room",
				     path, strerror(-r));
		free(path);
	}
	return r;
}

void pem_output__free(struct pem_output *out)
{
	size_t i;

	if (!out)
		return;
	for (i = 0; i < out->count; i++) {
		fclose(out->files[i]->stream);
		free(out->files[i]->text);
		free(out->files[i]->name);
		free(out->files[i]);
	}
	free(out->files);
	free(out);
}

void pem_banner(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	size_t i;

	fprintf(f, "/* SPDX-License-Identifier: MIT */\n");
	fprintf(f, "/*\n * Made by pem-codegen: change the spec, not this file. FNV-1a of what it "
		   "is made from:\n");
	for (i = 0; i < set->count; i++) {
		if (!spec || spec == &set->specs[i])
			fprintf(f, " *	%016llx  %s (%s)\n", (unsigned long long)set->specs[i].hash,
				set->specs[i].provider, set->specs[i].file);
	}
	fprintf(f, " */\n");
}

void pem_put_c_escaped(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", f);
		else if (*text == '\t')
			fputs("\\t", f);
		else if (*text == '"' || *text == '\\' || *text == '?') /* '?': trigraphs */
			fprintf(f, "\\%c", *text);
		else if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			fprintf(f, "\\%03o", (unsigned)(unsigned char)*text);
		else
			fputc(*text, f);
	}
}
