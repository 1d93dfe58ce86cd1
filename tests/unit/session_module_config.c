/* SPDX-License-Identifier: MIT */
/*
 * session_module_config.c - counters and page sampling of a session: names of counters resolved,
 * nonsense refused
 */

#include "core/core.h"
#include "source_host/source_host.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct pem_session *open_session(void)
{
	struct pem_session *s = pem_session__open(NULL, NULL);

	assert_non_null(s);
	return s;
}

static void counters_of_the_catalogue_go_by_their_last_word(void **state)
{
	struct pem_session *s = open_session();
	struct pem_error error;
	const char *comma;

	(void)state;
	assert_int_equal(pem_session__set_counters(s, "minorFaults,some::LIBPFM:name", &error), 0);
	assert_string_equal(s->sources->counters, "perf::MINOR-FAULTS,some::LIBPFM:name");
	assert_string_equal(s->sources->counter_names, "MinorFaults,some::LIBPFM:name");
	assert_int_equal(pem_session__set_counters(s, "HW::HWPerf::Instructions,CpuClock", &error),
			 0);
	/* alternatives */
	assert_int_equal(strncmp(s->sources->counters, "perf::INSTRUCTIONS|", 19), 0);
	comma = strchr(s->sources->counters, ',');
	assert_non_null(comma);
	assert_string_equal(comma + 1, "perf::CPU-CLOCK");
	assert_string_equal(s->sources->counter_names, "Instructions,CpuClock");
	pem_session__close(s);
}

/* As libpfm4's source does it. */
static int knows(const char *name, struct pem_error *error)
{
	if (!strcmp(name, "pmu::known"))
		return 1;
	snprintf(error->text, sizeof(error->text), "no counter '%s'", name);
	return -ENOENT;
}

static void names_that_a_source_does_not_know_are_refused(void **state)
{
	static const struct pem_source_ops ops = {.name = "names", .knows_counter = knows};
	struct pem_source_plugin *plugin = calloc(1, sizeof(*plugin));
	struct pem_session *s = open_session();
	struct pem_error error;

	(void)state;
	assert_non_null(plugin);
	assert_int_equal(pem_session__knows_counter(s, "x", &error), 1); /* nobody knows any */
	plugin->ops = &ops;
	plugin->next = s->sources->plugins;
	s->sources->plugins = plugin;
	assert_int_equal(pem_session__set_counters(s, "Cycles,pmu::known", &error), 0);
	assert_int_equal(pem_session__set_counters(s, "Cycles,bogus", &error), -ENOENT);
	assert_string_equal(error.text, "no counter 'bogus'; 'pem list hw' shows the catalogue's, "
					"and showevtinfo libpfm4's");
	assert_int_equal(pem_session__set_counters(s, "Instructons", &error), -ENOENT);
	assert_string_equal(error.text, "no counter 'Instructons'; did you mean 'Instructions'?");
	assert_int_equal(pem_session__set_counters(s, "perf::CYCLEZ", &error), -ENOENT);
	assert_non_null(strstr(error.text, "did you mean 'perf::CYCLES'?"));
	assert_string_equal(s->sources->counter_names, "Cycles,pmu::known"); /* as it was */
	s->sources->plugins = plugin->next;
	free(plugin);
	pem_session__close(s);
}

static void nonsense_is_refused_and_leaves_all_as_it_was(void **state)
{
	struct pem_session *s = open_session();
	char long_name[sizeof(((struct pem_trace_info *)0)->counters) + 1];
	struct pem_error error;

	(void)state;
	assert_int_equal(pem_session__set_counters(s, "one", &error), 0);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(pem_session__set_counters(s, long_name, &error), -E2BIG);
	assert_non_null(strstr(error.text, "room for"));
	assert_int_equal(pem_session__set_counters(s, "", &error), -EINVAL);
	assert_int_equal(pem_session__set_counters(s, "a,,b", &error), -EINVAL);
	assert_int_equal(pem_session__set_counters(s, "a,b,", &error), -EINVAL);
	assert_int_equal(pem_session__set_counters(s, "1,2,3,4,5,6,7,8,9", &error), -E2BIG);
	assert_non_null(strstr(error.text, "8 can be read"));
	assert_string_equal(s->sources->counters, "one");
	assert_int_equal(pem_session__set_counters(s, "1,2,3,4,5,6,7,8", NULL), 0);
	assert_int_equal(pem_session__set_page_sampling(s, 999, 4096), -EINVAL);
	assert_int_equal(pem_session__set_page_sampling(s, 1000, 2048), -EINVAL);
	assert_int_equal(pem_session__set_page_sampling(s, 1000, 12288), -EINVAL);
	assert_int_equal(pem_session__set_page_sampling(s, 1000, 1ull << 41), -EINVAL);
	assert_int_equal(s->sources->pages_interval_us, 100000);
	assert_int_equal(s->sources->pages_region_bytes, 2u << 20);
	assert_int_equal(pem_session__set_page_sampling(s, 1000, 4096), 0);
	assert_int_equal(s->sources->pages_region_bytes, 4096);
	pem_session__close(s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_of_the_catalogue_go_by_their_last_word),
		cmocka_unit_test(names_that_a_source_does_not_know_are_refused),
		cmocka_unit_test(nonsense_is_refused_and_leaves_all_as_it_was),
	};

	/* No plugin is there but the test's own: whatever it does not know is taken. */
	setenv("PEM_PLUGIN_PATH", "/dev/null", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
