// SPDX-License-Identifier: MIT
/*
 * counters_unwind.c - callers of samples: of this thread, sampled by the kernel with registers and
 * stack; and of what a hostile program could let the kernel copy, or map
 *
 * build.mk compiles it without frame pointers.
 */
#include "sources/counters/unwind.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RING_BYTES (256u << 10) /* an ordinary user may lock 512 KiB */
#define STACK_BYTES 16384u
#define REGISTERS_MAX 64u
#define SAMPLES_MAX 60u
#define CALLERS_MAX 100u
#define MAPS_MAX 200u
#define COPIES 300u

#ifdef __x86_64__
#define STACK_POINTER PERF_REG_X86_SP
#define FRAME_POINTER PERF_REG_X86_BP
#define PC PERF_REG_X86_IP
#elif defined(__aarch64__)
#define STACK_POINTER PERF_REG_ARM64_SP
#define FRAME_POINTER 29
#define PC PERF_REG_ARM64_PC
#else /* nothing is unwound */
#define STACK_POINTER 0
#define FRAME_POINTER 1
#define PC 2
#endif

/* Each function has a section of its own, so that its end is known. */
#define OWN(name) __attribute__((noinline, noclone, used, section("unwind_" #name)))
#define RANGE(name)                                                                                \
	extern const char __start_unwind_##name[], __stop_unwind_##name[];                         \
	static int is_in_##name(uint64_t address)                                                  \
	{                                                                                          \
		return address >= (uintptr_t)__start_unwind_##name &&                              \
		       address < (uintptr_t)__stop_unwind_##name;                                  \
	}

RANGE(spin)
RANGE(compare)
RANGE(handle)
RANGE(tell_time)
RANGE(one)
RANGE(two)
RANGE(three)
RANGE(four)
RANGE(five)
RANGE(main)

struct taken {
	struct unwind_sample sample;
	uint64_t ip;
	uint64_t registers[REGISTERS_MAX];
	uint8_t stack[STACK_BYTES];
};

static struct {
	int fd; /* -1: perf_event_open is not allowed */
	int why;
	struct perf_event_mmap_page *page;
	struct taken *taken;
	unsigned count;
	struct ring_map maps[MAPS_MAX];
	unsigned map_count;
} sampling = {.fd = -1};

static volatile uint64_t work;

/* --- functions that are sampled --- */

OWN(spin) static void spin(unsigned rounds)
{
	while (rounds--)
		work += work ^ rounds;
}

OWN(compare) static int compare(const void *a, const void *b)
{
	spin(200000);
	return *(const int *)a - *(const int *)b;
}

OWN(one) static int one(int value)
{
	int values[] = {5, value, 3, 9, 1};

	qsort(values, 5, sizeof(values[0]), compare);
	return values[0] + (int)work;
}

OWN(two) static int two(int value)
{
	return one(value + 1) ^ 2;
}

OWN(three) static int three(int value)
{
	volatile int room[100];

	room[value % 100] = two(value + 1);
	return room[value % 100] ^ 3;
}

OWN(four) static int four(int value)
{
	return three(value + 1) ^ 4;
}

OWN(five) static int five(int value)
{
	return four(value + 1) ^ 5;
}

OWN(handle) static void handle(int number)
{
	spin(100000000);
	work += (uint64_t)number;
}

OWN(tell_time) static uint64_t tell_time(unsigned rounds)
{
	struct timespec time = {0};
	uint64_t sum = 0;

	while (rounds--) {
		clock_gettime(CLOCK_MONOTONIC, &time);
		sum += (uint64_t)time.tv_nsec;
	}
	return sum;
}

static void sort(void)
{
	work += (uint64_t)five(1);
}

static void be_interrupted(void)
{
	struct sigaction action = {.sa_handler = handle};

	sigaction(SIGALRM, &action, NULL);
	raise(SIGALRM);
}

