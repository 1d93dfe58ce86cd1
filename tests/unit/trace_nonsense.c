// SPDX-License-Identifier: MIT
/*
 * trace_nonsense.c - each function on traces, passes, records, models and queues, given nonsense:
 * it fails with a sentence about what is wrong, or does nothing
 *
 * tests/e2e/abi.py checks that no function is forgotten here. Not here: sessions
 * (session_nonsense.c), damaged traces (reader_damage.c).
 */
#include <pem/context.h>
#include <pem/pem.h>
#include <pem/streams.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/pem-trace-nonsense-XXXXXX", path[64];
static struct pem_trace *trace;
static struct pem_error why;

/* Record a trace without a record. */
static int set_up(void **state)
{
	const char *name = "APP::Libc::Malloc";
	struct pem_session *session = pem_session__open(NULL, &why);
	struct pem_event_set *set = pem_event_set__new(session, &name, 1, &why);
	struct pem_log *log;
	int rc;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/trace", folder);
	log = pem_session__register_log(session, set, NULL, path, &why);
	rc = pem_log__enable(log);
	if (!rc)
		rc = pem_log__finish(log, &why);
	pem_event_set__free(set);
	pem_session__close(session);
	trace = rc ? NULL : pem_trace__open(path, &why);
	return trace ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	pem_trace__close(trace);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

/* A call failed with EINVAL and a sentence that has words. */
static void refused(int code, const char *words)
{
	assert_int_equal(code, -EINVAL);
	if (!strstr(why.text, words))
		fail_msg("'%s' is not in '%s'", words, why.text);
	memset(&why, 0, sizeof(why));
	errno = 0;
}

/* A call made nothing. */
static void made_nothing(const void *made, const char *words)
{
	assert_null(made);
	refused(-errno, words);
}

static void of_traces(void **state)
{
	(void)state;
	memset(&why, 0, sizeof(why));
	made_nothing(pem_trace__open(NULL, &why), "directory of a trace");
	pem_trace__close(NULL);
	refused(pem_trace__recover(NULL, &why), "directory of a trace");
	refused(pem_trace__unpack(NULL, "x", &why), "no ");
	refused(pem_trace__unpack(path, NULL, &why), "no ");
	assert_null(pem_trace__model(NULL));
	assert_null(pem_trace__info(NULL));
	assert_int_equal(pem_trace__torn_packets(NULL), 0);
	assert_string_equal(pem_trace__process_name(NULL, 1), "");
	assert_string_equal(pem_trace__thread_name(NULL, 1), "");
	assert_int_equal(pem_trace__read_kept(NULL, "code", NULL), -EINVAL);
	assert_int_equal(pem_trace__write_kept(NULL, "code", "", 0), -EINVAL);
	assert_int_equal(pem_trace__files_kept(NULL, NULL, 0), -EINVAL);
	assert_int_equal(pem_trace__drop_kept(NULL), -EINVAL);
}

static void of_recovery(void **state)
{
	(void)state;
	memset(&why, 0, sizeof(why));
	assert_int_equal(pem_trace__recover(path, &why), -EALREADY);
	assert_non_null(strstr(why.text, "it is complete"));
	refused(pem_trace__recover(folder, &why), "is no pem trace");
	assert_int_equal(pem_trace__recover("/nowhere", &why), -ENOENT);
	memset(&why, 0, sizeof(why));
}

static void of_positions(void **state)
{
	struct pem_record record = {.size = sizeof(record)}, unset = {0};

	(void)state;
	refused(pem_trace__next(NULL, &record, &why), "no trace was given");
	refused(pem_trace__next(NULL, &unset, &why), "no trace was given");
	refused(pem_trace__next(trace, NULL, &why), "no record was given");
	refused(pem_trace__next(trace, &unset, &why), "size");
	assert_int_equal(pem_trace__next(NULL, NULL, NULL), -EINVAL);
	assert_int_equal(pem_trace__rewind(NULL), -EINVAL);
	assert_int_equal(pem_trace__read_ahead(NULL), -EINVAL);
}

static void of_losses_and_balances(void **state)
{
	const struct pem_event *event = pem_model__event(pem_trace__model(trace), 0);
	struct pem_trace_loss loss = {.size = sizeof(loss)};

	(void)state;
	assert_int_equal(pem_trace__loss_count(NULL), 0);
	assert_int_equal(pem_trace__loss(NULL, 0, &loss), -EINVAL);
	assert_int_equal(pem_trace__loss(trace, 0, NULL), -EINVAL);
	assert_int_equal(pem_trace__producer_count(NULL), 0);
	assert_null(pem_trace__producer(NULL, 0));
	assert_null(pem_trace__producer(trace, 9999));
	assert_int_equal(pem_trace__event_balance(NULL, event).produced, 0);
	assert_int_equal(pem_trace__event_balance(trace, NULL).produced, 0);
	assert_int_equal(pem_trace__total_balance(NULL).produced, 0);
}

static int visit_block(void *arg, const struct pem_pass_process *process,
		       const struct pem_block *block)
{
	(void)arg;
	(void)process;
	(void)block;
	return 0;
}

static void of_passes(void **state)
{
	const struct pem_pass_options small = {.size = 3};
	struct pem_record record = {.size = sizeof(record)}, unset = {0};
	struct pem_around around = {.size = sizeof(around)};
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};
	struct pem_pass *pass = pem_pass__new(trace, NULL, &why);

	(void)state;
	assert_non_null(pass);
	made_nothing(pem_pass__new(NULL, NULL, &why), "no trace was given");
	made_nothing(pem_pass__new(trace, &small, &why), "size");
	refused(pem_pass__next(NULL, &record, &around, &why), "no pass");
	refused(pem_pass__next(pass, NULL, &around, &why), "no record was given");
	refused(pem_pass__next(pass, &record, NULL, &why), "no struct pem_around");
	refused(pem_pass__next(pass, &unset, &around, &why), "size");
	assert_int_equal(pem_pass__process_count(NULL), 0);
	assert_null(pem_pass__process(NULL, 0));
	assert_int_equal(pem_pass__thread_count(NULL), 0);
	assert_null(pem_pass__path(NULL, NULL));
	assert_null(pem_pass__path(pass, NULL));
	assert_null(pem_pass__command_path(NULL));
	pem_path_part__set_user(NULL, 1);
	assert_null(pem_pass__thread(NULL, 0));
	assert_int_equal(pem_pass__file_count(NULL), 0);
	assert_null(pem_pass__file(NULL, 0));
	assert_int_equal(pem_pass__group_count(NULL), 0);
	assert_string_equal(pem_pass__group_name(NULL, 0), "");
	assert_int_equal(pem_pass__blocks(NULL, visit_block, NULL), -EINVAL);
	assert_int_equal(pem_pass__blocks(pass, NULL, NULL), -EINVAL);
	pem_pass__unknown(NULL, &unknown);
	pem_pass__unknown(pass, NULL);
	pem_pass_thread__set_user(NULL, NULL);
	pem_interval__set_user(NULL, 0, 1);
	assert_string_equal(pem_interval__title(NULL), "");
	assert_int_equal(pem_event__is_phase(NULL), 0);
	pem_pass__free(pass);
	pem_pass__free(NULL);
}

