/* SPDX-License-Identifier: MIT */
/*
 * stream_observed.c - a process's queues as an observer sees them (pem/streams.h), and the
 * process whose memory for that is damaged, or that forks or closes it
 *
 * Not here: the queue's own behaviour (stream_queue.c); what threads did between two readings
 * (stream_service.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pem/stream.h>

#include "streams/streams.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define CAPACITY 16u

static struct pem_stream *make(const char *name)
{
	struct pem_stream *stream = pem_stream__make(name, CAPACITY, sizeof(uint64_t));

	assert_non_null(stream);
	return stream;
}

static struct pem_streams *observe(pid_t pid)
{
	struct pem_error error = {""};
	struct pem_streams *streams = pem_streams__open((uint32_t)pid, &error);

	if (!streams)
		fail_msg("%s", error.text);
	return streams;
}

/* Read the queue of this name. id 0: there is none. */
static struct pem_streams_queue find(struct pem_streams *streams, const char *name)
{
	static const struct pem_streams_queue none;
	ptrdiff_t count = pem_streams__read(streams, NULL);

	assert_true(count >= 0);
	for (size_t i = 0; i < (size_t)count; i++)
		if (!strcmp(pem_streams__queue(streams, i)->name, name))
			return *pem_streams__queue(streams, i);
	assert_null(pem_streams__queue(streams, (size_t)count));
	return none;
}

static void push(struct pem_stream *stream, uint64_t from, uint64_t count)
{
	for (uint64_t i = from; i < from + count; i++)
		assert_int_equal(pem_stream__try_push(stream, &i), 0);
}

static void pop(struct pem_stream *stream, uint64_t from, uint64_t count)
{
	uint64_t item;

	for (uint64_t i = from; i < from + count; i++) {
		assert_int_equal(pem_stream__try_pop(stream, &item), 0);
		assert_int_equal(item, i);
	}
}

static void counts_names_and_threads(void **state)
{
	struct pem_stream *stream = make("a queue whose name is too long to fit");
	struct pem_streams *streams = observe(getpid());
	struct pem_streams_queue seen;

	(void)state;
	pem_stream_stage("reader");
	push(stream, 0, 5);
	pop(stream, 0, 2);
	seen = find(streams, "a queue whose name is too long ");
	assert_int_equal(seen.id, stream->id);
	assert_int_equal(seen.capacity, CAPACITY);
	assert_int_equal(seen.limit, CAPACITY);
	assert_int_equal(seen.item_bytes, 8);
	assert_int_equal(seen.push.items, 5);
	assert_int_equal(seen.pop.items, 2);
	assert_int_equal(seen.queued, 3);
	assert_int_equal(seen.push.tid, gettid());
	assert_int_equal(seen.pop.tid, gettid());
	assert_string_equal(seen.push.stage, "reader");
	assert_int_equal(seen.pop.blocks, 0);
	pem_stream_stage(NULL);
	pop(stream, 2, 3);
	assert_int_equal(pem_stream__try_pop(stream, &(uint64_t){0}), -EAGAIN);
	seen = find(streams, "a queue whose name is too long ");
	assert_int_equal(seen.pop.refused, 1);
	assert_true(*seen.pop.stage && strcmp(seen.pop.stage, "reader")); /* the thread's name */
	pem_stream__free(stream);
	pem_streams__close(streams);
}

static void *pop_all(void *arg)
{
	uint64_t item, count = 0;

	pem_stream_stage("pops");
	while (!pem_stream__pop((struct pem_stream *)arg, &item))
		count++;
	return (void *)(uintptr_t)count;
}

static void a_block_that_goes_on(void **state)
{
	struct pem_stream *stream = make("blocked");
	struct pem_streams *streams = observe(getpid());
	struct pem_streams_queue first, second;
	pthread_t thread;
	void *popped;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, pop_all, stream), 0);
	do {
		sched_yield();
		first = find(streams, "blocked");
	} while (!first.pop.since_ns);
	assert_string_equal(first.pop.stage, "pops");
	assert_true(first.pop.tid > 0 && first.pop.tid != (uint32_t)gettid());
	assert_int_equal(first.pop.blocks, 1);
	second = find(streams, "blocked");
	assert_int_equal(second.pop.since_ns, first.pop.since_ns);
	assert_int_equal(second.pop.blocked_ns - first.pop.blocked_ns, second.at_ns - first.at_ns);
	push(stream, 0, 1);
	pem_stream__close(stream);
	assert_int_equal(pthread_join(thread, &popped), 0);
	assert_int_equal((uintptr_t)popped, 1);
	pem_stream__free(stream);
	pem_streams__close(streams);
}

