// SPDX-License-Identifier: MIT
/* counters_unwind_hostile.c - registers, stacks and files that a hostile program could have */
#include "unwind_fixture.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define COPIES 300u

static void pipes_and_folders_are_no_code(void **state)
{
	struct taken *taken = need_one(); /* first: it may end the test */
	struct unwinder *unwinder = open_trusting();
	char folder[] = "/tmp/pem-unwind-XXXXXX";
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event opened;
	struct ring_map map = *own_code();

	(void)state;
	assert_non_null(mkdtemp(folder));
	strcpy(map.path, folder);
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	callers_of(unwinder, taken, map.pid);
	strcat(map.path, "/pipe");
	assert_int_equal(mkfifo(map.path, 0600), 0);
	assert_int_equal(inotify_add_watch(watch, map.path, IN_OPEN), 1);
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	callers_of(unwinder, taken, map.pid);
	/* Not even opened. */
	assert_int_equal(read(watch, &opened, sizeof(opened)), -1);
	close(watch);
	unlink(map.path);
	rmdir(folder);
	strcpy(map.path, "/dev/zero");
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	callers_of(unwinder, taken, map.pid);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 3);
	unwinder__close(unwinder);
}

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
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_unwinder((struct unwinder_options){0});
	char path[] = "/tmp/pem-unwind-XXXXXX";
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
		unsigned max = 1 + (unsigned)rand() % CALLERS_MAX, count;

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
		count = unwinder__unwind(unwinder, &bad->sample, callers, max);
		assert_in_range(count, 0, max);
		assert_int_equal(callers[max], 77);
		while (count--)
			assert_in_range(callers[count], 4096, (1ull << 56) - 1);
	}
	free(bad);
	unwinder__close(unwinder);
}

/*
 * A frame that is its own caller's, and two that are each other's: of code without call frame
 * information (from 0), and of code whose call frame information counts from the frame pointer.
 */
static void assert_circle_ends(struct unwinder *unwinder, struct taken *taken, uint64_t pc,
			       unsigned frames)
{
	uint64_t stack_pointer = taken->registers[STACK_POINTER], callers[CALLERS_MAX], frame[2];

	taken->registers[PC] = pc;
	taken->registers[FRAME_POINTER] = stack_pointer + 64;
	frame[0] = stack_pointer + 64 + (frames - 1) * 64;
	frame[1] = pc;
	memcpy(taken->stack + 64, frame, sizeof(frame));
	frame[0] = stack_pointer + 64;
	memcpy(taken->stack + 128, frame, sizeof(frame));
	assert_in_range(unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX), 0,
			frames);
}

static void frame_pointers_in_a_circle_end(void **state)
{
	struct unwinder *unwinder;
	uint64_t caller = 0;
	unsigned from = 0, frames;
	struct taken *taken;

	(void)state;
	need_samples(keep_frames);
	unwinder = open_trusting();
	taken = spinning(&from);
	assert_non_null(taken);
	assert_int_equal(unwinder__unwind(unwinder, &taken->sample, &caller, 1), 1);
	assert_true(is_in_keep_frame(caller - 1));
	for (frames = 1; frames <= 2; frames++) {
		assert_circle_ends(unwinder, taken, 0x10000, frames);
		assert_circle_ends(unwinder, taken, caller, frames);
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