static void of_live_passes(void **state)
{
	const struct pem_pass_options small = {.size = 3};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)}, unset = {0};
	struct pem_pass *pass = pem_pass__new_live(pem_trace__model(trace), NULL, &why);
	struct pem_pass *of_trace = pem_pass__new(trace, NULL, &why);

	(void)state;
	assert_non_null(pass);
	made_nothing(pem_pass__new_live(NULL, NULL, &why), "no model was given");
	made_nothing(pem_pass__new_live(pem_trace__model(trace), &small, &why), "size");
	refused(pem_pass__take(NULL, &record, &around, &why), "live pass");
	refused(pem_pass__take(pass, NULL, &around, &why), "live pass");
	refused(pem_pass__take(pass, &record, &around, &why), "live pass");
	refused(pem_pass__take(of_trace, &record, &around, &why), "live pass");
	assert_int_equal(pem_pass__lose(NULL), -EINVAL);
	assert_int_equal(pem_pass__call(NULL, 1, 1, "a"), -EINVAL);
	assert_int_equal(pem_pass__call(pass, 1, 1, NULL), -EINVAL);
	assert_int_equal(pem_pass__call(pass, 0, 1, "a"), -EINVAL);
	refused(pem_pass__end(NULL, &around, &why), "live pass");
	refused(pem_pass__end(pass, &unset, &why), "live pass");
	refused(pem_pass__end(of_trace, &around, &why), "live pass");
	assert_int_equal(pem_pass__end(pass, &around, &why), 0);
	refused(pem_pass__take(pass, &record, &around, &why), "live pass");
	pem_pass__free(of_trace);
	pem_pass__free(pass);
}

