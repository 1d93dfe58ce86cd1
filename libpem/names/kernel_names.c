// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * kernel_names.c - functions of the kernel, by /proc/kallsyms of the boot that was recorded
 *
 * The kernel lies elsewhere after each boot, and its modules each time they are loaded. So its list
 * holds for traces of this boot alone. An address is in the function that begins before it and
 * nearest to it, if the next one is of the same module: behind a module's last function, and where
 * BPF programs were, something else may have lain. BPF programs come and go, so none is named.
 */
#include "code_map.h"
#include "symbol_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST "/proc/kallsyms"
#define BOOT "/proc/sys/kernel/random/boot_id"

static bool ends_with(const char *text, const char *end)
{
	size_t bytes = strlen(text), end_bytes = strlen(end);

	return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

/* Is it a label of the linker, or the padding before a function? */
static bool is_label(const char *name)
{
	static const char *const labels[] = {"_text",      "_stext",     "_etext",
					     "_sinittext", "_einittext", "__init_begin"};
	size_t i;

	for (i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		if (strcmp(name, labels[i]) == 0)
			return true;
	return strncmp(name, "__pfx_", 6) == 0 ||
	       (strncmp(name, "__", 2) == 0 &&
		(ends_with(name, "text_start") || ends_with(name, "text_end")));
}

/* Take a line such as "ffffffff81000000 T _text" or "ffffffffc0123000 t f<TAB>[module]". */
static int take_line(struct symbol_list *list, char *line)
{
	char *end, *tab, *name;
	uint64_t address = strtoull(line, &end, 16);

	line[strcspn(line, "\n")] = '\0';
	/* Functions alone. The address is 0 for a user who may not see it. */
	if (address == 0 || strlen(end) < 4 || strchr("tTwW", end[1]) == NULL)
		return 0;
	name = end + 3;
	tab = strchr(name, '\t');
	if (tab != NULL)
		*tab = ' ';
	return is_label(name) || ends_with(name, " [bpf]")
		       ? 0
		       : symbol_list__add(list, address, 0, name);
}

/* " [module]", or "" of what is in the kernel itself. */
static const char *module_of(const struct symbol_list *list, const struct symbol *symbol)
{
	const char *space = strchr(list->text + symbol->name, ' ');

	return space != NULL ? space : "";
}

/* A function reaches up to the next one of its module. */
static void bound(struct symbol_list *list)
{
	struct symbol *symbol = list->list, *next, *end = list->list + list->count;

	for (; symbol < end; symbol++) {
		for (next = symbol + 1; next < end && next->start == symbol->start; next++)
			;
		symbol->bytes = 1;
		if (next < end && strcmp(module_of(list, symbol), module_of(list, next)) == 0)
			symbol->bytes = next->start - symbol->start;
	}
}

int kernel_names__read(FILE *f, struct symbol_list *list)
{
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	while (rc == 0 && getline(&line, &room, f) > 0)
		rc = take_line(list, line);
	free(line);
	symbol_list__sort(list);
	bound(list);
	return rc;
}

static int read_list(struct symbol_list *list)
{
	FILE *f = fopen(LIST, "re");
	int rc = f != NULL ? kernel_names__read(f, list) : 0;

	if (f != NULL)
		fclose(f);
	return rc;
}

bool code__is_this_boot(const struct pem_trace_info *info)
{
	FILE *f = fopen(BOOT, "re");
	char text[64] = "";
	bool is_same;

	if (f == NULL)
		return false;
	is_same = fgets(text, sizeof(text), f) != NULL && info->boot_id[0] != '\0' &&
		  strncmp(text, info->boot_id, strcspn(text, "\n")) == 0;
	fclose(f);
	return is_same;
}

/* The first location of the kernel that has no kept name, or the count; or -ENOMEM. */
static ssize_t name_kept(struct pem_code *code)
{
	size_t i, first = code->location_count;
	int rc;

	for (i = code->location_count; i-- > 0;) {
		if (!code->locations[i].told.is_kernel)
			continue;
		rc = code__name_kept(code, &code->locations[i], kept_owner(KEPT_KERNEL, 0));
		if (rc < 0)
			return rc;
		first = rc ? first : i;
	}
	return (ssize_t)first;
}

int code__name_kernel(struct pem_code *code, const struct pem_trace_info *info)
{
	struct symbol_list list = {0};
	ssize_t first = name_kept(code);
	size_t i;
	int rc = 0;

	if (first < 0 || (size_t)first == code->location_count)
		return first < 0 ? (int)first : 0;
	if (!info || !code__is_this_boot(info)) {
		/* What had no name then, such as a BPF program's code, has none for that reason. */
		if (!code__keeps_kernel(code))
			code->kernel_trouble =
				"the kernel's functions lie elsewhere since it was booted, and "
				"the trace was recorded without their names";
		return 0;
	}
	rc = read_list(&list);
	if (rc == 0 && list.count == 0)
		code->kernel_trouble = "this user may not see where the kernel's functions lie "
				       "(sysctl kernel.kptr_restrict; root may)";
	for (i = (size_t)first; rc == 0 && i < code->location_count; i++)
		if (code->locations[i].told.is_kernel && !code->locations[i].told.name_count)
			rc = symbol_list__name(&list, code, &code->locations[i]);
	symbol_list__free(&list);
	return rc;
}