static void ask_for_time(void)
{
	work += tell_time(2000000);
}

/* --- sampling of this thread --- */

static void open_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000, /* ns */
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = unwind__registers(),
		.sample_stack_user = STACK_BYTES,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	sampling.fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (sampling.fd >= 0) {
		sampling.page = mmap(NULL, page + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				     sampling.fd, 0);
		if (sampling.page != MAP_FAILED)
			return;
		close(sampling.fd);
	}
	sampling.why = errno;
	sampling.fd = -1;
}

static void copy_out(uint64_t at, void *to, size_t bytes)
{
	const uint8_t *data = (const uint8_t *)sampling.page + sysconf(_SC_PAGESIZE);
	size_t i;

	for (i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = data[(at + i) % RING_BYTES];
}

/* Header, ip, ids, time; abi and registers; size, stack and its used size. */
static void take_sample(uint64_t at, struct taken *taken)
{
	unsigned registers = (unsigned)__builtin_popcountll(unwind__registers());
	uint64_t abi, bytes, used = 0;

	memset(taken, 0, sizeof(*taken));
	copy_out(at + 8, &taken->ip, 8);
	copy_out(at + 16, &taken->sample.pid, 4);
	copy_out(at + 32, &abi, 8);
	at += 40;
	taken->sample.abi = (uint32_t)abi;
	if (abi) {
		copy_out(at, taken->registers, registers * 8);
		at += (uint64_t)registers * 8;
	}
	copy_out(at, &bytes, 8);
	if (bytes)
		copy_out(at + 8 + bytes, &used, 8);
	assert_true(used <= STACK_BYTES);
	copy_out(at + 8, taken->stack, used);
	taken->sample.registers = taken->registers;
	taken->sample.stack = taken->stack;
	taken->sample.stack_bytes = used;
}

/* Sample a function until there are enough samples, or it seems that there will be none. */
static void sample(void (*function)(void))
{
	unsigned tries;

	sampling.count = 0;
	if (sampling.fd < 0)
		return;
	for (tries = 0; tries < 20 && sampling.count < SAMPLES_MAX; tries++) {
		uint64_t head, tail = sampling.page->data_tail;

		ioctl(sampling.fd, PERF_EVENT_IOC_ENABLE, 0);
		function();
		ioctl(sampling.fd, PERF_EVENT_IOC_DISABLE, 0);
		head = __atomic_load_n(&sampling.page->data_head, __ATOMIC_ACQUIRE);
		while (tail < head) {
			struct perf_event_header header;

			copy_out(tail, &header, sizeof(header));
			if (header.type == PERF_RECORD_SAMPLE && sampling.count < SAMPLES_MAX)
				take_sample(tail, &sampling.taken[sampling.count++]);
			tail += header.size;
		}
		__atomic_store_n(&sampling.page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

static void take_map(void *arg, const struct ring_map *map)
{
	(void)arg;
	assert_true(sampling.map_count < MAPS_MAX);
	sampling.maps[sampling.map_count++] = *map;
}

/* The kernel tells of it beside samples; maps__each, of files alone, does not. */
static void take_vdso(void)
{
	struct ring_map map = {.pid = (uint32_t)getpid(), .path = "[vdso]"};
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char line[500];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "[vdso]") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		map.address = from;
		map.length = to - from;
		take_map(NULL, &map);
	}
	fclose(maps);
}

static int set_up(void **state)
{
	(void)state;
	sampling.taken = calloc(SAMPLES_MAX, sizeof(*sampling.taken));
	maps__each(getpid(), take_map, NULL);
	take_vdso();
	open_event();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(sampling.taken);
	if (sampling.fd >= 0)
		close(sampling.fd);
	return 0;
}

static void need_samples(void (*function)(void))
{
	if (!unwind__registers()) {
		print_message("this build can't unwind\n");
		skip();
	}
	if (sampling.fd < 0) {
		print_message("perf_event_open: %s\n", strerror(sampling.why));
		skip();
	}
	sample(function);
	if (sampling.count < SAMPLES_MAX / 2) {
		print_message("the kernel made only %u samples\n", sampling.count);
		skip();
	}
}

static struct unwinder *open_unwinder(struct unwinder_options options)
{
	struct unwinder *unwinder = unwinder__open(&options);
	unsigned i;

	assert_non_null(unwinder);
	for (i = 0; i < sampling.map_count; i++)
		assert_int_equal(unwinder__map(unwinder, &sampling.maps[i]), 0);
	return unwinder;
}

static struct unwinder *open_trusting(void)
{
	return open_unwinder((struct unwinder_options){.trusts_files = true});
}

/* A sample whose own instruction is in spin. */
static struct taken *spinning(unsigned *from)
{
	while (*from < sampling.count) {
		struct taken *taken = &sampling.taken[(*from)++];

		if (is_in_spin(taken->ip))
			return taken;
	}
	return NULL;
}

/* Does one of the callers from *at on lie in a function? *at is then the next. */
static int passes(int (*is_in)(uint64_t), const uint64_t *callers, unsigned count, unsigned *at)
{
	while (*at < count)
		if (is_in(callers[(*at)++] - 1))
			return 1;
	return 0;
}

/* --- tests: of what is real --- */

static int names_the_chain(const uint64_t *callers, unsigned count)
{
	unsigned at = 1;

	/* Between compare and one are functions of libc. */
	return count > 7 && is_in_compare(callers[0] - 1) && !is_in_one(callers[1] - 1) &&
	       passes(is_in_one, callers, count, &at) && is_in_two(callers[at] - 1) &&
	       is_in_three(callers[at + 1] - 1) && is_in_four(callers[at + 2] - 1) &&
	       is_in_five(callers[at + 3] - 1) && passes(is_in_main, callers, count, &at);
}

static void callers_go_up_to_main(void **state)
{
	struct unwinder *unwinder;
	unsigned from = 0, seen = 0, named = 0;
	const struct taken *taken;

	(void)state;
	need_samples(sort);
	unwinder = open_trusting();
	while ((taken = spinning(&from))) {
		uint64_t callers[CALLERS_MAX];
		unsigned count = unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX);

		seen++;
		named += names_the_chain(callers, count) != 0;
	}
	print_message("%u of %u stacks are whole\n", named, seen);
	assert_true(seen > 10);
	assert_true(named * 10 >= seen * 9);
	assert_int_equal(unwinder__counts(unwinder)->prepared, 1);
	assert_int_equal(unwinder__counts(unwinder)->unwound, seen);
	unwinder__close(unwinder);
}

static void a_signal_shows_what_it_interrupted(void **state)
{
	struct unwinder *unwinder;
	unsigned from = 0, seen = 0, named = 0;
	const struct taken *taken;

	(void)state;
	need_samples(be_interrupted);
	unwinder = open_trusting();
	while ((taken = spinning(&from))) {
		uint64_t callers[CALLERS_MAX];
		unsigned count = unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX);
		unsigned at = 0;

		seen++;
		named += passes(is_in_handle, callers, count, &at) && at == 1 &&
			 passes(is_in_main, callers, count, &at);
	}
	assert_true(seen > 10);
	assert_true(named * 10 >= seen * 9);
	unwinder__close(unwinder);
}

