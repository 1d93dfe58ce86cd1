// SPDX-License-Identifier: MIT
/*
 * module_faults.c - what happens around a session: its consumer is killed, pem.ko or another module
 * goes, a CPU comes and goes
 *
 * guest: limit=120
 *
 * Not here: memory that runs out and users who may not (module_limits.c), what a consumer itself
 * does wrong (module_ioctl.c), CPUs that come and go under load (module_stress.c).
 */
#include "module_fixture.h"

#include <signal.h>
#include <sys/stat.h>

#define MODULE "/guest/pem.ko"
/* Linux names it so since 5.17. */
#ifndef MODULE_INIT_COMPRESSED_FILE
#define MODULE_INIT_COMPRESSED_FILE 4
#endif
#define WITH_TRACEPOINTS "/guest/modules/jbd2.ko"
#define PAGE 4096u
#define KILLS 12
#define POOL_CHUNKS 64u
#define POOL_CHUNK_BYTES 65536u

static struct session *recording(void)
{
	struct session *s = session_open();

	session_setup(s, 0, POOL_CHUNK_BYTES, POOL_CHUNKS);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	return s;
}

static int unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

/* Of that name, or packed by xz, which the kernel unpacks that has it so. */
static int load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), flags = 0, rc;
	char packed[128];

	if (fd < 0) {
		snprintf(packed, sizeof(packed), "%s.xz", path);
		fd = open(packed, O_RDONLY | O_CLOEXEC);
		flags = MODULE_INIT_COMPRESSED_FILE;
	}
	if (fd < 0)
		return errno;
	rc = syscall(SYS_finit_module, fd, "", flags) ? errno : 0;
	close(fd);
	return rc;
}

/* As init does; others come after us. */
static void load_again(void)
{
	assert_int_equal(load(MODULE), 0);
	assert_int_equal(chown(PEM_KMOD_DEVICE, 0, 900), 0);
	assert_int_equal(chmod(PEM_KMOD_DEVICE, 0660), 0);
}

static void short_pause(long ns)
{
	struct timespec pause = {0, ns};

	nanosleep(&pause, NULL);
}

/* A number behind a word in a file of the kernel's; 0: it is not there. */
static uint64_t number_in(const char *path, const char *word)
{
	FILE *f = fopen(path, "r");
	uint64_t number = 0;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, word, strlen(word)))
			number = strtoull(line + strlen(word), NULL, 10);
	}
	fclose(f);
	return number;
}

/* Areas that the module has from the kernel's vmalloc. */
static unsigned areas(void)
{
	FILE *f = fopen("/proc/vmallocinfo", "r");
	unsigned count = 0;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		count += strstr(line, "[pem]") != NULL;
	fclose(f);
	return count;
}

static void a_module_whose_memory_is_mapped_is_not_unloaded(void **state)
{
	struct session *s = recording();
	void *at;

	(void)state;
	at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, s->fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(unload("pem"), EWOULDBLOCK); /* a file is open */
	session_close(s);
	assert_int_equal(unload("pem"), EWOULDBLOCK); /* it is mapped still */
	assert_int_equal(((struct pem_pool_header *)at)->magic, PEM_POOL_MAGIC);
	munmap(at, PAGE);
	assert_int_equal(unload("pem"), 0);
	assert_int_equal(access(PEM_KMOD_DEVICE, F_OK), -1);
	load_again();
	session_close(recording());
}

/* Records, drains and raises events until it is killed. */
static void consume(void)
{
	struct session *s = recording();
	unsigned i;

	for (;;) {
		for (i = 0; i < 200; i++)
			syscall(SYS_getppid);
		for (i = 0; i < 2; i++)
			session_drain_cpu(s, i, false);
	}
}

static void killed_consumers_leave_nothing(void **state)
{
	uint64_t before = 0, after;
	unsigned i, areas_before;
	pid_t child;

	(void)state;
	session_close(recording()); /* what is allocated once, is */
	areas_before = areas();
	for (i = 0; i < KILLS; i++) {
		child = fork();
		assert_true(child >= 0);
		if (!child)
			consume();
		short_pause((long)(i * i + 1) * 1000000);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		if (!i)
			before = number_in("/proc/meminfo", "MemFree:");
	}
	assert_int_equal(areas(), areas_before);
	after = number_in("/proc/meminfo", "MemFree:");
	/*
	 * One pool would be 4 MiB, of each CPU; other things of the kernel's come and go meanwhile.
	 */
	assert_true(after + 4 * KILLS * 1024 > before);
	assert_int_equal(unload("pem"), 0);
	assert_int_equal(areas(), 0);
	load_again();
}

static int set_online(int is_online)
{
	int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -1;
	rc = write(fd, is_online ? "1" : "0", 1) == 1 ? 0 : -1;
	close(fd);
	return rc;
}

static void call_on(unsigned cpu, unsigned count)
{
	run_on(cpu);
	while (count--)
		syscall(SYS_getppid);
	run_on(0);
}

static uint64_t logged_on(struct session *s, unsigned cpu)
{
	uint32_t index = cell_of(s, ENTER);
	struct mapped *m = session_map(s, cpu);

	return m ? m->ring.cells[m->ring.event_capacity + index].produced : 0;
}

static void a_cpu_that_was_away_gets_a_pool_when_it_comes(void **state)
{
	struct session *s;

	(void)state;
	if (set_online(0)) {
		print_message("# CPU 1 is not there, or can't go\n");
		skip();
	}
	s = recording();
	assert_null(session_map(s, 1));
	assert_int_equal(set_online(1), 0);
	call_on(1, 1000);
	assert_true(logged_on(s, 1) >= 1000);
	session_finish(s);
	session_close(s);
}

/* How an event of that tracepoint is called, and whether it is available now. */
static uint32_t find_event(const struct session *s, const char *system, uint32_t *is_available)
{
	static struct pem_kmod_listed listed[1024];
	struct pem_kmod_list list = {
		.size = sizeof(list), .count = 1024, .entries = (uintptr_t)listed};
	uint32_t i;

	assert_int_equal(ask(s, PEM_KMOD_EVENTS, &list), 0);
	for (i = 0; i < list.count; i++) {
		if (!strncmp(listed[i].tracepoint, system, strlen(system))) {
			*is_available = listed[i].available;
			return listed[i].event_id;
		}
	}
	return 0;
}

static void a_module_goes_whose_events_are_recorded(void **state)
{
	struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_LOG);
	struct session *s;
	uint32_t is_available;

	(void)state;
	s = recording();
	event.event_id = find_event(s, "jbd2:", &is_available);
	assert_true(event.event_id != 0);
	assert_int_equal(is_available, 0);
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -ENOTSUP);
	assert_int_equal(load(WITH_TRACEPOINTS), 0);
	find_event(s, "jbd2:", &is_available);
	assert_int_equal(is_available, 1);
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
	assert_int_equal(unload("jbd2"), 0);
	find_event(s, "jbd2:", &is_available);
	assert_int_equal(is_available, 0);
	/* The rest goes on, and the event may be had again. */
	call_on(0, 100);
	assert_int_equal(load(WITH_TRACEPOINTS), 0);
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
	session_finish(s);
	assert_int_equal(unload("jbd2"), 0);
	session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_module_whose_memory_is_mapped_is_not_unloaded),
		cmocka_unit_test(killed_consumers_leave_nothing),
		cmocka_unit_test(a_cpu_that_was_away_gets_a_pool_when_it_comes),
		cmocka_unit_test(a_module_goes_whose_events_are_recorded),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
