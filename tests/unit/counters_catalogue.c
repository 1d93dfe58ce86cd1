// SPDX-License-Identifier: MIT
/*
 * counters_catalogue.c - every counter that the catalogue names is in libpfm4's tables, event and
 * unit masks
 *
 * The tables hold more processors than this one, but only those of its architecture: names of
 * others are checked where libpfm4 was built for them, and are skipped, counted, elsewhere.
 */
#include <pem/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if __has_include(<perfmon/pfmlib_perf_event.h>)
#include <perfmon/pfmlib_perf_event.h>

enum result { FOUND, NOT_THERE, OTHER_ARCHITECTURE };

static struct pem_model *model;
static unsigned elsewhere;

/* The PMU of that name; 0: libpfm4 has none. */
static int find_pmu(const char *name, size_t count, pfm_pmu_info_t *info)
{
	int pmu;

	for (pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
		memset(info, 0, sizeof(*info));
		info->size = sizeof(*info);
		if (pfm_get_pmu_info((pfm_pmu_t)pmu, info) == PFM_SUCCESS &&
		    strlen(info->name) == count && !strncmp(info->name, name, count))
			return 1;
	}
	return 0;
}

/*
 * The tables of ix86arch are made from what this processor says of itself, and are empty on others
 * than Intel's. The architectural events have the same names in Intel's other tables.
 */
static int any_intel_has(const char *event)
{
	pfm_event_info_t info;
	pfm_pmu_info_t pmu_info;
	int pmu, i;

	for (pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
		memset(&pmu_info, 0, sizeof(pmu_info));
		pmu_info.size = sizeof(pmu_info);
		if (pfm_get_pmu_info((pfm_pmu_t)pmu, &pmu_info) != PFM_SUCCESS ||
		    !strncmp(pmu_info.name, "amd64", 5))
			continue;
		for (i = pmu_info.first_event; i != -1; i = pfm_get_event_next(i)) {
			memset(&info, 0, sizeof(info));
			info.size = sizeof(info);
			if (pfm_get_event_info(i, PFM_OS_NONE, &info) == PFM_SUCCESS &&
			    !strcmp(info.name, event))
				return 1;
		}
	}
	return 0;
}

static int is_of_other_architecture(const char *name)
{
#if defined(__x86_64__)
	static const char *const others[] = {
		"arm_n1::",   "arm_n2::",   "arm_v1::",    "arm_v2::",
		"arm_ac57::", "arm_ac53::", "arm_a64fx::", "arm_thunderx2::"};
#else
	static const char *const others[] = {"ix86arch::",
					     "skl::",
					     "skx::",
					     "clx::",
					     "amd64_fam17h_zen1::",
					     "amd64_fam17h_zen2::",
					     "amd64_fam19h_zen3::",
					     "amd64_fam19h_zen4::"};
#endif
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return 1;
	return 0;
}

static int is_encodable(const char *name)
{
	struct perf_event_attr attr = {0};
	pfm_perf_encode_arg_t argument = {.attr = &attr, .size = sizeof(argument)};
	pfm_pmu_encode_arg_t plain = {.size = sizeof(plain)};
	const int levels = PFM_PLM0 | PFM_PLM3;
	pfm_err_t rc = pfm_get_os_event_encoding(name, levels, PFM_OS_PERF_EVENT, &argument);

	if (rc != PFM_SUCCESS) { /* newer ones refuse it for some processors that are not there */
		rc = pfm_get_os_event_encoding(name, levels, PFM_OS_NONE, &plain);
		free(plain.codes);
	}
	return rc == PFM_SUCCESS;
}

static enum result find_name(const char *name)
{
	const char *colons = strstr(name, "::");
	pfm_pmu_info_t info;
	int found;

	if (!colons)
		return NOT_THERE;
	if (!find_pmu(name, (size_t)(colons - name), &info))
		return is_of_other_architecture(name) ? OTHER_ARCHITECTURE : NOT_THERE;
	if (!info.nevents && !strncmp(name, "ix86arch::", 10))
		found = any_intel_has(colons + 2);
	else
		found = is_encodable(name);
	return found ? FOUND : NOT_THERE;
}

static void every_source_is_in_libpfm4(void **state)
{
	unsigned found = 0, missing = 0;
	size_t i;

	(void)state;
	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);
		char names[1200], *rest = names, *name;

		if (event->source_kind != PEM_SOURCE_PERF &&
		    event->source_kind != PEM_SOURCE_SAMPLE)
			continue;
		assert_true(strlen(event->source_name) < sizeof(names));
		strcpy(names, event->source_name);
		while ((name = strsep(&rest, "|"))) {
			enum result result = find_name(name);

			found += result == FOUND;
			elsewhere += result == OTHER_ARCHITECTURE;
			missing += result == NOT_THERE;
			if (result == NOT_THERE)
				print_error("%s: libpfm4 has no %s\n", event->name, name);
		}
	}
	assert_int_equal(missing, 0);
	assert_true(found > 100);
}

static void other_architectures_are_too(void **state)
{
	(void)state;
	if (!elsewhere)
		return;
	print_message(
		"# %u names are of processors that this libpfm4 was built without: run this on "
		"one of their architecture\n",
		elsewhere);
	skip();
}

static void what_is_not_there_is_noticed(void **state)
{
	static const char *const wrong[] = {
		"perf::CYCLESS",
		"perf::PERF_COUNT_HW_CACHE_DTLB:READ:MISSED",
		"no_pmu::CYCLES",
		"arm_n9::CPU_CYCLES",
		"CYCLES",
#if defined(__x86_64__)
		"ix86arch::LLC_MISSED",
		"amd64_fam19h_zen3::MISALIGNED_LOADS:MA65",
#else
		"arm_n1::CPU_CYCLESS",
#endif
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(find_name(wrong[i]), NOT_THERE);
}

static int start(void **state)
{
	struct pem_error error = {""};

	(void)state;
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	model = pem_model__new();
	return !model || pem_model__add_catalogue(model, &error) < 0 ||
	       pfm_initialize() != PFM_SUCCESS;
}

static int stop(void **state)
{
	(void)state;
	pem_model__free(model);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_source_is_in_libpfm4),
		cmocka_unit_test(other_architectures_are_too),
		cmocka_unit_test(what_is_not_there_is_noticed),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
#else
int main(void)
{
	printf("1..0 # SKIP libpfm4 was missing when this was built (libpfm4-dev)\n");
	return 77;
}
#endif