static void the_kernels_library_has_callers(void **state)
{
	const struct ring_map *vdso = &sampling.maps[sampling.map_count - 1];
	struct unwinder *unwinder;
	unsigned i, seen = 0, named = 0;

	(void)state;
	need_samples(ask_for_time);
	unwinder = open_trusting();
	for (i = 0; i < sampling.count; i++) {
		const struct taken *taken = &sampling.taken[i];
		uint64_t callers[CALLERS_MAX];
		unsigned at = 0, count;

		if (taken->ip < vdso->address || taken->ip >= vdso->address + vdso->length)
			continue;
		count = unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX);
		seen++;
		named += passes(is_in_tell_time, callers, count, &at) &&
			 passes(is_in_main, callers, count, &at);
	}
	unwinder__close(unwinder);
	if (seen < 5) {
		print_message("time is not told by the vdso here\n");
		skip();
	}
	assert_true(named * 10 >= seen * 9);
}

static void of_a_cut_stack_the_inner_callers_are_told(void **state)
{
	struct unwinder *unwinder;
	uint64_t whole[CALLERS_MAX], part[CALLERS_MAX];
	unsigned from = 0, count, last = 0;
	struct taken *taken;
	size_t bytes, all;

	(void)state;
	need_samples(sort);
	unwinder = open_trusting();
	taken = spinning(&from);
	assert_non_null(taken);
	all = taken->sample.stack_bytes;
	count = unwinder__unwind(unwinder, &taken->sample, whole, CALLERS_MAX);
	for (bytes = 0; bytes <= all; bytes += 8) {
		unsigned now;

		taken->sample.stack_bytes = bytes;
		now = unwinder__unwind(unwinder, &taken->sample, part, CALLERS_MAX);
		assert_in_range(now, last, count);
		assert_memory_equal(part, whole, now * sizeof(part[0]));
		last = now;
	}
	assert_int_equal(last, count);
	for (last = 0; last <= count; last++)
		assert_int_equal(unwinder__unwind(unwinder, &taken->sample, part, last), last);
	unwinder__close(unwinder);
}