static void a_limit_is_kept(void **state)
{
	struct pem_stream *stream = make("limited");
	struct pem_streams *streams = observe(getpid());
	struct pem_streams_queue seen = find(streams, "limited");
	struct pem_error error = {""};
	uint64_t item = 3;

	(void)state;
	assert_int_equal(pem_streams__limit(streams, &seen, 0, &error), -EINVAL);
	assert_int_equal(pem_streams__limit(streams, &seen, CAPACITY + 1, &error), -EINVAL);
	assert_int_equal(pem_streams__limit(streams, &seen, 3, &error), 0);
	assert_int_equal(find(streams, "limited").limit, 3);
	push(stream, 0, 3);
	assert_int_equal(pem_stream__try_push(stream, &item), -EAGAIN);
	assert_int_equal(pem_streams__limit(streams, &seen, CAPACITY, &error), 0);
	push(stream, 3, CAPACITY - 3);
	/* Fewer than are in the queue already. */
	assert_int_equal(pem_streams__limit(streams, &seen, 1, &error), 0);
	assert_int_equal(pem_stream__try_push(stream, &item), -EAGAIN);
	pop(stream, 0, CAPACITY - 1);
	assert_int_equal(pem_stream__try_push(stream, &item), -EAGAIN);
	pop(stream, CAPACITY - 1, 1);
	push(stream, 0, 1);
	pem_stream__free(stream);
	assert_int_equal(pem_streams__limit(streams, &seen, 2, &error), -ESTALE);
	assert_non_null(strstr(error.text, "is gone"));
	pem_streams__close(streams);
}

/* The memory that this process shows. */
static struct pem_stream_page *page(void)
{
	return pem_stream_process.page;
}

static void it_cannot_shrink(void **state)
{
	struct pem_stream *stream = make("sealed");
	int fd = pem_stream_process.fd;

	(void)state;
	assert_true(fd >= PEM_STREAM_FD_MIN);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 2 * (off_t)PEM_STREAM_BYTES), -1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	pem_stream__free(stream);
}

/* Whatever is written into the memory, the queue keeps its items, and an observer its wits. */
static void damaged_memory(void **state)
{
	struct pem_stream *stream = make("damaged");
	struct pem_streams *streams = observe(getpid());
	struct pem_stream_page head = *page();
	uint64_t random = 1;
	size_t skipped;

	(void)state;
	for (int turn = 0; turn < 2000; turn++) {
		for (uint32_t i = 0; i < PEM_STREAM_BYTES / 8 && i < 4096; i += 1 + turn % 7) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			((uint64_t *)page())[i] = turn % 3   ? random >> (turn % 64)
						  : turn % 2 ? UINT64_MAX
							     : 0;
		}
		push(stream, 0, 1);
		pop(stream, 0, 1);
		assert_true(pem_streams__read(streams, &skipped) >= 0);
	}
	memset(page(), 0, PEM_STREAM_BYTES);
	*page() = head;
	pem_stream__free(stream);
	pem_streams__close(streams);
}

static void invalid_limits_are_capacity(void **state)
{
	static const uint64_t limits[] = {0, CAPACITY + 1, UINT64_MAX, UINT64_C(1) << 63};
	struct pem_stream *stream = make("nonsense");

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		stream->entry->limit = limits[i];
		push(stream, 0, CAPACITY);
		assert_int_equal(pem_stream__try_push(stream, &(uint64_t){0}), -EAGAIN);
		pop(stream, 0, CAPACITY);
	}
	pem_stream__free(stream);
}

/* Run a function in a child, which returns 0 if all is well. */
static void in_child(int (*run)(struct pem_stream *), struct pem_stream *stream)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(run(stream));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int use_in_child(struct pem_stream *stream)
{
	struct pem_streams *streams = pem_streams__open((uint32_t)getpid(), NULL);
	struct pem_streams_queue seen;
	uint64_t item;

	if (!streams)
		return 1;
	seen = find(streams, "forked");
	if (seen.id != stream->id || seen.push.tid || seen.pop.tid || seen.push.items != 4)
		return 2;
	for (uint64_t i = 0; i < 4; i++)
		if (pem_stream__pop(stream, &item) || item != i)
			return 3;
	if (pem_stream__try_pop(stream, &item) != -EAGAIN)
		return 4;
	seen = find(streams, "forked");
	return seen.pop.items == 4 && seen.pop.tid == (uint32_t)getpid() &&
			       page()->pid == (uint32_t)getpid()
		       ? 0
		       : 5;
}

