// SPDX-License-Identifier: MIT
/*
 * usdt.c - pem spec import --usdt: the static probes of a program or library (.note.stapsdt)
 *
 * A probe's note holds three addresses, and then as text its provider, its name, and for each argument its size and
 * where it lies, such as "-4@%eax". The same probe may stand at many places: the widest arguments count. The file is
 * hostile input: libelf checks what it hands out, and the notes are checked here.
 */
#include "import.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 12 /* of sys/sdt.h */
#define PROBES_MAX 4096
#define NOTE_STAPSDT 3

struct probe {
	char *provider, *name;
	size_t count, locations;
	struct {
		unsigned int bytes;
		bool is_signed, is_float;
	} arguments[ARGUMENTS_MAX];
};

struct probes {
	struct probe *probes;
	size_t count, capacity;
};

static void free_probes(struct probes *all)
{
	while (all->count > 0) {
		all->count--;
		free(all->probes[all->count].provider);
		free(all->probes[all->count].name);
	}
	free(all->probes);
}

/* The probe of that name, a new one if there is none; NULL without memory, or if there are too many. */
static struct probe *find(struct probes *all, const char *provider, const char *name)
{
	struct probe *probe;
	size_t i;

	for (i = 0; i < all->count; i++)
		if (strcmp(all->probes[i].provider, provider) == 0 &&
		    strcmp(all->probes[i].name, name) == 0)
			return &all->probes[i];
	if (all->count == PROBES_MAX ||
	    cli_grow((void **)&all->probes, sizeof(*all->probes), all->count, &all->capacity) < 0)
		return NULL;
	probe = &all->probes[all->count];
	memset(probe, 0, sizeof(*probe));
	probe->provider = strdup(provider);
	probe->name = strdup(name);
	all->count++;
	return probe->provider != NULL && probe->name != NULL ? probe : NULL;
}

/* "-4@%eax 8@-16(%rbp)": arguments are parted by blanks outside of brackets; without "N@", 8 bytes. */
static void read_arguments(struct probe *probe, const char *text)
{
	unsigned int bytes;
	bool is_signed, is_float;
	size_t count = 0;
	int depth;
	char *end;

	while (count < ARGUMENTS_MAX) {
		while (*text == ' ')
			text++;
		if (*text == '\0')
			break;
		is_signed = *text == '-';
		bytes = (unsigned int)strtoul(text + is_signed, &end, 10);
		is_float = *end == 'f';
		if (end == text + is_signed || end[is_float] != '@' || bytes == 0 || bytes > 8) {
			bytes = 8;
			is_signed = is_float = false;
		}
		if (count >= probe->count || bytes > probe->arguments[count].bytes) {
			probe->arguments[count].bytes = bytes;
			probe->arguments[count].is_signed = is_signed;
			probe->arguments[count].is_float = is_float;
		}
		count++;
		for (depth = 0; *text != '\0' && (*text != ' ' || depth > 0); text++)
			depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
	}
	if (count > probe->count)
		probe->count = count;
}

/* One note's description: three words, then three strings. 0, -EINVAL or -ENOMEM. */
static int read_note(struct probes *all, const char *text, size_t bytes, size_t word)
{
	const char *strings[3], *end = text + bytes;
	struct probe *probe;
	int i;

	if (bytes < 3 * word)
		return -EINVAL;
	text += 3 * word;
	for (i = 0; i < 3; i++) {
		strings[i] = text;
		text = memchr(text, '\0', (size_t)(end - text));
		if (text == NULL)
			return -EINVAL;
		text++;
	}
	probe = find(all, strings[0], strings[1]);
	if (probe == NULL)
		return -ENOMEM;
	probe->locations++;
	read_arguments(probe, strings[2]);
	return 0;
}

static int read_section(struct probes *all, Elf_Data *data, size_t word)
{
	size_t offset = 0, name, description;
	GElf_Nhdr note;
	int rc = 0;

	while (rc == 0 && (offset = gelf_getnote(data, offset, &note, &name, &description)) > 0)
		if (note.n_type == NOTE_STAPSDT && note.n_namesz == sizeof("stapsdt") &&
		    memcmp((char *)data->d_buf + name, "stapsdt", sizeof("stapsdt")) == 0)
			rc = read_note(all, (char *)data->d_buf + description, note.n_descsz, word);
	return rc;
}