/* --- tests: of processes and files; the sample is this process's --- */

/* A sample with callers. */
static struct taken *need_one(void)
{
	unsigned from = 0;
	struct taken *taken;

	need_samples(sort);
	taken = spinning(&from);
	assert_non_null(taken);
	return taken;
}

static unsigned callers_of(struct unwinder *unwinder, const struct taken *taken, uint32_t pid)
{
	struct unwind_sample sample = taken->sample;
	uint64_t callers[CALLERS_MAX];

	sample.pid = pid;
	return unwinder__unwind(unwinder, &sample, callers, CALLERS_MAX);
}

static void no_more_processes_are_kept_than_allowed(void **state)
{
	enum { KEPT = 8, CHILDREN = 50, PID = 100000 };
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_unwinder((struct unwinder_options){
		.trusts_files = true, .process_max = KEPT, .ready_max = 3});
	uint32_t own = (uint32_t)getpid(), i;
	unsigned all = callers_of(unwinder, taken, own);

	(void)state;
	assert_true(all > 0);
	for (i = 0; i < CHILDREN; i++) {
		assert_int_equal(unwinder__fork(unwinder, PID + i, own), 0);
		assert_int_equal(callers_of(unwinder, taken, PID + i), all);
	}
	assert_int_equal(unwinder__counts(unwinder)->forgotten, CHILDREN + 1 - KEPT);
	for (i = 0; i < CHILDREN; i++)
		assert_int_equal(callers_of(unwinder, taken, PID + i),
				 i + KEPT > CHILDREN ? all : 0);
	assert_int_equal(callers_of(unwinder, taken, own), all);
	unwinder__close(unwinder);
}

static void an_exec_replaces_memory(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();
	uint32_t own = (uint32_t)getpid();

	(void)state;
	assert_int_equal(unwinder__fork(unwinder, 100000, own), 0);
	assert_true(callers_of(unwinder, taken, own) > 0);
	unwinder__forget(unwinder, own);
	assert_int_equal(callers_of(unwinder, taken, own), 0);
	assert_true(callers_of(unwinder, taken, 100000) > 0);
	unwinder__close(unwinder);
}