static void a_child_has_queues_of_its_own(void **state)
{
	struct pem_stream *stream = make("forked");
	struct pem_streams *streams = observe(getpid());

	(void)state;
	push(stream, 0, 4);
	in_child(use_in_child, stream);
	assert_int_equal(find(streams, "forked").pop.items, 0);
	assert_int_equal(page()->pid, getpid());
	pop(stream, 0, 4);
	pem_stream__free(stream);
	pem_streams__close(streams);
}

static int close_all(struct pem_stream *stream)
{
	struct pem_error error = {""};
	int fd = pem_stream_process.fd, other;
	uint64_t item = 7;

	closefrom(0);
	if (pem_stream__push(stream, &item) || pem_stream__pop(stream, &item) || item != 7)
		return 1;
	if (geteuid() && (pem_streams__open((uint32_t)getpid(), &error) || errno != ENOENT))
		return 2;
	/* Another file has the number now, which a child does not close. */
	other = open("/dev/null", O_RDONLY);
	if (dup2(other, fd) != fd)
		return 3;
	if (!fork())
		_exit(fcntl(fd, F_GETFD) < 0 || pem_stream__push(stream, &item) ||
		      pem_stream__pop(stream, &item));
	return wait(&fd) < 0 || fd ? 4 : 0;
}

static void all_descriptors_closed(void **state)
{
	struct pem_stream *stream = make("closed");

	(void)state;
	in_child(close_all, stream);
	pem_stream__free(stream);
}

/* As if it were the process's first queue. */
static int without_descriptors(struct pem_stream *unused)
{
	static const struct rlimit none = {3, 3};
	struct pem_stream *stream;

	(void)unused;
	memset(&pem_stream_process, 0, sizeof(pem_stream_process));
	setrlimit(RLIMIT_NOFILE, &none);
	stream = make("alone");
	push(stream, 0, CAPACITY);
	pop(stream, 0, CAPACITY);
	if (stream->entry || pem_stream_process.page)
		return 1;
	pem_stream__free(stream);
	return 0;
}

static void no_memory_to_show(void **state)
{
	(void)state;
	in_child(without_descriptors, NULL);
}

static void more_queues_than_are_shown(void **state)
{
	static struct pem_stream *made[PEM_STREAM_QUEUES_MAX + 3];
	struct pem_streams *streams;
	size_t skipped;

	(void)state;
	for (size_t i = 0; i < PEM_STREAM_QUEUES_MAX + 3; i++)
		made[i] = make("many");
	push(made[PEM_STREAM_QUEUES_MAX + 2], 0, CAPACITY);
	pop(made[PEM_STREAM_QUEUES_MAX + 2], 0, CAPACITY);
	streams = observe(getpid());
	assert_int_equal(pem_streams__read(streams, &skipped), PEM_STREAM_QUEUES_MAX);
	assert_int_equal(skipped, 3);
	for (size_t i = 0; i < PEM_STREAM_QUEUES_MAX + 3; i++)
		pem_stream__free(made[i]);
	assert_int_equal(pem_streams__read(streams, NULL), PEM_STREAM_QUEUES_MAX);
	assert_int_equal(pem_streams__read(streams, &skipped), 0);
	made[0] = make("again");
	assert_int_equal(find(streams, "again").id, made[0]->id);
	pem_stream__free(made[0]);
	pem_streams__close(streams);
}

/* Each of 19 libraries has a queue. */
static int many_libraries(struct pem_stream *unused)
{
	struct pem_streams *streams;
	size_t skipped = 0;

	(void)unused;
	for (int i = 0; i < 19; i++) {
		memset(&pem_stream_process, 0, sizeof(pem_stream_process));
		make("library");
	}
	streams = observe(getpid());
	if (pem_streams__search(streams, NULL) != 16)
		return 1;
	/* The child's own memory may be one of the 16, and has no queue. */
	return pem_streams__read(streams, &skipped) + (ptrdiff_t)skipped == 19 && skipped >= 3 ? 0
											       : 2;
}

static void more_libraries_than_are_read(void **state)
{
	(void)state;
	in_child(many_libraries, NULL);
}

static int shows_nothing(struct pem_stream *unused)
{
	struct pem_error error = {""};
	pid_t pid = fork();

	(void)unused;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	if (pem_streams__open((uint32_t)pid, &error) || errno != ESRCH)
		return 1;
	return strstr(error.text, "there is no process") ? 0 : 2;
}

/* A user who may not look into this process. */
static int as_nobody(struct pem_stream *unused)
{
	struct pem_error error = {""};

	(void)unused;
	if (setgid(65534) || setuid(65534))
		return 1;
	if (pem_streams__open((uint32_t)getppid(), &error) || errno != EACCES)
		return 2;
	return strstr(error.text, "run this as") ? 0 : 3;
}

