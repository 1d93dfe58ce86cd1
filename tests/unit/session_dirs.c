// SPDX-License-Identifier: MIT
/*
 * session_dirs.c - what a keeper tells of another's runtime folder, in orders that only a hostile
 * user makes
 */
#include "dirs/confined.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "session_fixture.h"

#include "descriptors.h"

#include <fcntl.h>

/* A directory whose keeper is this test: says what is sent on the returned socket. */
static struct pem_dir *add_dir(struct pem_session *s, int *keeper)
{
	struct pem_dir *dir = calloc(1, sizeof(*dir));
	int ends[2];

	pem_session__add_session_dir(s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	dir->number = ++s->dirs->numbers;
	dir->owner = geteuid();
	dir->runtime_fd = dir->directory_fd = -1;
	strcpy(dir->folder, strrchr(s->directory, '/') + 1);
	dir->keeper = calloc(1, sizeof(*dir->keeper));
	dir->keeper->socket = ends[0];
	dir->keeper->pid = getpid(); /* is no child of this process: nothing is waited for */
	s->dirs->first->next = dir;
	*keeper = ends[1];
	return dir;
}

static void tell(int keeper, enum pem_confined_reply_kind kind, uint32_t number, const char *name,
		 int fd)
{
	struct pem_confined_reply reply = {.kind = kind, .number = number};

	strcpy(reply.name, name);
	assert_int_equal(send_descriptors(keeper, &reply, sizeof(reply), &fd, fd >= 0, 0),
			 sizeof(reply));
}

/*
 * A control file whose entries are all of a session that may be dead: whether it is, the keeper is
 * asked.
 */
static int full_control(void)
{
	struct pem_control_file control = {
		.magic = PEM_CONTROL_MAGIC, .abi_version = PEM_ABI_VERSION, .pid = 1};
	char path[96];
	unsigned i;
	int fd;

	snprintf(path, sizeof(path), "%s/full-XXXXXX", folder);
	fd = mkostemp(path, O_CLOEXEC);

	for (i = 0; i < PEM_SESSIONS_MAX; i++)
		control.session[i].word = PEM_ENTRY_WORD(PEM_ENTRY_OFFERED, 1, PEM_CONSUMER(1, 1));
	assert_int_equal(write(fd, &control, sizeof(control)), sizeof(control));
	assert_int_equal(ftruncate(fd, 65536), 0);
	return fd;
}

static struct pem_session *open_for_all(void)
{
	const struct pem_session_options options = {.size = sizeof(options)};
	const struct pem_context any = {0};
	struct pem_session *s = session_open(&options);

