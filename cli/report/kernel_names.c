// SPDX-License-Identifier: MIT
/*
 * kernel_names.c - functions of the kernel, by /proc/kallsyms of the boot that was recorded
 *
 * The kernel lies elsewhere after each boot, and its modules each time they are loaded. So its list
 * holds for traces of this boot alone. An address is in the function that begins before it and
 * nearest to it. Data that lies between functions has no symbol here, so a distance that no
 * function has is not believed.
 */
#include "sites.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST "/proc/kallsyms"
#define BOOT "/proc/sys/kernel/random/boot_id"
#define FUNCTION_BYTES_MAX (1u << 18)

struct symbol {
	uint64_t address;
	uint32_t name; /* offset in symbols.text */
};

struct symbols {
	struct symbol *list; /* by rising address */
	size_t count, capacity;
	char *text; /* "function", or "function [module]" */
	size_t bytes, text_capacity;
};

static bool is_of_kernel(const struct report_site *site)
{
	/* Linux: the upper half of all addresses is the kernel's. */
	return site->object == NO_OBJECT && site->offset >> 63 != 0;
}

static int add(struct symbols *s, uint64_t address, const char *name)
{
	size_t bytes = strlen(name) + 1;

	if (pem_grow(&s->list, sizeof(*s->list), s->count + 1, &s->capacity) < 0 ||
	    pem_grow(&s->text, 1, s->bytes + bytes, &s->text_capacity) < 0)
		return -ENOMEM;
	s->list[s->count++] = (struct symbol){address, (uint32_t)s->bytes};
	memcpy(s->text + s->bytes, name, bytes);
	s->bytes += bytes;
	return 0;
}

/* Take a line such as "ffffffff81000000 T _text" or "ffffffffc0123000 t f<TAB>[module]". */
static int take_line(struct symbols *s, char *line)
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
	return add(s, address, name);
}

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static int read_list(struct symbols *s)
{
	FILE *f = fopen(LIST, "re");
	char *line = NULL;
	size_t room = 0;
	int rc = 0;

	if (f == NULL)
		return 0;
	while (rc == 0 && getline(&line, &room, f) > 0)
		rc = take_line(s, line);
	fclose(f);
	free(line);
	if (s->count != 0)
		qsort(s->list, s->count, sizeof(*s->list), by_address);
	return rc;
}

/* NULL: none is known. */
static const char *function_at(const struct symbols *s, uint64_t address)
{
	size_t low = 0, high = s->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (s->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address - s->list[low - 1].address >= FUNCTION_BYTES_MAX)
		return NULL;
	return s->text + s->list[low - 1].name;
}

static int name_site(const struct symbols *s, struct report_site *site)
{
	/* The offset is behind the sampled instruction. */
	const char *function = function_at(s, site->offset - 1);

	if (function == NULL)
		return 0;
	site->names = calloc(1, sizeof(*site->names));
	if (site->names == NULL)
		return -ENOMEM;
	site->name_count = 1;
	site->names[0].function = strdup(function);
	if (site->names[0].function == NULL)
		return -ENOMEM;
	pem_printable(site->names[0].function);
	return 0;
}

/* Is the trace of the boot that runs now? */
static bool is_this_boot(const struct pem_trace_info *info)
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

int report_sites__name_kernel(struct report_sites *sites, const struct pem_trace_info *info)
{
	struct symbols symbols = {0};
	size_t i, first = 0;
	int rc = 0;

	while (first < sites->count && !is_of_kernel(&sites->sites[first]))
		first++;
	if (first == sites->count)
		return 0;
	if (!is_this_boot(info)) {
		sites->kernel_trouble = "the kernel's functions lie elsewhere since it was booted: "
					"report where and before it is booted again";
		return 0;
	}
	rc = read_list(&symbols);
	if (rc == 0 && symbols.count == 0)
		sites->kernel_trouble = "this user may not see where the kernel's functions lie "
					"(sysctl kernel.kptr_restrict; root may)";
	for (i = first; rc == 0 && i < sites->count; i++)
		if (is_of_kernel(&sites->sites[i]))
			rc = name_site(&symbols, &sites->sites[i]);
	free(symbols.list);
	free(symbols.text);
	return rc;
}