static void another_users_process(void **state)
{
	struct pem_stream *stream;

	(void)state;
	if (geteuid())
		skip();
	stream = make("private");
	in_child(as_nobody, NULL);
	pem_stream__free(stream);
}

static void no_such_process(void **state)
{
	struct pem_error error = {""};

	(void)state;
	in_child(shows_nothing, NULL);
	if (!pem_streams__open(1, &error))
		assert_true(strlen(error.text) > 0);
}

/* --- a process that ends --- */

static int end_when_told(struct pem_stream *stream)
{
	uint64_t item = 1;

	(void)stream;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	make("left");
	stream = make("last");
	push(stream, 0, 3);
	(void)!write(STDOUT_FILENO, "x", 1);
	(void)!read(STDIN_FILENO, &item, 1);
	push(stream, 3, 1);
	execl("/bin/sleep", "sleep", "1000", NULL);
	return 1;
}

static void last_numbers_stay(void **state)
{
	struct pem_streams_service service = {.size = sizeof(service)};
	int to[2], from[2], status;
	struct pem_streams_queue seen;
	struct pem_streams *streams;
	struct pem_error error = {""};
	pid_t pid;
	char c;

	(void)state;
	assert_true(!pipe(to) && !pipe(from));
	pid = fork();
	if (!pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		_exit(end_when_told(NULL));
	}
	assert_int_equal(read(from[0], &c, 1), 1);
	streams = observe(pid);
	seen = find(streams, "last");
	assert_int_equal(seen.push.tid, pid);
	assert_true(seen.push.has_times);
	assert_int_equal(pem_streams__has_ended(streams), 0);
	assert_int_equal(write(to[1], "x", 1), 1);
	while (!pem_streams__has_ended(streams))
		seen = find(streams, "last");
	/* The process is there, and its thread of that number: of another program. */
	assert_int_equal(seen.push.items, 4);
	assert_int_equal(seen.push.tid, 0);
	assert_int_equal(pem_streams__service(streams, seen.entry, 0, &service), 0);
	assert_int_equal(pem_streams__search(streams, &error), -ESRCH);
	assert_non_null(strstr(error.text, "runs another program"));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(find(streams, "last").push.items, 4);
	pem_streams__close(streams);
	for (int i = 0; i < 2; i++)
		close(to[i]), close(from[i]);
}

/*
 * In a root of this process alone: was a file opened whose link reads as that of a queue's memory?
 * -1: no namespace; other negative numbers: a step failed.
 */
static int opens_of_a_file(const char *root)
{
	static const char name[] = "/memfd:" PEM_STREAM_MEMFD;
	char events[4096];
	struct pem_streams *streams;
	int notify = inotify_init1(IN_NONBLOCK), fd;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	if (mount("root", root, "tmpfs", 0, NULL) || chdir(root) || mkdir("proc", 0755) ||
	    mount("proc", "proc", "proc", 0, NULL) || chroot(".") || chdir("/"))
		return -2;
	fd = open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || inotify_add_watch(notify, name, IN_OPEN) < 0 || unlink(name))
		return -3;
	streams = pem_streams__open((uint32_t)getpid(), NULL);
	if (!streams || pem_streams__read(streams, NULL) != 0)
		return -4;
	pem_streams__close(streams);
	return read(notify, events, sizeof(events)) > 0;
}

static void a_file_with_the_name_is_not_opened(void **state)
{
	char root[] = "/tmp/pem-stream-XXXXXX";
	pid_t child;
	int status;

	(void)state;
	assert_non_null(mkdtemp(root));
	child = fork();
	if (!child)
		_exit(opens_of_a_file(root) & 0xff);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(rmdir(root), 0);
	if (WEXITSTATUS(status) == 0xff) {
		printf("a mount namespace of its own is refused here: needs root\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_such_process),
		cmocka_unit_test(counts_names_and_threads),
		cmocka_unit_test(a_block_that_goes_on),
		cmocka_unit_test(a_limit_is_kept),
		cmocka_unit_test(it_cannot_shrink),
		cmocka_unit_test(damaged_memory),
		cmocka_unit_test(invalid_limits_are_capacity),
		cmocka_unit_test(a_child_has_queues_of_its_own),
		cmocka_unit_test(all_descriptors_closed),
		cmocka_unit_test(no_memory_to_show),
		cmocka_unit_test(more_libraries_than_are_read),
		cmocka_unit_test(more_queues_than_are_shown),
		cmocka_unit_test(another_users_process),
		cmocka_unit_test(last_numbers_stay),
		cmocka_unit_test(a_file_with_the_name_is_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
