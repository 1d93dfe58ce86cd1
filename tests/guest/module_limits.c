// SPDX-License-Identifier: MIT
/*
 * module_limits.c - who may use /dev/pem, and how much memory: the machine's, the user's, his
 * control group's
 */
#include "module_fixture.h"

#include <grp.h>
#include <sys/stat.h>

#define GROUP "/sys/fs/cgroup/pem-limits"
#define CPU_ONLINE "/sys/devices/system/cpu/cpu1/online"
#define TRACING 900
#define NOBODY 65534
/* Of each CPU. */
#define CHUNK_BYTES 65536u
#define MIB_CHUNKS 16u

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static uint64_t number_of(const char *path)
{
	char text[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return strtoull(text, NULL, 10);
}

static int setup_mib(int fd, uint32_t mib)
{
	struct pem_kmod_setup setup = {
		.size = sizeof(setup), .chunk_bytes = CHUNK_BYTES, .chunk_count = mib * MIB_CHUNKS};

	return ioctl(fd, PEM_KMOD_SETUP, &setup) ? errno : 0;
}

static uint64_t used(int fd)
{
	struct pem_kmod_info info = {.size = sizeof(info)};

	return ioctl(fd, PEM_KMOD_INFO, &info) ? ~0ull : info.used_bytes;
}

/* Run it in a child of that user, of group tracing or not; its status. */
static int as_user(uid_t user, int is_tracing, int (*does)(void))
{
	gid_t group = TRACING;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		if (setgroups(is_tracing ? 1 : 0, &group) || setgid(NOBODY) || setuid(user))
			_exit(120);
		_exit(does());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int error_of_open(void)
{
	return open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC) < 0 ? errno : 0;
}

static int records(void)
{
	struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_LOG);
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0 || setup_mib(fd, 1))
		return 1;
	return ioctl(fd, PEM_KMOD_EVENT, &event) || ioctl(fd, PEM_KMOD_START, 0) ||
			       ioctl(fd, PEM_KMOD_STOP, 0)
		       ? 2
		       : 0;
}

static void users_need_the_group(void **state)
{
	(void)state;
	assert_int_equal(as_user(NOBODY, 0, error_of_open), EACCES);
	assert_int_equal(as_user(NOBODY, 1, error_of_open), 0);
	assert_int_equal(as_user(NOBODY, 1, records), 0);
}

static void more_memory_than_there_is(void **state)
{
	struct pem_kmod_setup setup = {.size = sizeof(setup),
				       .chunk_bytes = PEM_KMOD_CHUNK_BYTES_MAX,
				       .chunk_count = PEM_KMOD_CHUNKS_MAX / 2};
	struct pem_kmod_info info = {.size = sizeof(info)};
	struct session *s = session_open();

	(void)state;
	assert_int_equal(ask(s, PEM_KMOD_SETUP, &setup), -ENOMEM);
	/* just more than fits: found out halfway */
	setup.chunk_count = 700;
	assert_int_equal(ask(s, PEM_KMOD_SETUP, &setup), -ENOMEM);
	assert_int_equal(ask(s, PEM_KMOD_INFO, &info), 0);
	assert_int_equal(info.used_bytes, 0);
	session_setup(s, 0, 8192, 8);
	session_close(s);
}

static int limit_user(const char *mib)
{
	return put("/sys/module/pem/parameters/limit_mb", mib);
}

/* With a limit of 8 MiB. */
static int is_limited(void)
{
	struct pem_kmod_info info = {.size = sizeof(info)};
	int first = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC),
	    second = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);

	if (first < 0 || second < 0 || setup_mib(first, 1))
		return 1;
	if (setup_mib(second, 8) != ENOMEM)
		return 2;
	if (ioctl(second, PEM_KMOD_INFO, &info) || info.limit_bytes != 8ull << 20 ||
	    !info.used_bytes || info.used_bytes > info.limit_bytes)
		return 3;
	return setup_mib(second, 1) ? 4 : 0;
}

static void a_users_sessions_have_a_limit_together(void **state)
{
	int status;

	(void)state;
	assert_int_equal(limit_user("8"), 0);
	status = as_user(NOBODY, 1, is_limited);
	assert_int_equal(limit_user("-1"), 0);
	assert_int_equal(status, 0);
}

/* That of the machine's memory which he has where nobody set a limit. */
static int is_limited_by_default(void)
{
	struct pem_kmod_info info = {.size = sizeof(info)};
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, PEM_KMOD_INFO, &info))
		return 1;
	if (!info.limit_bytes || info.limit_bytes > memory / 8)
		return 2;
	if (setup_mib(fd, (uint32_t)(info.limit_bytes >> 20) + 1) != ENOMEM)
		return 3;
	return setup_mib(fd, 1) ? 4 : 0;
}