static int read_elf(struct probes *all, Elf *elf)
{
	size_t word = gelf_getclass(elf) == ELFCLASS32 ? 4 : 8;
	Elf_Scn *section = NULL;
	Elf_Data *data;
	GElf_Shdr header;
	size_t names;
	int rc = 0;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return -EINVAL;
	while (rc == 0 && (section = elf_nextscn(elf, section)) != NULL) {
		const char *name;

		if (gelf_getshdr(section, &header) == NULL || header.sh_type != SHT_NOTE)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		data = elf_getdata(section, NULL);
		if (name != NULL && strcmp(name, ".note.stapsdt") == 0 && data != NULL)
			rc = read_section(all, data, word);
	}
	return rc;
}

/* All probes of a file; a status. */
static int read_file(struct probes *all, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	Elf *elf;

	if (fd < 0)
		return cli_error(CLI_WRONG_INPUT, "cannot open %s: %s", path, strerror(errno));
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	rc = elf != NULL && elf_kind(elf) == ELF_K_ELF ? read_elf(all, elf) : -EINVAL;
	elf_end(elf);
	close(fd);
	if (rc == -ENOMEM)
		return cli_error(CLI_FAILED, "%s has more than %d probes, or there is no memory",
				 path, PROBES_MAX);
	if (rc < 0)
		return cli_error(
			CLI_WRONG_INPUT,
			"%s is no program or library, or its probes are damaged: expected an "
			"ELF file",
			path);
	if (all->count == 0)
		return cli_error(
			CLI_WRONG_INPUT,
			"%s has no static probes (readelf -n shows them as stapsdt): it was "
			"built without sys/sdt.h",
			path);
	return CLI_DONE;
}

static void put_argument(FILE *out, const struct probe *probe, size_t i)
{
	unsigned int bytes = probe->arguments[i].bytes;

	if (probe->arguments[i].is_float)
		import_put_comment(
			out, "      ",
			"arg%zu is a floating-point number of %u bytes, which specs do not "
			"take from a probe",
			i, bytes);
	else
		fprintf(out, "      <field name='arg%zu' type='%sint%u' from='arg%zu'/>\n", i,
			probe->arguments[i].is_signed ? "" : "u",
			(bytes > 4   ? 8
			 : bytes > 2 ? 4
				     : bytes) *
				8,
			i);
}

/* Names that the schema has no room for can't be written as a source. */
static bool is_plain(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= 56 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=-") ==
		       n;
}

static int put_probe(FILE *out, const struct probe *probe, const char *binary,
		     struct import_names *names)
{
	size_t i;
	int rc;

	if (!is_plain(probe->provider) || !is_plain(probe->name)) {
		import_put_comment(out, "  ", "%s:%s is left out: a source has no such name",
				   probe->provider, probe->name);
		return 0;
	}
	rc = import_event_begin(out, "APP", "detail", probe->provider, probe->name, names);
	if (rc < 0)
		return rc;
	fprintf(out, "    <source type='usdt' name='%s:%s' binary='%s'/>\n    <fields>\n",
		probe->provider, probe->name, binary);
	for (i = 0; i < probe->count; i++)
		put_argument(out, probe, i);
	fprintf(out, "    </fields>\n  </event>\n");
	return 0;
}

static int put_probes(FILE *out, const struct probes *all, const char *path)
{
	const char *slash = strrchr(path, '/'), *binary = slash != NULL ? slash + 1 : path;
	char provider[IMPORT_PROVIDER_BYTES], how[512];
	struct import_names names = {0};
	size_t i;
	int rc = 0;

	if (strspn(binary, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.+-") !=
	    strlen(binary))
		return cli_error(
			CLI_WRONG_INPUT,
			"a spec can't name the file '%s': expected a name of letters, digits "
			"and _ . + -",
			binary);
	import_provider(provider, all->probes[0].provider);
	snprintf(
		how, sizeof(how),
		"Static probes of %s. A probe has arguments, but no names for them. To record "
		"these "
		"events, put this file into spec/app of pem's source tree and run make; pem record "
		"-e 'usdt:PATH:*' records the probes as they are.",
		binary);
	import_begin(out, provider, how);
	for (i = 0; i < all->count && rc == 0; i++)
		rc = put_probe(out, &all->probes[i], binary, &names);
	fprintf(out, "</spec>\n");
	i = names.count;
	import_names__free(&names);
	if (rc < 0)
		return cli_error(CLI_FAILED, "no memory");
	if (i == 0)
		return cli_error(CLI_WRONG_INPUT,
				 "no probe of %s has a name that a spec could hold", path);
	return CLI_DONE;
}

int cli_import_usdt(const char *binary, FILE *out)
{
	struct probes all = {0};
	int status = read_file(&all, binary);

	if (status == CLI_DONE)
		status = put_probes(out, &all, binary);
	free_probes(&all);
	return status;
}
