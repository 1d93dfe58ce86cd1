// SPDX-License-Identifier: MIT
/*
 * session_recover.c - what a trace whose recorder died may have touched: its own session, nothing
 * beside it
 *
 * Not here: what is recovered of programs (cli_record.py).
 */
#include "callbacks/callbacks.h"
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "session_fixture.h"

#include "programs/probe.h"
#include "programs/types.h"
#include "producer/producer.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char runtime[96], directory[sizeof(((struct pem_session *)0)->directory)];
static pid_t recorder;

/* A recorder that was killed: its trace, and its session in a runtime folder beside it. */
static int set_up(void **state)
{
	FILE *f;

	if (folder_make(state))
		return -1;
	snprintf(runtime, sizeof(runtime), "%s/runtime", folder);
	setenv("PEM_RUNTIME_DIR", runtime, 1);
	recorder = fork();
	if (!recorder) {
		log_to_trace(session_open(NULL), "APP", NULL);
		_exit(0);
	}
	if (waitpid(recorder, NULL, 0) != recorder)
		return -1;
	snprintf(directory, sizeof(directory), "%s/.pem/session", trace_path);
	f = fopen(directory, "re");
	if (!f || fscanf(f, "%*d %4000s", directory) != 1)
		return -1;
	return fclose(f);
}

static void point_trace_at(const char *path)
{
	char file[160];
	FILE *f;

	snprintf(file, sizeof(file), "%s/.pem/session", trace_path);
	f = fopen(file, "we");
	assert_non_null(f);
	fprintf(f, "%d %s\n", (int)recorder, path);
	fclose(f);
}

static void own_session_is_taken_in(void **state)
{
	struct pem_error error = {""};

	(void)state;
	if (pem_trace__recover(trace_path, &error))
		fail_msg("%s", error.text);
	assert_int_equal(access(directory, F_OK), -1);
}

/*
 * Killed after the last drain, before the trace was finished: of a chunk's one record, begin and
 * end are one.
 */
static void one_record_is_not_written_twice(void **state)
{
	struct pem_context self = {0};
	struct pem_error error = {""};
	struct pem_session *session;
	struct pem_balance balance;
	uint64_t ticks;

	(void)state;
	snprintf(trace_path, sizeof(trace_path), "%s/trace-2", folder);
	recorder = fork();
	if (!recorder) {
		session = session_open(NULL);
		self.pid = (uint32_t)getpid();
		log_to_trace(session, "APP::Probe::Tick", &self);
		pem_notify_probe_tick(0, 1);
		pem_session__scan_producers(session);
		pem_session__drain_producer(session, session->processes->producers, true);
		_exit(0);
	}
	assert_int_equal(waitpid(recorder, NULL, 0), recorder);
	if (pem_trace__recover(trace_path, &error))
		fail_msg("%s", error.text);
	assert_int_equal(read_trace("APP::Probe::Tick", &ticks, &balance), 1);
	assert_int_equal(balance.produced, 1);
	assert_int_equal(balance.delivered, 1);
}

static char *metadata_text(char *path, size_t bytes)
{
	char *text;
	size_t length;

	snprintf(path, bytes, "%s/metadata", trace_path);
	text = pem_read_file(AT_FDCWD, path, 1 << 20, &length);
	assert_non_null(text);
	return text;
}

/* Killed between the file of the model, which has the event, and the metadata. */
static void metadata_gets_what_the_model_has(void **state)
{
	struct pem_error error = {""};
	char path[160], *text;

	(void)state;
	text = metadata_text(path, sizeof(path));
	assert_non_null(strstr(text, "APP::Probe::Tick"));
	assert_int_equal(truncate(path, strstr(text, "event {") - text), 0);
	free(text);
	if (pem_trace__recover(trace_path, &error))
		fail_msg("%s", error.text);
	text = metadata_text(path, sizeof(path));
	assert_non_null(strstr(text, "APP::Probe::Tick"));
	free(text);
}

static uint64_t called;

static void count_call(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
	__atomic_fetch_add(&called, 1, __ATOMIC_RELEASE);
}