/* The mapping of this program's code. */
static const struct ring_map *own_code(void)
{
	unsigned i;

	for (i = 0; i < sampling.map_count; i++)
		if ((uintptr_t)__start_unwind_main - sampling.maps[i].address <
		    sampling.maps[i].length)
			return &sampling.maps[i];
	fail_msg("no mapping of this program's code");
	return NULL;
}

static void what_is_mapped_over_code_hides_it(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();
	struct ring_map map = *own_code();
	unsigned all = callers_of(unwinder, taken, map.pid);

	(void)state;
	assert_true(all > 0);
	strcpy(map.path, "//anon");
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	assert_in_range(callers_of(unwinder, taken, map.pid), 0, all - 1);
	/* And again the file. */
	assert_int_equal(unwinder__map(unwinder, own_code()), 0);
	assert_int_equal(callers_of(unwinder, taken, map.pid), all);
	assert_int_equal(unwinder__counts(unwinder)->prepared, 3);
	/* To be told again changes nothing. */
	assert_int_equal(unwinder__map(unwinder, own_code()), 0);
	assert_int_equal(callers_of(unwinder, taken, map.pid), all);
	assert_int_equal(unwinder__counts(unwinder)->prepared, 3);
	unwinder__close(unwinder);
}

static int keep_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct ring_map *map = arg;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr);
		const ElfW(Nhdr) *note = (const void *)at;

		if (segment->p_type != PT_NOTE || note->n_type != NT_GNU_BUILD_ID ||
		    note->n_descsz > sizeof(map->build_id))
			continue;
		map->build_id_bytes = (uint8_t)note->n_descsz;
		memcpy(map->build_id, at + sizeof(*note) + 4, note->n_descsz);
	}
	return 1; /* this program comes first */
}

static void a_file_with_another_build_id_is_not_used(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();
	struct ring_map map = *own_code();
	unsigned all = callers_of(unwinder, taken, map.pid);

	(void)state;
	dl_iterate_phdr(keep_id, &map);
	if (!map.build_id_bytes) {
		unwinder__close(unwinder);
		print_message("this program has no build id\n");
		skip();
	}
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	assert_int_equal(callers_of(unwinder, taken, map.pid), all);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 0);
	map.build_id[3] ^= 1;
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	assert_in_range(callers_of(unwinder, taken, map.pid), 0, all - 1);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 1);
	unwinder__close(unwinder);
}

static void another_kind_of_process_has_no_callers(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();

	(void)state;
	taken->sample.abi = PERF_SAMPLE_REGS_ABI_32;
	assert_int_equal(callers_of(unwinder, taken, taken->sample.pid), 0);
	taken->sample.abi = PERF_SAMPLE_REGS_ABI_NONE;
	assert_int_equal(callers_of(unwinder, taken, taken->sample.pid), 0);
	taken->sample.abi = PERF_SAMPLE_REGS_ABI_64;
	assert_int_equal(callers_of(unwinder, taken, 100000), 0);
	assert_int_equal(unwinder__counts(unwinder)->failed, 3);
	unwinder__close(unwinder);
}

static void a_process_has_no_mappings_without_end(void **state)
{
	struct unwinder *unwinder = open_trusting();
	struct ring_map map = {.pid = 100000, .length = 4096, .path = "/bin/true"};
	unsigned i;
	int rc = 0;

	(void)state;
	for (i = 0; i < 10000 && !rc; i++) {
		map.address = i * 8192ull;
		rc = unwinder__map(unwinder, &map);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(unwinder__counts(unwinder)->refused_maps, 1);
	unwinder__close(unwinder);
}

static void pipes_and_folders_are_no_code(void **state)
{
	struct unwinder *unwinder = open_trusting();
	char folder[] = "/tmp/pem-unwind-XXXXXX";
	struct taken *taken = need_one();
	struct ring_map map = *own_code();

	(void)state;
	assert_non_null(mkdtemp(folder));
	strcpy(map.path, folder);
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	callers_of(unwinder, taken, map.pid);
	strcat(map.path, "/pipe");
	assert_int_equal(mkfifo(map.path, 0600), 0);
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	callers_of(unwinder, taken, map.pid); /* returns */
	unlink(map.path);
	rmdir(folder);
	strcpy(map.path, "/dev/zero");
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	callers_of(unwinder, taken, map.pid);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 3);
	unwinder__close(unwinder);
}

