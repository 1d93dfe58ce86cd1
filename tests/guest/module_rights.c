/* SPDX-License-Identifier: MIT */
/*
 * module_rights.c - whose memory the module samples for whom, and in whose thread
 *
 * Not here: what it says of that memory (module_accessed.c).
 *
 * guest: limit=180
 */
#include "module_fixture.h"

#include <dirent.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define PAGE 4096ul
#define HUGE_BYTES (2ul << 20)

static struct pem_kmod_accessed about(pid_t pid)
{
	return (struct pem_kmod_accessed){.size = sizeof(struct pem_kmod_accessed),
					  .pid = (uint32_t)pid,
					  .interval_us = 20000,
					  .region_bytes = HUGE_BYTES};
}

/*
 * In a child, as it can't come back: what somebody else may not look into. Returns which answer was
 * wrong.
 */
static int ask_as_nobody(struct session *s, pid_t own, pid_t roots)
{
	struct pem_kmod_accessed asked = about(roots);

	if (setgid(65534) || setuid(65534))
		return 1;
	if (ask(s, PEM_KMOD_ACCESSED, &asked) != -EPERM)
		return 2;
	asked.pid = (uint32_t)own;
	if (ask(s, PEM_KMOD_ACCESSED, &asked) != -EPERM) /* of another user still */
		return 3;
	asked.pid = (uint32_t)getpid();
	if (ask(s, PEM_KMOD_ACCESSED, &asked) != -EPERM) /* not dumpable: it was root's */
		return 4;
	prctl(PR_SET_DUMPABLE, 1);
	return ask(s, PEM_KMOD_ACCESSED, &asked) ? 5 : 0;
}

static void who_may_not_read_it_may_not_sample_it(void **state)
{
	struct session *s = session_open();
	int status;
	pid_t pid;

	(void)state;
	session_setup(s, 0, 8192, 8);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(ask_as_nobody(s, getpid(), getppid()));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	session_close(s);
}

/*
 * In a child: root with no capabilities is not the same as root with all of them. Returns which
 * answer was wrong.
 */
static int ask_without_capabilities(struct session *s, pid_t roots)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	struct pem_kmod_accessed asked = about(roots);

	if (ask(s, PEM_KMOD_ACCESSED, &asked))
		return 1;
	if (syscall(SYS_capset, &header, none))
		return 2;
	if (ask(s, PEM_KMOD_ACCESSED, &asked) != -EPERM)
		return 3;
	asked.pid = (uint32_t)getpid();
	return ask(s, PEM_KMOD_ACCESSED, &asked) ? 4 : 0;
}

static void who_has_fewer_capabilities_may_not_sample_it(void **state)
{
	struct session *s = session_open();
	int status;
	pid_t pid;

	(void)state;
	session_setup(s, 0, 8192, 8);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(ask_without_capabilities(s, getppid()));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	session_close(s);
}

/* --- exec of a program with more rights --- */

#define NOBODY 65534
#define SETUID_PROGRAM "/tmp/module_accessed-setuid"
#define BULK_AT 0x010000000000ul
#define BULK_BYTES (96ul << 20)
#define MARKER_AT 0x600000000000ul
#define MARKER_PAGES 1024u
/* Not the bulk, nor the text of a program that is not relocated. */
#define SAMPLED_FROM 0x500000000000ul
#define SAMPLED_TO 0x7ffffffff000ul

struct passes {
	uint64_t of_before, of_after; /* exec: those with the marker, and without */
};

static void see_passes(void *arg, unsigned cpu, const struct pem_packet *packet, uint64_t clock,
		       uint32_t id, const uint8_t *record)
{
	struct passes *passes = arg;

	(void)cpu, (void)packet, (void)clock;
	if (id == id_of(PASS) && distribution_of(record, 16) >= MARKER_PAGES)
		passes->of_before++;
	else if (id == id_of(PASS))
		passes->of_after++;
}

static void touch_at(uintptr_t address, uint64_t bytes)
{
	void *at = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (at == MAP_FAILED || madvise(at, bytes, MADV_NOHUGEPAGE))
		_exit(121);
	memset(at, 1, bytes);
}

