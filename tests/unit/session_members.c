// SPDX-License-Identifier: MIT
/*
 * session_members.c - which control files a session takes for a process's
 *
 * Not here: what hostile ones say (tests/fuzz/shared_memory.c), and attaching
 * (tests/e2e/attach*.py).
 */
#include "core/core.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "session_fixture.h"

#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NAME "control-1-0"

/* A control file with an honest head. */
static void make_file(const char *name, uint32_t pid, uint32_t pid_namespace)
{
	const struct pem_control_file head = {.magic = PEM_CONTROL_MAGIC,
					      .abi_version = PEM_ABI_VERSION,
					      .pid = pid,
					      .pid_namespace = pid_namespace};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	close(fd);
}

static bool is_believed(uid_t owner)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    fd = pem_shared_file__open(directory, NAME, O_RDWR), result;
	struct stat st;

	assert_true(fd >= 0);
	result = pem_shared_file__check(fd, owner, &st);
	close(fd);
	close(directory);
	return !result;
}

/* Another user who can put a file there, as by a link, is not believed. */
static void a_file_is_its_folders_owners(void **state)
{
	char path[128];

	(void)state;
	make_file(NAME, 1, 0);
	assert_true(is_believed(geteuid()));
	assert_false(is_believed(geteuid() + 1));
	if (geteuid())
		skip();
	snprintf(path, sizeof(path), "%s/" NAME, folder);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_false(is_believed(geteuid()));
	assert_true(is_believed(65534));
}

/* A process that does nothing, and has no children that other tests could be. */
static pid_t idle_process(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		pause();
		_exit(0);
	}
	return child;
}

static void attach_to(struct pem_session *s, pid_t pid, int wanted)
{
	struct pem_context target = {0};
	struct pem_error error = {""};

	target.pid = (uint32_t)pid;
	if (pem_session__attach(s, &target, &error) != wanted)
		fail_msg("%s", error.text);
}

/* Root's session may have found other users' processes, too: those of other tests. */
static bool has_member(struct pem_session *s, uint32_t pid)
{
	const struct pem_member *m;

	pem_session__lock(s);
	for (m = s->processes->members; m && m->pid != pid; m = m->next)
		;
	pem_session__unlock(s);
	return m != NULL;
}

/* Is a control file of this owner taken for that of a process? */
static bool is_taken_from(uid_t owner)
{
	pid_t process = idle_process();
	struct pem_session *s = session_open(NULL);
	char path[128], before[128];
	bool is_taken;

	/* A search may see the file at any time: it has its owner when it gets its name. */
	make_file("made-1-0", (uint32_t)process, pem_pid_namespace());
	snprintf(before, sizeof(before), "%s/made-1-0", folder);
	snprintf(path, sizeof(path), "%s/" NAME, folder);
	assert_int_equal(truncate(before, sizeof(struct pem_control_file)), 0);
	assert_int_equal(chown(before, owner, (gid_t)-1), 0);
	assert_int_equal(rename(before, path), 0);
	attach_to(s, process, owner == geteuid());
	is_taken = has_member(s, (uint32_t)process);
	pem_session__close(s);
	kill(process, SIGKILL);
	assert_int_equal(waitpid(process, NULL, 0), process);
	unlink(path);
	return is_taken;
}

/* A user who can link or move files there does not speak for the folder's owner. */
static void a_file_of_another_user_is_no_process(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	assert_true(is_taken_from(geteuid()));
	assert_false(is_taken_from(65534));
}

/* The number of a child that has ended and was waited for. */
static uint32_t dead_pid(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return (uint32_t)child;
}

static bool exists(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !access(path, F_OK);
}

/* Of two dead processes by their numbers, one does not say which pid namespace its number is of. */
static void numbers_of_unknown_namespaces_say_nothing(void **state)
{
	struct pem_session *s = session_open(NULL);
	const struct pem_context any = {0};
	uint32_t pid = dead_pid();
	struct pem_error error = {""};
	struct pem_member *m;

	(void)state;
	if (!pem_pid_namespace())
		skip();
	make_file("control-1-0", pid, pem_pid_namespace());
	make_file("control-2-0", pid, 0);
	if (pem_session__attach(s, &any, &error) < 0)
		fail_msg("%s", error.text);
	pem_session__lock(s);
	/* long ago */
	for (m = s->processes->members; m; m = m->next)
		m->asked_ns = 0;
	pem_session__scan_members(s);
	pem_session__unlock(s);
	assert_false(exists("control-1-0"));
	assert_true(exists("control-2-0"));
	pem_session__close(s);
}

