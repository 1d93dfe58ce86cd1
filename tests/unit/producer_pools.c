// SPDX-License-Identifier: MIT
/*
 * producer_pools.c - making pools, and what is left of one that could not be made
 */
#include "processes/processes.h"
#include "core/core.h"
#include "writer/log.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define TICK "APP::Probe::Tick"

static struct pem_session *session;
static struct pem_log *trace_log;

static int set_up(void **state)
{
	struct pem_context self = {.pid = (uint32_t)getpid()};

	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	trace_log = log_to_trace(session, TICK, &self);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static struct pem_joined *joined(void)
{
	return &pem_process.joined[session->self_index];
}

static unsigned pool_files(void)
{
	DIR *directory = opendir(session->directory);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)))
		count += !strncmp(entry->d_name, "pool-", 5);
	closedir(directory);
	return count;
}

static void failed_pool_leaves_no_file(void **state)
{
	struct rlimit limit, small;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &limit);
	small = (struct rlimit){4u << 20, limit.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	pem_notify_probe_tick(1, 1);
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(joined()->state, PEM_JOINED_FAILED);
	assert_int_equal(session->page->refused, 1);
	assert_int_equal(session->page->lost, 1);
	assert_int_equal(pool_files(), 0);
}

static void pool_is_complete_when_it_says_so(void **state)
{
	const struct pem_pool_header *h;

	(void)state;
	pem_notify_probe_tick(1, 1);
	assert_int_equal(joined()->state, PEM_JOINED_POOL);
	assert_int_equal(pool_files(), 1);
	h = joined()->ring.header;
	assert_int_equal(h->magic, PEM_POOL_MAGIC);
	assert_int_equal(h->pid, getpid());
	assert_int_equal(h->session_index, session->self_index);
	assert_int_equal(h->incarnation, joined()->incarnation);
	assert_int_equal(h->total_bytes, joined()->pool_bytes);
}

/*
 * A process that comes too late is left alone: not one slow path for each of its events from then
 * on.
 */
static void closed_session_switches_events_off(void **state)
{
	(void)state;
	__atomic_store_n(&session->page->closed, 1, __ATOMIC_RELEASE);
	assert_true(pem_page_probe.enable[0] != 0);
	pem_notify_probe_tick(1, 1);
	assert_int_equal(joined()->state, PEM_JOINED_FAILED);
	assert_int_equal(pem_page_probe.enable[0], 0);
	assert_int_equal(pool_files(), 0);
}

/*
 * A pool that is being made has no memory behind it yet, and there may be none: a touch of it is
 * SIGBUS.
 */
static void unfinished_pool_is_not_touched(void **state)
{
	struct pem_session *other;
	static char page[4096];
	char path[128];
	int fd, status;

	(void)state;
	snprintf(path, sizeof(path), "%s/small", folder);
	mkdir(path, 0700);
	if (mount("tmpfs", path, "tmpfs", 0, "size=1m,mode=0700")) {
		print_message("# needs root: a file system to fill\n");
		skip();
	}
	setenv("PEM_RUNTIME_DIR", path, 1);
	other = session_open(NULL);
	fd = openat(other->directory_fd, "pool-1-0", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 50 << 20), 0);
	close(fd);
	fd = openat(other->directory_fd, "filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof(page)) == sizeof(page))
		;
	close(fd);
	assert_int_equal(pem_session__poll(other, 10, &status), 0);
	assert_null(other->processes->producers);
	pem_session__close(other);
	setenv("PEM_RUNTIME_DIR", folder, 1);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(failed_pool_leaves_no_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pool_is_complete_when_it_says_so, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(unfinished_pool_is_not_touched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closed_session_switches_events_off, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
