// SPDX-License-Identifier: MIT
/*
 * pfm.c - pem spec import --pfm: a spec of the counters that libpfm4 names
 *
 * libpfm4 is loaded only when it is needed, so that pem runs without it. Its tables have the events
 * of all processors that it was built for. So an import may be for another machine.
 */
#include "import.h"

#include <perfmon/pfmlib_perf_event.h>

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 121 /* maximum of a source's name in spec/pem.xsd, with its NUL */
#define EVENTS_MAX 2000 /* more events would exceed a spec's maximum of bytes */

/* The functions of the library that are used. */
struct pfm {
	void *library;
	pfm_err_t (*initialize)(void);
	void (*terminate)(void);
	pfm_err_t (*pmu_info)(pfm_pmu_t pmu, pfm_pmu_info_t *info);
	pfm_err_t (*event_info)(int event, pfm_os_t os, pfm_event_info_t *info);
	int (*event_next)(int event);
	pfm_err_t (*attr_info)(int event, int attr, pfm_os_t os, pfm_event_attr_info_t *info);
	pfm_err_t (*encoding)(const char *name, int level, pfm_os_t os, void *argument);
};

struct import {
	const struct pfm *pfm;
	const char *pattern;
	FILE *out;
	struct cli_names names;
	unsigned int count, left_out;
};

static int open_library(struct pfm *pfm)
{
	const struct {
		const char *name;
		void *function; /* where the function's address is stored */
	} wanted[] = {
		{"pfm_initialize", &pfm->initialize},
		{"pfm_terminate", &pfm->terminate},
		{"pfm_get_pmu_info", &pfm->pmu_info},
		{"pfm_get_event_info", &pfm->event_info},
		{"pfm_get_event_next", &pfm->event_next},
		{"pfm_get_event_attr_info", &pfm->attr_info},
		{"pfm_get_os_event_encoding", &pfm->encoding},
	};
	void *found;
	size_t i;

	pfm->library = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
	if (pfm->library == NULL)
		return cli_error(
			CLI_NOT_HERE,
			"import --pfm needs libpfm4, which can't be opened: %s; install it "
			"(package libpfm4)",
			dlerror());
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		found = dlsym(pfm->library, wanted[i].name);
		if (found == NULL)
			return cli_error(CLI_NOT_HERE, "libpfm.so.4 has no %s: %s", wanted[i].name,
					 dlerror());
		memcpy(wanted[i].function, &found, sizeof(found));
	}
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1); /* include events of other machines */
	if (pfm->initialize() != PFM_SUCCESS)
		return cli_error(CLI_NOT_HERE, "libpfm4 can't be initialized here");
	return CLI_DONE;
}

static bool is_encodable(const struct pfm *pfm, const char *name)
{
	struct perf_event_attr attr = {0};
	pfm_perf_encode_arg_t argument = {.attr = &attr, .size = sizeof(argument)};
	pfm_pmu_encode_arg_t plain = {.size = sizeof(plain)};
	const int levels = PFM_PLM0 | PFM_PLM3;
	pfm_err_t rc = pfm->encoding(name, levels, PFM_OS_PERF_EVENT, &argument);

	/* Newer versions refuse it for some processors that are not present. */
	if (rc != PFM_SUCCESS) {
		rc = pfm->encoding(name, levels, PFM_OS_NONE, &plain);
		free(plain.codes);
	}
	return rc == PFM_SUCCESS;
}

static void lower(char *text)
{
	for (; *text != '\0'; text++)
		*text = (char)tolower((unsigned char)*text);
}

/*
 * Write one event of the spec. text comes from libpfm4 and becomes only a comment, because a
 * description must say what the user means.
 */
