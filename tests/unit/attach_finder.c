// SPDX-License-Identifier: MIT
/*
 * attach_finder.c - a helper that looks for the folders of a process that is attached to, and is
 * stopped as soon as it starts
 *
 * Its user may stop it. What happens while it stands still is told by the helper itself: it is
 * still there, and stopped.
 */
#include "dirs/confined.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "writer/log.h"
#include "async_fixture.h"

#include <limits.h>
#include <sys/stat.h>

static const char *library;
static char helpers[96], started[96], elsewhere[96];
static int late_said;
static uint64_t seen_before_late;

static void count_late(enum pem_log_level level, const char *text, void *arg)
{
	(void)arg;
	if (level != PEM_LOG_WARNING || !strstr(text, "does not answer"))
		return;
	if (!late_said++)
		seen_before_late = seen_count();
}

static int set_up(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options), .log = count_late};

	late_said = 0;
	seen_before_late = 0;
	setenv("PEM_LIBRARY_PATH", library, 1);
	if (open_session(state, &options))
		return -1;
	snprintf(helpers, sizeof(helpers), "%s/helpers", folder);
	snprintf(started, sizeof(started), "%s/started", folder);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	return 0;
}

/* --- helpers that stand still --- */

/* From here on each helper stops itself, and becomes what it is when it is continued. */
static void stop_helpers(void)
{
	char path[128], real[PATH_MAX];
	FILE *file;

	snprintf(real, sizeof(real), "%s/pem/pem-confined", library);
	assert_int_equal(access(real, X_OK), 0);
	assert_int_equal(mkdir(helpers, 0755), 0);
	snprintf(path, sizeof(path), "%s/pem", helpers);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/pem/pem-confined", helpers);
	file = fopen(path, "we");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\necho $$ >>%s\n[ -e %s ] && kill -STOP $$\nexec %s\n", started,
		helpers, real);
	assert_int_equal(fchmod(fileno(file), 0755), 0);
	assert_int_equal(fclose(file), 0);
	setenv("PEM_LIBRARY_PATH", helpers, 1);
}

static bool is_stopped(pid_t pid)
{
	char path[32], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'T';
}

/* Wait until the first helper stands still: its number. */
static pid_t stopped_helper(void)
{
	FILE *file;
	int pid = 0;

	do {
		usleep(100);
		file = fopen(started, "re");
		if (!file)
			continue;
		if (fscanf(file, "%d", &pid) != 1)
			pid = 0;
		fclose(file);
	} while (!pid || !is_stopped(pid));
	return pid;
}

static void continue_all(void)
{
	FILE *file = fopen(started, "re");
	int pid;

	assert_non_null(file);
	while (fscanf(file, "%d", &pid) == 1) {
		if (is_stopped(pid))
			kill(pid, SIGCONT);
	}
	fclose(file);
}

/* Continue all helpers, also those to come, until something holds. */
static void continue_until(bool (*holds)(void))
{
	while (!holds()) {
		continue_all();
		pem_session__poll(session, 1, &(int){0});
	}
}

/* No helper stops any more: the session's end gives each some time. */
static void let_go(void)
{
	char moved[128];

	snprintf(moved, sizeof(moved), "%s.let-go", helpers);
	if (!rename(helpers, moved))
		setenv("PEM_LIBRARY_PATH", library, 1);
	continue_all();
}

static int tear_down(void **state)
{
	let_go();
	return async_tear_down(state);
}

/* --- processes --- */

static int attach(pid_t pid)
{
	struct pem_context target = {0};
	struct pem_error error = {""};
	int result;

	target.pid = (uint32_t)pid;
	result = pem_session__attach(session, &target, &error);
	if (result < 0)
		fail_msg("not attached: %s", error.text);
	return result;
}

static bool has_searched(void)
{
	bool result;

	pem_session__lock(session);
	result = !session->processes->search_ns && !session->dirs->finders;
	pem_session__unlock(session);
	return result;
}

