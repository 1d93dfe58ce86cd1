// SPDX-License-Identifier: MIT
/*
 * recover_steps.c - a recovery that ends before any of its steps, or has one fail: the next one
 * makes the same of the trace
 *
 * A filter of system calls hands each one that changes a file to this process, which lets the
 * recovery go on, kills it there, or has the call fail as on a full disk.
 *
 * Not here: what else is in the trace's folder (e2e/recover_folder.py).
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "session_fixture.h"

#include "programs/probe.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TICKS_WRITTEN 1000
#define TICKS_LEFT 300

static const int changing[] = {
	SYS_openat,   SYS_write,   SYS_pwrite64,  SYS_writev,    SYS_renameat2,
	SYS_unlinkat, SYS_mkdirat, SYS_ftruncate, SYS_fallocate, SYS_fchmod,
#ifdef SYS_renameat
	SYS_renameat,
#endif
#ifdef SYS_rename
	SYS_rename,   SYS_unlink,  SYS_rmdir,     SYS_mkdir,
#endif
};

static char runtime[96], stream[160];
static uint8_t stream_before[1 << 20];
static size_t stream_bytes, whole_bytes;

static void shell(const char *format, ...)
{
	char command[512];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (system(command))
		fail_msg("%s", command);
}

/* A recorder that dies with ticks in its trace, and more in shared memory. */
static void record(void)
{
	struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = 4096, .chunk_count = 64};
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_session *session = session_open(&options);
	unsigned i;

	log_to_trace(session, "APP::Probe::Tick", &self);
	for (i = 0; i < TICKS_WRITTEN; i++)
		pem_notify_probe_tick(0, i);
	pem_session__scan_producers(session);
	pem_session__drain_producer(session, session->processes->producers, false);
	for (i = 0; i < TICKS_LEFT; i++)
		pem_notify_probe_tick(0, TICKS_WRITTEN + i);
	_exit(0);
}

/* The only stream of the trace: read it, and add the beginning of one more packet. */
static void tear_stream(void)
{
	struct dirent *entry;
	DIR *folder_of = opendir(trace_path);
	FILE *f;

	assert_non_null(folder_of);
	while ((entry = readdir(folder_of))) {
		if (!strncmp(entry->d_name, "u_", 2))
			snprintf(stream, sizeof(stream), "%s/%.60s", trace_path, entry->d_name);
	}
	closedir(folder_of);
	f = fopen(stream, "r+e");
	assert_non_null(f);
	whole_bytes = fread(stream_before, 1, sizeof(stream_before) - 100, f);
	assert_true(whole_bytes > 1000);
	assert_int_equal(fwrite(stream_before, 1, 100, f), 100);
	memcpy(stream_before + whole_bytes, stream_before, 100);
	stream_bytes = whole_bytes + 100;
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	pid_t recorder;

	if (folder_make(state))
		return -1;
	snprintf(runtime, sizeof(runtime), "%s/runtime", folder);
	setenv("PEM_RUNTIME_DIR", runtime, 1);
	recorder = fork();
	if (!recorder)
		record();
	if (waitpid(recorder, NULL, 0) != recorder)
		return -1;
	tear_stream();
	shell("echo mine >'%s/notes.txt'; mkdir '%s/saved' && cp -a '%s' '%s' '%s/saved'",
	      trace_path, folder, trace_path, runtime, folder);
	return 0;
}

static void restore(void)
{
	shell("rm -rf '%s' '%s' && cp -a '%s/saved/.' '%s'", trace_path, runtime, folder, folder);
}

/* --- the filter --- */

static int make_filter(void)
{
	enum { COUNT = sizeof(changing) / sizeof(changing[0]) };
	struct sock_filter code[COUNT + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {COUNT + 3, code};
	unsigned i;

	for (i = 0; i < COUNT; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned)changing[i], COUNT - i, 0);
	code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &program);
}

static void send_descriptor(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS}};
	struct iovec byte = {"", 1};
	struct msghdr message = {.msg_iov = &byte,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (fd < 0)
		message.msg_control = NULL, message.msg_controllen = 0;
	sendmsg(socket, &message, 0);
}

/* -1: the other side could not make one. */
static int receive_descriptor(int socket)
{
	char space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = space,
				 .msg_controllen = sizeof(space)};
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

enum fault { FAULT_KILL, FAULT_NO_SPACE };

static bool changes_a_file(const struct seccomp_data *call)
{
	return call->nr != SYS_openat || call->args[2] & O_CREAT;
}

