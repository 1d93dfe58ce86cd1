/* SPDX-License-Identifier: MIT */
/*
 * session_refused.c - sources that can't be opened, or not for all events: the next one serves
 * them, or a gap says why
 *
 * The sources are the test's own, in the place of plugins.
 */
#include "core/core.h"
#include "source_host/source_host.h"
#include <dlfcn.h>
#include <errno.h>
#include <sys/eventfd.h>

#include "session_fixture.h"

#define EVENT "OS::Process::Exec"

struct pem_source {
	size_t event_count;
	int refused; /* index of the event that it has not; -1: none */
};

/* What the preferred one does, and what both were asked. */
static struct {
	int open_rc, start_rc, refuse;
	unsigned first_closed, second_opened;
	size_t second_events;
	unsigned drains;
	int fd; /* polled; 0: none */
} fake;

static int can_deliver(const struct pem_event *event, struct pem_error *reason)
{
	(void)reason;
	return event->source_kind == PEM_SOURCE_TRACEPOINT ? 1 : -ENOENT;
}

static int open_any(const struct pem_source_config *config, struct pem_source **source)
{
	size_t i;

	*source = calloc(1, sizeof(**source));
	if (!*source)
		return -ENOMEM;
	(*source)->event_count = config->event_count;
	(*source)->refused = -1;
	for (i = 0; fake.refuse && i < config->event_count; i++) {
		if (strcmp(config->events[i].event->name, EVENT) != 0)
			continue;
		(*source)->refused = (int)i;
		config->log(PEM_LOG_WARNING, "can't attach to " EVENT ": the test says so",
			    config->log_arg);
	}
	return 0;
}

static int open_first(const struct pem_source_config *config, struct pem_source **source,
		      struct pem_error *error)
{
	snprintf(error->text, sizeof(error->text), "no quota");
	return fake.open_rc ? fake.open_rc : open_any(config, source);
}

static int open_second(const struct pem_source_config *config, struct pem_source **source,
		       struct pem_error *error)
{
	int refuse = fake.refuse;

	(void)error;
	fake.second_opened++;
	fake.second_events = config->event_count;
	fake.refuse = refuse > 1;
	open_any(config, source);
	fake.refuse = refuse;
	return 0;
}

static int start_first(struct pem_source *source, struct pem_error *error)
{
	(void)source;
	snprintf(error->text, sizeof(error->text), "no quota");
	return fake.start_rc;
}

static int start_second(struct pem_source *source, struct pem_error *error)
{
	(void)source;
	(void)error;
	return 0;
}

static int set_action(struct pem_source *source, size_t i, uint64_t action)
{
	(void)source;
	(void)i;
	(void)action;
	return 0;
}

static int read_statistic(struct pem_source *source, size_t i, struct pem_statistic *value)
{
	(void)source;
	(void)i;
	memset(value, 0, sizeof(*value));
	return 0;
}

static int drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	(void)source;
	(void)sink;
	(void) final;
	fake.drains++;
	return 0;
}

static int poll_fd(const struct pem_source *source)
{
	(void)source;
	return fake.fd ? fake.fd : -1;
}

static int balance(struct pem_source *source, size_t i, struct pem_balance *b)
{
	memset(b, 0, sizeof(*b));
	return (int)i == source->refused ? -ENOENT : 0;
}

static void close_first(struct pem_source *source)
{
	fake.first_closed++;
	free(source);
}

static void close_second(struct pem_source *source)
{
	free(source);
}

#define OPS                                                                                        \
	.size = sizeof(struct pem_source_ops), .abi_version = PEM_SOURCE_ABI_VERSION,              \
	.can_deliver = can_deliver, .set_action = set_action, .read_statistic = read_statistic,    \
	.drain = drain, .balance = balance, .poll_fd = poll_fd

static const struct pem_source_ops first = {OPS, .name = "first", .open = open_first,
					    .start = start_first, .close = close_first};
static const struct pem_source_ops second = {OPS, .name = "second", .open = open_second,
					     .start = start_second, .close = close_second};

static struct pem_source_plugin *plugin(const struct pem_source_ops *ops,
					struct pem_source_plugin *next)
{
	struct pem_source_plugin *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->ops = ops;
	p->handle = dlopen(NULL, RTLD_NOW);
	p->next = next;
	return p;
}