/*
 * A process that is about to join the session by itself, in entry 0 of its table; the member, as
 * the session has asked it.
 */
static struct pem_member *joining(struct pem_session *s, struct pem_control_file **control)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	make_file(NAME, (uint32_t)getppid(), pem_pid_namespace());
	fd = pem_shared_file__open(directory, NAME, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(**control)), 0);
	*control = mmap(NULL, sizeof(**control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(*control != MAP_FAILED);
	close(fd);
	close(directory);
	(*control)->session[0].session_id = s->page->id;
	(*control)->session[0].incarnation = 1;
	(*control)->session[0].word = PEM_ENTRY_WORD(PEM_ENTRY_FILLED, 1, 0);
	attach_to(s, getppid(), 1); /* as good as observed */
	assert_non_null(s->processes->members);
	assert_int_equal(s->processes->members->session_index, -1);
	assert_int_equal((*control)->session[1].word & 3, PEM_ENTRY_FREE); /* given back */
	return s->processes->members;
}

static void end_joining(struct pem_session *s, struct pem_control_file *control)
{
	pem_session__close(s);
	munmap(control, sizeof(*control));
}

static void who_joins_by_itself_is_found_by_the_next_look(void **state)
{
	struct pem_session *s = session_open(NULL);
	struct pem_control_file *control;
	struct pem_member *m = joining(s, &control);

	(void)state;
	control->session[0].word = PEM_ENTRY_WORD(PEM_ENTRY_OFFERED, 2, 0);
	pem_session__lock(s);
	pem_session__scan_members(s);
	assert_int_equal(m->session_index, 0);
	pem_session__unlock(s);
	end_joining(s, control);
}

static void who_joins_by_itself_is_told_of_new_rules(void **state)
{
	struct pem_session *s = session_open(NULL);
	struct pem_control_file *control;
	struct pem_member *m = joining(s, &control);

	(void)state;
	control->session[0].word = PEM_ENTRY_WORD(PEM_ENTRY_OFFERED, 2, 0);
	pem_session__lock(s);
	pem_session__publish(s);
	assert_int_equal(m->session_index, 0);
	pem_session__unlock(s);
	end_joining(s, control);
}

static void ignore(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
}

/* This process is in no more than eight sessions, and the ninth is told so. */
static void eight_sessions_observe_a_process(void **state)
{
	const struct pem_context here = {.size = sizeof(here), .pid = (uint32_t)getpid()};
	const struct pem_session_options options = {.size = sizeof(options)};
	struct pem_session *sessions[PEM_SESSIONS_MAX + 1];
	struct pem_error error = {""};
	struct pem_event_set *set;
	unsigned i;

	(void)state;
	for (i = 0; i <= PEM_SESSIONS_MAX; i++)
		sessions[i] = session_open(&options);
	for (i = 0; i < PEM_SESSIONS_MAX; i++)
		assert_int_equal(pem_session__attach(sessions[i], &here, &error), 1);
	assert_string_equal(error.text, "");
	assert_int_equal(pem_session__attach(sessions[i], &here, &error), -EUSERS);
	assert_non_null(strstr(error.text, "eight sessions do already"));
	error.text[0] = 0;
	set = events(sessions[i], "APP::Libc::Malloc");
	assert_null(pem_session__register_callback(sessions[i], set, &here, ignore, NULL, &error));
	assert_int_equal(errno, EUSERS);
	assert_non_null(strstr(error.text, "eight sessions do already"));
	error.text[0] = 0;
	assert_null(pem_session__register_async_callback(sessions[i], set, &here, ignore, NULL,
							 NULL, &error));
	assert_int_equal(errno, EUSERS);
	assert_non_null(strstr(error.text, "eight sessions do already"));
	pem_event_set__free(set);
	for (i = 0; i <= PEM_SESSIONS_MAX; i++)
		pem_session__close(sessions[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_its_folders_owners),
		TEST(a_file_of_another_user_is_no_process),
		TEST(numbers_of_unknown_namespaces_say_nothing),
		TEST(who_joins_by_itself_is_found_by_the_next_look),
		TEST(who_joins_by_itself_is_told_of_new_rules),
		TEST(eight_sessions_observe_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
