/* SPDX-License-Identifier: MIT */
/*
 * probe_input.c - fuzz target: any bytes as a tracepoint's format, a static probe's arguments, a
 * binary with probes
 *
 * The first byte tells which. Whatever is taken has directories and sizes that a program may be
 * made of.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static void read_binary(const uint8_t *data, size_t bytes)
{
	int fd = memfd_create("binary", MFD_CLOEXEC);
	size_t names = 0;

	if (fd < 0)
		return;
	if (write(fd, data, bytes) == (ssize_t)bytes) {
		pem_elf__each_note(fd, on_note, &names);
		pem_elf__each_function(fd, NULL, on_function, &names);
	}
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
