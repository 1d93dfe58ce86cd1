/* SPDX-License-Identifier: MIT */
/*
 * kernel_refused.c - a program that the kernel refuses costs its own event at most, and the reason
 * is said
 *
 * The kernel source with programs of kernel_refused.xml, linked into this test. Needs what the
 * source needs.
 */
#ifdef PEM_TEST_LIBBPF
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "libpem/model_internal.h"
#include "libpem/sources/kernel/kernel.h"

extern const struct pem_source_ops pem_source;

static char said[4096];

static void on_log(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", text);
}

/* The session's list: these events of the table, counted. */
static struct pem_source *open_events(struct pem_event *events, const char *const *names,
				      size_t count)
{
	struct pem_source_config config = {.size = sizeof(config), .log = on_log};
	struct pem_source_event wanted[6];
	struct pem_error error = {""};
	struct pem_source *source;
	const struct pem_kernel_event *row;
	size_t i;
	unsigned j;

	for (i = 0; i < count; i++) {
		for (j = 0; (row = pem_kernel__event(j)) && strcmp(row->name, names[i]) != 0; j++)
			;
		assert_non_null(row);
		events[i] = (struct pem_event){
			.name = row->name, .id = row->id, .source_kind = PEM_SOURCE_TRACEPOINT};
		wanted[i] = (struct pem_source_event){
			.event = &events[i],
			.context = {.tid = (uint32_t)gettid()},
			.action = PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1)};
	}
	config.events = wanted;
	config.event_count = count;
	said[0] = '\0';
	if (pem_source.open(&config, &source, &error) || pem_source.start(source, &error))
		fail_msg("%s\n%s", error.text, said);
	return source;
}

static void the_next_alternative_serves_instead(void **state)
{
	static const char *const names[] = {"OS::Refused::Second"};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_source *source;
	struct pem_event events[1];
	int i;

	(void)state;
	source = open_events(events, names, 1);
	for (i = 0; i < 100; i++)
		syscall(SYS_getppid);
	assert_int_equal(pem_source.read_statistic(source, 0, &value), 0);
	assert_true(value.count >= 100);
	assert_non_null(strstr(said, "refuses the program pem_refused_second"));
	pem_source.close(source);
}

static void the_others_go_on_without_it(void **state)
{
	static const char *const names[] = {"OS::Refused::Never", "OS::Refused::Second",
					    "OS::Refused::Switch"};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_source *source;
	struct pem_event events[3];

	(void)state;
	source = open_events(events, names, 3);
	syscall(SYS_getppid);
	assert_int_equal(pem_source.read_statistic(source, 0, &value), -ENOTSUP);
	assert_int_equal(pem_source.read_statistic(source, 1, &value), 0);
	assert_true(value.count > 0);
	assert_int_equal(pem_source.read_statistic(source, 2, &value), 0);
	assert_non_null(strstr(said, "OS::Refused::Never: the kernel refuses"));
	assert_non_null(strstr(said, "processed")); /* the verifier's own words */
	assert_null(strstr(said, "has no tracepoint"));
	pem_source.close(source);
}

/* Of one tracepoint: the kernel refuses their common program, and then that of one of them. */
static void one_of_a_tracepoint_is_refused_alone(void **state)
{
	static const char *const names[] = {"OS::Refused::Begun", "OS::Refused::Wrong",
					    "OS::Refused::Exit",  "OS::Refused::Failed",
					    "OS::Refused::Third", "OS::Refused::Switch"};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_source *source;
	struct pem_event events[6];
	int begun;

	(void)state;
	source = open_events(events, names, 6);
	/* Those that are left share one again, and other tracepoints never lost theirs. */
	begun = pem_kernel__find(events[0].id);
	assert_true(source->programs[begun].is_joined);
	assert_true(source->programs[pem_kernel__find(events[4].id)].is_joined);
	assert_true(source->programs[pem_kernel__find(events[2].id)].is_joined);
	assert_non_null(strstr(said, "sched:sched_process_exec: the kernel refuses one program"));
	assert_int_equal(pem_source.read_statistic(source, 0, &value), 0);
	assert_int_equal(pem_source.read_statistic(source, 1, &value), -ENOTSUP);
	assert_non_null(strstr(said, "OS::Refused::Wrong: the kernel refuses"));
	assert_null(strstr(said, "OS::Refused::Begun: the kernel refuses"));
	pem_source.close(source);
}

