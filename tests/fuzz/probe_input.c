/* SPDX-License-Identifier: MIT */
/*
 * probe_input.c - fuzz target: any bytes as a tracepoint's format, a static probe's arguments, a
 * binary with probes
 *
 * The first byte tells which. Whatever is taken has directories and sizes that a program may be
 * made of.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libpem/sources/kernel/probes/probes.h"
#include "shared/elf_probes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void read_format(const char *text)
{
	struct pem_probe *probe = pem_probe__new(PEM_PROBE_TRACEPOINT, "s:x", "OS", "s", "x");
	const struct pem_probe_field *field;
	unsigned i;

	if (!probe)
		return;
	if (!pem_format__parse(probe, text)) {
		for (i = 0; i < probe->field_count; i++) {
			field = &probe->fields[i];
			if (!field->type || !field->max_count || !*field->name ||
			    field->location.offset >= 8192)
				abort();
		}
	}
	pem_probe__free(probe);
}

static void read_arguments(const char *text)
{
	struct pem_usdt_argument argument;
	const char *before;
	int rc;

	do {
		before = text;
		rc = pem_usdt_argument__next(&text, &argument);
		/* who calls it would never end */
		if (rc && text == before)
			abort();
		if (rc > 0 && (argument.bytes > 8 || argument.location.shift > 3))
			abort();
	} while (rc);
}

static int on_note(void *arg, const struct pem_elf_note *note)
{
	*(size_t *)arg += strlen(note->provider) + strlen(note->name);
	read_arguments(note->arguments);
	return 0;
}

static int on_function(void *arg, const struct pem_elf_symbol *symbol)
{
	*(size_t *)arg += strlen(symbol->name);
	return 0;
}

static int on_probe(void *arg, struct pem_probe *probe)
{
	*(size_t *)arg += probe->field_count;
	pem_probe__free(probe);
	return 0;
}

/* Find functions with their parameters, and what is at an address. */
static void find_code(const char *path, size_t *count)
{
	static const struct {
		enum pem_probe_kind kind;
		const char *what;
	} patterns[] = {
		{PEM_PROBE_UPROBE, "*"}, {PEM_PROBE_URETPROBE, "*"}, {PEM_PROBE_UPROBE, "0x1176"}};
	struct pem_error error;
	char pattern[256];
	unsigned i;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		snprintf(pattern, sizeof(pattern), "%s:%s", path, patterns[i].what);
		pem_probe__find_in_binary(patterns[i].kind, pattern, on_probe, count, &error);
	}
}

static void read_binary(const uint8_t *data, size_t bytes)
{
	char path[] = "/tmp/pem-fuzz-binary-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	size_t names = 0;

	if (fd < 0)
		return;
	if (write(fd, data, bytes) == (ssize_t)bytes) {
		pem_elf__each_note(fd, on_note, &names);
		pem_elf__each_function(fd, -1, NULL, on_function, &names);
		find_code(path, &names);
	}
	unlink(path);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text;

	if (!bytes)
		return 0;
	if (data[0] % 3 == 2) {
		read_binary(data + 1, bytes - 1);
		return 0;
	}
	text = strndup((const char *)data + 1, bytes - 1);
	if (!text)
		return 0;
	if (data[0] % 3)
		read_arguments(text);
	else
		read_format(text);
	free(text);
	return 0;
}