/*
 * A process that meets this one's in the session's own folder, attached to, and looked for in
 * others.
 */
static struct raiser attached(void)
{
	struct raiser r = raiser_start_in(folder);

	assert_int_equal(attach(r.pid), 1);
	while (!has_searched())
		pem_session__poll(session, 1, &(int){0});
	return r;
}

/* A process without libpem: is it to be found in another folder? */
static pid_t stranger(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "100", NULL);
		_exit(127);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- tests --- */

static void a_scan_does_not_wait(void **state)
{
	struct raiser r, other;
	pid_t helper;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	r = attached();
	stop_helpers();
	other = raiser_start_in(folder);
	/* It is found already: a scan looks for its further folders. */
	assert_int_equal(attach(other.pid), 1);
	helper = stopped_helper();
	raise_ticks(&r, 1);
	wait_for(1);
	assert_true(is_stopped(helper));
	continue_until(has_searched);
	raiser_end(&other);
	raiser_end(&r);
}

static int attached_to, found_there;

static bool has_attached(void)
{
	return __atomic_load_n(&attached_to, __ATOMIC_ACQUIRE);
}

static void *attach_to(void *pid)
{
	found_there = attach(*(pid_t *)pid);
	put(&attached_to, 1);
	return NULL;
}

/* In a thread of its own. */
static pthread_t begin_to_attach(pid_t *pid)
{
	pthread_t thread;

	put(&attached_to, 0);
	assert_int_equal(pthread_create(&thread, NULL, attach_to, pid), 0);
	return thread;
}

static void who_attaches_waits_without_the_lock(void **state)
{
	pid_t unknown = stranger(), helper;
	struct raiser r, other;
	pthread_t thread;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	r = attached();
	other = raiser_start_in(folder);
	stop_helpers();
	thread = begin_to_attach(&unknown);
	helper = stopped_helper();
	raise_ticks(&r, 1);
	wait_for(1);
	assert_int_equal(attach(other.pid), 1);
	assert_true(is_stopped(helper));
	continue_until(has_attached);
	assert_int_equal(pthread_join(thread, NULL), 0);
	raiser_end(&other);
	raiser_end(&r);
	end(unknown);
}