static void of_records(void **state)
{
	const struct pem_record never_read = {.size = sizeof(never_read)};
	const struct pem_record *const records[] = {NULL, &never_read};
	const void *elements;
	char text[8];
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(pem_record__u64(records[i], 0), 0);
		assert_int_equal(pem_record__is_marker(records[i]), 0);
		assert_int_equal(pem_record__i64(records[i], 0), 0);
		assert_true(pem_record__f64(records[i], 0) == 0);
		assert_string_equal(pem_record__string(records[i], 0), "");
		assert_int_equal(pem_record__words(records[i], 0, text, sizeof(text)), 0);
		assert_string_equal(text, "");
		assert_int_equal(pem_record__words(records[i], 0, NULL, 8), 0);
		assert_int_equal(pem_record__list(records[i], 0, &elements), 0);
		assert_null(elements);
		assert_int_equal(pem_record__list(records[i], 0, NULL), 0);
		assert_int_equal(pem_record__key(records[i], PEM_ROLE_ADDRESS), 0);
	}
	assert_null(pem_printable(NULL));
}

static int visit_model(void *arg, const char *text, size_t bytes, const char *origin)
{
	(void)arg;
	(void)text;
	(void)bytes;
	(void)origin;
	return 0;
}

static void of_models(void **state)
{
	struct pem_model *model = pem_model__new();

	(void)state;
	refused(pem_model__add_text(NULL, "x", 1, "x", &why), "no model was given");
	refused(pem_model__add_text(model, NULL, 1, "x", &why), "no text of a model was given");
	refused(pem_model__add_catalogue(NULL, &why), "no model was given");
	refused(pem_program__models(NULL, visit_model, NULL, &why), "no program was given");
	refused(pem_program__models("/bin/sh", NULL, NULL, &why), "no function");
	errno = 0;
	assert_null(pem_model__to_text(NULL));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(pem_model__count(NULL), 0);
	assert_null(pem_model__event(NULL, 0));
	assert_null(pem_model__by_id(NULL, 1));
	assert_null(pem_model__by_name(NULL, "x"));
	assert_null(pem_model__by_name(model, NULL));
	assert_int_equal(pem_model__metric_count(NULL), 0);
	assert_null(pem_model__metric(NULL, 0));
	pem_model__free(model);
	pem_model__free(NULL);
}

static void of_events(void **state)
{
	const struct pem_event *event = pem_model__event(pem_trace__model(trace), 0);
	const uint8_t data[8] = {0};

	(void)state;
	assert_non_null(event);
	assert_int_equal(pem_event__equal(NULL, event), 0);
	assert_int_equal(pem_event__equal(event, NULL), 0);
	assert_int_equal(pem_event__field(NULL, "x"), -EINVAL);
	assert_int_equal(pem_event__field(event, NULL), -EINVAL);
	assert_int_equal(pem_event__field_by_role(NULL, PEM_ROLE_NAME), -EINVAL);
	assert_int_equal(pem_event__matches(NULL, "x"), 0);
	assert_int_equal(pem_event__matches(event, NULL), 0);
	assert_int_equal(pem_event__record_bytes(NULL, data, sizeof(data)), -EINVAL);
	assert_int_equal(pem_event__record_bytes(event, NULL, 100), -EINVAL);
	assert_null(pem_field__label(NULL, 0));
	assert_int_equal(pem_type__bytes((enum pem_type)999), 0);
	assert_string_equal(pem_type__name((enum pem_type)999), "-");
	assert_string_equal(pem_meaning__name((enum pem_meaning)999), "-");
	assert_string_equal(pem_role__name((enum pem_role)999), "-");
	assert_string_equal(pem_source_kind__name((enum pem_source_kind)999), "-");
	assert_string_equal(pem_level__name((enum pem_level)999), "-");
	assert_string_equal(pem_scope__name((enum pem_scope)999), "-");
}

static void of_streams(void **state)
{
	struct pem_streams_service service = {.size = sizeof(service)};
	struct pem_streams_queue queue = {.capacity = 1};

	(void)state;
	made_nothing(pem_streams__open(0, &why), "no process was given");
	refused(pem_streams__search(NULL, &why), "no observed process was given");
	refused(pem_streams__limit(NULL, &queue, 1, &why), "no observed process was given");
	assert_int_equal(pem_streams__read(NULL, NULL), -EINVAL);
	assert_null(pem_streams__queue(NULL, 0));
	assert_int_equal(pem_streams__has_ended(NULL), 0);
	assert_int_equal(pem_streams__service(NULL, 0, 1, &service), -EINVAL);
	pem_streams__close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_traces),    cmocka_unit_test(of_recovery),
		cmocka_unit_test(of_positions), cmocka_unit_test(of_losses_and_balances),
		cmocka_unit_test(of_passes),    cmocka_unit_test(of_live_passes),
		cmocka_unit_test(of_records),   cmocka_unit_test(of_models),
		cmocka_unit_test(of_events),    cmocka_unit_test(of_streams),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