/* A recorder with a callback on ticks, which has read some of them and not others, as it dies. */
static void record_beside_a_callback(bool is_over)
{
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_session *session = session_open(NULL);
	struct pem_event_set *ticks = events(session, "APP::Probe::Tick");
	struct pem_callback *cb;
	unsigned i;

	cb = pem_session__register_async_callback(session, ticks, &self, count_call, NULL, NULL,
						  NULL);
	pem_callback__enable(cb);
	log_to_trace(session, "APP::Types::Floats", &self);
	for (i = 0; i < 5000; i++)
		pem_notify_probe_tick(0, i);
	while (__atomic_load_n(&called, __ATOMIC_ACQUIRE) < 5000)
		usleep(200);
	if (is_over)
		pem_callback__unregister(cb);
	pem_notify_types_floats(1, 2);
	pem_notify_types_floats(3, 4);
	for (i = 0; i < 100; i++)
		pem_notify_probe_tick(0, i);
	_exit(0);
}

static void recover_beside_a_callback(bool is_over)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t floats;

	snprintf(trace_path, sizeof(trace_path), "%s/trace-2", folder);
	recorder = fork();
	if (!recorder)
		record_beside_a_callback(is_over);
	assert_int_equal(waitpid(recorder, NULL, 0), recorder);
	if (pem_trace__recover(trace_path, &error))
		fail_msg("%s", error.text);
	assert_int_equal(read_trace("APP::Types::Floats", &floats, &balance), 2);
	assert_int_equal(floats, 2);
	assert_int_equal(balance.produced, 2);
	assert_int_equal(balance.delivered, 2);
	assert_int_equal(balance.discarded, 0);
}

static void what_callbacks_wanted_is_not_recovered(void **state)
{
	(void)state;
	recover_beside_a_callback(false);
}

static void nor_what_they_wanted_once(void **state)
{
	(void)state;
	recover_beside_a_callback(true);
}

static void *raise_ticks(void *arg)
{
	unsigned i;

	for (i = 0; i < 1000; i++)
		pem_notify_probe_tick(0, i % 10);
	return arg;
}

static struct pem_callback *call_for_small(struct pem_session *session)
{
	struct pem_event_set *ticks = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_callback *cb;

	pem_event_set__where(ticks, "number < 3 || number == 7", &error);
	cb = pem_session__register_async_callback(session, ticks, NULL, count_call, NULL, NULL,
						  NULL);
	pem_callback__enable(cb);
	return cb;
}

/* tid 0: of all threads of this process. */
static struct pem_log *log_large(struct pem_session *session, uint32_t tid)
{
	struct pem_context mine = {.pid = (uint32_t)getpid(), .tid = tid};
	struct pem_event_set *ticks = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_log *log;

	pem_event_set__where(ticks, "number >= 5 && who == 0", &error);
	log = pem_session__register_log(session, ticks, &mine, trace_path, &error);
	if (!log || pem_log__enable(log))
		_exit(1);
	return log;
}

/*
 * A recorder with a log and a callback on ticks, of other numbers each. Another process raises
 * ticks that the callback takes, and another thread does, where the log is of one thread.
 */
static void record_other_numbers(bool is_over)
{
	struct pem_session *session = session_open(NULL);
	struct pem_log *log = is_over ? NULL : log_large(session, (uint32_t)gettid());
	struct pem_callback *cb = call_for_small(session);
	pthread_t thread;
	pid_t child;

	if (is_over)
		log = log_large(session, 0);
	/*
	 * Nothing is read before the recorder dies: of ticks that it had read and left out, a
	 * recovery knows only that they are missing.
	 */
	else
		pem_session__lock(session);
	child = fork();
	if (!child) {
		if (pem_process__join(session->directory) < 0)
			_exit(1);
		raise_ticks(NULL);
		_exit(0);
	}
	if (waitpid(child, NULL, 0) != child)
		_exit(1);
	if (!is_over &&
	    (pthread_create(&thread, NULL, raise_ticks, NULL) || pthread_join(thread, NULL)))
		_exit(1);
	raise_ticks(NULL);
	if (is_over) {
		pem_log__disable(log);
		pem_callback__unregister(cb);
	}
	_exit(0);
}

static void recover_other_numbers(bool is_over)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t ticks;
	int status;

	snprintf(trace_path, sizeof(trace_path), "%s/trace-2", folder);
	recorder = fork();
	if (!recorder)
		record_other_numbers(is_over);
	assert_int_equal(waitpid(recorder, &status, 0), recorder);
	assert_int_equal(status, 0);
	if (pem_trace__recover(trace_path, &error))
		fail_msg("%s", error.text);
	assert_int_equal(read_trace("APP::Probe::Tick", &ticks, &balance), 500);
	assert_int_equal(balance.produced, 500);
	assert_int_equal(balance.delivered, 500);
	assert_int_equal(balance.discarded, 0);
}

static void the_logs_demand_holds_for_what_is_recovered(void **state)
{
	(void)state;
	recover_other_numbers(false);
}