/* Log of EVENT by the two, or the first alone; what its trace says of gaps. */
static struct pem_session *observe(bool alone)
{
	const struct pem_context context = {.pid = (uint32_t)getpid()};
	struct pem_session *session = session_open(NULL);

	session->sources->plugins_loaded = true;
	session->sources->plugins = plugin(&first, alone ? NULL : plugin(&second, NULL));
	log_to_trace(session, EVENT, &context);
	return session;
}

static const struct pem_event *event_of(struct pem_session *session)
{
	return pem_model__by_name(pem_session__model(session), EVENT);
}

static int forget(void **state)
{
	memset(&fake, 0, sizeof(fake));
	return folder_make(state);
}

static void a_source_that_does_not_open_is_followed_by_the_next(void **state)
{
	struct pem_session *session;

	(void)state;
	fake.open_rc = -EDQUOT;
	session = observe(false);
	assert_int_equal(fake.second_opened, 1);
	assert_true(fake.second_events >= 1);
	assert_int_equal(pem_session__can_deliver(session, event_of(session), NULL), 1);
	pem_session__close(session);
}

static void a_source_that_does_not_start_is_followed_by_the_next(void **state)
{
	struct pem_session *session;

	(void)state;
	fake.start_rc = -ENOMEM;
	session = observe(false);
	assert_int_equal(fake.first_closed, 1);
	assert_int_equal(fake.second_opened, 1);
	pem_session__close(session);
}

static void an_event_that_a_source_has_not_goes_to_the_next(void **state)
{
	struct pem_session *session;

	(void)state;
	fake.refuse = 1;
	session = observe(false);
	assert_int_equal(fake.second_opened, 1);
	assert_int_equal(fake.second_events, 1);
	assert_int_equal(pem_session__can_deliver(session, event_of(session), NULL), 1);
	pem_session__close(session);
}

/* Nobody has it: the gap has the sentence that the source had for it. */
static void an_event_that_nobody_has_is_a_gap(void **state)
{
	struct pem_trace_info info = {0};
	struct pem_error reason = {""};
	struct pem_session *session;

	(void)state;
	fake.refuse = 2;
	session = observe(false);
	assert_int_equal(pem_session__can_deliver(session, event_of(session), &reason), 0);
	assert_string_equal(reason.text, "can't attach to " EVENT ": the test says so");
	pem_session__note_gaps(session, &info);
	assert_int_equal(info.gap_count, 1);
	assert_string_equal(info.gaps[0].source, "second");
	assert_string_equal(info.gaps[0].reason, reason.text);
	pem_session__close(session);
}

static void a_source_that_does_not_open_is_a_gap_where_it_is_alone(void **state)
{
	struct pem_trace_info info = {0};
	struct pem_session *session;

	(void)state;
	fake.open_rc = -EDQUOT;
	session = observe(true);
	pem_session__note_gaps(session, &info);
	assert_int_equal(info.gap_count, 1);
	assert_string_equal(info.gaps[0].source, "first");
	assert_string_equal(info.gaps[0].reason, "no quota");
	pem_session__close(session);
}

/* One has filled up what nobody can drain: that it is readable all the time makes nobody spin. */
static void a_source_that_calls_in_vain_is_drained_by_the_clock(void **state)
{
	struct pem_session *session;
	int status;

	(void)state;
	fake.fd = eventfd(1, EFD_CLOEXEC);
	assert_true(fake.fd > 0);
	session = observe(true);
	assert_int_equal(pem_session__poll(session, 100, &status), 0);
	assert_in_range(fake.drains, 1, 100);
	pem_session__close(session);
	close(fake.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_source_that_does_not_open_is_followed_by_the_next,
						forget, folder_remove),
		cmocka_unit_test_setup_teardown(
			a_source_that_does_not_start_is_followed_by_the_next, forget,
			folder_remove),
		cmocka_unit_test_setup_teardown(an_event_that_a_source_has_not_goes_to_the_next,
						forget, folder_remove),
		cmocka_unit_test_setup_teardown(an_event_that_nobody_has_is_a_gap, forget,
						folder_remove),
		cmocka_unit_test_setup_teardown(a_source_that_calls_in_vain_is_drained_by_the_clock,
						forget, folder_remove),
		cmocka_unit_test_setup_teardown(
			a_source_that_does_not_open_is_a_gap_where_it_is_alone, forget,
			folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
