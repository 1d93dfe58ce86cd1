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
#include <linux/sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* --- which process a file may speak of --- */

#define GATES 0x1000 /* what a file tells of gates; as no process of another test does */

static uint32_t told_pid; /* whose gates were told; 0: nobody's */

static void note_gates(struct pem_session *s, uint32_t pid, uint64_t address)
{
	(void)s;
	if (address >= GATES && address < 2 * GATES)
		told_pid = pid;
}

/* Open a session of all processes in the folder of a user, where a file tells of a pid's gates. */
static struct pem_session *session_of(uid_t owner, uint32_t pid)
{
	static struct pem_session_hooks hooks;
	const struct pem_context any = {0};
	struct pem_session *s = session_open(NULL);
	struct pem_error error = {""};
	char path[128];
	int fd;

	if (pem_session__attach(s, &any, &error) < 0)
		fail_msg("%s", error.text);
	make_file(NAME, pid, 0);
	snprintf(path, sizeof(path), "%s/" NAME, folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &(uint64_t){GATES}, sizeof(uint64_t),
				offsetof(struct pem_control_file, gates)),
			 sizeof(uint64_t));
	assert_int_equal(fchown(fd, owner, (gid_t)-1), 0);
	close(fd);
	told_pid = 0;
	hooks = *s->hooks;
	hooks.gates_found = note_gates;
	s->hooks = &hooks;
	s->dirs->first->owner = owner;
	pem_session__lock(s);
	pem_session__scan_members(s);
	pem_session__unlock(s);
	return s;
}

static void close_session_of(struct pem_session *s)
{
	s->dirs->first->owner = geteuid();
	pem_session__close(s);
}

/* The member of the test's file. The session is locked. */
static struct pem_member *member_of_file(struct pem_session *s)
{
	struct pem_member *m;

	for (m = s->processes->members; m && (m->dir->number || strcmp(m->name, NAME) != 0);
	     m = m->next)
		;
	assert_non_null(m);
	return m;
}

/* Change what the file tells of gates, and its entry, so that the session looks at it again. */
static void change_gates(struct pem_session *s)
{
	struct pem_member *m;

	pem_session__lock(s);
	m = member_of_file(s);
	assert_true(m->session_index >= 0);
	m->control->gates += 8;
	m->control->session[m->session_index].word += PEM_ENTRY_WORD(0, 1, 0);
	m->asked_ns = 0; /* long ago */
	pem_session__scan_members(s);
	pem_session__unlock(s);
}

/* A process of a user by this number, which nobody has. Returns 0 if it can't be made here. */
static pid_t process_by_number(uint32_t pid, uid_t user)
{
	pid_t number = (pid_t)pid, child;
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
	int pipes[2];
	char byte;

	assert_int_equal(pipe(pipes), 0);
	child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!child) {
		if (!syscall(SYS_setresuid, user, user, user) && write(pipes[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(pipes[1]);
	if (child > 0)
		assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	return child > 0 ? child : 0;
}

static void end_process(pid_t process)
{
	kill(process, SIGKILL);
	assert_int_equal(waitpid(process, NULL, 0), process);
}

static void gates_of_a_process_are_told_while_it_lives(void **state)
{
	pid_t process = idle_process();
	struct pem_session *s = session_of(geteuid(), (uint32_t)process);

	(void)state;
	assert_int_equal(told_pid, process);
	end_process(process);
	told_pid = 0;
	change_gates(s);
	assert_int_equal(told_pid, 0);
	close_session_of(s);
}

static void gates_of_a_pid_without_a_process_are_not_told(void **state)
{
	struct pem_session *s = session_of(geteuid(), dead_pid());

	(void)state;
	assert_int_equal(told_pid, 0);
	change_gates(s);
	assert_int_equal(told_pid, 0);
	close_session_of(s);
}

/*
 * The session attaches to a process that gets its pid after the file of another user named it. The
 * file's member is in none of its contexts, and tells nothing of its gates.
 */
static void expect_silence_of(struct pem_session *s, uint32_t pid, pid_t process)
{
	const struct pem_member *m;
	uint32_t i, contexts = 0;

	told_pid = 0;
	change_gates(s);
	assert_int_equal(told_pid, 0);
	attach_to(s, process, 0);
	pem_session__lock(s);
	m = member_of_file(s);
	for (i = 1; i < s->context_count; i++) {
		if (s->page->contexts[i].pid != pid)
			continue;
		contexts++;
		assert_false(m->contexts >> i & 1);
	}
	pem_session__unlock(s);
	assert_true(contexts > 0);
}

/* before: the user had a process by the number when the file was found. */
static void claim_number(bool before)
{
	uint32_t pid = dead_pid();
	pid_t process = geteuid() ? 0 : process_by_number(pid, 65533);
	struct pem_session *s;

	if (!process) {
		print_message("skipped: only root makes other users' processes, by number\n");
		skip();
	}
	if (!before)
		end_process(process);
	s = session_of(65533, pid);
	assert_int_equal(told_pid, before ? pid : 0);
	if (before)
		end_process(process);
	process = process_by_number(pid, 65534);
	assert_true(process > 0);
	expect_silence_of(s, pid, process);
	end_process(process);
	close_session_of(s);
}

static void who_claims_a_pid_before_it_is_given_says_nothing_of_it(void **state)
{
	(void)state;
	claim_number(false);
}

static void who_had_a_pid_says_nothing_of_the_next_who_has_it(void **state)
{
	(void)state;
	claim_number(true);
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
		TEST(gates_of_a_process_are_told_while_it_lives),
		TEST(gates_of_a_pid_without_a_process_are_not_told),
		TEST(who_claims_a_pid_before_it_is_given_says_nothing_of_it),
		TEST(who_had_a_pid_says_nothing_of_the_next_who_has_it),
		TEST(who_joins_by_itself_is_found_by_the_next_look),
		TEST(who_joins_by_itself_is_told_of_new_rules),
		TEST(eight_sessions_observe_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