/* --- tests: of what is hostile --- */

/* Returns a copy of this program in memory. */
static uint8_t *read_program(size_t *bytes)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat about;
	uint8_t *program;

	assert_int_equal(fstat(fd, &about), 0);
	*bytes = (size_t)about.st_size;
	program = malloc(*bytes);
	assert_int_equal(read(fd, program, *bytes), *bytes);
	close(fd);
	return program;
}

static void write_program(const char *path, const uint8_t *program, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, program, bytes), bytes);
	close(fd);
}

static void files_of_others_are_not_read_without_trust(void **state)
{
	struct unwinder *unwinder = open_unwinder((struct unwinder_options){0});
	char path[] = "/tmp/pem-unwind-XXXXXX";
	struct taken *taken = need_one();
	struct ring_map map = *own_code();
	unsigned all = callers_of(unwinder, taken, map.pid);
	uint8_t *program;
	size_t bytes;

	(void)state;
	if (geteuid() != 0) {
		unwinder__close(unwinder);
		print_message("only root can give a file away\n");
		skip();
	}
	assert_true(all > 7);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 0);
	close(mkstemp(path));
	program = read_program(&bytes);
	write_program(path, program, bytes);
	strcpy(map.path, path);
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	assert_int_equal(callers_of(unwinder, taken, map.pid), all);
	assert_int_equal(chown(path, 12345, 12345), 0);
	unwinder__forget(unwinder, map.pid);
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	callers_of(unwinder, taken, map.pid);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 1);
	unlink(path);
	free(program);
	unwinder__close(unwinder);
}

static uint64_t random_word(void)
{
	return (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();
}

/* A word that could be of this stack or this program, or is anything. */
static uint64_t random_address(const struct taken *taken)
{
	switch (rand() % 5) {
	case 0:
		return taken->registers[STACK_POINTER] + (uint64_t)rand() % STACK_BYTES;
	case 1:
		return (uintptr_t)__start_unwind_one + (uint64_t)rand() % 64;
	case 2:
		return (uintptr_t)qsort + (uint64_t)rand() % 4096;
	case 3:
		return UINT64_MAX - (uint64_t)rand() % 64;
	default:
		return random_word();
	}
}

static void garbage_ends(void **state)
{
	unsigned registers = (unsigned)__builtin_popcountll(unwind__registers()), i, k;
	struct taken *taken = need_one(), *bad = malloc(sizeof(*bad));
	struct unwinder *unwinder = open_trusting();

	(void)state;
	srand(1);
	for (i = 0; i < 5000; i++) {
		uint64_t callers[CALLERS_MAX + 1];
		unsigned max = 1 + (unsigned)rand() % CALLERS_MAX;

		*bad = *taken;
		bad->sample.registers = bad->registers;
		bad->sample.stack = bad->stack;
		for (k = (unsigned)rand() % 8; k; k--)
			bad->registers[(unsigned)rand() % registers] = random_address(taken);
		for (k = (unsigned)rand() % 200; k; k--) {
			uint64_t word = random_address(taken);

			memcpy(bad->stack + (unsigned)rand() % (STACK_BYTES / 8) * 8, &word, 8);
		}
		callers[max] = 77;
		assert_in_range(unwinder__unwind(unwinder, &bad->sample, callers, max), 0, max);
		assert_int_equal(callers[max], 77);
	}
	free(bad);
	unwinder__close(unwinder);
}

static void frame_pointers_in_a_circle_end(void **state)
{
	struct unwinder *unwinder = open_trusting();
	uint64_t frame[2], callers[CALLERS_MAX];
	struct taken *taken = need_one();
	unsigned i;

	(void)state;
	/* In code of no file: a frame that is its own caller's; two that are each other's. */
	for (i = 0; i < 2; i++) {
		uint64_t stack_pointer = taken->registers[STACK_POINTER];

		taken->registers[PC] = 0x10000;
		taken->registers[FRAME_POINTER] = stack_pointer + 64;
		frame[0] = stack_pointer + 64 + (uint64_t)i * 64;
		frame[1] = 0x10000;
		memcpy(taken->stack + 64, frame, sizeof(frame));
		frame[0] = stack_pointer + 64;
		memcpy(taken->stack + 128, frame, sizeof(frame));
		assert_in_range(unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX), 0,
				2);
	}
	unwinder__close(unwinder);
}

