// SPDX-License-Identifier: MIT
/*
 * counters_data.c - samples of data that the processor itself tells
 *
 * No such processor is needed: the folder of devices is the test's own, and names page faults as
 * what the processor samples. These are real events of the kernel, and tell the address that was
 * touched. What real processors write beside it: counters_access.c.
 */
#include "sources/counters/sampler.h"

#include <pem/model.h>
#include <pem/operand.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 400u

/* --- the folder of devices --- */

static char devices[] = "/tmp/pem-devices-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[256], *slash;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", devices, name);
	for (slash = strchr(path + strlen(devices) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(devices + strlen(devices) - 6, "XXXXXX");
	return mkdtemp(devices) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", devices);
	return system(command); /* NOLINT(cert-env33-c): a folder of this test's name */
}

/* Page faults (software event 2) as "loads". */
static void put_processor(const char *loads)
{
	put("cpu/type", "1\n");
	put("cpu/format/event", "config:0-7\n");
	put("cpu/format/umask", "config:8-15\n");
	put("cpu/format/ldlat", "config1:0-15\n");
	put("cpu/events/mem-loads", loads);
}

/* --- what is found --- */

static void a_processor_without_has_none(void **state)
{
	struct precise precise;

	(void)state;
	assert_int_equal(precise__find(devices, &precise), -ENOENT);
	put("cpu/type", "4\n");
	assert_int_equal(precise__find(devices, &precise), -ENOENT);
}

static void terms_go_where_formats_say(void **state)
{
	struct precise precise;

	(void)state;
	put_processor("event=0x2,ldlat=3\n");
	assert_int_equal(precise__find(devices, &precise), 0);
	assert_int_equal(precise.loads.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(precise.loads.config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_int_equal(precise.loads.config1, 3);
	assert_int_equal(precise.loads.precise_ip, 3);
	assert_true(precise.loads.exclude_kernel);
	assert_int_equal(precise.stores.size, 0);
	assert_int_equal(precise.leader.size, 0);
	assert_false(precise.samples_kernel);
}

static void a_term_in_parts_fills_the_lowest_first(void **state)
{
	struct precise precise;

	(void)state;
	put_processor("event=0x2,parted=0x1a5,flag\n");
	put("cpu/format/parted", "config1:4-7,12,32-63\n");
	put("cpu/format/flag", "config2:63\n");
	assert_int_equal(precise__find(devices, &precise), 0);
	/* 5 of 4 bits, 0 of 1 bit, and 0x1a5 >> 5 */
	assert_int_equal(precise.loads.config1, 0x50 | 0xdull << 32);
	assert_int_equal(precise.loads.config2, 1ull << 63);
}

static void refused(const char *loads, const char *format, int rc)
{
	struct precise precise = {.samples_kernel = 77};

	put_processor(loads);
	put("cpu/format/odd", format);
	assert_int_equal(precise__find(devices, &precise), rc);
	assert_int_equal(precise.samples_kernel, 77);
}

static void damaged_descriptions_are_refused(void **state)
{
	(void)state;
	refused("event=0x2,odd=4\n", "config:0-1\n", -EINVAL); /* no room */
	refused("event=0x2,odd=4\n", "config:9-8\n", -EINVAL);
	refused("event=0x2,odd=4\n", "config:60-64\n", -EINVAL);
	refused("event=0x2,odd=4\n", "config\n", -EINVAL);
	refused("event=0x2,odd=4\n", "configure:0-7\n", -EINVAL);
	refused("event=0x2,odd=4\n", "config:a\n", -EINVAL);
	refused("event=0x2,odd=4\n", "config:0-7x\n", -EINVAL);
	refused("event=0x2,odd=4\n", "", -EIO);
	refused("event=0x2,none=4\n", "config:0-7\n", -ENOENT);
}

static void stores_and_a_leader_are_found(void **state)
{
	struct precise precise;

	(void)state;
	put_processor("event=0x2,ldlat=3\n");
	put("cpu/events/mem-stores", "event=0x5\n"); /* minor faults */
	put("cpu/events/mem-loads-aux", "event=0x9\n"); /* which never happens */
	assert_int_equal(precise__find(devices, &precise), 0);
	assert_int_equal(precise.stores.config, PERF_COUNT_SW_PAGE_FAULTS_MIN);
	assert_int_equal(precise.leader.config, PERF_COUNT_SW_DUMMY);
	/* Stores that can't be had leave loads. */
	put("cpu/events/mem-stores", "event=0x99\n");
	assert_int_equal(precise__find(devices, &precise), 0);
	assert_int_equal(precise.stores.size, 0);
	/* Not so the leader of loads. */
	put("cpu/events/mem-loads-aux", "event=0x99\n");
	assert_true(precise__find(devices, &precise) < 0);
}

static unsigned descriptors(void)
{
	unsigned count = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void loads_that_do_not_open_leave_no_descriptor(void **state)
{
	unsigned before = descriptors();
	struct precise precise;

	(void)state;
	put_processor("event=0x99\n");
	put("cpu/events/mem-loads-aux", "event=0x9\n");
	assert_true(precise__find(devices, &precise) < 0);
	put_processor("event=0x2\n");
	put("cpu/events/mem-stores", "event=0x5\n");
	assert_int_equal(precise__find(devices, &precise), 0);
	assert_int_equal(descriptors(), before);
}

static void a_device_of_its_own_samples_any_instruction(void **state)
{
	struct precise precise;

	(void)state;
	put("ibs_op/type", "1\n");
	assert_int_equal(precise__find(devices, &precise), 0);
	assert_true(precise.samples_kernel);
	assert_false(precise.loads.exclude_kernel);
	put("ibs_op/format/swfilt", "config2:0\n");
	assert_int_equal(precise__find(devices, &precise), 0);
	assert_false(precise.samples_kernel);
	assert_true(precise.loads.exclude_kernel);
	assert_int_equal(precise.loads.config2, 1);
}

/* --- what is sampled --- */

static struct {
	uint64_t samples, inside, by_other_thread, measured, with_stack;
	uint64_t begin, end;
	uint64_t maps, mapped_bytes; /* mappings of so many bytes */
} seen;

static struct pem_model *model;
static const struct pem_event *event, *map_event;

static uint64_t field_at(const uint8_t *record, const char *name, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, record + event->fields[pem_event__field(event, name)].offset, bytes);
	return value;
}

static size_t take(const uint8_t *record)
{
	uint64_t address = field_at(record, "address", 8);

	seen.samples++;
	seen.measured += field_at(record, "origin", 1) == DATA_ORIGIN_MEASURED;
	if (address < seen.begin || address >= seen.end)
		return event->fixed_bytes;
	seen.inside++;
	seen.by_other_thread += field_at(record, "threadId", 4) != (uint64_t)gettid();
	seen.with_stack += field_at(record, "stackPointer", 8) != 0;
	return event->fixed_bytes;
}

static int is_map(const uint8_t *record)
{
	struct pem_record_header header;

	memcpy(&header, record, sizeof(header));
	return header.event_id == map_event->id;
}

static size_t take_map(const uint8_t *record)
{
	size_t bytes = map_event->fixed_bytes, length;
	uint64_t mapped;
	unsigned i;

	memcpy(&mapped, record + map_event->fields[1].offset, 8);
	seen.maps += mapped == seen.mapped_bytes;
	for (i = 0; i < 2; i++) { /* build id and path */
		length = strlen((const char *)record + bytes) + 1;
		bytes += length;
	}
	return bytes;
}

static int take_packet(void *arg, const char *stream, struct pem_packet *packet, size_t bytes)
{
	const uint8_t *at = (const uint8_t *)packet + PEM_PACKET_HEADER_BYTES;
	const uint8_t *end = (const uint8_t *)packet + bytes;

	(void)arg;
	(void)stream;
	while (at < end) {
		size_t taken = is_map(at) ? take_map(at) : take(at);

		at += (taken + 7u) & ~7u;
	}
	return 0;
}

static uint64_t clock_at(void *arg, uint64_t ns)
{
	(void)arg;
	return ns;
}

static const struct pem_source_sink sink = {.write = take_packet, .clock_at = clock_at};

/* Touch each page of the block once. */
static void *touch(void *block)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;

	for (i = 0; i < PAGES; i++)
		((volatile uint8_t *)block)[i * page] = 1;
	return NULL;
}

/* What the kernel is made to refuse on one CPU, as it does where cores are of two kinds. */
static struct {
	int cpu, error; /* error 0: nothing */
	uint64_t config;
} refusal;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	const struct perf_event_attr *attr;
	long words[6];
	va_list list;
	int i;

	va_start(list, number);
	for (i = 0; i < 6; i++)
		words[i] = va_arg(list, long);
	va_end(list);
	memcpy(&attr, &words[0], sizeof(attr));
	if (number == SYS_perf_event_open && refusal.error && (int)words[2] == refusal.cpu &&
	    attr->precise_ip && attr->config == refusal.config) {
		errno = refusal.error;
		return -1;
	}
	return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

static struct sampler *open_sampler(pid_t pid, int on_exec, int all_threads)
{
	struct sampler_request request = {.event = event,
					  .map_event = map_event,
					  .pid = pid,
					  .on_exec = on_exec,
					  .cgroup_fd = -1,
					  .all_threads = all_threads,
					  .hz = 10000,
					  .devices = devices};
	struct sampler *sampler = NULL;
	struct pem_error error = {""};
	int rc = sampler__open(&sampler, &request, &error);

	if (rc == -EACCES || rc == -EPERM || rc == -ENOSYS) {
		print_message("# %s\n", error.text);
		skip();
	}
	assert_int_equal(rc, 0);
	return sampler;
}

/* Samples of a block that this thread touches. */
static void observe(int all_threads, void *(*touching)(void *))
{
	size_t bytes = PAGES * (size_t)sysconf(_SC_PAGESIZE);
	struct sampler *sampler;
	void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(block, MAP_FAILED);
	madvise(block, bytes, MADV_NOHUGEPAGE);
	memset(&seen, 0, sizeof(seen));
	seen.begin = (uintptr_t)block;
	seen.end = seen.begin + bytes;
	sampler = open_sampler(getpid(), 0, all_threads);
	assert_true(sampler->is_precise);
	assert_null(sampler->operands);
	assert_int_equal(sampler__start(sampler), 0);
	touching(block);
	assert_int_equal(sampler__drain(sampler, &sink, 1, 0, 1), 0);
	assert_int_equal(sampler__produced(sampler) - sampler__discarded(sampler), seen.samples);
	sampler__close(sampler);
	munmap(block, bytes);
}

/* Is a timer taken where loads, or stores, are refused on a CPU? */
static void falls_back(int error, uint64_t config, int told)
{
	unsigned before = descriptors();
	struct sampler *sampler;

	put_processor("event=0x2\n");
	put("cpu/events/mem-stores", "event=0x5\n");
	refusal.cpu = 0;
	refusal.error = error;
	refusal.config = config;
	if (!pem_operand__registers())
		skip();
	sampler = open_sampler(getpid(), 0, 1);
	assert_false(sampler->is_precise);
	assert_non_null(sampler->operands);
	assert_int_equal(sampler__no_precise(sampler), told);
	assert_int_equal(sampler__start(sampler), 0);
	sampler__close(sampler);
	refusal.error = 0;
	assert_int_equal(descriptors(), before);
}

static void where_a_core_lacks_them_a_timer_samples_all(void **state)
{
	(void)state;
	falls_back(ENOENT, 2, -ENODEV);
}

static void loads_without_stores_of_a_core_are_not_taken_for_all(void **state)
{
	(void)state;
	falls_back(EBUSY, 5, -EBUSY);
}

static void samples_have_the_addresses_that_were_touched(void **state)
{
	(void)state;
	put_processor("event=0x2\n");
	observe(0, touch);
	/* Other memory faults, too: the sampler's own, and a sanitizer's. */
	assert_true(seen.inside * 2 > seen.samples);
	assert_int_equal(seen.measured, seen.samples);
	assert_int_equal(seen.with_stack, seen.inside);
}

/* Each fault is one of both events then, whose rates are apart. */
static void stores_come_in_the_same_ring(void **state)
{
	uint64_t loads;

	(void)state;
	put_processor("event=0x9\n"); /* dummy */
	observe(0, touch);
	loads = seen.samples;
	put("cpu/events/mem-stores", "event=0x2\n");
	put("cpu/events/mem-loads-aux", "event=0x9\n");
	observe(0, touch);
	assert_int_equal(loads, 0);
	assert_true(seen.inside > 0);
	assert_int_equal(seen.measured, seen.samples);
}

static pthread_barrier_t barrier;
static void *to_touch;

static void *wait_and_touch(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return touch(arg ? arg : to_touch);
}

static pthread_t other;

static void *let_other_touch(void *block)
{
	to_touch = block;
	pthread_barrier_wait(&barrier);
	pthread_join(other, NULL);
	return NULL;
}

static void threads_that_run_already_are_sampled(void **state)
{
	(void)state;
	put_processor("event=0x9\n");
	put("cpu/events/mem-stores", "event=0x2\n");
	put("cpu/events/mem-loads-aux", "event=0x9\n");
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&other, NULL, wait_and_touch, NULL);
	pthread_barrier_wait(&barrier);
	observe(1, let_other_touch);
	assert_true(seen.inside > 0);
	assert_int_equal(seen.by_other_thread, seen.inside);
	pthread_barrier_destroy(&barrier);
}

static void a_command_is_sampled_from_its_exec_on(void **state)
{
	struct sampler *sampler;
	int go[2], status;
	pid_t child;
	char byte;

	(void)state;
	put_processor("event=0x2\n");
	put("cpu/events/mem-loads-aux", "event=0x9\n");
	assert_int_equal(pipe(go), 0);
	child = fork();
	if (!child) {
		if (read(go[0], &byte, 1) == 1)
			execlp("true", "true", (char *)NULL);
		_exit(1);
	}
	memset(&seen, 0, sizeof(seen));
	seen.end = UINT64_MAX;
	sampler = open_sampler(child, 1, 0);
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(sampler__drain(sampler, &sink, 1, 0, 1), 0);
	assert_true(seen.by_other_thread > 0);
	sampler__close(sampler);
	close(go[0]);
	close(go[1]);
}

static void what_is_mapped_is_told_once(void **state)
{
	size_t bytes = 7 * (size_t)sysconf(_SC_PAGESIZE);
	struct sampler *sampler;
	void *block;

	(void)state;
	put_processor("event=0x9\n");
	put("cpu/events/mem-stores", "event=0x2\n");
	memset(&seen, 0, sizeof(seen));
	sampler = open_sampler(getpid(), 0, 0);
	assert_int_equal(sampler__start(sampler), 0);
	block = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	seen.mapped_bytes = bytes;
	sampler->tells_present = 0;
	assert_int_equal(sampler__drain(sampler, &sink, 1, 1, 1), 0);
	assert_int_equal(seen.maps, 1);
	sampler__close(sampler);
	munmap(block, bytes);
}

static int load_catalogue(void **state)
{
	(void)state;
	model = pem_model__new();
	if (pem_model__add_catalogue(model, NULL) <= 0)
		return -1;
	event = pem_model__by_name(model, "HW::HWPerf::DataSample");
	map_event = pem_model__by_name(model, "HW::HWPerf::DataMap");
	return event && map_event ? 0 : -1;
}

static int free_catalogue(void **state)
{
	(void)state;
	pem_model__free(model);
	return 0;
}

#define HERE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HERE(a_processor_without_has_none),
		HERE(terms_go_where_formats_say),
		HERE(a_term_in_parts_fills_the_lowest_first),
		HERE(damaged_descriptions_are_refused),
		HERE(stores_and_a_leader_are_found),
		HERE(loads_that_do_not_open_leave_no_descriptor),
		HERE(a_device_of_its_own_samples_any_instruction),
		HERE(where_a_core_lacks_them_a_timer_samples_all),
		HERE(loads_without_stores_of_a_core_are_not_taken_for_all),
		HERE(samples_have_the_addresses_that_were_touched),
		HERE(stores_come_in_the_same_ring),
		HERE(threads_that_run_already_are_sampled),
		HERE(a_command_is_sampled_from_its_exec_on),
		HERE(what_is_mapped_is_told_once),
	};

	return cmocka_run_group_tests(tests, load_catalogue, free_catalogue);
}