static void a_user_has_a_share_of_the_machines_memory(void **state)
{
	(void)state;
	assert_int_equal(as_user(NOBODY, 1, is_limited_by_default), 0);
}

static int opens_many(void)
{
	int last = -1, n = 0, fd;

	while ((fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC)) >= 0 && n++ < 1000)
		last = fd;
	if (n != 64 || errno != EMFILE)
		return 1;
	close(last);
	return open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC) < 0 ? 2 : 0;
}

static void a_user_has_so_many_files_open(void **state)
{
	(void)state;
	assert_int_equal(as_user(NOBODY, 1, opens_many), 0);
}

#define IDS 4

/* With that user id, of a namespace whose root this is. */
static int open_as(uid_t user, int count)
{
	int n = 0;

	if (setresuid(user, 0, 0))
		_exit(120);
	while (n < count && open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC) >= 0)
		n++;
	return n;
}

/*
 * Somebody of group tracing in a user namespace of his own; its ids are mapped when told so. How
 * many files he opens.
 */
static int opens_with_many_ids(int unshared, int mapped)
{
	gid_t group = TRACING;
	int id, n = 0;
	char byte = 0;

	if (setgroups(1, &group) || setgid(NOBODY) || setuid(NOBODY) || unshare(CLONE_NEWUSER))
		return 77;
	if (write(unshared, &byte, 1) != 1 || read(mapped, &byte, 1) != 1)
		return 120;
	for (id = 1; id <= IDS; id++)
		n += open_as((uid_t)id, 40);
	return n;
}

static void subordinate_users_are_their_owner(void **state)
{
	int unshared[2], mapped[2], status;
	char path[64], byte = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(unshared, O_CLOEXEC), 0);
	assert_int_equal(pipe2(mapped, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(opens_with_many_ids(unshared[1], mapped[0]));
	close(unshared[1]);
	if (read(unshared[0], &byte, 1) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/uid_map", child);
		assert_int_equal(put(path, "0 65534 1\n1 100000 8\n"), 0);
		assert_int_equal(write(mapped[1], &byte, 1), 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	close(unshared[0]);
	close(mapped[0]);
	close(mapped[1]);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("# no user namespaces for ordinary users\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 64);
}

/* In a control group of 24 MiB: refused, not killed. What it gets is charged to the group. */
static int is_refused_in_group(void)
{
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);
	uint64_t before = number_of(GROUP "/memory.current");

	if (setup_mib(fd, 64) != ENOMEM || used(fd))
		return 1;
	if (setup_mib(fd, 4))
		return 2;
	if (number_of(GROUP "/memory.current") < before + (4u << 20))
		return 3;
	return 0;
}

/* What comes with a CPU, as it comes. */
static int pays_for_a_later_cpu(void)
{
	int fd = open(PEM_KMOD_DEVICE, O_RDWR | O_CLOEXEC);
	uint64_t before;

	if (put(CPU_ONLINE, "0"))
		return 77;
	if (setup_mib(fd, 4) || !used(fd))
		return 1;
	before = number_of(GROUP "/memory.current");
	if (put(CPU_ONLINE, "1"))
		return 2;
	return number_of(GROUP "/memory.current") < before + (4u << 20) ? 3 : 0;
}

static int in_group(int (*does)(void))
{
	int status;
	pid_t child;

	if (put("/sys/fs/cgroup/cgroup.subtree_control", "+memory") || mkdir(GROUP, 0755)) {
		print_message("# no control groups of version 2 for memory\n");
		skip();
	}
	assert_int_equal(put(GROUP "/memory.max", "25165824"), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(put(GROUP "/cgroup.procs", "0") ? 120 : does());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(rmdir(GROUP), 0);
	return WEXITSTATUS(status);
}

static void memory_is_the_control_groups(void **state)
{
	(void)state;
	assert_int_equal(in_group(is_refused_in_group), 0);
}

static void memory_of_a_later_cpu_is_the_control_groups(void **state)
{
	int status;

	(void)state;
	status = in_group(pays_for_a_later_cpu);
	if (status == 77) {
		print_message("# CPU 1 is not there, or can't go\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_need_the_group),
		cmocka_unit_test(more_memory_than_there_is),
		cmocka_unit_test(a_users_sessions_have_a_limit_together),
		cmocka_unit_test(a_user_has_a_share_of_the_machines_memory),
		cmocka_unit_test(a_user_has_so_many_files_open),
		cmocka_unit_test(subordinate_users_are_their_owner),
		cmocka_unit_test(memory_is_the_control_groups),
		cmocka_unit_test(memory_of_a_later_cpu_is_the_control_groups),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