/* Of each copy some bytes are other ones, most of them of its call frame information. */
static void damaged_files_do_no_harm(void **state)
{
	struct taken *taken = need_one();
	struct ring_map map = *own_code();
	char path[] = "/tmp/pem-unwind-XXXXXX";
	uint64_t from = 0, frame_bytes = 64;
	size_t bytes, i, k;
	uint8_t *program = read_program(&bytes), *bad = malloc(bytes);
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)program;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(program + head->e_shoff);
	const char *names = (const char *)program + sections[head->e_shstrndx].sh_offset;

	(void)state;
	for (i = 0; i < head->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, ".eh_frame")) {
			from = sections[i].sh_offset;
			frame_bytes = sections[i].sh_size;
		}
	close(mkstemp(path));
	strcpy(map.path, path);
	srand(2);
	for (i = 0; i < COPIES; i++) {
		struct unwinder *unwinder = open_trusting();
		size_t left = i % 10 == 9 ? (size_t)rand() % bytes : bytes;

		memcpy(bad, program, bytes);
		for (k = (size_t)rand() % 300; k && i % 3 != 2; k--)
			bad[from + (size_t)rand() % frame_bytes] = (uint8_t)rand();
		for (k = (size_t)rand() % 4; k && i % 3; k--)
			bad[(size_t)rand() % 1024] = (uint8_t)rand();
		for (k = (size_t)rand() % 4; k && i % 3 == 2; k--)
			bad[head->e_shoff + (size_t)rand() % (bytes - head->e_shoff)] =
				(uint8_t)rand();
		write_program(path, bad, left);
		assert_int_equal(unwinder__map(unwinder, &map), 0);
		assert_in_range(callers_of(unwinder, taken, map.pid), 0, CALLERS_MAX);
		unwinder__close(unwinder);
	}
	unlink(path);
	free(bad);
	free(program);
}

OWN(main) int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_go_up_to_main),
		cmocka_unit_test(a_signal_shows_what_it_interrupted),
		cmocka_unit_test(the_kernels_library_has_callers),
		cmocka_unit_test(of_a_cut_stack_the_inner_callers_are_told),
		cmocka_unit_test(no_more_processes_are_kept_than_allowed),
		cmocka_unit_test(an_exec_replaces_memory),
		cmocka_unit_test(what_is_mapped_over_code_hides_it),
		cmocka_unit_test(a_file_with_another_build_id_is_not_used),
		cmocka_unit_test(another_kind_of_process_has_no_callers),
		cmocka_unit_test(a_process_has_no_mappings_without_end),
		cmocka_unit_test(pipes_and_folders_are_no_code),
		cmocka_unit_test(files_of_others_are_not_read_without_trust),
		cmocka_unit_test(garbage_ends),
		cmocka_unit_test(frame_pointers_in_a_circle_end),
		cmocka_unit_test(damaged_files_do_no_harm),
	};
	int failed = cmocka_run_group_tests(tests, set_up, tear_down);

	/* Else the call might be a jump, and main no caller. */
	work++;
	return failed;
}
