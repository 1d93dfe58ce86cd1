/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * program_models.c - the models in a program file, found without running anything
 *
 * A generated stub puts the model of its provider in the section 'pem_model': a text with its NUL
 * for each object file. Linkers join these texts, and stripping keeps them. Every file is hostile
 * input: each offset and size is checked against the file, and each read has a limit.
 *
 * Not here: which file a needed library is (program_needs.c), what the texts mean (model_parse.c).
 */
#include "program_models.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTION "pem_model"
#define SECTIONS_MAX 65536u
#define NAMES_MAX (1u << 20) /* bytes of a table of names */
#define DYNAMIC_MAX (1u << 16)

/*
 * Return bytes of the file, with a NUL behind them. The caller frees them. NULL with errno. EINVAL:
 * the file does not have all of them.
 */
static void *read_part(const struct pem_elf_file *f, uint64_t offset, uint64_t bytes, uint64_t most)
{
	char *part;
	ssize_t n;
	size_t done = 0;

	if (bytes > most || offset > f->bytes || bytes > f->bytes - offset) {
		errno = EINVAL;
		return NULL;
	}
	part = malloc(bytes + 1);
	if (!part)
		return NULL;
	while (done < bytes) {
		n = pread(f->fd, part + done, bytes - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) { /* the file was cut meanwhile */
			free(part);
			errno = n ? errno : EINVAL;
			return NULL;
		}
		done += (size_t)n;
	}
	part[bytes] = '\0';
	return part;
}

/*
 * Read a table, as read_part does, and take its bytes from those that may be read. NULL with errno.
 * EFBIG: fewer are left.
 */
static void *read_table(const struct pem_elf_file *f, uint64_t offset, uint64_t bytes,
			uint64_t most)
{
	void *table;

	if (bytes <= most && bytes > *f->tables_left) {
		errno = EFBIG;
		return NULL;
	}
	table = read_part(f, offset, bytes, most);
	if (table)
		*f->tables_left -= bytes;
	return table;
}

static void *read_section_table(const struct pem_elf_file *f, const Elf64_Shdr *s, uint64_t most)
{
	return read_table(f, s->sh_offset, s->sh_size, most);
}

/* Read the table of sections and its names. */
static int read_sections(struct pem_elf_file *f, const Elf64_Ehdr *head)
{
	uint64_t count = head->e_shnum, names = head->e_shstrndx;
	Elf64_Shdr *first;

	if (!head->e_shoff)
		return 0;
	if (head->e_shentsize != sizeof(*first))
		return -EINVAL;
	/* Numbers too great for the header are in the first section. */
	if (!count || names == SHN_XINDEX) {
		first = read_table(f, head->e_shoff, sizeof(*first), sizeof(*first));
		if (!first)
			return -errno;
		count = count ? count : first->sh_size;
		names = names == SHN_XINDEX ? first->sh_link : names;
		free(first);
	}
	if (!count || count > SECTIONS_MAX || names >= count)
		return -EINVAL;
	f->sections =
		read_table(f, head->e_shoff, count * sizeof(*first), SECTIONS_MAX * sizeof(*first));
	if (!f->sections)
		return -errno;
	f->section_count = (size_t)count;
	f->names = read_section_table(f, &f->sections[names], NAMES_MAX);
	f->names_bytes = f->sections[names].sh_size;
	return f->names ? 0 : -errno;
}

/*
 * Open a regular file. Returns its descriptor, or -1 with errno. ENOEXEC: it is no regular file.
 * Opening a device may have an effect, and a FIFO may block. So the file is tested through a
 * descriptor that does not open it, and opened through the same one: another file that takes its
 * name meanwhile is not opened.
 */
static int open_regular(const char *path, struct stat *st)
{
	int handle = open(path, O_PATH | O_CLOEXEC), fd = -1, error;
	char self[32];

	if (handle < 0)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	if (!fstat(handle, st)) {
		if (S_ISREG(st->st_mode))
			fd = open(self, O_RDONLY | O_CLOEXEC);
		else
			errno = ENOEXEC;
	}
	error = errno;
	close(handle);
	errno = error;
	return fd;
}

