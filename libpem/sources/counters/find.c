// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * find.c - counters that no spec describes: any that libpfm4 can tell the kernel to count here
 *
 *	"RETIRED_CPUID_INSTRUCTIONS"	HW::Pmu::RETIRED_CPUID_INSTRUCTIONS
 *	"cycles:k"			HW::Pmu::cycles_k
 *	"skx::INST_RETIRED:ANY"		HW::Pmu::INST_RETIRED_ANY
 */
#include "counters.h"

#include <perfmon/pfmlib.h>

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* A name is written into the model, and becomes a part of an event's name. */
static int is_name(const char *name)
{
	size_t i;

	for (i = 0; name[i]; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-.:=", name[i]))
			return 0;
	return i > 0 && i < COUNTER_NAME_BYTES;
}

/* What libpfm4 says of the event. */
static const char *description_of(const char *name)
{
	static const char nothing[] = "a counter that libpfm4 names and does not describe";
	pfm_event_info_t info = {.size = sizeof(info)};
	int event = pfm_find_event(name);

	if (event < 0 || pfm_get_event_info(event, PFM_OS_PERF_EVENT, &info) != PFM_SUCCESS ||
	    !info.desc)
		return nothing;
	return info.desc;
}

/* The name without the processor's, in the letters of an identifier. */
static void specify(const char *name, char specifier[COUNTER_NAME_BYTES])
{
	const char *colons = strstr(name, "::"), *from = colons ? colons + 2 : name;
	size_t at = 0;

	if (isdigit((unsigned char)*from))
		specifier[at++] = '_';
	for (; *from && at + 1 < COUNTER_NAME_BYTES; from++)
		specifier[at++] = isalnum((unsigned char)*from) ? *from : '_';
	specifier[at] = '\0';
}

/* Does the kernel count an event of its own apart for programs and itself? */
static int has_parts(const struct perf_event_attr *attr)
{
	return attr->config == PERF_COUNT_SW_PAGE_FAULTS ||
	       attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	       attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ ||
	       attr->config == PERF_COUNT_SW_ALIGNMENT_FAULTS ||
	       attr->config == PERF_COUNT_SW_EMULATION_FAULTS;
}

int counter__find(const char *pattern, int (*found)(void *arg, const struct pem_event *event),
		  void *arg, struct pem_error *error)
{
	static const struct pem_field value = {.name = "value",
					       .description = "events so far",
					       .unit = "",
					       .type = PEM_TYPE_UINT64,
					       .base = 10,
					       .role = PEM_ROLE_VALUE,
					       .max_count = 1};
	char specifier[COUNTER_NAME_BYTES], name[COUNTER_NAME_BYTES];
	struct perf_event_attr attr;
	struct pem_event event = {.layer = "HW",
				  .class_name = "Pmu",
				  .specifier = specifier,
				  .source_name = pattern,
				  .fields = &value,
				  .field_count = 1,
				  .meaning = PEM_MEANS_COUNTER,
				  .source_kind = PEM_SOURCE_PERF,
				  .level = PEM_LEVEL_DETAIL,
				  .version = 1};
	int rc;

	/* Tracepoints are libpfm4's, too, and another source's here. */
	if (!is_name(pattern) || counter__encode_first(pattern, &attr, name, sizeof(name)) < 0 ||
	    attr.type == PERF_TYPE_TRACEPOINT || attr.type == PERF_TYPE_BREAKPOINT)
		return -ENOENT;
	if (attr.type > PERF_TYPE_BREAKPOINT) {
		counter__set_error(error,
				   "%.100s is counted for several processors together, such as "
				   "a package's, and not for a program: pem counts what cores do",
				   pattern);
		return -EOPNOTSUPP;
	}
	if (attr.type == PERF_TYPE_SOFTWARE && (attr.exclude_user || attr.exclude_kernel) &&
	    !has_parts(&attr)) {
		counter__set_error(error,
				   "%.100s: the kernel does not tell what of it is the "
				   "program's and what its own; name it without :u and :k",
				   pattern);
		return -EOPNOTSUPP;
	}
	specify(pattern, specifier);
	event.description = description_of(pattern);
	rc = found(arg, &event);
	return rc < 0 ? rc : 1;
}
