/* SPDX-License-Identifier: MIT */
/*
 * session_sources.c - which installed source serves an event: in an order of its own, and with a
 * sentence where none can
 */
#include "core/core.h"
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pem/pem.h>

#define SOURCES_MAX 8

static char plugins[PATH_MAX];

static struct pem_session *opened(void)
{
	struct pem_error error = {""};
	struct pem_session *session = pem_session__open(NULL, &error);

	if (!session)
		print_message("# %s\n", error.text);
	assert_non_null(session);
	return session;
}

/* However the folder lists its files. Threads are looked at before the kernel's sources start. */
static void the_module_is_asked_before_the_kernels_others(void **state)
{
	struct pem_source_state states[SOURCES_MAX] = {{.size = sizeof(states[0])}};
	struct pem_session *session;
	int i, count;

	(void)state;
	session = opened();
	count = pem_session__sources(session, states, SOURCES_MAX);
	assert_in_range(count, 2, SOURCES_MAX);
	assert_string_equal(states[0].name, "threads");
	assert_string_equal(states[1].name, "module");
	for (i = 3; i < count; i++)
		assert_true(strcmp(states[i - 1].name, states[i].name) < 0);
	assert_int_equal(pem_session__sources(session, states, 0), 0);
	pem_session__close(session);
}

static void a_source_that_can_not_be_used_says_why(void **state)
{
	struct pem_source_state states[SOURCES_MAX] = {{.size = sizeof(states[0])}};
	struct pem_session *session = opened();
	int i, count = pem_session__sources(session, states, SOURCES_MAX);

	(void)state;
	for (i = 0; i < count; i++) {
		assert_true(states[i].usable || strlen(states[i].reason.text) > 10);
		if (!strcmp(states[i].name, "module") && access("/dev/pem", F_OK))
			assert_int_equal(states[i].usable, 0);
	}
	pem_session__close(session);
}

/*
 * The module being first, what it can't serve is still the others' to serve; and can_deliver
 * agrees.
 */
static void an_event_has_the_first_source_that_delivers_it(void **state)
{
	struct pem_session *session = opened();
	const struct pem_model *model = pem_session__model(session);
	struct pem_error reason;
	const char *source;
	size_t i;

	(void)state;
	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		reason.text[0] = '\0';
		source = pem_session__source_of(session, event, &reason);
		assert_int_equal(pem_session__can_deliver(session, event, NULL), source != NULL);
		assert_int_equal(reason.text[0] == '\0', source != NULL);
		if (source && event->source_kind == PEM_SOURCE_STUB)
			assert_string_equal(source, "stub");
		if (source && access("/dev/pem", F_OK))
			assert_string_not_equal(source, "module");
	}
	pem_session__close(session);
}

static void without_a_plugin_the_event_says_what_is_missing(void **state)
{
	char empty[] = "/tmp/pem-no-plugins-XXXXXX";
	const struct pem_event *event;
	struct pem_session *session;
	struct pem_error reason = {""};

	(void)state;
	assert_non_null(mkdtemp(empty));
	setenv("PEM_PLUGIN_PATH", empty, 1);
	session = opened();
	event = pem_model__by_name(pem_session__model(session), "OS::Sched::Switch");
	assert_null(pem_session__source_of(session, event, &reason));
	assert_non_null(strstr(reason.text, "no installed source"));
	pem_session__close(session);
	setenv("PEM_PLUGIN_PATH", plugins, 1);
	rmdir(empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_module_is_asked_before_the_kernels_others),
		cmocka_unit_test(a_source_that_can_not_be_used_says_why),
		cmocka_unit_test(an_event_has_the_first_source_that_delivers_it),
		cmocka_unit_test(without_a_plugin_the_event_says_what_is_missing),
	};
	const char *build = getenv("B");
	char relative[PATH_MAX - 16], files[PATH_MAX];
	glob_t found;

	snprintf(relative, sizeof(relative), "%s/lib/pem", build ? build : "build");
	snprintf(files, sizeof(files), "%s/*.so", relative);
	/*
	 * A build for ThreadSanitizer has the folder, for a helper of libpem's, and no plugin in
	 * it.
	 */
	if (!realpath(relative, plugins) || glob(files, 0, NULL, &found)) {
		printf("1..0 # SKIP no plugins in %s\n", relative);
		return 0;
	}
	globfree(&found);
	setenv("PEM_PLUGIN_PATH", plugins, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