/* Of all users at once: it ends in vain, and is said. */
static void helpers_of_all_are_awaited_without_the_lock(void **state)
{
	pid_t all = PEM_ANY;
	pthread_t thread;
	struct raiser r;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	r = attached();
	stop_helpers();
	thread = begin_to_attach(&all);
	stopped_helper();
	raise_ticks(&r, 1);
	wait_for(1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(late_said > 0);
	/* More, if another program of the machine raises the event. */
	assert_true(seen_before_late >= 1);
	raiser_end(&r);
}

/* --- the session's work is done meanwhile, and it is heard later --- */

/* Before its exec it has left a file in the session's own folder, where it would be found. */
static void unlink_control(pid_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/control-%d-0", folder, (int)pid);
	unlink(path);
}

static struct raiser start_elsewhere(void)
{
	struct raiser r = raiser_start_in(elsewhere);

	unlink_control(r.pid);
	return r;
}

/* Is the folder elsewhere a place of the session's? */
static bool is_found(void)
{
	const struct pem_dir *dir;
	struct stat st;
	bool found = false;

	assert_int_equal(stat(elsewhere, &st), 0);
	pem_session__lock(session);
	for (dir = session->dirs->first; dir; dir = dir->next)
		found |= dir->device == st.st_dev && dir->inode == st.st_ino;
	pem_session__unlock(session);
	return found;
}

struct reading {
	struct raiser r;
	pid_t helper;
	int done, late;
	bool was_stopped;
};

static uint64_t delivered(void)
{
	const struct pem_producer *p;
	uint64_t count = 0;
	uint32_t i;

	pem_session__lock(session);
	for (p = session->processes->producers; p; p = p->next) {
		for (i = 0; i < p->ring.header->event_capacity; i++)
			count += p->delivered[i];
	}
	pem_session__unlock(session);
	return count;
}

static void *raise_meanwhile(void *arg)
{
	struct reading *reading = arg;

	reading->helper = stopped_helper();
	raise_ticks(&reading->r, 100000);
	while (!delivered())
		usleep(100);
	reading->late = __atomic_load_n(&late_said, __ATOMIC_ACQUIRE);
	reading->was_stopped = is_stopped(reading->helper);
	put(&reading->done, 1);
	return NULL;
}

static void who_attaches_does_the_work_and_finds_it_later(void **state)
{
	struct reading reading = {.helper = 0};
	struct raiser other;
	struct pem_log *log;
	pthread_t thread;

	(void)state;
	log = log_to_trace(session, "APP::Probe::Tick", NULL);
	reading.r = attached();
	stop_helpers();
	other = start_elsewhere();
	assert_int_equal(pthread_create(&thread, NULL, raise_meanwhile, &reading), 0);
	assert_int_equal(attach(other.pid), 0);
	while (!__atomic_load_n(&reading.done, __ATOMIC_ACQUIRE))
		pem_session__poll(session, 1, &(int){0});
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(reading.was_stopped);
	/* Records were written before the wait was over. */
	assert_int_equal(reading.late, 0);
	assert_int_equal(late_said, 1);
	assert_false(is_found());
	let_go();
	continue_until(is_found);
	raiser_end(&other);
	raiser_end(&reading.r);
	pem_log__unregister(log);
}

/* --- what keepers have to tell is awaited, too --- */

/* Stop or continue the keepers. Were any of them asked? */
static bool signal_keepers(int number)
{
	struct pem_dir *dir;
	bool asked;

	pem_session__lock(session);
	for (dir = session->dirs->first; dir; dir = dir->next) {
		if (dir->keeper)
			kill(dir->keeper->pid, number);
	}
	asked = pem_session__awaits_helpers(session, PEM_ANY_USER);
	pem_session__unlock(session);
	return asked;
}

static void who_attaches_is_told_what_a_keeper_finds(void **state)
{
	struct raiser r = start_elsewhere(), other;
	pthread_t thread;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	assert_int_equal(attach(r.pid), 1);
	signal_keepers(SIGSTOP);
	other = start_elsewhere();
	thread = begin_to_attach(&other.pid);
	while (!has_searched())
		usleep(100);
	while (!signal_keepers(0) && !has_attached())
		usleep(100);
	assert_false(has_attached());
	signal_keepers(SIGCONT);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(found_there, 1);
	raiser_end(&other);
	raiser_end(&r);
}

/* The finder has told of a folder, and its new keeper stands still. */
static void who_attaches_is_told_what_a_new_keeper_finds(void **state)
{
	struct raiser r = start_elsewhere();
	pthread_t thread;

	(void)state;
	stop_helpers();
	enabled_on("APP::Probe::Tick", 100);
	thread = begin_to_attach(&r.pid);
	kill(stopped_helper(), SIGCONT);
	while (!has_searched())
		usleep(100);
	assert_true(signal_keepers(0));
	continue_until(has_attached);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(found_there, 1);
	raiser_end(&r);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_scan_does_not_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_attaches_waits_without_the_lock, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(helpers_of_all_are_awaited_without_the_lock, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_attaches_does_the_work_and_finds_it_later,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_attaches_is_told_what_a_keeper_finds, set_up,
						async_tear_down),
		cmocka_unit_test_setup_teardown(who_attaches_is_told_what_a_new_keeper_finds,
						set_up, tear_down),
	};

	char beside[PATH_MAX];

	if (argc == 2 && !strcmp(argv[1], "raise"))
		return raiser_main_anew();
	/* The helper lies beside libpem.so, and this program has a libpem of its own. */
	snprintf(beside, sizeof(beside), "%s/lib", getenv("B") ? getenv("B") : "build");
	library = getenv("PEM_LIBRARY_PATH") ? getenv("PEM_LIBRARY_PATH") : realpath(beside, NULL);
	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
