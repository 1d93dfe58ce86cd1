// SPDX-License-Identifier: MIT
/*
 * usdt.c - pem spec import --usdt: the static probes of a program or library (.note.stapsdt)
 *
 * A probe may be at several places. Of each argument the widest size counts.
 */
#include "elf_probes.h"
#include "import.h"
#include "grow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 12 /* maximum of sys/sdt.h */
#define PROBES_MAX 4096

struct probe {
	char *provider, *name;
	size_t count;
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

/* Find the probe of this name, or add it. NULL: no memory, or too many probes. */
static struct probe *find(struct probes *all, const char *provider, const char *name)
{
	struct probe *probe;
	size_t i;

	for (i = 0; i < all->count; i++)
		if (strcmp(all->probes[i].provider, provider) == 0 &&
		    strcmp(all->probes[i].name, name) == 0)
			return &all->probes[i];
	if (all->count == PROBES_MAX ||
	    pem_grow(&all->probes, sizeof(*all->probes), all->count + 1, &all->capacity) < 0)
		return NULL;
	probe = &all->probes[all->count];
	memset(probe, 0, sizeof(*probe));
	probe->provider = strdup(provider);
	probe->name = strdup(name);
	all->count++;
	return probe->provider != NULL && probe->name != NULL ? probe : NULL;
}

static void take_arguments(struct probe *probe, const char *text)
{
	struct pem_usdt_value value;
	size_t count = 0;

	for (; count < ARGUMENTS_MAX && pem_usdt_value__next(&text, &value); count++) {
		if (value.bytes == 0)
			value = (struct pem_usdt_value){.bytes = 8};
		if (count >= probe->count || value.bytes > probe->arguments[count].bytes) {
			probe->arguments[count].bytes = value.bytes;
			probe->arguments[count].is_signed = value.is_signed;
			probe->arguments[count].is_float = value.is_float;
		}
	}
	if (count > probe->count)
		probe->count = count;
}

static int take_note(void *arg, const struct pem_elf_note *note)
{
	struct probe *probe = find(arg, note->provider, note->name);

	if (probe == NULL)
		return -ENOMEM;
	take_arguments(probe, note->arguments);
	return 0;
}

/* Read all probes of a file. Returns a status. */
static int read_file(struct probes *all, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return cli_error(CLI_WRONG_INPUT, "cannot open %s: %s", path, strerror(errno));
	rc = pem_elf__each_note(fd, take_note, all);
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

/* Names that the schema does not allow can't be written as a source. */
static bool is_plain(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= 56 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=-") ==
		       n;
}

static int put_probe(FILE *out, const struct probe *probe, const char *binary,
		     struct cli_names *names)
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
	struct cli_names names = {0};
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
	cli_names__free(&names);
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