static void it_holds_when_handles_had_ended(void **state)
{
	(void)state;
	recover_other_numbers(true);
}

/*
 * A flight recorder that dies while it copies a chunk: nobody else may have that, and it is not
 * lost.
 */
static void record_and_hold_a_chunk(void)
{
	struct pem_session_options options = {
		.size = sizeof(options), .overwrite = 1, .chunk_bytes = 4096, .chunk_count = 64};
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_session *session = session_open(&options);
	struct pem_ring *ring;
	uint32_t i, word;

	log_to_trace(session, "APP::Probe::Tick", &self);
	for (i = 0; i < 1000; i++)
		pem_notify_probe_tick(0, i);
	pem_session__scan_producers(session);
	ring = &session->processes->producers->ring;
	for (i = 0; i < ring->chunk_count; i++) {
		word = ring->chunk_state[i];
		if (PEM_CHUNK_STATE(word) == PEM_CHUNK_FULL)
			break;
	}
	if (i < ring->chunk_count)
		ring->chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_READING, PEM_CHUNK_LANE(word));
	_exit(i == ring->chunk_count);
}

static void a_chunk_that_was_read_is_recovered(void **state)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t ticks;
	int status;

	(void)state;
	snprintf(trace_path, sizeof(trace_path), "%s/trace-2", folder);
	recorder = fork();
	if (!recorder)
		record_and_hold_a_chunk();
	assert_int_equal(waitpid(recorder, &status, 0), recorder);
	assert_int_equal(status, 0);
	if (pem_trace__recover(trace_path, &error))
		fail_msg("%s", error.text);
	assert_int_equal(read_trace("APP::Probe::Tick", &ticks, &balance), 1000);
	assert_int_equal(balance.delivered, 1000);
	assert_int_equal(balance.overwritten + balance.discarded, 0);
}

/* Its number is unknown here, as in another pid namespace. */
static void a_session_that_lives_is_left_alone(void **state)
{
	struct pem_error error = {""};
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(pem_trace__recover(trace_path, &error), -EBUSY);
	assert_non_null(strstr(error.text, "still being recorded"));
	close(fd);
	assert_int_equal(pem_trace__recover(trace_path, &error), 0);
}

/* Killed with all of it in the trace, and shared memory not given back yet. */
static void a_complete_trace_is_left_alone(void **state)
{
	struct pem_error error = {""};
	char command[9000];

	(void)state;
	snprintf(command, sizeof(command), "cp -a '%s' '%s/saved' && cp '%s/.pem/session' '%s'",
		 directory, folder, trace_path, folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(pem_trace__recover(trace_path, &error), 0);
	snprintf(command, sizeof(command), "cp -a '%s/saved' '%s' && cp '%s/session' '%s/.pem'",
		 folder, directory, folder, trace_path);
	assert_int_equal(system(command), 0);
	assert_int_equal(pem_trace__recover(trace_path, &error), -EALREADY);
	assert_int_equal(access(directory, F_OK), 0);
}

/* The runtime folder's own parent: a prefix of its name. */
static void session_elsewhere_is_left_alone(void **state)
{
	struct pem_error error = {""};
	char elsewhere[96];

	(void)state;
	snprintf(elsewhere, sizeof(elsewhere), "%s/session-1-0", folder);
	assert_int_equal(rename(directory, elsewhere), 0);
	point_trace_at(elsewhere);
	assert_int_equal(pem_trace__recover(trace_path, &error), -EPERM);
	assert_int_equal(access(elsewhere, F_OK), 0);
}

static void anything_else_is_left_alone(void **state)
{
	static const char *const paths[] = {"/session-1-0", "session-1-0", "/", "/tmp", ""};
	struct pem_error error = {""};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		point_trace_at(paths[i]);
		assert_true(pem_trace__recover(trace_path, &error) < 0);
	}
	point_trace_at(directory); /* and it is there still */
	assert_int_equal(pem_trace__recover(trace_path, &error), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(one_record_is_not_written_twice),
		TEST(what_callbacks_wanted_is_not_recovered),
		TEST(nor_what_they_wanted_once),
		TEST(the_logs_demand_holds_for_what_is_recovered),
		TEST(it_holds_when_handles_had_ended),
		TEST(own_session_is_taken_in),
		TEST(metadata_gets_what_the_model_has),
		TEST(a_chunk_that_was_read_is_recovered),
		TEST(a_session_that_lives_is_left_alone),
		TEST(a_complete_trace_is_left_alone),
		TEST(session_elsewhere_is_left_alone),
		TEST(anything_else_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