/* Let calls pass but the one of that number. Returns how many there were. */
static unsigned supervise(int listener, pid_t pid, unsigned number, enum fault fault)
{
	struct pollfd pollfd = {.fd = listener, .events = POLLIN};
	struct seccomp_notif_resp answer;
	struct seccomp_notif call;
	unsigned count = 0;

	while (poll(&pollfd, 1, 30000) == 1 && pollfd.revents & POLLIN) {
		memset(&call, 0, sizeof(call));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			continue;
		memset(&answer, 0, sizeof(answer));
		answer.id = call.id;
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		if (changes_a_file(&call.data) && count++ == number) {
			if (fault == FAULT_KILL)
				kill(pid, SIGKILL);
			answer.flags = 0;
			answer.error = -ENOSPC;
		}
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return count;
}

/* Recover, with a fault in the call of that number. Its status; *reached: there was such a call. */
static int recover_with(unsigned number, enum fault fault, bool *reached)
{
	struct pem_error error = {""};
	int sockets[2], status, listener;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	pid = fork();
	if (!pid) {
		listener = make_filter();
		send_descriptor(sockets[1], listener);
		if (listener >= 0)
			close(listener);
		_exit(pem_trace__recover(trace_path, &error) ? 1 : 0);
	}
	close(sockets[1]);
	listener = receive_descriptor(sockets[0]);
	close(sockets[0]);
	if (listener < 0) {
		waitpid(pid, NULL, 0);
		print_message("this kernel has no notifications of system calls (Linux 5.5)\n");
		skip();
	}
	*reached = supervise(listener, pid, number, fault) > number;
	close(listener);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* --- what is there afterwards --- */

/*
 * The stream as its recorder left it, but for the torn packet at its end, which goes when all else
 * is there.
 */
static void is_untouched(void)
{
	static uint8_t now[sizeof(stream_before)];
	char path[160], mine[16] = "";
	FILE *f = fopen(stream, "re");
	size_t bytes;

	assert_non_null(f);
	bytes = fread(now, 1, sizeof(now), f);
	fclose(f);
	assert_true(bytes == whole_bytes || bytes == stream_bytes);
	assert_memory_equal(now, stream_before, bytes);
	snprintf(path, sizeof(path), "%s/notes.txt", trace_path);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(mine, sizeof(mine), f));
	fclose(f);
	assert_string_equal(mine, "mine\n");
}

/* Whatever state it is in, it can be read. */
static void is_readable(void)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(trace_path, &error);
	struct pem_record record = {.size = sizeof(record)};

	if (!trace)
		fail_msg("%s", error.text);
	while (pem_trace__next(trace, &record, &error) > 0)
		;
	pem_trace__close(trace);
}

static void is_recovered(void)
{
	struct pem_balance balance;
	struct pem_trace *trace;
	char path[160];
	uint64_t ticks;

	is_untouched();
	assert_int_equal(read_trace("APP::Probe::Tick", &ticks, &balance),
			 TICKS_WRITTEN + TICKS_LEFT);
	assert_int_equal(balance.produced, TICKS_WRITTEN + TICKS_LEFT);
	assert_int_equal(balance.delivered, TICKS_WRITTEN + TICKS_LEFT);
	assert_int_equal(balance.discarded, 0);
	trace = pem_trace__open(trace_path, NULL);
	assert_int_equal(pem_trace__info(trace)->complete, 1);
	pem_trace__close(trace);
	snprintf(path, sizeof(path), "%s/.pem/recovery.new", trace_path);
	assert_int_equal(access(path, F_OK), -1);
}

static void each_step(enum fault fault)
{
	struct pem_error error = {""};
	bool reached = true;
	unsigned n;
	int status;

	for (n = 0; reached; n++) {
		restore();
		status = recover_with(n, fault, &reached);
		if (fault == FAULT_KILL && reached)
			assert_true(WIFSIGNALED(status));
		else
			assert_true(WIFEXITED(status));
		is_untouched();
		is_readable();
		if (WIFEXITED(status) && !WEXITSTATUS(status)) {
			is_recovered();
			continue;
		}
		assert_true(reached);
		/* Nobody recovers a trace that is complete. */
		if (pem_trace__recover(trace_path, &error) &&
		    !strstr(error.text, "nothing to recover"))
			fail_msg("after step %u: %s", n, error.text);
		is_recovered();
	}
	print_message("%u steps\n", n - 1);
	assert_true(n > 20);
}

static void killed_before_each_step(void **state)
{
	(void)state;
	each_step(FAULT_KILL);
}

static void out_of_space_at_each_step(void **state)
{
	(void)state;
	each_step(FAULT_NO_SPACE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(killed_before_each_step),
		TEST(out_of_space_at_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