	assert_true(pem_session__context(s, &any, 0, PEM_CONTEXT_TARGET) > 0);
	s->processes->target_count = 1;
	return s;
}

/* Of this test: other programs of this user may run meanwhile, and are members. */
static unsigned count_members(const struct pem_session *s)
{
	const struct pem_member *m;
	unsigned count = 0;

	for (m = s->processes->members; m; m = m->next)
		count += !strncmp(m->name, "control-1-", strlen("control-1-"));
	return count;
}

static bool has_member(const struct pem_session *s, const char *name)
{
	const struct pem_member *m = s->processes->members;

	while (m && strcmp(m->name, name))
		m = m->next;
	return m != NULL;
}

/*
 * Scan until all that the keeper said was heard. A user's turn may be over before, if this thread
 * waited for a CPU in it; the next scan goes on then.
 */
static void scan_whole(struct pem_session *s, const struct pem_dir *dir)
{
	unsigned i;

	for (i = 0; i < 1000; i++) {
		pem_session__scan_dirs(s);
		if (!dir->kept_count)
			return;
	}
	fail_msg("%zu messages are never heard", (size_t)dir->kept_count);
}

static void gone_while_asked_about(void **state)
{
	struct pem_session *s = open_for_all();
	int keeper, control = full_control();
	struct pem_dir *dir = add_dir(s, &keeper);

	(void)state;
	tell(keeper, PEM_CONFINED_CONTROL, 0, "control-1-0", control);
	tell(keeper, PEM_CONFINED_GONE, 0, "control-1-0", -1);
	tell(keeper, PEM_CONFINED_DONE, 1, "", -1);
	scan_whole(s, dir);
	assert_int_equal(count_members(s), 0);
	assert_non_null(dir->keeper);
	close(control);
	close(keeper);
	pem_session__close(s);
}

static void others_while_asked_about(void **state)
{
	struct pem_session *s = open_for_all();
	int keeper, control = full_control();
	struct pem_dir *dir = add_dir(s, &keeper);

	(void)state;
	tell(keeper, PEM_CONFINED_CONTROL, 0, "control-1-0", control);
	tell(keeper, PEM_CONFINED_CONTROL, 0, "control-1-1", control);
	tell(keeper, PEM_CONFINED_GONE, 0, "control-1-1", -1);
	tell(keeper, PEM_CONFINED_DONE, 1, "", -1);
	scan_whole(s, dir);
	assert_int_equal(count_members(s), 1); /* in the order in which they came */
	assert_true(has_member(s, "control-1-0"));
	assert_int_equal(dir->kept_count, 0);
	close(control);
	close(keeper);
	pem_session__close(s);
}

/* What is kept has a descriptor each, and they end with the directory. */
static void too_much_while_asked(void **state)
{
	unsigned before = count_descriptors(), i;
	struct pem_session *s = open_for_all();
	int keeper, control = full_control();
	struct pem_dir *dir = add_dir(s, &keeper);

	(void)state;
	tell(keeper, PEM_CONFINED_CONTROL, 0, "control-1-0", control);
	for (i = 0; i < 100; i++)
		tell(keeper, PEM_CONFINED_MODEL, 0, "model-nothing", control);
	pem_session__scan_dirs(s); /* nobody answers */
	assert_null(dir->keeper);
	assert_true(dir->kept_count > 0);
	close(control);
	close(keeper);
	pem_session__close(s);
	assert_int_equal(count_descriptors(), before);
}

/*
 * It is not waited for an answer behind all that: the table counts as full, and the keeper goes on.
 */
static void more_than_is_kept(void **state)
{
	struct pem_session *s = open_for_all();
	int keeper, control = full_control(), bytes = 1 << 20;
	struct pem_dir *dir = add_dir(s, &keeper);
	unsigned i;

	(void)state;
	assert_int_equal(setsockopt(keeper, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	tell(keeper, PEM_CONFINED_CONTROL, 0, "control-1-0", control);
	for (i = 0; i < 300; i++)
		tell(keeper, PEM_CONFINED_MODEL, 0, "model-nothing", -1);
	pem_session__scan_dirs(s);
	assert_non_null(dir->keeper);
	assert_int_equal(count_members(s), 1);
	assert_int_equal(s->processes->members->session_index, -1);
	close(control);
	close(keeper);
	pem_session__close(s);
}

/* A sum that goes round would hide what others have lost. */
static void losses_beyond_belief(void **state)
{
	struct pem_session *s = open_for_all();
	struct pem_session_page page = {.lost = UINT64_MAX - 1,
					.lost_statistics = UINT64_MAX,
					.lost_filtered = UINT64_MAX,
					.refused = UINT32_MAX,
					.filtered = UINT32_MAX,
					.unobserved = {UINT32_MAX}};
	int keeper;
	struct pem_dir *dir = add_dir(s, &keeper);

	(void)state;
	dir->page = &page;
	s->page->lost = 1;
	s->page->lost_statistics = s->page->lost_filtered = 7;
	s->page->refused = s->page->filtered = s->page->unobserved[0] = 2;
	pem_session__gather_losses(s);
	assert_int_equal(s->page->lost, UINT64_MAX);
	assert_int_equal(s->page->lost_statistics, UINT64_MAX);
	assert_int_equal(s->page->lost_filtered, UINT64_MAX);
	assert_int_equal(s->page->refused, UINT32_MAX);
	assert_int_equal(s->page->filtered, UINT32_MAX);
	assert_int_equal(s->page->unobserved[0], 2 + (1u << 20));
	assert_int_equal(page.lost, 0);
	page.lost = 5;
	pem_session__gather_losses(s);
	assert_int_equal(s->page->lost, UINT64_MAX);
	dir->page = NULL;
	close(keeper);
	pem_session__close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gone_while_asked_about, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(others_while_asked_about, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(too_much_while_asked, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(more_than_is_kept, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(losses_beyond_belief, folder_make, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