static void one_program_serves_a_tracepoint(void **state)
{
	static const char *const names[] = {"OS::Refused::Exit", "OS::Refused::Failed",
					    "OS::Refused::Switch"};
	struct pem_statistic all = {.size = sizeof(all)}, failed = {.size = sizeof(failed)};
	int exit = -1, other = -1, i;
	struct pem_source *source;
	struct pem_event events[3];

	(void)state;
	source = open_events(events, names, 3);
	exit = pem_kernel__find(events[0].id);
	other = pem_kernel__find(events[1].id);
	assert_true(source->programs[exit].is_joined && source->programs[other].is_joined);
	assert_non_null(source->programs[exit].link);
	assert_null(source->programs[other].link);
	for (i = 0; i < 100; i++)
		syscall(i % 4 ? SYS_getppid : SYS_close, -1);
	assert_int_equal(pem_source.read_statistic(source, 0, &all), 0);
	assert_int_equal(pem_source.read_statistic(source, 1, &failed), 0);
	assert_in_range(all.count, 100, 130);
	assert_in_range(failed.count, 25, 30);
	source->programs[exit].misses = 7; /* as if the kernel had refused that many runs */
	pem_source__share_misses(source);
	assert_int_equal(source->programs[other].misses, 7);
	pem_source__fail_joined(source, (unsigned)exit, -EPERM);
	assert_int_equal(pem_source.read_statistic(source, 1, &failed), -EPERM);
	pem_source.close(source);
}

static int take_in(void *arg, const struct pem_event *event)
{
	struct pem_error error;

	return pem_model__describe(arg, event, &error) < 0 ? -EINVAL : 0;
}

/*
 * A probe's program is assembled from what the kernel says of it: here that is falsified, before it
 * is made again.
 */
static void an_assembled_program_costs_its_own_event(void **state)
{
	struct pem_model *model = pem_model__new();
	struct pem_source_config config = {.size = sizeof(config), .log = on_log, .event_count = 1};
	struct pem_source_event wanted = {.context = {0}};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_source *source;
	struct pem_error error;

	(void)state;
	if (pem_source.find("sched:sched_pi_setprio", take_in, model, &error) != 1) {
		print_message("%s\n", error.text);
		pem_model__free(model);
		skip();
	}
	wanted.event = pem_model__event(model, 0);
	config.events = &wanted;
	said[0] = '\0';
	assert_int_equal(pem_source.open(&config, &source, &error), 0);
	assert_int_equal(pem_source.read_statistic(source, 0, &value), 0);
	pem_source__unload_probes(source);
	source->probes[0].probe->fields[1].location.offset = 0; /* the kernel's own */
	pem_source__load_probes(source);
	assert_int_equal(pem_source.start(source, &error), 0);
	assert_true(pem_source.read_statistic(source, 0, &value) < 0);
	assert_non_null(strstr(said, "sched:sched_pi_setprio: the kernel refuses its program"));
	assert_non_null(strstr(said, "invalid bpf_context access")); /* the verifier's own words */
	pem_source.close(source);
	pem_model__free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_assembled_program_costs_its_own_event),
		cmocka_unit_test(the_next_alternative_serves_instead),
		cmocka_unit_test(the_others_go_on_without_it),
		cmocka_unit_test(one_of_a_tracepoint_is_refused_alone),
		cmocka_unit_test(one_program_serves_a_tracepoint),
	};
	struct pem_error reason;

	if (!pem_kernel__can_load(&reason)) {
		printf("1..0 # SKIP %s\n", reason.text);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