/* A child of another user's that executes a program of root's when told to. */
static pid_t make_executing_child(int *told)
{
	int ready[2], go[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(go[1]);
		run_on(1);
		if (setgid(NOBODY) || setuid(NOBODY) || prctl(PR_SET_DUMPABLE, 1))
			_exit(120);
		touch_at(MARKER_AT, MARKER_PAGES * PAGE);
		touch_at(BULK_AT, BULK_BYTES);
		if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
			_exit(122);
		execl(SETUID_PROGRAM, "busybox", "true", NULL);
		_exit(123);
	}
	close(ready[1]);
	close(go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	*told = go[1];
	return pid;
}

/* With the rights of nobody. Returns errno. */
static int ask_as(uid_t user, struct session *s, struct pem_kmod_accessed *asked)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(setgid(user) || setuid(user) ? 120 : -ask(s, PEM_KMOD_ACCESSED, asked));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void copy_busybox(void)
{
	struct statvfs fs;

	assert_int_equal(system("cp /bin/busybox " SETUID_PROGRAM), 0);
	assert_int_equal(chmod(SETUID_PROGRAM, 04755), 0);
	assert_int_equal(statvfs(SETUID_PROGRAM, &fs), 0);
	assert_false(fs.f_flag & ST_NOSUID);
}

/*
 * Exec gives the process its new memory, then takes the old one apart, then changes the
 * credentials. Of much old memory that takes long, and all the while the new memory, which belongs
 * to a program of root's, must not be sampled for nobody.
 */
static void nobody_samples_a_program_with_more_rights(void **state)
{
	struct pem_kmod_accessed asked;
	struct passes passes = {0, 0};
	struct session *s;
	int round, told, status;
	pid_t pid;

	(void)state;
	copy_busybox();
	for (round = 0; round < 4; round++) {
		s = session_open();
		session_setup(s, 0, 8192, 64);
		session_event(s, REGION, PEM_ACTION_LOG);
		session_event(s, PASS, PEM_ACTION_LOG);
		s->seen = see_passes;
		s->arg = &passes;
		pid = make_executing_child(&told);
		asked = (struct pem_kmod_accessed){.size = sizeof(asked),
						   .pid = (uint32_t)pid,
						   .interval_us = 1000,
						   .region_bytes = 1ull << 40,
						   .from = SAMPLED_FROM,
						   .to = SAMPLED_TO};
		assert_int_equal(ask_as(NOBODY, s, &asked), 0);
		session_work(s);
		session_run_until(s, &passes.of_before, passes.of_before);
		session_start(s);
		usleep(50000); /* passes are under way */
		assert_int_equal(write(told, "", 1), 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		close(told);
		session_finish(s);
		session_close(s);
	}
	unlink(SETUID_PROGRAM);
	print_message("# passes before exec: %llu, after: %llu\n",
		      (unsigned long long)passes.of_before, (unsigned long long)passes.of_after);
	assert_true(passes.of_before > 0);
	assert_int_equal(passes.of_after, 0);
}

/* --- the thread that works --- */

static unsigned count_kernel_threads(void)
{
	char path[300], name[16];
	struct dirent *entry;
	unsigned count = 0;
	DIR *all = opendir("/proc");
	FILE *comm;

	assert_non_null(all);
	while ((entry = readdir(all))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		comm = fopen(path, "r");
		if (comm && fgets(name, sizeof(name), comm) && !strncmp(name, "pem/", 4))
			count++;
		if (comm)
			fclose(comm);
	}
	closedir(all);
	return count;
}

/*
 * The user's own thread samples: the kernel has none that would do it outside of his control group.
 */
static void nothing_is_sampled_but_by_a_thread_of_the_users(void **state)
{
	struct pem_kmod_supply supply = {.size = sizeof(supply), .interval_us = 1000};
	struct pem_kmod_accessed asked = about(getpid());
	struct session *s = session_open();
	struct passes passes = {0, 0};

	(void)state;
	session_setup(s, 0, 8192, 64);
	session_event(s, PASS, PEM_ACTION_LOG);
	s->seen = see_passes;
	s->arg = &passes;
	asked.interval_us = 1000;
	assert_int_equal(ask(s, PEM_KMOD_ACCESSED, &asked), 0);
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &supply), 0);
	session_start(s);
	assert_int_equal(count_kernel_threads(), 0);
	usleep(50000);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	session_drain(s);
	assert_int_equal(passes.of_before + passes.of_after, 0);
	session_work(s);
	session_run_until(s, &passes.of_after, 0);
	session_close(s);
}

/* A thread in WORK. */
struct call {
	struct session *s;
	pthread_t thread;
	int is_done; /* __atomic */
	int rc;
};

static void *work_once(void *arg)
{
	struct call *call = arg;

	call->rc = ask(call->s, PEM_KMOD_WORK, NULL);
	__atomic_store_n(&call->is_done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void start_work(struct call *call, struct session *s)
{
	*call = (struct call){.s = s};
	assert_int_equal(pthread_create(&call->thread, NULL, work_once, call), 0);
}

static bool is_done(const struct call *call)
{
	return __atomic_load_n(&call->is_done, __ATOMIC_ACQUIRE);
}

static int end_of(const struct call *call)
{
	assert_int_equal(pthread_join(call->thread, NULL), 0);
	return call->rc;
}

static void a_thread_works_until_stop_or_a_signal(void **state)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct session *s = session_open();
	struct call call;

	(void)state;
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	assert_int_equal(ask(s, PEM_KMOD_WORK, NULL), -EBUSY);
	session_setup(s, 0, 8192, 8);
	assert_int_equal(ask(s, PEM_KMOD_WORK, NULL), -EBUSY);
	session_start(s);
	start_work(&call, s);
	for (; !is_done(&call); usleep(1000))
		pthread_kill(call.thread, SIGUSR2);
	assert_int_equal(end_of(&call), -EINTR);
	start_work(&call, s);
	usleep(20000);
	assert_false(is_done(&call));
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	assert_int_equal(end_of(&call), 0);
	assert_int_equal(ask(s, PEM_KMOD_WORK, NULL), -EBUSY);
	session_close(s);
}

static void a_second_thread_is_refused(void **state)
{
	struct session *s = session_open();
	struct call calls[2];

	(void)state;
	session_setup(s, 0, 8192, 8);
	session_start(s);
	start_work(&calls[0], s);
	start_work(&calls[1], s);
	while (!is_done(&calls[0]) && !is_done(&calls[1]))
		usleep(1000);
	usleep(20000);
	assert_int_not_equal(is_done(&calls[0]), is_done(&calls[1]));
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	assert_int_equal(end_of(&calls[0]) + end_of(&calls[1]), -EBUSY);
	session_close(s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_not_read_it_may_not_sample_it),
		cmocka_unit_test(who_has_fewer_capabilities_may_not_sample_it),
		cmocka_unit_test(nobody_samples_a_program_with_more_rights),
		cmocka_unit_test(nothing_is_sampled_but_by_a_thread_of_the_users),
		cmocka_unit_test(a_thread_works_until_stop_or_a_signal),
		cmocka_unit_test(a_second_thread_is_refused),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