static int put_event(struct import *import, const char *pmu, const char *name, const char *text)
{
	char group[NAME_BYTES], event[NAME_BYTES];

	if (import->count == EVENTS_MAX)
		return cli_error(CLI_WRONG_INPUT,
				 "'%s' matches more than %d events: name fewer, such as 'skl::*'",
				 import->pattern, EVENTS_MAX);
	snprintf(group, sizeof(group), "%s", pmu);
	snprintf(event, sizeof(event), "%s", name + strlen(pmu) + 2);
	lower(group); /* CamelCase makes the capitals */
	lower(event);
	if (import_event_begin(import->out, "HW", "detail", group, event, &import->names) < 0)
		return cli_error(CLI_FAILED, "no memory");
	import_put_comment(import->out, "    ", "libpfm4: %s", text != NULL ? text : "");
	fprintf(import->out, "    <meaning value='counter'/>\n    <source type='perf' name='");
	import_put_text(import->out, name);
	fprintf(import->out, "'/>\n    <fields>\n"
			     "      <field name='value' type='uint64' role='value'/>\n"
			     "    </fields>\n  </event>\n");
	import->count++;
	return CLI_DONE;
}

static bool is_wanted(const struct import *import, const char *name, bool whole_event_wanted)
{
	return whole_event_wanted || fnmatch(import->pattern, name, FNM_CASEFOLD) == 0;
}

/* Import the event alone if it needs no unit mask, and with each unit mask that makes an event. */
static int import_event(struct import *import, const char *pmu, int index)
{
	const struct pfm *pfm = import->pfm;
	pfm_event_info_t event = {.size = sizeof(event)};
	pfm_event_attr_info_t mask;
	char base[NAME_BYTES], name[2 * NAME_BYTES];
	int i, status = CLI_DONE;
	bool wanted;

	if (pfm->event_info(index, PFM_OS_NONE, &event) != PFM_SUCCESS)
		return CLI_DONE;
	snprintf(base, sizeof(base), "%s::%s", pmu, event.name);
	wanted = is_wanted(import, base, false);
	if (wanted && is_encodable(pfm, base))
		status = put_event(import, pmu, base, event.desc);
	for (i = 0; i < event.nattrs && status == CLI_DONE; i++) {
		memset(&mask, 0, sizeof(mask));
		mask.size = sizeof(mask);
		if (pfm->attr_info(index, i, PFM_OS_NONE, &mask) != PFM_SUCCESS ||
		    mask.type != PFM_ATTR_UMASK)
			continue;
		snprintf(name, sizeof(name), "%s:%s", base, mask.name);
		if (!is_wanted(import, name, wanted) || !is_encodable(pfm, name))
			continue;
		if (strlen(name) >= NAME_BYTES)
			import->left_out++;
		else
			status = put_event(import, pmu, name, mask.desc);
	}
	return status;
}

static int import_all(struct import *import)
{
	int pmu, event, status = CLI_DONE;
	pfm_pmu_info_t info;

	for (pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX && status == CLI_DONE; pmu++) {
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (import->pfm->pmu_info((pfm_pmu_t)pmu, &info) != PFM_SUCCESS)
			continue;
		for (event = info.first_event; event != -1 && status == CLI_DONE;
		     event = import->pfm->event_next(event))
			status = import_event(import, info.name, event);
	}
	return status;
}

int cli_import_pfm(const char *pattern, FILE *out)
{
	struct pfm pfm = {0};
	struct import import = {.pfm = &pfm, .pattern = pattern, .out = out};
	char how[200];
	int status = open_library(&pfm);

	if (status == CLI_DONE) {
		snprintf(how, sizeof(how), "Made by pem spec import from libpfm4's events %.80s.",
			 pattern);
		import_begin(out, "imported_pfm", how);
		status = import_all(&import);
	}
	if (status == CLI_DONE && import.count == 0)
		status =
			cli_error(CLI_WRONG_INPUT,
				  "libpfm4 has no event '%s', or was built without its processors; "
				  "patterns are over whole names, such as 'perf::*FAULT*' or "
				  "'amd64_*::RETIRED_*'",
				  pattern);
	if (import.left_out != 0)
		import_put_comment(out, "  ", "%u more have names that are too long for a spec",
				   import.left_out);
	fprintf(out, "</spec>\n");
	cli_names__free(&import.names);
	if (pfm.terminate != NULL)
		pfm.terminate();
	if (pfm.library != NULL)
		dlclose(pfm.library);
	return status;
}
