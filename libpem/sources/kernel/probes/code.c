/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code.c - functions and instructions of programs and libraries as probes: uprobe, uretprobe
 *
 * Functions are those of the binary and of its debug file. A breakpoint within an instruction would
 * break the program, so a place is taken only if an instruction is known to begin there.
 */
#define _GNU_SOURCE
#include "search.h"

#include "names/probing.h"
#include "util.h"

#include <pem/names.h>

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A place in code that was found. */
struct location {
	const char *label; /* as a pattern names it after the path */
	const char *specifier, *what; /* of the event, and of its description */
	uint64_t address, offset; /* as linked, and in the file */
	bool is_32bit;
	bool is_entry; /* a function begins there */
};

/* Add the fields that are known at a location. Returns 0 or -ENOMEM. */
static int add_fields(const struct pem_search *s, struct pem_probe *probe,
		      const struct location *location)
{
	probe->is_32bit = location->is_32bit;
	if (location->is_32bit)
		return 0;
	return location->is_entry && s->object
		       ? pem_probe__add_parameters(probe, s->object, location->address)
		       : pem_probe__add_registers(probe);
}

/*
 * Add one more place to a probe. Functions of one name may have other parameters; then the fields
 * of all are registers.
 */
static int merge_location(const struct pem_search *s, struct pem_probe *probe,
			  const struct location *location)
{
	const struct pem_probe_site site = {.offset = location->offset};
	struct pem_probe *other;
	size_t i;
	int rc;

	/* The function is exported and in the program's own table, too, or in the debug file. */
	for (i = 0; i < probe->site_count; i++) {
		if (probe->sites[i].offset == site.offset)
			return 0;
	}
	other = pem_probe__new(probe->kind, "", "", "", "");
	rc = other ? add_fields(s, other, location) : -ENOMEM;
	if (!rc && !pem_probe__has_fields_of(probe, other)) {
		probe->field_count = 0;
		rc = pem_probe__add_registers(probe);
	}
	pem_probe__free(other);
	return rc ? rc : pem_search__add_site(probe, &site);
}

static int add_location(struct pem_search *s, const struct location *location)
{
	const struct pem_probe_site site = {.offset = location->offset};
	char name[PATH_MAX + 256], specifier[300], description[400];
	struct pem_probe *probe;
	char *more;
	int rc;

	snprintf(name, sizeof(name), "%s:%s:%s", pem_probe_kind__word(s->kind), s->shown,
		 location->label);
	probe = pem_search__find_probe(s, name);
	if (probe)
		return merge_location(s, probe, location);
	snprintf(specifier, sizeof(specifier), "%s%s", location->specifier,
		 s->kind == PEM_PROBE_URETPROBE ? "__return" : "");
	snprintf(description, sizeof(description), "%s of %.100s", location->what, s->shown);
	probe = pem_search__add_probe(s, name, specifier, description);
	rc = probe ? add_fields(s, probe, location) : -errno;
	if (!rc && probe->trouble) {
		if (asprintf(&more, "%s, without %s", description, probe->trouble) < 0)
			return -ENOMEM;
		free(probe->description);
		probe->description = more;
	}
	return rc ? rc : pem_search__add_site(probe, &site);
}

/* Refuse an address that is within an instruction, or may be. is_entry: a function begins there. */
static int check_instruction(const struct pem_search *s, uint64_t address, bool *is_entry)
{
	int rc = s->object ? pem_object__begins(s->object, address, is_entry) : -ENOTSUP;

	if (rc > 0)
		return 0;
	return pem_error__set(s->error, -EINVAL,
			      rc ? "%s: whether an instruction begins at 0x%llx can't be told, and "
				   "a probe within one would break the program: name a function"
				 : "%s: 0x%llx is in the middle of an instruction: a probe there "
				   "would break the program",
			      s->shown, (unsigned long long)address);
}

int pem_search__found_function(void *arg, const struct pem_elf_symbol *symbol)
{
	struct pem_search *s = arg;
	char label[256], what[300];
	struct location location = {.label = label,
				    .specifier = label,
				    .what = what,
				    .address = symbol->address + s->offset,
				    .offset = symbol->offset + s->offset,
				    .is_32bit = symbol->is_32bit,
				    .is_entry = !s->offset};
	int rc;

	if (!s->name)
		return 0;
	if (s->offering) {
		pem_probe_near__offer(&s->near, symbol->name);
		return 0;
	}
	if (s->literal ? strcmp(s->name, symbol->name) != 0
		       : fnmatch(s->name, symbol->name, FNM_NOESCAPE) != 0)
		return 0;
	if (symbol->is_indirect)
		return s->literal ? pem_error__set(s->error, -ENOTSUP,
						   "%s in %s is chosen when the program starts "
						   "(an indirect function): name the one that is "
						   "chosen",
						   symbol->name, s->shown)
				  : 0;
	if (s->offset && symbol->bytes && s->offset >= symbol->bytes)
		return pem_error__set(s->error, -EINVAL, "%s in %s is %llu bytes long",
				      symbol->name, s->shown, (unsigned long long)symbol->bytes);
	rc = s->offset ? check_instruction(s, location.address, &location.is_entry) : 0;
	if (rc)
		return rc;
	snprintf(label, sizeof(label), "%.200s%s", symbol->name, s->plus);
	snprintf(what, sizeof(what), "%s of the function %.200s",
		 s->kind == PEM_PROBE_URETPROBE ? "return"
		 : s->offset                    ? "an instruction"
						: "entry",
		 symbol->name);
	return add_location(s, &location);
}

int pem_search__find_address(struct pem_search *s)
{
	bool returns = s->kind == PEM_PROBE_URETPROBE;
	struct location location = {.label = s->name, .specifier = s->name, .address = s->address};
	struct pem_name name = {0};
	char what[300];
	int rc = pem_elf__code(s->fd, s->address, &location.offset, &location.is_32bit);

	if (rc == -ENOENT)
		return pem_error__set(s->error, -EINVAL,
				      "%s has no code at %s: expected an address as in its symbol "
				      "table (nm, objdump)",
				      s->shown, s->name);
	if (!rc)
		rc = check_instruction(s, s->address, &location.is_entry);
	if (rc)
		return rc;
	if (returns && !location.is_entry)
		return pem_error__set(s->error, -EINVAL,
				      "%s: no function is known to begin at %s, and a probe of its "
				      "return would break the program",
				      s->shown, s->name);
	pem_object__find(s->object, s->address, &name, 1);
	snprintf(what, sizeof(what), "%s at %.40s%s%.100s",
		 returns             ? "return of the function"
		 : location.is_entry ? "entry of the function"
				     : "the instruction",
		 s->name, name.function ? ", of " : "", name.function ? name.function : "");
	location.what = what;
	return add_location(s, &location);
}