int pem_elf_file__open(struct pem_elf_file *f, const char *path, uint64_t *tables_left)
{
	Elf64_Ehdr *head = NULL;
	struct stat st;
	int result;

	memset(f, 0, sizeof(*f));
	f->tables_left = tables_left;
	f->fd = open_regular(path, &st);
	if (f->fd < 0)
		return -errno;
	f->bytes = (uint64_t)st.st_size;
	f->device = st.st_dev;
	f->inode = st.st_ino;
	result = -ENOEXEC;
	if (f->bytes < sizeof(*head))
		goto fail;
	head = read_part(f, 0, sizeof(*head), sizeof(*head));
	if (!head) {
		result = -errno;
		goto fail;
	}
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    head->e_ident[EI_DATA] != ELFDATA2LSB ||
	    (head->e_type != ET_EXEC && head->e_type != ET_DYN))
		goto fail;
	f->machine = head->e_machine;
	result = read_sections(f, head);
	if (result)
		goto fail;
	free(head);
	return 0;
fail:
	free(head);
	pem_elf_file__close(f);
	return result;
}

void pem_elf_file__close(struct pem_elf_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->sections);
	free(f->names);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

static bool is_named(const struct pem_elf_file *f, const Elf64_Shdr *s, const char *name)
{
	/* The table has a NUL behind it. */
	return s->sh_name < f->names_bytes && !strcmp(f->names + s->sh_name, name);
}

/*
 * Call visit with each text of a section. If visit returns other than 0, the function ends with
 * -ECANCELED. Returns the number of texts, or -errno.
 */
static int visit_section(char *texts, size_t bytes, const char *origin, pem_model_visit visit,
			 void *arg)
{
	char *end, *text;
	int count = 0;

	for (text = texts; text < texts + bytes; text = end + 1) {
		end = memchr(text, '\0', (size_t)(texts + bytes - text));
		if (!end) /* a text in the file without a NUL */
			return -EINVAL;
		if (end == text) /* padding between object files */
			continue;
		if (visit(arg, text, (size_t)(end - text), origin))
			return -ECANCELED;
		count++;
	}
	return count;
}

int pem_elf_file__each_model(const struct pem_elf_file *f, const char *origin, uint64_t *left,
			     pem_model_visit visit, void *arg)
{
	const Elf64_Shdr *s;
	int count = 0, result;
	char *texts;
	size_t i;

	for (i = 0; i < f->section_count; i++) {
		s = &f->sections[i];
		if (s->sh_type != SHT_PROGBITS || s->sh_flags & SHF_COMPRESSED ||
		    !is_named(f, s, SECTION))
			continue;
		/* More than the file has is damage. */
		if (s->sh_size > *left && s->sh_size <= f->bytes)
			return -EFBIG;
		texts = read_part(f, s->sh_offset, s->sh_size, *left);
		if (!texts)
			return -errno;
		*left -= s->sh_size; /* also where sections overlap */
		result = visit_section(texts, s->sh_size, origin, visit, arg);
		free(texts);
		if (result < 0)
			return result;
		count += result;
	}
	return count;
}

int pem_elf_file__each_needed(const struct pem_elf_file *f,
			      int (*visit)(void *arg, int64_t tag, const char *text), void *arg)
{
	const Elf64_Shdr *s = NULL, *names;
	Elf64_Dyn *entries = NULL;
	char *text = NULL;
	int result = 0;
	size_t i;

	for (i = 0; i < f->section_count && !s; i++)
		s = f->sections[i].sh_type == SHT_DYNAMIC ? &f->sections[i] : NULL;
	if (!s)
		return 0;
	if (s->sh_link >= f->section_count)
		return -EINVAL;
	names = &f->sections[s->sh_link];
	entries = read_section_table(f, s, DYNAMIC_MAX);
	text = entries ? read_section_table(f, names, NAMES_MAX) : NULL;
	if (!text)
		result = -errno;
	for (i = 0; !result && i < s->sh_size / sizeof(*entries) && entries[i].d_tag != DT_NULL;
	     i++) {
		if (entries[i].d_tag != DT_NEEDED && entries[i].d_tag != DT_RUNPATH &&
		    entries[i].d_tag != DT_RPATH)
			continue;
		result = entries[i].d_un.d_val < names->sh_size
				 ? visit(arg, entries[i].d_tag, text + entries[i].d_un.d_val)
				 : -EINVAL;
	}
	free(entries);
	free(text);
	return result;
}
